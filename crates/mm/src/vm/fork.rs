//! Fork: a second address space over the same pages. Private pages lose their write permission on both sides, and who
//! writes first gets a copy; pages of shared mappings are faulted in anew.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::region::{Backing, Region};
use super::space::AddressSpace;
use super::table::EntrySize;
use super::{FaultError, MapError, Table, Vpn};
use super::{SpacesDoor, SpacesGround};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES};
use crate::ground::machine::{Access, Chore, Line, LineKind, Machine};
use crate::ground::sync::Relaxed;
use crate::lru::page::Mapping;
use crate::pages::request::AllocError;

/// What an entry loses when another one comes to map the same page.
const ALONE: u64 = bit::WRITE | bit::EXCLUSIVE;

/// Why there is no second address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForkError {
    /// Too much would be promised.
    Map(MapError),
    /// No memory for page tables.
    Alloc(AllocError),
}

impl core::fmt::Display for ForkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Map(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ForkError {}

impl From<FaultError> for ForkError {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Alloc(error) => Self::Alloc(error),
            FaultError::NoRegion(_) | FaultError::Forbidden(_) => Self::Map(MapError::NoRoom),
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// A copy of `parent`.
    ///
    /// # Errors
    /// If there is no memory for its page tables, or it promises too much; then there is no copy.
    pub fn fork(self, parent: &AddressSpace<M>) -> Result<Arc<AddressSpace<M>>, ForkError> {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Fork, 1);
        // A member of the family before it has pages: who looks for the entries of a page finds all.
        let child = self.new_relative(parent);
        // `khugepaged_fork`
        child.entered.store(parent.entered.load(Relaxed), Relaxed);
        child.patterned.store(parent.patterned.load(Relaxed), Relaxed);
        // The kernel holds the parent's mmap_lock for writing all the while; nothing is mapped or unmapped meanwhile.
        let changes = parent.changes.lock_local(self.machine());
        // Memory for tables may have to be reclaimed, and reclaim looks regions up: their lock is not held for long.
        let regions: Vec<Region<M>> = parent.regions.lock_local(self.machine()).iter().cloned().collect();
        let copied = regions.iter().try_for_each(|region| self.fork_region(parent, &child, region));
        // Others of the parent's threads must not write to what is shared now.
        self.machine().flush_tlb(parent.id);
        drop(changes);
        if copied.is_err() {
            self.exit(&child);
        }
        copied.map(|()| child)
    }

    fn fork_region(
        self,
        parent: &AddressSpace<M>,
        child: &Arc<AddressSpace<M>>,
        region: &Region<M>,
    ) -> Result<(), ForkError> {
        self.machine().spend(Chore::CopyRegion, 1);
        self.commit(region.committed()).map_err(ForkError::Map)?;
        self.note_mapper(child, region);
        // A lock is not inherited (`VM_LOCKED_MASK`).
        child.regions.lock_local(self.machine()).insert(Region { locked: false, ..region.clone() });
        if matches!(region.backing, Backing::Shared { .. }) || !self.has_own_pages(parent, region) {
            return Ok(());
        }
        for (first, table) in parent.tables.within(region.start, region.end) {
            let range = (region.start.max(first), region.end.min(first.add(PAGEBLOCK_PAGES)));
            self.fork_table((parent, table), child, range)?;
        }
        Ok(())
    }

    /// Whether `region` of `parent` has pages of the process's own, or had (`anon_vma`). One that has none, but pages of a
    /// file or of zeros, begins empty in a copy: faults bring these back.
    pub(super) fn has_own_pages(self, parent: &AddressSpace<M>, region: &Region<M>) -> bool {
        let is_own = |entry: Entry, size: EntrySize| {
            let anon = || matches!(self.lru().page(entry.head()).mapping(), Mapping::Anon(_));
            let huge_zeros = entry.is_zeros() && size == EntrySize::Huge;
            let there = entry.is_present() || entry.migrating_from().is_some();
            entry.slot().is_some() || huge_zeros || there && anon()
        };
        parent.tables.within(region.start, region.end).any(|(first, table)| {
            let (start, end) = (region.start.max(first), region.end.min(first.add(PAGEBLOCK_PAGES)));
            let mut entries = (start.0..end.0).map(|vpn| table.entry_and_size(Vpn(vpn)));
            entries.any(|(entry, size)| is_own(entry, size))
        })
    }

    fn fork_table(
        self,
        parent: (&AddressSpace<M>, &Table<M>),
        child: &AddressSpace<M>,
        range: (Vpn, Vpn),
    ) -> Result<(), ForkError> {
        if parent.1.lock(self.machine()).state.used == 0 {
            return Ok(());
        }
        let table = self.tables().give_table(child, range.0, || true).map_err(ForkError::Alloc)?;
        let mut from = parent.1.lock(self.machine());
        // A fault that copies a page must not go by an entry that has let writes through since. Faults look at the number
        // with this table's lock held.
        parent.0.next_generation();
        let mut to = table.lock(self.machine());
        if from.huge() != Entry::NONE {
            // Cleared in place, for the processor may set its bits at any time.
            let entry = from.clear_bits(range.0, ALONE);
            if entry.is_zeros() {
                // It is there already, for the parent uses it.
                self.use_huge_zero(child);
            }
            to.set_huge(self.share(child, entry, Order::PAGEBLOCK));
            return Ok(());
        }
        for vpn in (range.0.0..range.1.0).map(Vpn) {
            let entry = from.clear_bits(vpn, ALONE);
            if entry != Entry::NONE {
                to.set(vpn, self.share(child, entry, Order::ZERO));
            }
        }
        Ok(())
    }

    /// Another entry, of `child`, maps what `entry` maps; gives what it is.
    fn share(self, child: &AddressSpace<M>, entry: Entry, order: Order) -> Entry {
        self.machine().spend(Chore::CopyEntry, 1);
        if let Some(slot) = entry.slot() {
            self.swap().swap_get(slot);
            child.stat.count_swapped(1);
        }
        if entry.is_present() {
            let head = entry.head();
            let page = self.lru().page(head);
            self.machine().touch(Line { kind: LineKind::Frame, index: head.0 }, Access::Write);
            page.get();
            page.add_mapped();
            let node = self.pages().node_of_page(head);
            child.stat.count_pages(PageKind::of(page), node, order.pages().into());
            // The copy has used nothing yet (`pte_mkold`).
            return entry.without(ALONE | bit::ACCESSED);
        }
        entry.without(ALONE)
    }
}
