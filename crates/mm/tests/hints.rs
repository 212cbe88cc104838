//! NUMA hints: what is marked faults once more, and what is never marked; and what a hint fault does by who uses a page.

mod common;

use freehold_mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use freehold_mm::tier::{
    Area, AreaHistory, Balancing, BalancingSettings, EARLY_PASSES, HintFault, HintGround, HintScan, Looker,
    Mode, PageRange, Users,
};
use freehold_mm::vm::mempolicy::MemPolicy;
use freehold_mm::vm::{AddressSpace, FaultKind, FileKind, MapSpec, Protection, SpaceId, Touch, Vpn};
use freehold_mm::{Bare, Knob, Knobs, Mm, Nanos, Node, NodeMask, NodeSize, Policy, Topology};

/// 256 MiB on two nodes, two CPUs; all is touched on node 0.
fn machine(huge: u64) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }, NodeSize { bytes: 128 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, huge).unwrap();
    Mm::new(Bare::default(), topology, Policy::default(), knobs).unwrap()
}

fn touch(mm: &Mm<Bare>, space: &AddressSpace<Bare>, vpn: Vpn, touch: Touch) -> Option<FaultKind> {
    mm.spaces().touch_page(space, vpn, touch).unwrap().1
}

/// Marks the `pages` from `start` on, as for a task at `home`; gives the pages marked and the huge ones among them.
fn hint(mm: &Mm<Bare>, space: &AddressSpace<Bare>, start: Vpn, pages: u32, home: Option<Node>) -> (u32, u32) {
    let hinted = mm.spaces().hint(space, (start, start.add(pages)), home, |_| true);
    (hinted.updates(), hinted.huge)
}

#[test]
fn what_is_marked_faults_once_and_is_as_it_was() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(100)).unwrap();
    mm.spaces().populate(&space, start, 50, Touch::Write).unwrap();
    assert_eq!(hint(&mm, &space, start, 100, None), (50, 0), "what is not there is not marked");
    assert_eq!(hint(&mm, &space, start, 100, None), (0, 0), "nor twice");
    assert!(mm.spaces().is_hinted(&space, start));
    assert_eq!(touch(&mm, &space, start, Touch::Write), Some(FaultKind::Hint));
    assert_eq!(touch(&mm, &space, start, Touch::Write), None);
    // Who moves, or is said anew what may be done with it, is not marked any more.
    mm.lru().lru_drain_all();
    mm.rmap().move_page(&space, start, Node(1)).unwrap();
    assert_eq!(mm.spaces().node_at(&space, start), Some(Node(1)));
    mm.spaces().protect(&space, start.add(1), 1, Protection::Read).unwrap();
    assert_eq!(touch(&mm, &space, start.add(1), Touch::Read), None);
    assert_eq!(space.counters().minor, 51);
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
}

#[test]
fn what_is_at_home_shared_by_a_fork_placed_or_only_read_is_passed_by() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(100)).unwrap();
    mm.spaces().populate(&space, start, 100, Touch::Write).unwrap();
    assert_eq!(hint(&mm, &space, start, 100, Some(Node(0))), (0, 0));
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!(hint(&mm, &space, start, 100, None), (0, 0), "both map it");
    touch(&mm, &child, start, Touch::Write);
    assert_eq!(hint(&mm, &child, start, 100, None), (1, 0), "a copy is the child's own");
    mm.spaces().exit(&child);
    mm.spaces().mbind(&space, start, 50, MemPolicy::Interleave(NodeMask::ALL)).unwrap();
    assert!(!mm.spaces().hint_area(&space, start).unwrap().is_scanned);
    assert_eq!(hint(&mm, &space, start, 50, None), (0, 0));
    let memory = mm.files().new_file(FileKind::Memory);
    let shared = mm.spaces().mmap(&space, MapSpec::shared(&memory, 10)).unwrap();
    touch(&mm, &space, shared, Touch::Write);
    assert_eq!(hint(&mm, &space, shared, 10, None), (0, 0), "shared memory has a policy of its own");
    let file = mm.files().new_file(FileKind::Disk);
    let text = mm.spaces().mmap(&space, MapSpec::private(&file, 10).protected(Protection::Read)).unwrap();
    touch(&mm, &space, text, Touch::Read);
    assert_eq!(hint(&mm, &space, text, 10, None), (0, 0));
    mm.spaces().exit(&space);
}

#[test]
fn a_huge_page_is_marked_whole_and_at_home_too() {
    let mm = machine(1);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    touch(&mm, &space, start, Touch::Write);
    assert_eq!(hint(&mm, &space, start, PAGEBLOCK_PAGES, Some(Node(0))), (PAGEBLOCK_PAGES, 1));
    assert_eq!(touch(&mm, &space, start.add(7), Touch::Write), Some(FaultKind::Hint));
    assert_eq!(touch(&mm, &space, start, Touch::Write), None);
    hint(&mm, &space, start, PAGEBLOCK_PAGES, None);
    mm.spaces().split_huge(&space, start);
    assert_eq!(touch(&mm, &space, start.add(9), Touch::Read), None, "its parts are not marked");
    mm.spaces().exit(&space);
}

/// Two fast nodes, and two mappings of 100 pages.
struct Two(Nanos);

impl HintGround for Two {
    fn now(&self) -> Nanos {
        self.0
    }

    fn area(&self, _: SpaceId, from: Vpn) -> Option<Area> {
        let areas = [0, 1000].map(|start| PageRange { start: Vpn(start), end: Vpn(start + 100) });
        let range = areas.into_iter().find(|range| range.end > from)?;
        Some(Area { range, is_scanned: true })
    }

    fn mark(&self, _: SpaceId, range: PageRange, _: impl Fn(Node) -> bool) -> u32 {
        range.pages()
    }

    fn is_fast(&self, _: Node) -> bool {
        true
    }

    fn room(&self, _: Node) -> u64 {
        u64::MAX
    }

    fn size(&self, _: Node) -> u64 {
        1 << 30
    }
}

const MS: u64 = 1_000_000;

fn settings() -> BalancingSettings {
    BalancingSettings {
        mode: Mode::Normal,
        delay: Nanos(100 * MS),
        period_min: Nanos(100 * MS),
        period_max: Nanos(60_000 * MS),
        window: 256 << 20,
        hot: Nanos(1000 * MS),
        rate_limit: 1 << 40,
    }
}

#[test]
fn a_window_goes_over_what_its_task_uses_and_one_mapping_more_if_there_is_nothing() {
    let mut scan = HintScan::new(SpaceId(0), Nanos(0), &settings());
    let mut history = AreaHistory::default();
    let who = Looker { task: 3, threads: 4 };
    let mut windows = vec![];
    for number in 1..=6 {
        if number == 6 {
            history.note_fault(Vpn(1000), 3);
        }
        let ground = Two(Nanos(number * 150 * MS));
        windows.push(scan.mark_by(who, &mut history, &ground, &settings()));
    }
    // In the first two passes all. Then one a window, for nothing else is left, until the pass is over; then what it has used,
    // and the other, which comes in the same way.
    assert_eq!(windows, [200, 200, 100, 100, 0, 200]);
}

#[test]
fn a_tasks_own_page_comes_at_once_and_a_shared_one_when_most_use_it_there() {
    let users = |passes, sharing| Users::Tasks { space: SpaceId(0), passes, sharing };
    let fault = |by: u16, last_by: Option<u16>, is_private, users| HintFault {
        from: Node(0),
        by: Node(by),
        last_by: last_by.map(Node),
        is_private,
        marked: Nanos(0),
        users,
    };
    let ground = Two(Nanos(0));
    let mut fresh = Balancing::new(settings(), 2);
    let mut goes = |fault| fresh.fault(fault, PAGE_SIZE, &ground);
    assert_eq!(goes(fault(1, None, true, users(0, false))), Some(Node(1)), "first used");
    assert_eq!(goes(fault(1, Some(0), true, users(EARLY_PASSES, false))), Some(Node(1)), "its task moved");
    let later = users(EARLY_PASSES + 1, false);
    assert_eq!(goes(fault(1, Some(0), true, later)), None, "once more, to be sure");
    assert_eq!(goes(fault(1, Some(1), true, later)), Some(Node(1)));
    assert_eq!(goes(fault(1, Some(1), false, later)), Some(Node(1)), "nobody shares yet");
    // Of another program's memory half is used on each node.
    let shared = Users::Tasks { space: SpaceId(1), passes: 9, sharing: true };
    let mut goes = |by| fresh.fault(fault(by, Some(by), false, shared), PAGE_SIZE, &ground);
    assert_eq!((0..8).filter_map(|number| goes(number % 2)).count(), 0);
    assert_eq!((0..40).filter_map(|_| goes(1)).last(), Some(Node(1)));
}
