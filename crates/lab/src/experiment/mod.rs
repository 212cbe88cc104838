//! Experiments as data: what somebody published, run again on simulated machines, figure beside figure.
//!
//! An experiment is a TOML file (docs/experiments.md): variants of a workload on machines, what was published of each
//! and in which role, comparisons between variants, sweeps. [`Experiment::load`] reads one, [`run`] runs some and gives
//! back a [`Document`](crate::measurements::Document) with rows, scores and accounts. A figure's name, a [`Metric`], is
//! a path into what a run leaves behind; [`METRICS`] lists all. Nothing in a file needs Rust: whoever can name a
//! machine, a policy, knobs and a workload can hold another published series against the simulation.

mod elsewhere;
mod error;
mod explain;
mod file;
mod funclatency;
mod heat;
mod independence;
mod library;
mod metric;
mod metric_table;
mod missing;
mod parameters;
mod perform;
mod published;
mod read;
mod rows;
mod run;
mod score;
mod spec;
mod sweep;
#[cfg(test)]
mod tests;

pub use error::ExperimentError;
pub use file::Form;
pub use funclatency::{emd_buckets, read as read_funclatency};
pub use library::is_path;
pub use metric::{Metric, Seen};
pub use metric_table::{METRICS, MetricSpec};
pub use rows::inexact_rows;
pub use run::{Detail, Options, run, simulations};
pub use spec::{
    Case, Comparison, Criterion, Experiment, Figure, Histogram, Published, Setup, Sweep, Variant, Way,
};
