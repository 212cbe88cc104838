//! Demotion: pages that nobody uses go to slower memory in place of being freed (`numa/demotion_enabled`, since 5.15). A
//! node with CPUs is fast, one without is slow; pages go to the nearest slow one, and from there to nowhere else. (Linux
//! since 6.1 makes tiers of measured latencies, of which there may be more.)

use alloc::boxed::Box;

use super::pages::Outcome;
use super::{ReclaimDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Machine, Node, Pfn, Topology};
use crate::lru::ReclaimEvent;
use crate::pages::{FrameState, Request, Urgency};
use crate::rules::knobs::Knob;

/// For each node, where its pages go.
pub(super) fn slower_nodes(topology: &Topology) -> Box<[Option<Node>]> {
    let is_slow =
        |node: &usize| topology.cpus_of(Node(*node as u16)) == 0 && !topology.nodes[*node].zones.is_empty();
    let target = |from: usize| {
        let nearest =
            (0..topology.nodes.len()).filter(is_slow).min_by_key(|&to| (topology.distance[from][to], to));
        nearest.filter(|_| !is_slow(&from)).map(|node| Node(node as u16))
    };
    (0..topology.nodes.len()).map(target).collect()
}

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// Where pages of `node` are demoted to, if they are.
    pub(super) fn slower_node(self, node: Node) -> Option<Node> {
        let target = self.own().slower[usize::from(node.0)]?;
        let is_on = |setting: u64| setting == 1;
        self.knobs().decide(self.machine(), Knob::DemotionEnabled, is_on).then_some(target)
    }

    /// Where the page at `pfn` would be demoted to.
    pub(super) fn demotion_target(self, pfn: Pfn) -> Option<Node> {
        self.slower_node(self.zones()[usize::from(self.map().frame(pfn).state().zone.0)].node())
    }

    /// Moves an isolated page to slower memory, if there is room; says whether it did. That node's kswapd makes room for
    /// the next ones.
    pub(super) fn demote(self, pfn: Pfn, scan: &Scan, outcome: &mut Outcome) -> bool {
        let FrameState { order, zone, .. } = self.map().frame(pfn).state();
        let node = self.demotion_target(pfn);
        let request = Request { node, this_node: true, urgency: Urgency::NoWait, ..Request::USER };
        if self.ground.move_to(pfn, request).is_err() {
            return false;
        }
        let events = match scan.by {
            Reclaimer::Kswapd => [ReclaimEvent::DemoteKswapd, ReclaimEvent::StealKswapd],
            Reclaimer::Direct => [ReclaimEvent::DemoteDirect, ReclaimEvent::StealDirect],
        };
        let counts = self.lru().events(zone);
        for event in events {
            counts.count(event, order.pages());
        }
        outcome.freed += order.pages();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::topology::NodeSize;

    #[test]
    fn pages_go_to_the_nearest_node_without_cpus() {
        let node = |cpus| NodeSize { bytes: 1 << 30, cpus };
        let distance = alloc::vec![
            alloc::vec![10, 21, 14, 24],
            alloc::vec![21, 10, 24, 14],
            alloc::vec![14, 24, 10, 26],
            alloc::vec![24, 14, 26, 10]
        ];
        let topology = Topology::x86(&[node(2), node(2), node(0), node(0)], 1 << 20, distance).unwrap();
        assert_eq!(slower_nodes(&topology)[..], [Some(Node(2)), Some(Node(3)), None, None]);
        let flat = Topology::x86(&[node(2)], 1 << 20, alloc::vec![alloc::vec![10]]).unwrap();
        assert_eq!(slower_nodes(&flat)[..], [None]);
    }
}
