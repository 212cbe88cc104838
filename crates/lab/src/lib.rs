//! Workloads, replay, conformance, measurements: what turns recordings and experiments into figures.

pub mod conform;
pub mod measurements;
pub mod replay;
pub mod workload;
