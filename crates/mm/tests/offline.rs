//! A node goes out of use in mid-run: its pages move with their mappings, or it stays in use and says why.

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{FileKind, MapSpec, Placement, Touch};
use freehold_mm::{
    AllocError, Bare, Knob, Knobs, Mm, Node, NodeMask, NodeSize, OfflineError, Order, Policy, Request,
    Topology,
};

fn machine(policy: &str) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }; 2];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
}

fn on_node_1() -> Placement {
    Placement { node: Some(Node(1)), allowed: NodeMask::ALL }
}

#[test]
fn pages_move_and_programs_go_on() {
    for policy in ["linux-4.4", "linux-6.18", "freehold"] {
        let mm = machine(policy);
        let file = mm.files().new_file(FileKind::Disk);
        (0..100).for_each(|page| {
            mm.files().write_file(&file, page, on_node_1()).unwrap();
        });
        let (parent, pages) = (mm.spaces().new_space(), 4 * PAGEBLOCK_PAGES);
        let start = mm.spaces().mmap(&parent, MapSpec::anonymous(pages).placed(on_node_1())).unwrap();
        let small = mm.spaces().mmap(&parent, MapSpec::anonymous(700).placed(on_node_1()).small()).unwrap();
        mm.spaces().populate(&parent, start, pages, Touch::Write).unwrap();
        mm.spaces().populate(&parent, small, 700, Touch::Write).unwrap();
        let child = mm.spaces().fork(&parent).unwrap();
        assert_eq!(parent.pages_on(Node(1)), u64::from(pages) + 700);
        // Page tables are on node 0, where the CPU is: nothing of node 1 has to stay.
        let moved = mm.offlining().offline_node(Node(1)).unwrap();
        assert_eq!(moved, u64::from(pages) + 700 + 100, "{policy}");
        assert_eq!((parent.pages_on(Node(1)), child.pages_on(Node(1))), (0, 0));
        mm.views().check().unwrap();
        mm.spaces().check_vm().unwrap();
        // A knob that changes does not bring it back.
        mm.set_knob(Knob::MinFreeKbytes, 4096).unwrap();
        let asked = Request { node: Some(Node(1)), ..Request::USER };
        let elsewhere = mm.alloc(asked).unwrap();
        assert_eq!(mm.zone_of(elsewhere).unwrap().node(), Node(0));
        mm.free(elsewhere, Order::ZERO).unwrap();
        let bound = mm.alloc(Request { this_node: true, ..asked });
        assert_eq!(bound, Err(AllocError::OutOfMemory), "{policy}");
        assert!(mm.spaces().touch_page(&child, start.add(7), Touch::Write).is_ok());
        mm.offlining().online_node(Node(1));
        let back = mm.alloc(Request { this_node: true, ..asked }).unwrap();
        mm.free(back, Order::ZERO).unwrap();
        mm.spaces().exit(&parent);
        mm.spaces().exit(&child);
        mm.files().drop_file(&file);
        mm.lru().lru_drain_all();
        assert_eq!(mm.views().memory_use().held(), 0, "{policy}");
        mm.views().check().unwrap();
    }
}

#[test]
fn what_cannot_move_keeps_a_node_in_use() {
    let mm = machine("linux-6.18");
    let kernel = mm.alloc(Request { node: Some(Node(1)), ..Request::KERNEL }).unwrap();
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(100).placed(on_node_1()).small()).unwrap();
    mm.spaces().populate(&space, start, 100, Touch::Write).unwrap();
    assert_eq!(mm.offlining().offline_node(Node(1)), Err(OfflineError::InUse { node: Node(1), pages: 1 }));
    let served = mm.alloc(Request { node: Some(Node(1)), this_node: true, ..Request::USER }).unwrap();
    mm.free(served, Order::ZERO).unwrap();
    mm.free(kernel, Order::ZERO).unwrap();
    // Its pages have moved already.
    assert_eq!(mm.offlining().offline_node(Node(1)), Ok(0));
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn nodes_that_cannot_go_are_named() {
    let mm = machine("linux-6.18");
    assert_eq!(mm.offlining().offline_node(Node(7)), Err(OfflineError::NoMemory(Node(7))));
    mm.offlining().offline_node(Node(0)).unwrap();
    assert_eq!(mm.offlining().offline_node(Node(0)), Err(OfflineError::NoMemory(Node(0))));
    assert_eq!(mm.offlining().offline_node(Node(1)), Err(OfflineError::Last(Node(1))));
}
