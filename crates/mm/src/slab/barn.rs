//! A node's barn: its stock of full and of empty sheaves, which CPUs exchange there in one hold of the barn's lock
//! (docs/rules/slab.md#sheaves).

use super::chain::NONE;
use super::sheaf::Sheaf;
use super::stat::SlabEvent;
use super::{SheafCx, SlabGround};
use crate::ground::{Access, Addr, AtomicU32, Guard, Line, LineKind, LockClass, Locked, Machine, Relaxed};

/// Full sheaves that a barn keeps, about: the count is read without the lock.
pub(super) const MAX_FULL: u32 = 10;
/// Empty ones, likewise.
pub(super) const MAX_EMPTY: u32 = 10;

/// Sheaves linked through their headers; the last one in is the first one out.
#[derive(Debug)]
pub(super) struct Pile {
    first: Addr,
    len: u32,
}

impl Pile {
    const EMPTY: Self = Self { first: NONE, len: 0 };

    fn push<M: Machine>(&mut self, machine: &M, sheaf: Addr) {
        Sheaf::link(machine, sheaf, self.first);
        self.first = sheaf;
        self.len += 1;
    }

    fn pop<M: Machine>(&mut self, machine: &M) -> Option<Addr> {
        if self.first == NONE {
            return None;
        }
        let sheaf = self.first;
        self.first = Sheaf::linked(machine, sheaf);
        self.len -= 1;
        Some(sheaf)
    }
}

/// What a barn's lock protects.
#[derive(Debug)]
pub(super) struct Piles {
    full: Pile,
    empty: Pile,
}

/// A node's barn.
#[derive(Debug)]
pub(super) struct Barn<M: Machine> {
    piles: Locked<M, Piles>,
    /// How many there are, for who looks without the lock.
    full: AtomicU32,
    empty: AtomicU32,
    line: u32,
}

impl<M: Machine> Barn<M> {
    pub(super) fn new(machine: &M, line: u32) -> Self {
        let piles = Piles { full: Pile::EMPTY, empty: Pile::EMPTY };
        Self {
            piles: Locked::new(machine, LockClass::Barn, line, piles),
            full: AtomicU32::new(0),
            empty: AtomicU32::new(0),
            line,
        }
    }

    fn lock<'a>(&'a self, machine: &'a M) -> Guard<'a, M, Piles> {
        let guard = self.piles.lock(machine);
        machine.touch(Line { kind: LineKind::Barn, index: self.line }, Access::Write);
        guard
    }

    fn told(&self, piles: &Piles) {
        self.full.store(piles.full.len, Relaxed);
        self.empty.store(piles.empty.len, Relaxed);
    }

    /// Full sheaves, as of a moment ago.
    pub(super) fn full(&self, machine: &M) -> u32 {
        machine.touch(Line { kind: LineKind::Barn, index: self.line }, Access::Read);
        self.full.load(Relaxed)
    }

    /// Empty sheaves, as of a moment ago.
    pub(super) fn empty(&self, machine: &M) -> u32 {
        machine.touch(Line { kind: LineKind::Barn, index: self.line }, Access::Read);
        self.empty.load(Relaxed)
    }

    /// All sheaves, taken out: full ones and empty ones.
    pub(super) fn take_all(&self, machine: &M, mut put: impl FnMut(Addr, bool)) {
        let mut piles = self.lock(machine);
        let full = core::mem::replace(&mut piles.full, Pile::EMPTY);
        let empty = core::mem::replace(&mut piles.empty, Pile::EMPTY);
        self.told(&piles);
        drop(piles);
        for (mut pile, is_full) in [(full, true), (empty, false)] {
            while let Some(sheaf) = pile.pop(machine) {
                put(sheaf, is_full);
            }
        }
    }

    /// Every full sheaf, for whoever counts what is where.
    pub(super) fn each_full(&self, machine: &M, mut look: impl FnMut(Addr)) {
        let piles = self.lock(machine);
        let mut sheaf = piles.full.first;
        while sheaf != NONE {
            look(sheaf);
            sheaf = Sheaf::linked(machine, sheaf);
        }
    }
}

impl<'a, M: Machine, G: SlabGround<M>> SheafCx<'a, M, G> {
    /// Gives an empty sheaf for a full one, if the barn has any.
    pub(super) fn barn_full_for_empty(self, empty: Option<Addr>) -> Option<Addr> {
        let (barn, machine) = (self.barn(), self.slab.machine());
        if barn.full(machine) == 0 {
            self.slab.count(SlabEvent::BarnGetFail, 1);
            return None;
        }
        let mut piles = barn.lock(machine);
        let full = piles.full.pop(machine);
        if let (Some(_), Some(empty)) = (full, empty) {
            piles.empty.push(machine, empty);
        }
        barn.told(&piles);
        drop(piles);
        self.slab.count(if full.is_some() { SlabEvent::BarnGet } else { SlabEvent::BarnGetFail }, 1);
        full
    }

    /// Gives a full sheaf for an empty one: if the barn has room, and an empty one.
    pub(super) fn barn_empty_for_full(self, full: Addr) -> Result<Addr, NoExchange> {
        let (barn, machine) = (self.barn(), self.slab.machine());
        if barn.full(machine) >= MAX_FULL {
            self.slab.count(SlabEvent::BarnPutFail, 1);
            return Err(NoExchange::NoRoom);
        }
        if barn.empty(machine) == 0 {
            return Err(NoExchange::NoEmpty);
        }
        let mut piles = barn.lock(machine);
        let empty = piles.empty.pop(machine);
        if empty.is_some() {
            piles.full.push(machine, full);
        }
        barn.told(&piles);
        drop(piles);
        let empty = empty.ok_or(NoExchange::NoEmpty)?;
        self.slab.count(SlabEvent::BarnPut, 1);
        Ok(empty)
    }

    /// An empty sheaf, if the barn has any.
    pub(super) fn barn_take_empty(self) -> Option<Addr> {
        let (barn, machine) = (self.barn(), self.slab.machine());
        if barn.empty(machine) == 0 {
            return None;
        }
        let mut piles = barn.lock(machine);
        let empty = piles.empty.pop(machine);
        barn.told(&piles);
        empty
    }

    /// Any sheaf, a full one rather; whether it is full.
    pub(super) fn barn_take_any(self) -> Option<(Addr, bool)> {
        let (barn, machine) = (self.barn(), self.slab.machine());
        if barn.full(machine) == 0 && barn.empty(machine) == 0 {
            return None;
        }
        let mut piles = barn.lock(machine);
        let full = piles.full.pop(machine).map(|sheaf| (sheaf, true));
        let taken = full.or_else(|| piles.empty.pop(machine).map(|sheaf| (sheaf, false)));
        barn.told(&piles);
        taken
    }

    /// Puts a full sheaf in; says whether there was room.
    pub(super) fn barn_put_full(self, full: Addr) -> bool {
        let (barn, machine) = (self.barn(), self.slab.machine());
        if barn.full(machine) >= MAX_FULL {
            self.slab.count(SlabEvent::BarnPutFail, 1);
            return false;
        }
        let mut piles = barn.lock(machine);
        piles.full.push(machine, full);
        barn.told(&piles);
        drop(piles);
        self.slab.count(SlabEvent::BarnPut, 1);
        true
    }

    /// Puts an empty sheaf in; says whether there was room.
    pub(super) fn barn_put_empty(self, empty: Addr) -> bool {
        let (barn, machine) = (self.barn(), self.slab.machine());
        if barn.empty(machine) >= MAX_EMPTY {
            return false;
        }
        let mut piles = barn.lock(machine);
        piles.empty.push(machine, empty);
        barn.told(&piles);
        true
    }

    /// Whether another full sheaf would be taken.
    pub(super) fn barn_has_room(self) -> bool {
        self.barn().full(self.slab.machine()) < MAX_FULL
    }

    /// The barn of the CPU's node.
    pub(super) fn barn(self) -> &'a Barn<M> {
        &self.slab.cache.nodes[usize::from(self.slab.slabs.pages().local_node().0)].barn
    }
}

/// Why a full sheaf was not exchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoExchange {
    /// The barn has as many full ones as it keeps.
    NoRoom,
    /// It has no empty one.
    NoEmpty,
}
