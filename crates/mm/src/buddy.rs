//! The buddy allocator: free blocks of orders 0 to 10 by type, splitting and merging, all under the zone lock
//! (facts/ALGORITHMS.md 2.1).

use crate::frame::{FrameKind, FrameState};
use crate::ids::{MAX_PAGE_ORDER, MigrateType, Order, Pfn};
use crate::knobs::Knob;
use crate::list::List;
use crate::machine::{Access, Line, LineKind, Machine};
use crate::pcp::{Pressure, Setting};
use crate::stat::Events;
use crate::zone::{Cx, Zone, zone_flag};

/// Where a block goes on its list. Blocks at the head are handed out first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Head,
    Tail,
}

/// The free blocks of one order.
#[derive(Debug, Default)]
pub(crate) struct FreeArea {
    pub(crate) lists: [List; MigrateType::COUNT],
}

/// The free blocks of a zone.
#[derive(Debug, Default)]
pub(crate) struct FreeAreas {
    pub(crate) areas: [FreeArea; MAX_PAGE_ORDER as usize + 1],
    /// Events of requests that did not go through a pageset.
    pub(crate) events: Events,
    /// Pages of pageblocks reserved for atomic high-order requests.
    pub(crate) reserved_highatomic: u32,
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

    /// Charges a look at the list heads of `order`, or a change of them.
    #[inline]
    fn touch_area(self, order: Order, access: Access) {
        let index = u32::from(self.zone.id.0) * 64 + u32::from(order.get()) * 4;
        self.cx.machine.touch(Line { kind: LineKind::FreeArea, index }, access);
    }

    /// Charges a change of the block count of `order`, which is on the next line.
    #[inline]
    fn touch_count(self, order: Order) {
        let index = u32::from(self.zone.id.0) * 64 + u32::from(order.get()) * 4 + 1;
        self.cx.machine.touch(Line { kind: LineKind::FreeArea, index }, Access::Write);
    }
}

impl FreeAreas {
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
        cx.touch_area(order, Access::Write);
        cx.touch_count(order);
        let list = &mut self.areas[order.index()].lists[migratetype.index()];
        match place {
            Place::Head => list.push_front(cx.cx.mem(), pfn),
            Place::Tail => list.push_back(cx.cx.mem(), pfn),
        }
        if list.len() == 1 {
            cx.zone.stat.set_nonempty(order, migratetype, true);
        }
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
        cx.touch_area(order, Access::Write);
        cx.touch_count(order);
        let list = &mut self.areas[order.index()].lists[migratetype.index()];
        list.remove(cx.cx.mem(), pfn);
        if list.is_empty() {
            cx.zone.stat.set_nonempty(order, migratetype, false);
        }
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
            cx.touch_area(found, Access::Read);
            if let Some(pfn) = self.areas[found.index()].lists[migratetype.index()].first() {
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
