//! Pages that are cut off files: by truncation, as holes, or as shared memory that nobody maps any more.
//!
//! The kernel tells of each folio while the call is under way that does it, and of the call when it ends. The replay makes one call of
//! those that lie side by side, after the call that they belong to: a range is unmapped before its memory goes.

use trace::{EventKind, NameId};

use super::build::Builder;
use super::steps::{Call, FileRange};

/// What was cut off on a task's time and is not a step yet.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// When the first of it went, ns.
    begun: u64,
    /// Events.
    count: u32,
    ranges: Vec<FileRange>,
}

impl Cuts {
    fn add(&mut self, time: u64, range: FileRange) {
        if self.count == 0 {
            self.begun = time;
        }
        self.count += 1;
        match self.ranges.last_mut() {
            Some(last) if last.file == range.file && last.first.saturating_add(last.pages) == range.first => {
                last.pages = last.pages.saturating_add(range.pages);
            }
            _ => self.ranges.push(range),
        }
    }
}

impl Builder {
    /// Pages of a file go, on the time of a task.
    pub(super) fn cut_off(&mut self, time: u64, task: usize, (file, first, pages): (NameId, u32, u32)) {
        let Some(file) = self.files.number(file).filter(|_| pages > 0) else {
            self.happens(time, task);
            return;
        };
        self.files.cut(file, first, pages);
        self.tracks[task].cuts.add(time, FileRange { file, first, pages });
    }

    /// Whether an event tells of a call that cut off what the task has not made a step of.
    pub(super) fn is_done_by_call(&self, time: u64, task: usize, kind: &EventKind) -> bool {
        let cuts = &self.tracks[task].cuts;
        cuts.count > 0 && took_ns(kind).is_some_and(|took| time.saturating_sub(u64::from(took)) <= cuts.begun)
    }

    /// What was cut off before `time` was done by no call that has an event of its own.
    pub(super) fn cut_before(&mut self, time: u64, task: usize) {
        let count = self.tracks[task].cuts.count;
        if count > 0 {
            self.happens(time, task);
            let more = f64::from(count - 1) * self.costs.event_ns;
            self.tracks[task].clock.owe(more);
            self.cut_now(task);
        }
    }

    /// What was cut off so far becomes steps of the task.
    pub(super) fn cut_now(&mut self, task: usize) {
        for range in std::mem::take(&mut self.tracks[task].cuts).ranges {
            self.call_of_file(task, Call::Drop(range));
        }
    }
}

/// How long the call took that an event tells of, ns.
const fn took_ns(kind: &EventKind) -> Option<u32> {
    match *kind {
        EventKind::Map { took_ns, .. }
        | EventKind::Unmap { took_ns, .. }
        | EventKind::Remap { took_ns, .. }
        | EventKind::Protect { took_ns, .. }
        | EventKind::Advise { took_ns, .. }
        | EventKind::Pin { took_ns, .. } => Some(took_ns),
        _ => None,
    }
}
