//! Somebody outside measures, or somebody outside searches: the two halves of `--ask-tell`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender};

use mm::Knob;

use super::aim::Limit;
use super::answer::Answer;
use super::bench::{Evaluator, Trial, Tried};
use super::ground::{Keep, Simulator};
use super::journal::Journal;
use super::question::Prepared;
use super::space::{Space, laid_over};
use crate::measurements::{KnobText, TuneGoal};
use crate::subject::AskError;

/// A setting that somebody outside is to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Knobs that differ from the current setting, with their values as they are written.
    pub knobs: Vec<KnobText>,
    /// Which repetition: measurements of one number are set beside each other, so they should be made in the same circumstances.
    pub seed: u64,
}

/// What somebody outside measured: a value for each figure of [`Prepared::measured`], or why there is none.
pub type Told = Result<Vec<Option<f64>>, String>;

/// What was simulated, by figure; `None`: it did not happen.
pub type Figures = BTreeMap<String, Option<f64>>;

/// Has somebody outside make trials, a batch at a time.
struct Outside<'a> {
    space: &'a Space,
    asked: Sender<Vec<Asked>>,
    told: Receiver<Vec<Told>>,
}

impl Evaluator for Outside<'_> {
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError> {
        if trials.is_empty() {
            return Ok(vec![]);
        }
        let gone = || AskError::new("nobody measures any more");
        let one = |trial: &Trial| Asked { knobs: self.space.texts(&trial.setting), seed: trial.seed };
        self.asked.send(trials.iter().map(one).collect()).map_err(|_| gone())?;
        let mut told = self.told.recv().map_err(|_| gone())?;
        // Of allocations that fail nobody outside knows.
        told.iter_mut().flatten().for_each(|values| values.push(Some(0.0)));
        Ok(told)
    }
}

impl Prepared {
    /// Searches by measurements of somebody outside: each batch of `asked` is answered by one of `told`, in its order. The
    /// workload is never shortened, and the winner is tried with unseen seeds alone. Nothing is simulated.
    ///
    /// # Errors
    /// Nobody measures any more, or the current setting cannot be measured.
    pub fn answer_outside(
        &self,
        asked: Sender<Vec<Asked>>,
        told: Receiver<Vec<Told>>,
    ) -> Result<Answer, AskError> {
        let mut outside = Outside { space: &self.space, asked, told };
        self.answer_by(&mut outside)
    }

    /// What is to become better, the most important first. Units are those that a run gives, and are not known before one.
    pub fn goals(&self) -> Vec<TuneGoal> {
        self.aims.aims.iter().map(|aim| aim.described("")).collect()
    }

    /// The names of all figures that are looked at: those of the goals, then those of the limits.
    pub fn figures(&self) -> Vec<String> {
        self.goals.iter().map(|goal| goal.name().to_owned()).collect()
    }

    /// Those of them that somebody outside measures.
    pub fn measured(&self) -> Vec<String> {
        let mut names = self.figures();
        names.pop();
        names
    }

    /// How far beyond each limit, by the limit as it is written, `values` are where the current setting has `current`: in parts of the
    /// limit, 0 within it. Both are what [`Self::evaluate`] gives; what did not happen counts as 0. One limit is always there: no
    /// allocation may fail that did not fail before.
    ///
    /// # Errors
    /// A limit is an amount of a figure of which nobody knows the unit.
    pub fn breaches(&self, values: &Figures, current: &Figures) -> Result<BTreeMap<String, f64>, AskError> {
        let breach = |limit: &Limit| {
            let name = limit.goal.name();
            if !limit.is_known() {
                return Err(limit.of_no_unit());
            }
            let of = |values: &Figures| values.get(name).copied().flatten().unwrap_or(0.0);
            Ok((limit.written(), limit.breach(of(values), of(current))))
        };
        self.aims.limits.iter().map(breach).collect()
    }

    /// What parts of the whole workload can be simulated, in thousandths, ascending; the last is 1000.
    pub fn parts(&self) -> Vec<u64> {
        self.question.grounds.iter().map(|ground| ground.permille).collect()
    }

    /// Simulates what somebody outside asks for: knobs laid over the current setting, whether the space has them or not.
    ///
    /// # Errors
    /// A part that there is not, a knob that the kernel does not have or that cannot act, a simulation that cannot be.
    pub fn evaluate(
        &self,
        knobs: &[(Knob, u64)],
        seed: u64,
        permille: u64,
        journal: &Journal,
    ) -> Result<Figures, AskError> {
        let part = self.question.grounds.iter().find(|ground| ground.permille == permille);
        let ground =
            part.ok_or_else(|| AskError::new(format!("there is no part of {permille} thousandths here")))?;
        for &(knob, value) in knobs {
            self.space
                .base
                .policy
                .check_knob(knob, value)
                .map_err(|error| AskError::new(error.to_string()))?;
            // By itself: what another one switches off is a setting all the same.
            let alone = laid_over(&self.space.base, &[(knob, value)]);
            let refused = ground.subject.refusals(&alone).into_iter().find(|refusal| refusal.knob == knob);
            refused.map_or(Ok(()), |refusal| Err(AskError::new(refusal.to_string())))?;
        }
        let side = laid_over(&self.space.base, knobs);
        let space = Space { axes: vec![], base: side, set_aside: vec![] };
        let mut simulator = Simulator {
            grounds: std::slice::from_ref(ground),
            space: &space,
            goals: &self.goals,
            journal,
            done: &|_, _| {},
            keep: |_| Keep::Figures,
            kept: &Mutex::default(),
        };
        let tried = simulator.evaluate(&[Trial { ground: 0, setting: vec![], seed }])?;
        let values = tried.into_iter().next().transpose().map_err(AskError::new)?.unwrap_or_default();
        Ok(self.figures().into_iter().zip(values).collect())
    }
}
