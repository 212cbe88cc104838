//! Pages of private memory that keep the slot which they came from (the swap cache, of pages that are mapped): a page that was only read
//! since need not be written when it goes again. While others have the slot it is kept for them. Otherwise, who writes to it first thing, and
//! everybody once half of swap is used, gives the slot back at once (`should_try_to_free_swap`).
//!
//! ```text
//!   fault that reads ─▶ keep ─▶ mapped, PG_swapcache ─▶ reclaim: to the same slot, written only if it differs
//!                                    │
//!                                    └─▶ unmapped, copied, given away, no slot left ─▶ let_go (beside the slot, if others have it)
//! ```

use super::swap::Used;
use super::{SpacesGround, SwapDoor};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::Machine;
use crate::lru::page::PageFlag;
use crate::memcg::GroupId;
use crate::rules::policy::SynchronousSwapInRule;

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// The page at `pfn`, which was read from `slot` and is mapped, keeps that, if nobody else has it. Says whether it does.
    pub(super) fn keep(self, slot: u32, pfn: Pfn) -> bool {
        let mut used = self.slots();
        if !self.may_keep(&used, pfn) {
            return false;
        }
        let alone = used.taken.get_mut(&slot).filter(|slot| slot.refs == 1 && slot.kept.is_none());
        let Some(this) = alone else { return false };
        this.kept = Some(pfn);
        used.kept.insert(pfn.0, slot);
        self.lru().page(pfn).set(PageFlag::SwapCache);
        true
    }

    /// Whether the page at `pfn` may keep a slot that nobody else has.
    fn may_keep(self, used: &Used, pfn: Pfn) -> bool {
        let (size, group) = (self.own().swap.size(), self.lru().page(pfn).group());
        let is_freed = self.rules().reclaim.swap.synchronous_in == SynchronousSwapInRule::Alone;
        let is_full = used.taken.len() as u32 > size / 2;
        let of_group = group != GroupId::ROOT && self.memcg().is_swap_full(group);
        (used.device.is_disk() || !is_freed) && !is_full && !of_group
    }

    /// One has come to the page at `pfn` who had its slot. If nobody has that any more, the page keeps it only as it may.
    pub(super) fn settle(self, pfn: Pfn) {
        let used = self.slots();
        let Some(slot) = used.kept.get(&pfn.0) else { return };
        let is_alone = used.taken.get(slot).is_some_and(|slot| slot.refs == 0);
        let goes = is_alone && (self.lru().page(pfn).has(PageFlag::Mlocked) || !self.may_keep(&used, pfn));
        drop(used);
        if goes {
            self.let_go(pfn);
        }
    }

    /// Whether others have the slot that the page at `pfn` keeps.
    pub(super) fn has_others(self, pfn: Pfn) -> bool {
        if !self.lru().page(pfn).has(PageFlag::SwapCache) {
            return false;
        }
        let used = self.slots();
        let slot = used.kept.get(&pfn.0).and_then(|slot| used.taken.get(slot));
        slot.is_some_and(|slot| slot.refs > 0)
    }

    /// The slot that the page at `pfn` keeps, which the caller holds from now on.
    pub(crate) fn kept_slot(self, pfn: Pfn) -> Option<u32> {
        if !self.lru().page(pfn).has(PageFlag::SwapCache) {
            return None;
        }
        let mut used = self.slots();
        let slot = *used.kept.get(&pfn.0)?;
        used.taken.get_mut(&slot)?.held += 1;
        Some(slot)
    }

    /// The page at `pfn` keeps no slot any more.
    pub(crate) fn let_go(self, pfn: Pfn) {
        if !self.lru().page(pfn).clear(PageFlag::SwapCache) {
            return;
        }
        let mut used = self.slots();
        let Some(slot) = used.kept.remove(&pfn.0) else { return };
        if let Some(this) = used.taken.get_mut(&slot) {
            (this.kept, this.held) = (None, this.held + 1);
        }
        drop(used);
        self.release_slots(slot, Order::ZERO);
    }

    /// Whoever keeps a slot that nobody else has lets go of it, one of them; says whether there was one (`__try_to_reclaim_swap`).
    pub(super) fn take_one_back(self) -> bool {
        let page = {
            let used = self.slots();
            let is_kept_alone =
                |slot: &u32| used.taken.get(slot).is_some_and(|slot| slot.refs + slot.held == 0);
            used.kept.iter().find(|(_, slot)| is_kept_alone(slot)).map(|(&pfn, _)| Pfn(pfn))
        };
        page.inspect(|&pfn| self.let_go(pfn)).is_some()
    }

    /// The page at `from`, which keeps a slot, is at `to` from now on.
    pub(super) fn move_kept(self, from: Pfn, to: Pfn) {
        let mut used = self.slots();
        let Some(slot) = used.kept.remove(&from.0) else { return };
        used.kept.insert(to.0, slot);
        if let Some(this) = used.taken.get_mut(&slot) {
            this.kept = Some(to);
        }
    }
}
