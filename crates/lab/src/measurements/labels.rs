//! How far each mechanism of a run can be trusted.

use serde::{Deserialize, Serialize};

use super::document::Confidence;

/// A label and why it is that and no better: one plain sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
