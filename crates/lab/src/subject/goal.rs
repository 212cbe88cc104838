//! Figures that are asked for, and what a simulation says of them.

use sim::Measurements;

use crate::experiment::{Metric, Seen};
use crate::measurements::{Better, Run, figures};

/// A figure that is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// One of those that replays have means of.
    Figure(String),
    /// One of experiments'.
    Metric(Metric),
}

/// What a simulation came to.
pub(crate) struct Outcome {
    pub(crate) run: Run,
    /// The value of each goal; `None` where nothing of the kind happened.
    pub(crate) values: Vec<Option<f64>>,
}

impl Goal {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Figure(name) => name,
            Self::Metric(metric) => metric.path(),
        }
    }

    /// Its unit, as `run` has it; `None` if the run has no such figure.
    pub(crate) fn unit(&self, run: &Run) -> Option<&'static str> {
        match self {
            Self::Figure(name) if everywhere(name, run).is_some() => {
                everywhere(name, run).map(|(unit, _)| unit)
            }
            Self::Figure(name) => {
                Some(figures(run).into_iter().find(|(figure, _)| figure.name == *name)?.0.unit)
            }
            Self::Metric(metric) => Some(metric.unit()),
        }
    }

    /// Which way it is better; `None` if nobody can tell from its name.
    pub(crate) fn better(&self) -> Option<Better> {
        let name = self.name();
        let last = name.rsplit('.').next().unwrap_or(name);
        let rates = ["pages_per_second", "operations_per_second", "operations_per_task_second"];
        let is_time = last.ends_with("_ns") || last.contains("_ns_per_") || name.starts_with("lock.");
        let amounts = [
            "rss",
            "peak_rss",
            "peak_pages",
            "held_pages",
            "page_faults",
            "pages_copied",
            "failed_allocations",
        ];
        if rates.contains(&name) || last.ends_with("gbps") {
            return Some(Better::Higher);
        }
        (is_time || amounts.contains(&last) || last.ends_with("wait_percent") || last == "spin_percent")
            .then_some(Better::Lower)
    }

    /// Its value, as `run` or what was `measured` besides has it; `None` where nothing of the kind happened.
    pub(crate) fn read(&self, run: &Run, measured: Option<&Measurements>) -> Option<f64> {
        match self {
            Self::Figure(name) if everywhere(name, run).is_some() => {
                everywhere(name, run).map(|(_, value)| value)
            }
            Self::Figure(name) => {
                let found = figures(run).into_iter().find(|(figure, _)| figure.name == *name);
                // What did not happen was counted 0 times, and waited for 0 ns.
                let absent = name.starts_with("lock.") || name.rsplit('.').next() == Some("count");
                found.map(|(_, value)| value).or(absent.then_some(0.0))
            }
            Self::Metric(metric) => metric.read(Seen { run, measured: measured? }),
        }
    }
}

/// What can be asked of every run, though not every run lists it: `rss` is the most memory in use, of a program that of its
/// largest address space. With its unit.
fn everywhere(name: &str, run: &Run) -> Option<(&'static str, f64)> {
    match name {
        "rss" | "peak_rss" => {
            let peak = run.program.map_or(run.memory.peak_pages, |used| used.peak_rss_pages);
            Some(("pages", peak as f64))
        }
        "pages_per_second" => Some(("pages/s", run.throughput.pages_per_second)),
        _ => None,
    }
}
