//! The arena that a CPU is at home in: where it takes from first. CPUs begin one to an arena, as far as there are
//! enough, and move when they meet another at the lock, or when their arena has only whole ranges left while another
//! has pieces that nobody uses.

use super::{Arenas, Want};
use crate::ground::{Access, AtomicU32, Guard, Machine, MigrateType, Order, Relaxed};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::rules::knobs::{Knob, KnobUse};
use crate::rules::policy::{ArenaRule, ZonesRule};

/// Arenas that a CPU tries before it waits for the lock of its own.
const TRIES: u32 = 4;

/// Pages in pieces from which on a CPU moves to an arena to use them up: four ranges' worth. With fewer, CPUs move
/// for what the arena's own would soon use, and mix what they would have kept apart.
const PIECES_MIN: u32 = 4 * Order::MAX.pages();

impl<M: Machine> Arenas<M> {
    /// CPUs are at home in the first `homes` arenas, 0 for all of them. Gives how many these are.
    pub(crate) fn set_homes(&self, homes: u32) -> u32 {
        let homes = if homes == 0 { self.count() } else { homes.min(self.count()) };
        self.homes.store(homes, Relaxed);
        homes
    }

    /// How many arenas CPUs are at home in.
    pub(crate) fn homes(&self) -> u32 {
        self.homes.load(Relaxed)
    }

    /// Blocks are taken from here: tells a machine that watches whether there are other arenas than by default, or other
    /// homes.
    #[inline]
    pub(crate) fn watch(&self, cx: ZoneCx<'_, M>) {
        let is_divided = || {
            let rules = cx.cx.rules;
            rules.lists.arenas != ArenaRule::One || rules.lists.zones != ZonesRule::Whole
        };
        if M::WATCHES_KNOBS && cx.cx.knobs.is_set(Knob::Arenas) && is_divided() {
            let (now, by_default) = ((self.count(), self.homes()), (self.count_by_default, self.count()));
            cx.cx.machine.knob_used(Knob::Arenas, KnobUse::of(&now, &by_default));
        }
    }

    /// Takes the lock of the arena that a CPU which wants blocks should take them from, and makes that its home.
    pub(super) fn lock_home<'a>(&'a self, cx: ZoneCx<'a, M>, want: Want<'_>) -> Guard<'a, M, FreeAreas> {
        let machine = cx.cx.machine;
        let free = self.lock_free_one(machine, want.home);
        if !breaks_a_range(&free, want) {
            return free;
        }
        let Some(arena) = self.neighbour_in_pieces(machine, free.number()) else { return free };
        drop(free);
        want.home.store(arena, Relaxed);
        self.lock_free_one(machine, want.home)
    }

    /// Takes the lock of the arena `home`. If another CPU holds it, this one moves to one of the next whose lock is
    /// free; so those that meet part.
    fn lock_free_one<'a>(&'a self, machine: &'a M, home: &AtomicU32) -> Guard<'a, M, FreeAreas> {
        let (homes, first) = (self.homes(), home.load(Relaxed));
        for step in 0..homes.min(TRIES) {
            let arena = (first + step) % homes;
            if let Some(guard) = self.sets[arena as usize].free.try_lock(machine) {
                if arena != first {
                    home.store(arena, Relaxed);
                }
                return guard;
            }
        }
        self.lock(machine, first % homes)
    }

    /// The neighbour of `arena` with the most pieces, if it has many.
    fn neighbour_in_pieces(&self, machine: &M, arena: u32) -> Option<u32> {
        let homes = self.homes();
        let pieces = |arena: u32| {
            self.touch_counts(machine, arena, Access::Read);
            (self.counts(arena).pieces.load(Relaxed), arena)
        };
        let neighbours = self.division.neighbours(arena).filter(|&arena| arena < homes);
        let most = neighbours.map(pieces).reduce(|best, next| if next.0 > best.0 { next } else { best });
        most.filter(|&(pages, _)| pages >= PIECES_MIN).map(|(_, arena)| arena)
    }
}

/// Whether single movable pages are wanted that an arena has not in pieces. Larger blocks may not be had of pieces, and
/// other types have few blocks, which all arenas look for anyway.
fn breaks_a_range(free: &FreeAreas, want: Want<'_>) -> bool {
    let single = want.ask.order == Order::ZERO && want.ask.migratetype == MigrateType::Movable;
    single && free.pieces() < want.blocks
}
