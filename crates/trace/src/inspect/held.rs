//! Which pages are out: handed out and not freed.

use mm::{Order, Pfn};

use super::PageBalance;
use crate::stream::pages::PageSet;

/// The pages that are out, and what went in and out.
#[derive(Default)]
pub(super) struct PagesOut {
    pages: PageSet,
    balance: PageBalance,
}

impl PagesOut {
    /// A block goes out.
    pub(super) fn allocate(&mut self, pfn: Pfn, order: Order) {
        let pages = order.pages();
        let added = self.pages.insert(pfn, order);
        self.balance.allocated += u64::from(pages);
        self.balance.allocated_twice += u64::from(pages.saturating_sub(added));
        self.balance.held += u64::from(added);
        self.balance.peak = self.balance.peak.max(self.balance.held);
    }

    /// A block comes back, whole or as a piece of one.
    pub(super) fn free(&mut self, pfn: Pfn, order: Order) {
        let removed = u64::from(self.pages.remove(pfn, order));
        self.balance.freed += u64::from(order.pages());
        self.balance.held -= removed;
        self.balance.unmatched_frees += u64::from(removed == 0);
    }

    /// The account so far.
    pub(super) const fn balance(&self) -> PageBalance {
        self.balance
    }
}
