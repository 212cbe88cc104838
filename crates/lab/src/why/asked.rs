//! From the words of a question to its two sides, and whether they are one.

use mm::Policy;
use mm::policy::DEFAULT_POLICY;
use sim::Profile;

use super::answer::Question;
use crate::experiment::{Case, Experiment};
use crate::replay::{Plan, Setting, Source};
use crate::subject::{AskError, AskedError, Side, Subject, case, knobs};

/// What is asked, as somebody says it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The first side: a policy, or a case of the experiment.
    pub from: Option<&'a str>,
    /// The second: the same, or `+part` for the first one's policy with it.
    pub to: Option<&'a str>,
    /// The experiment's case whose machine and workload are meant.
    pub variant: Option<&'a str>,
    /// Knobs with one value for both sides, or one for each.
    pub settings: &'a [Setting],
    /// Copies of a recording that run at once.
    pub copies: Option<u32>,
    /// The figures to explain; none: the usual one.
    pub goals: &'a [String],
    /// The first seed.
    pub seed: u64,
    /// How many seeds, from 1.
    pub seeds: u32,
    /// Whether knobs that cannot act on either side are asked about all the same.
    pub forced: bool,
}

impl Asked<'_> {
    /// The sides of a question about a recording.
    ///
    /// # Errors
    /// A policy that there is not, or words that are for experiments.
    pub fn sides(&self) -> Result<[Side; 2], AskedError> {
        if self.variant.is_some() {
            return Err(other("--variant is for experiments; a recording has none"));
        }
        self.check_settings()?;
        let from = self.from.unwrap_or(DEFAULT_POLICY);
        Ok([
            Side { policy: policy(from)?, knobs: knobs(&[], self.settings, 0) },
            Side { policy: policy(&self.second_name(from))?, knobs: knobs(&[], self.settings, 1) },
        ])
    }

    /// The question about a recording on a machine.
    ///
    /// # Errors
    /// As [`Self::sides`]; sides that are one; knobs that cannot be set or act.
    pub fn of_recording(&self, source: Source, profile: Profile) -> Result<Question, AskedError> {
        let sides = self.sides()?;
        let mut plan = Plan::new(profile, sides[0].policy.clone());
        plan.copies = self.copies.unwrap_or(1);
        self.question(Subject::Replay(Box::new(source), Box::new(plan)), sides)
    }

    /// The question about a case of an experiment, on its own machine or on another.
    ///
    /// # Errors
    /// A policy or case that there is not; cases that differ in more than can be asked; and as [`Self::of_recording`].
    pub fn of_experiment(
        &self,
        mut experiment: Experiment,
        profile: Option<&Profile>,
    ) -> Result<Question, AskedError> {
        if self.copies.is_some() {
            return Err(other("--copies is for recordings; an experiment says what runs"));
        }
        self.check_settings()?;
        let named = |name: Option<&str>| name.and_then(|name| experiment.case(name));
        let (from, to) = (named(self.from), named(self.to));
        let chosen = self.variant.map(|name| case(&experiment, name)).transpose()?;
        let Some(base) = chosen.or(from).or(to).or_else(|| experiment.cases().next()) else {
            return Err(other(format!("{} has no variant to ask about", experiment.name)));
        };
        are_alike(&experiment, base, [from, to])?;
        let sides = self.sides_of(&experiment, base, [from, to])?;
        if let Some(profile) = profile {
            experiment.move_to(base, profile);
        }
        self.question(Subject::Case(Box::new(experiment), base), sides)
    }

    fn sides_of(
        &self,
        experiment: &Experiment,
        base: Case,
        [from, to]: [Option<Case>; 2],
    ) -> Result<[Side; 2], AskedError> {
        let setup = &experiment.variants[base.variant].setup;
        let side = |case: Option<Case>, name: Option<&str>, place: usize| {
            let of_case = case.map(|case| &experiment.variants[case.variant].setup);
            let policy = match (of_case, name) {
                (None, Some(name)) => policy(name)?,
                (of_case, _) => of_case.unwrap_or(setup).policy.clone(),
            };
            Ok(Side { policy, knobs: knobs(&of_case.unwrap_or(setup).knobs, self.settings, place) })
        };
        let first = side(from, self.from, 0)?;
        let second_policy = self.second_name(first.policy.name());
        let second = match (to, self.to) {
            (None, None) => Side { policy: first.policy.clone(), ..side(from, None, 1)? },
            (case, _) => side(case, Some(&second_policy), 1)?,
        };
        Ok([first, second])
    }

    /// The policy of the second side, `+part` spelled out.
    fn second_name(&self, first: &str) -> String {
        match self.to {
            Some(part) if part.starts_with('+') => format!("{first}{part}"),
            Some(name) => name.to_owned(),
            None => first.to_owned(),
        }
    }

    fn check_settings(&self) -> Result<(), AskedError> {
        let Some(setting) = self.settings.iter().find(|setting| setting.values.len() > 2) else {
            return Ok(());
        };
        let name = setting.knob.spec().name;
        Err(other(format!("--set {name} has {} values; a question has two sides", setting.values.len())))
    }

    /// Two sides that are one, and knobs that a side's kernel does not have or that can act on neither, are no question.
    fn question(&self, subject: Subject, [from, to]: [Side; 2]) -> Result<Question, AskedError> {
        if from == to {
            let name = from.name();
            return Err(other(format!(
                "both sides are {name}; name another with --to, or give a knob two values: --set KNOB=A,B"
            )));
        }
        for side in [&from, &to] {
            let checked =
                side.knobs.iter().try_for_each(|&(knob, value)| side.policy.check_knob(knob, value));
            checked.map_err(|error| other(error.to_string()))?;
        }
        let (one, two) = (subject.refusals(&from), subject.refusals(&to));
        let idle = one.iter().find(|refusal| two.iter().any(|other| other.knob == refusal.knob));
        if let Some(refusal) = idle.filter(|_| !self.forced) {
            return Err(other(format!("{refusal}; --force asks all the same")));
        }
        let (goals, seed, seeds) = (self.goals.to_vec(), self.seed, self.seeds);
        Ok(Question { subject, from, to, goals, seed, seeds })
    }
}

/// Cases that are told apart by policy and knobs alone.
fn are_alike(experiment: &Experiment, base: Case, cases: [Option<Case>; 2]) -> Result<(), AskedError> {
    for case in cases.into_iter().flatten() {
        if let Some(what) = experiment.differs_in(base, case) {
            let (one, two) = (experiment.case_name(base), experiment.case_name(case));
            return Err(other(format!(
                "{one} and {two} differ in {what}, too; take two that differ in policy and knobs alone"
            )));
        }
    }
    Ok(())
}

fn policy(name: &str) -> Result<Policy, AskedError> {
    Policy::parse(name).map_err(AskedError::Policy)
}

fn other(what: impl Into<String>) -> AskedError {
    AskedError::Other(AskError::new(what))
}
