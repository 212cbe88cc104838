//! What a CPU has charged to a group beyond need, for the next charges (`memcg_stock_pcp`). The kernel takes a CPU's own with a local
//! lock, which nobody waits for, and has other CPUs' given back by work that runs there; here both are one exchange of a word.

use super::GroupId;
use crate::ground::{AtomicU64, Relaxed};

/// Pages of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Kept {
    pub(super) group: GroupId,
    pub(super) pages: u32,
}

impl Kept {
    const fn word(self) -> u64 {
        (self.pages as u64) << 32 | self.group.0 as u64
    }

    const fn of(word: u64) -> Self {
        Self { group: GroupId(word as u16), pages: (word >> 32) as u32 }
    }

    /// Without `pages` of `group`, if it has them.
    const fn less(self, Self { group, pages }: Self) -> Option<Self> {
        if self.group.0 != group.0 || self.pages < pages {
            return None;
        }
        Some(Self { group, pages: self.pages - pages })
    }

    /// With `more`; and what goes back for that: another group's, or all where it would be more than `most`.
    const fn plus(self, more: Self, most: u32) -> (Self, Self) {
        if self.group.0 != more.group.0 {
            return (more, self);
        }
        let pages = self.pages + more.pages;
        if pages > most {
            return (Self { group: more.group, pages: 0 }, Self { group: more.group, pages });
        }
        (Self { group: more.group, pages }, Self { group: more.group, pages: 0 })
    }
}

/// A CPU's.
#[derive(Debug, Default)]
pub(super) struct Stock(AtomicU64);

impl Stock {
    /// Takes `wanted` from it; says whether it had that.
    #[inline]
    pub(super) fn take(&self, wanted: Kept) -> bool {
        let less = |word| Some(Kept::of(word).less(wanted)?.word());
        self.0.fetch_update(Relaxed, Relaxed, less).is_ok()
    }

    /// Keeps `more`, `most` pages in all; gives what is to go back.
    pub(super) fn keep(&self, more: Kept, most: u32) -> Kept {
        let with = |word| Kept::of(word).plus(more, most);
        let mut before = self.0.load(Relaxed);
        loop {
            let (kept, back) = with(before);
            match self.0.compare_exchange(before, kept.word(), Relaxed, Relaxed) {
                Ok(_) => return back,
                Err(other) => before = other,
            }
        }
    }

    /// Empties it; gives what it had.
    pub(super) fn drain(&self) -> Kept {
        Kept::of(self.0.swap(0, Relaxed))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const ONE: GroupId = GroupId(1);
    const OTHER: GroupId = GroupId(2);

    const fn kept(group: GroupId, pages: u32) -> Kept {
        Kept { group, pages }
    }

    #[test]
    fn a_stock_is_one_groups_and_never_more_than_a_batch() {
        let stock = Stock::default();
        assert!(!stock.take(kept(ONE, 1)));
        assert_eq!(stock.keep(kept(ONE, 63), 64).pages, 0);
        assert!(stock.take(kept(ONE, 3)) && !stock.take(kept(OTHER, 1)) && !stock.take(kept(ONE, 61)));
        assert_eq!(stock.keep(kept(OTHER, 10), 64), kept(ONE, 60));
        assert_eq!(stock.keep(kept(OTHER, 55), 64), kept(OTHER, 65), "more than a batch goes back whole");
        assert_eq!(stock.keep(kept(OTHER, 64), 64).pages, 0);
        assert_eq!((stock.drain(), stock.drain().pages), (kept(OTHER, 64), 0));
    }
}
