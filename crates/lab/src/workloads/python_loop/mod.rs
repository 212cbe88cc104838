//! Yafang Shao's script (docs/published.md#shao-2024), in so many processes:
//!
//! ```python
//! while True:
//!     mm = mmap.mmap(-1, size)
//!     mm[:] = b'\xff' * size
//!     mm.close()
//! ```
//!
//! Each round maps `size` bytes of shared memory, builds a private bytes object of the same size (`malloc` maps it; the
//! interpreter fills it), copies it over page by page, frees the object when the statement ends, and closes the mapping,
//! whose pages go with the file behind it. So twice `size` comes and goes in each round. Left out: the interpreter's own
//! memory, and what the kernel allocates besides pages and page tables.
//!
//! Free lists grow old over many rounds, and refills slow with them. [`age`] has rounds pass before the clock starts.

mod age;

use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{Nanos, Order};
use serde::Deserialize;
use sim::{Path, Sim, TaskSpec, Traffic};

use super::mapping::{Backing, Mapping};
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// Parameters of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PythonLoop {
    /// Processes that run it, from 1.
    pub processes: u32,
    /// Size of the mapping, MiB, from 1.
    pub mib: u32,
    /// Processes start at random within this time, ms.
    #[serde(default = "number::<1000>")]
    pub stagger_ms: u32,
    /// Rounds that each has behind it when the clock starts. Above 0 all are in the middle of one then, and go on.
    #[serde(default)]
    pub rounds_before: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "python-loop",
    tests: &[Mechanism::PageLists],
    brings: Brings::PAGES,
    groups: &["all"],
    read: WorkloadKind::read::<PythonLoop>,
    smallest: &["processes = 1\nmib = 1\nstagger_ms = 0\n"],
    largest: &[],
};

#[cfg(test)]
impl From<PythonLoop> for crate::workloads::WorkloadSpec {
    fn from(loops: PythonLoop) -> Self {
        Self { kind: &KIND, workload: Arc::new(loops) }
    }
}

impl Workload for PythonLoop {
    fn title(&self) -> String {
        format!("python loop, {} processes of {} MiB", self.processes, self.mib)
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { mib: (self.mib / by).max(1), stagger_ms: self.stagger_ms / by, ..*self }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("processes", self.processes.into(), 1..=100_000)?;
        within("mib", self.mib.into(), 1..=1 << 24)?;
        within("rounds_before", self.rounds_before.into(), 0..=1000)?;
        let begun = age::age(*self, stage)?;
        for (number, round) in (0..self.processes).zip(begun) {
            let (stage, spec) = (Rc::clone(stage), *self);
            let mut random = Random::new(stage.machine());
            let stagger = if round.is_some() { 0 } else { self.stagger_ms };
            let start = random.time_below(Nanos(u64::from(stagger) * 1_000_000));
            let task = TaskSpec::new(format!("python/{number}")).on(stage.cpu(number)).at(start);
            sim.spawn(task, move || {
                let mut goes_on = round.is_none_or(|round| round.finish(&stage));
                while goes_on && !stage.is_over() {
                    goes_on = Round::new(&stage, spec.pages()).finish(&stage);
                }
            });
        }
        Ok(())
    }
}

impl PythonLoop {
    /// Pages of a mapping.
    const fn pages(self) -> usize {
        self.mib as usize * 256
    }
}

/// A round: how far it is shows in its mappings' pages.
struct Round {
    shared: Mapping,
    object: Mapping,
    pages: usize,
}

impl Round {
    fn new(stage: &Stage, pages: usize) -> Self {
        let shared = Mapping::new(stage, Backing::Shared, pages);
        let object = Mapping::new(stage, Backing::Anonymous, pages);
        Self { shared, object, pages }
    }

    /// Goes on to its end; false if memory ran out.
    fn finish(mut self, stage: &Stage) -> bool {
        let copied = self.object.is_going() || self.work(stage);
        self.object.unmap(stage);
        self.shared.unmap(stage);
        copied
    }

    /// Until both mappings are full; false if memory ran out or time is over.
    fn work(&mut self, stage: &Stage) -> bool {
        while self.object.pages().len() < self.pages {
            if stage.is_over() || !self.fill(stage) {
                return false;
            }
        }
        while self.shared.pages().len() < self.pages {
            if stage.is_over() || !self.copy(stage) {
                return false;
            }
        }
        true
    }

    /// The interpreter fills a page of the object: the kernel has just cleared it, so it is in the caches.
    #[inline]
    fn fill(&mut self, stage: &Stage) -> bool {
        let got = self.object.fault(stage);
        stage.machine().charge(Path::RewritePage);
        got
    }

    /// A page of the object goes to the shared mapping: the source comes from memory, the target is in the caches.
    #[inline]
    fn copy(&mut self, stage: &Stage) -> bool {
        let source = self.object.pages()[self.shared.pages().len()];
        let got = self.shared.fault(stage);
        stage.machine().stream(source, Order::ZERO, Traffic::Read);
        stage.machine().charge(Path::RewritePage);
        got
    }
}
