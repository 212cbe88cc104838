//! Workloads: tasks, each a stream of memory operations with the CPU time that it spends between them. A recording
//! becomes one here ([`from_recording`]); a machine runs it ([`crate::replay`]).

mod builder;
mod matching;
mod object_steps;
#[cfg(test)]
mod object_tests;
mod objects;
mod ops;
#[cfg(test)]
mod tests;
mod timing;

pub use builder::{Builder, NamedTask, from_recording};
pub use ops::{Action, BlockId, Kind, ObjectCache, ObjectId, Omissions, Op, Recorded, TaskOps, TaskRef};
pub use timing::HostCosts;
