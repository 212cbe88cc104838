//! Compaction through public doors: memory in pieces becomes blocks, what cannot move stays, and nothing is lost.

mod common;

use freehold_mm::bare::Moment;
use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{AddressSpace, MapSpec, Pinned, Touch, Vpn};
use freehold_mm::{
    AllocError, Bare, CompactStep, Knobs, Mm, Node, NodeSize, Order, Policy, Request, Topology, Traced,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// Kernels on both sides of each change of compaction, and what they can have on top.
const POLICIES: &[&str] = &[
    "linux-3.15",
    "linux-3.16",
    "linux-3.18",
    "linux-4.20",
    "linux-5.1",
    "linux-6.18",
    "linux-3.16+compact-whole-direct",
    "linux-3.16+compact-whole-async+compact-skip",
    "linux-3.16+compact-skip",
    "linux-3.16+compact-budget",
    "linux-3.16+compact-tuned-budget",
    "linux-3.16+compact-defer-async",
    "linux-3.16+compact-capture",
    "linux-3.16+compact-thp-suitable",
    "linux-6.18+arenas",
    "freehold",
];

/// 512 MiB in one zone.
fn machine(policy: &str) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 512 << 20, cpus: 2 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
}

/// Whether a page stays, of which one in `keep` does, at irregular distances.
fn stays(page: u32, keep: u32) -> bool {
    let mixed = page.wrapping_mul(0x9e37_79b9);
    (mixed >> 16) % keep == 0
}

/// Small pages over all but the last 32 MiB of free memory, of which one in `keep` stays.
fn in_pieces(mm: &Mm<Bare>, keep: u32) -> (Arc<AddressSpace<Bare>>, Vpn, u32) {
    let free = mm.views().memory_use().free as u32;
    let space = mm.spaces().new_space();
    let pages = (free - (32 << 8)) & !(PAGEBLOCK_PAGES - 1);
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    mm.spaces().populate(&space, start, pages, Touch::Write).unwrap();
    // The rest is taken in whole blocks, so that only pieces are left.
    for page in (0..pages).filter(|&page| !stays(page, keep)) {
        mm.spaces().munmap(&space, start.add(page), 1);
    }
    mm.lru().lru_drain_all();
    mm.drain_all();
    (space, start, pages)
}

/// All blocks of a huge page's size that are free, so that none is left.
fn take_blocks(mm: &Mm<Bare>) -> Vec<freehold_mm::Pfn> {
    let request = Request { urgency: freehold_mm::Urgency::Never, ..Request::USER };
    std::iter::from_fn(|| mm.alloc(request.of_order(Order::PAGEBLOCK)).ok()).collect()
}

/// Pins one in 128 of the pages that stay, and one more wherever a block's frames would have none.
fn pin_in_each_block(
    mm: &Mm<Bare>,
    space: &AddressSpace<Bare>,
    (start, pages): (Vpn, u32),
) -> Vec<(Vpn, Pinned)> {
    let mut pins: Vec<(Vpn, Pinned)> = vec![];
    let mut blocks = BTreeSet::new();
    let mut pin = |page: u32| {
        let page = start.add(page);
        let pin = mm.rmap().pin_page(space, page, Touch::Write).unwrap();
        if blocks.insert(pin.frame().0 / PAGEBLOCK_PAGES) || stays(page.0 - start.0, 128) {
            pins.push((page, pin));
        } else {
            mm.rmap().unpin_page(pin);
        }
    };
    (0..pages).filter(|&page| stays(page, 128)).for_each(&mut pin);
    (0..pages).filter(|&page| stays(page, 4) && !stays(page, 128)).for_each(&mut pin);
    pins
}

fn counter(mm: &Mm<Bare>, name: &str) -> u64 {
    mm.views().counters().get(name)
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn pieces_become_blocks_under_every_policy() {
    for policy in POLICIES {
        let mm = machine(policy);
        let (space, start, pages) = in_pieces(&mm, 4);
        let whole = take_blocks(&mm);
        let got: Vec<_> = (0..16).filter_map(|_| mm.alloc(Request::THP).ok()).collect();
        assert_eq!(got.len(), 16, "{policy}");
        assert!(counter(&mm, "compact_stall") > 0, "{policy}");
        assert!(counter(&mm, "compact_pages_moved") >= 16 * u64::from(PAGEBLOCK_PAGES) / 8, "{policy}");
        let left = (0..pages).filter(|&page| stays(page, 4)).count() as u64;
        assert_eq!(space.resident_pages(), left, "{policy}: no page is lost");
        check(&mm);
        for block in got.into_iter().chain(whole) {
            mm.free(block, Order::PAGEBLOCK).unwrap();
        }
        assert_eq!(
            mm.spaces().touch_page(&space, start, Touch::Read).unwrap().1,
            None,
            "{policy}: it is where it was"
        );
        mm.spaces().exit(&space);
        mm.lru().lru_drain_all();
        assert_eq!(mm.views().memory_use().held(), 0, "{policy}");
        check(&mm);
    }
}

#[test]
fn pinned_pages_stay_and_their_blocks_too() {
    for policy in POLICIES {
        let mm = machine(policy);
        let (space, start, pages) = in_pieces(&mm, 4);
        let pins = pin_in_each_block(&mm, &space, (start, pages));
        let whole = take_blocks(&mm);
        assert_eq!(mm.alloc(Request::THP), Err(AllocError::WouldWait), "{policy}");
        mm.compaction().compact_node(Node(0));
        for (page, pin) in &pins {
            let now = mm.rmap().pin_page(&space, *page, Touch::Read).unwrap();
            assert_eq!(now.frame(), pin.frame(), "{policy}: a pinned page stays");
            mm.rmap().unpin_page(now);
        }
        check(&mm);
        for (_, pin) in pins {
            mm.rmap().unpin_page(pin);
        }
        for block in whole {
            mm.free(block, Order::PAGEBLOCK).unwrap();
        }
        mm.spaces().exit(&space);
        check(&mm);
    }
}

#[test]
fn all_of_a_node_is_compacted_by_hand() {
    for policy in ["linux-3.15", "linux-6.18", "freehold"] {
        let mm = machine(policy);
        let (_space, _, _) = in_pieces(&mm, 4);
        let zone = &mm.zones()[mm.zones().len() - 1];
        let whole = take_blocks(&mm);
        assert!(mm.compaction().fragmentation_index(zone, Order::PAGEBLOCK) > 500, "{policy}");
        mm.compaction().compact_node(Node(0));
        assert_eq!(mm.compaction().fragmentation_index(zone, Order::PAGEBLOCK), -1000, "{policy}");
        // Three quarters of the pieces' memory is free.
        assert!(take_blocks(&mm).len() > 130, "{policy}");
        assert!(!whole.is_empty());
        check(&mm);
    }
}

#[test]
fn whole_blocks_or_nothing() {
    // One page of each block is pinned, at its end: what the scanner isolates before it comes there is in vain.
    let moved = |policy: &str| {
        let mm = machine(policy);
        let (space, start, pages) = in_pieces(&mm, 8);
        let mut pins = vec![];
        for page in (0..pages).filter(|&page| stays(page, 8)) {
            let pin = mm.rmap().pin_page(&space, start.add(page), Touch::Write).unwrap();
            if pin.frame().0 % PAGEBLOCK_PAGES >= PAGEBLOCK_PAGES - 24 {
                pins.push(pin);
            } else {
                mm.rmap().unpin_page(pin);
            }
        }
        let _whole = take_blocks(&mm);
        // The block where the space ends has no pin.
        let spare = std::iter::from_fn(|| mm.alloc(Request::THP).ok()).count();
        assert!(spare < 4, "{policy}: {spare}");
        (counter(&mm, "compact_pages_moved"), counter(&mm, "freehold_compact_put_back"))
    };
    assert!(moved("linux-3.16").0 > 1000);
    assert!(moved("linux-4.20").0 > 100, "batches before the failing one have moved");
    let (whole, put_back) = moved("linux-3.16+compact-whole-direct+compact-skip+compact-no-resched");
    assert!(whole < 200 && put_back > 1000, "{whole} moved, {put_back} put back");
}

#[test]
fn failures_put_attempts_off() {
    let stalls = |policy: &str| {
        let mm = machine(policy);
        let (space, start, pages) = in_pieces(&mm, 4);
        let _pins: Vec<Pinned> = (0..pages)
            .filter(|&page| stays(page, 64))
            .map(|page| mm.rmap().pin_page(&space, start.add(page), Touch::Write).unwrap())
            .collect();
        let _whole = take_blocks(&mm);
        (0..40).for_each(|_| assert!(mm.alloc(Request::THP).is_err()));
        counter(&mm, "compact_stall")
    };
    let sync = stalls("linux-3.15");
    assert!((5..40).contains(&sync), "{sync}: 1, 3, 7, 15, 31");
    assert!(stalls("linux-3.16") >= 40, "asynchronous compaction is never put off");
    assert!(stalls("linux-3.16+compact-defer-async") < 20);
}

#[test]
fn a_census_counts_every_page_of_a_block_once() {
    let mm = machine("linux-6.18");
    let (space, start, pages) = in_pieces(&mm, 4);
    let middle = (pages / 2..pages).find(|&page| stays(page, 4)).unwrap();
    let pin = mm.rmap().pin_page(&space, start.add(middle), Touch::Write).unwrap();
    let all = || mm.zones().iter().flat_map(|zone| mm.emptying().block_contents(zone));
    assert!(all().all(|block| block.free + block.movable + block.fixed == PAGEBLOCK_PAGES));
    let movable: u64 = all().map(|block| u64::from(block.movable)).sum();
    let outside = space.resident_pages() - 1 - movable;
    assert!(outside < 4 * u64::from(PAGEBLOCK_PAGES), "{outside} pages in blocks at the ends of zones");
    let of_pin = all().find(|block| block.start == pin.frame().align_down(Order::PAGEBLOCK)).unwrap();
    assert!(of_pin.fixed >= 1 && of_pin.movable > 0);
    mm.rmap().unpin_page(pin);
    assert_eq!(all().map(|block| u64::from(block.movable)).sum::<u64>(), movable + 1, "it can move now");
}

/// What compaction for a huge page does, step by step, where of all memory every second page is free.
fn steps_of_a_request(policy: &str) -> Vec<CompactStep> {
    let nodes = [NodeSize { bytes: 512 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap();
    let space = mm.spaces().new_space();
    let pages = mm.views().memory_use().free as u32 - (32 << 8);
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    mm.spaces().populate(&space, start, pages, Touch::Write).unwrap();
    (0..pages).step_by(2).for_each(|page| mm.spaces().munmap(&space, start.add(page), 1));
    mm.lru().lru_drain_all();
    mm.drain_all();
    let _whole = take_blocks(&mm);
    let steps: Rc<RefCell<Vec<CompactStep>>> = Rc::default();
    let seen = steps.clone();
    mm.machine().watch(move |moment| {
        if let Moment::Traces(Traced::Compaction(step)) = moment {
            seen.borrow_mut().push(step);
        }
    });
    mm.alloc(Request::THP).unwrap();
    check(&mm);
    steps.take()
}

/// Those of one event: where they began, and what they looked at and took.
fn of_event(steps: &[CompactStep], event: &str) -> Vec<(u32, u32, u32)> {
    let named = steps.iter().filter(|step| step.event == event);
    named.map(|step| (step.frames.0.0, step.scanned, step.taken)).collect()
}

/// As a trace of 6.12 shows it (docs/compaction.md).
#[test]
fn since_5_1_a_block_that_is_come_to_again_is_emptied_at_once() {
    let isolated = of_event(&steps_of_a_request("linux-6.18"), "mm_compaction_isolate_migratepages");
    let found: Vec<_> = isolated.into_iter().filter(|&(_, _, taken)| taken > 0).collect();
    let [(first, _, 32), (again, looked, taken), ..] = found[..] else { panic!("{found:?}") };
    assert_eq!(first / PAGEBLOCK_PAGES, again / PAGEBLOCK_PAGES);
    assert_eq!((first + 1).next_multiple_of(PAGEBLOCK_PAGES) - again, looked);
    assert!(taken.abs_diff(224) <= 1, "{found:?}");
    let before = of_event(&steps_of_a_request("linux-5.0"), "mm_compaction_isolate_migratepages");
    assert!(before.iter().all(|&(_, _, taken)| taken <= 32), "{before:?}");
}

/// The block that was made is noticed when the next pages have moved: the scanner stands within the next block then.
#[test]
fn since_6_3_compaction_goes_a_round_too_far() {
    let ends_in_block = |policy: &str| {
        let ends = of_event(&steps_of_a_request(policy), "mm_compaction_end");
        ends.last().unwrap().0 % PAGEBLOCK_PAGES != 0
    };
    assert_eq!(["linux-6.2", "linux-6.3", "linux-6.18"].map(ends_in_block), [false, true, true]);
}

/// From the lists a piece at a time; the walk begins where these have none.
#[test]
fn since_5_1_frames_come_from_the_free_lists_piece_by_piece() {
    for policy in ["linux-6.3", "linux-6.18"] {
        let steps = steps_of_a_request(policy);
        let mut taken = of_event(&steps, "mm_compaction_fast_isolate_freepages");
        taken.retain(|&(_, _, taken)| taken > 0);
        assert!(taken.iter().all(|&(_, _, taken)| taken.is_power_of_two()), "{steps:?}");
        let moved = of_event(&steps, "mm_compaction_migratepages");
        let all =
            |of: &[(u32, u32, u32)], which: fn(&(u32, u32, u32)) -> u32| of.iter().map(which).sum::<u32>();
        assert!(all(&taken, |step| step.2) >= all(&moved, |step| step.1), "{steps:?}");
    }
    assert!(of_event(&steps_of_a_request("linux-5.0"), "mm_compaction_fast_isolate_freepages").is_empty());
}

#[test]
fn since_6_4_blocks_that_are_passed_count_with_all_their_pages() {
    let scanned = |policy: &str| {
        let mm = machine(policy);
        let (_space, ..) = in_pieces(&mm, 64);
        mm.compaction().compact_node(Node(0));
        counter(&mm, "compact_migrate_scanned")
    };
    assert!(
        scanned("linux-6.4") > 4 * scanned("linux-6.3"),
        "{} {}",
        scanned("linux-6.4"),
        scanned("linux-6.3")
    );
}
