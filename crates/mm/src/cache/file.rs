//! Files and their pages (the page cache): pages are found by their number in the file, added when they are first read or
//! written, and go by reclaim or with the file. Shared memory is a file that only swap stands behind.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::folio::{Pages, Part, nodes};
use super::reader::{RA_PAGES, Reader};
use super::shadows::Shadows;
use super::slot::{SlotOf, Swapped};
use super::{FilesDoor, FilesGround};
use crate::ground::{
    AtomicU32, FileId, Guard, LockClass, Locked, Machine, Order, Pfn, Relaxed, SpaceId, Vpn, ZoneKind,
};
use crate::lru::By;
use crate::lru::page::{Mapping, PageFlag};
use crate::memcg::{Effort, GroupId};
use crate::pages::{AllocError, Placement, Request, Urgency};
use crate::rules::policy::{FileFolioRule, WorkingsetRule};

/// What a file's pages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// Contents of a file on a disk: clean pages can be had again.
    Disk,
    /// What a file system or a disk itself keeps in the page cache (inode tables, bitmaps, buffers): the same, but the
    /// kernel works with it and so it is never in HighMem.
    Metadata,
    /// Shared memory, a tmpfs file: only swap can hold what is not in memory.
    Memory,
}

/// Where a file in memory is: that says who decides over its huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum MemoryFile {
    /// Nowhere: shared memory without a name (`MAP_SHARED | MAP_ANONYMOUS`), for which `shmem_enabled` and the files of each size hold.
    #[default]
    Unnamed,
    /// On the kernel's own mount (`memfd_create`, `shmget`), for which `shmem_enabled` holds.
    OwnMount,
    /// On a tmpfs that was mounted, as /dev/shm is: that has huge pages by its option `huge=`, which is never by default; of `shmem_enabled`
    /// deny and force hold for it.
    Mounted,
}

/// A file.
#[derive(Debug)]
pub struct File<M: Machine, S> {
    pub(in crate::cache) id: FileId,
    pub(super) kind: FileKind,
    /// Its pages on the disk; `u32::MAX` where nobody has said.
    pub(super) len: AtomicU32,
    /// Its [`MemoryFile`], as a number.
    memory: AtomicU32,
    /// Pages of a window of readahead on its device.
    pub(super) read_ahead: AtomicU32,
    /// Pages that its device reads together where more is asked for.
    pub(super) read_together: AtomicU32,
    /// The order of its largest folios.
    pub(super) largest_folio: AtomicU32,
    pub(super) state: Locked<M, FileState>,
    /// Under the kernel's `i_mmap` lock.
    pub(in crate::cache) mappers: Locked<M, Vec<Mapper<S>>>,
}

/// A file's pages.
#[derive(Debug, Default)]
pub(super) struct FileState {
    pub(super) pages: Pages,
    /// Of each node of its tree that has pages, how many.
    pub(super) in_nodes: BTreeMap<u32, u32>,
    /// Pages that are to be written; the others of their folios are not.
    pub(super) dirty: BTreeSet<u32>,
    /// Its mappings, and all who do not say who they are.
    pub(super) reader: Reader,
    /// What reclaim took, and when, until it comes back.
    pub(super) shadows: Shadows,
    /// Pages of it that are in swap: of files in memory.
    pub(super) swapped: BTreeMap<u32, Swapped>,
}

impl FileState {
    /// Whether any page of `node` is in memory.
    pub(super) fn has_pages_in(&self, node: u32) -> bool {
        self.in_nodes.contains_key(&node)
    }

    /// Where the folio of page `index` is, if it is at `head`.
    pub(super) fn part_at(&self, index: u32, head: Pfn) -> Option<Part> {
        self.pages.get(&index).copied().filter(|part| part.head() == head)
    }
}

/// Who asks for pages of a file, and from where they may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asker {
    pub(crate) placement: Placement,
    pub(crate) by: By,
    /// What is done for the charge of what is added.
    pub(crate) effort: Effort,
    /// How hard is tried for a folio of several pages in the place of one that comes back from swap.
    pub(crate) large: Large,
}

/// How hard is tried for a folio of several pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Large(pub(crate) Urgency);

impl Default for Large {
    fn default() -> Self {
        Self(Urgency::Never)
    }
}

impl From<Placement> for Asker {
    fn from(placement: Placement) -> Self {
        Self { placement, ..Self::default() }
    }
}

/// What a page is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// What it holds.
    Contents,
    /// To be written to: whether it was there before does not count.
    Overwritten,
}

/// Where a page that was asked for came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// It was there, or begins as zeros: nobody waited.
    Memory,
    /// It was added; what it holds comes from the disk, for which the caller is to wait.
    Disk,
    /// It came from swap, which took as long as it takes ([`Machine::swap_io`]).
    Swap,
}

/// What a file has in the place of a page.
enum Place {
    Page(Part),
    Swap(Swapped),
    Nothing,
}

/// Where a file is mapped. What was unmapped in part is still here as a whole: entries are looked at in any case. What
/// an address space is, is not known here: its number is enough.
#[derive(Debug)]
pub(crate) struct Mapper<S> {
    pub(crate) space: Arc<S>,
    pub(crate) id: SpaceId,
    /// The first page that is mapped.
    pub(crate) start: Vpn,
    pub(crate) pages: u32,
    /// What of the file is there.
    pub(crate) first: u32,
}

impl<S> Mapper<S> {
    /// Where those of the file's `pages` are that are mapped here: from which on, and how many.
    pub(crate) fn places(&self, pages: &Range<u32>) -> Option<(Vpn, u32)> {
        let first = pages.start.max(self.first);
        let end = pages.end.min(self.first.saturating_add(self.pages));
        (first < end).then(|| (self.start.add(first - self.first), end - first))
    }
}

/// How a page of a file was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cached {
    /// It was there, or came from swap, which took its time.
    Hit,
    /// It was added; what it holds comes from the disk, for which the caller waits.
    Miss,
}

impl From<Source> for Cached {
    fn from(source: Source) -> Self {
        match source {
            Source::Memory | Source::Swap => Self::Hit,
            Source::Disk => Self::Miss,
        }
    }
}

impl<M: Machine, S> File<M, S> {
    /// Its number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// What its pages are.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Where it is, if it is in memory; nobody has said so: nowhere.
    pub fn memory(&self) -> MemoryFile {
        let all = [MemoryFile::Unnamed, MemoryFile::OwnMount, MemoryFile::Mounted];
        all.into_iter().find(|file| *file as u32 == self.memory.load(Relaxed)).unwrap_or_default()
    }

    /// It is there.
    pub fn set_memory(&self, memory: MemoryFile) {
        self.memory.store(memory as u32, Relaxed);
    }

    /// Pages in memory.
    pub fn cached_pages(&self, machine: &M) -> u64 {
        self.state.lock_local(machine).pages.len() as u64
    }

    /// Those of them from `first` to before `end`.
    pub fn cached_within(&self, machine: &M, first: u32, end: u32) -> u64 {
        self.state.lock_local(machine).pages.range(first..end).count() as u64
    }

    /// Where it is mapped. Under the kernel's `i_mmap` lock.
    pub(crate) fn mappers<'a>(&'a self, machine: &'a M) -> Guard<'a, M, Vec<Mapper<S>>> {
        self.mappers.lock_local(machine)
    }

    /// It is mapped there from now on.
    pub(crate) fn add_mapper(&self, machine: &M, mapper: Mapper<S>) {
        self.mappers.lock_local(machine).push(mapper);
    }

    /// `space` maps nothing of this file any more from `start` to before `end`.
    pub(crate) fn forget_mapper(&self, machine: &M, space: SpaceId, start: Vpn, end: Vpn) {
        let covered = |mapper: &Mapper<S>| start <= mapper.start && mapper.start.add(mapper.pages) <= end;
        self.mappers.lock_local(machine).retain(|mapper| mapper.id != space || !covered(mapper));
    }

    fn request(&self, placement: Placement) -> Request {
        let request = match self.kind {
            FileKind::Disk => Request::USER,
            FileKind::Metadata => Request { highest: ZoneKind::Normal, ..Request::USER },
            FileKind::Memory => Request { zero: true, ..Request::USER },
        };
        Request { node: placement.node, allowed: placement.allowed, ..request }
    }

    /// What `from` asks for a page of it.
    fn request_by(&self, from: Asker) -> Request {
        Request { no_fs: from.effort == Effort::LittleNoFs, ..self.request(from.placement) }
    }

    /// What a page that comes from swap is to be: it is overwritten.
    pub(super) fn request_of_swapped(&self, placement: Placement) -> Request {
        Request { zero: false, ..self.request(placement) }
    }

    /// Where what a new page of it holds comes from. Shared memory begins as zeros.
    fn source(&self) -> Source {
        if self.kind == FileKind::Memory { Source::Memory } else { Source::Disk }
    }

    fn flags(&self) -> &'static [PageFlag] {
        match self.kind {
            FileKind::Memory => &[PageFlag::SwapBacked],
            FileKind::Disk | FileKind::Metadata => &[],
        }
    }
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// A file without pages in memory. It ends with [`FilesDoor::drop_file`].
    pub fn new_file(self, kind: FileKind) -> Arc<File<M, G::Space>> {
        let id = self.own().new_file_id();
        let largest = match (kind, self.rules().reclaim.file_folio) {
            (FileKind::Disk, FileFolioRule::ByMark | FileFolioRule::Remembered) => Order::PAGEBLOCK,
            _ => Order::ZERO,
        };
        let file = Arc::new(File {
            id,
            kind,
            len: AtomicU32::new(u32::MAX),
            memory: AtomicU32::new(MemoryFile::default() as u32),
            read_ahead: AtomicU32::new(RA_PAGES),
            read_together: AtomicU32::new(0),
            largest_folio: AtomicU32::new(largest.get().into()),
            state: Locked::new(self.machine(), LockClass::PageCache, id.0, FileState::default()),
            mappers: Locked::new(self.machine(), LockClass::Rmap, id.0, Vec::new()),
        });
        self.own().files.lock_local(self.machine()).insert(id.0, Arc::clone(&file));
        file
    }

    /// The file numbered `id`, while it is there.
    pub(crate) fn file(self, id: u32) -> Option<Arc<File<M, G::Space>>> {
        self.own().files.lock_local(self.machine()).get(&id).map(Arc::clone)
    }

    /// Reads page `index` of `file` by a system call: it is in the page cache afterwards, and was used.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn read_file(
        self,
        file: &File<M, G::Space>,
        index: u32,
        from: Placement,
    ) -> Result<Cached, AllocError> {
        let (part, source) = self.file_page(file, index, (Wanted::Contents, from.into()))?;
        self.lru().mark_accessed(part.head());
        self.lru().put_page(part.head());
        Ok(source.into())
    }

    /// The page `index` of `file`, its folio with a reference for the caller, and where it came from. What was not there comes by itself.
    pub(crate) fn file_page(
        self,
        file: &File<M, G::Space>,
        index: u32,
        (wanted, from): (Wanted, Asker),
    ) -> Result<(Part, Source), AllocError> {
        let mut found = Source::Memory;
        loop {
            match self.find_place(file, index) {
                Place::Page(part) => return Ok((part, found)),
                Place::Swap(Swapped { slot, ahead, .. }) => {
                    if ahead.is_none() {
                        self.swapped().read_swapped(SlotOf { slot, file: file.id, index }, from)?;
                        found = Source::Swap;
                    }
                    if let Some(part) = self.swapped().claim(file, index) {
                        return Ok((part, found));
                    }
                }
                Place::Nothing => {
                    let pfn = self.alloc(file.request_by(from))?;
                    if self.install(file, (index, pfn), (wanted, from))? {
                        return Ok((Part { pfn, order: Order::ZERO }, file.source()));
                    }
                }
            }
        }
    }

    /// Adds the folio of `order` that begins with page `first` of `file`, with a reference for the caller, unless one of its pages is there,
    /// or there is no such block at hand.
    pub(super) fn add_folio(
        self,
        file: &File<M, G::Space>,
        (first, order): (u32, Order),
        (wanted, from): (Wanted, Asker),
    ) -> Option<Pfn> {
        let request = Request { urgency: Urgency::Once, ..file.request_by(from) }.of_order(order);
        let head = self.alloc(request).ok()?;
        let is_new = self.install(file, (first, head), (wanted, from)).ok()?;
        is_new.then_some(head)
    }

    /// Puts the block at `head`, which was just allocated, into `file` as the folio that begins with page `first`, with a reference for the
    /// caller; where one of its pages is there already, it is freed. Says whether it is there now.
    pub(super) fn install(
        self,
        file: &File<M, G::Space>,
        (first, head): (u32, Pfn),
        (wanted, Asker { placement, by, effort, .. }): (Wanted, Asker),
    ) -> Result<bool, AllocError> {
        self.lru().charge_by(head, effort)?;
        let order = self.pages().order_of(head);
        let pages = first..first + order.pages();
        self.init_page(file, (first, head), placement);
        let mut state = file.state.lock_local(self.machine());
        if state.has_any(pages.clone()) || state.swapped.range(pages.clone()).next().is_some() {
            drop(state);
            self.drop_new(head);
            return Ok(false);
        }
        state.insert(pages.clone(), head, order);
        for node in nodes(&pages).filter(|&node| state.shadows.has_node(node)) {
            self.node_has_pages(file.id.0, node);
        }
        // What a folio of several left is known by the last (`__filemap_add_folio`).
        let shadow = pages.clone().filter_map(|index| state.shadows.remove(index)).last();
        drop(state);
        self.count_file(head, order.pages().into());
        if let Some(shadow) = shadow.filter(|_| wanted == Wanted::Contents) {
            self.lru().refault(head, shadow, by, |group| self.ground.has_swap_for(group));
        }
        if file.kind == FileKind::Memory {
            self.lru().page(head).set(PageFlag::Dirty);
        }
        self.lru().lru_add_by(head, by);
        Ok(true)
    }

    /// The block at `head` is to be what `file` has from page `first` on: with a reference of the file's, and one for the caller.
    pub(super) fn init_page(self, file: &File<M, G::Space>, (first, head): (u32, Pfn), placement: Placement) {
        let page = self.lru().page(head);
        page.init(Mapping::File(file.id.0), first, file.flags());
        page.note_placement(placement);
        page.get();
    }

    /// It is not: somebody else was earlier.
    pub(super) fn drop_new(self, head: Pfn) {
        self.lru().page(head).put();
        self.lru().put_page(head);
    }

    /// Those of the pages from `first` to before `end` of `file` that are there, each with a reference for the caller, but for
    /// those of marked folios, whose reader is to be noticed.
    pub(crate) fn find_pages(self, file: &File<M, G::Space>, first: u32, end: u32) -> Vec<(u32, Part)> {
        let state = file.state.lock_local(self.machine());
        let pages = state.pages.range(first..end).map(|(&index, &part)| (index, part));
        let unmarked = pages.filter(|(_, part)| !self.lru().page(part.head()).has(PageFlag::ReadAhead));
        unmarked.inspect(|(_, part)| self.lru().page(part.head()).get()).collect()
    }

    /// The page `index`, its folio with a reference for the caller.
    pub(super) fn find_page(self, file: &File<M, G::Space>, index: u32) -> Option<Part> {
        match self.find_place(file, index) {
            Place::Page(part) => Some(part),
            Place::Swap(_) | Place::Nothing => None,
        }
    }

    /// What there is of page `index`; a page's folio with a reference for the caller.
    fn find_place(self, file: &File<M, G::Space>, index: u32) -> Place {
        let state = file.state.lock_local(self.machine());
        if let Some(&part) = state.pages.get(&index) {
            self.lru().page(part.head()).get();
            return Place::Page(part);
        }
        state.swapped.get(&index).map_or(Place::Nothing, |&swapped| Place::Swap(swapped))
    }

    /// `pages` more of the folio at `head` are in files.
    pub(super) fn count_file(self, head: Pfn, pages: i64) {
        self.count_file_in_zone(head, pages);
        self.memcg().count_file(self.lru().page(head).group(), pages);
    }

    fn count_file_in_zone(self, pfn: Pfn, pages: i64) {
        self.own().zone(self.map().frame(pfn).state().zone).file.fetch_add(pages, Relaxed);
    }

    /// Takes the page at `pfn` out of its file or from swap's side, if nobody but the caller (and its file) refers to it
    /// and its contents are safe; reclaim in `target` wants that. Then it is the caller's alone, to be freed by [`LruDoor::free_page`].
    pub(crate) fn remove_mapping(self, pfn: Pfn, target: GroupId) -> bool {
        let page = self.lru().page(pfn);
        match page.mapping() {
            Mapping::None | Mapping::Anon(_) => page.mapped() == 0 && page.freeze(1),
            Mapping::File(id) => self.file(id).is_some_and(|file| {
                self.remove_from(&file, pfn, Some(target)) || self.swapped().forget_ahead(&file, pfn, target)
            }),
            Mapping::Slot => false,
        }
    }

    /// `target`: the group in which reclaim takes it.
    pub(super) fn remove_from(self, file: &File<M, G::Space>, head: Pfn, target: Option<GroupId>) -> bool {
        let page = self.lru().page(head);
        let mut state = file.state.lock_local(self.machine());
        // One that has left the file already has no reference of the file's any more.
        if state.part_at(page.index(), head).is_none() || !page.freeze(2) {
            return false;
        }
        // Under the lock and with no other reference nobody dirties it any more; but somebody may have.
        if page.has(PageFlag::Dirty) || page.has(PageFlag::Writeback) {
            page.unfreeze(2);
            return false;
        }
        let pages = self.folio_pages(head);
        state.remove(pages.clone());
        if let Some(target) = target.filter(|_| self.rules().reclaim.workingset != WorkingsetRule::None) {
            let shadow = self.lru().evict(head, target);
            pages.clone().for_each(|index| state.shadows.insert(index, shadow));
        }
        self.note_lost_pages(file, &state, head);
        drop(state);
        self.count_file(head, -i64::from(pages.end - pages.start));
        true
    }

    /// The pages of the folio at `head` are not in `file` any more.
    pub(super) fn note_lost_pages(self, file: &File<M, G::Space>, state: &FileState, head: Pfn) {
        let nodes = nodes(&self.folio_pages(head));
        for node in nodes.filter(|&node| state.shadows.has_node(node) && !state.has_pages_in(node)) {
            self.node_lost_pages((file.id.0, node), self.lru().vec_of(head));
        }
    }

    /// Puts `to`, of the same order, in the place of the folio at `from` in `file`, if nobody but the caller and the file refers to that.
    pub(crate) fn replace_in(self, file: &File<M, G::Space>, from: Pfn, to: Pfn) -> bool {
        let mut state = file.state.lock_local(self.machine());
        let page = self.lru().page(from);
        let Some(part) = state.part_at(page.index(), from).filter(|_| page.freeze(2)) else { return false };
        let pages = self.folio_pages(from);
        self.lru().carry_over(from, to);
        self.lru().page(to).get();
        state.insert(pages, to, part.order);
        drop(state);
        // Its group has it as before.
        let pages = i64::from(part.order.pages());
        self.count_file_in_zone(from, -pages);
        self.count_file_in_zone(to, pages);
        self.move_dirty(from, to);
        true
    }
}
