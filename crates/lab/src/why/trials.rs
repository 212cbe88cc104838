//! Simulations of mixtures of the two sides, each made once.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::error::WhyError;
use super::lever::Levers;
use super::subject::{Goal, Outcome, Subject};
use super::taken::{Mixture, Taken};
use crate::measurements::Run;

/// What was simulated so far.
pub(super) struct Trials<'a> {
    subject: &'a Subject,
    levers: &'a Levers,
    goals: &'a [Goal],
    seeds: Vec<u64>,
    done: &'a (dyn Fn(&str) + Sync),
    ran: BTreeMap<(Mixture, u64), Outcome>,
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
        Self { subject, levers, goals, seeds, done, ran: BTreeMap::new() }
    }

    /// Simulates `mixtures` with every seed.
    pub(super) fn all_seeds<M: Into<Mixture> + Copy>(&mut self, mixtures: &[M]) -> Result<(), WhyError> {
        let seeds = &self.seeds;
        let each = |&mixture: &M| seeds.iter().map(move |&seed| (mixture.into(), seed));
        self.simulate(mixtures.iter().flat_map(each).collect())
    }

    /// Simulates `mixtures` with one seed.
    pub(super) fn one_seed(&mut self, mixtures: &[Taken], seed: u64) -> Result<(), WhyError> {
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
    fn simulate(&mut self, wanted: Vec<(Mixture, u64)>) -> Result<(), WhyError> {
        let is_new = |key: &(Mixture, u64)| !self.ran.contains_key(key);
        let new: BTreeSet<(Mixture, u64)> = wanted.into_iter().filter(is_new).collect();
        let new: Vec<(Mixture, u64)> = new.into_iter().collect();
        let one = |&(mixture, seed): &(Mixture, u64)| {
            let side = self.levers.side(mixture);
            let outcome = self.subject.simulate(&side, seed, self.goals);
            let outcome = outcome.map_err(|error| error.under(&side.name()))?;
            (self.done)(&format!("{}, seed {seed}", side.policy.name()));
            Ok(((mixture, seed), outcome))
        };
        // Of several errors the first in order, whichever thread was quicker.
        let ended: Vec<Result<_, WhyError>> = new.par_iter().map(one).collect();
        self.ran.extend(ended.into_iter().collect::<Result<Vec<_>, _>>()?);
        Ok(())
    }

    /// Whether two mixtures did the same to the bit with a seed, with which both were simulated.
    pub(super) fn alike(&self, one: Taken, other: Taken, seed: u64) -> bool {
        one == other || self.ran[&(one.into(), seed)].run.is_alike(&self.ran[&(other.into(), seed)].run)
    }

    /// A goal's values in a mixture that was simulated with every seed, one for each.
    pub(super) fn values(&self, mixture: impl Into<Mixture>, goal: usize) -> Result<Vec<f64>, WhyError> {
        let mixture = mixture.into();
        let value = |&seed: &u64| {
            self.ran[&(mixture, seed)].values[goal].ok_or_else(|| {
                let policy = self.levers.side(mixture).policy;
                let (name, by) = (self.goals[goal].name(), policy.name());
                WhyError::new(format!(
                    "{name} has no value under {by}, seed {seed}: nothing of the kind happened; choose another --goal"
                ))
            })
        };
        self.seeds.iter().map(value).collect()
    }

    /// The runs of a mixture that was simulated with every seed.
    pub(super) fn runs(&self, taken: Taken) -> impl Iterator<Item = &Run> {
        self.seeds.iter().map(move |&seed| &self.ran[&(taken.into(), seed)].run)
    }

    /// How many simulations there were.
    pub(super) fn count(&self) -> usize {
        self.ran.len()
    }
}
