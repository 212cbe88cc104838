//! Means over seeds, and what differs between two variants beyond what the seeds make of it.

use super::comparison::Better;
use super::document::{FAILED_ALLOCATIONS, Mean, OOM_KILL, Run};
use super::group::{Group, groups};
use super::statistics::{Moments, Sample};

/// Something that a run measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in a document: `refill.p99_ns`.
    pub name: String,
    /// `ns`, `pages/s`, `ops/s` or `count`.
    pub unit: &'static str,
    /// Which way is better; `None` if neither is.
    pub better: Option<Better>,
}

/// A figure in two variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What was measured.
    pub figure: Figure,
    /// A value for each seed of the one.
    pub before: Sample,
    /// A value for each seed of the other.
    pub after: Sample,
}

/// What seeds say of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The means differ by more than the seeds explain, with 95 % confidence.
    Apart,
    /// They do not.
    Within,
    /// Every seed of both gave the same value.
    Same,
    /// A single seed has no interval.
    OneSeed,
}

impl Change {
    /// Whether the two are told apart.
    pub fn told(&self) -> Told {
        let mut values = self.before.values().chain(self.after.values());
        let first = values.next();
        let all_same = values.all(|value| Some(value) == first);
        match (Moments::of(&self.before), Moments::of(&self.after)) {
            (Some(_), Some(_)) if all_same => Told::Same,
            (Some(before), Some(after)) if before.differs_from(after) => Told::Apart,
            (Some(_), Some(_)) => Told::Within,
            _ => Told::OneSeed,
        }
    }

    /// The two means; 0 of a figure that a variant does not have.
    pub fn means(&self) -> (f64, f64) {
        (self.before.mean().unwrap_or(0.0), self.after.mean().unwrap_or(0.0))
    }

    /// How many times the larger mean is the smaller, from 1; infinite if one is 0.
    pub fn ratio(&self) -> f64 {
        let (before, after) = self.means();
        let (low, high) = (before.min(after), before.max(after));
        if high <= 0.0 { 1.0 } else { high / low }
    }

    /// Whether the second is better; `None` if they are equal or neither way is better.
    pub fn is_better(&self) -> Option<bool> {
        let (before, after) = self.means();
        let better = self.figure.better.filter(|_| (before - after).abs() > 0.0)?;
        Some(match better {
            Better::Higher => after > before,
            Better::Lower => after < before,
        })
    }
}

/// The means of every figure of every variant, in the document's order.
pub fn means(runs: &[Run]) -> Vec<Mean> {
    let of_group = |group: &Group<'_>| {
        let samples = samples(&[group]);
        let run = group.first();
        let mean = |(figure, samples): (Figure, Vec<Sample>)| {
            let sample = &samples[0];
            let interval = sample.mean_interval();
            Mean {
                workload: run.workload.clone(),
                machine: run.machine.clone(),
                policy: run.policy.clone(),
                variant: run.variant.clone(),
                metric: figure.name,
                unit: figure.unit.to_owned(),
                mean: sample.mean().unwrap_or(0.0),
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                seeds: sample.count() as u64,
                interval: None,
            }
        };
        samples.into_iter().map(mean).collect::<Vec<_>>()
    };
    groups(runs).iter().flat_map(of_group).collect()
}

/// Every figure that both variants have, or that counts something, in the first and in the second.
pub fn changes(base: &Group<'_>, other: &Group<'_>) -> Vec<Change> {
    let both = samples(&[base, other]).into_iter().filter_map(|(figure, samples)| {
        let [before, after] = <[Sample; 2]>::try_from(samples).ok()?;
        (before.count() > 0 && after.count() > 0).then_some(Change { figure, before, after })
    });
    let mut all: Vec<Change> = both.collect();
    let differ = |change: &Change| change.figure.name == KILLED && change.is_better().is_some();
    if all.iter().any(differ) {
        // Who ends early does less of everything: that is better or worse in nothing else.
        all.iter_mut().filter(|change| !TELL_OF_AN_END.contains(&&*change.figure.name)).for_each(|change| {
            change.figure.better = None;
        });
    }
    all
}

/// How many groups' tasks, and other programs, were killed for want of memory.
const KILLED: &str = "killed";

/// What of a run is told even where another ended early.
const TELL_OF_AN_END: [&str; 2] = [KILLED, FAILED_ALLOCATIONS];

/// Every figure that any of the groups has, with a sample for each group.
fn samples(groups: &[&Group<'_>]) -> Vec<(Figure, Vec<Sample>)> {
    let mut all: Vec<Figure> = vec![];
    for run in groups.iter().flat_map(|group| &group.runs) {
        for (figure, _) in figures(run) {
            if !all.contains(&figure) {
                all.push(figure);
            }
        }
    }
    let value = |figure: &Figure, run: &Run| {
        let found = figures(run).into_iter().find(|(other, _)| other == figure).map(|(_, value)| value);
        // What did not happen was counted 0 times, and waited for 0 ns; how long it took nobody knows.
        let absent = figure.unit == "count" || figure.name.starts_with("lock.");
        found.or(absent.then_some(0.0))
    };
    let sample = |figure: &Figure, group: &Group<'_>| {
        Sample::new(group.runs.iter().filter_map(|run| value(figure, run)))
    };
    all.into_iter()
        .map(|figure| {
            let samples = groups.iter().map(|group| sample(&figure, group)).collect();
            (figure, samples)
        })
        .collect()
}

/// What programs have of swap, zswap's part of it included, by the counters.
const SWAPPED: [(&str, &[&str]); 4] = [
    ("swapped_in", &["pswpin", "zswpin"]),
    ("swapped_out", &["pswpout", "zswpout"]),
    ("refaults_anon", &["workingset_refault_anon"]),
    ("refaults_file", &["workingset_refault_file"]),
];

/// Those of its recorded programs together, if there are any, by name, unit, which is better, and value.
fn of_program(run: &Run, add: &mut dyn FnMut(String, &'static str, Option<Better>, f64)) {
    let Some(used) = run.program else { return };
    let lower = Some(Better::Lower);
    add("elapsed_ns".into(), "ns", lower, run.simulated_ns as f64);
    add("cpu_ns".into(), "ns", lower, used.cpu_ns as f64);
    if used.walk_known_ns > 0 {
        add("walk_ns".into(), "ns", lower, used.walk_ns as f64);
    }
    add("page_faults".into(), "count", lower, used.faults() as f64);
    add("huge_faults".into(), "count", None, used.huge_faults as f64);
    add("pages_copied".into(), "count", lower, used.copies as f64);
    add("peak_rss".into(), "pages", lower, used.peak_rss_pages as f64);
    add("major_faults".into(), "count", lower, used.major_faults as f64);
    for (name, counters) in SWAPPED {
        let pages: u64 = counters.iter().map(|counter| run.counter(counter)).sum();
        add(name.into(), "pages", lower, pages as f64);
    }
    add(KILLED.into(), "count", lower, killed(run) as f64);
}

/// Groups whose tasks were killed, and who was killed besides.
fn killed(run: &Run) -> u64 {
    run.cgroups.iter().filter(|group| group.killed_ns.is_some()).count() as u64 + run.counter(OOM_KILL)
}

/// The figures of a run that have means, each with its value.
pub fn figures(run: &Run) -> Vec<(Figure, f64)> {
    let mut all = vec![];
    let mut add = |name: String, unit: &'static str, better: Option<Better>, value: f64| {
        all.push((Figure { name, unit, better }, value));
    };
    let rates = [
        ("pages_per_second", "pages/s", run.throughput.pages_per_second),
        ("operations_per_second", "ops/s", run.throughput.operations_per_second),
    ];
    // A program's work is what it is: its rates follow from its time.
    for (name, unit, value) in rates.into_iter().filter(|(_, _, value)| *value > 0.0 && run.program.is_none())
    {
        add(name.into(), unit, Some(Better::Higher), value);
    }
    of_program(run, &mut add);
    // One alone is the run.
    for used in run.recordings.iter().filter(|_| run.recordings.len() > 1) {
        let (lower, counts) = (Some(Better::Lower), &used.counts);
        let name = |what: &str| format!("recording.{}.{what}", used.name);
        add(name("elapsed_ns"), "ns", lower, used.elapsed_ns as f64);
        add(name("page_faults"), "count", lower, counts.page_faults as f64);
        add(name("peak_rss"), "pages", lower, counts.peak_rss_pages as f64);
    }
    if let Some(fork) = run.forks.largest.first() {
        let lower = Some(Better::Lower);
        add("fork_ns".into(), "ns", lower, fork.fork_ns as f64);
        add("forked_fault_p99_ns".into(), "ns", lower, fork.fault_p99_ns as f64);
        add("forked_copies".into(), "pages", lower, fork.copied_pages as f64);
    }
    add("simulated_ns".into(), "ns", Some(Better::Lower), run.simulated_ns as f64);
    for (span, latency) in run.latency.iter().filter(|(_, latency)| latency.count > 0) {
        // The mean of a run is rounded down in its document; the total and the count are not.
        let mean = latency.total_ns as f64 / latency.count as f64;
        add(format!("{span}.mean_ns"), "ns", Some(Better::Lower), mean);
        add(format!("{span}.p99_ns"), "ns", Some(Better::Lower), latency.p99_ns as f64);
        add(format!("{span}.max_ns"), "ns", Some(Better::Lower), latency.max_ns as f64);
        add(format!("{span}.count"), "count", None, latency.count as f64);
    }
    for (class, lock) in run.locks.iter().filter(|(_, lock)| lock.wait_ns > 0) {
        add(format!("lock.{class}.wait_ns"), "ns", Some(Better::Lower), lock.wait_ns as f64);
        add(format!("lock.{class}.wait_max_ns"), "ns", Some(Better::Lower), lock.wait_max_ns as f64);
    }
    // Who is killed got less than it asked for: a search does not win by that.
    let failed = run.omissions.get(FAILED_ALLOCATIONS).copied().unwrap_or(0) + killed(run);
    add(FAILED_ALLOCATIONS.into(), "count", Some(Better::Lower), failed as f64);
    all
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
