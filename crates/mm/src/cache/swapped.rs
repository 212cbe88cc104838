//! Pages of files in memory that are in swap: the file knows the slot in the page's place (`shmem_writeout`, `shmem_swapin_folio`). What is known
//! of a slot, and the slots themselves, are the room above's.
//!
//! ```text
//!   reclaim: unmapped ─▶ send_to_slot ─▶ slot in the page's place ─▶ (touch, call) ─▶ take_from_slot ─▶ page
//!                                                    └─▶ (truncation, end of the file) ─▶ slot free
//! ```
//!
//! Pages come back one by one, as since 6.14 from what needs no queue (zram). Earlier kernels, and those with swap on a disk, read the slots
//! around too (`shmem_swapin_cluster`); here nobody does.

use alloc::vec::Vec;
use core::ops::Range;

use super::file::{Asker, File, FileState};
use super::folio::Part;
use super::{FilesDoor, FilesGround};
use crate::ground::{Machine, Order, Pfn, SwapIo};
use crate::lru::page::PageFlag;
use crate::lru::{By, Came};
use crate::memcg::GroupId;
use crate::pages::AllocError;

/// Whose a page in swap is, and when it left.
#[derive(Clone, Copy, Debug)]
pub struct InSlot {
    pub(crate) group: GroupId,
    pub(crate) came: Came,
}

impl FileState {
    /// Takes the slots that the places of `pages` know out of these.
    pub(super) fn take_slots(&mut self, pages: Range<u32>) -> Vec<u32> {
        let places: Vec<u32> = self.slots.range(pages).map(|(&index, _)| index).collect();
        places.iter().filter_map(|index| self.slots.remove(index)).collect()
    }
}

impl<M: Machine, S> File<M, S> {
    /// Pages that are in swap.
    pub fn swapped_pages(&self, machine: &M) -> u64 {
        self.state.lock_local(machine).slots.len() as u64
    }
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// The page at `pfn`, which nothing maps any more, leaves its file for `slot`, to which the file has a reference then that was taken for it. Says whether
    /// that is so: not if anybody but the caller and the file refers to the page. Then it is the caller's alone.
    pub(crate) fn send_to_slot(self, file: &File<M, G::Space>, pfn: Pfn, slot: u32) -> bool {
        let page = self.lru().page(pfn);
        let mut state = file.state.lock_local(self.machine());
        if state.part_at(page.index(), pfn).is_none() || !page.freeze(2) {
            return false;
        }
        let index = page.index();
        state.remove(index..index + 1);
        state.slots.insert(index, slot);
        drop(state);
        self.count_file(pfn, -1);
        true
    }

    /// Has the page `index` of `file` in memory again, with a reference for the caller, which is in `slot`. `None`: it is not there any more.
    pub(super) fn take_from_slot(
        self,
        file: &File<M, G::Space>,
        (index, slot): (u32, u32),
        Asker { placement, by }: Asker,
    ) -> Result<Option<Part>, AllocError> {
        let Some(InSlot { group, came }) = self.ground.in_slot(slot) else { return Ok(None) };
        let pfn = self.alloc(file.request_of_swapped(placement))?;
        if group != GroupId::ROOT {
            self.lru().charge_to(pfn, group)?;
        }
        self.machine().swap_io(SwapIo::Read);
        self.init_page(file, (index, pfn), placement);
        let mut state = file.state.lock_local(self.machine());
        if state.slots.get(&index) != Some(&slot) {
            drop(state);
            self.drop_new(pfn);
            return Ok(None);
        }
        state.slots.remove(&index);
        state.insert(index..index + 1, pfn, Order::ZERO);
        drop(state);
        self.count_file(pfn, 1);
        self.came_back(pfn, came, by);
        self.ground.left_slot(slot, pfn);
        self.lru().page(pfn).set(PageFlag::Dirty);
        self.lru().lru_add_by(pfn, by);
        Ok(Some(Part { pfn, order: Order::ZERO }))
    }

    /// These slots' pages are not wanted any more.
    pub(super) fn free_slots(self, slots: Vec<u32>) {
        for slot in slots {
            self.ground.free_slot(slot);
        }
    }

    fn came_back(self, pfn: Pfn, came: Came, by: By) {
        if let Came::Back(shadow) = came {
            self.lru().refault(pfn, shadow, by, |group| self.ground.has_swap_for(group));
        }
    }
}
