//! Huge pages in address spaces: the fault that maps one, splitting the entry into 512, and splitting the page itself.

use super::entry::{Entry, bit};
use super::fault::{FaultError, FaultKind, Faulted, Site};
use super::space::AddressSpace;
use super::table::Held;
use super::{SpacesDoor, SpacesGround};
use super::{Touch, Vpn};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::stat::SlowEvents;

const CLEAN: [PageFlag; 1] = [PageFlag::SwapBacked];
const DIRTY: [PageFlag; 2] = [PageFlag::SwapBacked, PageFlag::Dirty];

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Maps a huge page if the region allows one here and there is one. `None`: a small page it is to be.
    pub(super) fn fault_huge(self, site: &Site<'_, M>) -> Option<Faulted> {
        let start = site.vpn.table_start();
        let wanted = site.region.has_table(start) && self.may_be_huge(&site.region);
        if !wanted || site.table.lock(self.machine()).state.used > 0 {
            return None;
        }
        self.collapses().wake_khugepaged();
        self.machine().spend(Chore::Fault, 1);
        let Ok(pfn) = self.alloc_huge(&site.region) else {
            SlowEvents::bump(&self.own().events.thp_fault_fallback);
            return None;
        };
        let page = self.lru().page(pfn);
        page.init(Mapping::Anon(site.space.family), start.0, &[PageFlag::SwapBacked]);
        page.note_placement(site.region.placement);
        let held = site.lock(self.machine(), Entry::NONE).filter(|held| held.state.used == 0);
        let Some(mut held) = held else {
            self.lru().put_page(pfn);
            return None;
        };
        page.add_mapped();
        held.set_huge(Entry::of(pfn, bit::WRITE | bit::ACCESSED | bit::DIRTY));
        site.space.count_placed(self.pages().node_of_page(pfn), i64::from(PAGEBLOCK_PAGES));
        site.space.count_huge(1);
        SlowEvents::bump(&self.own().events.thp_fault_alloc);
        self.lru().lru_add(pfn);
        Some(Faulted { pfn: pfn.add(site.vpn.slot() as u32), kind: FaultKind::Huge })
    }

    /// Replaces the huge entry of the table of `vpn`, which is `held`, by 512 entries, and makes 512 pages of the page if
    /// nobody else refers to it.
    pub(super) fn split_table(self, space: &AddressSpace<M>, vpn: Vpn, held: &mut Held<'_, M>) {
        let huge = held.huge();
        self.split_entry(space, vpn, held);
        if huge.is_present() {
            self.split_page(huge.pfn(), vpn.table_start(), (held, 0));
        }
    }

    /// Replaces the huge entry by 512 that map its parts, or say that these are on their way; the page stays in one piece.
    fn split_entry(self, space: &AddressSpace<M>, vpn: Vpn, held: &mut Held<'_, M>) {
        let huge = held.set_huge(Entry::NONE);
        if huge.is_present() {
            let page = self.lru().page(huge.pfn());
            for _ in 1..PAGEBLOCK_PAGES {
                page.get();
                page.add_mapped();
            }
            space.count_huge(-1);
            SlowEvents::bump(&self.own().events.thp_split_pmd);
        }
        if huge != Entry::NONE {
            let part = |part: u32| Entry(huge.0 + u64::from(part)).with(bit::PART);
            (0..PAGEBLOCK_PAGES).for_each(|slot| {
                held.set(vpn.table_start().add(slot), part(slot));
            });
        }
    }

    /// Makes 512 pages of the huge page at `head`, whose parts the table of `start`, which is held, maps, if nobody else
    /// but `extra` references of the caller's, which stay with the first, refers to it. Otherwise it stays in one piece
    /// until its last part is given back.
    fn split_page(self, head: Pfn, start: Vpn, (held, extra): (&mut Held<'_, M>, u32)) -> bool {
        let page = self.lru().page(head);
        let mapping = page.mapping();
        if !page.freeze(PAGEBLOCK_PAGES + extra) {
            SlowEvents::bump(&self.own().events.thp_deferred_split_page);
            return false;
        }
        let (dirty, placed) = (page.has(PageFlag::Dirty), page.has(PageFlag::Placed));
        // Off its list, where it is found by its head; who meets it there gets no reference.
        self.lru().lru_forget(head);
        self.pages().split(head, Order::PAGEBLOCK).expect("a mapped huge page is an allocated block");
        for part in 0..PAGEBLOCK_PAGES {
            let (pfn, vpn) = (head.add(part), start.add(part));
            let page = self.lru().page(pfn);
            page.init(mapping, vpn.0, if dirty { &DIRTY } else { &CLEAN });
            if placed {
                page.set(PageFlag::Placed);
            }
            page.add_mapped();
            held.set(vpn, held.entry(vpn).without(bit::PART));
        }
        (0..extra).for_each(|_| page.get());
        (0..PAGEBLOCK_PAGES).for_each(|part| self.lru().lru_add(head.add(part)));
        SlowEvents::bump(&self.own().events.thp_split_page);
        true
    }

    /// Splits the huge page at `head`, to which the caller has one reference, into 512 pages, if one address space alone
    /// maps it, all of it. The caller's reference stays with the first. Says whether it did.
    pub(crate) fn split_huge_page(self, head: Pfn) -> bool {
        let page = self.lru().page(head);
        let Mapping::Anon(family) = page.mapping() else { return false };
        let Some(family) = self.family(family) else { return false };
        let members = family.members.lock_local(self.machine());
        let vpn = Vpn(page.index());
        members.iter().any(|space| {
            let Some(table) = space.table(vpn) else { return false };
            let mut held = table.lock(self.machine());
            if held.huge().is_present() && held.huge().pfn() == head {
                self.split_entry(space, vpn, &mut held);
            }
            let whole = (0..PAGEBLOCK_PAGES).all(|part| held.entry(vpn.add(part)).head() == head);
            whole && self.split_page(head, vpn, (&mut held, 1))
        })
    }

    /// Splits the huge page that maps `vpn` of `space`, if one does. Says whether there was one.
    pub fn split_huge(self, space: &AddressSpace<M>, vpn: Vpn) -> bool {
        let Some(table) = space.tables.get(vpn) else { return false };
        let mut held = table.lock(self.machine());
        let there = held.huge().is_present();
        self.split_table(space, vpn, &mut held);
        there
    }

    /// Writes to each of the `pages` from `start` on.
    ///
    /// # Errors
    /// As [`SpacesDoor::fault`], at the first page that cannot be had.
    pub fn populate(self, space: &AddressSpace<M>, start: Vpn, pages: u32) -> Result<(), FaultError> {
        let mut next = start.0;
        while next < start.0 + pages {
            let done = self.touch_page(space, Vpn(next), Touch::Write)?;
            next += match done.1 {
                Some(FaultKind::Huge) => PAGEBLOCK_PAGES - Vpn(next).slot() as u32,
                _ => 1,
            };
        }
        Ok(())
    }
}
