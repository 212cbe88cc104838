//! How pages in use on slow nodes come back to fast ones. What each rule does is in [`crate::tier`].

use super::in_force::{List, Of};
use super::mechanism::Mechanism;
use super::part::Part;
use super::v;
use crate::ground::Version;
use crate::rules::revision::{self, Revision};

/// Who looks for hot pages besides NUMA balancing, which `kernel.numa_balancing` turns on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PromotionRule {
    /// Nobody: mainline.
    Balancing,
    /// kmmscand before the post's patch: scans go over all of an address space.
    KmmscandV0NoThrottle,
    /// The same with it: what a scan finds decides how far the next one goes.
    KmmscandV0,
    /// Its second posting, March 2025.
    KmmscandV1,
    /// Its third, June 2025.
    KmmscandV2,
    /// Its fourth, August 2025.
    KmmscandV3,
    /// Regions whose pages are asked by sample, swept where it pays.
    Regions,
}

/// Names of policies, what they put in force, and the kernel that each was posted for.
pub(super) const KMMSCAND: &[(&str, PromotionRule, Version)] = &[
    ("kmmscand-v0-nothrottle", PromotionRule::KmmscandV0NoThrottle, v(6, 11)),
    ("kmmscand-v0", PromotionRule::KmmscandV0, v(6, 11)),
    ("kmmscand-v1", PromotionRule::KmmscandV1, v(6, 14)),
    ("kmmscand-v2", PromotionRule::KmmscandV2, v(6, 15)),
    ("kmmscand-v3", PromotionRule::KmmscandV3, v(6, 16)),
];

impl PromotionRule {
    /// Whether pages are looked for by regions.
    pub fn is_by_regions(self) -> bool {
        self == Self::Regions
    }

    /// kmmscand's revision, where that is who looks.
    pub const fn revision(self) -> Option<Revision> {
        Some(match self {
            Self::Balancing | Self::Regions => return None,
            Self::KmmscandV0NoThrottle => revision::V0_NOTHROTTLE,
            Self::KmmscandV0 => revision::V0,
            Self::KmmscandV1 => revision::V1,
            Self::KmmscandV2 => revision::V2,
            Self::KmmscandV3 => revision::V3,
        })
    }
}

/// The rules of which pages belong on which node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct TierRules {
    pub promotion: PromotionRule,
}

impl TierRules {
    /// Those of mainline Linux.
    pub(super) const LINUX: Self = Self { promotion: PromotionRule::Balancing };

    pub(super) fn visit(&mut self, other: Self, to: &mut List) {
        let Self { promotion } = self;
        let promotion_of =
            Of("promotion", &[Mechanism::Promotion], "who looks for hot pages besides NUMA balancing");
        to.constant(promotion_of, PromotionRule::Balancing, promotion, other.promotion);
    }
}

pub(super) const PARTS: &[Part] = &[Part {
    name: "promote",
    meaning: "Pages of slow nodes are promoted by regions: a few pages of each are asked, the densest are swept, what two sweeps \
                  find in use moves",
    set: |rules| rules.tier.promotion = PromotionRule::Regions,
    pays: true,
}];
