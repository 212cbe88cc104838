//! Room on the node itself before others are asked (`vm.zone_reclaim_mode`, `node_reclaim`): a request that finds a zone below its mark
//! frees pages of that zone's node first, if that is its own and near, and looks again. By default nobody does.

use super::{NodeReclaimDoor, ReclaimGround, Reclaimer, Scan, Spares};
use crate::ground::{AtomicU64, Machine, Node, Relaxed, ZoneKind};
use crate::lru::LruList;
use crate::pages::{Counters, Search, Zone};
use crate::rules::knobs::Knob;

/// The priority that it begins with (`NODE_RECLAIM_PRIORITY`).
const PRIORITY: u32 = 4;
/// Nodes further away are not made room on (`RECLAIM_DISTANCE`).
const NEAR: u32 = 30;

/// Bits of the mode: it is on, dirty pages may be written (here the flusher alone writes), mapped ones taken.
const ON: u32 = 1;
const WRITES: u32 = 2;
const UNMAPS: u32 = 4;

const BITS: u64 = (ON | WRITES | UNMAPS) as u64;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct NodeReclaim {
    success: AtomicU64,
    failed: AtomicU64,
}

impl NodeReclaim {
    pub(super) fn add_counters(&self, counters: &mut Counters) {
        counters.add("zone_reclaim_success", self.success.load(Relaxed));
        counters.add("zone_reclaim_failed", self.failed.load(Relaxed));
    }
}

impl<M: Machine, G: ReclaimGround<M>> NodeReclaimDoor<'_, M, G> {
    /// Frees pages for `search`, which found `zone` below its mark. `preferred` is the zone that it would rather have. Says whether
    /// it may be worth another look.
    pub(crate) fn reclaim_for(self, search: Search<'_>, zone: &Zone<M>, preferred: &Zone<M>) -> bool {
        let is_off = self.knobs().get(Knob::ZoneReclaimMode) & BITS == 0;
        if is_off || !self.may_reclaim(search, zone.node(), preferred.node()) {
            return false;
        }
        let mode = self.knobs().decide(self.machine(), Knob::ZoneReclaimMode, |mode| mode & BITS) as u32;
        let order = search.request.order;
        let mut scan = Scan::new(Reclaimer::Direct, order, search.request.highest);
        scan.to_reclaim = scan.to_reclaim.max(order.pages());
        scan.spares = Spares { mapped: mode & UNMAPS == 0, dirty: mode & WRITES == 0 };
        // On a small machine all that could go may be in a batch.
        self.lru().lru_drain_cpu(self.machine().cpu());
        for priority in (0..=PRIORITY).rev() {
            scan.priority = priority;
            self.reclaim().shrink_node(zone.node(), &mut scan);
            if scan.reclaimed >= order.pages() {
                break;
            }
        }
        let done = scan.reclaimed >= order.pages();
        let state = &self.own().by_node;
        let count = if done { &state.success } else { &state.failed };
        count.fetch_add(1, Relaxed);
        done
    }

    /// Whether `node` is near the one that is preferred, is that of this CPU or has none, and has pages of files enough; and whether
    /// the request may wait.
    fn may_reclaim(self, search: Search<'_>, node: Node, preferred: Node) -> bool {
        let topology = self.topology();
        let distance =
            topology.distance.get(usize::from(preferred.0)).and_then(|row| row.get(usize::from(node.0)));
        let is_near = distance.is_none_or(|&distance| distance <= NEAR);
        let here = topology.cpus[usize::from(self.machine().cpu().0)].node;
        let may_wait = search.request.urgency.may_reclaim();
        if !may_wait || !is_near || topology.cpus_of(node) > 0 && node != here || !self.lru().has_pages() {
            return false;
        }
        let file = |list| self.lru().node_list_size(node, list);
        let files = u64::from(file(LruList::InactiveFile)) + u64::from(file(LruList::ActiveFile));
        let managed: u64 =
            self.pages().zones_of(node, ZoneKind::Movable).map(|zone| u64::from(zone.managed())).sum();
        let least = |percent: u64| managed * percent / 100;
        self.knobs().decide_by(self.machine(), (Knob::MinUnmappedRatio, files), least, |least| files > least)
    }
}
