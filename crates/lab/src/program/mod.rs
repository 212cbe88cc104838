//! A recorded program: what each of its tasks did to its address space and to files, with its own time between, so that the memory
//! manager can do the rest anew.
//!
//! ```text
//!   recording ─▶ build ─┬─ track    a task, with the steps that it has so far
//!                       ├─ clock    how much of the time between events was the task's own
//!                       │   ├─ prices   what the recorded kernel and the recorder took of it
//!                       │   └─ bits     accessed bits that were cleared and came back
//!                       ├─ waits    who woke whom, and what was sleep
//!                       ├─ periods  sleeps that another task cuts short
//!                       ├─ faults   faults become touches, when it is known whether their pages were in memory
//!                       ├─ order    which thread came before which to the same pages
//!                       ├─ accesses how often it walked to its pages, by looks at accessed bits
//!                       ├─ used     which pages it used when, by looks that told pages apart
//!                       ├─ heat     the same as a map over time, to be shown
//!                       ├─ layout   what is mapped where, by the recording's addresses
//!                       ├─ ranges   what it maps, moves and says of ranges, and what was there before
//!                       ├─ windows  those addresses as pages of an address space that the memory manager has room for
//!                       ├─ files    which file is which, and what of it was in memory before
//!                       ├─ said     what it said of its memory: advice, policies of nodes
//!                       ├─ surroundings   on which kernel, with which knobs and what swap
//!                       └─ counts   what the recorded kernel did: to compare with, never to be replayed from
//!                     ─▶ Program: tasks, steps, calls ─▶ crate::replay
//! ```
//!
//! A step is CPU time of the task's own, then one thing that it does: it touches a page, makes a call, sleeps, waits for another task
//! or lets one go on. Page events are only counted: the pages come from the memory manager of the replay. A recording without
//! events of address spaces is no program; [`crate::recorded`] makes a workload of its page and slab events.

mod accesses;
mod aligned;
mod bits;
mod build;
mod clock;
mod counts;
mod cuts;
#[cfg(test)]
mod fault_tests;
mod faults;
mod files;
mod heat;
mod layout;
#[cfg(test)]
mod needed_tests;
mod order;
mod periods;
mod prices;
mod races;
mod ranges;
mod read_ahead;
mod said;
mod steps;
mod surroundings;
mod swap;
#[cfg(test)]
mod tests;
mod track;
mod used;
mod waits;
mod windows;

pub use accesses::{LookedAt, Walked, WalkedFrom};
pub use build::{from_recording, has_program};
pub use counts::Counted;
pub use files::RecordedFile;
pub use prices::{KernelCosts, PageLoop, RecordedOn};
pub use said::{SaidPolicy, WhatIsThere, node_mask};
pub use steps::{
    Backing, Before, Begins, Call, Company, Doing, FileRange, HugeBefore, MapCall, PageRange, Program,
    SignalId, Step, TaskProgram,
};
pub use surroundings::Surroundings;
pub use swap::SwapFiles;
pub(crate) use swap::as_recorded as swap_as_recorded;
pub use used::{UsedLook, UsedPeriod};
