//! What a caller asks for, and how it can fail.

use core::fmt;

use crate::ground::{MigrateType, Node, Order, Pfn, ZoneKind};
use crate::pages::zonelist::NodeMask;

/// What a request may do when memory is short (`__GFP_DIRECT_RECLAIM`, `__GFP_KSWAPD_RECLAIM`, `__GFP_HIGH`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgency {
    /// Waits for reclaim if it must: user memory, most kernel memory.
    #[default]
    Waits,
    /// Wakes kswapd, but does not wait (`GFP_NOWAIT`).
    NoWait,
    /// Does not wait and may use reserves (`GFP_ATOMIC`).
    Atomic,
    /// Neither waits nor wakes anybody.
    Never,
    /// Reclaims by itself, once, but wakes nobody (`GFP_TRANSHUGE` before 4.6: `__GFP_NORETRY` without kswapd).
    Tries,
    /// Reclaims by itself, once, and wakes kswapd (`__GFP_NORETRY`): folios of files, for which fewer pages will do.
    Once,
    /// As [`Self::Tries`] without `__GFP_NORETRY`: reclaims and compacts as those that wait do, for as long as such an order is
    /// worth it, but wakes nobody, and a no is no shortage of memory (`GFP_TRANSHUGE` since 4.6).
    TriesHard,
    /// Of a task that reclaims at that moment (`PF_MEMALLOC`): does not wait, and may have the last page.
    Reclaims,
}

impl Urgency {
    /// Whether a round of reclaim is enough (`__GFP_NORETRY`).
    pub(crate) const fn is_for_once(self) -> bool {
        matches!(self, Self::Tries | Self::Once)
    }

    /// Whether the request may reclaim by itself (`__GFP_DIRECT_RECLAIM`).
    pub(crate) const fn may_reclaim(self) -> bool {
        matches!(self, Self::Waits | Self::Tries | Self::Once | Self::TriesHard)
    }
}

/// Where memory is to come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The node to ask first; `None`: that of the CPU that touches a page first.
    pub node: Option<Node>,
    /// The nodes that may be used.
    pub allowed: NodeMask,
}

impl Default for Placement {
    fn default() -> Self {
        Self { node: None, allowed: NodeMask::ALL }
    }
}

/// A request for a block of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// log2 of the pages.
    pub order: Order,
    /// What can be done about the block later: unmovable, movable or reclaimable.
    pub migratetype: MigrateType,
    /// The highest zone that will do.
    pub highest: ZoneKind,
    /// The node to ask first; `None`: the calling CPU's.
    pub node: Option<Node>,
    /// The nodes that may be used.
    pub allowed: NodeMask,
    /// What to do when memory is short.
    pub urgency: Urgency,
    /// Only the first node's zones (`__GFP_THISNODE`).
    pub this_node: bool,
    /// Asked for from within a file system, which reclaim must not come to again (`GFP_NOFS`).
    pub no_fs: bool,
    /// The block must read as zeros (`__GFP_ZERO`, and what a fault hands to a program).
    pub zero: bool,
}

impl Request {
    /// Kernel memory: `GFP_KERNEL`, order 0.
    pub const KERNEL: Self = Self {
        order: Order::ZERO,
        migratetype: MigrateType::Unmovable,
        highest: ZoneKind::Normal,
        node: None,
        allowed: NodeMask::ALL,
        urgency: Urgency::Waits,
        this_node: false,
        no_fs: false,
        zero: false,
    };

    /// User memory: `GFP_HIGHUSER_MOVABLE`, order 0.
    pub const USER: Self =
        Self { migratetype: MigrateType::Movable, highest: ZoneKind::Movable, ..Self::KERNEL };

    /// User memory that stays where it is, and page tables where they may be anywhere (`CONFIG_HIGHPTE`):
    /// `GFP_HIGHUSER`, order 0.
    pub const HIGHUSER: Self = Self { highest: ZoneKind::HighMem, ..Self::KERNEL };

    /// A huge page for a fault, as before 4.6: the request reclaims for itself but does not wake kswapd, and takes a no
    /// after one round. (Since then, unless a program asks for more, it is of [`Urgency::Never`].)
    pub const THP: Self = Self { order: Order::PAGEBLOCK, urgency: Urgency::Tries, zero: true, ..Self::USER };

    /// The same request for a block of `order`.
    #[must_use]
    pub const fn of_order(self, order: Order) -> Self {
        Self { order, ..self }
    }
}

/// Why there is no block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocError {
    /// There is none at hand, and the request may not wait, or no longer.
    WouldWait,
    /// Nothing more can be freed for it.
    OutOfMemory,
    /// The topology has no zone that the request allows.
    NoZone,
    /// The task was killed while it waited ([`crate::Pages::kill`]).
    Killed,
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WouldWait => "no block is free and the request may not wait",
            Self::OutOfMemory => "out of memory",
            Self::Killed => "the task was killed while it waited for memory",
            Self::NoZone => "no zone of this machine can serve the request",
        })
    }
}

impl core::error::Error for AllocError {}

/// Why a block cannot be freed. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeError {
    /// No such frame.
    NoFrame(Pfn),
    /// The block is free already, or was never handed out, or does not begin here.
    NotAllocated(Pfn),
    /// The block was handed out with another order, which is the second field.
    WrongOrder(Pfn, Order),
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFrame(pfn) => write!(f, "{pfn} does not exist"),
            Self::NotAllocated(pfn) => write!(f, "{pfn} is not the start of an allocated block"),
            Self::WrongOrder(pfn, order) => write!(f, "{pfn} was allocated with {order}"),
        }
    }
}

impl core::error::Error for FreeError {}
