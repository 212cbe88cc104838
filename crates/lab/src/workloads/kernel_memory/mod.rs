//! Processes and what the kernel keeps for them: page tables, kernel objects, metadata of file systems. On a 32-bit
//! machine all of that must be low memory, which is what docs/published.md#gorman-2014 keeps zone order for: "processes
//! on node 0 will deplete the Normal zone due to normal activity".
//!
//! Each process takes its anonymous memory when it starts, and the kernel has stacks and small objects for it. Then it works for
//! a while: it touches a segment of shared memory that all have (a database's buffers), a page here and there, so that in time
//! each has page tables for all of it; and it reads and writes a file of data, and metadata beside it. Then it exits, and
//! another one starts. A process that cannot get memory ends, as one that is killed does, and is counted: `processes_killed`,
//! and `processes_done` are those that worked to their end. An operation is a round of work.
//!
//! Left out: the segment's contents, forking, stacks and code of the program, slab caches (the kernel's objects are pages here).

mod process;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use mm::Cpu;
use mm::policy::Mechanism;
use mm::vm::FileKind;
use serde::Deserialize;
use sim::{Sim, TaskSpec};

use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

use process::{Files, Process};

/// All processes start within this time.
const START: mm::Nanos = mm::Nanos(2_000_000_000);

/// Parameters of the processes.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelMemory {
    /// Processes at a time, from 1.
    pub processes: u32,
    /// Nodes whose CPUs they run on.
    pub nodes: Vec<u16>,
    /// Anonymous memory of each, MiB, from 1.
    pub anon_mib: u32,
    /// The segment that all share, MiB; 0 for none. A process comes to have a page table for each 2 MiB of it.
    #[serde(default)]
    pub shared_mib: u32,
    /// What the kernel keeps for each, KiB: stacks and small objects.
    /// Two pages of stack, task, files, sockets, names and inodes: an estimate.
    #[serde(default = "number::<256>")]
    pub kernel_kib: u32,
    /// The file of data, MiB, from 1.
    pub file_mib: u32,
    /// Metadata of the file system that it is in, MiB, from 1.
    pub metadata_mib: u32,
    /// Of a hundred pieces of data, how many are written and not read.
    #[serde(default = "number::<50>")]
    pub write_percent: u32,
    /// How long a process works when it has its memory, ms; half to one and a half of it.
    #[serde(default = "number::<2000>")]
    pub life_ms: u32,
    /// What the disk moves, MB a second, from 1.
    /// A disk of the early 2000s: an estimate.
    #[serde(default = "number::<50>")]
    pub disk_mb_per_second: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "kernel-memory",
    tests: &[Mechanism::Zonelists],
    brings: Brings::FILES,
    groups: &["all"],
    read: WorkloadKind::read::<KernelMemory>,
    smallest: &[
        "processes = 1\nnodes = [0]\nanon_mib = 1\nkernel_kib = 0\nfile_mib = 1\nmetadata_mib = 1\nlife_ms = 1\ndisk_mb_per_second = 1\n",
    ],
    largest: &[],
};

impl Workload for KernelMemory {
    fn title(&self) -> String {
        format!(
            "{} processes of {} MiB and {} MiB shared, with {} KiB of the kernel's each, a file of {} MiB",
            self.processes, self.anon_mib, self.shared_mib, self.kernel_kib, self.file_mib
        )
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        let part = |mib: u32| (mib / by).max(1);
        Some(Arc::new(Self {
            anon_mib: part(self.anon_mib),
            shared_mib: self.shared_mib / by,
            file_mib: part(self.file_mib),
            metadata_mib: part(self.metadata_mib),
            ..self.clone()
        }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("processes", self.processes.into(), 1..=100_000)?;
        within("anon_mib", self.anon_mib.into(), 1..=1 << 22)?;
        within("shared_mib", self.shared_mib.into(), 0..=1 << 22)?;
        within("kernel_kib", self.kernel_kib.into(), 0..=1 << 30)?;
        within("file_mib", self.file_mib.into(), 1..=1 << 22)?;
        within("metadata_mib", self.metadata_mib.into(), 1..=1 << 22)?;
        within("write_percent", self.write_percent.into(), 0..=100)?;
        within("life_ms", self.life_ms.into(), 1..=1_000_000)?;
        within("disk_mb_per_second", self.disk_mb_per_second.into(), 1..=1 << 20)?;
        let cpus = self.cpus(stage)?;
        stage.disk.set_speed(self.disk_mb_per_second);
        stage.tasks.set(self.processes);
        for name in process::NOTES {
            stage.tally.note(name, 0);
        }
        let files = Rc::new(Files {
            data: stage.mm.files().new_file(FileKind::Disk),
            metadata: stage.mm.files().new_file(FileKind::Metadata),
            shared: stage.mm.files().new_file(FileKind::Memory),
        });
        for number in 0..self.processes {
            let mut random = Random::new(stage.machine());
            let start = random.time_below(START);
            let task = TaskSpec::new(format!("process/{number}")).on_any(Rc::clone(&cpus)).at(start);
            let process = Process::new(self, Rc::clone(stage), Rc::clone(&files), random);
            sim.spawn(task, move || process.run());
        }
        Ok(())
    }
}

impl KernelMemory {
    fn cpus(&self, stage: &Stage) -> Result<Rc<[Cpu]>, String> {
        let on = |cpu: &&Cpu| self.nodes.contains(&stage.places[usize::from(cpu.0)].node);
        let cpus: Rc<[Cpu]> = stage.cpus.iter().filter(on).copied().collect();
        if cpus.is_empty() {
            return Err(format!("workload: nodes is {:?}, but none of them has a CPU to run on", self.nodes));
        }
        Ok(cpus)
    }
}
