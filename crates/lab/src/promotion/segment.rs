//! Regions of a program and the segments of even use that they consist of.

use std::cell::Cell;

use serde::Deserialize;

use super::chance::ONE;

/// A mapping, and how its accesses are spread.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegionSpec {
    /// Its size, MiB.
    pub mib: u32,
    /// Mappings of the same kind, each of that size, one behind the other.
    #[serde(default = "one")]
    pub copies: u32,
    /// MiB and weight of segments, over and over until the region is full; none: all of it is used evenly, with weight 1
    /// for each MiB. Of a program's accesses a segment has the share of its weight.
    #[serde(default)]
    pub segments: Vec<(u32, u32)>,
    /// Weights move up by this many segments, and from the end to the start, …
    #[serde(default)]
    pub shift: u32,
    /// … each time that so many ms have passed; 0: never.
    #[serde(default)]
    pub every_ms: u32,
}

const fn one() -> u32 {
    1
}

impl RegionSpec {
    /// Sizes and weights of the segments of one copy, in MiB.
    pub(crate) fn parts(&self) -> Vec<(u32, u32)> {
        let whole = [(self.mib, self.mib)];
        let pattern = if self.segments.is_empty() { &whole[..] } else { &self.segments };
        let (mut left, mut parts) = (self.mib, vec![]);
        for &(mib, weight) in pattern.iter().cycle() {
            if left == 0 || mib == 0 {
                break;
            }
            parts.push((mib.min(left), weight));
            left -= mib.min(left);
        }
        parts
    }
}

/// Pages of even use.
#[derive(Debug)]
pub(super) struct Segment {
    /// How many.
    pub(super) pages: usize,
    /// Its share of the program's accesses, now.
    pub(super) weight: Cell<u64>,
    /// Accesses to each of its pages so far, in units of 1/[`ONE`].
    pub(super) accesses: Cell<u64>,
    /// Modelled pages on each node.
    pub(super) placed: Box<[Cell<u32>]>,
}

impl Segment {
    pub(super) fn new(pages: usize, weight: u64, nodes: usize) -> Self {
        let placed = (0..nodes).map(|_| Cell::new(0)).collect();
        Self { pages, weight: Cell::new(weight), accesses: Cell::new(0), placed }
    }

    /// `accesses` of the program, of whose segments the weights are `whole`, were made by `grain` pages for each of the model.
    pub(super) fn access(&self, accesses: u64, whole: u64, grain: u32) {
        let pages = (self.pages as u64 * u64::from(grain)).max(1);
        let here = u128::from(accesses) * u128::from(self.weight.get()) * u128::from(ONE);
        self.accesses.set(self.accesses.get() + part(here, whole.max(1), pages));
    }

    /// Of the program's accesses, how many of 2^32 are to pages of this segment on each node; the segments' weights are
    /// `whole`.
    pub(super) fn shares(&self, whole: u64) -> impl Iterator<Item = u64> {
        let (weight, pages) = (u128::from(self.weight.get()) << 32, self.pages.max(1) as u64);
        self.placed.iter().map(move |placed| part(weight * u128::from(placed.get()), whole, pages))
    }
}

/// `number` by `first` and by `second`, rounded down. Nearly always 64 bits are enough, where a division takes a
/// fraction of the time; every stretch of accesses comes here for every segment.
fn part(number: u128, first: u64, second: u64) -> u64 {
    match (u64::try_from(number), first.checked_mul(second)) {
        (Ok(number), Some(by)) => number / by,
        _ => (number / u128::from(first) / u128::from(second)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_repeat_until_the_region_is_full() {
        let spec = |segments| RegionSpec { mib: 10, copies: 1, segments, shift: 0, every_ms: 0 };
        assert_eq!(spec(vec![]).parts(), [(10, 10)]);
        assert_eq!(spec(vec![(3, 7), (1, 1)]).parts(), [(3, 7), (1, 1), (3, 7), (1, 1), (2, 7)]);
        assert_eq!(spec(vec![(0, 7)]).parts(), [], "no segment is empty");
    }

    #[test]
    fn accesses_spread_over_pages() {
        let segment = Segment::new(10, 3, 1);
        segment.access(4000, 4, 2);
        assert_eq!(segment.accesses.get(), 150 * ONE);
    }
}
