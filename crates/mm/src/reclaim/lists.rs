//! A pass over a set of lists: pages age from the active to the inactive lists, and those at the tails of the inactive
//! ones are freed, 32 blocks at a time.

use super::balance::{PerList, Weighing, inactive_is_low, rest_in_proportion, scan_counts};
use super::{DEF_PRIORITY, ReclaimDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Machine, Nanos, Relaxed, ZoneKind};
use crate::lru::{Generation, LruList, ReclaimEvent, SWAP_CLUSTER_MAX, VecId};
use crate::pages::{Zone, decide_by_sum};
use crate::rules::knobs::Knob;

/// How long a request waits, once, where too many pages are in the hands of others: 100 ms up to 5.15, 20 ms since
/// (unchecked); the latter here.
const ISOLATED_WAIT: Nanos = Nanos(20_000_000);

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// Goes over the lists of `vec` once (`shrink_lruvec`).
    pub(super) fn shrink_lists(self, vec: VecId, scan: &mut Scan) {
        let targets = self.scan_targets(vec, scan);
        let mut left = targets;
        // A request that only begins may find what it needs in the first lists.
        let mut in_proportion = scan.by == Reclaimer::Direct && scan.priority == DEF_PRIORITY;
        let before = scan.reclaimed;
        while wants_more(&left) {
            for list in LruList::ALL {
                let now = left[list.index()].min(SWAP_CLUSTER_MAX as u32);
                if now > 0 {
                    left[list.index()] -= now;
                    self.shrink_list(vec, list, now, scan);
                }
            }
            if scan.reclaimed - before < scan.to_reclaim || in_proportion {
                continue;
            }
            let Some(rest) = rest_in_proportion(targets, left) else { break };
            left = rest;
            in_proportion = true;
        }
        if self.has_room_for_anon_in(vec)
            && inactive_is_low(self.sizes(vec, scan.highest), LruList::ActiveAnon)
        {
            self.age(vec, LruList::ActiveAnon, SWAP_CLUSTER_MAX as u32, scan);
        }
    }

    fn scan_targets(self, vec: VecId, scan: &Scan) -> PerList {
        let state = self.own().vec(vec);
        let zones = || self.zones().iter().filter(|zone| self.lru().vec_of_zone(zone) == vec);
        let sizes = self.sizes(vec, scan.highest);
        let weighing = Weighing {
            priority: scan.priority,
            swappiness: self.knobs().get(Knob::Swappiness) as u32,
            room_for_anon: scan.may_swap && self.has_room_for_anon_in(vec),
            cost: [state.cost[0].load(Relaxed), state.cost[1].load(Relaxed)],
            free: zones().map(Zone::free_pages).sum(),
            high: zones().map(|zone| zone.mark_high().pages).sum(),
        };
        if M::WATCHES_KNOBS {
            let by_marks = |high: u32| scan_counts(sizes, Weighing { high, ..weighing });
            decide_by_sum(self.machine(), zones, Zone::mark_high, by_marks);
        }
        let by = |swappiness: u64| scan_counts(sizes, Weighing { swappiness: swappiness as u32, ..weighing });
        self.knobs().decide(self.machine(), Knob::Swappiness, by)
    }

    fn has_room_for_anon_in(self, vec: VecId) -> bool {
        let mut zones = self.zones().iter().filter(|zone| self.lru().vec_of_zone(zone) == vec);
        zones.next().is_some_and(|zone| self.has_room_for_anon(zone.node()))
    }

    fn sizes(self, vec: VecId, highest: ZoneKind) -> PerList {
        LruList::ALL.map(|list| self.lru().list_size(vec, list, highest))
    }

    fn shrink_list(self, vec: VecId, list: LruList, most: u32, scan: &mut Scan) {
        if !list.is_active() {
            self.shrink_inactive(vec, list, most, scan);
        } else if inactive_is_low(self.sizes(vec, scan.highest), list) {
            self.age(vec, list, most, scan);
        }
    }

    /// Moves the oldest pages of an active list to the inactive one, used or not: their accessed bits are cleared, and
    /// who is used again before the inactive list's end comes back. (The kernel spares executable pages; there are none
    /// here.)
    fn age(self, vec: VecId, list: LruList, most: u32, scan: &Scan) {
        self.lru().lru_drain_cpu(self.machine().cpu());
        let isolated = self.lru().isolate(vec, list, (most, scan.highest), ReclaimEvent::Refill);
        for &pfn in isolated.cluster.pages() {
            self.rmap().referenced(pfn);
        }
        self.lru().put_back(vec, &isolated.cluster, Generation::Inactive);
        self.lru().end_isolation(vec, list, &isolated);
    }

    /// Frees what it can of the oldest pages of an inactive list.
    fn shrink_inactive(self, vec: VecId, list: LruList, most: u32, scan: &mut Scan) {
        if scan.by == Reclaimer::Direct && self.too_many_isolated(vec, list) {
            self.machine().block(ISOLATED_WAIT);
        }
        self.lru().lru_drain_cpu(self.machine().cpu());
        let event = match scan.by {
            Reclaimer::Kswapd => ReclaimEvent::ScanKswapd,
            Reclaimer::Direct => ReclaimEvent::ScanDirect,
        };
        let isolated = self.lru().isolate(vec, list, (most, scan.highest), event);
        scan.scanned += isolated.scanned;
        let outcome = self.shrink_pages(&isolated.cluster, scan);
        self.lru().put_back(vec, &outcome.active, Generation::Active);
        self.lru().put_back(vec, &outcome.inactive, Generation::Inactive);
        self.lru().end_isolation(vec, list, &isolated);
        scan.reclaimed += outcome.freed;
        scan.met.taken += isolated.taken;
        scan.met.add(outcome.met);
        let rotated = isolated.scanned.saturating_sub(outcome.freed);
        self.note_cost(vec, list, rotated + outcome.written * SWAP_CLUSTER_MAX as u32);
    }

    /// Whether so many pages are isolated that requests would find the lists empty though memory is full: more than an
    /// eighth of those that are still there.
    fn too_many_isolated(self, vec: VecId, list: LruList) -> bool {
        self.lru().isolated(vec, list) > self.lru().list_size(vec, list, ZoneKind::Movable) >> 3
    }

    /// What pages of `list`'s kind cost goes up; what is long ago counts for less.
    fn note_cost(self, vec: VecId, list: LruList, pages: u32) {
        let cost = &self.own().vec(vec).cost;
        cost[usize::from(list.is_file())].fetch_add(pages, Relaxed);
        let [anon, file] = [cost[0].load(Relaxed), cost[1].load(Relaxed)];
        let listed: u32 = self.sizes(vec, ZoneKind::Movable).iter().sum();
        if anon.saturating_add(file) > listed / 4 {
            cost[0].store(anon / 2, Relaxed);
            cost[1].store(file / 2, Relaxed);
        }
    }
}

/// A pass ends when the inactive lists and the active one of files are done.
fn wants_more(left: &PerList) -> bool {
    [LruList::InactiveAnon, LruList::InactiveFile, LruList::ActiveFile]
        .iter()
        .any(|list| left[list.index()] > 0)
}
