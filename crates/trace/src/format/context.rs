//! What an event is compared with: the state of its CPU, fresh in each chunk, so that chunks can be read alone.

use super::codec::Column;
use crate::event::{Event, EventKind, NameId};
use crate::gfp::Gfp;
use mm::{MigrateType, Order, TaskId};

/// A CPU's last values.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Who ran.
    pub(super) task: TaskId,
    /// The last frame of each kind of page event.
    pub(super) pfn: [u32; Column::PFN_COUNT],
    /// The last address.
    pub(super) address: u64,
    /// The last instruction pointer.
    pub(super) ip: u64,
    /// The attributes that each kind had last.
    pub(super) attr: [Attr; EventKind::COUNT],
}

impl Default for Context {
    fn default() -> Self {
        Self {
            task: TaskId(0),
            pfn: [0; Column::PFN_COUNT],
            address: 0,
            ip: 0,
            attr: [Attr::default(); EventKind::COUNT],
        }
    }
}

/// The fields of an event that repeat: up to five numbers, whose meaning depends on the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Attr {
    /// Order + 16 × migratetype + 256 × (gfp, or 1 for a refill) of page events; the state of a switch; the error code of
    /// a fault; the flags or the result of lock events; the count of a loss; the cache of slab events.
    pub(super) first: u64,
    /// Bytes requested, bytes allocated, gfp and node of a slab allocation; otherwise zero and not stored.
    pub(super) rest: [u32; 4],
}

impl Attr {
    const fn one(first: u64) -> Self {
        Self { first, rest: [0; 4] }
    }

    const fn page(order: Order, migratetype: MigrateType, high: u64) -> Self {
        Self::one(order.get() as u64 | (migratetype as u64) << 4 | high << 8)
    }

    /// The attributes of `event`.
    #[inline]
    pub(super) fn of(event: &Event) -> Self {
        match event.kind {
            EventKind::PageAlloc { order, migratetype, gfp, .. }
            | EventKind::PageAllocFailed { order, migratetype, gfp } => {
                Self::page(order, migratetype, u64::from(gfp.0))
            }
            EventKind::PageFree { order, .. } => Self::one(u64::from(order.get())),
            EventKind::ZoneLocked { order, migratetype, percpu_refill, .. } => {
                Self::page(order, migratetype, u64::from(percpu_refill))
            }
            EventKind::PcpuDrain { order, migratetype, .. } => Self::page(order, migratetype, 0),
            EventKind::Switch { state, .. } => Self::one(state as u64),
            EventKind::Fault { error_code, .. } => Self::one(u64::from(error_code)),
            EventKind::SlabAlloc { cache, requested, allocated, gfp, node, .. } => Self {
                first: u64::from(cache.0),
                rest: [requested, allocated, gfp.0, u32::from(node.wrapping_add(1) as u16)],
            },
            EventKind::SlabFree { cache, .. } => Self::one(u64::from(cache.0)),
            EventKind::ContentionBegin { flags, .. } => Self::one(u64::from(flags)),
            EventKind::ContentionEnd { result, .. } => Self::one(u64::from(result as u32)),
            EventKind::Lost { count } => Self::one(count),
            EventKind::PageFreeBatched { .. }
            | EventKind::Fork { .. }
            | EventKind::Exit
            | EventKind::Mark { .. } => Self::one(0),
        }
    }

    /// The order in a page event's attributes.
    #[inline]
    pub(super) fn order(&self) -> Option<Order> {
        Order::new(self.first as u8 & 15)
    }

    /// The type in a page event's attributes.
    #[inline]
    pub(super) fn migratetype(&self) -> Option<MigrateType> {
        MigrateType::from_index(self.first as u8 >> 4)
    }

    /// The flags in an allocation's attributes.
    #[inline]
    pub(super) const fn gfp(&self) -> Gfp {
        Gfp((self.first >> 8) as u32)
    }

    /// The cache in a slab event's attributes.
    #[inline]
    pub(super) const fn cache(&self) -> NameId {
        NameId(self.first as u32)
    }
}
