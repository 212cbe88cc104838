//! The rules of address spaces: huge pages at faults and after, protection, tables. docs/rules/huge-pages.md has where each is from.

use super::v;
use crate::ground::Since;

/// How hard a fault tries for a huge page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HugeFaultRule {
    /// It reclaims for itself ([`crate::Request::THP`]), and wakes nobody.
    Tries,
    /// It takes what is free, unless a program asks for more (`defrag` at `madvise`).
    TakesWhatIsFree,
}

/// Commit 444eb2a449ef of March 2016; from memory.
pub(super) const HUGE_FAULT: &[Since<HugeFaultRule>] = &[
    Since(v(2, 6), HugeFaultRule::Tries, ""),
    Since(v(4, 6), HugeFaultRule::TakesWhatIsFree, "444eb2a449ef"),
];

/// Where a fault looks for a huge page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HugeNodeRule {
    /// On its node, and on others if there is none. (Before 4.20 Linux asked its own node alone, which is not told apart.)
    AnyNode,
    /// On its node first, for once; on others only if it may reclaim.
    OwnFirst,
    /// The same, and for its own node's sake it compacts and does not reclaim.
    OwnFirstCompacting,
}

/// 76e654cc91bb (5.4), with the attempt for once of cc638f329ef6 (5.5), and the last one (7.0): from memory. 6.12.107 has the last one too,
/// 6.18.15 does not: traced, and counted by the captures of `compaction`.
pub(super) const HUGE_NODE: &[Since<HugeNodeRule>] = &[
    Since(v(2, 6), HugeNodeRule::AnyNode, ""),
    Since(v(5, 4), HugeNodeRule::OwnFirst, "76e654cc91bb"),
    Since(v(6, 12), HugeNodeRule::OwnFirstCompacting, ""),
    Since(v(6, 13), HugeNodeRule::OwnFirst, ""),
    Since(v(7, 0), HugeNodeRule::OwnFirstCompacting, ""),
];

/// What a write to the huge page of zeros gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HugeZeroRule {
    /// A huge page, if there is one.
    Huge,
    /// A small page, in a table of 511 more entries of zeros.
    Small,
}

/// 3917c80280c9 (5.8) took the copies of huge pages away, `do_huge_zero_wp_pmd` (6.13) brought this one back: from memory;
/// `Small` is captured in 6.12 (conformance/scenes, thp-stride-always).
pub(super) const HUGE_ZERO: &[Since<HugeZeroRule>] = &[
    Since(v(2, 6), HugeZeroRule::Huge, ""),
    Since(v(5, 8), HugeZeroRule::Small, "3917c80280c9"),
    Since(v(6, 13), HugeZeroRule::Huge, ""),
];

/// Where a fault of shared memory that may be huge makes a huge page, and what is done for its charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedHugeRule {
    /// Also where it reaches beyond what is mapped, and beyond the file's end; its charge is a small page's, reclaim and all.
    Beyond,
    /// The same, if there is room in the group for as much as `transparent_hugepage.defrag` has a fault do.
    BeyondIfRoom,
    /// The same, only where what is mapped has all of it.
    Within,
}

/// Captured in 6.1 (shmem-who, shmem-fallback) and 6.12; versions from memory.
pub(super) const SHARED_HUGE: &[Since<SharedHugeRule>] = &[
    Since(v(2, 6), SharedHugeRule::Beyond, ""),
    Since(v(6, 7), SharedHugeRule::BeyondIfRoom, ""),
    Since(v(6, 11), SharedHugeRule::Within, ""),
];

/// What a write gets to part of a huge page that is mapped in parts, all of them by one address space, since others that had
/// it are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartReuseRule {
    /// The part itself if it is the last that is mapped, else a copy.
    ReusesTheLast,
    /// A copy, unless nobody else ever had it.
    Copies,
    /// The part itself.
    Reuses,
}

/// Versions are from memory; 6.12's by a trace (mthp-cow: no page of 64 KiB is left with one part), 6.18's measured.
pub(super) const PART_REUSE: &[Since<PartReuseRule>] = &[
    Since(v(2, 6), PartReuseRule::ReusesTheLast, ""),
    Since(v(5, 19), PartReuseRule::Copies, "6c287605fd56"),
    Since(v(6, 15), PartReuseRule::Reuses, "1da190f4d0a6"),
];

/// What becomes of a huge page when an entry of part of it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeferredSplitRule {
    /// It is split at once.
    SplitsAtOnce,
    /// Once nobody maps some part of it, it waits in a queue and is split when memory is short.
    Queues,
    /// The same, and whole ones wait as well, in case most of them is zeros.
    QueuesAll,
}

pub(super) const DEFERRED_SPLIT: &[Since<DeferredSplitRule>] = &[
    Since(v(2, 6), DeferredSplitRule::SplitsAtOnce, ""),
    // Kernels have queued since 4.5 (9a982250f773), to 5.3 in one queue a node, which is not modelled: with queues by group 32 threads of
    // thpscale get 46 % huge pages on 5.0, of 80.5 % that were published.
    Since(v(5, 4), DeferredSplitRule::Queues, "87eaceb3faa5"),
    Since(v(6, 12), DeferredSplitRule::QueuesAll, "dafff3f4c850"),
];

/// What becomes of pages of a process's own as their region may be written to again (`mprotect`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtectRule {
    /// The first write to each is a fault.
    WriteFaults,
    /// Those that it never shared may be written to at once.
    WritableAtOnce,
}

/// `can_change_pte_writable`, 64fe24a3e05e: the version is from memory; measured on 6.18 (no fault of 64).
pub(super) const PROTECT: &[Since<ProtectRule>] = &[
    Since(v(2, 6), ProtectRule::WriteFaults, ""),
    Since(v(6, 0), ProtectRule::WritableAtOnce, "64fe24a3e05e"),
];

/// What becomes of a page table that `MADV_DONTNEED` empties, all of it in one range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EmptyTableRule {
    /// It stays as long as a region needs it; no fault puts a huge page in its place.
    Stays,
    /// It is freed.
    FreedByAdvice,
}

/// Captured on both sides (zero-fork: 6.12 and 6.18); version from memory (`CONFIG_PT_RECLAIM`).
pub(super) const EMPTY_TABLE: &[Since<EmptyTableRule>] =
    &[Since(v(2, 6), EmptyTableRule::Stays, ""), Since(v(6, 14), EmptyTableRule::FreedByAdvice, "")];
