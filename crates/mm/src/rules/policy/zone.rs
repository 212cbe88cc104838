//! The rules about nodes and zones and their history: in which order they are asked, what each keeps free, how requests
//! are spread over them (docs/rules/watermarks-and-zonelists.md). Where a version is not said there, the rule says where
//! it is from.

use super::in_force::{List, Of};
use super::mechanism::Mechanism;
use super::part::Part;
use super::v;
use crate::ground::{Since, Version, at};

/// What a zonelist remembers of the nodes that others already fall back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeLoadRule {
    /// The last node's load overwrites it.
    Overwritten,
    /// It adds up.
    Accumulated,
}

const NODE_LOAD: &[Since<NodeLoadRule>] = &[
    Since(v(2, 6), NodeLoadRule::Overwritten, ""),
    Since(v(5, 16), NodeLoadRule::Accumulated, "54d032ced983"),
];

/// Which order zonelists have where `vm.numa_zonelist_order` leaves it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZonelistOrderRule {
    /// By how much DMA and DMA32 memory there is, and where: what Mel Gorman's patch removes.
    Auto,
    /// Node order on 64-bit machines, zone order on 32-bit ones: Mel Gorman's patch (docs/published.md#gorman-2014).
    ByWordSize,
    /// Node order; there is no other.
    Node,
}

const ZONELIST_ORDER: &[Since<ZonelistOrderRule>] = &[
    Since(v(2, 6), ZonelistOrderRule::Auto, ""),
    Since(v(3, 18), ZonelistOrderRule::ByWordSize, "3193913ce62c"),
    Since(v(4, 14), ZonelistOrderRule::Node, "c9bff3eebc09"),
];

/// Whether low zones keep memory by what those who can use nothing else were seen to take. No kernel does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZonePriceRule {
    /// No: they keep a part of what is above them (`lowmem_reserve_ratio`), and a zonelist's order decides the rest.
    None,
    /// Yes; and who could be elsewhere is moved out before anything is evicted for them.
    Learned,
}

/// Whether requests are spread over the zones of a node, so that all of its pages grow old alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FairRule {
    /// No: a zone is used until its low mark.
    Unfair,
    /// Each zone of the node in turn, by batches in proportion to its size. The form is that of 3.17; before that, batches
    /// were set anew in the slow path only.
    ZoneBatches,
}

const FAIR: &[Since<FairRule>] = &[
    Since(v(2, 6), FairRule::Unfair, ""),
    Since(v(3, 12), FairRule::ZoneBatches, "81c0a2bb515f"),
    Since(v(4, 8), FairRule::Unfair, "e6cbd7f2efb4"),
];

/// How the marks treat a Movable zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MovableMarksRule {
    /// As any other zone: it is low memory and has its share of `min_free_kbytes`.
    Shared,
    /// It is not low memory and its min mark is a small one of its own; the distance of its other marks still goes by
    /// the share that it would have.
    Own,
}

const MOVABLE_MARKS: &[Since<MovableMarksRule>] =
    &[Since(v(2, 6), MovableMarksRule::Shared, ""), Since(v(6, 6), MovableMarksRule::Own, "")];

/// How far a zone's low and high marks are from its min mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkDistanceRule {
    /// A quarter and a half of the zone's share of `min_free_kbytes`; `vm.watermark_scale_factor` does nothing.
    QuarterOfMin,
    /// Once and twice the larger of that quarter and `vm.watermark_scale_factor`'s part of the zone.
    Scaled,
}

/// Commit 795ae7a0de6b of March 2016; from memory.
const MARK_DISTANCE: &[Since<MarkDistanceRule>] = &[
    Since(v(2, 6), MarkDistanceRule::QuarterOfMin, ""),
    Since(v(4, 6), MarkDistanceRule::Scaled, "795ae7a0de6b"),
];

/// The largest `min_free_kbytes` that follows from memory size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinFreeRule {
    /// 64 MiB.
    UpTo64Mib,
    /// 256 MiB.
    UpTo256Mib,
}

/// Commit ee8eb9a5fe86 of April 2020; from memory.
const MIN_FREE: &[Since<MinFreeRule>] =
    &[Since(v(2, 6), MinFreeRule::UpTo64Mib, ""), Since(v(5, 8), MinFreeRule::UpTo256Mib, "ee8eb9a5fe86")];

/// From where a request takes a block of another type when its own lists are empty. Movable requests that find nothing
/// of order 4 or more take the smallest block under every rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FallbackRule {
    /// The largest block; all that is free in its pageblock comes along to the request's lists, the pageblock itself
    /// only if half of it is free or of a kind. What is left of a single block comes along too.
    LargestWithNeighbours,
    /// The largest block; its neighbours come along only together with the pageblock, and what is left of it stays what
    /// it was.
    LargestAlone,
    /// A pageblock that is half free or of a kind, with the largest block that has one; else the smallest block.
    ClaimOrSmallest,
}

/// Commits c0cd6f557b90 (6.10) and c2f6ea38fc1b (6.15). Read in 6.1, 6.6, 6.12.117 and 6.18; that the first ends with 6.9
/// is from memory. Stable 6.12 has the newer rule; 6.13 and 6.14 stand as they were released. Before 4.13 movable
/// requests took the largest block too (from memory), which is not told apart.
const FALLBACK: &[Since<FallbackRule>] = &[
    Since(v(2, 6), FallbackRule::LargestWithNeighbours, ""),
    Since(v(6, 10), FallbackRule::LargestAlone, "c0cd6f557b90"),
    Since(v(6, 12), FallbackRule::ClaimOrSmallest, "c2f6ea38fc1b"),
    Since(v(6, 13), FallbackRule::LargestAlone, ""),
    Since(v(6, 15), FallbackRule::ClaimOrSmallest, "c2f6ea38fc1b"),
];

/// What is done against pageblocks with pages of several types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MixingRule {
    /// Nothing.
    Accepted,
    /// Requests rather go to a lower zone of the node first, and a claim of part of a pageblock raises the marks.
    Avoided,
}

/// Commits 6bb154504f8b and 1c30844d2dfe of December 2018; from memory.
const MIXING: &[Since<MixingRule>] =
    &[Since(v(2, 6), MixingRule::Accepted, ""), Since(v(5, 0), MixingRule::Avoided, "6bb154504f8b")];

/// Whether pageblocks are kept for atomic requests of higher orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HighAtomicRule {
    /// No. (Kernels of that time kept one or two pageblocks a zone for any request in need; that is left out.)
    None,
    /// After such a request was served, to 1 % of a zone.
    Reserved,
}

/// Commit 0aaa29a56e4f of November 2015; from memory.
const HIGHATOMIC: &[Since<HighAtomicRule>] =
    &[Since(v(2, 6), HighAtomicRule::None, ""), Since(v(4, 4), HighAtomicRule::Reserved, "0aaa29a56e4f")];

/// What of the highatomic reserve does not count as free for requests that may not use any reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WithheldRule {
    /// All of its pages, those in use too.
    Reserved,
    /// Its free pages.
    FreeOnly,
}

/// Read in 6.1, 6.6 (the first) and 6.12.117 (the second); that no version between has it is from memory.
const WITHHELD: &[Since<WithheldRule>] =
    &[Since(v(2, 6), WithheldRule::Reserved, ""), Since(v(6, 12), WithheldRule::FreeOnly, "")];

/// Whether marks that were raised against mixing hold for atomic requests for single pages too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicBoostRule {
    /// Yes.
    Counts,
    /// No: at the min mark they go by the mark itself.
    Ignored,
}

/// Commit f80b08fc4453 of June 2020, from memory; read in 6.1 (`__GFP_ATOMIC`) and 6.6 (`__GFP_HIGH`), which no request here
/// has without the other.
const ATOMIC_BOOST: &[Since<AtomicBoostRule>] =
    &[Since(v(2, 6), AtomicBoostRule::Counts, ""), Since(v(5, 9), AtomicBoostRule::Ignored, "f80b08fc4453")];

/// The rules of zones: marks, mixing, the order in which they are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct ZoneRules {
    pub movable_marks: MovableMarksRule,
    pub mark_distance: MarkDistanceRule,
    pub min_free: MinFreeRule,
    pub mixing: MixingRule,
    pub highatomic: HighAtomicRule,
    pub withheld: WithheldRule,
    pub atomic_boost: AtomicBoostRule,
    pub fallback: FallbackRule,
    pub node_load: NodeLoadRule,
    pub zonelist_order: ZonelistOrderRule,
    pub fair: FairRule,
    pub zone_price: ZonePriceRule,
}

impl ZoneRules {
    /// The rules of mainline Linux `version`.
    pub(super) fn linux(version: Version) -> Self {
        Self {
            movable_marks: at(MOVABLE_MARKS, version),
            mark_distance: at(MARK_DISTANCE, version),
            min_free: at(MIN_FREE, version),
            mixing: at(MIXING, version),
            highatomic: at(HIGHATOMIC, version),
            withheld: at(WITHHELD, version),
            atomic_boost: at(ATOMIC_BOOST, version),
            fallback: at(FALLBACK, version),
            node_load: at(NODE_LOAD, version),
            zonelist_order: at(ZONELIST_ORDER, version),
            fair: at(FAIR, version),
            zone_price: ZonePriceRule::None,
        }
    }

    pub(super) fn visit(&mut self, other: &Self, to: &mut List) {
        use Mechanism::{Compaction, Watermarks, Zonelists};
        let Self {
            movable_marks,
            mark_distance,
            min_free,
            mixing,
            highatomic,
            withheld,
            atomic_boost,
            fallback,
            node_load,
            zonelist_order,
            fair,
            zone_price,
        } = self;
        let marks_of = Of("movable-marks", &[Watermarks], "how the marks treat a Movable zone");
        to.add(marks_of, MOVABLE_MARKS, movable_marks, other.movable_marks);
        let distance_of = Of("mark-distance", &[Watermarks], "how far low and high marks are from min");
        to.add(distance_of, MARK_DISTANCE, mark_distance, other.mark_distance);
        to.add(
            Of("min-free", &[Watermarks], "largest min_free_kbytes by itself"),
            MIN_FREE,
            min_free,
            other.min_free,
        );
        let mixing_of = Of("mixing", &[Watermarks, Compaction], "what is done about mixed pageblocks");
        to.add(mixing_of, MIXING, mixing, other.mixing);
        let atomic_of = Of("highatomic", &[Watermarks], "blocks kept for atomic requests");
        to.add(atomic_of, HIGHATOMIC, highatomic, other.highatomic);
        let withheld_of = Of("withheld", &[Watermarks], "which free pages do not count for a request");
        to.add(withheld_of, WITHHELD, withheld, other.withheld);
        let boost_of = Of("atomic-boost", &[Watermarks], "which requests may go below the mark");
        to.add(boost_of, ATOMIC_BOOST, atomic_boost, other.atomic_boost);
        let fallback_of = Of("fallback", &[Compaction], "which block of another type is taken");
        to.add(fallback_of, FALLBACK, fallback, other.fallback);
        let load_of = Of("node-load", &[Zonelists], "how equal distances are told apart");
        to.add(load_of, NODE_LOAD, node_load, other.node_load);
        let order_of = Of("zonelist-order", &[Zonelists], "node order or zone order by default");
        to.add(order_of, ZONELIST_ORDER, zonelist_order, other.zonelist_order);
        to.add(Of("fair", &[Zonelists], "whether zones of a node take turns"), FAIR, fair, other.fair);
        let price_of = Of("zone-price", &[Zonelists], "what low zones keep by what was seen");
        to.constant(price_of, ZonePriceRule::None, zone_price, other.zone_price);
    }
}

/// Parts of zones.
pub(super) const PARTS: &[Part] = &[Part {
    name: "zone-price",
    meaning: "Low zones keep free what requests that can use nothing else were seen to take of late; pages that could be \
                  elsewhere are moved out when they need more",
    set: |rules| rules.zone.zone_price = ZonePriceRule::Learned,
    pays: true,
}];
