//! The rules about nodes and zones and their history: in which order they are asked, what each keeps free, how requests
//! are spread over them (docs/rules/watermarks-and-zonelists.md). Where a version is not said there, the rule says where
//! it is from.

use super::v;
use crate::ground::version::Since;

/// What a zonelist remembers of the nodes that others already fall back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeLoadRule {
    /// The last node's load overwrites it.
    Overwritten,
    /// It adds up.
    Accumulated,
}

pub(super) const NODE_LOAD: &[Since<NodeLoadRule>] =
    &[Since(v(2, 6), NodeLoadRule::Overwritten), Since(v(5, 16), NodeLoadRule::Accumulated)];

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

pub(super) const ZONELIST_ORDER: &[Since<ZonelistOrderRule>] = &[
    Since(v(2, 6), ZonelistOrderRule::Auto),
    Since(v(3, 18), ZonelistOrderRule::ByWordSize),
    Since(v(4, 14), ZonelistOrderRule::Node),
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

pub(super) const FAIR: &[Since<FairRule>] = &[
    Since(v(2, 6), FairRule::Unfair),
    Since(v(3, 12), FairRule::ZoneBatches),
    Since(v(4, 8), FairRule::Unfair),
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

pub(super) const MOVABLE_MARKS: &[Since<MovableMarksRule>] =
    &[Since(v(2, 6), MovableMarksRule::Shared), Since(v(6, 6), MovableMarksRule::Own)];

/// How far a zone's low and high marks are from its min mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkDistanceRule {
    /// A quarter and a half of the zone's share of `min_free_kbytes`; `vm.watermark_scale_factor` does nothing.
    QuarterOfMin,
    /// Once and twice the larger of that quarter and `vm.watermark_scale_factor`'s part of the zone.
    Scaled,
}

/// Commit 795ae7a0de6b of March 2016; from memory.
pub(super) const MARK_DISTANCE: &[Since<MarkDistanceRule>] =
    &[Since(v(2, 6), MarkDistanceRule::QuarterOfMin), Since(v(4, 6), MarkDistanceRule::Scaled)];

/// The largest `min_free_kbytes` that follows from memory size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinFreeRule {
    /// 64 MiB.
    UpTo64Mib,
    /// 256 MiB.
    UpTo256Mib,
}

/// Commit ee8eb9a5fe86 of April 2020; from memory.
pub(super) const MIN_FREE: &[Since<MinFreeRule>] =
    &[Since(v(2, 6), MinFreeRule::UpTo64Mib), Since(v(5, 8), MinFreeRule::UpTo256Mib)];

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
pub(super) const FALLBACK: &[Since<FallbackRule>] = &[
    Since(v(2, 6), FallbackRule::LargestWithNeighbours),
    Since(v(6, 10), FallbackRule::LargestAlone),
    Since(v(6, 12), FallbackRule::ClaimOrSmallest),
    Since(v(6, 13), FallbackRule::LargestAlone),
    Since(v(6, 15), FallbackRule::ClaimOrSmallest),
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
pub(super) const MIXING: &[Since<MixingRule>] =
    &[Since(v(2, 6), MixingRule::Accepted), Since(v(5, 0), MixingRule::Avoided)];

/// Whether pageblocks are kept for atomic requests of higher orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HighAtomicRule {
    /// No. (Kernels of that time kept one or two pageblocks a zone for any request in need; that is left out.)
    None,
    /// After such a request was served, to 1 % of a zone.
    Reserved,
}

/// Commit 0aaa29a56e4f of November 2015; from memory.
pub(super) const HIGHATOMIC: &[Since<HighAtomicRule>] =
    &[Since(v(2, 6), HighAtomicRule::None), Since(v(4, 4), HighAtomicRule::Reserved)];

/// What of the highatomic reserve does not count as free for requests that may not use any reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WithheldRule {
    /// All of its pages, those in use too.
    Reserved,
    /// Its free pages.
    FreeOnly,
}

/// Read in 6.1, 6.6 (the first) and 6.12.117 (the second); that no version between has it is from memory.
pub(super) const WITHHELD: &[Since<WithheldRule>] =
    &[Since(v(2, 6), WithheldRule::Reserved), Since(v(6, 12), WithheldRule::FreeOnly)];

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
pub(super) const ATOMIC_BOOST: &[Since<AtomicBoostRule>] =
    &[Since(v(2, 6), AtomicBoostRule::Counts), Since(v(5, 9), AtomicBoostRule::Ignored)];
