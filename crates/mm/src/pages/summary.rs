//! What is known of each pageblock without a walk: how many of its pages are free, and how many are *fixed*, which means that
//! nobody could move them. `+compact-summary` has it; where a policy has no use for it, there is no table and nothing is kept.
//!
//! ```text
//!   a block's word:   free 0–512 │ fixed 0–512        sixteen of them share a cache line
//! ```
//!
//! A page is free as long as it is on a buddy list. It is fixed from when it leaves the buddy lists for a list or a request
//! that is not movable until it comes back, or until it is freed to a list of movable pages. So both counts change where pages
//! pass between pagesets and buddy lists, in batches and under the zone lock, but not where a pageset serves a request. Only
//! a page whose freed state differs from how it was allocated (it was taken from a pageblock of another type) is
//! counted on its own: without the lock, which is why `fixed` changes atomically and `free` need not, unless zones meet within a
//! pageblock: then two locks guard one word.
//!
//! What else cannot move, pinned pages above all, is not counted: an attempt at such a block fails before anything has
//! moved, and puts the block off for a while (`tried`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ground::{
    Access, AtomicU16, Line, LineKind, Machine, Nanos, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, Relaxed,
    Topology, Zeroable, zeroed,
};
use crate::pages::frame::Mobility;

/// Words that share a cache line, of four bytes each.
pub(crate) const BLOCKS_PER_LINE: u32 = 16;

/// In `tried`: somebody empties the block at present.
const CLAIMED: u16 = 1 << 15;
/// How often in a row it was tried in vain, up to seven times: the low bits.
const FAILURES: u16 = 7;
/// Above these, from when on it may be tried again, in ticks modulo 2^12.
const UNTIL_SHIFT: u32 = 3;
const UNTIL_MASK: u16 = (1 << 12) - 1;
/// Ticks for which a block is put off after the first failure, 67 ms; for twice as many after each other, up to 4.3 s.
const PUT_OFF: u16 = 4;
/// log2 of the nanoseconds of a tick: 17 ms.
const TICK_SHIFT: u32 = 24;

/// What is known of a pageblock.
#[derive(Debug, Default)]
#[repr(C)]
struct Word {
    /// Pages on the buddy lists; changes under the zone's lock, or the zones'.
    free: AtomicU16,
    /// Pages that cannot move.
    fixed: AtomicU16,
}

const _: () = assert!(Order::MAX.get() == Order::PAGEBLOCK.get() + 1, "a block has two pageblocks at most");

// SAFETY: a word is two integer atomics, which begin as zeros.
unsafe impl Zeroable for Word {}

// SAFETY: an integer atomic, which begins as zero.
unsafe impl Zeroable for AtomicU16 {}

/// What the counts of a pageblock say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockUse {
    /// Pages on the buddy lists.
    pub(crate) free: u32,
    /// Pages that cannot move.
    pub(crate) fixed: u32,
}

/// What is known of all pageblocks, by pfn.
#[derive(Debug)]
pub(crate) struct Summary {
    words: Box<[Word]>,
    tried: Box<[AtomicU16]>,
    zones: Meeting,
}

/// Where zones meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    /// At ends of pageblocks, as on all but tiny machines.
    BetweenBlocks,
    /// Some within a pageblock.
    WithinBlocks,
}

impl Meeting {
    /// Where the zones of `topology` meet.
    pub(crate) fn of(topology: &Topology) -> Self {
        let zones = topology.nodes.iter().flat_map(|node| &node.zones);
        let mut spans: Vec<(u32, u32)> =
            zones.map(|zone| (zone.start.0, zone.start.0 + zone.spanned)).collect();
        spans.sort_unstable();
        let block = |pfn: u32| pfn >> PAGEBLOCK_ORDER;
        let meet = |pair: &[(u32, u32)]| block(pair[0].1 - 1) == block(pair[1].0);
        if spans.windows(2).any(meet) { Self::WithinBlocks } else { Self::BetweenBlocks }
    }
}

impl Summary {
    /// Of the frames below `end`, none of which is free.
    pub(crate) fn new(end: Pfn, zones: Meeting) -> Self {
        let blocks = end.0.div_ceil(PAGEBLOCK_PAGES) as usize;
        Self { words: zeroed(blocks), tried: zeroed(blocks), zones }
    }

    /// Adds `pages`, modulo 2^16, to those on the buddy lists. The caller holds the zone lock.
    #[inline]
    fn add_free(&self, word: &Word, pages: u16) {
        match self.zones {
            // Relaxed: the zone lock orders it, and who reads without it takes it for a hint.
            Meeting::BetweenBlocks => word.free.store(word.free.load(Relaxed).wrapping_add(pages), Relaxed),
            // Who holds another zone's lock may be here, too.
            Meeting::WithinBlocks => {
                word.free.fetch_add(pages, Relaxed);
            }
        }
    }

    #[inline]
    fn word(&self, pfn: Pfn) -> &Word {
        &self.words[(pfn.0 >> PAGEBLOCK_ORDER) as usize]
    }

    /// A block of `pages`, up to a pageblock's, comes to the buddy lists, whose lock is held; `was` until now.
    #[inline]
    fn join<M: Machine>(&self, machine: &M, (pfn, pages): (Pfn, u16), was: Mobility) {
        machine.touch(line(pfn), Access::Store);
        let word = self.word(pfn);
        self.add_free(word, pages);
        if was == Mobility::Fixed {
            word.fixed.fetch_sub(pages, Relaxed);
        }
    }

    /// A block of `pages`, up to a pageblock's, leaves the buddy lists, whose lock is held, to be `is`.
    #[inline]
    fn leave<M: Machine>(&self, machine: &M, (pfn, pages): (Pfn, u16), is: Mobility) {
        machine.touch(line(pfn), Access::Store);
        let word = self.word(pfn);
        self.add_free(word, pages.wrapping_neg());
        if is == Mobility::Fixed {
            word.fixed.fetch_add(pages, Relaxed);
        }
    }

    /// [`Self::join`] for a block that may be larger than a pageblock.
    pub(super) fn join_any<M: Machine>(&self, machine: &M, (pfn, order): (Pfn, Order), was: Mobility) {
        let pages = order.min(Order::PAGEBLOCK).pages() as u16;
        self.join(machine, (pfn, pages), was);
        if order > Order::PAGEBLOCK {
            self.join(machine, (pfn.add(PAGEBLOCK_PAGES), pages), was);
        }
    }

    /// [`Self::leave`] for a block that may be larger than a pageblock.
    pub(super) fn leave_any<M: Machine>(&self, machine: &M, (pfn, order): (Pfn, Order), is: Mobility) {
        let pages = order.min(Order::PAGEBLOCK).pages() as u16;
        self.leave(machine, (pfn, pages), is);
        if order > Order::PAGEBLOCK {
            self.leave(machine, (pfn.add(PAGEBLOCK_PAGES), pages), is);
        }
    }

    /// A block of up to a pageblock that is not free changes hands.
    #[cold]
    pub(super) fn retype<M: Machine>(
        &self,
        machine: &M,
        (pfn, order): (Pfn, Order),
        (was, is): (Mobility, Mobility),
    ) {
        if was == is {
            return;
        }
        machine.touch(line(pfn), Access::Atomic);
        let (word, pages) = (self.word(pfn), order.pages() as u16);
        match is {
            Mobility::Fixed => word.fixed.fetch_add(pages, Relaxed),
            Mobility::Movable => word.fixed.fetch_sub(pages, Relaxed),
        };
    }

    /// What is known of the pageblock numbered `block`, as anybody may read it.
    #[inline]
    pub(crate) fn block(&self, block: u32) -> BlockUse {
        let word = &self.words[block as usize];
        BlockUse { free: u32::from(word.free.load(Relaxed)), fixed: u32::from(word.fixed.load(Relaxed)) }
    }

    /// Whether `block` is to be left alone at time `now`: somebody empties it, or it failed of late.
    #[inline]
    pub(crate) fn is_put_off(&self, block: u32, now: Nanos) -> bool {
        let tried = self.tried[block as usize].load(Relaxed);
        let left = (tried >> UNTIL_SHIFT).wrapping_sub(tick(now)) & UNTIL_MASK;
        tried & CLAIMED != 0 || tried & FAILURES != 0 && left != 0 && left <= UNTIL_MASK / 2
    }

    /// Whether somebody empties `block` at present.
    pub(crate) fn is_claimed(&self, block: u32) -> bool {
        self.tried[block as usize].load(Relaxed) & CLAIMED != 0
    }

    /// The line that has the word of `block`.
    #[inline]
    pub(crate) fn line(block: u32) -> Line {
        Line { kind: LineKind::PageblockSummary, index: block / BLOCKS_PER_LINE }
    }

    /// The line that says how attempts at `block` ended: beyond those of the words.
    pub(crate) fn tried_line(&self, block: u32) -> Line {
        let words = (self.words.len() as u32).div_ceil(BLOCKS_PER_LINE);
        Line { kind: LineKind::PageblockSummary, index: words + block / (2 * BLOCKS_PER_LINE) }
    }

    /// `block` is the caller's to empty, unless it is somebody else's.
    pub(crate) fn claim(&self, block: u32) -> bool {
        self.tried[block as usize].fetch_or(CLAIMED, Relaxed) & CLAIMED == 0
    }

    /// Ends [`Self::claim`]: nothing is held against the block.
    pub(crate) fn release(&self, block: u32) {
        self.tried[block as usize].fetch_and(!CLAIMED, Relaxed);
    }

    /// Ends [`Self::claim`]: the block was emptied.
    pub(crate) fn forgive(&self, block: u32) {
        self.tried[block as usize].store(0, Relaxed);
    }

    /// Ends [`Self::claim`]: something in the block stays, as was found at `now`.
    pub(crate) fn put_off(&self, block: u32, now: Nanos) {
        let failures = (self.tried[block as usize].load(Relaxed) & FAILURES) + 1;
        let failures = failures.min(FAILURES);
        let until = tick(now).wrapping_add(PUT_OFF << (failures - 1)) & UNTIL_MASK;
        self.tried[block as usize].store(until << UNTIL_SHIFT | failures, Relaxed);
    }
}

fn tick(now: Nanos) -> u16 {
    (now.0 >> TICK_SHIFT) as u16 & UNTIL_MASK
}

/// The line that has the word of the pageblock of `pfn`.
#[inline]
fn line(pfn: Pfn) -> Line {
    Line { kind: LineKind::PageblockSummary, index: (pfn.0 >> PAGEBLOCK_ORDER) / BLOCKS_PER_LINE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::ZoneKind;

    #[test]
    fn a_block_that_fails_is_left_alone_for_longer_each_time() {
        let summary = Summary::new(Pfn(PAGEBLOCK_PAGES), Meeting::BetweenBlocks);
        let at = |tick: u64| Nanos(tick << TICK_SHIFT);
        let mut now = 4000;
        for failure in 0..9 {
            assert!(!summary.is_put_off(0, at(now)) && summary.claim(0) && !summary.claim(0));
            assert!(summary.is_put_off(0, at(now)), "it is claimed");
            summary.put_off(0, at(now));
            let wait = u64::from(PUT_OFF) << failure.min(6);
            assert!(summary.is_put_off(0, at(now)) && summary.is_put_off(0, at(now + wait - 1)));
            assert!(!summary.is_put_off(0, at(now + wait)));
            now += wait;
        }
        assert!(summary.claim(0));
        summary.forgive(0);
        assert!(!summary.is_put_off(0, at(now)));
    }

    #[test]
    fn zones_that_share_a_pageblock_share_a_word() {
        let kinds = [ZoneKind::Dma, ZoneKind::Normal];
        let meeting = |pages: u32| Meeting::of(&Topology::one_node(&kinds, pages, 1));
        assert_eq!(meeting(PAGEBLOCK_PAGES), Meeting::BetweenBlocks);
        assert_eq!(meeting(PAGEBLOCK_PAGES / 2), Meeting::WithinBlocks);
        assert_eq!(meeting(PAGEBLOCK_PAGES + 1), Meeting::WithinBlocks);
    }
}
