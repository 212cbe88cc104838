//! Random machines, random users: what the allocator hands out is whole, apart, of the right zone, and comes back.
#![cfg(not(shuttle))]

mod common;

use common::{
    Model, assert_as_after_boot, boot_knobs, free_blocks, masks, order, policies, small, topologies,
};
use freehold_mm::{
    Bare, Cpu, FreeError, Knob, MigrateType, Mm, Node, Order, Pfn, ReclaimState, Request, Urgency, ZoneKind,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Alloc(Request),
    Free(usize),
    FreeBatch(usize),
    FreeAnything(u32, u8),
    FreeAgain(usize),
    Split(usize),
    SetCpu(u16),
    Tick(u16),
    Kswapd(u16),
    Reclaim(u16, bool),
    DrainAll,
    DrainCpu(u16),
    SetKnob(Knob, u64),
    /// Somebody waits for a lock at the next so many looks.
    Waiters(u32),
}

fn requests() -> impl Strategy<Value = Request> {
    let orders = prop_oneof![6 => 0..=0u8, 3 => 1..=3u8, 2 => 4..=8u8, 1 => 9..=10u8];
    let types = prop::sample::select(&MigrateType::ALL[..MigrateType::PCP_COUNT]);
    let kinds = prop::sample::select(&ZoneKind::ALL[..]);
    let nodes = prop::option::weighted(0.4, (0..4u16).prop_map(Node));
    let urgency = prop_oneof![
        3 => Just(Urgency::Waits),
        1 => Just(Urgency::NoWait),
        2 => Just(Urgency::Atomic),
        1 => Just(Urgency::Never),
        1 => Just(Urgency::Tries),
        1 => Just(Urgency::Once),
        1 => Just(Urgency::TriesHard),
    ];
    (orders, types, kinds, nodes, masks(), urgency, prop::bool::weighted(0.1)).prop_map(
        |(size, migratetype, highest, node, allowed, urgency, this_node)| {
            let base = Request { migratetype, highest, node, allowed, urgency, this_node, ..Request::KERNEL };
            base.of_order(order(size))
        },
    )
}

fn knobs() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..=6u64).prop_map(|value| Step::SetKnob(Knob::PcpBatchScaleMax, value)),
        prop::sample::select(vec![0, 8, 50, 5000])
            .prop_map(|value| Step::SetKnob(Knob::PercpuPagelistHighFraction, value)),
        prop::sample::select(vec![0, 1, 64, 1024, 8192, i32::MAX as u64])
            .prop_map(|value| Step::SetKnob(Knob::MinFreeKbytes, value)),
        prop::sample::select(vec![1, 10, 3000])
            .prop_map(|value| Step::SetKnob(Knob::WatermarkScaleFactor, value)),
        prop::sample::select(vec![0, 15_000, i32::MAX as u64])
            .prop_map(|value| Step::SetKnob(Knob::WatermarkBoostFactor, value)),
        prop::sample::select(vec![0, 1, 32, 256])
            .prop_map(|value| Step::SetKnob(Knob::LowmemReserveDma32, value)),
        (0..=2u64).prop_map(|value| Step::SetKnob(Knob::TransparentHugepage, value)),
        (0..=2u64).prop_map(|value| Step::SetKnob(Knob::NumaZonelistOrder, value)),
        prop::sample::select(vec![0, 1, 2, 64]).prop_map(|value| Step::SetKnob(Knob::Arenas, value)),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => requests().prop_map(Step::Alloc),
        30 => any::<usize>().prop_map(Step::Free),
        3 => (1..40usize).prop_map(Step::FreeBatch),
        3 => (0..40_000u32, 0..=10u8).prop_map(|(pfn, order)| Step::FreeAnything(pfn, order)),
        3 => any::<usize>().prop_map(Step::FreeAgain),
        3 => any::<usize>().prop_map(Step::Split),
        5 => (0..4u16).prop_map(Step::SetCpu),
        3 => (0..4u16).prop_map(Step::Tick),
        1 => (0..3u16).prop_map(Step::Kswapd),
        1 => (0..3u16, any::<bool>()).prop_map(|(node, active)| Step::Reclaim(node, active)),
        1 => Just(Step::DrainAll),
        1 => (0..4u16).prop_map(Step::DrainCpu),
        3 => knobs(),
        2 => (1..9u32).prop_map(Step::Waiters),
    ]
}

fn run(model: &mut Model, step: &Step) {
    let cpus = model.mm.topology().cpus.len() as u16;
    match *step {
        Step::Alloc(request) => {
            let _ = model.alloc(request);
        }
        Step::Free(index) => {
            if let Some(block) = model.pick(index) {
                model.free(block);
            }
        }
        Step::FreeBatch(count) => free_batch(model, count),
        Step::FreeAnything(pfn, size) => model.free_anything(Pfn(pfn), order(size)),
        Step::FreeAgain(index) => model.free_again(index),
        Step::Split(index) => {
            if let Some(block) = model.pick(index) {
                model.split(block);
            }
        }
        Step::SetCpu(cpu) => model.mm.machine().set_cpu(Cpu(cpu % cpus)),
        Step::Tick(cpu) => model.mm.vmstat_tick(Cpu(cpu % cpus)),
        Step::Kswapd(node) => model.mm.reclaim().kswapd(Node(node)),
        Step::Reclaim(node, active) => {
            let state = if active { ReclaimState::Active } else { ReclaimState::Idle };
            model.mm.pages().set_reclaim_active(Node(node), state);
        }
        Step::DrainAll => model.mm.drain_all(),
        Step::DrainCpu(cpu) => model.mm.pages().drain_cpu(Cpu(cpu % cpus)),
        Step::Waiters(looks) => model.mm.machine().pretend_waiters(looks),
        Step::SetKnob(knob, value) => {
            let taken = model.mm.policy().check_knob(knob, value);
            assert_eq!(model.mm.set_knob(knob, value), taken);
        }
    }
}

fn free_batch(model: &mut Model, count: usize) {
    let blocks: Vec<(Pfn, Order)> =
        model.held.iter().take(count).map(|(&pfn, &order)| (Pfn(pfn), order)).collect();
    for &block in &blocks {
        model.give_up(block);
    }
    assert_eq!(model.mm.free_batch(&blocks), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_handed_out_is_whole_apart_and_comes_back(
        topology in topologies(),
        policy in policies(),
        knobs in boot_knobs(),
        steps in prop::collection::vec(steps(), 1..400),
    ) {
        let mut model = Model::new(Mm::new(Bare::default(), topology, policy, knobs).unwrap());
        let boot = free_blocks(&model.mm);
        for (number, step) in steps.iter().enumerate() {
            run(&mut model, step);
            if number % 16 == 0 {
                model.check();
            }
        }
        model.free_all();
        model.check();
        model.mm.drain_all();
        model.check();
        prop_assert_eq!(model.mm.views().memory_use().free, model.mm.views().memory_use().managed);
        assert_as_after_boot(&free_blocks(&model.mm), &boot);
    }

    /// All memory is asked for, one way; then it is freed, and the next user gets as much.
    #[test]
    fn memory_that_is_used_up_comes_back(
        topology in topologies(),
        policy in policies(),
        knobs in boot_knobs(),
        request in requests(),
        knob in knobs(),
    ) {
        let mut model = Model::new(Mm::new(Bare::default(), topology, policy, knobs).unwrap());
        run(&mut model, &knob);
        let boot = free_blocks(&model.mm);
        let first = use_up(&mut model, request);
        model.check();
        model.free_all();
        model.mm.drain_all();
        for node in 0..3 {
            model.mm.reclaim().kswapd(Node(node));
        }
        model.check();
        assert_as_after_boot(&free_blocks(&model.mm), &boot);
        let again = use_up(&mut model, request);
        model.check();
        prop_assert!(again + slack(&model) >= first, "{} blocks, and then only {}", first, again);
    }
}

/// A CPU that told of more allocations than there were pages, while another holds the frees back, leaves the zone's
/// counter below zero. The sum is right all the same.
#[test]
fn a_counter_below_zero_adds_up() {
    let mut model = small(0, 3, 2, "linux-6.18");
    for _ in 0..3 {
        model.alloc(Request::USER).unwrap();
    }
    model.mm.machine().set_cpu(Cpu(1));
    model.free_all();
    model.mm.pages().drain_cpu(Cpu(1));
    model.mm.machine().set_cpu(Cpu(0));
    while model.alloc(Request::USER).is_ok() {}
    assert!(!model.held.is_empty());
    assert_eq!(model.mm.zones()[0].free_pages(), 0, "the counter itself is below zero");
    model.check();
}

/// Blocks before a wrong one are freed, as many as were counted, and the pageset's lock with it; it and those after it are not.
#[test]
fn a_batch_ends_at_a_wrong_block() {
    let mut model = small(0, 4096, 2, "linux-6.18");
    let orders = [0, 0, 4, 0, 0].map(order);
    let requests = orders.map(|order| Request::KERNEL.of_order(order));
    let blocks: Vec<(Pfn, Order)> =
        requests.iter().map(|request| (model.alloc(*request).unwrap(), request.order)).collect();
    let wrong = (blocks[3].0, order(1));
    let batch = [blocks[0], blocks[1], blocks[2], wrong, blocks[4]];
    let pgfree = |model: &Model| -> u64 {
        let vmstat = model.mm.views().vmstat();
        vmstat.lines().find_map(|line| line.strip_prefix("pgfree ")).unwrap().parse().unwrap()
    };
    let before = pgfree(&model);
    assert_eq!(model.mm.free_batch(&batch), Err(FreeError::WrongOrder(wrong.0, Order::ZERO)));
    assert_eq!(pgfree(&model) - before, 1 + 1 + 16);
    for block in &blocks[..3] {
        model.give_up(*block);
    }
    model.free_all();
    model.check();
}

fn use_up(model: &mut Model, request: Request) -> u64 {
    let before = model.allocations;
    while model.alloc(request).is_ok() {}
    model.allocations - before
}

/// Blocks by which two users may differ: what CPUs hold back of the counters that watermarks are compared with, and
/// pages on other CPUs' lists.
fn slack(model: &Model) -> u64 {
    let (cpus, zones) = (model.mm.topology().cpus.len() as u64, model.mm.zones().len() as u64);
    zones * (cpus * 64 + 512)
}
