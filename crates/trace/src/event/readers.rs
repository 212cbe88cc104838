//! Reads the fields of tracepoints that the table of kinds names: what several have in common, and what takes more than a line.

use mm::Order;

use super::tracepoint::{Decoded, Tracepoint};
use super::{EventKind, FileKey, Group, NameId};
use crate::tracefs::sample::Sample;
use Decoded::Event;

/// What the tracepoints of allocated objects have in common; older kernels have four.
pub(super) const SLAB_ALLOC: Tracepoint = Tracepoint {
    group: Group::Slab,
    name: "",
    needed: &["ptr", "bytes_req", "bytes_alloc", "gfp_flags"],
    optional: &["node", "name"],
    read: slab_alloc,
};
/// The same of freed ones.
pub(super) const SLAB_FREE: Tracepoint = Tracepoint {
    group: Group::Slab,
    name: "",
    needed: &["ptr"],
    optional: &["name"],
    read: |of| Some(slab(EventKind::SlabFree { object: of.number(0)?, cache: NameId::NONE }, of.text(1))),
};

/// What file systems say when a range is about to be written. No tracepoint serves all of them: what marks folios dirty names
/// no device, knows no range and is silent when a dirty one is written again; the calls know no file and often no place.
pub(super) const FILE_WRITE: Tracepoint =
    Tracepoint { group: Group::File, name: "", needed: &[], optional: &[], read: file_write };

/// Reads `kmem:mm_page_alloc_zone_locked`'s fields.
pub(super) fn zone_locked<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    let (pfn, order, migratetype) = (of.pfn(0)?, of.order(1)?, of.migratetype(2)?);
    let percpu_refill = of.number(3).map_or(order == Order::ZERO, |refill| refill != 0);
    Some(Event(EventKind::ZoneLocked { pfn, order, migratetype, percpu_refill }))
}

fn slab_alloc<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    let kind = EventKind::SlabAlloc {
        object: of.number(0)?,
        cache: NameId::NONE,
        requested: of.short(1)?,
        allocated: of.short(2)?,
        gfp: of.gfp(3)?,
        node: of.number(4).map_or(-1, |node| node as i16),
    };
    Some(slab(kind, of.text(5)))
}

fn slab(kind: EventKind, cache: Option<&[u8]>) -> Decoded<'_> {
    cache.map_or(Event(kind), |cache| Decoded::Slab(kind, cache))
}

/// Reads `filemap:mm_filemap_get_pages`'s fields.
pub(super) fn file_read<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    let (first, last) = (of.number(2)?, of.number(3)?);
    let (first, pages) = pages(first, last)?;
    Some(Decoded::File(EventKind::FileRead { file: NameId::NONE, first, pages }, file_key(of)?))
}

fn file_write<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    Some(Decoded::File(file_written(of.number(2)?, of.number(3)?)?, file_key(of)?))
}

/// What a write of `len` bytes from byte `start` is.
pub(crate) fn file_written(start: u64, len: u64) -> Option<EventKind> {
    let last = start.checked_add(len.max(1) - 1)?;
    let (first, pages) = pages(start >> mm::ids::PAGE_SHIFT, last >> mm::ids::PAGE_SHIFT)?;
    Some(EventKind::FileWrite { file: NameId::NONE, first, pages })
}

/// Reads `filemap:mm_filemap_add_to_page_cache`'s fields.
pub(super) fn file_add<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    let (first, pages) = folio(of)?;
    Some(Decoded::File(EventKind::FileAdd { file: NameId::NONE, first, pages }, file_key(of)?))
}

/// Reads `filemap:mm_filemap_delete_from_page_cache`'s fields.
pub(super) fn file_drop<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    let (first, pages) = folio(of)?;
    Some(Decoded::File(EventKind::FileDrop { file: NameId::NONE, first, pages }, file_key(of)?))
}

/// A folio's first page in its file, and its pages: the third field and the fourth.
fn folio(of: &Sample<'_, '_>) -> Option<(u32, u32)> {
    Some((of.short(2)?, 1u32.checked_shl(of.short(3).unwrap_or(0))?))
}

/// Of the first two fields.
fn file_key(of: &Sample<'_, '_>) -> Option<FileKey> {
    Some(FileKey { device: of.short(0)?, inode: of.number(1)? })
}

/// The first page and the pages from it to the last.
fn pages(first: u64, last: u64) -> Option<(u32, u32)> {
    let pages = last.checked_sub(first)?.checked_add(1)?;
    Some((u32::try_from(first).ok()?, u32::try_from(pages).ok()?))
}
