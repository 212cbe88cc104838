//! A CPU's page lists of a zone: pages allocated and freed without the zone lock, exchanged with the buddy lists in
//! batches (facts/ALGORITHMS.md 1). The lists, their sizing here; how many pages a refill takes in `refill`, when and
//! how many pages go back in `drain`, what the once-a-second tick does in `decay`.

mod decay;
mod drain;
mod refill;
#[cfg(test)]
mod tests;

use crate::ids::{Cpu, MigrateType, Order, Pfn, ZoneId};
use crate::knobs::{Knob, Knobs};
use crate::list::List;
use crate::machine::{Access, Line, LineKind, LockClass, Machine};
use crate::policy::{BatchRule, HighRule, PcpOrders, Rules};
use crate::stat::Events;
use crate::sync::{AtomicI32, Locked};

pub(crate) use drain::Freed;
pub(crate) use refill::FreeDiff;

/// Orders 0 to 3 have a list for each of three types.
const LOW_LISTS: usize = MigrateType::PCP_COUNT * 4;
/// And huge pages one or two.
const LISTS: usize = LOW_LISTS + 2;

/// A CPU's pageset of a zone.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Pageset<M: Machine> {
    pub(crate) pcp: Locked<M, Pcp>,
    /// What this CPU has not yet told the zone's free-page counter.
    pub(crate) free_diff: AtomicI32,
    /// By how much it may differ.
    pub(crate) stat_threshold: i32,
}

impl<M: Machine> Pageset<M> {
    /// What the CPU's changes of the zone's free pages go through.
    #[inline]
    pub(crate) fn free_diff(&self) -> FreeDiff<'_> {
        FreeDiff { diff: &self.free_diff, threshold: self.stat_threshold }
    }

    pub(crate) fn new(machine: &M, zone: ZoneId, cpu: Cpu, stat_threshold: i32) -> Self {
        let line = u32::from(zone.0) * 1024 + u32::from(cpu.0);
        let pcp = Locked::new(machine, LockClass::Pcp, line, Pcp { line, ..Pcp::default() });
        Self { pcp, free_diff: AtomicI32::new(0), stat_threshold }
    }
}

/// The page lists, under `pcp->lock`. Counts are base pages.
#[derive(Debug, Default)]
pub(crate) struct Pcp {
    lists: [List; LISTS],
    /// Pages on the lists.
    count: u32,
    /// Pages that the lists may hold, tuned between the next two.
    high: u32,
    high_min: u32,
    high_max: u32,
    batch: u32,
    /// A free of order 1 to 3 came just before.
    prev_free_high_order: bool,
    /// Frees of order 1 to 3 empty the lists only from a batch on: this CPU's share of cache holds several.
    free_high_batch: bool,
    /// Refills are `batch << alloc_factor`.
    alloc_factor: u8,
    /// Before 6.7, drains are `batch << free_factor`.
    free_factor: u8,
    /// Pages freed of late, halved by every allocation.
    free_count: u32,
    /// Ticks until a remote zone's pages go back.
    expire: u8,
    /// What was counted under this lock.
    pub(crate) events: Events,
    line: u32,
}

/// Counts and sizes of a pageset, in pages, as /proc/zoneinfo prints them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageSizing {
    /// Pages on the lists.
    pub count: u32,
    /// Pages that they may hold.
    pub high: u32,
    /// Pages that a refill takes at least.
    pub batch: u32,
    /// Lower bound of `high`.
    pub high_min: u32,
    /// Upper bound of `high`.
    pub high_max: u32,
}

impl PageSizing {
    /// Sizes for a CPU of a zone with `managed` pages and a low mark of `low_wmark`, shared by `local_cpus`.
    pub fn compute(rules: &Rules, knobs: &Knobs, managed: u32, low_wmark: u32, local_cpus: u32) -> Self {
        let batch = batch(rules.batch, managed);
        let least = 4 * batch;
        let share = |pages: u32| (pages / local_cpus.max(1)).max(least);
        let fraction = knobs.get(Knob::PercpuPagelistHighFraction) as u32;
        let by_fraction = (fraction != 0).then(|| share(managed / fraction));
        let (high_min, high_max) = match (rules.high, by_fraction) {
            (_, Some(high)) => (high, high),
            (HighRule::SixBatches, None) => (6 * batch, 6 * batch),
            (HighRule::LowWatermark, None) => (share(low_wmark), share(low_wmark)),
            (HighRule::AutoTuned, None) => (share(low_wmark), share(managed / HIGH_FRACTION_MIN)),
        };
        Self { count: 0, high: high_min, batch, high_min, high_max }
    }
}

/// Auto-tuning lets a zone's CPUs together keep an eighth of it.
const HIGH_FRACTION_MIN: u32 = 8;

/// Pages of a batch for a zone of `managed` pages.
fn batch(rule: BatchRule, managed: u32) -> u32 {
    let base = match rule {
        BatchRule::Half => (managed / 1024).min(128) / 4,
        BatchRule::Quarter => (managed / 1024).min(256) / 4,
        BatchRule::Capped => (managed / 4096).min(64),
    }
    .max(1);
    let rounded = 1 << (base + base / 2).ilog2();
    (rounded - 1u32).max(1)
}

impl Pcp {
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
    pub(crate) fn touch<M: Machine>(&self, machine: &M) {
        machine.touch(Line { kind: LineKind::Pageset, index: self.line }, Access::Write);
    }

    /// Whether `high` is tuned.
    #[inline]
    fn auto_tuned(&self) -> bool {
        self.high_min != self.high_max
    }

    /// Takes on new sizes; what is over them goes back with the next free.
    pub(crate) fn resize(&mut self, sizing: PageSizing) {
        self.batch = sizing.batch;
        self.high_min = sizing.high_min;
        self.high_max = sizing.high_max;
        self.high = self.high.clamp(sizing.high_min, sizing.high_max);
    }

    /// Counts and sizes.
    pub(crate) fn sizing(&self) -> PageSizing {
        PageSizing {
            count: self.count,
            high: self.high,
            batch: self.batch,
            high_min: self.high_min,
            high_max: self.high_max,
        }
    }

    /// Frees of order 1 to 3 empty the lists only from a batch on, if `cache_slice` bytes hold more than three.
    pub(crate) fn set_cache_slice(&mut self, cache_slice: u64) {
        self.free_high_batch = cache_slice / crate::ids::PAGE_SIZE > 3 * u64::from(self.batch);
    }

    /// Remote zones' pages go back after `ticks` idle ticks.
    pub(crate) fn set_expire(&mut self, ticks: u8) {
        self.expire = ticks;
    }

    /// The lists with their orders, for a walk.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (Order, &List)> {
        self.lists.iter().enumerate().map(|(index, list)| (Self::list_order(index), list))
    }

    /// Pages on the lists.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// What makes a pageset's state, for setting one up as a recording found it. Counts are pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagesetTuning {
    /// Pages that the lists may hold.
    pub high: u32,
    /// Refills are `batch << alloc_factor`.
    pub alloc_factor: u8,
    /// Pages freed of late.
    pub free_count: u32,
}

impl Pcp {
    pub(crate) fn tuning(&self) -> PagesetTuning {
        PagesetTuning { high: self.high, alloc_factor: self.alloc_factor, free_count: self.free_count }
    }

    pub(crate) fn set_tuning(&mut self, tuning: PagesetTuning) {
        self.high = tuning.high.clamp(self.high_min, self.high_max);
        self.alloc_factor = tuning.alloc_factor;
        self.free_count = tuning.free_count;
    }

    /// Takes the hottest block of a list that a request of `order` and `migratetype` uses.
    #[inline]
    fn pop<M: Machine>(&mut self, mem: crate::list::Mem<'_, M>, index: usize, order: Order) -> Option<Pfn> {
        let pfn = self.lists[index].pop_front(mem)?;
        self.count -= order.pages();
        Some(pfn)
    }
}
