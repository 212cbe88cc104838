//! The assembler's part for address spaces and files: it names files, and writes what [`super::spaces`] makes of records.

use std::io::{self, Write};

use super::assemble::Assembler;
use super::attached::Attached;
use super::record::{Mapping, Origin};
use super::spaces::Told;
use super::tasks::TaskRef;
use crate::event::{Call, Decoded, EventKind, FileKey, NameId, Task};

/// The name of a file of which nothing is known.
const UNKNOWN_FILE: &[u8] = b"unknown";

/// What a file is called in the recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileName {
    id: NameId,
    has_path: bool,
}

/// A fork that perf told of, until the tracepoint says what is shared.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingFork {
    origin: Origin,
    by: TaskRef,
    parent_tid: u32,
    child_tid: u32,
    child: TaskRef,
}

/// What a task read or wrote last: the kernel takes long requests in pieces and tells of the rest of them with each.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastRange {
    file: FileKey,
    is_write: bool,
    first: u32,
    end: u64,
}

impl<W: Write> Assembler<W> {
    /// A task made another. If a tracepoint is to say what they share, it is waited for.
    pub(super) fn forked(&mut self, origin: Origin, by: TaskRef, child: TaskRef) -> io::Result<()> {
        let (parent_tid, child_tid) = (self.tasks.get(by).tid, self.tasks.get(child).tid);
        let fork = WaitingFork { origin, by, parent_tid, child_tid, child };
        if self.tells_new_tasks {
            self.forks.push(fork);
            return Ok(());
        }
        self.write_fork(fork, 0)
    }

    /// The tracepoint said what a new task shares.
    pub(super) fn new_task(&mut self, tid: u32, flags: u32) -> io::Result<()> {
        match self.forks.iter().position(|fork| fork.child_tid == tid) {
            Some(index) => {
                let fork = self.forks.remove(index);
                self.write_fork(fork, flags)
            }
            None => Ok(()),
        }
    }

    /// Writes forks that this task took part in: it goes on, so that their tracepoint was lost.
    pub(super) fn settle_forks(&mut self, tid: u32) -> io::Result<()> {
        while let Some(index) =
            self.forks.iter().position(|fork| fork.parent_tid == tid || fork.child_tid == tid)
        {
            let fork = self.forks.remove(index);
            self.write_fork(fork, 0)?;
        }
        Ok(())
    }

    fn write_fork(&mut self, fork: WaitingFork, flags: u32) -> io::Result<()> {
        let child = self.introduced(fork.child)?;
        let took_ns = self.spaces.forking_ns(fork.parent_tid, fork.origin.time);
        self.write(fork.origin, fork.by, EventKind::Fork { child, flags, took_ns })
    }

    /// A process runs another program from here on.
    pub(super) fn exec(&mut self, origin: Origin, pid: u32, tid: u32) -> io::Result<()> {
        let Some(mut task) = self.look_up(tid) else { return Ok(()) };
        self.waits_for_exec = self.waits_for_exec.filter(|waiting| *waiting != tid);
        if self.tasks.has_ended(task) {
            // Another thread of the process ran exec: it takes the first one's number, which has ended.
            let heir = Task { pid, ..self.tasks.get(task).clone() };
            let Some(added) = self.tasks.add(heir) else { return Ok(()) };
            task = added;
        }
        if self.wants(task) && self.tells_spaces {
            self.spaces.exec(pid, tid);
            return self.write(origin, task, EventKind::Exec);
        }
        Ok(())
    }

    /// The program is mapped. The thread that ran exec has its process's number by now; its own is no more.
    pub(super) fn executed(&mut self, origin: Origin, old_tid: u32) -> io::Result<()> {
        self.spaces.executed(origin.pid);
        if old_tid == origin.tid {
            return Ok(());
        }
        match self.look_up(old_tid).filter(|task| !self.tasks.has_ended(*task)) {
            Some(thread) if self.wants(thread) => {
                self.tasks.end(thread);
                self.write(origin, thread, EventKind::Exit)
            }
            _ => Ok(()),
        }
    }

    /// perf tells of a mapping.
    pub(super) fn mapped(
        &mut self,
        origin: Origin,
        [pid, tid]: [u32; 2],
        mapping: &Mapping<'_>,
    ) -> io::Result<()> {
        let is_wanted = self.tells_spaces && self.look_up(tid).is_some_and(|task| self.wants(task));
        if !is_wanted {
            return Ok(());
        }
        let file = match mapping.path {
            path if mapping.file != FileKey::NONE => self.file(mapping.file, Some(path))?,
            b"//anon" | b"[heap]" | b"[stack]" => NameId::NONE,
            path if path.starts_with(b"[anon") => NameId::NONE,
            path => self.name(path)?,
        };
        let told = self.spaces.mapped(Origin { pid, tid, ..origin }, mapping, file);
        self.write_all(origin, &told)
    }

    /// A call ends.
    pub(super) fn left(&mut self, origin: Origin, call: Call, result: i64) -> io::Result<()> {
        let unknown =
            if self.spaces.lacks_file(origin.tid) { self.name(UNKNOWN_FILE)? } else { NameId::NONE };
        let told = self.spaces.leave(origin, call, result, unknown);
        self.write_all(origin, &told)
    }

    fn write_all(&mut self, origin: Origin, told: &[Told]) -> io::Result<()> {
        for Told { tid, kind } in told {
            if let Some(task) = self.look_up(*tid) {
                self.write(origin, task, *kind)?;
            }
        }
        Ok(())
    }

    /// Whether an event is about the address space of a process that is yet to become the command: the recorder's own.
    pub(super) fn is_before_exec(&self, tid: u32, decoded: &Decoded<'_>) -> bool {
        let is_of_space = match decoded {
            Decoded::Event(kind) => kind.is_fault(),
            decoded => matches!(
                decoded,
                Decoded::File(..) | Decoded::Enter { .. } | Decoded::Leave { .. } | Decoded::Needed { .. }
            ),
        };
        self.waits_for_exec == Some(tid) && is_of_space
    }

    /// A process belongs to the workload from here on, with these threads and with what it has.
    ///
    /// # Errors
    /// What the output says.
    pub(crate) fn join(&mut self, tids: &[u32], attached: &Attached) -> io::Result<()> {
        for &tid in tids {
            self.change(tid, |task| task.in_workload = true)?;
        }
        self.attach(self.counts().last_time, attached)
    }

    /// Whether a task belongs to the workload.
    pub(crate) fn is_recorded(&mut self, tid: u32) -> bool {
        self.look_up(tid).is_some_and(|task| self.tasks.in_workload(task))
    }

    /// An event of a file, unless it repeats what was told of it.
    pub(super) fn file_event(
        &mut self,
        origin: Origin,
        task: TaskRef,
        kind: EventKind,
        key: FileKey,
    ) -> io::Result<()> {
        if self.goes_on(origin.tid, &kind, key) {
            return Ok(());
        }
        let file = self.file(key, None)?;
        self.write(origin, task, with_file(kind, file))
    }

    /// Whether a task's event is the rest of a request that was written as a whole.
    fn goes_on(&mut self, tid: u32, kind: &EventKind, file: FileKey) -> bool {
        let (first, pages, is_write) = match *kind {
            EventKind::FileRead { first, pages, .. } => (first, pages, false),
            EventKind::FileWrite { first, pages, .. } => (first, pages, true),
            _ => return false,
        };
        let now = LastRange { file, is_write, first, end: u64::from(first) + u64::from(pages) };
        let last = self.ranges.insert(tid, now);
        last.is_some_and(|last| {
            (last.file, last.is_write, last.end) == (file, is_write, now.end) && last.first < first
        })
    }

    /// The name of a file. Whoever knows its path first gives it a name with the path.
    pub(super) fn file(&mut self, key: FileKey, path: Option<&[u8]>) -> io::Result<NameId> {
        if let Some(known) = self.files.get(&key) {
            if known.has_path || path.is_none() {
                return Ok(known.id);
            }
        }
        let mut name = key.to_string().into_bytes();
        if let Some(path) = path {
            name.push(b' ');
            name.extend_from_slice(path);
        }
        let hidden = self.mask.as_mut().map(|mask| mask.file(key));
        let has_path = path.is_some() || hidden.is_some();
        let id = self.name(hidden.as_ref().map_or(&name, |hidden| hidden.as_bytes()))?;
        self.files.insert(key, FileName { id, has_path });
        Ok(id)
    }
}

fn with_file(kind: EventKind, file: NameId) -> EventKind {
    match kind {
        EventKind::FileRead { first, pages, .. } => EventKind::FileRead { file, first, pages },
        EventKind::FileWrite { first, pages, .. } => EventKind::FileWrite { file, first, pages },
        EventKind::FileAdd { first, pages, .. } => EventKind::FileAdd { file, first, pages },
        EventKind::FileDrop { first, pages, .. } => EventKind::FileDrop { file, first, pages },
        other => other,
    }
}
