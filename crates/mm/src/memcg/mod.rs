//! Memory cgroups (v2): a tree of groups with limits and protection, and what is charged to each of them.
//!
//! ```text
//!   fault, read, table ─▶ charge: a CPU's stock ─▶ usage of the group and of those above ─(over max)─▶ reclaim in it ─▶ OOM
//!                                                                                      └─(over high)─▶ on the way out: reclaim, wait
//! ```
//!
//! A task is in a group ([`MemcgDoor::join`]); a page stays charged to the group that it was charged to. The root's pages are
//! not counted, so a machine without groups pays for none of this. The lists of a group, and reclaim in it, are in the rooms
//! above, which this one asks through its ground. Left out: kernel memory other than page tables, v1's own limits.

mod charge;
mod dirty;
mod high;
mod limits;
mod members;
mod protection;
mod stock;
mod tree;

use alloc::boxed::Box;
use alloc::string::String;

use crate::ground::{AtomicI64, AtomicU32, AtomicU64, LockClass, Locked, Machine, Once, Relaxed};
use crate::pages::{PagesGround, door};

pub(crate) use charge::Effort;
pub use limits::Limit;
use members::Members;
use stock::Stock;

/// The groups that there may be at most, the root too.
pub(crate) const MOST_GROUPS: usize = 64;

/// A group, by the order in which groups were made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GroupId(pub(crate) u16);

impl GroupId {
    /// The root, which all tasks are in at first.
    pub const ROOT: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that happens in a group (`memory.events`, `memory.swap.events`); each counts for the groups above too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupEvent {
    /// It was reclaimed though it was within its protection.
    Low,
    /// It was over `high`, and was made to reclaim.
    High,
    /// It would have gone over `max`.
    Max,
    /// Nothing could be freed for a charge.
    Oom,
    /// A process of it was killed for that.
    OomKill,
    /// A page stayed, for `swap.max` was reached or swap was full.
    SwapFail,
}

impl GroupEvent {
    const COUNT: usize = 6;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Low, Self::High, Self::Max, Self::Oom, Self::OomKill, Self::SwapFail];

    /// Its name in the kernel's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Max => "max",
            Self::Oom => "oom",
            Self::OomKill => "oom_kill",
            Self::SwapFail => "fail",
        }
    }
}

/// A group.
#[derive(Debug)]
struct Group {
    name: String,
    parent: GroupId,
    /// Base pages charged to it and to those below it.
    usage: AtomicU64,
    peak: AtomicU64,
    /// Slots of swap.
    swap: AtomicU64,
    swap_peak: AtomicU64,
    /// By [`Limit`], in base pages.
    limits: [AtomicU64; Limit::COUNT],
    events: [AtomicU64; GroupEvent::COUNT],
    /// How long tasks were kept waiting for `high`, in ns.
    delayed: AtomicU64,
    /// Its own pages of files, and those of them that are dirty or being written.
    file: AtomicI64,
    pending: AtomicI64,
    /// The two as they were when figures of groups were last brought up to date.
    seen: [AtomicI64; 2],
}

/// The groups of a machine.
#[derive(Debug)]
pub struct Memcgs<M: Machine> {
    groups: Box<[Once<Group>]>,
    count: AtomicU32,
    members: Members,
    stocks: Box<[Stock]>,
    /// Held while a group is made.
    making: Locked<M, ()>,
    /// When statistics were last brought up to date for all, in ns.
    flushed: AtomicU64,
    /// Where in the two seconds from one such time to the next the machine began, in ns.
    flush_phase: AtomicU64,
}

impl<M: Machine> Memcgs<M> {
    /// The root alone.
    pub(crate) fn new(machine: &M, cpus: usize) -> Self {
        let memcgs = Self {
            groups: (0..MOST_GROUPS).map(|_| Once::default()).collect(),
            count: AtomicU32::new(1),
            members: Members::new(),
            stocks: (0..cpus).map(|_| Stock::default()).collect(),
            making: Locked::new(machine, LockClass::Other, 5, ()),
            flushed: AtomicU64::new(0),
            flush_phase: AtomicU64::new(0),
        };
        memcgs.groups[0].get_or(|| Group::new(String::new(), GroupId::ROOT));
        memcgs
    }

    /// Whether there is any group but the root.
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        self.count.load(Relaxed) > 1
    }

    fn group(&self, id: GroupId) -> &Group {
        self.groups[id.index()].get().expect("a group's number is that of a group")
    }
}

/// What reclaim in a group is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupAsk {
    /// The group that is too large.
    pub group: GroupId,
    /// Base pages that are to go; at least 32 are tried for.
    pub pages: u32,
    /// As [`crate::Request::no_fs`].
    pub no_fs: bool,
}

/// What groups stand on.
pub trait MemcgGround<M: Machine>: PagesGround<M> {
    /// The groups' own.
    fn memcgs(&self) -> &Memcgs<M>;

    /// Frees pages that are charged to a group or to those below it; says how many (`try_to_free_mem_cgroup_pages`).
    fn reclaim_in_group(&self, ask: GroupAsk) -> u32;

    /// Sends what CPUs keep back to the lists.
    fn drain_batches(&self);
}

door! {
    /// Groups: who is in which, what they may have, what is charged to them.
    MemcgDoor on MemcgGround, Memcgs<M>: memcgs, to {}
}
