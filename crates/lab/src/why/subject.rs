//! What the question is asked of: a recording that is replayed, or a case of an experiment. Either can be simulated on any mixture
//! of the two sides.

use sim::Measurements;

use super::error::WhyError;
use super::lever::Side;
use crate::experiment::{self, Case, Experiment, Metric, Seen, Variant};
use crate::measurements::{Run, figures};
use crate::reach::Refusal;
use crate::replay::{self, Plan, Setting, Source, replay};

/// What is simulated.
#[derive(Debug)]
pub enum Subject {
    /// A recording, as the plan has it; its policy and knobs are the sides'.
    Replay(Box<Source>, Box<Plan>),
    /// A case of an experiment; the same holds.
    Case(Box<Experiment>, Case),
    /// Whatever a test makes of a side and a seed.
    #[cfg(test)]
    Made(fn(&Side, u64) -> Run),
}

/// A figure that is asked for.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// One of those that replays have means of.
    Figure(String),
    /// One of experiments'.
    Metric(Metric),
}

/// What a simulation came to.
pub(super) struct Outcome {
    pub(super) run: Run,
    /// The value of each goal; `None` where nothing of the kind happened.
    pub(super) values: Vec<Option<f64>>,
}

impl Subject {
    /// The figure that is looked at where nobody says which: the time of a replay, the first published one of an experiment.
    pub fn usual_goal(&self) -> String {
        match self {
            Self::Replay(source, _) if source.programs().is_empty() => "simulated_ns".to_owned(),
            Self::Replay(..) => "elapsed_ns".to_owned(),
            Self::Case(experiment, case) => usual_metric(experiment, *case),
            #[cfg(test)]
            Self::Made(_) => "simulated_ns".to_owned(),
        }
    }

    /// What is wrong with the recording's file.
    pub fn damage(&self) -> Option<&str> {
        match self {
            Self::Replay(source, _) => source.damage(),
            Self::Case(..) => None,
            #[cfg(test)]
            Self::Made(_) => None,
        }
    }

    /// What is simulated, and on which machine.
    pub(super) fn names(&self) -> [String; 2] {
        match self {
            Self::Replay(source, plan) => [source.name(), plan.profile.name().to_owned()],
            Self::Case(experiment, case) => {
                let machine = experiment.variants[case.variant].setup.profile.name();
                [format!("{} of {}", experiment.case_name(*case), experiment.name), machine.to_owned()]
            }
            #[cfg(test)]
            Self::Made(_) => ["made", "nowhere"].map(str::to_owned),
        }
    }

    /// Knobs of `side` that cannot act there.
    pub fn refusals(&self, side: &Side) -> Vec<Refusal> {
        match self {
            Self::Replay(source, plan) => of_side(plan, side).refusals(source),
            Self::Case(experiment, case) => experiment::refusals(&of_variant(experiment, *case, side)),
            #[cfg(test)]
            Self::Made(_) => vec![],
        }
    }

    pub(super) fn goal(&self, name: &str) -> Goal {
        match (self, Metric::parse(name)) {
            (Self::Case(..), Ok(metric)) if !metric.is_beside_published() => Goal::Metric(metric),
            _ => Goal::Figure(name.to_owned()),
        }
    }

    /// Simulates `side` with a seed.
    pub(super) fn simulate(&self, side: &Side, seed: u64, goals: &[Goal]) -> Result<Outcome, WhyError> {
        match self {
            Self::Replay(source, plan) => {
                // What a knob can do was asked of both sides; a mixture has what one of them has.
                let plan = Plan { seed, forced: true, ..of_side(plan, side) };
                let run = replay(source, &plan, &replay::Variant { knobs: side.knobs.clone() })
                    .map_err(|error| WhyError::simulation(&error))?;
                let values = goals.iter().map(|goal| goal.read(&run, None)).collect();
                Ok(Outcome { run, values })
            }
            Self::Case(experiment, case) => {
                let variant = of_variant(experiment, *case, side);
                let mut outcomes = experiment::simulate(experiment, &variant, seed)
                    .map_err(|error| WhyError::simulation(&error))?;
                let outcome = outcomes.swap_remove(case.phase);
                let measured = Some(&outcome.measured);
                let values = goals.iter().map(|goal| goal.read(&outcome.run, measured)).collect();
                Ok(Outcome { run: outcome.run, values })
            }
            #[cfg(test)]
            Self::Made(make) => {
                let run = make(side, seed);
                let values = goals.iter().map(|goal| goal.read(&run, None)).collect();
                Ok(Outcome { run, values })
            }
        }
    }
}

impl Goal {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Figure(name) => name,
            Self::Metric(metric) => metric.path(),
        }
    }

    /// Its unit, as `run` has it; `None` if the run has no such figure.
    pub(super) fn unit(&self, run: &Run) -> Option<&'static str> {
        match self {
            Self::Figure(name) => {
                Some(figures(run).into_iter().find(|(figure, _)| figure.name == *name)?.0.unit)
            }
            Self::Metric(metric) => Some(metric.unit()),
        }
    }

    fn read(&self, run: &Run, measured: Option<&Measurements>) -> Option<f64> {
        match self {
            Self::Figure(name) => {
                let found = figures(run).into_iter().find(|(figure, _)| figure.name == *name);
                // What did not happen was counted 0 times, and waited for 0 ns.
                let absent = name.starts_with("lock.") || name.rsplit('.').next() == Some("count");
                found.map(|(_, value)| value).or(absent.then_some(0.0))
            }
            Self::Metric(metric) => metric.read(Seen { run, measured: measured? }),
        }
    }
}

/// `plan` with the policy and knobs of `side`.
fn of_side(plan: &Plan, side: &Side) -> Plan {
    let settings = side.knobs.iter().map(|&(knob, value)| Setting { knob, values: vec![value] }).collect();
    Plan { policy: side.policy.clone(), settings, seeds: 1, ..plan.clone() }
}

/// The case's variant with the policy and knobs of `side`.
fn of_variant(experiment: &Experiment, case: Case, side: &Side) -> Variant {
    let mut variant = experiment.variants[case.variant].clone();
    variant.setup.policy = side.policy.clone();
    variant.setup.knobs.clone_from(&side.knobs);
    variant
}

/// The metric of the first figure or comparison that was published of the case, or of any.
fn usual_metric(experiment: &Experiment, case: Case) -> String {
    let figures = &experiment.variants[case.variant].figures;
    let own = figures.iter().filter(|figure| figure.phase == case.phase).map(|figure| &figure.metric);
    let is_about = |of: &&experiment::Comparison| of.case == case || of.against == case;
    let compared = experiment.comparisons.iter().filter(is_about).map(|of| &of.metric);
    let any = experiment.comparisons.iter().map(|of| &of.metric);
    let mut all = own.chain(compared).chain(any);
    let usual = all.find(|metric| !metric.is_beside_published());
    usual.map_or_else(|| "operations_per_second".to_owned(), |metric| metric.path().to_owned())
}
