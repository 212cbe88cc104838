//! Reclaim by a request for itself (`try_to_free_pages`): all zones that would do for it, at ever higher priority, until
//! 32 pages are free.

use super::groups::next_effort;
use super::pressure::tell_of_priority;
use super::{DEF_PRIORITY, Met, ReclaimDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Machine, Nanos, Node, PAGE_ALLOC_COSTLY_ORDER, Relaxed, Span, Work, ZoneKind};
use crate::pages::{Search, Zone, decide_by_sum};
use crate::rules::policy::{CongestionRule, LruRule};

/// How long kswapd waits where writing cannot keep up, and before 5.16 a request that came upon nothing but pages to be
/// written.
pub(super) const WRITEBACK_WAIT: Nanos = Nanos(100_000_000);

/// A tick of kernels with 250 in a second, as Debian's are.
const JIFFY: Nanos = Nanos(4_000_000);

/// A request waits for kswapd while not even half of what the min marks keep is free: it looks every so often, and goes
/// on where kswapd has not worked for a second, as on a machine where nobody runs it.
const THROTTLE_PAUSE: Nanos = Nanos(10_000_000);
const THROTTLE_PAUSES: u32 = 100;

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// Frees pages for `search`; gives how many base pages it freed.
    pub(crate) fn direct_reclaim(self, search: Search<'_>) -> u32 {
        let since = self.machine().enter(Span::DirectReclaim);
        self.throttle(search);
        // On a machine of a few pages, all that could go may be in a batch.
        self.lru().lru_drain_cpu(self.machine().cpu());
        let mut scan = Scan::new(Reclaimer::Direct, search.request.order, search.request.highest);
        scan.no_fs = search.request.no_fs;
        while !self.try_to_free(search, &mut scan) && next_effort(&mut scan, self.memcg().in_use()) {}
        let work = Work { order: search.request.order, count: scan.reclaimed, ..Work::default() };
        self.machine().leave(Span::DirectReclaim, since, work);
        scan.reclaimed
    }

    /// All priorities, until there is enough; says whether anything was freed, or it makes no sense to go on.
    fn try_to_free(self, search: Search<'_>, scan: &mut Scan) -> bool {
        let mut goes_on = true;
        for priority in (0..=DEF_PRIORITY).rev() {
            scan.priority = priority;
            tell_of_priority(self, scan);
            let met = if self.pages().is_killed(self.machine().task()) {
                None
            } else {
                self.shrink_zones(search, scan)
            };
            let Some(met) = met else {
                goes_on = false;
                break;
            };
            if scan.reclaimed >= scan.to_reclaim {
                break;
            }
            self.shrink_slabs(scan);
            if let Some(wait) = self.congestion_wait(search, met) {
                self.swap().pause(wait);
            }
        }
        self.end_of_reclaim(scan);
        scan.reclaimed > 0 || !goes_on
    }

    /// How long a request waits for pages to be written after a pass that met so many of them, if it does.
    pub(super) fn congestion_wait(self, search: Search<'_>, met: Met) -> Option<Nanos> {
        let zone = self.pages().candidates(search.request, search.node).next()?;
        let waits = match self.rules().reclaim.congestion {
            CongestionRule::WaitsLong => {
                return (met.taken > 0 && met.dirty + met.writeback >= met.taken).then_some(WRITEBACK_WAIT);
            }
            CongestionRule::WaitsOneJiffy => met.dirty == 0 && met.again > 0 && met.again == met.writeback,
        };
        (waits && !self.kswapd_gave_up(zone.node()) && self.is_mostly_pending(zone.node())).then_some(JIFFY)
    }

    /// Whether at least half of what could be freed on `node` waits for being written, or is.
    fn is_mostly_pending(self, node: Node) -> bool {
        let zones = || self.pages().zones_of(node, ZoneKind::Movable);
        let reclaimable: u64 = zones().map(|zone| u64::from(self.reclaimable_pages(zone))).sum();
        2 * zones().map(|zone| self.files().pending_pages(zone.id())).sum::<u64>() > reclaimable
    }

    /// One pass over the zones of `search` at the scan's priority, and what stood in the way. `None`: there is nothing to
    /// be gained, for each zone has pages enough and only lacks a block of the order.
    fn shrink_zones(self, search: Search<'_>, scan: &mut Scan) -> Option<Met> {
        let mut met = None;
        let mut last = None;
        for zone in self.pages().candidates(search.request, search.node) {
            // That would be for compaction to make.
            if scan.order.get() > PAGE_ALLOC_COSTLY_ORDER && self.has_gap(zone, scan.order, scan.highest) {
                continue;
            }
            match self.rules().reclaim.lru {
                LruRule::PerNode if last == Some(zone.node()) => continue,
                LruRule::PerNode => self.shrink_node(zone.node(), scan),
                LruRule::PerZone => self.shrink_zone(zone, scan),
            }
            last = Some(zone.node());
            met.get_or_insert_with(Met::default).add(scan.met);
        }
        met
    }

    /// One pass over the lists of a zone that has its own.
    pub(super) fn shrink_zone(self, zone: &Zone<M>, scan: &mut Scan) {
        let before = scan.reclaimed;
        self.shrink_for_order(self.lru().vec_of_zone(zone), zone.node(), scan);
        if scan.reclaimed > before {
            self.own().node(zone.node()).failures.store(0, Relaxed);
        }
    }

    /// Gives back what slab caches hold for speed, once in a reclaimer's work, when the lists alone have not given enough
    /// in four passes. (The kernel's shrinkers are of caches of file names and inodes, which there are not here.)
    pub(super) fn shrink_slabs(self, scan: &Scan) {
        self.spaces().free_huge_zero();
        if scan.priority == DEF_PRIORITY - 3 && self.slabs().slab_pages() > 0 {
            self.slabs().shrink_all();
        }
    }

    /// Waits where the first node's reserves are nearly used up, so that many requests do not all reclaim at once
    /// (`throttle_direct_reclaim`, since 3.6; unchecked).
    pub(super) fn throttle(self, search: Search<'_>) {
        let mut zones = self.pages().candidates(search.request, search.node);
        let Some(zone) = zones.find(|zone| zone.kind() <= ZoneKind::Normal) else { return };
        let mut without_kswapd = 0;
        while without_kswapd < THROTTLE_PAUSES {
            if self.may_reclaim_directly(zone.node()) || self.pages().is_killed(self.machine().task()) {
                return;
            }
            self.wake_kswapd_for(zone.node(), crate::ground::ids::Order::ZERO, ZoneKind::Normal);
            self.swap().pause(THROTTLE_PAUSE);
            let works = self.pages().zones_of(zone.node(), ZoneKind::Normal).any(Zone::is_being_reclaimed);
            without_kswapd = if works { 0 } else { without_kswapd + 1 };
        }
    }

    /// Whether more is free on `node` than half of what the min marks of its zones keep, of those with pages that could be
    /// freed; and in any case where kswapd has given up.
    fn may_reclaim_directly(self, node: Node) -> bool {
        if self.kswapd_gave_up(node) {
            return true;
        }
        let zones =
            || self.pages().zones_of(node, ZoneKind::Normal).filter(|zone| self.reclaimable_pages(zone) > 0);
        let free: u32 = zones().map(Zone::free_pages).sum();
        decide_by_sum(self.machine(), zones, Zone::mark_min, |reserve| reserve == 0 || free > reserve / 2)
    }
}
