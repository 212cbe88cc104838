//! Copies of a recorded program as a workload, which starts them so that they overlap but never run in step.

use std::rc::Rc;
use std::sync::Arc;

use mm::slab::CacheId;
use mm::{Machine, Nanos};
use sim::Sim;

use super::plan::Plan;
use super::player::{Copy, Play};
use crate::recorded::{Action, Op, Recorded, TaskOps, TaskRef};
use crate::stage::Stage;
use crate::workloads::Workload;

/// Copies start within this part of the recording's length.
const OFFSET_SHARE: u64 = 4;

/// Copies of a recorded program.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) recorded: Arc<Recorded>,
    /// How many.
    count: u32,
    /// For each of the recording's slab caches the one that was made, if it could be.
    caches: Vec<Option<CacheId>>,
    /// Times that each goes through the recording.
    passes: u32,
    /// The program's own time is multiplied by this / 65536: speed of the recorded machine over that of this one.
    slowness: u64,
}

impl Copies {
    pub(super) fn of(recorded: &Arc<Recorded>, plan: &Plan, caches: Vec<Option<CacheId>>) -> Self {
        Self {
            recorded: Arc::clone(recorded),
            count: plan.copies,
            caches,
            passes: plan.repeat,
            slowness: (65_536.0 / plan.profile.value("cpu.speed")).round() as u64,
        }
    }
}

impl Workload for Copies {
    fn title(&self) -> String {
        let name = &self.recorded.name;
        match (self.count, self.passes) {
            (1, 1) => name.clone(),
            (copies, 1) => format!("{name}, {copies} copies"),
            (copies, repeat) => format!("{name}, {copies} copies, {repeat} rounds each"),
        }
    }

    fn start(&self, _sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        let play = Rc::new(Play {
            stage: Rc::clone(stage),
            workload: Arc::clone(&self.recorded),
            caches: self.caches.clone(),
            passes: self.passes,
            slowness: self.slowness,
        });
        let machine = stage.machine();
        let window = (length_ns(&self.recorded) / OFFSET_SHARE).max(1);
        let mut first = u64::MAX;
        for number in 0..self.count {
            let copy = Copy::new(&play, number);
            let start = if self.count > 1 { machine.random() % window } else { 0 };
            first = first.min(start);
            let tasks = self.recorded.tasks.iter().enumerate();
            for (task, _) in tasks.filter(|(_, task)| !task.started_by_other) {
                copy.spawn(TaskRef(task as u32), Nanos(start));
            }
        }
        stage.start.set(Nanos(first));
        Ok(())
    }
}

/// The longest task's own time and sleep, in ns.
fn length_ns(recorded: &Recorded) -> u64 {
    let of_task = |task: &TaskOps| -> u64 {
        let step = |op: &Op| {
            let slept = if let Action::Sleep(ns) = op.action { ns } else { 0 };
            u64::from(op.own_ns) + u64::from(slept)
        };
        task.ops.iter().map(step).sum()
    };
    recorded.tasks.iter().map(of_task).max().unwrap_or(0)
}
