//! The threads of promotion: who scans, who moves, and the tick by which reclaim learns what is in use.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::policy::PromotionRule;
use mm::tier::{Budget, Feedback, Flush, Kmmscand, Mover, Pass, Revision, Seeker, Threads, WantedPage};
use mm::vm::{SpaceId, Touch};
use mm::{Knob, KnobUse, Machine, Margin, Nanos};
use sim::{Sim, TaskSpec};

use super::chance;
use super::program::Program;
use super::world::World;

/// From one look of the migrating thread at an empty list to the next.
const MOVER_PAUSE: Nanos = Nanos(20_000_000);
/// Threads that move pages for freehold: a page's move keeps one CPU busy, and pages do not depend on each other.
const MOVERS: u32 = 2;
/// Pages of a batch.
const BATCH: u32 = 512;
/// How often reclaim is told which pages of fast nodes are in use, and demotion's moves are counted.
const RECLAIM_TICK: Nanos = Nanos(500_000_000);

/// Starts what the policy says looks for hot pages.
pub(crate) fn spawn(sim: &Sim, world: &Rc<World>) {
    let rule = world.stage.mm.policy().rules().promotion;
    if let Some(revision) = rule.revision() {
        let knobs = world.stage.mm.knobs();
        let in_force = configured(revision, |knob| knobs.get(knob));
        let set = KMMSCAND_KNOBS.into_iter().filter(|knob| knobs.is_set(*knob));
        let by_default = |of: Knob| {
            configured(revision, |knob| if knob == of { of.spec().default } else { knobs.get(knob) })
        };
        let watched = set.map(|knob| (knob, by_default(knob))).collect();
        spawn_kmmscand(sim, world, in_force, watched);
    }
    if rule == PromotionRule::Regions {
        spawn_seeker(sim, world);
    }
    if world.stage.mm.knobs().get(Knob::DemotionEnabled) == 1 {
        let owned = Rc::clone(world);
        background(sim, "reclaim-tick", move || owned.tell_reclaim());
    }
}

/// The knobs of kmmscand.
const KMMSCAND_KNOBS: [Knob; 4] =
    [Knob::KmmscandPeriodMin, Knob::KmmscandPeriodMax, Knob::KmmscandSizeMax, Knob::BalancingScanDelay];

/// `revision` with the knobs' values.
fn configured(revision: Revision, knob: impl Fn(Knob) -> u64) -> Revision {
    let ns = |of: Knob| knob(of) * 1_000_000;
    let periods = (ns(Knob::KmmscandPeriodMin), ns(Knob::KmmscandPeriodMax));
    let revision = revision.bounded(periods.0, periods.1, knob(Knob::KmmscandSizeMax) << 20);
    // From V1 on its delay is NUMA balancing's; V0 has none.
    let delay = if revision.delay.0 > 0 { Nanos(ns(Knob::BalancingScanDelay)) } else { revision.delay };
    Revision { delay, ..revision }
}

fn background(sim: &Sim, name: &str, body: impl FnOnce() + 'static) {
    sim.spawn_background(TaskSpec::new(name), body);
}

fn spawn_kmmscand(sim: &Sim, world: &Rc<World>, revision: Revision, watched: Vec<(Knob, Revision)>) {
    let feedback = Rc::new(Cell::new(Feedback::default()));
    let (scanning, told) = (Rc::clone(world), Rc::clone(&feedback));
    background(sim, "kmmscand", move || {
        let (mut scanner, mut mover) = (Kmmscand::watching(revision, watched), Mover::new(Flush::EachPage));
        while !scanning.stage.is_over() {
            for space in scanning.newborn.take() {
                scanner.enter(space, &*scanning);
            }
            let start = scanning.machine().now();
            let mut want = |page| scanning.wanted.borrow_mut().push(page);
            let pause = scanner.cycle(&*scanning, || told.get(), &mut want);
            scanning.spent("scan", Nanos(scanning.machine().now().0 - start.0));
            if revision.threads == Threads::One {
                while scanning.move_some(&mut mover, 1) {}
                told.set(mover.feedback());
            }
            scanning.machine().sleep(pause);
        }
    });
    if revision.threads == Threads::Two {
        let moving = Rc::clone(world);
        background(sim, "kmigrated", move || {
            let mut mover = Mover::new(Flush::EachPage);
            while !moving.stage.is_over() {
                while moving.move_some(&mut mover, BATCH) {
                    feedback.set(mover.feedback());
                }
                moving.machine().sleep(MOVER_PAUSE);
            }
        });
    }
}

fn spawn_seeker(sim: &Sim, world: &Rc<World>) {
    let knob = |knob: Knob| world.stage.mm.knobs().get(knob);
    let period = Nanos(knob(Knob::PromotePeriod) * 1_000_000);
    let budget = Budget { period, permille: knob(Knob::PromoteScanShare) };
    let seeking = Rc::clone(world);
    background(sim, "kpromoted", move || {
        let mut seeker = Seeker::new(budget, seeking.machine().random());
        for number in 0_u64.. {
            if seeking.stage.is_over() {
                break;
            }
            if number > 0 {
                seeking.watch_pause();
            }
            for space in seeking.newborn.take() {
                seeker.enter(space);
            }
            let start = seeking.machine().now();
            let waiting = seeking.wanted.borrow().len() * seeking.grain as usize;
            let mut want = |page| seeking.wanted.borrow_mut().push(page);
            let pause = seeker.round(&*seeking, waiting, &mut want);
            let spent = Nanos(seeking.machine().now().0 - start.0);
            seeking.spent("scan", spent);
            seeking.watch_round(spent, budget);
            if number == 0 {
                seeking.stage.first_round.set(Some(seeking.machine().now()));
            }
            seeking.machine().sleep(pause);
        }
    });
    for number in 0..MOVERS {
        let moving = Rc::clone(world);
        background(sim, &format!("kmigrated/{number}"), move || {
            let mut mover = Mover::new(Flush::EachBatch);
            while !moving.stage.is_over() {
                while moving.move_some(&mut mover, BATCH) {}
                moving.machine().sleep(MOVER_PAUSE);
            }
        });
    }
}

impl World {
    /// A pause of freehold's promotion is over: with another period it would have been over at another time. (That it is not
    /// over when a run ends is in [`crate::stage::Stage::note_waits`].)
    fn watch_pause(&self) {
        self.stage.first_round.set(None);
        self.stage.mm.knobs().decide(self.machine(), Knob::PromotePeriod, |ms| ms);
    }

    /// A round of freehold's promotion with this `budget` took `spent`. One that was not bounded by its budget, nor would have
    /// been by a default's, would have looked at the same.
    fn watch_round(&self, spent: Nanos, budget: Budget) {
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
    fn move_some(&self, mover: &mut Mover, pages: u32) -> bool {
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

    /// Reclaim looks at accessed marks and at nothing else; and it moves pages by itself.
    fn tell_reclaim(&self) {
        let mut counts: BTreeMap<SpaceId, Vec<u64>> = BTreeMap::new();
        while !self.stage.is_over() {
            self.machine().sleep(RECLAIM_TICK);
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
    }

    /// Marks pages of `program` as accessed, by chance, whose segments had so many accesses a page, and notes which have moved.
    fn mark_and_follow(&self, program: &Program, accesses: &[u64]) {
        for (page, vpn) in program.all_pages() {
            let expected = accesses[program.segment_number(page) as usize];
            if chance::happened(expected, &mut self.random.borrow_mut()) {
                program.space.access(vpn, Touch::Read);
            }
            let node = self.stage.mm.node_at(&program.space, vpn);
            if let Some(node) = node.filter(|node| node.0 != program.pages[page].node.get()) {
                program.moved(page, node);
            }
        }
    }
}
