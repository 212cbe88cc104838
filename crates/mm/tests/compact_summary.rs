//! Compaction by what is known of pageblocks (`+compact-summary`): it empties the cheapest block, moves nothing in vain, and
//! succeeds as long as there is a block that can be emptied.
#![cfg(not(shuttle))]

mod common;

use std::sync::Arc;

use common::order;
use freehold_mm::vm::{AddressSpace, MapSpec, Pinned, Touch, Vpn};
use freehold_mm::{
    Bare, Cpu, CpuSpec, Knob, Knobs, MigrateType, Mm, Node, NodeSpec, Order, Pfn, Policy, Request, Topology,
    WordSize, ZoneKind, ZoneSpec,
};
use proptest::prelude::*;

const BLOCK: u32 = Order::PAGEBLOCK.pages();

const POLICIES: [&str; 4] = [
    "linux-6.18+compact-summary",
    "linux-5.15+compact-summary",
    "linux-6.6+arenas+touch+compact-summary",
    "freehold",
];

/// One Normal zone of so many pageblocks, two CPUs, small pages only, hardly a reserve.
fn machine(policy: &str, blocks: u32) -> Mm<Bare> {
    let pages = blocks * BLOCK;
    let zone =
        ZoneSpec { kind: ZoneKind::Normal, start: Pfn(0), spanned: pages, present: pages, managed: pages };
    let topology = Topology {
        word: WordSize::Bits64,
        nodes: vec![NodeSpec { zones: vec![zone] }],
        cpus: vec![CpuSpec { node: Node(0), cache_slice: 0 }; 2],
        distance: vec![vec![10]],
    };
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 128).unwrap();
    knobs.set(Knob::WatermarkScaleFactor, 1).unwrap();
    knobs.set(Knob::TransparentHugepage, 0).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
}

fn counter(mm: &Mm<Bare>, name: &str) -> u64 {
    mm.views().counters().0.iter().filter(|(key, _)| key.starts_with(name)).map(|(_, value)| value).sum()
}

/// A program that has touched nearly all memory; gives it, and where its pages begin and how many there are.
fn full(mm: &Mm<Bare>, pages: u32) -> (Arc<AddressSpace<Bare>>, Vpn) {
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    // The last ones may not be there: the reserve is nobody's.
    let _ = mm.spaces().populate(&space, at, pages, Touch::Write);
    mm.lru().lru_drain_all();
    (space, at)
}

/// Unmaps the pages of `space` whose frames `goes` names.
fn punch(mm: &Mm<Bare>, space: &AddressSpace<Bare>, (at, pages): (Vpn, u32), goes: impl Fn(Pfn) -> bool) {
    for page in 0..pages {
        let vpn = Vpn(at.0 + page);
        if space.access(vpn, Touch::Read).is_some_and(&goes) {
            mm.spaces().munmap(space, vpn, 1);
        }
    }
    mm.lru().lru_drain_all();
    mm.drain_all();
}

fn huge(mm: &Mm<Bare>) -> Option<Pfn> {
    mm.alloc(Request::USER.of_order(Order::PAGEBLOCK)).ok()
}

fn free_all(mm: &Mm<Bare>, blocks: Vec<Pfn>, order: Order) {
    for pfn in blocks {
        mm.free(pfn, order).unwrap();
    }
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn the_cheapest_block_is_emptied_and_nothing_else_moves() {
    for policy in POLICIES {
        let mm = machine(policy, 16);
        let pages = 15 * BLOCK;
        let (space, at) = full(&mm, pages);
        // What is left, too, so that there is no whole block.
        let rest: Vec<Pfn> = std::iter::from_fn(|| {
            mm.pages().steps().rmqueue(mm.zones()[0].id(), Order::ZERO, MigrateType::Movable)
        })
        .take((BLOCK - 64) as usize)
        .collect();
        // Block 5 loses three quarters of its pages, the others every fourth.
        let goes = |pfn: Pfn| if pfn.0 / BLOCK == 5 { pfn.0 % 4 != 0 } else { pfn.0 % 4 == 0 };
        punch(&mm, &space, (at, pages), goes);
        check(&mm);
        assert_eq!(huge(&mm), Some(Pfn(5 * BLOCK)), "{policy}");
        assert_eq!(counter(&mm, "compact_pages_moved"), u64::from(BLOCK / 4), "{policy}");
        assert_eq!(counter(&mm, "freehold_compact_completing"), u64::from(BLOCK / 4), "{policy}");
        check(&mm);
        mm.spaces().exit(&space);
        free_all(&mm, rest, Order::ZERO);
        mm.free(Pfn(5 * BLOCK), Order::PAGEBLOCK).unwrap();
        check(&mm);
    }
}

/// A block with a pinned page is passed over before anything of it has moved, and left alone for a while.
#[test]
fn a_pinned_page_costs_no_moves() {
    let mm = machine(POLICIES[0], 16);
    let pages = 16 * BLOCK - 200;
    let (space, at) = full(&mm, pages);
    let goes = |pfn: Pfn| if pfn.0 / BLOCK == 5 { pfn.0 % 4 != 0 } else { pfn.0 % 4 == 0 };
    punch(&mm, &space, (at, pages), goes);
    let pinned: Vec<Pinned> = (0..pages)
        .filter_map(|page| {
            let vpn = Vpn(at.0 + page);
            let pfn = space.access(vpn, Touch::Read)?;
            (pfn.0 == 5 * BLOCK).then(|| mm.rmap().pin_page(&space, vpn, Touch::Read).unwrap())
        })
        .collect();
    assert_eq!(pinned.len(), 1);
    let first = huge(&mm).unwrap();
    assert_ne!(first.0, 5 * BLOCK);
    assert_eq!(counter(&mm, "compact_pages_moved"), u64::from(BLOCK - BLOCK / 4));
    assert_eq!(counter(&mm, "freehold_compact_put_back"), 0, "it was seen before anything was isolated");
    check(&mm);
    for pinned in pinned {
        mm.rmap().unpin_page(pinned);
    }
    mm.spaces().exit(&space);
}

/// Every block but one has a pinned page, which no count knows of, and that one is the dearest: it is found, and pages of no other
/// move.
#[test]
fn the_one_block_without_a_pin_is_found() {
    let mm = machine(POLICIES[0], 200);
    let pages = 200 * BLOCK - 200;
    let (space, at) = full(&mm, pages);
    let goes = |pfn: Pfn| pfn.0 % BLOCK != 0 && pfn.0 % if pfn.0 / BLOCK == 77 { 8 } else { 4 } == 0;
    punch(&mm, &space, (at, pages), goes);
    let mut pinned = Vec::new();
    for page in 0..pages {
        let vpn = Vpn(at.0 + page);
        let pins = |pfn: Pfn| pfn.0 % BLOCK == 0 && pfn.0 / BLOCK != 77;
        if space.access(vpn, Touch::Read).is_some_and(pins) {
            pinned.push(mm.rmap().pin_page(&space, vpn, Touch::Read).unwrap());
        }
    }
    assert!(pinned.len() > 190);
    assert_eq!(huge(&mm), Some(Pfn(77 * BLOCK)));
    let moved = counter(&mm, "compact_pages_moved");
    assert_eq!(moved, counter(&mm, "freehold_compact_completing"));
    assert!(moved > u64::from(BLOCK) * 3 / 4);
    for pinned in pinned {
        mm.rmap().unpin_page(pinned);
    }
    mm.spaces().exit(&space);
    check(&mm);
}

/// As long as there are free pages for it and a block without pages that must stay, there is a huge page.
#[test]
fn there_is_a_block_as_long_as_one_can_be_emptied() {
    for policy in POLICIES {
        let mm = machine(policy, 32);
        let pages = 32 * BLOCK - 200;
        let (space, at) = full(&mm, pages);
        punch(&mm, &space, (at, pages), |pfn| pfn.0 % 3 == 0);
        let free = mm.views().memory_use().free;
        let blocks: Vec<Pfn> = std::iter::from_fn(|| huge(&mm)).collect();
        // The last one leaves less than the reserve, or than what CPUs have not told yet.
        let possible = (free / u64::from(BLOCK)) as usize;
        assert!(blocks.len() + 1 >= possible, "{policy}: {} of {possible}", blocks.len());
        let (moved, completing) =
            (counter(&mm, "compact_pages_moved"), counter(&mm, "freehold_compact_completing"));
        assert_eq!(moved, completing, "{policy}");
        check(&mm);
        mm.spaces().exit(&space);
        free_all(&mm, blocks, Order::PAGEBLOCK);
        check(&mm);
    }
}

/// Kernel pages all over: no block can be whole, and it is told without a move.
#[test]
fn where_every_block_has_a_fixed_page_nothing_moves() {
    let mm = machine(POLICIES[0], 16);
    let kernel: Vec<Pfn> =
        std::iter::from_fn(|| mm.alloc(Request::KERNEL).ok()).take(16 * BLOCK as usize - 400).collect();
    let (stays, goes): (Vec<Pfn>, Vec<Pfn>) = kernel.into_iter().partition(|pfn| pfn.0 % 64 == 0);
    free_all(&mm, goes, Order::ZERO);
    mm.drain_all();
    let (space, _at) = full(&mm, 4 * BLOCK);
    check(&mm);
    assert_eq!(huge(&mm), None);
    assert_eq!(counter(&mm, "compact_pages_moved"), 0);
    check(&mm);
    mm.spaces().exit(&space);
    free_all(&mm, stays, Order::ZERO);
    check(&mm);
}

#[derive(Clone, Debug)]
enum Step {
    Map(u32),
    Unmap(usize, u32, u32),
    Alloc(Request),
    Free(usize),
    Pin(usize, u32),
    Unpin,
    SetCpu(u16),
    DrainAll,
    Kcompactd,
    CompactNode,
}

fn steps() -> impl Strategy<Value = Step> {
    let types = prop::sample::select(&MigrateType::ALL[..MigrateType::PCP_COUNT]);
    let orders = prop_oneof![8 => 0..=3u8, 4 => 4..=8u8, 6 => 9..=9u8, 1 => 10..=10u8];
    let request = (orders, types)
        .prop_map(|(size, migratetype)| Request { migratetype, ..Request::USER }.of_order(order(size)));
    prop_oneof![
        10 => (1..700u32).prop_map(Step::Map),
        20 => (any::<usize>(), 0..2000u32, 1..40u32).prop_map(|(map, page, pages)| Step::Unmap(map, page, pages)),
        20 => request.prop_map(Step::Alloc),
        10 => any::<usize>().prop_map(Step::Free),
        4 => (any::<usize>(), 0..2000u32).prop_map(|(map, page)| Step::Pin(map, page)),
        2 => Just(Step::Unpin),
        3 => (0..2u16).prop_map(Step::SetCpu),
        1 => Just(Step::DrainAll),
        1 => Just(Step::Kcompactd),
        1 => Just(Step::CompactNode),
    ]
}

/// What a program and the kernel have.
struct Life {
    mm: Mm<Bare>,
    space: Arc<AddressSpace<Bare>>,
    /// Where the program's mappings begin, and their pages.
    maps: Vec<(Vpn, u32)>,
    held: Vec<(Pfn, Order)>,
    pinned: Vec<Pinned>,
}

impl Life {
    fn new(policy: &str, first: u32) -> Self {
        let mm = machine(policy, 8);
        let (space, at) = full(&mm, first);
        Self { mm, space, maps: vec![(at, first)], held: vec![], pinned: vec![] }
    }

    fn step(&mut self, step: &Step) {
        let mm = &self.mm;
        match *step {
            Step::Map(pages) => {
                // Where memory runs short, some are not there.
                let at = mm.spaces().mmap(&self.space, MapSpec::anonymous(pages)).unwrap();
                let _ = mm.spaces().populate(&self.space, at, pages, Touch::Write);
                self.maps.push((at, pages));
            }
            Step::Unmap(map, page, pages) => {
                let (at, size) = self.maps[map % self.maps.len()];
                let page = page % size;
                mm.spaces().munmap(&self.space, Vpn(at.0 + page), pages.min(size - page));
            }
            Step::Alloc(request) => {
                if let Ok(pfn) = mm.alloc(request) {
                    assert_eq!(pfn.0 % request.order.pages(), 0);
                    self.held.push((pfn, request.order));
                }
            }
            Step::Free(index) if !self.held.is_empty() => {
                let (pfn, order) = self.held.swap_remove(index % self.held.len());
                assert_eq!(mm.free(pfn, order), Ok(()));
            }
            Step::Pin(map, page) => {
                let (at, size) = self.maps[map % self.maps.len()];
                let vpn = Vpn(at.0 + page % size);
                if self.space.access(vpn, Touch::Read).is_some() {
                    self.pinned.push(mm.rmap().pin_page(&self.space, vpn, Touch::Read).unwrap());
                }
            }
            Step::Unpin => self.pinned.pop().into_iter().for_each(|pinned| mm.rmap().unpin_page(pinned)),
            Step::SetCpu(cpu) => mm.machine().set_cpu(Cpu(cpu)),
            Step::DrainAll => mm.drain_all(),
            Step::Kcompactd => mm.compaction().kcompactd(Node(0)),
            Step::CompactNode => mm.compaction().compact_node(Node(0)),
            Step::Free(_) => {}
        }
        check(mm);
    }

    /// All end, and everything comes back.
    fn end(self) {
        let mm = &self.mm;
        self.pinned.into_iter().for_each(|pinned| mm.rmap().unpin_page(pinned));
        mm.spaces().exit(&self.space);
        self.held.into_iter().for_each(|(pfn, order)| mm.free(pfn, order).unwrap());
        mm.lru().lru_drain_all();
        mm.drain_all();
        check(mm);
        assert_eq!(mm.views().memory_use().free, mm.views().memory_use().managed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_every_count_is_right(
        policy in prop::sample::select(&POLICIES[..]),
        first in 4..8 * BLOCK,
        steps in prop::collection::vec(steps(), 1..200),
    ) {
        let mut life = Life::new(policy, first);
        for step in &steps {
            life.step(step);
        }
        life.end();
    }
}
