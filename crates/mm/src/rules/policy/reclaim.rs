//! The rules of the LRU lists and of reclaim, and their history. The versions are from memory (unchecked) where
//! docs/rules/reclaim.md does not have them.

use super::generations::GenerationRules;
use super::in_force::{List, Of};
use super::spaces::{
    DEFERRED_SPLIT, DeferredSplitRule, EMPTY_TABLE, EmptyTableRule, HUGE_FAULT, HUGE_NODE, HUGE_ZERO,
    HugeFaultRule, HugeNodeRule, HugeZeroRule, PART_REUSE, PROTECT, PartReuseRule, ProtectRule, SHARED_HUGE,
    SharedHugeRule,
};
use super::swap::SwapRules;
use super::{Mechanism, v};
use crate::ground::{Since, Version, at};

/// What has a set of LRU lists of its own, with a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruRule {
    /// Each zone: reclaim works zone by zone.
    PerZone,
    /// Each node.
    PerNode,
}

const LRU: &[Since<LruRule>] =
    &[Since(v(2, 6), LruRule::PerZone, ""), Since(v(4, 8), LruRule::PerNode, "599d0c954f91")];

/// How many pages a CPU keeps back before it takes the lists' lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruBatchRule {
    /// 14.
    Fourteen,
    /// 15.
    Fifteen,
    /// 31.
    ThirtyOne,
}

impl LruBatchRule {
    /// Pages of a batch.
    pub(crate) const fn pages(self) -> usize {
        match self {
            Self::Fourteen => 14,
            Self::Fifteen => 15,
            Self::ThirtyOne => 31,
        }
    }
}

const BATCH: &[Since<LruBatchRule>] = &[
    Since(v(2, 6), LruBatchRule::Fourteen, ""),
    Since(v(4, 16), LruBatchRule::Fifteen, ""),
    Since(v(6, 10), LruBatchRule::ThirtyOne, "9cecde80aae0"),
];

/// How new anonymous pages, and those that are used, stand against others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnonRule {
    /// They begin as active, and one use keeps them so.
    Active,
    /// They begin as inactive and are judged as pages of files are.
    AsFiles,
}

const ANON: &[Since<AnonRule>] =
    &[Since(v(2, 6), AnonRule::Active, ""), Since(v(5, 9), AnonRule::AsFiles, "b518154e59aa")];

/// What counts as a cost of private memory or of files, by which reclaim weighs them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostRule {
    /// Pages that were written or came back too early, and code that was kept active.
    Moves,
    /// These moves 32 times, and whatever was looked at and stayed.
    MovesAndRotations,
}

/// Read in the facts (6.1; 6.6); that it came with 6.2, from memory. What it was before 5.8 is not here.
const COST: &[Since<CostRule>] =
    &[Since(v(2, 6), CostRule::Moves, ""), Since(v(6, 2), CostRule::MovesAndRotations, "0538a82c39e9")];

/// When a request that reclaims for itself waits for pages to be written, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionRule {
    /// 100 ms, after a pass that met nothing but dirty pages and such that are being written.
    WaitsLong,
    /// A jiffy, where all dirty pages that it met were being written already when reclaim met them before, and at
    /// least half of what could be freed is dirty or being written.
    WaitsOneJiffy,
}

/// Read in 6.1 to 7.1; that it began with 5.16, and what was before, are from memory.
const CONGESTION: &[Since<CongestionRule>] = &[
    Since(v(2, 6), CongestionRule::WaitsLong, ""),
    Since(v(5, 16), CongestionRule::WaitsOneJiffy, "8cd7c588decf"),
];

/// What reclaim for a page that is read ahead leaves alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadaheadReclaimRule {
    /// Nothing.
    Nothing,
    /// What a file system would have to write, as shared memory: readahead is within one (`memalloc_nofs_save`).
    WhatFilesWrite,
}

/// The commit is from memory; traces of 7.2 say that it is so (shared-mix: reclaim for reads unmaps shared pages, and keeps them).
const READAHEAD_RECLAIM: &[Since<ReadaheadReclaimRule>] = &[
    Since(v(2, 6), ReadaheadReclaimRule::Nothing, ""),
    Since(v(5, 8), ReadaheadReclaimRule::WhatFilesWrite, "f2c817bed58d"),
];

/// Which pages leave a shadow as they are evicted, so that it is seen when they come back too early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkingsetRule {
    /// None.
    None,
    /// Those of files; early is what comes back within as many evictions as there are active pages of files.
    Files,
    /// Anonymous ones too; what could be swapped counts with active pages.
    All,
}

/// Both from memory.
const WORKINGSET: &[Since<WorkingsetRule>] = &[
    Since(v(2, 6), WorkingsetRule::None, ""),
    Since(v(3, 15), WorkingsetRule::Files, "a528910e12ec"),
    Since(v(5, 9), WorkingsetRule::All, "aae466b0052e"),
];

/// Whether a write call uses pages of a file on a disk as a read does (shared memory's are used by both).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteUseRule {
    /// The second call makes them active.
    Counts,
    /// Writes alone never do.
    DoesNot,
}

/// Measured on 6.18, ext4: of 20,000 pages that were written three times none was active, and none was Referenced when it was
/// read for the first time.
const WRITE_USE: &[Since<WriteUseRule>] =
    &[Since(v(2, 6), WriteUseRule::Counts, ""), Since(v(4, 7), WriteUseRule::DoesNot, "bbddabe2e436")];

/// How large the folios are that readahead and writes make in the page cache (ext4's; xfs has had them since 5.18).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFolioRule {
    /// Of one page.
    Single,
    /// A write's as long as the write; a window's four times as long as the one with the mark that was met.
    ByMark,
    /// Four times as long with each window, whatever the first of the last was cut to; and windows end where such a folio would.
    Remembered,
}

/// The first from memory (ext4's merge); the second is c4602f9fa77f and its parent. Case 44 has the orders of both.
const FILE_FOLIO: &[Since<FileFolioRule>] = &[
    Since(v(2, 6), FileFolioRule::Single, ""),
    Since(v(6, 16), FileFolioRule::ByMark, ""),
    Since(v(6, 17), FileFolioRule::Remembered, "c4602f9fa77f"),
];

/// What is read with a missing page of a file's mapping that may be executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeReadRule {
    /// What lies around it, as elsewhere.
    Around,
    /// What follows it in the mapping, in single pages, and no window after that.
    Ahead,
}

/// Read in 6.18; 6.12 has the first.
const CODE_READ: &[Since<CodeReadRule>] =
    &[Since(v(2, 6), CodeReadRule::Around, ""), Since(v(6, 18), CodeReadRule::Ahead, "")];

/// What a fault in a file's mapping maps besides its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapAroundRule {
    /// Of an aligned stretch of sixteen what is there.
    Sixteen,
    /// The rest of each folio that it maps a page of, too.
    WholeFolios,
}

/// Seen in captures of 6.18.15 (map-file: 516 faults where 1,025 would be) and 7.2.12; which commits, from memory.
const MAP_AROUND: &[Since<MapAroundRule>] = &[
    Since(v(2, 6), MapAroundRule::Sixteen, ""),
    Since(v(6, 18), MapAroundRule::WholeFolios, "357b92761d94"),
];

/// What a fault that finds its page of a file in memory takes off the faults that did not (`mmap_miss`): after 100 more of these nothing is
/// read around them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapHitRule {
    /// One for each page that it maps.
    EachPage,
    /// The same, but for pages that came back after they were evicted from among those in use.
    EachNewPage,
    /// One, if its own page is no such page.
    EachFault,
}

/// The first from memory. The second was posted in April 2026 (fujunjie, "tighten mmap_miss hit accounting"); captures of 7.2.12 show it.
const MAP_HIT: &[Since<MapHitRule>] = &[
    Since(v(2, 6), MapHitRule::EachPage, ""),
    Since(v(6, 10), MapHitRule::EachNewPage, ""),
    Since(v(7, 2), MapHitRule::EachFault, ""),
];

/// Which entries say that a page was used: by what programs said of how their mappings are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecencyRule {
    /// All but those of mappings that are read in order: these are cleared by who asks, and not counted.
    NotInOrder,
    /// Those of mappings of which nothing was said (`vma_has_recency`): the others are not even looked at.
    NothingSaid,
}

/// The version and commit are from memory; captured on 6.1 and from 6.12 on (random-reads).
const RECENCY: &[Since<RecencyRule>] =
    &[Since(v(2, 6), RecencyRule::NotInOrder, ""), Since(v(6, 3), RecencyRule::NothingSaid, "8788f6781486")];

/// How old the figures of groups are that reclaim goes by (sizes of lists, refaults) and that writers wait by (pages of files, dirty ones).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupStatRule {
    /// As they are. (Kernels lagged by 32 pages a CPU at most; from 5.15 on by what changes in a pass over lists, and 64 pages a CPU.)
    AsTheyAre,
    /// Sums over groups as they were when somebody last read memory.stat, or two seconds ago; what lies on a group's own lists as it is.
    SumsFlushed,
    /// All as it was then.
    Flushed,
}

/// From memory; 6.12, 6.18 and 7.2 traced (`mem_cgroup_wb_stats` flushes nothing: write-limit-mglru); 6.1 traced (each `shrink_node` flushes: swappiness-0-classic) and captured (own lists, too: file-loop, where no node with shadows is taken).
const GROUP_STAT: &[Since<GroupStatRule>] = &[
    Since(v(2, 6), GroupStatRule::AsTheyAre, ""),
    Since(v(5, 13), GroupStatRule::SumsFlushed, "2d146aa3aa84"),
    Since(v(5, 15), GroupStatRule::AsTheyAre, "aa48e47e3906"),
    Since(v(6, 6), GroupStatRule::Flushed, ""),
];

/// Which zones kswapd looks after that was woken again before its short sleep was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KswapdZoneRule {
    /// Those of its last run, and those that it was woken for.
    Both,
    /// Those that it was woken for, though they are fewer: where marks of the zone for DMA alone are raised, all others are passed over.
    Asked,
}

/// 6.1, 6.12, 6.18 and 7.2 captured (`pgskip`: min-free-set, exec-map-classic, two-readers); the version and what was before are from memory.
const KSWAPD_ZONE: &[Since<KswapdZoneRule>] =
    &[Since(v(2, 6), KswapdZoneRule::Both, ""), Since(v(5, 2), KswapdZoneRule::Asked, "dffcac2cb88e")];

/// How many nodes of its files' trees that hold nothing but shadows a group may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShadowNodeRule {
    /// One for eight pages on its lists, as reclaim sees these.
    ByPages,
    /// The same; where pages are kept by generations one for eight pages of the group's slabs, which here are the nodes of its files, and of its
    /// locked memory alone.
    SlabsByGeneration,
}

/// Read in 6.1 to 7.1; the first version from memory. 7.2's is a guess by what captures of 7.2.12 show, in no source: on classic lists no node is taken
/// (two-files-classic-7.2), by generations most are (two-files, mix-max), but for a few beyond half a batch (read-4k-loop keeps 257); where 24 MiB are locked none is (locked-limit).
const SHADOW_NODE: &[Since<ShadowNodeRule>] =
    &[Since(v(2, 6), ShadowNodeRule::ByPages, ""), Since(v(7, 2), ShadowNodeRule::SlabsByGeneration, "")];

/// Whether vmstat's `pgscan_direct`, `pgsteal_direct` and `pgrefill` have what is reclaimed because of a group's limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupCountRule {
    /// No: these are the machine's own reclaim.
    Apart,
    /// Yes: they are counters of nodes.
    Counted,
}

/// Read in 7.1.
const GROUP_COUNT: &[Since<GroupCountRule>] =
    &[Since(v(2, 6), GroupCountRule::Apart, ""), Since(v(7, 1), GroupCountRule::Counted, "")];

/// How many pages a CPU charges to a group at a time, of which it keeps what it does not need yet. Delays of `memory.high` are by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupChargeRule {
    /// 32.
    Pages32,
    /// 64.
    Pages64,
}

impl GroupChargeRule {
    /// In base pages.
    pub const fn pages(self) -> u32 {
        match self {
            Self::Pages32 => 32,
            Self::Pages64 => 64,
        }
    }
}

/// 64 is read in 6.1 to 7.1; 32 as published for 5.4 (docs/published.md#down-2019); the commit from memory.
const GROUP_CHARGE: &[Since<GroupChargeRule>] =
    &[Since(v(2, 6), GroupChargeRule::Pages32, ""), Since(v(6, 1), GroupChargeRule::Pages64, "1813e51eece0")];

/// What happens to who charged while a group was over its `memory.high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd)]
pub enum GroupHighRule {
    /// It reclaims what it charged.
    Reclaims,
    /// And waits, if that was not enough.
    Waits,
    /// It reclaims again as long as that frees anything, and after that up to 16 times, before it waits.
    TriesThenWaits,
}

/// 5.4 as published (docs/published.md#down-2019), the last one read in 6.1 to 7.1; commits from memory.
const GROUP_HIGH: &[Since<GroupHighRule>] = &[
    Since(v(2, 6), GroupHighRule::Reclaims, ""),
    Since(v(5, 4), GroupHighRule::Waits, "0e4b01df8659"),
    Since(v(5, 9), GroupHighRule::TriesThenWaits, "b3ff92916af3"),
];

/// The rules of the LRU lists and of reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct ReclaimRules {
    pub lru: LruRule,
    pub batch: LruBatchRule,
    pub anon: AnonRule,
    pub huge_fault: HugeFaultRule,
    pub huge_node: HugeNodeRule,
    pub cost: CostRule,
    pub huge_zero: HugeZeroRule,
    pub shared_huge: SharedHugeRule,
    pub part_reuse: PartReuseRule,
    pub deferred_split: DeferredSplitRule,
    pub protect: ProtectRule,
    pub empty_table: EmptyTableRule,
    pub congestion: CongestionRule,
    pub readahead: ReadaheadReclaimRule,
    pub workingset: WorkingsetRule,
    pub write_use: WriteUseRule,
    pub file_folio: FileFolioRule,
    pub code_read: CodeReadRule,
    pub map_around: MapAroundRule,
    pub map_hit: MapHitRule,
    pub recency: RecencyRule,
    pub group_stat: GroupStatRule,
    /// Which zones kswapd looks after that was woken early.
    pub kswapd_zone: KswapdZoneRule,
    pub group_charge: GroupChargeRule,
    pub group_high: GroupHighRule,
    pub shadow_node: ShadowNodeRule,
    pub group_count: GroupCountRule,
    pub swap: SwapRules,
    /// Where pages are kept by generations.
    pub generations: GenerationRules,
}

impl ReclaimRules {
    /// The rules of mainline Linux `version`.
    pub(super) fn linux(version: Version) -> Self {
        Self {
            lru: at(LRU, version),
            batch: at(BATCH, version),
            anon: at(ANON, version),
            huge_fault: at(HUGE_FAULT, version),
            huge_node: at(HUGE_NODE, version),
            cost: at(COST, version),
            huge_zero: at(HUGE_ZERO, version),
            shared_huge: at(SHARED_HUGE, version),
            part_reuse: at(PART_REUSE, version),
            deferred_split: at(DEFERRED_SPLIT, version),
            protect: at(PROTECT, version),
            empty_table: at(EMPTY_TABLE, version),
            congestion: at(CONGESTION, version),
            readahead: at(READAHEAD_RECLAIM, version),
            workingset: at(WORKINGSET, version),
            write_use: at(WRITE_USE, version),
            file_folio: at(FILE_FOLIO, version),
            code_read: at(CODE_READ, version),
            map_around: at(MAP_AROUND, version),
            map_hit: at(MAP_HIT, version),
            recency: at(RECENCY, version),
            group_stat: at(GROUP_STAT, version),
            kswapd_zone: at(KSWAPD_ZONE, version),
            group_charge: at(GROUP_CHARGE, version),
            group_high: at(GROUP_HIGH, version),
            shadow_node: at(SHADOW_NODE, version),
            group_count: at(GROUP_COUNT, version),
            swap: SwapRules::linux(version),
            generations: GenerationRules::linux(version),
        }
    }

    pub(super) fn visit(&mut self, other: Self, to: &mut List) {
        use Mechanism::{Generations, Reclaim};
        const BOTH: &[Mechanism] = &[Reclaim, Generations];
        let Self {
            lru,
            batch,
            anon,
            cost,
            huge_fault: _,
            huge_node: _,
            huge_zero: _,
            shared_huge: _,
            part_reuse: _,
            deferred_split: _,
            protect: _,
            empty_table: _,
            congestion,
            kswapd_zone,
            readahead,
            workingset,
            write_use,
            file_folio: _,
            code_read: _,
            map_around: _,
            map_hit: _,
            recency: _,
            group_stat: _,
            group_charge: _,
            group_high: _,
            shadow_node: _,
            group_count: _,
            swap,
            generations: _,
        } = self;
        to.add(Of("lru", &[Reclaim], "what has LRU lists of its own"), LRU, lru, other.lru);
        let kept = Of("lru-batch", BOTH, "pages that a CPU keeps back from the lists");
        to.add(kept, BATCH, batch, other.batch);
        to.add(Of("anon", &[Reclaim], "how new anonymous pages begin"), ANON, anon, other.anon);
        let costs = Of("cost", &[Reclaim], "what reclaim of private memory and of files costs");
        to.add(costs, COST, cost, other.cost);
        let waits = Of("congestion", BOTH, "how long a request waits for writeback");
        to.add(waits, CONGESTION, congestion, other.congestion);
        let zones = Of("kswapd-zone", BOTH, "which zones kswapd looks after that was woken early");
        to.add(zones, KSWAPD_ZONE, kswapd_zone, other.kswapd_zone);
        let within = Of("readahead-reclaim", BOTH, "what reclaim for a page that is read ahead leaves alone");
        to.add(within, READAHEAD_RECLAIM, readahead, other.readahead);
        let shadows = Of("workingset", BOTH, "which evicted pages are noticed when they come back");
        to.add(shadows, WORKINGSET, workingset, other.workingset);
        let writes = Of("write-use", BOTH, "whether write calls make pages of files active");
        to.add(writes, WRITE_USE, write_use, other.write_use);
        swap.visit(other.swap, to);
        self.visit_groups(other, to);
        self.generations.visit(other.generations, to);
        self.visit_spaces(other, to);
        self.visit_files(other, to);
    }

    /// The rules of groups.
    fn visit_groups(&mut self, other: Self, to: &mut List) {
        use Mechanism::{Generations, Reclaim};
        const BOTH: &[Mechanism] = &[Reclaim, Generations];
        let Self { group_stat, group_charge, group_high, shadow_node, group_count, .. } = self;
        let stat = Of("group-stat", BOTH, "how old the figures of groups are that reclaim goes by");
        to.add(stat, GROUP_STAT, group_stat, other.group_stat);
        let charge = Of("group-charge", BOTH, "pages that a CPU charges to a group at a time");
        to.add(charge, GROUP_CHARGE, group_charge, other.group_charge);
        let high = Of("group-high", BOTH, "what happens to who goes over memory.high");
        to.add(high, GROUP_HIGH, group_high, other.group_high);
        let nodes = Of("shadow-node", BOTH, "how many nodes of shadows a group may have");
        to.add(nodes, SHADOW_NODE, shadow_node, other.shadow_node);
        let count = Of("group-count", BOTH, "whether vmstat counts what is reclaimed in a group");
        to.add(count, GROUP_COUNT, group_count, other.group_count);
    }

    /// The rules of huge pages and of protection.
    fn visit_spaces(&mut self, other: Self, to: &mut List) {
        use Mechanism::{AddressSpaces, HugePages};
        let Self { huge_fault, huge_node, huge_zero, shared_huge, part_reuse, deferred_split, .. } = self;
        let Self { protect, empty_table, .. } = self;
        let fault = Of("huge-fault", &[HugePages], "how hard a fault tries for a huge page");
        to.add(fault, HUGE_FAULT, huge_fault, other.huge_fault);
        let node = Of("huge-node", &[HugePages], "on which nodes a fault looks for a huge page");
        to.add(node, HUGE_NODE, huge_node, other.huge_node);
        let zero = Of("huge-zero", &[HugePages], "what a write to the huge page of zeros gets");
        to.add(zero, HUGE_ZERO, huge_zero, other.huge_zero);
        let shared = Of("shared-huge", &[HugePages], "where a fault of shared memory makes a huge page");
        to.add(shared, SHARED_HUGE, shared_huge, other.shared_huge);
        let part = Of(
            "part-reuse",
            &[HugePages],
            "what a write to part of a huge page that one process has left gets",
        );
        to.add(part, PART_REUSE, part_reuse, other.part_reuse);
        let gone = Of("deferred-split", &[HugePages], "a huge page of which a part goes");
        to.add(gone, DEFERRED_SPLIT, deferred_split, other.deferred_split);
        let again = Of("protect", &[AddressSpaces], "pages that may be written to again");
        to.add(again, PROTECT, protect, other.protect);
        let empty = Of("empty-table", &[HugePages, AddressSpaces], "tables that advice empties");
        to.add(empty, EMPTY_TABLE, empty_table, other.empty_table);
    }

    /// The rules of files' folios and mappings.
    fn visit_files(&mut self, other: Self, to: &mut List) {
        use Mechanism::{AddressSpaces, Generations, Reclaim};
        const BOTH: &[Mechanism] = &[Reclaim, Generations];
        let Self { file_folio, code_read, map_around, map_hit, recency, .. } = self;
        let folios = Of("file-folio", BOTH, "how large the folios of files are");
        to.add(folios, FILE_FOLIO, file_folio, other.file_folio);
        let code = Of("code-read", BOTH, "what is read with a missing page of a program's code");
        to.add(code, CODE_READ, code_read, other.code_read);
        let around =
            Of("map-around", &[AddressSpaces], "what a fault of a file's mapping maps besides its page");
        to.add(around, MAP_AROUND, map_around, other.map_around);
        let hit = Of("map-hit", BOTH, "what makes a mapping's faults be read around again");
        to.add(hit, MAP_HIT, map_hit, other.map_hit);
        let said = Of("recency", BOTH, "mappings whose entries do not say that a page was used");
        to.add(said, RECENCY, recency, other.recency);
    }
}
