//! Private memory that comes back from swap in pages of several frames (`alloc_swap_folio`): from swap that needs no queue, where all of
//! such a page's place is in slots in a row, at that place in the row, and nothing of it is in memory.
//!
//! ```text
//!   fault ─▶ sizes that its region may have, the largest first ─▶ is the whole place in such slots? ─▶ a block, charged to whom the slots
//!              were ─▶ all of it read ─▶ mapped as if it had been made so (vm/large.rs); the slots are free
//! ```

use super::entry::Entry;
use super::fault::{FaultKind, Faulted, Site};
use super::large::{LargePlace, SizeEvent};
use super::swap::{OnDevice, SlotRead, Swapped};
use super::table::Held;
use super::{FaultDoor, SpacesGround, SwapDoor};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::{Machine, SwapIo};
use crate::lru::Came;
use crate::lru::page::PageFlag;
use crate::memcg::{Effort, GroupId};
use crate::rules::knobs::Knob;
use crate::rules::policy::PrivateLargeInRule;

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Brings the largest page that the region of `site` may have, whose entry is of `slot`, back in one piece, if there is one. `None`: a single page
    /// it is to be.
    pub(super) fn swap_in_large(self, site: &Site<'_, M>, slot: u32) -> Option<Faulted> {
        if !self.swap().brings_large() {
            return None;
        }
        self.sizes_of(&site.region).find_map(|size| self.bring_large(site, slot, size.order()))
    }

    /// What is known of the slots from `first` on, if the entries of `place`, whose table is held, are of them, in their order, and nothing of
    /// them is in memory.
    fn large_in_swap(self, held: &Held<'_, M>, place: LargePlace, first: u32) -> Option<Swapped> {
        let is_slot = |part: u32| held.entry(place.first.add(part)).slot() == Some(first + part);
        let aligned = first % place.order.pages() == 0;
        let all = aligned && (0..place.order.pages()).all(is_slot);
        if all { self.swap().alike(first, place.order) } else { None }
    }

    /// The same of `order`, if all of its place is in slots. Where there is no block for it, a smaller one is to be tried.
    fn bring_large(self, site: &Site<'_, M>, slot: u32, order: Order) -> Option<Faulted> {
        let place = LargePlace::around(site, order)?;
        let first = slot.checked_sub(site.vpn.0 - place.first.0)?;
        let Swapped { group, came, device, .. } =
            self.large_in_swap(&site.table.lock(self.machine()), place, first)?;
        let Some(pfn) = self.block_for(site, order, group) else {
            self.count_size(order, SizeEvent::SwapInFallback);
            return None;
        };
        let slots = first..first + order.pages();
        slots.clone().for_each(|slot| self.swap().bring(slot, SwapIo::Read));
        if device == OnDevice::Zeros {
            self.machine().clear(pfn, order);
        }
        self.make_large(site, pfn, place);
        if let Came::Back(shadow) = came {
            self.lru().refault(pfn, shadow, site.by(), |group| self.swap().has_swap(group));
        }
        let expected = Entry::swapped(slot);
        let held = site.lock(self.machine(), expected);
        let held = held.filter(|held| self.large_in_swap(held, place, first).is_some());
        let Some(mut held) = held else {
            self.lru().put_page(pfn);
            return None;
        };
        self.map_parts(site, &mut held, (pfn, place));
        self.count_size(order, SizeEvent::SwapIn);
        self.lru().page(pfn).set(PageFlag::SwapCache);
        if site.region.locked {
            self.unevictable().mlock_new(pfn);
        }
        self.lru().lru_add_by(pfn, site.by());
        self.lru().page(pfn).clear(PageFlag::SwapCache);
        drop(held);
        site.space.stat.count_swapped(-i64::from(order.pages()));
        slots.for_each(|slot| self.swap().came_back(slot, pfn));
        Some(Faulted { pfn: place.part(site, pfn), kind: FaultKind::Swapped, reads: 0 })
    }

    /// A block for what comes back, charged to `group`: as hard as `defrag` says of a fault.
    fn block_for(self, site: &Site<'_, M>, order: Order, group: GroupId) -> Option<Pfn> {
        let pfn = self.take_huge(site, order).ok()?;
        if group != GroupId::ROOT {
            let effort = Effort::of(self.huge_urgency(&site.region));
            self.lru().charge_to(pfn, group, effort).ok()?;
        }
        Some(pfn)
    }
}

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// Whether private memory comes back in large pages at all: from a device without a queue, where nothing ever was in zswap.
    fn brings_large(self) -> bool {
        self.rules().reclaim.swap.private_large_in == PrivateLargeInRule::Whole
            && !self.is_on_disk()
            && self.knobs().get(Knob::ZswapEnabled) == 0
    }

    /// What is known of each of the slots from `first` on, as many as a page of `order` has, if that is the same of all and none is in memory.
    fn alike(self, first: u32, order: Order) -> Option<Swapped> {
        let swapped = self.swapped(first)?;
        let is_alike = |slot: u32| {
            self.swapped(slot).is_some_and(|other| {
                (other.group, other.device, other.read) == (swapped.group, swapped.device, SlotRead::Alone)
            })
        };
        (first..first + order.pages()).all(is_alike).then_some(swapped)
    }
}
