//! How much is read from swap with what is wanted, where more than that is (`__swapin_nr_pages`): the more of what was read ahead was
//! wanted since, the more. Slots around know of all of them, pages around of their region.

use core::ops::Range;

/// What is known of reads before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reads {
    /// What was read ahead and has been wanted since the last read.
    hits: u32,
    /// The slot, or the page, that was wanted last.
    last: u32,
    /// So many were read together then.
    pages: u32,
}

impl Default for Reads {
    fn default() -> Self {
        Self { hits: 4, last: 0, pages: 0 }
    }
}

/// A region remembers no more hits than these (`SWAP_RA_HITS_MAX`).
const HITS_MAX: u32 = 63;
/// A region has no larger windows (`SWAP_RA_ORDER_CEILING`).
const REGION_ORDER_MAX: u64 = 5;

impl Reads {
    /// How many are read together where `at` is wanted and `vm.page-cluster` is `order`.
    pub(super) fn pages_at(&self, at: u32, order: u64) -> u32 {
        let most = 1 << order.min(31);
        let wanted = match self.hits {
            // It follows, or is followed.
            0 => 1 + u32::from(at.abs_diff(self.last) == 1),
            hits => (hits + 2).next_power_of_two().max(4),
        };
        if most == 1 { 1 } else { wanted.min(most).max(self.pages / 2) }
    }

    /// The slots to read where `slot` is wanted, of those from 1 to before `end`: `pages` of them, from a multiple of that on.
    pub(super) fn cluster(&mut self, slot: u32, end: u32, pages: u32) -> Range<u32> {
        let last = if self.hits == 0 { slot } else { self.last };
        *self = Self { hits: 0, last, pages };
        let first = slot / pages * pages;
        first.max(1)..first.saturating_add(pages).min(end).max(slot + 1)
    }

    /// As [`Self::pages_at`], for a region.
    pub(super) fn pages_of_region(&self, at: u32, order: u64) -> u32 {
        self.pages_at(at, order.min(REGION_ORDER_MAX))
    }

    /// The pages of a region to read where page `at` is wanted: `pages` of them, after it or before it if pages were wanted one after the
    /// other so, else around it.
    pub(super) fn window(&mut self, at: u32, pages: u32) -> Range<u32> {
        let before = match self.last {
            last if last.wrapping_add(1) == at => 0,
            last if last == at.wrapping_add(1) => pages - 1,
            _ => (pages - 1) / 2,
        };
        *self = Self { hits: 0, last: at, pages };
        let first = at.saturating_sub(before);
        first..first.saturating_add(pages)
    }

    /// What was read ahead is wanted.
    pub(super) fn note_hit(&mut self) {
        self.hits = self.hits.saturating_add(1);
    }

    /// Page `at` of a region is wanted, and was found in memory.
    pub(super) fn note_found(&mut self, at: u32, was_ahead: bool) {
        self.last = at;
        self.hits = (self.hits + u32::from(was_ahead)).min(HITS_MAX);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn around(reads: &mut Reads, slot: u32, end: u32) -> Range<u32> {
        let pages = reads.pages_at(slot, 3);
        reads.cluster(slot, end, pages)
    }

    #[test]
    fn a_cluster_grows_by_what_was_wanted_of_the_last() {
        let mut reads = Reads::default();
        assert_eq!(around(&mut reads, 3, 100), 1..8, "the first slot is the header's");
        (0..7).for_each(|_| reads.note_hit());
        assert_eq!(around(&mut reads, 13, 100), 8..16);
        assert_eq!(around(&mut reads, 41, 100), 40..44, "half as many as the last time");
        assert_eq!(around(&mut reads, 61, 100), 60..62);
        assert_eq!(around(&mut reads, 90, 100), 90..91);
        assert_eq!(around(&mut reads, 91, 100), 90..92, "it follows");
        reads.note_hit();
        assert_eq!(around(&mut reads, 98, 100), 96..100);
        assert_eq!(around(&mut reads, 99, 99), 98..100, "what is wanted is read in any case");
    }

    #[test]
    fn a_window_lies_where_a_region_is_going() {
        let window = |reads: &mut Reads, at: u32, order: u64| {
            let pages = reads.pages_of_region(at, order);
            reads.window(at, pages)
        };
        let mut reads = Reads::default();
        assert_eq!(window(&mut reads, 100, 3), 97..105, "around the first");
        (101..105).for_each(|at| reads.note_found(at, true));
        assert_eq!(window(&mut reads, 105, 3), 105..113, "upwards");
        (0..4).for_each(|_| reads.note_found(105, true));
        assert_eq!(window(&mut reads, 104, 3), 97..105, "downwards");
        assert_eq!(window(&mut reads, 500, 3), 499..503, "nothing of it was wanted: half as many");
        assert_eq!(window(&mut reads, 900, 3), 900..902);
        assert_eq!(window(&mut reads, 300, 3), 300..301);
        (0..200).for_each(|_| reads.note_found(1, true));
        assert_eq!(window(&mut reads, 2, 31), 2..34, "no larger");
        assert_eq!(window(&mut reads, 3, 0), 3..4, "alone");
    }
}
