//! The free side of a pageset: keep the block, and give some back to the buddy lists when there are too many
//! (facts/ALGORITHMS.md 1.5).

use super::refill::FreeDiff;
use super::{LISTS, Pcp};
use crate::buddy::ZoneCx;
use crate::frame::{FrameKind, FrameState};
use crate::ids::{MigrateType, Order, Pfn};
use crate::machine::{Machine, Span, Work};
use crate::policy::{DrainRule, FreeHighRule, ScaleRule};
use crate::zone::zone_flag;

/// What a free asks of the caller, who holds the pcp lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Freed {
    /// Pages to give back; 0 for none.
    pub(crate) to_drain: u32,
    /// The list to begin with.
    pub(crate) from: usize,
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
        self.touch(cx.cx.machine);
        self.alloc_factor >>= 1;
        let index = Self::list_index(rules.pcp_orders, order, migratetype);
        self.touch_list(cx.cx.machine, index);
        self.lists[index].push_front(cx.cx.mem(), pfn);
        let state = FrameState { kind: FrameKind::Pcp, order, migratetype, zone: cx.zone.id };
        cx.cx.map.frame(pfn).set_state(state);
        self.count += order.pages();
        let free_high = self.note_high_order(cx, order);
        self.note_freed(cx, order);
        let high = self.drain_mark(cx, free_high);
        if self.count < high {
            return Freed { to_drain: 0, from: index };
        }
        Freed { to_drain: self.drain_size(cx, high, free_high), from: index }
    }

    /// Whether this free ends a row of frees of order 1 to 3 that should empty the lists.
    #[inline]
    fn note_high_order<M: Machine>(&mut self, cx: ZoneCx<'_, M>, order: Order) -> bool {
        let small = (1..=3).contains(&order.get());
        let rule = cx.cx.rules.free_high;
        let threshold = match rule {
            FreeHighRule::Never => return false,
            FreeHighRule::AfterDrain => return small && self.free_factor > 0,
            FreeHighRule::Sequence => self.batch,
            FreeHighRule::LongSequence => self.batch + self.high_min / 2,
        };
        if !small {
            self.prev_free_high_order = false;
            return false;
        }
        let free_high = self.free_count >= threshold
            && self.prev_free_high_order
            && (!self.free_high_batch || self.count >= self.batch);
        self.prev_free_high_order = true;
        free_high
    }

    #[inline]
    fn note_freed<M: Machine>(&mut self, cx: ZoneCx<'_, M>, order: Order) {
        if cx.cx.rules.drain != DrainRule::FreeCount {
            return;
        }
        let most = cx.cx.scaled(self.batch);
        if self.free_count < most {
            self.free_count += order.pages();
            if cx.cx.rules.scale == ScaleRule::Series {
                self.free_count = self.free_count.min(most);
            }
        }
    }

    /// The count from which pages go back; adjusts `high` on the way (the kernel's `nr_pcp_high`).
    fn drain_mark<M: Machine>(&mut self, cx: ZoneCx<'_, M>, free_high: bool) -> u32 {
        let high = self.high.clamp(self.high_min, self.high_max);
        if self.high_max == 0 {
            return 0;
        }
        if free_high {
            self.high = high.saturating_sub(cx.cx.scaled(self.batch)).max(self.high_min);
            return 0;
        }
        let lowered = |this: &Self| high.saturating_sub(this.free_count.max(this.batch)).max(this.high_min);
        if cx.zone.has_flag(zone_flag::RECLAIM_ACTIVE) {
            self.high = lowered(self);
            return (4 * self.batch).min(self.high);
        }
        if !self.auto_tuned() {
            return high;
        }
        if cx.zone.has_flag(zone_flag::BELOW_HIGH) {
            self.high = lowered(self);
            return self.count.max(self.high_min);
        }
        let need = self.free_count + self.batch;
        if self.count >= high && self.high < need {
            self.high = need.clamp(self.high_min, self.high_max);
        }
        high
    }

    /// How many pages go back (the kernel's `nr_pcp_free`).
    fn drain_size<M: Machine>(&mut self, cx: ZoneCx<'_, M>, high: u32, free_high: bool) -> u32 {
        let scaled = cx.cx.scaled(self.batch);
        match cx.cx.rules.drain {
            DrainRule::FreeCount if free_high => self.count.min(scaled),
            DrainRule::FreeFactor if free_high => self.count,
            _ if high < self.batch => 1,
            DrainRule::Batch => self.batch,
            DrainRule::FreeCount => self.free_count.max(self.batch).min(high - self.batch),
            DrainRule::FreeFactor => {
                let most = (high - self.batch).max(self.batch);
                let pages = (self.batch << self.free_factor).clamp(self.batch, most);
                if pages < most && self.batch << self.free_factor < scaled {
                    self.free_factor += 1;
                }
                pages
            }
        }
    }

    /// Gives `pages` back to the buddy lists in one hold of the zone lock: round-robin over the lists, beginning with
    /// `from`, the coldest blocks of each first (the kernel's `free_pcppages_bulk`). Gives the pages freed.
    #[inline(never)]
    pub(crate) fn drain<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        free_diff: &FreeDiff<'_>,
        pages: u32,
        from: usize,
    ) -> u32 {
        let machine = cx.cx.machine;
        let pages = pages.min(self.count);
        let since = machine.enter(Span::Drain);
        let mut free = cx.zone.free.lock(machine);
        let (mut freed, mut index) = (0, from % LISTS);
        while freed < pages {
            let order = Self::list_order(index);
            while freed < pages {
                self.touch_list(machine, index);
                let Some(pfn) = self.lists[index].pop_back(cx.cx.mem()) else { break };
                self.count -= order.pages();
                freed += order.pages();
                let migratetype = cx.cx.blocks.read(machine, pfn);
                free.free(cx, pfn, order, migratetype);
            }
            index = (index + 1) % LISTS;
        }
        free_diff.add(cx, freed as i32);
        drop(free);
        let work = Work { zone: cx.zone.id, count: freed, ..Work::default() };
        machine.leave(Span::Drain, since, work);
        freed
    }
}
