//! Readahead: what is read of a file besides the page that was asked for, as Linux decides it (mm/readahead.c, read in 6.12
//! as far as memory goes; unchecked). A reader who goes on where he stopped gets a window that doubles; the next one is read when he
//! comes to a marked page of this one. A fault of a mapping reads around itself. Folios are of one page.
//!
//! Whoever has a file open is a [`Reader`] of it; its mappings are one together. A reader decides on a [`Stretch`], which the door brings
//! in. What is read is there at once: the caller plays the disk, and is told how many pages it has to bring. A file of which
//! nobody has said how long it is ([`File::set_len`]) is not read ahead.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::file::{Asker, File, FileState, Wanted};
use super::{FilesDoor, FilesGround};
use crate::ground::ids::Pfn;
use crate::ground::machine::Machine;
use crate::ground::sync::Relaxed;
use crate::lru::page::PageFlag;
use crate::pages::request::{AllocError, Placement};

/// Pages of a whole window: `read_ahead_kb` is 128 by default.
pub(super) const RA_PAGES: u32 = 32;

/// After so many faults more than hits, nothing is read around them.
const LOTS_OF_MISSES: u32 = 100;

/// Pages of a file that are in memory, by their number.
type Pages = BTreeMap<u32, Pfn>;

/// What is known of how a file is read by one who has it open (`file_ra_state`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    start: u32,
    size: u32,
    /// So many of the last pages are there to be read before they are asked for: at their first, the next window is read.
    ahead: u32,
    /// Faults that had to read, less those that had not.
    misses: u32,
    /// The page behind the last one that was read by a call.
    next: u32,
    pattern: ReadPattern,
}

/// How a program says that it will read (`posix_fadvise`, `madvise`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadPattern {
    /// It does not say.
    #[default]
    Normal,
    /// Here and there: nothing is read ahead.
    Random,
    /// From the first on: windows are twice as large, and mappings read forward only.
    Sequential,
}

/// What reading pages by a call came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadDone {
    /// Pages that were there.
    pub hits: u32,
    /// How often the reader has to wait for the disk.
    pub waits: u32,
    /// Pages that come from the disk, those that were read ahead too.
    pub reads: u32,
}

/// Pages that are wanted: the first of them, and how many.
#[derive(Clone, Copy)]
struct Ask {
    index: u32,
    pages: u32,
}

/// Pages to read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    first: u32,
    pages: u32,
    /// The page at which the next stretch is to be read.
    mark: Option<u32>,
}

/// The size of a first window for a request of `pages`.
fn first_size(pages: u32, most: u32) -> u32 {
    let size = pages.next_power_of_two();
    match size {
        size if size <= most / 32 => size * 4,
        size if size <= most / 4 => size * 2,
        _ => most,
    }
}

/// The size of the window after one of `size`.
fn next_size(size: u32, most: u32) -> u32 {
    match size {
        size if size < most / 16 => size * 4,
        size if size <= most / 2 => size * 2,
        _ => most,
    }
}

/// How many pages before `index` are there without a gap, `most` at most.
fn cached_before(pages: &Pages, index: u32, most: u32) -> u32 {
    let before = pages.range(index.saturating_sub(most)..index).rev().zip((0..index).rev());
    before.take_while(|&((&there, _), expected)| there == expected).count() as u32
}

/// The first page from `index` on that is not there, `most` further at most.
fn missing_after(pages: &Pages, index: u32, most: u32) -> u32 {
    let there = pages.range(index..=index.saturating_add(most)).zip(index..);
    index + there.take_while(|&((&there, _), expected)| there == expected).count() as u32
}

impl Reader {
    /// Pages of his windows at most, where those of his device have `device` (`ractl_max_pages`).
    fn most(&self, device: u32) -> u32 {
        match self.pattern {
            ReadPattern::Normal | ReadPattern::Random => device,
            ReadPattern::Sequential => 2 * device,
        }
    }

    /// The first page of what is asked for is not there (`page_cache_sync_ra`).
    fn missing(&mut self, there: &Pages, Ask { index, pages }: Ask, device: u32) -> Stretch {
        let most = self.most(device);
        let by_itself = |pages| Stretch { first: index, pages, mark: None };
        if most == 0 {
            return by_itself(1);
        }
        if self.pattern == ReadPattern::Random {
            return by_itself(pages);
        }
        let follows = index.wrapping_add(1).wrapping_sub(self.next) <= 1;
        let (size, ahead) = if index == 0 || pages > most || follows {
            let size = first_size(pages, most);
            (size, if size > pages { size - pages } else { size / 2 })
        } else {
            let before = cached_before(there, index, most);
            if before <= pages {
                return by_itself(pages);
            }
            let before = if before == index { before * 2 } else { before };
            ((before + pages).min(most), 1)
        };
        self.open(index, size, ahead)
    }

    /// The first page of what is asked for has the mark (`page_cache_async_ra`).
    fn marked(&mut self, there: &Pages, Ask { index, pages }: Ask, device: u32) -> Option<Stretch> {
        let most = self.most(device);
        if self.pattern == ReadPattern::Random || most == 0 {
            return None;
        }
        let (start, size) = if index == self.start.saturating_add(self.size) - self.ahead {
            (self.start.saturating_add(self.size), next_size(self.size, most))
        } else {
            let start = missing_after(there, index + 1, most);
            if start - index > most {
                return None;
            }
            (start, next_size(pages.saturating_add(start - index), most))
        };
        Some(self.open(start, size, size))
    }

    /// A fault of a mapping found page `index` missing (`do_sync_mmap_readahead`).
    fn around(&mut self, index: u32, device: u32) -> Option<Stretch> {
        self.misses = (self.misses + 1).min(10 * LOTS_OF_MISSES);
        let reads = device > 0 && self.misses <= LOTS_OF_MISSES;
        reads.then(|| self.open(index.saturating_sub(device / 2), device, device / 4))
    }

    fn open(&mut self, start: u32, size: u32, ahead: u32) -> Stretch {
        *self = Self { start, size, ahead, ..*self };
        Stretch { first: start, pages: size, mark: Some(start.saturating_add(size) - ahead) }
    }
}

impl<M: Machine, S> File<M, S> {
    /// It is `pages` long; nothing is read ahead beyond that.
    pub fn set_len(&self, pages: u32) {
        self.len.store(pages, Relaxed);
    }

    /// Windows on its device have `pages` at most (`read_ahead_kb`).
    pub fn set_read_ahead(&self, pages: u32) {
        self.read_ahead.store(pages, Relaxed);
    }

    /// How long it is, if anybody has said so.
    fn len(&self) -> Option<u32> {
        Some(self.len.load(Relaxed)).filter(|&pages| pages != u32::MAX)
    }

    fn read_ahead(&self) -> u32 {
        self.read_ahead.load(Relaxed)
    }
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// Says how `file` will be read (`posix_fadvise`) by who reads it with [`FilesDoor::read_pages`].
    pub fn advise_file(self, file: &File<M, G::Space>, pattern: ReadPattern) {
        file.state.lock_local(self.machine()).reader.pattern = pattern;
    }

    /// Reads `pages` of `file` by a call, with what is read ahead of them: they are in the page cache afterwards, and were used. All who
    /// call this are one reader.
    ///
    /// # Errors
    /// If there is no memory for one of them.
    pub fn read_pages(
        self,
        file: &File<M, G::Space>,
        pages: Range<u32>,
        from: Placement,
    ) -> Result<ReadDone, AllocError> {
        let mut reader = file.state.lock_local(self.machine()).reader;
        let done = self.read_pages_by(&mut reader, file, pages, from);
        file.state.lock_local(self.machine()).reader = reader;
        done
    }

    /// The same of one reader. The page at which his last call ended is not used once more if he goes on in it (`filemap_read`).
    ///
    /// # Errors
    /// If there is no memory for one of them.
    pub fn read_pages_by(
        self,
        reader: &mut Reader,
        file: &File<M, G::Space>,
        pages: Range<u32>,
        from: Placement,
    ) -> Result<ReadDone, AllocError> {
        let mut done = ReadDone::default();
        for index in pages.clone() {
            let ask = Ask { index, pages: pages.end - index };
            let ahead = self.read_before(reader, file, ask, from.into());
            let (pfn, hit) = self.file_page(file, index, (Wanted::Contents, from.into()))?;
            if index != pages.start || reader.next.checked_sub(1) != Some(index) {
                self.lru().mark_accessed(pfn);
            }
            self.lru().put_page(pfn);
            let waits = !hit || ahead.waits;
            done.hits += u32::from(!waits);
            done.waits += u32::from(waits);
            done.reads += ahead.pages + u32::from(!hit);
            reader.next = index + 1;
        }
        self.memcg().settle_high();
        Ok(done)
    }

    /// What is read before the first page that is asked for is looked up.
    fn read_before(self, reader: &mut Reader, file: &File<M, G::Space>, ask: Ask, from: Asker) -> Ahead {
        let Some(len) = file.len() else { return Ahead::default() };
        let state = file.state.lock_local(self.machine());
        let Some(&page) = state.pages.get(&ask.index) else {
            let stretch = reader.missing(&state.pages, ask, file.read_ahead());
            drop(state);
            return Ahead { pages: self.bring(file, stretch, from), waits: ask.index < len };
        };
        let marked = self.lru().page(page).clear(PageFlag::ReadAhead);
        let stretch = marked.then(|| reader.marked(&state.pages, ask, file.read_ahead())).flatten();
        drop(state);
        Ahead { pages: stretch.map_or(0, |stretch| self.bring(file, stretch, from)), waits: false }
    }

    /// A fault found page `index` missing; gives how many pages are read, that one too.
    pub(crate) fn read_around(
        self,
        file: &File<M, G::Space>,
        index: u32,
        pattern: ReadPattern,
        from: Asker,
    ) -> u32 {
        if file.len().is_none() {
            return 0;
        }
        let device = file.read_ahead();
        let stretch = {
            let mut state = file.state.lock_local(self.machine());
            let FileState { reader, pages, .. } = &mut *state;
            match pattern {
                ReadPattern::Random => None,
                ReadPattern::Sequential => Some(reader.missing(pages, Ask { index, pages: device }, device)),
                ReadPattern::Normal => reader.around(index, device),
            }
        };
        stretch.map_or(0, |stretch| self.bring(file, stretch, from))
    }

    /// A fault found the page at `pfn`, numbered `index`, in its file (`do_async_mmap_readahead`); gives how many are read.
    pub(crate) fn read_after_hit(
        self,
        file: &File<M, G::Space>,
        (index, pfn): (u32, Pfn),
        pattern: ReadPattern,
        from: Asker,
    ) -> u32 {
        if file.len().is_none() || pattern == ReadPattern::Random {
            return 0;
        }
        self.count_mapped_hits(file, 1);
        if !self.lru().page(pfn).clear(PageFlag::ReadAhead) {
            return 0;
        }
        let device = file.read_ahead();
        let stretch = {
            let mut state = file.state.lock_local(self.machine());
            let FileState { reader, pages, .. } = &mut *state;
            reader.marked(pages, Ask { index, pages: device }, device)
        };
        stretch.map_or(0, |stretch| self.bring(file, stretch, from))
    }

    /// `pages` of `file` were mapped without having to be read.
    pub(crate) fn count_mapped_hits(self, file: &File<M, G::Space>, pages: u32) {
        if file.len().is_some() {
            let mut state = file.state.lock_local(self.machine());
            state.reader.misses = state.reader.misses.saturating_sub(pages);
        }
    }

    /// Adds those pages of `stretch` that the file has and that are not there, and marks the one at its mark if it is new. Gives how
    /// many are new; without memory it ends early.
    fn bring(self, file: &File<M, G::Space>, stretch: Stretch, from: Asker) -> u32 {
        let Stretch { first, pages, mark } = stretch;
        let end = first.saturating_add(pages).min(file.len().unwrap_or(u32::MAX));
        let missing: Vec<u32> = {
            let state = file.state.lock_local(self.machine());
            (first..end).filter(|index| !state.pages.contains_key(index)).collect()
        };
        let mut new = 0;
        for index in missing {
            let Ok((pfn, _)) = self.file_page(file, index, (Wanted::Contents, from)) else { break };
            if mark == Some(index) {
                self.lru().page(pfn).set(PageFlag::ReadAhead);
            }
            self.lru().put_page(pfn);
            new += 1;
        }
        new
    }

    /// Whether the page numbered `index` is there at this moment.
    pub(crate) fn has_page(self, file: &File<M, G::Space>, index: u32) -> bool {
        file.state.lock_local(self.machine()).pages.contains_key(&index)
    }
}

/// What was read before a page was looked up.
#[derive(Clone, Copy, Default)]
struct Ahead {
    pages: u32,
    /// The page itself was among them.
    waits: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_small_and_double() {
        assert_eq!([1, 2, 4, 8, 9, 32].map(|pages| first_size(pages, 32)), [4, 4, 8, 16, 32, 32]);
        assert_eq!([1, 2, 4, 16, 17, 32].map(|size| next_size(size, 32)), [4, 4, 8, 32, 32, 32]);
    }

    #[test]
    fn what_is_cached_around_a_page_tells_a_stream_from_a_read_by_itself() {
        let there: Pages = [0, 1, 4, 5, 6].into_iter().map(|page| (page, Pfn(page))).collect();
        assert_eq!([0, 2, 3, 7].map(|index| cached_before(&there, index, 9)), [0, 2, 0, 3]);
        assert_eq!((cached_before(&there, 7, 2), missing_after(&there, 4, 9)), (2, 7));
        assert_eq!((missing_after(&there, 2, 9), missing_after(&there, 4, 1)), (2, 6));
        let missing = |index| Reader::default().missing(&there, Ask { index, pages: 1 }, 32);
        assert_eq!(missing(7), Stretch { first: 7, pages: 4, mark: Some(10) }, "as much as is before it");
        assert_eq!(missing(2).pages, 5, "twice that where it is all from the first on");
        assert_eq!(missing(9), Stretch { first: 9, pages: 1, mark: None });
    }

    #[test]
    fn a_device_that_reads_nothing_ahead_reads_page_by_page() {
        let ask = Ask { index: 0, pages: 8 };
        let mut reader = Reader::default();
        assert_eq!(reader.missing(&Pages::new(), ask, 0), Stretch { first: 0, pages: 1, mark: None });
        assert_eq!((reader.marked(&Pages::new(), ask, 0), reader.around(4, 0)), (None, None));
    }
}
