//! Workloads of experiments: what programs ask of memory management, written down as tasks of the simulated machine. Each
//! file says what the original does and what was left out. A recording is the other way to a workload
//! ([`crate::workload`]).
//!
//! To add one: a file here with its parameters and a `start` function, and a line in [`WorkloadSpec`].

mod alloc_loop;
mod colocated;
mod dma_devices;
#[cfg(test)]
mod extremes;
mod fragment;
mod hot_pages;
mod kernel_memory;
mod mapping;
mod page_fault;
mod proactive;
mod process_churn;
mod producer_consumer;
mod python_loop;
mod slab;
mod specjbb;
mod stream;
#[cfg(test)]
mod tests;
mod thp_fault;
mod thpscale;

use std::rc::Rc;

use mm::policy::Mechanism;
use serde::Deserialize;
use sim::Sim;

use crate::stage::Stage;

pub use alloc_loop::AllocLoop;
pub use colocated::Colocated;
pub use dma_devices::DmaDevices;
pub use fragment::{Fragment, Fragmented};
pub use hot_pages::HotPages;
pub use kernel_memory::KernelMemory;
pub use page_fault::{FaultKind, PageFault};
pub use proactive::Proactive;
pub use process_churn::ProcessChurn;
pub use producer_consumer::ProducerConsumer;
pub use python_loop::PythonLoop;
pub use slab::{Brk, Hackbench, Ipc, Regions, SlabBulk};
pub use specjbb::Specjbb;
pub use stream::Stream;
pub use thp_fault::ThpFault;
pub use thpscale::Thpscale;

/// How a file's tasks share memory management's structures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each has an address space of its own.
    #[default]
    Processes,
    /// All share one.
    Threads,
}

/// A workload with its parameters, as an experiment file gives them.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// Yafang Shao's Python script.
    PythonLoop(PythonLoop),
    /// will-it-scale's page_fault1 and page_fault2.
    PageFault(PageFault),
    /// Blocks allocated in bulk and freed, in order or at random.
    AllocLoop(AllocLoop),
    /// Messages between tasks on two CPUs.
    ProducerConsumer(ProducerConsumer),
    /// Processes that come and go, as in a build.
    ProcessChurn(ProcessChurn),
    /// Services beside a job that exits with much memory.
    Colocated(Colocated),
    /// will-it-scale's mmap1: a region of anonymous memory comes and goes.
    Mmap1(Regions),
    /// will-it-scale's mmap2: a region of a file.
    Mmap2(Regions),
    /// will-it-scale's brk1: the heap grows by a page and shrinks again.
    Brk1(Brk),
    /// hackbench: messages between many tasks.
    Hackbench(Hackbench),
    /// Slab objects in batches.
    SlabBulk(SlabBulk),
    /// McCalpin's STREAM.
    Stream(Stream),
    /// SPECjbb with several JVMs.
    Specjbb(Specjbb),
    /// 32-bit devices beside a program that fills memory.
    DmaDevices(DmaDevices),
    /// Processes and what the kernel keeps for them.
    KernelMemory(KernelMemory),
    /// mmtests' thpscale.
    Thpscale(Thpscale),
    /// The test of proactive compaction.
    Proactive(Proactive),
    /// David Rientjes' test: ranges of huge pages on fragmented memory.
    ThpFault(ThpFault),
    /// Raghavendra K T's programs: memory on a slow node, used by a statistical model.
    HotPages(HotPages),
}

impl WorkloadSpec {
    /// What it is, in a few words, with the parameters that matter.
    pub fn title(&self) -> String {
        match self {
            Self::PythonLoop(spec) => spec.title(),
            Self::PageFault(spec) => spec.title(),
            Self::AllocLoop(spec) => spec.title(),
            Self::ProducerConsumer(spec) => spec.title(),
            Self::ProcessChurn(spec) => spec.title(),
            Self::Colocated(spec) => spec.title(),
            Self::Mmap1(spec) => spec.title("mmap1"),
            Self::Mmap2(spec) => spec.title("mmap2"),
            Self::Brk1(Brk(spec)) => spec.title("brk1"),
            Self::Hackbench(spec) => spec.title(),
            Self::SlabBulk(spec) => spec.title(),
            Self::Stream(spec) => spec.title(),
            Self::Specjbb(spec) => spec.title(),
            Self::DmaDevices(spec) => spec.title(),
            Self::KernelMemory(spec) => spec.title(),
            Self::Thpscale(spec) => spec.title(),
            Self::Proactive(spec) => spec.title(),
            Self::ThpFault(spec) => spec.title(),
            Self::HotPages(spec) => spec.title(),
        }
    }

    /// The mechanisms that it is there to test: what its rates and times tell of where a metric does not say.
    pub fn tests(&self) -> &'static [Mechanism] {
        match self {
            Self::PythonLoop(_)
            | Self::PageFault(_)
            | Self::AllocLoop(_)
            | Self::ProducerConsumer(_)
            | Self::ProcessChurn(_)
            | Self::Colocated(_) => &[Mechanism::PageLists],
            Self::Mmap1(_) | Self::Mmap2(_) | Self::Brk1(_) | Self::Hackbench(_) | Self::SlabBulk(_) => {
                &[Mechanism::Slabs]
            }
            Self::Stream(_) | Self::Specjbb(_) | Self::DmaDevices(_) | Self::KernelMemory(_) => {
                &[Mechanism::Zonelists]
            }
            Self::Thpscale(_) | Self::ThpFault(_) => &[Mechanism::Compaction, Mechanism::HugePages],
            Self::Proactive(_) => &[Mechanism::Compaction],
            Self::HotPages(_) => &[Mechanism::Promotion],
        }
    }

    /// The same with `by` times less memory, as far as a workload has sizes that scale; rounds become shorter with it.
    #[must_use]
    pub fn shrunk(&self, by: u32) -> Self {
        match self {
            Self::PythonLoop(spec) => Self::PythonLoop(spec.shrunk(by)),
            Self::PageFault(spec) => Self::PageFault(spec.shrunk(by)),
            Self::AllocLoop(spec) => Self::AllocLoop(spec.shrunk(by)),
            // What is on the way is bounded by the sockets, not by memory.
            Self::ProducerConsumer(spec) => Self::ProducerConsumer(spec.clone()),
            Self::ProcessChurn(spec) => Self::ProcessChurn(spec.shrunk(by)),
            Self::Colocated(spec) => Self::Colocated(spec.shrunk(by)),
            // One region, and what sockets hold; what the machine has.
            Self::Mmap1(_)
            | Self::Mmap2(_)
            | Self::Brk1(_)
            | Self::Hackbench(_)
            | Self::Thpscale(_)
            | Self::Proactive(_) => self.clone(),
            Self::SlabBulk(spec) => Self::SlabBulk(spec.shrunk(by)),
            Self::Stream(spec) => Self::Stream(spec.shrunk(by)),
            Self::Specjbb(spec) => Self::Specjbb(spec.shrunk(by)),
            Self::DmaDevices(spec) => Self::DmaDevices(spec.shrunk(by)),
            Self::KernelMemory(spec) => Self::KernelMemory(spec.shrunk(by)),
            Self::ThpFault(spec) => Self::ThpFault(spec.shrunk(by)),
            Self::HotPages(spec) => Self::HotPages(spec.shrunk(by)),
        }
    }

    /// Names of the groups that its tasks are measured in.
    pub fn groups(&self) -> &'static [&'static str] {
        match self {
            Self::Colocated(_) => colocated::GROUPS,
            Self::DmaDevices(_) => dma_devices::GROUPS,
            _ => &["all"],
        }
    }

    /// Starts its tasks; they come to an end when [`Stage::is_over`].
    ///
    /// # Errors
    /// Parameters that cannot be: which, and what they may be.
    pub fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        match self {
            Self::PythonLoop(spec) => spec.start(sim, stage),
            Self::PageFault(spec) => spec.start(sim, stage),
            Self::AllocLoop(spec) => spec.start(sim, stage),
            Self::ProducerConsumer(spec) => spec.start(sim, stage),
            Self::ProcessChurn(spec) => spec.start(sim, stage),
            Self::Colocated(spec) => spec.start(sim, stage),
            Self::Mmap1(spec) | Self::Mmap2(spec) => spec.start(sim, stage),
            Self::Brk1(spec) => spec.start(sim, stage),
            Self::Hackbench(spec) => spec.start(sim, stage),
            Self::SlabBulk(spec) => spec.start(sim, stage),
            Self::Stream(spec) => spec.start(sim, stage),
            Self::Specjbb(spec) => spec.start(sim, stage),
            Self::DmaDevices(spec) => spec.start(sim, stage),
            Self::KernelMemory(spec) => spec.start(sim, stage),
            Self::Thpscale(spec) => spec.start(sim, stage),
            Self::Proactive(spec) => spec.start(sim, stage),
            Self::ThpFault(spec) => spec.start(sim, stage),
            Self::HotPages(spec) => spec.start(sim, stage),
        }
    }
}

/// `value`, if it is in `range`.
///
/// # Errors
/// What it may be.
fn within(name: &str, value: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!("workload: {name} is {value}, but must be from {} to {}", range.start(), range.end()))
}
