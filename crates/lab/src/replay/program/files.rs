//! A process's calls on files: what it reads and writes goes through the page cache.
//!
//! A recording has of each read where it was, and apart from that which pages came in, be it for the read or ahead of it. Coming in is no
//! use; and of reads that follow each other in one page the first alone is (`filemap_read`: the kernel goes by the last position of an open
//! file, this by the last page of a process in a file).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use mm::AllocError;
use mm::vm::{Cached, File, Placement};
use sim::SimMachine;

use super::process::Process;
use crate::program::FileRange;
use crate::stage::Stage;

/// The page of each file that was read last.
#[derive(Debug, Default)]
pub(super) struct LastRead(RefCell<BTreeMap<u32, u32>>);

impl LastRead {
    /// `range` is read; gives the page of it that was read last before, if that is where it begins.
    fn goes_on(&self, FileRange { file, first, pages }: FileRange) -> Option<u32> {
        let last = first.saturating_add(pages.saturating_sub(1));
        self.0.borrow_mut().insert(file, last).filter(|before| *before == first)
    }
}

/// The program's files, and where pages come from that a process reads and writes.
pub(super) struct FileCalls<'a> {
    pub(super) stage: &'a Stage,
    pub(super) files: &'a [Arc<File<SimMachine>>],
    pub(super) process: &'a Process,
}

impl FileCalls<'_> {
    /// A read: what is not there any more, though it was when this was recorded, is waited for. Says whether there was memory for it.
    pub(super) fn read(&self, range: FileRange) -> bool {
        let used = self.process.last_read().goes_on(range);
        let files = self.stage.mm.files();
        let missed = self.each_page(range, |file, page, from| {
            if used == Some(page) {
                files.bring_file(file, page, from)
            } else {
                files.read_file(file, page, from)
            }
        });
        missed.is_some_and(|pages| {
            if pages > 0 {
                self.stage.disk.transfer(self.stage.machine(), pages);
            }
            true
        })
    }

    /// Pages come in; the recorded wait for them is a step of its own.
    pub(super) fn fill(&self, range: FileRange) -> bool {
        let files = self.stage.mm.files();
        self.each_page(range, |file, page, from| files.bring_file(file, page, from)).is_some()
    }

    /// A write of whole pages.
    pub(super) fn write(&self, range: FileRange) -> bool {
        let files = self.stage.mm.files();
        self.each_page(range, |file, page, from| files.write_file(file, page, from)).is_some()
    }

    /// Does it to each page; how many were not in memory. `None` if there was no memory for one.
    fn each_page(
        &self,
        FileRange { file, first, pages }: FileRange,
        act: impl Fn(&File<SimMachine>, u32, Placement) -> Result<Cached, AllocError>,
    ) -> Option<u64> {
        let file = self.files.get(file as usize)?;
        let mut missed = 0;
        for page in first..first.saturating_add(pages) {
            match act(file, page, self.process.file_placement(self.stage)) {
                Ok(Cached::Hit) => {}
                Ok(Cached::Miss) => missed += 1,
                Err(_) => {
                    self.stage.tally.could_not_get();
                    return None;
                }
            }
        }
        Some(missed)
    }
}

#[cfg(test)]
mod tests {
    use mm::Policy;
    use mm::vm::FileKind;
    use sim::Profile;

    use super::*;
    use crate::program::{Begins, Call, Doing, Program, RecordedFile, Step, TaskProgram};
    use crate::replay::{Plan, Source, Variant, replay};

    /// Pages of files that are active after a task's `calls`, where lists are classic by default.
    fn active(calls: Vec<Call>) -> u64 {
        let step = |call| Step { own_ns: 1_000, doing: Doing::Calls(call) };
        let task = TaskProgram {
            name: "reads".to_owned(),
            begins: Begins::InSpace(0),
            steps: (0..calls.len() as u32).map(step).collect(),
            ran_on: vec![],
            awaited: vec![],
            walked: vec![],
        };
        let file = RecordedFile { name: "8:1:7".to_owned(), kind: FileKind::Disk, before: vec![] };
        let program = Program {
            tasks: vec![task],
            calls,
            before: vec![vec![]],
            files: vec![file],
            ..Program::default()
        };
        let plan = Plan::new(Profile::load("kvm-genoa-2c").unwrap(), Policy::parse("linux-6.6").unwrap());
        let run = replay(&Source::Program(Arc::new(program)), &plan, &Variant::default()).unwrap();
        let sizes = run.counters.iter().filter(|(name, _)| name.starts_with("nr_active_file"));
        sizes.map(|(_, pages)| pages).sum()
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
    fn reads_within_a_page_go_on_where_the_last_one_ended() {
        let last = LastRead::default();
        let read = |file, first, pages| last.goes_on(FileRange { file, first, pages });
        assert_eq!(read(0, 0, 2), None, "the first");
        assert_eq!(read(0, 1, 2), Some(1), "the rest of page 1, and page 2");
        assert_eq!(read(1, 2, 1), None, "another file");
        assert_eq!(read(0, 2, 1), Some(2));
        assert_eq!((read(0, 1, 1), read(0, 5, 1)), (None, None), "back, and on");
        assert_eq!(read(0, u32::MAX, 2), None);
    }
}
