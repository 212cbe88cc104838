//! mmtests' thpscale: huge pages asked for by so many threads at a time, in memory that consists of halves of blocks. It
//! is what the compaction of Linux 5.1 was measured by (docs/published.md#gorman-2019); docs/compaction-history.md says
//! what the original does.
//!
//! For each number of threads a process comes, and goes when it is done. Its threads write anonymous memory, give back the
//! first half of each 2 MiB, and read a file through a mapping; that fills memory. When all have, each touches the
//! 2 MiB parts of a second mapping, for which huge pages are advised, and writes all of each. The time of
//! a part, in ns, is a sample `fault-both-T` with `T` threads, and `fault-huge-T` or `fault-base-T` by what it got; `huge-T` is
//! how many in a hundred got a huge page. The note `thpscale_done` counts numbers of threads that are done: a run that is too short has
//! fewer of them than it was to have. An operation is a part written.
//!
//! Left out: the allocation of the threads' tables of times, locks on the address space (mmap_lock).

#[cfg(test)]
mod tests;
mod thread;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use mm::Nanos;
use mm::ids::PAGEBLOCK_PAGES;
use mm::policy::Mechanism;
use mm::vm::{AddressSpace, File, FileKind};
use serde::Deserialize;
use sim::{Sim, SimMachine, TaskSpec, WaitQueue};

use crate::reach::Brings;
use crate::stage::Stage;
use crate::workloads::workload::{Workload, WorkloadKind, number, within};
use thread::Thread;

/// Numbers of threads that are done.
const DONE: &str = "thpscale_done";
/// After a process, before the next: the shell between them.
const GAP: Nanos = Nanos(100_000_000);

/// When the first halves of the first mapping's huge pages are free memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Holes {
    /// When they are unmapped: the mapping is of small pages, or the kernel splits huge ones there and then.
    #[default]
    AtOnce,
    /// When memory is short, which it is when the file has been read: a huge page that is unmapped in part stays in one
    /// piece until reclaim splits it (since 4.5, `thp_deferred_split_page`).
    WhenShort,
}

/// Parameters of thpscale.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thpscale {
    /// Numbers of threads, in order; each from 1.
    pub threads: Vec<u32>,
    /// Of a hundred pages of the machine, how many the first mapping of a process has (`THPSCALE_MAPSIZE`); the second has half of
    /// them, the file's a quarter.
    #[serde(default = "number::<80>")]
    pub memory_percent: u32,
    /// When memory that is given back from the first mapping is there for others.
    #[serde(default)]
    pub holes: Holes,
    /// What the disk moves, MB a second, from 1.
    /// An estimate: a SATA SSD. Reading the file is not in what is timed.
    #[serde(default = "number::<500>")]
    pub disk_mb_per_second: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "thpscale",
    tests: &[Mechanism::Compaction, Mechanism::HugePages],
    brings: Brings::FILES,
    groups: &["all"],
    read: WorkloadKind::read::<Thpscale>,
    smallest: &["threads = [1]\nmemory_percent = 1\ndisk_mb_per_second = 1\n"],
    largest: &[],
};

impl Workload for Thpscale {
    fn title(&self) -> String {
        let threads: Vec<String> = self.threads.iter().map(u32::to_string).collect();
        format!("thpscale with {} threads, {} % of memory", threads.join(", "), self.memory_percent)
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        if self.threads.is_empty() {
            return Err("workload: threads is empty; give one number or more".into());
        }
        for &threads in &self.threads {
            within("threads", threads.into(), 1..=4096)?;
        }
        within("memory_percent", self.memory_percent.into(), 1..=100)?;
        within("disk_mb_per_second", self.disk_mb_per_second.into(), 1..=1 << 20)?;
        let pages = self.pages(stage);
        let most = self.threads.iter().max().copied().unwrap_or(1);
        if pages / most < 4 * PAGEBLOCK_PAGES {
            return Err(format!("workload: threads: {most} have less than 8 MiB each on this machine"));
        }
        stage.disk.set_speed(self.disk_mb_per_second);
        stage.tally.note(DONE, 0);
        let (spec, stage) = (self.clone(), Rc::clone(stage));
        sim.spawn(TaskSpec::new("thpscale"), move || spec.run(&stage, pages));
        Ok(())
    }
}

impl Thpscale {
    /// Pages of the first mapping, all threads together.
    fn pages(&self, stage: &Stage) -> u32 {
        let all: u64 = stage.mm.zones().iter().map(|zone| u64::from(zone.managed())).sum();
        (all * u64::from(self.memory_percent) / 100) as u32
    }

    /// One number of threads after the other; then it waits for the end.
    fn run(&self, stage: &Rc<Stage>, pages: u32) {
        for &threads in &self.threads {
            let process = Rc::new(Process::new(stage, self.holes, threads, pages / threads));
            process.run();
            if stage.is_over() {
                return;
            }
            stage.tally.note(DONE, 1);
            stage.machine().sleep(GAP);
        }
        while !stage.is_over() {
            stage.machine().sleep(GAP);
        }
    }
}

/// A process with its threads.
struct Process {
    stage: Rc<Stage>,
    space: Arc<AddressSpace<SimMachine>>,
    file: Arc<File<SimMachine>>,
    threads: u32,
    holes: Holes,
    /// Pages of a thread's first mapping: whole pageblocks.
    pages: u32,
    /// Threads that have filled their part of memory.
    filled: Cell<u32>,
    /// Threads that have ended.
    ended: Cell<u32>,
    waiting: WaitQueue,
    parts: Cell<Parts>,
}

/// What a part of 2 MiB got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// A huge page.
    Huge,
    /// Pages of 4 KiB.
    Base,
}

/// Parts that were touched.
#[derive(Clone, Copy, Default, Debug)]
struct Parts {
    huge: u32,
    all: u32,
}

impl Parts {
    fn and(self, part: Part) -> Self {
        Self { huge: self.huge + u32::from(part == Part::Huge), all: self.all + 1 }
    }
}

impl Process {
    fn new(stage: &Rc<Stage>, holes: Holes, threads: u32, pages: u32) -> Self {
        Self {
            stage: Rc::clone(stage),
            space: stage.mm.spaces().new_space(),
            // Page caches are dropped before each number of threads.
            file: stage.mm.files().new_file(FileKind::Disk),
            threads,
            holes,
            pages: pages / PAGEBLOCK_PAGES * PAGEBLOCK_PAGES,
            filled: Cell::new(0),
            ended: Cell::new(0),
            waiting: WaitQueue::default(),
            parts: Cell::default(),
        }
    }

    /// From start to exit.
    fn run(self: &Rc<Self>) {
        let stage = &self.stage;
        for number in 0..self.threads {
            let thread = Thread::new(self, number);
            let task = TaskSpec::new(format!("thread/{number}")).on_any(stage.cpus.clone().into());
            stage.machine().spawn(task, move || thread.run());
        }
        stage.machine().wait_until(&self.waiting, || self.ended.get() == self.threads);
        let Parts { huge, all } = self.parts.get();
        if all > 0 {
            let percent = 100.0 * f64::from(huge) / f64::from(all);
            stage.tally.sampled(&format!("huge-{}", self.threads), percent);
        }
        stage.mm.spaces().exit(&self.space);
        stage.mm.files().drop_file(&self.file);
    }

    /// Counts one more in `of`, and waits until all have come.
    fn pass(&self, of: &Cell<u32>) {
        let machine = self.stage.machine();
        machine.sync();
        of.set(of.get() + 1);
        if of.get() == self.threads {
            machine.notify_all(&self.waiting);
        } else {
            machine.wait_until(&self.waiting, || of.get() == self.threads);
        }
    }
}
