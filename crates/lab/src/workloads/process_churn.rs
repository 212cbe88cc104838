//! Processes that come, run and go, as in the build of a kernel (kbuild) or of any large program: `jobs` of them at a
//! time. Each faults in memory in bursts, computes, has the kernel allocate small blocks for it (page tables are counted
//! apart), and exits, which frees all of it. The next process of the job is a new one, that starts on the idlest CPU.
//!
//! Sizes are drawn from the seed so that every doubling between the least and the greatest is as likely: a build starts
//! many small processes (shells, make, fixdep) and a few large ones (the compiler proper, the linker).
//!
//! Left out: files (the page cache that outputs stay in, reading sources), pages that parent and child share, pipes,
//! migration of a process while it runs, and slab caches: their pages are allocated, their objects are not.

use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{Machine, Nanos, Order, Pfn, Request};
use serde::Deserialize;
use sim::{Path, Sim, TaskSpec};

use super::mapping::{Backing, Mapping, get};
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// Parameters of the processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessChurn {
    /// Processes at a time, from 1.
    pub jobs: u32,
    /// Memory of the smallest process, KiB, from 4.
    pub kib_min: u32,
    /// Memory of the largest, KiB.
    pub kib_max: u32,
    /// What a process computes for each page that it faults in, us.
    pub us_per_page: u32,
    /// Pages that it faults in at a stretch, from 1.
    /// malloc takes 132 KiB at a time from the kernel.
    #[serde(default = "number::<32>")]
    pub burst_pages: u32,
    /// Blocks of order 0 and 1, in turn, that the kernel allocates on its behalf, for each 100 pages.
    #[serde(default = "number::<10>")]
    pub slab_percent: u32,
    /// Time between two processes of a job, us; half to one and a half of it.
    #[serde(default = "number::<500>")]
    pub gap_us: u32,
}

/// Blocks that one free of a slab's pages comes with.
type Slab = Vec<(Pfn, Order)>;

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "process-churn",
    tests: &[Mechanism::PageLists],
    brings: Brings::PAGES,
    groups: &["all"],
    read: WorkloadKind::read::<ProcessChurn>,
    smallest: &["jobs = 1\nkib_min = 4\nkib_max = 4\nus_per_page = 0\nburst_pages = 1\ngap_us = 0\n"],
    largest: &["jobs = 1\nkib_min = 4\nkib_max = 1073741824\nus_per_page = 0\nburst_pages = 1048576\n"],
};

impl Workload for ProcessChurn {
    fn title(&self) -> String {
        format!("{} processes at a time, of {} to {} KiB", self.jobs, self.kib_min, self.kib_max)
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self {
            kib_min: (self.kib_min / by).max(4),
            kib_max: (self.kib_max / by).max(4),
            ..*self
        }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("jobs", self.jobs.into(), 1..=100_000)?;
        within("kib_min", self.kib_min.into(), 4..=1 << 30)?;
        within("kib_max", self.kib_max.into(), self.kib_min.into()..=1 << 30)?;
        within("burst_pages", self.burst_pages.into(), 1..=1 << 20)?;
        within("slab_percent", self.slab_percent.into(), 0..=100)?;
        let cpus: Rc<[mm::Cpu]> = stage.cpus.as_slice().into();
        for number in 0..self.jobs {
            let mut random = Random::new(stage.machine());
            // Jobs begin at different points of what a process of middling size does.
            let start = random.time_below(Nanos(u64::from(self.kib_max / 8) * self.page_ns()));
            let job = Job { stage: Rc::clone(stage), spec: *self, number, cpus: Rc::clone(&cpus) };
            let task = job.task(start);
            sim.spawn(task, move || job.process(random));
        }
        Ok(())
    }
}

impl ProcessChurn {
    const fn page_ns(self) -> u64 {
        self.us_per_page as u64 * 1000
    }

    /// Pages of the next process: a doubling of the least size at random, then a size within it.
    fn pages(self, random: &mut Random) -> usize {
        let (least, most) = (u64::from(self.kib_min / 4), u64::from(self.kib_max / 4));
        let doublings = u64::from((most / least).ilog2());
        if doublings == 0 {
            return (least + random.below(most - least + 1)) as usize;
        }
        let from = least << random.below(doublings);
        (from + random.below(from)) as usize
    }
}

/// One of `make`'s jobs: process after process.
struct Job {
    stage: Rc<Stage>,
    spec: ProcessChurn,
    number: u32,
    cpus: Rc<[mm::Cpu]>,
}

impl Job {
    fn task(&self, start: Nanos) -> TaskSpec {
        TaskSpec::new(format!("job/{}", self.number)).on_any(Rc::clone(&self.cpus)).at(start)
    }

    /// A process from start to exit, then the next one.
    fn process(self, mut random: Random) {
        let stage = &*self.stage;
        let pages = self.spec.pages(&mut random);
        let mut mapping = Mapping::new(stage, Backing::Anonymous, pages);
        let mut slab: Slab = vec![];
        let mut left = pages;
        while left > 0 && !stage.is_over() {
            let burst = left.min(self.spec.burst_pages as usize);
            if !self.burst(burst, &mut mapping, &mut slab) {
                break;
            }
            left -= burst;
        }
        let served = left == 0;
        mapping.unmap(stage);
        for (pfn, order) in slab {
            stage.mm.free(pfn, order).expect("an exit frees only what the process had");
            stage.tally.gave(order.pages());
        }
        if served && !stage.is_over() {
            let gap = u64::from(self.spec.gap_us) * 1000;
            let start = Nanos(stage.machine().now().0 + gap / 2 + random.below(gap + 1));
            let machine = stage.machine().clone();
            machine.spawn(self.task(start), move || self.process(random));
        }
    }

    /// Faults `pages` in and computes on them. False if there is no memory.
    fn burst(&self, pages: usize, mapping: &mut Mapping, slab: &mut Slab) -> bool {
        let (stage, spec) = (&*self.stage, self.spec);
        let faulted = (0..pages).all(|_| mapping.fault(stage));
        // As many as are due for all pages so far, so that none are lost to rounding.
        let due = mapping.pages().len() * spec.slab_percent as usize / 100;
        while slab.len() < due {
            let order = if slab.len() % 2 == 0 { Order::ZERO } else { Order::new(1).expect("order 1") };
            stage.machine().charge(Path::Syscall);
            let Some(pfn) = get(stage, Request::KERNEL.of_order(order)) else { return false };
            slab.push((pfn, order));
        }
        stage.machine().compute(Nanos(pages as u64 * spec.page_ns()));
        faulted
    }
}
