//! Swap slots: how many there are and who refers to each. What is swapped out is counted and nothing more; its contents
//! are gone, so only a machine whose memory has no contents may have any (the simulated one).

use alloc::collections::BTreeMap;

use super::{SpacesDoor, SpacesGround};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::sync::{AtomicU32, Locked, Relaxed};

/// The slots.
#[derive(Debug)]
pub(crate) struct Swap<M: Machine> {
    size: AtomicU32,
    slots: Locked<M, Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// References to the slots in use.
    used: BTreeMap<u32, u32>,
    /// Slots below this were all given out at some time.
    next: u32,
    /// Of these, those that are free again.
    free: alloc::vec::Vec<u32>,
}

impl<M: Machine> Swap<M> {
    pub(super) fn new(machine: &M) -> Self {
        let slots = Locked::new(machine, LockClass::Other, 3, Slots::default());
        Self { size: AtomicU32::new(0), slots }
    }

    /// Slots in all.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Relaxed)
    }

    /// Slots in use.
    pub(crate) fn used(&self, machine: &M) -> u32 {
        self.slots.lock_local(machine).used.len() as u32
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// From now on there are `pages` of swap (`swapon`). Fewer than are in use means that no more are given out.
    pub fn set_swap(self, pages: u32) {
        self.own().swap.size.store(pages, Relaxed);
    }

    /// A free slot with one reference, the caller's.
    pub(crate) fn swap_slot(self) -> Option<u32> {
        let mut slots = self.own().swap.slots.lock_local(self.machine());
        if slots.used.len() as u32 >= self.own().swap.size() {
            return None;
        }
        let slot = slots.free.pop().unwrap_or(slots.next);
        slots.next = slots.next.max(slot + 1);
        slots.used.insert(slot, 1);
        Some(slot)
    }

    /// One more entry refers to `slot`.
    pub(crate) fn swap_get(self, slot: u32) {
        if let Some(refs) = self.own().swap.slots.lock_local(self.machine()).used.get_mut(&slot) {
            *refs += 1;
        }
    }

    /// One reference to `slot` fewer; without any it is free.
    pub(crate) fn swap_free(self, slot: u32) {
        let mut slots = self.own().swap.slots.lock_local(self.machine());
        let Some(refs) = slots.used.get_mut(&slot) else { return };
        *refs -= 1;
        if *refs == 0 {
            slots.used.remove(&slot);
            slots.free.push(slot);
        }
    }

    /// Pages of swap in use and in all.
    pub fn swap_pages(self) -> (u32, u32) {
        (self.own().swap.used(self.machine()), self.own().swap.size())
    }
}
