//! A recorded program on a simulated machine, closed loop: what a fault, a stall, a copy or a wait costs there delays what follows it, in
//! the task and in those that wait for it.
//!
//! ```text
//!   Programs (a workload: copies) ─▶ Copy: signals, processes, files ─▶ player: a task goes through its steps
//!                                                                        ├─▶ process: its address space, calls; sharing: what a fork costs
//!                                                                        │     └─▶ files: what it reads and writes
//!                                                                        ├─ uses: what it uses between steps, where memory is short; course: by page
//!                                                                        └─▶ walks: what its pages' sizes do to its own time
//! ```
//!
//! `balance` is NUMA balancing of their pages. `before` brings about what was there when the recording began, outside of time.

mod ahead;
mod balance;
mod before;
mod copy;
mod course;
mod files;
#[cfg(test)]
mod limit_tests;
mod logarithm;
#[cfg(test)]
mod placement_tests;
mod player;
mod policies;
mod process;
mod sharing;
#[cfg(test)]
mod tests;
mod uses;
mod walks;

use std::rc::{Rc, Weak};
use std::sync::Arc;

use mm::{Cpu, GroupId, Machine, Nanos, NodeMask};
use sim::Sim;

use super::plan::Plan;
use super::share::CpuChoice;
use crate::program::Program;
use crate::stage::Stage;
use crate::stage::placement::spread;
use crate::workloads::Workload;
use balance::Balance;
use copy::{Copy, Play};
use process::Memory;
use walks::WalkPrices;

/// Copies start within this part of the recording's length.
const OFFSET_SHARE: u64 = 4;

/// Copies of recorded programs.
#[derive(Debug)]
pub(super) struct Programs(Vec<Part>);

/// Copies of one of them.
#[derive(Debug)]
struct Part {
    program: Arc<Program>,
    /// How many.
    count: u32,
    /// Times that each goes through the recording.
    passes: u32,
    /// The program's own time is multiplied by this / 65536: speed of the recorded machine over that of this one.
    slowness: u64,
    /// CPUs of its own, in the order in which tasks are placed on them; empty: those of the machine.
    cpus: Vec<Cpu>,
    /// Whether its tasks run where they ran when they were recorded.
    as_recorded: bool,
    memory: Memory,
    walks: Option<WalkPrices>,
}

impl Programs {
    pub(super) fn of(programs: &[Arc<Program>], plan: &Plan) -> Self {
        Self(programs.iter().map(|program| Part::of(program, plan)).collect())
    }
}

impl Part {
    fn of(program: &Arc<Program>, plan: &Plan) -> Self {
        let share = plan.shares.of(&program.name);
        let cpus = match &share.cpus {
            Some(CpuChoice::Any(cpus)) => spread(&plan.profile, cpus),
            Some(CpuChoice::Recorded) | None => vec![],
        };
        Self {
            program: Arc::clone(program),
            count: share.copies.unwrap_or(plan.copies),
            passes: plan.repeat,
            slowness: (65_536.0 / plan.profile.value("cpu.speed")).round() as u64,
            cpus,
            as_recorded: share.cpus == Some(CpuChoice::Recorded),
            memory: Memory {
                allowed: share.mems.unwrap_or(NodeMask::ALL),
                policy: share.policy.unwrap_or_default(),
            },
            walks: WalkPrices::of(program, &plan.profile),
        }
    }

    fn title(&self) -> String {
        let name = &self.program.name;
        match (self.count, self.passes) {
            (1, 1) => name.clone(),
            (copies, 1) => format!("{name}, {copies} copies"),
            (copies, repeat) => format!("{name}, {copies} copies, {repeat} rounds each"),
        }
    }

    /// What its copies have in common, as the recording numbered so.
    fn play(&self, stage: &Rc<Stage>, recording: usize, balance: Option<&Rc<Balance>>) -> Rc<Play> {
        Rc::new(Play {
            stage: Rc::clone(stage),
            program: Arc::clone(&self.program),
            recording,
            files: before::files(stage, &self.program),
            group: stage.group(&self.program.name),
            cpus: if self.cpus.is_empty() { stage.cpus.clone() } else { self.cpus.clone() }.into(),
            as_recorded: self.as_recorded,
            memory: self.memory,
            balance: balance.cloned(),
            passes: self.passes,
            slowness: self.slowness,
            walks: self.walks,
        })
    }
}

/// The largest of those that live goes, with all of its processes.
fn kill_largest(copies: &[Weak<Copy>]) {
    let live = copies.iter().filter_map(Weak::upgrade).filter(|copy| !copy.is_killed());
    if let Some(largest) = live.max_by_key(|copy| copy.size()) {
        largest.kill_for_kswapd();
    }
}

impl Workload for Programs {
    fn group(&self) -> String {
        self.0.first().map_or_else(String::new, |part| part.program.name.clone())
    }

    fn title(&self) -> String {
        self.0.iter().map(Part::title).collect::<Vec<_>>().join(" + ")
    }

    fn start(&self, _sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        let machine = stage.machine();
        let balance = Balance::new(stage);
        // What of files was in memory was charged to somebody else.
        stage.mm.memcg().set_home(GroupId::ROOT);
        let is_alone = self.0.iter().map(|part| part.count).sum::<u32>() == 1;
        let (mut first, mut copies) = (u64::MAX, vec![]);
        for (recording, part) in self.0.iter().enumerate() {
            let play = part.play(stage, recording, balance.as_ref());
            let window = (part.program.length_ns() / OFFSET_SHARE).max(1);
            for number in 0..part.count {
                let copy = Copy::new(&play, number);
                let start = if is_alone { 0 } else { machine.random() % window };
                first = first.min(start);
                stage.tally.recording_starts(recording, &part.program.name, Nanos(start));
                let cpu = play.cpus[number as usize % play.cpus.len()];
                // What was there before is charged to the recording's cgroup, too.
                stage.begin_in_group(&part.program.name);
                machine.on_behalf_of(cpu, || copy.make_spaces());
                stage.mm.memcg().set_home(GroupId::ROOT);
                copy.start(Nanos(start));
                copies.push(Rc::downgrade(&copy));
            }
        }
        stage.kills_by(move || kill_largest(&copies));
        stage.begin_in_group(&self.group());
        stage.start.set(Nanos(first));
        stage.count_from_here();
        Ok(())
    }
}
