//! From the kernel's records to a recording, whoever read them: live rings or a `perf.data`.
//!
//! [`record`] takes perf's records apart, [`compact`] those of our programs in the kernel, [`sort`] puts those of several CPUs in order, [`tasks`] numbers the tasks and knows
//! which belong to the workload, [`schema`] reads a tracepoint's bytes, [`spaces`] pairs the beginnings and ends of calls, [`nodes`] reads those about memory's nodes, [`attached`]
//! writes what was there before, [`accessed`] what is used again, [`assemble`] makes events of all of it and decides
//! which are kept.

pub(crate) mod accessed;
pub(crate) mod assemble;
mod assemble_spaces;
#[cfg(test)]
mod assemble_tests;
pub(crate) mod attached;
pub(crate) mod compact;
mod nodes;
pub(crate) mod pages;
pub(crate) mod record;
pub(crate) mod schema;
pub(crate) mod sort;
pub(crate) mod spaces;
#[cfg(test)]
mod spaces_tests;
pub(crate) mod tasks;
