//! What every knob does to recordings, at its ends: each value that is tried is a simulation of its own, beside one of the
//! same policy with nothing set. `docs/knobs.md` is made of it.
//!
//! A survey knows at once what is refused, which takes no simulation; [`Survey::simulate`] runs the rest.

use std::collections::{BTreeMap, BTreeSet};

use mm::{KNOBS, Knob, Limit, Policy};
use rayon::prelude::*;
use sim::Profile;

use super::source::Source;
use crate::measurements::{FAILED_ALLOCATIONS, KnobUses, Run};
use crate::reach::refused_after;
use crate::replay::{Plan, ReplayError, Setting, Variant, replay};

/// All knobs at their ends, on some workloads and machines.
#[derive(Debug)]
pub struct Survey {
    workloads: Vec<Source>,
    machines: Vec<Profile>,
    trials: Vec<Trial>,
}

/// One knob with one value, on one workload and one machine.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The knob.
    pub knob: Knob,
    /// Its value.
    pub value: u64,
    /// The policy: [`policy_of`] the knob.
    pub policy: &'static str,
    /// The workload's name.
    pub workload: String,
    /// The machine's name.
    pub machine: String,
    /// What came of it.
    pub outcome: TrialOutcome,
    ground: Beside,
}

/// What came of a trial.
#[derive(Clone, PartialEq, Debug)]
pub enum TrialOutcome {
    /// The knob cannot act there; the text says what is missing.
    Refused(String),
    /// It can, and was not simulated yet.
    NotRun,
    /// It was simulated.
    Ran(Ran),
}

/// What a simulation with one knob set came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Ran {
    /// What the knob did.
    pub uses: KnobUses,
    /// Whether that can be seen.
    pub figures: Figures,
    /// Allocations for which there was no memory.
    pub failed: u64,
}

/// The figures of a run beside those of a run in which nothing was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figures {
    /// All are the same.
    Alike,
    /// At least one is another.
    Different,
}

/// The values with which `knob` is tried: each that has a word, or else its least and its greatest. In the default's place,
/// which decides as the default does, stands the value next to it. Of a size in bytes, whose least lets nothing live and whose greatest
/// no machine has, these are the ends of the range that is searched.
pub fn ends(knob: Knob) -> Vec<u64> {
    let spec = knob.spec();
    let is_other = |value: &u64| *value != spec.default && knob.check(*value).is_ok();
    if knob.has_words_only() {
        return knob.words().iter().map(|word| word.value).filter(is_other).collect();
    }
    if let ("bytes", Some((least, greatest))) = (spec.unit, spec.searched) {
        return vec![least, greatest];
    }
    let least = (spec.min..=spec.max).find(is_other);
    let greatest = (spec.min..=spec.max).rev().find(is_other);
    let mut values: Vec<u64> = least.into_iter().chain(greatest).collect();
    values.dedup();
    values
}

/// The policy under which `knob` is tried: Linux's where it has the knob, or else one whose rules read it.
pub fn policy_of(knob: Knob) -> &'static str {
    knob.spec().tried_under
}

/// What is set beside a limit of a cgroup, or swap: with either, a program's uses of its pages are played, and a run without is another.
fn beside(knob: Knob) -> Option<Knob> {
    match knob {
        Knob::MemoryMax | Knob::ZramDisksize | Knob::SwapDisk => Some(Knob::MemoryHigh),
        _ => Limit::of(knob).map(|_| Knob::MemoryMax),
    }
}

/// Bytes that no workload of a survey comes to.
const OUT_OF_REACH: u64 = 1 << 44;

/// What a trial is set beside: a run of the same, with nothing set, or nothing that matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Beside {
    /// Which workload, from 0.
    workload: usize,
    /// Which machine, from 0.
    machine: usize,
    policy: &'static str,
    /// Set in both runs, so far up that nothing reaches it.
    also: Option<Knob>,
}

impl Survey {
    /// Every knob at its ends with each of `workloads` on each of `machines`; what is refused is known.
    pub fn of(workloads: Vec<Source>, machines: Vec<Profile>) -> Self {
        let mut survey = Self { workloads, machines, trials: vec![] };
        for knob in KNOBS.iter().map(|spec| spec.knob) {
            for workload in 0..survey.workloads.len() {
                for machine in 0..survey.machines.len() {
                    let ground = Beside { workload, machine, policy: policy_of(knob), also: beside(knob) };
                    let trials: Vec<Trial> =
                        ends(knob).into_iter().map(|value| survey.trial(knob, value, ground)).collect();
                    survey.trials.extend(trials);
                }
            }
        }
        survey
    }

    /// All trials, by knob, workload, machine and value.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// How many simulations all of it takes.
    pub fn simulations(&self) -> usize {
        let to_run = self.trials.iter().filter(|trial| trial.outcome == TrialOutcome::NotRun);
        let grounds: BTreeSet<Beside> = to_run.clone().map(|trial| trial.ground).collect();
        to_run.count() + grounds.len()
    }

    /// Simulates the trials that are `wanted` and not refused, as many at a time as the present rayon pool has threads. `done`
    /// hears of each simulation that ends.
    ///
    /// # Errors
    /// The first simulation's that could not be.
    pub fn simulate(
        &mut self,
        wanted: impl Fn(&Trial) -> bool,
        done: &(dyn Fn(&Run) + Sync),
    ) -> Result<(), ReplayError> {
        let is_wanted = |trial: &Trial| trial.outcome == TrialOutcome::NotRun && wanted(trial);
        let indices: Vec<usize> = (0..self.trials.len()).filter(|&at| is_wanted(&self.trials[at])).collect();
        let grounds: BTreeSet<Beside> = indices.iter().map(|&at| self.trials[at].ground).collect();
        let run = |ground: &Beside, knobs: &[(Knob, u64)]| {
            let run = self.run(*ground, knobs)?;
            done(&run);
            Ok::<Run, ReplayError>(run)
        };
        let by_default: BTreeMap<Beside, Run> = grounds
            .par_iter()
            .map(|ground| Ok((*ground, run(ground, &[])?)))
            .collect::<Result<_, ReplayError>>()?;
        let outcome = |&at: &usize| {
            let Trial { knob, value, ground, .. } = &self.trials[at];
            let run = run(ground, &[(*knob, *value)])?;
            let refused = refused_after([*knob].into_iter(), std::slice::from_ref(&run));
            let ran = || TrialOutcome::Ran(ran(*knob, &run, &by_default[ground]));
            Ok((at, refused.map_or_else(ran, |refusal| TrialOutcome::Refused(refusal.missing))))
        };
        let outcomes: Vec<_> = indices.par_iter().map(outcome).collect::<Result<_, ReplayError>>()?;
        for (at, outcome) in outcomes {
            self.trials[at].outcome = outcome;
        }
        Ok(())
    }

    fn trial(&self, knob: Knob, value: u64, ground: Beside) -> Trial {
        let plan = Plan { settings: vec![Setting::of_all(knob, vec![value])], ..self.plan(ground) };
        let refusal = plan.refusals(&self.workloads[ground.workload]).into_iter().next();
        Trial {
            knob,
            value,
            policy: ground.policy,
            workload: self.workloads[ground.workload].name(),
            machine: self.machines[ground.machine].name().to_owned(),
            outcome: refusal.map_or(TrialOutcome::NotRun, |refusal| TrialOutcome::Refused(refusal.missing)),
            ground,
        }
    }

    fn plan(&self, ground: Beside) -> Plan {
        let policy = Policy::parse(ground.policy).expect("policy_of names policies that there are");
        Plan::new(self.machines[ground.machine].clone(), policy)
    }

    fn run(&self, ground: Beside, knobs: &[(Knob, u64)]) -> Result<Run, ReplayError> {
        let also = ground.also.map(|knob| (knob, OUT_OF_REACH));
        let knobs: Vec<(Knob, u64)> = also.into_iter().chain(knobs.iter().copied()).collect();
        let settings = knobs.iter().map(|&(knob, value)| Setting::of_all(knob, vec![value])).collect();
        let plan = Plan { settings, ..self.plan(ground) };
        replay(&self.workloads[ground.workload], &plan, &Variant::from(knobs))
    }
}

/// What setting `knob` did in `run`, whose like with nothing set had the figures `beside`.
fn ran(knob: Knob, run: &Run, beside: &Run) -> Ran {
    let uses = run.knob_uses.get(knob.spec().name).cloned().unwrap_or_default();
    let failed = run.omissions.get(FAILED_ALLOCATIONS).copied().unwrap_or(0);
    let figures = if run.is_alike(beside) { Figures::Alike } else { Figures::Different };
    Ran { uses, figures, failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_knob_is_tried_at_its_default_or_where_no_rule_reads_it() {
        for spec in &KNOBS {
            let values = ends(spec.knob);
            assert!(!values.is_empty() && !values.contains(&spec.default), "{}: {values:?}", spec.name);
            let policy = Policy::parse(policy_of(spec.knob)).unwrap();
            for value in values {
                assert_eq!(policy.check_knob(spec.knob, value), Ok(()), "{}", policy.name());
            }
        }
        assert_eq!(ends(Knob::PercpuPagelistHighFraction), [8, 2_147_483_647]);
        assert_eq!(ends(Knob::HugeDefrag), [1, 2, 3, 4, 5]);
        assert_eq!(ends(Knob::KhugepagedMaxPtesNone), [0, 510]);
        assert_eq!(ends(Knob::MemoryMax), [16 << 20, 64 << 30]);
    }
}
