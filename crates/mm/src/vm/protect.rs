//! What may be touched, changed under a program (`mprotect`): regions are cut, and entries lose what their region does not
//! allow any more. Other CPUs that run in the address space are told.

use alloc::vec::Vec;

use super::entry::{Entry, bit};
use super::region::{Backing, Protection, Region};
use super::space::{AddressSpace, MapError};
use super::table::Held;
use super::{FileKind, SpacesDoor, SpacesGround, Table, TablesDoor, Vpn};
use crate::ground::ids::PAGEBLOCK_PAGES;
use crate::ground::machine::{Chore, Machine};
use crate::rules::policy::ProtectRule;

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Says what may be done to the `pages` from `start` on of `space` from now on. Where a write is allowed again it faults
    /// once, or not even that ([`ProtectRule`]).
    ///
    /// # Errors
    /// If not all of them are mapped (those up to the first that is not are changed), or more would be promised than may
    /// be (then nothing is).
    pub fn protect(
        self,
        space: &AddressSpace<M>,
        start: Vpn,
        pages: u32,
        protection: Protection,
    ) -> Result<(), MapError> {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Regions, 1);
        let end = Vpn(start.0.saturating_add(pages));
        let _changes = space.changes.lock_local(self.machine());
        let mapped = space.regions.lock_local(self.machine()).mapped_up_to(start, end);
        let mut changed = 0;
        for region in self.protect_regions(space, (start, mapped), protection)? {
            changed += self.tables().protect_region(space, &region);
        }
        if changed > 0 {
            self.machine().spend(Chore::ProtectEntry, changed);
            self.machine().flush_tlb(space.id);
        }
        if mapped < end { Err(MapError::NotMapped) } else { Ok(()) }
    }

    /// Cuts the regions of `range` and changes them; gives what they are now.
    fn protect_regions(
        self,
        space: &AddressSpace<M>,
        range: (Vpn, Vpn),
        protection: Protection,
    ) -> Result<Vec<Region<M>>, MapError> {
        let mut regions = space.regions.lock_local(self.machine());
        let changed = |region: &Region<M>| {
            let region = Region { protection, ..region.clone() };
            Region { is_promised: region.is_promised || region.is_to_be_promised(), ..region }
        };
        let before = regions.take(range.0, range.1);
        let after: Vec<Region<M>> = before.iter().map(changed).collect();
        let promised = |regions: &[Region<M>]| regions.iter().map(Region::committed).sum::<u32>();
        let committed = self.commit(promised(&after) - promised(&before));
        let now = if committed.is_ok() { &after } else { &before };
        for region in now {
            regions.insert_merged(region.clone());
        }
        // No fault goes by what was allowed before.
        space.next_generation();
        committed.map(|()| after)
    }
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// Makes the entries of `region` what it allows; how many there are.
    fn protect_region(self, space: &AddressSpace<M>, region: &Region<M>) -> u32 {
        let mut changed = 0;
        for (first, table) in space.tables.within(region.start, region.end) {
            let range = (region.start.max(first), region.end.min(first.add(PAGEBLOCK_PAGES)));
            changed += self.protect_table(space, (table, region), range);
        }
        changed
    }

    fn protect_table(self, space: &AddressSpace<M>, of: (&Table<M>, &Region<M>), range: (Vpn, Vpn)) -> u32 {
        let ((table, region), (start, end)) = (of, range);
        let mut held = table.lock(self.machine());
        if held.state.used == 0 {
            return 0;
        }
        if held.huge() != Entry::NONE {
            if end.0 - start.0 == PAGEBLOCK_PAGES {
                self.protect_entry(&mut held, start, region);
                return 1;
            }
            self.open_table(space, start, &mut held);
        }
        let mut changed = 0;
        for vpn in (start.0..end.0).map(Vpn) {
            if held.entry(vpn) != Entry::NONE {
                self.protect_entry(&mut held, vpn, region);
                changed += 1;
            }
        }
        changed
    }

    fn protect_entry(self, held: &mut Held<'_, M>, vpn: Vpn, region: &Region<M>) {
        let entry = held.entry(vpn);
        let there = entry.is_present() || entry.is_zeros() || entry.migrating_from().is_some();
        held.clear_bits(vpn, bit::HINTED);
        match region.protection {
            Protection::None => {
                held.clear_bits(vpn, bit::WRITE);
                if there {
                    held.set_bits(vpn, bit::BARRED);
                }
            }
            Protection::Read | Protection::Execute => {
                held.clear_bits(vpn, bit::WRITE | bit::BARRED);
            }
            Protection::ReadWrite => {
                held.clear_bits(vpn, bit::BARRED);
                if entry.is_present() && self.is_writable_at_once(region, entry) {
                    held.set_bits(vpn, bit::WRITE);
                }
            }
        }
    }

    /// Whether `entry` may let writes through as soon as `region` does.
    fn is_writable_at_once(self, region: &Region<M>, entry: Entry) -> bool {
        match &region.backing {
            // A file on a disk is to hear of the first write to each of its pages.
            Backing::Shared { file, .. } => file.kind() == FileKind::Memory || entry.has(bit::DIRTY),
            Backing::Anonymous | Backing::Private { .. } => {
                self.rules().reclaim.protect == ProtectRule::WritableAtOnce && entry.has(bit::EXCLUSIVE)
            }
        }
    }
}
