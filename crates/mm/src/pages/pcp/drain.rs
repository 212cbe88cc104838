//! The free side of a pageset: keep the block, and give some back to the buddy lists when there are too many
//! (docs/rules/page-lists.md#frees).

use super::gather::GoesOn;
use super::hold::Hold;
use super::refill::Beside;
use super::{LISTS, Pcp};
use crate::ground::{Guard, Machine, MigrateType, Order, Pfn, Span, Work};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::pages::frame::{FrameKind, FrameState, Mobility};
use crate::rules::policy::TouchRule;

/// What a free asks of the caller, who holds the pcp lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Freed {
    /// Pages to give back; 0 for none.
    pub(in crate::pages) to_drain: u32,
    /// The list to begin with.
    pub(in crate::pages) from: usize,
}

impl Pcp {
    /// Puts a freed block on the list of `migratetype` and says how many pages are now too many
    /// (the kernel's `free_unref_page_commit`, up to the drain).
    #[inline]
    pub(crate) fn free<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
    ) -> Freed {
        let rules = cx.cx.rules;
        self.events.pgfree += u64::from(order.pages());
        self.touch(cx.cx.machine);
        let index = Self::list_index(rules.lists.pcp_orders, order, migratetype);
        self.touch_list(cx.cx.machine, index);
        // In front: it was used last, so the next request finds it in the cache.
        self.lists[index].push_front(cx.cx.mem(), pfn);
        let state = FrameState { kind: FrameKind::Pcp, order, migratetype, zone: cx.zone.id };
        let frame = cx.cx.map.frame(pfn);
        if !frame.is_of(migratetype) {
            cx.cx.blocks.retyped(cx.cx.machine, (pfn, order), (frame.mobility(), Mobility::of(migratetype)));
        }
        frame.set_state(state);
        let to_drain = self.tune(cx, |tuning, setting| tuning.freed(setting, order));
        Freed { to_drain, from: index }
    }

    /// Gives `pages` back to the buddy lists: round-robin over the lists, beginning with `from`, the coldest blocks of
    /// each first (the kernel's `free_pcppages_bulk`). Gives the pages freed, which may be fewer where the policy lets
    /// others have the lock.
    #[inline(never)]
    pub(crate) fn drain<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        beside: Beside<'_>,
        pages: u32,
        from: usize,
    ) -> u32 {
        let machine = cx.cx.machine;
        // A request for more than there is would go around the lists for ever, with the zone lock held.
        let pages = pages.min(self.count());
        let since = machine.enter(Span::Drain);
        let freed = match (cx.cx.rules.lists.touch, cx.zone.arenas.only()) {
            (TouchRule::UnderLock, Some(free)) => {
                let free = free.lock(machine);
                self.drain_at_once(cx, beside, free, (pages, from % LISTS))
            }
            _ => self.drain_gathered(cx, beside, (pages, from % LISTS)),
        };
        let work = Work { zone: cx.zone.id, count: freed, ..Work::default() };
        machine.leave(Span::Drain, since, work);
        freed
    }

    /// Drains so many pages, from a list on, in the hold `free` of the zone lock.
    fn drain_at_once<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        beside: Beside<'_>,
        mut free: Guard<'_, M, FreeAreas>,
        (pages, from): (u32, usize),
    ) -> u32 {
        let machine = cx.cx.machine;
        let mut hold = Hold::new(cx.cx.rules.lists.yields);
        let (mut freed, mut index) = (0, from);
        'hold: while freed < pages {
            let (order, was) = (Self::list_order(index), Self::list_mobility(index));
            let each = order.pages();
            while freed < pages {
                self.touch_list(machine, index);
                let Some(pfn) = self.lists[index].pop_back(cx.cx.mem()) else { break };
                // A block of a higher order may take it past `pages`: the kernel's count is compared after the block, too.
                self.tuning.count -= each;
                freed += each;
                // By the pageblock and not by the list: the block's type may have changed while the page lay here.
                let migratetype = cx.cx.blocks.read(machine, pfn);
                cx.cx.blocks.joined(machine, (pfn, order), was);
                free.free(cx, pfn, order, migratetype);
                if hold.is_over(&free) {
                    break 'hold;
                }
            }
            index = (index + 1) % LISTS;
        }
        beside.add_free(cx, freed as i32);
        freed
    }

    /// Drains so many pages, from a list on, some blocks at a time that are taken off the lists beforehand.
    fn drain_gathered<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        beside: Beside<'_>,
        (pages, from): (u32, usize),
    ) -> u32 {
        let (mut freed, mut index) = (0, from);
        let mut hold = Hold::new(cx.cx.rules.lists.yields);
        while freed < pages {
            let mut gathered = self.gather(cx, pages - freed, &mut index);
            if cx.cx.rules.lists.touch == TouchRule::Ahead {
                gathered.fetch(cx);
            }
            let (pages, goes_on) = gathered.free(cx, &mut hold);
            freed += pages;
            if goes_on == GoesOn::No {
                break;
            }
        }
        beside.add_free(cx, freed as i32);
        freed
    }
}
