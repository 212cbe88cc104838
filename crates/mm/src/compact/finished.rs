//! When a compaction of a zone is over.

use super::control::{By, Control};
use super::{CompactDoor, CompactGround, Outcome, block_of};
use crate::ground::{Machine, MigrateType, Order, Relaxed};
use crate::pages::{AllocFlags, Zone, fallbacks, zone_flag};
use crate::rules::knobs::Knob;
use crate::rules::policy::{CaptureRule, ProactiveRule};

/// From this order on a block of another type is taken over with its pageblock (half of a pageblock's order).
const CLAIM_ORDER: u8 = Order::PAGEBLOCK.get() / 2;

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Whether `control` is done, and with what.
    pub(super) fn finished(self, control: &Control) -> Option<Outcome> {
        let zone = &self.zones()[usize::from(control.zone.0)];
        if control.captured.is_some() && self.rules().compact.capture == CaptureRule::Captured {
            return Some(Outcome::Success);
        }
        if control.have_met() {
            self.own().of(zone.id()).reset_positions(zone.managed_span());
            if control.goal.by == By::Direct {
                self.own().of(zone.id()).flush_skip.store(1, Relaxed);
            }
            return Some(if control.whole { Outcome::Complete } else { Outcome::PartialSkipped });
        }
        if control.goal.by == By::Proactive {
            return self.finished_proactive(zone);
        }
        if control.contended || self.pages().is_killed(self.machine().task()) {
            return Some(Outcome::Contended);
        }
        let order = control.goal.order?;
        // The rest of a pageblock is worth the while, that it need not be come back to.
        if control.migrate_pfn != block_of(control.migrate_pfn).0 {
            return None;
        }
        let has_block = || self.has_block_for(zone, order, control.goal.migratetype);
        if control.goal.by != By::Kcompactd {
            return has_block().then_some(Outcome::Success);
        }
        // With `vm.defrag_mode` it works for all: up to the high mark in whole pageblocks, which may be taken without mixing types.
        let (mark, highest) = (zone.mark_high(), control.goal.highest);
        let has_enough = || zone.watermark_ok(self.machine(), order, mark, highest, AllocFlags::WHOLE_BLOCKS);
        let by_mode = |mode: u64| if mode == 0 { has_block() } else { has_enough() };
        let done = self.knobs().decide(self.machine(), Knob::DefragMode, by_mode);
        done.then_some(Outcome::Success)
    }

    /// Nobody asked: kswapd's work goes before it, and it ends where little is fragmented.
    pub(super) fn finished_proactive(self, zone: &Zone<M>) -> Option<Outcome> {
        if zone.has_flag(zone_flag::RECLAIM_ACTIVE) {
            return Some(Outcome::PartialSkipped);
        }
        let enough = self.rules().compact.proactive == ProactiveRule::Never
            || self.is_defragmented(self.fragmentation_score_of(zone));
        enough.then_some(Outcome::Success)
    }

    /// Whether a request of `migratetype` could be given a block of `order`: of its own type, or one that it may claim.
    pub(super) fn has_block_for(self, zone: &Zone<M>, order: Order, migratetype: MigrateType) -> bool {
        let claims = |size: Order| size.get() >= CLAIM_ORDER || migratetype != MigrateType::Movable;
        zone.arenas().all().any(|free| {
            let free = free.lock(self.machine());
            order.to(Order::MAX).any(|size| {
                let has = |other: MigrateType| !free.list(size, other).is_empty();
                has(migratetype)
                    || migratetype == MigrateType::Movable && has(MigrateType::Cma)
                    || claims(size) && fallbacks(migratetype).iter().any(|&other| has(other))
            })
        })
    }
}
