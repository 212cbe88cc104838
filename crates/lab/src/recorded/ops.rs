//! What a workload is made of.

use std::collections::BTreeMap;
use std::fmt;

use mm::slab::CacheSpec;
use mm::slab::kmalloc::KmallocClass;
use mm::{MigrateType, Order, Urgency, ZoneKind};

use crate::reach::Brings;

/// A block of pages of the workload, from its allocation to its free: a number within the workload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockId(pub u32);

/// A slab object of the workload, from its allocation to its free: a number within the workload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ObjectId(pub u32);

/// A task of the workload: an index into [`Recorded::tasks`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TaskRef(pub u32);

/// A step of a task: first so many nanoseconds of its own on a CPU, then an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// CPU time of the task's own, ns on the machine that was recorded.
    pub own_ns: u32,
    /// What it then does.
    pub action: Action,
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing: the time was all.
    Run,
    /// Sleeps for so many nanoseconds.
    Sleep(u32),
    /// Asks for a block.
    Alloc {
        /// The block from here on.
        block: BlockId,
        /// What is asked for: an index into [`Recorded::kinds`].
        kind: u16,
    },
    /// Gives blocks back together: so many of [`TaskOps::frees`], from an index on.
    Free {
        /// The first, in [`TaskOps::frees`].
        first: u32,
        /// How many.
        count: u8,
    },
    /// Cuts a block into single pages, numbered from `parts` on.
    Split {
        /// The block.
        block: BlockId,
        /// The first page's number.
        parts: BlockId,
        /// Order of the block.
        order: Order,
    },
    /// Lets another task begin.
    Start(TaskRef),
    /// Asks for a slab object.
    AllocObject {
        /// The object from here on.
        object: ObjectId,
        /// Its cache: an index into [`Recorded::caches`].
        cache: u16,
    },
    /// Gives a slab object back.
    FreeObject(ObjectId),
}

/// Where objects come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectCache {
    /// A class of `kmalloc`.
    Kmalloc(KmallocClass),
    /// A cache by name, of the size that was recorded.
    Named(CacheSpec),
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kind {
    /// Order of the block.
    pub order: Order,
    /// Its type.
    pub migratetype: MigrateType,
    /// The highest zone that will do.
    pub highest: ZoneKind,
    /// What it may do when memory is short.
    pub urgency: UrgencyKey,
    /// Whether the block must read as zeros.
    pub zero: bool,
    /// Whether only the first node will do.
    pub this_node: bool,
}

/// [`Urgency`], in an order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UrgencyKey {
    /// [`Urgency::Waits`]
    Waits,
    /// [`Urgency::NoWait`]
    NoWait,
    /// [`Urgency::Atomic`]
    Atomic,
    /// [`Urgency::Never`]
    Never,
}

impl From<UrgencyKey> for Urgency {
    fn from(key: UrgencyKey) -> Self {
        match key {
            UrgencyKey::Waits => Self::Waits,
            UrgencyKey::NoWait => Self::NoWait,
            UrgencyKey::Atomic => Self::Atomic,
            UrgencyKey::Never => Self::Never,
        }
    }
}

/// A task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskOps {
    /// Its name.
    pub name: String,
    /// Its steps, in order.
    pub ops: Vec<Op>,
    /// Blocks that its [`Action::Free`]s give back, in order.
    pub frees: Vec<BlockId>,
    /// Whether another task starts it; otherwise it starts with the workload.
    pub started_by_other: bool,
    /// Whether it stands for all those who freed the workload's pages without being of it (kswapd, RCU, others). Its
    /// time between frees is not CPU time of the workload's.
    pub outsiders: bool,
}

/// Tasks with the blocks that they exchange.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// What it is called in reports.
    pub name: String,
    /// The tasks.
    pub tasks: Vec<TaskOps>,
    /// What requests ask for.
    pub kinds: Vec<Kind>,
    /// Blocks are numbered below this.
    pub blocks: u32,
    /// Where slab objects come from.
    pub caches: Vec<ObjectCache>,
    /// Slab objects are numbered below this.
    pub objects: u32,
    /// Recorded events that the tasks stand for, of every kind.
    pub recorded_events: u64,
    /// Allocations and frees (of blocks, not pages, and of slab objects) among the steps.
    pub operations: u64,
    /// What could not be carried over.
    pub omissions: Omissions,
    /// What is wrong with the recording's file.
    pub damage: Option<String>,
}

impl Recorded {
    /// What it brings for knobs to act on.
    pub fn brings(&self) -> Brings {
        let is_slab = |action: &Action| matches!(action, Action::AllocObject { .. });
        let slabs = self.tasks.iter().flat_map(|task| &task.ops).any(|op| is_slab(&op.action));
        Brings { slabs, is_recording: true, ..Brings::PAGES }
    }
}

/// What of a recording could not be carried over as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Omissions {
    /// Frees by the workload of pages whose allocation was not recorded.
    pub frees_without_allocation: u64,
    /// Frees that the recording lacks, for the pages were handed out again: somebody else frees them just before.
    /// (perf on Linux 6.18 drops some events of softirqs without a word; see docs/recording-format.md.)
    pub implied_frees: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// Page events that were counted and not recorded, for a budget of the recording.
    pub page_events_sampled_away: u64,
    /// Chunks of a damaged or cut recording that could not be read, at least; a missing end counts as one.
    pub unreadable_chunks: u64,
    /// Requests that had failed on the recorded machine.
    pub failed_requests: u64,
    /// Allocations and frees of pages by the recorded kernel's slab allocator: the replay's makes its own.
    pub page_events_of_slabs: u64,
    /// Frees by the workload of slab objects whose allocation was not recorded.
    pub object_frees_without_allocation: u64,
    /// Frees of slab objects that the recording lacks, for the objects were handed out again: the task that gets one frees
    /// it just before. (`kfree_rcu` into a sheaf has no event.)
    pub implied_object_frees: u64,
    /// Objects of caches that the recording has no name for: they come from caches by their size.
    pub objects_of_unnamed_caches: u64,
    /// Objects of a size that their cache did not have before: they come from another cache of that name.
    pub objects_of_another_size: u64,
    /// Objects that no cache can be made for: of no size, larger than a slab, of more caches than there can be.
    pub objects_of_impossible_caches: u64,
}

impl Omissions {
    /// By name, those that are not 0.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        let all = [
            ("frees_without_allocation", self.frees_without_allocation),
            ("implied_frees", self.implied_frees),
            ("lost_events", self.lost_events),
            ("page_events_sampled_away", self.page_events_sampled_away),
            ("unreadable_chunks", self.unreadable_chunks),
            ("failed_when_recorded", self.failed_requests),
            ("page_events_of_slabs", self.page_events_of_slabs),
            ("object_frees_without_allocation", self.object_frees_without_allocation),
            ("implied_object_frees", self.implied_object_frees),
            ("objects_of_unnamed_caches", self.objects_of_unnamed_caches),
            ("objects_of_another_size", self.objects_of_another_size),
            ("objects_of_impossible_caches", self.objects_of_impossible_caches),
        ];
        all.into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}

impl fmt::Display for ObjectCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kmalloc(class) => class.fmt(f),
            Self::Named(spec) => f.write_str(&spec.name),
        }
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.0)
    }
}
