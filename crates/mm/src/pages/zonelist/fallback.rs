//! In which order a task asks nodes: the nearest first, those that others already fall back to later among equals
//! (docs/rules/watermarks-and-zonelists.md#zonelists).

use alloc::vec;
use alloc::vec::Vec;

use crate::ground::{Node, Topology};
use crate::rules::policy::NodeLoadRule;

/// One more than the nodes that a kernel could have: distance always outweighs load.
const MAX_NUMNODES: u64 = 1024;

/// For each node, all nodes with memory in the order in which a task there asks them.
pub fn fallback_orders(topology: &Topology, rule: NodeLoadRule) -> Vec<Vec<Node>> {
    let count = topology.nodes.len();
    let mut load = vec![0u64; count];
    (0..count).map(|local| fallback_order(topology, rule, local, &mut load)).collect()
}

fn fallback_order(topology: &Topology, rule: NodeLoadRule, local: usize, load: &mut [u64]) -> Vec<Node> {
    let mut order: Vec<Node> = vec![];
    let mut previous = local;
    while let Some(next) = nearest_unused(topology, local, &order, load) {
        // The first of each distance takes the load, so that the next node to be built prefers another.
        if topology.distance[local][next] != topology.distance[local][previous] {
            match rule {
                NodeLoadRule::Accumulated => load[next] += 1,
                NodeLoadRule::Overwritten => load[next] = (topology.nodes.len() - order.len()) as u64,
            }
        }
        order.push(Node(next as u16));
        previous = next;
    }
    order
}

fn nearest_unused(topology: &Topology, local: usize, used: &[Node], load: &[u64]) -> Option<usize> {
    let unused = |node: &usize| {
        !topology.nodes[*node].zones.is_empty() && !used.iter().any(|used| usize::from(used.0) == *node)
    };
    if unused(&local) {
        return Some(local);
    }
    let cost = |node: usize| {
        let has_cpus = topology.cpus.iter().any(|cpu| usize::from(cpu.node.0) == node);
        let near = u64::from(topology.distance[local][node]) + u64::from(node < local) + u64::from(has_cpus);
        near * MAX_NUMNODES + load[node]
    };
    (0..topology.nodes.len()).filter(unused).min_by_key(|&node| (cost(node), node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::topology::NodeSize;

    fn orders(distance: Vec<Vec<u32>>, rule: NodeLoadRule) -> Vec<Vec<u16>> {
        let nodes = vec![NodeSize { bytes: 8 << 30, cpus: 1 }; distance.len()];
        let topology = Topology::x86(&nodes, 1 << 20, distance).unwrap();
        let orders = fallback_orders(&topology, rule);
        orders.into_iter().map(|order| order.into_iter().map(|node| node.0).collect()).collect()
    }

    /// Two sockets of two nodes, as in docs/published.md#ramakrishnan-2021.
    fn two_by_two() -> Vec<Vec<u32>> {
        vec![vec![10, 12, 32, 32], vec![12, 10, 32, 32], vec![32, 32, 10, 12], vec![32, 32, 12, 10]]
    }

    #[test]
    fn loads_that_add_up_spread_the_fallbacks() {
        let expected = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]];
        assert_eq!(orders(two_by_two(), NodeLoadRule::Accumulated), expected);
    }

    /// Nodes 2 and 3 both fall back to 0, then 1: what halved their bandwidth.
    #[test]
    fn loads_that_overwrite_send_both_to_node_0() {
        let expected = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 0, 1]];
        assert_eq!(orders(two_by_two(), NodeLoadRule::Overwritten), expected);
    }

    #[test]
    fn among_equally_far_ones_a_node_without_cpus_comes_first() {
        let node = |cpus| NodeSize { bytes: 8 << 30, cpus };
        let distance = vec![vec![10, 20, 20], vec![20, 10, 20], vec![20, 20, 10]];
        let topology = Topology::x86(&[node(2), node(0), node(2)], 1 << 20, distance).unwrap();
        let orders = fallback_orders(&topology, NodeLoadRule::Accumulated);
        // The penalty is for nodes with CPUs: their memory is left to them.
        assert_eq!(orders[0], [Node(0), Node(1), Node(2)]);
        assert_eq!(orders[2], [Node(2), Node(1), Node(0)]);
        // Tasks may still ask for a node without CPUs first, as a policy of theirs can say.
        assert_eq!(orders[1][0], Node(1));
    }

    #[test]
    fn a_node_without_memory_is_never_asked() {
        let nodes = [NodeSize { bytes: 4 << 30, cpus: 1 }, NodeSize { bytes: 0, cpus: 1 }];
        let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
        assert_eq!(fallback_orders(&topology, NodeLoadRule::Accumulated), [[Node(0)], [Node(0)]]);
    }
}
