//! What a recorded kernel counted beside what the replay of the same, as it was recorded, counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A replay of a program as it was recorded, held against the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Proof {
    /// The recording's name.
    pub workload: String,
    /// The profile that stands for the recorded machine.
    pub machine: String,
    /// The policy that stands for its kernel.
    pub policy: String,
    /// What was compared.
    pub rows: Vec<ProofRow>,
    /// What could not be, a sentence each.
    pub missing: Vec<String>,
}

/// A figure that both have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProofRow {
    /// What it is of: `page faults`.
    pub what: String,
    /// `count`, `pages` or `ns`.
    pub unit: String,
    /// The recorded kernel's.
    pub recorded: f64,
    /// The replay's.
    pub replayed: f64,
}

impl ProofRow {
    /// A figure further off than this, in percent, is named wherever a replay is told in short: docs/programs.md counts how many are not.
    pub const BAND_PERCENT: f64 = 10.0;

    /// Whether the replay came as near as that; of nothing, only nothing does.
    pub fn is_within_band(&self) -> bool {
        let error = self.error_percent().unwrap_or(if self.replayed == 0.0 { 0.0 } else { f64::INFINITY });
        error.abs() <= Self::BAND_PERCENT
    }

    /// How far off the replay is, in percent of what was recorded; `None` where nothing was.
    pub fn error_percent(&self) -> Option<f64> {
        (self.recorded > 0.0).then(|| 100.0 * (self.replayed - self.recorded) / self.recorded)
    }
}
