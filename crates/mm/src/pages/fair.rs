//! The fair zone allocation policy of Linux 3.12 to 4.7: the zones of a node take turns, each for as many pages as lie
//! between its low and its high mark, so that all pages of a node grow old alike whatever zone they are in. `alloc_path`
//! asks and counts; a policy without it pays nothing.
//!
//! The count is a vmstat counter in the kernel and drifts as one: a CPU keeps small changes to itself.

use alloc::boxed::Box;

use crate::ground::{Access, AtomicI32, AtomicI64, AtomicU32, Cpu, Line, LineKind, Machine, Order, Relaxed};
use crate::pages::watermark::Watermarks;
use crate::pages::zone::Zone;

/// What is left of a zone's turn (`NR_ALLOC_BATCH`).
#[derive(Debug)]
pub(crate) struct Turn {
    /// Pages; below zero where the last blocks were larger than what was left.
    left: AtomicI64,
    /// Not 0: the turn is over (`ZONE_FAIR_DEPLETED`), which is read far more often than it changes.
    over: AtomicU32,
    /// What each CPU has not yet told.
    held_back: Box<[AtomicI32]>,
    /// By how much it may differ, in pages.
    threshold: i32,
}

impl Turn {
    pub(crate) fn new(cpus: usize, threshold: i32) -> Self {
        Self {
            left: AtomicI64::new(0),
            over: AtomicU32::new(0),
            held_back: (0..cpus).map(|_| AtomicI32::new(0)).collect(),
            threshold,
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Relaxed) != 0
    }

    /// Adds `pages` through the CPU's own difference; says whether the zone's count was told.
    fn add(&self, cpu: Cpu, pages: i64) -> bool {
        let own = &self.held_back[usize::from(cpu.0)];
        // A turn has fewer pages than a zone, of which there are less than i32 holds.
        let sum = own.fetch_add(pages as i32, Relaxed).wrapping_add(pages as i32);
        let told = sum.unsigned_abs() > self.threshold.unsigned_abs();
        if told {
            self.fold(cpu);
        }
        told
    }

    /// A block of `pages` was taken. Says whether the zone's count was told.
    fn count_down(&self, cpu: Cpu, pages: u32) -> bool {
        let told = self.add(cpu, -i64::from(pages));
        if self.left.load(Relaxed) <= 0 && !self.is_over() {
            self.over.store(1, Relaxed);
        }
        told
    }

    /// A turn of `pages` begins.
    fn reset(&self, cpu: Cpu, pages: u32) {
        self.add(cpu, i64::from(pages) - self.left.load(Relaxed));
        self.over.store(0, Relaxed);
    }

    /// The CPU tells what it held back, as its vmstat tick does.
    pub(crate) fn fold(&self, cpu: Cpu) {
        let held_back = self.held_back[usize::from(cpu.0)].swap(0, Relaxed);
        if held_back != 0 {
            self.left.fetch_add(i64::from(held_back), Relaxed);
        }
    }
}

impl<M: Machine> Zone<M> {
    /// Whether the zone has to wait for the others of its node.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_over)
    }

    /// A block of `order` was taken from the zone.
    pub(crate) fn count_turn(&self, machine: &M, order: Order) {
        let told = self.turn.as_ref().is_some_and(|turn| turn.count_down(machine.cpu(), order.pages()));
        if told {
            machine.touch(Line { kind: LineKind::ZoneStat, index: u32::from(self.id.0) }, Access::Atomic);
        }
    }

    /// The zone's turn begins anew; `cpu` counts it.
    pub(crate) fn reset_turn(&self, machine: &M, cpu: Cpu) {
        if let Some(turn) = &self.turn {
            // They may change while they are read.
            let length = |marks: Watermarks| marks.high.saturating_sub(marks.low);
            turn.reset(cpu, self.decide_by_marks(machine, length));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::ground::bare::Bare;
    use crate::ground::ids::{Node, Pfn, ZoneKind};
    use crate::ground::topology::{Firmware, NodeSize};
    use crate::mm::Mm;
    use crate::pages::request::Request;
    use crate::rules::knobs::{Knob, Knobs};
    use crate::rules::policy::Policy;

    /// The machine of Mel Gorman's run as far as it is known: four nodes of 16 GiB, 3 GiB of node 0 below 4 GiB, in a
    /// smaller scale (an eighth).
    fn mm(policy: &str, order: u64) -> Mm<Bare> {
        let nodes = [NodeSize { bytes: 2 << 30, cpus: 2 }; 4];
        let row = |from| (0..4).map(|to| if to == from { 10 } else { 20 }).collect();
        let firmware = Firmware { low_end: 384 << 20 };
        let topology = firmware.lay_out(&nodes, 1 << 20, (0..4).map(row).collect()).unwrap();
        let knobs = Knobs::default();
        knobs.set(Knob::NumaZonelistOrder, order).unwrap();
        // At full size DMA keeps all of its 16 MiB from such requests.
        knobs.set(Knob::LowmemReserveDma, 256 / 8).unwrap();
        Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
    }

    /// Pages of DMA32 in 10,000 of those that `count` requests on node 0 get, of two CPUs in turn.
    fn share(mm: &Mm<Bare>, order: Order, count: u32) -> u64 {
        let request = Request::USER.of_order(order);
        for number in 0..count {
            mm.machine().set_cpu(Cpu((number % 2) as u16));
            mm.alloc(request).unwrap();
        }
        let counters = mm.views().counters();
        let (low, normal) = (counters.get("pgalloc_dma32"), counters.get("pgalloc_normal"));
        assert_eq!((counters.get("pgalloc_dma"), counters.get("numa_miss")), (0, 0));
        assert_eq!(low + normal, u64::from(count * order.pages()));
        low * 10_000 / (low + normal)
    }

    fn by_size(mm: &Mm<Bare>) -> u64 {
        let managed = |kind| u64::from(mm.zone(Node(0), kind).unwrap().managed());
        let low = managed(ZoneKind::Dma32);
        low * 10_000 / (low + managed(ZoneKind::Normal))
    }

    #[test]
    fn node_order_spreads_pages_by_zone_size() {
        let mm = mm("linux-3.17", 1);
        let (got, wanted) = (share(&mm, Order::ZERO, 200_000), by_size(&mm));
        // 368 of 2032 MiB: 18 %. A CPU's difference of at most 30 pages moves it by as much of a turn.
        assert!(wanted.abs_diff(got) <= 100, "{got} for {wanted}");
    }

    #[test]
    fn huge_pages_use_up_a_turn_in_whole() {
        let mm = mm("linux-3.17", 1);
        let turn = |kind| {
            let marks = mm.zone(Node(0), kind).unwrap().watermarks();
            u64::from((marks.high - marks.low).div_ceil(512))
        };
        let (low, normal) = (turn(ZoneKind::Dma32), turn(ZoneKind::Normal));
        let got = share(&mm, Order::PAGEBLOCK, 500);
        assert!(got.abs_diff(low * 10_000 / (low + normal)) <= 100, "{got}: {low} and {normal} a turn");
    }

    #[test]
    fn zone_order_and_later_kernels_leave_dma32_alone() {
        for (policy, order) in [("linux-3.17", 2), ("linux-3.11", 1), ("linux-4.8", 1), ("linux-6.18", 0)] {
            assert_eq!(share(&mm(policy, order), Order::ZERO, 50_000), 0, "{policy}, order {order}");
            assert_eq!(share(&mm(policy, order), Order::PAGEBLOCK, 100), 0, "{policy}, order {order}");
        }
    }

    #[test]
    fn a_node_that_is_used_up_goes_on_to_the_next() {
        let mm = mm("linux-3.17", 1);
        let mut nodes: Vec<u16> = vec![];
        while let Ok(pfn) = mm.alloc(Request::USER.of_order(Order::MAX)) {
            nodes.push(mm.zone_of(pfn).unwrap().node().0);
        }
        nodes.dedup();
        // What is left above the min marks follows in the same order.
        assert_eq!(nodes[..5], [0, 1, 2, 3, 0]);
        assert_eq!(mm.views().check().map(|_| ()), Ok(()));
    }

    #[test]
    fn small_changes_stay_with_the_cpu_until_its_tick() {
        let turn = Turn::new(2, 30);
        turn.reset(Cpu(0), 100);
        assert_eq!(turn.left.load(Relaxed), 100);
        assert!(!turn.count_down(Cpu(0), 30) && turn.left.load(Relaxed) == 100);
        assert!(turn.count_down(Cpu(0), 1) && turn.left.load(Relaxed) == 69);
        assert!(!turn.count_down(Cpu(1), 5));
        turn.fold(Cpu(1));
        assert_eq!(turn.left.load(Relaxed), 64);
        assert!(turn.count_down(Cpu(0), 512) && turn.is_over());
        turn.reset(Cpu(1), 100);
        assert_eq!((turn.left.load(Relaxed), turn.is_over()), (100, false));
    }

    #[test]
    fn what_is_freed_gives_no_turn_back() {
        let mm = mm("linux-3.17", 1);
        let mut low = 0;
        for _ in 0..100_000 {
            let pfn: Pfn = mm.alloc(Request::USER).unwrap();
            low += u64::from(mm.zone_of(pfn).unwrap().kind() == ZoneKind::Dma32);
            mm.free(pfn, Order::ZERO).unwrap();
        }
        assert!(by_size(&mm).abs_diff(low / 10) <= 100, "{low}");
    }
}
