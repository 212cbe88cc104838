//! What a workload brings with it for knobs to act on.

use crate::workload::{Action, Workload};
use crate::workloads::WorkloadSpec;

/// What a workload asks of memory management, beside single pages.
#[expect(clippy::struct_excessive_bools, reason = "each is there or not, whatever the others are")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Brings {
    /// Slab objects.
    pub slabs: bool,
    /// Address spaces, whose pages come by faults and can be reclaimed, moved and put together.
    pub spaces: bool,
    /// Files that are written to.
    pub files: bool,
    /// Address spaces that are looked through for pages in use, so that these can be promoted.
    pub programs: bool,
    /// The vmstat tick and the other daemons. Threads on real cores have none (`bench contention`).
    pub daemons: bool,
    /// Whether it is a recording, in which there is nothing but what was asked of the allocators.
    pub is_recording: bool,
}

impl Brings {
    /// What a recording brings.
    pub fn of_recording(workload: &Workload) -> Self {
        let is_slab = |action: &Action| matches!(action, Action::AllocObject { .. });
        let slabs = workload.tasks.iter().flat_map(|task| &task.ops).any(|op| is_slab(&op.action));
        Self { slabs, daemons: true, is_recording: true, ..Self::default() }
    }

    /// What a workload of an experiment brings.
    pub fn of_workload(spec: &WorkloadSpec) -> Self {
        let pages = Self { daemons: true, ..Self::default() };
        let slabs = Self { slabs: true, ..pages };
        let spaces = Self { spaces: true, ..pages };
        match spec {
            WorkloadSpec::PythonLoop(_)
            | WorkloadSpec::PageFault(_)
            | WorkloadSpec::AllocLoop(_)
            | WorkloadSpec::ProducerConsumer(_)
            | WorkloadSpec::ProcessChurn(_)
            | WorkloadSpec::Colocated(_)
            | WorkloadSpec::Stream(_) => pages,
            WorkloadSpec::Mmap1(_)
            | WorkloadSpec::Mmap2(_)
            | WorkloadSpec::Brk1(_)
            | WorkloadSpec::Hackbench(_)
            | WorkloadSpec::SlabBulk(_) => slabs,
            WorkloadSpec::Specjbb(_) | WorkloadSpec::Proactive(_) | WorkloadSpec::ThpFault(_) => spaces,
            WorkloadSpec::DmaDevices(_) | WorkloadSpec::KernelMemory(_) | WorkloadSpec::Thpscale(_) => {
                Self { files: true, ..spaces }
            }
            WorkloadSpec::HotPages(_) => Self { programs: true, ..spaces },
        }
    }
}
