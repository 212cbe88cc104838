//! Experiments as data: what somebody published, run again on simulated machines, figure beside figure.
//!
//! An experiment is a TOML file (docs/experiments.md): variants of a workload on machines, what was published of each
//! and in which role, comparisons between variants, sweeps. [`Experiment::load`] reads one, [`run`] runs some and gives
//! back a [`Document`](crate::measurements::Document) with rows, scores and accounts. A figure's name, a [`Metric`], is
//! a path into what a run leaves behind; [`METRICS`] lists all. Nothing in a file needs Rust: whoever can name a
//! machine, a policy, knobs and a workload can hold another published series against the simulation.

mod elsewhere;
mod error;
mod funclatency;
mod independence;
mod library;
mod metric;
mod published_rows;
mod read;
mod results;
mod run;
mod spec;
#[cfg(test)]
mod tests;
mod times;
mod tracer;

pub use error::{ExperimentError, is_path};
pub use funclatency::{emd_buckets, read as read_funclatency};
pub use metric::{METRICS, Metric, MetricSpec, Seen};
pub use published_rows::rows_of;
pub use results::{Results, Scored};
pub use run::{Detail, Options, inexact_rows, refusals, run, simulate, simulations};
pub use spec::{
    Case, Comparison, Criterion, Experiment, Figure, Form, Histogram, Published, Setup, Sweep, Variant, Way,
};
pub use times::times_of;
pub use tracer::Tracer;
