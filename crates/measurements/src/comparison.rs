//! Groups of runs beside each other, metric by metric; the first column is the baseline.
//!
//! What becomes a column: of one document its variants; of several documents with one variant each, the documents; of
//! several documents with several variants, the documents again, a table for each variant that they have in common.

use super::document::{Document, Run};
use super::group::{Group, groups, scenes};
use super::statistics::{Interval, Sample};

/// All tables of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// One or more.
    pub tables: Vec<ComparisonTable>,
    /// Variants that could not be set beside anything, as `document: variant`.
    pub alone: Vec<String>,
}

/// Columns that were measured on the same thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonTable {
    /// What they have in common.
    pub title: String,
    /// Their names; the first is the baseline.
    pub columns: Vec<String>,
    /// The metrics, those that are not 0 in every column.
    pub rows: Vec<MetricRow>,
}

/// A metric and what each column measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRow {
    /// What was measured.
    pub metric: Metric,
    /// One sample a column, a value a repetition; a sample is empty where the column has no such thing.
    pub samples: Vec<Sample>,
}

/// Something that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in a document: `refill.mean_ns`.
    pub name: String,
    /// `ns`, `pages/s`, `ops/s`.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

/// Which way a metric is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// A rate.
    Higher,
    /// A time.
    Lower,
}

impl MetricRow {
    /// The mean of a column: harmonic for a rate, arithmetic for a time. `None` for an empty column.
    pub fn mean(&self, column: usize) -> Option<f64> {
        let sample = &self.samples[column];
        match self.metric.better {
            Better::Higher => sample.harmonic_mean(),
            Better::Lower => sample.mean(),
        }
    }

    /// Whether the 95 % confidence interval of a column's mean has nothing in common with the baseline's. False where
    /// there are too few repetitions to tell.
    pub fn differs(&self, column: usize) -> bool {
        match (self.interval(0), self.interval(column)) {
            (Some(base), Some(this)) => base.parts_from(this),
            _ => false,
        }
    }

    fn interval(&self, column: usize) -> Option<Interval> {
        let sample = &self.samples[column];
        match self.metric.better {
            Better::Higher => sample.harmonic_mean_interval(),
            Better::Lower => sample.mean_interval(),
        }
    }
}

impl Better {
    /// How much better `value` is than `base`, in percent of `base`: negative for worse. `None` of a base of 0, unless
    /// both are.
    pub fn gain_percent(self, base: f64, value: f64) -> Option<f64> {
        let gain = match self {
            Self::Higher => value - base,
            Self::Lower => base - value,
        };
        if gain == 0.0 {
            return Some(0.0);
        }
        (base != 0.0).then(|| 100.0 * gain / base.abs())
    }
}

/// Sets documents beside each other, each with the name that heads its column. The first is the baseline.
///
/// # Errors
/// One line: which document has no runs, or that none was given.
pub fn compare(documents: &[(String, Document)]) -> Result<Comparison, String> {
    if documents.is_empty() {
        return Err("nothing to compare; name one or more files of measurements".into());
    }
    if let Some((name, _)) = documents.iter().find(|(_, document)| document.runs.is_empty()) {
        return Err(format!("{name}: has no runs to compare"));
    }
    let named: Vec<(&str, Vec<Group<'_>>)> =
        documents.iter().map(|(name, document)| (name.as_str(), groups(&document.runs))).collect();
    if let [(_, document)] = documents {
        return Ok(within(&document.runs));
    }
    if named.iter().all(|(_, groups)| groups.len() == 1) {
        let columns = named.iter().map(|(name, groups)| (*name, &groups[0])).collect::<Vec<_>>();
        return Ok(Comparison { tables: vec![table(String::new(), &columns)], alone: vec![] });
    }
    Ok(KEYS.into_iter().find_map(|key| across(&named, key)).unwrap_or_else(|| {
        let runs: Vec<Comparison> = documents.iter().map(|(_, document)| within(&document.runs)).collect();
        Comparison { tables: runs.into_iter().flat_map(|of| of.tables).collect(), alone: vec![] }
    }))
}

/// The variants of one document.
fn within(runs: &[Run]) -> Comparison {
    let scenes = scenes(runs);
    let tables = scenes.iter().map(|scene| {
        let columns: Vec<(&str, &Group<'_>)> =
            scene.groups.iter().map(|group| (group.label.as_str(), group)).collect();
        table(format!("{} on {}", scene.workload, scene.machine), &columns)
    });
    Comparison { tables: tables.collect(), alone: vec![] }
}

type Key = fn(&Run) -> Vec<&str>;

/// What makes groups of two documents the same thing, the strictest first.
const KEYS: [Key; 4] = [
    |run| vec![&run.workload, &run.machine, &run.policy, &run.variant],
    |run| vec![&run.workload, &run.machine, &run.variant],
    |run| vec![&run.machine, &run.variant],
    |run| vec![&run.variant],
];

/// A table for each group of the first document that every other has too; `None` where there is no such group, or
/// where `key` does not tell a document's own groups apart.
fn across(named: &[(&str, Vec<Group<'_>>)], key: Key) -> Option<Comparison> {
    let unique = |groups: &[Group<'_>]| {
        (0..groups.len())
            .all(|i| groups[..i].iter().all(|other| key(other.first()) != key(groups[i].first())))
    };
    if !named.iter().all(|(_, groups)| unique(groups)) {
        return None;
    }
    let mut comparison = Comparison::default();
    let is_common = |group: &Group<'_>| {
        named.iter().all(|(_, others)| others.iter().any(|o| key(o.first()) == key(group.first())))
    };
    for group in named[0].1.iter().filter(|group| is_common(group)) {
        let same = |groups: &'_ [Group<'_>]| groups.iter().position(|o| key(o.first()) == key(group.first()));
        let columns: Vec<(&str, &Group<'_>)> =
            named.iter().filter_map(|(name, groups)| Some((*name, &groups[same(groups)?]))).collect();
        comparison.tables.push(table(key(group.first()).join(" "), &columns));
    }
    for (name, groups) in named {
        let alone = groups.iter().filter(|group| !is_common(group));
        comparison.alone.extend(alone.map(|group| format!("{name}: {}", group.label)));
    }
    (!comparison.tables.is_empty()).then_some(comparison)
}

fn table(title: String, columns: &[(&str, &Group<'_>)]) -> ComparisonTable {
    let mut metrics: Vec<Metric> = vec![];
    for run in columns.iter().flat_map(|(_, group)| &group.runs) {
        for (metric, _) in figures(run) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
    }
    metrics.sort_by_key(order);
    let sample = |metric: &Metric, group: &Group<'_>| {
        Sample::new(group.runs.iter().filter_map(|run| {
            figures(run).into_iter().find(|(other, _)| other == metric).map(|(_, value)| value)
        }))
    };
    let rows = metrics.into_iter().map(|metric| {
        let samples = columns.iter().map(|(_, group)| sample(&metric, group)).collect();
        MetricRow { metric, samples }
    });
    let says_something = |row: &MetricRow| row.samples.iter().any(|sample| sample.max() != Some(0.0));
    ComparisonTable {
        title,
        rows: rows.filter(says_something).collect(),
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
    }
}

/// Throughput before latencies before locks, whichever column had it first.
fn order(metric: &Metric) -> (u8, String) {
    let place = match (metric.better, metric.name.starts_with("lock.")) {
        (Better::Higher, _) => 0,
        (Better::Lower, false) => 1,
        (Better::Lower, true) => 2,
    };
    (place, metric.name.clone())
}

/// The figures of a run that comparisons show.
fn figures(run: &Run) -> Vec<(Metric, f64)> {
    let mut all = vec![];
    let rates = [
        ("pages_per_second", "pages/s", run.throughput.pages_per_second),
        ("operations_per_second", "ops/s", run.throughput.operations_per_second),
    ];
    for (name, unit, value) in rates.into_iter().filter(|(_, _, value)| *value > 0.0) {
        all.push((Metric { name: name.into(), unit, better: Better::Higher }, value));
    }
    let mut lower = |name: String, ns: u64| {
        all.push((Metric { name, unit: "ns", better: Better::Lower }, ns as f64));
    };
    for (span, latency) in run.latency.iter().filter(|(_, latency)| latency.count > 0) {
        lower(format!("{span}.mean_ns"), latency.mean_ns);
        lower(format!("{span}.p99_ns"), latency.p99_ns);
    }
    for (class, lock) in run.locks.iter().filter(|(_, lock)| lock.acquired > 0) {
        lower(format!("lock.{class}.wait_ns"), lock.wait_ns);
    }
    all
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
