//! The page cache: files and their pages, and the way of dirty pages to the disk.
//!
//! ```text
//!   read, write, fault ─▶ file: page `index` there? ─▶ alloc, lru ─▶ dirty ─▶ flusher: take, written
//!                                                                      ▲
//!                                              who maps it is kept here; rmap, above, goes to them
//! ```
//!
//! `file` finds, adds and removes pages, `leave` removes them though memory is not short; `swapped` sends those of files in memory to swap and brings
//! them back, by what `slot` says of slots; `folio` is what of them lies in one block, `shared` the same of files in memory, and `gather` puts one in the place of many; `write` is
//! write calls; `reader` decides what is read besides what was asked for, and `readahead` brings it in; `writeback` counts dirty ones, makes who dirties more than `allowed` says wait, and hands them to
//! whoever plays the disk.

mod allowed;
mod check;
mod file;
mod folio;
mod gather;
mod leave;
mod nodes;
mod readahead;
mod reader;
mod shadows;
mod shared;
mod slot;
mod swapped;
mod write;
mod writeback;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::ground::{AtomicI64, AtomicU32, FileId, LockClass, Locked, Machine, Relaxed, ZoneId};
use crate::lru::{LruDoor, LruGround};
use crate::memcg::MemcgDoor;
use crate::pages::door;

pub(crate) use file::{Asker, Large, Mapper, Source, Wanted};
pub use file::{Cached, File, FileKind, MemoryFile};
pub use folio::Folio;
pub(crate) use folio::Part;
use nodes::ShadowNodes;
pub use readahead::ReadDone;
pub use reader::{ReadPattern, Reader};
pub(crate) use slot::SlotsAround;
pub use slot::{FileSlots, InSlot, SlotOf};
pub use writeback::{DirtyFolio, DirtyPages};

/// The files of a machine.
#[derive(Debug)]
pub struct PageCache<M: Machine, S> {
    next_file: AtomicU32,
    /// By number.
    files: Locked<M, BTreeMap<u32, Arc<File<M, S>>>>,
    /// By zone.
    zones: Box<[ZoneFiles]>,
    /// Nodes of their trees that hold nothing but shadows.
    shadow_nodes: Locked<M, ShadowNodes>,
    /// 1 if reclaim asked for dirty pages to be written since the flusher last looked.
    flush_asked: AtomicU32,
}

/// Pages of files in a zone.
#[derive(Debug, Default)]
struct ZoneFiles {
    file: AtomicI64,
    dirty: AtomicI64,
    writeback: AtomicI64,
}

impl<M: Machine, S> PageCache<M, S> {
    /// No files yet, on a machine with so many zones.
    pub(crate) fn new(machine: &M, zones: usize) -> Self {
        Self {
            next_file: AtomicU32::new(0),
            files: Locked::new(machine, LockClass::Other, 2, BTreeMap::new()),
            shadow_nodes: Locked::new(machine, LockClass::Other, 8, ShadowNodes::default()),
            zones: (0..zones).map(|_| ZoneFiles::default()).collect(),
            flush_asked: AtomicU32::new(0),
        }
    }

    fn new_file_id(&self) -> FileId {
        FileId(self.next_file.fetch_add(1, Relaxed))
    }

    fn zone(&self, zone: ZoneId) -> &ZoneFiles {
        &self.zones[usize::from(zone.0)]
    }
}

/// What the page cache stands on.
pub trait FilesGround<M: Machine>: LruGround<M> + FileSlots {
    /// The address spaces that map files: the room above knows what they are.
    type Space;

    /// The page cache's own.
    fn page_cache(&self) -> &PageCache<M, Self::Space>;
}

door! {
    /// Files and their pages.
    FilesDoor on FilesGround, PageCache<M, G::Space>: page_cache, to {
        memcg: MemcgDoor, lru: LruDoor, swapped: SwappedDoor, allowed: AllowedDoor
    }
}

door! {
    /// How much may be dirty.
    AllowedDoor on FilesGround, PageCache<M, G::Space>: page_cache, to { memcg: MemcgDoor }
}

door! {
    /// Folios of several pages of files in memory.
    SharedDoor on FilesGround, PageCache<M, G::Space>: page_cache, to { lru: LruDoor, files: FilesDoor }
}

door! {
    /// Pages of files in memory that are in swap.
    SwappedDoor on FilesGround, PageCache<M, G::Space>: page_cache, to { lru: LruDoor, files: FilesDoor }
}
