//! How a file is read, and what follows from that: which pages to read besides those that were asked for, as Linux decides it
//! (mm/readahead.c, read in 6.12 as far as memory goes; unchecked). Pure: the door (`readahead`) says what is there, and brings it in.
//!
//! A reader who goes on where he stopped gets a window that doubles; the next one is read when he comes to a marked folio of this one. A
//! fault of a mapping reads around itself. A first window is of single pages; where the file system has larger folios, each next one has
//! folios four times as large, until one is the window.

use super::folio::Pages;
use crate::ground::ids::Order;
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
    pub(super) misses: u32,
    /// The page behind the last one that was read by a call.
    pub(super) next: u32,
    /// The order of the window's folios.
    order: u32,
    pub(super) pattern: ReadPattern,
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

/// Pages that are wanted: the first of them, and how many.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) index: u32,
    pub(super) pages: u32,
}

/// Pages to read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub(super) first: u32,
    pub(super) pages: u32,
    /// The page at which the next stretch is to be read.
    pub(super) mark: Option<u32>,
    /// The largest order of its folios.
    pub(super) order: u32,
}

/// What a file's device and its file system allow.
#[derive(Clone, Copy)]
pub(super) struct Means {
    /// Pages of a window.
    pub(super) device: u32,
    /// Pages that are read together at most where more than a window is asked for.
    pub(super) together: u32,
    pub(super) largest: u32,
    pub(super) rule: FileFolioRule,
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
    /// Pages of his windows (`ra_pages`), where those of his device have `device`.
    fn window(&self, device: u32) -> u32 {
        match self.pattern {
            ReadPattern::Normal | ReadPattern::Random => device,
            ReadPattern::Sequential => 2 * device,
        }
    }

    /// Pages of the next window at most: who asks for more than a window gets as many as the device moves together (`ractl_max_pages`).
    fn most(&self, asked: u32, means: Means) -> u32 {
        let window = self.window(means.device);
        if asked > window && means.together > window { asked.min(means.together) } else { window }
    }

    /// The first page of what is asked for is not there (`page_cache_sync_ra`).
    pub(super) fn missing(&mut self, there: &Pages, Ask { index, pages }: Ask, means: Means) -> Stretch {
        let most = self.most(pages, means);
        let by_itself = |pages| Stretch { first: index, pages, mark: None, order: 0 };
        if self.window(means.device) == 0 {
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
    pub(super) fn marked(&mut self, there: &Pages, ask: Ask, order: Order, means: Means) -> Option<Stretch> {
        let (most, Ask { index, pages }) = (self.most(ask.pages, means), ask);
        if self.pattern == ReadPattern::Random || self.window(means.device) == 0 {
            return None;
        }
        let expected = self.start.saturating_add(self.size) - self.ahead;
        let (start, size) = if index == expected >> order.get() << order.get() {
            let size = next_size(self.size, most);
            // Since 6.14 a window that was larger than this request would get stays as large; earlier kernels with backports of it are
            // not told apart.
            let size = if means.rule == FileFolioRule::Single { size } else { size.max(self.size) };
            (self.start.saturating_add(self.size), size)
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
    pub(super) fn around(&mut self, index: u32, means: Means) -> Option<Stretch> {
        let device = means.device;
        self.misses = (self.misses + 1).min(10 * LOTS_OF_MISSES);
        let reads = device > 0 && self.misses <= LOTS_OF_MISSES;
        reads.then(|| self.open((index.saturating_sub(device / 2), device, device / 4), 0, means))
    }

    /// The same of a mapping that may be executed and ends before page `end`: what follows, and no next window.
    pub(super) fn ahead_of_code(&mut self, (index, end): (u32, u32), means: Means) -> Option<Stretch> {
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

#[cfg(test)]
mod tests {
    use super::super::folio::Part;
    use super::*;
    use crate::ground::ids::Pfn;

    const SINGLE: Means = Means { device: 32, together: 0, largest: 0, rule: FileFolioRule::Single };

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

    /// Reads of 1 MiB from a device that reads 512 KiB ahead and moves 1 MiB together: windows of 256 pages, the marks of half of which
    /// lie within a request, and folios up to such a window.
    #[test]
    fn who_asks_for_more_than_a_window_gets_what_the_device_moves_together() {
        let means = Means { device: 128, together: 256, largest: 9, rule: FileFolioRule::Remembered };
        let (mut reader, none) = (Reader::default(), Pages::new());
        let first = reader.missing(&none, Ask { index: 0, pages: 256 }, means);
        assert_eq!(first, Stretch { first: 0, pages: 256, mark: Some(128), order: 0 });
        let mut next = |index, pages, order| {
            let order = Order::new(order).unwrap();
            let stretch = reader.marked(&none, Ask { index, pages }, order, means).unwrap();
            (stretch.first, stretch.pages, stretch.mark, stretch.order)
        };
        assert_eq!(
            next(128, 128, 0),
            (256, 256, Some(256), 2),
            "no smaller for the half that is left to ask for"
        );
        assert_eq!(next(256, 256, 2), (512, 256, Some(512), 4));
        assert_eq!(next(512, 256, 4), (768, 256, Some(768), 6));
        assert_eq!(next(768, 256, 6), (1024, 256, Some(1024), 8));
        assert_eq!(next(1024, 256, 8), (1280, 256, Some(1280), 8));
        let few = Reader::default().missing(&none, Ask { index: 0, pages: 128 }, means);
        assert_eq!(few.pages, 128, "a request of a window gets a window");
        let none_together = Means { together: 0, ..means };
        assert_eq!(Reader::default().missing(&none, Ask { index: 0, pages: 256 }, none_together).pages, 128);
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
