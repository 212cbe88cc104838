//! A set of page frames: those that the workload holds.

use mm::{Order, Pfn};

/// Pages in one piece of the set.
const PIECE_PAGES: u32 = 1 << 15;
const WORDS: usize = PIECE_PAGES as usize / 64;

/// One bit per frame, in pieces of 128 MiB that exist once a frame of theirs was in the set.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    pieces: Vec<Option<Box<[u64; WORDS]>>>,
}

impl PageSet {
    /// Adds a block. Gives how many of its pages were not in yet.
    pub(crate) fn insert(&mut self, pfn: Pfn, order: Order) -> u32 {
        let index = (pfn.0 / PIECE_PAGES) as usize;
        if index >= self.pieces.len() {
            self.pieces.resize_with(index + 1, || None);
        }
        let piece = self.pieces[index].get_or_insert_with(|| Box::new([0; WORDS]));
        let mut added = 0;
        for (word, mask) in masks(pfn, order) {
            added += (mask & !piece[word]).count_ones();
            piece[word] |= mask;
        }
        added
    }

    /// Takes a block out. Gives how many of its pages were in.
    pub(crate) fn remove(&mut self, pfn: Pfn, order: Order) -> u32 {
        let Some(Some(piece)) = self.pieces.get_mut((pfn.0 / PIECE_PAGES) as usize) else { return 0 };
        let mut removed = 0;
        for (word, mask) in masks(pfn, order) {
            removed += (piece[word] & mask).count_ones();
            piece[word] &= !mask;
        }
        removed
    }
}

/// The words and bits of a block within its piece. Blocks are aligned to their size; one that is not is cut off at the
/// piece's end.
fn masks(pfn: Pfn, order: Order) -> impl Iterator<Item = (usize, u64)> {
    let first = pfn.0 % PIECE_PAGES;
    let end = (first + order.pages()).min(PIECE_PAGES);
    (first / 64..end.div_ceil(64)).map(move |word| {
        let (low, high) = (first.max(word * 64), end.min(word * 64 + 64));
        (word as usize, u64::MAX >> (64 - (high - low)) << (low % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_in_and_come_out_in_pieces() {
        let mut set = PageSet::default();
        let order = |order| Order::new(order).unwrap();
        assert_eq!(set.insert(Pfn(1024), order(9)), 512);
        assert_eq!(set.insert(Pfn(1024), order(3)), 0);
        assert_eq!(set.insert(Pfn(7), order(0)), 1);
        assert_eq!(set.remove(Pfn(1024), order(0)), 1);
        assert_eq!(set.remove(Pfn(1024), order(0)), 0);
        assert_eq!(set.remove(Pfn(1528), order(3)), 8);
        assert_eq!(set.remove(Pfn(1024), order(9)), 503);
        assert_eq!(set.remove(Pfn(1024), order(10)), 0);
        assert_eq!(set.remove(Pfn(7), order(0)), 1);
    }

    #[test]
    fn the_last_frame_has_its_place() {
        let mut set = PageSet::default();
        assert_eq!(set.remove(Pfn(u32::MAX), Order::MAX), 0);
        assert_eq!(set.insert(Pfn(u32::MAX), Order::MAX), 1);
        assert_eq!(set.remove(Pfn(u32::MAX), Order::ZERO), 1);
    }
}
