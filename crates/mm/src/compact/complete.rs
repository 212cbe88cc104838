//! Compaction without scanners: one pageblock is chosen, looked over, and emptied for the request that wants it
//! (`+compact-summary`).
//!
//! ```text
//!   pick ─▶ look over ─▶ isolate all ─▶ take its free pages ─▶ find frames ─▶ move ─▶ the request's
//!             │             │                 │                    │            │
//!             └─ something stays, is busy, or came to be allocated: all goes back, nothing has moved
//! ```
//!
//! Nothing moves before everything that has to is in hand: the pages isolated, the block's free pages off the buddy lists, so
//! that nobody allocates into it, and a frame for each page. A page that is pinned in the very moment in which the others move
//! is all that can make moves in vain.

use alloc::vec::Vec;

use super::control::{By, CompactGoal};
use super::pick::Looking;
use super::run::Ran;
use super::{CLUSTER_MAX, CompactEvent, CompactGround, EmptyDoor, Mode, Outcome};
use crate::ground::{Access, Chore, Machine, MigrateType, Order, PAGEBLOCK_ORDER, Pfn, Span, Work};
use crate::lru::page::{Mapping, PageFlag};
use crate::lru::{Alone, Isolator};
use crate::pages::{AllocFlags, FrameKind, FrameState, Mobility, Zone, ZoneCx};

/// The smallest order that a pageblock is opened for: below it, free lists have blocks or walking finds one soon.
const ORDER_MIN: u8 = 4;

/// Busy pageblocks after which a call empties CPUs' lists and begins anew.
const BUSY_MAX: u32 = 16;

/// Blocks that background compaction completes when it was asked for one: those of the next requests.
const AHEAD: u32 = 4;

/// What a stretch of frames is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Look {
    /// It can be emptied, by so many moves.
    Moves(u32),
    /// Somebody is at work with a page of it, or has it on a CPU's list.
    Busy,
    /// A page of it cannot be moved.
    Stays,
}

/// What became of the attempt to empty a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Emptied {
    /// It is one free block, in nobody's hands but the caller's.
    Whole(Pfn),
    /// As [`Look::Busy`].
    Busy,
    /// As [`Look::Stays`].
    Stays,
    /// There are not as many free frames elsewhere.
    NoRoom,
}

/// A stretch of frames that is being emptied, and all that was taken in hand for it.
struct Emptying<'a, M: Machine> {
    zone: &'a Zone<M>,
    start: Pfn,
    order: Order,
    /// Pages that have to move.
    pages: Vec<(Pfn, Alone)>,
    /// Free blocks of the stretch as they were seen, on the buddy lists still.
    seen: Vec<(Pfn, Order)>,
    /// Those of them that are off the lists.
    free: Vec<(Pfn, Order)>,
    /// Frames elsewhere, off the buddy lists.
    targets: Vec<Pfn>,
    /// Frames of the stretch whose pages have moved.
    vacated: Vec<Pfn>,
}

/// One call, as far as it has come.
struct Attempts {
    goal: CompactGoal,
    order: Order,
    /// For blocks to empty.
    looking: Looking,
    /// Whether there was one for blocks to fill.
    looked_to_fill: bool,
    /// Whether CPUs' lists have been emptied.
    drained: bool,
    moved: u32,
}

/// The order of the blocks that are completed for `goal`; `None`: that is for the scanners to do.
fn order_for(goal: &CompactGoal) -> Option<Order> {
    match goal.order {
        Some(order) => (ORDER_MIN..=PAGEBLOCK_ORDER).contains(&order.get()).then_some(order),
        None => (goal.by == By::Proactive).then_some(Order::PAGEBLOCK),
    }
}

impl<M: Machine, G: CompactGround<M>> EmptyDoor<'_, M, G> {
    /// Completes a block of `zone` for `goal`, by what is known of its pageblocks. `None`: not for such a goal; the scanners
    /// are to do it.
    pub(super) fn complete_for(self, zone: &Zone<M>, goal: CompactGoal) -> Option<Ran> {
        let order = order_for(&goal)?;
        self.blocks().summary()?;
        if zone.is_offline() || !self.has_room(zone, &goal, order) {
            return Some(Outcome::Skipped.into());
        }
        if goal.order.is_some()
            && zone.watermark_ok(self.machine(), order, goal.mark, goal.highest, AllocFlags::NONE)
        {
            return Some(Outcome::Success.into());
        }
        let since = self.machine().enter(Span::Compact);
        let mut attempts = Attempts {
            goal,
            order,
            looking: Looking::new(),
            looked_to_fill: false,
            drained: false,
            moved: 0,
        };
        let ran = match goal.by {
            By::Direct => self.complete_one(zone, &mut attempts).map_or(Outcome::Contended.into(), |pfn| {
                self.own().count(zone.id(), CompactEvent::Captured, 1);
                Ran { outcome: Outcome::Success, captured: Some(pfn) }
            }),
            _ => self.complete_ahead(zone, &mut attempts).into(),
        };
        let work = Work { zone: zone.id(), order, migratetype: goal.migratetype, count: attempts.moved };
        self.machine().leave(Span::Compact, since, work);
        // Smaller blocks may be had where no whole pageblock could be emptied.
        (ran.outcome == Outcome::Success || order == Order::PAGEBLOCK).then_some(ran)
    }

    /// Whether the request may take so many single pages: that is what becomes of the block.
    fn has_room(self, zone: &Zone<M>, goal: &CompactGoal, order: Order) -> bool {
        let mark = goal.mark + order.pages();
        zone.watermark_ok(self.machine(), Order::ZERO, mark, goal.highest, AllocFlags::NONE)
    }

    /// Completes some blocks and puts them on the free lists.
    fn complete_ahead(self, zone: &Zone<M>, attempts: &mut Attempts) -> Outcome {
        let mut done = 0;
        while !self.is_enough_ahead(zone, attempts.goal.by, done) {
            let Some(pfn) = self.complete_one(zone, attempts) else { break };
            self.pages().free_to_buddy(ZoneCx { cx: self.pages().cx(), zone }, pfn, attempts.order);
            done += 1;
            if !self.has_room(zone, &attempts.goal, attempts.order) {
                break;
            }
        }
        if done > 0 { Outcome::Success } else { Outcome::Contended }
    }

    /// Whether so many blocks are enough: a few for whoever asked, else until little of what is free is in pieces.
    fn is_enough_ahead(self, zone: &Zone<M>, by: By, done: u32) -> bool {
        match by {
            By::Proactive => self.compaction().finished_proactive(zone).is_some(),
            _ => done == AHEAD,
        }
    }

    /// Empties the cheapest block of `zone` that lets itself be emptied; if there is none, once more when CPUs hold nothing back.
    fn complete_one(self, zone: &Zone<M>, attempts: &mut Attempts) -> Option<Pfn> {
        let found = self.empty_cheapest(zone, attempts);
        if found.is_some() || core::mem::replace(&mut attempts.drained, true) {
            return found;
        }
        // Pages that were freed of late make blocks look dearer, or busy, as long as they are on CPUs' lists.
        self.lru().lru_drain_all();
        self.pages().drain_all();
        self.own().of(zone.id()).picks.forget();
        (attempts.looking, attempts.looked_to_fill) = (Looking::new(), false);
        self.empty_cheapest(zone, attempts)
    }

    fn empty_cheapest(self, zone: &Zone<M>, attempts: &mut Attempts) -> Option<Pfn> {
        let mut busy = 0;
        while let Some(block) = self.pick_to_empty(zone, &mut attempts.looking) {
            match self.empty_block(zone, block, attempts) {
                Emptied::Whole(pfn) => return Some(pfn),
                Emptied::Busy => busy += 1,
                Emptied::Stays => {}
                Emptied::NoRoom => return None,
            }
            if busy == BUSY_MAX {
                return None;
            }
        }
        None
    }

    /// Empties the pageblock numbered `block`, which is claimed, or as much of it as is wanted; ends the claim.
    fn empty_block(self, zone: &Zone<M>, block: u32, attempts: &mut Attempts) -> Emptied {
        let start = Pfn(block << PAGEBLOCK_ORDER);
        let emptied = match self.cheapest_part(zone, start, attempts.order) {
            (_, Look::Stays) => Emptied::Stays,
            (_, Look::Busy) => Emptied::Busy,
            (part, Look::Moves(_)) => self.empty(zone, part, attempts),
        };
        if let Some(summary) = self.blocks().summary() {
            match emptied {
                Emptied::Whole(_) => summary.forgive(block),
                Emptied::Stays => summary.put_off(block, self.machine().now()),
                Emptied::Busy | Emptied::NoRoom => summary.release(block),
            }
        }
        emptied
    }

    /// Of the parts of a pageblock that are aligned to `order`, the one that costs least to empty.
    fn cheapest_part(self, zone: &Zone<M>, start: Pfn, order: Order) -> (Pfn, Look) {
        let ordinary = self.blocks().read(self.machine(), start).index() < MigrateType::PCP_COUNT;
        if !ordinary {
            return (start, Look::Stays);
        }
        let parts =
            (0..Order::PAGEBLOCK.pages()).step_by(order.pages() as usize).map(|offset| start.add(offset));
        let looks = parts.map(|part| (part, self.look_over(zone, part, order)));
        looks.min_by_key(|&(_, look)| look).expect("a pageblock has a part of any order up to its own")
    }

    /// What the frames of the block of `order` at `start` are, as far as can be told without a lock.
    fn look_over(self, zone: &Zone<M>, start: Pfn, order: Order) -> Look {
        let end = start.add(order.pages());
        let (mut pfn, mut moves, mut looked) = (start, 0, 0);
        let look = loop {
            if pfn >= end {
                break Look::Moves(moves);
            }
            looked += 1;
            self.pages().cx().mem().touch(pfn, Access::Read);
            let state = self.map().frame(pfn).state();
            match state.kind {
                FrameKind::Free if state.order < order => pfn = pfn.add(state.order.pages()),
                // As a whole it is somebody else's by now, or about to be.
                FrameKind::Free | FrameKind::Pcp | FrameKind::Tail => break Look::Busy,
                FrameKind::Slab | FrameKind::SlabTail => break Look::Stays,
                FrameKind::Allocated => match self.look_at_page(zone, pfn, state) {
                    Look::Moves(_) => (pfn, moves) = (pfn.add(1), moves + 1),
                    other => break other,
                },
            }
        };
        self.machine().spend(Chore::MigrateScan, looked);
        self.own().count(zone.id(), CompactEvent::MigrateScanned, u64::from(looked));
        look
    }

    fn look_at_page(self, zone: &Zone<M>, pfn: Pfn, state: FrameState) -> Look {
        let single = state.order == Order::ZERO && state.zone == zone.id();
        if !single || Mobility::of(state.migratetype) == Mobility::Fixed || !self.lru().has_pages() {
            return Look::Stays;
        }
        let page = self.lru().page(pfn);
        let own = match page.mapping() {
            Mapping::None => return Look::Stays,
            Mapping::Anon(_) => 0,
            Mapping::File(_) | Mapping::Slot => 1,
        };
        if !page.has(PageFlag::Lru) || page.has(PageFlag::Writeback) {
            Look::Busy
        } else if page.refs() > page.mapped() + own {
            Look::Stays
        } else {
            Look::Moves(1)
        }
    }

    /// Empties the block of the wanted order at `start`, all of whose pages seemed to be such as move.
    fn empty(self, zone: &Zone<M>, start: Pfn, attempts: &mut Attempts) -> Emptied {
        let mut emptying = Emptying {
            zone,
            start,
            order: attempts.order,
            pages: Vec::new(),
            seen: Vec::new(),
            free: Vec::new(),
            targets: Vec::new(),
            vacated: Vec::new(),
        };
        let emptied = self.take_in_hand(&mut emptying, attempts).and_then(|()| {
            let moved = self.move_all(&mut emptying, attempts.goal.mode);
            attempts.moved += emptying.vacated.len() as u32;
            moved
        });
        match emptied {
            Ok(()) => Emptied::Whole(self.join_up(&emptying, attempts.goal.migratetype)),
            Err(why) => {
                self.let_go(emptying);
                why
            }
        }
    }

    /// Isolates the pages, takes the free frames between them, and finds as many elsewhere.
    fn take_in_hand(self, emptying: &mut Emptying<'_, M>, attempts: &mut Attempts) -> Result<(), Emptied> {
        self.isolate_all(emptying)?;
        self.take_free_between(emptying);
        let free: u32 = emptying.free.iter().map(|(_, order)| order.pages()).sum();
        if free + emptying.pages.len() as u32 != emptying.order.pages() {
            return Err(Emptied::Busy);
        }
        self.find_targets(emptying, &mut attempts.looked_to_fill)
    }

    /// Isolates all pages, and notes the free blocks between them.
    fn isolate_all(self, emptying: &mut Emptying<'_, M>) -> Result<(), Emptied> {
        let end = emptying.start.add(emptying.order.pages());
        let mut isolator = Isolator::new(self.lru());
        let mut pfn = emptying.start;
        while pfn < end {
            let state = self.map().frame(pfn).state();
            match state.kind {
                FrameKind::Free => emptying.seen.push((pfn, state.order)),
                FrameKind::Allocated if state.order == Order::ZERO => {
                    let alone = isolator.isolate(pfn).ok_or(Emptied::Busy)?;
                    emptying.pages.push((pfn, alone));
                    if emptying.pages.len() % CLUSTER_MAX == 0 {
                        // Others want the lock, too.
                        isolator.let_go();
                    }
                }
                _ => return Err(Emptied::Busy),
            }
            pfn = pfn.add(state.order.pages());
        }
        // With a page in hand, the block's arena stays the same.
        if emptying.pages.is_empty() { Err(Emptied::Busy) } else { Ok(()) }
    }

    /// Takes the free blocks that were seen between the pages, if all of them are there still. No more can have come: who
    /// could have freed a page has lost it to us.
    fn take_free_between(self, emptying: &mut Emptying<'_, M>) {
        let zone = emptying.zone;
        let cx = ZoneCx { cx: self.pages().cx(), zone };
        let mut lists = zone.arenas().lock_owner(self.machine(), emptying.start);
        let mut taken = 0;
        for (pfn, order) in emptying.seen.drain(..) {
            let state = self.map().frame(pfn).state();
            let same = state.kind == FrameKind::Free && state.order == order && state.zone == zone.id();
            if !same || order >= emptying.order || lists.number() != zone.arenas().owner(pfn) {
                break;
            }
            lists.remove(cx, pfn);
            self.take_off_lists(cx, pfn, order);
            emptying.free.push((pfn, order));
            taken += order.pages();
        }
        let pageset = &zone.pagesets()[usize::from(self.machine().cpu().0)];
        pageset.beside().add_free(cx, -(taken as i32));
    }

    /// A block that was just removed from its list is the caller's, as one of movable pages.
    fn take_off_lists(self, cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) {
        let migratetype = MigrateType::Movable;
        self.blocks().left(self.machine(), (pfn, order), Mobility::Movable);
        let state = FrameState { kind: FrameKind::Allocated, order, migratetype, zone: cx.zone.id() };
        self.map().frame(pfn).set_state(state);
    }

    /// Finds a frame for every page, in the blocks that are to be filled.
    fn find_targets(self, emptying: &mut Emptying<'_, M>, looked: &mut bool) -> Result<(), Emptied> {
        while emptying.targets.len() < emptying.pages.len() {
            let block = self.pick_to_fill(emptying.zone, looked).ok_or(Emptied::NoRoom)?;
            if self.take_targets_in(emptying, Pfn(block << PAGEBLOCK_ORDER)) == 0 {
                self.own().of(emptying.zone.id()).picks.pass_filled(block);
            }
        }
        Ok(())
    }

    /// Takes free frames of the pageblock at `start`, as many as are wanted still; gives how many there were. They are looked
    /// for without the lock, and taken with it.
    fn take_targets_in(self, emptying: &mut Emptying<'_, M>, start: Pfn) -> u32 {
        let mut wanted = (emptying.pages.len() - emptying.targets.len()) as u32;
        let (mut seen, mut looked, mut pages) = (Vec::new(), 0, 0);
        let mut pfn = start;
        while pfn < start.add(Order::PAGEBLOCK.pages()) && pages < wanted {
            looked += 1;
            self.pages().cx().mem().touch(pfn, Access::Read);
            let state = self.map().frame(pfn).state();
            if state.kind == FrameKind::Free && state.order < Order::PAGEBLOCK {
                seen.push(pfn);
                pages += state.order.pages();
                pfn = pfn.add(state.order.pages());
            } else {
                pfn = pfn.add(1);
            }
        }
        self.machine().spend(Chore::FreeScan, looked);
        self.own().count(emptying.zone.id(), CompactEvent::FreeScanned, u64::from(looked));
        if seen.is_empty() {
            return 0;
        }
        let zone = emptying.zone;
        let cx = ZoneCx { cx: self.pages().cx(), zone };
        let before = emptying.targets.len();
        let mut lists = zone.arenas().lock_owner(self.machine(), start);
        for pfn in seen {
            let state = self.map().frame(pfn).state();
            let is_free = state.kind == FrameKind::Free && state.zone == zone.id();
            if !is_free
                || state.order >= Order::PAGEBLOCK
                || wanted == 0
                || lists.number() != zone.arenas().owner(pfn)
            {
                continue;
            }
            lists.remove(cx, pfn);
            let order = state.order.min(Order::new(wanted.ilog2() as u8).unwrap_or(state.order));
            lists.expand(cx, pfn, order, state.order, state.migratetype);
            for page in 0..order.pages() {
                self.take_off_lists(cx, pfn.add(page), Order::ZERO);
                emptying.targets.push(pfn.add(page));
            }
            wanted -= order.pages();
        }
        let taken = emptying.targets.len() - before;
        let pageset = &zone.pagesets()[usize::from(self.machine().cpu().0)];
        pageset.beside().add_free(cx, -(taken as i32));
        taken as u32
    }

    /// Moves every page. If one stays after all, the others have moved in vain.
    fn move_all(self, emptying: &mut Emptying<'_, M>, mode: Mode) -> Result<(), Emptied> {
        let zone = emptying.zone;
        let since = self.machine().enter(Span::Migrate);
        self.own().count(zone.id(), CompactEvent::Isolated, emptying.pages.len() as u64);
        self.own().count(zone.id(), CompactEvent::Rounds, 1);
        let mut result = Ok(());
        while let (Some((from, alone)), Some(to)) = (emptying.pages.pop(), emptying.targets.pop()) {
            if self.compaction().move_away(mode, from, to) {
                self.lru().end_isolation_of(alone);
                emptying.vacated.push(from);
            } else {
                self.own().count(zone.id(), CompactEvent::MoveFailed, 1);
                emptying.pages.push((from, alone));
                emptying.targets.push(to);
                result = Err(Emptied::Stays);
                break;
            }
        }
        let count = emptying.vacated.len() as u32;
        self.own().count(zone.id(), CompactEvent::Moved, u64::from(count));
        if result.is_ok() {
            self.own().count(zone.id(), CompactEvent::Completing, u64::from(count));
        }
        self.machine().leave(Span::Migrate, since, Work { zone: zone.id(), count, ..Work::default() });
        result
    }

    /// All frames of the stretch are in hand: they become one block, allocated as `migratetype`.
    fn join_up(self, emptying: &Emptying<'_, M>, migratetype: MigrateType) -> Pfn {
        let Emptying { zone, start, order, .. } = *emptying;
        let parts = emptying.free.iter().map(|&(pfn, _)| pfn).chain(emptying.vacated.iter().copied());
        parts.filter(|&pfn| pfn != start).for_each(|pfn| self.map().frame(pfn).set_tail());
        let state = FrameState { kind: FrameKind::Allocated, order, migratetype, zone: zone.id() };
        self.map().frame(start).set_state(state);
        let mut lists = zone.arenas().lock_owner(self.machine(), start);
        lists.count_alloc(order);
        self.blocks().retyped(self.machine(), (start, order), (Mobility::Movable, Mobility::of(migratetype)));
        if order == Order::PAGEBLOCK && self.blocks().get(start) != migratetype {
            self.blocks().set(self.machine(), start, migratetype);
        }
        start
    }

    /// All that was taken in hand goes back.
    fn let_go(self, emptying: Emptying<'_, M>) {
        let zone = emptying.zone;
        let cx = ZoneCx { cx: self.pages().cx(), zone };
        self.own().count(zone.id(), CompactEvent::PutBack, emptying.pages.len() as u64);
        for (pfn, alone) in emptying.pages {
            self.lru().put_back_page(pfn, alone);
        }
        let frames = emptying.targets.into_iter().chain(emptying.vacated).map(|pfn| (pfn, Order::ZERO));
        for (pfn, order) in emptying.free.into_iter().chain(frames) {
            self.pages().free_to_buddy(cx, pfn, order);
        }
    }

    /// Looks anew at what is known of the pageblocks of `zone` and gives the one that costs least to empty, looked over, and
    /// how many pages would have to move. Nothing moves: a door for measurements and tests. `None`: there is none, or the
    /// policy keeps no count.
    pub fn find_block_to_empty(self, zone: &Zone<M>) -> Option<(Pfn, u32)> {
        let summary = self.blocks().summary()?;
        self.own().of(zone.id()).picks.forget();
        let mut looking = Looking::new();
        loop {
            let block = self.pick_to_empty(zone, &mut looking)?;
            let (start, look) = self.cheapest_part(zone, Pfn(block << PAGEBLOCK_ORDER), Order::PAGEBLOCK);
            summary.release(block);
            if let Look::Moves(pages) = look {
                return Some((start, pages));
            }
        }
    }
}
