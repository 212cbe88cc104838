//! Pages of files in memory that are in swap: the file knows the slot in the page's place (`shmem_writeout`, `shmem_swapin_folio`). What is known
//! of a slot, and the slots themselves, are the room above's ([`FileSlots`](super::FileSlots)).
//!
//! ```text
//!   reclaim: unmapped ─▶ send_to_slot ─▶ slot in the page's place ─▶ (touch, call) ─▶ read, with others ─▶ claimed: a page of the file
//!                                          │       ▲                                     │
//!                                          │       └────────── reclaim: not wanted ◀─────┘
//!                                          └─▶ (truncation, end of the file) ─▶ free
//! ```
//!
//! Kernels before 6.14, and later ones on disks, read the slots around too (`swap_cluster_readahead`), those of private memory as well. What
//! nobody has wanted yet of that keeps its slot: it is on reclaim's lists and charged, as in the swap cache, and the file has it beside the
//! slot.

use alloc::vec::Vec;
use core::ops::Range;

use super::file::{Asker, File, FileState};
use super::folio::Part;
use super::slot::{InSlot, SlotOf, Swapped};
use super::{FilesGround, SwappedDoor};
use crate::ground::{Machine, Order, Pfn, SwapIo};
use crate::lru::Came;
use crate::lru::page::{Mapping, PageFlag};
use crate::memcg::{Effort, GroupId};
use crate::pages::AllocError;
use crate::rules::policy::WorkingsetRule;

impl FileState {
    /// Takes what is in swap of `pages` out of the file.
    pub(super) fn take_swapped(&mut self, pages: Range<u32>) -> Vec<Swapped> {
        let places: Vec<u32> = self.swapped.range(pages).map(|(&index, _)| index).collect();
        places.iter().filter_map(|index| self.swapped.remove(index)).collect()
    }

    /// The slot of page `index`, if that was read ahead to `pfn`.
    fn ahead_at(&mut self, index: u32, pfn: Pfn) -> Option<&mut Swapped> {
        self.swapped.get_mut(&index).filter(|swapped| swapped.ahead == Some(pfn))
    }
}

impl<M: Machine, S> File<M, S> {
    /// Pages that are in swap.
    pub fn swapped_pages(&self, machine: &M) -> u64 {
        self.state.lock_local(machine).swapped.len() as u64
    }

    /// Those of them that were read with others and nobody has wanted yet.
    pub fn pages_read_ahead(&self, machine: &M) -> u64 {
        let state = self.state.lock_local(machine);
        state.swapped.values().filter(|swapped| swapped.ahead.is_some()).count() as u64
    }
}

impl<M: Machine, G: FilesGround<M>> SwappedDoor<'_, M, G> {
    /// The folio at `pfn`, which nothing maps any more, leaves its file for `slot` and as many after it as it has pages, to which the file has
    /// references then that were taken for it. Says whether that is so: not if anybody but the caller and the file refers to the folio. Then
    /// it is the caller's alone.
    pub(crate) fn send_to_slot(self, file: &File<M, G::Space>, pfn: Pfn, slot: u32) -> bool {
        let page = self.lru().page(pfn);
        let mut state = file.state.lock_local(self.machine());
        if state.part_at(page.index(), pfn).is_none() || !page.freeze(2) {
            return false;
        }
        let pages = self.files().folio_pages(pfn);
        let order = self.pages().order_of(pfn);
        state.remove(pages.clone());
        let gone = pages.zip(slot..).map(|(index, slot)| (index, Swapped { slot, ahead: None, order }));
        state.swapped.extend(gone);
        drop(state);
        self.files().count_file(pfn, -i64::from(order.pages()));
        true
    }

    /// Reads the page that `wanted` says, and what is read with it; it is to be claimed then.
    ///
    /// # Errors
    /// If there is no memory for it. (What others need is not asked for twice.)
    pub(super) fn read_swapped(self, wanted: SlotOf, from: Asker) -> Result<(), AllocError> {
        if self.bring_large(wanted, from) {
            return Ok(());
        }
        let around = self.ground.slots_around(wanted.slot);
        let plug = if around.window > 1 { self.ground.start_plug() } else { None };
        let mut done = Ok(());
        for &(slot, place) in &around.slots {
            match place {
                Some(place) if place == wanted => {
                    done = self.read_slot(place, true, from);
                    if done.is_err() {
                        break;
                    }
                }
                Some(place) => self.read_ahead(place, from),
                None => self.ground.read_private(slot, from),
            }
        }
        self.ground.finish_plug(plug);
        if done.is_ok() && around.slots.len() > 1 {
            self.lru().lru_drain_cpu(self.machine().cpu());
        }
        done
    }

    /// Reads what is in a slot near one that is wanted; where there is no memory for it, not.
    pub(crate) fn read_ahead(self, of: SlotOf, from: Asker) {
        let _ = self.read_slot(of, false, from);
    }

    /// Reads what is in a slot to memory beside it, unless somebody has, or it is not the file's any more.
    fn read_slot(self, of: SlotOf, is_wanted: bool, from: Asker) -> Result<(), AllocError> {
        let SlotOf { slot, file, index } = of;
        let (Some(file), Some(InSlot { group, came })) =
            (self.files().file(file.0), self.ground.in_slot(slot))
        else {
            return Ok(());
        };
        let is_unread = |swapped: &Swapped| swapped.slot == slot && swapped.ahead.is_none();
        if !file.state.lock_local(self.machine()).swapped.get(&index).is_some_and(is_unread) {
            return Ok(());
        }
        let pfn = self.alloc(file.request_of_swapped(from.placement))?;
        if group != GroupId::ROOT {
            self.lru().charge_to(pfn, group, Effort::Full)?;
        }
        self.ground.bring(slot, if is_wanted { SwapIo::Read } else { SwapIo::ReadAhead });
        self.files().init_page(&file, (index, pfn), from.placement);
        self.lru().page(pfn).set(PageFlag::SwapCache);
        if !is_wanted {
            self.lru().page(pfn).set(PageFlag::ReadAhead);
        }
        let mut state = file.state.lock_local(self.machine());
        let Some(swapped) = state.swapped.get_mut(&index).filter(|swapped| is_unread(swapped)) else {
            drop(state);
            self.files().drop_new(pfn);
            return Ok(());
        };
        swapped.ahead = Some(pfn);
        drop(state);
        if let Came::Back(shadow) = came {
            self.lru().refault(pfn, shadow, from.by, |group| self.ground.has_swap_for(group));
        }
        self.ground.slot_read(slot, pfn);
        self.lru().lru_add_by(pfn, from.by);
        self.lru().put_page(pfn);
        Ok(())
    }

    /// The page `index` of `file`, which was read from its slot, is the file's again, with a reference for the caller; the slot is free.
    /// `None`: it is not there any more.
    pub(super) fn claim(self, file: &File<M, G::Space>, index: u32) -> Option<Part> {
        let mut state = file.state.lock_local(self.machine());
        let Swapped { slot, ahead, .. } = *state.swapped.get(&index)?;
        let pfn = ahead?;
        let page = self.lru().page(pfn);
        page.get();
        state.swapped.remove(&index);
        state.insert(index..index + 1, pfn, Order::ZERO);
        page.set(PageFlag::Dirty);
        page.clear(PageFlag::SwapCache);
        drop(state);
        if page.clear(PageFlag::ReadAhead) {
            self.ground.ahead_was_wanted();
        }
        self.files().count_file(pfn, 1);
        self.ground.free_slot(slot);
        Some(Part { pfn, order: Order::ZERO })
    }

    /// The page at `pfn`, which was read ahead, leaves its file's side; reclaim in `target` wants that. Its slot stays. As
    /// [`super::FilesDoor::remove_mapping`] says.
    pub(super) fn forget_ahead(self, file: &File<M, G::Space>, pfn: Pfn, target: GroupId) -> bool {
        let page = self.lru().page(pfn);
        let mut state = file.state.lock_local(self.machine());
        let Some(swapped) = state.ahead_at(page.index(), pfn).filter(|_| page.freeze(2)) else {
            return false;
        };
        swapped.ahead = None;
        let slot = swapped.slot;
        drop(state);
        self.ground.send_again(slot, pfn);
        if self.rules().reclaim.workingset == WorkingsetRule::All {
            self.ground.left_again(slot, self.lru().evict(pfn, target));
        }
        true
    }

    /// Puts `to` in the place of the page at `from`, which was read ahead, as [`super::FilesDoor::replace_in`] does.
    pub(crate) fn replace_ahead(self, file: &File<M, G::Space>, from: Pfn, to: Pfn) -> bool {
        let page = self.lru().page(from);
        let mut state = file.state.lock_local(self.machine());
        let Some(swapped) = state.ahead_at(page.index(), from).filter(|_| page.freeze(2)) else {
            return false;
        };
        self.lru().carry_over(from, to);
        self.lru().page(to).get();
        swapped.ahead = Some(to);
        true
    }

    /// These are not wanted any more: their file has forgotten them.
    pub(super) fn free_swapped(self, all: impl IntoIterator<Item = Swapped>) {
        for Swapped { slot, ahead, .. } in all {
            self.ground.free_slot(slot);
            if let Some(pfn) = ahead {
                self.lru().put_page(pfn);
            }
        }
    }

    /// What is in swap of `file`, of which each page that is in memory too knows its place.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check_swapped(
        self,
        file: &File<M, G::Space>,
    ) -> Result<Vec<Swapped>, alloc::string::String> {
        let state = file.state.lock_local(self.machine());
        for (index, swapped) in &state.swapped {
            let id = file.id.0;
            if state.pages.contains_key(index) {
                return Err(alloc::format!("page {index} of file {id} is in memory and in swap"));
            }
            let Some(pfn) = swapped.ahead else { continue };
            let page = self.lru().page(pfn);
            if (page.mapping(), page.index()) != (Mapping::File(id), *index) || page.mapped() > 0 {
                return Err(alloc::format!(
                    "{pfn} was read ahead for page {index} of file {id}, and is another"
                ));
            }
        }
        Ok(state.swapped.values().copied().collect())
    }
}
