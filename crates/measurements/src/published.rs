//! Simulated figures beside published ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::ModelInterval;
use super::number;

/// One published figure and what the simulation says of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Row {
    /// The experiment's name.
    pub experiment: String,
    /// Which of its variants.
    pub variant: String,
    /// What was measured, for instance `refill.mean_ns`.
    pub metric: String,
    /// Unit of the figures; `percent` for a change against a baseline variant, `buckets` for the distance of two
    /// histograms, `node` for a node's number.
    pub unit: String,
    /// The figure that was published, or the lower end of a range; not a number where none was, as on another machine.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub published: f64,
    /// The upper end, where a range was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_high: Option<f64>,
    /// The simulated one: a mean over repetitions.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub simulated: f64,
    /// Standard deviation over repetitions.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub stddev: f64,
    /// simulated / published - 1; a difference in points where the unit is `percent`; the simulated figure itself where
    /// it is `buckets`; 0 for the same node and 1 for another. Of a range the same from its nearer end, and 0 within it.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub error: f64,
    /// Where the machine itself has the simulated figure with 80 %, of a time or of a change of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<ModelInterval>,
    /// Whether the published figure lies in it, of a row that nothing was fitted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<bool>,
    /// What the row is used for, and whether it counts in the score.
    pub role: Role,
    /// Why it has this role, where that was said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// Of a comparison: whether it went the published way, or why that is not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Where the figure was published.
    pub source: String,
}

/// What a published figure is used for. What was fitted is never called predicted, and nothing counts twice.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A cost in the machine's profile or a parameter of the workload was chosen with this row in sight.
    Fitted,
    /// Nothing was chosen by it, and it follows from no other row.
    #[default]
    Predicted,
    /// A product, quotient or sum of other rows: shown, and not counted again.
    Derived,
    /// A change that was published within its own noise.
    Noise,
    /// Published as 0, or as no change, and simulated so: a model in which nothing happens says the same.
    Zero,
    /// The kernel's own number, which follows from its rules without any cost and must come out.
    Exact,
}

impl Role {
    /// `fitted`, `predicted`, `derived`, `noise`, `zero` or `exact`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Predicted => "predicted",
            Self::Derived => "derived",
            Self::Noise => "noise",
            Self::Zero => "zero",
            Self::Exact => "exact",
        }
    }
}

/// Which way a simulated change went, beside the published one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The published way, and the interval over the seeds excludes no change.
    Right,
    /// The other way, and the interval over the seeds excludes no change.
    Opposite,
    /// The interval over the seeds holds no change, or nothing was simulated: the published way was not found.
    Unclear,
    /// Not asked: the published change is within its own noise, or within 1 % where that is not known.
    WithinNoise,
    /// Not asked: one seed has no interval.
    OneSeed,
}

impl Direction {
    /// Whether the published change says which way it went, and the simulation could tell.
    pub const fn qualifies(self) -> bool {
        matches!(self, Self::Right | Self::Opposite | Self::Unclear)
    }

    /// In a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right way",
            Self::Opposite => "opposite way",
            Self::Unclear => "no clear change",
            Self::WithinNoise => "published within noise",
            Self::OneSeed => "one seed: not scored",
        }
    }
}

/// How well an experiment's predicted rows came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Score {
    /// The experiment's name.
    pub experiment: String,
    /// Rows with a published figure that nothing was chosen by, histograms apart: the independent ones and those that
    /// are derived, noise or zero.
    pub predicted_rows: u64,
    /// Of these, the ones that follow from no other row and say something. Only they are in median and worst.
    pub independent_rows: u64,
    /// Rows that something was chosen by.
    pub fitted_rows: u64,
    /// Rows that are products, quotients or sums of others.
    pub derived_rows: u64,
    /// Changes that were published within their own noise.
    pub noise_rows: u64,
    /// Rows published and simulated as 0 or as no change.
    pub zero_rows: u64,
    /// The kernel's own numbers.
    pub exact_rows: u64,
    /// Comparisons whose direction is scored: published beyond its noise, and simulated with more than one seed.
    pub direction_rows: u64,
    /// Of these, how many went the published way by an interval over the seeds that excludes no change.
    pub direction_right: u64,
    /// Comparisons whose direction did not qualify.
    pub direction_unqualified: u64,
    /// Median of the independent rows' absolute errors; 100 points count as 1.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub median_abs_error: f64,
    /// The largest of them.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub worst_abs_error: f64,
    /// Histograms that were predicted.
    pub histograms: u64,
    /// The largest distance of one of them from the published one, in buckets.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub worst_emd_buckets: f64,
}
