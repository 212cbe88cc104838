//! Which free belongs to which allocation. A block may come back whole, or in pieces after having been split.

use std::collections::HashMap;

use mm::{Order, Pfn};

use super::ops::BlockId;

/// A block that is held at this point of the recording.
#[derive(Clone, Copy, Debug)]
struct Live {
    block: BlockId,
    order: Order,
}

/// What a free gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Returned {
    /// A whole block.
    Whole(BlockId),
    /// Pages of a block that must be split first.
    Split {
        block: BlockId,
        /// The number of its first page, once split.
        parts: BlockId,
        /// Order of the block.
        order: Order,
        /// The pages given back.
        pages: Vec<BlockId>,
    },
    /// Pages that were split off before.
    Pages(Vec<BlockId>),
    /// Nothing that the recording knows of.
    Unknown,
}

/// The blocks held, by first frame.
#[derive(Debug, Default)]
pub(super) struct Matching {
    live: HashMap<u32, Live>,
    next: u32,
}

impl Matching {
    /// Blocks are numbered below this.
    pub(super) fn blocks(&self) -> u32 {
        self.next
    }

    /// A block is handed out. Gives its number, and the blocks that held its frames until now: their frees are missing
    /// from the recording.
    pub(super) fn alloc(&mut self, pfn: Pfn, order: Order) -> (BlockId, Vec<BlockId>) {
        let mut displaced = vec![];
        for page in 0..order.pages() {
            if let Some((head, live)) = self.holder(pfn.add(page)) {
                self.live.remove(&head);
                displaced.push(live.block);
            }
        }
        let block = self.number(1);
        self.live.insert(pfn.0, Live { block, order });
        (block, displaced)
    }

    /// Whether `pfn` is in a block that is held.
    pub(super) fn knows(&self, pfn: Pfn) -> bool {
        self.holder(pfn).is_some()
    }

    /// A block is given back.
    pub(super) fn free(&mut self, pfn: Pfn, order: Order) -> Returned {
        let Some((head, live)) = self.holder(pfn) else { return Returned::Unknown };
        if head == pfn.0 && live.order == order {
            self.live.remove(&head);
            return Returned::Whole(live.block);
        }
        if live.order > order {
            let parts = self.split(head, live);
            let pages = self.take_pages(pfn, order);
            return Returned::Split { block: live.block, parts, order: live.order, pages };
        }
        Returned::Pages(self.take_pages(pfn, order))
    }

    fn number(&mut self, count: u32) -> BlockId {
        let first = self.next;
        self.next += count;
        BlockId(first)
    }

    /// The block that `pfn` lies in.
    fn holder(&self, pfn: Pfn) -> Option<(u32, Live)> {
        Order::ZERO.to(Order::MAX).find_map(|order| {
            let head = pfn.align_down(order).0;
            let live = *self.live.get(&head)?;
            (pfn.0 - head < live.order.pages()).then_some((head, live))
        })
    }

    fn split(&mut self, head: u32, live: Live) -> BlockId {
        let parts = self.number(live.order.pages());
        for page in 0..live.order.pages() {
            self.live.insert(head + page, Live { block: BlockId(parts.0 + page), order: Order::ZERO });
        }
        parts
    }

    /// The single pages of a span that are still held.
    fn take_pages(&mut self, pfn: Pfn, order: Order) -> Vec<BlockId> {
        let pages = (0..order.pages()).filter_map(|page| self.live.remove(&(pfn.0 + page)));
        pages.map(|live| live.block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: u8) -> Order {
        Order::new(order).unwrap()
    }

    #[test]
    fn a_block_comes_back_whole() {
        let mut matching = Matching::default();
        let (block, displaced) = matching.alloc(Pfn(64), order(3));
        assert_eq!(displaced, []);
        assert_eq!(matching.free(Pfn(64), order(3)), Returned::Whole(block));
        assert_eq!(matching.free(Pfn(64), order(3)), Returned::Unknown);
    }

    #[test]
    fn a_block_comes_back_in_pages() {
        let mut matching = Matching::default();
        let (block, _) = matching.alloc(Pfn(512), order(9));
        let parts = BlockId(block.0 + 1);
        let pages = vec![BlockId(parts.0 + 7)];
        assert_eq!(
            matching.free(Pfn(519), order(0)),
            Returned::Split { block, parts, order: order(9), pages }
        );
        assert_eq!(matching.free(Pfn(512), order(0)), Returned::Whole(parts), "a page by itself now");
        let rest = matching.free(Pfn(516), order(2));
        assert_eq!(rest, Returned::Pages([4, 5, 6].map(|page| BlockId(parts.0 + page)).to_vec()));
        assert!(!matching.knows(Pfn(519)) && matching.knows(Pfn(520)));
    }

    #[test]
    fn a_held_frame_that_is_allocated_again_is_noticed() {
        let mut matching = Matching::default();
        let (first, _) = matching.alloc(Pfn(1), order(0));
        let (second, displaced) = matching.alloc(Pfn(1), order(0));
        assert_eq!(displaced, [first]);
        assert_eq!(matching.free(Pfn(1), order(0)), Returned::Whole(second));
        let (third, _) = matching.alloc(Pfn(9), order(0));
        assert_eq!(
            matching.alloc(Pfn(8), order(2)).1,
            [third],
            "a larger block displaces all that it covers"
        );
    }
}
