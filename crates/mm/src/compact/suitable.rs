//! Whether a zone is worth compacting: enough free memory to move pages to, and too little of it in one piece.

use super::control::{By, CompactGoal};
use super::{CLUSTER_MAX, CompactDoor, CompactGround, Outcome};
use crate::ground::{Machine, Order, PAGE_ALLOC_COSTLY_ORDER};
use crate::pages::{AllocFlags, Level, Pages, Zone};
use crate::rules::knobs::Knob;
use crate::rules::policy::{GapRule, SuitableRule};

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Free pages that compaction for `order` needs above a mark (`compact_gap`).
    pub(crate) fn compact_gap(self, order: Order) -> u32 {
        let twice = 2 << order.get();
        match self.rules().compact.gap {
            GapRule::TwiceTheBlock => twice,
            GapRule::AtMostACluster => twice.min(CLUSTER_MAX as u32),
        }
    }

    /// How fragmented `zone` is for a block of `order`: near 0 where a failing request lacks memory, near 1000 where it lacks
    /// a block; -1000 where there is one (`extfrag` in debugfs; docs/rules/compaction.md).
    pub fn fragmentation_index(self, zone: &Zone<M>, order: Order) -> i32 {
        let (mut blocks, mut pages, mut enough) = (0_u64, 0_u64, 0_u64);
        for size in Order::ZERO.to(Order::MAX) {
            let count: u64 =
                zone.arenas().all().map(|free| u64::from(free.lock(self.machine()).nr_free(size))).sum();
            blocks += count;
            pages += count << size.get();
            if size >= order {
                enough += count;
            }
        }
        if blocks == 0 {
            return 0;
        }
        if enough > 0 {
            return -1000;
        }
        let wanted = 1_u64 << order.get();
        1000 - ((1000 + pages * 1000 / wanted) / blocks) as i32
    }

    /// Whether `zone` should be compacted for `goal`. `Err`: why not, [`Outcome::Success`] where there is a block already.
    pub(super) fn is_suitable(self, zone: &Zone<M>, goal: &CompactGoal) -> Result<(), Outcome> {
        let Some(order) = goal.order else { return Ok(()) };
        if zone.is_offline() {
            return Err(Outcome::Skipped);
        }
        let has_block = |counted| zone.watermark_ok(self.machine(), order, goal.mark, goal.highest, counted);
        if has_block(counted_for(self.pages(), goal)) && self.is_believed(zone, goal, order) {
            return Err(Outcome::Success);
        }
        let costly = order.get() > PAGE_ALLOC_COSTLY_ORDER;
        let more = if costly { zone.mark_low() - zone.mark_min() } else { Level::default() };
        let room = goal.mark + more + self.wanted_room(zone, order);
        if !zone.watermark_ok(self.machine(), Order::ZERO, room, goal.highest, AllocFlags::NONE) {
            return Err(Outcome::Skipped);
        }
        if costly && self.lacks_memory(self.fragmentation_index(zone, order)) {
            return Err(Outcome::Skipped);
        }
        Ok(())
    }

    /// Whether a zone of fragmentation `index` lacks memory rather than order.
    fn lacks_memory(self, index: i32) -> bool {
        let Ok(seen) = u64::try_from(index) else { return false };
        let by = (Knob::ExtfragThreshold, seen);
        self.knobs().decide_by(self.machine(), by, |threshold| threshold, |threshold| seen <= threshold)
    }

    /// Free pages that are wanted above the mark.
    fn wanted_room(self, zone: &Zone<M>, order: Order) -> Level {
        let gap = Level::default() + self.compact_gap(order);
        let for_fault =
            self.rules().compact.suitable == SuitableRule::KnowsFaults && order == Order::PAGEBLOCK;
        if for_fault { gap + (zone.mark_high() - zone.mark_min()) } else { gap }
    }

    /// Whether what the counters say of a block is to be believed without a look at the lists.
    fn is_believed(self, zone: &Zone<M>, goal: &CompactGoal, order: Order) -> bool {
        match self.rules().compact.suitable {
            SuitableRule::AnyRequest => true,
            SuitableRule::KnowsFaults => zone.arenas().all().any(|free| {
                let free = free.lock(self.machine());
                order.to(Order::MAX).any(|order| !free.list(order, goal.migratetype).is_empty())
            }),
        }
    }
}

/// What counts against a mark: where whole pageblocks are kept free, they alone for whoever compacts for others.
fn counted_for<M: Machine>(pages: &Pages<M>, goal: &CompactGoal) -> AllocFlags {
    if goal.by == By::Kcompactd && pages.keeps_blocks() { AllocFlags::WHOLE_BLOCKS } else { AllocFlags::NONE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::topology::NodeSize;
    use crate::mm::Mm;
    use crate::{Bare, Knobs, Policy, Topology};

    #[test]
    fn since_7_2_the_room_asked_for_is_32_pages_at_most() {
        let gap = |policy: &str, order: u8| {
            let nodes = [NodeSize { bytes: 1 << 28, cpus: 1 }];
            let topology = Topology::x86(&nodes, 1 << 20, alloc::vec![alloc::vec![10]]).unwrap();
            let policy = Policy::parse(policy).unwrap();
            let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
            mm.compaction().compact_gap(Order::new(order).unwrap())
        };
        assert_eq!([gap("linux-7.1", 9), gap("linux-7.2", 9)], [1024, 32]);
        assert_eq!([gap("linux-7.1", 3), gap("linux-7.2", 3)], [16, 16]);
    }
}
