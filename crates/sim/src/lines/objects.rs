//! The contents of slabs' memory: the words that the memory manager keeps there (links of free objects, sheaves), and the
//! state of the cache lines that hold them, with an entry each as for frame descriptors.
//!
//! Most lines hold at most one word, a link. It stands beside the line's entry: touching an object and following its link
//! then takes one access to the host's memory. The words of other lines, sheaves' above all, have a place of their own.

use mm::Addr;

use super::frames::LineEntry;
use crate::costs::LINE_BYTES;

const WORDS: usize = (LINE_BYTES / 8) as usize;

/// Lines of 128 MiB: 32 MiB of them, which is enough for the command's heap to ask for huge pages, of which
/// what is used comes. Slabs lie close together by pageblocks.
const BLOCK: usize = (128 << 20) / LINE_BYTES as usize;

/// A line: its word, or which of [`Objects::rows`] has its words; above, the entry and, from bit 32 on, which of
/// the line's words that word is, [`ROW`] where they are in a row. All zeros is an untouched line whose words are 0.
type Slot = [u64; 2];

const ROW: u64 = WORDS as u64;

/// All lines that were touched, by address.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Numbers and not structs: the allocator knows of those that zeros need no writing, so that a block takes
    /// the host's memory where it is touched only.
    blocks: Vec<Box<[Slot]>>,
    rows: Vec<[u64; WORDS]>,
}

impl Objects {
    #[inline]
    fn slot(&self, at: Addr) -> Slot {
        let LineOfBlock { block, line } = place(at);
        self.blocks.get(block).and_then(|block| block.get(line)).copied().unwrap_or_default()
    }

    /// Looks for the line at `at`, if that is an address; it is asked for soon.
    #[inline]
    pub(super) fn expect(&self, at: Addr) {
        let LineOfBlock { block, line } = place(at);
        if let Some(slot) = self.blocks.get(block).and_then(|block| block.get(line)) {
            mm::prefetch(slot);
        }
    }

    #[inline]
    fn slot_mut(&mut self, at: Addr) -> &mut Slot {
        let LineOfBlock { block, line } = place(at);
        if self.blocks.get(block).is_none_or(|block| block.is_empty()) {
            self.add(block);
        }
        &mut self.blocks[block][line]
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, block: usize) {
        if block >= self.blocks.len() {
            self.blocks.resize_with(block + 1, Box::default);
        }
        self.blocks[block] = vec![Slot::default(); BLOCK].into_boxed_slice();
    }

    /// The word at `at`.
    #[inline]
    pub(crate) fn load(&self, at: Addr) -> u64 {
        self.look(at).0
    }

    /// The word at `at`, and the entry of its line: both take one access to the host's memory.
    #[inline]
    pub(super) fn look(&self, at: Addr) -> (u64, LineEntry) {
        let [word, above] = self.slot(at);
        let found = match above >> 32 {
            ROW => self.rows[word as usize][word_of(at)],
            which if which == word_of(at) as u64 => word,
            _ => 0,
        };
        (found, LineEntry::from_bits(above as u32))
    }

    /// Stores `word` at `at`.
    pub(crate) fn store(&mut self, at: Addr, word: u64) {
        self.put(at, word);
    }

    /// The same; the entry of the line, which lies beside the word.
    #[inline]
    pub(super) fn put(&mut self, at: Addr, word: u64) -> LineEntry {
        let which = word_of(at) as u64;
        let slot = self.slot_mut(at);
        let [old, above] = *slot;
        let old_which = above >> 32;
        if old_which == which || old == 0 && old_which != ROW {
            *slot = [word, which << 32 | u64::from(above as u32)];
        } else if old_which == ROW {
            self.rows[old as usize][word_of(at)] = word;
        } else if word != 0 {
            self.begin_row(at, word);
        }
        LineEntry::from_bits(above as u32)
    }

    #[inline(never)]
    fn begin_row(&mut self, at: Addr, word: u64) {
        let [old, above] = self.slot(at);
        let mut row = [0; WORDS];
        row[(above >> 32) as usize] = old;
        row[word_of(at)] = word;
        let index = self.rows.len() as u64;
        self.rows.push(row);
        *self.slot_mut(at) = [index, ROW << 32 | u64::from(above as u32)];
    }

    #[inline]
    pub(super) fn entry(&self, at: Addr) -> LineEntry {
        LineEntry::from_bits(self.slot(at)[1] as u32)
    }

    #[inline]
    pub(super) fn set_entry(&mut self, at: Addr, entry: LineEntry) {
        let [_, above] = self.slot_mut(at);
        *above = *above >> 32 << 32 | u64::from(entry.bits());
    }
}

/// A line, by the block that it is in and its place there.
struct LineOfBlock {
    block: usize,
    line: usize,
}

#[inline]
fn place(at: Addr) -> LineOfBlock {
    let line = (at.0 / LINE_BYTES) as usize;
    LineOfBlock { block: line / BLOCK, line: line % BLOCK }
}

#[inline]
fn word_of(at: Addr) -> usize {
    (at.0 / 8) as usize % WORDS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mm::ids::PAGE_SIZE;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::super::frames::CopyState;
    use super::*;

    #[test]
    fn words_and_lines_are_kept_by_address() {
        let mut objects = Objects::default();
        let at = Addr(0x5_4321_0048);
        assert_eq!(objects.load(at), 0);
        objects.store(at, 7);
        objects.store(at.add(8), 8);
        assert_eq!((objects.load(at), objects.load(at.add(8)), objects.load(at.add(PAGE_SIZE))), (7, 8, 0));
        objects.set_entry(at, LineEntry::new(3, CopyState::Modified, 5));
        assert_eq!(objects.entry(at.add(8)).cpu(), 3);
        assert_eq!(objects.entry(at.add(LINE_BYTES)).state(), CopyState::Invalid);
        assert_eq!((objects.load(at), objects.load(at.add(8))), (7, 8));
    }

    #[test]
    fn lines_of_one_word_take_no_row_and_zeros_none_either() {
        let mut objects = Objects::default();
        let at = Addr(0x7000);
        for word in 0..8 {
            objects.store(at.add(8 * word), 0);
        }
        objects.store(at.add(24), 1);
        objects.store(at.add(32), 0);
        objects.store(at.add(24), 0);
        objects.store(at.add(40), 2);
        assert!(objects.rows.is_empty());
        assert_eq!((objects.load(at.add(24)), objects.load(at.add(40))), (0, 2));
        objects.store(at, 3);
        assert_eq!((objects.rows.len(), objects.load(at), objects.load(at.add(40))), (1, 3, 2));
    }

    #[test]
    fn it_holds_what_a_map_of_words_and_one_of_lines_hold() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut objects = Objects::default();
        let (mut words, mut lines) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..20_000 {
            // 32 lines each side of a border of two blocks, and 32 far from them.
            let far = if random.next_u64() % 4 == 0 { 9 << 30 } else { 0 };
            let word = BLOCK as u64 * 8 - 32 * 8 + random.next_u64() % (64 * 8);
            let at = Addr(far + word * 8);
            let value = random.next_u64() % 4;
            match random.next_u64() % 8 {
                0..3 => {
                    objects.store(at, value);
                    words.insert(at.0, value);
                }
                3 => {
                    let entry =
                        LineEntry::new((random.next_u64() % 1024) as u16, CopyState::Shared, value as u32);
                    objects.set_entry(at, entry);
                    lines.insert(at.0 / LINE_BYTES, entry);
                }
                4..6 => {
                    let entry = lines.get(&(at.0 / LINE_BYTES)).copied().unwrap_or(LineEntry::from_bits(0));
                    assert_eq!(objects.entry(at), entry);
                }
                _ => assert_eq!(objects.load(at), words.get(&at.0).copied().unwrap_or(0)),
            }
        }
        assert!(objects.rows.len() > 32);
    }
}
