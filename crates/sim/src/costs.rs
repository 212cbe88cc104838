//! A profile's figures as the engine uses them: in ticks, by level and closeness, converted once.

use mm::{Chore, Order, Span};

use crate::measure::Level;
use crate::nodes::NodeCosts;
use crate::profile::{Closeness, Profile};
use crate::time::{Ticks, from_f64};

/// Fixed-point one, for ratios.
pub(crate) const ONE: u64 = 1 << 10;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;

/// A stretch of kernel code of fixed cost, that a workload goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// A page fault's way into the kernel and back.
    Exception,
    /// A page fault on private memory, its exception, allocation and clearing apart.
    Fault,
    /// A page fault on shared anonymous memory that adds the page to the file behind it; likewise.
    SharedFault,
    /// A page is taken out of an address space, its freeing apart.
    Unmap,
    /// A page comes out of a CPU's batch to an LRU list.
    LruAdd,
    /// Regions of an address space are changed.
    Regions,
    /// A read fault on a file maps one page more.
    MapAround,
    /// An entry of a page table moves to another place.
    MoveEntry,
    /// An entry's permissions change.
    ProtectEntry,
    /// A huge page's entry becomes 512.
    SplitEntry,
    /// A process is forked, its regions, page tables and entries apart.
    Fork,
    /// A region is copied to a forked process.
    CopyRegion,
    /// An entry is.
    CopyEntry,
    /// A page becomes a page table, its allocation and zeros apart.
    NewTable,
    /// An address space ends, its entries apart.
    Exit,
    /// CPUs that run in an address space are interrupted to forget entries of it, and waited for.
    Shootdown,
    /// A page is taken out of the file behind it, its freeing apart.
    Truncate,
    /// A program writes a whole page that is in its caches.
    RewritePage,
    /// A system call's entry and exit.
    Syscall,
    /// An interrupt's entry and exit.
    Interrupt,
    /// From a page to one page table entry that maps it, whose accessed bit is tested and cleared.
    RmapStep,
    /// Reclaim looks at a page that it has isolated.
    ReclaimPage,
    /// Compaction's migrate scanner looks at a page.
    MigrateScan,
    /// Compaction's free scanner looks at a page.
    FreeScan,
    /// A page is moved to another frame, its entries and contents apart.
    Migrate,
    /// Promotion's scan tests a page's accessed mark and clears it, as one of many in a row.
    AccessScan,
    /// The same for a page by itself.
    AccessProbe,
    /// NUMA balancing marks a page, as one of many in a row.
    HintMark,
    /// A fault on such a page, its move apart.
    HintFault,
    /// What moving a page that threads are using takes on top of [`Self::Migrate`].
    Promote,
    /// CPUs that run a program's threads are made to forget entries.
    TlbFlush,
}

impl From<Chore> for Path {
    fn from(chore: Chore) -> Self {
        match chore {
            Chore::Syscall => Self::Syscall,
            Chore::Exception => Self::Exception,
            Chore::Fault => Self::Fault,
            Chore::SharedFault => Self::SharedFault,
            Chore::Unmap => Self::Unmap,
            Chore::LruAdd => Self::LruAdd,
            Chore::Regions => Self::Regions,
            Chore::MapAround => Self::MapAround,
            Chore::MoveEntry => Self::MoveEntry,
            Chore::ProtectEntry => Self::ProtectEntry,
            Chore::SplitEntry => Self::SplitEntry,
            Chore::Fork => Self::Fork,
            Chore::CopyRegion => Self::CopyRegion,
            Chore::CopyEntry => Self::CopyEntry,
            Chore::NewTable => Self::NewTable,
            Chore::Exit => Self::Exit,
            Chore::Truncate => Self::Truncate,
            Chore::RmapStep => Self::RmapStep,
            Chore::ReclaimPage => Self::ReclaimPage,
            Chore::MigrateScan => Self::MigrateScan,
            Chore::FreeScan => Self::FreeScan,
            Chore::HintMark => Self::HintMark,
            Chore::HintFault => Self::HintFault,
            Chore::Migrate => Self::Migrate,
        }
    }
}

impl Path {
    /// All paths.
    const ALL: [Self; 31] = [
        Self::Exception,
        Self::Fault,
        Self::SharedFault,
        Self::Unmap,
        Self::LruAdd,
        Self::Regions,
        Self::MapAround,
        Self::MoveEntry,
        Self::ProtectEntry,
        Self::SplitEntry,
        Self::Fork,
        Self::CopyRegion,
        Self::CopyEntry,
        Self::NewTable,
        Self::Exit,
        Self::Shootdown,
        Self::Truncate,
        Self::RewritePage,
        Self::Syscall,
        Self::Interrupt,
        Self::RmapStep,
        Self::ReclaimPage,
        Self::MigrateScan,
        Self::FreeScan,
        Self::Migrate,
        Self::AccessScan,
        Self::AccessProbe,
        Self::HintMark,
        Self::HintFault,
        Self::Promote,
        Self::TlbFlush,
    ];
    /// How many there are.
    const COUNT: usize = Self::ALL.len();

    fn cost(self, profile: &Profile) -> Ticks {
        from_f64(match self {
            Self::Exception => profile.value("path.exception_ns"),
            Self::Fault => but_for_lists(profile, "path.fault_ns"),
            Self::SharedFault => but_for_lists(profile, "path.shared_fault_ns"),
            Self::LruAdd => profile.value("path.lru_add_ns"),
            Self::Unmap => profile.value("path.unmap_ns"),
            Self::Regions => profile.value("path.regions_ns"),
            Self::MapAround => profile.value("path.map_around_ns"),
            Self::MoveEntry => profile.value("path.move_entry_ns"),
            Self::ProtectEntry => profile.value("path.protect_entry_ns"),
            Self::SplitEntry => profile.value("path.split_entry_ns"),
            Self::Fork => profile.value("path.fork_ns"),
            Self::CopyRegion => profile.value("path.copy_region_ns"),
            Self::CopyEntry => profile.value("path.copy_entry_ns"),
            Self::NewTable => profile.value("path.new_table_ns"),
            Self::Exit => profile.value("path.exit_ns"),
            Self::Shootdown => profile.value("path.shootdown_ns"),
            Self::Truncate => profile.value("path.truncate_ns"),
            Self::RewritePage => mm::ids::PAGE_SIZE as f64 / profile.value("memory.hot_gbps"),
            Self::Syscall => profile.value("path.syscall_ns"),
            Self::Interrupt => profile.value("path.interrupt_ns"),
            Self::RmapStep => profile.value("path.rmap_step_ns"),
            Self::ReclaimPage => profile.value("path.reclaim_page_ns"),
            Self::MigrateScan => profile.value("path.migrate_scan_ns"),
            Self::FreeScan => profile.value("path.free_scan_ns"),
            Self::Migrate => profile.value("path.migrate_ns"),
            Self::AccessScan => profile.value("path.access_scan_ns"),
            Self::AccessProbe => profile.value("path.access_probe_ns"),
            Self::HintMark => profile.value("path.hint_mark_ns"),
            Self::HintFault => served(profile, "path.hint_fault_ns"),
            Self::Promote => profile.value("path.promote_ns"),
            Self::TlbFlush => profile.value("path.tlb_flush_ns"),
        })
    }
}

/// A fault less its exception, which is charged by itself.
fn served(profile: &Profile, fault: &str) -> f64 {
    (profile.value(fault) - profile.value("path.exception_ns")).max(0.0)
}

/// The same of one that has not to put a batch of pages on their list: its figure is a mean over those that have.
fn but_for_lists(profile: &Profile, fault: &str) -> f64 {
    (served(profile, fault) - profile.value("path.lru_add_ns")).max(0.0)
}

/// Ticks and sizes of one machine.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    /// A touch that finds its line at a level, by [`Level`]; the instructions around it included.
    pub(crate) levels: [Ticks; Level::COUNT],
    /// The share of [`Self::levels`] that is instructions.
    pub(crate) touch: Ticks,
    /// By [`Closeness`].
    pub(crate) transfer: [Ticks; 5],
    /// By [`Closeness`].
    pub(crate) handover: [Ticks; 5],
    pub(crate) lock: Ticks,
    pub(crate) irq: Ticks,
    /// On entering a span, by [`Span`].
    pub(crate) spans: [Ticks; Span::COUNT],
    pub(crate) paths: [Ticks; Path::COUNT],
    pub(crate) context_switch: Ticks,
    /// A task on a CPU that others wait for has to let one of them run after this.
    pub(crate) slice: Ticks,
    pub(crate) wakeup: Ticks,
    /// What is left of a sequential miss, in units of 1/[`ONE`].
    pub(crate) overlap: u64,
    /// What is left of a miss among others that do not depend on each other, in units of 1/[`ONE`].
    pub(crate) random_overlap: u64,
    /// A page table's line that comes from memory, on top of an access in random order.
    pub(crate) walk: Ticks,
    /// How much longer instructions take beside a working thread of the same core, in units of 1/[`ONE`].
    pub(crate) smt: u64,
    /// How far a CPU looks ahead.
    pub(crate) window: Ticks,
    /// What is left of a miss that only a store waits for, in units of 1/[`ONE`].
    pub(crate) store: u64,
    /// Misses in sequence before the prefetcher is ahead.
    pub(crate) train: u8,
    /// Latency over idle latency at half of the peak bandwidth and at the peak, in units of 1/[`ONE`].
    pub(crate) loaded: [u64; 2],
    /// A page, at one CPU's speed, by [`Traffic`].
    pub(crate) page: [Ticks; 4],
    /// Memory by node.
    pub(crate) nodes: NodeCosts,
    pub(crate) l1_lines: u64,
    pub(crate) l2_lines: u64,
    pub(crate) l3_lines: u64,
}

/// What a CPU does with whole pages of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// Fills them with zeros.
    Clear,
    /// Copies them; the source is read, the target written.
    Copy,
    /// Reads them from end to end.
    Read,
    /// Writes them from end to end.
    Write,
}

impl Traffic {
    /// Bytes that go over the memory bus for each byte worked on.
    pub(crate) const fn bus_share(self) -> u64 {
        match self {
            Self::Clear | Self::Read => 1,
            Self::Copy | Self::Write => 2,
        }
    }
}

impl Costs {
    pub(crate) fn new(profile: &Profile) -> Self {
        let ticks = |key: &str| from_f64(profile.value(key));
        let touch = ticks("cpu.touch_ns");
        let by_closeness = |section: &str| {
            let figure = |name: &str| ticks(&format!("{section}.{name}_ns"));
            [0, figure("smt"), figure("same_llc"), figure("same_socket"), figure("cross_socket")]
        };
        let transfer = by_closeness("transfer");
        let mut levels = [0; Level::COUNT];
        for level in Level::ALL {
            levels[level as usize] = touch + latency(profile, level);
        }
        let ratio = |key: &str| (profile.value(key) * ONE as f64).round() as u64;
        let page_at = |key: &str| from_f64(mm::ids::PAGE_SIZE as f64 / profile.value(key));
        Self {
            levels,
            touch,
            transfer,
            handover: by_closeness("handover"),
            lock: ticks("cpu.lock_ns"),
            irq: ticks("cpu.irq_ns"),
            spans: Span::ALL.map(|span| span_cost(profile, span)),
            paths: Path::ALL.map(|path| path.cost(profile)),
            context_switch: ticks("path.context_switch_ns"),
            wakeup: ticks("path.wakeup_ns"),
            slice: ticks("sched.slice_ns"),
            overlap: ratio("prefetch.overlap_ratio"),
            random_overlap: ratio("memory.random_overlap_ratio"),
            walk: ticks("memory.walk_ns"),
            smt: ratio("cpu.smt_ratio"),
            window: ticks("cpu.window_ns"),
            store: ratio("cpu.store_ratio"),
            train: profile.value("prefetch.train_lines") as u8,
            loaded: [ratio("dram.loaded_half_ratio"), ratio("dram.loaded_full_ratio")],
            page: [
                page_at("memory.clear_gbps"),
                page_at("memory.copy_gbps"),
                page_at("memory.read_gbps"),
                page_at("memory.write_gbps"),
            ],
            nodes: NodeCosts::new(profile),
            l1_lines: profile.value("cache.l1_bytes") as u64 / LINE_BYTES,
            l2_lines: profile.value("cache.l2_bytes") as u64 / LINE_BYTES,
            l3_lines: profile.value("cache.l3_bytes") as u64 / LINE_BYTES,
        }
    }

    /// What working through a block costs a CPU whose memory bus is free.
    pub(crate) fn block(&self, traffic: Traffic, order: Order) -> Ticks {
        self.page[traffic as usize] * u64::from(order.pages())
    }

    /// What is left of `cost` where a prefetcher was ahead.
    pub(crate) fn prefetched(&self, cost: Ticks) -> Ticks {
        self.touch + cost.saturating_sub(self.touch) * self.overlap / ONE
    }

    /// What is left of `cost` where only a store waits for the line.
    pub(crate) fn stored(&self, cost: Ticks) -> Ticks {
        self.touch + cost.saturating_sub(self.touch) * self.store / ONE
    }

    pub(crate) fn transfer(&self, closeness: Closeness) -> Ticks {
        self.transfer[closeness as usize]
    }

    pub(crate) fn handover(&self, closeness: Closeness) -> Ticks {
        self.handover[closeness as usize]
    }
}

fn latency(profile: &Profile, level: Level) -> Ticks {
    let key = match level {
        Level::L1 => "cache.l1_ns",
        Level::L2 => "cache.l2_ns",
        Level::L3 => "cache.l3_ns",
        Level::Smt => "transfer.smt_ns",
        Level::SameLlc => "transfer.same_llc_ns",
        Level::SameSocket => "transfer.same_socket_ns",
        Level::CrossSocket => "transfer.cross_socket_ns",
        Level::LocalDram => "dram.local_ns",
        Level::RemoteDram => "dram.remote_ns",
    };
    from_f64(profile.value(key))
}

/// A fault's own cost is charged by [`Path::Fault`], where one happens.
fn span_cost(profile: &Profile, span: Span) -> Ticks {
    let key = match span {
        Span::Refill => "path.refill_ns",
        Span::Drain => "path.drain_ns",
        Span::PageAlloc => "path.page_alloc_ns",
        Span::PageFree => "path.page_free_ns",
        Span::SlabAlloc => "path.slab_alloc_ns",
        Span::SlabFree => "path.slab_free_ns",
        // What it consists of is charged piece by piece.
        Span::Fault | Span::DirectReclaim | Span::Compact | Span::Migrate => return 0,
    };
    from_f64(profile.value(key))
}
