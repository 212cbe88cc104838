//! Named findings: what in a run is known to cost, found by conditions on what was measured. docs/findings.md says of each what it
//! means, its condition, and what to try; `report` has the words.

mod locks;
mod memory;
mod programs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::measurements::{Finding, Group, Run, scenes};

/// A kind of finding.
#[derive(Debug)]
pub struct FindingSpec {
    /// Its name, a heading of docs/findings.md.
    pub name: &'static str,
    find: fn(&Seen<'_>) -> Vec<Found>,
}

/// Every kind.
pub const FINDINGS: [FindingSpec; 14] = [
    FindingSpec { name: "long-batches", find: locks::long_batches },
    FindingSpec { name: "zone-lock-waits", find: locks::zone_lock },
    FindingSpec { name: "list-lock-waits", find: locks::list_lock },
    FindingSpec { name: "mmap-lock-waits", find: locks::mmap_lock },
    FindingSpec { name: "few-waiters", find: locks::few_waiters },
    FindingSpec { name: "direct-reclaim", find: memory::direct_reclaim },
    FindingSpec { name: "compaction-stalls", find: memory::compaction_stalls },
    FindingSpec { name: "pages-of-other-nodes", find: memory::other_nodes },
    FindingSpec { name: "remote-accesses", find: memory::remote_accesses },
    FindingSpec { name: "huge-pages-untouched", find: programs::untouched },
    FindingSpec { name: "huge-pages-fall-back", find: programs::fall_back },
    FindingSpec { name: "copies-after-fork", find: programs::copies_after_fork },
    FindingSpec { name: "page-walks", find: programs::page_walks },
    FindingSpec { name: "idle-knob", find: programs::idle_knob },
];

/// A variant, and the first one beside it.
struct Seen<'a> {
    group: &'a Group<'a>,
    /// The first variant of the same workload on the same machine; `None` for that one itself.
    first: Option<&'a Group<'a>>,
    /// All variants.
    siblings: &'a [Group<'a>],
}

/// A condition that holds.
struct Found {
    subject: String,
    weight: f64,
    figures: BTreeMap<String, f64>,
}

impl Found {
    fn new<const N: usize>(weight: f64, figures: [(&str, f64); N]) -> Vec<Self> {
        let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        vec![Self { subject: String::new(), weight: weight.clamp(0.0, 1.0), figures }]
    }

    fn of(subject: &str, found: Vec<Self>) -> impl Iterator<Item = Self> {
        found.into_iter().map(move |one| Self { subject: subject.to_owned(), ..one })
    }
}

impl Seen<'_> {
    /// The mean of a figure over the seeds.
    fn mean(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        mean(self.group, figure)
    }

    fn counter(&self, name: &str) -> f64 {
        self.mean(|run| run.counter(name) as f64)
    }

    /// What part of the run a time is that all CPUs spend on something; more than 1 where several do at once.
    fn share(&self, ns: impl Fn(&Run) -> u64) -> f64 {
        self.mean(|run| if run.simulated_ns == 0 { 0.0 } else { ns(run) as f64 / run.simulated_ns as f64 })
    }
}

fn mean(group: &Group<'_>, figure: impl Fn(&Run) -> f64) -> f64 {
    group.runs.iter().map(|run| figure(run)).sum::<f64>() / group.runs.len().max(1) as f64
}

/// What is found in `runs`: what weighs most first.
pub fn findings(runs: &[Run]) -> Vec<Finding> {
    let mut all = vec![];
    for scene in scenes(runs) {
        for (place, group) in scene.groups.iter().enumerate() {
            let first = scene.groups.first().filter(|_| place > 0);
            let seen = Seen { group, first, siblings: &scene.groups };
            for spec in &FINDINGS {
                all.extend((spec.find)(&seen).into_iter().map(|found| Finding {
                    name: spec.name.to_owned(),
                    workload: scene.workload.to_owned(),
                    machine: scene.machine.to_owned(),
                    variant: group.label.clone(),
                    subject: found.subject,
                    weight: found.weight,
                    figures: found.figures,
                }));
            }
        }
    }
    all.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    all
}
