//! Who makes the trials of an answer: the simulation, or somebody outside.

use std::cell::RefCell;

use super::bench::{Evaluator, Trial, Tried};
use super::journal::Journal;
use crate::subject::AskError;

/// Who makes trials.
pub(super) enum Maker<'a> {
    /// The simulation.
    Simulation {
        journal: &'a Journal,
        /// Hears of each that ends.
        done: &'a (dyn Fn(&str, u64) + Sync),
    },
    /// Somebody outside, who knows the whole workload on one machine alone.
    Outside(RefCell<&'a mut dyn Evaluator>),
}

/// Somebody outside, for a while.
pub(super) struct Borrowed<'a, 'b>(pub(super) &'a RefCell<&'b mut dyn Evaluator>);

impl Evaluator for Borrowed<'_, '_> {
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError> {
        self.0.borrow_mut().evaluate(trials)
    }
}
