//! The buddy allocator: free blocks of orders 0 to 10 by type, splitting and merging, all under the zone lock
//! (docs/rules/buddy-and-fallback.md#free-lists). A zone has one such set of lists in Linux, and one for each of its
//! arenas elsewhere.

use crate::ground::{Access, Line, LineKind, MAX_PAGE_ORDER, Machine, MigrateType, Order, Pfn, Relaxed};
use crate::pages::arena::{LINES_OF_ARENA, LINES_OF_ORDER, LINES_OF_ZONE, PIECES_STEP};
use crate::pages::frame::{FrameKind, FrameState};
use crate::pages::list::List;
use crate::pages::pcp::{Pressure, Setting};
use crate::pages::stat::Events;
use crate::pages::zone::{Cx, Zone, zone_flag};
use crate::rules::knobs::Knob;

/// Where a block goes on its list. Blocks at the head are handed out first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Head,
    Tail,
}

/// The free blocks of one order.
#[derive(Debug, Default)]
pub(crate) struct FreeArea {
    pub(in crate::pages) lists: [List; MigrateType::COUNT],
}

/// The free blocks of an arena.
#[derive(Debug)]
pub(crate) struct FreeAreas {
    areas: [FreeArea; MAX_PAGE_ORDER as usize + 1],
    /// Events of requests that did not go through a pageset.
    pub(in crate::pages) events: Events,
    arena: u32,
    /// Movable pages in blocks below the largest order; and what others were told of it last.
    pieces: u32,
    pieces_told: u32,
}

/// A zone with what its free lists need around them.
#[derive(Debug)]
pub(crate) struct ZoneCx<'a, M: Machine> {
    pub(crate) cx: Cx<'a, M>,
    pub(crate) zone: &'a Zone<M>,
}

impl<M: Machine> Clone for ZoneCx<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for ZoneCx<'_, M> {}

impl<M: Machine> ZoneCx<'_, M> {
    /// What a pageset's tuning depends on.
    #[inline]
    pub(crate) fn setting(&self) -> Setting<'_> {
        let pressure = Pressure {
            below_high: self.zone.has_flag(zone_flag::BELOW_HIGH),
            reclaim_active: self.zone.has_flag(zone_flag::RECLAIM_ACTIVE),
        };
        Setting { rules: self.cx.rules, scale: self.cx.knobs.get(Knob::PcpBatchScaleMax) as u32, pressure }
    }
}

impl FreeAreas {
    /// Events of requests that did not go through a pageset.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// A block of `order` was taken past the pagesets.
    pub(crate) fn count_alloc(&mut self, order: Order) {
        self.events.pgalloc += u64::from(order.pages());
    }

    /// No free blocks, of arena `arena` of its zone.
    pub(crate) fn of_arena(arena: u32) -> Self {
        Self { areas: Default::default(), events: Events::default(), arena, pieces: 0, pieces_told: 0 }
    }

    /// The number of its arena.
    pub(crate) fn number(&self) -> u32 {
        self.arena
    }

    /// Movable pages in blocks below the largest order.
    pub(crate) fn pieces(&self) -> u32 {
        self.pieces
    }

    /// The free blocks of `order` and `migratetype`.
    #[inline]
    pub(crate) fn list(&self, order: Order, migratetype: MigrateType) -> &List {
        &self.areas[order.index()].lists[migratetype.index()]
    }

    /// Turns the list of `migratetype` until the free block `pfn`, which is on it, is the first.
    pub(crate) fn turn_to<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        (order, migratetype): (Order, MigrateType),
        pfn: Pfn,
    ) {
        self.areas[order.index()].lists[migratetype.index()].turn_to(cx.cx.mem(), pfn);
    }

    /// Charges a look at the list heads of `order`, or a change of them.
    #[inline]
    fn touch_area<M: Machine>(&self, cx: ZoneCx<'_, M>, order: Order, access: Access) {
        let line = self.arena * LINES_OF_ARENA + u32::from(order.get()) * LINES_OF_ORDER;
        let index = u32::from(cx.zone.id.0) * LINES_OF_ZONE + line;
        cx.cx.machine.touch(Line { kind: LineKind::FreeArea, index }, access);
    }

    /// Charges a change of the block count of `order`, which is on the next line.
    #[inline]
    fn touch_count<M: Machine>(&self, cx: ZoneCx<'_, M>, order: Order) {
        let line = self.arena * LINES_OF_ARENA + u32::from(order.get()) * LINES_OF_ORDER + 1;
        let index = u32::from(cx.zone.id.0) * LINES_OF_ZONE + line;
        cx.cx.machine.touch(Line { kind: LineKind::FreeArea, index }, Access::Write);
    }

    /// Tells those who look without the lock that a list became empty or ceased to be.
    #[inline]
    fn tell_list<M: Machine>(&self, cx: ZoneCx<'_, M>, order: Order, migratetype: MigrateType) {
        let holds = !self.list(order, migratetype).is_empty();
        cx.zone.arenas.hints(self.arena).set_list(order, migratetype, holds);
    }

    /// Counts a block that came (1) or went (-1), and tells those who compare arenas.
    #[inline]
    fn count<M: Machine>(&mut self, cx: ZoneCx<'_, M>, order: Order, migratetype: MigrateType, change: i32) {
        if order >= Order::PAGEBLOCK {
            cx.zone.stat.add_large(i64::from(change) << order.get());
        }
        if order < Order::MAX {
            if migratetype == MigrateType::Movable {
                self.pieces = self.pieces.wrapping_add_signed(change << order.get());
            }
            if self.pieces.abs_diff(self.pieces_told) < PIECES_STEP {
                return;
            }
        }
        if cx.zone.arenas.only().is_none() {
            self.tell_counts(cx);
        }
    }

    #[inline(never)]
    fn tell_counts<M: Machine>(&mut self, cx: ZoneCx<'_, M>) {
        self.pieces_told = self.pieces;
        cx.zone.arenas.touch_counts(cx.cx.machine, self.arena, Access::Write);
        let counts = cx.zone.arenas.counts(self.arena);
        counts.whole.store(self.nr_free(Order::MAX), Relaxed);
        counts.pieces.store(self.pieces, Relaxed);
    }

    /// Free blocks of `order`, of every type.
    pub(crate) fn nr_free(&self, order: Order) -> u32 {
        self.areas[order.index()].lists.iter().map(List::len).sum()
    }

    /// Puts a free block on the list of `migratetype`.
    #[inline]
    pub(crate) fn add<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
        place: Place,
    ) {
        self.touch_area(cx, order, Access::Write);
        self.touch_count(cx, order);
        let list = &mut self.areas[order.index()].lists[migratetype.index()];
        match place {
            Place::Head => list.push_front(cx.cx.mem(), pfn),
            Place::Tail => list.push_back(cx.cx.mem(), pfn),
        }
        if list.len() == 1 {
            self.tell_list(cx, order, migratetype);
        }
        self.count(cx, order, migratetype, 1);
        if migratetype == MigrateType::HighAtomic {
            cx.zone.stat.add_highatomic(i64::from(order.pages()));
        }
        let state = FrameState { kind: FrameKind::Free, order, migratetype, zone: cx.zone.id };
        cx.cx.map.frame(pfn).set_state(state);
    }

    /// Takes a free block off the list that its descriptor names. What it becomes is the caller's to say.
    #[inline]
    pub(crate) fn remove<M: Machine>(&mut self, cx: ZoneCx<'_, M>, pfn: Pfn) {
        let FrameState { order, migratetype, .. } = cx.cx.map.frame(pfn).state();
        self.touch_area(cx, order, Access::Write);
        self.touch_count(cx, order);
        let list = &mut self.areas[order.index()].lists[migratetype.index()];
        list.remove(cx.cx.mem(), pfn);
        if list.is_empty() {
            self.tell_list(cx, order, migratetype);
        }
        self.count(cx, order, migratetype, -1);
        if migratetype == MigrateType::HighAtomic {
            cx.zone.stat.add_highatomic(-i64::from(order.pages()));
        }
    }

    /// Takes a block of `order` from the smallest that the list of `migratetype` has. The block is nobody's until the
    /// caller sets its state.
    #[inline]
    pub(crate) fn take_smallest<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        order: Order,
        migratetype: MigrateType,
    ) -> Option<Pfn> {
        for found in order.to(Order::MAX) {
            self.touch_area(cx, found, Access::Read);
            if let Some(pfn) = self.list(found, migratetype).first() {
                self.remove(cx, pfn);
                self.expand(cx, pfn, order, found, migratetype);
                return Some(pfn);
            }
        }
        None
    }

    /// Cuts a block of order `high` down to `low`: the request keeps the lowest part, each upper half goes to the head
    /// of the next lower list.
    pub(crate) fn expand<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        pfn: Pfn,
        low: Order,
        high: Order,
        migratetype: MigrateType,
    ) {
        let mut order = high;
        while order > low {
            order = order.down().expect("an order above another is not 0");
            self.add(cx, pfn.add(order.pages()), order, migratetype, Place::Head);
        }
    }

    /// Frees a block, merging it with its buddies as far as they are free too. `migratetype` is its pageblock's.
    pub(crate) fn free<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
    ) {
        let (mut pfn, mut order) = (pfn, order);
        let mut place = Place::Head;
        while let Some(above) = order.up() {
            let Some(buddy) = free_buddy(cx, pfn, order) else {
                place = place_for(cx, pfn, order);
                break;
            };
            if order >= Order::PAGEBLOCK && !may_merge(cx, buddy, migratetype) {
                break;
            }
            self.remove(cx, buddy);
            if order < Order::PAGEBLOCK || cx.cx.blocks.get(buddy) == migratetype {
                // Same type: nothing to reconcile.
            } else {
                cx.cx.blocks.set(cx.cx.machine, buddy, migratetype);
            }
            cx.cx.map.frame(pfn).set_tail();
            cx.cx.map.frame(buddy).set_tail();
            pfn = Pfn(pfn.0.min(buddy.0));
            order = above;
        }
        self.add(cx, pfn, order, migratetype, place);
    }
}

/// The buddy of the block at `pfn`, if it is free and of the same order.
#[inline]
fn free_buddy<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) -> Option<Pfn> {
    let buddy = pfn.buddy(order);
    let frame = cx.cx.map.get(buddy)?;
    cx.cx.mem().touch(buddy, Access::Read);
    let state = frame.state();
    let free = state.kind == FrameKind::Free && state.order == order && state.zone == cx.zone.id;
    free.then_some(buddy)
}

/// A block whose next larger buddy is free will soon be able to merge: it goes to the tail, to be handed out last.
#[inline]
fn place_for<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) -> Place {
    match order.up() {
        Some(above) if above < Order::MAX && free_buddy(cx, pfn.align_down(above), above).is_some() => {
            Place::Tail
        }
        _ => Place::Head,
    }
}

/// Whether whole pageblocks may merge although their types differ: not with reserved or isolated ones.
fn may_merge<M: Machine>(cx: ZoneCx<'_, M>, buddy: Pfn, migratetype: MigrateType) -> bool {
    let other = cx.cx.blocks.read(cx.cx.machine, buddy);
    let ordinary = |migratetype: MigrateType| migratetype.index() < MigrateType::PCP_COUNT;
    other == migratetype || ordinary(other) && ordinary(migratetype)
}
