//! Workloads of the slab allocator: system calls and messages, as far as the objects go that they allocate and free, and a
//! loop over caches alone. What each step was measured or read from stands in docs/slab-workloads.md.

mod bulk;
mod calls;
mod hackbench;
mod objects;
mod regions;
#[cfg(test)]
mod tests;

use super::workload::WorkloadKind;

/// All of them.
pub(super) const KINDS: [WorkloadKind; 5] =
    [regions::MMAP1, regions::MMAP2, regions::BRK1, hackbench::KIND, bulk::KIND];
