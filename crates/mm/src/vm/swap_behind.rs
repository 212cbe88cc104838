//! Private memory on its way to a disk (pages of the swap cache under writeback): it stays in memory beside its slot until the disk has
//! it, and whoever wants it meanwhile finds it there. Reclaim, which sent it, comes to it a second time.
//!
//! ```text
//!   reclaim: unmapped ─▶ begin_writing ─▶ beside its slot, PG_writeback, PG_reclaim ─▶ written: to the list's end ─▶ reclaim: free
//!                                          │
//!                                          └─▶ fault: claimed, as if it had been read ahead
//! ```

use super::swap_queue::Leaving;
use super::{AheadDoor, SpacesGround, SwapDoor};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::Machine;
use crate::ground::sync::Relaxed;
use crate::lru::page::{Mapping, PageFlag};

impl<M: Machine, G: SpacesGround<M>> AheadDoor<'_, M, G> {
    /// The page at `pfn`, which nothing maps any more, is to be written to `slot`, and stays beside it. The caller has references to both. Says
    /// whether that is so: a disk is not waited for where there is none.
    pub(crate) fn begin_writing(self, pfn: Pfn, slot: u32) -> bool {
        if !self.swap().is_on_disk() {
            return false;
        }
        let page = self.lru().page(pfn);
        page.clear(PageFlag::Dirty);
        page.set(PageFlag::Writeback);
        page.set(PageFlag::Reclaim);
        page.get();
        page.give_to(Mapping::Slot, slot);
        let stays = self.swap().put_beside(slot, pfn);
        debug_assert!(stays, "the slot is the caller's, who had the page for himself");
        stays
    }

    /// The page at `pfn`, which is beside its slot and nowhere else, is to be there again. Says whether it is; if not, it is on its way.
    pub(super) fn send_again(self, pfn: Pfn) -> bool {
        let slot = self.lru().page(pfn).index();
        if let Some(event) =
            self.swap().store(slot, Order::ZERO).or_else(|| self.swap().leave_zeros(slot, Order::ZERO))
        {
            self.lru().count_of(pfn, event, 1);
            return true;
        }
        if !self.swap().is_on_disk() {
            self.lru().count_of(pfn, self.swap().write_now(Order::ZERO), 1);
            return true;
        }
        self.lru().count_of(pfn, self.swap().count_written(Order::ZERO), 1);
        self.lru().page(pfn).set(PageFlag::Writeback);
        self.lru().page(pfn).set(PageFlag::Reclaim);
        self.swap().gather_write(Leaving { slot, pfn });
        false
    }

    /// Pages that the disk has by now are to go next (`folio_rotate_reclaimable`).
    pub(crate) fn note_written(self) {
        if self.own().swap.waiting.load(Relaxed) == 0 {
            return;
        }
        while let Some(Leaving { slot, pfn }) = self.swap().next_written() {
            let page = self.lru().page(pfn);
            // It may have been claimed, and even be another's by now.
            let Some(pfn) = self.swap().get_beside(slot, pfn) else { continue };
            if page.clear(PageFlag::Writeback) && page.clear(PageFlag::Reclaim) {
                self.lru().lru_rotate(pfn);
            }
            self.lru().put_page(pfn);
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// The page at `pfn` of a file leaves memory, and is in `slot` still; if it was nowhere else, it is there again.
    pub(crate) fn send_shared_again(self, slot: u32, pfn: Pfn) {
        if !self.is_nowhere(slot) {
            return;
        }
        self.lru().count_of(pfn, self.write_out(slot, Order::ZERO), 1);
    }
}
