//! Into how many arenas a zone's free lists are divided, and which blocks each begins with.

use crate::ground::{Order, Pfn};
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::{ArenaRule, Rules, ZonesRule};

/// Arenas of a zone at most.
pub(crate) const ARENAS_MAX: u32 = 64;

/// Ranges that an arena has at least, if nobody sets a number: 128 MiB.
const RANGES_MIN: u32 = 32;

/// How many arenas there are: so many parts of the zone, so many in each. A block never leaves its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Division {
    parts: u32,
    each: u32,
    ranges: u32,
}

impl Division {
    /// For a zone with `pages` from frame `start` on, shared by `cpus`.
    pub(crate) fn new(rules: &Rules, knobs: &Knobs, start: Pfn, pages: u32, cpus: u32) -> Self {
        let size = Order::MAX.pages();
        let ranges = (start.0 + pages).div_ceil(size) - start.0 / size;
        let wanted = match knobs.get(Knob::Arenas) as u32 {
            0 => cpus.min(pages / size / RANGES_MIN),
            set => set,
        };
        let count = wanted.min(pages / size).clamp(1, ARENAS_MAX);
        let (parts, each) = match (rules.lists.zones, rules.lists.arenas) {
            (ZonesRule::Whole, ArenaRule::One) => (1, 1),
            (ZonesRule::Divided, ArenaRule::One) => (count, 1),
            (ZonesRule::Whole, ArenaRule::Several) => (1, count),
            (ZonesRule::Divided, ArenaRule::Several) => {
                let parts = count.isqrt();
                (parts, count / parts)
            }
        };
        Self { parts, each, ranges }
    }

    /// All arenas.
    #[inline]
    pub(crate) fn count(self) -> u32 {
        self.parts * self.each
    }

    /// Ranges of the zone: stretches of the largest block's size, the first and the last perhaps not whole.
    pub(crate) fn ranges(self) -> u32 {
        self.ranges
    }

    /// Ranges that an arena begins with, about.
    pub(crate) fn share(self) -> u32 {
        self.ranges / self.count()
    }

    /// Whether blocks move between arenas.
    #[inline]
    pub(crate) fn moves(self) -> bool {
        self.each > 1
    }

    /// The arena that `range` begins in: each has its blocks together.
    pub(crate) fn first_owner(self, range: u32) -> u32 {
        (u64::from(range) * u64::from(self.count()) / u64::from(self.ranges)) as u32
    }

    /// All arenas in the order in which a CPU at home in `home` turns to them: those of its part, then the others.
    pub(crate) fn search_order(self, home: u32) -> impl Iterator<Item = u32> {
        let start = home / self.each * self.each;
        let own_part = (0..self.each).map(move |step| start + (home + step) % self.each);
        own_part.chain((self.each..self.count()).map(move |step| (start + step) % self.count()))
    }

    /// The arenas among which a block at `arena` may move, but that one.
    pub(crate) fn neighbours(self, arena: u32) -> impl Iterator<Item = u32> {
        self.search_order(arena).take(self.each as usize).skip(1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::rules::policy::Policy;

    fn division(policy: &str, arenas: u64, pages: u32, cpus: u32) -> Division {
        let knobs = Knobs::default();
        knobs.set(Knob::Arenas, arenas).unwrap();
        Division::new(Policy::parse(policy).unwrap().rules(), &knobs, Pfn(0), pages, cpus)
    }

    #[test]
    fn cpus_and_memory_bound_the_number() {
        let count = |arenas, pages, cpus| division("linux-6.18+arenas", arenas, pages, cpus).count();
        assert_eq!(count(0, 1 << 26, 48), 48);
        assert_eq!(count(0, 1 << 26, 512), 64);
        assert_eq!(count(0, 1 << 19, 48), 16, "2 GiB");
        assert_eq!(count(0, 3840, 48), 1, "DMA");
        assert_eq!(count(5, 1 << 19, 1), 5);
        assert_eq!(count(64, 3000, 1), 2);
        assert_eq!(division("linux-6.18", 64, 1 << 26, 64).count(), 1);
    }

    #[test]
    fn a_divided_zone_has_arenas_in_each_part() {
        let both = division("linux-6.18+zones+arenas", 16, 1 << 22, 1);
        assert_eq!((both.parts, both.each), (4, 4));
        assert!(both.moves());
        assert_eq!(both.neighbours(6).collect::<Vec<_>>(), [7, 4, 5]);
        let order: Vec<u32> = both.search_order(6).collect();
        assert_eq!(order, [6, 7, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3]);
        let zones = division("linux-6.18+zones", 4, 1 << 22, 1);
        assert!(!zones.moves());
        assert_eq!(zones.search_order(2).collect::<Vec<_>>(), [2, 3, 0, 1]);
        assert_eq!(zones.neighbours(2).count(), 0);
    }

    #[test]
    fn every_arena_begins_with_its_share() {
        let three = division("linux-6.18+arenas", 3, 10 << 10, 1);
        let mut ranges = vec![0; 3];
        (0..three.ranges()).for_each(|range| ranges[three.first_owner(range) as usize] += 1);
        assert_eq!(ranges, [4, 3, 3]);
    }
}
