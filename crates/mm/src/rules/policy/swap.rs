//! The rules of what goes to swap, and their history (docs/rules/reclaim.md, docs/rules/huge-pages.md).

use super::Mechanism::{Generations, HugePages, Reclaim};
use super::in_force::{List, Of};
use super::v;
use crate::ground::{Since, Version, at};

/// What becomes of pages of zeros that go to swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapZeroRule {
    /// They are written like others.
    Written,
    /// It is noted of their slots, and nothing is written or read.
    Noted,
}

/// Counted since as `swpout_zero` and `swpin_zero`, and not as `pswpout` and `pswpin` any more (measured on 6.18).
const ZERO: &[Since<SwapZeroRule>] =
    &[Since(v(2, 6), SwapZeroRule::Written, ""), Since(v(6, 12), SwapZeroRule::Noted, "0ca0c24e3211")];

/// Whether large pages go to swap in one piece, where it has as many slots in a row; otherwise they are split first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapLargeRule {
    /// None does.
    Split,
    /// Huge ones that an address space maps in one piece.
    MappedWhole,
    /// All of which no part is waiting to be split off.
    Whole,
}

/// Read in the facts (6.1, 6.6, 6.12); captured in 6.12 (madvise, deferred-split). Versions: 2 MiB from 4.13, other sizes from 6.10.
const LARGE: &[Since<SwapLargeRule>] = &[
    Since(v(2, 6), SwapLargeRule::Split, ""),
    Since(v(4, 13), SwapLargeRule::MappedWhole, ""),
    Since(v(6, 10), SwapLargeRule::Whole, ""),
];

/// Whether folios of several pages of shared memory go to swap in one piece, where it has as many slots in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedLargeRule {
    /// They are split first.
    Split,
    /// They do.
    Whole,
}

/// Read in the facts (6.1, 6.6: always split); captured in 6.12 (shmem-huge). That it began with 6.12 is from memory.
const SHARED_LARGE: &[Since<SharedLargeRule>] =
    &[Since(v(2, 6), SharedLargeRule::Split, ""), Since(v(6, 12), SharedLargeRule::Whole, "809bc86517cc")];

/// What is read with a page of shared memory that comes from swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedSwapInRule {
    /// The slots around, more of them the more of what was read so was wanted.
    Cluster,
    /// The same on a disk; where swap needs no queue nothing, but for what the page went to swap with, as long as that is in one piece.
    Alone,
}

/// Captured on both sides (shared-loop, shmem-back, 6.12 and 6.18); version and commit from memory.
const SHARED_IN: &[Since<SharedSwapInRule>] = &[
    Since(v(2, 6), SharedSwapInRule::Cluster, ""),
    Since(v(6, 14), SharedSwapInRule::Alone, "1dd44c0af4fa"),
];

/// What is read with a page of private memory that comes from swap on a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateSwapInRule {
    /// The slots around, as with shared memory.
    Cluster,
    /// The pages around it in its region that are in swap, unless the disk turns.
    Region,
}

/// Read in the facts; version and commit from memory.
const PRIVATE_IN: &[Since<PrivateSwapInRule>] = &[
    Since(v(2, 6), PrivateSwapInRule::Cluster, ""),
    Since(v(4, 14), PrivateSwapInRule::Region, "ec560175c0b6"),
];

/// Whether private memory comes back in large pages from swap that needs no queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateLargeInRule {
    /// Page by page.
    InParts,
    /// In the largest page that may be there, and all of which is in slots in a row.
    Whole,
}

/// Read in the facts (6.12); commit from memory.
const PRIVATE_LARGE_IN: &[Since<PrivateLargeInRule>] = &[
    Since(v(2, 6), PrivateLargeInRule::InParts, ""),
    Since(v(6, 12), PrivateLargeInRule::Whole, "242d12c98174"),
];

/// How private memory is read from swap that has no queue to wait in (`SWP_SYNCHRONOUS_IO`), as zram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynchronousSwapInRule {
    /// As from a disk.
    AsFromDisk,
    /// Alone, but as from a disk what several have since a fork.
    AloneForOne,
    /// Alone; those who have it share the page.
    Alone,
}

/// Measured on 6.18 (a fork: `make swap-disk`); the others read in the facts, versions from memory.
const SYNCHRONOUS_IN: &[Since<SynchronousSwapInRule>] = &[
    Since(v(2, 6), SynchronousSwapInRule::AsFromDisk, ""),
    Since(v(4, 15), SynchronousSwapInRule::AloneForOne, "0bcac06f27d7"),
    Since(v(7, 0), SynchronousSwapInRule::Alone, ""),
];

/// What becomes of what is in zswap when it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapLoadRule {
    /// It stays there as long as it has its slot.
    Leaves,
    /// It is taken out, and stored again when it goes.
    Takes,
}

/// Measured on 6.18; version and commit from memory.
const ZSWAP_LOAD: &[Since<ZswapLoadRule>] =
    &[Since(v(3, 11), ZswapLoadRule::Leaves, ""), Since(v(6, 9), ZswapLoadRule::Takes, "c2e2ba770200")];

/// Whether zswap takes large pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapLargeRule {
    /// They go to the device.
    Refuses,
    /// It does, each base page of them for itself.
    InParts,
}

/// From memory.
const ZSWAP_LARGE: &[Since<ZswapLargeRule>] =
    &[Since(v(3, 11), ZswapLargeRule::Refuses, ""), Since(v(6, 13), ZswapLargeRule::InParts, "b7c0ccdfbafd")];

/// Whether what zswap's worker comes to first stays once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapSpareRule {
    /// It goes to the device.
    Never,
    /// It stays the first time.
    Once,
}

/// From memory.
const ZSWAP_SPARE: &[Since<ZswapSpareRule>] =
    &[Since(v(3, 11), ZswapSpareRule::Never, ""), Since(v(6, 12), ZswapSpareRule::Once, "e31c38e03778")];

/// Whether groups are charged what they have in zswap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapChargeRule {
    /// They are not.
    Free,
    /// They are, as small as it is there, in cgroups of version 2.
    Charged,
}

/// From memory.
const ZSWAP_CHARGE: &[Since<ZswapChargeRule>] =
    &[Since(v(3, 11), ZswapChargeRule::Free, ""), Since(v(5, 19), ZswapChargeRule::Charged, "f4840ccfca25")];

/// When requests to a disk that somebody gathers (`blk_plug`) are sent before he is done: a new one comes, and so many are there already, or one
/// has 128 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlugRule {
    /// Sixteen, or the last is so large.
    SixteenByLast,
    /// Thirty-two, or the last is so large.
    ByLast,
    /// Thirty-two, or the first is so large: since they are kept in their order, it is the first that is asked.
    ByFirst,
}

impl PlugRule {
    /// So many are gathered.
    pub(crate) const fn most(self) -> usize {
        match self {
            Self::SixteenByLast => 16,
            Self::ByLast | Self::ByFirst => 32,
        }
    }
}

/// Traced on 6.18 and Debian's 6.12.107, to whose stable updates it came; versions and commits from memory.
const PLUG: &[Since<PlugRule>] = &[
    Since(v(2, 6), PlugRule::SixteenByLast, ""),
    Since(v(5, 16), PlugRule::ByLast, "ba0ffdd8ce48"),
    Since(v(6, 12), PlugRule::ByFirst, "e70c301faece"),
];

/// The rules of swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct SwapRules {
    pub zero: SwapZeroRule,
    pub large: SwapLargeRule,
    pub shared_large: SharedLargeRule,
    pub shared_in: SharedSwapInRule,
    pub private_in: PrivateSwapInRule,
    pub private_large_in: PrivateLargeInRule,
    pub synchronous_in: SynchronousSwapInRule,
    pub plug: PlugRule,
    pub zswap_load: ZswapLoadRule,
    pub zswap_large: ZswapLargeRule,
    pub zswap_spare: ZswapSpareRule,
    pub zswap_charge: ZswapChargeRule,
}

impl SwapRules {
    /// The rules of mainline Linux `version`.
    pub(super) fn linux(version: Version) -> Self {
        Self {
            zero: at(ZERO, version),
            large: at(LARGE, version),
            shared_large: at(SHARED_LARGE, version),
            shared_in: at(SHARED_IN, version),
            private_in: at(PRIVATE_IN, version),
            private_large_in: at(PRIVATE_LARGE_IN, version),
            synchronous_in: at(SYNCHRONOUS_IN, version),
            plug: at(PLUG, version),
            zswap_load: at(ZSWAP_LOAD, version),
            zswap_large: at(ZSWAP_LARGE, version),
            zswap_spare: at(ZSWAP_SPARE, version),
            zswap_charge: at(ZSWAP_CHARGE, version),
        }
    }

    pub(super) fn visit(&mut self, other: Self, to: &mut List) {
        let Self { zero, shared_in, private_in, synchronous_in, .. } = self;
        let zeros = Of("swap-zero", &[Reclaim, Generations], "whether pages of zeros are written to swap");
        to.add(zeros, ZERO, zero, other.zero);
        let shared = Of(
            "swap-shared-in",
            &[Reclaim, Generations],
            "what is read with a page of shared memory in swap",
        );
        to.add(shared, SHARED_IN, shared_in, other.shared_in);
        let private = Of(
            "swap-private-in",
            &[Reclaim, Generations],
            "what is read with a page of private memory in swap, where more than that is",
        );
        to.add(private, PRIVATE_IN, private_in, other.private_in);
        let synchronous = Of(
            "swap-synchronous-in",
            &[Reclaim, Generations],
            "what is read with a page of private memory in zram",
        );
        to.add(synchronous, SYNCHRONOUS_IN, synchronous_in, other.synchronous_in);
        let plug = Of("swap-plug", &[Reclaim, Generations], "when what is gathered for a disk is sent");
        to.add(plug, PLUG, &mut self.plug, other.plug);
        self.visit_large(other, to);
        self.visit_zswap(other, to);
    }

    fn visit_large(&mut self, other: Self, to: &mut List) {
        const OF: &[super::Mechanism] = &[HugePages];
        let Self { large, shared_large, private_large_in, .. } = self;
        let whole = Of("swap-large", OF, "whether large pages go to swap in one piece");
        to.add(whole, LARGE, large, other.large);
        let shared =
            Of("swap-shared-large", OF, "whether large pages of shared memory go to swap in one piece");
        to.add(shared, SHARED_LARGE, shared_large, other.shared_large);
        let back = Of("swap-private-large-in", OF, "whether private memory comes from zram in large pages");
        to.add(back, PRIVATE_LARGE_IN, private_large_in, other.private_large_in);
    }

    fn visit_zswap(&mut self, other: Self, to: &mut List) {
        const OF: &[super::Mechanism] = &[Reclaim, Generations];
        let Self { zswap_load, zswap_large, zswap_spare, zswap_charge, .. } = self;
        let load = Of("zswap-load", OF, "whether what is read stays in zswap");
        to.add(load, ZSWAP_LOAD, zswap_load, other.zswap_load);
        let large = Of("zswap-large", OF, "whether zswap takes large pages");
        to.add(large, ZSWAP_LARGE, zswap_large, other.zswap_large);
        let spare = Of("zswap-spare", OF, "whether zswap's worker spares what it comes to first");
        to.add(spare, ZSWAP_SPARE, zswap_spare, other.zswap_spare);
        let charge = Of("zswap-charge", OF, "whether groups are charged what they have in zswap");
        to.add(charge, ZSWAP_CHARGE, zswap_charge, other.zswap_charge);
    }
}
