//! Simulated figures beside published ones.

use serde::{Deserialize, Serialize};

use super::number;

/// One published figure and what the simulation says of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The figure that was published; not a number where none was, as on another machine.
    #[serde(with = "number")]
    pub published: f64,
    /// The simulated one: a mean over repetitions.
    #[serde(with = "number")]
    pub simulated: f64,
    /// Standard deviation over repetitions.
    #[serde(with = "number")]
    pub stddev: f64,
    /// simulated / published - 1; a difference in points where the unit is `percent`; the simulated figure itself where
    /// it is `buckets`; 0 for the same node and 1 for another.
    #[serde(with = "number")]
    pub error: f64,
    /// Whether a cost was chosen to make this row right.
    pub role: Role,
    /// Where the figure was published.
    pub source: String,
}

/// What a published figure is used for. What was fitted is never called predicted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A cost in the machine's profile was chosen so that this row is right.
    Fitted,
    /// Nothing was chosen by it.
    #[default]
    Predicted,
    /// The kernel's own number, which follows from its rules without any cost and must come out.
    Exact,
}

impl Role {
    /// `fitted`, `predicted` or `exact`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Predicted => "predicted",
            Self::Exact => "exact",
        }
    }
}

/// How well an experiment's predicted rows came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Score {
    /// The experiment's name.
    pub experiment: String,
    /// Rows with the role `predicted`, histograms apart.
    pub predicted_rows: u64,
    /// Predicted rows that set a variant against another one and say by more than 1 % which way it went.
    pub direction_rows: u64,
    /// Of these, how many went the way that was published.
    pub direction_right: u64,
    /// Median of the predicted rows' absolute errors; 100 points count as 1.
    #[serde(with = "number")]
    pub median_abs_error: f64,
    /// The largest of them.
    #[serde(with = "number")]
    pub worst_abs_error: f64,
    /// Histograms that were predicted.
    pub histograms: u64,
    /// The largest distance of one of them from the published one, in buckets.
    #[serde(with = "number")]
    pub worst_emd_buckets: f64,
}
