//! What questions name: policies, cases of an experiment, settings.

use std::fmt;

use mm::{Knob, PolicyError};

use super::error::AskError;
use crate::experiment::{Case, Experiment};
use crate::replay::Setting;

/// Why what somebody says is no question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AskedError {
    /// There is no such policy.
    Policy(PolicyError),
    /// The experiment has no such case.
    NoVariant {
        /// The experiment.
        experiment: String,
        /// The name.
        name: String,
        /// Those that it has.
        names: Vec<String>,
    },
    /// Anything else.
    Other(AskError),
}

impl fmt::Display for AskedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::NoVariant { experiment, name, names } => {
                write!(f, "{experiment} has no variant `{name}`; it has {}", names.join(", "))
            }
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AskedError {}

/// The case called so.
///
/// # Errors
/// There is none.
pub fn case(experiment: &Experiment, name: &str) -> Result<Case, AskedError> {
    experiment.case(name).ok_or_else(|| AskedError::NoVariant {
        experiment: experiment.name.clone(),
        name: name.to_owned(),
        names: experiment.cases().map(|case| experiment.case_name(case)).collect(),
    })
}

/// `base` with the settings of one side laid over it: the first value of each, or the last.
pub fn knobs(base: &[(Knob, u64)], settings: &[Setting], side: usize) -> Vec<(Knob, u64)> {
    let mut all = base.to_vec();
    for Setting { knob, values, .. } in settings {
        let value = values[side.min(values.len() - 1)];
        match all.iter_mut().find(|(other, _)| other == knob) {
            Some(entry) => entry.1 = value,
            None => all.push((*knob, value)),
        }
    }
    all
}
