//! The table: each knob once, with a value other than its default, a workload on which that acts and one on which it rests.

use mm::Knob;

use super::Case;
use super::ground::Ground;
use super::workloads::*;

fn case(knob: Knob, value: u64, acts: Ground, rests: Ground) -> Case {
    Case { knob, value, acts, rests: Some(rests) }
}

fn case_of_all_spaces(knob: Knob, value: u64, acts: Ground) -> Case {
    Case { knob, value, acts, rests: None }
}

/// Page lists of CPUs, and the zones that are divided among them.
pub(crate) fn lists() -> Vec<Case> {
    // A zone of this size is not divided, whatever is set.
    let one_arena = few_pages().memory(&[200]).under("freehold");
    vec![
        case(Knob::PcpBatchScaleMax, 0, pages(), few_pages()),
        case(Knob::PercpuPagelistHighFraction, 4096, pages(), few_pages()),
        case(Knob::PcpBatch, 7, pages(), large_blocks()),
        case(Knob::PcpHighBatches, 2, pages(), few_pages()),
        case(Knob::StatInterval, 2, small_process(), few_pages()),
        case(Knob::Arenas, 1, pages().under("freehold"), one_arena),
    ]
}

pub(crate) fn marks() -> Vec<Case> {
    vec![
        case(Knob::MinFreeKbytes, 1 << 16, much_memory(), few_pages()),
        case(Knob::WatermarkScaleFactor, 1000, much_memory(), few_pages()),
        case(Knob::WatermarkBoostFactor, 0, mixed_processes().memory(&[384]), few_pages()),
    ]
}

pub(crate) fn slabs() -> Vec<Case> {
    vec![
        case(Knob::SlabMaxOrder, 1, objects(), small_objects()),
        case(Knob::SlabMinObjects, 64, objects(), small_objects()),
        case(Knob::CpuPartialScale, 8, objects(), few_objects()),
        case(Knob::NodePartialScale, 4, own_objects(), few_objects()),
    ]
}

pub(crate) fn zones() -> Vec<Case> {
    let rest = || with_devices().runs(2, "kind = 'alloc-loop'\ntasks = 1\nblocks = 30");
    let by_node = devices().with(Knob::NumaZonelistOrder, 1);
    vec![
        case(Knob::LowmemReserveDma, 1, devices(), rest()),
        case(Knob::LowmemReserveDma32, 1, by_node, rest()),
        // From 3.12 to 4.7 zones of a node take turns, and few pages meet all of them.
        case(Knob::NumaZonelistOrder, 1, devices(), rest().under("linux-3.10")),
        case(Knob::LowmemReserveNormal, 1, processes_of_32_bits(), process_of_32_bits(2500)),
        // All but the first ms has page tables.
        case(Knob::Highpte, 1, process_of_32_bits(2500), process_of_32_bits(1)),
    ]
}

/// Large blocks: who makes them, and for whom.
pub(crate) fn blocks() -> Vec<Case> {
    let compacts = || huge_pages().with(Knob::HugeDefrag, 1);
    let budget = "linux-4.20+compact-budget";
    vec![
        case(Knob::DefragMode, 1, compacts().under("linux-6.18"), small_process()),
        case(Knob::CompactionProactiveness, 0, pieces(), small_process()),
        case(Knob::ExtfragThreshold, 1000, compacts(), small_process()),
        case(Knob::TransparentHugepage, 0, huge_pages(), small_process()),
        case(Knob::HugeDefrag, 1, huge_pages(), large_process()),
        case(Knob::CompactBudget, 1, compacts().under(budget), small_process().under(budget)),
    ]
}

/// Sizes of anonymous pages: each has its file, and where huge pages serve all, none of the others is asked for.
pub(crate) fn sizes() -> Vec<Case> {
    let smaller = [
        Knob::Hugepages16kB,
        Knob::Hugepages32kB,
        Knob::Hugepages64kB,
        Knob::Hugepages128kB,
        Knob::Hugepages256kB,
        Knob::Hugepages512kB,
        Knob::Hugepages1024kB,
    ];
    let without_huge = || large_process().with(Knob::TransparentHugepage, 0);
    let of_smaller = smaller.map(|knob| case(knob, 1, without_huge(), large_process()));
    let huge = case(Knob::Hugepages2048kB, 0, large_process(), small_process());
    of_smaller.into_iter().chain([huge]).collect()
}

/// The same of shared memory.
pub(crate) fn shared_sizes() -> Vec<Case> {
    let smaller = [
        Knob::Shared16kB,
        Knob::Shared32kB,
        Knob::Shared64kB,
        Knob::Shared128kB,
        Knob::Shared256kB,
        Knob::Shared512kB,
        Knob::Shared1024kB,
    ];
    let of_smaller = smaller.map(|knob| case(knob, 1, shared_memory(), small_process()));
    let all_huge = shared_memory().with(Knob::SharedHugepage, 1);
    let huge = case(Knob::Shared2048kB, 0, all_huge, shared_memory());
    let of_all = case(Knob::SharedHugepage, 1, shared_memory(), small_process());
    of_smaller.into_iter().chain([huge, of_all]).collect()
}

pub(crate) fn khugepaged() -> Vec<Case> {
    vec![
        case(Knob::KhugepagedPagesToScan, 512, half_blocks(), small_process()),
        case(Knob::KhugepagedScanSleep, 1, half_blocks(), small_process()),
        case(
            Knob::KhugepagedMaxPtesNone,
            0,
            huge_pages().with(Knob::KhugepagedScanSleep, 10),
            small_process(),
        ),
        // Who writes without having read never meets zeros.
        case(Knob::UseZeroPage, 0, huge_pages_read_first(), huge_pages()),
    ]
}

/// What address spaces and files may take, and what becomes of their pages.
pub(crate) fn spaces() -> Vec<Case> {
    let strict = |ground: Ground| ground.with(Knob::OvercommitMemory, 2);
    let demotes = |ground: Ground| ground.with(Knob::DemotionEnabled, 1);
    let reclaims = |ground: Ground| ground.with(Knob::ZoneReclaimMode, 1);
    vec![
        case(Knob::OvercommitMemory, 2, many_processes(), small_process()),
        case(Knob::OvercommitRatio, 10, strict(many_processes()), strict(small_process())),
        case(Knob::DirtyRatio, 1, writers(), small_process()),
        case(Knob::DirtyBackgroundRatio, 1, writers(), small_process()),
        case(Knob::DirtyBytes, 1 << 20, writers(), shared_memory()),
        case(Knob::DirtyBackgroundBytes, 1 << 20, writers(), shared_memory()),
        case(Knob::DirtyWritebackCentisecs, 10, writers(), shared_memory()),
        case(
            Knob::DirtyExpireCentisecs,
            20,
            writers().with(Knob::DirtyWritebackCentisecs, 10),
            shared_memory().with(Knob::DirtyWritebackCentisecs, 10),
        ),
        case(Knob::DemotionEnabled, 1, cold_pages(), with_room(cold_pages())),
        case_of_all_spaces(Knob::LruGenEnabled, 7, demotes(cold_pages())),
        case(Knob::LruGenMinTtlMs, 60_000, too_large_program(), shared_memory()),
        case(Knob::Swappiness, 0, demotes(cold_pages()), demotes(with_room(cold_pages()))),
        case(Knob::ZoneReclaimMode, 1, cold_pages(), with_room(cold_pages())),
        case(Knob::MinUnmappedRatio, 100, reclaims(cold_pages()), reclaims(with_room(cold_pages()))),
    ]
}

pub(crate) fn balancing() -> Vec<Case> {
    // The first window comes after a second.
    let none_due = || hot_pages_for(900);
    let of_users = hot_pages_for(6000).with(Knob::NumaBalancing, 1);
    vec![
        case(Knob::NumaBalancing, 2, hot_pages(), none_due()),
        case(Knob::PromoteRateLimit, 1, hot_pages(), with_room(hot_pages())),
        case(Knob::BalancingScanDelay, 2000, hot_pages(), none_due()),
        case(Knob::BalancingPeriodMin, 100, hot_pages(), none_due()),
        // Where pages move by heat, faults on slow nodes do not change the period.
        case(Knob::BalancingPeriodMax, 1000, of_users, hot_pages()),
        case(Knob::BalancingScanSize, 16, hot_pages(), few_hot_pages()),
        case(Knob::BalancingHotThreshold, 1, hot_pages(), with_room(hot_pages())),
    ]
}

/// What else looks for hot pages.
pub(crate) fn scanners() -> Vec<Case> {
    let alone = |policy, ms| hot_pages_for(ms).with(Knob::NumaBalancing, 0).under(policy);
    let freehold = |ms| alone("freehold", ms);
    let series = |ms| alone("kmmscand-v1", ms);
    vec![
        case(Knob::PromoteScanShare, 1, freehold(4000), freehold(20)),
        case(Knob::PromotePeriod, 1000, freehold(4000), freehold(20)),
        case(Knob::KmmscandPeriodMin, 2000, series(4000), series(500)),
        case(Knob::KmmscandPeriodMax, 100, series(4000), series(500)),
        case(Knob::KmmscandSizeMax, 16, series(4000), series(500)),
    ]
}

/// Limits of cgroups, and swap. A limit that nothing reaches is set on both sides where a knob rests: what is charged is the same.
pub(crate) fn groups() -> Vec<Case> {
    const MIB: u64 = 1 << 20;
    let zram = |ground: Ground| ground.with(Knob::ZramDisksize, 1 << 30);
    let in_group = |ground: Ground| ground.with(Knob::MemoryMax, 1 << 40);
    let limited = || zram(large_process()).with(Knob::MemoryMax, 32 * MIB);
    let on_disk = || limited_process().with(Knob::SwapDisk, 1 << 30);
    let zswap = || on_disk().with(Knob::ZswapEnabled, 1);
    let idle = || small_process().with(Knob::SwapDisk, 1 << 30).with(Knob::ZswapEnabled, 1);
    let rests = || zram(small_process()).with(Knob::MemoryMax, 1 << 40);
    let high = |ground: Ground| ground.with(Knob::MemoryHigh, 1 << 40);
    vec![
        case(Knob::MemoryMax, 32 * MIB, zram(large_process()), high(small_process())),
        case(Knob::MemoryHigh, 32 * MIB, zram(large_process()), in_group(small_process())),
        case(Knob::MemoryLow, 64 * MIB, in_group(many_processes().memory(&[384])), in_group(small_process())),
        case(Knob::MemoryMin, 64 * MIB, in_group(many_processes().memory(&[384])), in_group(small_process())),
        case(Knob::MemorySwapMax, 8 * MIB, limited(), rests()),
        case_of_all_spaces(Knob::ZramDisksize, 1 << 30, large_process().with(Knob::MemoryMax, 32 * MIB)),
        case(Knob::ZramAlgorithm, 2, limited(), rests()),
        case(Knob::ZramRatio, 150, limited(), rests()),
        case_of_all_spaces(Knob::SwapDisk, 1 << 30, large_process().with(Knob::MemoryMax, 32 * MIB)),
        case(Knob::SwapRotational, 1, on_disk(), on_disk().with(Knob::VmaRaEnabled, 0)),
        case(Knob::PageCluster, 0, on_disk(), zram(limited_process()).under("linux-6.6")),
        case(Knob::VmaRaEnabled, 0, on_disk(), on_disk().with(Knob::SwapRotational, 1)),
        case(Knob::ZswapEnabled, 1, on_disk(), small_process().with(Knob::SwapDisk, 1 << 30)),
        case(Knob::ZswapCompressor, 2, zswap(), idle()),
        case(Knob::ZswapMaxPoolPercent, 0, zswap(), idle()),
        case(
            Knob::ZswapAcceptThresholdPercent,
            10,
            zswap().memory(&[384]).with(Knob::ZswapMaxPoolPercent, 1),
            idle(),
        ),
        case(Knob::ZswapRatio, 150, zswap(), idle()),
    ]
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let groups = [lists(), marks(), slabs(), zones(), blocks(), sizes(), shared_sizes(), khugepaged()];
    let groups = groups.into_iter().chain([spaces(), balancing(), scanners(), self::groups()]);
    groups.into_iter().flatten().collect()
}
