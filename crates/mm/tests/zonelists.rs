//! Whom requests ask, seen from outside: the order in force and what decided it, where pages then come from, and a change of
//! `vm.numa_zonelist_order` while the machine runs.

use ZoneKind::{Dma, Dma32, HighMem, Movable, Normal};
use freehold_mm::{
    AllocError, Bare, CpuSpec, Knob, KnobError, Knobs, Mm, Node, NodeSize, NodeSpec, Order, OrderReason, Pfn,
    Policy, Request, Topology, Urgency, WordSize, ZoneKind, ZoneSpec, ZonelistOrder,
};

/// Zones of so many pages, node by node; CPU n is on node n. Hardly a reserve.
fn mm_of(nodes: &[&[(ZoneKind, u32)]], policy: &str) -> Mm<Bare> {
    let mut start = 0;
    let mut zone = |&(kind, pages): &(ZoneKind, u32)| {
        let spec = ZoneSpec { kind, start: Pfn(start), spanned: pages, present: pages, managed: pages };
        start += pages;
        spec
    };
    let nodes: Vec<NodeSpec> =
        nodes.iter().map(|zones| NodeSpec { zones: zones.iter().map(&mut zone).collect() }).collect();
    let count = nodes.len();
    let topology = Topology {
        word: WordSize::of(&nodes),
        cpus: (0..count).map(|node| CpuSpec { node: Node(node as u16), cache_slice: 0 }).collect(),
        distance: (0..count).map(|a| (0..count).map(|b| if a == b { 10 } else { 20 }).collect()).collect(),
        nodes,
    };
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 64).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
}

fn choice(nodes: &[&[(ZoneKind, u32)]], policy: &str) -> (ZonelistOrder, OrderReason) {
    let choice = mm_of(nodes, policy).pages().zonelist_order();
    (choice.order, choice.reason)
}

const SCARCE: &[(ZoneKind, u32)] = &[(Dma, 1024), (Dma32, 2048), (Normal, 8192)];
const PLAIN: &[(ZoneKind, u32)] = &[(Normal, 8192)];

#[test]
fn each_condition_of_the_heuristics_decides() {
    let auto = |nodes: &[&[(ZoneKind, u32)]]| choice(nodes, "linux-3.17");
    let node = |reason| (ZonelistOrder::Node, reason);
    assert_eq!(auto(&[SCARCE, PLAIN]), (ZonelistOrder::Zone, OrderReason::LowIsScarce));
    assert_eq!(auto(&[SCARCE, PLAIN, &[]]), node(OrderReason::NoNormal(Node(2))));
    assert_eq!(auto(&[&[(Dma32, 2048)], PLAIN]), node(OrderReason::NoNormal(Node(0))));
    assert_eq!(auto(&[&[(Dma, 8192)], &[(Dma, 8192)]]), node(OrderReason::NoNormal(Node(0))));
    assert_eq!(auto(&[PLAIN, PLAIN]), node(OrderReason::NoLow));
    assert_eq!(auto(&[&[(Dma32, 16_384), (Normal, 4096)], PLAIN]), node(OrderReason::MostlyLow));
    let large = [(Dma32, 8192), (Normal, 2048)];
    assert_eq!(auto(&[&large, PLAIN]), node(OrderReason::NodeMostlyLow(Node(0))));
    // A Movable zone counts as memory that is not low.
    assert_eq!(auto(&[&[(Dma32, 8192), (Normal, 2048), (Movable, 2048)], PLAIN]).1, OrderReason::LowIsScarce);
}

#[test]
fn the_patch_and_what_came_after_it() {
    let word = OrderReason::WordSize(WordSize::Bits64);
    assert_eq!(choice(&[SCARCE, PLAIN], "linux-3.18"), (ZonelistOrder::Node, word));
    assert_eq!(choice(&[SCARCE, PLAIN], "linux-4.14"), (ZonelistOrder::Node, OrderReason::Only));
    let old: &[&[(ZoneKind, u32)]] = &[&[(Dma, 1024), (Normal, 2048), (HighMem, 8192)], &[(HighMem, 8192)]];
    let word = OrderReason::WordSize(WordSize::Bits32);
    assert_eq!(choice(old, "linux-3.17"), (ZonelistOrder::Node, OrderReason::NoNormal(Node(1))));
    assert_eq!(choice(old, "linux-3.18"), (ZonelistOrder::Zone, word));
}

/// Zones of the pages that `request` gets until there are none above the low marks, repetitions left out.
fn path(mm: &Mm<Bare>, request: Request) -> Vec<(u16, ZoneKind)> {
    let mut path: Vec<(u16, ZoneKind)> = vec![];
    while let Ok(pfn) = mm.alloc(Request { urgency: Urgency::Never, ..request }) {
        let zone = mm.zone_of(pfn).unwrap();
        let at = (zone.node().0, zone.kind());
        if path.contains(&at) {
            if path.last() != Some(&at) {
                // Down to the min marks: all over again.
                break;
            }
        } else {
            path.push(at);
        }
    }
    path
}

#[test]
fn pages_come_in_the_order_that_is_said() {
    for (policy, order) in [("linux-3.17", 2), ("linux-3.11", 1), ("linux-3.11", 2), ("linux-4.13", 2)] {
        let mm = mm_of(&[SCARCE, PLAIN], policy);
        mm.set_knob(Knob::NumaZonelistOrder, order).unwrap();
        let said: Vec<_> = mm.pages().zonelist(Node(0)).map(|(node, kind)| (node.0, kind)).collect();
        assert_eq!(path(&mm, Request::USER), said, "{policy}, order {order}");
        mm.views().check().unwrap();
    }
}

#[test]
fn the_order_changes_in_mid_run() {
    let mm = mm_of(&[SCARCE, PLAIN], "linux-4.13");
    let second = |mm: &Mm<Bare>| mm.pages().zonelist(Node(0)).nth(1);
    assert_eq!(second(&mm), Some((Node(0), Dma32)));
    mm.set_knob(Knob::NumaZonelistOrder, 2).unwrap();
    assert_eq!(second(&mm), Some((Node(1), Normal)));
    assert_eq!(mm.pages().zonelist_order().reason, OrderReason::Asked);
    mm.set_knob(Knob::NumaZonelistOrder, 0).unwrap();
    assert_eq!(second(&mm), Some((Node(0), Dma32)));
}

#[test]
fn zone_order_is_refused_where_the_kernel_has_none() {
    let mm = mm_of(&[SCARCE, PLAIN], "linux-4.14");
    let error = mm.set_knob(Knob::NumaZonelistOrder, 2).unwrap_err();
    assert!(matches!(error, KnobError::Refused { value: 2, .. }), "{error}");
    assert_eq!(mm.set_knob(Knob::NumaZonelistOrder, 1), Ok(()));
    let knobs = Knobs::default();
    knobs.set(Knob::NumaZonelistOrder, 2).unwrap();
    let error = Mm::new(Bare::default(), mm.topology().clone(), Policy::default(), knobs).unwrap_err();
    assert!(error.starts_with("vm.numa_zonelist_order = zone is refused under linux-6.18"), "{error}");
}

#[test]
fn kernel_requests_leave_high_memory_alone() {
    let old: &[&[(ZoneKind, u32)]] = &[&[(Dma, 1024), (Normal, 2048), (HighMem, 8192)], &[(HighMem, 8192)]];
    let zones = |policy, request| path(&mm_of(old, policy), request);
    assert_eq!(zones("linux-3.18", Request::KERNEL), [(0, Normal), (0, Dma)]);
    let high = [(0, HighMem), (1, HighMem), (0, Normal), (0, Dma)];
    assert_eq!(zones("linux-3.18", Request::HIGHUSER), high);
    assert_eq!(zones("linux-3.18", Request::USER), high);
    // Node order uses up low memory while node 1 has plenty.
    let node = [(0, HighMem), (0, Normal), (0, Dma), (1, HighMem)];
    assert_eq!(zones("linux-3.11", Request::USER), node);
}

#[test]
fn a_32_bit_machine_prints_its_own_columns() {
    let nodes = [NodeSize { bytes: 2 << 30, cpus: 1 }; 2];
    let topology = Topology::x86_32(&nodes, 0, vec![vec![10, 20], vec![20, 10]]).unwrap();
    let policy = Policy::parse("linux-3.17").unwrap();
    let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
    let info = mm.views().zoneinfo();
    let heads: Vec<&str> = info.lines().filter(|line| line.starts_with("Node 0")).collect();
    assert_eq!(heads.len(), 4, "{info}");
    assert!(heads[2].ends_with("HighMem") && !info.contains("DMA32"), "{info}");
    let kept = info.lines().find(|line| line.contains("protection")).unwrap();
    assert_eq!(kept.matches(',').count(), 3, "{kept}");
    mm.alloc(Request::USER).unwrap();
    assert_eq!(mm.views().counters().get("pgalloc_high"), 1);
}

#[test]
fn a_node_with_only_low_memory_serves_its_own() {
    let mm = mm_of(&[&[(Dma32, 8192)], PLAIN], "linux-6.18");
    let zones: Vec<_> = mm.pages().zonelist(Node(0)).collect();
    assert_eq!(zones, [(Node(0), Dma32), (Node(1), Normal)]);
    assert_eq!(path(&mm, Request::KERNEL), [(0, Dma32), (1, Normal)]);
    let low = Request { highest: Dma32, node: Some(Node(1)), ..Request::KERNEL };
    assert_eq!(path(&mm_of(&[&[(Dma32, 8192)], PLAIN], "linux-6.18"), low), [(0, Dma32)]);
}

#[test]
fn a_node_without_memory_asks_its_neighbours() {
    let mm = mm_of(&[PLAIN, &[], PLAIN], "linux-6.18");
    assert_eq!(mm.pages().fallback_order(Node(1)), [Node(2), Node(0)]);
    let here = Request { node: Some(Node(1)), ..Request::KERNEL };
    assert_eq!(path(&mm, here), [(2, Normal), (0, Normal)]);
    let only = Request { this_node: true, ..here.of_order(Order::ZERO) };
    assert_eq!(mm.alloc(only), Err(AllocError::NoZone));
    assert_eq!(mm.pages().fallback_order(Node(9)), []);
}
