//! From a page back to the page table entries that map it, for reclaim and migration: through the family of address
//! spaces of an anonymous page, through the mappers of a file's. Under the kernel's `anon_vma` and `i_mmap` locks, which
//! are taken before any page table's.

use core::ops::ControlFlow;

use super::{RmapDoor, SpacesGround};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::stat::SlowEvents;
use crate::vm::{AddressSpace, Entry, Vpn, bit};

/// What is left in the place of an entry that mapped a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// Nothing: the page can be had from its file again.
    Nothing,
    /// The slot of swap that the page is in.
    Swap(u32),
    /// Who touches the page waits until it is mapped again.
    Migration,
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Calls `then` with every address space and virtual page that may map the page at `pfn`, until it breaks.
    fn each_place(self, pfn: Pfn, mut then: impl FnMut(&AddressSpace<M>, Vpn) -> ControlFlow<()>) {
        let page = self.lru().page(pfn);
        match page.mapping() {
            Mapping::None => {}
            Mapping::Anon(family) => {
                let Some(family) = self.spaces().family(family) else { return };
                let members = family.members.lock_local(self.machine());
                let _ = members.iter().try_for_each(|space| then(space, Vpn(page.index())));
            }
            Mapping::File(id) => {
                let Some(file) = self.files().file(id) else { return };
                let mappers = file.mappers(self.machine());
                let mut places =
                    mappers.iter().filter_map(|mapper| Some((&mapper.space, mapper.vpn(page.index())?)));
                let _ = places.try_for_each(|(space, vpn)| then(space, vpn));
            }
        }
    }

    /// In how many entries the page at `pfn` was touched since this was last asked; their accessed bits are cleared.
    pub(crate) fn referenced(self, pfn: Pfn) -> u32 {
        let (page, mut left, mut touched) = (self.lru().page(pfn), self.lru().page(pfn).mapped(), 0);
        self.each_place(pfn, |space, vpn| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            let Some(table) = space.table(vpn) else { return ControlFlow::Continue(()) };
            let mut held = table.lock(self.machine());
            for part in parts(held.huge(), self.pages().order_of(pfn), vpn) {
                let entry = held.entry(part);
                if entry.is_present() && entry.head() == pfn {
                    self.machine().spend(Chore::RmapStep, 1);
                    touched += u32::from(held.clear_bits(part, bit::ACCESSED).has(bit::ACCESSED));
                    left = left.saturating_sub(1);
                }
            }
            ControlFlow::Continue(())
        });
        touched + u32::from(page.clear(PageFlag::Referenced))
    }

    /// Takes the page at `pfn`, which the caller holds a reference to, out of all page tables. What entries knew of
    /// writes goes to the page. Says whether none maps it any more.
    pub(crate) fn try_to_unmap(self, pfn: Pfn, leave: Leave) -> bool {
        self.each_place(pfn, |space, vpn| {
            if self.lru().page(pfn).mapped() == 0 {
                return ControlFlow::Break(());
            }
            self.unmap_in(pfn, (space, vpn), leave);
            ControlFlow::Continue(())
        });
        self.lru().page(pfn).mapped() == 0
    }

    fn unmap_in(self, pfn: Pfn, place: (&AddressSpace<M>, Vpn), leave: Leave) {
        let (space, vpn) = place;
        let Some(table) = space.table(vpn) else { return };
        let mut held = table.lock(self.machine());
        let huge = held.huge();
        for part in parts(huge, self.pages().order_of(pfn), vpn) {
            let entry = held.entry(part);
            if !entry.is_present() || entry.head() != pfn {
                continue;
            }
            self.machine().spend(Chore::RmapStep, 1);
            let left = match leave {
                Leave::Nothing => Entry::NONE,
                Leave::Migration => entry.migrating(),
                Leave::Swap(slot) => Entry::swapped(slot),
            };
            // The latest bits: the processor may have set some since.
            let last = if huge == Entry::NONE { held.set(part, left) } else { held.set_huge(left) };
            self.unmapped(pfn, space, (last, leave));
        }
    }

    /// The entry `last` mapped the page at `pfn` and has been replaced.
    fn unmapped(self, pfn: Pfn, space: &AddressSpace<M>, replaced: (Entry, Leave)) {
        let (last, leave) = replaced;
        if last.has(bit::DIRTY) {
            self.files().mark_dirty(pfn);
        }
        if let Leave::Swap(slot) = leave {
            self.spaces().swap_get(slot);
            space.count_swapped(1);
            SlowEvents::bump(&self.own().events.pswpout);
        }
        let whole = !last.has(bit::PART) && self.pages().order_of(pfn).pages() > 1;
        let pages = if whole { self.pages().order_of(pfn).pages() } else { 1 };
        space.count_unmapped(self.pages().node_of_page(pfn), pages);
        let page = self.lru().page(pfn);
        page.sub_mapped();
        let last_reference = page.put();
        debug_assert!(!last_reference, "the caller has one");
    }

    /// Puts `new` in the place of `old`, which [`RmapDoor::try_to_unmap`] left marked as migrating, in all page tables. `old`
    /// still says what it belongs to; each entry takes a reference to `new`.
    pub(crate) fn remap(self, old: Pfn, new: Pfn) {
        self.each_place(old, |space, vpn| {
            let Some(table) = space.table(vpn) else { return ControlFlow::Continue(()) };
            let mut held = table.lock(self.machine());
            let huge = held.huge();
            for part in parts(huge, self.pages().order_of(old), vpn) {
                let entry = held.entry(part);
                if entry.migrating_from() != Some(old) {
                    continue;
                }
                self.machine().spend(Chore::RmapStep, 1);
                let moved = Pfn(new.0 + (entry.pfn().0 - old.0));
                let mapped = Entry::of(moved, entry.0 & (bit::WRITE | bit::PART)).with(bit::ACCESSED);
                let page = self.lru().page(new);
                page.get();
                page.add_mapped();
                let whole = huge != Entry::NONE;
                if whole {
                    held.set_huge(mapped);
                } else {
                    held.set(part, mapped);
                }
                let pages = if whole { PAGEBLOCK_PAGES } else { 1 };
                space.count_mapped(self.pages().node_of_page(new), pages);
            }
            ControlFlow::Continue(())
        });
    }
}

/// The virtual pages whose entries may refer to a page of `order` that begins at `vpn`: that one, or, where a huge page is
/// mapped in parts, all of its table, whatever has come in the place of some.
fn parts(huge: Entry, order: Order, vpn: Vpn) -> impl Iterator<Item = Vpn> {
    let in_parts = huge == Entry::NONE && order > Order::ZERO;
    let count = if in_parts { PAGEBLOCK_PAGES } else { 1 };
    (0..count).map(move |part| vpn.add(part))
}
