//! What a knob needs to act, and what its decisions compare, as data. `lab::reach` knows workloads and machines; it finds
//! what is missing and says so.

use super::Knob;
use crate::ground::ZoneKind;
use crate::rules::policy::{MarkDistanceRule, MixingRule, ProactiveRule, Rules, ZonelistOrderRule};

/// One thing that a knob cannot act without.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// Daemons and ticks.
    Daemons,
    /// Slab objects.
    Slabs,
    /// Address spaces.
    Spaces,
    /// Address spaces that have pages in common with those that they forked.
    Forks,
    /// Files that are written to.
    Files,
    /// Address spaces that are looked through for pages in use.
    Programs,
    /// Programs that can be killed, not workloads that only stand for some.
    Killable,
    /// Tasks whose pages NUMA balancing can make fault.
    Hints,
    /// A machine with memory on several nodes.
    SeveralNodes,
    /// A node without CPUs, whose memory is slower.
    SlowNode,
    /// A zone of this kind, and a higher one on its node.
    ZoneBelowAnother(ZoneKind),
    /// A zone of HighMem.
    HighMem,
    /// More than one node, one of which has more than one zone.
    OrderOfZones,
    /// Somewhere for anonymous pages to go when they are reclaimed: slower memory, where the first knob at 1 demotes to it, or swap,
    /// where any of the others is not 0.
    RoomForAnon(Knob, &'static [Knob]),
    /// Reclaim that takes pages from lists. Whether memory runs short is known only after a run.
    Reclaim,
    /// Swap: any of these knobs is not 0.
    Swap(&'static [Knob]),
    /// Swap from which more is read than what is wanted: a disk, by the knob, or a policy that reads so from zram.
    ReadsAhead(Knob),
    /// The same of private memory.
    ReadsPrivateAhead(Knob),
    /// A policy that has a rule; the text says which policies lack it, or have it.
    Rule(fn(&Rules) -> bool, &'static str),
    /// Huge pages: somebody may have them by the file of all sizes or by their own.
    HugePages,
    /// Another knob at a value for which the first says yes; the text says which.
    Other(Knob, fn(u64) -> bool, &'static str),
}

/// What a knob's decisions compare with a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compares {
    /// Nothing: they are not about figures.
    Nothing,
    /// Memory, counted in pages.
    Memory(&'static str),
    /// A time in ns.
    Time(&'static str),
    /// Pages, as a number.
    Pages(&'static str),
    /// A bare number.
    Number(&'static str),
}

/// Rules that knobs need, with what policies lack them.
pub(super) const SCALED_MARKS: Need = Need::Rule(
    |rules| rules.zone.mark_distance == MarkDistanceRule::Scaled,
    "before 4.6 the distance of marks is a quarter of the lowest",
);
pub(super) const AVOIDS_MIXING: Need =
    Need::Rule(|rules| rules.zone.mixing == MixingRule::Avoided, "before 5.0 marks are never boosted");
pub(super) const CHOOSES_ORDER: Need = Need::Rule(
    |rules| rules.zone.zonelist_order != ZonelistOrderRule::Node,
    "since 4.14 there is only node order",
);
pub(super) const ARENAS: Need = Need::Rule(
    |rules| rules.lists.divides_zones(),
    "a zone has one set of free lists (+arenas and +zones divide it)",
);
pub(super) const CPU_SLABS: Need =
    Need::Rule(|rules| rules.slab.cpu_slabs.exist(), "since 7.0 CPUs keep sheaves and no partial slabs");
pub(super) const PROACTIVE: Need = Need::Rule(
    |rules| rules.compact.proactive != ProactiveRule::Never,
    "it does not compact by score unasked (Linux does since 5.9)",
);
pub(super) const BUDGET: Need = Need::Rule(
    |rules| rules.compact.budget.is_bounded(),
    "a call of compaction has no budget (+compact-budget and +compact-tuned-budget have one)",
);
pub(super) const REGIONS: Need = Need::Rule(
    |rules| rules.tier.promotion.is_by_regions(),
    "nothing looks for pages by regions (+promote does)",
);
pub(super) const KMMSCAND: Need = Need::Rule(
    |rules| rules.tier.promotion.revision().is_some(),
    "there is no kmmscand (kmmscand-vN has it)",
);
pub(super) const KMMSCAND_BOUNDED: Need = Need::Rule(
    |rules| rules.tier.promotion.revision().is_some_and(|revision| revision.size.is_some()),
    "nothing bounds the addresses of a scan (kmmscand-vN does)",
);

pub(super) const BALANCES: Need = Need::Other(
    Knob::NumaBalancing,
    |value| value != 0,
    "kernel.numa_balancing is 0, and nothing is made to fault",
);
pub(super) const BALANCES_BY_HEAT: Need = Need::Other(
    Knob::NumaBalancing,
    |value| value >= 2,
    "kernel.numa_balancing is below 2, and pages move by who uses them, not by heat",
);
pub(super) const RECLAIMS_NODE: Need = Need::Other(
    Knob::ZoneReclaimMode,
    |value| value != 0,
    "vm.zone_reclaim_mode is 0, and no request frees pages of one node before it asks the next",
);
pub(super) const GENERATES: Need = Need::Other(
    Knob::LruGenEnabled,
    |value| value & 1 != 0,
    "lru_gen.enabled is 0, and pages have no generations",
);
pub(super) const STRICT: Need = Need::Other(
    Knob::OvercommitMemory,
    |value| value == 2,
    "vm.overcommit_memory is not 2, and only then does the ratio count",
);
