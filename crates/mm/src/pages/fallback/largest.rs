//! Where a block of another type came from before Linux 6.15: the largest that there was (`steal_suitable_fallback`), so
//! that types mix in as few pageblocks as can be, with what was free beside it until 6.9.

use super::{Ask, CLAIM_ORDER_MIN, answer_mixing, is_mostly_alike, may_claim, whole_pageblock};
use crate::ground::{Machine, MigrateType, Order, Pfn};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::pages::stat::SlowEvents;
use crate::pages::zone::AllocFlags;
use crate::rules::policy::FallbackRule;

/// A free block of a type that the request falls back to.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    pfn: Pfn,
    order: Order,
    migratetype: MigrateType,
}

impl FreeAreas {
    /// Takes a block for `ask` from the largest foreign one, or from the smallest where a movable request finds only
    /// small ones.
    pub(super) fn take_from_largest<M: Machine>(&mut self, cx: ZoneCx<'_, M>, ask: Ask) -> Option<Pfn> {
        let whole_only = ask.flags.has(AllocFlags::NOFRAGMENT);
        let least = if whole_only { ask.order.max(Order::PAGEBLOCK) } else { ask.order };
        let found = least.to(Order::MAX).rev().find_map(|order| self.foreign_of(order, ask.migratetype))?;
        let counters = &cx.zone.stat.slow;
        if found.order >= Order::PAGEBLOCK {
            SlowEvents::bump(&counters.claims);
            return Some(self.claim_whole(cx, ask, found.pfn));
        }
        answer_mixing(cx, ask);
        if may_claim(found.order, ask.migratetype) {
            if let Some(pfn) = self.take_with_neighbours(cx, ask, found) {
                return Some(pfn);
            }
            SlowEvents::bump(&counters.steals);
            return Some(self.take_alone(cx, ask, found));
        }
        debug_assert!(found.order.get() < CLAIM_ORDER_MIN);
        let smallest = ask.order.to(Order::MAX).find_map(|order| self.foreign_of(order, ask.migratetype))?;
        SlowEvents::bump(&counters.steals);
        Some(self.take_alone(cx, ask, smallest))
    }

    fn foreign_of(&self, order: Order, wanted: MigrateType) -> Option<Foreign> {
        let (pfn, migratetype) = self.foreign(order, wanted)?;
        Some(Foreign { pfn, order, migratetype })
    }

    /// Moves what is free in the pageblock of `found` to the request's lists, as far as the rule has it, and takes from
    /// there. `None`: nothing was moved.
    fn take_with_neighbours<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        ask: Ask,
        found: Foreign,
    ) -> Option<Pfn> {
        let start = whole_pageblock(cx, found.pfn)?;
        let counters = &cx.zone.stat.slow;
        // By the type of the pageblock, which need not be that of the list: blocks came along without it.
        let old = cx.cx.blocks.get(start);
        if is_mostly_alike(cx, start, ask.migratetype, old) {
            SlowEvents::bump(&counters.claims);
            self.convert_block(cx, start, ask.migratetype);
        } else if cx.cx.rules.zone.fallback == FallbackRule::LargestWithNeighbours {
            SlowEvents::bump(&counters.steals);
            self.move_free(cx, start, ask.migratetype);
        } else {
            return None;
        }
        self.take_smallest(cx, ask.order, ask.migratetype)
    }

    /// Cuts the request off `found`; to whose lists the rest goes is the rule's to say.
    fn take_alone<M: Machine>(&mut self, cx: ZoneCx<'_, M>, ask: Ask, found: Foreign) -> Pfn {
        let rest = match cx.cx.rules.zone.fallback {
            FallbackRule::LargestWithNeighbours => ask.migratetype,
            FallbackRule::LargestAlone | FallbackRule::ClaimOrSmallest => found.migratetype,
        };
        self.remove(cx, found.pfn);
        self.expand(cx, found.pfn, ask.order, found.order, rest);
        found.pfn
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::ground::ids::{Cpu, PAGEBLOCK_PAGES, ZoneId, ZoneKind};

    use crate::pages::fallback::SearchMode;
    use crate::pages::frame::{FrameKind, FrameState};
    use crate::{Bare, Knobs, Mm, Policy, Topology};

    const PAGES: u32 = 4096;
    const LARGE: Order = Order::new(5).unwrap();
    const SMALL: Order = Order::new(3).unwrap();
    /// A block of 32 pages and one of 8 beside it, and a single page in another pageblock.
    const BIG_BLOCK: Pfn = Pfn(64);
    const BESIDE: Pfn = Pfn(256);
    const SINGLE: Pfn = Pfn(PAGEBLOCK_PAGES + 1);

    fn mm(policy: &str) -> Mm<Bare> {
        let topology = Topology::one_node(&[ZoneKind::Normal], PAGES, 1);
        Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
    }

    /// All is in use by movable pages but what the constants say; then takes `orders` for `migratetype`, each in a search of its
    /// own. Gives the blocks, and the type of the first pageblock in the end.
    fn takes<const N: usize>(
        policy: &str,
        migratetype: MigrateType,
        orders: [Order; N],
    ) -> ([Pfn; N], MigrateType) {
        let mm = mm(policy);
        mm.machine().set_cpu(Cpu(0));
        let zone = &mm.zones()[0];
        let cx = mm.pages().zone_cx(ZoneId(0));
        let mut free = zone.arenas.only().unwrap().lock(mm.machine());
        while let Some(pfn) = free.take_smallest(cx, Order::MAX, MigrateType::Movable) {
            for page in 0..Order::MAX.pages() {
                let state = FrameState {
                    kind: FrameKind::Allocated,
                    order: Order::ZERO,
                    migratetype: MigrateType::Movable,
                    zone: zone.id,
                };
                cx.cx.map.frame(pfn.add(page)).set_state(state);
            }
        }
        for (pfn, order) in [(BIG_BLOCK, LARGE), (BESIDE, SMALL), (SINGLE, Order::ZERO)] {
            (1..order.pages()).for_each(|page| cx.cx.map.frame(pfn.add(page)).set_tail());
            free.free(cx, pfn, order, MigrateType::Movable);
        }
        let taken = orders.map(|order| {
            let ask = Ask { order, migratetype, flags: AllocFlags::NONE };
            free.take(cx, ask, &mut SearchMode::default()).unwrap()
        });
        (taken, mm.pages().blocks().get(Pfn(0)))
    }

    #[test]
    fn from_where_a_block_comes_changed_twice() {
        let two = [Order::ZERO, Order::ZERO];
        let unmovable = |policy| takes(policy, MigrateType::Unmovable, two);
        // All of the pageblock comes along, and the smallest that fits serves.
        let neighbours = ([BESIDE, BESIDE.add(1)], MigrateType::Movable);
        // The largest block alone, each time anew: what is left of it is the largest still.
        let alone = ([BIG_BLOCK, BIG_BLOCK.add(16)], MigrateType::Movable);
        // The smallest block.
        let smallest = ([SINGLE, BESIDE], MigrateType::Movable);
        assert_eq!(unmovable("linux-6.1"), neighbours);
        assert_eq!(unmovable("linux-6.9"), neighbours);
        assert_eq!(unmovable("linux-6.10"), alone);
        assert_eq!(unmovable("linux-6.11"), alone);
        assert_eq!(unmovable("linux-6.12"), smallest, "stable");
        assert_eq!(unmovable("linux-6.14"), alone);
        assert_eq!(unmovable("linux-6.15"), smallest);
        assert_eq!(unmovable("linux-7.2"), smallest);
    }

    /// After a movable page was taken where nothing is free but a small block of an unmovable pageblock.
    fn after_a_stranger(policy: &str) -> Mm<Bare> {
        let mm = mm(policy);
        let cx = mm.pages().zone_cx(ZoneId(0));
        let mut free = mm.zones()[0].arenas.only().unwrap().lock(mm.machine());
        while free.take_smallest(cx, Order::MAX, MigrateType::Movable).is_some() {}
        mm.pages().blocks().set(mm.machine(), Pfn(0), MigrateType::Unmovable);
        free.add(cx, BESIDE, SMALL, MigrateType::Unmovable, crate::pages::buddy::Place::Head);
        let ask = Ask { order: Order::ZERO, migratetype: MigrateType::Movable, flags: AllocFlags::NONE };
        assert_eq!(free.take(cx, ask, &mut SearchMode::default()), Some(BESIDE));
        drop(free);
        mm
    }

    #[test]
    fn what_is_left_of_a_block_came_along_until_6_9() {
        let rest = |policy: &str| {
            let mm = after_a_stranger(policy);
            let free = mm.zones()[0].arenas.only().unwrap().lock(mm.machine());
            [MigrateType::Movable, MigrateType::Unmovable].map(|own| free.list(Order::ZERO, own).len())
        };
        assert_eq!(rest("linux-6.6"), [1, 0]);
        assert_eq!(rest("linux-6.11"), [0, 1]);
        assert_eq!(rest("linux-6.18"), [0, 1]);
    }

    #[test]
    fn marks_rise_for_each_part_of_a_pageblock_before_6_12_and_then_in_claims_only() {
        let boost = |policy: &str| after_a_stranger(policy).zones()[0].boost();
        assert_eq!((boost("linux-4.20"), boost("linux-6.1")), (0, PAGEBLOCK_PAGES));
        assert_eq!((boost("linux-6.11"), boost("linux-6.18")), (PAGEBLOCK_PAGES, 0));
    }
}
