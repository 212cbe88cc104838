//! A process's calls on files: what it reads and writes goes through the page cache.
//!
//! A recording has of each read where it was, and apart from that which pages came in, be it for the read or ahead of it. Coming in is no
//! use. What a read misses here was there when this was recorded, and has been taken since: it is read with what is read ahead of it. The
//! kernel keeps for each open file how it is read, this for each file of a process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mm::vm::{File, ReadDone, Reader};
use sim::SimMachine;

use super::process::{Outcome, Process};
use crate::program::FileRange;
use crate::stage::Stage;

/// How a process reads its files.
#[derive(Debug, Default)]
pub(super) struct Readers(RefCell<BTreeMap<u32, Reader>>);

impl Readers {
    fn of(&self, file: u32) -> Reader {
        self.0.borrow().get(&file).copied().unwrap_or_default()
    }

    fn keep(&self, file: u32, reader: Reader) {
        self.0.borrow_mut().insert(file, reader);
    }
}

/// The program's files, and where pages come from that a process reads and writes.
pub(super) struct FileCalls<'a> {
    pub(super) stage: &'a Stage,
    pub(super) files: &'a [Arc<File<SimMachine>>],
    pub(super) process: &'a Process,
}

impl FileCalls<'_> {
    /// A read: what is not there any more is waited for.
    pub(super) fn read(&self, FileRange { file, first, pages }: FileRange) -> Outcome {
        let Some(recorded) = self.files.get(file as usize) else { return Outcome::LeftOut };
        let (files, readers) = (self.stage.mm.files(), self.process.readers());
        let mut reader = readers.of(file);
        let from = self.process.file_placement(self.stage);
        let done = files.read_pages_by(&mut reader, recorded, first..first.saturating_add(pages), from);
        readers.keep(file, reader);
        match done {
            Ok(ReadDone { waits: 0, .. }) => Outcome::Done,
            Ok(ReadDone { reads, .. }) => {
                self.stage.disk.transfer(self.stage.machine(), reads.into());
                Outcome::Done
            }
            Err(_) => Outcome::NoMemory,
        }
    }

    /// Pages come in, as the recorded folio that they were; the recorded wait for them is a step of its own.
    pub(super) fn fill(&self, range: FileRange) -> Outcome {
        self.of_file(range, |file, pages| {
            let from = self.process.file_placement(self.stage);
            self.stage.mm.files().bring_pages(file, pages, from)
        })
    }

    /// A write of whole pages.
    pub(super) fn write(&self, range: FileRange) -> Outcome {
        self.of_file(range, |file, pages| {
            let from = || self.process.file_placement(self.stage);
            self.stage.mm.files().write_pages(file, pages, from).is_ok()
        })
    }

    /// Does it to the pages; `act` says whether there was memory for all.
    fn of_file(
        &self,
        FileRange { file, first, pages }: FileRange,
        act: impl Fn(&File<SimMachine>, Range<u32>) -> bool,
    ) -> Outcome {
        let Some(file) = self.files.get(file as usize) else { return Outcome::LeftOut };
        let got = act(file, first..first.saturating_add(pages));
        if got { Outcome::Done } else { Outcome::NoMemory }
    }
}

#[cfg(test)]
mod tests {
    use mm::vm::{FileKind, MemoryFile};
    use mm::{Knob, Policy};
    use sim::Profile;

    use super::*;
    use crate::measurements::Run;
    use crate::program::{Begins, Call, Doing, Program, RecordedFile, Step, TaskProgram};
    use crate::replay::{Plan, Source, Variant, replay};

    /// Pages of files that are active after a task's `calls`, where lists are classic by default.
    fn active(calls: Vec<Call>) -> u64 {
        let run = run((FileKind::Disk, calls), 32, &Variant::default());
        let sizes = run.counters.iter().filter(|(name, _)| name.starts_with("nr_active_file"));
        sizes.map(|(_, pages)| pages).sum()
    }

    /// A task makes `calls` on a file of a `kind`, whose device reads `read_ahead` pages ahead.
    fn run((kind, calls): (FileKind, Vec<Call>), read_ahead: u32, variant: &Variant) -> Run {
        let step = |call| Step { own_ns: 1_000, doing: Doing::Calls(call) };
        let task = TaskProgram {
            name: "reads".to_owned(),
            begins: Begins::InSpace(0),
            steps: (0..calls.len() as u32).map(step).collect(),
            ran_on: vec![],
            awaited: vec![],
            walked: vec![],
        };
        let file = RecordedFile {
            name: "8:1:7".to_owned(),
            kind,
            memory: MemoryFile::Mounted,
            before: vec![],
            pages: 450,
            read_ahead: Some(read_ahead),
        };
        let program = Program {
            tasks: vec![task],
            calls,
            before: vec![vec![]],
            files: vec![file],
            ..Program::default()
        };
        let plan = Plan::new(Profile::load("kvm-genoa-2c").unwrap(), Policy::parse("linux-6.6").unwrap());
        replay(&Source::Program(Arc::new(program)), &plan, variant).unwrap()
    }

    #[test]
    fn a_page_is_active_once_two_reads_have_used_it() {
        // Full batches of 15.
        let of = |first, pages| FileRange { file: 0, first, pages };
        let came = || Call::Fill(of(0, 450));
        assert_eq!(active(vec![came(), Call::Read(of(0, 450))]), 0, "coming in is no use");
        let in_parts = (0..450).flat_map(|page| [Call::Read(of(page, 1)), Call::Read(of(page, 1))]);
        assert_eq!(active([came()].into_iter().chain(in_parts).collect()), 0, "each page in two reads");
        let all = || Call::Read(of(0, 450));
        assert_eq!(active(vec![came(), all(), all()]), 450);
    }

    #[test]
    fn who_writes_more_to_memory_than_its_group_may_have_is_killed() {
        let killed = |pages| {
            let calls = vec![Call::Write(FileRange { file: 0, first: 0, pages })];
            let limit = Variant::from(vec![(Knob::MemoryMax, 1 << 20)]);
            run((FileKind::Memory, calls), 32, &limit).cgroups[0].killed_ns.is_some()
        };
        assert_eq!([200, 400].map(killed), [false, true], "256 pages");
    }

    #[test]
    fn what_was_taken_comes_back_with_what_is_read_ahead_of_it() {
        let of = |first, pages| FileRange { file: 0, first, pages };
        // 450 pages come, of which less than half may stay; then half of the others are read, each by itself.
        let calls = || -> Vec<Call> {
            let reads = (0..100).map(|page| Call::Read(of(2 * page + 1, 1)));
            std::iter::once(Call::Fill(of(0, 450))).chain(reads).collect()
        };
        let limit = Variant::from(vec![(Knob::MemoryMax, 200 << 12)]);
        let refaults = |read_ahead, calls| {
            run((FileKind::Disk, calls), read_ahead, &limit).counter("workingset_refault_file")
        };
        assert_eq!(refaults(0, calls()), 100, "nothing is read ahead");
        assert_eq!(refaults(32, calls()), 100, "nor of what is read here and there");
        let in_order = || (0..100).map(|page| Call::Read(of(page, 1)));
        let streams = || std::iter::once(Call::Fill(of(0, 450))).chain(in_order()).collect();
        assert_eq!(refaults(0, streams()), 100);
        let ahead = refaults(32, streams());
        assert!((101..=164).contains(&ahead), "a window and the next one more: {ahead}");
    }
}
