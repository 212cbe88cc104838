//! Taking blocks from a zone with several arenas: from home, from what home can borrow, and then from all others, so
//! that a request fails only when one list for the whole zone would have failed it.
//!
//! Types are kept apart as they are with one list: blocks of a request's own type anywhere come before blocks of
//! another. There is one exception: as long as an arena has plenty of whole ranges it may claim one of another type for
//! itself, for such a range mixes with nothing, and all CPUs would otherwise go to the one arena that has small blocks of
//! a rare type.

use super::borrow::{Lenders, Loan};
use super::{Arenas, Types};
use crate::ground::{AtomicU32, Guard, Machine, MigrateType, Order, Pfn};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::pages::fallback::{Ask, SearchMode, fallbacks};
use crate::pages::pcp::Hold;
use crate::pages::zone::AllocFlags;

/// What is to be taken, and by whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want<'a> {
    pub(in crate::pages) ask: Ask,
    /// Blocks at most.
    pub(in crate::pages) blocks: u32,
    /// The arena that the CPU is at home in.
    pub(in crate::pages) home: &'a AtomicU32,
}

/// A search on its way through the arenas.
struct Search<'a, M: Machine, P> {
    cx: ZoneCx<'a, M>,
    ask: Ask,
    left: u32,
    taken: u32,
    hold: Hold,
    /// Gets each block while the lock of its arena is held.
    put: P,
}

impl<M: Machine> Arenas<M> {
    /// Takes up to `want.blocks` and hands each to `put`, with the arena's lock held; gives how many. It is fewer than
    /// there are in the zone where more would have to be fetched from arenas away from home.
    pub(crate) fn take<P: FnMut(&mut FreeAreas, Pfn)>(
        &self,
        cx: ZoneCx<'_, M>,
        want: Want<'_>,
        put: P,
    ) -> u32 {
        let hold = Hold::new(cx.cx.rules.lists.yields);
        let mut search = Search { cx, ask: want.ask, left: want.blocks, taken: 0, hold, put };
        let mut free = self.lock_home(cx, want);
        let home = free.number();
        search.take_all(&mut free, SearchMode::Own);
        drop(free);
        let own = [want.ask.migratetype];
        while search.left > 0 {
            let Some(loan) = self.borrow(cx, home, &own, Lenders::All) else { break };
            search.take_loan(home, loan, SearchMode::Own);
        }
        if search.taken == 0 {
            search.take_whole_foreign(home);
        }
        if search.taken == 0 {
            search.take_anywhere(home, SearchMode::Own);
        }
        if search.taken == 0 {
            search.take_anywhere(home, SearchMode::Claim);
        }
        if search.taken == 0 && !want.ask.flags.has(AllocFlags::NOFRAGMENT) {
            search.take_anywhere(home, SearchMode::Steal);
        }
        search.taken
    }

    /// Takes one block for `ask` past the pagesets and hands it to `put`, with the arena's lock held: from the highatomic
    /// reserve at once if the request may, or in the end if it cannot wait.
    pub(crate) fn take_one(
        &self,
        cx: ZoneCx<'_, M>,
        ask: Ask,
        home: &AtomicU32,
        mut put: impl FnMut(&mut FreeAreas, Pfn),
    ) {
        self.watch(cx);
        if let Some(free) = self.only() {
            let mut free = free.lock(cx.cx.machine);
            if let Some(pfn) = take_by_urgency(&mut free, cx, ask) {
                put(&mut free, pfn);
            }
            return;
        }
        let highatomic = MigrateType::HighAtomic;
        if ask.flags.has(AllocFlags::HIGHATOMIC)
            && self.take_smallest(cx, ask.order, highatomic, &mut put) > 0
        {
            return;
        }
        if self.take(cx, Want { ask, blocks: 1, home }, &mut put) > 0 {
            return;
        }
        if ask.flags.has(AllocFlags::NON_BLOCK) {
            self.take_smallest(cx, ask.order, highatomic, &mut put);
        }
    }

    /// Takes a block of `migratetype` of `order` or cut from a larger one, wherever there is one; gives 1 or 0.
    fn take_smallest(
        &self,
        cx: ZoneCx<'_, M>,
        order: Order,
        migratetype: MigrateType,
        put: impl FnOnce(&mut FreeAreas, Pfn),
    ) -> u32 {
        let machine = cx.cx.machine;
        for arena in 0..self.count() {
            if self.seems_to_have(machine, arena, order, Types::only(migratetype)) {
                let mut free = self.lock(machine, arena);
                if let Some(pfn) = free.take_smallest(cx, order, migratetype) {
                    put(&mut free, pfn);
                    return 1;
                }
            }
        }
        0
    }
}

impl<M: Machine, P: FnMut(&mut FreeAreas, Pfn)> Search<'_, M, P> {
    /// Takes all that is left to take from an arena, the first block by `way`, the others as long as they come by the
    /// same or from the request's own lists. Once others wait, nothing is left to take.
    fn take_all(&mut self, free: &mut Guard<'_, M, FreeAreas>, way: SearchMode) {
        let mut mode = way;
        while self.left > 0 {
            let Some(pfn) = free.take_by(self.cx, self.ask, mode) else { break };
            (self.put)(free, pfn);
            self.taken += 1;
            self.left -= 1;
            if self.hold.is_over(free) {
                self.left = 0;
            }
            // What was claimed is now on the request's own lists.
            if mode == SearchMode::Claim {
                mode = SearchMode::Own;
            }
        }
    }

    /// Puts borrowed ranges on the lists of `home` and takes from there.
    fn take_loan(&mut self, home: u32, loan: Loan, way: SearchMode) {
        let mut free = self.cx.zone.arenas.lock(self.cx.cx.machine, home);
        loan.settle(self.cx, &mut free);
        self.take_all(&mut free, way);
    }

    /// Claims a whole range of another type at home, or one from a neighbour, if there are plenty.
    fn take_whole_foreign(&mut self, home: u32) {
        let arenas = &self.cx.zone.arenas;
        let whole_only = self.ask.flags.with(AllocFlags::NOFRAGMENT);
        let flags = core::mem::replace(&mut self.ask.flags, whole_only);
        if arenas.is_rich(home) {
            let mut free = arenas.lock(self.cx.cx.machine, home);
            self.take_all(&mut free, SearchMode::Claim);
        }
        if self.taken == 0 {
            let foreign = fallbacks(self.ask.migratetype);
            if let Some(loan) = arenas.borrow(self.cx, home, foreign, Lenders::Rich) {
                self.take_loan(home, loan, SearchMode::Claim);
            }
        }
        self.ask.flags = flags;
    }

    /// Goes from arena to arena, `home` first, and takes from the first that has something by `way`.
    fn take_anywhere(&mut self, home: u32, way: SearchMode) {
        let arenas = &self.cx.zone.arenas;
        let types = match way {
            SearchMode::Own => Types::only(self.ask.migratetype),
            SearchMode::Claim | SearchMode::Steal => Types::ORDINARY,
        };
        for arena in arenas.division.search_order(home) {
            if self.taken > 0 {
                return;
            }
            if arenas.seems_to_have(self.cx.cx.machine, arena, self.ask.order, types) {
                let mut free = arenas.lock(self.cx.cx.machine, arena);
                self.take_all(&mut free, way);
            }
        }
    }
}

/// Takes a block where there is one arena: from the highatomic reserve at once if the request may, or in the end if it cannot wait.
fn take_by_urgency<M: Machine>(free: &mut FreeAreas, cx: ZoneCx<'_, M>, ask: Ask) -> Option<Pfn> {
    let highatomic = MigrateType::HighAtomic;
    let mut pfn = None;
    if ask.flags.has(AllocFlags::HIGHATOMIC) {
        pfn = free.take_smallest(cx, ask.order, highatomic);
    }
    if pfn.is_none() {
        pfn = free.take(cx, ask, &mut SearchMode::default());
    }
    if pfn.is_none() && ask.flags.has(AllocFlags::NON_BLOCK) {
        pfn = free.take_smallest(cx, ask.order, highatomic);
    }
    pfn
}
