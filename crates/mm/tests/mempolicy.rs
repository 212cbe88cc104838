//! Memory policies from outside: where pages come from, and how weights share them out.

use freehold_mm::{
    AllocError, Bare, Cpu, CpuSpec, InterleaveBy, InterleaveCursor, Knob, Knobs, MemPolicy, MemPolicyError,
    Mm, Node, NodeMask, NodeSpec, Order, Pfn, Policy, Request, Topology, Urgency, WordSize, ZoneKind,
    ZoneSpec,
};
use proptest::prelude::*;

const PAGES: u32 = 8192;

/// Four nodes: 0 with DMA32 and Normal, 1 without memory, 2 and 3 with Normal. Distances along a line. A CPU on each.
fn mm() -> Mm<Bare> {
    let zone =
        |kind, start| ZoneSpec { kind, start: Pfn(start), spanned: PAGES, present: PAGES, managed: PAGES };
    let normal = |start| NodeSpec { zones: vec![zone(ZoneKind::Normal, start)] };
    let first = NodeSpec { zones: vec![zone(ZoneKind::Dma32, 0), zone(ZoneKind::Normal, PAGES)] };
    let topology = Topology {
        word: WordSize::Bits64,
        nodes: vec![first, NodeSpec::default(), normal(2 * PAGES), normal(3 * PAGES)],
        cpus: (0..4).map(|node| CpuSpec { node: Node(node), cache_slice: 0 }).collect(),
        distance: (0..4u32).map(|a| (0..4u32).map(|b| 10 + 10 * a.abs_diff(b)).collect()).collect(),
    };
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 64).unwrap();
    Mm::new(Bare::default(), topology, Policy::default(), knobs).unwrap()
}

fn mask(nodes: &[u16]) -> NodeMask {
    nodes.iter().map(|&node| Node(node)).collect()
}

fn node(mm: &Mm<Bare>, policy: MemPolicy, request: Request) -> Result<u16, AllocError> {
    let pfn = mm.spaces().alloc_by(policy, InterleaveBy::Index(0), request)?;
    Ok(mm.zone_of(pfn).unwrap().node().0)
}

/// Nodes of the pages that come until there are none, repetitions left out.
fn path(mm: &Mm<Bare>, policy: MemPolicy) -> Vec<u16> {
    let request = Request { urgency: Urgency::Never, ..Request::USER.of_order(Order::PAGEBLOCK) };
    let mut nodes: Vec<u16> = core::iter::from_fn(|| node(mm, policy, request).ok()).collect();
    nodes.dedup();
    nodes
}

#[test]
fn pages_come_from_where_the_policy_says() {
    let on = |cpu, policy| {
        let mm = mm();
        mm.machine().set_cpu(Cpu(cpu));
        path(&mm, policy)
    };
    assert_eq!(on(3, MemPolicy::Local)[..3], [3, 2, 0]);
    assert_eq!(on(0, MemPolicy::Preferred(Node(2)))[..3], [2, 3, 0]);
    assert_eq!(on(0, MemPolicy::ThisNode(Node(2))), [2]);
    assert_eq!(on(3, MemPolicy::Bind(mask(&[0, 1, 2]))), [2, 0]);
    assert_eq!(on(0, MemPolicy::Bind(mask(&[0, 1, 2]))), [0, 2]);
    assert_eq!(on(3, MemPolicy::PreferredMany(mask(&[0])))[..2], [0, 3]);
}

#[test]
fn binding_does_not_hold_for_what_must_be_low() {
    let mm = mm();
    let low = Request { highest: ZoneKind::Dma32, ..Request::KERNEL };
    assert_eq!(node(&mm, MemPolicy::Bind(mask(&[3])), low), Ok(0));
    assert_eq!(node(&mm, MemPolicy::Bind(mask(&[3])), Request::KERNEL), Ok(3));
}

#[test]
fn nodes_without_memory_take_no_turn() {
    let mm = mm();
    let cursor = InterleaveCursor::default();
    let turns = |policy, count| -> Vec<u16> {
        let pfns =
            (0..count).map(|_| mm.spaces().alloc_by(policy, InterleaveBy::Task(&cursor), Request::USER));
        pfns.map(|pfn| mm.zone_of(pfn.unwrap()).unwrap().node().0).collect()
    };
    assert_eq!(turns(MemPolicy::Interleave(mask(&[0, 1, 2, 3])), 6), [0, 2, 3, 0, 2, 3]);
    assert_eq!(mm.views().counters().get("numa_interleave"), 6);
    assert_eq!(turns(MemPolicy::Local, 1), [0]);
    assert_eq!(mm.views().counters().get("numa_interleave"), 6);
}

#[test]
fn what_cannot_be_is_refused() {
    let mm = mm();
    assert_eq!(mm.spaces().check_mempolicy(MemPolicy::Bind(mask(&[1]))), Err(MemPolicyError::NoMemory));
    assert_eq!(mm.spaces().check_mempolicy(MemPolicy::Interleave(mask(&[]))), Err(MemPolicyError::NoMemory));
    assert_eq!(mm.spaces().check_mempolicy(MemPolicy::ThisNode(Node(1))), Err(MemPolicyError::NoMemory));
    assert_eq!(mm.spaces().check_mempolicy(MemPolicy::Preferred(Node(1))), Ok(()));
    assert_eq!(
        mm.spaces().check_mempolicy(MemPolicy::Preferred(Node(300))),
        Err(MemPolicyError::NoNode(Node(300)))
    );
    assert_eq!(node(&mm, MemPolicy::Bind(mask(&[1])), Request::USER), Err(AllocError::NoZone));
    assert_eq!(node(&mm, MemPolicy::Preferred(Node(300)), Request::USER), Err(AllocError::NoZone));
    let here = Request { allowed: mask(&[2]), ..Request::USER };
    assert_eq!(node(&mm, MemPolicy::Interleave(mask(&[0, 3])), here), Err(AllocError::NoZone));
    // A preference is no more than that.
    assert_eq!(node(&mm, MemPolicy::PreferredMany(mask(&[0, 3])), here), Ok(2));
    assert_eq!(mm.spaces().set_interleave_weight(Node(2), 0), Err(MemPolicyError::Weight(0)));
    assert_eq!(mm.spaces().set_interleave_weight(Node(2), 256), Err(MemPolicyError::Weight(256)));
    assert_eq!(mm.spaces().set_interleave_weight(Node(4), 2), Err(MemPolicyError::NoNode(Node(4))));
    assert_eq!(mm.spaces().interleave_weight(Node(2)), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Over whole rounds, each node gets its weight, by a task's turns and by places alike.
    #[test]
    fn weights_are_proportions(weights in prop::collection::vec(1..=255u32, 3), rounds in 1..4u32) {
        let mm = mm();
        let nodes = [0u16, 2, 3];
        for (&node, &weight) in nodes.iter().zip(&weights) {
            mm.spaces().set_interleave_weight(Node(node), weight).unwrap();
        }
        let policy = MemPolicy::WeightedInterleave(mask(&[0, 1, 2, 3]));
        let cursor = InterleaveCursor::default();
        let pages = weights.iter().sum::<u32>() * rounds;
        for by_place in [false, true] {
            let mut got = [0u32; 4];
            for index in 0..pages {
                let place = InterleaveBy::Index(u64::from(index));
                let by = if by_place { place } else { InterleaveBy::Task(&cursor) };
                let placed = mm.spaces().place(policy, by, Request::USER).unwrap();
                got[usize::from(placed.node.unwrap().0)] += 1;
            }
            let wanted = [weights[0] * rounds, 0, weights[1] * rounds, weights[2] * rounds];
            prop_assert_eq!(got, wanted);
        }
    }
}
