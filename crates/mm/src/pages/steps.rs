//! Single steps of the request path and the free path, past the paths themselves: for conformance, which must take from the zone that a kernel took
//! from, and put on a list what a kernel had there.

use crate::ground::{Cpu, Machine, MigrateType, Order, Pfn, ZoneId, ZoneKind};
use crate::pages::Pages;
use crate::pages::fallback::Ask;
use crate::pages::frame::{FrameKind, FrameState, Mobility};
use crate::pages::pcp::Pcp;
use crate::pages::request::FreeError;
use crate::pages::zone::{AllocFlags, zone_flag};

/// The steps, on their pages.
#[derive(Debug)]
pub struct Steps<'a, M: Machine> {
    pub(super) pages: &'a Pages<M>,
}

impl<M: Machine> Clone for Steps<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Steps<'_, M> {}

impl<M: Machine> Steps<'_, M> {
    /// Takes a block from `zone` through this CPU's pageset, whatever the watermarks say; sets and clears nothing but
    /// the pageset's own state. `None` if the zone has none.
    pub fn rmqueue(self, zone: ZoneId, order: Order, migratetype: MigrateType) -> Option<Pfn> {
        let ask = Ask { order, migratetype, flags: AllocFlags::NONE };
        let cx = self.pages.zone_cx(zone);
        let pageset = &cx.zone.pagesets[usize::from(self.pages.machine.cpu().0)];
        if !Pcp::caches(self.pages.policy.rules().lists.pcp_orders, order) {
            return self.rmqueue_buddy(zone, order, migratetype);
        }
        let pfn = pageset.pcp.lock(&self.pages.machine).alloc(cx, pageset.beside(), ask)?;
        self.set_state(pfn, FrameKind::Allocated, ask, zone);
        Some(pfn)
    }

    /// Notes, as a request for single pages does that comes by `zone` and could use `highest`, whether free pages are
    /// under the high mark: then pagesets cease to grow.
    pub fn note_request(self, zone: ZoneId, highest: ZoneKind) {
        let zone = self.pages.zone_cx(zone).zone;
        let below = zone.has_flag(zone_flag::BELOW_HIGH);
        if !below
            && !zone.watermark_ok(
                &self.pages.machine,
                Order::ZERO,
                zone.mark_high(),
                highest,
                AllocFlags::NONE,
            )
        {
            zone.set_flag(zone_flag::BELOW_HIGH);
        }
    }

    /// Takes a block from the buddy lists of `zone`, past the pageset.
    pub fn rmqueue_buddy(self, zone: ZoneId, order: Order, migratetype: MigrateType) -> Option<Pfn> {
        let ask = Ask { order, migratetype, flags: AllocFlags::NONE };
        let cx = self.pages.zone_cx(zone);
        let pageset = &cx.zone.pagesets[usize::from(self.pages.machine.cpu().0)];
        let mut taken = None;
        cx.zone.arenas.take_one(cx, ask, &pageset.home, |_, pfn| {
            pageset.beside().add_free(cx, -(order.pages() as i32));
            self.pages.blocks.left(&self.pages.machine, (pfn, order), Mobility::of(migratetype));
            self.set_state(pfn, FrameKind::Allocated, ask, zone);
            taken = Some(pfn);
        });
        taken
    }

    /// Frees a block to the pageset list of `migratetype`, whatever its pageblock's type, and drains as a free does.
    ///
    /// # Errors
    /// If the block is not allocated.
    pub fn free_to_list(self, pfn: Pfn, order: Order, migratetype: MigrateType) -> Result<(), FreeError> {
        let state = self.pages.allocated(pfn, order)?;
        let cx = self.pages.zone_cx(state.zone);
        let pageset = &cx.zone.pagesets[usize::from(self.pages.machine.cpu().0)];
        let guard = pageset.pcp.lock(&self.pages.machine);
        drop(self.pages.free_to_pageset(cx, pageset, guard, (pfn, order, migratetype)));
        Ok(())
    }

    /// Frees a block to the buddy lists, past the pageset.
    ///
    /// # Errors
    /// If the block is not allocated.
    pub fn free_past_pageset(self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let state = self.pages.allocated(pfn, order)?;
        self.pages.free_to_buddy(self.pages.zone_cx(state.zone), pfn, order);
        Ok(())
    }

    /// The pageblock at `start` of `zone` is of `migratetype` from now on, with what is free in it: so many pages.
    pub fn set_block_type(self, zone: ZoneId, start: Pfn, migratetype: MigrateType) -> u32 {
        let cx = self.pages.zone_cx(zone);
        cx.zone.arenas.lock_owner(&self.pages.machine, start).convert_within(cx, start, migratetype)
    }

    /// Moves up to `blocks` from the buddy lists to a pageset list, coldest side, and tunes nothing. Gives how many.
    pub fn place_on_pageset(
        self,
        at: (ZoneId, Cpu),
        order: Order,
        migratetype: MigrateType,
        blocks: u32,
    ) -> u32 {
        let cx = self.pages.zone_cx(at.0);
        let pageset = &cx.zone.pagesets[usize::from(at.1.0)];
        let ask = Ask { order, migratetype, flags: AllocFlags::NONE };
        pageset.pcp.lock(&self.pages.machine).place(cx, pageset.beside(), ask, blocks)
    }

    /// Moves up to `blocks` of a pageset list back to the buddy lists, hottest first, and tunes nothing. Gives how many.
    pub fn take_off_pageset(
        self,
        at: (ZoneId, Cpu),
        order: Order,
        migratetype: MigrateType,
        blocks: u32,
    ) -> u32 {
        let cx = self.pages.zone_cx(at.0);
        let orders = self.pages.policy.rules().lists.pcp_orders;
        for taken in 0..blocks {
            let pageset = &cx.zone.pagesets[usize::from(at.1.0)];
            let mut pcp = pageset.pcp.lock(&self.pages.machine);
            let Some(pfn) = pcp.take_off(cx.cx.mem(), orders, order, migratetype) else { return taken };
            self.pages.free_to_buddy(cx, pfn, order);
        }
        blocks
    }

    fn set_state(self, pfn: Pfn, kind: FrameKind, ask: Ask, zone: ZoneId) {
        let state = FrameState { kind, order: ask.order, migratetype: ask.migratetype, zone };
        self.pages.map.frame(pfn).set_state(state);
    }
}
