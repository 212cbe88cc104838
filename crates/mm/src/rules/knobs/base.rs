//! What a tunable has where its line in the table says nothing else.

use super::need::Need::{self, Hints, HugePages, Programs, SeveralNodes, Spaces};
use super::need::{BALANCES, Compares, KMMSCAND, REGIONS};
use super::words::{HUGE_SIZE_ENABLED, SHARED_SIZE_ENABLED, UNLIMITED, UP_TO_MAX};
use super::{Kernels, Knob, KnobSpec, Leaves, StandsFor};
use crate::rules::policy::DEFAULT_POLICY;

/// What a knob has where its line says nothing else.
pub(super) const MAINLINE: KnobSpec = KnobSpec {
    knob: Knob::PcpBatchScaleMax,
    name: "",
    min: 0,
    max: 0,
    gap: None,
    searched: None,
    default: 0,
    distributed: None,
    displaces: None,
    computed: None,
    unit: "",
    meaning: "",
    kernels: Some(Kernels::ALL),
    limited: &[],
    stands_for: StandsFor::Nothing(""),
    words: &[],
    needs: &[],
    compares: Compares::Nothing,
    tried_under: DEFAULT_POLICY,
    leaves: Leaves::Nothing,
};

/// The same for one that no mainline kernel has.
pub(super) const PATCHED: KnobSpec = KnobSpec { kernels: None, ..MAINLINE };

pub(super) const FREE: Compares = Compares::Memory("a zone's free memory");
pub(super) const LISTED: Compares = Compares::Pages("a CPU's page list");
const CHARGED: Compares = Compares::Memory("what is charged to the cgroup");

pub(super) const INT_MAX: u64 = i32::MAX as u64;
pub(super) const UINT_MAX: u64 = u32::MAX as u64;
/// Where there is swap, one of these is not 0.
pub(super) const SWAPS: &[Knob] = &[Knob::ZramDisksize, Knob::SwapDisk];

/// How much is kept free, or what of it counts for whom.
pub(super) const MARKS: KnobSpec = KnobSpec { compares: FREE, ..MAINLINE };

/// How much may be dirty.
pub(super) const DIRTY: KnobSpec = KnobSpec {
    max: 100,
    unit: "percent",
    needs: &[Need::Files],
    compares: Compares::Memory("dirty memory"),
    ..MAINLINE
};

/// The same in bytes: two pages at least.
pub(super) const DIRTY_BYTES: KnobSpec = KnobSpec {
    max: 1 << 44,
    unit: "bytes",
    gap: Some((1, 8191)),
    searched: Some((16 << 20, 4 << 30)),
    ..DIRTY
};

/// When it is written for its age.
pub(super) const DIRTY_FOR: KnobSpec = KnobSpec {
    max: INT_MAX,
    unit: "1/100 s",
    needs: &[Need::Files],
    searched: Some((100, 6000)),
    ..MAINLINE
};

/// How huge pages are made.
pub(super) const HUGE: KnobSpec =
    KnobSpec { needs: &[Spaces, HugePages], leaves: Leaves::HugePages, ..MAINLINE };

/// A file of the program's cgroup.
pub(super) const CGROUP: KnobSpec = KnobSpec {
    max: UNLIMITED,
    unit: "bytes",
    searched: Some((16 << 20, 64 << 30)),
    words: UP_TO_MAX,
    // Version 2 was made official by 4.5; from memory.
    kernels: Some(Kernels::since(4, 5)),
    needs: &[Spaces],
    compares: CHARGED,
    ..MAINLINE
};

/// Who gets anonymous pages of a size.
pub(super) const HUGE_SIZE: KnobSpec = KnobSpec {
    max: 3,
    meaning: "Who gets pages of this size where nothing is mapped yet, the largest first: never (0) nobody, always (1) all, \
              madvise (2) programs that ask for huge pages, inherit (3) as the file of all sizes says",
    // docs/rules/huge-pages.md#sizes.
    kernels: Some(Kernels::since(6, 8)),
    words: HUGE_SIZE_ENABLED,
    needs: &[Spaces],
    leaves: Leaves::HugePages,
    ..MAINLINE
};

/// Which shared memory gets pages of a size.
pub(super) const SHARED_SIZE: KnobSpec = KnobSpec {
    max: 4,
    meaning: "Which shared memory without a file gets pages of this size, the largest first: never (0) none, always (1) all, within_size \
              (2) where they end within it, advise (3) where a program asks for huge pages, inherit (4) as shmem_enabled of all sizes says",
    // docs/rules/huge-pages.md#shared.
    kernels: Some(Kernels::since(6, 11)),
    words: SHARED_SIZE_ENABLED,
    ..HUGE_SIZE
};

/// When NUMA balancing looks, and at how much.
pub(super) const BALANCING: KnobSpec =
    KnobSpec { kernels: Some(Kernels::since(3, 8)), needs: &[Hints, SeveralNodes, BALANCES], ..MAINLINE };

/// The same of looking for pages to promote.
pub(super) const PROMOTING: KnobSpec =
    KnobSpec { needs: &[REGIONS, Programs], tried_under: "linux-6.18+promote", ..PATCHED };

/// The same of kmmscand.
pub(super) const SCANNING: KnobSpec = KnobSpec {
    stands_for: StandsFor::Nothing("the kmmscand series, which was not merged, has a constant"),
    needs: &[KMMSCAND, Programs],
    tried_under: "kmmscand-v0",
    ..PATCHED
};

/// How much swap there is.
pub(super) const SWAP_SIZE: KnobSpec = KnobSpec {
    searched: Some((16 << 20, 64 << 30)),
    max: 1 << 44,
    unit: "bytes",
    needs: &[Spaces],
    leaves: Leaves::Swapped,
    ..MAINLINE
};

/// What zswap does where it is on.
pub(super) const ZSWAP: KnobSpec = KnobSpec {
    // From memory.
    kernels: Some(Kernels::since(3, 11)),
    needs: &[Spaces, Need::Other(Knob::ZswapEnabled, |is_on| is_on == 1, "zswap.enabled is 0")],
    ..MAINLINE
};
