//! What happens when the free lists of a request's own type are empty: claim a pageblock of another type, or steal a
//! single block from one (docs/rules/buddy-and-fallback.md#fallback), and the watermark boost that follows (#boost there).
//!
//! The two passes in this order are Linux 6.15's; what was before them, and reaches other pages, is in [`largest`]
//! (docs/rules/buddy-and-fallback.md).

mod largest;

use crate::ground::{Access, Machine, MigrateType, Order, PAGEBLOCK_PAGES, Pfn};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::pages::frame::FrameKind;
use crate::pages::stat::SlowEvents;
use crate::pages::zone::{AllocFlags, zone_flag};
use crate::pages::zone_price::LowZone;
use crate::rules::knobs::Knob;
use crate::rules::policy::{FallbackRule, MixingRule};

/// Which search succeeded last in this hold of the zone lock; the next page need not repeat those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum SearchMode {
    /// The request's own lists.
    #[default]
    Own,
    /// Claiming a pageblock.
    Claim,
    /// Stealing a block.
    Steal,
}

/// The smallest order that a movable request may claim a pageblock for: half a pageblock's order.
const CLAIM_ORDER_MIN: u8 = Order::PAGEBLOCK.get() / 2;

/// The types to try, in order, when those of the request's own type are used up.
pub(crate) fn fallbacks(migratetype: MigrateType) -> &'static [MigrateType] {
    use MigrateType::{Movable, Reclaimable, Unmovable};
    match migratetype {
        Unmovable => &[Reclaimable, Movable],
        Movable => &[Reclaimable, Unmovable],
        Reclaimable => &[Unmovable, Movable],
        _ => &[],
    }
}

/// A request to the free lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(in crate::pages) order: Order,
    pub(in crate::pages) migratetype: MigrateType,
    pub(in crate::pages) flags: AllocFlags,
}

impl FreeAreas {
    /// Takes a block for `ask`: from its own lists, else by claiming, else by stealing. `mode` lasts as long as the
    /// zone lock is held.
    #[inline]
    pub(crate) fn take<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        ask: Ask,
        mode: &mut SearchMode,
    ) -> Option<Pfn> {
        if *mode == SearchMode::Own {
            if let Some(pfn) = self.take_smallest(cx, ask.order, ask.migratetype) {
                return Some(pfn);
            }
        }
        self.take_foreign(cx, ask, mode)
    }

    #[inline(never)]
    fn take_foreign<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        ask: Ask,
        mode: &mut SearchMode,
    ) -> Option<Pfn> {
        if cx.cx.rules.zone.fallback != FallbackRule::ClaimOrSmallest {
            return self.take_from_largest(cx, ask);
        }
        if *mode <= SearchMode::Claim {
            if let Some(pfn) = self.take_by(cx, ask, SearchMode::Claim) {
                *mode = SearchMode::Own;
                return Some(pfn);
            }
        }
        if ask.flags.has(AllocFlags::NOFRAGMENT) {
            return None;
        }
        let pfn = self.take_by(cx, ask, SearchMode::Steal)?;
        *mode = SearchMode::Steal;
        Some(pfn)
    }

    /// Takes a block for `ask` by one way of searching alone.
    #[inline]
    pub(crate) fn take_by<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        ask: Ask,
        way: SearchMode,
    ) -> Option<Pfn> {
        let (found, counter) = match way {
            SearchMode::Own => return self.take_smallest(cx, ask.order, ask.migratetype),
            SearchMode::Claim => (self.claim(cx, ask), &cx.zone.stat.slow.claims),
            SearchMode::Steal => (self.steal(cx, ask), &cx.zone.stat.slow.steals),
        };
        if found.is_some() {
            SlowEvents::bump(counter);
        }
        found
    }

    /// The first block of `order` of a type that `migratetype` may fall back to.
    fn foreign(&self, order: Order, migratetype: MigrateType) -> Option<(Pfn, MigrateType)> {
        let first = |&other: &MigrateType| Some((self.list(order, other).first()?, other));
        fallbacks(migratetype).iter().find_map(first)
    }

    /// From the largest blocks down: turns a pageblock of another type into one of the request's.
    fn claim<M: Machine>(&mut self, cx: ZoneCx<'_, M>, ask: Ask) -> Option<Pfn> {
        let least =
            if ask.flags.has(AllocFlags::NOFRAGMENT) { ask.order.max(Order::PAGEBLOCK) } else { ask.order };
        for order in least.to(Order::MAX).rev() {
            if !may_claim(order, ask.migratetype) {
                break;
            }
            let Some((pfn, other)) = self.foreign(order, ask.migratetype) else { continue };
            if order >= Order::PAGEBLOCK {
                return Some(self.claim_whole(cx, ask, pfn));
            }
            if let Some(pfn) = self.claim_part(cx, ask, pfn, other) {
                return Some(pfn);
            }
        }
        None
    }

    /// A free block of one pageblock or two simply changes its type.
    fn claim_whole<M: Machine>(&mut self, cx: ZoneCx<'_, M>, ask: Ask, pfn: Pfn) -> Pfn {
        let order = cx.cx.map.frame(pfn).state().order;
        self.remove(cx, pfn);
        for block in (0..order.pages()).step_by(PAGEBLOCK_PAGES as usize) {
            cx.cx.blocks.set(cx.cx.machine, pfn.add(block), ask.migratetype);
        }
        self.expand(cx, pfn, ask.order, order, ask.migratetype);
        pfn
    }

    /// A pageblock that is partly in use changes its type if half of it is free or of a kind with the request.
    fn claim_part<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        ask: Ask,
        pfn: Pfn,
        other: MigrateType,
    ) -> Option<Pfn> {
        answer_mixing(cx, ask);
        let start = whole_pageblock(cx, pfn)?;
        if !is_mostly_alike(cx, start, ask.migratetype, other) {
            return None;
        }
        self.convert_block(cx, start, ask.migratetype);
        self.take_smallest(cx, ask.order, ask.migratetype)
    }

    /// Moves the free blocks of the pageblock at `start` to the lists of `migratetype`, and the pageblock with them.
    /// Gives the pages moved.
    pub(crate) fn convert_block<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        start: Pfn,
        migratetype: MigrateType,
    ) -> u32 {
        let moved = self.move_free(cx, start, migratetype);
        cx.cx.blocks.set(cx.cx.machine, start, migratetype);
        moved
    }

    /// The same where a free block may be larger than the pageblock: it is taken apart.
    pub(crate) fn convert_within<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        start: Pfn,
        migratetype: MigrateType,
    ) -> u32 {
        for order in Order::PAGEBLOCK.to(Order::MAX).filter(|order| *order > Order::PAGEBLOCK) {
            let head = start.align_down(order);
            let state = cx.cx.map.frame(head).state();
            if (state.kind, state.order) == (FrameKind::Free, order) {
                self.remove(cx, head);
                for block in (0..order.pages()).step_by(PAGEBLOCK_PAGES as usize) {
                    let place = crate::pages::buddy::Place::Tail;
                    self.add(cx, head.add(block), Order::PAGEBLOCK, state.migratetype, place);
                }
            }
        }
        self.convert_block(cx, start, migratetype)
    }

    /// Moves the free blocks of the pageblock at `start` to the lists of `migratetype`; gives their pages.
    fn move_free<M: Machine>(&mut self, cx: ZoneCx<'_, M>, start: Pfn, migratetype: MigrateType) -> u32 {
        let mut moved = 0;
        for_each_block(cx, start, |pfn, kind, order| {
            if kind == FrameKind::Free {
                self.remove(cx, pfn);
                self.add(cx, pfn, order, migratetype, crate::pages::buddy::Place::Tail);
                moved += order.pages();
            }
        });
        moved
    }

    /// From the smallest blocks up: takes one of another type and leaves its pageblock as it is.
    fn steal<M: Machine>(&mut self, cx: ZoneCx<'_, M>, ask: Ask) -> Option<Pfn> {
        for order in ask.order.to(Order::MAX) {
            if let Some((pfn, other)) = self.foreign(order, ask.migratetype) {
                self.remove(cx, pfn);
                self.expand(cx, pfn, ask.order, order, other);
                return Some(pfn);
            }
        }
        None
    }
}

/// Whether a block of `order` is large enough for a request of `migratetype` to take its pageblock over.
fn may_claim(order: Order, migratetype: MigrateType) -> bool {
    order.get() >= CLAIM_ORDER_MIN || migratetype != MigrateType::Movable
}

/// The pageblock around `pfn`, if all of it is in the zone.
fn whole_pageblock<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn) -> Option<Pfn> {
    let start = pfn.align_down(Order::PAGEBLOCK);
    let span = cx.zone.span();
    (start.0 >= span.start && start.0 + PAGEBLOCK_PAGES <= span.end).then_some(start)
}

/// Whether half of the pageblock at `start`, of type `other`, is free or of a kind with requests of `migratetype`.
fn is_mostly_alike<M: Machine>(
    cx: ZoneCx<'_, M>,
    start: Pfn,
    migratetype: MigrateType,
    other: MigrateType,
) -> bool {
    let (free, movable) = count_block(cx, start);
    let alike = match (migratetype, other) {
        (MigrateType::Movable, _) => movable,
        (_, MigrateType::Movable) => PAGEBLOCK_PAGES - (free + movable),
        _ => 0,
    };
    free + alike >= PAGEBLOCK_PAGES / 2
}

/// Walks the blocks of the pageblock at `start` by their heads.
fn for_each_block<M: Machine>(cx: ZoneCx<'_, M>, start: Pfn, mut visit: impl FnMut(Pfn, FrameKind, Order)) {
    let mut offset = 0;
    while offset < PAGEBLOCK_PAGES {
        let pfn = start.add(offset);
        cx.cx.mem().touch(pfn, Access::Read);
        let state = cx.cx.map.frame(pfn).state();
        visit(pfn, state.kind, state.order);
        offset += if state.kind == FrameKind::Tail { 1 } else { state.order.pages() };
    }
}

/// Free pages and allocated movable ones of the pageblock at `start`. Pages on pagesets count as neither.
fn count_block<M: Machine>(cx: ZoneCx<'_, M>, start: Pfn) -> (u32, u32) {
    let (mut free, mut movable) = (0, 0);
    for_each_block(cx, start, |pfn, kind, order| match kind {
        FrameKind::Free => free += order.pages(),
        FrameKind::Allocated if cx.cx.map.frame(pfn).state().migratetype == MigrateType::Movable => {
            movable += order.pages();
        }
        _ => {}
    });
    (free, movable.min(PAGEBLOCK_PAGES - free))
}

/// Types are about to mix in a pageblock: raises the marks where the rules say so, and has kswapd told.
fn answer_mixing<M: Machine>(cx: ZoneCx<'_, M>, ask: Ask) {
    if cx.cx.rules.zone.mixing != MixingRule::Avoided {
        return;
    }
    if let Some(pages) = boosted(cx) {
        cx.zone.set_boost(pages);
        if ask.flags.has(AllocFlags::KSWAPD) {
            cx.zone.set_flag(zone_flag::BOOSTED);
        }
    }
}

/// By how much the zone's marks are raised from now on, so that kswapd frees memory ahead of the next mixing: by a
/// pageblock more, as far as `vm.watermark_boost_factor` lets them. `None`: as they were.
fn boosted<M: Machine>(cx: ZoneCx<'_, M>) -> Option<u32> {
    let zone = cx.zone;
    // The reserve of a low zone with a demand is free for this already.
    let reserved = zone.low.as_ref().is_some_and(LowZone::has_demand);
    if zone.managed < PAGEBLOCK_PAGES * 4 || reserved {
        return None;
    }
    let by = |high: u32, factor: u64| {
        let most = u64::from(high) * factor / 10_000;
        let next = (zone.boost() + PAGEBLOCK_PAGES).min(most.max(u64::from(PAGEBLOCK_PAGES)) as u32);
        (most > 0).then_some(next)
    };
    let (machine, knobs) = (cx.cx.machine, cx.cx.knobs);
    let factor = knobs.get(Knob::WatermarkBoostFactor);
    if M::WATCHES_KNOBS {
        zone.decide_by_marks(machine, |marks| by(marks.high, factor));
    }
    let high = zone.watermarks().high;
    knobs.decide(machine, Knob::WatermarkBoostFactor, |factor| by(high, factor))
}
