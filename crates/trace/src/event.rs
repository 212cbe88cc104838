//! What a recording consists of: events, each at a time on a CPU by a task.

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};
use serde::{Deserialize, Serialize};

use crate::gfp::Gfp;

/// Something that the kernel did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, by the recording host's CLOCK_MONOTONIC. Ascending within a recording but for rare, small inversions of
    /// events that interrupted each other.
    pub time: Nanos,
    /// Where.
    pub cpu: Cpu,
    /// On whose time: an index into the recording's task table. Interrupts run on the time of whom they interrupt.
    pub task: TaskId,
    /// What.
    pub kind: EventKind,
}

/// What happened. Addresses are the kernel's own, unless the recording is masked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A block of pages was handed out (`kmem:mm_page_alloc`). The type is the one asked for.
    PageAlloc {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// Type of the request.
        migratetype: MigrateType,
        /// Flags of the request.
        gfp: Gfp,
    },
    /// A request for pages failed (`kmem:mm_page_alloc` without a page).
    PageAllocFailed {
        /// Order of the request.
        order: Order,
        /// Type of the request.
        migratetype: MigrateType,
        /// Flags of the request.
        gfp: Gfp,
    },
    /// A block of pages was freed (`kmem:mm_page_free`). A block may come back in smaller pieces than it went out.
    PageFree {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
    },
    /// A page that was freed as one of a batch (`kmem:mm_page_free_batched`); repeats a [`EventKind::PageFree`].
    PageFreeBatched {
        /// First frame.
        pfn: Pfn,
    },
    /// A block was taken from the buddy lists (`kmem:mm_page_alloc_zone_locked`).
    ZoneLocked {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// Type of the request.
        migratetype: MigrateType,
        /// Whether it went to a per-CPU list.
        percpu_refill: bool,
    },
    /// A block went from a per-CPU list back to the buddy lists (`kmem:mm_page_pcpu_drain`).
    PcpuDrain {
        /// First frame.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// Type of the block's pageblock.
        migratetype: MigrateType,
    },
    /// The CPU went from the event's task to another (`sched:sched_switch`).
    Switch {
        /// Who runs now.
        next: TaskId,
        /// How the event's task, who ran until now, stays behind.
        state: SwitchState,
    },
    /// The event's task made another.
    Fork {
        /// The new task.
        child: TaskId,
    },
    /// The event's task ended.
    Exit,
    /// The event's task touched an address that was not mapped (`exceptions:page_fault_user`).
    Fault {
        /// The address touched.
        address: u64,
        /// The instruction that touched it.
        ip: u64,
        /// The CPU's error code: 1 protection, 2 write, 4 user, 16 instruction.
        error_code: u32,
    },
    /// An object was handed out (`kmem:kmem_cache_alloc`, `kmem:kmalloc`).
    SlabAlloc {
        /// The object's address.
        object: u64,
        /// Its cache, [`NameId::NONE`] for kmalloc.
        cache: NameId,
        /// Bytes asked for.
        requested: u32,
        /// Bytes that the object takes.
        allocated: u32,
        /// Flags of the request.
        gfp: Gfp,
        /// The node asked for; -1 for any.
        node: i16,
    },
    /// An object was given back (`kmem:kmem_cache_free`, `kmem:kfree`).
    SlabFree {
        /// The object's address.
        object: u64,
        /// Its cache, [`NameId::NONE`] for kfree.
        cache: NameId,
    },
    /// The event's task begins to wait for a lock (`lock:contention_begin`).
    ContentionBegin {
        /// The lock's address.
        lock: u64,
        /// Its kind: 1 spin, 2 read, 4 write, 8 real-time, 16 per CPU, 32 mutex.
        flags: u32,
    },
    /// The wait is over (`lock:contention_end`).
    ContentionEnd {
        /// The lock's address.
        lock: u64,
        /// 0 if the lock was got, otherwise a negative error.
        result: i32,
    },
    /// Whoever recorded wrote something down, such as a knob that was changed (`knob=value`).
    Mark {
        /// What was written.
        text: NameId,
    },
    /// So many events were lost on the CPU before this time.
    Lost {
        /// How many.
        count: u64,
    },
}

impl EventKind {
    /// How many kinds there are.
    pub const COUNT: usize = 16;
    /// The kinds' names, by [`EventKind::index`].
    pub const NAMES: [&'static str; Self::COUNT] = [
        "page_alloc",
        "page_alloc_failed",
        "page_free",
        "page_free_batched",
        "zone_locked",
        "pcpu_drain",
        "switch",
        "fork",
        "exit",
        "fault",
        "slab_alloc",
        "slab_free",
        "contention_begin",
        "contention_end",
        "mark",
        "lost",
    ];

    /// The kind's number: 0 to 15.
    #[inline]
    pub const fn index(&self) -> usize {
        match self {
            Self::PageAlloc { .. } => 0,
            Self::PageAllocFailed { .. } => 1,
            Self::PageFree { .. } => 2,
            Self::PageFreeBatched { .. } => 3,
            Self::ZoneLocked { .. } => 4,
            Self::PcpuDrain { .. } => 5,
            Self::Switch { .. } => 6,
            Self::Fork { .. } => 7,
            Self::Exit => 8,
            Self::Fault { .. } => 9,
            Self::SlabAlloc { .. } => 10,
            Self::SlabFree { .. } => 11,
            Self::ContentionBegin { .. } => 12,
            Self::ContentionEnd { .. } => 13,
            Self::Mark { .. } => 14,
            Self::Lost { .. } => 15,
        }
    }

    /// The kind's name: `page_alloc`, `page_free` …
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SwitchState {
    /// It could have run on: preempted, or it yielded.
    Runnable = 0,
    /// It sleeps until woken or signalled.
    Sleeping = 1,
    /// It sleeps and signals must wait: mostly for a disk or a lock.
    Blocked = 2,
    /// It is stopped or traced.
    Stopped = 3,
    /// It has ended.
    Dead = 4,
    /// A kernel thread with nothing to do.
    Idle = 5,
}

impl SwitchState {
    /// Reads `prev_state` of sched_switch as Linux numbers it since 4.14.
    pub const fn from_prev_state(state: u64) -> Self {
        match state & 0xff {
            0 => Self::Runnable,
            bits if bits & 0x80 != 0 => Self::Idle,
            bits if bits & 0x30 != 0 => Self::Dead,
            bits if bits & 0x4c != 0 => Self::Stopped,
            bits if bits & 0x02 != 0 => Self::Blocked,
            _ => Self::Sleeping,
        }
    }

    /// The state numbered `value`.
    #[inline]
    pub const fn from_index(value: u64) -> Option<Self> {
        match value {
            0 => Some(Self::Runnable),
            1 => Some(Self::Sleeping),
            2 => Some(Self::Blocked),
            3 => Some(Self::Stopped),
            4 => Some(Self::Dead),
            5 => Some(Self::Idle),
            _ => None,
        }
    }
}

/// An index into the recording's names: slab caches and marks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NameId(pub u32);

impl NameId {
    /// No name: the first of every recording's names, which is empty.
    pub const NONE: Self = Self(0);
}

/// A task of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Task {
    /// The process that it belongs to; 0 if that was not seen.
    pub pid: u32,
    /// Its own number. A number that came up again is another task.
    pub tid: u32,
    /// Its name when last seen.
    pub name: String,
    /// Whether it belongs to what was to be recorded: the command and its descendants, `--pid` and its threads and
    /// children, or with `--all` everything.
    pub in_workload: bool,
}
