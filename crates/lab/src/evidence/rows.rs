//! How far published rows were off when they were simulated last: by experiment, machine, policy and mechanism, and by kind of time.

use mm::policy::Mechanism;
use serde::{Deserialize, Deserializer};

use super::intervals::TimeKind;

/// Rows of one experiment on one machine under one policy that tell of one mechanism.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// The experiment.
    pub experiment: String,
    /// The profile's name.
    pub machine: String,
    /// The policy's.
    pub policy: String,
    /// What they tell of.
    #[serde(deserialize_with = "mechanism")]
    pub mechanism: Mechanism,
    /// What kind of figure they are.
    pub figures: FigureKind,
    /// How many a cost was chosen by; they are evidence of nothing.
    pub fitted: u64,
    /// Errors of the others, without their sign: 0.1 is 10 %, or 10 points of a percentage. `inf` where nothing was
    /// simulated beside a published figure.
    pub errors: Vec<f64>,
}

/// Times of one kind, of one experiment on one machine, that nothing was chosen by.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// The experiment.
    pub experiment: String,
    /// The profile's name.
    pub machine: String,
    /// What kind.
    pub kind: TimeKind,
    /// As published, in the metric's unit; of a change, the one time or rate by the other.
    pub published: Vec<f64>,
    /// As simulated, in the same order.
    pub simulated: Vec<f64>,
}

/// What a published figure is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// Something that was counted: it follows from the rules.
    Counts,
    /// A time, a rate, or a share of time: it follows from the profile as well.
    Times,
}

impl FigureKind {
    /// `counts` or `times`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Times => "times",
        }
    }
}

pub(super) fn mechanism<'de, D: Deserializer<'de>>(from: D) -> Result<Mechanism, D::Error> {
    let name = String::deserialize(from)?;
    Mechanism::from_name(&name)
        .ok_or_else(|| serde::de::Error::custom(format!("no mechanism is called {name}")))
}
