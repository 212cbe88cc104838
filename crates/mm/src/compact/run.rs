//! Compacting one zone: the scanners in turn, until one of `finished`'s reasons (`compact_zone`).

use super::control::{By, CompactGoal, Control, Effort};
use super::migrate_scan::Search;
use super::moving::Moved;
use super::{CompactDoor, CompactEvent, CompactGround, Compaction, Outcome, block_of};
use crate::ground::{Machine, PAGE_SIZE, Pfn, Relaxed, Span, Work, ZoneId};
use crate::pages::Zone;
use crate::rules::knobs::Knob;
use crate::rules::policy::{BudgetRule, CaptureRule, IsolationRule, PcpDrainRule};

/// The least that a tuned budget falls to: 64 pageblocks.
const BUDGET_MIN: u32 = 64 * 512;

/// What a compaction of a zone came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(in crate::compact) outcome: Outcome,
    /// The block of the wanted order, where the policy hands it to the request.
    pub(in crate::compact) captured: Option<Pfn>,
}

impl From<Outcome> for Ran {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, captured: None }
    }
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Compacts `zone` for `goal`, if that is worth trying.
    pub(crate) fn compact_zone(self, zone: &Zone<M>, goal: CompactGoal) -> Ran {
        if let Some(ran) = self.emptying().complete_for(zone, goal) {
            return ran;
        }
        if let Err(outcome) = self.is_suitable(zone, &goal) {
            return outcome.into();
        }
        let since = self.machine().enter(Span::Compact);
        if goal.order.is_some_and(|order| self.own().of(zone.id()).is_restarting(order))
            && goal.by != By::Kswapd
        {
            self.forget_skipped(zone);
        }
        let mut control = self.begin(zone, goal);
        let outcome = self.run(zone, &mut control);
        self.release_targets(&mut control);
        let back = control.free_pfn.0.min(super::last_block(&zone.managed_span()).0);
        if !control.have_met() {
            self.own().of(zone.id()).free.store(back, Relaxed);
        }
        self.own().count_scanned(zone.id(), &control);
        let work = Work {
            zone: zone.id(),
            order: control.block_order(),
            migratetype: goal.migratetype,
            count: control.moved,
        };
        self.machine().leave(Span::Compact, since, work);
        Ran { outcome, captured: control.captured }
    }

    /// Clears all that is remembered of the zone's blocks and positions (`__reset_isolation_suitable`).
    pub(super) fn forget_skipped(self, zone: &Zone<M>) {
        self.own().of(zone.id()).flush_skip.store(0, Relaxed);
        self.blocks().clear_skipped(self.machine(), zone.managed_span());
        self.own().of(zone.id()).reset_positions(zone.managed_span());
    }

    fn begin(self, zone: &Zone<M>, goal: CompactGoal) -> Control {
        let span = zone.managed_span();
        let last = super::last_block(&span);
        let ends = (Pfn(span.start), last);
        if goal.effort > Effort::Usual {
            return Control::new(goal, zone.id(), ends);
        }
        let mut at =
            (self.own().of(zone.id()).migrate_position(goal.mode), self.own().of(zone.id()).free_position());
        if at.1 < ends.0 || at.1 > last {
            at.1 = last;
        }
        if at.0 < ends.0 || at.0.0 >= span.end {
            at.0 = ends.0;
        }
        let whole = at.0 == ends.0;
        let mut control = Control::new(goal, zone.id(), at);
        control.whole |= whole;
        // What this CPU keeps back would be met as pages that stay.
        self.lru().lru_drain_cpu(self.machine().cpu());
        control
    }

    fn run(self, zone: &Zone<M>, control: &mut Control) -> Outcome {
        let budget = self.budget(zone);
        let outcome = loop {
            if let Some(outcome) = self.finished(control) {
                break outcome;
            }
            if self.is_spent(budget, control.scanned.migrate) {
                break Outcome::Contended;
            }
            let before = control.migrate_pfn;
            let same_block = control.undrained.is_some_and(|end| block_of(before).1 == end);
            control.finish_block = same_block && !control.is_async();
            match self.isolate_to_migrate(control) {
                Search::Abort => {
                    self.put_back_from(control, 0);
                    break Outcome::Contended;
                }
                Search::Nothing => {}
                Search::Found => {
                    let from = control.isolated[0].0;
                    let moved = self.move_isolated(control);
                    if moved == Moved::NoTarget && !control.have_met() {
                        break Outcome::Contended;
                    }
                    self.after_round(control, from, moved);
                }
            }
            self.drain_behind(zone, control);
        };
        self.tune_budget(zone, control, outcome);
        outcome
    }

    /// A page of a block stayed: the rest of that block is in vain where only whole ones count.
    fn after_round(self, control: &mut Control, from: Pfn, moved: Moved) {
        let order = control.block_order();
        let block_end = from.align_down(order).add(order.pages());
        let only_whole = control.is_async()
            && control.goal.by == By::Direct
            && self.rules().compact.isolation == IsolationRule::SkipOnFailure;
        if moved == Moved::Some && only_whole && control.migrate_pfn < block_end {
            control.migrate_pfn = block_end;
            control.undrained = None;
        } else {
            control.undrained = Some(block_end);
        }
    }

    /// Pages of a block that is behind the scanner leave the pageset, so that they merge; the block is captured if it did.
    fn drain_behind(self, zone: &Zone<M>, control: &mut Control) {
        let Some(end) = control.undrained.filter(|end| control.migrate_pfn >= *end) else { return };
        if control.goal.order.is_none() {
            return;
        }
        let rules = &self.rules().compact;
        let captures = rules.capture == CaptureRule::Captured && control.goal.by == By::Direct;
        if captures || rules.pcp_drain == PcpDrainRule::EachBlock {
            let cpu = self.machine().cpu();
            self.lru().lru_drain_cpu(cpu);
            self.pages().drain_pageset(zone, cpu);
            control.undrained = None;
        }
        if captures && control.captured.is_none() {
            let order = control.block_order();
            control.captured =
                self.capture(zone, Pfn(end.0 - order.pages()), (order, control.goal.migratetype));
        }
    }

    /// How many pages a call may look at.
    fn budget(self, zone: &Zone<M>) -> Budget {
        match self.rules().compact.budget {
            BudgetRule::Unbounded => Budget::Pages(u64::MAX),
            BudgetRule::Fixed => Budget::AsSet,
            BudgetRule::Tuned => match self.own().of(zone.id()).budget.load(Relaxed) {
                0 => Budget::AsSet,
                pages => Budget::Pages(pages.into()),
            },
        }
    }

    /// Whether a call that looked at so many pages may look at no more.
    fn is_spent(self, budget: Budget, scanned: u64) -> bool {
        match budget {
            Budget::Pages(pages) => scanned >= pages,
            Budget::AsSet => {
                let by = (Knob::CompactBudget, scanned);
                self.knobs().decide_by(self.machine(), by, budget_of, |pages| scanned >= pages)
            }
        }
    }

    fn tune_budget(self, zone: &Zone<M>, control: &Control, outcome: Outcome) {
        if self.rules().compact.budget != BudgetRule::Tuned || control.goal.by != By::Direct {
            return;
        }
        let after = |now: u64| {
            let now = now.min(u64::from(zone.managed())) as u32;
            let next = if outcome == Outcome::Success { now.saturating_mul(2) } else { now / 2 };
            next.clamp(BUDGET_MIN.min(zone.managed()), zone.managed()).max(1)
        };
        let next = match self.own().of(zone.id()).budget.load(Relaxed) {
            0 => {
                let by_knob = |mib: u64| after(budget_of(mib));
                self.knobs().decide(self.machine(), Knob::CompactBudget, by_knob)
            }
            pages => after(pages.into()),
        };
        self.own().of(zone.id()).budget.store(next, Relaxed);
    }
}

/// How many pages a call may look at.
#[derive(Clone, Copy, Debug)]
enum Budget {
    Pages(u64),
    /// What the knob says.
    AsSet,
}

/// Pages of a budget of so many MiB.
fn budget_of(mib: u64) -> u64 {
    (mib << 20) / PAGE_SIZE
}

impl Compaction {
    /// What `control` looked at in `zone` is counted.
    fn count_scanned(&self, zone: ZoneId, control: &Control) {
        let scanned = control.scanned;
        self.count(zone, CompactEvent::MigrateScanned, scanned.migrate);
        self.count(zone, CompactEvent::FreeScanned, scanned.free);
        if matches!(control.goal.by, By::Kcompactd | By::Proactive) {
            self.count(zone, CompactEvent::DaemonMigrateScanned, scanned.migrate);
            self.count(zone, CompactEvent::DaemonFreeScanned, scanned.free);
        }
    }
}
