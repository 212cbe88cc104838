//! Trials, each made once, and what they cost.

use std::collections::{BTreeMap, BTreeSet};

use super::space::Setting;
use crate::subject::AskError;

/// One simulation: a setting on a ground with a seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Trial {
    /// Which ground, by number: shortened forms of the workload first, then the whole.
    pub(super) ground: usize,
    pub(super) setting: Setting,
    pub(super) seed: u64,
}

/// The value of each figure that is looked at; `None` where nothing of the kind happened.
pub(super) type Values = Vec<Option<f64>>;

/// What came of a trial: its values, or why there are none.
pub(super) type Tried = Result<Values, String>;

/// Who makes trials: the simulation, or somebody outside who was asked (`--ask-tell`), or a test.
pub(super) trait Evaluator {
    /// Makes `trials`, each another one, and says what came of each, in their order.
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError>;

    /// How much there was to do for a trial that was made; 0 where nobody can say.
    fn events(&self, _trial: &Trial) -> u64 {
        0
    }
}

/// Trials that were made.
pub(super) struct Bench<'a> {
    evaluator: &'a mut dyn Evaluator,
    /// What a trial costs on each ground, in thousandths of one of full length.
    costs: Vec<u64>,
    known: BTreeMap<Trial, Tried>,
    spent: u64,
}

impl<'a> Bench<'a> {
    /// Nothing yet. `costs` has one for each ground.
    pub(super) fn new(evaluator: &'a mut dyn Evaluator, costs: Vec<u64>) -> Self {
        Self { evaluator, costs, known: BTreeMap::new(), spent: 0 }
    }

    /// Makes what is not known yet of every one of `settings` with every one of `seeds`.
    pub(super) fn make(
        &mut self,
        ground: usize,
        settings: &[Setting],
        seeds: &[u64],
    ) -> Result<(), AskError> {
        let trial = |setting: &Setting, seed: u64| Trial { ground, setting: setting.clone(), seed };
        let all = settings.iter().flat_map(|setting| seeds.iter().map(|&seed| trial(setting, seed)));
        let new: BTreeSet<Trial> = all.filter(|trial| !self.known.contains_key(trial)).collect();
        let new: Vec<Trial> = new.into_iter().collect();
        let came = self.evaluator.evaluate(&new)?;
        self.spent += self.costs[ground] * new.len() as u64;
        self.known.extend(new.into_iter().zip(came));
        Ok(())
    }

    /// Corrects what trials cost by what there was to do on each ground with `setting`, whose trials with `seed` were made on all. The
    /// last ground is the whole; what was spent is counted anew.
    pub(super) fn weigh(&mut self, setting: &Setting, seed: u64) {
        let events = |ground| self.evaluator.events(&Trial { ground, setting: setting.clone(), seed });
        let all: Vec<u64> = (0..self.costs.len()).map(events).collect();
        let whole = all.last().copied().unwrap_or_default();
        if all.contains(&0) {
            return;
        }
        self.costs = all.iter().map(|events| (1000 * events).div_ceil(whole)).collect();
        self.spent = self.known.keys().map(|trial| self.costs[trial.ground]).sum();
    }

    /// What a trial costs on `ground`, in thousandths of one of full length.
    pub(super) fn cost(&self, ground: usize) -> u64 {
        self.costs[ground]
    }

    /// What came of a trial that was made.
    pub(super) fn of(&self, ground: usize, setting: &Setting, seed: u64) -> &Tried {
        &self.known[&Trial { ground, setting: setting.clone(), seed }]
    }

    /// What all of them cost, in thousandths of one of full length.
    pub(super) const fn spent(&self) -> u64 {
        self.spent
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// How many settings were tried.
    pub(super) fn settings(&self) -> usize {
        self.known.keys().map(|trial| &trial.setting).collect::<BTreeSet<_>>().len()
    }

    /// Settings that could not be, each with its first reason.
    pub(super) fn failed(&self) -> BTreeMap<Setting, String> {
        let mut failed = BTreeMap::new();
        for (trial, tried) in &self.known {
            if let Err(why) = tried {
                failed.entry(trial.setting.clone()).or_insert_with(|| why.clone());
            }
        }
        failed
    }
}
