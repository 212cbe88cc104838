//! Every tunable, in one table: its name, range, default, meaning, and what it stands for in Linux. To add one: a
//! variant of [`Knob`], its line in [`KNOBS`] in the same place, and its use.

use alloc::string::{String, ToString};
use core::fmt;

use crate::sync::{AtomicU64, Relaxed};

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
}

/// What a knob stands for in Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StandsFor {
    /// A file under /proc/sys.
    Sysctl(&'static str),
    /// A file under /sys.
    Sysfs(&'static str),
    /// A word on the kernel's command line, which no running kernel changes.
    BootParameter(&'static str),
    /// No mainline kernel lets one set it while it runs; the text says what comes nearest.
    Nothing(&'static str),
}

impl fmt::Display for StandsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(path) | Self::Sysfs(path) => f.write_str(path),
            Self::BootParameter(word) => write!(f, "{word} on the kernel's command line"),
            Self::Nothing(nearest) => write!(f, "no mainline kernel has this ({nearest})"),
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct KnobSpec {
    /// The knob.
    pub knob: Knob,
    /// Its name, as `--set` takes it.
    pub name: &'static str,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The value where nothing is said.
    pub default: u64,
    /// Unit of the value; empty for a bare number.
    pub unit: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What it stands for.
    pub stands_for: StandsFor,
}

/// Every knob, in the order of [`Knob`].
pub const KNOBS: [KnobSpec; 32] = [
    KnobSpec {
        knob: Knob::PcpBatchScaleMax,
        name: "vm.pcp_batch_scale_max",
        min: 0,
        max: 6,
        default: 5,
        unit: "",
        meaning: "A refill or drain of a CPU's page list moves at most batch << this many pages under zone->lock",
        stands_for: StandsFor::Nothing("CONFIG_PCP_BATCH_SCALE_MAX at build time"),
    },
    KnobSpec {
        knob: Knob::PercpuPagelistHighFraction,
        name: "vm.percpu_pagelist_high_fraction",
        min: 0,
        max: i32::MAX as u64,
        default: 0,
        unit: "",
        meaning: "If not 0 (then 8 or more), a zone's CPUs together keep at most 1/this of it, and tuning is off",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/percpu_pagelist_high_fraction"),
    },
    KnobSpec {
        knob: Knob::MinFreeKbytes,
        name: "vm.min_free_kbytes",
        min: 0,
        max: i32::MAX as u64,
        default: 0,
        unit: "KiB",
        meaning: "Memory kept free for those who cannot wait; all watermarks follow from it. 0: from memory size",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/min_free_kbytes"),
    },
    KnobSpec {
        knob: Knob::WatermarkScaleFactor,
        name: "vm.watermark_scale_factor",
        min: 1,
        max: 3000,
        default: 10,
        unit: "1/10000 of a zone",
        meaning: "Distance between the min, low and high watermarks",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/watermark_scale_factor"),
    },
    KnobSpec {
        knob: Knob::WatermarkBoostFactor,
        name: "vm.watermark_boost_factor",
        min: 0,
        max: i32::MAX as u64,
        default: 15000,
        unit: "1/10000 of the high watermark",
        meaning: "Upper limit of what is reclaimed ahead when requests of different mobility mix in a pageblock",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/watermark_boost_factor"),
    },
    KnobSpec {
        knob: Knob::LowmemReserveDma,
        name: "vm.lowmem_reserve_ratio.dma",
        min: 0,
        max: i32::MAX as u64,
        default: 256,
        unit: "",
        meaning: "DMA keeps 1/this of the memory above it from requests that could use that; 0: nothing",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/lowmem_reserve_ratio (first number)"),
    },
    KnobSpec {
        knob: Knob::LowmemReserveDma32,
        name: "vm.lowmem_reserve_ratio.dma32",
        min: 0,
        max: i32::MAX as u64,
        default: 256,
        unit: "",
        meaning: "The same for DMA32",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/lowmem_reserve_ratio (second number)"),
    },
    KnobSpec {
        knob: Knob::LowmemReserveNormal,
        name: "vm.lowmem_reserve_ratio.normal",
        min: 0,
        max: i32::MAX as u64,
        default: 32,
        unit: "",
        meaning: "The same for Normal, against requests that could use HighMem or Movable",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/lowmem_reserve_ratio (third number)"),
    },
    KnobSpec {
        knob: Knob::NumaZonelistOrder,
        name: "vm.numa_zonelist_order",
        min: 0,
        max: 2,
        default: 0,
        unit: "",
        meaning: "1: a request asks all zones of the nearest node first; 2: the highest zones of all nodes first; 0: as the \
                  kernel chooses. Kernels from 4.14 on refuse 2",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/numa_zonelist_order (default, node or zone)"),
    },
    KnobSpec {
        knob: Knob::StatInterval,
        name: "vm.stat_interval",
        min: 1,
        max: i32::MAX as u64,
        default: 1,
        unit: "s",
        meaning: "How often each CPU folds its counters and lets its page lists decay",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/stat_interval"),
    },
    KnobSpec {
        knob: Knob::TransparentHugepage,
        name: "transparent_hugepage.enabled",
        min: 0,
        max: 2,
        default: 1,
        unit: "",
        meaning: "Who gets huge pages: 0 nobody, 1 all, 2 (madvise) programs that ask. If not 0, khugepaged runs, which \
                  raises min_free_kbytes where that was not set by hand",
        stands_for: StandsFor::Sysfs("/sys/kernel/mm/transparent_hugepage/enabled"),
    },
    KnobSpec {
        knob: Knob::PcpBatch,
        name: "freehold.pcp_batch",
        min: 0,
        max: 65_535,
        default: 0,
        unit: "pages",
        meaning: "Pages of a pageset's batch in every zone; 0: from the zone's size",
        stands_for: StandsFor::Nothing("zone_batchsize() at build time"),
    },
    KnobSpec {
        knob: Knob::PcpHighBatches,
        name: "freehold.pcp_high_batches",
        min: 0,
        max: 65_535,
        default: 0,
        unit: "batches",
        meaning: "A pageset may hold this many batches, without tuning; 0: from the zone and its CPUs",
        stands_for: StandsFor::Nothing("vm.percpu_pagelist_high_fraction, which goes by the zone's size"),
    },
    KnobSpec {
        knob: Knob::Arenas,
        name: "freehold.arenas",
        min: 0,
        max: 64,
        default: 0,
        unit: "",
        meaning: "Into how many sets of free lists +arenas or +zones divides a zone, 0: one a CPU of its node, 128 MiB each \
                  at least. Changed in mid-run, it is how many of them CPUs begin with",
        stands_for: StandsFor::Nothing("each zone has one set"),
    },
    KnobSpec {
        knob: Knob::Highpte,
        name: "freehold.highpte",
        min: 0,
        max: 1,
        default: 0,
        unit: "",
        meaning: "Whether page tables of a 32-bit machine may be in HighMem",
        stands_for: StandsFor::Nothing("CONFIG_HIGHPTE at build time"),
    },
    KnobSpec {
        knob: Knob::SlabMaxOrder,
        name: "slab_max_order",
        min: 0,
        max: 10,
        default: 0,
        unit: "",
        meaning: "Slabs are of this order at most where one object fits into less; 0: the policy's, 3 in mainline",
        stands_for: StandsFor::BootParameter("slab_max_order= (slub_max_order= in older kernels)"),
    },
    KnobSpec {
        knob: Knob::SlabMinObjects,
        name: "slab_min_objects",
        min: 0,
        max: 32_767,
        default: 0,
        unit: "objects",
        meaning: "How many objects a slab should hold as far as its largest order allows; 0: from the number of CPUs",
        stands_for: StandsFor::BootParameter("slab_min_objects= (slub_min_objects= in older kernels)"),
    },
    KnobSpec {
        knob: Knob::CpuPartialScale,
        name: "freehold.cpu_partial_scale",
        min: 0,
        max: 64,
        default: 1,
        unit: "",
        meaning: "CPU partial slabs may hold this many times the objects; 0: there are none",
        stands_for: StandsFor::Nothing("/sys/kernel/slab/CACHE/cpu_partial sets one cache"),
    },
    KnobSpec {
        knob: Knob::NodePartialScale,
        name: "freehold.node_partial_scale",
        min: 0,
        max: 64,
        default: 1,
        unit: "",
        meaning: "A node keeps this many times the partial slabs before it gives empty ones back; 0: it keeps none",
        stands_for: StandsFor::Nothing("/sys/kernel/slab/CACHE/min_partial sets one cache"),
    },
    KnobSpec {
        knob: Knob::OvercommitMemory,
        name: "vm.overcommit_memory",
        min: 0,
        max: 2,
        default: 0,
        unit: "",
        meaning: "How much memory may be promised: 0 no single request larger than memory and swap, 1 any amount, 2 no \
                  more in all than swap and vm.overcommit_ratio of memory",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/overcommit_memory"),
    },
    KnobSpec {
        knob: Knob::OvercommitRatio,
        name: "vm.overcommit_ratio",
        min: 0,
        max: 100_000,
        default: 50,
        unit: "percent",
        meaning: "Part of memory that may be promised where vm.overcommit_memory is 2",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/overcommit_ratio"),
    },
    KnobSpec {
        knob: Knob::DirtyRatio,
        name: "vm.dirty_ratio",
        min: 0,
        max: 100,
        default: 20,
        unit: "percent",
        meaning: "Part of free memory and page cache that may be dirty or under writeback before writers wait",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/dirty_ratio"),
    },
    KnobSpec {
        knob: Knob::DirtyBackgroundRatio,
        name: "vm.dirty_background_ratio",
        min: 0,
        max: 100,
        default: 10,
        unit: "percent",
        meaning: "The same before the flusher begins to write",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/dirty_background_ratio"),
    },
    KnobSpec {
        knob: Knob::Swappiness,
        name: "vm.swappiness",
        min: 0,
        max: 200,
        default: 60,
        unit: "",
        meaning: "Weight of anonymous memory against files in reclaim, 100: both alike (the most before 5.8); 0: files only",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/swappiness"),
    },
    KnobSpec {
        knob: Knob::DemotionEnabled,
        name: "numa.demotion_enabled",
        min: 0,
        max: 1,
        default: 0,
        unit: "",
        meaning: "Whether reclaim moves pages to slower memory (a node without CPUs) before it frees any (Linux since 5.15)",
        stands_for: StandsFor::Sysfs("/sys/kernel/mm/numa/demotion_enabled"),
    },
    KnobSpec {
        knob: Knob::ExtfragThreshold,
        name: "vm.extfrag_threshold",
        min: 0,
        max: 1000,
        default: 500,
        unit: "1/1000",
        meaning: "A zone whose fragmentation index is no higher is not compacted: it lacks memory rather than order",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/extfrag_threshold"),
    },
    KnobSpec {
        knob: Knob::CompactionProactiveness,
        name: "vm.compaction_proactiveness",
        min: 0,
        max: 100,
        default: 20,
        unit: "",
        meaning: "How eagerly kcompactd makes huge blocks before anybody asks; 0: never (Linux since 5.9)",
        stands_for: StandsFor::Sysctl("/proc/sys/vm/compaction_proactiveness"),
    },
    KnobSpec {
        knob: Knob::HugeDefrag,
        name: "transparent_hugepage.defrag",
        min: 0,
        max: 5,
        default: 0,
        unit: "",
        meaning: "What a fault does for a huge page that is not free. 1 always: compacts; 2 defer: wakes daemons; 3 \
                  defer+madvise: compacts where a program asked, else as 2; 4 madvise: compacts where a program asked; 5 \
                  never; 0: as the kernel chooses (1 before 4.6, then 4)",
        stands_for: StandsFor::Sysfs("/sys/kernel/mm/transparent_hugepage/defrag"),
    },
    KnobSpec {
        knob: Knob::CompactBudget,
        name: "freehold.compact_budget_mib",
        min: 1,
        max: 1 << 20,
        default: 1024,
        unit: "MiB",
        meaning: "How much memory a call of compaction may scan under +compact-budget, and begins with under \
                  +compact-tuned-budget",
        stands_for: StandsFor::Nothing("seed 004 proposes 1 GiB"),
    },
    KnobSpec {
        knob: Knob::KhugepagedPagesToScan,
        name: "transparent_hugepage.khugepaged.pages_to_scan",
        min: 1,
        max: u32::MAX as u64,
        default: 4096,
        unit: "pages",
        meaning: "How much of address spaces a round of khugepaged looks at; less than 512: nothing",
        stands_for: StandsFor::Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan"),
    },
    KnobSpec {
        knob: Knob::KhugepagedScanSleep,
        name: "transparent_hugepage.khugepaged.scan_sleep_millisecs",
        min: 1,
        max: u32::MAX as u64,
        default: 10_000,
        unit: "ms",
        meaning: "How long khugepaged sleeps between two rounds",
        stands_for: StandsFor::Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"),
    },
    KnobSpec {
        knob: Knob::KhugepagedMaxPtesNone,
        name: "transparent_hugepage.khugepaged.max_ptes_none",
        min: 0,
        max: 511,
        default: 511,
        unit: "pages",
        meaning: "How many of 512 pages need not be there for khugepaged to put a huge one in their place",
        stands_for: StandsFor::Sysfs("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"),
    },
];

impl Knob {
    /// The knob called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_name(name: &str) -> Result<Self, KnobError> {
        let spec = KNOBS.iter().find(|spec| spec.name == name);
        spec.map(|spec| spec.knob).ok_or_else(|| KnobError::Unknown { name: name.to_string() })
    }

    /// Its line in the table.
    pub fn spec(self) -> &'static KnobSpec {
        &KNOBS[self as usize]
    }

    /// Checks that `value` may be given to it.
    ///
    /// # Errors
    /// If it is out of range.
    pub fn check(self, value: u64) -> Result<(), KnobError> {
        let spec = self.spec();
        let gap = self == Self::PercpuPagelistHighFraction && (1..8).contains(&value);
        if gap || value < spec.min || value > spec.max {
            return Err(KnobError::OutOfRange { knob: self, value });
        }
        Ok(())
    }
}

/// A knob that does not exist, or a value that it does not take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnobError {
    /// No knob has this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The value is out of the knob's range.
    OutOfRange {
        /// The knob.
        knob: Knob,
        /// The value.
        value: u64,
    },
    /// The policy's kernel does not take this value.
    Refused {
        /// The knob.
        knob: Knob,
        /// The value.
        value: u64,
        /// The policy's name.
        policy: String,
    },
}

impl fmt::Display for KnobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => write!(f, "no knob is called '{name}'"),
            Self::OutOfRange { knob, value } => {
                let spec = knob.spec();
                write!(f, "{} = {value} is out of range: {} to {}", spec.name, spec.min, spec.max)?;
                if *knob == Knob::PercpuPagelistHighFraction {
                    f.write_str(", without 1 to 7")?;
                }
                Ok(())
            }
            Self::Refused { knob, value, policy } => write!(
                f,
                "{} = {value} is refused under {policy}: its kernel does not take that value (freehold knobs show {0} says \
                 which do)",
                knob.spec().name
            ),
        }
    }
}

impl core::error::Error for KnobError {}

/// The values in force. Any of them can change while the machine runs.
#[derive(Debug)]
pub struct Knobs {
    values: [AtomicU64; KNOBS.len()],
}

impl Default for Knobs {
    fn default() -> Self {
        Self { values: core::array::from_fn(|index| AtomicU64::new(KNOBS[index].default)) }
    }
}

impl Knobs {
    /// The value of `knob`.
    #[inline]
    pub fn get(&self, knob: Knob) -> u64 {
        self.values[knob as usize].load(Relaxed)
    }

    /// Gives `value` to `knob`. What is derived from it follows by [`crate::Mm::set_knob`] only.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn set(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        knob.check(value)?;
        self.values[knob as usize].store(value, Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, spec) in KNOBS.iter().enumerate() {
            assert_eq!(spec.knob as usize, index, "{}", spec.name);
            assert!(spec.knob.check(spec.default).is_ok(), "{}", spec.name);
            assert_eq!(Knob::from_name(spec.name), Ok(spec.knob));
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let knobs = Knobs::default();
        assert!(knobs.set(Knob::PcpBatchScaleMax, 7).is_err());
        assert!(knobs.set(Knob::PercpuPagelistHighFraction, 7).is_err());
        assert_eq!(knobs.get(Knob::PcpBatchScaleMax), 5);
        assert!(knobs.set(Knob::PcpBatchScaleMax, 0).is_ok());
        assert_eq!(knobs.get(Knob::PcpBatchScaleMax), 0);
    }
}
