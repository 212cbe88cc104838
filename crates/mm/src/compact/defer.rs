//! Putting attempts off after failures: after n of them in a row, 2^n attempts are let pass, up to 64, before the next
//! (docs/rules/compaction.md).

use super::{Outcome, ZoneCompact};
use crate::ground::{Order, Relaxed};
use crate::rules::policy::DeferRule;

/// At most 2^6 attempts are let pass (`COMPACT_MAX_DEFER_SHIFT`).
const SHIFT_MAX: u32 = 6;

impl ZoneCompact {
    /// Whether this attempt for `order` is put off; counts it.
    pub(super) fn is_deferred(&self, order: Order) -> bool {
        if u32::from(order.get()) < self.order_failed.load(Relaxed) {
            return false;
        }
        let limit = 1 << self.defer_shift.load(Relaxed);
        let considered = self.considered.load(Relaxed) + 1;
        self.considered.store(considered.min(limit), Relaxed);
        considered < limit
    }

    /// Whether so many attempts were put off that all that is known of the zone's blocks should be forgotten.
    pub(super) fn is_restarting(&self, order: Order) -> bool {
        u32::from(order.get()) >= self.order_failed.load(Relaxed)
            && self.defer_shift.load(Relaxed) == SHIFT_MAX
            && self.considered.load(Relaxed) >= 1 << SHIFT_MAX
    }

    /// An attempt for `order` failed: the next are put off, for twice as long as before.
    pub(super) fn defer(&self, order: Order) {
        self.considered.store(0, Relaxed);
        self.defer_shift.store((self.defer_shift.load(Relaxed) + 1).min(SHIFT_MAX), Relaxed);
        self.order_failed.fetch_min(u32::from(order.get()), Relaxed);
    }

    /// There is a block of `order`: that it could be had is known from here on (`compaction_defer_reset`).
    pub(super) fn note_success(&self, order: Order) {
        self.order_failed.fetch_max(u32::from(order.get()) + 1, Relaxed);
    }

    /// And the allocation got it.
    pub(super) fn note_allocated(&self, order: Order) {
        self.considered.store(0, Relaxed);
        self.defer_shift.store(0, Relaxed);
        self.note_success(order);
    }
}

impl DeferRule {
    /// Whether an attempt that ended so puts later ones off; `is_async`: it waited for nothing.
    pub(super) fn counts(self, outcome: Outcome, is_async: bool) -> bool {
        let failed = matches!(outcome, Outcome::Complete | Outcome::PartialSkipped);
        match self {
            Self::None => false,
            Self::Sync => failed && !is_async,
            // Asynchronous compaction rarely gets as far as a zone's end.
            Self::All => failed || is_async && outcome == Outcome::Contended,
        }
    }
}
