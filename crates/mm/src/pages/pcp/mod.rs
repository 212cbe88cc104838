//! A CPU's page lists of a zone: pages allocated and freed without the zone lock, exchanged with the buddy lists in
//! batches (docs/rules/page-lists.md). The lists are here; how large a batch is and how many pages they keep in `sizing`;
//! how refills and drains grow and shrink in `tuning`; the refill in `refill`, the drain in `drain`.

mod drain;
mod gather;
mod hold;
mod refill;
mod sizing;
#[cfg(test)]
mod tests;
mod tuning;
mod twin;

use alloc::boxed::Box;

use crate::ground::{
    Access, AtomicI32, AtomicU32, Cpu, Line, LineKind, LockClass, Locked, Machine, MigrateType, Node, Order,
    Pfn, ZoneId,
};
use crate::pages::frame::Mobility;
use crate::pages::list::{List, Mem};
use crate::pages::stat::Events;
use crate::rules::policy::PcpOrders;

pub(crate) use drain::Freed;
pub(crate) use hold::Hold;
pub(crate) use refill::Beside;
pub use sizing::PageSizing;
pub use tuning::{Pressure, Setting, Tuning};
use twin::Twin;
pub(crate) use twin::watched;

/// Orders 0 to 3 have a list for each of three types.
const LOW_LISTS: usize = MigrateType::PCP_COUNT * 4;
/// And huge pages one or two.
const LISTS: usize = LOW_LISTS + 2;

/// A CPU's pageset of a zone.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Pageset<M: Machine> {
    pub(in crate::pages) pcp: Locked<M, Pcp>,
    /// What this CPU has not yet told the zone's free-page counter.
    pub(in crate::pages) free_diff: AtomicI32,
    /// By how much it may differ.
    pub(in crate::pages) stat_threshold: i32,
    /// The arena of the zone that this CPU turns to first.
    pub(in crate::pages) home: AtomicU32,
}

impl<M: Machine> Pageset<M> {
    /// The CPU's lists.
    #[inline]
    pub(crate) fn pcp(&self) -> &Locked<M, Pcp> {
        &self.pcp
    }

    /// What this CPU has not yet told the zone's free-page counter.
    pub(crate) fn free_diff(&self) -> &AtomicI32 {
        &self.free_diff
    }

    /// By how much it may differ.
    pub(crate) fn stat_threshold(&self) -> i32 {
        self.stat_threshold
    }

    pub(crate) fn new(machine: &M, zone: ZoneId, cpu: Cpu, stat_threshold: i32) -> Self {
        let line = u32::from(zone.0) * 1024 + u32::from(cpu.0);
        let pcp = Locked::new(machine, LockClass::Pcp, line, Pcp { line, ..Pcp::default() });
        Self { pcp, free_diff: AtomicI32::new(0), stat_threshold, home: AtomicU32::new(0) }
    }

    /// What is kept beside the lists, without their lock.
    #[inline]
    pub(crate) fn beside(&self) -> Beside<'_> {
        Beside { diff: &self.free_diff, threshold: self.stat_threshold, home: &self.home }
    }
}

/// The page lists, under `pcp->lock`.
#[derive(Debug, Default)]
pub(crate) struct Pcp {
    lists: [List; LISTS],
    /// Counts and what follows from them.
    pub(in crate::pages) tuning: Tuning,
    /// Ticks until a remote zone's pages go back.
    expire: u8,
    /// What was counted under this lock.
    pub(in crate::pages) events: Events,
    line: u32,
    /// The tuning with each watched knob at its default.
    twins: Box<[Twin]>,
}

impl Pcp {
    /// What happened to its pages.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Whether pagesets cache blocks of `order`.
    #[inline]
    pub(crate) fn caches(orders: PcpOrders, order: Order) -> bool {
        match orders {
            PcpOrders::Zero => order == Order::ZERO,
            PcpOrders::WithHuge | PcpOrders::WithTwoHuge => order.get() <= 3 || order == Order::PAGEBLOCK,
        }
    }

    #[inline]
    fn list_index(orders: PcpOrders, order: Order, migratetype: MigrateType) -> usize {
        if order == Order::PAGEBLOCK {
            let own_list = orders == PcpOrders::WithTwoHuge && migratetype == MigrateType::Movable;
            LOW_LISTS + usize::from(own_list)
        } else {
            MigrateType::PCP_COUNT * order.index() + migratetype.index()
        }
    }

    /// Whether the pages of a list are such as can move, where huge pages that can have a list of their own.
    #[inline]
    fn list_mobility(index: usize) -> Mobility {
        let movable = MigrateType::Movable.index();
        let of_movable =
            if index < LOW_LISTS { index % MigrateType::PCP_COUNT == movable } else { index > LOW_LISTS };
        if of_movable { Mobility::Movable } else { Mobility::Fixed }
    }

    #[inline]
    fn list_order(index: usize) -> Order {
        if index >= LOW_LISTS {
            Order::PAGEBLOCK
        } else {
            Order::new((index / MigrateType::PCP_COUNT) as u8)
                .expect("twelve lists of three types make four orders")
        }
    }

    #[inline]
    fn touch_list<M: Machine>(&self, machine: &M, index: usize) {
        let line = Line { kind: LineKind::PagesetList, index: self.line * 8 + (index / 4) as u32 };
        machine.touch(line, Access::Write);
    }

    /// Charges a change of the counts.
    #[inline]
    fn touch<M: Machine>(&self, machine: &M) {
        machine.touch(Line { kind: LineKind::Pageset, index: self.line }, Access::Write);
    }

    /// Pages on the lists.
    pub(crate) fn count(&self) -> u32 {
        self.tuning.count
    }

    /// Frees of order 1 to 3 empty the lists only from a batch on, if `cache_slice` bytes hold more than three.
    pub(crate) fn set_cache_slice<M: Machine>(&mut self, cache_slice: u64) {
        self.prepare::<M>(|tuning| {
            tuning.free_high_batch =
                cache_slice / crate::ground::ids::PAGE_SIZE > 3 * u64::from(tuning.batch);
        });
    }

    /// Remote zones' pages go back after `ticks` idle ticks.
    pub(crate) fn set_expire(&mut self, ticks: u8) {
        self.expire = ticks;
    }

    /// Counts down the ticks after which a pageset of a remote zone is emptied batch by batch; `local` is the CPU's
    /// node. Says whether a batch is to be freed now.
    pub(crate) fn expires(&mut self, zone_node: Node, local: Node) -> bool {
        if self.expire == 0 || self.count() == 0 {
            return false;
        }
        if zone_node == local {
            self.expire = 0;
            return false;
        }
        self.expire -= 1;
        self.expire == 0
    }

    /// The lists with their orders, for a walk.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (Order, &List)> {
        self.lists.iter().enumerate().map(|(index, list)| (Self::list_order(index), list))
    }

    /// Takes the hottest block of a list.
    #[inline]
    fn pop<M: Machine>(&mut self, mem: Mem<'_, M>, index: usize, order: Order) -> Option<Pfn> {
        let pfn = self.lists[index].pop_front(mem)?;
        self.tuning.count -= order.pages();
        Some(pfn)
    }

    /// Takes the hottest block that a request of `order` and `migratetype` would get, and tunes nothing.
    pub(crate) fn take_off<M: Machine>(
        &mut self,
        mem: Mem<'_, M>,
        orders: PcpOrders,
        order: Order,
        migratetype: MigrateType,
    ) -> Option<Pfn> {
        self.pop(mem, Self::list_index(orders, order, migratetype), order)
    }
}
