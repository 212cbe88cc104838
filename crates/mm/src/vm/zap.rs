//! Unmapping: entries are cleared under their table's lock, and the pages behind them given back afterwards in batches,
//! of which each holds a pageset's lock once (`mmu_gather`, `free_unref_folios`).

use alloc::vec::Vec;

use super::entry::{Entry, bit};
use super::space::AddressSpace;
use super::table::Held;
use super::{Table, Vpn};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Access, Chore, Line, LineKind, Machine};
use crate::mm::Mm;

/// Pages given back together: `FOLIO_BATCH_SIZE` since 6.10; 15 before, which nothing here depends on.
const BATCH: usize = 31;

/// What clearing entries left to be done: references to give back.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    pages: Vec<Pfn>,
    slots: Vec<u32>,
}

impl<M: Machine> Mm<M> {
    /// Gives the memory of the `pages` from `start` on back; what is mapped stays so, and reads as zeros when it is touched
    /// again (`MADV_DONTNEED`; of a file's region, what the file has).
    pub fn discard(&self, space: &AddressSpace<M>, start: Vpn, pages: u32) {
        self.machine().spend(Chore::Syscall, 1);
        self.zap(space, start, Vpn(start.0.saturating_add(pages)));
    }

    /// Clears all entries of `space` from `start` to before `end` and gives back what they referred to. Where the
    /// region is to go it is gone already.
    pub(super) fn zap(&self, space: &AddressSpace<M>, start: Vpn, end: Vpn) {
        for (first, table) in space.tables.within(start, end) {
            let mut gone = Gone::default();
            let range = (start.max(first), end.min(first.add(PAGEBLOCK_PAGES)));
            self.zap_table(space, table, range, &mut gone);
            self.release(&gone);
        }
    }

    fn zap_table(&self, space: &AddressSpace<M>, table: &Table<M>, range: (Vpn, Vpn), gone: &mut Gone) {
        let (start, end) = range;
        let mut held = table.lock(self.machine());
        if held.huge() != Entry::NONE {
            if end.0 - start.0 == PAGEBLOCK_PAGES {
                let entry = held.set_huge(Entry::NONE);
                self.drop_entry(space, entry, Order::PAGEBLOCK, gone);
                return;
            }
            self.split_table(space, start, &mut held);
        }
        self.zap_small(space, &mut held, range, gone);
    }

    fn zap_small(&self, space: &AddressSpace<M>, held: &mut Held<'_, M>, range: (Vpn, Vpn), gone: &mut Gone) {
        if held.state.used == 0 {
            return;
        }
        for vpn in (range.0.0..range.1.0).map(Vpn) {
            if held.entry(vpn) != Entry::NONE {
                let entry = held.set(vpn, Entry::NONE);
                self.drop_entry(space, entry, Order::ZERO, gone);
            }
        }
    }

    /// `entry`, which maps a page of `order`, has been cleared.
    fn drop_entry(&self, space: &AddressSpace<M>, entry: Entry, order: Order, gone: &mut Gone) {
        if let Some(slot) = entry.slot() {
            space.count_swapped(-1);
            gone.slots.push(slot);
        }
        if !entry.is_present() {
            // Of a page on its way the mover holds the reference.
            return;
        }
        let head = entry.head();
        self.machine().spend(Chore::Unmap, 1);
        self.machine().touch(Line { kind: LineKind::Frame, index: head.0 }, Access::Write);
        space.count_placed(self.node_of_page(head), -i64::from(order.pages()));
        space.count_huge(-i64::from(order == Order::PAGEBLOCK));
        let page = self.page(head);
        if entry.has(bit::DIRTY) && matches!(page.mapping(), crate::lru::page::Mapping::File(_)) {
            self.mark_dirty(head);
        }
        page.sub_mapped();
        gone.pages.push(head);
    }

    fn release(&self, gone: &Gone) {
        self.put_pages(&gone.pages);
        for &slot in &gone.slots {
            self.swap_free(slot);
        }
    }

    /// Gives back a reference to each of `pages`; those that were the last ones' frames are freed in batches.
    pub(crate) fn put_pages(&self, pages: &[Pfn]) {
        for chunk in pages.chunks(BATCH) {
            let mut last = [Pfn(0); BATCH];
            let mut count = 0;
            for &pfn in chunk.iter().filter(|pfn| self.page(**pfn).put()) {
                last[count] = pfn;
                count += 1;
            }
            self.lru_forget_each(&last[..count]);
            let blocks = last.map(|pfn| (pfn, self.map().frame(pfn).state().order));
            for &(pfn, _) in &blocks[..count] {
                self.page(pfn).clear_mapping();
            }
            if count > 0 {
                self.free_batch(&blocks[..count]).expect("a page with a reference is an allocated block");
            }
        }
    }

    /// Gives back a reference; frees the page's frame with the last one.
    pub(crate) fn put_page(&self, pfn: Pfn) {
        if self.page(pfn).put() {
            self.free_page(pfn);
        }
    }

    /// Frees the frame of a page that nobody refers to any more.
    pub(crate) fn free_page(&self, pfn: Pfn) {
        let order = self.forget_page(pfn);
        self.free(pfn, order).expect("a page that had a reference is an allocated block");
    }

    /// The page's life ends: what reclaim and rmap knew of it goes. Gives the order of its frame.
    pub(crate) fn forget_page(&self, pfn: Pfn) -> Order {
        self.lru_forget(pfn);
        self.page(pfn).clear_mapping();
        self.map().frame(pfn).state().order
    }

    /// Frees the frames of tables between the pages `range` that no region needs any more; the regions beside it end and
    /// begin at `neighbours`.
    pub(super) fn free_tables(&self, space: &AddressSpace<M>, range: (Vpn, Vpn), neighbours: (Vpn, Vpn)) {
        for (first, table) in space.tables.within(range.0, range.1) {
            let last = first.0.saturating_add(PAGEBLOCK_PAGES);
            if first < neighbours.0 || last > neighbours.1.0 {
                continue;
            }
            let mut held = table.lock(self.machine());
            let frame = if held.state.used == 0 { held.state.frame.take() } else { None };
            drop(held);
            if let Some(frame) = frame {
                space.count_tables(-1);
                self.free(frame, Order::ZERO).expect("a table's frame was allocated");
            }
        }
    }
}
