//! What must be there for a knob to act, and what is missing.

use mm::policy::{
    ArenaRule, BudgetRule, CpuSlabRule, MarkDistanceRule, MixingRule, ProactiveRule, PromotionRule, Rules,
    ZonelistOrderRule, ZonesRule,
};
use mm::{Knob, Node, Policy, Topology, ZoneKind};

use super::Brings;

/// Where a knob is to act.
#[derive(Clone, Copy, Debug)]
pub struct Where<'a> {
    /// What the workload brings.
    pub brings: Brings,
    /// The machine.
    pub topology: &'a Topology,
    /// The policy.
    pub policy: &'a Policy,
    /// All knobs that are set, at the start or later, with their values; one may be there several times.
    pub set: &'a [(Knob, u64)],
}

/// One thing that a knob cannot act without.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// Daemons and ticks.
    Daemons,
    /// Slab objects.
    Slabs,
    /// Address spaces.
    Spaces,
    /// Files that are written to.
    Files,
    /// Address spaces that are looked through for pages in use.
    Programs,
    /// A node without CPUs, whose memory is slower.
    SlowNode,
    /// A zone of this kind, and a higher one on its node.
    ZoneBelowAnother(ZoneKind),
    /// A zone of HighMem.
    HighMem,
    /// More than one node, one of which has more than one zone.
    OrderOfZones,
    /// Somewhere for anonymous pages to go when they are reclaimed.
    RoomForAnon,
    /// A policy that has a rule; the text says which policies lack it, or have it.
    Rule(fn(&Rules) -> bool, &'static str),
    /// Another knob at a value for which the first says yes; the text says which.
    Other(Knob, fn(u64) -> bool, &'static str),
}

impl Need {
    /// What is missing, as the end of "cannot act: …".
    pub(super) fn missing(&self, place: &Where<'_>) -> Option<String> {
        let Where { brings, topology, policy, .. } = *place;
        let (has, text) = match *self {
            Self::Daemons => (brings.daemons, "there are no daemons and no ticks here"),
            Self::Slabs if brings.is_recording => {
                (brings.slabs, "the recording has no slab events (record --events page,sched,slab has them)")
            }
            Self::Slabs => (brings.slabs, "the workload takes no slab objects"),
            Self::Spaces | Self::Files | Self::Programs if brings.is_recording => {
                (false, "a recording has page and slab events, but no address spaces and no files")
            }
            Self::Spaces => (brings.spaces, "the workload has no address spaces"),
            Self::Files => (brings.files, "the workload writes to no files"),
            Self::Programs => {
                (brings.programs, "the workload has no pages to be looked through for promotion")
            }
            Self::SlowNode => (has_slow_node(topology), "the machine has no node without CPUs"),
            Self::ZoneBelowAnother(kind) => {
                let text = match kind {
                    ZoneKind::Normal => "no node of the machine has HighMem or Movable above its zone Normal",
                    _ => "no node of the machine has such a zone with a higher one above it",
                };
                (has_zone_below_another(topology, kind), text)
            }
            Self::HighMem => {
                (has_zone(topology, ZoneKind::HighMem), "the machine has no HighMem (32-bit machines do)")
            }
            Self::OrderOfZones => {
                (has_order(topology), "on the machine both orders ask the same zones in the same order")
            }
            Self::RoomForAnon => {
                let demotes = place.has(Knob::DemotionEnabled, |value| value == 1) && has_slow_node(topology);
                (
                    demotes,
                    "nothing takes anonymous pages in: workloads have no swap, and no pages are demoted",
                )
            }
            Self::Rule(has, text) => (has(policy.rules()), text),
            Self::Other(knob, suits, text) => (place.has(knob, suits), text),
        };
        (!has).then(|| match self {
            Self::Rule(..) => format!("{}: {text}", policy.name()),
            _ => text.to_owned(),
        })
    }
}

impl Where<'_> {
    /// Whether `knob` has, at any time, a value that `suits`.
    fn has(&self, knob: Knob, suits: impl Fn(u64) -> bool) -> bool {
        let mut values = self.set.iter().filter(|(set, _)| *set == knob).map(|(_, value)| *value).peekable();
        if values.peek().is_none() { suits(knob.spec().default) } else { values.any(suits) }
    }
}

fn has_slow_node(topology: &Topology) -> bool {
    let nodes = topology.nodes.iter().zip((0..).map(Node));
    nodes.into_iter().any(|(spec, node)| !spec.zones.is_empty() && topology.cpus_of(node) == 0)
}

fn has_zone(topology: &Topology, kind: ZoneKind) -> bool {
    topology.nodes.iter().flat_map(|node| &node.zones).any(|zone| zone.kind == kind)
}

fn has_zone_below_another(topology: &Topology, kind: ZoneKind) -> bool {
    topology.nodes.iter().any(|node| {
        let has = |suits: &dyn Fn(ZoneKind) -> bool| node.zones.iter().any(|zone| suits(zone.kind));
        has(&|of| of == kind) && has(&|of| of > kind)
    })
}

fn has_order(topology: &Topology) -> bool {
    let with_memory = topology.nodes.iter().filter(|node| !node.zones.is_empty());
    with_memory.clone().count() > 1 && with_memory.into_iter().any(|node| node.zones.len() > 1)
}

/// Rules that knobs need, with what policies lack them.
pub(super) const SCALED_MARKS: Need = Need::Rule(
    |rules| rules.mark_distance == MarkDistanceRule::Scaled,
    "before 4.6 the distance of marks is a quarter of the lowest",
);
pub(super) const AVOIDS_MIXING: Need =
    Need::Rule(|rules| rules.mixing == MixingRule::Avoided, "before 5.0 marks are never boosted");
pub(super) const CHOOSES_ORDER: Need = Need::Rule(
    |rules| rules.zonelist_order != ZonelistOrderRule::Node,
    "since 4.14 there is only node order",
);
pub(super) const ARENAS: Need = Need::Rule(
    |rules| rules.arenas != ArenaRule::One || rules.zones != ZonesRule::Whole,
    "a zone has one set of free lists (+arenas and +zones divide it)",
);
pub(super) const CPU_SLABS: Need = Need::Rule(
    |rules| rules.slab.cpu_slabs != CpuSlabRule::None,
    "since 7.0 CPUs keep sheaves and no partial slabs",
);
pub(super) const PROACTIVE: Need = Need::Rule(
    |rules| rules.compact.proactive == ProactiveRule::ByScore,
    "it does not compact by score unasked (Linux does since 5.9)",
);
pub(super) const BUDGET: Need = Need::Rule(
    |rules| rules.compact.budget != BudgetRule::Unbounded,
    "a call of compaction has no budget (+compact-budget and +compact-tuned-budget have one)",
);
pub(super) const REGIONS: Need = Need::Rule(
    |rules| rules.promotion == PromotionRule::Regions,
    "nothing looks for pages by regions (+promote does)",
);
pub(super) const KMMSCAND: Need =
    Need::Rule(|rules| rules.promotion.revision().is_some(), "there is no kmmscand (kmmscand-vN has it)");
pub(super) const KMMSCAND_BOUNDED: Need = Need::Rule(
    |rules| rules.promotion.revision().is_some_and(|revision| revision.size.is_some()),
    "nothing bounds the addresses of a scan (kmmscand-vN does)",
);
