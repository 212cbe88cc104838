//! What lies in memory that slabs are made of: the words that the memory manager keeps there (links of free objects,
//! sheaves), and the state of the cache lines that hold them, an entry each as for frame descriptors. A page has both
//! from its first touch on.

use mm::Addr;
use mm::ids::PAGE_SIZE;

use super::frames::Entry;
use crate::costs::LINE_BYTES;

const WORDS: usize = (PAGE_SIZE / 8) as usize;
const LINES: usize = (PAGE_SIZE / LINE_BYTES) as usize;

/// A page's contents.
#[derive(Debug)]
struct Page {
    words: [u64; WORDS],
    lines: [Entry; LINES],
}

impl Page {
    const EMPTY: Self = Self { words: [0; WORDS], lines: [Entry::UNTOUCHED; LINES] };
}

/// All pages that were touched, by frame.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pages: Vec<Option<Box<Page>>>,
}

impl Objects {
    fn page(&mut self, at: Addr) -> &mut Page {
        let index = at.pfn().0 as usize;
        if index >= self.pages.len() {
            self.pages.resize_with((index + 1).next_multiple_of(WORDS), || None);
        }
        self.pages[index].get_or_insert_with(|| Box::new(Page::EMPTY))
    }

    /// The word at `at`.
    pub(crate) fn load(&self, at: Addr) -> u64 {
        let page = self.pages.get(at.pfn().0 as usize).and_then(Option::as_deref);
        page.map_or(0, |page| page.words[at.offset() as usize / 8])
    }

    pub(crate) fn store(&mut self, at: Addr, word: u64) {
        self.page(at).words[at.offset() as usize / 8] = word;
    }

    /// The entry of the line at `at`; it may be written too.
    pub(super) fn entry(&mut self, at: Addr) -> &mut Entry {
        let line = at.offset() as usize / LINE_BYTES as usize;
        &mut self.page(at).lines[line]
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::State;
    use super::*;

    #[test]
    fn words_and_lines_are_kept_by_address() {
        let mut objects = Objects::default();
        let at = Addr(0x5_4321_0048);
        assert_eq!(objects.load(at), 0);
        objects.store(at, 7);
        objects.store(at.add(8), 8);
        assert_eq!((objects.load(at), objects.load(at.add(8)), objects.load(at.add(PAGE_SIZE))), (7, 8, 0));
        *objects.entry(at) = Entry::new(3, State::Modified, 5);
        assert_eq!(objects.entry(at.add(8)).cpu(), 3);
        assert_eq!(objects.entry(at.add(LINE_BYTES)).state(), State::Invalid);
    }
}
