//! Write calls: pages become dirty, in folios as large as the call.

use core::ops::Range;

use super::file::{Asker, Cached, File, FileKind, Source, Wanted};
use super::folio::{Part, order_at};
use super::{FilesDoor, FilesGround};
use crate::ground::{Machine, Order};
use crate::pages::{AllocError, Placement};
use crate::rules::policy::WriteUseRule;

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// Writes the whole of page `index` of `file` by a system call of its own, as [`FilesDoor::write_pages`] does.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn write_file(
        self,
        file: &File<M, G::Space>,
        index: u32,
        from: Placement,
    ) -> Result<Cached, AllocError> {
        self.write_pages(file, index..index + 1, || from)
    }

    /// Writes all of `pages` of `file` by a system call, in folios as large as the call allows (`__filemap_get_folio`), and waits where
    /// too much is dirty (`balance_dirty_pages`), unless it is in memory. Each that is to be made comes from where `from` says. Says
    /// whether all were there.
    ///
    /// # Errors
    /// If there is no memory for one of them.
    pub fn write_pages(
        self,
        file: &File<M, G::Space>,
        pages: Range<u32>,
        from: impl Fn() -> Placement,
    ) -> Result<Cached, AllocError> {
        let is_use = file.kind == FileKind::Memory || self.rules().reclaim.write_use == WriteUseRule::Counts;
        let (mut at, mut all) = (pages.start, Cached::Hit);
        while at < pages.end {
            let (part, source) = self.page_to_write(file, at..pages.end, &from)?;
            let end = part.folio(at).end.min(pages.end);
            self.mark_written(file, part.head(), at..end);
            if is_use {
                self.lru().mark_accessed(part.head());
            }
            self.lru().put_page(part.head());
            if file.kind != FileKind::Memory {
                self.balance_dirty();
            }
            if source == Source::Disk {
                all = Cached::Miss;
            }
            at = end;
        }
        self.memcg().settle_high();
        Ok(all)
    }

    /// The first of `pages` with a reference for the caller, and where it came from; what was not there comes in a folio that has no page beyond them.
    fn page_to_write(
        self,
        file: &File<M, G::Space>,
        pages: Range<u32>,
        from: impl Fn() -> Placement,
    ) -> Result<(Part, Source), AllocError> {
        if let Some(found) = self.find_page(file, pages.start) {
            return Ok((found, Source::Memory));
        }
        let from = Asker::from(from());
        let largest = order_at(pages.start, pages.end - pages.start, file.largest_folio());
        for order in (1..=largest.get()).rev().filter_map(Order::new) {
            if let Some(head) = self.add_folio(file, (pages.start, order), (Wanted::Overwritten, from)) {
                return Ok((Part { pfn: head, order }, Source::Disk));
            }
        }
        self.file_page(file, pages.start, (Wanted::Overwritten, from))
    }
}
