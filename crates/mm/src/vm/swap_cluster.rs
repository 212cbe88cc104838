//! How many slots of swap are read with one that is wanted, where they are read by clusters (`swapin_nr_pages`): the more of what was read
//! ahead was wanted since, the more.

use core::ops::Range;

/// Slots that are read together at most: 2^`vm.page-cluster`, which is 3 by default.
const MOST: u32 = 8;

/// What is known of reads before.
#[derive(Debug)]
pub(super) struct Clusters {
    /// Pages that were read ahead and have been wanted since the last read.
    hits: u32,
    /// The slot that was wanted last when nothing had been.
    last: u32,
    /// Slots that were read together then.
    pages: u32,
}

impl Default for Clusters {
    fn default() -> Self {
        Self { hits: 4, last: 0, pages: 0 }
    }
}

impl Clusters {
    /// A page that was read ahead is wanted.
    pub(super) fn note_hit(&mut self) {
        self.hits += 1;
    }

    /// The slots to read where `slot` is wanted, of those from 1 to before `end`: as many as are read together, from a multiple of that on.
    pub(super) fn around(&mut self, slot: u32, end: u32) -> Range<u32> {
        let pages = self.pages_at(slot);
        let first = slot / pages * pages;
        first.max(1)..first.saturating_add(pages).min(end).max(slot + 1)
    }

    fn pages_at(&mut self, slot: u32) -> u32 {
        let wanted = match core::mem::take(&mut self.hits) {
            0 => {
                let follows = slot.abs_diff(core::mem::replace(&mut self.last, slot)) == 1;
                if follows { 2 } else { 1 }
            }
            hits => (hits + 2).next_power_of_two().max(4),
        };
        self.pages = wanted.min(MOST).max(self.pages / 2);
        self.pages
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_grows_by_what_was_wanted_of_the_last() {
        let mut clusters = Clusters::default();
        assert_eq!(clusters.around(3, 100), 1..8, "the first slot is the header's");
        (0..7).for_each(|_| clusters.note_hit());
        assert_eq!(clusters.around(13, 100), 8..16);
        assert_eq!(clusters.around(41, 100), 40..44, "half as many as the last time");
        assert_eq!(clusters.around(61, 100), 60..62);
        assert_eq!(clusters.around(90, 100), 90..91);
        assert_eq!(clusters.around(91, 100), 90..92, "it follows");
        clusters.note_hit();
        assert_eq!(clusters.around(98, 100), 96..100);
        assert_eq!(clusters.around(99, 99), 98..100, "what is wanted is read in any case");
    }
}
