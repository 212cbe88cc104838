//! From a page back to the page table entries that map it, for reclaim and migration: through the family of address
//! spaces of an anonymous page, through the mappers of a file's. Under the kernel's `anon_vma` and `i_mmap` locks, which
//! are taken before any page table's.

use core::ops::ControlFlow;

use super::{RmapDoor, SpacesGround};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::{Mapping, PageFlag};
use crate::vm::counters::PageKind;
use crate::vm::{AddressSpace, Around, Entry, Vpn, bit};

/// What is left in the place of an entry that mapped a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// Nothing: the page can be had from its file again.
    Nothing,
    /// The slot of swap that the page is in, or the first of its slots.
    Swap(u32),
    /// Who touches the page waits until it is mapped again.
    Migration,
}

impl Leave {
    /// What is left in the place of the entry of a part of a large page.
    const fn of_part(self, part: u32) -> Self {
        match self {
            Self::Swap(first) => Self::Swap(first + part),
            other => other,
        }
    }
}

/// How a page was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Used {
    /// Places that it was touched at: an entry, or all that map it in a table.
    pub(crate) places: u32,
    /// One of them is of a region that may be executed.
    pub(crate) by_code: bool,
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Calls `then` with every address space, and the pages of each of its tables, that may map the page at `pfn`, until
    /// it breaks.
    fn each_place(self, pfn: Pfn, mut then: impl FnMut(&AddressSpace<M>, Stretch) -> ControlFlow<()>) {
        let (page, pages) = (self.lru().page(pfn), self.pages().order_of(pfn).pages());
        let mut then = |space: &AddressSpace<M>, (first, pages): (Vpn, u32)| {
            stretches(first, pages).try_for_each(|stretch| then(space, stretch))
        };
        match page.mapping() {
            // Who has the slot comes to the page by that.
            Mapping::None | Mapping::Slot => {}
            Mapping::Anon(family) => {
                let Some(family) = self.spaces().family(family) else { return };
                let members = family.members.lock_local(self.machine());
                let _ = members.iter().try_for_each(|member| {
                    member
                        .places(page.index(), pages)
                        .try_for_each(|first| then(&member.space, (first, pages)))
                });
            }
            Mapping::File(id) => {
                let Some(file) = self.files().file(id) else { return };
                let mappers = file.mappers(self.machine());
                let folio = page.index()..page.index().saturating_add(pages);
                let mut places =
                    mappers.iter().filter_map(|mapper| Some((&mapper.space, mapper.places(&folio)?)));
                let _ = places.try_for_each(|(space, place)| then(space, place));
            }
        }
    }

    /// How the page at `pfn` was used since this was last asked; accessed bits are cleared (`folio_referenced`).
    pub(crate) fn referenced(self, pfn: Pfn) -> Used {
        self.referenced_and(pfn, Around::Left)
    }

    /// The same, with what becomes of others around it that are in use.
    pub(crate) fn referenced_and(self, pfn: Pfn, around: Around) -> Used {
        let (page, mut left) = (self.lru().page(pfn), self.lru().page(pfn).mapped());
        let mut used = Used::default();
        let is_file = !page.has(PageFlag::SwapBacked) && matches!(page.mapping(), Mapping::File(_));
        self.each_place(pfn, |space, stretch| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            let Some(table) = space.table(stretch.first) else { return ControlFlow::Continue(()) };
            let mut held = table.lock(self.machine());
            let mut is_used = false;
            for part in stretch.parts(held.huge()) {
                let entry = held.entry(part);
                if entry.is_present() && entry.head() == pfn {
                    self.machine().spend(Chore::RmapStep, 1);
                    left = left.saturating_sub(1);
                    if !space.has_recency(self.machine(), part, self.rules().reclaim.recency) {
                        continue;
                    }
                    if held.clear_bits(part, bit::ACCESSED).has(bit::ACCESSED) {
                        is_used = true;
                        used.by_code |= is_file && space.is_code(self.machine(), part);
                        self.look_around((space, &mut held), (pfn, part), around);
                    }
                }
            }
            used.places += u32::from(is_used);
            ControlFlow::Continue(())
        });
        used
    }

    /// Whether any entry maps the frame `part` of the huge page at `head`, which is anonymous.
    pub(super) fn maps_part(self, head: Pfn, part: u32) -> bool {
        let (page, frame) = (self.lru().page(head), head.add(part));
        let Mapping::Anon(family) = page.mapping() else { return false };
        let Some(family) = self.spaces().family(family) else { return false };
        let members = family.members.lock_local(self.machine());
        let mut places = members.iter().flat_map(|member| {
            member.places(page.index().wrapping_add(part), 1).map(move |vpn| (&member.space, vpn))
        });
        places.any(|(space, vpn)| {
            let Some(table) = space.table(vpn) else { return false };
            let (held, huge) = (table.lock(self.machine()), table.huge());
            if huge != Entry::NONE {
                return huge.is_present() && huge.pfn() == head;
            }
            held.entry(vpn).is_present() && held.entry(vpn).pfn() == frame
        })
    }

    /// Takes the page at `pfn`, which the caller holds a reference to, out of all page tables. What entries knew of
    /// writes goes to the page. Says whether none maps it any more.
    pub(crate) fn try_to_unmap(self, pfn: Pfn, leave: Leave) -> bool {
        self.each_place(pfn, |space, stretch| {
            if self.lru().page(pfn).mapped() == 0 {
                return ControlFlow::Break(());
            }
            self.unmap_in(pfn, (space, stretch), leave);
            ControlFlow::Continue(())
        });
        self.lru().page(pfn).mapped() == 0
    }

    /// Takes the page of a file at `pfn` out of all page tables, as reclaim does: entries that map all of a huge one of shared memory are
    /// opened first (`TTU_SPLIT_HUGE_PMD`). Says whether none maps it any more.
    pub(crate) fn unmap_file(self, pfn: Pfn) -> bool {
        if self.pages().order_of(pfn) == Order::PAGEBLOCK && self.lru().page(pfn).has(PageFlag::SwapBacked) {
            self.open_whole(pfn);
        }
        self.try_to_unmap(pfn, Leave::Nothing)
    }

    fn open_whole(self, pfn: Pfn) {
        self.each_place(pfn, |space, stretch| {
            if let Some(table) = space.table(stretch.first) {
                let mut held = table.lock(self.machine());
                if held.huge().is_present() && held.huge().head() == pfn {
                    self.tables().split_entry(space, stretch.first, &mut held);
                }
            }
            ControlFlow::Continue(())
        });
    }

    fn unmap_in(self, pfn: Pfn, place: (&AddressSpace<M>, Stretch), leave: Leave) {
        let (space, stretch) = place;
        let Some(table) = space.table(stretch.first) else { return };
        let mut held = table.lock(self.machine());
        if matches!(leave, Leave::Swap(_)) && held.huge().is_present() && held.huge().head() == pfn {
            // Each part has a slot of its own.
            self.tables().split_entry(space, stretch.first, &mut held);
        }
        let huge = held.huge();
        for part in stretch.parts(huge) {
            let entry = held.entry(part);
            if !entry.is_present() || entry.head() != pfn {
                continue;
            }
            let leave = leave.of_part(entry.pfn().0 - pfn.0);
            self.machine().spend(Chore::RmapStep, 1);
            let left = match leave {
                Leave::Nothing => Entry::NONE,
                Leave::Migration => entry.migrating(),
                Leave::Swap(slot) => Entry::swapped(slot),
            };
            // The latest bits: the processor may have set some since.
            let last = if huge == Entry::NONE { held.set(part, left) } else { held.set_huge(left) };
            if self.is_wanted_again(pfn, (last, leave)) {
                if huge == Entry::NONE {
                    held.set(part, last);
                } else {
                    held.set_huge(last);
                }
                continue;
            }
            self.unmapped(pfn, space, (last, leave));
            if let Leave::Swap(slot) = leave {
                if space.holds_zeros(self.machine(), part) {
                    self.swap().note_zeros(slot);
                }
            }
        }
    }

    /// Whether a page that its owner gave away (`MADV_FREE`) was written since, and is his again; `last` mapped it.
    fn is_wanted_again(self, pfn: Pfn, (last, leave): (Entry, Leave)) -> bool {
        let page = self.lru().page(pfn);
        let given_away = matches!(page.mapping(), Mapping::Anon(_)) && !page.has(PageFlag::SwapBacked);
        let again = leave == Leave::Nothing && given_away && last.has(bit::DIRTY);
        if again {
            page.set(PageFlag::SwapBacked);
        }
        again
    }

    /// The entry `last` mapped the page at `pfn` and has been replaced.
    fn unmapped(self, pfn: Pfn, space: &AddressSpace<M>, replaced: (Entry, Leave)) {
        let (last, leave) = replaced;
        if last.has(bit::DIRTY) {
            self.files().mark_dirty(pfn);
        }
        if let Leave::Swap(slot) = leave {
            self.swap().swap_get(slot);
            space.stat.count_swapped(1);
        }
        let whole = !last.has(bit::PART) && self.pages().order_of(pfn).pages() > 1;
        let pages = if whole { self.pages().order_of(pfn).pages() } else { 1 };
        let page = self.lru().page(pfn);
        space.stat.count_pages(PageKind::of(page), self.pages().node_of_page(pfn), -i64::from(pages));
        page.sub_mapped();
        let last_reference = page.put();
        debug_assert!(!last_reference, "the caller has one");
    }

    /// Puts `new` in the place of `old`, which [`RmapDoor::try_to_unmap`] left marked as migrating, in all page tables. `old`
    /// still says what it belongs to; each entry takes a reference to `new`.
    pub(crate) fn remap(self, old: Pfn, new: Pfn) {
        self.each_place(old, |space, stretch| {
            let Some(table) = space.table(stretch.first) else { return ControlFlow::Continue(()) };
            let mut held = table.lock(self.machine());
            let huge = held.huge();
            for part in stretch.parts(huge) {
                let entry = held.entry(part);
                if entry.migrating_from() != Some(old) {
                    continue;
                }
                self.machine().spend(Chore::RmapStep, 1);
                let moved = Pfn(new.0 + (entry.pfn().0 - old.0));
                let mapped = Entry::of(moved, entry.0 & bit::KEPT).with(bit::ACCESSED);
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
                let node = self.pages().node_of_page(new);
                space.stat.count_pages(PageKind::of(page), node, i64::from(pages));
            }
            ControlFlow::Continue(())
        });
    }
}

/// Virtual pages of one table that may map a page: one, or, where a huge page is mapped in parts, as many as the table may
/// have of them, whatever has come in the place of some.
#[derive(Clone, Copy)]
struct Stretch {
    first: Vpn,
    pages: u32,
}

impl Stretch {
    /// The virtual pages whose entries are to be looked at; `huge` is the table's huge entry.
    fn parts(self, huge: Entry) -> impl Iterator<Item = Vpn> {
        let count = if huge == Entry::NONE { self.pages } else { 1 };
        (0..count).map(move |part| self.first.add(part))
    }
}

/// The `pages` from `first` on, table by table: a huge page that was moved in parts may lie in two, and so may a folio of a file.
fn stretches(first: Vpn, pages: u32) -> impl Iterator<Item = Stretch> {
    let in_first = pages.min(PAGEBLOCK_PAGES - first.slot() as u32);
    let rest = Stretch { first: Vpn(first.0.wrapping_add(in_first)), pages: pages - in_first };
    [Stretch { first, pages: in_first }, rest].into_iter().filter(|stretch| stretch.pages > 0)
}
