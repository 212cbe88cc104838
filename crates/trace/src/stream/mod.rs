//! From the kernel's records to a recording, whoever read them: live rings or a `perf.data`.
//!
//! [`record`] takes apart what perf calls records, [`sort`] puts those of several CPUs in order, [`tasks`] numbers the
//! tasks and knows which belong to the workload, [`schema`] reads a tracepoint's bytes, [`assemble`] turns all of it into events and decides what is kept.

pub(crate) mod assemble;
#[cfg(test)]
mod assemble_tests;
pub(crate) mod pages;
pub(crate) mod record;
pub(crate) mod schema;
pub(crate) mod sort;
pub(crate) mod tasks;
