//! The way of dirty pages to their files: who dirties too many waits, a flusher takes them in batches, and whoever plays
//! the disk says when they are written.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::{File, FilesDoor, FilesGround};
use crate::ground::{Daemon, Machine, Nanos, Order, Pfn, Relaxed, ZoneId};
use crate::lru::page::{Mapping, PageFlag};

/// How long a writer waits each time, and how often at most before it goes on anyway: a second in all.
const PAUSE: Nanos = Nanos(20_000_000);
const PAUSES: u32 = 50;

/// A folio that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyFolio {
    /// Its first frame.
    pub pfn: Pfn,
    /// Pages of it that were written to, which alone go to the disk.
    pub pages: u32,
}

/// Pages on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirtyPages {
    /// Changed since they were read or last written.
    pub dirty: u64,
    /// Being written.
    pub writeback: u64,
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// The folio at `head` differs from its file from now on, all of it.
    pub(crate) fn mark_dirty(self, head: Pfn) {
        let page = self.lru().page(head);
        let Mapping::File(id) = page.mapping() else {
            page.set(PageFlag::Dirty);
            return;
        };
        if page.has(PageFlag::SwapBacked)
            || page.has(PageFlag::Dirty) && self.pages().order_of(head) == Order::ZERO
        {
            return;
        }
        // One whose file has ended is not written any more.
        if let Some(file) = self.file(id) {
            self.mark_written(&file, head, self.folio_pages(head));
        }
    }

    /// `pages` of the folio at `head` of `file` do. What is counted as dirty is the folio, what is written are these pages.
    pub(super) fn mark_written(self, file: &File<M, G::Space>, head: Pfn, pages: Range<u32>) {
        let page = self.lru().page(head);
        if page.has(PageFlag::SwapBacked) {
            return;
        }
        let is_new = {
            let mut state = file.state.lock_local(self.machine());
            state.dirty.extend(pages);
            page.set(PageFlag::Dirty)
        };
        if !is_new {
            return;
        }
        let pages = i64::from(self.pages().order_of(head).pages());
        let first = self.count_dirty(head, pages) == 0;
        self.memcg().count_pending(page.group(), pages);
        if first {
            // It sleeps without a clock while nothing is dirty.
            self.machine().wake(Daemon::Flusher);
        }
    }

    /// The folio is no longer dirty, for its file is gone.
    pub(super) fn forget_dirty(self, head: Pfn) {
        let page = self.lru().page(head);
        if !page.has(PageFlag::SwapBacked) && page.clear(PageFlag::Dirty) {
            self.count_clean_parts(head, self.pages().order_of(head).pages().into());
        }
    }

    /// `pages` of the folio that is or was at `head` are not dirty any more.
    pub(super) fn count_clean_parts(self, head: Pfn, pages: i64) {
        self.count_dirty(head, -pages);
        self.memcg().count_pending(self.lru().page(head).group(), -pages);
    }

    /// What `from` was is `to` from now on.
    pub(super) fn move_dirty(self, from: Pfn, to: Pfn) {
        let page = self.lru().page(from);
        if !page.has(PageFlag::SwapBacked) && page.has(PageFlag::Dirty) {
            let pages = i64::from(self.pages().order_of(from).pages());
            self.count_dirty(from, -pages);
            self.count_dirty(to, pages);
        }
    }

    /// Gives how many of the zone's pages were dirty before.
    fn count_dirty(self, pfn: Pfn, pages: i64) -> i64 {
        self.own().zone(self.map().frame(pfn).state().zone).dirty.fetch_add(pages, Relaxed)
    }

    fn count_writeback(self, pfn: Pfn, pages: i64) {
        self.own().zone(self.map().frame(pfn).state().zone).writeback.fetch_add(pages, Relaxed);
    }

    /// Dirty pages and those being written, of the whole machine.
    pub fn dirty_pages(self) -> DirtyPages {
        let sum =
            |read: fn(&super::ZoneFiles) -> i64| self.own().zones.iter().map(read).sum::<i64>().max(0) as u64;
        DirtyPages {
            dirty: sum(|zone| zone.dirty.load(Relaxed)),
            writeback: sum(|zone| zone.writeback.load(Relaxed)),
        }
    }

    /// Pages of files in memory.
    pub fn file_pages(self) -> u64 {
        self.own().zones.iter().map(|zone| zone.file.load(Relaxed)).sum::<i64>().max(0) as u64
    }

    /// Pages of `zone` that are dirty or being written.
    pub(crate) fn pending_pages(self, zone: ZoneId) -> u64 {
        let zone = self.own().zone(zone);
        (zone.dirty.load(Relaxed) + zone.writeback.load(Relaxed)).max(0) as u64
    }

    /// Whether the flusher should write though nobody asked (`vm.dirty_background_ratio`, `vm.dirty_background_bytes`).
    pub fn wants_writeback(self) -> bool {
        !self.allowed().flusher_is_within(self.dirty_pages().dirty)
    }

    /// Waits while more is dirty than `vm.dirty_ratio` or `vm.dirty_bytes` allows, on the machine or in the task's group.
    pub(super) fn balance_dirty(self) {
        for _ in 0..PAUSES {
            let DirtyPages { dirty, writeback } = self.dirty_pages();
            let is_within = self.allowed().writers_are_within(dirty + writeback);
            let is_group_within = self.allowed().group_is_within_writers();
            if is_within && is_group_within {
                break;
            }
            if !is_group_within {
                self.wake_flusher();
            }
            self.machine().wake(Daemon::Flusher);
            self.machine().block(PAUSE);
        }
        if !self.allowed().group_is_within_flusher() {
            self.wake_flusher();
        }
        if self.wants_writeback() {
            self.machine().wake(Daemon::Flusher);
        }
    }

    /// Reclaim found nothing but dirty pages: all of them are to be written, however few they are.
    pub(crate) fn wake_flusher(self) {
        self.own().flush_asked.store(1, Relaxed);
        self.machine().wake(Daemon::Flusher);
    }

    /// How many pages the flusher is to write because reclaim asked since this was last called: all that are dirty now,
    /// or none.
    pub fn take_flush_request(self) -> u64 {
        if self.own().flush_asked.swap(0, Relaxed) == 1 { self.dirty_pages().dirty } else { 0 }
    }

    /// Takes folios with some `most` dirty pages to be written, oldest file first; each is under writeback until [`FilesDoor::written`] is
    /// told.
    pub fn take_dirty(self, most: u64) -> Vec<DirtyFolio> {
        let files: Vec<Arc<File<M, G::Space>>> = {
            let files = self.own().files.lock_local(self.machine());
            files.values().map(Arc::clone).collect()
        };
        let (mut taken, mut pages) = (alloc::vec![], 0);
        for file in files {
            while pages < most {
                let Some(folio) = self.take_one(&file) else { break };
                pages += u64::from(folio.pages);
                taken.push(folio);
            }
        }
        taken
    }

    fn take_one(self, file: &File<M, G::Space>) -> Option<DirtyFolio> {
        let mut state = file.state.lock_local(self.machine());
        while let Some(&index) = state.dirty.first() {
            let Some(part) = state.pages.get(&index).copied() else {
                state.dirty.pop_first();
                continue;
            };
            let pages = state.take_dirty(&part.folio(index));
            if self.take_for_writing(part.head()) {
                return Some(DirtyFolio { pfn: part.head(), pages });
            }
        }
        None
    }

    fn take_for_writing(self, head: Pfn) -> bool {
        let page = self.lru().page(head);
        if !page.clear(PageFlag::Dirty) {
            return false;
        }
        let pages = i64::from(self.pages().order_of(head).pages());
        self.count_dirty(head, -pages);
        self.count_writeback(head, pages);
        page.set(PageFlag::Writeback);
        page.get();
        true
    }

    /// `folios`, which [`FilesDoor::take_dirty`] gave, have been written.
    pub fn written(self, folios: &[DirtyFolio]) {
        for &DirtyFolio { pfn: head, .. } in folios {
            let (page, pages) = (self.lru().page(head), i64::from(self.pages().order_of(head).pages()));
            page.clear(PageFlag::Writeback);
            self.count_writeback(head, -pages);
            self.memcg().count_pending(page.group(), -pages);
            if page.clear(PageFlag::Reclaim) {
                self.lru().lru_rotate(head);
            }
        }
        let heads: Vec<Pfn> = folios.iter().map(|folio| folio.pfn).collect();
        self.lru().put_pages(&heads);
    }
}
