//! Running a plan: one simulation per variant.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mm::{Machine, Nanos};
use rayon::prelude::*;
use sim::{Sim, SimError, SimOptions};

use super::objects::make_caches;
use super::outcome;
use super::plan::{Plan, Variant};
use super::player::{Copy, Play};
use crate::daemons;
use crate::measurements::Run;
use crate::reach::Refusal;
use crate::stage::Stage;
use crate::workload::{Action, TaskOps, TaskRef, Workload};

/// Copies start within this part of the workload's length, so that they overlap but never run in step.
const OFFSET_SHARE: u64 = 4;

/// Why a replay could not be.
#[derive(Debug)]
pub enum ReplayError {
    /// There is nothing in the workload.
    Empty,
    /// A knob is set that cannot act.
    Refused(Refusal),
    /// The machine cannot be set up.
    Setup(String),
    /// The simulation came to a halt.
    Sim(SimError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no page or slab event of the workload's tasks to replay"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Setup(what) => f.write_str(what),
            Self::Sim(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Runs every variant of every plan with every seed, as many at a time as the present rayon pool has threads. They come
/// in the order of the plans, then of [`Plan::variants`], then of the seeds. `done` hears of each that ends.
///
/// # Errors
/// The first run's that could not be.
pub fn replay_all(
    workload: &Arc<Workload>,
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
        let run = replay(workload, plan, variant)?;
        done(&run);
        Ok(run)
    };
    all.par_iter().map(one).collect()
}

/// Runs one variant of `plan` with its first seed.
///
/// # Errors
/// An empty workload, an impossible machine, or a simulation that cannot go on.
pub fn replay(workload: &Arc<Workload>, plan: &Plan, variant: &Variant) -> Result<Run, ReplayError> {
    if workload.operations == 0 {
        return Err(ReplayError::Empty);
    }
    plan.check().map_err(|error| ReplayError::Setup(error.to_string()))?;
    let refused = plan.refusals(workload);
    if let Some(refusal) = refused.first().filter(|_| !plan.forced) {
        return Err(ReplayError::Refused(refusal.clone()));
    }
    let began = Instant::now();
    let descriptor_bytes = plan.policy.rules().lists.descriptor_bytes;
    let mut sim =
        Sim::new(&plan.profile, SimOptions { seed: plan.seed, descriptor_bytes, ..SimOptions::default() });
    let stage = Stage::new(&sim, &plan.profile, &plan.policy, &variant.knobs, &plan.cpus);
    let stage = Rc::new(stage.map_err(ReplayError::Setup)?);
    let caches = make_caches(&stage, workload);
    // Setting up took locks too.
    sim.reset_measurements();
    daemons::start(&sim, &stage);
    let changed = Rc::new(Cell::new(0));
    for change in &plan.changes {
        let (stage, changed, change) = (Rc::clone(&stage), Rc::clone(&changed), *change);
        sim.at(change.at, change.knob.spec().name, move || {
            stage.mm.set_knob(change.knob, change.value).expect("a change was checked above");
            changed.set(changed.get() + 1);
        });
    }
    let play = Rc::new(Play {
        stage,
        workload: Arc::clone(workload),
        caches,
        passes: plan.repeat,
        slowness: (65_536.0 / plan.profile.value("cpu.speed")).round() as u64,
    });
    let first_start = spawn_copies(&sim, &play, plan);
    let summary = sim.run(None).map_err(ReplayError::Sim)?;
    play.stage.note_waits();
    let measured = sim.measurements();
    let simulated = Nanos(summary.now.0 - first_start.0);
    let changes_not_reached = plan.changes.len() as u64 - changed.get();
    let mut run = outcome::run(&outcome::Parts {
        plan,
        variant,
        play: &play,
        measured: &measured,
        refused: &refused,
        simulated,
        changes_not_reached,
    });
    run.wall_ns = began.elapsed().as_nanos() as u64;
    Ok(run)
}

/// Starts every copy; gives the time of the first.
fn spawn_copies(sim: &Sim, play: &Rc<Play>, plan: &Plan) -> Nanos {
    let machine = sim.machine();
    let window = (length_ns(&play.workload) / OFFSET_SHARE).max(1);
    let mut first = u64::MAX;
    for number in 0..plan.copies {
        let copy = Copy::new(play, number);
        let start = if plan.copies > 1 { machine.random() % window } else { 0 };
        first = first.min(start);
        for (task, _) in play.workload.tasks.iter().enumerate().filter(|(_, task)| !task.started_by_other) {
            copy.spawn(TaskRef(task as u32), Nanos(start));
        }
    }
    Nanos(first)
}

/// The longest task's own time and sleep, in ns.
fn length_ns(workload: &Workload) -> u64 {
    let of_task = |task: &TaskOps| -> u64 {
        let step = |op: &crate::workload::Op| {
            let slept = if let Action::Sleep(ns) = op.action { ns } else { 0 };
            u64::from(op.own_ns) + u64::from(slept)
        };
        task.ops.iter().map(step).sum()
    };
    workload.tasks.iter().map(of_task).max().unwrap_or(0)
}
