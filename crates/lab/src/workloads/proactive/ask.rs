//! Who asks for huge pages, and what it takes.

use mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use mm::vm::{FaultKind, MapSpec, Touch};
use mm::{Machine, Nanos, Node, Order, Pfn, Request};
use sim::{AccessMix, Pattern};

use super::fill::{Lying, free_pages};
use super::{Asks, Proactive};
use crate::stage::{Random, Stage};

/// Blocks that a driver got.
const GOT: &str = "hugepages_allocated";
/// How long who has nothing left to do sleeps at a time.
const NAP: Nanos = Nanos(50_000_000);

/// Waits, asks, gives everything back, and waits for the end.
pub(super) fn run(stage: &Stage, spec: Proactive, lying: Lying) {
    stage.tally.note(GOT, 0);
    let wait = u64::from(spec.settle_ms) * 1_000_000;
    while stage.machine().now().0 < wait && !stage.is_over() {
        stage.machine().sleep(NAP.min(Nanos(wait)));
    }
    let mut pause =
        Pause { mean: Nanos(u64::from(spec.pause_us) * 1000), random: Random::new(stage.machine()) };
    match spec.asks {
        Asks::Driver => drive(stage, &mut pause),
        Asks::Java => pretouch(stage, &mut pause),
        Asks::ByHand => by_hand(stage),
        Asks::Nobody => {}
    }
    while !stage.is_over() {
        stage.machine().sleep(NAP);
    }
    lying.go(stage);
}

/// What is between requests.
struct Pause {
    mean: Nanos,
    random: Random,
}

impl Pause {
    fn take(&mut self, stage: &Stage) {
        if self.mean.0 > 0 {
            stage.machine().sleep(Nanos(self.mean.0 / 2 + self.random.below(self.mean.0)));
        }
    }
}

fn nodes(stage: &Stage) -> impl Iterator<Item = Node> {
    (0..stage.mm.topology().nodes.len() as u16).map(Node)
}

/// Blocks of huge pages that all free memory would make.
fn free_blocks(stage: &Stage) -> u64 {
    nodes(stage).map(|node| free_pages(stage, node)).sum::<u64>() / u64::from(PAGEBLOCK_PAGES)
}

/// A driver takes blocks until there are none.
fn drive(stage: &Stage, pause: &mut Pause) {
    let free = free_blocks(stage);
    let request = Request { allowed: stage.allowed, ..Request::KERNEL.of_order(Order::PAGEBLOCK) };
    let mut blocks: Vec<Pfn> = vec![];
    while !stage.is_over() {
        let start = stage.machine().now();
        let Ok(block) = stage.mm.alloc(request) else { break };
        stage.tally.sampled("hugepage", (stage.machine().now().0 - start.0) as f64);
        stage.tally.note(GOT, 1);
        stage.tally.did(1);
        blocks.push(block);
        pause.take(stage);
    }
    if free > 0 {
        stage.tally.sampled("hugepage-share", 100.0 * blocks.len() as f64 / free as f64);
    }
    while !stage.is_over() {
        stage.machine().sleep(NAP);
    }
    for block in blocks {
        stage.mm.free(block, Order::PAGEBLOCK).expect("the driver had it");
    }
}

/// A program touches and writes a heap of nearly all that is free.
fn pretouch(stage: &Stage, pause: &mut Pause) {
    let space = stage.mm.spaces().new_space();
    // 700 GiB of 762.
    let blocks = (free_blocks(stage) * 700 / 762) as u32;
    let spec = MapSpec::anonymous((blocks * PAGEBLOCK_PAGES).max(1)).advised();
    let Ok(heap) = stage.mm.spaces().mmap(&space, spec) else {
        return stage.tally.could_not_get();
    };
    for block in 0..blocks {
        if stage.is_over() {
            break;
        }
        let start = stage.machine().now();
        let at = heap.add(block * PAGEBLOCK_PAGES);
        let touched = stage.mm.spaces().touch_page(&space, at, Touch::Write);
        let done = match touched {
            Ok((_, Some(FaultKind::Huge))) => true,
            Ok(_) => stage.mm.spaces().populate(&space, at.add(1), PAGEBLOCK_PAGES - 1, Touch::Write).is_ok(),
            Err(_) => false,
        };
        if !done {
            stage.tally.could_not_get();
            break;
        }
        write_once(stage);
        stage.tally.sampled("pretouch", (stage.machine().now().0 - start.0) as f64);
        stage.tally.did(1);
        pause.take(stage);
    }
    stage.mm.spaces().exit(&space);
}

/// What AlwaysPreTouch does: a store to each small page of 2 MiB.
fn write_once(stage: &Stage) {
    let node = stage.places[usize::from(stage.machine().cpu().0)].node;
    stage.machine().access(AccessMix {
        reads: 0,
        writes: u64::from(PAGEBLOCK_PAGES),
        pattern: Pattern::Random,
        working_set: u64::from(PAGEBLOCK_PAGES) * PAGE_SIZE,
        nodes: &[(Node(node), 1)],
    });
}

/// All memory is compacted, node by node.
fn by_hand(stage: &Stage) {
    for node in nodes(stage) {
        let start = stage.machine().now();
        stage.mm.compaction().compact_node(node);
        stage.tally.sampled("compact-node", (stage.machine().now().0 - start.0) as f64);
    }
    let blocks = stage.mm.views().free_blocks();
    let free: u64 = (0..).zip(blocks).map(|(order, count)| count << order).sum();
    let huge: u64 = (0..).zip(blocks).skip(9).map(|(order, count): (u32, u64)| count << order).sum();
    if free > 0 {
        stage.tally.sampled("huge-share", 100.0 * huge as f64 / free as f64);
    }
}
