//! Why there is no answer.

use std::fmt;

/// Why a question cannot be answered; one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WhyError(String);

impl WhyError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same, with what was simulated.
    pub(super) fn under(self, side: &str) -> Self {
        Self(format!("{side}: {}", self.0))
    }

    pub(super) fn simulation(error: &impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for WhyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WhyError {}
