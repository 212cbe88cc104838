//! A tracepoint that a kind of event comes from, and what is read of it.

use super::{Call, EventKind, FileKey, Group, SwitchState};
use crate::tracefs::sample::Sample;

/// Reads a tracepoint's bytes; `None` if a value cannot be expressed.
pub(crate) type ReadSample = for<'a> fn(&Sample<'_, 'a>) -> Option<Decoded<'a>>;

/// A tracepoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracepoint {
    /// With whom it is recorded.
    pub(crate) group: Group,
    /// Its system and its name: `kmem:mm_page_alloc`.
    pub(crate) name: &'static str,
    /// The fields that it must have. The sample has them in this order …
    pub(crate) needed: &'static [&'static str],
    /// … and behind them these, which it may lack.
    pub(crate) optional: &'static [&'static str],
    /// What to make of its bytes.
    pub(crate) read: ReadSample,
}

impl Tracepoint {
    /// Its name without its system's, as its `format` file has it.
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.split_once(':').map_or(self.name, |(_, name)| name)
    }
}

/// What a tracepoint's bytes say. Tasks and caches are named as the kernel does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded<'a> {
    /// An event, complete.
    Event(EventKind),
    /// A slab event but for its cache, which has this name.
    Slab(EventKind, &'a [u8]),
    /// A switch to this task.
    Switch {
        /// Its number.
        next_tid: u32,
        /// Its name.
        next_name: &'a [u8],
        /// The name of the task that leaves.
        prev_name: &'a [u8],
        /// How that one stays behind.
        state: SwitchState,
    },
    /// The task with this number may run.
    Waking(u32),
    /// An event of a file but for the file's name.
    File(EventKind, FileKey),
    /// A call that changes an address space begins.
    Enter {
        /// Which.
        call: Call,
        /// Its arguments, the first of [`Call`]'s table first.
        arguments: [u64; 6],
    },
    /// It ends.
    Leave {
        /// Which.
        call: Call,
        /// What it gave: from -4095 to -1 is an error.
        result: i64,
    },
    /// A direct read or write needed pages, there or not.
    Needed {
        /// Where the first lies, or a byte of it.
        address: u64,
        /// How many.
        pages: u32,
        /// [`EventKind::NEEDED_TO_READ`] or its like.
        advice: u32,
    },
    /// A task was made, perf has said by whom.
    NewTask {
        /// Its number.
        tid: u32,
        /// What it shares, as `clone` numbers it.
        flags: u32,
    },
    /// The task runs another program, and all that this maps is mapped.
    Executed {
        /// The task's number before: another if it was not its process's first thread.
        old_tid: u32,
    },
}
