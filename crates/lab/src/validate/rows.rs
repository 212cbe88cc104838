//! The kernel's figures beside the simulator's, and how many are within their targets.

use mm::Span;

use super::holds::Holds;
use super::{Compared, NAME, Setting, Simulated, faults_per_second};
use crate::conform::Sides;
use crate::measurements::{Role, Row, Sample, Score};

/// How near some of the figures are to be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Target {
    /// Which figures, in words.
    pub what: &'static str,
    /// The metrics.
    pub metrics: &'static [&'static str],
    /// The largest error, as a part of 1.
    pub limit: f64,
}

/// What is asked for.
pub const TARGETS: [Target; 2] = [
    Target {
        what: "refills and drained pages",
        metrics: &["trace.refills", "trace.drained_pages"],
        limit: 0.02,
    },
    Target {
        what: "hold times and faults a second",
        metrics: &["refill.hold_ns_per_page", "drain.hold_ns_per_page", "faults_per_second"],
        limit: 0.25,
    },
];

/// The target of a metric, if it has one.
pub fn target_of(metric: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.metrics.contains(&metric))
}

/// How many rows came within a target.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    /// The target.
    pub target: &'static Target,
    /// Rows that it is for.
    pub rows: u64,
    /// Rows within it.
    pub within: u64,
    /// Median of the absolute errors.
    pub median: f64,
    /// The largest of them.
    pub worst: f64,
}

/// A mark for each target that any row is for.
pub fn marks(rows: &[Row]) -> Vec<Mark> {
    let of = |target: &'static Target| {
        let rows = rows.iter().filter(|row| target.metrics.contains(&&*row.metric));
        let errors = rows.map(|row| if row.error.is_finite() { row.error.abs() } else { f64::INFINITY });
        let mut errors: Vec<f64> = errors.collect();
        errors.sort_by(f64::total_cmp);
        Mark {
            target,
            rows: errors.len() as u64,
            within: errors.partition_point(|error| *error <= target.limit) as u64,
            median: errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN),
            worst: errors.last().copied().unwrap_or(f64::NAN),
        }
    };
    TARGETS.iter().map(of).filter(|mark| mark.rows > 0).collect()
}

impl Mark {
    /// The same for a document.
    pub(super) fn score(&self) -> Score {
        Score {
            experiment: format!("{NAME}: {}", self.target.what),
            predicted_rows: self.rows,
            independent_rows: self.rows,
            median_abs_error: self.median,
            worst_abs_error: self.worst,
            ..Score::default()
        }
    }
}

/// The rows of a case.
pub(super) fn of(setting: &Setting, compared: &Compared) -> Vec<Row> {
    let blank = Row {
        experiment: NAME.into(),
        variant: compared.case.to_string(),
        role: Role::Predicted,
        source: format!("this kernel ({}), measured now", setting.release),
        ..Row::default()
    };
    let mut rows = counts(&blank, compared);
    rows.extend(times(&blank, compared));
    rows
}

fn row(blank: &Row, metric: &str, unit: &str, kernel: f64, simulated: &Sample) -> Row {
    let mean = simulated.mean().unwrap_or(f64::NAN);
    // Nothing on both sides is agreement.
    let error = if mean == 0.0 && kernel == 0.0 { 0.0 } else { mean / kernel - 1.0 };
    Row {
        metric: metric.into(),
        unit: unit.into(),
        published: kernel,
        simulated: mean,
        stddev: simulated.stddev().unwrap_or(0.0),
        error,
        ..blank.clone()
    }
}

/// mm given the recorded requests.
fn counts(blank: &Row, compared: &Compared) -> Vec<Row> {
    let of = |kind: &str, pages: &str, sides: &Sides| {
        let once = |value: u64| Sample::new([value as f64]);
        let (kernel, freehold) = (sides.kernel, sides.freehold);
        let count =
            row(blank, &format!("trace.{kind}s"), "count", kernel.count as f64, &once(freehold.count));
        let pages =
            row(blank, &format!("trace.{pages}"), "pages", kernel.pages as f64, &once(freehold.pages));
        [count, pages]
    };
    let moved = &compared.observed.moved;
    let refills = of("refill", "refilled_pages", &moved.refills);
    refills.into_iter().chain(of("drain", "drained_pages", &moved.drains)).collect()
}

/// The workload by itself.
fn times(blank: &Row, compared: &Compared) -> Vec<Row> {
    let Compared { observed, simulated, .. } = compared;
    let sample = |read: &dyn Fn(&Simulated) -> f64| Sample::new(simulated.iter().map(read));
    let per_thousand = |count: f64, faults: f64| 1000.0 * count / faults;
    let mut rows = vec![];
    for (kind, span, holds) in
        [("refill", Span::Refill, &observed.holds.refills), ("drain", Span::Drain, &observed.holds.drains)]
    {
        let Holds { count, .. } = *holds;
        let kernel = per_thousand(count as f64, observed.faults as f64);
        let often = sample(&|of: &Simulated| per_thousand(of.count(span), of.faults()));
        rows.push(row(blank, &format!("{kind}s_per_1000_faults"), "count", kernel, &often));
        let pages = sample(&|of: &Simulated| of.mean_pages(span));
        rows.push(row(blank, &format!("{kind}.pages_per_hold"), "pages", holds.mean_pages(), &pages));
        let held = sample(&|of: &Simulated| of.hold_ns_per_page(span));
        let kernel = holds.median_ns_per_page().unwrap_or(f64::NAN);
        rows.push(row(blank, &format!("{kind}.hold_ns_per_page"), "ns/page", kernel, &held));
    }
    let speed = sample(&Simulated::faults_per_second);
    let kernel = faults_per_second(&compared.unrecorded);
    rows.push(row(blank, "faults_per_second", "faults/s", kernel, &speed));
    rows
}
