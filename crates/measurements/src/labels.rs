//! How far each mechanism of a run can be trusted.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How sure an answer is, the surest first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The same numbers as the kernel's.
    Exact,
    /// A simulated time on a profile that was checked against figures of that machine.
    Predicted,
    /// A profile, policy or workload that nothing was checked against.
    #[default]
    Extrapolated,
}

impl Confidence {
    /// The label: `exact`, `predicted` or `extrapolated`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Predicted => "predicted",
            Self::Extrapolated => "extrapolated",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A label and why it is that and no better: one plain sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Label {
    /// How sure.
    pub label: Confidence,
    /// Why.
    pub reason: String,
}

impl Label {
    /// A label with its reason.
    pub fn new(label: Confidence, reason: impl Into<String>) -> Self {
        Self { label, reason: reason.into() }
    }
}

/// What is known of a mechanism that a run used: of what it did, and of how long that took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MechanismLabel {
    /// The less sure of both.
    pub label: Confidence,
    /// Why, of both.
    pub reason: String,
    /// How many pages, objects, scans: what follows from the rules.
    pub counts: Label,
    /// How long they took, which follows from the machine's profile; absent for a mechanism that takes no time by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Label>,
}
