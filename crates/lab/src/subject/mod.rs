//! What a question is asked of: a recording that is replayed, or a case of an experiment. Either can be simulated under any policy
//! with any setting; `why` and `tune` ask.

mod error;
mod figure;
mod goal;
mod named;
mod once;
mod side;

use mm::Knob;
use sim::Profile;
use sim::profile::digest;

use crate::experiment::{self, Case, Experiment, Metric, Setup, Variant};
#[cfg(test)]
use crate::measurements::Run;
use crate::reach::Refusal;
use crate::replay::{self, Plan, Setting, Source, replay};

pub use error::AskError;
pub(crate) use figure::unknown_figure;
pub(crate) use goal::{Goal, Outcome};
pub use named::{AskedError, case, knobs};
pub(crate) use once::Once;
pub use side::Side;

/// What is simulated.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A recording, as the plan has it; its policy and knobs are the sides'.
    Replay(Box<Source>, Box<Plan>),
    /// A case of an experiment; the same holds.
    Case(Box<Experiment>, Case),
    /// Whatever a test makes of a side and a seed.
    #[cfg(test)]
    Made(fn(&Side, u64) -> Run),
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
    pub(crate) fn names(&self) -> [String; 2] {
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

    /// The value of `knob` on `side`, set or not.
    pub(crate) fn value(&self, side: &Side, knob: Knob) -> u64 {
        let built = match self {
            Self::Replay(source, _) => source.built_otherwise(&side.policy),
            Self::Case(..) => vec![],
            #[cfg(test)]
            Self::Made(_) => vec![],
        };
        let built = built.into_iter().find(|(of, _)| *of == knob).map(|(_, value)| value);
        side.value(knob).or(built).unwrap_or_else(|| side.policy.default_of(knob))
    }

    /// The figure called so.
    pub(crate) fn goal(&self, name: &str) -> Goal {
        match (self, Metric::parse(name)) {
            (Self::Case(..), Ok(metric)) if !metric.is_beside_published() => Goal::Metric(metric),
            _ => Goal::Figure(name.to_owned()),
        }
    }

    /// By how much the memory of machine and workload is divided: a scale model has more than 1.
    pub(crate) fn shrink(&self) -> u32 {
        match self {
            Self::Replay(..) => 1,
            Self::Case(experiment, case) => experiment.variants[case.variant].setup.shrink,
            #[cfg(test)]
            Self::Made(_) => 1,
        }
    }

    /// Stands for all that is simulated, apart from policy and knobs; `content` stands for a recording's events.
    pub(crate) fn digest(&self, content: &str) -> String {
        let text = match self {
            Self::Replay(_, plan) => {
                let Plan { copies, repeat, cpus, shares, changes, profile, .. } = &**plan;
                format!("{content} {copies} {repeat} {cpus:?} {shares:?} {changes:?} {}", profile.digest())
            }
            Self::Case(experiment, case) => {
                let variant = &experiment.variants[case.variant];
                let Setup { profile, tracer, cpus, workload, shrink, warm_up, .. } = &variant.setup;
                let phases = (&variant.phases, case.phase);
                format!("{workload} {shrink} {warm_up:?} {cpus:?} {phases:?} {tracer:?} {}", profile.digest())
            }
            #[cfg(test)]
            Self::Made(_) => content.to_owned(),
        };
        digest(text)
    }

    /// The machine.
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Self::Replay(_, plan) => Some(&plan.profile),
            Self::Case(experiment, case) => Some(&experiment.variants[case.variant].setup.profile),
            #[cfg(test)]
            Self::Made(_) => None,
        }
    }

    /// The same on another machine.
    #[must_use]
    pub fn on(&self, profile: &Profile) -> Self {
        match self {
            Self::Replay(source, plan) => {
                let plan = Plan { profile: profile.clone(), ..Plan::clone(plan) };
                Self::Replay(source.clone(), Box::new(plan))
            }
            Self::Case(experiment, case) => {
                let mut experiment = experiment.clone();
                experiment.variants[case.variant].setup.profile = profile.clone();
                Self::Case(experiment, *case)
            }
            #[cfg(test)]
            Self::Made(make) => Self::Made(*make),
        }
    }

    /// Simulates `side` with a seed.
    pub(crate) fn simulate(&self, side: &Side, seed: u64, goals: &[Goal]) -> Result<Outcome, AskError> {
        match self {
            Self::Replay(source, plan) => {
                // What a knob can do was asked of both sides; a mixture has what one of them has.
                let plan = Plan { seed, forced: true, ..of_side(plan, side) };
                let run = replay(source, &plan, &replay::Variant::from(side.knobs.clone()))
                    .map_err(|error| AskError::simulation(&error))?;
                let values = goals.iter().map(|goal| goal.read(&run, None)).collect();
                Ok(Outcome { run, values })
            }
            Self::Case(experiment, case) => {
                let variant = of_variant(experiment, *case, side);
                let mut outcomes = experiment::simulate(experiment, &variant, seed)
                    .map_err(|error| AskError::simulation(&error))?;
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

/// `plan` with the policy and knobs of `side`.
fn of_side(plan: &Plan, side: &Side) -> Plan {
    let settings = side.knobs.iter().map(|&(knob, value)| Setting::of_all(knob, vec![value])).collect();
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
