//! Shared memory in pages of several frames, of 16 KiB to 2 MiB (`shmem_allowable_huge_orders`): which of it may have them, the fault that
//! brings one, and the huge entry that maps one of 2 MiB (`do_set_pmd`; docs/rules/huge-pages.md#shared).
//!
//! A huge page belongs to the file. An entry that maps all of it is no more than an entry: where a part of it is to go or to change it is
//! cleared, and who touches the rest finds the page again. A table that has such an entry has no frame of its own.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::fault::{FaultKind, Faulted, Found, Site};
use super::region::{Backing, HugePages, Region};
use super::space::AddressSpace;
use super::table::{Held, Table};
use super::{FaultDoor, File, FileKind, MemoryFile, SpacesGround, TablesDoor, Touch, Vpn};
use crate::cache::{Asker, Part};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES};
use crate::ground::machine::{Chore, Machine};
use crate::memcg::Effort;
use crate::pages::request::AllocError;
use crate::pages::stat::SlowEvents;
use crate::rules::knobs::Knob;
use crate::rules::policy::SharedHugeRule;

/// Values of `shmem_enabled`.
const ALWAYS: u64 = 1;
const WITHIN_SIZE: u64 = 2;
const ADVISE: u64 = 3;
const DENY: u64 = 4;
const FORCE: u64 = 5;
/// Of a size's file: as `shmem_enabled` of all sizes says.
const INHERIT: u64 = 4;

/// A size: its order, and the knob that says which memory may have it.
struct Size {
    order: Order,
    knob: Knob,
}

const fn size(order: u8, knob: Knob) -> Size {
    match Order::new(order) {
        Some(order) => Size { order, knob },
        None => panic!("no such order"),
    }
}

const HUGE: Size = size(9, Knob::Shared2048kB);

/// The largest first, as a fault tries them.
const SIZES: [Size; 8] = [
    HUGE,
    size(8, Knob::Shared1024kB),
    size(7, Knob::Shared512kB),
    size(6, Knob::Shared256kB),
    size(5, Knob::Shared128kB),
    size(4, Knob::Shared64kB),
    size(3, Knob::Shared32kB),
    size(2, Knob::Shared16kB),
];

/// What came of a size that was tried.
enum Tried {
    Added(Part),
    /// There is no such block.
    NoBlock,
    /// A single page it is to be: somebody was earlier, or there is no room in the group.
    NotNow,
}

impl<M: Machine> Region<M> {
    /// The file in memory behind it, and that's page at its start.
    pub(super) fn shared_file(&self) -> Option<(&Arc<File<M>>, u32)> {
        match &self.backing {
            Backing::Shared { file, first } | Backing::Private { file, first } => {
                (file.kind() == FileKind::Memory).then_some((file, *first))
            }
            Backing::Anonymous => None,
        }
    }

    /// Whether a fault that is such a touch maps pages of a file in memory itself, and not copies.
    pub(super) fn maps_shared(&self, touch: Touch) -> bool {
        let is_copied = matches!(self.backing, Backing::Private { .. }) && touch == Touch::Write;
        !is_copied && self.shared_file().is_some()
    }

    /// Whether an entry can map all of a huge page of a file in memory at `vpn` (`thp_vma_suitable_order`).
    pub(super) fn has_whole(&self, vpn: Vpn) -> bool {
        self.has_folio(vpn, Order::PAGEBLOCK)
    }

    /// Whether the folio of `order` that a file in memory has, or would have, at `vpn` lies in the region, and at a multiple of its size
    /// (`thp_vma_suitable_orders`).
    pub(super) fn has_folio(&self, vpn: Vpn, order: Order) -> bool {
        let pages = order.pages();
        let start = Vpn(vpn.0 / pages * pages);
        let in_step = |first: u32| first % pages == self.start.0 % pages;
        self.start <= start
            && start.add(pages) <= self.end
            && self.shared_file().is_some_and(|(_, first)| in_step(first))
    }
}

impl<M: Machine> Site<'_, M> {
    /// The table's lock, if nothing is there, not even a frame for entries, and the regions are as they were.
    fn lock_whole<'a>(&'a self, machine: &'a M) -> Option<Held<'a, M>> {
        let held = self.table.lock(machine);
        let is_nothing = held.huge() == Entry::NONE && held.state.used == 0 && held.state.frame.is_none();
        (is_nothing && self.space.generation() == self.generation).then_some(held)
    }
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Whether huge pages may be put in the place of small ones of shared memory that `region` has at `vpn`, or come there at a fault.
    pub(super) fn may_be_huge_shared(self, region: &Region<M>, vpn: Vpn) -> bool {
        let Some((file, first)) = region.shared_file().filter(|_| region.has_whole(vpn)) else {
            return false;
        };
        let index = first + (vpn.0 - region.start.0);
        self.may_be_shared(region, (file, index), &HUGE)
    }

    /// The table for a fault of shared memory, which gets a frame only where small entries come to it.
    ///
    /// # Errors
    /// If there is no memory for the tables above it.
    pub(super) fn table_of_shared<'s>(
        self,
        space: &'s AddressSpace<M>,
        vpn: Vpn,
        wanted: &impl Fn() -> bool,
    ) -> Result<&'s Table<M>, AllocError> {
        self.tables().give_upper(space, vpn, wanted)?;
        Ok(space.tables.get_or_make(self.machine(), vpn))
    }

    /// Whether the folio that page `index` of `file` is in may be of `size`, for who maps it by `region`.
    fn may_be_shared(self, region: &Region<M>, (file, index): (&File<M>, u32), size: &Size) -> bool {
        let advised = region.huge == HugePages::Advised;
        let within = advised || file.has_all_of(index, size.order);
        let by_word = |word: u64| match word {
            ALWAYS => true,
            WITHIN_SIZE => within,
            ADVISE => advised,
            _ => false,
        };
        let is_huge = size.order == Order::PAGEBLOCK;
        let allows = |of_size: u64, of_all: u64| match (file.memory(), of_all) {
            _ if region.huge == HugePages::Never => false,
            (MemoryFile::Unnamed, FORCE) => of_size == INHERIT,
            (_, FORCE) => is_huge,
            (_, DENY) | (MemoryFile::Mounted, _) => false,
            (MemoryFile::OwnMount, of_all) => is_huge && by_word(of_all),
            (MemoryFile::Unnamed, of_all) => by_word(if of_size == INHERIT { of_all } else { of_size }),
        };
        let [of_size, of_all] = [size.knob, Knob::SharedHugepage].map(|knob| self.knobs().get(knob));
        self.knobs().decide(self.machine(), Knob::SharedHugepage, |of_all| allows(of_size, of_all));
        self.knobs().decide(self.machine(), size.knob, |of_size| allows(of_size, of_all))
    }

    /// Adds a folio of several pages to `file` for the fault at `site`, which is for its page `index`, if nothing is there and it may have
    /// one. Gives that page, with a reference.
    pub(super) fn add_shared(self, site: &Site<'_, M>, file: &File<M>, index: u32) -> Option<Part> {
        for size in &SIZES {
            if !self.may_be_shared(&site.region, (file, index), size) {
                continue;
            }
            self.collapses().enter(site.space);
            let fits = self.rules().reclaim.shared_huge != SharedHugeRule::Within
                || site.region.has_folio(site.vpn, size.order);
            if !fits || !self.shared().has_room_for(file, index, size.order) {
                continue;
            }
            match self.try_shared(site, file, (index, size.order)) {
                Tried::Added(part) => return Some(part),
                Tried::NoBlock => {}
                Tried::NotNow => return None,
            }
        }
        None
    }

    fn try_shared(self, site: &Site<'_, M>, file: &File<M>, (index, order): (u32, Order)) -> Tried {
        let is_huge = order == Order::PAGEBLOCK;
        let count = |event| is_huge.then(|| SlowEvents::bump(event));
        let events = &self.own().events;
        let Ok(head) = self.take_huge(site, order) else {
            count(&events.thp_file_fallback);
            return Tried::NoBlock;
        };
        let effort = match self.rules().reclaim.shared_huge {
            SharedHugeRule::Beyond => Effort::Full,
            SharedHugeRule::BeyondIfRoom | SharedHugeRule::Within => {
                Effort::of(self.huge_urgency(&site.region))
            }
        };
        let from = Asker { effort, ..site.asker() };
        match self.shared().add_block(file, (index, head), from) {
            Ok(Some(part)) => {
                count(&events.thp_file_alloc);
                Tried::Added(part)
            }
            Ok(None) => Tried::NotNow,
            Err(_) => {
                count(&events.thp_file_fallback);
                count(&events.thp_file_fallback_charge);
                Tried::NotNow
            }
        }
    }

    /// Maps all of the huge page that `found` is part of, if the region and the table have room for it (`do_set_pmd`); the reference to it
    /// becomes the entry's.
    pub(super) fn map_whole(self, site: &Site<'_, M>, file: &File<M>, found: &Found) -> Option<Faulted> {
        let part = found.part;
        if part.order != Order::PAGEBLOCK || !site.region.has_whole(site.vpn) {
            return None;
        }
        let mut held = site.lock_whole(self.machine())?;
        let head = part.head();
        let (page, node) = (self.lru().page(head), self.pages().node_of_page(head));
        page.add_mapped();
        held.set_huge(Entry::of(head, Self::file_bits(site, file)));
        site.space.stat.count_pages(PageKind::of(page), node, PAGEBLOCK_PAGES.into());
        SlowEvents::bump(&self.own().events.thp_file_mapped);
        if site.region.locked {
            self.unevictable().mlock(head);
        }
        Some(Faulted { pfn: part.pfn, kind: found.kind(FaultKind::HugeShared), reads: found.reads })
    }

    /// Maps all of the huge page that the page for `site` is part of already.
    pub(super) fn map_whole_there(self, site: &Site<'_, M>, file: &File<M>, index: u32) -> Option<Faulted> {
        if !site.region.has_whole(site.vpn) {
            return None;
        }
        let part = self.shared().page_of_large(file, index)?;
        let mapped = self.map_whole(site, file, &Found::in_memory(part));
        if mapped.is_none() {
            self.lru().put_page(part.head());
        }
        mapped
    }

    /// Maps the huge page of shared memory at `start` whole, for a program that asked for one there, whatever of it was mapped in parts
    /// (`collapse_pte_mapped_thp`). Says whether it is mapped so.
    pub(super) fn map_collapsed(self, space: &AddressSpace<M>, start: Vpn) -> bool {
        let Some((region, generation)) = space.region_of(self.machine(), start) else { return false };
        let Some((file, first)) = region.shared_file().map(|(file, first)| (Arc::clone(file), first)) else {
            return false;
        };
        let index = first + (start.0 - region.start.0);
        let Some(table) = space.table(start) else { return false };
        self.tables().clear_parts(space, start, table);
        let site = Site { space, region, generation, table, vpn: start, touch: Touch::Read };
        self.map_whole_there(&site, &file, index).is_some()
    }

    /// Sees to it that the table of `site` has a frame for small entries, unless the regions have changed.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn give_frame(self, site: &Site<'_, M>) -> Result<(), AllocError> {
        let is_valid = || site.space.generation() == site.generation;
        self.tables().give_table(site.space, site.vpn, is_valid).map(drop)
    }
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// Whether the huge entry maps shared memory, or did and is to again.
    pub(super) fn is_shared_whole(self, huge: Entry) -> bool {
        (huge.is_present() || huge.migrating_from().is_some()) && self.shared().is_shared(huge.head())
    }

    /// Clears the entries of the table that begins at `start` if all map parts of one huge page of shared memory, and takes the table's frame.
    fn clear_parts(self, space: &AddressSpace<M>, start: Vpn, table: &Table<M>) {
        let mut held = table.lock(self.machine());
        let entries = (0..PAGEBLOCK_PAGES).map(|slot| (start.add(slot), held.entry(start.add(slot))));
        let mapped: Vec<(Vpn, Entry)> = entries.filter(|(_, entry)| *entry != Entry::NONE).collect();
        let head = mapped.first().map(|(_, entry)| entry.head());
        let is_part = |entry: &Entry| {
            entry.is_present()
                && entry.has(bit::PART)
                && !entry.is_smaller_part()
                && Some(entry.head()) == head
        };
        let is_shared = head.is_none_or(|head| self.shared().is_shared(head));
        if held.huge() != Entry::NONE || !is_shared || !mapped.iter().all(|(_, entry)| is_part(entry)) {
            return;
        }
        let mut gone = Vec::new();
        for (vpn, entry) in mapped {
            held.set(vpn, Entry::NONE);
            let (page, node) = (self.lru().page(entry.head()), self.pages().node_of_page(entry.head()));
            page.sub_mapped();
            space.stat.count_pages(PageKind::of(page), node, -1);
            gone.push(entry.head());
        }
        let frame = held.state.frame.take();
        drop(held);
        self.machine().flush_tlb(space.id);
        self.lru().put_pages(&gone);
        if let Some(frame) = frame {
            space.stat.count_tables(-1);
            self.give_back(frame);
        }
    }

    /// `huge`, which mapped shared memory in one piece, has been cleared (`__split_huge_pmd_locked`).
    pub(super) fn drop_whole(self, space: &AddressSpace<M>, huge: Entry) {
        if !huge.is_present() {
            // Of a page on its way the mover holds the reference.
            return;
        }
        SlowEvents::bump(&self.own().events.thp_split_pmd);
        self.machine().spend(Chore::SplitEntry, 1);
        self.machine().flush_tlb(space.id);
        let head = huge.head();
        let (page, node) = (self.lru().page(head), self.pages().node_of_page(head));
        space.stat.count_pages(PageKind::of(page), node, -i64::from(PAGEBLOCK_PAGES));
        if page.sub_mapped() {
            self.unevictable().munlock(head);
        }
        self.lru().put_page(head);
    }
}
