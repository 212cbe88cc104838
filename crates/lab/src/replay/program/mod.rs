//! A recorded program on a simulated machine, closed loop: what a fault, a stall, a copy or a wait costs there delays what follows it, in
//! the task and in those that wait for it.
//!
//! ```text
//!   Programs (a workload: copies) ─▶ Copy: signals, processes, files ─▶ player: a task goes through its steps
//!                                                                        └─▶ process: its address space, calls
//! ```
//!
//! `before` brings about what was there when the recording began, outside of time.

mod before;
mod copy;
mod player;
mod process;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use mm::{Machine, Nanos};
use sim::Sim;

use super::plan::Plan;
use crate::program::Program;
use crate::stage::Stage;
use crate::workloads::Workload;
use copy::{Copy, Play};

/// Copies start within this part of the recording's length.
const OFFSET_SHARE: u64 = 4;

/// Copies of a recorded program.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) program: Arc<Program>,
    /// How many.
    count: u32,
    /// Times that each goes through the recording.
    passes: u32,
    /// The program's own time is multiplied by this / 65536: speed of the recorded machine over that of this one.
    slowness: u64,
}

impl Programs {
    pub(super) fn of(program: &Arc<Program>, plan: &Plan) -> Self {
        Self {
            program: Arc::clone(program),
            count: plan.copies,
            passes: plan.repeat,
            slowness: (65_536.0 / plan.profile.value("cpu.speed")).round() as u64,
        }
    }
}

impl Workload for Programs {
    fn title(&self) -> String {
        let name = &self.program.name;
        match (self.count, self.passes) {
            (1, 1) => name.clone(),
            (copies, 1) => format!("{name}, {copies} copies"),
            (copies, repeat) => format!("{name}, {copies} copies, {repeat} rounds each"),
        }
    }

    fn start(&self, _sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        let files = before::files(stage, &self.program);
        let play = Rc::new(Play {
            stage: Rc::clone(stage),
            program: Arc::clone(&self.program),
            files,
            cpus: stage.cpus.clone().into(),
            passes: self.passes,
            slowness: self.slowness,
        });
        let machine = stage.machine();
        let window = (self.program.length_ns() / OFFSET_SHARE).max(1);
        let mut first = u64::MAX;
        for number in 0..self.count {
            let copy = Copy::new(&play, number);
            let start = if self.count > 1 { machine.random() % window } else { 0 };
            first = first.min(start);
            machine.on_behalf_of(stage.cpu(number), || copy.make_spaces());
            copy.start(Nanos(start));
        }
        stage.start.set(Nanos(first));
        Ok(())
    }
}
