//! Intervals of 80 % of simulated times, by kind: from how far the model was off on machines that had no part in it.
//!
//! `intervals.toml` (`make fit`) has kinds of single times; changes are in docs/results.toml (`make results`), for
//! they are set beside published ones there. docs/costs.md says how both are derived and what they are worth.

use std::fmt;

use serde::Deserialize;

use super::Table;
use super::changes::ChangeInterval;
use crate::measurements::{Document, Figure, IntervalKind, ModelInterval, Run, figures};

/// What an interval is to hold of the next machine's figures.
pub const PERCENT: u32 = 80;

/// Kinds of times that are off in a way of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeKind {
    /// The mean of a hold of the zone lock: a refill's or a drain's.
    Hold,
    /// The mean of a request or a free of pages, its waits included.
    Wait,
    /// What is done in a second.
    Rate,
    /// The mean of a page fault; and all of the above together, where they are too few.
    Mean,
    /// Run time or CPU time of a recorded program.
    Program,
    /// A 99th percentile.
    P99,
    /// The longest of something.
    Max,
    /// One time against another of the same machine.
    Change,
    /// A time that no left-out row tells of.
    Other,
}

impl TimeKind {
    /// Of the figure `name` in `unit`, under the names that [`figures`] gives; `None` of what is no time.
    pub fn of(name: &str, unit: &str) -> Option<Self> {
        let is_time = matches!(unit, "ns" | "pages/s" | "ops/s");
        let own = name.rsplit('/').next().unwrap_or(name);
        let what = own.rsplit('.').next().unwrap_or(own);
        // Most workloads run as long as they were told to.
        if !is_time || own == "simulated_ns" {
            return None;
        }
        Some(match own {
            "refill.mean_ns" | "drain.mean_ns" => Self::Hold,
            "page_alloc.mean_ns" | "page_free.mean_ns" => Self::Wait,
            "fault.mean_ns" => Self::Mean,
            "pages_per_second" | "operations_per_second" | "operations_per_task_second" => Self::Rate,
            "elapsed_ns" | "cpu_ns" => Self::Program,
            _ if own.starts_with("recording.") && what == "elapsed_ns" => Self::Program,
            _ if what.ends_with("p99_ns") => Self::P99,
            _ if what.ends_with("max_ns") => Self::Max,
            _ => Self::Other,
        })
    }

    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Wait => "wait",
            Self::Rate => "rate",
            Self::Mean => "mean",
            Self::Program => "program",
            Self::P99 => "p99",
            Self::Max => "max",
            Self::Change => "change",
            Self::Other => "other",
        }
    }

    /// What people call it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Hold => "mean of a hold",
            Self::Wait => "mean with waits",
            Self::Rate => "rate",
            Self::Mean => "all means and rates",
            Self::Program => "run or CPU time of a program",
            Self::P99 => "99th percentile",
            Self::Max => "maximum",
            Self::Change => "change of a time",
            Self::Other => "time of another kind",
        }
    }
}

impl fmt::Display for TimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// What left-out rows say of a kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Which.
    pub kind: TimeKind,
    /// Rows.
    pub rows: u64,
    /// Their machines.
    pub machines: u64,
    /// Whether they are too few, or of one machine, so that the interval is that of all means and rates.
    pub pooled: bool,
    /// The part of the rows inside of the interval that the other machines gave.
    pub inside: f64,
    /// That interval: a factor either way, in the middle of the rows.
    pub left_out: f64,
    /// The interval of a machine that is none of these: the same from all.
    pub factor: f64,
    /// The width of the left-out intervals (of logarithms), and ten times how far a row lies outside.
    pub score: f64,
    /// The same of an interval that knows other machines' published figures and no model; absent where there are none.
    pub naive: Option<f64>,
}

impl Kind {
    /// Whether the interval says more than what others published says by itself.
    pub fn is_worth_saying(&self) -> bool {
        self.naive.is_none_or(|naive| self.score < naive)
    }
}

impl Table {
    /// What is known of `kind`.
    pub fn kind(&self, kind: TimeKind) -> Option<&Kind> {
        self.kinds.iter().find(|of| of.kind == kind)
    }

    /// The factor either way within which 80 % of the next machine's figures are to lie.
    ///
    /// # Errors
    /// Why there is none: a sentence's end.
    pub fn factor(&self, kind: TimeKind) -> Result<f64, String> {
        match (kind, self.kind(kind)) {
            (TimeKind::Max, _) => Err("a maximum is one event, and has no interval".to_owned()),
            (TimeKind::Change, _) => match ChangeInterval::of(&self.times) {
                Some(of) => Ok(of.factor),
                None => Err("too few changes were published".to_owned()),
            },
            (_, Some(of)) if of.is_worth_saying() => Ok(of.factor),
            (_, Some(of)) => Err(format!(
                "an interval from left-out rows (a factor of {:.2}) is worth less than what other machines published (score {:.2} for {:.2})",
                of.factor,
                of.score,
                of.naive.unwrap_or(f64::NAN)
            )),
            (_, None) => Err("no left-out row tells of this kind of time".to_owned()),
        }
    }

    /// The interval of a figure; `None` of what is no time.
    pub fn interval(&self, name: &str, unit: &str, value: f64) -> Option<ModelInterval> {
        let kind = TimeKind::of(name, unit)?;
        let factor = self.factor(kind).ok().filter(|_| value.is_finite());
        let (low, high) = (factor.map(|factor| value / factor), factor.map(|factor| value * factor));
        Some(ModelInterval { kind: kind.name().to_owned(), low, high })
    }

    /// Puts intervals on the times of `run`, those that have one.
    pub(super) fn put_on(&self, run: &mut Run) {
        let of = |(figure, value): (Figure, f64)| {
            let interval = self.interval(&figure.name, figure.unit, value)?;
            interval.low.is_some().then_some((figure.name, interval))
        };
        run.intervals = figures(run).into_iter().filter_map(of).collect();
    }

    /// What intervals of `kind` rest on, for a document.
    pub fn described(&self, kind: TimeKind) -> IntervalKind {
        let factor = self.factor(kind);
        let known = self.kind(kind);
        let (rows, machines, inside) = match (kind, known) {
            (TimeKind::Change, _) => ChangeInterval::of(&self.times)
                .map_or((0, 0, 0.0), |of| (of.rows as u64, of.machines as u64, of.inside)),
            (_, Some(of)) => (of.rows, of.machines, of.inside),
            // Not a NaN, by which a document would differ from itself.
            (_, None) => (0, 0, 0.0),
        };
        IntervalKind {
            kind: kind.name().to_owned(),
            of: kind.words().to_owned(),
            percent: PERCENT,
            factor: factor.as_ref().ok().copied(),
            rows,
            machines,
            inside,
            none: factor.err().unwrap_or_default(),
        }
    }
}

/// Puts what intervals rest on into a document that has runs or rows, and the intervals beside its means and its bounds.
pub fn intervals(table: &Table, document: &mut Document) {
    const ALL: [TimeKind; 9] = [
        TimeKind::Hold,
        TimeKind::Wait,
        TimeKind::Rate,
        TimeKind::Mean,
        TimeKind::Program,
        TimeKind::P99,
        TimeKind::Max,
        TimeKind::Change,
        TimeKind::Other,
    ];
    for mean in &mut document.means {
        mean.interval = table.interval(&mean.metric, &mean.unit, mean.mean);
    }
    for check in &mut document.fail_if {
        check.model = table.interval(&check.metric, &check.unit, check.mean).filter(|of| of.low.is_some());
    }
    document.intervals = ALL.map(|kind| table.described(kind)).to_vec();
}
