//! What reclaim counts, by zone, in base pages, under vmstat's names. Before 4.8 the kernel prints most of these for
//! each zone (`pgscan_kswapd_normal`), since then the sum.

use crate::boot::Mm;
use crate::ids::Pfn;
use crate::lru::LruList;
use crate::machine::Machine;
use crate::policy::LruRule;
use crate::stat::Counters;
use crate::sync::{AtomicU64, Relaxed};
use crate::zone::Zone;

/// Something that happens to pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReclaimEvent {
    /// Looked at by kswapd, or by a request for itself.
    ScanKswapd,
    ScanDirect,
    /// Freed by either.
    StealKswapd,
    StealDirect,
    /// Looked at on an active list.
    Refill,
    /// Moved to slower memory by either, in place of being freed.
    DemoteKswapd,
    DemoteDirect,
    /// From the inactive to the active list.
    Activate,
    /// From an active to the inactive list.
    Deactivate,
    /// To an inactive list's tail, to go next.
    Rotate,
    /// Passed over, since the request needs a lower zone.
    Skip,
}

impl ReclaimEvent {
    const COUNT: usize = 11;
    const ALL: [Self; Self::COUNT] = [
        Self::ScanKswapd,
        Self::ScanDirect,
        Self::StealKswapd,
        Self::StealDirect,
        Self::Refill,
        Self::DemoteKswapd,
        Self::DemoteDirect,
        Self::Activate,
        Self::Deactivate,
        Self::Rotate,
        Self::Skip,
    ];

    /// The name in vmstat.
    const fn name(self) -> &'static str {
        match self {
            Self::ScanKswapd => "pgscan_kswapd",
            Self::ScanDirect => "pgscan_direct",
            Self::StealKswapd => "pgsteal_kswapd",
            Self::StealDirect => "pgsteal_direct",
            Self::Refill => "pgrefill",
            Self::DemoteKswapd => "pgdemote_kswapd",
            Self::DemoteDirect => "pgdemote_direct",
            Self::Activate => "pgactivate",
            Self::Deactivate => "pgdeactivate",
            Self::Rotate => "pgrotated",
            Self::Skip => "pgskip",
        }
    }

    /// Whether the kernel prints it for each zone.
    const fn is_by_zone(self, rule: LruRule) -> bool {
        match self {
            Self::Skip => true,
            Self::ScanKswapd | Self::ScanDirect | Self::StealKswapd | Self::StealDirect | Self::Refill => {
                matches!(rule, LruRule::PerZone)
            }
            Self::DemoteKswapd | Self::DemoteDirect | Self::Activate | Self::Deactivate | Self::Rotate => {
                false
            }
        }
    }
}

/// A zone's counts.
#[derive(Debug, Default)]
pub(crate) struct ReclaimEvents([AtomicU64; ReclaimEvent::COUNT]);

impl ReclaimEvents {
    pub(crate) fn get(&self, event: ReclaimEvent) -> u64 {
        self.0[event as usize].load(Relaxed)
    }

    pub(crate) fn count(&self, event: ReclaimEvent, pages: u32) {
        self.0[event as usize].fetch_add(u64::from(pages), Relaxed);
    }
}

impl<M: Machine> Mm<M> {
    /// `event` happened to the block at `pfn`.
    pub(crate) fn count_reclaim(&self, pfn: Pfn, event: ReclaimEvent) {
        let state = self.map.frame(pfn).state();
        self.zones[usize::from(state.zone.0)].stat.reclaim.count(event, state.order.pages());
    }

    /// Adds what was counted for the machine as a whole.
    pub(crate) fn add_kswapd_counters(&self, counters: &mut Counters) {
        for node in &self.reclaim.nodes {
            counters.add("kswapd_low_wmark_hit_quickly", node.low_quickly.load(Relaxed));
            counters.add("kswapd_high_wmark_hit_quickly", node.high_quickly.load(Relaxed));
        }
        counters.add("freehold_oom", self.reclaim.reports.count());
    }

    /// Adds what `zone` counted and what is on its lists.
    pub(crate) fn add_reclaim_counters(&self, counters: &mut Counters, zone: &Zone<M>) {
        for event in ReclaimEvent::ALL {
            let pages = zone.stat.reclaim.get(event);
            if event.is_by_zone(self.policy.rules().reclaim.lru) {
                counters.add_zone(event.name(), zone.kind, pages);
            } else {
                counters.add(event.name(), pages);
            }
        }
        for list in LruList::ALL {
            counters.add(list.name(), u64::from(self.lru.zone_size(zone.id, list)));
        }
    }
}
