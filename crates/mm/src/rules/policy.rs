//! Which rules are in force. A policy is a name, `linux-6.18`. Every rule follows from the name through the rule's history
//! of kernel versions (docs/rules/). What no version has is a part (`linux-6.18+yield`, [`parts`]). To add a rule or a part: all that is said of it in the file of its mechanism (`lists`, `zone`, `tier`, `reclaim`,
//! `compact`, `slab`), and a `match` at the one place where the mechanism differs.

mod between;
mod compact;
mod error;
mod generations;
mod in_force;
mod lists;
mod mechanism;
mod part;
pub mod parts;
mod reclaim;
mod slab;
mod spaces;
mod swap;
mod tier;
mod zone;

use alloc::string::{String, ToString};

use crate::ground::Version;
use crate::rules::knobs::{Knob, KnobError};

pub use between::Difference;
pub use compact::*;
pub use error::{PolicyError, Refusal, check_version};
pub use generations::*;
pub use in_force::{Origin, RuleInForce, RuleStep};
pub use lists::*;
pub use mechanism::Mechanism;
pub use reclaim::*;
pub use slab::*;
pub use spaces::*;
pub use swap::*;
pub use tier::{PromotionRule, TierRules};
pub use zone::*;

/// The oldest kernel that has rules. Before 3.2, slabs had no CPU partial lists; this is left out.
pub const OLDEST: Version = v(3, 0);
/// The newest kernel whose rules have been read. What came later may differ, so it has no policy.
pub const NEWEST: Version = v(7, 2);

const fn v(major: u8, minor: u8) -> Version {
    Version::new(major, minor)
}

/// Names of the kmmscand series, with the kernel that each was posted for.
pub fn kmmscand() -> impl Iterator<Item = (&'static str, Version)> {
    tier::KMMSCAND.iter().map(|(name, _, version)| (*name, *version))
}

/// The rules that a policy puts in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Those of page lists and free lists.
    pub lists: ListRules,
    /// Those of zones.
    pub zone: ZoneRules,
    /// Those of which pages belong on which node.
    pub tier: TierRules,
    /// Those of the LRU lists and of reclaim.
    pub reclaim: ReclaimRules,
    /// Those of compaction.
    pub compact: CompactRules,
    /// Those of the slab allocator.
    pub slab: SlabRules,
}

impl Rules {
    /// The rules of mainline Linux `version`.
    pub fn linux(version: Version) -> Self {
        Self {
            lists: ListRules::linux(version),
            zone: ZoneRules::linux(version),
            tier: TierRules::LINUX,
            reclaim: ReclaimRules::linux(version),
            compact: CompactRules::linux(version),
            slab: SlabRules::linux(version),
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

    /// The value that `knob` has under this policy where nothing is said.
    pub fn default_of(&self, knob: Knob) -> u64 {
        let is_built_in = self.rules.reclaim.generations.by_default == GenDefaultRule::On;
        let built = knob.spec().distributed.filter(|_| is_built_in);
        built.map_or(knob.spec().default, |built| built.value)
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
        let tier = TierRules { promotion: *promotion };
        return Ok((*version, Rules { tier, ..Rules::linux(*version) }));
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
        assert_eq!(rules("linux-6.1").lists.high, HighRule::LowWatermark);
        assert_eq!(rules("linux-6.1").lists.check, CheckRule::UnderLock);
        assert_eq!(rules("linux-6.11").lists.free_high, FreeHighRule::Sequence);
        assert_eq!(rules("linux-6.18").lists.free_high, FreeHighRule::LongSequence);
        assert_eq!(rules("linux-6.18").lists.hold, HoldRule::Whole);
        assert_eq!(rules("linux-6.19").lists.hold, HoldRule::Batch);
        assert_eq!(rules("linux-6.9").lists.pcp_orders, PcpOrders::WithHuge);
        assert_eq!(rules("linux-6.11+pcp_batch_scale_max").lists.scale, ScaleRule::Series);
        assert_eq!(rules("linux-5.15").zone.node_load, NodeLoadRule::Overwritten);
        assert_eq!(rules("linux-3.17").zone.zonelist_order, ZonelistOrderRule::Auto);
        assert_eq!(rules("linux-4.13").zone.zonelist_order, ZonelistOrderRule::ByWordSize);
        assert_eq!(rules("linux-4.14").zone.zonelist_order, ZonelistOrderRule::Node);
        assert_eq!(rules("linux-3.11").zone.fair, FairRule::Unfair);
        assert_eq!(rules("linux-4.7").zone.fair, FairRule::ZoneBatches);
        assert_eq!(rules("linux-4.8").zone.fair, FairRule::Unfair);
    }

    #[test]
    fn parts_go_on_top_in_any_order() {
        let rules = |name| *Policy::parse(name).unwrap().rules();
        let both = rules("linux-6.12+yield+touch");
        assert_eq!(both, rules("linux-6.12+touch+yield"));
        assert_eq!((both.lists.yields, both.lists.touch), (YieldRule::ToWaiters, TouchRule::Ahead));
        assert_eq!((both.lists.high, both.lists.descriptor_bytes), (HighRule::AutoTuned, 64));
        assert_eq!(rules("linux-7.2+small-descriptors").lists.descriptor_bytes, 16);
        assert_eq!(rules("linux-6.11+pcp_batch_scale_max+yield").lists.scale, ScaleRule::Series);
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
