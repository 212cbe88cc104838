//! On which nodes a fault looks for a huge page, and how often it tries.

use freehold_mm::vm::{MapSpec, Residence, Touch};
use freehold_mm::{
    Bare, Knob, Knobs, MemPolicy, Mm, Node, NodeMask, NodeSize, Order, Policy, Request, Topology, Urgency,
};

/// Two nodes of 64 MiB; the program's CPU is of the first.
fn machine(kernel: &str, defrag: u64) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 64 << 20, cpus: 1 }; 2];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 512).unwrap();
    knobs.set(Knob::TransparentHugepage, 1).unwrap();
    knobs.set(Knob::HugeDefrag, defrag).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(kernel).unwrap(), knobs).unwrap()
}

/// No huge page is free where `request` looks, but pages are: one in four stays, and none can move.
fn in_pieces(mm: &Mm<Bare>, request: Request) {
    let request = Request { urgency: Urgency::Never, ..request };
    let taken: Vec<_> = std::iter::from_fn(|| mm.alloc(request).ok()).collect();
    for pfn in taken.into_iter().filter(|pfn| pfn.0 % 4 != 0) {
        mm.free(pfn, Order::ZERO).unwrap();
    }
    mm.drain_all();
}

const OF_FIRST: Request = Request { node: Some(Node(0)), this_node: true, ..Request::USER };

const DEFRAG_ALWAYS: u64 = 1;
const DEFRAG_IF_ADVISED: u64 = 4;

/// Where the first write of a region of a huge page's size ends up, and whether in a huge page.
fn first_write(mm: &Mm<Bare>, spec: MapSpec<Bare>, policy: Option<MemPolicy>) -> (Node, bool) {
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, spec).unwrap();
    if let Some(policy) = policy {
        mm.spaces().mbind(&space, start, 512, policy).unwrap();
    }
    mm.spaces().touch_page(&space, start, Touch::Write).unwrap();
    let Residence::Page(node, _) = mm.spaces().residence(&space, start) else { panic!("it was written") };
    let is_huge = space.huge_pages() > 0;
    mm.spaces().exit(&space);
    mm.views().check().unwrap();
    (node, is_huge)
}

#[test]
fn a_huge_page_of_another_node_is_had_only_by_who_may_reclaim() {
    let found = |kernel: &str, spec: MapSpec<Bare>| {
        let mm = machine(kernel, DEFRAG_IF_ADVISED);
        in_pieces(&mm, OF_FIRST);
        first_write(&mm, spec, None)
    };
    let (plain, advised) = (|| MapSpec::anonymous(512), || MapSpec::anonymous(512).advised());
    for kernel in ["linux-5.4", "linux-6.1", "linux-6.12", "linux-6.18", "linux-7.2"] {
        assert_eq!(found(kernel, plain()), (Node(0), false), "{kernel}");
        assert_eq!(found(kernel, advised()), (Node(1), true), "{kernel}");
    }
    assert_eq!(found("linux-5.3", plain()), (Node(1), true), "any node will do");
}

#[test]
fn policies_say_whether_a_node_is_a_faults_own() {
    let both: NodeMask = [Node(0), Node(1)].into_iter().collect();
    let found = |policy| {
        let mm = machine("linux-6.18", DEFRAG_IF_ADVISED);
        in_pieces(&mm, OF_FIRST);
        first_write(&mm, MapSpec::anonymous(512), Some(policy))
    };
    assert_eq!(found(MemPolicy::Preferred(Node(0))), (Node(0), false));
    assert_eq!(found(MemPolicy::Preferred(Node(1))), (Node(1), true));
    assert_eq!(found(MemPolicy::Bind(both)), (Node(0), false));
    assert_eq!(
        found(MemPolicy::Bind([Node(1)].into_iter().collect())),
        (Node(1), true),
        "its own is not among them"
    );
    assert_eq!(found(MemPolicy::PreferredMany(both)), (Node(1), true), "any of them will do");
}

/// How often a fault for a huge page that there is none of compacts, and how often it reclaims.
fn attempts(kernel: &str) -> (u64, u64) {
    let mm = machine(kernel, DEFRAG_ALWAYS);
    let other = mm.spaces().new_space();
    let start = mm.spaces().mmap(&other, MapSpec::anonymous(8).small()).unwrap();
    mm.spaces().populate(&other, start, 8, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    in_pieces(&mm, Request::USER);
    assert_eq!(first_write(&mm, MapSpec::anonymous(512), None), (Node(0), false));
    let counters = mm.views().counters();
    let reclaims =
        ["dma", "dma32", "normal", "movable"].map(|zone| counters.get(&format!("allocstall_{zone}")));
    (counters.get("compact_stall"), reclaims.into_iter().sum())
}

#[test]
fn for_its_own_node_a_fault_compacts_and_in_some_kernels_reclaims() {
    assert_eq!(attempts("linux-5.3"), (2, 1), "once in all");
    assert_eq!(attempts("linux-6.18"), (4, 2), "once for its own node, once for all");
    assert_eq!(attempts("linux-6.12"), (3, 1));
    assert_eq!(attempts("linux-7.2"), (3, 1));
}
