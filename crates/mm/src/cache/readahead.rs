//! Readahead: brings in what a [`Reader`] decides to read besides the page that was asked for. Whoever has a file open is a reader of it; its
//! mappings are one together. What is read is there at once: the caller plays the disk, and is told how many pages it has to bring. A file of
//! which nobody has said how long it is ([`File::set_len`]) is not read ahead.

use alloc::vec::Vec;
use core::ops::Range;

use super::file::{Asker, File, FileState, Source, Wanted};
use super::folio::{Part, order_at};
use super::reader::{Ask, Means, ReadPattern, Reader, Stretch};
use super::{FilesDoor, FilesGround};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::Machine;
use crate::ground::sync::Relaxed;
use crate::lru::page::PageFlag;
use crate::memcg::Effort;
use crate::pages::request::{AllocError, Placement};
use crate::rules::policy::{FileFolioRule, ReadaheadReclaimRule};

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

impl<M: Machine, S> File<M, S> {
    /// It is `pages` long; nothing is read ahead beyond that.
    pub fn set_len(&self, pages: u32) {
        self.len.store(pages, Relaxed);
    }

    /// Windows on its device have `pages` at most (`read_ahead_kb`).
    pub fn set_read_ahead(&self, pages: u32) {
        self.read_ahead.store(pages, Relaxed);
    }

    /// Who asks for more than a window gets up to `pages` together (`max_sectors_kb`, the kernel's `io_pages`); 0: no more than a window,
    /// which is what nobody has said anything else of.
    pub fn set_read_together(&self, pages: u32) {
        self.read_together.store(pages, Relaxed);
    }

    /// How long it is, if anybody has said so.
    pub(crate) fn len(&self) -> Option<u32> {
        Some(self.len.load(Relaxed)).filter(|&pages| pages != u32::MAX)
    }

    fn means(&self, rule: FileFolioRule) -> Means {
        Means {
            device: self.read_ahead.load(Relaxed),
            together: self.read_together.load(Relaxed),
            largest: self.largest_folio(),
            rule,
        }
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
            let (part, source) = self.file_page(file, index, (Wanted::Contents, from.into()))?;
            let folio = part.folio(index);
            let goes_on = reader.next.checked_sub(1).is_some_and(|last| folio.contains(&last));
            if index != pages.start || !goes_on {
                self.lru().mark_accessed(part.head());
            }
            self.lru().put_page(part.head());
            let end = folio.end.min(pages.end);
            let read = u32::from(source == Source::Disk);
            let waits = read.max(ahead.waits.into());
            done.hits += end - index - waits;
            done.waits += waits;
            done.reads += ahead.pages + read;
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

    /// A fault found `part`, page `index`, in its file (`do_async_mmap_readahead`); gives how many are read, if that has the mark.
    pub(crate) fn read_after_hit(
        self,
        file: &File<M, G::Space>,
        (index, part): (u32, Part),
        pattern: ReadPattern,
        from: Asker,
    ) -> Option<u32> {
        if file.len().is_none() || pattern == ReadPattern::Random {
            return None;
        }
        self.count_mapped_hits(file, 1);
        if !self.take_mark(part) {
            return None;
        }
        let means = self.means_of(file);
        let stretch = {
            let mut state = file.state.lock_local(self.machine());
            let FileState { reader, pages, .. } = &mut *state;
            let ask = Ask { index: part.folio(index).start, pages: means.device };
            reader.marked(pages, ask, part.order, means)
        };
        Some(stretch.map_or(0, |stretch| self.bring(file, stretch, from)))
    }

    /// `pages` of `file` were mapped without having to be read.
    pub(crate) fn count_mapped_hits(self, file: &File<M, G::Space>, pages: u32) {
        if file.len().is_some() {
            let mut state = file.state.lock_local(self.machine());
            state.reader.misses = state.reader.misses.saturating_sub(pages);
        }
    }

    /// Has `pages` of `file` in the page cache, in folios as large as that allows, which is no use of them: they are read ahead. What a
    /// write has brought in already is left as it is. Says whether there was memory for all.
    pub fn bring_pages(self, file: &File<M, G::Space>, pages: Range<u32>, from: Placement) -> bool {
        let from = Asker::from(from);
        let mut at = pages.start;
        while let Some(gap) = self.next_gap(file, at..pages.end) {
            let Range { start: first, end } = gap;
            let stretch = Stretch { first, pages: end - first, mark: None, order: file.largest_folio() };
            if self.bring_up_to(file, stretch, (end, from)).end < end {
                return false;
            }
            at = end;
        }
        true
    }

    /// The first of `pages` that are not there, up to the next that is.
    fn next_gap(self, file: &File<M, G::Space>, pages: Range<u32>) -> Option<Range<u32>> {
        let state = file.state.lock_local(self.machine());
        let start = pages.clone().find(|index| !state.pages.contains_key(index))?;
        let end = state.pages.range(start..pages.end).next().map_or(pages.end, |(&index, _)| index);
        Some(start..end)
    }

    /// Adds those pages of `stretch` that the file has and that are not there, and marks the folio with its mark if it is new. Gives how
    /// many are new.
    fn bring(self, file: &File<M, G::Space>, stretch: Stretch, from: Asker) -> u32 {
        let end = stretch.first.saturating_add(stretch.pages).min(file.len().unwrap_or(u32::MAX));
        // Who reads ahead does not have a program killed for it (`readahead_gfp_mask`).
        let effort = match self.rules().reclaim.readahead {
            ReadaheadReclaimRule::Nothing => Effort::Little,
            ReadaheadReclaimRule::WhatFilesWrite => Effort::LittleNoFs,
        };
        let from = Asker { effort, ..from };
        self.bring_up_to(file, stretch, (end, from)).new
    }

    /// The same up to `end`: where there is no block for a folio, or part of it is there, the rest comes in single pages, and without memory
    /// it ends early.
    fn bring_up_to(self, file: &File<M, G::Space>, stretch: Stretch, (end, from): (u32, Asker)) -> Brought {
        let Stretch { first, mark, order: mut largest, .. } = stretch;
        let (mut done, mut held) = (Brought { new: 0, end: first }, Vec::new());
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
            if let Came::Now(head) = there {
                held.extend(self.hold(head, from.effort));
                done.new += order.pages();
                if mark.is_some_and(|mark| folio.contains(&mark)) {
                    self.mark_folio(file, folio.start);
                }
            }
            done.end = folio.end;
        }
        self.let_go(&held);
        done
    }

    /// Keeps the folio at `head`, of which the caller has a reference, until all of its window is there: reclaim that makes room for the next
    /// ones leaves it (`page_cache_ra_unbounded` adds them locked). `None`: somebody has it, or what comes is needed whatever goes for
    /// it; the reference is given back.
    fn hold(self, head: Pfn, effort: Effort) -> Option<Pfn> {
        let is_ours = effort != Effort::Full && self.lru().page(head).set(PageFlag::Locked);
        if !is_ours {
            self.lru().put_page(head);
        }
        is_ours.then_some(head)
    }

    /// What was held is read.
    fn let_go(self, held: &[Pfn]) {
        for &head in held {
            self.lru().page(head).clear(PageFlag::Locked);
        }
        self.lru().put_pages(held);
    }

    /// Has the folio of `order` from page `index` on in `file`; `None` if that cannot be, or there is no memory.
    fn bring_folio(
        self,
        file: &File<M, G::Space>,
        (index, order): (u32, Order),
        from: Asker,
    ) -> Option<Came> {
        if order > Order::ZERO {
            return self.add_folio(file, (index, order), (Wanted::Contents, from)).map(Came::Now);
        }
        if self.has_page(file, index) {
            return Some(Came::Before);
        }
        let (part, source) = self.file_page(file, index, (Wanted::Contents, from)).ok()?;
        if source == Source::Disk {
            return Some(Came::Now(part.head()));
        }
        self.lru().put_page(part.head());
        Some(Came::Before)
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
    /// The caller has a reference to its first page.
    Now(Pfn),
}

/// What was read before a page was looked up.
#[derive(Clone, Copy, Default)]
struct Ahead {
    pages: u32,
    /// The page itself was among them.
    waits: bool,
}
