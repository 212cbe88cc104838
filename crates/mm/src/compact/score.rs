//! How fragmented memory is for huge pages, as proactive compaction counts it (docs/rules/compaction.md).

use super::{CompactDoor, CompactGround};
use crate::ground::{Machine, Node, Order};
use crate::pages::Zone;
use crate::rules::knobs::Knob;

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Percent of `zone`'s free memory that is in blocks below a huge page's order (`extfrag_for_order`); 0 where nothing is
    /// free.
    pub(crate) fn fragmentation_score_of(self, zone: &Zone<M>) -> u32 {
        let (mut free, mut useful) = (0_u64, 0_u64);
        for lists in zone.arenas().all() {
            let lists = lists.lock(self.machine());
            for order in Order::ZERO.to(Order::MAX) {
                let pages = u64::from(lists.nr_free(order)) << order.get();
                free += pages;
                if order >= Order::PAGEBLOCK {
                    useful += pages;
                }
            }
        }
        ((free - useful) * 100).checked_div(free).unwrap_or(0) as u32
    }

    /// The score of `node`: that of its zones, each by its share of the node's present pages.
    pub fn fragmentation_score(self, node: Node) -> u32 {
        let zones = || self.zones().iter().filter(|zone| zone.node() == node);
        let present: u64 = zones().map(|zone| u64::from(zone.present())).sum();
        let weighed = |zone: &Zone<M>| {
            u64::from(self.fragmentation_score_of(zone)) * u64::from(zone.present()) / (present + 1)
        };
        zones().map(weighed).sum::<u64>() as u32
    }

    /// Whether memory of this score is in one piece enough for proactive compaction to end.
    pub(crate) fn is_defragmented(self, score: u32) -> bool {
        self.decide_by_score(score, proactive_low, |low| u64::from(score) <= low)
    }

    /// Whether memory of this score is in pieces enough for proactive compaction to begin.
    pub(crate) fn is_fragmented(self, score: u32) -> bool {
        let high = |proactiveness: u64| {
            let low = proactive_low(proactiveness);
            (low + (low / 2).min(10)).min(100)
        };
        self.decide_by_score(score, high, |high| u64::from(score) > high)
    }

    fn decide_by_score(self, score: u32, mark: fn(u64) -> u64, decision: impl Fn(u64) -> bool) -> bool {
        let by = (Knob::CompactionProactiveness, score.into());
        self.knobs().decide_by(self.machine(), by, mark, decision)
    }
}

/// Where proactive compaction ends: 100 less `vm.compaction_proactiveness`, 5 at least.
fn proactive_low(proactiveness: u64) -> u64 {
    (100 - proactiveness).max(5)
}
