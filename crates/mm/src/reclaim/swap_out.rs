//! Pages on their way to swap: anonymous ones, with slots for all of a large page, or in parts; and those of shared memory.

use alloc::vec::Vec;

use super::pages::Outcome;
use super::{ReclaimGround, Scan, SwapOutDoor};
use crate::cache::SlotOf;
use crate::ground::{Machine, Order, Pfn};
use crate::lru::VecEvent;
use crate::lru::page::{Mapping, PageFlag};
use crate::rules::policy::{SharedLargeRule, WorkingsetRule};
use crate::vm::rmap::Leave;
use crate::vm::{LargeSwap, Leaving};

/// What became of an anonymous page that was to go to swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SwappedOut {
    Yes,
    /// It is on its way, and stays in memory until it is there.
    OnItsWay,
    No,
    /// It is the first part of a large page that was split for it, and nobody maps that part.
    NobodysPart,
}

/// What became of a page of a file in memory that was to go to swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LeftFile {
    /// It is the reclaimer's alone.
    Yes,
    /// There is no room for it.
    NoSlot,
    /// Somebody works with it.
    InUse,
}

impl<M: Machine, G: ReclaimGround<M>> SwapOutDoor<'_, M, G> {
    /// Takes the parts of large pages that were split off the lists that they came to, each with a reference for the caller, who is to shrink them.
    pub(super) fn take_parts(self, outcome: &mut Outcome) -> Vec<Pfn> {
        let mut parts = core::mem::take(&mut outcome.parts);
        if !parts.is_empty() {
            self.lru().lru_drain_cpu(self.machine().cpu());
            parts.retain(|&part| {
                let alone = self.lru().isolate_page(part);
                alone.inspect(|&alone| self.lru().end_isolation_of(alone)).is_some()
            });
        }
        parts
    }

    /// Puts slots of swap in the place of all entries that map an anonymous page, and writes it. On its way to a disk a single page stays in
    /// memory; otherwise the frame is free as soon as the machine has taken the page. A large page that cannot go in one piece is split, and the
    /// other parts come next.
    pub(super) fn swap_out(self, pfn: Pfn, scan: &Scan, outcome: &mut Outcome) -> SwappedOut {
        let kept = self.swap().kept_slot(pfn);
        let slots = kept.or_else(|| self.slots_for(pfn, outcome));
        let order = self.pages().order_of(pfn);
        if self.lru().page(pfn).mapped() == 0 {
            slots.inspect(|&first| self.swap().release_slots(first, order));
            return SwappedOut::NobodysPart;
        }
        let Some(first) = slots else { return SwappedOut::No };
        let unmapped = self.rmap().try_to_unmap(pfn, Leave::Swap(first));
        let differs = self.lru().page(pfn).has(PageFlag::Dirty) || self.swap().is_nowhere(first);
        let is_there = kept.is_some() && !differs;
        let result = if unmapped {
            self.swap().let_go(pfn);
            if is_there {
                self.leave(pfn, (first, order), scan);
                SwappedOut::Yes
            } else {
                self.send(pfn, (first, order), (scan, outcome))
            }
        } else {
            SwappedOut::No
        };
        // The entries have references of their own.
        self.swap().release_slots(first, order);
        result
    }

    /// The page at `pfn`, which nothing maps any more, goes to its slots.
    fn send(self, pfn: Pfn, slots: (u32, Order), (scan, outcome): (&Scan, &mut Outcome)) -> SwappedOut {
        let (first, order) = slots;
        let at_once = self.swap().store(first, order).or_else(|| self.swap().leave_zeros(first, order));
        if at_once.is_none() && order == Order::ZERO && self.swap_ahead().begin_writing(pfn, first) {
            self.count(pfn, (self.swap().count_written(order), order), outcome);
            self.swap().gather_write(Leaving { slot: first, pfn });
            return SwappedOut::OnItsWay;
        }
        self.leave(pfn, slots, scan);
        let event = at_once.unwrap_or_else(|| self.swap().write_now(order));
        self.count(pfn, (event, order), outcome);
        SwappedOut::Yes
    }

    /// A slot of swap takes the place that a page, which nothing maps any more, has in `file`, and it is written (`shmem_writeout`).
    pub(super) fn swap_out_of(self, file: u32, pfn: Pfn, (scan, outcome): (&Scan, &mut Outcome)) -> LeftFile {
        let page = self.lru().page(pfn);
        let Some(file) = self.files().file(file) else { return LeftFile::InUse };
        // It would be a file system that writes it, and one waits for this (`may_enter_fs`).
        if scan.no_fs {
            return LeftFile::InUse;
        }
        let slot = match self.slots_for_shared(pfn, outcome) {
            Ok(slot) => slot,
            Err(left) => return left,
        };
        let order = self.pages().order_of(pfn);
        let slots = slot..slot + order.pages();
        for (slot, index) in slots.clone().zip(page.index()..) {
            self.swap().note_place(SlotOf { slot, file: file.id(), index });
            // The file's own: it may end meanwhile.
            self.swap().swap_get(slot);
        }
        if !self.swapped().send_to_slot(&file, pfn, slot) {
            slots.for_each(|slot| self.swap().swap_free(slot));
            self.swap().release_slots(slot, order);
            return LeftFile::InUse;
        }
        self.leave(pfn, (slot, order), scan);
        let event = self.swap().write_out(slot, order);
        self.count(pfn, (event, order), outcome);
        self.swap().release_slots(slot, order);
        LeftFile::Yes
    }

    /// The page at `pfn`, which is nobody's any more, leaves its shadow in the slots from `first` on that it has.
    fn leave(self, pfn: Pfn, (first, order): (u32, Order), scan: &Scan) {
        if self.rules().reclaim.workingset == WorkingsetRule::All {
            self.swap().leave_shadow(first, order, self.lru().evict(pfn, scan.target));
        }
    }

    /// The page of `order` at `pfn` went to swap, which is counted as `event`.
    fn count(self, pfn: Pfn, (event, order): (VecEvent, Order), outcome: &mut Outcome) {
        self.lru().count_of(pfn, event, order.pages());
        outcome.written += order.pages();
    }

    /// Takes the page at `pfn`, which nothing maps, from its file, or from beside its slot. Says whether it is the caller's alone now.
    pub(super) fn remove_mapping(self, pfn: Pfn, scan: &Scan) -> bool {
        match self.lru().page(pfn).mapping() {
            Mapping::Slot => self.swap_ahead().forget(pfn, scan.target),
            _ => self.files().remove_mapping(pfn, scan.target),
        }
    }

    /// Slots for all of the folio of shared memory at `pfn`, which is split if it has several pages and cannot have them.
    fn slots_for_shared(self, pfn: Pfn, outcome: &mut Outcome) -> Result<u32, LeftFile> {
        let (group, order) = (self.lru().page(pfn).group(), self.pages().order_of(pfn));
        if order > Order::ZERO {
            let whole = self.rules().reclaim.swap.shared_large == SharedLargeRule::Whole;
            let slots = if whole { self.swap().swap_slots(group, order) } else { None };
            if let Some(slots) = slots {
                return Ok(slots);
            }
            if !self.shared().split_shared(pfn) {
                return Err(LeftFile::InUse);
            }
            self.swap().count_large_split(order);
            outcome.parts.extend((1..order.pages()).map(|part| pfn.add(part)));
            if whole {
                self.swap().count_large(order, LargeSwap::Split);
            }
        }
        self.swap().swap_slots(group, Order::ZERO).ok_or(LeftFile::NoSlot)
    }

    /// Slots for all of the page at `pfn`, which is split if it is a large one that cannot have them.
    fn slots_for(self, pfn: Pfn, outcome: &mut Outcome) -> Option<u32> {
        let (group, order) = (self.lru().page(pfn).group(), self.pages().order_of(pfn));
        if order > Order::ZERO {
            let whole = self.rmap().goes_whole(pfn);
            let slots = if whole { self.swap().swap_slots(group, order) } else { None };
            if slots.is_some() {
                return slots;
            }
            if !self.spaces().split_huge_page(pfn) {
                return None;
            }
            outcome.parts.extend((1..order.pages()).map(|part| pfn.add(part)));
            if whole {
                self.swap().count_large(order, LargeSwap::Split);
            }
        }
        self.swap().swap_slots(group, Order::ZERO)
    }
}
