//! A workload that says what programs do, an operation a line, in the language of scenes ([`crate::script`]): map, touch, read, fork,
//! limit. Each program is a task, and so is each child. An operation takes the time that the simulated machine says, and the next one
//! begins when it has ended.
//!
//! Modelled besides what the memory manager charges: each access is a read or a write of a cache line anywhere in the range that is
//! touched; each read or write of a file copies its bytes and waits for the disk as far as pages are missing. The disk has a rate, and
//! a seek for who reads by calls and does not go on where he was. A file is on the disk from the start, with nothing of it in memory. When memory is out, the largest process of those that are charged to the group which is
//! full goes, or the largest of all, as the kernel chooses.
//!
//! Left out: what pages hold, and so `noise` of scenes (`zram.ratio` says how much smaller they become); a process's own
//! pages (stack, data, libraries); NUMA balancing; sizes do not scale with `shrink`. `sync` writes everything that is dirty.
//!
//! Samples: `time LABEL` the time of its lines, `mark LABEL` that since the program's mark before (or its beginning), both in ns, and
//! for each counter behind `mark LABEL` how much it grew, as `LABEL.COUNTER`. Counters: `script_done` and `script_killed` programs,
//! `script_refused` calls, `oom_kill`. An access, to a page or a block, is an operation.

mod counts;
mod files;
mod memory;
mod player;
#[cfg(test)]
mod tests;
mod world;

use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{GroupEvent, Machine, Nanos};
use serde::Deserialize;
use sim::{Sim, TaskSpec};

use self::player::Player;
use self::world::World;
use crate::reach::Brings;
use crate::script::strict::{self, Step};
use crate::stage::Stage;
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// The cgroup that programs begin in, where a limit is set by a knob.
const GROUP: &str = "workload";

/// Parameters as a file gives them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// One program's.
    text: Option<String>,
    /// Several, which run side by side.
    #[serde(default)]
    program: Vec<WrittenProgram>,
    /// What the disk moves, MB/s, from 1.
    #[serde(default = "number::<{ crate::stage::DEFAULT_MB_PER_SECOND }>")]
    disk_mb_per_second: u32,
    /// What a read takes besides that does not go on where the last one of that file ended, us.
    #[serde(default)]
    disk_seek_us: u32,
    /// A window of readahead, KiB.
    #[serde(default = "number::<128>")]
    read_ahead_kb: u32,
    /// What is read together where more than a window is asked for, KiB; 0: no more than a window.
    #[serde(default)]
    max_sectors_kb: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProgram {
    name: String,
    text: String,
    /// How many of it there are.
    #[serde(default = "number::<1>")]
    copies: u32,
}

/// Programs, read.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub(super) struct Script {
    programs: Vec<Program>,
    disk: Disk,
}

/// The disk, and how far files are read ahead on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Disk {
    mb_per_second: u32,
    seek: Nanos,
    /// Pages of a window.
    read_ahead: u32,
    /// Pages that are read together where more is asked for.
    together: u32,
}

/// One of them.
#[derive(Clone, PartialEq, Debug)]
struct Program {
    name: String,
    steps: Arc<[Step]>,
    copies: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "script",
    tests: &[Mechanism::Reclaim],
    brings: Brings { forks: true, killable: true, ..Brings::FILES },
    groups: &["all"],
    read: WorkloadKind::read::<Script>,
    smallest: &["text = 'wait'\n", "[[program]]\nname = 'a'\ntext = 'map a 4K'\n"],
    largest: &[],
};

impl TryFrom<Written> for Script {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { text, program, disk_mb_per_second, disk_seek_us, read_ahead_kb, max_sectors_kb } =
            written;
        let programs = match (text, program.is_empty()) {
            (Some(text), true) => {
                vec![WrittenProgram { name: "script".into(), text, copies: 1 }]
            }
            (None, false) => program,
            _ => {
                return Err(
                    "a script is either `text` or a list of `program`, each with name and text".into()
                );
            }
        };
        let read = |WrittenProgram { name, text, copies }| {
            let steps = strict::read(&text).map_err(|why| format!("script of {name}: {why}"))?;
            Ok(Program { name, steps: steps.into(), copies })
        };
        Ok(Self {
            programs: programs.into_iter().map(read).collect::<Result<_, String>>()?,
            disk: Disk {
                mb_per_second: disk_mb_per_second,
                seek: Nanos(u64::from(disk_seek_us) * 1000),
                read_ahead: kib(read_ahead_kb),
                together: kib(max_sectors_kb),
            },
        })
    }
}

/// Pages of so many KiB.
const fn kib(kib: u32) -> u32 {
    kib / 4
}

impl Workload for Script {
    fn title(&self) -> String {
        let title = |program: &Program| match program.copies {
            1 => program.name.clone(),
            copies => format!("{} x {copies}", program.name),
        };
        let all: Vec<String> = self.programs.iter().map(title).collect();
        format!(
            "script, {} lines: {}",
            self.programs.iter().map(|p| p.steps.len()).sum::<usize>(),
            all.join(" + ")
        )
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("disk_mb_per_second", self.disk.mb_per_second.into(), 1..=1_000_000)?;
        within("disk_seek_us", self.disk.seek.0 / 1000, 0..=1_000_000)?;
        within("read_ahead_kb / 4", self.disk.read_ahead.into(), 0..=1 << 18)?;
        within("max_sectors_kb / 4", self.disk.together.into(), 0..=1 << 18)?;
        for program in &self.programs {
            within("copies", program.copies.into(), 1..=1000)?;
        }
        stage.disk.set_speed(self.disk.mb_per_second);
        stage.disk.set_seek(self.disk.seek);
        for name in world::NOTES.into_iter().chain([GroupEvent::OomKill.name()]) {
            stage.tally.note(name, 0);
        }
        let world = World::new(stage, self.disk);
        let killer = Rc::downgrade(&world);
        stage.kills_by(move || {
            if let Some(world) = killer.upgrade() {
                world.kill_for_kswapd();
            }
        });
        let cpus: Rc<[mm::Cpu]> = stage.cpus.clone().into();
        let mut tasks = 0;
        for program in &self.programs {
            for copy in 0..program.copies {
                let name = if program.copies > 1 {
                    format!("{}/{copy}", program.name)
                } else {
                    program.name.clone()
                };
                let (world, steps) = (Rc::clone(&world), Arc::clone(&program.steps));
                let spec = TaskSpec::new(name).on_any(Rc::clone(&cpus));
                sim.spawn(spec, move || {
                    let task = world.stage.machine().task();
                    let life = world.begin(task, world.stage.mm.spaces().new_space(), None);
                    Player::new(world, life, steps).play();
                });
                tasks += 1;
            }
        }
        stage.tasks.set(tasks);
        Ok(())
    }
}
