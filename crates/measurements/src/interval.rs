//! Where a figure of another machine, or of the real one, lies with 80 %: what the model leaves open, whatever the seeds say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;

/// A simulated time with the model's interval. The seeds' 95 % intervals are another thing: they say how well the simulated mean is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelInterval {
    /// Which kind of time it is: an entry of the document's `intervals`, which says why there is no interval where `low` is absent.
    pub kind: String,
    /// Its lower end, in the figure's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// What the intervals of a kind of times rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IntervalKind {
    /// `hold`, `wait`, `rate`, `mean`, `program`, `p99`, `max`, `change` or `other`.
    pub kind: String,
    /// What times these are.
    pub of: String,
    /// How much of the next machine's figures it is to hold, in percent.
    pub percent: u32,
    /// The interval is from the figure divided by this to the figure times this; of a change, which is a factor too, wider by the square root
    /// of the change at each end. Absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Published rows behind it, whose machine had no part in a fit when they were simulated.
    pub rows: u64,
    /// Machines that these are of.
    pub machines: u64,
    /// Which part of a machine's rows the interval held that the other machines gave, from 0 to 1.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub inside: f64,
    /// Why there is none; empty where there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub none: String,
}

impl ModelInterval {
    /// Whether `value` lies in it; `None` where there is no interval.
    pub fn holds(&self, value: f64) -> Option<bool> {
        Some(self.low? <= value && value <= self.high?)
    }
}
