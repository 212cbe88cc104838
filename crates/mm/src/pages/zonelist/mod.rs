//! Whom a request asks, in order: for each node, the zones of all nodes, by node or by kind
//! (docs/rules/watermarks-and-zonelists.md#zonelists). `fallback` orders the nodes, `order` says which of the two orders
//! is in force, `mask` is the set of nodes that a request may use, `log` says it all in the kernel's words.
//!
//! Both orders are built at boot, and one word says which holds: `vm.numa_zonelist_order` can change while others read.

mod fallback;
mod log;
mod mask;
mod order;

use alloc::vec::Vec;

use crate::ground::{AtomicU32, Node, Relaxed, Topology, ZoneId, ZoneKind};
use crate::rules::policy::Rules;

pub use fallback::fallback_orders;
pub use mask::NodeMask;
pub use order::{OrderChoice, OrderReason, ZonelistOrder};

/// The zonelists of a machine.
#[derive(Debug)]
pub struct Zonelists {
    /// For each node, the nodes to ask.
    fallback: Vec<Vec<Node>>,
    /// Node and kind of each zone, by its number.
    zones: Vec<(Node, ZoneKind)>,
    /// For each node the zones in node order, then for each in zone order.
    lists: Vec<Vec<ZoneId>>,
    /// Where the lists in force begin: 0 or the number of nodes. Both are there for good, so no order is needed.
    first: AtomicU32,
    /// Where those begin that would be in force if nobody had set the order.
    first_by_default: AtomicU32,
    with_memory: NodeMask,
    policy_zone: ZoneKind,
}

impl Zonelists {
    /// The zonelists of `topology`, in the order that `rules` choose where nobody sets it.
    pub fn new(topology: &Topology, rules: &Rules) -> Self {
        let fallback = fallback_orders(topology, rules.zone.node_load);
        let zones: Vec<(Node, ZoneKind)> = (0..)
            .map(Node)
            .zip(&topology.nodes)
            .flat_map(|(node, spec)| spec.zones.iter().map(move |zone| (node, zone.kind)))
            .collect();
        let by_node = fallback.iter().map(|nodes| node_order(&zones, nodes));
        let by_zone = fallback.iter().map(|nodes| zone_order(&zones, nodes));
        let lists = by_node.chain(by_zone).collect();
        let with_memory = zones.iter().map(|(node, _)| *node).collect();
        let kinds = zones.iter().map(|zone| zone.1).filter(|kind| *kind < ZoneKind::Movable);
        let policy_zone = kinds.max().unwrap_or(ZoneKind::Movable);
        let (first, first_by_default) = (AtomicU32::new(0), AtomicU32::new(0));
        let built = Self { fallback, zones, lists, first, first_by_default, with_memory, policy_zone };
        built.put_in_force(OrderChoice::by_rule(topology, rules.zone.zonelist_order).order);
        built
    }

    /// From now on, requests ask in this order. One that is on its way may have asked some zones in the other.
    pub fn put_in_force(&self, order: ZonelistOrder) {
        self.first.store(self.start(order), Relaxed);
    }

    /// Where the lists of `order` begin.
    fn start(&self, order: ZonelistOrder) -> u32 {
        match order {
            ZonelistOrder::Node => 0,
            ZonelistOrder::Zone => self.fallback.len() as u32,
        }
    }

    /// The order in force.
    pub fn order(&self) -> ZonelistOrder {
        if self.first.load(Relaxed) == 0 { ZonelistOrder::Node } else { ZonelistOrder::Zone }
    }

    /// The zones that a task on `node` asks, in order; none for a node that does not exist.
    #[inline]
    pub fn ids(&self, node: Node) -> &[ZoneId] {
        let node = usize::from(node.0);
        if node >= self.fallback.len() {
            return &[];
        }
        &self.lists[self.first.load(Relaxed) as usize + node]
    }

    /// The zones that a task on `node` would ask if nobody had set the order.
    pub(crate) fn ids_by_default(&self, node: Node) -> &[ZoneId] {
        let first = self.first_by_default.load(Relaxed) as usize;
        self.lists.get(first + usize::from(node.0)).map_or(&[], Vec::as_slice)
    }

    /// The same as nodes and kinds.
    pub fn zones(&self, node: Node) -> impl Iterator<Item = (Node, ZoneKind)> {
        self.ids(node).iter().map(|id| self.zones[usize::from(id.0)])
    }

    /// The nodes that a task on `node` asks, in order ("Fallback order" in the kernel's log); none for a node that does
    /// not exist.
    pub fn fallback(&self, node: Node) -> &[Node] {
        self.fallback.get(usize::from(node.0)).map_or(&[], Vec::as_slice)
    }

    /// The highest kind of zone that there is, Movable apart: memory policies bind requests that could use it.
    pub fn policy_zone(&self) -> ZoneKind {
        self.policy_zone
    }

    /// The nodes that have memory.
    pub fn with_memory(&self) -> NodeMask {
        self.with_memory
    }
}

/// Node by node, the highest zone first.
fn node_order(zones: &[(Node, ZoneKind)], nodes: &[Node]) -> Vec<ZoneId> {
    nodes
        .iter()
        .flat_map(|node| numbered(zones).rev().filter(move |(_, zone)| zone.0 == *node))
        .map(id)
        .collect()
}

/// Kind by kind from the highest, and of each the nearest node's first.
fn zone_order(zones: &[(Node, ZoneKind)], nodes: &[Node]) -> Vec<ZoneId> {
    let kinds = ZoneKind::ALL.into_iter().rev();
    let of_kind = |kind| {
        let find = move |node: &Node| numbered(zones).find(|(_, zone)| **zone == (*node, kind));
        nodes.iter().filter_map(find)
    };
    kinds.flat_map(of_kind).map(id).collect()
}

fn numbered(
    zones: &[(Node, ZoneKind)],
) -> impl DoubleEndedIterator<Item = (usize, &(Node, ZoneKind))> + ExactSizeIterator {
    zones.iter().enumerate()
}

fn id((number, _): (usize, &(Node, ZoneKind))) -> ZoneId {
    ZoneId(number as u16)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::ground::topology::NodeSize;
    use crate::rules::policy::Policy;

    fn zonelists(topology: &Topology, policy: &str) -> Zonelists {
        Zonelists::new(topology, Policy::parse(policy).unwrap().rules())
    }

    fn words(zonelists: &Zonelists, node: u16) -> Vec<alloc::string::String> {
        zonelists.zones(Node(node)).map(|(node, kind)| alloc::format!("{}:{}", node.0, kind.name())).collect()
    }

    fn two(bytes: u64) -> Topology {
        let nodes = [NodeSize { bytes, cpus: 1 }; 2];
        Topology::x86(&nodes, 0, vec![vec![10, 20], vec![20, 10]]).unwrap()
    }

    #[test]
    fn node_order_goes_node_by_node() {
        let lists = zonelists(&two(8 << 30), "linux-6.18");
        assert_eq!(words(&lists, 0), ["0:Normal", "0:DMA32", "0:DMA", "1:Normal"]);
        assert_eq!(words(&lists, 1), ["1:Normal", "0:Normal", "0:DMA32", "0:DMA"]);
        assert_eq!(words(&lists, 2), [""; 0]);
    }

    #[test]
    fn zone_order_goes_to_a_far_normal_before_a_near_dma32() {
        let lists = zonelists(&two(8 << 30), "linux-6.18");
        lists.put_in_force(ZonelistOrder::Zone);
        assert_eq!(words(&lists, 0), ["0:Normal", "1:Normal", "0:DMA32", "0:DMA"]);
        assert_eq!(words(&lists, 1), ["1:Normal", "0:Normal", "0:DMA32", "0:DMA"]);
        assert_eq!(lists.order(), ZonelistOrder::Zone);
    }

    #[test]
    fn a_32_bit_machine_keeps_its_low_memory_to_the_last() {
        let nodes = [NodeSize { bytes: 2 << 30, cpus: 1 }; 2];
        let topology = Topology::x86_32(&nodes, 0, vec![vec![10, 20], vec![20, 10]]).unwrap();
        // The heuristics see a node without Normal and choose node order: what Mel Gorman's patch puts right.
        assert_eq!(
            words(&zonelists(&topology, "linux-3.17"), 0),
            ["0:HighMem", "0:Normal", "0:DMA", "1:HighMem"]
        );
        let patched = zonelists(&topology, "linux-3.18");
        assert_eq!(words(&patched, 0), ["0:HighMem", "1:HighMem", "0:Normal", "0:DMA"]);
        assert_eq!(words(&patched, 1), ["1:HighMem", "0:HighMem", "0:Normal", "0:DMA"]);
    }

    #[test]
    fn nodes_without_memory_ask_others_and_are_asked_by_none() {
        let nodes = [NodeSize { bytes: 8 << 30, cpus: 1 }, NodeSize { bytes: 0, cpus: 1 }];
        let topology = Topology::x86(&nodes, 0, vec![vec![10, 20], vec![20, 10]]).unwrap();
        let lists = zonelists(&topology, "linux-6.18");
        assert_eq!(words(&lists, 1), ["0:Normal", "0:DMA32", "0:DMA"]);
        assert_eq!(lists.with_memory(), NodeMask::only(Node(0)));
    }
}
