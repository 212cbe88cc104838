//! Which objects mmap, munmap and brk allocate and free, step by step, and what differs between kernels. Where each line
//! was measured or read stands in docs/slab-workloads.md.

use mm::version::{Since, Version, at};

/// What a system call does next with slabs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A region's descriptor (vm_area_struct) is allocated, and a lock for it where that has a cache of its own.
    AllocateRegion,
    /// Nodes of the tree of regions are allocated ahead, as many as might be needed: one, then the others in bulk.
    Preallocate,
    /// A new leaf takes the place of the old one, which readers may still look at: it goes after a grace period. The new
    /// one is a node that was preallocated, or is allocated now.
    ReplaceLeaf,
    /// What was preallocated and not needed goes back: all but one in bulk, then that one.
    GiveBack,
    /// The regions to unmap are put on a list, which has nodes like the tree.
    AllocateList,
    /// The region's descriptor goes, and its lock.
    FreeRegion,
    /// The list of regions to unmap goes.
    FreeList,
}

/// A region is mapped where no neighbour can be extended.
pub(super) const MAP: &[Step] = &[Step::AllocateRegion, Step::Preallocate, Step::ReplaceLeaf, Step::GiveBack];
/// The heap grows by a region of its own.
pub(super) const BRK_UP: &[Step] = &[Step::AllocateRegion, Step::ReplaceLeaf];
/// A whole region is unmapped.
pub(super) const UNMAP: &[Step] = &[Step::AllocateList, Step::ReplaceLeaf, Step::FreeRegion, Step::FreeList];

/// What kernels differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kernel {
    /// Bytes of a vm_area_struct.
    pub(super) region_bytes: u32,
    /// Whether a region's lock is an object by itself (vma_lock).
    pub(super) own_lock: bool,
    /// Whether a region is freed only after a grace period.
    pub(super) region_by_rcu: bool,
    /// Nodes preallocated by mmap for a tree of two levels.
    pub(super) preallocated: u32,
    /// Whether a list of one region needs a node.
    pub(super) list_node: bool,
    /// Objects of a sheaf that both caches ask for; 0: none.
    pub(super) sheaf: u32,
}

/// Per-VMA locks, the tree read under RCU, and room made for the worst case: `1 + 3 × levels`.
const V6_4: Kernel = Kernel {
    region_bytes: 176,
    own_lock: true,
    region_by_rcu: true,
    preallocated: 7,
    list_node: true,
    sheaf: 0,
};
/// As many nodes are preallocated as will be needed; a list of one region is a pointer.
const V6_6: Kernel = Kernel { preallocated: 1, list_node: false, ..V6_4 };
/// The lock is part of the region, whose memory is type-safe under RCU, so that it can be freed at once.
const V6_15: Kernel = Kernel { region_bytes: 192, own_lock: false, region_by_rcu: false, ..V6_6 };
/// Sheaves.
const V6_18: Kernel = Kernel { sheaf: 32, ..V6_15 };

const HISTORY: &[Since<Kernel>] = &[
    Since(Version::new(6, 4), V6_4, ""),
    Since(Version::new(6, 6), V6_6, ""),
    Since(Version::new(6, 15), V6_15, ""),
    Since(Version::new(6, 18), V6_18, ""),
];

impl Kernel {
    /// The kernel `version`, such as `6.5`.
    ///
    /// # Errors
    /// It is no version, or one whose calls are not known.
    pub(super) fn of(version: &str) -> Result<Self, String> {
        let known = Version::parse(version).filter(|version| *version >= HISTORY[0].0);
        let kernel = known.map(|version| at(HISTORY, version));
        kernel.ok_or_else(|| {
            format!(
                "workload: kernel is '{version}', but must be a version from {} on, such as 6.5",
                HISTORY[0].0
            )
        })
    }

    /// Whether nodes that wait for a grace period are gathered in sheaves.
    pub(super) const fn gathers_nodes(&self) -> bool {
        self.sheaf > 0
    }

    /// Nodes that a step allocates and frees in the call, and that it leaves to RCU: for tests and tables.
    #[cfg(test)]
    const fn nodes(&self, step: Step) -> (u32, u32, u32) {
        match step {
            Step::AllocateRegion | Step::FreeRegion => (0, 0, 0),
            Step::Preallocate => (self.preallocated, 0, 0),
            Step::ReplaceLeaf => (0, 0, 1),
            Step::GiveBack => (0, self.preallocated - 1, 0),
            Step::AllocateList => (self.list_node as u32, 0, 0),
            Step::FreeList => (0, self.list_node as u32, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes allocated, freed at once, and left to RCU by a round of mmap1.
    fn round(version: &str) -> (u32, u32, u32) {
        let kernel = Kernel::of(version).expect("a version");
        let steps = MAP.iter().chain(UNMAP).map(|&step| kernel.nodes(step));
        let sum = steps.fold((0, 0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1, sum.2 + step.2));
        // The new leaf of munmap was not preallocated.
        (sum.0 + 1, sum.1, sum.2)
    }

    #[test]
    fn a_round_leaves_as_many_nodes_as_it_found() {
        assert_eq!(round("6.5"), (9, 7, 2));
        assert_eq!(round("6.18"), (2, 0, 2), "measured: two nodes allocated, none freed in the call");
        assert_eq!(round("7.2"), round("6.6"));
    }

    #[test]
    fn versions_differ_where_the_history_says() {
        let kernel = |version| Kernel::of(version).unwrap();
        assert!(kernel("6.12").own_lock && !kernel("6.15").own_lock);
        assert_eq!((kernel("6.17").sheaf, kernel("6.18").sheaf), (0, 32));
        let error = Kernel::of("6.1").unwrap_err();
        assert_eq!(error, "workload: kernel is '6.1', but must be a version from 6.4 on, such as 6.5");
        assert!(Kernel::of("newest").is_err());
    }
}
