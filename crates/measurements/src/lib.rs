//! Measurements: what a run leaves behind, and what every report reads.
//!
//! A [`Document`] is what `--json` prints: UTF-8, stable keys, nanoseconds and pages as integers, fractions as numbers.
//! Keys may be added; a reader passes over those it does not know, so that measurements of a later version can be
//! compared with today's. [`groups`] puts runs that differ in nothing but their seed together, and [`compare`] sets
//! groups beside each other with means, deviations and confidence intervals.

mod bound;
mod cgroup;
mod change;
mod checked;
mod comparison;
mod document;
mod experiment;
mod finding;
mod forks;
mod group;
mod heat;
mod interval;
mod judged;
mod knob_use;
mod known;
mod labels;
mod latency;
mod number;
mod proof;
mod published;
mod recording;
mod sameness;
mod statistics;
mod timeline;
mod tune;
mod validated;
mod why;

pub use bound::{Bound, BoundError, BoundSide, Limit, Unit};
pub use cgroup::CgroupUse;
pub use change::{Change, Figure, Told, changes, figures, means};
pub use checked::{BoundCheck, check_bounds};
pub use comparison::{Better, Comparison, ComparisonTable, Metric, MetricRow, compare};
pub use document::{
    CHANGES_NOT_REACHED, Document, FAILED_ALLOCATIONS, KnobValue, LockStat, Mean, Memory, Moved, OOM_KILL,
    ProgramUse, REQUESTS_WITHOUT_A_PAGE, ReadError, Run, SCHEMA_VERSION, Throughput, Versioned,
    least_confidence,
};
pub use experiment::{
    Account, Explanation, HistogramPair, NotCompared, Part, SweepMetric, SweepTable, Verdict,
};
pub use finding::{Finding, LockWaits, TaskWait};
pub use forks::{ForkUse, Forks};
pub use group::{Group, Scene, groups, scenes};
pub use heat::{HeatMap, HeatedMapping};
pub use interval::{IntervalKind, ModelInterval};
pub use judged::{Held, Judged};
pub use knob_use::{KnobOutcome, KnobUses};
pub use known::{figure_names, figure_unit};
pub use labels::{Confidence, Label, MechanismLabel};
pub use latency::{Distribution, Latency, log2_low};
pub use proof::{Proof, ProofRow};
pub use published::{Direction, Role, Row, Score};
pub use recording::{RecordingCounts, RecordingUse};
pub use sameness::differences;
pub use statistics::{Interval, Moments, Sample};
pub use timeline::{ProcessOverTime, TaskOverTime, Timeline};
pub use tune::{
    Contribution, Curve, CurvePoint, Elsewhere, ElsewhereVerdict, FailedSetting, HeldLimit, KnobText, Level,
    Robustness, SetAside, Tune, TuneAxis, TuneCandidate, TuneGoal, TuneLimit, TuneSearch, TuneSpace, Wins,
};
pub use validated::{Agreement, Validated, ValidatedChange, ValidatedRow};
pub use why::{Cause, CauseStep, Effect, Interaction, ShareMethod, Why, WhyGoal};
