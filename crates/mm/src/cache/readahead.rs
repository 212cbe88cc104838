//! Readahead: what is read of a file besides the page that was asked for, as Linux decides it (mm/readahead.c, read in 6.12
//! as far as memory goes; unchecked). A reader who goes on where he stopped gets a window that doubles; the next one is read when he
//! comes to a marked page of this one. A fault of a mapping reads around itself. Folios are of one page.
//!
//! A file has one window, as if one reader had it open. What is read is there at once: the caller plays the disk, and is told
//! how many pages it has to bring. A file of which nobody has said how long it is ([`File::set_len`]) is not read ahead.

use super::file::{Asker, Cached, File, Wanted};
use super::{FilesDoor, FilesGround};
use crate::ground::ids::Pfn;
use crate::ground::machine::Machine;
use crate::ground::sync::Relaxed;
use crate::lru::page::PageFlag;
use crate::pages::request::{AllocError, Placement};

/// Pages of a whole window: `read_ahead_kb` is 128 by default.
pub(crate) const RA_PAGES: u32 = 32;

/// After so many faults more than hits, nothing is read around them.
const LOTS_OF_MISSES: u32 = 100;

/// What is known of how a file is read (`file_ra_state`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
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

impl<M: Machine, S> File<M, S> {
    /// It is `pages` long; nothing is read ahead beyond that.
    pub fn set_len(&self, pages: u32) {
        self.len.store(pages, Relaxed);
    }

    /// How long it is, if anybody has said so.
    fn len(&self) -> Option<u32> {
        Some(self.len.load(Relaxed)).filter(|&pages| pages != u32::MAX)
    }
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// Says how `file` will be read (`posix_fadvise`).
    pub fn advise_file(self, file: &File<M, G::Space>, pattern: ReadPattern) {
        file.state.lock_local(self.machine()).window.pattern = pattern;
    }

    /// Reads the `pages` from `first` on of `file` by a call, with what is read ahead of them: they are in the page cache
    /// afterwards, and were used.
    ///
    /// # Errors
    /// If there is no memory for one of them.
    pub fn read_pages(
        self,
        file: &File<M, G::Space>,
        first: u32,
        pages: u32,
        from: Placement,
    ) -> Result<ReadDone, AllocError> {
        let (mut done, end) = (ReadDone::default(), first.saturating_add(pages));
        for index in first..end {
            let ahead = self.read_before(file, index, end - index, from.into());
            let hit = self.read_file(file, index, from)? == Cached::Hit;
            let waits = !hit || ahead.waits;
            done.hits += u32::from(!waits);
            done.waits += u32::from(waits);
            done.reads += ahead.pages + u32::from(!hit);
            file.state.lock_local(self.machine()).window.next = index + 1;
        }
        self.memcg().settle_high();
        Ok(done)
    }

    /// What is read before page `index`, of which with those after it `wanted` are asked for, is looked up.
    fn read_before(self, file: &File<M, G::Space>, index: u32, wanted: u32, from: Asker) -> Ahead {
        let Some(len) = file.len() else { return Ahead::default() };
        let there = self.peek(file, index);
        let Some(page) = there else {
            return Ahead { pages: self.read_missing(file, index, wanted, from), waits: index < len };
        };
        let marked = self.lru().page(page).clear(PageFlag::ReadAhead);
        let pages = if marked { self.read_next(file, index, wanted, from) } else { 0 };
        Ahead { pages, waits: false }
    }

    fn window(self, file: &File<M, G::Space>) -> Window {
        file.state.lock_local(self.machine()).window
    }

    /// Page `index` is not there, and `wanted` are asked for (`page_cache_sync_ra`); gives how many are read.
    fn read_missing(self, file: &File<M, G::Space>, index: u32, wanted: u32, from: Asker) -> u32 {
        let window = self.window(file);
        let most = match window.pattern {
            ReadPattern::Random => return self.bring(file, (index, wanted), None, from),
            ReadPattern::Normal => RA_PAGES,
            ReadPattern::Sequential => 2 * RA_PAGES,
        };
        let follows = index.wrapping_add(1).wrapping_sub(window.next) <= 1;
        let (size, ahead) = if index == 0 || wanted > most || follows {
            let size = first_size(wanted, most);
            (size, if size > wanted { size - wanted } else { size / 2 })
        } else {
            let before = self.cached_before(file, index, most);
            if before <= wanted {
                // A read by itself: what was asked for.
                return self.bring(file, (index, wanted), None, from);
            }
            let before = if before == index { before * 2 } else { before };
            ((before + wanted).min(most), 1)
        };
        self.open(file, Window { start: index, size, ahead, ..window }, from)
    }

    /// The reader came to the marked page `index` (`page_cache_async_ra`).
    fn read_next(self, file: &File<M, G::Space>, index: u32, wanted: u32, from: Asker) -> u32 {
        let window = self.window(file);
        let most = match window.pattern {
            ReadPattern::Random => return 0,
            ReadPattern::Normal => RA_PAGES,
            ReadPattern::Sequential => 2 * RA_PAGES,
        };
        let expected = window.start + window.size - window.ahead;
        let (start, size) = if index == expected {
            (window.start + window.size, next_size(window.size, most))
        } else {
            let start = self.missing_after(file, index + 1, most);
            if start - index > most {
                return 0;
            }
            (start, next_size(start - index + wanted, most))
        };
        self.open(file, Window { start, size, ahead: size, ..window }, from)
    }

    /// A fault found page `index` missing (`do_sync_mmap_readahead`); gives how many pages are read, that one too.
    pub(crate) fn read_around(
        self,
        file: &File<M, G::Space>,
        index: u32,
        pattern: ReadPattern,
        from: Asker,
    ) -> u32 {
        if file.len().is_none() || pattern == ReadPattern::Random {
            return 0;
        }
        if pattern == ReadPattern::Sequential {
            return self.read_missing(file, index, RA_PAGES, from);
        }
        let window = {
            let mut state = file.state.lock_local(self.machine());
            state.window.misses = (state.window.misses + 1).min(10 * LOTS_OF_MISSES);
            state.window
        };
        if window.misses > LOTS_OF_MISSES {
            return 0;
        }
        let start = index.saturating_sub(RA_PAGES / 2);
        self.open(file, Window { start, size: RA_PAGES, ahead: RA_PAGES / 4, ..window }, from)
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
        let marked = self.lru().page(pfn).clear(PageFlag::ReadAhead);
        if marked { self.read_next(file, index, RA_PAGES, from) } else { 0 }
    }

    /// `pages` of `file` were mapped without having to be read.
    pub(crate) fn count_mapped_hits(self, file: &File<M, G::Space>, pages: u32) {
        if file.len().is_some() {
            let mut state = file.state.lock_local(self.machine());
            state.window.misses = state.window.misses.saturating_sub(pages);
        }
    }

    /// Reads a window, which is the file's from now on.
    fn open(self, file: &File<M, G::Space>, window: Window, from: Asker) -> u32 {
        {
            let mut state = file.state.lock_local(self.machine());
            state.window = Window { next: state.window.next, misses: state.window.misses, ..window };
        }
        let mark = window.start + window.size - window.ahead;
        self.bring(file, (window.start, window.size), Some(mark), from)
    }

    /// Adds those of the pages of `range`, a first one and how many, that are not there, and marks the one numbered `mark`
    /// if it is new. Gives how many are new; without memory it ends early.
    fn bring(self, file: &File<M, G::Space>, range: (u32, u32), mark: Option<u32>, from: Asker) -> u32 {
        let end = range.0.saturating_add(range.1).min(file.len().unwrap_or(u32::MAX));
        let mut new = 0;
        for index in range.0..end {
            if self.peek(file, index).is_some() {
                continue;
            }
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
        self.peek(file, index).is_some()
    }

    /// The page numbered `index`, if it is there at this moment.
    fn peek(self, file: &File<M, G::Space>, index: u32) -> Option<Pfn> {
        file.state.lock_local(self.machine()).pages.get(&index).copied()
    }

    /// How many pages before `index` are there without a gap, `most` at most.
    fn cached_before(self, file: &File<M, G::Space>, index: u32, most: u32) -> u32 {
        let state = file.state.lock_local(self.machine());
        let before = (1..=most.min(index)).take_while(|back| state.pages.contains_key(&(index - back)));
        before.count() as u32
    }

    /// The first page from `index` on that is not there, `most` further at most.
    fn missing_after(self, file: &File<M, G::Space>, index: u32, most: u32) -> u32 {
        let state = file.state.lock_local(self.machine());
        let there = (index..=index + most).take_while(|index| state.pages.contains_key(index));
        index + there.count() as u32
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
}
