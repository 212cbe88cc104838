//! A variant, simulated once.

use crate::experiment::metric::Seen;
use crate::scene::Outcome;

/// A repetition of a variant: the outcome of each phase.
pub(super) struct Repetition(pub(super) Vec<Outcome>);

impl Repetition {
    /// What there is to read of a phase.
    pub(super) fn seen(&self, phase: usize) -> Seen<'_> {
        Seen { run: &self.0[phase].run, measured: &self.0[phase].measured }
    }
}
