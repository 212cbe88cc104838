//! Counters under vmstat's names. A CPU keeps its changes of a zone's free pages to itself until they pass a threshold,
//! as the kernel does; events are counted where a lock is held anyway.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use crate::ground::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Relaxed, ZoneKind};

/// Events of page allocation, counted under a pageset's or a zone's lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    /// Pages allocated.
    pub(crate) pgalloc: u64,
    /// Pages freed.
    pub(crate) pgfree: u64,
    /// Requests served by the node that they preferred.
    pub(crate) numa_hit: u64,
    /// Requests that preferred another node.
    pub(crate) numa_miss: u64,
    /// Requests from a CPU of this node.
    pub(crate) numa_local: u64,
    /// Requests from a CPU of another node.
    pub(crate) numa_other: u64,
}

impl Events {
    pub(crate) fn add(&mut self, other: &Self) {
        self.pgalloc += other.pgalloc;
        self.pgfree += other.pgfree;
        self.numa_hit += other.numa_hit;
        self.numa_miss += other.numa_miss;
        self.numa_local += other.numa_local;
        self.numa_other += other.numa_other;
    }
}

/// Events of the slow path, too rare to need a place of their own per CPU.
#[derive(Debug, Default)]
pub(crate) struct SlowEvents {
    /// Requests that entered direct reclaim.
    pub(crate) allocstall: AtomicU64,
    /// Times that kswapd was woken.
    pub(crate) kswapd_wakes: AtomicU64,
    /// Requests that failed.
    pub(crate) failed: AtomicU64,
    /// Times that all pagesets were drained.
    pub(crate) drain_all: AtomicU64,
    /// Blocks of another type taken whole.
    pub(crate) claims: AtomicU64,
    /// Single allocations from a block of another type.
    pub(crate) steals: AtomicU64,
    /// Whole ranges that moved from one arena to another.
    pub(crate) borrowed: AtomicU64,
}

impl SlowEvents {
    pub(crate) fn bump(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}

/// The counters of a zone that are read without its lock.
#[derive(Debug, Default)]
pub(crate) struct ZoneStat {
    free_pages: AtomicI64,
    /// Of those on free lists, pages of blocks that a huge page fits into.
    free_large: AtomicI64,
    free_highatomic: AtomicI64,
    /// Pages of pageblocks reserved for atomic high-order requests.
    reserved_highatomic: AtomicU32,
    /// Requests that preferred this zone and were served elsewhere.
    pub(in crate::pages) numa_foreign: AtomicU64,
    /// Pages that a memory policy put on this node because it was its turn.
    pub(in crate::pages) numa_interleave: AtomicU64,
    pub(in crate::pages) slow: SlowEvents,
}

impl ZoneStat {
    /// What happens rarely.
    pub(crate) fn slow(&self) -> &SlowEvents {
        &self.slow
    }

    /// A memory policy put a page on this node because it was its turn.
    pub(crate) fn count_interleaved(&self) {
        SlowEvents::bump(&self.numa_interleave);
    }

    /// Pages that a memory policy put on this node because it was its turn.
    pub(crate) fn interleaved(&self) -> u64 {
        self.numa_interleave.load(Relaxed)
    }

    /// Requests that preferred this zone and were served elsewhere.
    pub(crate) fn foreign(&self) -> u64 {
        self.numa_foreign.load(Relaxed)
    }

    #[inline]
    pub(crate) fn free_pages(&self) -> u32 {
        self.free_pages.load(Relaxed).max(0) as u32
    }

    /// The counter itself: below zero while a CPU holds back frees of pages whose allocation another has told.
    pub(crate) fn free_pages_signed(&self) -> i64 {
        self.free_pages.load(Relaxed)
    }

    /// Free pages in blocks that a huge page fits into.
    pub(crate) fn free_large(&self) -> u32 {
        self.free_large.load(Relaxed).max(0) as u32
    }

    pub(crate) fn add_large(&self, pages: i64) {
        self.free_large.fetch_add(pages, Relaxed);
    }

    #[inline]
    pub(crate) fn free_highatomic(&self) -> u32 {
        self.free_highatomic.load(Relaxed).max(0) as u32
    }

    /// Pages of pageblocks that are reserved for atomic requests of higher orders.
    pub(crate) fn reserved_highatomic(&self) -> u32 {
        self.reserved_highatomic.load(Relaxed)
    }

    pub(crate) fn add_highatomic(&self, pages: i64) {
        self.free_highatomic.fetch_add(pages, Relaxed);
    }

    /// Adds `pages` to the free pages, through the CPU's own `diff` while that stays within `threshold`.
    #[inline]
    pub(crate) fn add_free(&self, diff: &AtomicI32, threshold: i32, pages: i32) {
        let sum = diff.fetch_add(pages, Relaxed) + pages;
        if sum.abs() > threshold {
            self.fold(diff);
        }
    }

    /// All `pages` are free, and no CPU holds a difference back.
    pub(crate) fn reset_free(&self, pages: u32) {
        self.free_pages.store(i64::from(pages), Relaxed);
    }

    /// Moves a CPU's own `diff` to the zone's counter; says whether there was any.
    pub(crate) fn fold(&self, diff: &AtomicI32) -> bool {
        let held_back = diff.swap(0, Relaxed);
        if held_back != 0 {
            self.free_pages.fetch_add(i64::from(held_back), Relaxed);
        }
        held_back != 0
    }

    /// Adds `pages` to those reserved for atomic requests, unless there are `most` already; says whether it did.
    pub(crate) fn reserve_highatomic(&self, pages: u32, most: u32) -> bool {
        let reserve = |now| if now < most { Some(now + pages) } else { None };
        self.reserved_highatomic.fetch_update(Relaxed, Relaxed, reserve).is_ok()
    }

    /// Takes `pages` from those reserved for atomic requests.
    pub(crate) fn unreserve_highatomic(&self, pages: u32) {
        let unreserve = |now: u32| Some(now.saturating_sub(pages));
        // The closure never declines.
        let _ = self.reserved_highatomic.fetch_update(Relaxed, Relaxed, unreserve);
    }
}

/// By how many pages a CPU's count of a zone may differ before it is folded in; `managed` in pages.
/// (The kernel's `calculate_normal_threshold`; equal to "vm stats threshold" in the captures.)
pub fn stat_threshold(online_cpus: usize, managed: u32) -> i32 {
    let bits = |value: u32| (u32::BITS - value.leading_zeros()) as i32;
    let mem_128m = managed >> 15;
    (2 * bits(online_cpus as u32) * (1 + bits(mem_128m))).min(125)
}

/// Counters by vmstat's names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    pub(crate) fn add(&mut self, name: &str, value: u64) {
        *self.0.entry(name.to_string()).or_default() += value;
    }

    pub(crate) fn add_zone(&mut self, name: &str, kind: ZoneKind, value: u64) {
        let kind = match kind {
            ZoneKind::Dma => "dma",
            ZoneKind::Dma32 => "dma32",
            ZoneKind::Normal => "normal",
            ZoneKind::HighMem => "high",
            ZoneKind::Movable => "movable",
        };
        self.add(&format!("{name}_{kind}"), value);
    }

    /// The counter `name`; 0 if nothing was counted under it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_the_captures() {
        // linux-6.18-c4-4n-2G: DMA and DMA32 of node 0.
        assert_eq!(stat_threshold(4, 3840), 6);
        assert_eq!(stat_threshold(4, 484_775), 30);
    }

    #[test]
    fn a_small_change_stays_with_the_cpu() {
        let (stat, diff) = (ZoneStat::default(), AtomicI32::new(0));
        stat.add_free(&diff, 30, 30);
        assert_eq!(stat.free_pages(), 0);
        stat.add_free(&diff, 30, 1);
        assert_eq!(stat.free_pages(), 31);
        stat.add_free(&diff, 30, -5);
        assert!(stat.fold(&diff));
        assert!(!stat.fold(&diff));
        assert_eq!(stat.free_pages(), 26);
    }
}
