//! An entry of a page table: what a virtual page is mapped to, with the bits that the processor sets. One word, changed
//! under the table's lock; only the processor's bits (accessed, dirty) are set without it.

use super::Touch;
use crate::ground::ids::{Order, Pfn};

/// A page table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Entry(pub(crate) u64);

/// Bits of an entry, above the frame's number (or the swap slot's).
pub(crate) mod bit {
    /// A page is mapped.
    pub(crate) const PRESENT: u64 = 1 << 32;
    /// It may be written to.
    pub(crate) const WRITE: u64 = 1 << 33;
    /// It was read or written since the bit was last cleared.
    pub(crate) const ACCESSED: u64 = 1 << 34;
    /// It was written since the bit was last cleared.
    pub(crate) const DIRTY: u64 = 1 << 35;
    /// The page is one of those of a large page that is still in one piece, a huge one or one of a smaller size; its references are
    /// the head's.
    pub(crate) const PART: u64 = 1 << 36;
    /// The page is in swap; the low half is the slot.
    pub(crate) const SWAP: u64 = 1 << 37;
    /// The page, whose old frame the low half is, is on its way to another.
    pub(crate) const MIGRATION: u64 = 1 << 38;
    /// It reads as zeros: the low half is the frame of the page of zeros, or of the huge one, which nobody counts.
    pub(crate) const ZERO: u64 = 1 << 39;
    /// Nobody may touch the page that is mapped, for its region says so (`PROT_NONE`).
    pub(crate) const BARRED: u64 = 1 << 40;
    /// The page is the process's own and was never shared since (`PageAnonExclusive`).
    pub(crate) const EXCLUSIVE: u64 = 1 << 41;
    /// Nobody may touch the page that is mapped before a fault has said who does (`PROT_NONE` of NUMA balancing). It goes when the
    /// page moves, its entry is split or its region's protection changes.
    pub(crate) const HINTED: u64 = 1 << 42;
    /// Of a part, the order of the page that it is part of.
    pub(crate) const ORDER: u64 = 0xf << ORDER_SHIFT;
    pub(crate) const ORDER_SHIFT: u32 = 43;
    /// What stays with the entry while its page moves to another frame.
    pub(crate) const KEPT: u64 = WRITE | PART | ORDER | BARRED | EXCLUSIVE;
}

const LOW: u64 = u32::MAX as u64;

impl Entry {
    /// Nothing is mapped.
    pub(crate) const NONE: Self = Self(0);

    /// `pfn` is mapped, with `bits`.
    pub(crate) const fn of(pfn: Pfn, bits: u64) -> Self {
        Self(pfn.0 as u64 | bit::PRESENT | bits)
    }

    /// Zeros, to be read only, are mapped by way of the frame `pfn`.
    pub(crate) const fn zeros(pfn: Pfn) -> Self {
        Self(pfn.0 as u64 | bit::ZERO | bit::ACCESSED)
    }

    /// The page is in the swap slot `slot`.
    pub(crate) const fn swapped(slot: u32) -> Self {
        Self(slot as u64 | bit::SWAP)
    }

    /// As this entry, which maps a page, while that page moves.
    pub(crate) const fn migrating(self) -> Self {
        Self(self.0 & (LOW | bit::KEPT) | bit::MIGRATION)
    }

    #[inline]
    pub(crate) const fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    #[must_use]
    pub(crate) const fn with(self, bits: u64) -> Self {
        Self(self.0 | bits)
    }

    #[must_use]
    pub(crate) const fn without(self, bits: u64) -> Self {
        Self(self.0 & !bits)
    }

    /// Whether a page is mapped.
    #[inline]
    pub(crate) const fn is_present(self) -> bool {
        self.has(bit::PRESENT)
    }

    /// Whether the page of zeros, or the huge one, is mapped.
    #[inline]
    pub(crate) const fn is_zeros(self) -> bool {
        self.has(bit::ZERO)
    }

    /// Whether a touch needs no fault.
    #[inline]
    pub(crate) const fn allows(self, touch: Touch) -> bool {
        match touch {
            Touch::Read => self.has(bit::PRESENT | bit::ZERO) && !self.has(bit::BARRED | bit::HINTED),
            Touch::Write => self.is_present() && self.has(bit::WRITE) && !self.has(bit::HINTED),
        }
    }

    /// The frame that is mapped.
    #[inline]
    pub(crate) const fn pfn(self) -> Pfn {
        Pfn((self.0 & LOW) as u32)
    }

    /// As this entry, for part of a page of `order`.
    #[must_use]
    pub(crate) const fn part_of(self, order: Order) -> Self {
        self.whole().with(bit::PART | (order.get() as u64) << bit::ORDER_SHIFT)
    }

    /// As this entry, for a page by itself.
    #[must_use]
    pub(crate) const fn whole(self) -> Self {
        self.without(bit::PART | bit::ORDER)
    }

    /// The order of the page that this maps a part of; 0 if it maps one by itself.
    pub(crate) const fn part_order(self) -> u32 {
        ((self.0 & bit::ORDER) >> bit::ORDER_SHIFT) as u32
    }

    /// Whether it maps a part of a page that is smaller than a huge one.
    pub(crate) const fn is_smaller_part(self) -> bool {
        let order = self.part_order();
        order > 0 && order < Order::PAGEBLOCK.get() as u32
    }

    /// The frame whose line counts the mapping: that of the head, for part of a large page.
    pub(crate) const fn head(self) -> Pfn {
        // Order 0 masks nothing.
        Pfn(self.pfn().0 >> self.part_order() << self.part_order())
    }

    /// The swap slot, if the page is in one.
    pub(crate) const fn slot(self) -> Option<u32> {
        if self.has(bit::SWAP) { Some((self.0 & LOW) as u32) } else { None }
    }

    /// The old frame of the page's head, if the page is on its way.
    pub(crate) const fn migrating_from(self) -> Option<Pfn> {
        if self.has(bit::MIGRATION) { Some(self.head()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_huge_page_leads_to_its_head() {
        let entry = Entry::of(Pfn(1024 + 7), bit::WRITE).part_of(Order::PAGEBLOCK);
        assert_eq!((entry.pfn(), entry.head()), (Pfn(1031), Pfn(1024)));
        let smaller = entry.part_of(Order::new(2).unwrap());
        assert_eq!((smaller.head(), smaller.part_order()), (Pfn(1028), 2));
        assert_eq!(smaller.whole(), Entry::of(Pfn(1031), bit::WRITE));
        let moving = entry.migrating();
        assert!(!moving.is_present() && moving.has(bit::WRITE));
        assert_eq!(moving.migrating_from(), Some(Pfn(1024)));
    }

    #[test]
    fn who_may_touch_what_an_entry_maps() {
        let allowed = |entry: Entry| (entry.allows(Touch::Read), entry.allows(Touch::Write));
        assert_eq!(allowed(Entry::NONE), (false, false));
        assert_eq!(allowed(Entry::of(Pfn(9), bit::WRITE)), (true, true));
        assert_eq!(allowed(Entry::of(Pfn(9), 0)), (true, false));
        assert_eq!(allowed(Entry::of(Pfn(9), bit::BARRED)), (false, false));
        assert_eq!(allowed(Entry::of(Pfn(9), bit::WRITE | bit::HINTED)), (false, false));
        assert_eq!(allowed(Entry::zeros(Pfn(0))), (true, false));
        assert!(!Entry::zeros(Pfn(0)).is_present(), "nobody counts it");
        assert_eq!(allowed(Entry::of(Pfn(9), bit::WRITE).migrating()), (false, false));
    }

    #[test]
    fn what_is_swapped_is_not_present() {
        let entry = Entry::swapped(9);
        assert_eq!((entry.slot(), entry.is_present(), entry.migrating_from()), (Some(9), false, None));
        assert_eq!(Entry::of(Pfn(9), 0).slot(), None);
    }
}
