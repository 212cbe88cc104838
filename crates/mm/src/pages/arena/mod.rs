//! A zone's free lists, divided: each arena has lists and a lock of its own, and CPUs spread over them. Linux has one
//! arena a zone; `+arenas` and `+zones` have several.
//!
//! ```text
//!   zone    │ range │ range │ range │ range │ range │ range │ …     stretches of 4 MiB, the largest block
//!   owner       0       0       1       2       1       2
//!                ╲      │        ╲___  │  ___╱       │
//!                 arena 0         arena 1        arena 2            lists, a lock
//! ```
//!
//! Every range belongs to one arena, and a block is freed to the arena of its range; so blocks merge up to the largest
//! as if there were one arena. A CPU takes from the arena that it is at home in (`home`). Before it breaks a whole range
//! there, it moves to an arena that has more pieces than it uses, so that contiguity is kept. When its arena has nothing
//! left, whole free ranges move to it from others (`borrow`), and only when there is no such range does it take what
//! others have of smaller blocks (`take`). With `+zones`, ranges stay where they are.
//!
//! A range moves only while all of it is one free block, on no list, in the hands of the CPU that moves it. So the owner
//! of a range with an allocated page does not change, and who frees that page reads it without a lock. No two arena
//! locks are ever held together.
//!
//! Counters, watermarks, pageblock types and pagesets stay the zone's.

mod borrow;
mod division;
mod hints;
mod home;
mod take;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use crate::ground::{
    Access, AtomicU8, AtomicU32, Guard, Line, LineKind, LockClass, Locked, Machine, Order, Pfn, Relaxed,
    ZoneId,
};
use crate::pages::buddy::FreeAreas;
use crate::pages::pageblock;

pub(crate) use division::{ARENAS_MAX, Division};
pub(crate) use hints::{Counts, Hints, PIECES_STEP, Types};
pub(crate) use take::Want;

/// Lines of free lists by zone and by arena; [`LineKind::FreeArea`] says how they are numbered.
pub(crate) const LINES_OF_ARENA: u32 = 64;
pub(crate) const LINES_OF_ZONE: u32 = LINES_OF_ARENA * ARENAS_MAX;
/// Lines of an arena's list heads and block counts, by order.
pub(crate) const LINES_OF_ORDER: u32 = 4;
/// Within the lines of the first arena: the counts of all arenas.
const COUNT_LINES: u32 = 48;
/// Two counts of four bytes each.
const COUNTS_PER_LINE: u32 = 64 / 8;

/// Free lists with a lock of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Arena<M: Machine> {
    free: Locked<M, FreeAreas>,
    hints: Hints,
}

/// The arenas of a zone.
#[derive(Debug)]
pub(crate) struct Arenas<M: Machine> {
    zone: ZoneId,
    sets: Box<[Arena<M>]>,
    counts: Box<[Counts]>,
    division: Division,
    /// The arena of each range; empty where there is only one.
    owners: Box<[AtomicU8]>,
    first_range: u32,
    /// CPUs are at home in the first so many; 0 until they are given their homes.
    homes: AtomicU32,
    /// How many there would be if nobody had set a number.
    count_by_default: u32,
}

impl<M: Machine> Arenas<M> {
    /// Empty lists for `zone`, whose frames begin with `start`; by default they would be divided as `by_default` says.
    pub(crate) fn new(
        machine: &M,
        (zone, start): (ZoneId, Pfn),
        (division, by_default): (Division, Division),
    ) -> Self {
        let count = division.count();
        let arena = |number: u32| {
            // The first arena's lock has the number that the zone's own would have.
            let index = u32::from(zone.0) + number * 1024;
            let free = Locked::new(machine, LockClass::Zone, index, FreeAreas::of_arena(number));
            Arena { free, hints: Hints::default() }
        };
        let owner = |range: u32| AtomicU8::new(division.first_owner(range) as u8);
        let ranges = if count > 1 { division.ranges() } else { 0 };
        Self {
            zone,
            sets: (0..count).map(arena).collect(),
            counts: (0..count).map(|_| Counts::default()).collect(),
            division,
            owners: (0..ranges).map(owner).collect(),
            first_range: range_of(start),
            homes: AtomicU32::new(0),
            count_by_default: by_default.count(),
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.sets.len() as u32
    }

    /// The free lists, where they are not divided.
    #[inline]
    pub(crate) fn only(&self) -> Option<&Locked<M, FreeAreas>> {
        if let [arena] = &*self.sets { Some(&arena.free) } else { None }
    }

    /// All arenas' lists, each to be locked by itself.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Locked<M, FreeAreas>> {
        self.sets.iter().map(|arena| &arena.free)
    }

    #[inline]
    fn lock<'a>(&'a self, machine: &'a M, arena: u32) -> Guard<'a, M, FreeAreas> {
        self.sets[arena as usize].free.lock(machine)
    }

    /// The number of the arena that `pfn` belongs to; it stays so as long as a page of its range is allocated.
    #[inline]
    pub(crate) fn owner(&self, pfn: Pfn) -> u32 {
        let owner = self.owners.get((range_of(pfn) - self.first_range) as usize);
        owner.map_or(0, |owner| u32::from(owner.load(Relaxed)))
    }

    /// The same, charged to `machine`: the owner is kept with the pageblock's type. Where it never changes, it can be
    /// told from the address.
    #[inline]
    pub(crate) fn read_owner(&self, machine: &M, pfn: Pfn) -> u32 {
        if self.division.moves() {
            machine.touch(pageblock::line(pfn), Access::Read);
        }
        self.owner(pfn)
    }

    /// Takes the lock of the arena that `pfn` belongs to.
    #[inline]
    pub(crate) fn lock_owner<'a>(&'a self, machine: &'a M, pfn: Pfn) -> Guard<'a, M, FreeAreas> {
        self.lock(machine, self.read_owner(machine, pfn))
    }

    /// The range of `pfn` belongs to `arena` from here on.
    fn set_owner(&self, machine: &M, pfn: Pfn, arena: u32) {
        machine.touch(pageblock::line(pfn), Access::Write);
        self.owners[(range_of(pfn) - self.first_range) as usize].store(arena as u8, Relaxed);
    }

    /// Which lists of `arena` have blocks, as far as is said.
    #[inline]
    pub(crate) fn hints(&self, arena: u32) -> &Hints {
        &self.sets[arena as usize].hints
    }

    /// How much of `arena` is whole and how much in pieces, as far as is said.
    #[inline]
    pub(crate) fn counts(&self, arena: u32) -> &Counts {
        &self.counts[arena as usize]
    }

    /// Whether some arena has a block of `order` or above of one of `types`, as far as is said. Each CPU begins to look
    /// at another one.
    #[inline]
    pub(crate) fn any_has(&self, machine: &M, order: Order, types: Types) -> bool {
        if self.only().is_some() {
            return self.hints(0).has(order, types);
        }
        let first = u32::from(machine.cpu().0);
        let mut arenas = (0..self.count()).map(|step| (first + step) % self.count());
        arenas.any(|arena| self.seems_to_have(machine, arena, order, types))
    }

    /// Whether `arena` has such a block, as far as is said. A kernel looks at the list heads without the lock, so that
    /// is what is charged; ours are only read under it, and hints say what they would.
    fn seems_to_have(&self, machine: &M, arena: u32, order: Order, types: Types) -> bool {
        let mut orders = order.to(Order::MAX);
        orders.any(|order| {
            let line = arena * LINES_OF_ARENA + u32::from(order.get()) * LINES_OF_ORDER;
            self.touch_line(machine, line, Access::Read);
            self.hints(arena).has_list(order, types)
        })
    }

    /// Charges a look at the counts of `arena`, or a change of them.
    #[inline]
    pub(crate) fn touch_counts(&self, machine: &M, arena: u32, access: Access) {
        self.touch_line(machine, COUNT_LINES + arena / COUNTS_PER_LINE, access);
    }

    #[inline]
    fn touch_line(&self, machine: &M, line: u32, access: Access) {
        let index = u32::from(self.zone.0) * LINES_OF_ZONE + line;
        machine.touch(Line { kind: LineKind::FreeArea, index }, access);
    }
}

/// The number of the stretch of the largest block's size that `pfn` is in.
#[inline]
fn range_of(pfn: Pfn) -> u32 {
    pfn.0 >> Order::MAX.get()
}
