//! Huge pages in address spaces: the fault that maps one, splitting the entry into 512, and splitting the page itself.

use alloc::vec::Vec;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::fault::{FaultError, FaultKind, Faulted, Site};
use super::space::AddressSpace;
use super::table::Held;
use super::{FaultDoor, SpacesDoor, SpacesGround, TablesDoor};
use super::{Touch, Vpn};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::stat::SlowEvents;
use crate::rules::policy::DeferredSplitRule;
use crate::vm::rmap::Leave;

const CLEAN: [PageFlag; 1] = [PageFlag::SwapBacked];
const DIRTY: [PageFlag; 2] = [PageFlag::SwapBacked, PageFlag::Dirty];

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Maps a huge page if the region allows one here and there is one. `None`: a small page it is to be.
    pub(super) fn fault_huge(self, site: &Site<'_, M>) -> Option<Faulted> {
        let start = site.vpn.table_start();
        let wanted = site.region.has_table(start) && self.spaces().may_be_huge(&site.region);
        let has_entries = |held: Held<'_, M>| held.state.used > 0 || held.state.is_small;
        if !wanted || has_entries(site.table.lock(self.machine())) {
            return None;
        }
        self.collapses().enter(site.space);
        self.machine().spend(Chore::Fault, 1);
        if site.touch == Touch::Read && self.spaces().uses_huge_zero() {
            return self.map_huge_zeros(site);
        }
        self.install_huge(site, Entry::NONE)
    }

    /// A fault was to get a huge page, and there is none.
    pub(super) fn count_huge_fallback(self, space: &AddressSpace<M>) {
        SlowEvents::bump(&self.own().events.thp_fault_fallback);
        space.stat.count_huge_fallback();
    }

    /// Maps a huge page in the place of `expected`, which is that of zeros or nothing at all, if there is one.
    pub(super) fn install_huge(self, site: &Site<'_, M>, expected: Entry) -> Option<Faulted> {
        let Ok(pfn) = self.alloc_huge(site, Order::PAGEBLOCK) else {
            self.count_huge_fallback(site.space);
            return None;
        };
        let (page, index) = (self.lru().page(pfn), site.region.anon_index(site.vpn.table_start()));
        page.init(Mapping::Anon(site.space.family), index, &[PageFlag::SwapBacked]);
        page.note_placement(site.region.placement);
        self.deferred().begin_huge(pfn);
        let used = u32::from(expected != Entry::NONE);
        let held = site.lock(self.machine(), expected).filter(|held| held.state.used == used);
        let Some(mut held) = held else {
            self.lru().put_page(pfn);
            return None;
        };
        page.add_mapped();
        let write = if site.region.protection.allows(Touch::Write) { bit::WRITE } else { 0 };
        held.set_huge(Entry::of(pfn, write | bit::ACCESSED | bit::DIRTY | bit::EXCLUSIVE));
        let node = self.pages().node_of_page(pfn);
        site.space.stat.count_pages(PageKind::Anon, node, PAGEBLOCK_PAGES.into());
        SlowEvents::bump(&self.own().events.thp_fault_alloc);
        if site.region.locked {
            self.unevictable().mlock_new(pfn);
        }
        self.lru().lru_add_by(pfn, site.by());
        Some(Faulted { pfn: pfn.add(site.vpn.slot() as u32), kind: FaultKind::Huge, reads: 0 })
    }
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// Replaces the huge entry of the table of `vpn`, which is `held`, by 512 entries, for part of it is to go or to be changed. The
    /// page stays in one piece, or is split too, as the policy has it.
    pub(super) fn open_table(self, space: &AddressSpace<M>, vpn: Vpn, held: &mut Held<'_, M>) {
        if self.rules().reclaim.deferred_split == DeferredSplitRule::SplitsAtOnce {
            self.split_table(space, vpn, held);
        } else {
            self.split_entry(space, vpn, held);
        }
    }

    /// The same of what maps `vpn` of `space`, if anything does.
    pub(super) fn open_at(self, space: &AddressSpace<M>, vpn: Vpn) {
        if let Some(table) = space.tables.get(vpn) {
            self.open_table(space, vpn, &mut table.lock(self.machine()));
        }
    }

    /// Replaces the huge entry of the table of `vpn`, which is `held`, by 512 entries, and makes 512 pages of the page if
    /// nobody else refers to it.
    pub(super) fn split_table(self, space: &AddressSpace<M>, vpn: Vpn, held: &mut Held<'_, M>) {
        let huge = held.huge();
        self.split_entry(space, vpn, held);
        if huge.is_present() && !self.shared().is_shared(huge.pfn()) {
            let unmapped = self.split_page(huge.pfn(), vpn.table_start(), (held, 0));
            debug_assert!(unmapped.is_none_or(|parts| parts.is_empty()), "its entry mapped all of it");
        }
    }

    /// Replaces the huge entry by 512 that map its parts, or say that these are on their way, or by nothing, if it maps shared memory; the
    /// page stays in one piece.
    pub(super) fn split_entry(self, space: &AddressSpace<M>, vpn: Vpn, held: &mut Held<'_, M>) {
        let huge = held.set_huge(Entry::NONE);
        if huge == Entry::NONE {
            return;
        }
        if self.is_shared_whole(huge) {
            return self.drop_whole(space, huge);
        }
        if huge.is_present() {
            let page = self.lru().page(huge.pfn());
            for _ in 1..PAGEBLOCK_PAGES {
                page.get();
                page.add_mapped();
            }
            space.stat.count_split();
        }
        if huge.is_present() || huge.is_zeros() {
            SlowEvents::bump(&self.own().events.thp_split_pmd);
            self.machine().spend(Chore::SplitEntry, 1);
            self.machine().flush_tlb(space.id);
        }
        // Where there is a huge page of zeros, there is a small one.
        let zeros = huge.is_zeros().then(|| self.own().zeros.frame(self.pages())).flatten();
        let part = |part: u32| match zeros {
            Some(frame) => Entry::zeros(frame).with(huge.0 & bit::BARRED),
            None => Entry(huge.0 + u64::from(part)).part_of(Order::PAGEBLOCK).without(bit::HINTED),
        };
        (0..PAGEBLOCK_PAGES).for_each(|slot| {
            held.set(vpn.table_start().add(slot), part(slot));
        });
    }

    /// Makes single pages of the large page at `head`, parts of which a table, which is held, maps from `start` on, if nobody else
    /// but `extra` references of the caller's, which stay with the first, refers to it. Gives the parts that nobody maps, each with
    /// a reference for the caller to give back. `None`: it stays in one piece.
    pub(super) fn split_page(
        self,
        head: Pfn,
        start: Vpn,
        (held, extra): (&mut Held<'_, M>, u32),
    ) -> Option<Vec<Pfn>> {
        let (page, order) = (self.lru().page(head), self.pages().order_of(head));
        let (mapping, index) = (page.mapping(), page.index());
        let maps = |part: &u32| {
            let entry = held.entry(start.add(*part));
            entry.is_present() && entry.has(bit::PART) && entry.pfn() == head.add(*part)
        };
        let (mapped, unmapped): (Vec<u32>, Vec<u32>) = (0..order.pages()).partition(maps);
        if page.mapped() != mapped.len() as u32 || !page.freeze(mapped.len() as u32 + extra) {
            return None;
        }
        self.own().deferred.forget(self.machine(), head);
        let (dirty, group) = (page.has(PageFlag::Dirty), page.group());
        let kept =
            [PageFlag::Placed, PageFlag::Mlocked, PageFlag::Unevictable].map(|flag| (flag, page.has(flag)));
        // Off its list, where it is found by its head; who meets it there gets no reference.
        self.lru().lru_forget(head);
        self.pages().split(head, order).expect("a mapped large page is an allocated block");
        for part in 0..order.pages() {
            let (pfn, vpn) = (head.add(part), start.add(part));
            let page = self.lru().page(pfn);
            page.set_group(group);
            page.init(mapping, index.wrapping_add(part), if dirty { &DIRTY } else { &CLEAN });
            for (flag, _) in kept.iter().filter(|(_, is_set)| *is_set) {
                page.set(*flag);
            }
            if mapped.binary_search(&part).is_ok() {
                page.add_mapped();
                held.set(vpn, held.entry(vpn).whole());
            }
        }
        (0..extra).for_each(|_| page.get());
        for &part in &mapped {
            self.lru().lru_add(head.add(part));
        }
        self.own().events.split(order);
        Some(unmapped.into_iter().map(|part| head.add(part)).collect())
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Splits the large page at `head`, to which the caller has one reference, into single pages, if one address space alone
    /// maps it, all of it or parts; parts that are not mapped are freed. One of shared memory is taken from all who map it. The caller's
    /// reference stays with the first. Says whether it did.
    pub(crate) fn split_huge_page(self, head: Pfn) -> bool {
        let page = self.lru().page(head);
        if self.shared().is_shared(head) {
            let unmapped = self.rmap().try_to_unmap(head, Leave::Nothing);
            return unmapped && self.shared().split_shared(head);
        }
        let Mapping::Anon(family) = page.mapping() else { return false };
        let Some(family) = self.family(family) else { return false };
        let members = family.members.lock_local(self.machine());
        let unmapped = members.iter().find_map(|member| {
            let mut places = member.places(page.index(), self.pages().order_of(head).pages());
            places.find_map(|vpn| self.split_huge_in(&member.space, vpn, head))
        });
        drop(members);
        let Some(unmapped) = unmapped else { return false };
        self.lru().put_pages(&unmapped);
        true
    }

    /// The same, if it is `space` that maps it, from `vpn` on. One that was moved so that it lies in two tables stays.
    fn split_huge_in(self, space: &AddressSpace<M>, vpn: Vpn, head: Pfn) -> Option<Vec<Pfn>> {
        let pages = self.pages().order_of(head).pages();
        let table = space.table(vpn).filter(|_| vpn.slot() as u32 + pages <= PAGEBLOCK_PAGES)?;
        let mut held = table.lock(self.machine());
        if held.huge().is_present() && held.huge().pfn() == head {
            self.tables().split_entry(space, vpn, &mut held);
        }
        self.tables().split_page(head, vpn, (&mut held, 1))
    }

    /// Splits the huge page that maps `vpn` of `space`, if one does. Says whether there was one.
    pub fn split_huge(self, space: &AddressSpace<M>, vpn: Vpn) -> bool {
        let Some(table) = space.tables.get(vpn) else { return false };
        let mut held = table.lock(self.machine());
        let there = held.huge().is_present();
        self.tables().split_table(space, vpn, &mut held);
        there
    }

    /// Touches each of the `pages` from `start` on, as the kernel does for a program that wants them at once
    /// (`MAP_POPULATE`, `mlock`, `MADV_POPULATE_READ`): each fault counts, and none is an exception.
    ///
    /// # Errors
    /// As [`SpacesDoor::fault`], at the first page that cannot be had.
    pub fn populate(
        self,
        space: &AddressSpace<M>,
        start: Vpn,
        pages: u32,
        touch: Touch,
    ) -> Result<(), FaultError> {
        let mut next = start.0;
        while next < start.0 + pages {
            let done = self.bring_page(space, Vpn(next), touch)?;
            if let Some(kind) = done {
                space.stat.count_populated(kind);
            }
            next += match done.map_or(1, FaultKind::pages) {
                1 => 1,
                pages => pages - Vpn(next).slot() as u32,
            };
        }
        Ok(())
    }
}
