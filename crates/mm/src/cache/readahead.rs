//! Readahead: what is read of a file besides the page that was asked for, as Linux decides it (mm/readahead.c, read in 6.12
//! as far as memory goes; unchecked). A reader who goes on where he stopped gets a window that doubles; the next one is read when he
//! comes to a marked folio of this one. A fault of a mapping reads around itself. A first window is of single pages; where the file system
//! has larger folios, each next one has folios four times as large, until one is the window.
//!
//! Whoever has a file open is a [`Reader`] of it; its mappings are one together. A reader decides on a [`Stretch`], which the door brings
//! in. What is read is there at once: the caller plays the disk, and is told how many pages it has to bring. A file of which
//! nobody has said how long it is ([`File::set_len`]) is not read ahead.

use core::ops::Range;

use super::file::{Asker, File, FileState, Wanted};
use super::folio::{Pages, Part, order_at};
use super::{FilesDoor, FilesGround};
use crate::ground::ids::Order;
use crate::ground::machine::Machine;
use crate::ground::sync::Relaxed;
use crate::lru::page::PageFlag;
use crate::pages::request::{AllocError, Placement};
use crate::rules::policy::FileFolioRule;

/// Pages of a whole window: `read_ahead_kb` is 128 by default.
pub(super) const RA_PAGES: u32 = 32;

/// After so many faults more than hits, nothing is read around them.
const LOTS_OF_MISSES: u32 = 100;

/// Windows of fewer pages are of single pages (`page_cache_ra_order`).
const LEAST_FOR_FOLIOS: u32 = 4;

/// By how much larger folios of the next window are: four times.
const ORDER_STEP: u32 = 2;

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
    /// The order of the window's folios.
    order: u32,
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
    /// The largest order of its folios.
    order: u32,
}

/// What a file's device and its file system allow.
#[derive(Clone, Copy)]
struct Means {
    /// Pages of a window.
    device: u32,
    largest: u32,
    rule: FileFolioRule,
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
    fn missing(&mut self, there: &Pages, Ask { index, pages }: Ask, means: Means) -> Stretch {
        let most = self.most(means.device);
        let by_itself = |pages| Stretch { first: index, pages, mark: None, order: 0 };
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
        self.open((index, size, ahead), 0, means)
    }

    /// The folio with the first page of what is asked for has the mark (`page_cache_async_ra`); `ask` is from its first page on.
    fn marked(&mut self, there: &Pages, ask: Ask, order: Order, means: Means) -> Option<Stretch> {
        let (most, Ask { index, pages }) = (self.most(means.device), ask);
        if self.pattern == ReadPattern::Random || most == 0 {
            return None;
        }
        let expected = self.start.saturating_add(self.size) - self.ahead;
        let (start, size) = if index == expected >> order.get() << order.get() {
            (self.start.saturating_add(self.size), next_size(self.size, most))
        } else {
            let start = missing_after(there, index + 1, most);
            if start - index > most {
                return None;
            }
            (start, next_size(pages.saturating_add(start - index), most))
        };
        let (order, size) = match means.rule {
            FileFolioRule::Remembered => {
                let order = self.order + ORDER_STEP;
                (order, cut_to_folio((start, size), order.min(most.trailing_zeros()).min(means.largest)))
            }
            FileFolioRule::Single | FileFolioRule::ByMark => (u32::from(order.get()) + ORDER_STEP, size),
        };
        Some(self.open((start, size, size), order, means))
    }

    /// A fault of a mapping found page `index` missing (`do_sync_mmap_readahead`).
    fn around(&mut self, index: u32, means: Means) -> Option<Stretch> {
        let device = means.device;
        self.misses = (self.misses + 1).min(10 * LOTS_OF_MISSES);
        let reads = device > 0 && self.misses <= LOTS_OF_MISSES;
        reads.then(|| self.open((index.saturating_sub(device / 2), device, device / 4), 0, means))
    }

    /// The same of a mapping that may be executed and ends before page `end`: what follows, and no next window.
    fn ahead_of_code(&mut self, (index, end): (u32, u32), means: Means) -> Option<Stretch> {
        self.around(index, means)?;
        Some(self.open((index, means.device.min(end.saturating_sub(index)), 0), 0, means))
    }

    /// The window of `size` pages from `start` on, the last `ahead` of them before they are asked for, of folios up to `order`.
    fn open(&mut self, (start, size, ahead): (u32, u32, u32), order: u32, means: Means) -> Stretch {
        let has_folios = means.largest > 0 && size >= LEAST_FOR_FOLIOS;
        let order = if has_folios { order.min(means.largest).min(size.ilog2()) } else { 0 };
        *self = Self { start, size, ahead, order, ..*self };
        Stretch { first: start, pages: size, mark: Some(start.saturating_add(size) - ahead), order }
    }
}

/// The window's size, if it is to end where a folio of `order` would, and is not nothing then.
fn cut_to_folio((start, size): (u32, u32), order: u32) -> u32 {
    let end = start.saturating_add(size) >> order << order;
    if end > start { end - start } else { size }
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

    fn means(&self, rule: FileFolioRule) -> Means {
        Means { device: self.read_ahead.load(Relaxed), largest: self.largest_folio(), rule }
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
        let (mut done, mut index) = (ReadDone::default(), pages.start);
        while index < pages.end {
            let ask = Ask { index, pages: pages.end - index };
            let ahead = self.read_before(reader, file, ask, from.into());
            let (part, hit) = self.file_page(file, index, (Wanted::Contents, from.into()))?;
            let folio = part.folio(index);
            let goes_on = reader.next.checked_sub(1).is_some_and(|last| folio.contains(&last));
            if index != pages.start || !goes_on {
                self.lru().mark_accessed(part.head());
            }
            self.lru().put_page(part.head());
            let end = folio.end.min(pages.end);
            let waits = u32::from(!hit || ahead.waits);
            done.hits += end - index - waits;
            done.waits += waits;
            done.reads += ahead.pages + u32::from(!hit);
            reader.next = end;
            index = end;
        }
        self.memcg().settle_high();
        Ok(done)
    }

    fn means_of(self, file: &File<M, G::Space>) -> Means {
        file.means(self.rules().reclaim.file_folio)
    }

    /// What is read before the first page that is asked for is looked up.
    fn read_before(self, reader: &mut Reader, file: &File<M, G::Space>, ask: Ask, from: Asker) -> Ahead {
        let Some(len) = file.len() else { return Ahead::default() };
        let state = file.state.lock_local(self.machine());
        let Some(&part) = state.pages.get(&ask.index) else {
            let stretch = reader.missing(&state.pages, ask, self.means_of(file));
            drop(state);
            return Ahead { pages: self.bring(file, stretch, from), waits: ask.index < len };
        };
        let stretch = self.take_mark(part).then(|| {
            let first = part.folio(ask.index).start;
            let ask = Ask { index: first, pages: ask.index + ask.pages - first };
            reader.marked(&state.pages, ask, part.order, self.means_of(file))
        });
        drop(state);
        Ahead { pages: stretch.flatten().map_or(0, |stretch| self.bring(file, stretch, from)), waits: false }
    }

    /// Whether the page's folio had the mark, which it has no more.
    fn take_mark(self, part: Part) -> bool {
        self.lru().page(part.head()).clear(PageFlag::ReadAhead)
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
        let means = self.means_of(file);
        let stretch = {
            let mut state = file.state.lock_local(self.machine());
            let FileState { reader, pages, .. } = &mut *state;
            match pattern {
                ReadPattern::Random => None,
                ReadPattern::Sequential => {
                    Some(reader.missing(pages, Ask { index, pages: means.device }, means))
                }
                ReadPattern::Normal => reader.around(index, means),
            }
        };
        stretch.map_or(0, |stretch| self.bring(file, stretch, from))
    }

    /// A fault of a mapping that may be executed found the first of `pages` missing, which it maps; gives how many are read.
    pub(crate) fn read_code(self, file: &File<M, G::Space>, pages: Range<u32>, from: Asker) -> u32 {
        if file.len().is_none() {
            return 0;
        }
        let means = self.means_of(file);
        let stretch = {
            let mut state = file.state.lock_local(self.machine());
            state.reader.ahead_of_code((pages.start, pages.end), means)
        };
        stretch.map_or(0, |stretch| self.bring(file, stretch, from))
    }

    /// A fault found `part`, page `index`, in its file (`do_async_mmap_readahead`); gives how many are read.
    pub(crate) fn read_after_hit(
        self,
        file: &File<M, G::Space>,
        (index, part): (u32, Part),
        pattern: ReadPattern,
        from: Asker,
    ) -> u32 {
        if file.len().is_none() || pattern == ReadPattern::Random {
            return 0;
        }
        self.count_mapped_hits(file, 1);
        if !self.take_mark(part) {
            return 0;
        }
        let means = self.means_of(file);
        let stretch = {
            let mut state = file.state.lock_local(self.machine());
            let FileState { reader, pages, .. } = &mut *state;
            let ask = Ask { index: part.folio(index).start, pages: means.device };
            reader.marked(pages, ask, part.order, means)
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

    /// Has `pages` of `file` in the page cache, in folios as large as that allows, which is no use of them: they are read ahead. Says whether
    /// there was memory for all.
    pub fn bring_pages(self, file: &File<M, G::Space>, pages: Range<u32>, from: Placement) -> bool {
        let (first, end) = (pages.start, pages.end);
        let all =
            Stretch { first, pages: end.saturating_sub(first), mark: None, order: file.largest_folio() };
        self.bring_up_to(file, all, (end, from.into())).end == end
    }

    /// Adds those pages of `stretch` that the file has and that are not there, and marks the folio with its mark if it is new. Gives how
    /// many are new.
    fn bring(self, file: &File<M, G::Space>, stretch: Stretch, from: Asker) -> u32 {
        let end = stretch.first.saturating_add(stretch.pages).min(file.len().unwrap_or(u32::MAX));
        self.bring_up_to(file, stretch, (end, from)).new
    }

    /// The same up to `end`: where there is no block for a folio, or part of it is there, the rest comes in single pages, and without memory
    /// it ends early.
    fn bring_up_to(self, file: &File<M, G::Space>, stretch: Stretch, (end, from): (u32, Asker)) -> Brought {
        let Stretch { first, mark, order: mut largest, .. } = stretch;
        let mut done = Brought { new: 0, end: first };
        while done.end < end {
            let order = order_at(done.end, end - done.end, largest);
            let Some(there) = self.bring_folio(file, (done.end, order), from) else {
                if largest == 0 {
                    break;
                }
                largest = 0;
                continue;
            };
            let folio = done.end..done.end + order.pages();
            if there == Came::Now {
                done.new += order.pages();
                if mark.is_some_and(|mark| folio.contains(&mark)) {
                    self.mark_folio(file, folio.start);
                }
            }
            done.end = folio.end;
        }
        done
    }

    /// Has the folio of `order` from page `index` on in `file`; `None` if that cannot be.
    fn bring_folio(
        self,
        file: &File<M, G::Space>,
        (index, order): (u32, Order),
        from: Asker,
    ) -> Option<Came> {
        if order > Order::ZERO {
            let head = self.add_folio(file, (index, order), (Wanted::Contents, from))?;
            self.lru().put_page(head);
            return Some(Came::Now);
        }
        if self.has_page(file, index) {
            return Some(Came::Before);
        }
        let (part, there) = self.file_page(file, index, (Wanted::Contents, from)).ok()?;
        self.lru().put_page(part.head());
        Some(if there { Came::Before } else { Came::Now })
    }

    /// Who comes to the folio from page `index` on wants the next window.
    fn mark_folio(self, file: &File<M, G::Space>, index: u32) {
        let state = file.state.lock_local(self.machine());
        if let Some(part) = state.pages.get(&index) {
            self.lru().page(part.head()).set(PageFlag::ReadAhead);
        }
    }

    /// Whether the page numbered `index` is there at this moment.
    pub(crate) fn has_page(self, file: &File<M, G::Space>, index: u32) -> bool {
        file.state.lock_local(self.machine()).pages.contains_key(&index)
    }
}

/// What was brought of a stretch.
#[derive(Clone, Copy)]
struct Brought {
    /// Pages that were not there.
    new: u32,
    /// The page behind the last that is there.
    end: u32,
}

/// When a folio that is read ahead came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Before,
    Now,
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
    use crate::ground::ids::Pfn;

    const SINGLE: Means = Means { device: 32, largest: 0, rule: FileFolioRule::Single };

    #[test]
    fn windows_begin_small_and_double() {
        assert_eq!([1, 2, 4, 8, 9, 32].map(|pages| first_size(pages, 32)), [4, 4, 8, 16, 32, 32]);
        assert_eq!([1, 2, 4, 16, 17, 32].map(|size| next_size(size, 32)), [4, 4, 8, 32, 32, 32]);
    }

    #[test]
    fn what_is_cached_around_a_page_tells_a_stream_from_a_read_by_itself() {
        let there: Pages = [0, 1, 4, 5, 6]
            .into_iter()
            .map(|page| (page, Part { pfn: Pfn(page), order: Order::ZERO }))
            .collect();
        assert_eq!([0, 2, 3, 7].map(|index| cached_before(&there, index, 9)), [0, 2, 0, 3]);
        assert_eq!((cached_before(&there, 7, 2), missing_after(&there, 4, 9)), (2, 7));
        assert_eq!((missing_after(&there, 2, 9), missing_after(&there, 4, 1)), (2, 6));
        let missing = |index| Reader::default().missing(&there, Ask { index, pages: 1 }, SINGLE);
        assert_eq!(
            missing(7),
            Stretch { first: 7, pages: 4, mark: Some(10), order: 0 },
            "as much as is before it"
        );
        assert_eq!(missing(2).pages, 5, "twice that where it is all from the first on");
        assert_eq!(missing(9), Stretch { first: 9, pages: 1, mark: None, order: 0 });
    }

    #[test]
    fn a_device_that_reads_nothing_ahead_reads_page_by_page() {
        let (ask, means) = (Ask { index: 0, pages: 8 }, Means { device: 0, ..SINGLE });
        let mut reader = Reader::default();
        let one = Stretch { first: 0, pages: 1, mark: None, order: 0 };
        assert_eq!(reader.missing(&Pages::new(), ask, means), one);
        assert_eq!(
            (reader.marked(&Pages::new(), ask, Order::ZERO, means), reader.around(4, means)),
            (None, None)
        );
    }

    #[test]
    fn a_window_ends_where_a_folio_would() {
        assert_eq!(
            [(33, 32, 2), (33, 32, 5), (62, 2, 6), (64, 32, 5)]
                .map(|(at, size, order)| cut_to_folio((at, size), order)),
            [31, 31, 2, 32]
        );
    }
}
