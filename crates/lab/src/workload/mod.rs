//! Workloads: tasks, each a stream of memory operations with the CPU time that it spends between them. A recording
//! becomes one here ([`from_recording`]); a machine runs it ([`crate::replay`]).

mod matching;
mod object_steps;
#[cfg(test)]
mod object_tests;
mod objects;
mod ops;
mod recorded;
#[cfg(test)]
mod tests;
mod timing;

pub use ops::{Action, BlockId, Kind, ObjectCache, ObjectId, Omissions, Op, TaskOps, TaskRef, Workload};
pub use recorded::{Builder, from_recording};
pub use timing::HostCosts;
