//! The allocation side of a pageset: take a block, or first refill the list from the buddy lists in one hold of the
//! zone lock (facts/ALGORITHMS.md 1.4).

use super::Pcp;
use super::turn::Turn;
use crate::buddy::ZoneCx;
use crate::fallback::{Ask, SearchMode};
use crate::frame::{FrameKind, FrameState};
use crate::ids::{Order, Pfn};
use crate::machine::{Access, Machine, Span, Work};
use crate::policy::CheckRule;
use crate::zone::AllocFlags;

impl Pcp {
    /// Takes a block for `ask`, whose order pagesets cache and whose type has a list, refilling the list if it is empty.
    /// The block is nobody's until the caller sets its state.
    #[inline]
    pub(crate) fn alloc<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        free_diff: &FreeDiff<'_>,
        ask: Ask,
    ) -> Option<Pfn> {
        self.touch(cx.cx.machine);
        self.tuning.allocating(cx.cx.rules);
        let index = Self::list_index(cx.cx.rules.pcp_orders, ask.order, ask.migratetype);
        self.touch_list(cx.cx.machine, index);
        if self.lists[index].is_empty() {
            if ask.flags.has(AllocFlags::HIGHATOMIC) {
                return None;
            }
            self.refill(cx, free_diff, ask, index);
        }
        self.pop(cx.cx.mem(), index, ask.order)
    }

    #[inline(never)]
    fn refill<M: Machine>(&mut self, cx: ZoneCx<'_, M>, free_diff: &FreeDiff<'_>, ask: Ask, index: usize) {
        let blocks = self.tuning.refill_size(cx.setting(), ask.order);
        let taken = self.refill_from_buddy(cx, free_diff, ask, index, blocks);
        self.tuning.count += taken << ask.order.get();
    }

    /// Puts up to `blocks` from the buddy lists on the list for `ask`, and tunes nothing; gives how many there were.
    pub(crate) fn place<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        free_diff: &FreeDiff<'_>,
        ask: Ask,
        blocks: u32,
    ) -> u32 {
        let index = Self::list_index(cx.cx.rules.pcp_orders, ask.order, ask.migratetype);
        let placed = self.refill_from_buddy(cx, free_diff, ask, index, blocks);
        self.tuning.count += placed << ask.order.get();
        placed
    }

    /// Takes up to `blocks` from the buddy lists in one hold of the zone lock; gives how many there were
    /// (the kernel's `rmqueue_bulk`).
    fn refill_from_buddy<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        free_diff: &FreeDiff<'_>,
        ask: Ask,
        index: usize,
        blocks: u32,
    ) -> u32 {
        let machine = cx.cx.machine;
        let since = machine.enter(Span::Refill);
        let mut free = cx.zone.free.lock(machine);
        let mut turn = Turn::new(cx.cx.rules.yields);
        let mut mode = SearchMode::default();
        let mut taken = 0;
        while taken < blocks {
            let Some(pfn) = free.take(cx, ask, &mut mode) else { break };
            if cx.cx.rules.check == CheckRule::UnderLock {
                check_pages(cx, pfn, ask.order);
            }
            self.lists[index].push_back(cx.cx.mem(), pfn);
            let zone = cx.zone.id;
            let state =
                FrameState { kind: FrameKind::Pcp, order: ask.order, migratetype: ask.migratetype, zone };
            cx.cx.map.frame(pfn).set_state(state);
            taken += 1;
            if turn.is_over(&free) {
                break;
            }
        }
        free_diff.add(cx, -((taken << ask.order.get()) as i32));
        drop(free);
        let work = Work { zone: cx.zone.id, order: ask.order, migratetype: ask.migratetype, count: taken };
        machine.leave(Span::Refill, since, work);
        taken
    }
}

/// Looks at every descriptor of a block, as 5.18 to 6.2 did with the zone lock held.
fn check_pages<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) {
    for page in 0..order.pages() {
        cx.cx.mem().touch(pfn.add(page), Access::Read);
    }
}

/// A CPU's own share of a zone's free-page count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeDiff<'a> {
    pub(crate) diff: &'a crate::sync::AtomicI32,
    pub(crate) threshold: i32,
}

impl FreeDiff<'_> {
    #[inline]
    pub(crate) fn add<M: Machine>(&self, cx: ZoneCx<'_, M>, pages: i32) {
        use crate::machine::{Line, LineKind};
        cx.cx.machine.touch(Line { kind: LineKind::ZoneStat, index: u32::from(cx.zone.id.0) }, Access::Write);
        cx.zone.stat.add_free(self.diff, self.threshold, pages);
    }
}
