//! Simulations of mixtures of the two sides, each made once.

use super::lever::Levers;
use super::taken::{Mixture, Taken};
use crate::measurements::Run;
use crate::subject::{AskError, Goal, Once, Outcome, Subject};

/// What was simulated so far.
pub(super) struct Trials<'a> {
    subject: &'a Subject,
    levers: &'a Levers,
    goals: &'a [Goal],
    seeds: Vec<u64>,
    done: &'a (dyn Fn(&str) + Sync),
    ran: Once<(Mixture, u64), Outcome>,
}

impl<'a> Trials<'a> {
    /// Nothing yet; `done` hears of each simulation that ends. At least one seed.
    pub(super) fn new(
        subject: &'a Subject,
        levers: &'a Levers,
        goals: &'a [Goal],
        seeds: Vec<u64>,
        done: &'a (dyn Fn(&str) + Sync),
    ) -> Self {
        Self { subject, levers, goals, seeds, done, ran: Once::new() }
    }

    /// Simulates `mixtures` with every seed.
    pub(super) fn all_seeds<M: Into<Mixture> + Copy>(&mut self, mixtures: &[M]) -> Result<(), AskError> {
        let seeds = &self.seeds;
        let each = |&mixture: &M| seeds.iter().map(move |&seed| (mixture.into(), seed));
        self.simulate(mixtures.iter().flat_map(each).collect())
    }

    /// Simulates `mixtures` with one seed.
    pub(super) fn one_seed(&mut self, mixtures: &[Taken], seed: u64) -> Result<(), AskError> {
        self.simulate(mixtures.iter().map(|&taken| (taken.into(), seed)).collect())
    }

    /// The seeds, at least one.
    pub(super) fn seeds(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.seeds.iter().copied()
    }

    /// The first of them.
    pub(super) fn first_seed(&self) -> u64 {
        self.seeds[0]
    }

    /// What is not known yet of `wanted`, as many at a time as the present rayon pool has threads.
    fn simulate(&mut self, wanted: Vec<(Mixture, u64)>) -> Result<(), AskError> {
        let one = |&(mixture, seed): &(Mixture, u64)| {
            let side = self.levers.side(mixture);
            let outcome = self.subject.simulate(&side, seed, self.goals);
            let outcome = outcome.map_err(|error| error.under(&side.name()))?;
            (self.done)(&format!("{}, seed {seed}", side.policy.name()));
            Ok(outcome)
        };
        self.ran.make(wanted, one)
    }

    /// What came of a mixture that was simulated with a seed.
    fn of(&self, mixture: Mixture, seed: u64) -> &Outcome {
        self.ran.get(&(mixture, seed))
    }

    /// Whether two mixtures did the same to the bit with a seed, with which both were simulated.
    pub(super) fn alike(&self, one: Taken, other: Taken, seed: u64) -> bool {
        one == other || self.of(one.into(), seed).run.is_alike(&self.of(other.into(), seed).run)
    }

    /// A goal's values in a mixture that was simulated with every seed, one for each.
    pub(super) fn values(&self, mixture: impl Into<Mixture>, goal: usize) -> Result<Vec<f64>, AskError> {
        let mixture = mixture.into();
        let value = |&seed: &u64| {
            self.of(mixture, seed).values[goal].ok_or_else(|| {
                let policy = self.levers.side(mixture).policy;
                let (name, by) = (self.goals[goal].name(), policy.name());
                AskError::new(format!(
                    "{name} has no value under {by}, seed {seed}: nothing of the kind happened; choose another --goal"
                ))
            })
        };
        self.seeds.iter().map(value).collect()
    }

    /// The runs of a mixture that was simulated with every seed.
    pub(super) fn runs(&self, taken: Taken) -> impl Iterator<Item = &Run> {
        self.seeds.iter().map(move |&seed| &self.of(taken.into(), seed).run)
    }

    /// How many simulations there were.
    pub(super) fn count(&self) -> usize {
        self.ran.count()
    }
}
