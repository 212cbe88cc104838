//! The table of tunables. An entry has all that is known of a knob; the code that reads its value says what it does.

use super::StandsFor::{BootParameter, Cgroup, Nothing, Sysctl, SysctlNumber, Sysfs, Tools};
use super::base::{
    BALANCING, CGROUP, DIRTY, DIRTY_BYTES, DIRTY_FOR, FREE, HUGE, HUGE_SIZE, INT_MAX, LISTED, MAINLINE,
    MARKS, PATCHED, PROMOTING, SCANNING, SHARED_SIZE, SWAP_SIZE, SWAPS, UINT_MAX, ZSWAP,
};
use super::declare::knobs;
use super::need::Need::{
    Daemons, Forks, HighMem, Hints, HugePages, Killable, OrderOfZones, Programs, ReadsAhead,
    ReadsPrivateAhead, Reclaim, RoomForAnon, SeveralNodes, Slabs, SlowNode, Spaces, Swap, ZoneBelowAnother,
};
use super::need::{
    ARENAS, AVOIDS_MIXING, BALANCES_BY_HEAT, BUDGET, CHOOSES_ORDER, CPU_SLABS, Compares, GENERATES,
    KMMSCAND_BOUNDED, PROACTIVE, RECLAIMS_NODE, SCALED_MARKS, STRICT,
};
use super::words::{
    ALGORITHMS, COMPRESSORS, GENERATIONS, HUGE_DEFRAG, HUGE_ENABLED, HUGE_SHARED, SWITCH, TRUTH, UNLIMITED,
    ZONELIST_ORDER,
};
use super::{Distributed, Kernels, KnobSpec, Leaves, Limited};
use crate::ground::{KnobId, ZoneKind};

impl From<Knob> for KnobId {
    fn from(knob: Knob) -> Self {
        Self(knob as u8)
    }
}

knobs! {
    PcpBatchScaleMax: PATCHED {
        name: "vm.pcp_batch_scale_max", max: 6, default: 5,
        meaning: "A refill or drain of a CPU's page list moves at most batch << this many pages under zone->lock",
        stands_for: Nothing("CONFIG_PCP_BATCH_SCALE_MAX at build time"),
        compares: Compares::Pages("a refill or drain"),
        tried_under: "linux-6.18+pcp_batch_scale_max",
    }
    PercpuPagelistHighFraction: MAINLINE {
        name: "vm.percpu_pagelist_high_fraction", searched: Some((8, 4096)),
        max: INT_MAX, gap: Some((1, 7)),
        meaning: "If not 0 (then 8 or more), a zone's CPUs together keep at most 1/this of it, and tuning is off",
        kernels: Some(Kernels::since(5, 14)),
        stands_for: Sysctl("/proc/sys/vm/percpu_pagelist_high_fraction"), compares: LISTED,
    }
    MinFreeKbytes: MAINLINE {
        name: "vm.min_free_kbytes", searched: Some((4096, 4_194_304)),
        max: INT_MAX, unit: "KiB",
        computed: Some(0),
        meaning: "Memory kept free for those who cannot wait; all watermarks follow from it. 0: from memory size",
        stands_for: Sysctl("/proc/sys/vm/min_free_kbytes"), compares: FREE,
        leaves: Leaves::SetByHand,
    }
    WatermarkScaleFactor: MARKS {
        name: "vm.watermark_scale_factor", searched: Some((10, 1000)),
        min: 1, max: 3000, default: 10, unit: "1/10000 of a zone",
        meaning: "Distance between the min, low and high watermarks",
        kernels: Some(Kernels::since(4, 6)),
        stands_for: Sysctl("/proc/sys/vm/watermark_scale_factor"),
        // Commit 39c65a94cd96, January 2022; from memory.
        limited: &[Limited::of(1001..=3000, Kernels::since(5, 17))],
        needs: &[SCALED_MARKS],
        leaves: Leaves::Evicted,
    }
    WatermarkBoostFactor: MAINLINE {
        name: "vm.watermark_boost_factor", searched: Some((0, 30_000)),
        max: INT_MAX, default: 15000, unit: "1/10000 of the high watermark",
        meaning: "Upper limit of what is reclaimed ahead when requests of different mobility mix in a pageblock",
        kernels: Some(Kernels::since(5, 0)),
        stands_for: Sysctl("/proc/sys/vm/watermark_boost_factor"),
        needs: &[AVOIDS_MIXING],
        leaves: Leaves::Evicted,
    }
    LowmemReserveDma: MARKS {
        name: "vm.lowmem_reserve_ratio.dma", searched: Some((8, 1024)),
        max: INT_MAX, default: 256,
        meaning: "DMA keeps 1/this of the memory above it from requests that could use that; 0: nothing",
        stands_for: SysctlNumber { path: "/proc/sys/vm/lowmem_reserve_ratio", place: 0 },
        needs: &[ZoneBelowAnother(ZoneKind::Dma)],
        leaves: Leaves::Evicted,
    }
    LowmemReserveDma32: MARKS {
        name: "vm.lowmem_reserve_ratio.dma32", searched: Some((8, 1024)),
        max: INT_MAX, default: 256,
        meaning: "The same for DMA32",
        stands_for: SysctlNumber { path: "/proc/sys/vm/lowmem_reserve_ratio", place: 1 },
        needs: &[ZoneBelowAnother(ZoneKind::Dma32)],
        leaves: Leaves::Evicted,
    }
    LowmemReserveNormal: MARKS {
        name: "vm.lowmem_reserve_ratio.normal", searched: Some((8, 1024)),
        max: INT_MAX, default: 32,
        meaning: "The same for Normal, against requests that could use HighMem or Movable",
        stands_for: SysctlNumber { path: "/proc/sys/vm/lowmem_reserve_ratio", place: 2 },
        needs: &[ZoneBelowAnother(ZoneKind::Normal)],
        leaves: Leaves::Evicted,
    }
    NumaZonelistOrder: MAINLINE {
        name: "vm.numa_zonelist_order", max: 2,
        meaning: "node (1): a request asks all zones of the nearest node first; zone (2): the highest zones of all nodes first; \
                  default (0): as the kernel chooses",
        stands_for: Sysctl("/proc/sys/vm/numa_zonelist_order"), words: ZONELIST_ORDER,
        // docs/rules/watermarks-and-zonelists.md#zonelists: c9bff3eebc09 left the order by node alone.
        limited: &[Limited::of(2..=2, Kernels::before(4, 14))],
        needs: &[CHOOSES_ORDER, OrderOfZones],
        // The last longterm kernel with both orders.
        tried_under: "linux-4.4",
    }
    StatInterval: MAINLINE {
        name: "vm.stat_interval", searched: Some((1, 60)),
        min: 1, max: INT_MAX, default: 1, unit: "s",
        meaning: "How often each CPU folds its counters and lets its page lists decay",
        stands_for: Sysctl("/proc/sys/vm/stat_interval"),
        needs: &[Daemons],
        compares: Compares::Time("the run's length"),
    }
    TransparentHugepage: MAINLINE {
        name: "transparent_hugepage.enabled", max: 2, default: 1,
        meaning: "Who gets huge pages: never (0) nobody, always (1) all, madvise (2) programs that ask. If not never, \
                  khugepaged runs, which raises min_free_kbytes where that was not set by hand",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/enabled"),
        words: HUGE_ENABLED, needs: &[Spaces],
        compares: FREE,
        leaves: Leaves::HugePages,
    }
    PcpBatch: PATCHED {
        name: "freehold.pcp_batch", searched: Some((15, 511)),
        max: 65_535, unit: "pages",
        meaning: "Pages of a pageset's batch in every zone; 0: from the zone's size",
        stands_for: Nothing("zone_batchsize() at build time"), compares: LISTED,
    }
    PcpHighBatches: PATCHED {
        name: "freehold.pcp_high_batches", searched: Some((2, 64)),
        max: 65_535, unit: "batches",
        meaning: "A pageset may hold this many batches, without tuning; 0: from the zone and its CPUs",
        stands_for: Nothing("vm.percpu_pagelist_high_fraction, which goes by the zone's size"),
        compares: LISTED,
    }
    Arenas: PATCHED {
        name: "freehold.arenas", max: 64,
        meaning: "Into how many sets of free lists +arenas or +zones divides a zone, 0: one a CPU of its node, 128 MiB each \
                  at least. Changed in mid-run, it is how many of them CPUs begin with",
        stands_for: Nothing("each zone has one set"),
        needs: &[ARENAS],
        tried_under: "linux-6.18+arenas",
    }
    Highpte: PATCHED {
        name: "freehold.highpte", max: 1,
        meaning: "Whether page tables of a 32-bit machine may be in HighMem",
        stands_for: Nothing("CONFIG_HIGHPTE at build time"),
        needs: &[HighMem, Spaces],
    }
    SlabMaxOrder: MAINLINE {
        name: "slab_max_order", searched: Some((0, 6)),
        max: 10,
        meaning: "Slabs are of this order at most where one object fits into less; 0: the policy's, 3 in mainline",
        stands_for: BootParameter("slab_max_order= (slub_max_order= in older kernels)"),
        needs: &[Slabs],
    }
    SlabMinObjects: MAINLINE {
        name: "slab_min_objects", searched: Some((1, 64)),
        max: 32_767, unit: "objects",
        meaning: "How many objects a slab should hold as far as its largest order allows; 0: from the number of CPUs",
        stands_for: BootParameter("slab_min_objects= (slub_min_objects= in older kernels)"),
        needs: &[Slabs],
    }
    CpuPartialScale: PATCHED {
        name: "freehold.cpu_partial_scale", searched: Some((0, 8)),
        max: 64, default: 1,
        meaning: "CPU partial slabs may hold this many times the objects; 0: there are none",
        stands_for: Nothing("/sys/kernel/slab/CACHE/cpu_partial sets one cache"),
        needs: &[CPU_SLABS, Slabs],
    }
    NodePartialScale: PATCHED {
        name: "freehold.node_partial_scale", searched: Some((0, 16)),
        max: 64, default: 1,
        meaning: "A node keeps this many times the partial slabs before it gives empty ones back; 0: it keeps none",
        stands_for: Nothing("/sys/kernel/slab/CACHE/min_partial sets one cache"),
        needs: &[Slabs],
    }
    OvercommitMemory: MAINLINE {
        name: "vm.overcommit_memory", max: 2,
        meaning: "How much memory may be promised: 0 no single request larger than memory and swap, 1 any amount, 2 no \
                  more in all than swap and vm.overcommit_ratio of memory",
        stands_for: Sysctl("/proc/sys/vm/overcommit_memory"),
        needs: &[Spaces],
    }
    OvercommitRatio: MAINLINE {
        name: "vm.overcommit_ratio", searched: Some((20, 100)),
        max: 100_000, default: 50, unit: "percent",
        meaning: "Part of memory that may be promised where vm.overcommit_memory is 2",
        stands_for: Sysctl("/proc/sys/vm/overcommit_ratio"),
        needs: &[Spaces, STRICT],
        compares: Compares::Memory("memory promised"),
    }
    DirtyRatio: DIRTY {
        name: "vm.dirty_ratio", searched: Some((5, 60)), default: 20,
        meaning: "Part of free memory and page cache that may be dirty or under writeback before writers wait",
        stands_for: Sysctl("/proc/sys/vm/dirty_ratio"), displaces: Some(Knob::DirtyBytes),
    }
    DirtyBackgroundRatio: DIRTY {
        name: "vm.dirty_background_ratio", searched: Some((1, 30)), default: 10,
        meaning: "The same before the flusher begins to write",
        stands_for: Sysctl("/proc/sys/vm/dirty_background_ratio"), displaces: Some(Knob::DirtyBackgroundBytes),
    }
    DirtyBytes: DIRTY_BYTES {
        name: "vm.dirty_bytes",
        meaning: "If not 0, how much may be dirty or under writeback before writers wait, in place of vm.dirty_ratio",
        stands_for: Sysctl("/proc/sys/vm/dirty_bytes"),
    }
    DirtyBackgroundBytes: DIRTY_BYTES {
        name: "vm.dirty_background_bytes",
        meaning: "The same before the flusher begins to write, in place of vm.dirty_background_ratio",
        stands_for: Sysctl("/proc/sys/vm/dirty_background_bytes"),
    }
    DirtyWritebackCentisecs: DIRTY_FOR {
        name: "vm.dirty_writeback_centisecs", default: 500,
        meaning: "How often the flusher looks for what has been dirty for long; 0: never",
        stands_for: Sysctl("/proc/sys/vm/dirty_writeback_centisecs"),
    }
    DirtyExpireCentisecs: DIRTY_FOR {
        name: "vm.dirty_expire_centisecs", default: 3000,
        meaning: "How long something has been dirty before the flusher writes it unasked",
        stands_for: Sysctl("/proc/sys/vm/dirty_expire_centisecs"), compares: Compares::Time("how long something was dirty"),
    }
    Swappiness: MAINLINE {
        name: "vm.swappiness", max: 200, default: 60,
        meaning: "Weight of anonymous memory against files in reclaim, 100: both alike; 0: files only",
        stands_for: Sysctl("/proc/sys/vm/swappiness"),
        // Commit c843966c556d, June 2020; from memory.
        limited: &[Limited::of(101..=200, Kernels::since(5, 8))],
        needs: &[Spaces, RoomForAnon(Knob::DemotionEnabled, SWAPS)],
        leaves: Leaves::Swapped,
    }
    LruGenEnabled: MAINLINE {
        name: "lru_gen.enabled", max: 7,
        // LRU_GEN_ENABLED is off in mainline, and on in Debian from its 6.12 on, in Ubuntu since 2023, in Fedora and in Arch.
        distributed: Some(Distributed { kernels: Kernels::since(6, 12), value: 7 }),
        meaning: "Whether pages are kept by generations (MGLRU): 1 that, 2 and page tables are walked, 4 and only used parts of them",
        kernels: Some(Kernels::since(6, 1)),
        stands_for: Sysfs("/sys/kernel/mm/lru_gen/enabled"),
        words: GENERATIONS, needs: &[Spaces, Reclaim],
        leaves: Leaves::Evicted,
    }
    LruGenMinTtlMs: MAINLINE {
        name: "lru_gen.min_ttl_ms",
        searched: Some((100, 60_000)), max: UINT_MAX, unit: "ms",
        meaning: "If not 0, kswapd has the largest program killed where no pages that could give something were left alone for so long",
        kernels: Some(Kernels::since(6, 1)),
        stands_for: Sysfs("/sys/kernel/mm/lru_gen/min_ttl_ms"),
        needs: &[Spaces, Killable, Reclaim, GENERATES],
        compares: Compares::Time("what was used least lately"),
        leaves: Leaves::Killed,
    }
    DemotionEnabled: MAINLINE {
        name: "numa.demotion_enabled", max: 1,
        meaning: "Whether reclaim moves pages to slower memory (a node without CPUs) before it frees any",
        kernels: Some(Kernels::since(5, 15)),
        stands_for: Sysfs("/sys/kernel/mm/numa/demotion_enabled"),
        words: TRUTH, needs: &[Spaces, SlowNode],
        leaves: Leaves::Moved,
    }
    ZoneReclaimMode: MAINLINE {
        name: "vm.zone_reclaim_mode", max: 7,
        meaning: "Bits: 1 a request frees pages of a near node's files before it asks the next zone, 2 dirty ones too, 4 mapped ones too",
        stands_for: Sysctl("/proc/sys/vm/zone_reclaim_mode"),
        needs: &[Spaces, Reclaim],
        leaves: Leaves::Evicted,
    }
    MinUnmappedRatio: MAINLINE {
        name: "vm.min_unmapped_ratio",
        searched: Some((1, 50)),
        max: 100, default: 1, unit: "percent",
        meaning: "Where vm.zone_reclaim_mode is set, a node with fewer pages of files than this part of its memory is left alone",
        stands_for: Sysctl("/proc/sys/vm/min_unmapped_ratio"),
        needs: &[Spaces, RECLAIMS_NODE, Reclaim],
        compares: Compares::Memory("a node's files"),
    }
    ExtfragThreshold: MAINLINE {
        name: "vm.extfrag_threshold", max: 1000, default: 500, unit: "1/1000",
        meaning: "A zone whose fragmentation index is no higher is not compacted: it lacks memory rather than order",
        stands_for: Sysctl("/proc/sys/vm/extfrag_threshold"),
        needs: &[Spaces],
        compares: Compares::Number("a zone's fragmentation index"),
    }
    DefragMode: MAINLINE {
        name: "vm.defrag_mode", max: 1,
        meaning: "1: pageblocks are kept to one type while reclaim and compaction can help it, and whole ones free up to \
                  the high watermark",
        kernels: Some(Kernels::since(6, 15)),
        stands_for: Sysctl("/proc/sys/vm/defrag_mode"),
        leaves: Leaves::Evicted,
    }
    CompactionProactiveness: MAINLINE {
        name: "vm.compaction_proactiveness", max: 100, default: 20,
        meaning: "How eagerly kcompactd makes huge blocks before anybody asks; 0: never",
        kernels: Some(Kernels::since(5, 9)),
        stands_for: Sysctl("/proc/sys/vm/compaction_proactiveness"),
        needs: &[PROACTIVE, Spaces],
        compares: Compares::Number("the score of memory in pieces"),
        leaves: Leaves::Moved,
    }
    HugeDefrag: HUGE {
        name: "transparent_hugepage.defrag", max: 5,
        meaning: "What a fault does for a huge page that is not free. always (1): compacts; defer (2): wakes daemons; \
                  defer+madvise (3): compacts where a program asked, else wakes daemons; madvise (4): compacts where a \
                  program asked; never (5): nothing; default (0): as the kernel chooses (always before 4.6, then madvise)",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/defrag"), words: HUGE_DEFRAG,
        // `defer` is 444eb2a449ef, March 2016; `defer+madvise` 21440d7eb904, February 2017; both from memory.
        limited: &[Limited::of(2..=2, Kernels::since(4, 6)), Limited::of(3..=3, Kernels::since(4, 11))],
    }
    CompactBudget: PATCHED {
        name: "freehold.compact_budget_mib", searched: Some((64, 8192)),
        min: 1, max: 1 << 20, default: 1024, unit: "MiB",
        meaning: "How much memory a call of compaction may scan under +compact-budget, and begins with under \
                  +compact-tuned-budget",
        stands_for: Nothing("David Rientjes proposes 1 GiB (May 2014)"),
        needs: &[BUDGET, Spaces],
        compares: Compares::Memory("memory scanned by a call of compaction"),
        tried_under: "linux-6.18+compact-budget",
    }
    KhugepagedPagesToScan: HUGE {
        name: "transparent_hugepage.khugepaged.pages_to_scan",
        searched: Some((512, 65_536)),
        min: 1, max: UINT_MAX, default: 4096, unit: "pages",
        meaning: "How much of address spaces a round of khugepaged looks at; less than 512: nothing",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan"),
        compares: Compares::Pages("a round of khugepaged"),
    }
    KhugepagedScanSleep: HUGE {
        name: "transparent_hugepage.khugepaged.scan_sleep_millisecs",
        searched: Some((10, 60_000)),
        min: 1, max: UINT_MAX, default: 10_000, unit: "ms",
        meaning: "How long khugepaged sleeps between two rounds",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"),
    }
    KhugepagedMaxPtesNone: HUGE {
        name: "transparent_hugepage.khugepaged.max_ptes_none", max: 511, default: 511, unit: "pages",
        meaning: "How many of 512 pages need not be there for khugepaged to put a huge one in their place",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"),
        compares: Compares::Pages("what was missing of a huge page"),
    }
    KhugepagedMaxPtesShared: HUGE {
        name: "transparent_hugepage.khugepaged.max_ptes_shared", max: 511, default: 256, unit: "pages",
        meaning: "How many of 512 pages may be shared with other address spaces, as a parent's and a child's are, for khugepaged \
                  to put a huge one in their place",
        // 71a2c112a0f6, June 2020; from memory.
        kernels: Some(Kernels::since(5, 8)),
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_shared"),
        needs: &[Spaces, Forks, HugePages],
        compares: Compares::Pages("what was shared of a huge page"),
    }
    UseZeroPage: MAINLINE {
        name: "transparent_hugepage.use_zero_page", max: 1, default: 1,
        meaning: "Whether reading memory that was never written, where huge pages may be, maps a huge page of zeros that \
                  all share (1) or a huge page at once (0). Linux starts with 0 on machines below 512 MiB",
        kernels: Some(Kernels::since(3, 8)),
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/use_zero_page"),
        needs: &[Spaces, HugePages],
        compares: FREE,
    }
    Hugepages16kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-16kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/enabled"), }
    Hugepages32kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-32kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/enabled"), }
    Hugepages64kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-64kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled"), }
    Hugepages128kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-128kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/enabled"), }
    Hugepages256kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-256kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/enabled"), }
    Hugepages512kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-512kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/enabled"), }
    Hugepages1024kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-1024kB.enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/enabled"), }
    Hugepages2048kB: HUGE_SIZE { name: "transparent_hugepage.hugepages-2048kB.enabled", default: 3,
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled"), }
    SharedHugepage: MAINLINE {
        name: "transparent_hugepage.shmem_enabled", max: 5,
        meaning: "Which shared memory without a file gets huge pages: never (0) none, always (1) all, within_size (2) where they end \
                  within it, advise (3) where a program asks for huge pages; deny (4) and force (5) hold for all file systems in memory",
        kernels: Some(Kernels::since(4, 8)), // From memory.
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        words: HUGE_SHARED, needs: &[Spaces], leaves: Leaves::HugePages,
    }
    Shared16kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-16kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/shmem_enabled"), }
    Shared32kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-32kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/shmem_enabled"), }
    Shared64kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-64kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled"), }
    Shared128kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-128kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/shmem_enabled"), }
    Shared256kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-256kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/shmem_enabled"), }
    Shared512kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-512kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/shmem_enabled"), }
    Shared1024kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-1024kB.shmem_enabled",
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/shmem_enabled"), }
    Shared2048kB: SHARED_SIZE { name: "transparent_hugepage.hugepages-2048kB.shmem_enabled", default: 4,
        stands_for: Sysfs("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled"), }
    NumaBalancing: MAINLINE {
        name: "kernel.numa_balancing", max: 3, default: 1,
        meaning: "Whether tasks' pages are made to fault now and then: 1 moves them to the nodes that use them, 2 moves hot \
                  ones from slow nodes to fast ones, 3 does both",
        kernels: Some(Kernels::since(3, 14)),
        stands_for: Sysctl("/proc/sys/kernel/numa_balancing"),
        // Memory tiering, c574bbe917036, March 2022; from memory.
        limited: &[Limited::of(2..=3, Kernels::since(5, 18))],
        needs: &[Spaces, SeveralNodes],
        leaves: Leaves::Moved,
    }
    PromoteRateLimit: MAINLINE {
        name: "kernel.numa_balancing_promote_rate_limit_MBps",
        searched: Some((16, 65_536)),
        max: 1_048_576, default: 65_536, unit: "MB/s",
        meaning: "What NUMA balancing promotes to a node in a second, at most, once the node is short of memory",
        kernels: Some(Kernels::since(6, 1)),
        stands_for: Sysctl("/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps"),
        needs: &[Hints, SeveralNodes, BALANCES_BY_HEAT, SlowNode],
    }
    BalancingScanDelay: BALANCING {
        name: "numa_balancing.scan_delay_ms",
        searched: Some((10, 10_000)),
        max: 600_000, default: 1000, unit: "ms",
        meaning: "From the birth of an address space to NUMA balancing's first window, and to kmmscand's first scan",
        stands_for: Sysfs("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms"),
        needs: &[Hints, SeveralNodes],
    }
    BalancingPeriodMin: BALANCING {
        name: "numa_balancing.scan_period_min_ms",
        searched: Some((100, 10_000)),
        min: 10, max: 600_000, default: 1000, unit: "ms",
        meaning: "From one window of an address space to the next, at least",
        stands_for: Sysfs("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms"),
    }
    BalancingPeriodMax: BALANCING {
        name: "numa_balancing.scan_period_max_ms",
        searched: Some((1000, 60_000)),
        min: 10, max: 600_000, default: 60_000, unit: "ms",
        meaning: "The same, at most; how often the threshold of hot pages is looked at",
        stands_for: Sysfs("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms"),
    }
    BalancingScanSize: BALANCING {
        name: "numa_balancing.scan_size_mb",
        searched: Some((16, 1024)),
        min: 1, max: 1_048_576, default: 256, unit: "MiB",
        meaning: "Memory that a window makes fault",
        stands_for: Sysfs("/sys/kernel/debug/sched/numa_balancing/scan_size_mb"),
    }
    BalancingHotThreshold: MAINLINE {
        name: "numa_balancing.hot_threshold_ms",
        searched: Some((100, 10_000)),
        min: 1, max: 600_000, default: 1000, unit: "ms",
        meaning: "A page of a slow node is hot that faults so soon after it was marked",
        kernels: Some(Kernels::since(6, 1)),
        stands_for: Sysfs("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms"),
        needs: &[Hints, SeveralNodes, BALANCES_BY_HEAT, SlowNode],
    }
    PromoteScanShare: PROMOTING {
        name: "freehold.promote_scan_permille", min: 1, max: 1000, default: 100, unit: "1/1000",
        meaning: "What looking for pages to promote may take of one CPU's time (+promote)",
        stands_for: Nothing("kmmscand was to bound it by scan_size and the scan period"),
        compares: Compares::Time("a round of looking"),
    }
    PromotePeriod: PROMOTING {
        name: "freehold.promote_period_ms", searched: Some((10, 1000)),
        min: 10, max: 60_000, default: 50, unit: "ms",
        meaning: "From one round of looking for pages to promote to the next (+promote)",
        stands_for: Nothing("kmmscand's scan_period_ms was to be one"),
        compares: Compares::Time("the first pause"),
    }
    KmmscandPeriodMin: SCANNING {
        name: "kmmscand.scan_period_min_ms", searched: Some((0, 60_000)),
        max: 600_000, unit: "ms",
        meaning: "From one scan of an address space to the next, at least (kmmscand-vN; 0: as the revision has it)",
    }
    KmmscandPeriodMax: SCANNING {
        name: "kmmscand.scan_period_max_ms", searched: Some((0, 600_000)),
        max: 600_000, unit: "ms",
        meaning: "The same, at most",
    }
    KmmscandSizeMax: SCANNING {
        name: "kmmscand.scan_size_max_mb", searched: Some((0, 65_536)),
        max: 16_777_216, unit: "MiB",
        meaning: "Addresses of a scan, at most, where the revision bounds them (0: as the revision has it)",
        needs: &[KMMSCAND_BOUNDED, Programs],
    }
    MemoryMax: CGROUP {
        name: "memory.max", default: UNLIMITED,
        meaning: "What the recorded program's cgroup may have; beyond it, it reclaims, and is killed where nothing can go",
        stands_for: Cgroup { file: "memory.max", v1: Some("memory.limit_in_bytes") },
        leaves: Leaves::Evicted,
    }
    MemoryHigh: CGROUP {
        name: "memory.high", default: UNLIMITED,
        meaning: "Beyond this the program's cgroup reclaims, and where that frees too little its tasks are made to wait",
        stands_for: Cgroup { file: "memory.high", v1: None }, leaves: Leaves::Evicted,
    }
    MemoryLow: CGROUP {
        name: "memory.low",
        meaning: "Up to this the program's cgroup is reclaimed only where there is nothing else; beyond it in proportion",
        stands_for: Cgroup { file: "memory.low", v1: None },
    }
    MemoryMin: CGROUP {
        name: "memory.min",
        meaning: "Up to this the program's cgroup is never reclaimed; beyond it in proportion",
        // bf8d5d52ffe8; from memory.
        kernels: Some(Kernels::since(4, 18)),
        stands_for: Cgroup { file: "memory.min", v1: None },
    }
    MemorySwapMax: CGROUP {
        name: "memory.swap.max", default: UNLIMITED,
        meaning: "What of the program's cgroup may be in swap",
        stands_for: Cgroup { file: "memory.swap.max", v1: None },
        needs: &[Spaces, Swap(SWAPS)],
        leaves: Leaves::Swapped,
    }
    ZramDisksize: SWAP_SIZE {
        name: "zram.disksize",
        meaning: "Swap on compressed memory, of so much before compression; 0: none",
        // In staging before 3.14; from memory.
        kernels: Some(Kernels::since(3, 14)),
        stands_for: Sysfs("/sys/block/zram0/disksize"),
    }
    ZramAlgorithm: MAINLINE {
        name: "zram.comp_algorithm", max: 2,
        meaning: "How zram compresses: what a page costs to write and to read, and how small it becomes",
        // lzo-rle; from memory. Before it zram had lzo.
        kernels: Some(Kernels::since(5, 1)),
        stands_for: Sysfs("/sys/block/zram0/comp_algorithm"),
        words: ALGORITHMS, needs: &[Spaces, Swap(&[Knob::ZramDisksize])],
    }
    ZramRatio: PATCHED {
        name: "zram.ratio_percent",
        searched: Some((150, 500)), max: 100_000, unit: "percent", gap: Some((1, 99)),
        meaning: "How much smaller pages become in zram, 270 for 2.7; 0: as published for the algorithm",
        stands_for: Nothing("it follows from what programs write"),
        needs: &[Spaces, Swap(&[Knob::ZramDisksize])],
    }
    SwapDisk: SWAP_SIZE {
        name: "swap.disk",
        meaning: "Swap on the machine's disk, of so much; 0: none",
        stands_for: Tools("mkswap and swapon of a partition or file of that size"),
    }
    SwapRotational: MAINLINE {
        name: "swap.rotational", max: 1,
        meaning: "1: the disk of swap.disk turns, or says so, as virtio's do: with a page the slots around are read, not the pages",
        stands_for: Tools("/sys/block/DISK/queue/rotational, before swapon"),
        needs: &[Spaces, Swap(&[Knob::SwapDisk])],
    }
    PageCluster: MAINLINE {
        name: "vm.page-cluster", max: 10, default: 3,
        meaning: "2^this pages at most are read from swap with one that is wanted; 0: none",
        stands_for: Sysctl("/proc/sys/vm/page-cluster"),
        needs: &[Spaces, Swap(SWAPS), ReadsAhead(Knob::SwapDisk)],
    }
    VmaRaEnabled: MAINLINE {
        name: "swap.vma_ra_enabled", max: 1, default: 1,
        meaning: "With a page of swap that does not turn, the pages around it are read; false: the slots around it",
        kernels: Some(Kernels::since(4, 14)), // From memory.
        stands_for: Sysfs("/sys/kernel/mm/swap/vma_ra_enabled"),
        words: TRUTH, needs: &[Spaces, Swap(SWAPS), ReadsPrivateAhead(Knob::SwapDisk)],
    }
    ZswapEnabled: ZSWAP {
        name: "zswap.enabled", max: 1,
        meaning: "What goes to swap is compressed and stays in memory first, as far as zswap.max_pool_percent goes",
        stands_for: Sysfs("/sys/module/zswap/parameters/enabled"),
        words: SWITCH, needs: &[Spaces, Swap(SWAPS)],
    }
    ZswapCompressor: ZSWAP {
        name: "zswap.compressor", max: 2,
        meaning: "How zswap compresses: what a page costs to store and to load, and how small it becomes",
        stands_for: Sysfs("/sys/module/zswap/parameters/compressor"),
        words: COMPRESSORS,
    }
    ZswapMaxPoolPercent: ZSWAP {
        name: "zswap.max_pool_percent", max: 100, default: 20, unit: "percent",
        meaning: "zswap's pool has so much of the machine's memory at most",
        stands_for: Sysfs("/sys/module/zswap/parameters/max_pool_percent"),
        compares: Compares::Memory("zswap's pool"),
    }
    ZswapAcceptThresholdPercent: ZSWAP {
        name: "zswap.accept_threshold_percent", max: 100, default: 90, unit: "percent",
        meaning: "Once it was full, zswap takes no more pages, and writes some to the device behind it, down to so much of that",
        kernels: Some(Kernels::since(5, 6)), // From memory.
        stands_for: Sysfs("/sys/module/zswap/parameters/accept_threshold_percent"),
        compares: Compares::Memory("zswap's pool"),
    }
    ZswapRatio: ZSWAP {
        name: "zswap.ratio_percent",
        searched: Some((150, 500)), max: 100_000, unit: "percent", gap: Some((1, 99)),
        meaning: "How much smaller pages become in zswap, 270 for 2.7; 0: as published for the compressor",
        kernels: None,
        stands_for: Nothing("it follows from what programs write"),
    }
}
