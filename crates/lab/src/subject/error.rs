//! Why a question about a subject has no answer.

use std::fmt;

/// Why a question cannot be answered; one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskError(String);

impl AskError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same, with what was simulated.
    pub(crate) fn under(self, side: &str) -> Self {
        Self(format!("{side}: {}", self.0))
    }

    pub(crate) fn simulation(error: &impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AskError {}
