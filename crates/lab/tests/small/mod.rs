//! What tests that hold parts of experiments within bands have in common.
#![allow(dead_code, reason = "each file of tests uses a part")]

use freehold_lab::experiment::{Experiment, Options, run};
use freehold_lab::measurements::Document;

/// The experiment called `name` with these of its variants, and nothing compared.
pub(crate) fn load(name: &str, kept: &[&str]) -> Experiment {
    let mut experiment = Experiment::load(name).unwrap_or_else(|error| panic!("{error}"));
    experiment.variants.retain(|variant| kept.contains(&variant.name.as_str()));
    assert_eq!(experiment.variants.len(), kept.len());
    experiment.comparisons.clear();
    experiment
}

/// What it came to, with one seed.
pub(crate) fn ran(experiment: Experiment) -> Document {
    ran_with(experiment, 1)
}

/// What it came to, with this many seeds.
pub(crate) fn ran_with(experiment: Experiment, seeds: u32) -> Document {
    let options = Options { seeds: Some(seeds), ..Options::default() };
    run(vec![experiment], &options, &|_| {}).unwrap_or_else(|error| panic!("{error}"))
}

/// The mean of a metric's row.
pub(crate) fn value(document: &Document, variant: &str, metric: &str) -> f64 {
    let row = document.rows.iter().find(|row| row.variant == variant && row.metric == metric);
    row.unwrap_or_else(|| panic!("no row {variant} {metric}")).simulated
}

/// A counter of a variant's run; 0 where nothing was counted.
pub(crate) fn counter(document: &Document, variant: &str, name: &str) -> u64 {
    let run = document.runs.iter().find(|run| run.variant.ends_with(variant));
    run.unwrap_or_else(|| panic!("no run {variant}")).counter(name)
}

/// A counter of each of a variant's runs.
pub(crate) fn counters(document: &Document, variant: &str, name: &str) -> Vec<u64> {
    let runs = document.runs.iter().filter(|run| run.variant.ends_with(variant));
    runs.map(|run| run.counter(name)).collect()
}
