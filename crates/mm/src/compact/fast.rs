//! Looking at free lists before walking (since 5.1): a free piece is in a block that is partly free already, so that its
//! other pages are worth moving; and a free piece near the free scanner is a frame to move to. What a search has looked at comes last in
//! its list, so that the next one looks at others.

use super::control::{By, Control, Start};
use super::{CLUSTER_MAX, CompactDoor, CompactGround};
use crate::ground::{
    Access, Chore, Machine, MigrateType, Order, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_PAGES, Pfn, Relaxed,
};
use crate::pages::{FreeAreas, List, ZoneCx};
use crate::rules::policy::FinishRule;

/// The list that is searched.
const MOVABLE: MigrateType = MigrateType::Movable;

/// What one search for frames has seen so far, and may still look at.
#[derive(Clone, Copy, Debug)]
struct FreeSearch {
    /// The block that is near enough, and the lowest that will do for want of a nearer one.
    low: Pfn,
    least: Pfn,
    /// Pieces that may be looked at of one order.
    most: u32,
    /// The highest pageblock seen.
    highest: Pfn,
    /// Pieces looked at, and (since 6.4) the other pages of the one that was taken.
    scanned: u32,
    /// Pages taken.
    taken: u32,
}

/// What a search comes to at one order.
enum Picked {
    /// A piece near enough.
    Near(Pfn),
    /// The nearest of those that will do.
    Far(Pfn),
    Nothing,
}

/// Entries of free lists that a search looks at: fewer after each that found nothing.
fn limit(misses: u32) -> u32 {
    (CLUSTER_MAX as u32).checked_shr(misses).unwrap_or(0) + 1
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// The pageblock to go on with, by the free lists; `None`: where the scanner is.
    pub(super) fn find_migrate_block(self, control: &mut Control) -> Option<Pfn> {
        let order = control.goal.order?;
        let at = control.migrate_pfn;
        let fits = control.goal.migratetype == MigrateType::Movable || order >= Order::PAGEBLOCK;
        let in_block = at != at.align_down(Order::PAGEBLOCK);
        if order.get() <= PAGE_ALLOC_COSTLY_ORDER
            || !fits
            || control.ignores_skip()
            || in_block
            || control.finish_block
        {
            return None;
        }
        let zone = &self.zones()[usize::from(control.zone.0)];
        let span = control.free_pfn.0.saturating_sub(at.0);
        let reach = if at.0 == zone.managed_span().start { span / 2 } else { span / 8 };
        let below = Pfn(at.0 + reach).align_down(Order::PAGEBLOCK);
        let Some(block) = self.search_low_pieces(control, order, below) else {
            control.fast.misses += 1;
            let Start::At(lowest) = control.fast.start else { return None };
            control.fast.start = Start::Used;
            return Some(lowest);
        };
        control.fast.misses = 0;
        control.fast.start = match control.fast.start {
            Start::None => Start::At(block),
            Start::At(lowest) => Start::At(lowest.min(block)),
            Start::Used => Start::Used,
        };
        Some(block)
    }

    /// A block below `below` with a free piece of a good size, among the first entries of the free lists.
    fn search_low_pieces(self, control: &mut Control, order: Order, below: Pfn) -> Option<Pfn> {
        let zone = &self.zones()[usize::from(control.zone.0)];
        let cx = self.pages().zone_cx(control.zone);
        let most = limit(control.fast.misses);
        let least = Order::new(PAGE_ALLOC_COSTLY_ORDER).unwrap_or(Order::ZERO);
        let mut seen = 0;
        let mut found = None;
        'search: for lists in zone.arenas().all() {
            let mut lists = lists.lock(self.machine());
            for size in least.to(order).rev().filter(|size| *size < order.min(Order::PAGEBLOCK)) {
                let mut next = lists.list(size, MOVABLE).first();
                while let Some(pfn) = next {
                    seen += 1;
                    next = List::after(self.map(), pfn);
                    if seen > most {
                        put_last(cx, &mut lists, size, next);
                        break 'search;
                    }
                    cx.cx.mem().touch(pfn, Access::Read);
                    let start = pfn.align_down(Order::PAGEBLOCK);
                    let inside = start < below && start.0 >= zone.managed_span().start;
                    if inside && !self.blocks().is_skipped(self.machine(), pfn) {
                        if self.rules().compact.finish != FinishRule::AfterFailure {
                            // (Its scan, which looks at the mark, passes it by for that.)
                            self.blocks().set_skipped(self.machine(), pfn);
                        }
                        put_last(cx, &mut lists, size, next);
                        found = Some(start);
                        break 'search;
                    }
                }
            }
        }
        control.scanned.migrate += u64::from(seen);
        found
    }

    /// Takes a frame, or a block of them, for the isolated pages from the free lists, if one is near the free scanner.
    pub(super) fn fast_targets(self, control: &mut Control) {
        let Some(order) = control.goal.order.filter(|order| *order > Order::ZERO) else { return };
        let (at, from) = (control.free_pfn.0, control.migrate_pfn.0);
        let distance = at.saturating_sub(from);
        let begins = at >= self.own().of(control.zone).first_free.load(Relaxed);
        let mut search = FreeSearch {
            low: Pfn(at - distance / 4).align_down(Order::PAGEBLOCK),
            least: Pfn(at - distance / 2).align_down(Order::PAGEBLOCK),
            most: if begins { PAGEBLOCK_PAGES / 2 } else { (limit(control.fast.misses) / 2).max(1) },
            highest: Pfn(0),
            scanned: 0,
            taken: 0,
        };
        let largest = order.get() - 1;
        control.fast.order = control.fast.order.min(largest);
        let first = control.fast.order;
        // From there down, and then from the top.
        let sizes = (0..=first).rev().chain((first + 1..=largest).rev()).filter_map(Order::new);
        let mut taken = None;
        for size in sizes {
            let Ok(found) = self.take_near(control, size, &mut search) else { break };
            taken = found;
            if taken.is_some() {
                break;
            }
        }
        control.scanned.free += u64::from(search.scanned);
        self.pay_for_scan(control, Chore::FreeScan);
        self.own().of(control.zone).stay_below(search.highest);
        if let Some(near) = taken {
            return self.take_around(control, near);
        }
        control.fast.order = control.fast.order.checked_sub(1).unwrap_or(largest);
        control.fast.misses += 1;
        if begins {
            go_down(control, &search);
        }
    }

    /// Looks for a piece of `size` from the list's tail, and takes the first that is near enough, or the nearest of those that will do.
    /// `Err`: the zone cannot spare it, and the search is over.
    fn take_near(
        self,
        control: &mut Control,
        size: Order,
        search: &mut FreeSearch,
    ) -> Result<Option<Pfn>, ()> {
        let zone = &self.zones()[usize::from(control.zone.0)];
        let mut found = Ok(None);
        let mut is_empty = true;
        for lists in zone.arenas().all() {
            let mut lists = lists.lock(self.machine());
            is_empty &= lists.nr_free(size) == 0;
            let pfn = match self.pick_near(control, &mut lists, size, search) {
                Picked::Nothing => continue,
                Picked::Near(pfn) => {
                    control.fast.misses = 0;
                    control.fast.order = size.get();
                    pfn
                }
                Picked::Far(pfn) => pfn,
            };
            found = match self.take_off(control, &mut lists, pfn) {
                Some(pages) => {
                    search.scanned += self.counted_beside(pages) as u32;
                    search.taken += pages;
                    Ok(Some(pfn))
                }
                None => Err(()),
            };
            break;
        }
        if !is_empty {
            let taken = (search.scanned.into(), search.taken as usize);
            self.traced("mm_compaction_fast_isolate_freepages", (search.least, control.free_pfn), taken);
        }
        found
    }

    fn pick_near(
        self,
        control: &mut Control,
        lists: &mut FreeAreas,
        size: Order,
        search: &mut FreeSearch,
    ) -> Picked {
        let cx = self.pages().zone_cx(control.zone);
        let mut next = lists.list(size, MOVABLE).last();
        let (mut seen, mut far, mut last) = (0, Pfn(0), None);
        while let Some(pfn) = next {
            seen += 1;
            control.unpaid += 1;
            cx.cx.mem().touch(pfn, Access::Read);
            search.highest = search.highest.max(pfn.align_down(Order::PAGEBLOCK));
            if pfn >= search.low {
                search.scanned += seen;
                lists.turn_to(cx, (size, MOVABLE), pfn);
                return Picked::Near(pfn);
            }
            if pfn >= search.least && pfn > far {
                far = pfn;
                search.most /= 2;
            }
            if seen >= search.most {
                last = Some(pfn);
                break;
            }
            next = List::before(self.map(), pfn);
        }
        search.scanned += seen;
        if seen >= search.most {
            search.most = (search.most / 2).max(1);
        }
        let found = (far > Pfn(0)).then_some(far);
        if let Some(pfn) = found.or(last) {
            lists.turn_to(cx, (size, MOVABLE), pfn);
        }
        found.map_or(Picked::Nothing, Picked::Far)
    }

    /// Takes what else is free in the pageblock of `near`, as far as frames are wanted; a request's asynchronous compaction does not.
    fn take_around(self, control: &mut Control, near: Pfn) {
        let in_haste = control.is_async() && control.goal.by == By::Direct;
        if in_haste || control.targets.len() >= control.isolated.len() {
            return;
        }
        let start = near.align_down(Order::PAGEBLOCK);
        // The zone's last block need not be a whole one.
        let zone_end = self.zones()[usize::from(control.zone.0)].managed_span().end;
        let end = Pfn((start.0 + PAGEBLOCK_PAGES).min(zone_end));
        if self.take_free_in(control, (start, end), 1) == end {
            self.blocks().set_skipped(self.machine(), start);
        }
        self.pay_for_scan(control, Chore::FreeScan);
    }
}

/// What comes before `next` in its list comes last there.
fn put_last<M: Machine>(cx: ZoneCx<'_, M>, lists: &mut FreeAreas, size: Order, next: Option<Pfn>) {
    if let Some(next) = next {
        lists.turn_to(cx, (size, MOVABLE), next);
    }
}

/// The walk need not begin where no free piece was seen: it goes on at the highest that was, if that will do, or else, for a request,
/// half the way down.
fn go_down(control: &mut Control, search: &FreeSearch) {
    if search.highest >= search.least {
        control.free_pfn = search.highest;
    } else if control.goal.by == By::Direct {
        control.free_pfn = search.least;
    }
}
