//! The figures that a profile must give: one table, from which the reader, the checks, the writer and the listing all
//! follow.

use core::fmt;

/// A number with its origin.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The number, in the unit that its key ends with.
    pub value: f64,
    /// How far it can be trusted.
    pub kind: FigureKind,
    /// Where it comes from.
    pub source: String,
    /// How far repetitions lay apart, where it was measured more than once.
    pub spread: Option<FigureSpread>,
}

impl Figure {
    /// A figure that was not measured here, so that it has no spread.
    pub fn new(value: f64, kind: FigureKind, source: impl Into<String>) -> Self {
        Self { value, kind, source: source.into(), spread: None }
    }
}

/// Where the repetitions of a measurement lay, in the figure's unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FigureSpread {
    /// The least.
    pub min: f64,
    /// A quarter of them are at or below this.
    pub p25: f64,
    /// A quarter of them are at or above this.
    pub p75: f64,
    /// The greatest.
    pub max: f64,
    /// How many there were; at least 1.
    pub samples: u32,
}

/// How a figure was come by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// Measured by us, on that machine.
    Measured,
    /// Published for that machine, or for one of the same design.
    Published,
    /// Chosen so that some published result comes out; the source says which.
    Fitted,
    /// Instructions that were counted in a real kernel, made a time by a core's clock and pace.
    Counted,
    /// Our estimate.
    Estimated,
}

impl FigureKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Measured, Self::Published, Self::Fitted, Self::Counted, Self::Estimated];

    /// The name in a profile.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Fitted => "fitted",
            Self::Counted => "counted",
            Self::Estimated => "estimated",
        }
    }
}

impl fmt::Display for FigureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a figure apart from its value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FigureSpec {
    /// `section.name_unit`.
    pub key: &'static str,
    /// The least value that is not absurd.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// What it is.
    pub meaning: &'static str,
}

const fn figure(key: &'static str, min: f64, max: f64) -> FigureSpec {
    FigureSpec { key, min, max, meaning: "" }
}

/// A figure that others are derived from.
pub(super) const fn base(key: &'static str, min: f64, max: f64) -> FigureSpec {
    figure(key, min, max)
}

impl FigureSpec {
    pub(super) const fn is(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }
}

/// Every figure that a profile has.
pub const FIGURES: &[FigureSpec] = &[
    figure("cpu.speed", 0.05, 20.0)
        .is("speed of one thread relative to the `kvm-genoa-2c` profile; a recording's own CPU time is \
            divided by it"),
    figure("cpu.smt_ratio", 1.0, 4.0)
        .is("how much longer instructions take while another thread of the core works; 1: threads do not \
            slow each other"),
    figure("cpu.touch_ns", 0.0, 100.0).is("instructions around each touched line, the line's latency apart"),
    figure("cpu.window_ns", 0.0, 10_000.0)
        .is("how far a CPU looks ahead, in instructions' time: misses that begin within it are waited for \
            together"),
    figure("cpu.store_ratio", 0.0, 1.0)
        .is("part of a miss's latency that is left where only a store waits for the line"),
    figure("cpu.lock_ns", 0.1, 1000.0)
        .is("taking and giving back a free lock whose line is in the first-level cache"),
    figure("cpu.irq_ns", 0.0, 1000.0).is("switching interrupts off, and the same for on again"),
    figure("path.page_alloc_ns", 0.0, 10_000.0).is("instructions of one page allocation outside of refills"),
    figure("path.page_free_ns", 0.0, 10_000.0).is("instructions of one call that frees pages, drains apart"),
    figure("path.slab_alloc_ns", 0.0, 10_000.0).is(
        "instructions of one object's allocation, or of one call for many, where a CPU has free ones at \
            hand",
    ),
    figure("path.slab_free_ns", 0.0, 10_000.0).is("the same of freeing"),
    figure("path.refill_ns", 0.0, 100_000.0).is("instructions of one refill, pages apart"),
    figure("path.drain_ns", 0.0, 100_000.0).is("instructions of one drain, pages apart"),
    figure("path.fault_ns", 0.0, 100_000.0)
        .is("a page fault on private memory from exception to return, its allocation and clearing apart"),
    figure("path.exception_ns", 0.0, 100_000.0).is(
        "the exception alone, a part of each kind of fault that a call which brings pages in for its caller does not have",
    ),
    figure("path.shared_fault_ns", 0.0, 100_000.0)
        .is("the same on shared anonymous memory, adding it to its file too"),
    figure("path.unmap_ns", 0.0, 100_000.0).is("taking one page out of an address space, its freeing apart"),
    figure("path.lru_add_ns", 0.0, 10_000.0)
        .is("a page's way from a CPU's batch to an LRU list; a part of path.fault_ns, where the mean fault has it"),
    figure("path.regions_ns", 0.0, 100_000.0)
        .is("changing regions of an address space in one call (mmap, munmap, mprotect …), entry and exit apart"),
    figure("path.map_around_ns", 0.0, 100_000.0)
        .is("a page more that a read fault on a file maps, beside the one that it is for"),
    figure("path.move_entry_ns", 0.0, 100_000.0)
        .is("moving an entry of a page table (mremap); a whole table moves as one"),
    figure("path.protect_entry_ns", 0.0, 100_000.0).is("changing an entry's permissions (mprotect)"),
    figure("path.split_entry_ns", 0.0, 1_000_000.0)
        .is("making 512 entries of a huge page's one, the page left whole"),
    figure("path.fork_ns", 0.0, 10_000_000.0)
        .is("forking a process, its regions, page tables and entries apart"),
    figure("path.copy_region_ns", 0.0, 100_000.0).is("copying a region to a forked process"),
    figure("path.copy_entry_ns", 0.0, 100_000.0)
        .is("copying an entry, whose page is write-protected and counts one mapping more; its descriptor's line apart"),
    figure("path.new_table_ns", 0.0, 100_000.0)
        .is("making a page a page table: locks, counts, its place above; allocating and clearing it apart"),
    figure("path.exit_ns", 0.0, 10_000_000.0).is("ending an address space, its entries and page tables apart"),
    figure("path.shootdown_ns", 0.0, 1_000_000.0)
        .is("interrupting the CPUs that run in an address space so that they forget entries, until all have answered"),
    figure("path.truncate_ns", 0.0, 100_000.0)
        .is("taking one page out of the file behind it, its freeing apart"),
    figure("path.rmap_step_ns", 0.0, 100_000.0)
        .is("from a page to one page table entry that maps it, whose accessed bit is tested and cleared"),
    figure("path.reclaim_page_ns", 0.0, 100_000.0).is("reclaim's look at a page that it has isolated"),
    figure("path.migrate_scan_ns", 0.0, 100_000.0)
        .is("compaction's migrate scanner looks at a page, its descriptor's cache line apart"),
    figure("path.free_scan_ns", 0.0, 100_000.0).is("compaction's free scanner looks at a page, likewise"),
    figure("path.migrate_ns", 0.0, 100_000.0)
        .is("moving a page to another frame, its page table entries and its contents apart"),
    figure("path.access_scan_ns", 0.0, 100_000.0)
        .is("promotion's scan tests and clears the accessed mark of a page, as one of many in a row"),
    figure("path.access_probe_ns", 0.0, 100_000.0)
        .is("the same for a page by itself: the walk down the page tables comes on top"),
    figure("path.hint_mark_ns", 0.0, 100_000.0)
        .is("NUMA balancing makes a page fault at its next access, as one of many in a row"),
    figure("path.hint_fault_ns", 0.0, 1_000_000.0)
        .is("such a fault, whatever it decides and the page's move apart"),
    figure("path.promote_ns", 0.0, 1_000_000.0)
        .is("what moving a page of a program whose threads use it takes on top of path.migrate_ns: they \
            wait, their accesses are in the way"),
    figure("path.tlb_flush_ns", 0.0, 1_000_000.0)
        .is("having the CPUs that run a program's threads forget an entry, or a batch of them"),
    figure("path.syscall_ns", 0.0, 100_000.0).is("entering the kernel by a system call and leaving it"),
    figure("path.interrupt_ns", 0.0, 100_000.0).is("taking an interrupt and returning from it"),
    figure("path.context_switch_ns", 0.0, 100_000.0).is("going from one task to another on a CPU"),
    figure("path.wakeup_ns", 0.0, 1_000_000.0)
        .is("from a wake-up until the task runs on a CPU that was idle"),
    figure("sched.slice_ns", 10_000.0, 1e9).is("how long a task may keep a CPU that others wait for"),
    figure("cache.l1_bytes", 1024.0, 1e9).is("first-level data cache of a core"),
    figure("cache.l2_bytes", 1024.0, 1e9).is("second-level cache of a core"),
    figure("cache.l3_bytes", 1024.0, 1e11).is("last-level cache, each"),
    figure("cache.l1_ns", 0.1, 100.0).is("latency of the first level"),
    figure("cache.l2_ns", 0.1, 1000.0).is("latency of the second level"),
    figure("cache.l3_ns", 0.1, 10_000.0).is("latency of the last level"),
    figure("tlb.entries", 1.0, 1e6)
        .is("translations that the second-level TLB of a core has room for, of pages of any size"),
    figure("tlb.huge_entries", 1.0, 1e6).is("those of them that may be of pages of 2 MiB"),
    figure("tlb.walk_ns", 0.0, 10_000.0).is(
        "a walk of the page tables with the upper levels in the walker's caches, the last entry's way apart",
    ),
    figure("tlb.nested_ratio", 1.0, 100.0).is(
        "how much longer a walk is because the host's tables are walked as well; 1 where there is no host",
    ),
    figure("transfer.smt_ns", 0.1, 10_000.0).is("a line's way from a thread of the same core"),
    figure("transfer.same_llc_ns", 0.1, 10_000.0).is("… from a core under the same last-level cache"),
    figure("transfer.same_socket_ns", 0.1, 10_000.0).is("… from elsewhere on the socket"),
    figure("transfer.cross_socket_ns", 0.1, 100_000.0).is("… from another socket"),
    figure("handover.smt_ns", 0.1, 10_000.0).is("a contended lock's way to a waiter on the same core"),
    figure("handover.same_llc_ns", 0.1, 10_000.0).is("… to one under the same last-level cache"),
    figure("handover.same_socket_ns", 0.1, 10_000.0).is("… to one elsewhere on the socket"),
    figure("handover.cross_socket_ns", 0.1, 100_000.0).is("… to one on another socket"),
    figure("dram.local_ns", 1.0, 100_000.0).is("latency of memory of the CPU's own node, idle"),
    figure("dram.remote_ns", 1.0, 100_000.0).is("latency of memory of another node, idle"),
    figure("dram.node_gbps", 0.1, 10_000.0).is("peak bandwidth of a node's memory, GB/s"),
    figure("dram.link_gbps", 0.1, 10_000.0)
        .is("what a node's memory gives CPUs of other sockets at most, and takes from them, GB/s in each \
            direction"),
    figure("dram.loaded_half_ratio", 1.0, 100.0)
        .is("latency at half of the peak bandwidth over idle latency"),
    figure("dram.loaded_full_ratio", 1.0, 100.0).is("latency at the peak bandwidth over idle latency"),
    figure("memory.clear_gbps", 0.01, 10_000.0).is("one CPU clearing pages, GB/s"),
    figure("memory.hot_gbps", 0.01, 10_000.0).is("one CPU writing what is in its second-level cache, GB/s"),
    figure("memory.copy_gbps", 0.01, 10_000.0).is("one CPU copying pages, GB/s copied"),
    figure("memory.read_gbps", 0.01, 10_000.0).is("one CPU reading memory in sequence, GB/s"),
    figure("memory.write_gbps", 0.01, 10_000.0).is("one CPU writing memory in sequence, GB/s"),
    figure("memory.random_overlap_ratio", 0.01, 1.0)
        .is("part of a read's latency that is left among others in random order, none of which depends on \
            another"),
    figure("memory.walk_ns", 0.0, 10_000.0).is(
        "what bringing a page table's line from memory adds to an access in random order; entries share \
            the last-level cache with the data",
    ),
    figure("zram.lzo_rle_write_ns", 0.0, 1e6)
        .is("writing a page to zram with lzo-rle, its compression and all else that a write takes"),
    figure("zram.lzo_rle_read_ns", 0.0, 1e6).is("reading one"),
    figure("zram.lzo_rle_ratio", 1.0, 100.0).is("how much smaller pages become where nothing is said"),
    figure("zram.lz4_write_ns", 0.0, 1e6).is("the same with lz4"),
    figure("zram.lz4_read_ns", 0.0, 1e6).is("reading one"),
    figure("zram.lz4_ratio", 1.0, 100.0).is("how much smaller pages become where nothing is said"),
    figure("zram.zstd_write_ns", 0.0, 1e6).is("the same with zstd"),
    figure("zram.zstd_read_ns", 0.0, 1e6).is("reading one"),
    figure("zram.zstd_ratio", 1.0, 100.0).is("how much smaller pages become where nothing is said"),
    figure("swap.latency_ns", 0.0, 1e9).is("reading a page of swap from the disk, the page's transfer apart"),
    figure("swap.disk_gbps", 0.001, 1000.0).is("what that disk reads and writes, GB/s"),
    figure("prefetch.overlap_ratio", 0.01, 1.0)
        .is("part of a miss's latency that is left when the line was next in sequence"),
    figure("prefetch.train_lines", 0.0, 255.0)
        .is("misses in sequence that cost their whole latency before that"),
];

/// The entry of `key` in [`FIGURES`].
pub fn figure_spec(key: &str) -> Option<&'static FigureSpec> {
    FIGURES.iter().find(|spec| spec.key == key)
}
