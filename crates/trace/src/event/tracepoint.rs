//! A tracepoint that a kind of event comes from, and what is read of it.

use super::{EventKind, Group, SwitchState};
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
}
