//! Running a plan: one simulation per variant.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use mm::{Knob, Limit, Policy};
use rayon::prelude::*;

use super::copies::Copies;
use super::objects::make_caches;
use super::outcome::{self, Parts};
use super::plan::{Plan, Variant};
use super::program::Programs;
use super::share::CpuChoice;
use super::source::Source;
use crate::drive::{Drive, DriveError};
use crate::measurements::Run;
use crate::program::{Program, swap_as_recorded};
use crate::reach::{Refusal, mark_rested, refused_after};
use crate::stage::{GroupSetup, Setup};
use crate::workloads::Workload;

/// Why a replay could not be.
#[derive(Debug)]
pub enum ReplayError {
    /// There is nothing in the workload.
    Empty,
    /// A knob is set that cannot act.
    Refused(Refusal),
    /// The plan cannot be carried out.
    Plan(String),
    /// There was no simulation.
    Drive(DriveError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no event of the workload's tasks to replay"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Plan(what) => f.write_str(what),
            Self::Drive(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<DriveError> for ReplayError {
    fn from(error: DriveError) -> Self {
        Self::Drive(error)
    }
}

/// Runs every variant of every plan with every seed, as many at a time as the present rayon pool has threads. They come
/// in the order of the plans, then of [`Plan::variants`], then of the seeds. `done` hears of each that ends.
///
/// # Errors
/// The first run's that could not be; a knob that is set, not forced, and could act in none of them.
pub fn replay_all(
    source: &Source,
    plans: &[Plan],
    done: &(dyn Fn(&Run) + Sync),
) -> Result<Vec<Run>, ReplayError> {
    let mut all: Vec<(Plan, Variant)> = vec![];
    for plan in plans {
        for variant in plan.variants() {
            all.extend(plan.seeds().map(|seed| (Plan { seed, seeds: 1, ..plan.clone() }, variant.clone())));
        }
    }
    let one = |(plan, variant): &(Plan, Variant)| {
        let run = replay(source, plan, variant)?;
        done(&run);
        Ok(run)
    };
    let runs: Vec<Run> = all.par_iter().map(one).collect::<Result<_, ReplayError>>()?;
    let set = plans.iter().filter(|plan| !plan.forced).flat_map(Plan::knobs_set);
    match refused_after(set, &runs) {
        Some(refusal) => Err(ReplayError::Refused(refusal)),
        None => Ok(runs),
    }
}

/// Runs one variant of `plan` with its first seed.
///
/// # Errors
/// An empty workload, an impossible machine, or a simulation that cannot go on.
pub fn replay(source: &Source, plan: &Plan, variant: &Variant) -> Result<Run, ReplayError> {
    if source.is_empty() {
        return Err(ReplayError::Empty);
    }
    plan.check().map_err(|error| ReplayError::Plan(error.to_string()))?;
    for program in source.programs() {
        let (has, wants) = (plan.profile.shape().cpu_count(), program.recorded_cpus());
        if plan.shares.of(&program.name).cpus == Some(CpuChoice::Recorded) && wants > has {
            let Program { name, .. } = &**program;
            let machine = plan.profile.name();
            let what = format!(
                "{name} ran on CPUs up to {}, and {machine} has {has}; name CPUs (--cpus)",
                wants - 1
            );
            return Err(ReplayError::Plan(what));
        }
    }
    let refused = plan.refusals(source);
    if let Some(refusal) = refused.first().filter(|_| !plan.forced) {
        return Err(ReplayError::Refused(refusal.clone()));
    }
    let knobs = with_swap(source, variant, &plan.policy);
    let built = source.built_otherwise(&plan.policy);
    let changes = plan.changes.iter().any(|change| Limit::of(change.knob).is_some());
    let setup = Setup {
        profile: &plan.profile,
        policy: &plan.policy,
        knobs: &knobs,
        built: &built,
        groups: GroupSetup { named: &variant.groups, changes },
        cpus: &plan.cpus,
        seed: plan.seed,
    };
    let mut drive = Drive::new(&setup)?;
    // Before daemons are: making caches draws random numbers, and daemons draw theirs behind them.
    let copies: Box<dyn Workload> = match source {
        Source::Events(recorded) => {
            Box::new(Copies::of(recorded, plan, make_caches(drive.stage(), recorded)))
        }
        Source::Program(_) | Source::Programs(_) => Box::new(Programs::of(source.programs(), plan)),
    };
    drive.start_daemons();
    let changed = Rc::new(Cell::new(0));
    for change in &plan.changes {
        let (changed, change) = (Rc::clone(&changed), *change);
        drive.at(change.at, change.knob.spec().name, move |stage| {
            stage.set_knob(change.knob, change.value).expect("a change was checked above");
            changed.set(changed.get() + 1);
        });
    }
    drive.run(&*copies)?;
    let changes_not_reached = plan.changes.len() as u64 - changed.get();
    let parts =
        Parts { plan, variant, setup, copies: &*copies, source, refused: &refused, changes_not_reached };
    let mut run = outcome::run(drive.stage(), &parts);
    (run.wall_ns, run.events) = (drive.wall_ns(), drive.stage().events());
    run.timeline = drive.timeline();
    mark_rested(&mut run);
    Ok(run)
}

/// The variant's knobs; where these say nothing of swap, with the swap of the machine where the first program was recorded.
fn with_swap(source: &Source, variant: &Variant, policy: &Policy) -> Vec<(Knob, u64)> {
    let Some(program) = source.programs().first() else { return variant.knobs.clone() };
    let mut knobs = swap_as_recorded(&variant.knobs, &program.surroundings.swap);
    knobs.retain(|&(knob, value)| {
        variant.knobs.iter().any(|(set, _)| *set == knob) || policy.check_knob(knob, value).is_ok()
    });
    knobs
}
