//! How a pageset sizes its refills and drains: counts alone, no pages. Each rule of docs/rules/page-lists.md is a
//! step of this state, so that it can be followed, tested and compared with a kernel's without an allocator around it.

use super::sizing::PageSizing;
use crate::ground::Order;
use crate::rules::policy::{
    DrainRule, FreeHighRule, HighRule, HoldRule, RefillRule, Rules, ScaleRule, YieldRule,
};

/// What a pageset knows of its zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    /// Free pages are under the high mark: pagesets do not grow.
    pub below_high: bool,
    /// kswapd is at work: pagesets shrink.
    pub reclaim_active: bool,
}

/// The rules, the scale and the zone's state that a step depends on.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The rules in force.
    pub rules: &'a Rules,
    /// `vm.pcp_batch_scale_max`, 0 to 6.
    pub scale: u32,
    /// The zone's state.
    pub pressure: Pressure,
}

/// The tuning state of a pageset. Counts are base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tuning {
    /// Pages on the lists.
    pub count: u32,
    /// Pages that the lists may hold, tuned between the next two.
    pub high: u32,
    /// Lower bound of `high`.
    pub high_min: u32,
    /// Upper bound of `high`.
    pub high_max: u32,
    /// Pages that a refill takes at least.
    pub batch: u32,
    /// A free of order 1 to 3 came just before.
    pub prev_free_high_order: bool,
    /// Frees of order 1 to 3 empty the lists only from a batch on: this CPU's share of cache holds several.
    pub free_high_batch: bool,
    /// Refills are `batch << alloc_factor`.
    pub alloc_factor: u8,
    /// Before 6.7, drains are `batch << free_factor`.
    pub free_factor: u8,
    /// Pages freed of late, halved by every allocation.
    pub free_count: u32,
}

/// The scale that Yafang Shao's series (docs/published.md#shao-2024) leaves in the decay of `high`, whatever the knob says.
const SERIES_DECAY_SCALE: u32 = 5;

impl Tuning {
    /// Whether `high` is tuned.
    #[inline]
    fn auto_tuned(&self) -> bool {
        self.high_min != self.high_max
    }

    /// `high` within its bounds. Where a zone is so small, or `min_free_kbytes` so large, that they cross, the upper one
    /// holds.
    #[inline]
    fn bounded(&self, high: u32) -> u32 {
        high.max(self.high_min).min(self.high_max)
    }

    /// Takes on new sizes; what is over them goes back with the next free.
    pub fn resize(&mut self, sizing: PageSizing) {
        self.batch = sizing.batch;
        self.high_min = sizing.high_min;
        self.high_max = sizing.high_max;
        self.high = self.bounded(self.high);
    }

    /// Counts and sizes, as /proc/zoneinfo prints them.
    pub fn sizing(&self) -> PageSizing {
        PageSizing {
            count: self.count,
            high: self.high,
            batch: self.batch,
            high_min: self.high_min,
            high_max: self.high_max,
        }
    }

    /// A block is asked for.
    #[inline]
    pub fn allocating(&mut self, rules: &Rules) {
        match rules.lists.drain {
            DrainRule::FreeCount => self.free_count >>= 1,
            DrainRule::FreeFactor => self.free_factor >>= 1,
            DrainRule::Batch => {}
        }
    }

    /// Blocks that the next refill of `order` asks for; raises `high` and `alloc_factor` on the way
    /// (the kernel's `nr_pcp_alloc`).
    pub fn refill_size(&mut self, setting: Setting<'_>, order: Order) -> u32 {
        let mut high = self.bounded(self.high);
        if high < self.batch {
            return 1;
        }
        let mut pages = self.batch;
        // Who gives way to others need not grow to spare them.
        let grows = order == Order::ZERO && setting.rules.lists.yields == YieldRule::Never;
        if setting.rules.lists.refill == RefillRule::Doubling {
            if grows {
                pages = self.batch << self.alloc_factor;
            }
            if self.auto_tuned() && !setting.pressure.below_high {
                high = (high + pages).min(self.high_max);
                self.high = high;
            }
            if order == Order::ZERO {
                let room = high.saturating_sub(self.count + self.batch).max(self.batch);
                if grows && pages <= room && u32::from(self.alloc_factor) < setting.scale {
                    self.alloc_factor += 1;
                }
                pages = pages.min(room);
            }
        }
        if pages > 1 { (pages >> order.get()).max(2) } else { pages }
    }

    /// A block of `order` was put on the lists; gives the pages that should now go back, 0 for none
    /// (the kernel's `free_unref_page_commit`).
    #[inline]
    pub fn freed(&mut self, setting: Setting<'_>, order: Order) -> u32 {
        self.alloc_factor >>= 1;
        self.count += order.pages();
        let free_high = self.note_high_order(setting.rules.lists.free_high, order);
        self.note_freed(setting, order);
        let high = self.drain_mark(setting, free_high);
        if self.count < high { 0 } else { self.drain_size(setting, high, free_high) }
    }

    /// Whether this free ends a row of frees of order 1 to 3 that should empty the lists.
    #[inline]
    fn note_high_order(&mut self, rule: FreeHighRule, order: Order) -> bool {
        let small = (1..=3).contains(&order.get());
        let threshold = match rule {
            FreeHighRule::Never => return false,
            FreeHighRule::AfterDrain => return small && self.free_factor > 0,
            FreeHighRule::Sequence => self.batch,
            FreeHighRule::LongSequence => self.batch + self.high_min / 2,
        };
        if !small {
            self.prev_free_high_order = false;
            return false;
        }
        let free_high = self.free_count >= threshold
            && self.prev_free_high_order
            && (!self.free_high_batch || self.count >= self.batch);
        self.prev_free_high_order = true;
        free_high
    }

    #[inline]
    fn note_freed(&mut self, setting: Setting<'_>, order: Order) {
        if setting.rules.lists.drain != DrainRule::FreeCount {
            return;
        }
        let most = self.batch << setting.scale;
        if self.free_count < most {
            self.free_count += order.pages();
            if setting.rules.lists.scale == ScaleRule::Series {
                self.free_count = self.free_count.min(most);
            }
        }
    }

    /// The count from which pages go back; adjusts `high` on the way (the kernel's `nr_pcp_high`).
    fn drain_mark(&mut self, setting: Setting<'_>, free_high: bool) -> u32 {
        let high = self.bounded(self.high);
        if self.high_max == 0 {
            return 0;
        }
        if free_high {
            self.high = high.saturating_sub(self.batch << setting.scale).max(self.high_min);
            return 0;
        }
        let lowered = high.saturating_sub(self.free_count.max(self.batch)).max(self.high_min);
        if setting.pressure.reclaim_active {
            self.high = lowered;
            return (4 * self.batch).min(lowered);
        }
        if !self.auto_tuned() {
            return high;
        }
        if setting.pressure.below_high {
            self.high = lowered;
            return self.count.max(self.high_min);
        }
        let need = self.free_count + self.batch;
        if self.count >= high && self.high < need {
            self.high = self.bounded(need);
        }
        high
    }

    /// How many pages go back (the kernel's `nr_pcp_free`).
    fn drain_size(&mut self, setting: Setting<'_>, high: u32, free_high: bool) -> u32 {
        let scaled = self.batch << setting.scale;
        match setting.rules.lists.drain {
            DrainRule::FreeCount if free_high => self.count.min(scaled),
            DrainRule::FreeFactor if free_high => self.count,
            _ if high < self.batch => 1,
            DrainRule::Batch => self.batch,
            _ if setting.rules.lists.yields == YieldRule::ToWaiters => self.batch.min(high - self.batch),
            DrainRule::FreeCount => self.free_count.max(self.batch).min(high - self.batch),
            DrainRule::FreeFactor => {
                let most = high - self.batch;
                let pages = self.batch << self.free_factor;
                if pages < most && u32::from(self.free_factor) < setting.scale {
                    self.free_factor += 1;
                }
                pages.max(self.batch).min(most)
            }
        }
    }

    /// The vmstat tick: `high` falls by an eighth at most. Gives the pages that are now too many
    /// (the kernel's `decay_pcp_high`).
    pub fn decay(&mut self, setting: Setting<'_>) -> u32 {
        if setting.rules.lists.high != HighRule::AutoTuned {
            return 0;
        }
        if self.high > self.high_min {
            let scale = match setting.rules.lists.scale {
                ScaleRule::Mainline => setting.scale,
                ScaleRule::Series => SERIES_DECAY_SCALE,
            };
            let floor = self.count.saturating_sub(self.batch << scale);
            self.high = floor.max(self.high - self.high / 8).max(self.high_min);
        }
        self.count.saturating_sub(self.high)
    }

    /// Pages of one hold of the zone lock, of `left` that are to go back.
    pub fn hold_size(&self, rule: HoldRule, left: u32) -> u32 {
        match rule {
            HoldRule::Whole => left,
            HoldRule::Batch => left.min(self.batch),
        }
    }
}
