//! The seam: everything that the memory manager asks of the machine under it.
//!
//! Three machines implement it: `sim` (simulated CPUs, caches and time), `host` (this machine's threads, locks and
//! memory) and a small one that lets `shuttle` explore schedules. The core is generic over [`Machine`] and compiled
//! once for each, so that on the host [`Machine::touch`] and spans vanish and a lock is a real one.

use crate::ground::ids::{Addr, Cpu, MigrateType, Nanos, Node, Order, Pfn, SpaceId, TaskId, ZoneId};
use crate::ground::knob::{KnobId, KnobUse};

/// A machine that memory management runs on.
///
/// # Safety
/// [`Machine::lock`], a [`Machine::try_lock`] that returned true and [`Machine::unlock`] must make a mutual exclusion
/// with acquire and release ordering: data behind a [`crate::ground::sync::Locked`] is reached on the strength of it.
/// [`Machine::cpu`] must be below the CPU count of the [`crate::Topology`] that the machine was made with.
pub unsafe trait Machine {
    /// A lock's own state.
    type Lock;
    /// What [`Machine::irq_save`] remembers.
    type Irq;

    /// The CPU that this runs on. It may have changed by the next call, unless interrupts are off.
    fn cpu(&self) -> Cpu;
    /// The task that this runs for.
    fn task(&self) -> TaskId;
    /// Time since the machine started.
    fn now(&self) -> Nanos;
    /// A random number from the machine's own, seeded, generator.
    fn random(&self) -> u64;

    /// A free lock. `index` tells locks of one class apart (a zone, a CPU).
    fn new_lock(&self, class: LockClass, index: u32) -> Self::Lock;
    /// Takes `lock`, waiting as long as it needs.
    fn lock(&self, lock: &Self::Lock);
    /// Takes `lock` if nobody holds it.
    fn try_lock(&self, lock: &Self::Lock) -> bool;
    /// Gives back `lock`, which the caller took.
    fn unlock(&self, lock: &Self::Lock);
    /// Whether somebody waits for `lock`, which the caller holds.
    fn is_contended(&self, lock: &Self::Lock) -> bool;
    /// Turns interrupts off on this CPU: no daemon, tick or preemption until [`Machine::irq_restore`].
    fn irq_save(&self) -> Self::Irq;
    /// Puts interrupts back as they were.
    fn irq_restore(&self, irq: Self::Irq);

    /// The code reads or writes `line`, a cache line of the kernel's that the machine may charge for.
    fn touch(&self, line: Line, access: Access);
    /// The 64-bit word at `at`, a multiple of 8, in memory that this memory manager holds: links of free objects live
    /// there. What the access costs is charged here. A word that was never stored may read as anything.
    fn load(&self, at: Addr) -> u64;
    /// Stores a word, likewise.
    fn store(&self, at: Addr, word: u64);
    /// The code goes through `chore`, `times` times: instructions that no span and no line stands for. Where
    /// instructions take their own time, that is nothing.
    #[inline]
    fn spend(&self, chore: Chore, times: u32) {
        let _ = (chore, times);
    }
    /// Entries of `space` have changed in a way that a CPU which runs in it must know: those that do are interrupted, and
    /// waited for. What this CPU does for itself is part of the chore.
    #[inline]
    fn flush_tlb(&self, space: SpaceId) {
        let _ = space;
    }
    /// Fills a block with zeros.
    fn clear(&self, block: Pfn, order: Order);
    /// Copies a block.
    fn copy(&self, from: Pfn, to: Pfn, order: Order);

    /// A page is written to swap, or read from there: what that costs is charged here. Who reads goes on when it is there, who
    /// writes at once. Nothing is held but what may be slept with. Where it takes no time, nothing. Gives when the device is done with it.
    #[inline]
    fn swap_io(&self, io: SwapIo) -> Nanos {
        let _ = io;
        self.now()
    }

    /// Whether the calling task may sleep: it holds no lock, and interrupts are on. Where nobody can tell, it may.
    #[inline]
    fn may_sleep(&self) -> bool {
        true
    }
    /// [`Machine::block`] where the task may sleep; else it goes on at once. Reclaim waits so: who asks for memory may hold what stands for
    /// a lock that one sleeps with in the kernel (`mmap_lock`).
    #[inline]
    fn wait(&self, at_most: Nanos) {
        if self.may_sleep() {
            self.block(at_most);
        }
    }
    /// The calling task sleeps until something is woken for it, or until `at_most` has passed.
    fn block(&self, at_most: Nanos);
    /// Wakes a daemon. One that is awake already stays so.
    fn wake(&self, daemon: Daemon);
    /// Whether another task has been waiting for this CPU since the calling task's time slice ran out; asking forgets it.
    /// Where the system sees to that by itself, never.
    #[inline]
    fn need_resched(&self) -> bool {
        false
    }

    /// Whether the machine wants to hear what knobs decide. Where it does not, nothing is evaluated for that.
    const WATCHES_KNOBS: bool = false;
    /// A rule read `knob`, which somebody set; `used` says what the default would have decided.
    #[inline]
    fn knob_used(&self, knob: impl Into<KnobId>, used: KnobUse) {
        let _ = (knob, used);
    }

    /// Reclaim or compaction did what a tracepoint of the kernel tells of.
    #[inline]
    fn traced(&self, what: Traced) {
        let _ = what;
    }

    /// A latency span begins; what comes back is handed to [`Machine::leave`].
    fn enter(&self, span: Span) -> Nanos;
    /// The span that began at `since` ends, having done `work`.
    fn leave(&self, span: Span, since: Nanos, work: Work);
}

/// What the kernel has a tracepoint for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traced {
    /// A batch of reclaim.
    Batch(Batch),
    /// A step of compaction.
    Compaction(CompactStep),
}

/// A step of compaction, as the kernel's tracepoint tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactStep {
    /// The tracepoint: `mm_compaction_isolate_migratepages`, `mm_compaction_fast_isolate_freepages`, …
    pub event: &'static str,
    /// The frames that it went over; of `begin` and `end` where the two scanners stand; of `migratepages` none.
    pub frames: (Pfn, Pfn),
    /// Frames looked at; of `migratepages` pages that moved.
    pub scanned: u32,
    /// Frames taken; of `migratepages` pages that stayed.
    pub taken: u32,
}

/// A batch of reclaim, as the kernel's tracepoint tells of it; in base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The tracepoint: `mm_vmscan_lru_shrink_inactive`, `mm_vmscan_lru_shrink_active`.
    pub event: &'static str,
    /// The list, by its name in vmstat: `nr_inactive_anon`, …
    pub lru: &'static str,
    /// Looked at.
    pub scanned: u32,
    /// Taken off the list.
    pub taken: u32,
    /// Freed, or moved to the inactive list.
    pub gone: u32,
    /// That came back active, or stay so.
    pub active: u32,
    /// 12 at first, and less as it gets harder.
    pub priority: u32,
}

/// A logical cache line: what kind of data it is and which one, never an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Line {
    /// What the line holds.
    pub kind: LineKind,
    /// Which of them.
    pub index: u32,
}

/// What a cache line holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LineKind {
    /// A frame descriptor (`struct page`); the index is its pfn. How many share a line depends on the policy's
    /// descriptor size, which the machine is told.
    Frame,
    /// Free lists; the index is (zone × 64 + arena) × 64 + line within the arena. The first 44 lines of an arena are its
    /// list heads and block counts, order × 4 + line; those of arena 0 from 48 on are counts of the whole zone. Where a
    /// zone has one set of lists, as in Linux, that is arena 0.
    FreeArea,
    /// A zone's read-mostly head (watermarks, protection); the index is the zone.
    Zone,
    /// A zone's global counters; the index is the zone.
    ZoneStat,
    /// A CPU's pageset of a zone (count, high, batch); the index is zone × 1024 + CPU.
    Pageset,
    /// A list head of a pageset; the index is (zone × 1024 + CPU) × 8 + line within it.
    PagesetList,
    /// Pageblock types; the index is the pageblock / 128.
    Pageblock,
    /// What is known of pageblocks (`+compact-summary`); the index is the pageblock / 16.
    PageblockSummary,
    /// A CPU's event counters; the index is the CPU.
    Events,
    /// A CPU's part of a slab cache; the index is cache × 1024 + CPU.
    CpuSlab,
    /// A node's part of a slab cache (its list of partial slabs); the index is cache × nodes + node.
    SlabNode,
    /// A barn, or a depot where the policy has these; the index as for [`Self::SlabNode`].
    Barn,
}

/// How a line is touched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// The line may stay shared.
    Read,
    /// The line must come to this CPU alone, and what it holds is needed now or soon.
    Write,
    /// The line must come to this CPU alone, but the CPU need not wait for it: it only stores there, and no more for
    /// now. A list's neighbour that is linked anew is such a line.
    Store,
    /// As [`Self::Write`], by one instruction that nobody can come between.
    Atomic,
}

impl Access {
    /// Whether the line must come to this CPU alone.
    pub const fn is_exclusive(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// Locks are counted by class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockClass {
    /// `zone->lock`: free areas and pageblock types. The index is zone + 1024 × arena; Linux has only arena 0.
    Zone,
    /// `pcp->lock`: a CPU's page lists of a zone; only ever tried on the fast paths.
    Pcp,
    /// `list_lock`: the partial slabs of a cache on a node. The index is that of [`LineKind::SlabNode`].
    List,
    /// A barn's lock, or a depot's. The index is that of [`LineKind::Barn`].
    Barn,
    /// A CPU's part of a slab cache, which only flushes take from elsewhere; Linux has interrupts off or a per-CPU
    /// compare and exchange in its place. The index is that of [`LineKind::CpuSlab`].
    CpuSlab,
    /// `lru_lock`: the lists that reclaim looks through, of a node (since 4.8) or a zone. The index is the list set's.
    Lru,
    /// What a CPU keeps back from the LRU lists, which only a drain of all CPUs takes from elsewhere; Linux has preemption
    /// off in its place. The index is the CPU.
    LruBatch,
    /// `mmap_lock`: the regions of an address space, whose number is the index.
    Mmap,
    /// Page table locks. The index is the address space's.
    PageTable,
    /// What leads from a page to the entries that map it: `anon_vma` and `i_mmap` locks.
    Rmap,
    /// `i_pages`: the pages of a file, whose number is the index.
    PageCache,
    /// A lock of a workload's own.
    Other,
}

impl LockClass {
    /// All classes.
    pub const ALL: [Self; 12] = [
        Self::Zone,
        Self::Pcp,
        Self::List,
        Self::Barn,
        Self::CpuSlab,
        Self::Lru,
        Self::LruBatch,
        Self::Mmap,
        Self::PageTable,
        Self::Rmap,
        Self::PageCache,
        Self::Other,
    ];

    /// The name in measurements.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::Pcp => "pcp",
            Self::List => "list",
            Self::Barn => "barn",
            Self::CpuSlab => "cpu_slab",
            Self::Lru => "lru",
            Self::LruBatch => "lru_batch",
            Self::Mmap => "mmap",
            Self::PageTable => "page_table",
            Self::Rmap => "rmap",
            Self::PageCache => "page_cache",
            Self::Other => "other",
        }
    }
}

/// A stretch of kernel code of about the same length each time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Chore {
    /// A system call's entry and exit.
    Syscall,
    /// A page fault's way into the kernel and back, which a call that has pages brought in for its caller does not go.
    Exception,
    /// A page fault on private memory, its exception, allocation and clearing apart.
    Fault,
    /// A page fault that adds a page to the file behind it, or takes one from there; likewise.
    SharedFault,
    /// A page is taken out of an address space, its freeing apart.
    Unmap,
    /// A page comes out of a CPU's batch to an LRU list.
    LruAdd,
    /// Regions of an address space are changed: found, cut, joined, put in or taken out (`mmap`, `munmap`, `mprotect` …).
    Regions,
    /// A read fault on a file maps one page more, that lies beside the one that it is for.
    MapAround,
    /// An entry of a page table moves to another place.
    MoveEntry,
    /// An entry's permissions change.
    ProtectEntry,
    /// A huge page's entry becomes 512.
    SplitEntry,
    /// A process is forked: all but its regions, page tables and entries.
    Fork,
    /// A region is copied to a forked process.
    CopyRegion,
    /// An entry is, and its page counts one mapping more.
    CopyEntry,
    /// A page becomes a page table, its allocation and zeros apart.
    NewTable,
    /// An address space ends: all but its entries.
    Exit,
    /// A page is taken out of its file, its freeing apart.
    Truncate,
    /// From a page to one entry that maps it: the accessed bit is tested and cleared.
    RmapStep,
    /// Reclaim looks at a page that it has isolated.
    ReclaimPage,
    /// Compaction's migrate scanner looks at a page, its descriptor's cache line apart.
    MigrateScan,
    /// Compaction's free scanner does.
    FreeScan,
    /// NUMA balancing makes a page fault at its next access, as one of many in a row.
    HintMark,
    /// Such a fault, whatever it decides and the page's move apart.
    HintFault,
    /// A page is moved to another frame: all but its entries in page tables ([`Self::RmapStep`]) and its contents.
    Migrate,
}

/// What is done with a page of swap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SwapIo {
    /// It goes there.
    Write,
    /// It comes back, and somebody waits for it.
    Read,
    /// It comes with another.
    ReadAhead,
    /// zswap compresses it.
    Compress,
    /// zswap gives it back as it was.
    Decompress,
}

/// A background worker that the memory manager wakes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Daemon {
    /// A node's `kswapd`.
    Kswapd(Node),
    /// A node's `kcompactd`.
    Kcompactd(Node),
    /// Who puts huge pages in the place of small ones.
    Khugepaged,
    /// Who writes dirty pages to their files.
    Flusher,
    /// Who writes what is in zswap to the device behind it.
    ZswapShrinker,
    /// Who kills the largest program, for no page of it is as old as `lru_gen.min_ttl_ms` asks.
    OomKiller,
    /// Who tells others of how hard reclaim is (`vmpressure`).
    PressureWorker,
    /// Whoever ends grace periods ([`crate::slab::SlabDoor::end_grace_period`]): one is wanted soon.
    Rcu,
}

/// A stretch of code whose duration is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Span {
    /// `rmqueue_bulk`: a pageset is filled from the buddy lists, the wait for the zone lock included.
    Refill,
    /// `free_pcppages_bulk`: a pageset gives back to the buddy lists, the wait included.
    Drain,
    /// A whole page allocation.
    PageAlloc,
    /// A whole page free (one call, however many pages it frees).
    PageFree,
    /// A page fault, as a workload defines it.
    Fault,
    /// An object, or a batch of them, is allocated.
    SlabAlloc,
    /// An object, or a batch of them, is freed.
    SlabFree,
    /// A request reclaims pages by itself (`try_to_free_pages`).
    DirectReclaim,
    /// A zone is compacted (`compact_zone`); its work counts pages moved.
    Compact,
    /// Isolated pages are moved (`migrate_pages`); likewise.
    Migrate,
}

impl Span {
    /// All spans.
    pub const ALL: [Self; 10] = [
        Self::Refill,
        Self::Drain,
        Self::PageAlloc,
        Self::PageFree,
        Self::Fault,
        Self::SlabAlloc,
        Self::SlabFree,
        Self::DirectReclaim,
        Self::Compact,
        Self::Migrate,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The name in measurements.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refill => "refill",
            Self::Drain => "drain",
            Self::PageAlloc => "page_alloc",
            Self::PageFree => "page_free",
            Self::Fault => "fault",
            Self::SlabAlloc => "slab_alloc",
            Self::SlabFree => "slab_free",
            Self::DirectReclaim => "direct_reclaim",
            Self::Compact => "compact",
            Self::Migrate => "migrate",
        }
    }
}

/// What a span did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// The zone that it happened in (the preferred one, where none was found).
    pub zone: ZoneId,
    /// Order of the request; 0 for a drain, which frees blocks of any.
    pub order: Order,
    /// Type of the request; for a drain, of no meaning.
    pub migratetype: MigrateType,
    /// Blocks moved by a refill, base pages freed by a drain, objects of a slab, 1 or 0 for an allocation of pages that
    /// succeeded or failed.
    pub count: u32,
}
