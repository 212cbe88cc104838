//! Node order or zone order. The heuristics are those that Mel Gorman's patch (docs/published.md#gorman-2014) removes,
//! condition by condition, each with the count that it uses: managed pages in the first pass, present ones in the second.

use core::fmt;

use crate::ground::{Node, NodeSpec, Topology, WordSize, ZoneKind, ZoneSpec};
use crate::rules::policy::ZonelistOrderRule;

/// In which order a zonelist has its zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZonelistOrder {
    /// All zones of the nearest node, then those of the next: memory is near.
    Node,
    /// The highest zones of all nodes, then the next lower ones: low memory is kept.
    Zone,
}

impl ZonelistOrder {
    /// The kernel's name: `Node`, `Zone`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Zone => "Zone",
        }
    }
}

/// What decided the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderReason {
    /// `vm.numa_zonelist_order` was set.
    Asked,
    /// The kernel has no other.
    Only,
    /// The default for machines of this word size.
    WordSize(WordSize),
    /// This node has no Normal zone: kernel requests would all leave it.
    NoNormal(Node),
    /// No node has DMA or DMA32: nothing to keep.
    NoLow,
    /// DMA and DMA32 are more than half of all managed memory: too much to do without.
    MostlyLow,
    /// This node is larger than the average, and more than 70 % of it are DMA and DMA32.
    NodeMostlyLow(Node),
    /// None of these: DMA and DMA32 are few, to be kept for devices.
    LowIsScarce,
}

impl fmt::Display for OrderReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("vm.numa_zonelist_order asks for it"),
            Self::Only => f.write_str("this kernel has no other order"),
            Self::WordSize(word) => write!(f, "this kernel's default on {}-bit machines", word.bits()),
            Self::NoNormal(node) => write!(f, "heuristics: node {} has no Normal zone", node.0),
            Self::NoLow => f.write_str("heuristics: no node has DMA or DMA32 memory"),
            Self::MostlyLow => f.write_str("heuristics: DMA and DMA32 are more than half of all memory"),
            Self::NodeMostlyLow(node) => write!(
                f,
                "heuristics: more than 70 % of node {}, which is larger than the average, is DMA and DMA32",
                node.0
            ),
            Self::LowIsScarce => f.write_str("heuristics: DMA and DMA32 are scarce, so they are kept"),
        }
    }
}

/// An order, and what decided it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderChoice {
    /// The order.
    pub order: ZonelistOrder,
    /// What decided it.
    pub reason: OrderReason,
}

impl OrderChoice {
    /// The order where `vm.numa_zonelist_order` is `setting`: 0 (the rule decides), 1 (node) or 2 (zone).
    pub fn by_setting(topology: &Topology, rule: ZonelistOrderRule, setting: u64) -> Self {
        let asked = |order| Self { order, reason: OrderReason::Asked };
        match (setting, rule) {
            (0, _) | (_, ZonelistOrderRule::Node) => Self::by_rule(topology, rule),
            (1, _) => asked(ZonelistOrder::Node),
            _ => asked(ZonelistOrder::Zone),
        }
    }

    /// The order that `rule` chooses for `topology`.
    pub fn by_rule(topology: &Topology, rule: ZonelistOrderRule) -> Self {
        match (rule, topology.word) {
            (ZonelistOrderRule::Node, _) => Self { order: ZonelistOrder::Node, reason: OrderReason::Only },
            (ZonelistOrderRule::ByWordSize, word) => Self {
                order: match word {
                    WordSize::Bits64 => ZonelistOrder::Node,
                    WordSize::Bits32 => ZonelistOrder::Zone,
                },
                reason: OrderReason::WordSize(word),
            },
            (ZonelistOrderRule::Auto, _) => match for_node_order(topology) {
                Some(reason) => Self { order: ZonelistOrder::Node, reason },
                None => Self { order: ZonelistOrder::Zone, reason: OrderReason::LowIsScarce },
            },
        }
    }
}

/// Pages of a node, or of all: those below Normal, and all.
#[derive(Clone, Copy, Default)]
struct Pages {
    low: u64,
    all: u64,
}

impl Pages {
    fn of<'a>(zones: impl Iterator<Item = &'a ZoneSpec>, count: impl Fn(&ZoneSpec) -> u32) -> Self {
        zones.fold(Self::default(), |sum, zone| {
            let pages = u64::from(count(zone));
            let low = if zone.kind < ZoneKind::Normal { pages } else { 0 };
            Self { low: sum.low + low, all: sum.all + pages }
        })
    }
}

/// The heuristics before 3.18: what speaks for node order, if anything does.
fn for_node_order(topology: &Topology) -> Option<OrderReason> {
    let numbered = || (0..).map(Node).zip(&topology.nodes);
    let has_normal = |spec: &NodeSpec| spec.zones.iter().any(|zone| zone.kind == ZoneKind::Normal);
    if let Some((node, _)) = numbered().find(|(_, spec)| !has_normal(spec)) {
        return Some(OrderReason::NoNormal(node));
    }
    let managed = Pages::of(topology.nodes.iter().flat_map(|node| &node.zones), |zone| zone.managed);
    if managed.low == 0 {
        return Some(OrderReason::NoLow);
    }
    if managed.low > managed.all / 2 {
        return Some(OrderReason::MostlyLow);
    }
    // Every node has a Normal zone by now, so all have memory.
    let average = managed.all / (topology.nodes.len() as u64 + 1);
    let mostly_low = |spec: &NodeSpec| {
        let present = Pages::of(spec.zones.iter(), |zone| zone.present);
        present.low > 0 && present.all > average && present.low > present.all * 70 / 100
    };
    numbered().find(|(_, spec)| mostly_low(spec)).map(|(node, _)| OrderReason::NodeMostlyLow(node))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::ground::ids::Pfn;
    use crate::ground::topology::CpuSpec;

    use ZoneKind::{Dma, Dma32, Normal};

    /// Zones as (kind, present, managed) pages, node by node.
    fn topology(nodes: &[&[(ZoneKind, u32, u32)]]) -> Topology {
        let mut start = 1;
        let mut zone = |&(kind, present, managed): &(ZoneKind, u32, u32)| {
            let spec = ZoneSpec { kind, start: Pfn(start), spanned: present, present, managed };
            start += present;
            spec
        };
        let nodes: Vec<NodeSpec> =
            nodes.iter().map(|zones| NodeSpec { zones: zones.iter().map(&mut zone).collect() }).collect();
        let row = |from| (0..nodes.len()).map(|to| if to == from { 10 } else { 20 }).collect();
        let distance = (0..nodes.len()).map(row).collect();
        let cpus = alloc::vec![CpuSpec { node: Node(0), cache_slice: 0 }];
        let topology = Topology { word: WordSize::Bits64, nodes, cpus, distance };
        topology.validate().unwrap();
        topology
    }

    fn auto(nodes: &[&[(ZoneKind, u32, u32)]]) -> OrderReason {
        let choice = OrderChoice::by_rule(&topology(nodes), ZonelistOrderRule::Auto);
        let zone = choice.order == ZonelistOrder::Zone;
        assert_eq!(zone, choice.reason == OrderReason::LowIsScarce, "{choice:?}");
        choice.reason
    }

    #[test]
    fn scarce_low_memory_is_kept_by_zone_order() {
        let low = (Dma32, 500, 500);
        assert_eq!(auto(&[&[low, (Normal, 1000, 1000)], &[(Normal, 1500, 1500)]]), OrderReason::LowIsScarce);
    }

    #[test]
    fn a_node_without_normal_speaks_for_node_order() {
        let scarce = &[(Dma32, 500, 500), (Normal, 4000, 4000)];
        assert_eq!(auto(&[scarce, &[(Normal, 4000, 4000)], &[]]), OrderReason::NoNormal(Node(2)));
        assert_eq!(auto(&[&[(Dma32, 500, 500)], &[(Normal, 4000, 4000)]]), OrderReason::NoNormal(Node(0)));
        // As on ppc, whose memory was all DMA.
        assert_eq!(auto(&[&[(Dma, 4000, 4000)], &[(Dma, 4000, 4000)]]), OrderReason::NoNormal(Node(0)));
    }

    #[test]
    fn a_machine_without_low_memory_has_nothing_to_keep() {
        assert_eq!(auto(&[&[(Normal, 4000, 4000)], &[(Normal, 4000, 4000)]]), OrderReason::NoLow);
    }

    #[test]
    fn half_of_all_managed_pages_may_be_low_and_no_more() {
        let nodes =
            |low, present| auto(&[&[(Dma32, present, low), (Normal, 600, 600)], &[(Normal, 900, 400)]]);
        assert_eq!(nodes(1000, 1000), OrderReason::LowIsScarce);
        assert_eq!(nodes(1002, 1002), OrderReason::MostlyLow);
        // 1003 is the half of 2003, rounded down: not more than it.
        assert_eq!(nodes(1001, 1001), OrderReason::MostlyLow);
        // Present pages do not count here.
        assert_eq!(nodes(1000, 1400), OrderReason::LowIsScarce);
    }

    #[test]
    fn more_than_70_percent_of_a_large_node_may_not_be_low() {
        // Two nodes: the average is a third of what is managed.
        let first =
            |low| auto(&[&[(Dma32, low, low), (Normal, 1000 - low, 1000 - low)], &[(Normal, 900, 900)]]);
        assert_eq!(first(700), OrderReason::LowIsScarce);
        assert_eq!(first(701), OrderReason::NodeMostlyLow(Node(0)));
    }

    #[test]
    fn that_rule_counts_present_pages() {
        let first = |managed| auto(&[&[(Dma32, 800, managed), (Normal, 200, 200)], &[(Normal, 1500, 1500)]]);
        assert_eq!(first(800), OrderReason::NodeMostlyLow(Node(0)));
        assert_eq!(first(1), OrderReason::NodeMostlyLow(Node(0)));
    }

    #[test]
    fn a_node_that_is_not_above_the_average_does_not_count() {
        // 1000 of 3000 managed pages, two nodes: the average is 1000, and it takes more.
        let with = |rest| auto(&[&[(Dma32, 900, 900), (Normal, 100, 100)], &[(Normal, rest, rest)]]);
        assert_eq!(with(2000), OrderReason::LowIsScarce);
        assert_eq!(with(1996), OrderReason::NodeMostlyLow(Node(0)));
    }

    #[test]
    fn newer_rules_go_by_word_size_or_know_one_order_only() {
        let topology = topology(&[&[(Dma32, 500, 500), (Normal, 4000, 4000)], &[(Normal, 4000, 4000)]]);
        let by = |rule, setting| OrderChoice::by_setting(&topology, rule, setting);
        let node = |reason| OrderChoice { order: ZonelistOrder::Node, reason };
        let word = OrderReason::WordSize(WordSize::Bits64);
        assert_eq!(by(ZonelistOrderRule::ByWordSize, 0), node(word));
        assert_eq!(by(ZonelistOrderRule::ByWordSize, 1), node(OrderReason::Asked));
        let asked = OrderChoice { order: ZonelistOrder::Zone, reason: OrderReason::Asked };
        assert_eq!(by(ZonelistOrderRule::ByWordSize, 2), asked);
        assert_eq!(by(ZonelistOrderRule::Auto, 2), asked);
        assert_eq!(by(ZonelistOrderRule::Node, 1), node(OrderReason::Only));
    }
}
