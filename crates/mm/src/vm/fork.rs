//! Fork: a second address space over the same pages. Private pages lose their write permission on both sides, and who
//! writes first gets a copy; pages of shared mappings are faulted in anew.

use alloc::sync::Arc;

use super::entry::{Entry, bit};
use super::region::{Backing, Region};
use super::space::AddressSpace;
use super::{FaultError, MapError, Table, Vpn};
use super::{SpacesDoor, SpacesGround};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES};
use crate::ground::machine::{Access, Chore, Line, LineKind, Machine};
use crate::pages::request::AllocError;

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
            FaultError::NoRegion(_) => Self::Map(MapError::NoRoom),
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
        // A member of the family before it has pages: who looks for the entries of a page finds all.
        let child = self.new_relative(parent);
        // The kernel holds the parent's mmap_lock for writing all the while; nothing is mapped or unmapped meanwhile.
        let changes = parent.changes.lock_local(self.machine());
        let regions = parent.regions.lock_local(self.machine());
        // A fault that copies a page must not go by an entry that has let writes through since.
        parent.next_generation();
        let copied = regions.iter().try_for_each(|region| self.fork_region(parent, &child, region));
        drop(regions);
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
        self.commit(region.committed()).map_err(ForkError::Map)?;
        self.note_mapper(child, region);
        child.regions.lock_local(self.machine()).insert(region.clone());
        if matches!(region.backing, Backing::Shared { .. }) {
            return Ok(());
        }
        for (first, table) in parent.tables.within(region.start, region.end) {
            let range = (region.start.max(first), region.end.min(first.add(PAGEBLOCK_PAGES)));
            self.fork_table((parent, table), child, range)?;
        }
        Ok(())
    }

    fn fork_table(
        self,
        parent: (&AddressSpace<M>, &Table<M>),
        child: &AddressSpace<M>,
        range: (Vpn, Vpn),
    ) -> Result<(), ForkError> {
        let table = child.tables.get_or_make(self.machine(), range.0);
        if parent.1.lock(self.machine()).state.used == 0 {
            return Ok(());
        }
        if table.lock(self.machine()).state.frame.is_none() {
            let frame = self.alloc(self.table_request()).map_err(ForkError::Alloc)?;
            table.lock(self.machine()).state.frame = Some(frame);
            child.count_tables(1);
        }
        let mut from = parent.1.lock(self.machine());
        let mut to = table.lock(self.machine());
        if from.huge() != Entry::NONE {
            // Cleared in place, for the processor may set its bits at any time.
            let entry = from.clear_bits(range.0, bit::WRITE);
            to.set_huge(self.share(child, entry, Order::PAGEBLOCK));
            child.count_huge(1);
            return Ok(());
        }
        for vpn in (range.0.0..range.1.0).map(Vpn) {
            let entry = from.clear_bits(vpn, bit::WRITE);
            if entry != Entry::NONE {
                to.set(vpn, self.share(child, entry, Order::ZERO));
            }
        }
        Ok(())
    }

    /// Another entry, of `child`, maps what `entry` maps; gives what it is.
    fn share(self, child: &AddressSpace<M>, entry: Entry, order: Order) -> Entry {
        if let Some(slot) = entry.slot() {
            self.swap_get(slot);
            child.count_swapped(1);
        }
        if entry.is_present() {
            let head = entry.head();
            let page = self.lru().page(head);
            self.machine().touch(Line { kind: LineKind::Frame, index: head.0 }, Access::Write);
            page.get();
            page.add_mapped();
            child.count_placed(self.pages().node_of_page(head), i64::from(order.pages()));
        }
        entry.without(bit::WRITE)
    }
}
