//! Which slots of swap are free. They lie in clusters of 512 (`SWAPFILE_CLUSTER`), so that a huge page finds as many in a row: in a cluster that
//! nobody uses. Pages of each order fill a cluster of their own from its beginning to its end; single ones, when no cluster is unused any more,
//! take what has become free here and there, and at last what other orders have not filled. The first slot is the header's.
//!
//! The kernel keeps a cluster for each CPU too, and lists of clusters in part used for each order; here a larger page that finds no unused
//! cluster finds nothing.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;

use crate::ground::ids::Order;

/// Slots of a cluster.
const CLUSTER: u32 = 512;
const ORDERS: usize = CLUSTER.ilog2() as usize + 1;
/// Slots that are known at most, so that all numbers of what lies in whole clusters fit.
const MOST: u32 = u32::MAX - 2 * CLUSTER;

/// Slots that are free, of as many as swap has.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// How many of each cluster are used, of those that were ever begun.
    used: Vec<u32>,
    /// Begun ones of which none is used any more.
    unused: Vec<u32>,
    /// By order, what is left of the cluster that is being filled.
    filled: [Range<u32>; ORDERS],
    /// Others that are free, in clusters that are in part used.
    loose: BTreeSet<u32>,
    /// Slots in all.
    size: u32,
}

impl Slots {
    /// Takes as many slots in a row as a page of `order` needs, of `size` in all; gives the first. What is left where
    /// `size` is less than it was is for the caller to know.
    pub(super) fn take(&mut self, order: Order, size: u32) -> Option<u32> {
        self.grow(size);
        let (at, pages) = (usize::from(order.get()), order.pages());
        if at >= ORDERS {
            return None;
        }
        if self.filled[at].is_empty() {
            match self.begin_cluster(order) {
                Some(cluster) => self.filled[at] = cluster,
                None if order == Order::ZERO => return self.take_any(),
                None => return None,
            }
        }
        let first = self.filled[at].start;
        self.filled[at].start += pages;
        self.used[cluster_of(first) as usize] += pages;
        Some(first)
    }

    /// There may be more slots than before, in a cluster that was begun too. One that nobody uses is measured when it is begun again.
    fn grow(&mut self, size: u32) {
        let (was, size) = (self.size, size.min(MOST));
        if size <= was {
            return;
        }
        self.size = size;
        let begun = self.used.len() as u32;
        if begun > 0 && !self.unused.contains(&(begun - 1)) {
            self.loose.extend(was + 1..(begun * CLUSTER).min(size + 1));
        }
    }

    /// The slots of a cluster that nobody uses; one that is cut short, or has the header, is for single pages.
    fn begin_cluster(&mut self, order: Order) -> Option<Range<u32>> {
        let end = self.size + 1;
        let fits = |cluster: u32| order == Order::ZERO || cluster > 0 && (cluster + 1) * CLUSTER <= end;
        let cluster = if let Some(at) = self.unused.iter().rposition(|&cluster| fits(cluster)) {
            self.unused.remove(at)
        } else {
            if order > Order::ZERO && self.used.is_empty() {
                // Single pages will find the one of the header.
                self.used.push(0);
                self.unused.push(0);
            }
            let next = self.used.len() as u32;
            if next * CLUSTER >= end || !fits(next) {
                return None;
            }
            self.used.push(0);
            next
        };
        Some((cluster * CLUSTER).max(1)..((cluster + 1) * CLUSTER).min(end))
    }

    /// A slot that is free anywhere.
    fn take_any(&mut self) -> Option<u32> {
        let slot = self.loose.pop_first().or_else(|| self.filled.iter_mut().find_map(Iterator::next))?;
        self.used[cluster_of(slot) as usize] += 1;
        Some(slot)
    }

    /// `slot` is free again.
    pub(super) fn give_back(&mut self, slot: u32) {
        let cluster = cluster_of(slot);
        self.loose.insert(slot);
        self.used[cluster as usize] -= 1;
        let is_filled = self.filled.iter().any(|left| !left.is_empty() && cluster_of(left.start) == cluster);
        if self.used[cluster as usize] == 0 && !is_filled {
            self.put_unused(cluster);
        }
    }

    fn put_unused(&mut self, cluster: u32) {
        let first = cluster * CLUSTER;
        for slot in first..first + CLUSTER {
            self.loose.remove(&slot);
        }
        self.unused.push(cluster);
    }
}

const fn cluster_of(slot: u32) -> u32 {
    slot / CLUSTER
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    const HUGE: Order = Order::PAGEBLOCK;

    #[test]
    fn a_huge_page_wants_a_cluster_that_nobody_uses() {
        let mut slots = Slots::default();
        let size = 4 * CLUSTER - 1;
        assert_eq!(slots.take(Order::ZERO, size - 1), Some(1), "after the header");
        assert_eq!(slots.take(HUGE, size - 1), Some(CLUSTER));
        assert_eq!(slots.take(HUGE, size - 1), Some(2 * CLUSTER));
        assert_eq!(slots.take(HUGE, size - 1), None, "the last is cut short");
        assert_eq!(slots.take(HUGE, size), Some(3 * CLUSTER));
        assert_eq!(slots.take(HUGE, size), None);
        (CLUSTER..2 * CLUSTER - 1).for_each(|slot| slots.give_back(slot));
        assert_eq!(slots.take(HUGE, size), None, "one of its slots is used");
        slots.give_back(2 * CLUSTER - 1);
        assert_eq!(slots.take(HUGE, size), Some(CLUSTER));
    }

    #[test]
    fn a_single_page_finds_the_last_slot() {
        let mut slots = Slots::default();
        let size = 3 * CLUSTER - 1;
        let sixteen = Order::new(4).unwrap();
        assert_eq!(slots.take(sixteen, size), Some(CLUSTER));
        let taken: BTreeSet<u32> = (0..size - 16).map(|_| slots.take(Order::ZERO, size).unwrap()).collect();
        assert_eq!(taken.len() as u32, size - 16);
        assert_eq!(slots.take(Order::ZERO, size), None);
    }

    #[test]
    fn what_swap_grows_by_in_a_cluster_that_was_begun_is_given_once() {
        let mut slots = Slots::default();
        assert_eq!(slots.take(HUGE, 300), None);
        let mut all: Vec<u32> = (0..600).filter_map(|_| slots.take(Order::ZERO, 600)).collect();
        all.sort_unstable();
        assert_eq!(all, (1..=600).collect::<Vec<u32>>());
        assert_eq!(Slots::default().take(HUGE, u32::MAX), Some(CLUSTER));
    }

    proptest::proptest! {
        #[test]
        fn no_slot_is_given_twice_and_none_is_lost(
            steps in proptest::collection::vec((0..5_u8, 0..64_usize), 1..400),
        ) {
            let (mut slots, mut size) = (Slots::default(), CLUSTER + 77);
            let mut held: Vec<Range<u32>> = vec![];
            for (what, which) in steps {
                if what == 4 {
                    size = (size + which as u32).min(5 * CLUSTER + 77);
                    continue;
                }
                if what == 3 && !held.is_empty() {
                    let gone = held.swap_remove(which % held.len());
                    gone.for_each(|slot| slots.give_back(slot));
                    continue;
                }
                let order = [Order::ZERO, Order::new(4).unwrap(), HUGE][usize::from(what % 3)];
                let used: u32 = held.iter().map(|range| range.len() as u32).sum();
                let Some(first) = slots.take(order, size) else {
                    proptest::prop_assert!(order > Order::ZERO || used == size);
                    continue;
                };
                let range = first..first + order.pages();
                proptest::prop_assert!(first > 0 && range.end <= size + 1);
                proptest::prop_assert!(held.iter().all(|other| other.end <= range.start || range.end <= other.start));
                held.push(range);
            }
            held.drain(..).flatten().for_each(|slot| slots.give_back(slot));
            let all: BTreeSet<u32> = (0..size).filter_map(|_| slots.take(Order::ZERO, size)).collect();
            proptest::prop_assert_eq!(all, (1..=size).collect());
        }
    }
}
