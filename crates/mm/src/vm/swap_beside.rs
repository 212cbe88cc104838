//! Private memory that is in swap and in memory too (the swap cache): who comes to its slot finds the page there. A page that is mapped
//! knows the slot that it keeps, one that nobody maps belongs to it, with a reference.
//!
//! ```text
//!   read, or on its way out ─▶ put_beside ─▶ beside ──claim──▶ mapped; kept while others have the slot (after a fork) ◀─claim─ they
//!                                             ▲  │                │
//!                                             │  └─▶ reclaim      │
//!                                             └──── unmapped ─────┘
//! ```

use alloc::vec::Vec;

use super::swap::Slot;
use super::{SpacesGround, SwapDoor};
use crate::ground::ids::Pfn;
use crate::ground::machine::Machine;
use crate::lru::page::{Mapping, PageFlag};

/// Who has what is in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Users {
    /// One alone.
    One,
    /// Others too: some map the page, or come to the slot later.
    Several,
}

/// A page in memory that its slot led to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    pub(super) pfn: Pfn,
    pub(super) users: Users,
}

impl Slot {
    /// Who has what is in it, of whom one asks.
    fn users(&self) -> Users {
        if self.kept.is_some() || self.refs > 1 { Users::Several } else { Users::One }
    }
}

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// What is in `slot`, private memory, is at `pfn` too from now on, with the reference that the caller has. Says whether that is so: not if it
    /// is in memory already, or the slot is no such any more.
    pub(super) fn put_beside(self, slot: u32, pfn: Pfn) -> bool {
        let mut used = self.slots();
        let is_free = |slot: &&mut Slot| slot.place.is_none() && slot.beside.is_none() && slot.kept.is_none();
        let free = used.taken.get_mut(&slot).filter(is_free);
        free.map(|slot| slot.beside = Some(pfn)).is_some()
    }

    /// Who has what is in `slot`, of whom the caller is one. `None`: it is no slot any more.
    pub(super) fn users(self, slot: u32) -> Option<Users> {
        self.slots().taken.get(&slot).map(Slot::users)
    }

    /// The page in memory of `slot` is the caller's too, who is about to map it, and counted as mapped: with the slot's reference, or another. One
    /// that nobody mapped belongs to `owner`, with that number there, from now on. `None`: there is none, or it is on its way.
    pub(super) fn claim(self, slot: u32, (owner, index): (Mapping, u32)) -> Option<Claimed> {
        let mut used = self.slots();
        let this = used.taken.get_mut(&slot)?;
        let users = this.users();
        if let Some(pfn) = this.kept {
            let page = self.lru().page(pfn);
            // Who holds the lock may have seen that nobody maps it.
            if !page.set(PageFlag::Locked) {
                return None;
            }
            page.get();
            page.add_mapped();
            page.clear(PageFlag::Locked);
            return Some(Claimed { pfn, users });
        }
        let pfn = this.beside.take()?;
        let page = self.lru().page(pfn);
        page.give_to(owner, index);
        page.add_mapped();
        if users == Users::Several {
            this.kept = Some(pfn);
            used.kept.insert(pfn.0, slot);
            page.set(PageFlag::SwapCache);
        }
        Some(Claimed { pfn, users })
    }

    /// The page in memory of `slot`, with a reference for the caller.
    pub(super) fn get_in_memory(self, slot: u32) -> Option<Pfn> {
        let used = self.slots();
        let this = used.taken.get(&slot)?;
        let pfn = this.kept.or(this.beside)?;
        self.lru().page(pfn).try_get().then_some(pfn)
    }

    /// The page at `pfn` with a reference, if it is what is beside `slot`.
    pub(super) fn get_beside(self, slot: u32, pfn: Pfn) -> Option<Pfn> {
        let used = self.slots();
        let beside = used.taken.get(&slot)?.beside.filter(|&beside| beside == pfn)?;
        self.lru().page(beside).try_get().then_some(beside)
    }

    /// One mapped the page at `pfn` who does not any more. If none does, it is beside the slot that it keeps for those who have that, or keeps it
    /// no more.
    pub(super) fn unmapped(self, pfn: Pfn) {
        let page = self.lru().page(pfn);
        if !page.has(PageFlag::SwapCache) {
            return;
        }
        let mut used = self.slots();
        let Some(slot) = used.kept.get(&pfn.0).copied().filter(|_| page.mapped() == 0) else { return };
        let Some(this) = used.taken.get_mut(&slot).filter(|slot| slot.refs > 0) else {
            drop(used);
            return self.let_go(pfn);
        };
        (this.kept, this.beside) = (None, Some(pfn));
        used.kept.remove(&pfn.0);
        page.clear(PageFlag::SwapCache);
        page.get();
        page.give_to(Mapping::Slot, slot);
    }

    /// Changes what is beside a slot, the page at `pfn`, to `to`, which becomes what that was, if nobody but the caller and the slot refers to it;
    /// gives the slot.
    pub(super) fn change_beside(self, pfn: Pfn, to: Option<Pfn>) -> Option<u32> {
        let page = self.lru().page(pfn);
        let mut used = self.slots();
        let index = page.index();
        let slot = used.taken.get_mut(&index).filter(|slot| slot.beside == Some(pfn) && page.freeze(2))?;
        slot.beside = to;
        if let Some(to) = to {
            self.lru().carry_over(pfn, to);
            self.lru().page(to).get();
        }
        Some(index)
    }

    /// What is beside slots.
    pub(super) fn all_beside(self) -> Vec<(u32, Pfn)> {
        let used = self.slots();
        used.taken.iter().filter_map(|(&slot, this)| Some((slot, this.beside?))).collect()
    }
}
