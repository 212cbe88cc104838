//! Walks every address space and file: each reference that entries and files hold is counted at the page, each count of a
//! table or a space is that of its entries. For tests; nothing may run meanwhile.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::Entry;
use super::space::AddressSpace;
use super::{SpacesDoor, SpacesGround};
use super::{Table, Vpn};
use crate::ground::ids::{PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::Machine;
use crate::lru::page::{Mapping, PageFlag};

/// What was found of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    mapped: u32,
    in_file: u32,
}

#[derive(Debug, Default)]
struct Walk {
    pages: BTreeMap<u32, Seen>,
    slots: BTreeMap<u32, u32>,
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Checks all address spaces and files.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_vm(self) -> Result<(), String> {
        let mut walk = Walk::default();
        for space in self.all_spaces() {
            self.check_space(&space, &mut walk)?;
        }
        for page in self.files().cached_pages()? {
            walk.pages.entry(page.0).or_default().in_file += 1;
        }
        for (slot, pfn) in self.swap().all_beside() {
            walk.pages.entry(pfn.0).or_default().in_file += 1;
            let page = self.lru().page(pfn);
            if (page.mapping(), page.index(), page.mapped()) != (Mapping::Slot, slot, 0) {
                return Err(format!("{pfn} is beside slot {slot}, and belongs elsewhere"));
            }
        }
        for (&pfn, &slot) in &self.swap().slots().kept {
            walk.slots.entry(slot).or_default();
            let page = self.lru().page(Pfn(pfn));
            if !page.has(PageFlag::SwapCache) || !walk.pages.contains_key(&pfn) {
                return Err(format!(
                    "slot {slot} is kept by {pfn}, which does not know of it or is nobody's"
                ));
            }
        }
        walk.pages.iter().try_for_each(|(&pfn, seen)| self.check_page(Pfn(pfn), *seen))?;
        for slot in self.files().slots_in_use() {
            *walk.slots.entry(slot).or_default() += 1;
        }
        for (&slot, this) in &self.swap().slots().taken {
            let seen = walk.slots.get(&slot).copied().unwrap_or_default();
            if (this.refs, this.held) != (seen, 0) || this.beside.is_some() && this.kept.is_some() {
                return Err(format!("slot {slot} is {this:?}, but {seen} refer to it"));
            }
        }
        self.swap().slots().check_zswap()?;
        self.swap().slots().queue.check()?;
        let (used, _) = self.swap_pages();
        if walk.slots.len() != used as usize {
            return Err(format!(
                "{used} slots of swap are in use, but entries and files refer to {}",
                walk.slots.len()
            ));
        }
        Ok(())
    }

    /// All address spaces that have not ended.
    pub fn all_spaces(self) -> Vec<Arc<AddressSpace<M>>> {
        let families: Vec<_> =
            self.own().families.lock_local(self.machine()).values().map(Arc::clone).collect();
        let mut spaces = alloc::vec![];
        for family in families {
            let members = family.members.lock_local(self.machine());
            spaces.extend(members.iter().map(|member| Arc::clone(&member.space)));
        }
        spaces
    }

    fn check_space(self, space: &AddressSpace<M>, walk: &mut Walk) -> Result<(), String> {
        let (mut resident, mut tables, mut swapped) = (0, space.upper.count(self.machine()), 0);
        for (first, table) in space.tables.within(Vpn(0), Vpn(u32::MAX)) {
            let entries = self.check_table(space, (first, table))?;
            let has_frame = table.lock(self.machine()).state.frame.is_some();
            tables += u64::from(has_frame);
            if has_frame && !space.upper.lead_to(self.machine(), first) {
                return Err(format!("no page table leads to that of {first} of space {}", space.id.0));
            }
            for entry in entries {
                if let Some(slot) = entry.slot() {
                    swapped += 1;
                    *walk.slots.entry(slot).or_default() += 1;
                }
                if entry.is_present() {
                    walk.pages.entry(entry.head().0).or_default().mapped += 1;
                    let huge = table.huge() != Entry::NONE;
                    resident += u64::from(if huge { PAGEBLOCK_PAGES } else { 1 });
                }
            }
        }
        let counted = (space.resident_pages(), space.table_pages(), space.swapped_pages());
        if counted != (resident, tables, swapped) {
            let id = space.id.0;
            return Err(format!(
                "address space {id} counts {counted:?} pages, tables and swapped pages, but has {resident}, {tables}, \
                 {swapped}"
            ));
        }
        Ok(())
    }

    /// The entries of a table that are not empty.
    fn check_table(self, space: &AddressSpace<M>, place: (Vpn, &Table<M>)) -> Result<Vec<Entry>, String> {
        let (first, table) = place;
        let held = table.lock(self.machine());
        let huge = held.huge();
        let entries: Vec<Entry> = if huge == Entry::NONE {
            (0..PAGEBLOCK_PAGES)
                .map(|slot| held.entry(first.add(slot)))
                .filter(|&entry| entry != Entry::NONE)
                .collect()
        } else {
            alloc::vec![huge]
        };
        if entries.len() as u32 != held.state.used {
            let (used, id) = (held.state.used, space.id.0);
            return Err(format!(
                "the table of {first} of space {id} counts {used} entries, but has {}",
                entries.len()
            ));
        }
        let needs_frame = !entries.is_empty() && !self.tables().is_shared_whole(huge);
        if held.state.frame.is_none() && needs_frame {
            return Err(format!("the table of {first} of space {} has entries but no frame", space.id.0));
        }
        Ok(entries)
    }

    fn check_page(self, pfn: Pfn, seen: Seen) -> Result<(), String> {
        let page = self.lru().page(pfn);
        if page.mapped() != seen.mapped {
            return Err(format!("{pfn} counts {} mappings, but has {}", page.mapped(), seen.mapped));
        }
        if page.refs() < seen.mapped + seen.in_file {
            return Err(format!("{pfn} counts {} references, but {seen:?} have some", page.refs()));
        }
        Ok(())
    }
}
