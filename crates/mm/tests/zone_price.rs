//! The policy part `zone-price`: low zones keep what those who can use nothing else were seen to take, others leave it, and
//! guests are moved out rather than that a request fails.

use std::sync::Arc;

use freehold_mm::vm::{AddressSpace, FileKind, MapSpec, Placement, Touch, Vpn};
use freehold_mm::{
    AllocError, Bare, Cpu, Firmware, Knob, Knobs, Mm, Node, NodeMask, NodeSize, Order, Pfn, Policy, Request,
    Urgency, ZoneKind,
};
use proptest::prelude::*;

const PRICE: &str = "linux-6.18+zone-price";
const PLAIN: &str = "linux-6.18";

/// Only DMA32 and DMA will do; node 0 has them.
const BOUND: Request = Request { highest: ZoneKind::Dma32, ..Request::KERNEL };

/// Two nodes of 256 MiB, of which 96 MiB are below 4 GiB; a CPU each.
fn machine(policy: &str) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 256 << 20, cpus: 1 }; 2];
    let firmware = Firmware { low_end: 96 << 20 };
    let topology = firmware.lay_out(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, 0).unwrap();
    knobs.set(Knob::MinFreeKbytes, 2048).unwrap();
    knobs.set(Knob::OvercommitMemory, 1).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
}

fn tick(mm: &Mm<Bare>) {
    (0..2).for_each(|cpu| mm.vmstat_tick(Cpu(cpu)));
}

fn reserve(mm: &Mm<Bare>) -> u64 {
    mm.views().counters().get("freehold_low_reserve")
}

fn free_of(mm: &Mm<Bare>, kind: ZoneKind) -> u64 {
    mm.zone(Node(0), kind).unwrap().free_pages_exact()
}

fn take(mm: &Mm<Bare>, request: Request, pages: u32) -> Vec<Pfn> {
    (0..pages).map_while(|_| mm.alloc(request).ok()).collect()
}

fn give(mm: &Mm<Bare>, pages: &[Pfn]) {
    for &pfn in pages {
        mm.free(pfn, Order::ZERO).unwrap();
    }
}

/// Bound requests for so many pages come and go within a tick.
fn demand(mm: &Mm<Bare>, pages: u32) {
    let held = take(mm, BOUND, pages);
    assert_eq!(held.len(), pages as usize);
    give(mm, &held);
    mm.drain_all();
    tick(mm);
}

/// A program on node 0 that touches so many pages of memory, placed by `placement`.
fn program(mm: &Mm<Bare>, pages: u32, placement: Placement) -> (Arc<AddressSpace<Bare>>, Vpn) {
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages).placed(placement)).unwrap();
    mm.spaces().populate(&space, start, pages, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    (space, start)
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn the_reserve_grows_with_demand_and_decays() {
    let mm = machine(PRICE);
    tick(&mm);
    assert_eq!(reserve(&mm), 0);
    demand(&mm, 500);
    assert_eq!(reserve(&mm), 1000);
    demand(&mm, 400);
    assert_eq!(reserve(&mm), 984, "a 64th less");
    (0..44).for_each(|_| tick(&mm));
    assert!((400..600).contains(&reserve(&mm)), "{}", reserve(&mm));
    (0..400).for_each(|_| tick(&mm));
    assert_eq!(reserve(&mm), 0);
    let managed = mm.zone(Node(0), ZoneKind::Dma32).unwrap().managed();
    for _ in 0..3 {
        give(&mm, &take(&mm, BOUND, managed / 3));
    }
    tick(&mm);
    assert_eq!(reserve(&mm), u64::from(managed / 2), "half of the zone at most");
}

#[test]
fn only_who_can_use_nothing_else_makes_a_demand() {
    let mm = machine(PRICE);
    give(&mm, &take(&mm, Request::USER, 1000));
    give(&mm, &take(&mm, Request::KERNEL, 1000));
    // DMA is bound to its own zone, whose reserve is not DMA32's.
    give(&mm, &take(&mm, Request { highest: ZoneKind::Dma, ..Request::KERNEL }, 100));
    tick(&mm);
    assert_eq!(reserve(&mm), 200);
    let dma32 = mm.zone(Node(0), ZoneKind::Dma32).unwrap();
    assert_eq!(dma32.protection(), machine(PLAIN).zone(Node(0), ZoneKind::Dma32).unwrap().protection());
}

#[test]
fn others_leave_the_reserve_and_go_to_another_node() {
    for (request, leaves) in [(Request::USER, 2000), (Request::KERNEL, 96 << 20 >> 12 >> 2)] {
        for (policy, left) in [(PLAIN, 0), (PRICE, leaves)] {
            let mm = machine(policy);
            demand(&mm, 1000);
            while mm.zone_of(mm.alloc(request).unwrap()).unwrap().node() == Node(0) {}
            let free = free_of(&mm, ZoneKind::Dma32);
            assert!(free >= left, "{policy}: {free}");
            assert_eq!(free < 2000, policy == PLAIN, "{policy}: {free}");
            check(&mm);
        }
    }
}

#[test]
fn a_burst_that_cannot_wait_is_served_from_the_reserve() {
    let burst = Request { urgency: Urgency::Atomic, ..BOUND };
    for (policy, served) in [(PLAIN, false), (PRICE, true)] {
        let mm = machine(policy);
        demand(&mm, 1000);
        program(&mm, 80_000, Placement::default());
        assert_eq!(take(&mm, burst, 1400).len() == 1400, served, "{policy}");
        check(&mm);
    }
}

#[test]
fn guests_are_moved_out_for_who_may_wait() {
    for (policy, served) in [(PLAIN, false), (PRICE, true)] {
        let mm = machine(policy);
        let (space, start) = program(&mm, 80_000, Placement::default());
        let before = space.pages_on(Node(0));
        // There is no swap: nothing else can be done for them.
        let held = take(&mm, BOUND, 12_000);
        assert_eq!(held.len() == 12_000, served, "{policy}: {}", held.len());
        let moved = mm.views().counters().get("freehold_low_moved");
        assert_eq!(moved > 8000, served, "{policy}: {moved}");
        assert_eq!(before - space.pages_on(Node(0)), moved);
        assert_eq!(space.resident_pages(), 80_000, "nobody lost a page");
        assert_eq!(mm.views().counters().get("freehold_oom"), u64::from(!served));
        assert!(mm.spaces().touch_page(&space, start, Touch::Write).unwrap().1.is_none());
        check(&mm);
        mm.spaces().exit(&space);
        give(&mm, &held);
        mm.lru().lru_drain_all();
        assert_eq!(mm.views().memory_use().held(), 0);
        check(&mm);
    }
}

#[test]
fn kswapd_restores_the_reserve() {
    let mm = machine(PRICE);
    program(&mm, 80_000, Placement::default());
    assert!(free_of(&mm, ZoneKind::Dma32) < 2000);
    // They take what Linux's protection left; the tick sees that it would not be enough again.
    let held = take(&mm, BOUND, 300);
    mm.machine().take_woken();
    tick(&mm);
    assert!(!mm.machine().take_woken().is_empty());
    mm.reclaim().kswapd(Node(0));
    assert!(free_of(&mm, ZoneKind::Dma32) >= 300, "{}", free_of(&mm, ZoneKind::Dma32));
    assert!(mm.views().counters().get("freehold_low_moved") > 0);
    assert_eq!(mm.views().counters().get("pgscan_kswapd"), 0, "nobody was evicted");
    give(&mm, &held);
    check(&mm);
}

#[test]
fn pages_that_were_placed_stay_where_they_were_put() {
    let mm = machine(PRICE);
    let here = Placement { allowed: NodeMask::only(Node(0)), ..Placement::default() };
    let (space, _) = program(&mm, 60_000, here);
    let held = take(&mm, BOUND, 12_000);
    assert!(held.len() < 12_000);
    assert_eq!((space.pages_on(Node(0)), mm.views().counters().get("freehold_low_moved")), (60_000, 0));
    assert_eq!(mm.alloc(BOUND), Err(AllocError::OutOfMemory));
    check(&mm);
}

#[test]
fn the_reserve_costs_nobody_the_last_page() {
    let pages = |policy| {
        let mm = machine(policy);
        demand(&mm, 8000);
        let held = take(&mm, Request::USER, u32::MAX);
        check(&mm);
        held.len()
    };
    assert_eq!(pages(PRICE), pages(PLAIN));
}

#[test]
fn low_memory_of_a_32_bit_machine_is_kept_for_the_kernel() {
    let nodes = [NodeSize { bytes: 1 << 30, cpus: 1 }; 2];
    for (policy, served) in [(PLAIN, false), (PRICE, true)] {
        let topology =
            freehold_mm::Topology::x86_32(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
        let knobs = Knobs::default();
        knobs.set(Knob::TransparentHugepage, 0).unwrap();
        let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
        let (space, _) = program(&mm, 300_000, Placement::default());
        let metadata = mm.files().new_file(FileKind::Metadata);
        (0..1000).for_each(|page| {
            mm.files().read_file(&metadata, page, Placement::default()).unwrap();
        });
        let held = take(&mm, Request::KERNEL, 100_000);
        assert_eq!(held.len() == 100_000, served, "{policy}: {}", held.len());
        assert_eq!(space.resident_pages(), 300_000);
        check(&mm);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Touch(u32),
    Unmap(u32),
    Read(u32),
    Bound(u32),
    Burst(u32),
    GiveBack,
    Tick,
    Kswapd,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..70_u32).prop_map(Step::Touch),
        (0..70_u32).prop_map(Step::Unmap),
        (0..40_u32).prop_map(Step::Read),
        (1..4000_u32).prop_map(Step::Bound),
        (1..1000_u32).prop_map(Step::Burst),
        Just(Step::GiveBack),
        Just(Step::Tick),
        Just(Step::Kswapd),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_in_random_lives(steps in proptest::collection::vec(step(), 1..60)) {
        let mm = machine(PRICE);
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(70 * 2048)).unwrap();
        let file = mm.files().new_file(FileKind::Disk);
        let mut held = vec![];
        for step in steps {
            match step {
                // Memory may be short: then fewer pages are touched.
                Step::Touch(part) => drop(mm.spaces().populate(&space, start.add(part * 2048), 2048, Touch::Write)),
                Step::Unmap(part) => mm.spaces().munmap(&space, start.add(part * 2048), 1024),
                Step::Read(part) => {
                    for page in part * 1024..(part + 1) * 1024 {
                        let _ = mm.files().read_file(&file, page, Placement::default());
                    }
                }
                Step::Bound(pages) => held.extend(take(&mm, BOUND, pages)),
                Step::Burst(pages) => {
                    held.extend(take(&mm, Request { urgency: Urgency::Atomic, ..BOUND }, pages));
                }
                Step::GiveBack => give(&mm, &core::mem::take(&mut held)),
                Step::Tick => tick(&mm),
                Step::Kswapd => mm.reclaim().kswapd(Node(0)),
            }
        }
        check(&mm);
        let mapped = space.resident_pages() + space.table_pages();
        mm.lru().lru_drain_all();
        prop_assert_eq!(mm.views().memory_use().held(), mapped + file.cached_pages(mm.machine()) + held.len() as u64);
        mm.spaces().exit(&space);
        mm.files().drop_file(&file);
        give(&mm, &held);
        mm.lru().lru_drain_all();
        prop_assert_eq!(mm.views().memory_use().held(), 0);
        check(&mm);
    }
}
