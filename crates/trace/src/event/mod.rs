//! What a recording consists of: events, each at a time on a CPU by a task.
//!
//! All that is known of a kind of event is an entry of the table in `kinds`: its fields and where a recording keeps them
//! (`field`), and the tracepoints that it comes from (`tracepoint`, in `groups` that are recorded together). Calls that change an
//! address space have two tracepoints each, which stand in `calls`; what they say of nodes is in `mempolicy`, what is said or needed by others
//! in `advice`.

mod advice;
mod calls;
pub(crate) mod field;
mod groups;
mod kinds;
mod mempolicy;
mod readers;
mod space;
mod tracepoint;

use mm::{Cpu, Nanos, TaskId};
use serde::{Deserialize, Serialize};

pub use calls::Call;
pub(crate) use groups::Absence;
pub use groups::Group;
pub use kinds::EventKind;
pub(crate) use kinds::requested;
pub(crate) use mempolicy::mode_of;
pub use mempolicy::{NodeCall, NodeFlags, PolicyMode, SaidOfNodes};
pub(crate) use readers::file_written;
pub use space::{FileKey, MapFlags, PresentKind};
pub use tracepoint::Decoded;
pub(crate) use tracepoint::Tracepoint;

/// Every tracepoint that an event comes from.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static Tracepoint> {
    kinds::tracepoints().chain(calls::TRACEPOINTS)
}

/// Something that the kernel did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, by the recording host's CLOCK_MONOTONIC. Ascending within a recording but for rare, small inversions of
    /// events that interrupted each other.
    pub time: Nanos,
    /// Where.
    pub cpu: Cpu,
    /// On whose time: an index into the recording's task table. Interrupts run on the time of whom they interrupt.
    pub task: TaskId,
    /// What.
    pub kind: EventKind,
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SwitchState {
    /// It could have run on: preempted, or it yielded.
    Runnable = 0,
    /// It sleeps until woken or signalled.
    Sleeping = 1,
    /// It sleeps and signals must wait: mostly for a disk or a lock.
    Blocked = 2,
    /// It is stopped or traced.
    Stopped = 3,
    /// It has ended.
    Dead = 4,
    /// A kernel thread with nothing to do.
    Idle = 5,
}

impl SwitchState {
    /// Reads `prev_state` of sched_switch as Linux numbers it since 4.14.
    pub const fn from_prev_state(state: u64) -> Self {
        match state & 0xff {
            0 => Self::Runnable,
            bits if bits & 0x80 != 0 => Self::Idle,
            bits if bits & 0x30 != 0 => Self::Dead,
            bits if bits & 0x4c != 0 => Self::Stopped,
            bits if bits & 0x02 != 0 => Self::Blocked,
            _ => Self::Sleeping,
        }
    }

    /// The state numbered `value`.
    #[inline]
    pub const fn from_index(value: u64) -> Option<Self> {
        match value {
            0 => Some(Self::Runnable),
            1 => Some(Self::Sleeping),
            2 => Some(Self::Blocked),
            3 => Some(Self::Stopped),
            4 => Some(Self::Dead),
            5 => Some(Self::Idle),
            _ => None,
        }
    }
}

/// An index into the recording's names: slab caches, files and marks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NameId(pub u32);

impl NameId {
    /// No name: the first of every recording's names, which is empty.
    pub const NONE: Self = Self(0);
}

/// A task of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Task {
    /// The process that it belongs to; 0 if that was not seen.
    pub pid: u32,
    /// Its own number. A number that came up again is another task.
    pub tid: u32,
    /// Its name when last seen.
    pub name: String,
    /// Whether it belongs to what was to be recorded: the command and its descendants, `--pid` and its threads and
    /// children, or with `--all` everything.
    pub in_workload: bool,
}
