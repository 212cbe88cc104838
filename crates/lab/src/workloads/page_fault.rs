//! will-it-scale's page_fault1 and page_fault2: a task maps 128 MiB, writes one byte to each page, unmaps, and begins
//! anew. page_fault1 maps anonymous memory; page_fault2 a private view of a file, so that each write copies a page of the
//! page cache. As processes, or as threads of one address space, which take its lock to map and to unmap. Shared
//! anonymous memory is a kind of our own, for `validate`.
//!
//! Left out: page_fault2's own file reads (the page cache stays in place), contention on page tables and on the file's
//! reference counts, and the part of munmap that holds the address space's lock for reading only.

use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{LockClass, Machine, Nanos};
use serde::Deserialize;
use sim::{Sim, SimLock, TaskSpec};

use super::mapping::{Backing, Mapping};
use super::workload::Sharing;
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, WorkloadSpec, number, within};

/// What is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// page_fault1: private anonymous memory.
    #[default]
    Anonymous,
    /// page_fault2: a private mapping of a file.
    File,
    /// Shared anonymous memory.
    Shared,
}

/// Parameters of page_fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageFault {
    /// Tasks, from 1.
    pub tasks: u32,
    /// Processes or threads.
    #[serde(default)]
    pub sharing: Sharing,
    /// What is mapped.
    #[serde(default)]
    pub memory: FaultKind,
    /// Size of the mapping, MiB, from 1.
    #[serde(default = "number::<128>")]
    pub mib: u32,
}

/// Tasks start within the time of the first few faults, so that they never run in step.
const STAGGER: Nanos = Nanos(10_000_000);

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "page-fault",
    tests: &[Mechanism::PageLists],
    brings: Brings::PAGES,
    groups: &["all"],
    read: WorkloadKind::read::<PageFault>,
    smallest: &["tasks = 1\nmib = 1\n"],
    largest: &[],
};

impl From<PageFault> for WorkloadSpec {
    fn from(faults: PageFault) -> Self {
        Self { kind: &KIND, workload: Arc::new(faults) }
    }
}

impl Workload for PageFault {
    fn title(&self) -> String {
        let name = match self.memory {
            FaultKind::Anonymous => "page_fault1",
            FaultKind::File => "page_fault2",
            FaultKind::Shared => "page_fault, shared memory",
        };
        let sharing = match self.sharing {
            Sharing::Processes => "processes",
            Sharing::Threads => "threads",
        };
        format!("{name}, {} {sharing} of {} MiB", self.tasks, self.mib)
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { mib: (self.mib / by).max(1), ..*self }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("tasks", self.tasks.into(), 1..=100_000)?;
        within("mib", self.mib.into(), 1..=1 << 24)?;
        let one = stage.machine().new_lock(LockClass::Other, 1);
        for number in 0..self.tasks {
            let (stage, spec) = (Rc::clone(stage), *self);
            let lock = match self.sharing {
                Sharing::Threads => one,
                Sharing::Processes => stage.machine().new_lock(LockClass::Other, 2 + number),
            };
            let start = Random::new(stage.machine()).time_below(STAGGER);
            let task = TaskSpec::new(format!("page_fault/{number}")).on(stage.cpu(number)).at(start);
            sim.spawn(task, move || while !stage.is_over() && spec.round(&stage, lock) {});
        }
        Ok(())
    }
}

impl PageFault {
    /// One round; false if memory ran out.
    fn round(self, stage: &Stage, address_space: SimLock) -> bool {
        let machine = stage.machine();
        let pages = self.mib as usize * 256;
        machine.lock(&address_space);
        let mut mapping = Mapping::new(stage, self.backing(), pages);
        machine.unlock(&address_space);
        let filled = (0..pages).all(|_| !stage.is_over() && mapping.fault(stage));
        // Detaching the mapping is what needs the address space to itself.
        machine.lock(&address_space);
        machine.charge(sim::Path::Syscall);
        machine.unlock(&address_space);
        mapping.unmap(stage);
        filled
    }

    const fn backing(self) -> Backing {
        match self.memory {
            FaultKind::Anonymous => Backing::Anonymous,
            FaultKind::File => Backing::CopyOnWrite,
            FaultKind::Shared => Backing::Shared,
        }
    }
}
