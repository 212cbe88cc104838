//! Reading the counters of the whole machine under vmstat's names, and how much memory is where.

use super::{ViewsDoor, ViewsGround};
use crate::ground::{Machine, Relaxed};
use crate::pages::{Counters, Events, Zone};

/// Where memory is, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// Pages that the allocator got at boot.
    pub managed: u64,
    /// On the buddy lists.
    pub free: u64,
    /// On CPUs' pagesets.
    pub pcp: u64,
}

impl MemoryUse {
    /// Pages handed out. Lists are read one after the other, so pages that a refill moves meanwhile are seen on both sides: 0 if that
    /// is more than is handed out.
    pub fn held(self) -> u64 {
        self.managed.saturating_sub(self.free + self.pcp)
    }
}

impl<M: Machine, G: ViewsGround<M>> ViewsDoor<'_, M, G> {
    /// All counters. Takes every lock once, one after the other.
    pub fn counters(self) -> Counters {
        let mut counters = Counters::default();
        for zone in self.zones() {
            let events = self.zone_events(zone);
            counters.add("nr_free_pages", zone.free_pages_exact());
            counters.add("nr_free_pages_blocks", u64::from(zone.stat().free_large()));
            counters.add("numa_hit", events.numa_hit);
            counters.add("numa_miss", events.numa_miss);
            counters.add("numa_foreign", zone.stat().foreign());
            counters.add("numa_interleave", zone.stat().interleaved());
            counters.add("numa_local", events.numa_local);
            counters.add("numa_other", events.numa_other);
            counters.add_zone("pgalloc", zone.kind(), events.pgalloc);
            counters.add_zone("allocstall", zone.kind(), zone.stat().slow().allocstall.load(Relaxed));
            counters.add("pgfree", events.pgfree);
            counters.add("pageoutrun", zone.stat().slow().kswapd_wakes.load(Relaxed));
            self.lru().add_counters(zone, &mut counters);
            zone.count_low(&mut counters);
            self.compaction().add_counters(zone.id(), &mut counters);
            counters.add("freehold_alloc_failed", zone.stat().slow().failed.load(Relaxed));
            counters.add("freehold_drain_all", zone.stat().slow().drain_all.load(Relaxed));
            counters.add("freehold_pageblock_claims", zone.stat().slow().claims.load(Relaxed));
            counters.add("freehold_pageblock_steals", zone.stat().slow().steals.load(Relaxed));
            counters.add("freehold_ranges_borrowed", zone.stat().slow().borrowed.load(Relaxed));
        }
        self.lru().add_group_counters(&mut counters);
        self.spaces().count_vm(&mut counters);
        self.reclaim().add_counters(&mut counters);
        counters.add("freehold_oom", self.own().count());
        counters
    }

    /// What was counted for `zone` on all CPUs.
    pub(crate) fn zone_events(self, zone: &Zone<M>) -> Events {
        let mut events = Events::default();
        for free in zone.arenas().all() {
            events.add(free.lock(self.machine()).events());
        }
        for pageset in zone.pagesets() {
            events.add(pageset.pcp().lock(self.machine()).events());
        }
        events
    }

    /// Where memory is now.
    pub fn memory_use(self) -> MemoryUse {
        let mut memory = MemoryUse::default();
        for zone in self.zones() {
            memory.managed += u64::from(zone.managed());
            memory.free += zone.free_pages_exact();
            for pageset in zone.pagesets() {
                memory.pcp += u64::from(pageset.pcp().lock(self.machine()).count());
            }
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_seen_on_both_sides_are_not_held() {
        let held = |free, pcp| MemoryUse { managed: 100, free, pcp }.held();
        assert_eq!((held(60, 30), held(80, 20), held(80, 63)), (10, 0, 0));
    }
}
