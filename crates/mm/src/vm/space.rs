//! An address space (`mm_struct`) and the doors to map and unmap; the families in which forked address spaces share
//! pages; how much may be promised (`vm.overcommit_memory`).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::contents::ZeroPages;
use super::counters::{SpaceCounters, SpaceStat};
use super::deferred::Deferred;
use super::entry::bit;
use super::family::Family;
use super::khugepaged::Khugepaged;
use super::mempolicy::InterleaveWeights;
use super::region::Protection;
use super::region::{Backing, HugePages, MapSpec, Region, Regions};
use super::table::{Directory, EntrySize, Table};
use super::upper::UpperTables;
use super::zero::Zeros;
use super::{ReadPattern, SpaceId, Swap, Touch, Vpn};
use super::{SpacesDoor, SpacesGround};
use crate::cache::Mapper;
use crate::ground::ids::{Node, Pfn};
use crate::ground::machine::{Chore, LockClass, Machine};
use crate::ground::sync::{Acquire, AtomicI64, AtomicU32, Locked, Relaxed, Release};
use crate::memcg::GroupId;
use crate::pages::request::AllocError;
use crate::rules::knobs::Knob;
use crate::rules::policy::RecencyRule;

/// What the address spaces of a machine have in common.
#[derive(Debug)]
pub struct Vm<M: Machine> {
    next_space: AtomicU32,
    /// By number; a family's is that of its first space.
    pub(super) families: Locked<M, BTreeMap<u32, Arc<Family<M>>>>,
    /// Pages promised.
    committed: AtomicI64,
    pub(in crate::vm) swap: Swap<M>,
    pub(super) khugepaged: Khugepaged<M>,
    pub(super) weights: InterleaveWeights,
    pub(super) zeros: Zeros<M>,
    pub(super) deferred: Deferred<M>,
    pub(in crate::vm) events: super::fault::VmEvents,
}

impl<M: Machine> Vm<M> {
    pub(crate) fn new(machine: &M, nodes: usize) -> Self {
        Self {
            next_space: AtomicU32::new(0),
            families: Locked::new(machine, LockClass::Other, 1, BTreeMap::new()),
            committed: AtomicI64::new(0),
            swap: Swap::new(machine),
            khugepaged: Khugepaged::new(machine),
            weights: InterleaveWeights::new(nodes),
            zeros: Zeros::new(machine),
            deferred: Deferred::new(machine),
            events: super::fault::VmEvents::default(),
        }
    }
}

/// An address space. It ends with [`SpacesDoor::exit`]; one that is dropped without keeps its pages.
#[derive(Debug)]
pub struct AddressSpace<M: Machine> {
    pub(in crate::vm) id: SpaceId,
    pub(super) family: u32,
    /// Held by who changes the regions until entries and regions agree again: the kernel's `mmap_lock`, for writing.
    pub(super) changes: Locked<M, ()>,
    pub(super) regions: Locked<M, Regions<M>>,
    generation: AtomicU32,
    pub(super) tables: Directory<M>,
    pub(super) upper: UpperTables<M>,
    pub(super) stat: SpaceStat,
    /// 1 if a region of it has ever moved: only then does its family know of any.
    pub(super) moved: AtomicU32,
    /// 1 if it uses the huge page of zeros.
    pub(super) huge_zero: AtomicU32,
    /// 1 if khugepaged knows of it.
    pub(super) entered: AtomicU32,
    /// 1 if it was ever said how a region of it is read.
    pub(super) patterned: AtomicU32,
    /// The group of who had the last fault in it, where pages are kept by generations: reclaim there walks its tables.
    group: AtomicU32,
    /// What of it holds zeros.
    pub(super) zeros: Locked<M, Vec<ZeroPages>>,
}

impl<M: Machine> AddressSpace<M> {
    pub(super) fn new(machine: &M, id: SpaceId, family: Option<u32>, nodes: usize) -> Self {
        Self {
            id,
            family: family.unwrap_or(id.0),
            changes: Locked::new(machine, LockClass::Mmap, id.0, ()),
            regions: Locked::new(machine, LockClass::Mmap, id.0, Regions::default()),
            generation: AtomicU32::new(0),
            tables: Directory::new(id),
            upper: UpperTables::new(machine, id),
            stat: SpaceStat::new(nodes),
            moved: AtomicU32::new(0),
            huge_zero: AtomicU32::new(0),
            entered: AtomicU32::new(0),
            patterned: AtomicU32::new(0),
            group: AtomicU32::new(0),
            zeros: Locked::new(machine, LockClass::Other, id.0, Vec::new()),
        }
    }

    /// Who has it is in `group`.
    pub(super) fn note_group(&self, group: GroupId) {
        self.group.store(group.index() as u32, Relaxed);
    }

    /// The group of who has it.
    pub(super) fn group(&self) -> GroupId {
        GroupId(self.group.load(Relaxed) as u16)
    }

    /// Its number.
    pub fn id(&self) -> SpaceId {
        self.id
    }

    /// Grows whenever regions go, and with each fork.
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Acquire)
    }

    /// Faults that are on their way must look again. The lock of the regions is held, or that of the table that changes.
    pub(super) fn next_generation(&self) {
        // Pairs with the acquire in `generation`: a fault that finds the new one finds the regions as they are now.
        self.generation.fetch_add(1, Release);
    }

    /// Pages mapped that are on `node`.
    pub fn pages_on(&self, node: Node) -> u64 {
        self.stat.on(node)
    }

    /// Pages mapped (the resident set).
    pub fn resident_pages(&self) -> u64 {
        self.stat.resident()
    }

    /// Frames that its page tables take, those of all levels but the top one.
    pub fn table_pages(&self) -> u64 {
        self.stat.tables()
    }

    /// Pages in swap.
    pub fn swapped_pages(&self) -> u64 {
        self.stat.swapped()
    }

    /// Huge pages mapped whole.
    pub fn huge_pages(&self) -> u64 {
        self.stat.huge_pages()
    }

    /// All that is counted of it.
    pub fn counters(&self) -> SpaceCounters {
        self.stat.read()
    }

    /// What the processor does when it touches `vpn`: its frame, if a page is mapped that may be touched so, and the
    /// entry's accessed and dirty bits are set. `None` means a fault.
    #[inline]
    pub fn access(&self, vpn: Vpn, touch: Touch) -> Option<Pfn> {
        self.tables.get(vpn)?.access(vpn, touch)
    }

    /// The table of `vpn`, if anything was ever touched near it.
    pub(crate) fn table(&self, vpn: Vpn) -> Option<&Table<M>> {
        self.tables.get(vpn)
    }

    /// The region of `vpn`, and the generation before it was looked up.
    pub(super) fn region_of(&self, machine: &M, vpn: Vpn) -> Option<(Region<M>, u32)> {
        let generation = self.generation();
        // Held as long as the kernel's `down_read` takes.
        let regions = self.regions.lock_local(machine);
        regions.find(vpn).map(|region| (region.clone(), generation))
    }

    /// Whether anything is mapped in the `pages` pages from `start` on.
    pub fn has_any(&self, machine: &M, start: Vpn, pages: u32) -> bool {
        self.regions.lock_local(machine).has_any(start, start.add(pages))
    }

    /// Whether what is mapped at `vpn` may be executed; not where somebody changes what is mapped.
    pub(super) fn is_code(&self, machine: &M, vpn: Vpn) -> bool {
        self.region_unless_locked(machine, vpn).is_some_and(|region| region.protection == Protection::Execute)
    }

    /// Whether the entry of `vpn` says that its page was used, by `rule`.
    pub(super) fn has_recency(&self, machine: &M, vpn: Vpn, rule: RecencyRule) -> bool {
        self.patterned.load(Relaxed) == 0
            || self.region_unless_locked(machine, vpn).is_none_or(|region| says_use(region.pattern, rule))
    }

    /// The region of `vpn`, for reclaim: whoever reclaims may hold the lock himself, as a fork does.
    pub(super) fn region_unless_locked(&self, machine: &M, vpn: Vpn) -> Option<Region<M>> {
        let regions = self.regions.try_lock_local(machine)?;
        regions.find(vpn).cloned()
    }
}

/// Whether entries of a mapping that is read by `pattern` say that a page was used.
pub(super) fn says_use(pattern: ReadPattern, rule: RecencyRule) -> bool {
    match pattern {
        ReadPattern::Normal => true,
        ReadPattern::Sequential => false,
        ReadPattern::Random => rule == RecencyRule::NotInOrder,
    }
}

/// What is at a virtual page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residence {
    /// Nothing that is in memory.
    Absent,
    /// The page is in swap.
    Swapped,
    /// The page of zeros.
    Zeros(PartOf),
    /// A page, on this node.
    Page(Node, PartOf),
}

/// What a page is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartOf {
    /// Nothing larger.
    Itself,
    /// A large page, or a folio of a file, that is smaller than a huge one.
    Large,
    /// A huge page, which may be mapped in parts.
    Huge,
}

/// Why nothing was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// No pages, or more than an address space or a file has.
    Size,
    /// No gap is large enough.
    NoRoom,
    /// More would be promised than `vm.overcommit_memory` allows.
    Overcommit,
    /// Not all of the pages that were named are mapped.
    NotMapped,
    /// The place that pages are to move to overlaps the one where they are.
    Overlap,
    /// No memory for page tables.
    Alloc(AllocError),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "a region has from 1 page to 16 TiB, and ends within the first 16 TiB of its file",
            Self::NoRoom => "the address space has no gap of that size",
            Self::Overcommit => "vm.overcommit_memory allows no more memory to be promised",
            Self::Overlap => "pages cannot move to a place that overlaps theirs",
            Self::NotMapped => "not all of these pages are mapped",
            Self::Alloc(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for MapError {}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// An empty address space, of a family of its own.
    pub fn new_space(self) -> Arc<AddressSpace<M>> {
        let id = SpaceId(self.own().next_space.fetch_add(1, Relaxed));
        let space = Arc::new(AddressSpace::new(self.machine(), id, None, self.topology().nodes.len()));
        self.found_family(&space);
        space
    }

    /// An empty address space of the family of `parent`.
    pub(super) fn new_relative(self, parent: &AddressSpace<M>) -> Arc<AddressSpace<M>> {
        let id = SpaceId(self.own().next_space.fetch_add(1, Relaxed));
        let nodes = self.topology().nodes.len();
        let space = Arc::new(AddressSpace::new(self.machine(), id, Some(parent.family), nodes));
        self.join_family(&space, parent);
        space.say_zeros(self.machine(), &parent.said_zeros(self.machine()));
        space
    }

    /// Maps what `spec` says into `space`, at the lowest gap; nothing is touched yet. Gives the first page.
    ///
    /// # Errors
    /// If there is no room, or too much is promised already.
    pub fn mmap(self, space: &Arc<AddressSpace<M>>, spec: MapSpec<M>) -> Result<Vpn, MapError> {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Regions, 1);
        if spec.pages == 0 || !spec.backing.has(spec.pages) {
            return Err(MapError::Size);
        }
        let _changes = space.changes.lock_local(self.machine());
        let mut regions = space.regions.lock_local(self.machine());
        let start = regions.gap(spec.pages).ok_or(MapError::NoRoom)?;
        let region = spec.region(start);
        self.commit(region.committed())?;
        self.note_mapper(space, &region);
        self.collapses().note_shared(space, &region);
        regions.insert(region);
        Ok(start)
    }

    /// Maps what `spec` says at `start` of `space`; what lies there goes first (`MAP_FIXED`). A region that is more of what
    /// it adjoins becomes one with it, so that a heap that grows piece by piece may have huge pages.
    ///
    /// # Errors
    /// If it does not fit into an address space, or too much is promised already; what lay there is gone then.
    pub fn mmap_at(self, space: &Arc<AddressSpace<M>>, start: Vpn, spec: MapSpec<M>) -> Result<(), MapError> {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Regions, 1);
        if spec.pages == 0 || start.0.checked_add(spec.pages).is_none() || !spec.backing.has(spec.pages) {
            return Err(MapError::Size);
        }
        let _changes = space.changes.lock_local(self.machine());
        self.unmap_range(space, start, start.add(spec.pages));
        let region = spec.region(start);
        self.commit(region.committed())?;
        self.note_mapper(space, &region);
        self.collapses().note_shared(space, &region);
        let pages = region.pages();
        space.regions.lock_local(self.machine()).insert_merged(region);
        self.collapses().note_merged(space, (start, pages));
        Ok(())
    }

    /// The file of `region`, if there is one, learns that `space` maps it.
    pub(super) fn note_mapper(self, space: &Arc<AddressSpace<M>>, region: &Region<M>) {
        if let Backing::Shared { file, first } | Backing::Private { file, first } = &region.backing {
            let (id, start, pages) = (space.id, region.start, region.pages());
            let mapper = Mapper { space: Arc::clone(space), id, start, pages, first: *first };
            file.add_mapper(self.machine(), mapper);
        }
    }

    /// Says of the `pages` from `start` on of `space`, as far as they are mapped, whether they may be huge (`madvise`).
    /// What is there already stays as it is.
    pub fn advise(self, space: &AddressSpace<M>, start: Vpn, pages: u32, huge: HugePages) {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Regions, 1);
        let end = Vpn(start.0.saturating_add(pages));
        self.change_regions(space, start, end, |region| Region { huge, ..region });
        if huge == HugePages::Advised {
            self.collapses().note_advised(space, (start, end));
        }
    }

    /// Takes the `pages` from `start` on out of `space`, which need not all be mapped, and gives their memory back.
    pub fn munmap(self, space: &AddressSpace<M>, start: Vpn, pages: u32) {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Regions, 1);
        let end = Vpn(start.0.saturating_add(pages));
        // Nothing is mapped in the place before the entries are gone: they would be taken for the new region's.
        let _changes = space.changes.lock_local(self.machine());
        self.unmap_range(space, start, end);
    }

    /// As [`Self::munmap`], to before `end`; the caller changes regions.
    pub(super) fn unmap_range(self, space: &AddressSpace<M>, start: Vpn, end: Vpn) {
        let (gone, neighbours) = {
            let mut regions = space.regions.lock_local(self.machine());
            let gone = regions.take(start, end);
            space.next_generation();
            (gone, regions.neighbours(start, end))
        };
        for region in &gone {
            self.tables().zap(space, (region.start, region.end), region.pattern);
            self.uncommit(region.committed());
            if let Backing::Shared { file, .. } | Backing::Private { file, .. } = &region.backing {
                file.forget_mapper(self.machine(), space.id, start, end);
            }
        }
        self.forget_moved(space, start, end);
        self.tables().free_tables(space, (start, end), neighbours);
    }

    /// Ends `space`: all of its pages are given back, and it leaves its family. It can be used no more.
    pub fn exit(self, space: &AddressSpace<M>) {
        self.machine().spend(Chore::Exit, 1);
        {
            let _changes = space.changes.lock_local(self.machine());
            self.unmap_range(space, Vpn(0), Vpn(u32::MAX));
        }
        self.leave_huge_zero(space);
        self.leave_family(space);
    }

    /// Promises `pages` more.
    pub(super) fn commit(self, pages: u32) -> Result<(), MapError> {
        let after = self.own().committed.fetch_add(i64::from(pages), Relaxed) + i64::from(pages);
        let (memory, swap) = (self.managed_pages() as i64, i64::from(self.own().swap.size()));
        let is_within = |ratio: u64| after <= memory * ratio as i64 / 100 + swap;
        let fits_in = |mode: u64| match mode {
            // What is surely too much: a single request of more than there is.
            0 => i64::from(pages) <= memory + swap,
            1 => true,
            _ => is_within(self.knobs().get(Knob::OvercommitRatio)),
        };
        let fits = self.knobs().decide(self.machine(), Knob::OvercommitMemory, fits_in);
        if self.knobs().get(Knob::OvercommitMemory) == 2 {
            self.note_overcommit_ratio(after, memory, swap);
        }
        if fits {
            return Ok(());
        }
        self.uncommit(pages);
        Err(MapError::Overcommit)
    }

    /// Tells a machine that watches how near `vm.overcommit_ratio` was to refusing, where it counts.
    fn note_overcommit_ratio(self, after: i64, memory: i64, swap: i64) {
        if M::WATCHES_KNOBS {
            let limit = |ratio: u64| (memory * ratio as i64 / 100 + swap) as u64;
            let by = (Knob::OvercommitRatio, after.max(0) as u64);
            self.knobs().decide_by(self.machine(), by, limit, |limit| after <= limit as i64);
        }
    }

    pub(super) fn uncommit(self, pages: u32) {
        self.own().committed.fetch_sub(i64::from(pages), Relaxed);
    }

    /// Pages promised to all address spaces (`Committed_AS`).
    pub fn committed_pages(self) -> u64 {
        self.own().committed.load(Relaxed).max(0) as u64
    }

    pub(super) fn managed_pages(self) -> u64 {
        self.zones().iter().map(|zone| u64::from(zone.managed())).sum()
    }

    /// What is at `vpn` of `space`.
    pub fn residence(self, space: &AddressSpace<M>, vpn: Vpn) -> Residence {
        let Some((entry, size)) = space.table(vpn).map(|table| table.entry_and_size(vpn)) else {
            return Residence::Absent;
        };
        let is_huge = size == EntrySize::Huge || entry.has(bit::PART) && !entry.is_smaller_part();
        let part = match entry {
            _ if is_huge => PartOf::Huge,
            entry if entry.has(bit::PART) => PartOf::Large,
            _ => PartOf::Itself,
        };
        match entry {
            entry if entry.is_zeros() => Residence::Zeros(part),
            entry if entry.is_present() => Residence::Page(self.pages().node_of_page(entry.head()), part),
            entry if entry.slot().is_some() => Residence::Swapped,
            _ => Residence::Absent,
        }
    }

    /// Whether a file, or shared memory, stands behind `vpn` of `space`.
    pub fn is_of_file(self, space: &AddressSpace<M>, vpn: Vpn) -> bool {
        let region = space.region_of(self.machine(), vpn);
        region.is_some_and(|(region, _)| !matches!(region.backing, Backing::Anonymous))
    }

    /// The node of the page that is mapped at `vpn` of `space`; `None` where none is, or it is on its way.
    pub fn node_at(self, space: &AddressSpace<M>, vpn: Vpn) -> Option<Node> {
        let entry = space.table(vpn)?.entry(vpn);
        entry.is_present().then(|| self.pages().node_of_page(entry.head()))
    }
}
