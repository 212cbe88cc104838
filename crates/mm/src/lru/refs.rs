//! References to pages: given back one by one or in batches, of which each holds a list's and a pageset's lock once
//! (`release_pages`, `free_unref_folios`); a page's life ends with its last reference. And what goes over where a page moves
//! to another frame.

use super::{LruDoor, LruGround};
use crate::ground::{Machine, Order, Pfn};
use crate::lru::page::{Page, PageFlag};
use crate::memcg::{Effort, GroupId};
use crate::pages::AllocError;

/// Pages given back together: `FOLIO_BATCH_SIZE` since 6.10; 15 before, which nothing here depends on.
const BATCH: usize = 31;

/// Flags that go with a page's contents.
const CARRIED: [PageFlag; 11] = [
    PageFlag::Active,
    PageFlag::Referenced,
    PageFlag::Dirty,
    PageFlag::SwapBacked,
    PageFlag::Reclaim,
    PageFlag::Placed,
    PageFlag::ReadAhead,
    PageFlag::Mlocked,
    PageFlag::Unevictable,
    PageFlag::SwapCache,
    PageFlag::Workingset,
];

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// Gives back a reference to each of `pages`; those that were the last ones' frames are freed in batches.
    pub(crate) fn put_pages(self, pages: &[Pfn]) {
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
                self.end_life(pfn);
            }
            if count > 0 {
                self.pages()
                    .free_batch(&blocks[..count])
                    .expect("a page with a reference is an allocated block");
            }
        }
    }

    /// Gives back a reference; frees the page's frame with the last one.
    pub(crate) fn put_page(self, pfn: Pfn) {
        if self.page(pfn).put() {
            self.free_page(pfn);
        }
    }

    /// Frees the frame of a page that nobody refers to any more.
    pub(crate) fn free_page(self, pfn: Pfn) {
        let order = self.forget_page(pfn);
        self.pages().free(pfn, order).expect("a page that had a reference is an allocated block");
    }

    /// The page's life ends: what reclaim and rmap knew of it goes. Gives the order of its frame.
    pub(crate) fn forget_page(self, pfn: Pfn) -> Order {
        self.lru_forget(pfn);
        self.end_life(pfn);
        self.map().frame(pfn).state().order
    }

    /// The page at `pfn`, which is on no list any more, belongs to nothing from now on and is charged to nobody.
    pub(crate) fn end_life(self, pfn: Pfn) {
        self.page(pfn).clear_mapping();
        self.unevictable().end_lock(pfn);
        self.uncharge(pfn);
    }

    /// Charges the new page at `pfn` to the group of the task that runs; where that cannot be, it is freed.
    ///
    /// # Errors
    /// Nothing more can be freed in the group.
    #[inline]
    pub(crate) fn charge(self, pfn: Pfn) -> Result<(), AllocError> {
        self.charge_by(pfn, Effort::Full)
    }

    /// Whether a page of `order` can be charged to the group of the task that runs without more ado.
    pub(crate) fn may_charge(self, order: Order) -> bool {
        !self.memcg().in_use() || self.memcg().has_room(self.memcg().current(), order.pages())
    }

    /// The same as [`Self::charge`] by `effort`.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn charge_by(self, pfn: Pfn, effort: Effort) -> Result<(), AllocError> {
        if self.memcg().in_use() { self.charge_group(pfn, (self.memcg().current(), effort)) } else { Ok(()) }
    }

    /// The same, to `group`.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn charge_to(self, pfn: Pfn, group: GroupId, effort: Effort) -> Result<(), AllocError> {
        self.charge_group(pfn, (group, effort))
    }

    #[cold]
    fn charge_group(self, pfn: Pfn, (group, effort): (GroupId, Effort)) -> Result<(), AllocError> {
        let order = self.pages().order_of(pfn);
        let charged = self.memcg().charge(group, order.pages(), effort);
        match charged {
            Ok(()) => self.page(pfn).set_group(group),
            Err(_) => self.pages().free(pfn, order).expect("it was just allocated"),
        }
        charged
    }

    /// The page at `pfn` is charged to nobody any more.
    #[inline]
    pub(crate) fn uncharge(self, pfn: Pfn) {
        let group = self.page(pfn).group();
        if group != GroupId::ROOT {
            self.memcg().uncharge(group, self.pages().order_of(pfn).pages());
            self.page(pfn).set_group(GroupId::ROOT);
        }
    }

    /// Copies contents and flags; nobody can get at `from` meanwhile. `to` has one reference then, the caller's.
    pub(crate) fn carry_over(self, from: Pfn, to: Pfn) {
        let page: &Page = self.page(from);
        let set = CARRIED.iter().copied().filter(|&flag| page.has(flag));
        let mut flags = [PageFlag::SwapBacked; CARRIED.len()];
        let count = set.zip(&mut flags).map(|(flag, slot)| *slot = flag).count();
        self.machine().copy(from, to, self.pages().order_of(from));
        // The charge goes with it.
        self.page(to).set_group(page.group());
        page.set_group(GroupId::ROOT);
        self.page(to).init(page.mapping(), page.index(), &flags[..count]);
        if page.uses() > 0 {
            self.page(to).set_uses(page.uses());
        }
        self.unevictable().move_lock(from, to);
    }
}
