//! Looking at free lists before walking (since 5.1): a free piece is in a block that is partly free already, so that its
//! other pages are worth moving; and a free piece near the free scanner is a frame to move to.

use alloc::vec::Vec;

use super::control::{Control, Start};
use super::{CLUSTER_MAX, CompactDoor, CompactGround};
use crate::ground::{
    Access, Chore, Machine, MigrateType, Order, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_PAGES, Pfn,
};
use crate::pages::{FreeAreas, List};

/// A free frame that was seen, and its order.
type Piece = (Pfn, Order);

/// What the search for frames has seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct FreeSearch {
    /// The best block so far that is not quite near enough.
    high: Option<Piece>,
    /// The highest pageblock seen.
    highest: u32,
    scanned: u32,
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
        let most = limit(control.fast.misses);
        let least = Order::new(PAGE_ALLOC_COSTLY_ORDER).unwrap_or(Order::ZERO);
        let mut seen = 0;
        for lists in zone.arenas().all() {
            let lists = lists.lock(self.machine());
            for size in least.to(order).rev().filter(|size| *size < order.min(Order::PAGEBLOCK)) {
                let mut next = lists.list(size, MigrateType::Movable).first();
                while let Some(pfn) = next {
                    seen += 1;
                    if seen > most {
                        return None;
                    }
                    self.pages().cx().mem().touch(pfn, Access::Read);
                    let start = pfn.align_down(Order::PAGEBLOCK);
                    let good = start < below
                        && start.0 >= zone.managed_span().start
                        && !self.blocks().is_skipped(self.machine(), pfn);
                    if good {
                        // The next search is to find another one.
                        self.blocks().set_skipped(self.machine(), pfn);
                        return Some(start);
                    }
                    next = List::after(self.map(), pfn);
                }
            }
        }
        None
    }

    /// Takes frames for the isolated pages from the free lists, if some are near the free scanner.
    pub(super) fn fast_targets(self, control: &mut Control) {
        let Some(order) = control.goal.order.filter(|order| *order > Order::ZERO) else { return };
        if control.targets.len() >= control.isolated.len() {
            return;
        }
        let zone = &self.zones()[usize::from(control.zone.0)];
        let (at, from) = (control.free_pfn.0, control.migrate_pfn.0);
        let distance = at.saturating_sub(from);
        let low = Pfn(at - distance / 4).align_down(Order::PAGEBLOCK);
        let least = Pfn(at - distance / 2).align_down(Order::PAGEBLOCK);
        let begins = at >= super::last_block(&zone.managed_span()).0;
        let mut most = if begins { PAGEBLOCK_PAGES / 2 } else { (limit(control.fast.misses) / 2).max(1) };
        let mut search = FreeSearch::default();
        let mut found = false;
        for size in orders_from(control.fast.order.min(order.get() - 1), order) {
            let hits = self.take_near(control, (size, most), (low, least), &mut search);
            found |= hits > 0;
            if hits > 0 {
                control.fast.order = size.get();
                control.fast.misses = 0;
            }
            if control.targets.len() >= control.isolated.len() || found {
                break;
            }
            most = (most / 2).max(1);
        }
        control.scanned.free += u64::from(search.scanned);
        control.unpaid += search.scanned;
        self.pay_for_scan(control, Chore::FreeScan);
        if !found {
            control.fast.misses += 1;
            if begins && search.highest > least.0 {
                // The walk need not begin where nothing is free.
                control.free_pfn = Pfn(search.highest).align_down(Order::PAGEBLOCK);
            }
        }
    }

    /// Looks at up to `most` free pieces of `size` from the list's tail, takes the first that is near enough, or the best
    /// that is not too far, and then what else its pageblock has.
    fn take_near(
        self,
        control: &mut Control,
        (size, most): (Order, u32),
        (low, least): (Pfn, Pfn),
        search: &mut FreeSearch,
    ) -> u32 {
        let zone = &self.zones()[usize::from(control.zone.0)];
        for lists in zone.arenas().all() {
            let mut lists = lists.lock(self.machine());
            let picked = self.pick_near(&lists, (size, most), (low, least), search);
            let Some((pfn, _)) = picked else { continue };
            let Some(taken) = self.take_off(control, &mut lists, pfn) else { continue };
            self.take_around(control, &mut lists, pfn);
            return taken;
        }
        0
    }

    fn pick_near(
        self,
        lists: &FreeAreas,
        (size, most): (Order, u32),
        (low, least): (Pfn, Pfn),
        search: &mut FreeSearch,
    ) -> Option<Piece> {
        let mut next = lists.list(size, MigrateType::Movable).last();
        search.high = None;
        for _ in 0..most {
            let Some(pfn) = next else { break };
            search.scanned += 1;
            search.highest = search.highest.max(pfn.0);
            self.pages().cx().mem().touch(pfn, Access::Read);
            if pfn >= low {
                return Some((pfn, size));
            }
            if pfn >= least && search.high.is_none_or(|(high, _)| pfn > high) {
                search.high = Some((pfn, size));
            }
            next = List::before(self.map(), pfn);
        }
        search.high
    }

    /// Takes what else is free in the pageblock of `near`, as far as frames are wanted.
    fn take_around(self, control: &mut Control, lists: &mut FreeAreas, near: Pfn) {
        let start = near.align_down(Order::PAGEBLOCK);
        let migrate_end = control.migrate_pfn.add(PAGEBLOCK_PAGES - 1).align_down(Order::PAGEBLOCK);
        if start < migrate_end || control.targets.len() >= control.isolated.len() {
            return;
        }
        // The zone's last block need not be a whole one.
        let zone_end = self.zones()[usize::from(control.zone.0)].managed_span().end;
        let end = (start.0 + PAGEBLOCK_PAGES).min(zone_end);
        let mut free: Vec<Pfn> = Vec::new();
        let mut pfn = start;
        while pfn.0 < end {
            self.pages().cx().mem().touch(pfn, Access::Read);
            control.scanned.free += 1;
            control.unpaid += 1;
            let state = self.map().frame(pfn).state();
            let is_free = state.kind == crate::pages::frame::FrameKind::Free;
            if is_free {
                free.push(pfn);
            }
            pfn = pfn.add(if is_free { state.order.pages() } else { 1 });
        }
        for pfn in free {
            if control.targets.len() >= control.isolated.len() {
                return;
            }
            self.take_off(control, lists, pfn);
        }
    }
}

/// All orders below `order`: from `first` down, then from the top.
fn orders_from(first: u8, order: Order) -> impl Iterator<Item = Order> {
    let down = (0..=first).rev();
    let rest = (first + 1..order.get()).rev();
    down.chain(rest).filter_map(Order::new)
}
