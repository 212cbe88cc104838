//! How many pages a pageset takes at a time and may keep, from the zone's size and the CPUs that share it
//! (docs/rules/page-lists.md#sizes).

use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::{BatchRule, HighRule, Rules};

/// Counts and sizes of a pageset, in pages, as /proc/zoneinfo prints them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageSizing {
    /// Pages on the lists.
    pub count: u32,
    /// Pages that they may hold.
    pub high: u32,
    /// Pages that a refill takes at least.
    pub batch: u32,
    /// Lower bound of `high`.
    pub high_min: u32,
    /// Upper bound of `high`.
    pub high_max: u32,
}

/// Auto-tuning lets a zone's CPUs together keep an eighth of it.
const HIGH_FRACTION_MIN: u32 = 8;

impl PageSizing {
    /// Sizes for a CPU of a zone with `managed` pages and a low mark of `low_wmark` pages, shared by `local_cpus`.
    pub fn compute(rules: &Rules, knobs: &Knobs, managed: u32, low_wmark: u32, local_cpus: u32) -> Self {
        let batch = match knobs.get(Knob::PcpBatch) as u32 {
            0 => batch(rules.lists.batch, managed),
            set => set,
        };
        let least = 4 * batch;
        let share = |pages: u32| (pages / local_cpus.max(1)).max(least);
        let fraction = knobs.get(Knob::PercpuPagelistHighFraction) as u32;
        let by_fraction = (fraction != 0).then(|| share(managed / fraction));
        let by_batches = match knobs.get(Knob::PcpHighBatches) as u32 {
            0 => by_fraction,
            batches => Some(batches * batch),
        };
        let (high_min, high_max) = match (rules.lists.high, by_batches) {
            (_, Some(high)) => (high, high),
            (HighRule::SixBatches, None) => (6 * batch, 6 * batch),
            (HighRule::LowWatermark, None) => (share(low_wmark), share(low_wmark)),
            (HighRule::AutoTuned, None) => (share(low_wmark), share(managed / HIGH_FRACTION_MIN)),
        };
        Self { count: 0, high: high_min, batch, high_min, high_max }
    }
}

/// Pages of a batch for a zone of `managed` pages.
pub(super) fn batch(rule: BatchRule, managed: u32) -> u32 {
    let base = match rule {
        BatchRule::Half => (managed / 1024).min(128) / 4,
        BatchRule::Quarter => (managed / 1024).min(256) / 4,
        BatchRule::Capped => (managed / 4096).min(64),
    }
    .max(1);
    let rounded = 1u32 << (base + base / 2).ilog2();
    (rounded - 1).max(1)
}
