//! Walking every invariant: each managed frame in exactly one place, every count right, no two free buddies unmerged.
//! For tests and for `freehold bench --check`; to be called while nothing else runs.

use alloc::format;
use alloc::string::String;

use super::{ViewsDoor, ViewsGround};
use crate::ground::{Machine, MigrateType, Order, Pfn, Relaxed};
use crate::pages::{FrameKind, FrameState, FreeAreas, List, PIECES_STEP, Pcp, Types, Zone};

/// Pages of a zone by what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZonePages {
    /// On the buddy lists.
    pub free: u64,
    /// On pagesets.
    pub pcp: u64,
    /// Handed out.
    pub allocated: u64,
}

impl<M: Machine, G: ViewsGround<M>> ViewsDoor<'_, M, G> {
    /// Checks every invariant, and gives the pages of all zones by what they are.
    ///
    /// # Errors
    /// The first that does not hold, in one line.
    pub fn check(self) -> Result<ZonePages, String> {
        let mut sum = ZonePages::default();
        self.lru().check_lru()?;
        for zone in self.zones() {
            let pages = self.check_zone(zone).map_err(|what| format!("{zone:?}: {what}"))?;
            sum.free += pages.free;
            sum.pcp += pages.pcp;
            sum.allocated += pages.allocated;
        }
        Ok(sum)
    }

    fn check_zone(self, zone: &Zone<M>) -> Result<ZonePages, String> {
        let seen = self.scan(zone)?;
        self.check_summary(zone)?;
        let (mut free, mut large) = (0, 0);
        for areas in zone.arenas().all() {
            let areas = areas.lock(self.machine());
            large +=
                Order::PAGEBLOCK.to(Order::MAX).map(|order| areas.nr_free(order) << order.get()).sum::<u32>();
            let pages = self.check_free_lists(zone, &areas);
            free += pages.map_err(|what| format!("arena {}: {what}", areas.number()))?;
        }
        let mut pcp = 0;
        let mut held_back = 0;
        for (cpu, pageset) in zone.pagesets().iter().enumerate() {
            let guard = pageset.pcp().lock(self.machine());
            pcp +=
                self.check_pageset(zone, &guard).map_err(|what| format!("pageset of cpu {cpu}: {what}"))?;
            held_back += i64::from(pageset.free_diff().load(Relaxed));
        }
        if (free, pcp) != (seen.free, seen.pcp) {
            return Err(format!(
                "{free} pages on free lists and {pcp} on pagesets, but {} and {} by their descriptors",
                seen.free, seen.pcp
            ));
        }
        let counted = zone.stat().free_pages_signed() + held_back;
        if counted != free as i64 {
            return Err(format!("nr_free_pages is {counted}, but {free} pages are free"));
        }
        if zone.stat().free_large() != large {
            let counted = zone.stat().free_large();
            return Err(format!("{counted} pages are counted in large free blocks, but there are {large}"));
        }
        Ok(seen)
    }

    /// Goes over the descriptors of the managed frames, block by block.
    fn scan(self, zone: &Zone<M>) -> Result<ZonePages, String> {
        let mut pages = ZonePages::default();
        let span = zone.managed_span();
        let mut pfn = span.start;
        while pfn < span.end {
            let state = self.map().frame(Pfn(pfn)).state();
            let size = state.order.pages();
            if state.kind == FrameKind::Tail {
                return Err(format!("{} is in no block", Pfn(pfn)));
            }
            if state.zone != zone.id() || pfn % size != 0 || pfn + size > span.end {
                return Err(format!("the block of {} at {} is out of place", state.order, Pfn(pfn)));
            }
            let count = match state.kind {
                FrameKind::Free => &mut pages.free,
                FrameKind::Pcp => &mut pages.pcp,
                FrameKind::Allocated | FrameKind::Slab | FrameKind::SlabTail | FrameKind::Tail => {
                    &mut pages.allocated
                }
            };
            *count += u64::from(size);
            if state.kind == FrameKind::Free {
                self.check_unmerged(Pfn(pfn), state)?;
            }
            pfn += size;
        }
        Ok(pages)
    }

    /// A free block's buddy is not free too, unless their pageblocks' types forbid merging.
    fn check_unmerged(self, pfn: Pfn, state: FrameState) -> Result<(), String> {
        if state.order == Order::MAX {
            return Ok(());
        }
        let buddy = pfn.buddy(state.order);
        let Some(frame) = self.map().get(buddy) else { return Ok(()) };
        let other = frame.state();
        let both_free =
            other.kind == FrameKind::Free && other.order == state.order && other.zone == state.zone;
        let ordinary = |pfn| self.blocks().get(pfn).index() < MigrateType::PCP_COUNT;
        let may_merge = state.order < Order::PAGEBLOCK
            || self.blocks().get(pfn) == self.blocks().get(buddy)
            || ordinary(pfn) && ordinary(buddy);
        // Converting a pageblock's type puts whole blocks side by side that a later free merges.
        let converted = state.order >= Order::PAGEBLOCK;
        if both_free && may_merge && !converted {
            return Err(format!("buddies {pfn} and {buddy} of {} are both free", state.order));
        }
        Ok(())
    }

    fn check_free_lists(self, zone: &Zone<M>, free: &FreeAreas) -> Result<u64, String> {
        let mut pages = 0;
        let hints = zone.arenas().hints(free.number());
        for order in Order::ZERO.to(Order::MAX) {
            for migratetype in MigrateType::ALL {
                let list = free.list(order, migratetype);
                let wanted = FrameState { kind: FrameKind::Free, order, migratetype, zone: zone.id() };
                let belongs = |pfn, state| state == wanted && zone.arenas().owner(pfn) == free.number();
                let walked = self
                    .walk(list, belongs)
                    .map_err(|what| format!("free list of {order}, {}: {what}", migratetype.name()))?;
                let told = hints.has_list(order, Types::only(migratetype));
                if told == list.is_empty() && migratetype != MigrateType::Isolate {
                    return Err(format!("{order}, {}: the list's flag is wrong", migratetype.name()));
                }
                pages += u64::from(walked) << order.get();
            }
        }
        check_counts(zone, free)?;
        Ok(pages)
    }

    fn check_pageset(self, zone: &Zone<M>, pcp: &Pcp) -> Result<u64, String> {
        let mut pages = 0;
        for (order, list) in pcp.lists() {
            let belongs = |_, state: FrameState| {
                state.kind == FrameKind::Pcp && state.order == order && state.zone == zone.id()
            };
            pages += u64::from(self.walk(list, belongs)?) << order.get();
        }
        if pages != u64::from(pcp.count()) {
            return Err(format!("{pages} pages on its lists, but count is {}", pcp.count()));
        }
        Ok(pages)
    }

    /// Walks a list both ways; gives its blocks.
    fn walk(self, list: &List, belongs: impl Fn(Pfn, FrameState) -> bool) -> Result<u32, String> {
        let mut blocks = 0;
        let (mut next, mut last) = (list.first(), None);
        while let Some(pfn) = next {
            if !belongs(pfn, self.map().frame(pfn).state()) {
                return Err(format!("{pfn} does not belong: {:?}", self.map().frame(pfn).state()));
            }
            if List::before(self.map(), pfn) != last {
                return Err(format!("{pfn} does not link back"));
            }
            blocks += 1;
            if blocks > list.len() {
                return Err(format!("more blocks than its count of {}", list.len()));
            }
            last = Some(pfn);
            next = List::after(self.map(), pfn);
        }
        if blocks != list.len() || last != list.last() {
            return Err(format!("{blocks} blocks, but its count is {}", list.len()));
        }
        Ok(blocks)
    }
}

/// What is said of an arena is so.
fn check_counts<M: Machine>(zone: &Zone<M>, free: &FreeAreas) -> Result<(), String> {
    if zone.arenas().only().is_some() {
        return Ok(());
    }
    let orders = Order::ZERO.to(Order::MAX).filter(|&order| order < Order::MAX);
    let pages = |order: Order| free.list(order, MigrateType::Movable).len() << order.get();
    let (whole, pieces) = (free.nr_free(Order::MAX), orders.map(pages).sum::<u32>());
    let said = zone.arenas().counts(free.number());
    let (said_whole, said_pieces) = (said.whole.load(Relaxed), said.pieces.load(Relaxed));
    if said_whole != whole || free.pieces() != pieces || said_pieces.abs_diff(pieces) >= PIECES_STEP {
        return Err(format!(
            "{whole} whole ranges and {pieces} movable pages in pieces, but {said_whole} and {} are counted and \
             {said_pieces} said",
            free.pieces()
        ));
    }
    Ok(())
}
