//! One line for each knob: what it cannot act without, and what its decisions compare.

use mm::{KNOBS, Knob, ZoneKind};

use super::margin::Compares;
use super::need::{
    ARENAS, AVOIDS_MIXING, BUDGET, CHOOSES_ORDER, CPU_SLABS, KMMSCAND, KMMSCAND_BOUNDED, Need, PROACTIVE,
    REGIONS, SCALED_MARKS,
};

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    knob: Knob,
    /// All of them; the first that is missing is named.
    pub(super) needs: &'static [Need],
    pub(super) compares: Compares,
}

const FREE: Compares = Compares::Memory("a zone's free memory");
const LISTED: Compares = Compares::Pages("a CPU's page list");
const DIRTY: Compares = Compares::Memory("dirty memory");

/// Whoever looks for huge pages looks only where some are allowed.
const ALLOWS_HUGE: Need = Need::Other(
    Knob::TransparentHugepage,
    |value| value != 0,
    "transparent_hugepage.enabled is 0, and huge pages are nobody's",
);
const BALANCES: Need = Need::Other(
    Knob::NumaBalancing,
    |value| value != 0,
    "kernel.numa_balancing is 0, and nothing is made to fault",
);
const BALANCES_BY_HEAT: Need = Need::Other(
    Knob::NumaBalancing,
    |value| value >= 2,
    "kernel.numa_balancing is below 2, and pages move by who uses them, not by heat",
);
const STRICT: Need = Need::Other(
    Knob::OvercommitMemory,
    |value| value == 2,
    "vm.overcommit_memory is not 2, and only then does the ratio count",
);

const fn line(knob: Knob, needs: &'static [Need], compares: Compares) -> Reach {
    Reach { knob, needs, compares }
}

/// The line of `knob`.
pub(super) fn reach(knob: Knob) -> &'static Reach {
    let reach = &REACH[knob as usize];
    debug_assert_eq!(reach.knob, knob, "the table is in the order of the knobs");
    reach
}

/// Every knob, in the order of [`KNOBS`].
const REACH: [Reach; KNOBS.len()] = [
    line(Knob::PcpBatchScaleMax, &[], Compares::Pages("a refill or drain")),
    line(Knob::PercpuPagelistHighFraction, &[], LISTED),
    line(Knob::MinFreeKbytes, &[], FREE),
    line(Knob::WatermarkScaleFactor, &[SCALED_MARKS], FREE),
    line(Knob::WatermarkBoostFactor, &[AVOIDS_MIXING], Compares::Nothing),
    line(Knob::LowmemReserveDma, &[Need::ZoneBelowAnother(ZoneKind::Dma)], FREE),
    line(Knob::LowmemReserveDma32, &[Need::ZoneBelowAnother(ZoneKind::Dma32)], FREE),
    line(Knob::LowmemReserveNormal, &[Need::ZoneBelowAnother(ZoneKind::Normal)], FREE),
    line(Knob::NumaZonelistOrder, &[CHOOSES_ORDER, Need::OrderOfZones], Compares::Nothing),
    line(Knob::StatInterval, &[Need::Daemons], Compares::Time("the run's length")),
    line(Knob::TransparentHugepage, &[Need::Spaces], FREE),
    line(Knob::PcpBatch, &[], LISTED),
    line(Knob::PcpHighBatches, &[], LISTED),
    line(Knob::Arenas, &[ARENAS], Compares::Nothing),
    line(Knob::Highpte, &[Need::HighMem, Need::Spaces], Compares::Nothing),
    line(Knob::SlabMaxOrder, &[Need::Slabs], Compares::Nothing),
    line(Knob::SlabMinObjects, &[Need::Slabs], Compares::Nothing),
    line(Knob::CpuPartialScale, &[CPU_SLABS, Need::Slabs], Compares::Nothing),
    line(Knob::NodePartialScale, &[Need::Slabs], Compares::Nothing),
    line(Knob::OvercommitMemory, &[Need::Spaces], Compares::Nothing),
    line(Knob::OvercommitRatio, &[Need::Spaces, STRICT], Compares::Memory("memory promised")),
    line(Knob::DirtyRatio, &[Need::Files], DIRTY),
    line(Knob::DirtyBackgroundRatio, &[Need::Files], DIRTY),
    line(Knob::Swappiness, &[Need::Spaces, Need::RoomForAnon], Compares::Nothing),
    line(Knob::DemotionEnabled, &[Need::Spaces, Need::SlowNode], Compares::Nothing),
    line(Knob::ExtfragThreshold, &[Need::Spaces], Compares::Number("a zone's fragmentation index")),
    line(
        Knob::CompactionProactiveness,
        &[PROACTIVE, Need::Spaces],
        Compares::Number("the score of memory in pieces"),
    ),
    line(Knob::HugeDefrag, &[Need::Spaces, ALLOWS_HUGE], Compares::Nothing),
    line(
        Knob::CompactBudget,
        &[BUDGET, Need::Spaces],
        Compares::Memory("memory scanned by a call of compaction"),
    ),
    line(Knob::KhugepagedPagesToScan, &[Need::Spaces, ALLOWS_HUGE], Compares::Pages("a round of khugepaged")),
    line(Knob::KhugepagedScanSleep, &[Need::Spaces, ALLOWS_HUGE], Compares::Nothing),
    line(
        Knob::KhugepagedMaxPtesNone,
        &[Need::Spaces, ALLOWS_HUGE],
        Compares::Pages("what was missing of a huge page"),
    ),
    line(Knob::NumaBalancing, &[Need::Spaces], Compares::Nothing),
    line(Knob::PromoteRateLimit, &[Need::Programs, BALANCES_BY_HEAT, Need::SlowNode], Compares::Nothing),
    line(Knob::BalancingScanDelay, &[Need::Programs], Compares::Nothing),
    line(Knob::BalancingPeriodMin, &[Need::Programs, BALANCES], Compares::Nothing),
    line(Knob::BalancingPeriodMax, &[Need::Programs, BALANCES], Compares::Nothing),
    line(Knob::BalancingScanSize, &[Need::Programs, BALANCES], Compares::Nothing),
    line(Knob::BalancingHotThreshold, &[Need::Programs, BALANCES_BY_HEAT, Need::SlowNode], Compares::Nothing),
    line(Knob::PromoteScanShare, &[REGIONS, Need::Programs], Compares::Time("a round of looking")),
    line(Knob::PromotePeriod, &[REGIONS, Need::Programs], Compares::Time("the first pause")),
    line(Knob::KmmscandPeriodMin, &[KMMSCAND, Need::Programs], Compares::Nothing),
    line(Knob::KmmscandPeriodMax, &[KMMSCAND, Need::Programs], Compares::Nothing),
    line(Knob::KmmscandSizeMax, &[KMMSCAND_BOUNDED, Need::Programs], Compares::Nothing),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_knobs() {
        for spec in &KNOBS {
            assert_eq!(reach(spec.knob).knob, spec.knob, "{}", spec.name);
        }
    }
}
