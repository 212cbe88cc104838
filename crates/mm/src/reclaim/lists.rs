//! A pass over a set of lists: pages age from the active to the inactive lists, and those at the tails of the inactive
//! ones are freed, 32 blocks at a time.

use super::balance::{
    Kept, Looks, PerList, PlaceMemory, Weighing, Whose, inactive_is_low, rest_in_proportion, scan_counts,
};
use super::pages::Outcome;
use super::{DEF_PRIORITY, Met, ReclaimDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Batch, Machine, Nanos, Traced, ZoneKind};
use crate::lru::{Cluster, Cost, Generation, LruList, ReclaimEvent, SWAP_CLUSTER_MAX, VecEvent, VecId};
use crate::memcg::GroupId;
use crate::pages::{Zone, decide_by_sum};
use crate::rules::knobs::{Knob, Knobs};

/// What became of a cluster, in base pages.
#[derive(Clone, Copy, Debug)]
struct Shrunk {
    freed: u32,
    written: u32,
    activated: u32,
    met: Met,
}

/// How long a request waits, once, where too many pages are in the hands of others: 100 ms up to 5.15, 20 ms since
/// (unchecked); the latter here.
const ISOLATED_WAIT: Nanos = Nanos(20_000_000);

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// What the target's lists look like before a pass (`prepare_scan_control`).
    pub(super) fn look_at(self, scan: &mut Scan) {
        let vec = scan.vec;
        let stat = self.lru().stat(vec);
        let may_age = |list: LruList| {
            scan.effort.ages_all
                || self.lru().refaults_since(vec, list, &stat)
                || inactive_is_low(stat.sizes, list)
        };
        let may_age = [may_age(LruList::InactiveAnon), may_age(LruList::InactiveFile)];
        let looks = Looks { sizes: stat.sizes, priority: scan.priority, may_age, trims: scan.view.trims };
        let memory = (scan.target == GroupId::ROOT).then(|| self.memory_of(vec, stat.sizes));
        if M::WATCHES_KNOBS {
            self.watch_marks(scan, looks, memory);
        }
        scan.view = looks.view(memory, self.lru().cost(vec));
    }

    /// How much of a node's or zone's memory is free, and its pages of files. Without groups what is `seen` of its lists is so.
    fn memory_of(self, vec: VecId, seen: PerList) -> PlaceMemory {
        let zones = || self.zones().iter().filter(|zone| self.lru().vec_of_zone(zone).place() == vec.place());
        let size = |list: LruList| {
            if self.memcg().in_use() {
                zones().map(|zone| self.lru().zone_size(zone, list)).sum()
            } else {
                seen[list.index()]
            }
        };
        PlaceMemory {
            file: size(LruList::InactiveFile) + size(LruList::ActiveFile),
            inactive_anon: size(LruList::InactiveAnon),
            free: zones().map(Zone::free_pages).sum(),
            high: zones().map(|zone| zone.mark_high().pages).sum(),
        }
    }

    /// Tells a machine that watches what the high marks decide.
    fn watch_marks(self, scan: &Scan, looks: Looks, memory: Option<PlaceMemory>) {
        let Some(memory) = memory else { return };
        let zones =
            || self.zones().iter().filter(|zone| self.lru().vec_of_zone(zone).place() == scan.vec.place());
        let (sizes, cost) = (self.sizes(scan.vec, scan.highest), self.lru().cost(scan.vec));
        let weighing = self.weighing(scan.vec, scan);
        let by_marks = |high: u32| {
            let view = looks.view(Some(PlaceMemory { high, ..memory }), cost);
            scan_counts(sizes, Weighing { view, ..weighing })
        };
        decide_by_sum(self.machine(), zones, Zone::mark_high, by_marks);
    }

    /// Goes over the lists of `vec` once (`shrink_lruvec`).
    pub(super) fn shrink_lists(self, vec: VecId, scan: &mut Scan) {
        if self.by_generations().are_kept() {
            return self.by_generations().shrink_generations(vec, scan);
        }
        let targets = self.scan_targets(vec, scan);
        let mut left = targets;
        // A request that only begins may find what it needs in the first lists.
        let mut in_proportion =
            scan.by == Reclaimer::Direct && scan.priority == DEF_PRIORITY && scan.target == GroupId::ROOT;
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
        if self.has_room_for_anon_in(vec) && inactive_is_low(self.lru().stat(vec).sizes, LruList::ActiveAnon)
        {
            self.age(vec, LruList::ActiveAnon, SWAP_CLUSTER_MAX as u32, scan);
        }
    }

    /// What the numbers of pages to look at go by.
    fn weighing(self, vec: VecId, scan: &Scan) -> Weighing {
        Weighing {
            priority: scan.priority,
            swappiness: self.knobs().get(Knob::Swappiness) as u32,
            room_for_anon: scan.may_swap && self.has_room_for_anon_in(vec),
            whose: if scan.target == GroupId::ROOT { Whose::Machine } else { Whose::Group },
            view: scan.view,
            kept: Kept::default(),
        }
    }

    fn scan_targets(self, vec: VecId, scan: &mut Scan) -> PerList {
        let kept = self.kept_of(vec, scan);
        let weighing = Weighing { kept, ..self.weighing(vec, scan) };
        let sizes = self.sizes(vec, scan.highest);
        let by = |swappiness: u64| scan_counts(sizes, Weighing { swappiness: swappiness as u32, ..weighing });
        decide_by_swappiness(self.knobs(), self.machine(), by)
    }

    /// What of the group of `vec` is not to be taken. Where that is because of `memory.low`, there is more to be had.
    pub(super) fn kept_of(self, vec: VecId, scan: &mut Scan) -> Kept {
        let protection = self.memcg().protection(scan.target, vec.group);
        let by_low = !scan.effort.takes_low && protection.low > protection.min;
        scan.skipped.low |= by_low;
        Kept { pages: if by_low { protection.low } else { protection.min }, of: protection.usage }
    }

    fn has_room_for_anon_in(self, vec: VecId) -> bool {
        let mut zones =
            self.zones().iter().filter(|zone| self.lru().vec_of_zone(zone).place() == vec.place());
        let can_go =
            |zone: &Zone<M>| self.swap().has_swap(vec.group) || self.slower_node(zone.node()).is_some();
        zones.next().is_some_and(can_go)
    }

    fn sizes(self, vec: VecId, highest: ZoneKind) -> PerList {
        LruList::ALL.map(|list| self.lru().list_size(vec, list, highest))
    }

    fn shrink_list(self, vec: VecId, list: LruList, most: u32, scan: &mut Scan) {
        if !list.is_active() {
            self.shrink_inactive(vec, list, most, scan);
        } else if scan.view.may_age[usize::from(list.is_file())] {
            self.age(vec, list, most, scan);
        } else {
            scan.skipped.active = true;
        }
    }

    /// Moves the oldest pages of an active list to the inactive one, used or not: their accessed bits are cleared, and
    /// who is used again before the inactive list's end comes back. Pages of programs' code that were used stay.
    fn age(self, vec: VecId, list: LruList, most: u32, scan: &Scan) {
        self.lru().lru_drain_cpu(self.machine().cpu());
        let event = scan.counted_as(self.rules().reclaim.group_count).map(|_| ReclaimEvent::Refill);
        let isolated = self.lru().isolate(vec, list, (most, scan.highest), event);
        let (mut inactive, mut active) = (Cluster::default(), Cluster::default());
        for &pfn in isolated.cluster.pages() {
            let used = self.rmap().referenced(pfn);
            let stays = used.by_code && list.is_file();
            if stays { active.push(pfn) } else { inactive.push(pfn) }
        }
        let (rotated, gone) = (self.pages_of(&active), self.pages_of(&inactive));
        self.machine().traced(Traced::Batch(Batch {
            event: "mm_vmscan_lru_shrink_active",
            lru: list.name(),
            scanned: isolated.scanned,
            taken: isolated.taken,
            gone,
            active: rotated,
            priority: scan.priority,
        }));
        self.lru().put_back(vec, &active, Generation::Active);
        self.lru().put_back(vec, &inactive, Generation::Inactive);
        self.lru().end_isolation(vec, list, &isolated);
        self.lru().note_cost(vec, list, Cost { kept: rotated, ..Cost::default() });
    }

    /// Base pages of a cluster.
    fn pages_of(self, cluster: &Cluster) -> u32 {
        cluster.pages().iter().map(|&pfn| self.pages().order_of(pfn).pages()).sum()
    }

    /// Frees what it can of the oldest pages of an inactive list.
    fn shrink_inactive(self, vec: VecId, list: LruList, most: u32, scan: &mut Scan) {
        if scan.by == Reclaimer::Direct && self.too_many_isolated(vec, list) {
            self.swap().pause(ISOLATED_WAIT);
        }
        self.lru().lru_drain_cpu(self.machine().cpu());
        let event = scan.counted_as(self.rules().reclaim.group_count).map(|[scanned, _]| scanned);
        let isolated = self.lru().isolate(vec, list, (most, scan.highest), event);
        scan.scanned += isolated.scanned;
        let outcome = self.shrink_cluster(vec, &isolated.cluster, scan);
        self.lru().end_isolation(vec, list, &isolated);
        self.machine().traced(Traced::Batch(Batch {
            event: "mm_vmscan_lru_shrink_inactive",
            lru: list.name(),
            scanned: isolated.scanned,
            taken: isolated.taken,
            gone: outcome.freed,
            active: outcome.activated,
            priority: scan.priority,
        }));
        scan.reclaimed += outcome.freed;
        scan.met.taken += isolated.taken;
        scan.met.add(outcome.met);
        let rotated = (isolated.scanned + isolated.skipped).saturating_sub(outcome.freed);
        self.lru().count_in(vec, VecEvent::StealFile.of_kind(list), outcome.freed);
        self.lru().note_cost(vec, list, Cost { moved: outcome.written, rotated, kept: 0 });
    }

    /// Frees what it can of a cluster and brings the rest back to the lists; then the same of parts of large pages that were split for it.
    fn shrink_cluster(self, vec: VecId, cluster: &Cluster, scan: &Scan) -> Shrunk {
        let mut outcome = self.shrink_pages(cluster, scan);
        self.lru().put_back(vec, &outcome.active, Generation::Active);
        self.lru().put_back(vec, &outcome.inactive, Generation::Inactive);
        let Outcome { freed, written, met, .. } = outcome;
        let mut all = Shrunk { freed, written, activated: self.pages_of(&outcome.active), met };
        for parts in self.swapping().take_parts(&mut outcome).chunks(SWAP_CLUSTER_MAX) {
            let of_parts = self.shrink_cluster(vec, &Cluster::of(parts), scan);
            all.freed += of_parts.freed;
            all.written += of_parts.written;
            all.activated += of_parts.activated;
            all.met.add(of_parts.met);
        }
        all
    }

    /// Whether so many pages are isolated that requests would find the lists empty though memory is full: more than an
    /// eighth of those that are still there.
    fn too_many_isolated(self, vec: VecId, list: LruList) -> bool {
        self.lru().isolated(vec, list) > self.lru().list_size(vec, list, ZoneKind::Movable) >> 3
    }
}

/// Decides by `vm.swappiness`.
pub(super) fn decide_by_swappiness<M: Machine, D: PartialEq>(
    knobs: &Knobs,
    machine: &M,
    decision: impl Fn(u64) -> D,
) -> D {
    knobs.decide(machine, Knob::Swappiness, decision)
}

/// A pass ends when the inactive lists and the active one of files are done.
fn wants_more(left: &PerList) -> bool {
    [LruList::InactiveAnon, LruList::InactiveFile, LruList::ActiveFile]
        .iter()
        .any(|list| left[list.index()] > 0)
}
