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
    /// Our estimate.
    Estimated,
}

impl FigureKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Measured, Self::Published, Self::Fitted, Self::Estimated];

    /// The name in a profile.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Fitted => "fitted",
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

const fn spec(key: &'static str, min: f64, max: f64, meaning: &'static str) -> FigureSpec {
    FigureSpec { key, min, max, meaning }
}

/// Every figure that a profile has.
pub const FIGURES: &[FigureSpec] = &[
    spec(
        "cpu.speed",
        0.05,
        20.0,
        "speed of one thread relative to the `kvm-genoa-2c` profile; a recording's own CPU time is divided by it",
    ),
    spec(
        "cpu.smt_ratio",
        1.0,
        4.0,
        "how much longer instructions take while another thread of the core works; 1: threads do not slow each other",
    ),
    spec("cpu.touch_ns", 0.0, 100.0, "instructions around each touched line, the line's latency apart"),
    spec(
        "cpu.window_ns",
        0.0,
        10_000.0,
        "how far a CPU looks ahead, in instructions' time: misses that begin within it are waited for together",
    ),
    spec(
        "cpu.store_ratio",
        0.0,
        1.0,
        "part of a miss's latency that is left where only a store waits for the line",
    ),
    spec(
        "cpu.lock_ns",
        0.1,
        1000.0,
        "taking and giving back a free lock whose line is in the first-level cache",
    ),
    spec("cpu.irq_ns", 0.0, 1000.0, "switching interrupts off, and the same for on again"),
    spec("path.page_alloc_ns", 0.0, 10_000.0, "instructions of one page allocation outside of refills"),
    spec("path.page_free_ns", 0.0, 10_000.0, "instructions of one call that frees pages, drains apart"),
    spec(
        "path.slab_alloc_ns",
        0.0,
        10_000.0,
        "instructions of one object's allocation, or of one call for many, where a CPU has free ones at hand",
    ),
    spec("path.slab_free_ns", 0.0, 10_000.0, "the same of freeing"),
    spec("path.refill_ns", 0.0, 100_000.0, "instructions of one refill, pages apart"),
    spec("path.drain_ns", 0.0, 100_000.0, "instructions of one drain, pages apart"),
    spec(
        "path.fault_ns",
        0.0,
        100_000.0,
        "a page fault on private memory from exception to return, its allocation and clearing apart",
    ),
    spec(
        "path.shared_fault_ns",
        0.0,
        100_000.0,
        "the same on shared anonymous memory, adding it to its file too",
    ),
    spec("path.unmap_ns", 0.0, 100_000.0, "taking one page out of an address space, its freeing apart"),
    spec("path.truncate_ns", 0.0, 100_000.0, "taking one page out of the file behind it, its freeing apart"),
    spec(
        "path.rmap_step_ns",
        0.0,
        100_000.0,
        "from a page to one page table entry that maps it, whose accessed bit is tested and cleared",
    ),
    spec("path.reclaim_page_ns", 0.0, 100_000.0, "reclaim's look at a page that it has isolated"),
    spec(
        "path.migrate_scan_ns",
        0.0,
        100_000.0,
        "compaction's migrate scanner looks at a page, its descriptor's cache line apart",
    ),
    spec("path.free_scan_ns", 0.0, 100_000.0, "compaction's free scanner looks at a page, likewise"),
    spec(
        "path.migrate_ns",
        0.0,
        100_000.0,
        "moving a page to another frame, its page table entries and its contents apart",
    ),
    spec(
        "path.access_scan_ns",
        0.0,
        100_000.0,
        "promotion's scan tests and clears the accessed mark of a page, as one of many in a row",
    ),
    spec(
        "path.access_probe_ns",
        0.0,
        100_000.0,
        "the same for a page by itself: the walk down the page tables comes on top",
    ),
    spec(
        "path.hint_mark_ns",
        0.0,
        100_000.0,
        "NUMA balancing makes a page fault at its next access, as one of many in a row",
    ),
    spec(
        "path.hint_fault_ns",
        0.0,
        1_000_000.0,
        "such a fault, whatever it decides and the page's move apart",
    ),
    spec(
        "path.promote_ns",
        0.0,
        1_000_000.0,
        "what moving a page of a program whose threads use it takes on top of path.migrate_ns: they wait, their accesses are in the way",
    ),
    spec(
        "path.tlb_flush_ns",
        0.0,
        1_000_000.0,
        "having the CPUs that run a program's threads forget an entry, or a batch of them",
    ),
    spec("path.syscall_ns", 0.0, 100_000.0, "entering the kernel by a system call and leaving it"),
    spec("path.interrupt_ns", 0.0, 100_000.0, "taking an interrupt and returning from it"),
    spec("path.context_switch_ns", 0.0, 100_000.0, "going from one task to another on a CPU"),
    spec("path.wakeup_ns", 0.0, 1_000_000.0, "from a wake-up until the task runs on a CPU that was idle"),
    spec("sched.slice_ns", 10_000.0, 1e9, "how long a task may keep a CPU that others wait for"),
    spec("cache.l1_bytes", 1024.0, 1e9, "first-level data cache of a core"),
    spec("cache.l2_bytes", 1024.0, 1e9, "second-level cache of a core"),
    spec("cache.l3_bytes", 1024.0, 1e11, "last-level cache, each"),
    spec("cache.l1_ns", 0.1, 100.0, "latency of the first level"),
    spec("cache.l2_ns", 0.1, 1000.0, "latency of the second level"),
    spec("cache.l3_ns", 0.1, 10_000.0, "latency of the last level"),
    spec("transfer.smt_ns", 0.1, 10_000.0, "a line's way from a thread of the same core"),
    spec("transfer.same_llc_ns", 0.1, 10_000.0, "… from a core under the same last-level cache"),
    spec("transfer.same_socket_ns", 0.1, 10_000.0, "… from elsewhere on the socket"),
    spec("transfer.cross_socket_ns", 0.1, 100_000.0, "… from another socket"),
    spec("handover.smt_ns", 0.1, 10_000.0, "a contended lock's way to a waiter on the same core"),
    spec("handover.same_llc_ns", 0.1, 10_000.0, "… to one under the same last-level cache"),
    spec("handover.same_socket_ns", 0.1, 10_000.0, "… to one elsewhere on the socket"),
    spec("handover.cross_socket_ns", 0.1, 100_000.0, "… to one on another socket"),
    spec("dram.local_ns", 1.0, 100_000.0, "latency of memory of the CPU's own node, idle"),
    spec("dram.remote_ns", 1.0, 100_000.0, "latency of memory of another node, idle"),
    spec("dram.node_gbps", 0.1, 10_000.0, "peak bandwidth of a node's memory, GB/s"),
    spec(
        "dram.link_gbps",
        0.1,
        10_000.0,
        "what a node's memory gives CPUs of other sockets at most, and takes from them, GB/s in each direction",
    ),
    spec("dram.loaded_half_ratio", 1.0, 100.0, "latency at half of the peak bandwidth over idle latency"),
    spec("dram.loaded_full_ratio", 1.0, 100.0, "latency at the peak bandwidth over idle latency"),
    spec("memory.clear_gbps", 0.01, 10_000.0, "one CPU clearing pages, GB/s"),
    spec("memory.hot_gbps", 0.01, 10_000.0, "one CPU writing what is in its second-level cache, GB/s"),
    spec("memory.copy_gbps", 0.01, 10_000.0, "one CPU copying pages, GB/s copied"),
    spec("memory.read_gbps", 0.01, 10_000.0, "one CPU reading memory in sequence, GB/s"),
    spec("memory.write_gbps", 0.01, 10_000.0, "one CPU writing memory in sequence, GB/s"),
    spec(
        "memory.random_overlap_ratio",
        0.01,
        1.0,
        "part of a read's latency that is left among others in random order, none of which depends on another",
    ),
    spec(
        "memory.walk_ns",
        0.0,
        10_000.0,
        "what bringing a page table's line from memory adds to an access in random order; entries share the last-level cache with the data",
    ),
    spec(
        "prefetch.overlap_ratio",
        0.01,
        1.0,
        "part of a miss's latency that is left when the line was next in sequence",
    ),
    spec("prefetch.train_lines", 0.0, 255.0, "misses in sequence that cost their whole latency before that"),
];

/// The entry of `key` in [`FIGURES`].
pub fn figure_spec(key: &str) -> Option<&'static FigureSpec> {
    FIGURES.iter().find(|spec| spec.key == key)
}
