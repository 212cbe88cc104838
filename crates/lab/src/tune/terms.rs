//! From the words of a search to its question.

use mm::Policy;
use mm::policy::DEFAULT_POLICY;
use sim::Profile;

use super::ground::Ground;
use super::question::{Method, Question};
use super::recorded::{Recorded, SHORTENED};
use super::space::KnobChoice;
use crate::experiment::{Case, Experiment};
use crate::replay::{Plan, Setting};
use crate::subject::{AskError, AskedError, Side, Subject, case, knobs};

/// What is searched for.
#[derive(Clone, Debug)]
pub enum Workload {
    /// A recording, on a machine that is named.
    Recording(Recorded),
    /// A variant of an experiment, on its own machine or on another.
    Experiment(Box<Experiment>),
}

/// What is asked, as somebody says it.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Knobs that are set in every setting, each with one value.
    pub settings: &'a [Setting],
    /// The policy; `None`: the usual one, or the variant's.
    pub policy: Option<&'a str>,
    /// The experiment's variant; `None`: the first on the machine.
    pub variant: Option<&'a str>,
    /// Copies of a recording that run at once.
    pub copies: Option<u32>,
    /// Knobs to search; none: those that can act.
    pub knobs: &'a [KnobChoice],
    /// What is to become better; none: the usual figure.
    pub goals: &'a [String],
    /// What has to stay.
    pub keep: &'a [String],
    /// The first seed.
    pub seed: u64,
    /// Seeds of finalists.
    pub seeds: u32,
    /// Seeds that the search does not see.
    pub unseen: u32,
    /// What the search may cost, in simulations of full length.
    pub budget: Option<u32>,
    /// How to search.
    pub method: Method,
}

/// A workload on one machine: the setting as it is, and the forms that are raced on.
struct Place {
    base: Side,
    grounds: Vec<Ground>,
}

impl Terms<'_> {
    /// Whether this can be asked of the workload, whatever the machine is.
    ///
    /// # Errors
    /// A policy or variant that there is not, a knob with several values, or words that are for the other kind of workload.
    pub fn check(&self, workload: &Workload) -> Result<(), AskedError> {
        if let Some(setting) = self.settings.iter().find(|setting| setting.values.len() > 1) {
            let name = setting.knob.spec().name;
            return Err(other(format!("--set {name} has several values; --knob {name}=V,V searches them")));
        }
        self.policy()?;
        match workload {
            Workload::Recording(_) if self.variant.is_some() => {
                Err(other("--variant is for experiments; a recording has none"))
            }
            Workload::Experiment(_) if self.copies.is_some() => {
                Err(other("--copies is for recordings; an experiment says what runs"))
            }
            Workload::Experiment(experiment) => {
                self.variant.map(|name| case(experiment, name)).transpose().map(drop)
            }
            Workload::Recording(_) => Ok(()),
        }
    }

    /// A question for each machine; without any, one about an experiment's own. What wins on one is tried on the others, and on the
    /// workloads of `also`.
    ///
    /// # Errors
    /// As [`Self::check`]; a recording without a machine; an experiment without a variant.
    pub fn questions(
        &self,
        workload: &Workload,
        machines: &[Profile],
        also: &[Workload],
    ) -> Result<Vec<Question>, AskedError> {
        self.check(workload)?;
        let places = self.places(workload, machines)?;
        let mut questions = vec![];
        for (at, Place { base, grounds }) in places.iter().enumerate() {
            let others = places.iter().enumerate().filter(|(other, _)| *other != at);
            let elsewhere = others.filter_map(|(_, other)| other.grounds.last().cloned());
            let mut tried: Vec<Ground> = elsewhere.collect();
            if let Some(profile) = grounds.last().and_then(|ground| ground.subject.profile()) {
                for workload in also {
                    tried.push(self.whole_of(workload, profile, base)?);
                }
            }
            questions.push(Question {
                grounds: grounds.clone(),
                also: tried.into_iter().map(|ground| (ground.name(), ground)).collect(),
                base: base.clone(),
                knobs: self.knobs.to_vec(),
                goals: self.goals.to_vec(),
                keep: self.keep.to_vec(),
                seed: self.seed,
                seeds: self.seeds,
                unseen: self.unseen,
                budget: self.budget,
                method: self.method,
            });
        }
        Ok(questions)
    }

    fn policy(&self) -> Result<Option<Policy>, AskedError> {
        self.policy.map(|name| Policy::parse(name).map_err(AskedError::Policy)).transpose()
    }

    fn places(&self, workload: &Workload, machines: &[Profile]) -> Result<Vec<Place>, AskedError> {
        match workload {
            Workload::Recording(recorded) => {
                if machines.is_empty() {
                    return Err(other("a recording is searched on a machine, and none is named"));
                }
                machines.iter().map(|profile| self.of_recording(recorded, profile)).collect()
            }
            Workload::Experiment(experiment) if machines.is_empty() => {
                Ok(vec![self.of_experiment(experiment, None)?])
            }
            Workload::Experiment(experiment) => {
                machines.iter().map(|profile| self.of_experiment(experiment, Some(profile))).collect()
            }
        }
    }

    fn of_recording(&self, recorded: &Recorded, profile: &Profile) -> Result<Place, AskedError> {
        let usual = || Policy::parse(DEFAULT_POLICY).map_err(AskedError::Policy);
        let policy = self.policy()?.map_or_else(usual, Ok)?;
        let base = Side { policy, knobs: knobs(&[], self.settings, 0) };
        Ok(Place { grounds: recorded.grounds(&self.plan(profile, &base)), base })
    }

    fn plan(&self, profile: &Profile, base: &Side) -> Plan {
        let mut plan = Plan::new(profile.clone(), base.policy.clone());
        plan.copies = self.copies.unwrap_or(1);
        plan
    }

    fn of_experiment(&self, experiment: &Experiment, profile: Option<&Profile>) -> Result<Place, AskedError> {
        let mut experiment = experiment.clone();
        let machine = |of: &Case| experiment.variants[of.variant].setup.profile.name();
        let runs_there = |of: &Case| profile.is_none_or(|profile| machine(of) == profile.name());
        let named = self.variant.map(|name| case(&experiment, name)).transpose()?;
        let found = named.or_else(|| experiment.cases().find(runs_there));
        let Some(case) = found.or_else(|| experiment.cases().next()) else {
            return Err(other(format!("{} has no variant to tune", experiment.name)));
        };
        if let Some(profile) = profile {
            experiment.move_to(case, profile);
        }
        let setup = &experiment.variants[case.variant].setup;
        let policy = self.policy()?.unwrap_or_else(|| setup.policy.clone());
        let base = Side { policy, knobs: knobs(&setup.knobs, self.settings, 0) };
        let ground = |permille: u64| Ground {
            subject: Subject::Case(Box::new(experiment.shortened(case, permille)), case),
            permille,
            content: String::new(),
        };
        Ok(Place { grounds: SHORTENED.into_iter().chain([1000]).map(ground).collect(), base })
    }

    /// Another workload, whole, on a machine.
    fn whole_of(&self, workload: &Workload, profile: &Profile, base: &Side) -> Result<Ground, AskedError> {
        match workload {
            Workload::Recording(recorded) => Ok(recorded.whole_ground(&self.plan(profile, base))),
            Workload::Experiment(experiment) => {
                let mut experiment = experiment.as_ref().clone();
                let named = self.variant.and_then(|name| experiment.case(name));
                let Some(case) = named.or_else(|| experiment.cases().next()) else {
                    let name = &experiment.name;
                    return Err(other(format!("{name} has no variant to try the winner on")));
                };
                experiment.move_to(case, profile);
                let subject = Subject::Case(Box::new(experiment), case);
                Ok(Ground { subject, permille: 1000, content: String::new() })
            }
        }
    }
}

fn other(what: impl Into<String>) -> AskedError {
    AskedError::Other(AskError::new(what))
}
