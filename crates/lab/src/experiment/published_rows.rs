//! How far published rows were off in a document: the rows of [`crate::evidence::Rows`], from which labels follow.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mm::policy::Mechanism;

use super::spec::{Experiment, Setup, Variant};
use crate::evidence::{FigureKind, Rows, of_counter};
use crate::measurements::{Document, Role, Row};

/// The rows of `document` that have a published figure, summed up. `experiments` are those that it is of.
pub fn rows_of(document: &Document, experiments: &[Experiment]) -> Vec<Rows> {
    let mut sums: BTreeMap<(usize, String, String, Mechanism, FigureKind), Rows> = BTreeMap::new();
    for row in document.rows.iter().filter(|row| row.published.is_finite() && row.unit != "buckets") {
        let Some(place) = experiments.iter().position(|experiment| experiment.name == row.experiment) else {
            continue;
        };
        let Some(setup) = setup(&experiments[place], &row.variant) else { continue };
        let (machine, policy) = (setup.profile.name(), setup.policy.name());
        let figures = kind(&row.metric);
        for mechanism in tested(&row.metric, setup) {
            let key = (place, machine.to_owned(), policy.to_owned(), mechanism, figures);
            let of = sums.entry(key).or_insert_with(|| Rows {
                experiment: row.experiment.clone(),
                machine: machine.to_owned(),
                policy: policy.to_owned(),
                mechanism,
                figures,
                fitted: 0,
                errors: vec![],
            });
            match row.role {
                Role::Fitted => of.fitted += 1,
                Role::Predicted | Role::Exact => of.errors.push(error(row)),
                // They say nothing that another row does not, or nothing at all.
                Role::Derived | Role::Noise | Role::Zero => {}
            }
        }
    }
    sums.into_values().collect()
}

/// What a row's variant ran; of one variant against another, the first.
pub(super) fn setup<'a>(experiment: &'a Experiment, variant: &str) -> Option<&'a Setup> {
    let name = variant.split(" against ").next().unwrap_or(variant);
    let has = |variant: &&Variant| (0..variant.phases.len()).any(|phase| variant.case_name(phase) == name);
    experiment.variants.iter().find(has).map(|variant| &variant.setup)
}

fn error(row: &Row) -> f64 {
    let error = if row.error.is_finite() { row.error.abs() } else { f64::INFINITY };
    let error = if row.unit == "percent" { error / 100.0 } else { error };
    (error * 1e4).round() / 1e4
}

/// Whether a metric counts or times.
fn kind(metric: &str) -> FigureKind {
    if is_counted(metric) { FigureKind::Counts } else { FigureKind::Times }
}

/// Whether a metric follows from the rules alone.
pub(super) fn is_counted(metric: &str) -> bool {
    let counted = ["counters.", "ratio.", "sampled.", "zone_percent.", "memory.", "zonelist.", "mean.huge-"];
    let per = [".pages_per_operation", ".count_per_operation", ".pages_mean"];
    // A script may ask for how long its group was delayed.
    counted.iter().any(|head| metric.starts_with(head)) && !metric.ends_with("_ns")
        || per.iter().any(|tail| metric.ends_with(tail))
        || metric.contains(".sizes")
}

/// The mechanisms that a metric tells of: by its name, or else by what the workload is there for.
fn tested(metric: &str, setup: &Setup) -> Vec<Mechanism> {
    let own =
        metric.rsplit_once('/').filter(|_| !metric.starts_with("ratio.")).map_or(metric, |(_, own)| own);
    let (head, rest) = own.split_once('.').unwrap_or((own, ""));
    let by_name = match head {
        "refill" | "drain" | "page_alloc" | "page_free" | "zone" | "pcp" => Some(Mechanism::PageLists),
        "list" | "barn" | "slab_alloc" | "slab_free" => Some(Mechanism::Slabs),
        "direct_reclaim" => Some(Mechanism::Reclaim),
        "compact" | "migrate" => Some(Mechanism::Compaction),
        "zonelist" | "zone_percent" => Some(Mechanism::Zonelists),
        "memory" if rest == "slab_pages" => Some(Mechanism::Slabs),
        "counters" if rest.starts_with("pgalloc_") || rest.starts_with("numa_hit") => {
            Some(Mechanism::Zonelists)
        }
        "counters" | "ratio" => of_counter(rest),
        _ => None,
    };
    by_name.map_or_else(|| setup.tests().to_vec(), |mechanism| vec![mechanism])
}

/// Appends the rows as TOML.
pub(super) fn write_rows(out: &mut String, rows: &[Rows]) {
    for of in rows {
        let errors: Vec<String> = of.errors.iter().map(|error| format!("{error:?}")).collect();
        let _ = write!(
            out,
            "\n[[rows]]\nexperiment = \"{}\"\nmachine = \"{}\"\npolicy = \"{}\"\nmechanism = \"{}\"\nfigures = \"{}\"\n\
             fitted = {}\nerrors = [{}]\n",
            of.experiment,
            of.machine,
            of.policy,
            of.mechanism,
            of.figures.name(),
            of.fitted,
            errors.join(", ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_samples_is_counted_but_for_times() {
        for metric in
            ["counters.pswpin", "sampled.after.pswpout", "sampled.after.a.huge", "refill.pages_mean"]
        {
            assert!(is_counted(metric), "{metric}");
        }
        for metric in ["sampled.all.group.high_delay_ns", "mean_ns.pageout", "refill.mean_ns"] {
            assert!(!is_counted(metric), "{metric}");
        }
    }
}
