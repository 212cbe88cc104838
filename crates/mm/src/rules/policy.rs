//! Which rules are in force. A policy is a name, `linux-6.18`, from which every rule follows through its history of
//! kernel versions (docs/rules/); what no version has is a part, `linux-6.18+yield`, and stands in
//! [`parts`]. To add a rule: an enum here, its history, a field of [`Rules`], and a `match` at the one place where the
//! mechanism differs.

mod compact;
mod error;
mod in_force;
mod mechanism;
pub mod parts;
mod reclaim;
mod slab;
mod tier;
mod zone;

use alloc::string::{String, ToString};

use crate::ground::version::{Since, Version, at};
use crate::rules::knobs::{Knob, KnobError};

use zone::{
    ATOMIC_BOOST, FAIR, FALLBACK, HIGHATOMIC, MARK_DISTANCE, MIN_FREE, MIXING, MOVABLE_MARKS, NODE_LOAD,
    WITHHELD, ZONELIST_ORDER,
};

pub use compact::{
    BackgroundRule, BudgetRule, CaptureRule, CompactRules, DeferRule, DeferScopeRule, FailedPageRule,
    FindRule, FreeStepRule, GapRule, IsolationRule, PcpDrainRule, PositionRule, ProactiveRule, ReschedRule,
    SecondTryRule, SourceRule, SuitableRule,
};
pub use error::{PolicyError, Refusal, check_version};
pub use in_force::{Origin, RuleInForce};
pub use mechanism::Mechanism;
pub use reclaim::{AnonRule, CongestionRule, HugeFaultRule, LruBatchRule, LruRule, ReclaimRules};
pub use slab::{
    CpuSlabRule, FreezeRule, GraceRule, KmallocAlignRule, NodePartialRule, RemoteRefillRule, SheafRule,
    SlabOrderRule, SlabRules, SlabScopeRule, StockRule,
};
pub use tier::PromotionRule;
pub use zone::{
    AtomicBoostRule, FairRule, FallbackRule, HighAtomicRule, MarkDistanceRule, MinFreeRule, MixingRule,
    MovableMarksRule, NodeLoadRule, WithheldRule, ZonePriceRule, ZonelistOrderRule,
};

/// The oldest kernel that has rules. Before 3.2, slabs had no CPU partial lists; this is left out.
pub const OLDEST: Version = v(3, 0);
/// The newest kernel whose rules have been read. What came later may differ, so it has no policy.
pub const NEWEST: Version = v(7, 2);

const fn v(major: u8, minor: u8) -> Version {
    Version::new(major, minor)
}

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
    Since(v(2, 6), BatchRule::Half),
    Since(v(4, 19), BatchRule::Quarter),
    Since(v(6, 19), BatchRule::Capped),
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
    Since(v(2, 6), HighRule::SixBatches),
    Since(v(5, 14), HighRule::LowWatermark),
    Since(v(6, 7), HighRule::AutoTuned),
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
    Since(v(2, 6), PcpOrders::Zero),
    Since(v(5, 14), PcpOrders::WithHuge),
    Since(v(6, 10), PcpOrders::WithTwoHuge),
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
    &[Since(v(2, 6), RefillRule::Batch), Since(v(6, 7), RefillRule::Doubling)];

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
    Since(v(2, 6), DrainRule::Batch),
    Since(v(5, 14), DrainRule::FreeFactor),
    Since(v(6, 7), DrainRule::FreeCount),
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
    Since(v(2, 6), FreeHighRule::Never),
    Since(v(5, 18), FreeHighRule::AfterDrain),
    Since(v(6, 7), FreeHighRule::Sequence),
    Since(v(6, 16), FreeHighRule::LongSequence),
];

/// How much is given back in one hold of the zone lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldRule {
    /// All of it.
    Whole,
    /// A batch; then both locks are let go and the pageset's is tried again.
    Batch,
}

const HOLD: &[Since<HoldRule>] = &[Since(v(2, 6), HoldRule::Whole), Since(v(6, 19), HoldRule::Batch)];

/// Whether the pages of a refill are checked one by one under the zone lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckRule {
    /// Not under the lock.
    Outside,
    /// Every base page, under the lock.
    UnderLock,
}

const CHECK: &[Since<CheckRule>] = &[
    Since(v(2, 6), CheckRule::Outside),
    Since(v(5, 18), CheckRule::UnderLock),
    Since(v(6, 3), CheckRule::Outside),
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

/// Names of the kmmscand series, with the kernel that each was posted for.
pub fn kmmscand() -> impl Iterator<Item = (&'static str, Version)> {
    tier::KMMSCAND.iter().map(|(name, _, version)| (*name, *version))
}

/// The rules that a policy puts in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct Rules {
    pub batch: BatchRule,
    pub high: HighRule,
    pub pcp_orders: PcpOrders,
    pub refill: RefillRule,
    pub drain: DrainRule,
    pub free_high: FreeHighRule,
    pub hold: HoldRule,
    pub node_load: NodeLoadRule,
    pub check: CheckRule,
    pub zonelist_order: ZonelistOrderRule,
    pub zone_price: ZonePriceRule,
    pub fair: FairRule,
    pub movable_marks: MovableMarksRule,
    pub mark_distance: MarkDistanceRule,
    pub min_free: MinFreeRule,
    pub mixing: MixingRule,
    pub fallback: FallbackRule,
    pub highatomic: HighAtomicRule,
    pub withheld: WithheldRule,
    pub atomic_boost: AtomicBoostRule,
    pub scale: ScaleRule,
    pub yields: YieldRule,
    pub touch: TouchRule,
    pub zones: ZonesRule,
    pub arenas: ArenaRule,
    /// Bytes of a frame descriptor in that kernel, which decides how many share a cache line.
    pub descriptor_bytes: u32,
    /// Those of the LRU lists and of reclaim.
    pub reclaim: ReclaimRules,
    /// Those of compaction.
    pub compact: CompactRules,
    /// Those of the slab allocator.
    pub slab: SlabRules,
    pub promotion: PromotionRule,
}

impl Rules {
    /// The rules of mainline Linux `version`.
    pub fn linux(version: Version) -> Self {
        Self {
            batch: at(BATCH, version),
            high: at(HIGH, version),
            pcp_orders: at(PCP_ORDERS, version),
            refill: at(REFILL, version),
            drain: at(DRAIN, version),
            free_high: at(FREE_HIGH, version),
            hold: at(HOLD, version),
            node_load: at(NODE_LOAD, version),
            check: at(CHECK, version),
            zonelist_order: at(ZONELIST_ORDER, version),
            zone_price: ZonePriceRule::None,
            fair: at(FAIR, version),
            movable_marks: at(MOVABLE_MARKS, version),
            mark_distance: at(MARK_DISTANCE, version),
            min_free: at(MIN_FREE, version),
            mixing: at(MIXING, version),
            fallback: at(FALLBACK, version),
            highatomic: at(HIGHATOMIC, version),
            withheld: at(WITHHELD, version),
            atomic_boost: at(ATOMIC_BOOST, version),
            scale: ScaleRule::Mainline,
            yields: YieldRule::Never,
            touch: TouchRule::UnderLock,
            zones: ZonesRule::Whole,
            arenas: ArenaRule::One,
            descriptor_bytes: 64,
            reclaim: ReclaimRules::linux(version),
            compact: CompactRules::linux(version),
            slab: SlabRules::linux(version),
            promotion: PromotionRule::Balancing,
        }
    }
}

/// A named set of rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    name: String,
    kernel: Version,
    rules: Rules,
}

/// The policy in force where none is named.
pub const DEFAULT_POLICY: &str = "linux-6.18";

/// Ours: the default one with every part that pays.
pub const FREEHOLD: &str = "freehold";

/// The kernel that the default policy is, and that ours stands on.
const FREEHOLD_KERNEL: Version = v(6, 18);

/// Names that show the grammar, for messages and completion.
pub const EXAMPLE_POLICIES: &[&str] = &[
    "linux-3.15",
    "linux-3.16",
    "linux-3.17",
    "linux-3.18",
    "linux-5.14",
    "linux-6.1",
    "linux-6.6",
    "linux-6.11",
    "linux-6.11+pcp_batch_scale_max",
    "linux-6.12",
    "linux-6.18",
    "linux-6.19",
    "linux-7.2",
    "linux-6.18+yield",
    "linux-6.18+zones",
    "linux-6.18+arenas",
    "linux-6.18+touch",
    "linux-6.18+small-descriptors",
    "linux-6.18+zone-price",
    "linux-3.16+compact-whole-direct+compact-skip+compact-no-resched+compact-budget",
    "linux-6.5+slub-order",
    "linux-6.5+slub-node-partial+slub-order+slub-cpu-partial",
    "kmmscand-v0-nothrottle",
    "kmmscand-v0",
    "kmmscand-v1",
    "kmmscand-v2",
    "kmmscand-v3",
    "freehold",
];

impl Policy {
    /// Reads `linux-X.Y`, from [`OLDEST`] to [`NEWEST`], `kmmscand-vN` (on the kernel that it was posted for), or
    /// `freehold`, with any of the parts on top that [`parts`] lists: `linux-6.11+pcp_batch_scale_max`, `linux-6.18+yield+touch`.
    ///
    /// # Errors
    /// If the name is not of that form, names a kernel without rules or that there never was, or a part that there is not
    /// or that is there already.
    pub fn parse(name: &str) -> Result<Self, PolicyError> {
        let refused = |why| PolicyError { name: name.to_string(), why };
        let unknown = || refused(Refusal::Unknown);
        let mut words = name.split('+');
        let (kernel, mut rules) = base(words.next().unwrap_or_default()).map_err(refused)?;
        for (index, word) in words.clone().enumerate() {
            if words.clone().take(index).any(|before| before == word) {
                return Err(unknown());
            }
            let with = parts::apply(&rules, word).ok_or_else(unknown)?;
            if with == rules {
                return Err(unknown());
            }
            rules = with;
        }
        Ok(Self { name: name.to_string(), kernel, rules })
    }

    /// The rules of mainline Linux `version`, under the name `linux-X.Y`.
    pub fn linux(version: Version) -> Self {
        Self { name: alloc::format!("linux-{version}"), kernel: version, rules: Rules::linux(version) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The mainline kernel that it is, or stands on.
    pub fn kernel(&self) -> Version {
        self.kernel
    }

    /// Its rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Checks that `value` may be given to `knob` under this policy. A knob that no mainline kernel has may be set under any:
    /// who shows the outcome says so.
    ///
    /// # Errors
    /// If it is out of range, or the kernel does not have the knob or does not take the value.
    pub fn check_knob(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        knob.check(value)?;
        let policy = || self.name.clone();
        if let Some(kernels) = knob.spec().kernels.filter(|kernels| !kernels.has(self.kernel)) {
            return Err(KnobError::Lacking { knob, policy: policy(), kernels });
        }
        let kernels = knob.kernels_that_take(value);
        if !kernels.has(self.kernel) {
            return Err(KnobError::Refused { knob, value, policy: policy(), kernels });
        }
        Ok(())
    }
}

/// The kernel and the rules of a name without parts.
fn base(name: &str) -> Result<(Version, Rules), Refusal> {
    if name == FREEHOLD {
        return Ok((FREEHOLD_KERNEL, parts::freehold()));
    }
    if let Some((_, promotion, version)) = tier::KMMSCAND.iter().find(|(known, ..)| *known == name) {
        return Ok((*version, Rules { promotion: *promotion, ..Rules::linux(*version) }));
    }
    let number = name.strip_prefix("linux-").ok_or(Refusal::Unknown)?;
    let well_formed = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let version = Version::parse(number).filter(|_| well_formed).ok_or(Refusal::Unknown)?;
    error::check_version(version)?;
    Ok((version, Rules::linux(version)))
}

impl Default for Policy {
    fn default() -> Self {
        Self::linux(FREEHOLD_KERNEL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_pick_rules_by_version() {
        let rules = |name| *Policy::parse(name).unwrap().rules();
        assert_eq!(rules("linux-6.1").high, HighRule::LowWatermark);
        assert_eq!(rules("linux-6.1").check, CheckRule::UnderLock);
        assert_eq!(rules("linux-6.11").free_high, FreeHighRule::Sequence);
        assert_eq!(rules("linux-6.18").free_high, FreeHighRule::LongSequence);
        assert_eq!(rules("linux-6.18").hold, HoldRule::Whole);
        assert_eq!(rules("linux-6.19").hold, HoldRule::Batch);
        assert_eq!(rules("linux-6.9").pcp_orders, PcpOrders::WithHuge);
        assert_eq!(rules("linux-6.11+pcp_batch_scale_max").scale, ScaleRule::Series);
        assert_eq!(rules("linux-5.15").node_load, NodeLoadRule::Overwritten);
        assert_eq!(rules("linux-3.17").zonelist_order, ZonelistOrderRule::Auto);
        assert_eq!(rules("linux-4.13").zonelist_order, ZonelistOrderRule::ByWordSize);
        assert_eq!(rules("linux-4.14").zonelist_order, ZonelistOrderRule::Node);
        assert_eq!(rules("linux-3.11").fair, FairRule::Unfair);
        assert_eq!(rules("linux-4.7").fair, FairRule::ZoneBatches);
        assert_eq!(rules("linux-4.8").fair, FairRule::Unfair);
    }

    #[test]
    fn parts_go_on_top_in_any_order() {
        let rules = |name| *Policy::parse(name).unwrap().rules();
        let both = rules("linux-6.12+yield+touch");
        assert_eq!(both, rules("linux-6.12+touch+yield"));
        assert_eq!((both.yields, both.touch), (YieldRule::ToWaiters, TouchRule::Ahead));
        assert_eq!((both.high, both.descriptor_bytes), (HighRule::AutoTuned, 64));
        assert_eq!(rules("linux-7.2+small-descriptors").descriptor_bytes, 16);
        assert_eq!(rules("linux-6.11+pcp_batch_scale_max+yield").scale, ScaleRule::Series);
    }

    #[test]
    fn freehold_is_the_default_kernel_with_what_pays() {
        let pays = [
            "arenas",
            "yield",
            "touch",
            "small-descriptors",
            "slab-stock",
            "rcu-hurry",
            "zone-price",
            "compact-summary",
            "promote",
        ];
        let spelled = alloc::format!("{DEFAULT_POLICY}+{}", pays.join("+"));
        assert_eq!(Policy::parse(FREEHOLD).unwrap().rules(), Policy::parse(&spelled).unwrap().rules());
    }

    #[test]
    fn other_names_are_refused() {
        for name in
            ["", "linux", "linux-", "linux-6", "linux-6.x", "linux-6.18-rc1", "windows-11", "linux-2.6"]
        {
            assert!(Policy::parse(name).is_err(), "{name}");
        }
        for name in [
            "linux-6.18+",
            "linux-6.18+yeild",
            "+yield",
            "freehold+yield",
            "linux-6.18+touch+touch",
            "linux-6.5+slub-cpu-partial+slub-cpu-partial",
        ] {
            assert!(Policy::parse(name).is_err(), "{name}");
        }
        let message = Policy::parse("linux-6.18+yeild").unwrap_err().to_string();
        assert!(
            message.ends_with("any of +pcp_batch_scale_max +yield +zones +arenas +touch +small-descriptors +slab-stock +rcu-hurry +slub-order \
                 +slub-order-mailed +slub-cpu-partial +slub-cpu-partial-4x +slub-node-partial +slub-everywhere +zone-price \
                 +compact-whole-direct +compact-whole-async +compact-skip +compact-no-resched +compact-budget \
                 +compact-tuned-budget +compact-defer-async +compact-reclaim-second +compact-kswapd-sync +compact-capture \
                 +compact-free-lists +compact-thp-suitable +compact-summary +promote"),
            "{message}"
        );
    }
}
