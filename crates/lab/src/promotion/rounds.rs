//! What promotion's threads do in a round: they move what is wanted, tell reclaim what is in use, and say what knobs did.

use std::collections::BTreeMap;

use mm::tier::{Budget, Mover, Pass, WantedPage};
use mm::vm::{SpaceId, Touch};
use mm::{Knob, KnobUse, Machine, Margin, Nanos};

use super::chance;
use super::program::Program;
use super::world::World;

impl World {
    /// A pause of freehold's promotion is over: with another period it would have been over at another time. (That it is not
    /// over when a run ends is in [`crate::stage::Stage::note_waits`].)
    pub(crate) fn watch_pause(&self) {
        self.stage.first_round.set(None);
        self.stage.mm.knobs().decide(self.machine(), Knob::PromotePeriod, |ms| ms);
    }

    /// A round of freehold's promotion with this `budget` took `spent`. One that was not bounded by its budget, nor would have
    /// been by a default's, would have looked at the same.
    pub(crate) fn watch_round(&self, spent: Nanos, budget: Budget) {
        // Of a round's share a quarter is for asking.
        let asking = |budget: Budget| budget.period.0 * budget.permille / 1000 / 4;
        let share = Budget { permille: Knob::PromoteScanShare.spec().default, ..budget };
        let period = Nanos(Knob::PromotePeriod.spec().default * 1_000_000);
        let pace = Budget { period, ..budget };
        for (knob, by_default) in [(Knob::PromoteScanShare, share), (Knob::PromotePeriod, pace)] {
            let (mark, default_mark) = (asking(budget), asking(by_default));
            let is_bounded = mark != default_mark && spent.0 >= mark.min(default_mark);
            let used = KnobUse::of(&is_bounded, &false);
            // Of the period it is said how long the pause was.
            let used = match knob {
                Knob::PromoteScanShare => used.with(Margin { seen: spent.0, mark, default_mark }),
                _ => used,
            };
            if self.stage.mm.knobs().is_set(knob) {
                self.machine().knob_used(knob, used);
            }
        }
    }

    /// Moves some of what is wanted, pages of 4 KiB at most `pages`; says whether there was any.
    pub(crate) fn move_some(&self, mover: &mut Mover, pages: u32) -> bool {
        if self.stage.is_over() {
            return false;
        }
        let batch: Vec<WantedPage> = self.wanted.borrow_mut().take((pages / self.grain).max(1) as usize);
        let start = self.machine().now();
        let Pass { moved, failed, .. } = mover.work(self, &batch);
        self.spent("migrate", Nanos(self.machine().now().0 - start.0));
        self.stage.tally.note("pgpromote_success", moved);
        self.stage.tally.note("freehold_promote_failed", failed * u64::from(self.grain));
        !batch.is_empty()
    }

    /// Reclaim looks at accessed marks and at nothing else; and it moves pages by itself. `counts` has what each program's segments had
    /// been accessed until the last time.
    pub(crate) fn tell_reclaim(&self, counts: &mut BTreeMap<SpaceId, Vec<u64>>) {
        let is_on = |setting: u64| setting == 1;
        self.stage.mm.knobs().decide(self.machine(), Knob::DemotionEnabled, is_on);
        for program in self.programs() {
            let before = counts.entry(program.id()).or_default();
            let now: Vec<u64> = program.segments.iter().map(|segment| segment.accesses.get()).collect();
            before.resize(now.len(), 0);
            let since: Vec<u64> = now.iter().zip(&*before).map(|(now, before)| now - before).collect();
            *before = now;
            self.mark_and_follow(&program, &since);
        }
    }

    /// Marks pages of `program` as accessed, by chance, whose segments had so many accesses a page, and notes which have moved.
    fn mark_and_follow(&self, program: &Program, accesses: &[u64]) {
        for (page, vpn) in program.all_pages() {
            let expected = accesses[program.segment_number(page) as usize];
            if chance::happened(expected, &mut self.random.borrow_mut()) {
                program.space.access(vpn, Touch::Read);
            }
            let node = self.stage.mm.spaces().node_at(&program.space, vpn);
            if let Some(node) = node.filter(|node| node.0 != program.pages[page].node.get()) {
                program.moved(page, node);
            }
        }
    }
}
