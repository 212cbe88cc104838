//! Capture: the kernel's memory events while a command runs, by our programs in the kernel (`bpf`), or by perf_event_open(2).
//!
//! `source` chooses between the two. `perf` opens perf's events, each CPU's into one ring, `ring` reads such a ring, `drain` is
//! the thread that empties the rings, `session` what happens from start to end on the calling thread, `child` the
//! command that waits until all is ready, `calibrate` what recording costs, `budget` what is sampled where that is too much, `host` and `zoneinfo` the description
//! of this machine, `surroundings` its settings and counters and what the program used,
//! `accessed` what is used again after the first touch, `contents` which pages are all zeros, `attach` what was there of a process before, `cgroup` who is in one.

mod accessed;
mod attach;
mod bpf;
mod budget;
mod calibrate;
mod cgroup;
pub(crate) mod child;
mod contents;
mod drain;
pub(crate) mod host;
mod options;
mod output;
mod perf;
pub(crate) mod procs;
mod ring;
mod session;
mod source;
mod surroundings;
pub mod zoneinfo;

pub use crate::event::Group;
pub use options::{Looking, Progress, RecordOptions, Status, Summary, Target};
pub use session::{event_cost, record, stop_on_signals};
pub use source::Via;
