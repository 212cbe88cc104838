//! Page tables: for each 2 MiB of an address space, a table of 512 entries or one entry for a huge page, found without a
//! lock through a directory that grows where memory is touched.
//!
//! A table's lock (`ptl`, split by tables as in Linux) protects its entries. The frame that the table takes of the machine's memory is
//! allocated and freed as Linux does; the entries themselves are kept beside it, for a machine's memory may have no
//! contents. A huge page brings its table's frame with it, so that it can always be split.

use alloc::boxed::Box;

use super::entry::{Entry, bit};
use super::{SpaceId, Touch, Vpn};
use crate::ground::ids::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::once::Once;
use crate::ground::sync::{Acquire, AtomicU64, Guard, Locked, Relaxed, Release};

/// A table and the huge page in its place.
#[derive(Debug)]
pub(crate) struct Table<M: Machine> {
    state: Locked<M, TableState>,
    huge: AtomicU64,
    entries: Once<Box<[AtomicU64]>>,
}

/// How much an entry maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntrySize {
    /// A page of 4 KiB.
    Small,
    /// All of a table.
    Huge,
}

/// What goes with the entries, under the table's lock.
#[derive(Debug, Default)]
pub(crate) struct TableState {
    /// The frame that the table takes.
    pub(in crate::vm) frame: Option<Pfn>,
    /// Entries that are not empty; the huge one counts as one.
    pub(in crate::vm) used: u32,
    /// It is a table of small entries, though they may be empty by now: a fault puts no huge page in its place.
    pub(in crate::vm) is_small: bool,
}

/// A table with its lock held: the one way to change entries.
pub(crate) struct Held<'a, M: Machine> {
    table: &'a Table<M>,
    pub(in crate::vm) state: Guard<'a, M, TableState>,
}

impl<M: Machine> Table<M> {
    fn new(machine: &M, space: SpaceId) -> Self {
        let state = Locked::new(machine, LockClass::PageTable, space.0, TableState::default());
        Self { state, huge: AtomicU64::new(0), entries: Once::default() }
    }

    /// Takes the lock.
    pub(crate) fn lock<'a>(&'a self, machine: &'a M) -> Held<'a, M> {
        Held { table: self, state: self.state.lock_local(machine) }
    }

    /// The same, unless somebody has it.
    pub(crate) fn try_lock<'a>(&'a self, machine: &'a M) -> Option<Held<'a, M>> {
        self.state.try_lock_local(machine).map(|state| Held { table: self, state })
    }

    /// The huge page's entry, as it is at this moment.
    pub(crate) fn huge(&self) -> Entry {
        Entry(self.huge.load(Relaxed))
    }

    /// The entry that maps `vpn`, as it is at this moment; of a huge page, the huge entry.
    pub(crate) fn entry(&self, vpn: Vpn) -> Entry {
        self.entry_and_size(vpn).0
    }

    /// The same, and which of the two it is, from one look.
    pub(crate) fn entry_and_size(&self, vpn: Vpn) -> (Entry, EntrySize) {
        match self.huge() {
            Entry::NONE => (self.small(vpn), EntrySize::Small),
            huge => (huge, EntrySize::Huge),
        }
    }

    fn small(&self, vpn: Vpn) -> Entry {
        self.entries.get().map_or(Entry::NONE, |entries| Entry(entries[vpn.slot()].load(Relaxed)))
    }

    /// What the processor does on an access to `vpn`: sets its bits and gives the frame, if the entry allows it.
    pub(crate) fn access(&self, vpn: Vpn, touch: Touch) -> Option<Pfn> {
        let bits = match touch {
            Touch::Read => bit::ACCESSED,
            Touch::Write => bit::ACCESSED | bit::DIRTY,
        };
        let set = |word: u64| Entry(word).allows(touch).then_some(word | bits);
        // Acquire pairs with the release of `Held::set`: who finds a page finds what was put into it.
        if let Ok(word) = self.huge.fetch_update(Acquire, Relaxed, set) {
            return Some(Entry(word).pfn().add(vpn.slot() as u32));
        }
        let slot = &self.entries.get()?[vpn.slot()];
        slot.fetch_update(Acquire, Relaxed, set).ok().map(|word| Entry(word).pfn())
    }
}

impl<M: Machine> Held<'_, M> {
    pub(crate) fn huge(&self) -> Entry {
        self.table.huge()
    }

    pub(crate) fn entry(&self, vpn: Vpn) -> Entry {
        self.table.entry(vpn)
    }

    /// Sets the entry of `vpn`; gives the one before, with the processor's latest bits.
    pub(crate) fn set(&mut self, vpn: Vpn, entry: Entry) -> Entry {
        let fresh = || (0..PAGEBLOCK_PAGES).map(|_| AtomicU64::new(0)).collect();
        let slot = &self.table.entries.get_or(fresh)[vpn.slot()];
        // Release pairs with the acquire of `Table::access`, which takes no lock.
        let before = Entry(slot.swap(entry.0, Release));
        self.count(before, entry);
        self.state.is_small |= entry != Entry::NONE;
        before
    }

    /// Sets the huge entry; gives the one before.
    pub(crate) fn set_huge(&mut self, entry: Entry) -> Entry {
        // As in `set`.
        let before = Entry(self.table.huge.swap(entry.0, Release));
        self.count(before, entry);
        self.state.is_small = entry == Entry::NONE && self.state.used > 0;
        before
    }

    /// Clears `bits` of the entry that maps `vpn`, a huge one too; gives it as it was.
    pub(crate) fn clear_bits(&mut self, vpn: Vpn, bits: u64) -> Entry {
        if self.huge() != Entry::NONE {
            return Entry(self.table.huge.fetch_and(!bits, Relaxed));
        }
        let Some(entries) = self.table.entries.get() else { return Entry::NONE };
        Entry(entries[vpn.slot()].fetch_and(!bits, Relaxed))
    }

    /// Sets `bits` of the entry that maps `vpn`, a huge one too, which is not empty.
    pub(crate) fn set_bits(&mut self, vpn: Vpn, bits: u64) {
        if self.huge() != Entry::NONE {
            self.table.huge.fetch_or(bits, Relaxed);
        } else if let Some(entries) = self.table.entries.get() {
            entries[vpn.slot()].fetch_or(bits, Relaxed);
        }
    }

    fn count(&mut self, before: Entry, after: Entry) {
        self.state.used += u32::from(after != Entry::NONE);
        self.state.used -= u32::from(before != Entry::NONE);
    }
}

const LEVEL_BITS: u32 = 8;
const LEVEL: usize = 1 << LEVEL_BITS;
/// Bits of a table's number: those of a [`Vpn`] less those within a table.
const TOP: usize = 1 << (u32::BITS - PAGEBLOCK_ORDER as u32 - 2 * LEVEL_BITS);

type Leaf<M> = Box<[Once<Table<M>>]>;
type Middle<M> = Box<[Once<Leaf<M>>]>;

/// The tables of an address space.
#[derive(Debug)]
pub(crate) struct Directory<M: Machine> {
    space: SpaceId,
    top: Box<[Once<Middle<M>>]>,
}

fn row<T>(len: usize) -> Box<[Once<T>]> {
    (0..len).map(|_| Once::default()).collect()
}

impl<M: Machine> Directory<M> {
    pub(crate) fn new(space: SpaceId) -> Self {
        Self { space, top: row(TOP) }
    }

    /// The table of `vpn`, if anything was ever touched near it.
    pub(crate) fn get(&self, vpn: Vpn) -> Option<&Table<M>> {
        let [top, middle, leaf] = path(vpn);
        self.top[top].get()?[middle].get()?[leaf].get()
    }

    /// The table of `vpn`.
    pub(crate) fn get_or_make(&self, machine: &M, vpn: Vpn) -> &Table<M> {
        let [top, middle, leaf] = path(vpn);
        let middles = self.top[top].get_or(|| row(LEVEL));
        let leaves = middles[middle].get_or(|| row(LEVEL));
        leaves[leaf].get_or(|| Table::new(machine, self.space))
    }

    /// The tables of the pages from `start` to before `end`, with the first page of each, upwards.
    pub(crate) fn within(&self, start: Vpn, end: Vpn) -> impl Iterator<Item = (Vpn, &Table<M>)> {
        let mut next = start.0 >> PAGEBLOCK_ORDER;
        let last = end.0.div_ceil(PAGEBLOCK_PAGES);
        core::iter::from_fn(move || {
            while next < last {
                let vpn = Vpn(next << PAGEBLOCK_ORDER);
                let [top, middle, leaf] = path(vpn);
                // Where a whole level is missing, so are all of its tables.
                let Some(middles) = self.top[top].get() else {
                    next = skip(next, 2 * LEVEL_BITS);
                    continue;
                };
                let Some(leaves) = middles[middle].get() else {
                    next = skip(next, LEVEL_BITS);
                    continue;
                };
                next += 1;
                if let Some(table) = leaves[leaf].get() {
                    return Some((vpn, table));
                }
            }
            None
        })
    }
}

/// The first table's number after those that share all bits of `number` above `bits`.
fn skip(number: u32, bits: u32) -> u32 {
    ((number >> bits) + 1) << bits
}

fn path(vpn: Vpn) -> [usize; 3] {
    let number = (vpn.0 >> PAGEBLOCK_ORDER) as usize;
    [number >> (2 * LEVEL_BITS), number >> LEVEL_BITS & (LEVEL - 1), number & (LEVEL - 1)]
}
