//! Counters of a cache, under the names of the kernel's SLUB_STATS; a row of them for each CPU.

use crate::ground::{AtomicU64, Relaxed};

macro_rules! events {
    ($($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)+) => {
        /// What is counted. Some happen only under some kernels' rules.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum SlabEvent {
            $($(#[doc = $meaning])+ $variant,)+
        }

        impl SlabEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The kernel's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

events! {
    /// Objects from the CPU slab's own free list.
    AllocFastpath = "alloc_fastpath",
    /// Allocations that needed more than that.
    AllocSlowpath = "alloc_slowpath",
    /// Objects freed to the CPU's own slab.
    FreeFastpath = "free_fastpath",
    /// Frees that needed more than that.
    FreeSlowpath = "free_slowpath",
    /// Of these, frees to a slab that belongs to a CPU.
    FreeFrozen = "free_frozen",
    /// Slabs that a free put on a node's list.
    FreeAddPartial = "free_add_partial",
    /// Slabs that a free took off a node's list, for they were empty.
    FreeRemovePartial = "free_remove_partial",
    /// CPU slabs taken from a node's list.
    AllocFromPartial = "alloc_from_partial",
    /// Slabs from the page allocator.
    AllocSlab = "alloc_slab",
    /// Times that a CPU slab was refilled with what others had freed to it.
    AllocRefill = "alloc_refill",
    /// Times that the CPU slab was of another node than was asked for.
    AllocNodeMismatch = "alloc_node_mismatch",
    /// Slabs given back to the page allocator.
    FreeSlab = "free_slab",
    /// CPU slabs put away for another came up in the meantime.
    CpuslabFlush = "cpuslab_flush",
    /// CPU slabs put away that were full.
    DeactivateFull = "deactivate_full",
    /// Slabs put away that were empty and given back.
    DeactivateEmpty = "deactivate_empty",
    /// Slabs put at the head of a node's list.
    DeactivateToHead = "deactivate_to_head",
    /// Slabs put at its tail.
    DeactivateToTail = "deactivate_to_tail",
    /// Slabs put away to which others had freed.
    DeactivateRemoteFrees = "deactivate_remote_frees",
    /// CPU slabs left behind because all of their objects were handed out.
    DeactivateBypass = "deactivate_bypass",
    /// Slabs of a smaller order than wanted.
    OrderFallback = "order_fallback",
    /// Changes of a slab's word that somebody else was quicker than.
    CmpxchgDoubleFail = "cmpxchg_double_fail",
    /// CPU slabs taken from the CPU's partial slabs.
    CpuPartialAlloc = "cpu_partial_alloc",
    /// Slabs that a free put on the CPU's list of partial ones.
    CpuPartialFree = "cpu_partial_free",
    /// Slabs that came to the CPU's list from a node's.
    CpuPartialNode = "cpu_partial_node",
    /// Times that a CPU's list went to the nodes' lists.
    CpuPartialDrain = "cpu_partial_drain",
    /// Objects from a sheaf.
    AllocPcs = "alloc_cpu_sheaf",
    /// Objects freed to a sheaf.
    FreePcs = "free_cpu_sheaf",
    /// Objects put in a sheaf that waits for a grace period.
    FreeRcuSheaf = "free_rcu_sheaf",
    /// Such frees that found no sheaf.
    FreeRcuSheafFail = "free_rcu_sheaf_fail",
    /// Objects of sheaves given back to slabs.
    SheafFlush = "sheaf_flush",
    /// Objects put in sheaves from slabs.
    SheafRefill = "sheaf_refill",
    /// Sheaves allocated.
    SheafAlloc = "sheaf_alloc",
    /// Sheaves freed.
    SheafFree = "sheaf_free",
    /// Sheaves taken from a barn.
    BarnGet = "barn_get",
    /// Looks into a barn that found none.
    BarnGetFail = "barn_get_fail",
    /// Sheaves put into a barn.
    BarnPut = "barn_put",
    /// Sheaves that a barn had no room for.
    BarnPutFail = "barn_put_fail",
    /// Sheaves lent to a caller that were at hand.
    SheafPrefillFast = "sheaf_prefill_fast",
    /// Those that had to be allocated.
    SheafPrefillSlow = "sheaf_prefill_slow",
    /// Those larger than a sheaf is.
    SheafPrefillOversize = "sheaf_prefill_oversize",
    /// Sheaves brought back to the CPU.
    SheafReturnFast = "sheaf_return_fast",
    /// Those that went to a barn or were flushed.
    SheafReturnSlow = "sheaf_return_slow",
}

impl SlabEvent {
    /// Whether only kernels with sheaves count it.
    pub(super) const fn is_of_sheaves(self) -> bool {
        self as usize >= Self::AllocPcs as usize
    }

    /// Whether only kernels with CPU slabs count it.
    pub(super) const fn is_of_cpu_slabs(self) -> bool {
        matches!(
            self,
            Self::FreeFrozen
                | Self::AllocFromPartial
                | Self::AllocRefill
                | Self::CpuslabFlush
                | Self::DeactivateFull
                | Self::DeactivateEmpty
                | Self::DeactivateToHead
                | Self::DeactivateToTail
                | Self::DeactivateRemoteFrees
                | Self::DeactivateBypass
                | Self::CpuPartialAlloc
                | Self::CpuPartialFree
                | Self::CpuPartialNode
                | Self::CpuPartialDrain
        )
    }
}

/// A CPU's counters of a cache.
#[derive(Debug)]
pub(super) struct SlabStats([AtomicU64; SlabEvent::COUNT]);

impl Default for SlabStats {
    fn default() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl SlabStats {
    #[inline]
    pub(super) fn add(&self, event: SlabEvent, count: u32) {
        self.0[event as usize].fetch_add(u64::from(count), Relaxed);
    }

    pub(super) fn get(&self, event: SlabEvent) -> u64 {
        self.0[event as usize].load(Relaxed)
    }
}
