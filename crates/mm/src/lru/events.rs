//! What happens to pages on the lists, by zone, in base pages, under vmstat's names: counted by whoever looks through them.
//! Before 4.8 the kernel prints most of these for each zone (`pgscan_kswapd_normal`), since then the sum.

use super::Lru;
use crate::ground::{AtomicU64, Machine, Pfn, Relaxed, ZoneId, ZoneKind};
use crate::pages::{Counters, MemMap};
use crate::rules::policy::LruRule;

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
    /// Given away by the program that has them (`MADV_FREE`), and freed after that.
    GiveAway,
    FreeGivenAway,
    /// Locked into memory, and let go.
    Lock,
    Unlock,
    /// Freed while it was locked.
    Unlocked,
    /// To the list of what cannot go, and back.
    Cull,
    Rescue,
}

impl ReclaimEvent {
    const COUNT: usize = 18;
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
        Self::GiveAway,
        Self::FreeGivenAway,
        Self::Lock,
        Self::Unlock,
        Self::Unlocked,
        Self::Cull,
        Self::Rescue,
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
            Self::GiveAway => "pglazyfree",
            Self::FreeGivenAway => "pglazyfreed",
            Self::Lock => "unevictable_pgs_mlocked",
            Self::Unlock => "unevictable_pgs_munlocked",
            Self::Unlocked => "unevictable_pgs_cleared",
            Self::Cull => "unevictable_pgs_culled",
            Self::Rescue => "unevictable_pgs_rescued",
        }
    }

    /// Whether it is left out while it did not happen.
    const fn is_rare(self) -> bool {
        use ReclaimEvent as Is;
        let given_away = matches!(self, Is::GiveAway | Is::FreeGivenAway);
        given_away || matches!(self, Is::Lock | Is::Unlock | Is::Unlocked | Is::Cull | Is::Rescue)
    }

    /// Whether the kernel prints it for each zone.
    const fn is_by_zone(self, rule: LruRule) -> bool {
        match self {
            Self::Skip => true,
            Self::ScanKswapd | Self::ScanDirect | Self::StealKswapd | Self::StealDirect | Self::Refill => {
                matches!(rule, LruRule::PerZone)
            }
            Self::DemoteKswapd
            | Self::DemoteDirect
            | Self::Activate
            | Self::Deactivate
            | Self::Rotate
            | Self::GiveAway
            | Self::FreeGivenAway
            | Self::Lock
            | Self::Unlock
            | Self::Unlocked
            | Self::Cull
            | Self::Rescue => false,
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

impl<M: Machine> Lru<M> {
    /// What was counted in `zone`.
    pub(super) fn events(&self, zone: ZoneId) -> &ReclaimEvents {
        &self.events[usize::from(zone.0)]
    }

    /// `event` happened to the block at `pfn` of `map`.
    pub(super) fn count(&self, map: &MemMap, pfn: Pfn, event: ReclaimEvent) {
        let state = map.frame(pfn).state();
        self.events(state.zone).count(event, state.order.pages());
    }

    /// Adds what was counted in `zone`, which is of `kind`.
    pub(super) fn add_counters(&self, (zone, kind): (ZoneId, ZoneKind), counters: &mut Counters) {
        for event in ReclaimEvent::ALL {
            let pages = self.events(zone).get(event);
            if pages == 0 && event.is_rare() {
                continue;
            }
            if event.is_by_zone(self.rule) {
                counters.add_zone(event.name(), kind, pages);
            } else {
                counters.add(event.name(), pages);
            }
        }
    }
}
