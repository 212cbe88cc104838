//! The names of the tunables, and what came of reading one: what a machine hears of them through the seam. What they are
//! is in [`crate::knobs`].

/// A tunable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Knob {
    /// `vm.pcp_batch_scale_max`
    PcpBatchScaleMax,
    /// `vm.percpu_pagelist_high_fraction`
    PercpuPagelistHighFraction,
    /// `vm.min_free_kbytes`
    MinFreeKbytes,
    /// `vm.watermark_scale_factor`
    WatermarkScaleFactor,
    /// `vm.watermark_boost_factor`
    WatermarkBoostFactor,
    /// `vm.lowmem_reserve_ratio.dma`
    LowmemReserveDma,
    /// `vm.lowmem_reserve_ratio.dma32`
    LowmemReserveDma32,
    /// `vm.lowmem_reserve_ratio.normal`
    LowmemReserveNormal,
    /// `vm.numa_zonelist_order`
    NumaZonelistOrder,
    /// `vm.stat_interval`
    StatInterval,
    /// `transparent_hugepage.enabled`
    TransparentHugepage,
    /// `freehold.pcp_batch`
    PcpBatch,
    /// `freehold.pcp_high_batches`
    PcpHighBatches,
    /// `freehold.arenas`
    Arenas,
    /// `freehold.highpte`
    Highpte,
    /// `slab_max_order`
    SlabMaxOrder,
    /// `slab_min_objects`
    SlabMinObjects,
    /// `freehold.cpu_partial_scale`
    CpuPartialScale,
    /// `freehold.node_partial_scale`
    NodePartialScale,
    /// `vm.overcommit_memory`
    OvercommitMemory,
    /// `vm.overcommit_ratio`
    OvercommitRatio,
    /// `vm.dirty_ratio`
    DirtyRatio,
    /// `vm.dirty_background_ratio`
    DirtyBackgroundRatio,
    /// `vm.swappiness`
    Swappiness,
    /// `numa.demotion_enabled`
    DemotionEnabled,
    /// `vm.extfrag_threshold`
    ExtfragThreshold,
    /// `vm.compaction_proactiveness`
    CompactionProactiveness,
    /// `transparent_hugepage.defrag`
    HugeDefrag,
    /// `freehold.compact_budget_mib`
    CompactBudget,
    /// `transparent_hugepage.khugepaged.pages_to_scan`
    KhugepagedPagesToScan,
    /// `transparent_hugepage.khugepaged.scan_sleep_millisecs`
    KhugepagedScanSleep,
    /// `transparent_hugepage.khugepaged.max_ptes_none`
    KhugepagedMaxPtesNone,
    /// `kernel.numa_balancing`
    NumaBalancing,
    /// `kernel.numa_balancing_promote_rate_limit_MBps`
    PromoteRateLimit,
    /// `numa_balancing.scan_delay_ms`
    BalancingScanDelay,
    /// `numa_balancing.scan_period_min_ms`
    BalancingPeriodMin,
    /// `numa_balancing.scan_period_max_ms`
    BalancingPeriodMax,
    /// `numa_balancing.scan_size_mb`
    BalancingScanSize,
    /// `numa_balancing.hot_threshold_ms`
    BalancingHotThreshold,
    /// `freehold.promote_scan_permille`
    PromoteScanShare,
    /// `freehold.promote_period_ms`
    PromotePeriod,
    /// `kmmscand.scan_period_min_ms`
    KmmscandPeriodMin,
    /// `kmmscand.scan_period_max_ms`
    KmmscandPeriodMax,
    /// `kmmscand.scan_size_max_mb`
    KmmscandSizeMax,
}

/// What came of one reading of a knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnobUse {
    /// Whether the knob's default would have decided the same.
    pub verdict: Verdict,
    /// How near the decision was, where it compares figures.
    pub margin: Option<Margin>,
}

/// What the knob's default would have decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The same.
    Same,
    /// Something else.
    Otherwise,
}

/// What a decision compares: a figure that was seen with a mark that follows from the knob, both in the unit of the
/// mechanism (pages, for marks and limits of memory).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Margin {
    /// What was seen.
    pub seen: u64,
    /// The mark in force.
    pub mark: u64,
    /// The mark with the knob's default.
    pub default_mark: u64,
}

impl Margin {
    /// How far what was seen is from where the decision would turn: from the nearer of the two marks.
    pub fn distance(&self) -> u64 {
        self.seen.abs_diff(self.nearer_mark())
    }

    /// Whether it came nearer than `other` as a part of the mark. In pages the smallest zone would always be the nearest, for
    /// there are few from nothing to its marks.
    pub fn is_nearer_than(&self, other: &Self) -> bool {
        let weighed = |of: &Self, by: &Self| u128::from(of.distance()) * u128::from(by.nearer_mark().max(1));
        weighed(self, other) < weighed(other, self)
    }

    fn nearer_mark(&self) -> u64 {
        let is_own = self.seen.abs_diff(self.mark) <= self.seen.abs_diff(self.default_mark);
        if is_own { self.mark } else { self.default_mark }
    }
}

impl KnobUse {
    /// `made` was decided; the default would have decided `by_default`.
    pub fn of<D: PartialEq>(made: &D, by_default: &D) -> Self {
        let verdict = if made == by_default { Verdict::Same } else { Verdict::Otherwise };
        Self { verdict, margin: None }
    }

    /// The same, with what was compared.
    #[must_use]
    pub fn with(self, margin: Margin) -> Self {
        Self { margin: Some(margin), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_that_to_the_nearer_mark() {
        let margin = |seen| Margin { seen, mark: 100, default_mark: 40 }.distance();
        assert_eq!([10, 60, 90, 150].map(margin), [30, 20, 10, 50]);
    }

    #[test]
    fn an_empty_list_with_a_small_mark_is_not_the_nearest() {
        let [empty, half] =
            [(0, 7), (1000, 2000)].map(|(seen, mark)| Margin { seen, mark, default_mark: mark });
        assert!(half.is_nearer_than(&empty) && !empty.is_nearer_than(&half) && !half.is_nearer_than(&half));
    }
}
