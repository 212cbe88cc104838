//! The rules of page lists, of the free lists behind them, and of how zones are divided; with the parts that change them.

use super::in_force::{List, Of};
use super::mechanism::Mechanism;
use super::part::Part;
use super::v;
use crate::ground::{Since, Version, at};

/// How many pages a pageset's batch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchRule {
    /// At most 512 KiB / 4 (31 pages).
    Half,
    /// A quarter of at most 1 MiB, times 1.5, rounded down to a power of two, less 1 (63 pages).
    Quarter,
    /// The same from a cap of 256 KiB; as small zones go by 1/4096 of their pages (63 pages).
    Capped,
}

const BATCH: &[Since<BatchRule>] = &[
    Since(v(2, 6), BatchRule::Half, ""),
    Since(v(4, 19), BatchRule::Quarter, "d8a759b57035"),
    Since(v(6, 19), BatchRule::Capped, ""),
];

/// How many pages a pageset may keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HighRule {
    /// Six batches.
    SixBatches,
    /// The zone's low watermark, divided among the node's CPUs.
    LowWatermark,
    /// Tuned between that and an eighth of the zone divided among the node's CPUs.
    AutoTuned,
}

const HIGH: &[Since<HighRule>] = &[
    Since(v(2, 6), HighRule::SixBatches, ""),
    Since(v(5, 14), HighRule::LowWatermark, "b92ca18e8ca5"),
    Since(v(6, 7), HighRule::AutoTuned, "51a755c56dc0"),
];

/// Which orders pagesets cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PcpOrders {
    /// Single pages.
    Zero,
    /// Orders 0 to 3 and huge pages on one list.
    WithHuge,
    /// Orders 0 to 3, huge pages on two lists (movable or not).
    WithTwoHuge,
}

const PCP_ORDERS: &[Since<PcpOrders>] = &[
    Since(v(2, 6), PcpOrders::Zero, ""),
    Since(v(5, 14), PcpOrders::WithHuge, "44042b449872"),
    Since(v(6, 10), PcpOrders::WithTwoHuge, "bf14ed81f571"),
];

/// How a refill sizes itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefillRule {
    /// One batch.
    Batch,
    /// Batches that double with every refill (`alloc_factor`).
    Doubling,
}

const REFILL: &[Since<RefillRule>] =
    &[Since(v(2, 6), RefillRule::Batch, ""), Since(v(6, 7), RefillRule::Doubling, "c0a242394cb9")];

/// How a drain on the free path sizes itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DrainRule {
    /// One batch.
    Batch,
    /// Batches that double with every drain (`free_factor`), halved by an allocation.
    FreeFactor,
    /// As many pages as were freed of late (`free_count`), halved by an allocation.
    FreeCount,
}

const DRAIN: &[Since<DrainRule>] = &[
    Since(v(2, 6), DrainRule::Batch, ""),
    Since(v(5, 14), DrainRule::FreeFactor, "3b12e7e97938"),
    Since(v(6, 7), DrainRule::FreeCount, "6ccdcb6d3a74"),
];

/// When frees of orders 1 to 3 in a row empty the pageset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeHighRule {
    /// Never.
    Never,
    /// At every such free, once a drain has happened.
    AfterDrain,
    /// At the second in a row, with `free_count` at a batch or more.
    Sequence,
    /// The same, with `free_count` at a batch and half of `high_min`.
    LongSequence,
}

const FREE_HIGH: &[Since<FreeHighRule>] = &[
    Since(v(2, 6), FreeHighRule::Never, ""),
    Since(v(5, 18), FreeHighRule::AfterDrain, "f26b3fa04611"),
    Since(v(6, 7), FreeHighRule::Sequence, "ca71fe1ad922"),
    Since(v(6, 16), FreeHighRule::LongSequence, "c544a952ba61"),
];

/// How much is given back in one hold of the zone lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldRule {
    /// All of it.
    Whole,
    /// A batch; then both locks are let go and the pageset's is tried again.
    Batch,
}

const HOLD: &[Since<HoldRule>] = &[Since(v(2, 6), HoldRule::Whole, ""), Since(v(6, 19), HoldRule::Batch, "")];

/// Whether the pages of a refill are checked one by one under the zone lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckRule {
    /// Not under the lock.
    Outside,
    /// Every base page, under the lock.
    UnderLock,
}

const CHECK: &[Since<CheckRule>] = &[
    Since(v(2, 6), CheckRule::Outside, ""),
    Since(v(5, 18), CheckRule::UnderLock, "77fe7f136a73"),
    Since(v(6, 3), CheckRule::Outside, ""),
];

/// How `vm.pcp_batch_scale_max` bounds `free_count` and the decay of `high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScaleRule {
    /// As mainline does: `free_count` may overshoot by one block; decay is bounded by the scaled batch.
    Mainline,
    /// As Yafang Shao's series does: `free_count` stops at the bound; decay keeps the default scale of 5 and frees a batch
    /// at a time.
    Series,
}

/// What a hold of the zone lock does about CPUs that wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YieldRule {
    /// Nothing: it ends when its work is done, and batches grow so that there are fewer holds.
    Never,
    /// It ends early for them; batches do not grow.
    ToWaiters,
}

/// When descriptors that a drain will need are brought into the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TouchRule {
    /// When the work comes to them, under the zone lock.
    UnderLock,
    /// Before the lock is taken.
    Ahead,
}

/// Whether a zone is divided into smaller ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZonesRule {
    /// It is one piece.
    Whole,
    /// It has parts, each with free lists and a lock of its own, that begin and end at fixed addresses.
    Divided,
}

/// How many sets of free lists a zone, or a part of one, has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArenaRule {
    /// One.
    One,
    /// Several, each with a lock, between which whole ranges of memory move.
    Several,
}

/// The rules of page lists and free lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct ListRules {
    pub batch: BatchRule,
    pub high: HighRule,
    pub pcp_orders: PcpOrders,
    pub refill: RefillRule,
    pub drain: DrainRule,
    pub free_high: FreeHighRule,
    pub hold: HoldRule,
    pub check: CheckRule,
    pub scale: ScaleRule,
    pub yields: YieldRule,
    pub touch: TouchRule,
    pub zones: ZonesRule,
    pub arenas: ArenaRule,
    /// Bytes of a frame descriptor in that kernel, which decides how many share a cache line.
    pub descriptor_bytes: u32,
}

impl ListRules {
    /// The rules of mainline Linux `version`.
    pub(super) fn linux(version: Version) -> Self {
        Self {
            batch: at(BATCH, version),
            high: at(HIGH, version),
            pcp_orders: at(PCP_ORDERS, version),
            refill: at(REFILL, version),
            drain: at(DRAIN, version),
            free_high: at(FREE_HIGH, version),
            hold: at(HOLD, version),
            check: at(CHECK, version),
            scale: ScaleRule::Mainline,
            yields: YieldRule::Never,
            touch: TouchRule::UnderLock,
            zones: ZonesRule::Whole,
            arenas: ArenaRule::One,
            descriptor_bytes: 64,
        }
    }

    /// Whether a zone has more than one set of free lists.
    pub fn divides_zones(&self) -> bool {
        self.arenas != ArenaRule::One || self.zones != ZonesRule::Whole
    }

    pub(super) fn visit(&mut self, other: &Self, to: &mut List) {
        use Mechanism::PageLists;
        #[rustfmt::skip]
        let Self {
            batch, high, pcp_orders, refill, drain, free_high, hold,
            check, scale, yields, touch, zones, arenas, descriptor_bytes,
        } = self;
        to.add(Of("batch", &[PageLists], "pages of a page list's batch"), BATCH, batch, other.batch);
        to.add(Of("high", &[PageLists], "pages that a page list may keep"), HIGH, high, other.high);
        to.add(
            Of("pcp-orders", &[PageLists], "orders that page lists hold"),
            PCP_ORDERS,
            pcp_orders,
            other.pcp_orders,
        );
        to.add(Of("refill", &[PageLists], "pages of a refill"), REFILL, refill, other.refill);
        to.add(Of("drain", &[PageLists], "pages of a drain"), DRAIN, drain, other.drain);
        to.add(
            Of("free-high", &[PageLists], "when frees of orders 1 to 3 empty a list"),
            FREE_HIGH,
            free_high,
            other.free_high,
        );
        to.add(
            Of("hold", &[PageLists], "pages given back in one hold of the zone lock"),
            HOLD,
            hold,
            other.hold,
        );
        to.add(Of("check", &[PageLists], "where a refill's pages are checked"), CHECK, check, other.check);
        let scale_of = Of("scale", &[PageLists], "how vm.pcp_batch_scale_max bounds drains and decay");
        to.constant(scale_of, ScaleRule::Mainline, scale, other.scale);
        let yields_of = Of("yields", &[PageLists], "whether a hold ends for CPUs that wait");
        to.constant(yields_of, YieldRule::Never, yields, other.yields);
        let touch_of = Of("touch", &[PageLists], "when a drain reads descriptors");
        to.constant(touch_of, TouchRule::UnderLock, touch, other.touch);
        to.constant(
            Of("zones", &[PageLists], "whether a zone has parts"),
            ZonesRule::Whole,
            zones,
            other.zones,
        );
        to.constant(
            Of("arenas", &[PageLists], "sets of free lists in a zone"),
            ArenaRule::One,
            arenas,
            other.arenas,
        );
        let bytes_of = Of("descriptor-bytes", &Mechanism::ALL, "bytes of a frame descriptor");
        to.constant(bytes_of, 64, descriptor_bytes, other.descriptor_bytes);
    }
}

/// Bytes of a descriptor that holds what the page allocator needs and no more: [`crate::Frame`] is that.
const SMALL_DESCRIPTOR_BYTES: u32 = 16;

/// Parts of page lists.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "pcp_batch_scale_max",
        meaning: "Yafang Shao's series of three patches, as it was sent in July 2024",
        set: |rules| rules.lists.scale = ScaleRule::Series,
        pays: false,
    },
    Part {
        name: "yield",
        meaning: "Refills and drains are one batch, whatever the scale; a longer hold of the zone lock ends when another \
                  CPU waits for it",
        set: |rules| rules.lists.yields = YieldRule::ToWaiters,
        pays: true,
    },
    Part {
        name: "zones",
        meaning: "A large zone has parts at fixed addresses, each with free lists and a lock of its own; CPUs begin with \
                  different parts",
        set: |rules| rules.lists.zones = ZonesRule::Divided,
        pays: false,
    },
    Part {
        name: "arenas",
        meaning: "A zone has several sets of free lists, each with a lock; CPUs spread over them, and whole free ranges of \
                  4 MiB move to where they are needed",
        set: |rules| rules.lists.arenas = ArenaRule::Several,
        pays: true,
    },
    Part {
        name: "touch",
        meaning: "A drain brings its pages' descriptors and their buddies' into the cache before it takes the zone lock",
        set: |rules| rules.lists.touch = TouchRule::Ahead,
        pays: true,
    },
    Part {
        name: "small-descriptors",
        meaning: "A frame descriptor has 16 bytes instead of 64: four share a cache line",
        set: |rules| rules.lists.descriptor_bytes = SMALL_DESCRIPTOR_BYTES,
        pays: true,
    },
];
