//! Compacting one zone: the scanners in turn, until one of `finished`'s reasons (`compact_zone`).

use super::control::{By, CompactGoal, Control, Effort};
use super::migrate_scan::Search;
use super::moving::Moved;
use super::{CompactDoor, CompactEvent, CompactGround, Compaction, Outcome, block_of};
use crate::ground::{Machine, Order, PAGE_SIZE, Pfn, Relaxed, Span, Work, ZoneId};
use crate::pages::Zone;
use crate::rules::knobs::Knob;
use crate::rules::policy::{
    BudgetRule, CaptureRule, FinishRule, IsolationRule, MarkRule, PcpDrainRule, ProactiveRule,
};

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
            self.marks().forget_skipped(zone);
        }
        let mut control = self.begin(zone, goal);
        let at = |control: &Control| (control.migrate_pfn, control.free_pfn);
        self.traced("mm_compaction_begin", at(&control), (0, 0));
        let outcome = self.run(zone, &mut control);
        self.traced("mm_compaction_end", at(&control), (0, 0));
        self.release_targets(&mut control);
        self.marks().note_end(zone, &control);
        self.own().count_scanned(zone.id(), &control, self.rules().compact.proactive);
        let work = Work {
            zone: zone.id(),
            order: control.block_order(),
            migratetype: goal.migratetype,
            count: control.moved,
        };
        self.machine().leave(Span::Compact, since, work);
        let outcome = if control.captured.is_some() { Outcome::Success } else { outcome };
        Ran { outcome, captured: control.captured }
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
        let rules = &self.rules().compact;
        let outcome = loop {
            if let Some(outcome) = self.finished(control) {
                break outcome;
            }
            if self.is_spent(budget, control.scanned.migrate) {
                break Outcome::Contended;
            }
            let same_block = block_of(control.isolated_at) == block_of(control.migrate_pfn);
            control.finish_block = same_block && rules.finish != FinishRule::Never;
            if let Some(outcome) = self.go_round(control) {
                break outcome;
            }
            self.drain_behind(zone, control);
        };
        self.tune_budget(zone, control, outcome);
        outcome
    }

    /// Isolates pages and moves them, and those of the rest of the block if one stayed and the rule is so. `Some`: it is over.
    fn go_round(self, control: &mut Control) -> Option<Outcome> {
        let rules = &self.rules().compact;
        loop {
            let before = control.migrate_pfn;
            match self.isolate_to_migrate(control) {
                Search::Abort => {
                    self.put_back_from(control, 0);
                    return Some(Outcome::Contended);
                }
                Search::Nothing => return None,
                Search::Found => {}
            }
            let from = control.isolated[0].0;
            let moved = self.move_isolated(control);
            if moved == Moved::NoTarget && !control.have_met() {
                return Some(Outcome::Contended);
            }
            control.isolated_at = match rules.mark {
                MarkRule::ClaimedBelow => block_of(Pfn(control.migrate_pfn.0 - 1)).0,
                MarkRule::Claimed | MarkRule::FirstClaimed | MarkRule::InVain => before,
            };
            self.after_round(control, from, moved);
            let stayed = moved != Moved::All && rules.finish == FinishRule::AfterFailure;
            let in_block = control.migrate_pfn != block_of(control.migrate_pfn).0;
            if stayed && in_block && !control.ignores_skip() && !control.finish_block {
                control.finish_block = true;
                if control.block_order() == Order::PAGEBLOCK {
                    // The block will not become free, so that it need not be waited for.
                    control.has_drained();
                }
                continue;
            }
            let noticed = rules.capture == CaptureRule::NoticedLate && control.captured.is_some();
            return noticed.then_some(Outcome::Success);
        }
    }

    /// A page of a block stayed: the rest of that block is in vain where only whole ones count.
    fn after_round(self, control: &mut Control, from: Pfn, moved: Moved) {
        let order = control.block_order();
        let block_end = from.align_down(order).add(order.pages());
        let rules = &self.rules().compact;
        let only_whole = control.is_async()
            && control.goal.by == By::Direct
            && rules.isolation == IsolationRule::SkipOnFailure
            && rules.finish != FinishRule::AfterFailure;
        if moved != Moved::All && only_whole && control.migrate_pfn < block_end {
            control.migrate_pfn = block_end;
            control.has_drained();
        } else {
            control.undrained = Some(block_end);
        }
    }

    /// Pages of a block that is behind the scanner leave the pageset, so that they merge; the block is captured if it did.
    fn drain_behind(self, zone: &Zone<M>, control: &mut Control) {
        let rules = &self.rules().compact;
        let is_behind = |end: Pfn| match rules.mark {
            MarkRule::InVain => control.migrate_pfn >= end,
            _ => control.isolated_at < control.migrate_pfn.align_down(control.block_order()),
        };
        let Some(end) = control.undrained.filter(|&end| is_behind(end)) else { return };
        if control.goal.order.is_none() {
            return;
        }
        let captures = rules.capture != CaptureRule::None && control.goal.by == By::Direct;
        if captures || rules.pcp_drain == PcpDrainRule::EachBlock {
            let cpu = self.machine().cpu();
            self.lru().lru_drain_cpu(cpu);
            self.pages().drain_pageset(zone, cpu);
            control.has_drained();
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
    fn count_scanned(&self, zone: ZoneId, control: &Control, rule: ProactiveRule) {
        let scanned = control.scanned;
        self.count(zone, CompactEvent::MigrateScanned, scanned.migrate);
        self.count(zone, CompactEvent::FreeScanned, scanned.free);
        let is_unasked = control.goal.by == By::Proactive && rule == ProactiveRule::ByScoreCounted;
        if control.goal.by == By::Kcompactd || is_unasked {
            self.count(zone, CompactEvent::DaemonMigrateScanned, scanned.migrate);
            self.count(zone, CompactEvent::DaemonFreeScanned, scanned.free);
        }
    }
}
