//! Which pageblock costs least to empty, and which ones to fill with what was in it: found in the words of [`crate::pages::summary::Summary`],
//! without a look at a descriptor.
//!
//! To empty: blocks without a fixed page, those with the most free pages first, for the others are what has to move. To fill:
//! first movable blocks that have a fixed page and so will never be whole again, then the fullest of the others.
//!
//! A look at all words of a zone finds the best 256 of either kind, and that many picks are served from one look: what changes
//! meanwhile makes a choice less than the best, and never a wrong one, for a block's word is read again when it is picked.

use super::{CompactEvent, CompactGround, EmptyDoor};
use crate::ground::{
    Access, AtomicU32, Chore, Machine, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, Relaxed,
};
use crate::pages::{BLOCKS_PER_LINE, BlockUse, Summary, Zone};

/// Blocks that one look finds.
const FOUND_MAX: usize = 256;

/// No block.
const NONE: u32 = u32::MAX;

/// A block with fewer free pages is hardly worth a visit to fill it.
const WORTH_FILLING: u32 = 16;

/// What earlier failures with a block mean for a pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failures {
    /// The block is left alone for a while.
    Matter,
    /// It is tried all the same: there is no other.
    Forgotten,
}

/// Looks at all words of a zone that one call may take: where pinned pages are all over, 4,096 blocks are looked over before it
/// gives up, and the next call goes on with others.
const LOOKS: u32 = 16;

/// Picks among blocks that failed of late, where there are no others.
const LAST_PICKS: u32 = 16;

/// How one call has fared in finding blocks to empty.
#[derive(Debug)]
pub(super) struct Looking {
    failures: Failures,
    /// Looks that are left, and picks once failures are forgotten.
    looks: u32,
    last_picks: u32,
}

impl Looking {
    /// No look has been taken yet.
    pub(super) fn new() -> Self {
        Self { failures: Failures::Matter, looks: LOOKS, last_picks: LAST_PICKS }
    }
}

/// Blocks that a look has found and nobody has used up, the best first. Any number of tasks may take from it.
#[derive(Debug)]
struct Found {
    blocks: [AtomicU32; FOUND_MAX],
    next: AtomicU32,
}

impl Found {
    fn nothing() -> Self {
        Self {
            blocks: core::array::from_fn(|_| AtomicU32::new(NONE)),
            next: AtomicU32::new(FOUND_MAX as u32),
        }
    }

    /// Puts the blocks of `best` in the place of what is left of the last look.
    fn replace(&self, best: &Best) {
        let found = best.entries[..best.len].iter().map(|&(_, block)| block);
        for (slot, block) in self.blocks.iter().zip(found.chain(core::iter::repeat(NONE))) {
            slot.store(block, Relaxed);
        }
        self.next.store(0, Relaxed);
    }

    /// The best that is left.
    fn first(&self) -> Option<u32> {
        let block = self.blocks.get(self.next.load(Relaxed) as usize)?.load(Relaxed);
        (block != NONE).then_some(block)
    }

    /// `block`, which was [`Self::first`], is used up, or is no longer what it was.
    fn pass(&self, block: u32) {
        let next = self.next.load(Relaxed);
        if self.first() == Some(block) {
            // If somebody else has passed it meanwhile, it is passed once.
            let _ = self.next.compare_exchange(next, next + 1, Relaxed, Relaxed);
        }
    }
}

/// What is remembered of a zone between picks.
#[derive(Debug)]
pub(super) struct Picks {
    to_empty: Found,
    to_fill: Found,
}

impl Picks {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { to_empty: Found::nothing(), to_fill: Found::nothing() }
    }

    /// The next pick looks at all blocks anew.
    pub(super) fn forget(&self) {
        self.to_empty.replace(&Best::new());
        self.to_fill.replace(&Best::new());
    }

    /// There is no more room in `block`, which was picked to be filled.
    pub(super) fn pass_filled(&self, block: u32) {
        self.to_fill.pass(block);
    }
}

/// The blocks with the lowest prices of those offered, in order of price and then of offers.
#[derive(Debug)]
struct Best {
    entries: [(u32, u32); FOUND_MAX],
    len: usize,
}

impl Best {
    fn new() -> Self {
        Self { entries: [(0, NONE); FOUND_MAX], len: 0 }
    }

    /// Whether a block of this price would be among them.
    #[inline]
    fn wants(&self, price: u32) -> bool {
        self.len < FOUND_MAX || price < self.entries[FOUND_MAX - 1].0
    }

    fn insert(&mut self, price: u32, block: u32) {
        let at = self.entries[..self.len].partition_point(|&(other, _)| other <= price);
        if at < FOUND_MAX {
            self.len = (self.len + 1).min(FOUND_MAX);
            self.entries.copy_within(at..self.len - 1, at + 1);
            self.entries[at] = (price, block);
        }
    }
}

/// The pages that would have to move out of a block, if none of them is fixed. A whole free block is not to be emptied.
#[inline]
fn price_of_emptying(block: BlockUse) -> Option<u32> {
    (block.fixed == 0 && block.free < PAGEBLOCK_PAGES).then(|| PAGEBLOCK_PAGES - block.free)
}

/// How little a block is wanted to be filled.
#[inline]
fn price_of_filling(block: BlockUse) -> Option<u32> {
    if block.free == 0 || block.free == PAGEBLOCK_PAGES {
        return None;
    }
    Some(match (block.free >= WORTH_FILLING, block.fixed > 0) {
        // It can never be whole: the most room first, so that few blocks need be visited.
        (true, true) => PAGEBLOCK_PAGES - block.free,
        (true, false) => PAGEBLOCK_PAGES + block.free,
        (false, _) => 3 * PAGEBLOCK_PAGES - block.free,
    })
}

/// The pageblocks that are wholly in `zone`.
fn whole_blocks<M: Machine>(zone: &Zone<M>) -> core::ops::Range<u32> {
    let span = zone.managed_span();
    span.start.div_ceil(PAGEBLOCK_PAGES)..span.end >> PAGEBLOCK_ORDER
}

impl<M: Machine, G: CompactGround<M>> EmptyDoor<'_, M, G> {
    /// The block of `zone` that costs least to empty; it is claimed for the caller.
    pub(super) fn pick_to_empty(self, zone: &Zone<M>, looking: &mut Looking) -> Option<u32> {
        let summary = self.blocks().summary()?;
        loop {
            while let Some(block) = self.own().of(zone.id()).picks.to_empty.first() {
                if looking.failures == Failures::Forgotten {
                    looking.last_picks = looking.last_picks.checked_sub(1)?;
                }
                self.own().of(zone.id()).picks.to_empty.pass(block);
                let price = price_of_emptying(self.read_block(summary, block));
                let blamed = looking.failures == Failures::Matter && self.is_put_off(summary, block);
                if price.is_some() && !blamed && summary.claim(block) {
                    return Some(block);
                }
            }
            if looking.failures == Failures::Forgotten {
                return None;
            }
            looking.looks = looking.looks.checked_sub(1)?;
            self.look(zone, summary, Failures::Matter);
            if self.own().of(zone.id()).picks.to_empty.first().is_none() {
                looking.failures = Failures::Forgotten;
                self.look(zone, summary, Failures::Forgotten);
            }
        }
    }

    /// The block of `zone` that should be filled next; `looked`: whether all of them were looked at already.
    pub(super) fn pick_to_fill(self, zone: &Zone<M>, looked: &mut bool) -> Option<u32> {
        let summary = self.blocks().summary()?;
        loop {
            while let Some(block) = self.own().of(zone.id()).picks.to_fill.first() {
                let worth = price_of_filling(self.read_block(summary, block)).is_some();
                if worth && !summary.is_claimed(block) {
                    return Some(block);
                }
                self.own().of(zone.id()).picks.to_fill.pass(block);
            }
            if core::mem::replace(looked, true) {
                return None;
            }
            self.look(zone, summary, Failures::Matter);
        }
    }

    fn read_block(self, summary: &Summary, block: u32) -> BlockUse {
        self.machine().touch(Summary::line(block), Access::Read);
        summary.block(block)
    }

    fn is_put_off(self, summary: &Summary, block: u32) -> bool {
        self.machine().touch(summary.tried_line(block), Access::Read);
        summary.is_put_off(block, self.machine().now())
    }

    /// Looks at all words of `zone` and remembers the best blocks to empty and to fill. A line of words is charged as a
    /// descriptor that a scanner looks at.
    fn look(self, zone: &Zone<M>, summary: &Summary, failures: Failures) {
        self.own().count(zone.id(), CompactEvent::Look, 1);
        let (mut to_empty, mut to_fill) = (Best::new(), Best::new());
        let blocks = whole_blocks(zone);
        for block in blocks.clone() {
            if block % BLOCKS_PER_LINE == 0 || block == blocks.start {
                self.machine().touch(Summary::line(block), Access::Read);
                self.machine().spend(Chore::MigrateScan, 1);
            }
            let word = summary.block(block);
            if let Some(price) = price_of_emptying(word).filter(|&price| to_empty.wants(price)) {
                if failures == Failures::Forgotten || !self.is_put_off(summary, block) {
                    to_empty.insert(price, block);
                }
            }
            if let Some(price) = price_of_filling(word).filter(|&price| to_fill.wants(price)) {
                if self.blocks().read(self.machine(), Pfn(block << PAGEBLOCK_ORDER)) == MigrateType::Movable {
                    to_fill.insert(price, block);
                }
            }
        }
        self.own().of(zone.id()).picks.to_empty.replace(&to_empty);
        self.own().of(zone.id()).picks.to_fill.replace(&to_fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_are_kept_in_order() {
        let mut best = Best::new();
        let price = |block: u32| (block * 37) % 1009;
        for block in 0..1009 {
            if best.wants(price(block)) {
                best.insert(price(block), block);
            }
        }
        let prices: alloc::vec::Vec<u32> = best.entries.iter().map(|&(price, _)| price).collect();
        assert_eq!(prices, (0..FOUND_MAX as u32).collect::<alloc::vec::Vec<_>>());
        assert!(best.entries.iter().all(|&(kept, block)| kept == price(block)));
    }

    #[test]
    fn what_was_found_is_taken_once_and_in_order() {
        let found = Found::nothing();
        assert_eq!(found.first(), None);
        let mut best = Best::new();
        (0..3).for_each(|block| best.insert(10 - block, block));
        found.replace(&best);
        for expected in [2, 1, 0] {
            assert_eq!(found.first(), Some(expected));
            found.pass(expected);
            found.pass(expected);
        }
        assert_eq!(found.first(), None);
    }

    #[test]
    fn blocks_that_cannot_be_whole_are_filled_first_and_never_emptied() {
        let block = |free, fixed| BlockUse { free, fixed };
        assert_eq!(price_of_emptying(block(500, 1)), None);
        assert_eq!(price_of_emptying(block(512, 0)), None);
        assert_eq!(price_of_emptying(block(500, 0)), Some(12));
        let mut order = [block(300, 0), block(20, 3), block(20, 0), block(300, 3), block(3, 3)];
        order.sort_by_key(|&block| price_of_filling(block));
        assert_eq!(order, [block(300, 3), block(20, 3), block(20, 0), block(300, 0), block(3, 3)]);
    }
}
