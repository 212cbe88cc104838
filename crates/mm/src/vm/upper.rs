//! Page tables above those of entries: one for each GiB in which there is any of these (`pmd`), one for each 512 GiB
//! (`pud`). They take frames of the machine's memory and count as page tables (`VmPTE`); what they hold is kept in
//! [`super::table::Directory`]. The one above them, a page that every process has (`pgd`), is left out.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::space::AddressSpace;
use super::table::Table;
use super::{SpaceId, SpacesGround, TablesDoor, Vpn};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::{Chore, LockClass, Machine};
use crate::ground::sync::Locked;
use crate::pages::request::{AllocError, Request};

/// A level of page tables above those of entries, the higher one first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// A table covers 512 GiB.
    Pud,
    /// A table covers a GiB.
    Pmd,
}

impl Level {
    const ALL: [Self; 2] = [Self::Pud, Self::Pmd];

    /// A table covers 2 to the power of this pages.
    const fn shift(self) -> u32 {
        match self {
            Self::Pud => 27,
            Self::Pmd => 18,
        }
    }
}

/// A table above those of entries: its level, and its number among those.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    level: Level,
    number: u32,
}

impl Place {
    const fn of(level: Level, vpn: Vpn) -> Self {
        Self { level, number: vpn.0 >> level.shift() }
    }

    const fn start(self) -> Vpn {
        Vpn(self.number << self.level.shift())
    }

    const fn end(self) -> Vpn {
        Vpn(self.start().0.saturating_add(1 << self.level.shift()))
    }
}

/// The tables above those of entries that an address space has, with their frames.
#[derive(Debug)]
pub(super) struct UpperTables<M: Machine>(Locked<M, BTreeMap<Place, Pfn>>);

impl<M: Machine> UpperTables<M> {
    pub(super) fn new(machine: &M, space: SpaceId) -> Self {
        Self(Locked::new(machine, LockClass::PageTable, space.0, BTreeMap::new()))
    }

    /// How many there are.
    pub(super) fn count(&self, machine: &M) -> u64 {
        self.0.lock_local(machine).len() as u64
    }

    /// Whether all are there that lead to the table of `vpn`.
    pub(super) fn lead_to(&self, machine: &M, vpn: Vpn) -> bool {
        let tables = self.0.lock_local(machine);
        Level::ALL.iter().all(|&level| tables.contains_key(&Place::of(level, vpn)))
    }
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// The table of `vpn`, with a frame and with the tables that lead to it, unless `wanted` says under the locks that nobody
    /// wants it any more.
    ///
    /// # Errors
    /// If there is no memory for one of these.
    pub(super) fn give_table(
        self,
        space: &AddressSpace<M>,
        vpn: Vpn,
        wanted: impl Fn() -> bool,
    ) -> Result<&Table<M>, AllocError> {
        let table = space.tables.get_or_make(self.machine(), vpn);
        if table.lock(self.machine()).state.frame.is_some() {
            return Ok(table);
        }
        self.give_upper(space, vpn, &wanted)?;
        let frame = self.alloc(self.spaces().table_request())?;
        self.lru().charge(frame)?;
        self.machine().spend(Chore::NewTable, 1);
        let mut held = table.lock(self.machine());
        if held.state.frame.is_none() && wanted() {
            held.state.frame = Some(frame);
            space.stat.count_tables(1);
            return Ok(table);
        }
        drop(held);
        self.give_back(frame);
        Ok(table)
    }

    /// Sees to it that the tables are there that lead to the one of `vpn`, under the same conditions.
    ///
    /// # Errors
    /// If there is no memory for one.
    pub(super) fn give_upper(
        self,
        space: &AddressSpace<M>,
        vpn: Vpn,
        wanted: &impl Fn() -> bool,
    ) -> Result<(), AllocError> {
        for place in Level::ALL.map(|level| Place::of(level, vpn)) {
            if space.upper.0.lock_local(self.machine()).contains_key(&place) {
                continue;
            }
            // Tables of entries alone may lie in high memory.
            let frame = self.alloc(Request { zero: true, ..Request::KERNEL })?;
            self.lru().charge(frame)?;
            self.machine().spend(Chore::NewTable, 1);
            let mut tables = space.upper.0.lock_local(self.machine());
            if wanted() && !tables.contains_key(&place) {
                tables.insert(place, frame);
                space.stat.count_tables(1);
                continue;
            }
            drop(tables);
            self.give_back(frame);
        }
        Ok(())
    }

    /// Frees those between the pages `range` that no region needs any more; the regions beside it end and begin at
    /// `neighbours`.
    pub(super) fn free_upper(self, space: &AddressSpace<M>, range: (Vpn, Vpn), neighbours: (Vpn, Vpn)) {
        // What moved within a table is there still, though its region is not yet.
        let leads_on = |place: Place| {
            let mut below = space.tables.within(place.start(), place.end());
            below.any(|(_, table)| table.lock(self.machine()).state.frame.is_some())
        };
        let is_unneeded = |place: Place| {
            let touches = place.start() < range.1 && range.0 < place.end();
            touches && place.start() >= neighbours.0 && place.end() <= neighbours.1 && !leads_on(place)
        };
        let mut tables = space.upper.0.lock_local(self.machine());
        let gone: Vec<Place> = tables.keys().copied().filter(|&place| is_unneeded(place)).collect();
        let frames: Vec<Pfn> = gone.iter().filter_map(|place| tables.remove(place)).collect();
        drop(tables);
        for frame in frames {
            space.stat.count_tables(-1);
            self.give_back(frame);
        }
    }

    /// The frame of a table that is nobody's any more.
    pub(super) fn give_back(self, frame: Pfn) {
        self.lru().uncharge(frame);
        self.pages().free(frame, Order::ZERO).expect("a table's frame was allocated");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_covers_what_512_of_the_level_below_do() {
        let at = |level| Place::of(level, Vpn((3 << 27) + (5 << 18) + 77));
        let ranges = Level::ALL.map(|level| (at(level).start().0, at(level).end().0));
        assert_eq!(ranges, [(3 << 27, 4 << 27), ((3 << 27) + (5 << 18), (3 << 27) + (6 << 18))]);
        assert_eq!(Place::of(Level::Pud, Vpn(u32::MAX)).end(), Vpn(u32::MAX), "there are no pages beyond");
    }
}
