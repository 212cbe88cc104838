//! Folios of several pages of files in memory (`shmem_enabled`; docs/rules/huge-pages.md#shared): a fault adds one, reclaim sends it to slots
//! of swap in a row, and where swap has no queue it comes back as it went.
//!
//! Who may have one is the room above's to say. What went together is known of each page's slot by the order that it went with.

use core::ops::Range;

use super::file::{Asker, FileState, Wanted};
use super::folio::{Keeper, Part};
use super::slot::{InSlot, SlotOf, Swapped};
use super::{File, FileKind, FilesGround, SharedDoor, SwappedDoor};
use crate::ground::{Machine, Order, Pfn, SwapIo};
use crate::lru::Came;
use crate::lru::page::{Mapping, PageFlag};
use crate::memcg::{Effort, GroupId};
use crate::pages::{AllocError, Request};

/// The pages of the folio of `order` that has page `index`.
fn around(index: u32, order: Order) -> Range<u32> {
    let first = index >> order.get() << order.get();
    first..first + order.pages()
}

/// What a place of so many pages in the tree of a file is divided into (`xas_try_split_min_order`): what fits into a node of 64 places, all of
/// a node into two.
const fn divided(whole: Order) -> Order {
    const NODE: u8 = 6;
    let order = match (whole.get(), whole.get() % NODE) {
        (0, _) => 0,
        (order, 0) => order - 1,
        (order, within) => order - within,
    };
    match Order::new(order) {
        Some(order) => order,
        None => Order::ZERO,
    }
}

impl FileState {
    /// The folio that page `index` went to swap with, if all of it is there, in slots in a row, and nowhere else: its pages, and its first slot.
    fn whole_in_swap(&self, index: u32) -> Option<(Range<u32>, u32)> {
        let order = self.swapped.get(&index)?.order;
        let pages = around(index, order);
        let slot = self.swapped.get(&pages.start)?.slot;
        let in_a_row = (slot..).map(|slot| Swapped { slot, ahead: None, order });
        let there = self.swapped.range(pages.clone()).map(|(_, swapped)| *swapped);
        let are_all = self.swapped.range(pages.clone()).count() as u32 == order.pages();
        (order > Order::ZERO && are_all && there.zip(in_a_row).all(|(is, would_be)| is == would_be))
            .then_some((pages, slot))
    }

    /// What page `index` went with is to come back in parts (`shmem_split_large_entry`): it is divided, of that the part that has the page
    /// again, and so on, until that is the page alone.
    fn divide_around(&mut self, index: u32) {
        let Some(mut whole) = self.swapped.get(&index).map(|swapped| swapped.order) else { return };
        while whole > Order::ZERO {
            let part = divided(whole);
            self.swapped.range_mut(around(index, whole)).for_each(|(_, swapped)| swapped.order = part);
            whole = part;
        }
    }
}

impl<M: Machine, S> File<M, S> {
    /// Whether it has all pages of the folio of `order` that page `index` would be in; also where nobody has said how long it is.
    pub(crate) fn has_all_of(&self, index: u32, order: Order) -> bool {
        self.len().is_none_or(|pages| around(index, order).end <= pages)
    }
}

impl<M: Machine, G: FilesGround<M>> SharedDoor<'_, M, G> {
    /// Whether nothing is there of the folio of `order` that page `index` of `file` would be in: not in memory, and not in swap.
    pub(crate) fn has_room_for(self, file: &File<M, G::Space>, index: u32, order: Order) -> bool {
        let (state, pages) = (file.state.lock_local(self.machine()), around(index, order));
        !state.has_any(pages.clone()) && state.swapped.range(pages).next().is_none()
    }

    /// Puts the block at `head`, which was just allocated, into `file` as the folio that has page `index`; gives that page, with a reference
    /// for the caller. `None`: somebody was earlier.
    ///
    /// # Errors
    /// If it cannot be charged; then it is free, as if somebody was earlier.
    pub(crate) fn add_block(
        self,
        file: &File<M, G::Space>,
        (index, head): (u32, Pfn),
        from: Asker,
    ) -> Result<Option<Part>, AllocError> {
        let order = self.pages().order_of(head);
        let first = around(index, order).start;
        let is_new = self.files().install(file, (first, head), (Wanted::Contents, from))?;
        Ok(is_new.then(|| Part { pfn: head.add(index - first), order }))
    }

    /// The page `index` of `file`, with a reference for the caller, if its folio has others.
    pub(crate) fn page_of_large(self, file: &File<M, G::Space>, index: u32) -> Option<Part> {
        let state = file.state.lock_local(self.machine());
        let part = state.pages.get(&index).copied().filter(|part| part.order > Order::ZERO)?;
        self.lru().page(part.head()).get();
        Some(part)
    }

    /// Whether the page at `pfn` is of a file in memory.
    pub(crate) fn is_shared(self, pfn: Pfn) -> bool {
        let Mapping::File(id) = self.lru().page(pfn).mapping() else { return false };
        self.files().file(id).is_some_and(|file| file.kind() == FileKind::Memory)
    }

    /// Makes single pages of the folio at `head` of a file in memory, which nothing maps, if only its file and the caller refer to it. The
    /// caller's reference stays with the first; the others come to lists.
    pub(crate) fn split_shared(self, head: Pfn) -> bool {
        let (page, order) = (self.lru().page(head), self.pages().order_of(head));
        let Mapping::File(id) = page.mapping() else { return false };
        let Some(file) = self.files().file(id).filter(|file| file.kind() == FileKind::Memory) else {
            return false;
        };
        let is_split = order > Order::ZERO && self.files().split_folio(&file, head, Keeper::FileAndCaller);
        if is_split {
            self.files().put_parts(head, 1..order.pages());
        }
        is_split
    }
}

impl<M: Machine, G: FilesGround<M>> SwappedDoor<'_, M, G> {
    /// Brings all of what the page that `wanted` says went to swap with, as one folio (`shmem_swap_alloc_folio`). Says whether it did; if there
    /// is no block for that, or no room in its group, it comes in parts from then on.
    pub(super) fn bring_large(self, wanted: SlotOf, from: Asker) -> bool {
        if !self.ground.brings_folios() {
            return false;
        }
        let Some(file) = self.files().file(wanted.file.0) else { return false };
        let whole = file.state.lock_local(self.machine()).whole_in_swap(wanted.index);
        let Some((pages, slot)) =
            whole.filter(|(pages, slot)| slot + wanted.index - pages.start == wanted.slot)
        else {
            return false;
        };
        let Some(InSlot { group, came }) = self.ground.in_slot(slot) else { return false };
        let Some(head) = self.block_for(&file, &pages, (group, from)) else {
            file.state.lock_local(self.machine()).divide_around(wanted.index);
            return false;
        };
        (slot..).zip(pages.clone()).for_each(|(slot, _)| self.ground.bring(slot, SwapIo::Read));
        self.files().init_page(&file, (pages.start, head), from.placement);
        let mut state = file.state.lock_local(self.machine());
        if state.whole_in_swap(wanted.index) != Some((pages.clone(), slot)) {
            drop(state);
            self.files().drop_new(head);
            return false;
        }
        state.take_swapped(pages.clone());
        let order = self.pages().order_of(head);
        state.insert(pages.clone(), head, order);
        self.lru().page(head).set(PageFlag::Dirty);
        drop(state);
        self.files().count_file(head, order.pages().into());
        if let Came::Back(shadow) = came {
            self.lru().refault(head, shadow, from.by, |group| self.ground.has_swap_for(group));
        }
        for (slot, _) in (slot..).zip(pages) {
            self.ground.slot_read(slot, head);
            self.ground.free_slot(slot);
        }
        self.lru().lru_add_by(head, from.by);
        self.lru().put_page(head);
        true
    }

    /// A block for what of `file` comes back from swap, charged to whom it was.
    fn block_for(
        self,
        file: &File<M, G::Space>,
        pages: &Range<u32>,
        (group, from): (GroupId, Asker),
    ) -> Option<Pfn> {
        let order = Order::new((pages.end - pages.start).trailing_zeros() as u8)?;
        let urgency = from.large.0;
        let request = Request { urgency, ..file.request_of_swapped(from.placement) }.of_order(order);
        let head = self.alloc(request).ok()?;
        if group != GroupId::ROOT {
            self.lru().charge_to(head, group, Effort::of(urgency)).ok()?;
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_back_whole_is_divided_by_nodes() {
        let order = |order| Order::new(order).unwrap();
        let mut state = FileState::default();
        let gone =
            (0..512).map(|index| (index, Swapped { slot: index + 8, ahead: None, order: Order::PAGEBLOCK }));
        state.swapped.extend(gone);
        assert_eq!(state.whole_in_swap(70), Some((0..512, 8)));
        state.divide_around(70);
        let orders = [0, 63, 64, 70, 95, 96, 127, 128, 511].map(|index| state.swapped[&index].order.get());
        assert_eq!(orders, [6, 6, 0, 0, 0, 5, 5, 6, 6]);
        assert_eq!((state.whole_in_swap(70), state.whole_in_swap(100)), (None, Some((96..128, 104))));
        state.swapped.remove(&130);
        assert_eq!(state.whole_in_swap(140), None, "a part of it is gone");
        assert_eq!([4, 5, 7, 12].map(|whole| divided(order(whole.min(9))).get()), [0, 0, 6, 6]);
    }
}
