//! Swap slots: how many there are and who refers to each. What is swapped out is counted and nothing more; its contents
//! are gone, so only a machine whose memory has no contents may have any (the simulated one).

use alloc::collections::BTreeMap;

use super::{SpacesDoor, SpacesGround, SwapDoor};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::sync::{AtomicU32, Locked, Relaxed};
use crate::lru::{Came, Shadow};
use crate::memcg::{GroupEvent, GroupId};

/// The slots.
#[derive(Debug)]
pub(crate) struct Swap<M: Machine> {
    size: AtomicU32,
    slots: Locked<M, Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// The slots in use.
    used: BTreeMap<u32, Slot>,
    /// Slots below this were all given out at some time.
    next: u32,
    /// Of these, those that are free again.
    free: alloc::vec::Vec<u32>,
}

/// A slot in use.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Entries that refer to it, and whoever is about to make one.
    refs: u32,
    /// Whose it is: what its page was charged to.
    group: GroupId,
    /// When its page was evicted.
    shadow: Option<Shadow>,
}

/// What is known of a slot besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swapped {
    pub(super) group: GroupId,
    pub(super) came: Came,
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

    /// Pages of swap in use and in all.
    pub fn swap_pages(self) -> (u32, u32) {
        (self.own().swap.used(self.machine()), self.own().swap.size())
    }
}

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// A free slot with one reference, the caller's, for a page of `group`. `None`: there is none, or `group` may have no more.
    pub(crate) fn swap_slot(self, group: GroupId) -> Option<u32> {
        let mut slots = self.own().swap.slots.lock_local(self.machine());
        if slots.used.len() as u32 >= self.own().swap.size() {
            if group != GroupId::ROOT {
                self.memcg().count(group, GroupEvent::SwapFail);
            }
            return None;
        }
        if group != GroupId::ROOT && !self.memcg().charge_swap(group) {
            return None;
        }
        let slot = slots.free.pop().unwrap_or(slots.next);
        slots.next = slots.next.max(slot + 1);
        slots.used.insert(slot, Slot { refs: 1, group, shadow: None });
        Some(slot)
    }

    /// The page that is in `slot` now left `shadow`.
    pub(crate) fn leave_shadow(self, slot: u32, shadow: Shadow) {
        if let Some(slot) = self.own().swap.slots.lock_local(self.machine()).used.get_mut(&slot) {
            slot.shadow = Some(shadow);
        }
    }

    /// What is known of `slot`.
    pub(super) fn swapped(self, slot: u32) -> Option<Swapped> {
        let slots = self.own().swap.slots.lock_local(self.machine());
        let Slot { group, shadow, .. } = *slots.used.get(&slot)?;
        Some(Swapped { group, came: shadow.map_or(Came::New, Came::Back) })
    }

    /// One more entry refers to `slot`.
    pub(crate) fn swap_get(self, slot: u32) {
        if let Some(slot) = self.own().swap.slots.lock_local(self.machine()).used.get_mut(&slot) {
            slot.refs += 1;
        }
    }

    /// One reference to `slot` fewer; without any it is free.
    pub(crate) fn swap_free(self, slot: u32) {
        let mut slots = self.own().swap.slots.lock_local(self.machine());
        let Some(this) = slots.used.get_mut(&slot) else { return };
        this.refs -= 1;
        if this.refs > 0 {
            return;
        }
        let group = this.group;
        slots.used.remove(&slot);
        slots.free.push(slot);
        if group != GroupId::ROOT {
            self.memcg().uncharge_swap(group);
        }
    }

    /// Whether `group` may have a slot more.
    pub(crate) fn has_swap(self, group: GroupId) -> bool {
        let (used, size) = self.spaces().swap_pages();
        used < size && (group == GroupId::ROOT || self.memcg().swap_left(group) > 0)
    }
}
