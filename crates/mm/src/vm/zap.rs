//! Unmapping: entries are cleared under their table's lock, and the pages behind them given back afterwards in batches,
//! of which each holds a pageset's lock once (`mmu_gather`, `free_unref_folios`).

use alloc::vec::Vec;

use super::ReadPattern;
use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::region::Region;
use super::space::{AddressSpace, says_use};
use super::table::Held;
use super::{SpacesDoor, SpacesGround, TablesDoor};
use super::{Table, Vpn};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Access, Chore, Line, LineKind, Machine};
use crate::lru::page::Mapping;
use crate::rules::policy::EmptyTableRule;

/// What clearing entries left to be done: references to give back.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    pages: Vec<Pfn>,
    /// Of huge ones that are mapped elsewhere still, the head, and which frame, if not all, was mapped here.
    parts: Vec<(Pfn, Option<Pfn>)>,
    slots: Vec<u32>,
    /// Whether entries say that a page of a file was used.
    uses: bool,
    /// Whether a page that was locked into memory is among them.
    unlocked: bool,
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Gives the memory of the `pages` from `start` on back; what is mapped stays so, and reads as zeros when it is touched
    /// again (`MADV_DONTNEED`; of a file's region, what the file has).
    pub fn discard(self, space: &AddressSpace<M>, start: Vpn, pages: u32) {
        self.machine().spend(Chore::Syscall, 1);
        let range = (start, Vpn(start.0.saturating_add(pages)));
        for (range, pattern) in patterns(self.machine(), space, range) {
            self.tables().zap(space, range, pattern);
            self.tables().free_emptied(space, range);
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// Clears all entries of `space` from `start` to before `end`, of a region that is read by `pattern`, and gives back what they referred to.
    /// Where the region is to go it is gone already.
    pub(super) fn zap(self, space: &AddressSpace<M>, (start, end): (Vpn, Vpn), pattern: ReadPattern) {
        let mut is_told = false;
        for (first, table) in space.tables.within(start, end) {
            let mut gone = Gone { uses: says_use(pattern, self.rules().reclaim.recency), ..Gone::default() };
            let range = (start.max(first), end.min(first.add(PAGEBLOCK_PAGES)));
            self.zap_table(space, table, range, &mut gone);
            // Once for all: the kernel gathers what goes (`mmu_gather`), thousands of pages at a time.
            if !is_told && !gone.pages.is_empty() {
                self.machine().flush_tlb(space.id);
                is_told = true;
            }
            self.release(&gone);
        }
    }

    fn zap_table(self, space: &AddressSpace<M>, table: &Table<M>, range: (Vpn, Vpn), gone: &mut Gone) {
        let (start, end) = range;
        let mut held = table.lock(self.machine());
        if held.huge() != Entry::NONE {
            if end.0 - start.0 == PAGEBLOCK_PAGES {
                let entry = held.set_huge(Entry::NONE);
                if entry.is_present() {
                    self.machine().spend(Chore::Unmap, 1);
                }
                self.drop_entry(space, entry, Order::PAGEBLOCK, gone);
                return;
            }
            self.open_table(space, start, &mut held);
        }
        self.zap_small(space, &mut held, range, gone);
    }

    fn zap_small(self, space: &AddressSpace<M>, held: &mut Held<'_, M>, range: (Vpn, Vpn), gone: &mut Gone) {
        if held.state.used == 0 {
            return;
        }
        let mut last = None;
        for vpn in (range.0.0..range.1.0).map(Vpn) {
            if held.entry(vpn) != Entry::NONE {
                let entry = held.set(vpn, Entry::NONE);
                // Parts of a page that small entries map are counted together (`folio_remove_rmap_ptes`).
                let is_next = entry.is_smaller_part() && last == Some(entry.head());
                if entry.is_present() && !is_next {
                    self.machine().spend(Chore::Unmap, 1);
                }
                if entry.is_present() && !is_next && gone.uses {
                    self.note_use(entry);
                }
                last = entry.is_present().then(|| entry.head());
                self.drop_entry(space, entry, Order::ZERO, gone);
            }
        }
    }

    /// What is mapped of a file and was touched there counts as used by a call when it is unmapped (`zap_present_folio_ptes`).
    fn note_use(self, entry: Entry) {
        let head = entry.head();
        let is_file = matches!(self.lru().page(head).mapping(), Mapping::File(_));
        if is_file && entry.has(bit::ACCESSED) {
            self.lru().mark_accessed(head);
        }
    }

    /// `entry`, which maps a page of `order`, has been cleared.
    fn drop_entry(self, space: &AddressSpace<M>, entry: Entry, order: Order, gone: &mut Gone) {
        if let Some(slot) = entry.slot() {
            space.stat.count_swapped(-1);
            gone.slots.push(slot);
        }
        if !entry.is_present() {
            // Of a page on its way the mover holds the reference.
            return;
        }
        let head = entry.head();
        self.machine().touch(Line { kind: LineKind::Frame, index: head.0 }, Access::Write);
        let (page, node) = (self.lru().page(head), self.pages().node_of_page(head));
        space.stat.count_pages(PageKind::of(page), node, -i64::from(order.pages()));
        if entry.has(bit::DIRTY) && matches!(page.mapping(), Mapping::File(_)) {
            self.files().mark_dirty(head);
        }
        if page.sub_mapped() {
            gone.unlocked |= self.unevictable().munlock(head);
            self.swap().unmapped(head);
        }
        if page.mapped() > 0 && (entry.has(bit::PART) || order > Order::ZERO) {
            gone.parts.push((head, entry.has(bit::PART).then(|| entry.pfn())));
        }
        gone.pages.push(head);
    }

    fn release(self, gone: &Gone) {
        for &(head, part) in &gone.parts {
            self.deferred().part_gone(head, part);
        }
        if gone.unlocked {
            // Batches have references to them (`free_pages_and_swap_cache`).
            self.lru().lru_drain_cpu(self.machine().cpu());
        }
        self.lru().put_pages(&gone.pages);
        for &slot in &gone.slots {
            self.swap().swap_free(slot);
        }
    }

    /// Frees the frames of the tables from `start` to before `end` that a program's advice has emptied, all of each: those that huge pages
    /// brought with them, and others as the rule has it.
    fn free_emptied(self, space: &AddressSpace<M>, (start, end): (Vpn, Vpn)) {
        let frees_small = self.rules().reclaim.empty_table == EmptyTableRule::FreedByAdvice;
        for (first, table) in space.tables.within(start, end) {
            let held = table.lock(self.machine());
            let is_within = start <= first && first.add(PAGEBLOCK_PAGES) <= end;
            if is_within && (frees_small || !held.state.is_small) {
                self.free_if_empty(space, held);
            }
        }
    }

    fn free_if_empty(self, space: &AddressSpace<M>, mut held: Held<'_, M>) {
        if held.state.used > 0 {
            return;
        }
        held.state.is_small = false;
        let frame = held.state.frame.take();
        drop(held);
        if let Some(frame) = frame {
            space.stat.count_tables(-1);
            self.give_back(frame);
        }
    }

    /// Frees the frames of tables of all levels between the pages `range` that no region needs any more; the regions beside it end and
    /// begin at `neighbours`.
    pub(super) fn free_tables(self, space: &AddressSpace<M>, range: (Vpn, Vpn), neighbours: (Vpn, Vpn)) {
        for (first, table) in space.tables.within(range.0, range.1) {
            let last = first.0.saturating_add(PAGEBLOCK_PAGES);
            if first < neighbours.0 || last > neighbours.1.0 {
                continue;
            }
            self.free_if_empty(space, table.lock(self.machine()));
        }
        self.free_upper(space, range, neighbours);
    }
}

/// The parts of `range` that `space` maps, and how each is read.
fn patterns<M: Machine>(
    machine: &M,
    space: &AddressSpace<M>,
    range: (Vpn, Vpn),
) -> Vec<((Vpn, Vpn), ReadPattern)> {
    let regions = space.regions.lock_local(machine);
    let part = |region: &Region<M>| (region.start.max(range.0), region.end.min(range.1));
    regions.within(range.0, range.1).map(|region| (part(region), region.pattern)).collect()
}
