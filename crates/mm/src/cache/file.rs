//! Files and their pages (the page cache): pages are found by their number in the file, added when they are first read or
//! written, and go by reclaim or with the file. Shared memory is a file that only swap stands behind.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::readahead::{RA_PAGES, Reader};
use super::shadows::{Shadows, node_of, pages_of};
use super::{FilesDoor, FilesGround};
use crate::ground::{
    AtomicU32, Chore, FileId, Guard, LockClass, Locked, Machine, Pfn, Relaxed, SpaceId, Vpn, ZoneKind,
};
use crate::lru::By;
use crate::lru::page::{Mapping, PageFlag};
use crate::memcg::GroupId;
use crate::pages::{AllocError, Placement, Request};
use crate::rules::policy::{WorkingsetRule, WriteUseRule};

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

/// A file.
#[derive(Debug)]
pub struct File<M: Machine, S> {
    pub(in crate::cache) id: FileId,
    kind: FileKind,
    /// Its pages on the disk; `u32::MAX` where nobody has said.
    pub(super) len: AtomicU32,
    /// Pages that its device reads together at most.
    pub(super) read_ahead: AtomicU32,
    pub(super) state: Locked<M, FileState>,
    /// Under the kernel's `i_mmap` lock.
    pub(in crate::cache) mappers: Locked<M, Vec<Mapper<S>>>,
}

/// A file's pages.
#[derive(Debug, Default)]
pub(super) struct FileState {
    pub(super) pages: BTreeMap<u32, Pfn>,
    pub(super) dirty: BTreeSet<u32>,
    /// Its mappings, and all who do not say who they are.
    pub(super) reader: Reader,
    /// What reclaim took, and when, until it comes back.
    pub(super) shadows: Shadows,
}

impl FileState {
    /// Whether any page of `node` is in memory.
    pub(super) fn has_pages_in(&self, node: u32) -> bool {
        self.pages.range(pages_of(node)).next().is_some()
    }
}

/// Who asks for pages of a file, and from where they may be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asker {
    pub(crate) placement: Placement,
    pub(crate) by: By,
}

impl From<Placement> for Asker {
    fn from(placement: Placement) -> Self {
        Self { placement, by: By::Other }
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
    /// Where the file's page `index` would be.
    pub(crate) fn vpn(&self, index: u32) -> Option<Vpn> {
        let within = index.checked_sub(self.first)?;
        (within < self.pages).then(|| self.start.add(within))
    }
}

/// How a page of a file was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cached {
    /// It was there.
    Hit,
    /// It was added; what it holds comes from the disk, for which the caller waits.
    Miss,
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
        let file = Arc::new(File {
            id,
            kind,
            len: AtomicU32::new(u32::MAX),
            read_ahead: AtomicU32::new(RA_PAGES),
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
        self.with_page(file, index, (Wanted::Contents, from), |pfn| self.lru().mark_accessed(pfn))
    }

    /// Has page `index` of `file` in the page cache, which is no use of it: it is read ahead.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn bring_file(
        self,
        file: &File<M, G::Space>,
        index: u32,
        from: Placement,
    ) -> Result<Cached, AllocError> {
        self.with_page(file, index, (Wanted::Contents, from), |_| {})
    }

    /// Writes the whole of page `index` of `file` by a system call, and waits where too much is dirty
    /// (`balance_dirty_pages`), unless it is in memory.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn write_file(
        self,
        file: &File<M, G::Space>,
        index: u32,
        from: Placement,
    ) -> Result<Cached, AllocError> {
        let is_use = file.kind == FileKind::Memory || self.rules().reclaim.write_use == WriteUseRule::Counts;
        let cached = self.with_page(file, index, (Wanted::Overwritten, from), |pfn| {
            self.mark_dirty(pfn);
            if is_use {
                self.lru().mark_accessed(pfn);
            }
        })?;
        if file.kind != FileKind::Memory {
            self.balance_dirty();
        }
        self.memcg().settle_high();
        Ok(cached)
    }

    /// Has page `index` of `file` in memory, does `act` to it while it stays there, and says how it was found.
    fn with_page(
        self,
        file: &File<M, G::Space>,
        index: u32,
        (wanted, from): (Wanted, Placement),
        act: impl FnOnce(Pfn),
    ) -> Result<Cached, AllocError> {
        let (pfn, hit) = self.file_page(file, index, (wanted, from.into()))?;
        act(pfn);
        self.lru().put_page(pfn);
        Ok(if hit { Cached::Hit } else { Cached::Miss })
    }

    /// The page `index` of `file` with a reference for the caller, and whether it was there.
    pub(crate) fn file_page(
        self,
        file: &File<M, G::Space>,
        index: u32,
        (wanted, Asker { placement, by }): (Wanted, Asker),
    ) -> Result<(Pfn, bool), AllocError> {
        if let Some(found) = self.find_page(file, index) {
            return Ok((found, true));
        }
        let pfn = self.alloc(file.request(placement))?;
        self.lru().charge(pfn)?;
        let page = self.lru().page(pfn);
        // The first reference is the file's.
        page.init(Mapping::File(file.id.0), index, file.flags());
        page.note_placement(placement);
        page.get();
        let mut state = file.state.lock_local(self.machine());
        if let Some(&other) = state.pages.get(&index) {
            self.lru().page(other).get();
            drop(state);
            page.put();
            self.lru().put_page(pfn);
            return Ok((other, true));
        }
        state.pages.insert(index, pfn);
        if state.shadows.has_node(node_of(index)) {
            self.node_has_pages(file.id.0, node_of(index));
        }
        let shadow = state.shadows.remove(index);
        drop(state);
        self.count_file(pfn, 1);
        if let Some(shadow) = shadow.filter(|_| wanted == Wanted::Contents) {
            self.lru().refault(pfn, shadow, by, |group| self.ground.has_swap_for(group));
        }
        if file.kind == FileKind::Memory {
            self.lru().page(pfn).set(PageFlag::Dirty);
        }
        self.lru().lru_add_by(pfn, by);
        // Shared memory begins as zeros: there is nothing to wait for.
        Ok((pfn, file.kind == FileKind::Memory))
    }

    /// Those of the pages from `first` to before `end` of `file` that are there, each with a reference for the caller, but for
    /// marked ones, whose reader is to be noticed.
    pub(crate) fn find_pages(self, file: &File<M, G::Space>, first: u32, end: u32) -> Vec<(u32, Pfn)> {
        let state = file.state.lock_local(self.machine());
        let pages = state.pages.range(first..end).map(|(&index, &pfn)| (index, pfn));
        let unmarked = pages.filter(|&(_, pfn)| !self.lru().page(pfn).has(PageFlag::ReadAhead));
        unmarked.inspect(|&(_, pfn)| self.lru().page(pfn).get()).collect()
    }

    fn find_page(self, file: &File<M, G::Space>, index: u32) -> Option<Pfn> {
        let state = file.state.lock_local(self.machine());
        let pfn = *state.pages.get(&index)?;
        self.lru().page(pfn).get();
        Some(pfn)
    }

    pub(super) fn count_file(self, pfn: Pfn, pages: i64) {
        self.count_file_in_zone(pfn, pages);
        self.memcg().count_file(self.lru().page(pfn).group(), pages);
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
            Mapping::File(id) => self.file(id).is_some_and(|file| self.remove_from(&file, pfn, Some(target))),
        }
    }

    /// `target`: the group in which reclaim takes it.
    fn remove_from(self, file: &File<M, G::Space>, pfn: Pfn, target: Option<GroupId>) -> bool {
        let page = self.lru().page(pfn);
        let mut state = file.state.lock_local(self.machine());
        // One that has left the file already has no reference of the file's any more.
        if state.pages.get(&page.index()) != Some(&pfn) || !page.freeze(2) {
            return false;
        }
        // Under the lock and with no other reference nobody dirties it any more; but somebody may have.
        if page.has(PageFlag::Dirty) || page.has(PageFlag::Writeback) {
            page.unfreeze(2);
            return false;
        }
        state.pages.remove(&page.index());
        if let Some(target) = target.filter(|_| self.rules().reclaim.workingset != WorkingsetRule::None) {
            state.shadows.insert(page.index(), self.lru().evict(pfn, target));
        }
        self.note_lost_page(file, &state, pfn);
        drop(state);
        self.count_file(pfn, -1);
        true
    }

    /// The page at `pfn` is not in `file` any more.
    fn note_lost_page(self, file: &File<M, G::Space>, state: &FileState, pfn: Pfn) {
        let index = self.lru().page(pfn).index();
        if state.shadows.has_node(node_of(index)) && !state.has_pages_in(node_of(index)) {
            self.node_lost_pages(file.id.0, index, self.lru().vec_of(pfn));
        }
    }

    /// Puts `to` in the place of `from` in `file`, if nobody but the caller and the file refers to `from`.
    pub(crate) fn replace_in(self, file: &File<M, G::Space>, from: Pfn, to: Pfn) -> bool {
        let mut state = file.state.lock_local(self.machine());
        let page = self.lru().page(from);
        if state.pages.get(&page.index()) != Some(&from) || !page.freeze(2) {
            return false;
        }
        self.lru().carry_over(from, to);
        self.lru().page(to).get();
        state.pages.insert(page.index(), to);
        drop(state);
        // Its group has it as before.
        self.count_file_in_zone(from, -1);
        self.count_file_in_zone(to, 1);
        self.move_dirty(from, to);
        true
    }

    /// Drops page `index` of `file` from memory if it is clean and nobody maps it or works with it (`POSIX_FADV_DONTNEED`).
    /// Says whether it did.
    pub fn forget_file_page(self, file: &File<M, G::Space>, index: u32) -> bool {
        let Some(pfn) = self.find_page(file, index) else { return false };
        let alone = self.lru().page(pfn).mapped() == 0 && self.remove_from(file, pfn, None);
        if alone {
            self.lru().free_page(pfn);
        } else {
            self.lru().put_page(pfn);
        }
        alone
    }

    /// The `pages` from `first` on of `file` go, dirty ones too (truncation); those that somebody maps stay. Says how many went.
    pub fn truncate_pages(self, file: &File<M, G::Space>, first: u32, pages: u32) -> u32 {
        let gone: Vec<Pfn> = {
            let mut state = file.state.lock_local(self.machine());
            let there: Vec<(u32, Pfn)> =
                state.pages.range(first..first.saturating_add(pages)).map(|(at, pfn)| (*at, *pfn)).collect();
            let free = there.into_iter().filter(|(_, pfn)| self.lru().page(*pfn).mapped() == 0);
            let free: Vec<(u32, Pfn)> = free.collect();
            let nodes: Vec<u32> = state.shadows.nodes().collect();
            state.shadows.truncate(first, first.saturating_add(pages));
            for (index, _) in &free {
                state.pages.remove(index);
                state.dirty.remove(index);
            }
            for node in nodes.into_iter().filter(|&node| !state.shadows.has_node(node)) {
                self.node_has_pages(file.id.0, node);
            }
            for (_, pfn) in &free {
                self.note_lost_page(file, &state, *pfn);
            }
            free.into_iter().map(|(_, pfn)| pfn).collect()
        };
        self.give_back(&gone);
        gone.len() as u32
    }

    /// Ends `file`, which nobody maps any more: its pages go, dirty ones too (truncation of a file that was deleted).
    pub fn drop_file(self, file: &File<M, G::Space>) {
        self.own().files.lock_local(self.machine()).remove(&file.id.0);
        let pages = {
            let mut state = file.state.lock_local(self.machine());
            state.dirty.clear();
            for node in core::mem::take(&mut state.shadows).nodes() {
                self.node_has_pages(file.id.0, node);
            }
            core::mem::take(&mut state.pages)
        };
        let pages: Vec<Pfn> = pages.into_values().collect();
        self.give_back(&pages);
    }

    /// Pages that their file has no more.
    fn give_back(self, pages: &[Pfn]) {
        for chunk in pages.chunks(15) {
            self.machine().spend(Chore::Truncate, chunk.len() as u32);
            for &pfn in chunk {
                self.forget_dirty(pfn);
                self.count_file(pfn, -1);
            }
            self.lru().put_pages(chunk);
        }
    }
}
