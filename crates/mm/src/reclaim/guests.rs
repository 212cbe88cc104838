//! Moving guests out of a low zone: pages of address spaces and files that would do as well in a higher zone go to one with
//! room, rather than that anything is evicted (see `zone_price`). kswapd does it when a zone is short of its reserve, a
//! request that can be served nowhere else when it would have to reclaim.
//!
//! Guests are found by going over the zone's frames, as compaction does, for on a node's lists they stand among all others.
//! Of a stretch, those that are not active leave first.

use super::{ReclaimDoor, ReclaimGround};
use crate::ground::{Access, Chore, Line, LineKind, Machine, Node, Order, Pfn, ZoneKind};
use crate::lru::SWAP_CLUSTER_MAX;
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::{AllocFlags, FrameKind, LowZone, Mark, Request, Search, Zone};
use crate::vm::FileKind;

/// A stretch of frames: in each, pages on active lists stay if others make enough room.
const STRETCH: u32 = 2048;

/// Which guests are asked to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    /// Those that are not on an active list.
    Unused,
    All,
}

/// What is to be reached: so many pages moved, into zones that stay above a mark.
#[derive(Clone, Copy, Debug)]
struct Aim {
    pages: u32,
    /// kswapd leaves the high mark, a request the low one.
    mark: Mark,
}

/// When a request asks guests to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asking {
    /// Before it reclaims; not where it was in vain since the last tick.
    First,
    /// Before it fails.
    Last,
}

impl<'a, M: Machine, G: ReclaimGround<M>> ReclaimDoor<'a, M, G> {
    /// kswapd of `node` restores what low zones keep for those who can go nowhere else. Says whether it was asked to.
    pub(super) fn restore_low_zones(self, node: Node) -> bool {
        let mut asked = false;
        for (zone, low) in self.pages().low_zones(node) {
            let told = low.take_shortage();
            asked |= told;
            // The reserve is what a boost of the marks is for: nothing need be evicted for that.
            if told || zone.boost() > 0 && low.has_demand() && !low.gave_up() {
                self.restore(zone, low);
            }
        }
        asked
    }

    fn restore(self, zone: &Zone<M>, low: &LowZone) {
        loop {
            // Above the high mark the node counts as balanced, and nothing is evicted.
            let free = zone.free_pages();
            let missing = zone.decide_by_kept(self.machine(), ZoneKind::Movable, |marks, kept| {
                (zone.bounded_reserve(kept) + marks.high.max(marks.low) + 1).saturating_sub(free)
            });
            if missing == 0 {
                return zone.set_boost(0);
            }
            let aim = Aim { pages: missing.min(SWAP_CLUSTER_MAX as u32), mark: Mark::Low };
            if self.move_out(zone, low, aim) == 0 {
                return low.give_up();
            }
        }
    }

    /// Makes room for `search` in the low zones that it is bound to; gives how many base pages left. Nothing is evicted.
    pub(crate) fn ask_guests_to_leave(self, search: Search<'_>, asking: Asking) -> u32 {
        let pages = search.request.order.pages().max(SWAP_CLUSTER_MAX as u32);
        let zones = self.pages().candidates(search.request, search.node);
        let mut low_zones = zones.filter_map(|zone| Some((zone, zone.low()?)));
        let moved = low_zones.find_map(|(zone, low)| {
            if !low.binds(search.request.highest) || asking == Asking::First && low.gave_up() {
                return None;
            }
            // The min mark may have been raised far above what is free.
            let missing = (zone.mark_min().pages + pages).saturating_sub(zone.free_pages());
            let moved = self.move_out(zone, low, Aim { pages: missing.max(pages), mark: Mark::Min });
            if moved == 0 {
                low.give_up();
            }
            (moved > 0).then_some(moved)
        });
        moved.unwrap_or(0)
    }

    /// Moves guests out until `aim` is reached or all frames were looked at; gives how many base pages it moved.
    fn move_out(self, zone: &Zone<M>, low: &LowZone, aim: Aim) -> u32 {
        if self.nearest_room(zone, Order::ZERO, aim.mark).is_none() {
            return 0;
        }
        let cpu = self.machine().cpu();
        self.lru().lru_drain_cpu(cpu);
        let (mut moved, mut looked) = (0, 0);
        while moved < aim.pages && looked < zone.managed() {
            let from = low.cursor().min(zone.managed() - 1);
            let to = (from + STRETCH).min(zone.managed());
            let mut at = from;
            for who in [Who::Unused, Who::All] {
                let left = Aim { pages: aim.pages - moved, ..aim };
                let (pages, end) = self.move_out_of(zone, low, (from..to, who), left);
                moved += pages;
                at = end;
                if moved >= aim.pages {
                    break;
                }
            }
            looked += to - from;
            low.set_cursor(if at >= zone.managed() { 0 } else { at });
        }
        low.count_moved(u64::from(moved));
        // Others find them on the zone's lists only.
        self.pages().drain_pageset(zone, cpu);
        moved
    }

    /// Looks through a stretch, counted from the zone's start; gives how many pages it moved, and where it ended.
    fn move_out_of(
        self,
        zone: &Zone<M>,
        low: &LowZone,
        (stretch, who): (core::ops::Range<u32>, Who),
        aim: Aim,
    ) -> (u32, u32) {
        let (mut at, mut moved) = (stretch.start, 0);
        while at < stretch.end && moved < aim.pages {
            let pfn = zone.start().add(at);
            let state = self.map().frame(pfn).state();
            self.machine().touch(Line { kind: LineKind::Frame, index: pfn.0 }, Access::Read);
            at += if state.kind == FrameKind::Tail { 1 } else { state.order.pages() };
            if state.kind == FrameKind::Allocated && self.is_guest(pfn, low, who) {
                moved += self.move_guest(zone, pfn, aim.mark);
            }
        }
        (moved, at)
    }

    /// Whether the page at `pfn` is on a list and could be in a higher zone than that of `low`. A hint: nobody holds it.
    fn is_guest(self, pfn: Pfn, low: &LowZone, who: Who) -> bool {
        let page = self.lru().page(pfn);
        if !page.has(PageFlag::Lru) || page.has(PageFlag::Placed) || page.has(PageFlag::Writeback) {
            return false;
        }
        if who == Who::Unused && page.has(PageFlag::Active) {
            return false;
        }
        match page.mapping() {
            Mapping::None => false,
            Mapping::Anon(_) | Mapping::Slot => true,
            Mapping::File(id) => self.files().file(id).is_some_and(|file| match file.kind() {
                FileKind::Metadata => !low.binds(ZoneKind::Normal),
                FileKind::Disk | FileKind::Memory => true,
            }),
        }
    }

    /// Moves one page; gives its base pages, 0 if it stayed.
    fn move_guest(self, zone: &Zone<M>, pfn: Pfn, mark: Mark) -> u32 {
        let Some(isolated) = self.lru().isolate_page(pfn) else { return 0 };
        self.machine().spend(Chore::ReclaimPage, 1);
        let order = self.pages().order_of(pfn);
        let Some(to) = self.nearest_room(zone, order, mark).and_then(|to| self.take_for_guest(to, order))
        else {
            // In pieces it may find room.
            if order > Order::ZERO && self.nearest_room(zone, Order::ZERO, mark).is_some() {
                self.spaces().split_huge_page(pfn);
            }
            self.lru().put_back_page(pfn, isolated);
            return 0;
        };
        if self.ground.move_into(pfn, to).is_err() {
            self.pages().free(to, order).expect("the frame was allocated above and shown to nobody");
            self.lru().put_back_page(pfn, isolated);
            return 0;
        }
        self.lru().end_isolation_of(isolated);
        order.pages()
    }

    /// The nearest zone that is not low and has room for a block of `order` above the mark.
    fn nearest_room(self, low: &Zone<M>, order: Order, mark: Mark) -> Option<&'a Zone<M>> {
        self.pages().candidates(&Request::USER, low.node()).find(|zone| {
            let mark = match mark {
                Mark::Low => zone.mark_high(),
                Mark::Min => zone.mark_low(),
            };
            zone.low().is_none()
                && zone.watermark_ok(self.machine(), order, mark, ZoneKind::Movable, AllocFlags::NONE)
        })
    }

    fn take_for_guest(self, zone: &Zone<M>, order: Order) -> Option<Pfn> {
        let request = Request::USER.of_order(order);
        let search =
            Search { request: &request, node: zone.node(), mark: Mark::Low, flags: AllocFlags::NONE };
        self.pages().try_zone(self.ground, search, zone, zone)
    }
}
