//! Workloads, replay, conformance, measurements: what turns recordings and experiments into figures.

pub mod measurements;
