//! The allocation side of a pageset: take a block, or first refill the list from the buddy lists
//! (docs/rules/page-lists.md#refills).

use super::{Hold, Pcp};
use crate::ground::{Access, AtomicI32, AtomicU32, Line, LineKind, Machine, Order, Pfn, Span, Work};
use crate::pages::arena::Want;
use crate::pages::buddy::ZoneCx;
use crate::pages::fallback::{Ask, SearchMode};
use crate::pages::frame::{FrameKind, FrameState, Mobility};
use crate::pages::zone::AllocFlags;
use crate::rules::policy::CheckRule;

/// Where a refill's blocks go, and what they are there.
#[derive(Clone, Copy, Debug)]
struct Destination {
    index: usize,
    is: Mobility,
}

impl Pcp {
    /// Takes a block for `ask`, whose order pagesets cache and whose type has a list, refilling the list if it is empty.
    /// The block is nobody's until the caller sets its state.
    #[inline]
    pub(crate) fn alloc<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        beside: Beside<'_>,
        ask: Ask,
    ) -> Option<Pfn> {
        self.touch(cx.cx.machine);
        self.prepare::<M>(|tuning| tuning.allocating(cx.cx.rules));
        let index = Self::list_index(cx.cx.rules.lists.pcp_orders, ask.order, ask.migratetype);
        self.touch_list(cx.cx.machine, index);
        if self.lists[index].is_empty() {
            // Such a request may take from reserves, which are not for a list that anybody takes from next.
            if ask.flags.has(AllocFlags::HIGHATOMIC) {
                return None;
            }
            self.refill(cx, beside, ask, index);
        }
        self.pop(cx.cx.mem(), index, ask.order)
    }

    #[inline(never)]
    fn refill<M: Machine>(&mut self, cx: ZoneCx<'_, M>, beside: Beside<'_>, ask: Ask, index: usize) {
        let blocks = self.tune(cx, |tuning, setting| tuning.refill_size(setting, ask.order));
        let taken = self.refill_from_buddy(cx, beside, ask, index, blocks);
        self.tuning.count += taken << ask.order.get();
    }

    /// Puts up to `blocks` from the buddy lists on the list for `ask`, and tunes nothing; gives how many there were.
    pub(crate) fn place<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        beside: Beside<'_>,
        ask: Ask,
        blocks: u32,
    ) -> u32 {
        let index = Self::list_index(cx.cx.rules.lists.pcp_orders, ask.order, ask.migratetype);
        let placed = self.refill_from_buddy(cx, beside, ask, index, blocks);
        self.tuning.count += placed << ask.order.get();
        placed
    }

    /// Takes up to `blocks` from the buddy lists, in one hold of the zone lock where there is only one; gives how many
    /// it took (the kernel's `rmqueue_bulk`).
    fn refill_from_buddy<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        beside: Beside<'_>,
        ask: Ask,
        index: usize,
        blocks: u32,
    ) -> u32 {
        let machine = cx.cx.machine;
        let since = machine.enter(Span::Refill);
        cx.zone.arenas.watch(cx);
        let to = Destination { index, is: Mobility::of(ask.migratetype) };
        let pages = |taken: u32| (taken << ask.order.get()) as i32;
        let taken = if let Some(free) = cx.zone.arenas.only() {
            let mut free = free.lock(machine);
            let mut hold = Hold::new(cx.cx.rules.lists.yields);
            // What the search for one block learnt (that its own lists are empty) holds for the next, as long as the lock is held.
            let (mut mode, mut taken) = (SearchMode::default(), 0);
            while taken < blocks {
                let Some(pfn) = free.take(cx, ask, &mut mode) else { break };
                self.put_cold(cx, ask, to, pfn);
                taken += 1;
                if hold.is_over(&free) {
                    break;
                }
            }
            beside.add_free(cx, -pages(taken));
            taken
        } else {
            let want = Want { ask, blocks, home: beside.home };
            let taken = cx.zone.arenas.take(cx, want, |_, pfn| self.put_cold(cx, ask, to, pfn));
            beside.add_free(cx, -pages(taken));
            taken
        };
        let work = Work { zone: cx.zone.id, order: ask.order, migratetype: ask.migratetype, count: taken };
        machine.leave(Span::Refill, since, work);
        taken
    }

    /// Puts a block from the buddy lists last on the list for `ask`, which `to` names.
    #[inline]
    fn put_cold<M: Machine>(&mut self, cx: ZoneCx<'_, M>, ask: Ask, to: Destination, pfn: Pfn) {
        if cx.cx.rules.lists.check == CheckRule::UnderLock {
            check_pages(cx, pfn, ask.order);
        }
        // Behind: blocks come off the buddy lists in ascending order, and are handed out so.
        self.lists[to.index].push_back(cx.cx.mem(), pfn);
        let Ask { order, migratetype, .. } = ask;
        cx.cx.blocks.left(cx.cx.machine, (pfn, order), to.is);
        let state = FrameState { kind: FrameKind::Pcp, order, migratetype, zone: cx.zone.id };
        cx.cx.map.frame(pfn).set_state(state);
    }
}

/// Looks at every descriptor of a block, as 5.18 to 6.2 did with the zone lock held.
fn check_pages<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) {
    for page in 0..order.pages() {
        cx.cx.mem().touch(pfn.add(page), Access::Read);
    }
}

/// What a CPU keeps of a zone beside its page lists, without their lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside<'a> {
    /// Its share of the zone's free-page count, which may grow to `threshold`.
    pub(in crate::pages) diff: &'a AtomicI32,
    pub(in crate::pages) threshold: i32,
    /// The arena that it is at home in.
    pub(in crate::pages) home: &'a AtomicU32,
}

impl Beside<'_> {
    #[inline]
    pub(crate) fn add_free<M: Machine>(self, cx: ZoneCx<'_, M>, pages: i32) {
        cx.cx.machine.touch(Line { kind: LineKind::ZoneStat, index: u32::from(cx.zone.id.0) }, Access::Write);
        cx.zone.stat.add_free(self.diff, self.threshold, pages);
    }
}
