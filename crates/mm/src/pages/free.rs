//! The path of a freed block: to the calling CPU's pageset, or straight to the buddy lists where pagesets do not cache
//! its order or the pageset's lock is taken (docs/rules/page-lists.md#frees).

use crate::ground::{Guard, Machine, MigrateType, Order, Pfn, Span, Work};
use crate::pages::Pages;
use crate::pages::buddy::ZoneCx;
use crate::pages::frame::{FrameKind, FrameState};
use crate::pages::pcp::{Freed, Pageset, Pcp};
use crate::pages::request::FreeError;
use crate::rules::policy::HoldRule;

/// How many blocks of a batch before its turn a descriptor is asked for, so that it has come from memory by then.
const AHEAD: usize = 4;

impl<M: Machine> Pages<M> {
    /// Frees the block of `order` at `pfn`.
    ///
    /// # Errors
    /// If that block is not allocated; then nothing was changed.
    #[inline]
    pub fn free(&self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let state = self.allocated(pfn, order)?;
        let since = self.machine.enter(Span::PageFree);
        let cx = self.zone_cx(state.zone);
        let pageset = &cx.zone.pagesets[usize::from(self.machine.cpu().0)];
        let guard = self.pageset_for(cx, pageset, pfn, order);
        match guard {
            Some((guard, migratetype)) => {
                drop(self.free_to_pageset(cx, pageset, guard, (pfn, order, migratetype)));
            }
            None => self.free_to_buddy(cx, pfn, order),
        }
        let work = Work { zone: state.zone, order, migratetype: state.migratetype, count: 1 };
        self.machine.leave(Span::PageFree, since, work);
        Ok(())
    }

    /// Frees blocks together, as unmapping does in runs of up to 31: the pageset's lock is held over blocks of one zone.
    ///
    /// # Errors
    /// The first block that is not allocated; those before it were freed, it and those after it were not.
    pub fn free_batch(&self, blocks: &[(Pfn, Order)]) -> Result<(), FreeError> {
        for &(pfn, _) in blocks.iter().take(AHEAD + 1) {
            self.map.prefetch(pfn);
        }
        let since = self.machine.enter(Span::PageFree);
        let mut work = Work::default();
        let freed = self.free_each(blocks, &mut work);
        self.machine.leave(Span::PageFree, since, work);
        freed
    }

    fn free_each(&self, blocks: &[(Pfn, Order)], work: &mut Work) -> Result<(), FreeError> {
        let mut left = blocks;
        while let Some((&(pfn, order), rest)) = left.split_first() {
            let state = self.allocated(pfn, order)?;
            let cx = self.zone_cx(state.zone);
            let pageset = &cx.zone.pagesets[usize::from(self.machine.cpu().0)];
            left = rest;
            let held = if let Some((guard, migratetype)) = self.pageset_for(cx, pageset, pfn, order) {
                self.free_to_pageset(cx, pageset, guard, (pfn, order, migratetype))
            } else {
                self.free_to_buddy(cx, pfn, order);
                None
            };
            note(work, state);
            if let Some(guard) = held {
                left = self.free_run(cx, (pageset, guard), rest, work)?;
            }
        }
        Ok(())
    }

    /// Frees the first of `blocks`, as many as are of this zone, to the pageset whose lock is held: a run pays for the lock once, as the
    /// kernel frees batches of folios. Gives the rest. The lock is free then, for nobody holds two pagesets, so that they need no order.
    fn free_run<'a, 'b>(
        &'a self,
        cx: ZoneCx<'a, M>,
        (pageset, mut pcp): (&'a Pageset<M>, Guard<'a, M, Pcp>),
        blocks: &'b [(Pfn, Order)],
        work: &mut Work,
    ) -> Result<&'b [(Pfn, Order)], FreeError> {
        let mut left = blocks;
        while let Some((&(pfn, order), rest)) = left.split_first() {
            if let Some(&(next, _)) = rest.get(AHEAD - 1) {
                self.map.prefetch(next);
            }
            let state = self.allocated(pfn, order)?;
            if state.zone != cx.zone.id || !Pcp::caches(self.policy.rules().lists.pcp_orders, order) {
                break;
            }
            left = rest;
            note(work, state);
            let Some(migratetype) = self.pageset_type(cx, pfn) else {
                drop(pcp);
                self.free_to_buddy(cx, pfn, order);
                break;
            };
            let freed = pcp.free(cx, pfn, order, migratetype);
            if freed.to_drain > 0 {
                let Some(again) = self.drain_in_holds(cx, pageset, pcp, freed) else { break };
                pcp = again;
            }
        }
        Ok(left)
    }

    /// Makes single pages of an allocated block, each to be freed by itself.
    ///
    /// # Errors
    /// If that block is not allocated; then nothing was changed.
    pub fn split(&self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let state = self.allocated(pfn, order)?;
        for page in 0..order.pages() {
            self.map.frame(pfn.add(page)).set_state(FrameState { order: Order::ZERO, ..state });
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn allocated(&self, pfn: Pfn, order: Order) -> Result<FrameState, FreeError> {
        let frame = self.map.get(pfn).ok_or(FreeError::NoFrame(pfn))?;
        frame.allocated(order).ok_or_else(|| match frame.state() {
            FrameState { kind: FrameKind::Allocated, order, .. } => FreeError::WrongOrder(pfn, order),
            _ => FreeError::NotAllocated(pfn),
        })
    }

    /// The list that a freed page goes to by its pageblock's type: reserved and CMA pages go with the movable ones,
    /// isolated ones to none.
    #[inline]
    fn pageset_type(&self, cx: ZoneCx<'_, M>, pfn: Pfn) -> Option<MigrateType> {
        match cx.cx.blocks.read(&self.machine, pfn) {
            MigrateType::Isolate => None,
            migratetype if migratetype.index() < MigrateType::PCP_COUNT => Some(migratetype),
            _ => Some(MigrateType::Movable),
        }
    }

    #[inline]
    fn pageset_for<'a>(
        &'a self,
        cx: ZoneCx<'a, M>,
        pageset: &'a Pageset<M>,
        pfn: Pfn,
        order: Order,
    ) -> Option<(Guard<'a, M, Pcp>, MigrateType)> {
        if !Pcp::caches(self.policy.rules().lists.pcp_orders, order) {
            return None;
        }
        let migratetype = self.pageset_type(cx, pfn)?;
        // Never waits: who holds it is a drain from another CPU, or what an interrupt came in between (since 6.0). The zone's lock is
        // the way around.
        Some((pageset.pcp.try_lock(&self.machine)?, migratetype))
    }

    /// Puts a block on the pageset whose lock `pcp` holds and gives back what is too many. Gives the lock back too, if
    /// it still has it.
    #[inline]
    pub(crate) fn free_to_pageset<'a>(
        &'a self,
        cx: ZoneCx<'a, M>,
        pageset: &'a Pageset<M>,
        mut pcp: Guard<'a, M, Pcp>,
        block: (Pfn, Order, MigrateType),
    ) -> Option<Guard<'a, M, Pcp>> {
        let (pfn, order, migratetype) = block;
        let freed = pcp.free(cx, pfn, order, migratetype);
        if freed.to_drain == 0 {
            return Some(pcp);
        }
        self.drain_in_holds(cx, pageset, pcp, freed)
    }

    #[inline(never)]
    fn drain_in_holds<'a>(
        &'a self,
        cx: ZoneCx<'a, M>,
        pageset: &'a Pageset<M>,
        mut pcp: Guard<'a, M, Pcp>,
        freed: Freed,
    ) -> Option<Guard<'a, M, Pcp>> {
        let rule = self.policy.rules().lists.hold;
        let cpu = self.machine.cpu();
        let mut left = freed.to_drain;
        loop {
            let hold = pcp.tune(cx, |tuning, _| tuning.hold_size(rule, left));
            pcp.drain(cx, pageset.beside(), hold, freed.from);
            left -= hold;
            // Up to 6.18 all of it goes in one hold. The list may be shorter than what was to go: others drained it in between.
            if left == 0 || pcp.count() == 0 || rule == HoldRule::Whole {
                break;
            }
            // Both locks are free between holds, so that whoever waits for one gets in (6.19).
            drop(pcp);
            // Elsewhere now: `pageset` is another CPU's, which gives back its own pages.
            if self.machine.cpu() != cpu {
                cx.zone.note_above_high(&self.machine);
                return None;
            }
            let Some(again) = pageset.pcp.try_lock(&self.machine) else {
                cx.zone.note_above_high(&self.machine);
                return None;
            };
            pcp = again;
        }
        cx.zone.note_above_high(&self.machine);
        Some(pcp)
    }

    pub(crate) fn free_to_buddy(&self, cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) {
        let pageset = &cx.zone.pagesets[usize::from(self.machine.cpu().0)];
        let mut free = cx.zone.arenas.lock_owner(&self.machine, pfn);
        // Under the lock: who isolates a pageblock changes its type with it held, and no page may slip onto the old type's list.
        let migratetype = cx.cx.blocks.read(&self.machine, pfn);
        self.blocks.joined(&self.machine, (pfn, order), self.map.frame(pfn).mobility());
        free.free(cx, pfn, order, migratetype);
        free.events.pgfree += u64::from(order.pages());
        pageset.beside().add_free(cx, order.pages() as i32);
    }
}

/// One more block was freed, which had this state.
#[inline]
fn note(work: &mut Work, state: FrameState) {
    *work =
        Work { zone: state.zone, order: state.order, migratetype: state.migratetype, count: work.count + 1 };
}
