//! The threads of promotion: who scans, who moves, and the tick by which reclaim learns what is in use.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::policy::PromotionRule;
use mm::tier::{Budget, Feedback, Flush, Kmmscand, Mover, Revision, Seeker, Threads};
use mm::{Knob, Machine, Nanos};
use sim::{Sim, TaskSpec};

use crate::promotion::World;

/// From one look of the migrating thread at an empty list to the next.
const MOVER_PAUSE: Nanos = Nanos(20_000_000);
/// Threads that move pages for freehold: a page's move keeps one CPU busy, and pages do not depend on each other.
const MOVERS: u32 = 2;
/// Pages of a batch.
const BATCH: u32 = 512;
/// How often reclaim is told which pages of fast nodes are in use, and demotion's moves are counted.
const RECLAIM_TICK: Nanos = Nanos(500_000_000);

/// Starts what the policy says looks for hot pages.
pub(crate) fn start(sim: &Sim, world: &Rc<World>) {
    let rule = world.stage.mm.policy().rules().tier.promotion;
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
        background(sim, "reclaim-tick", move || {
            let mut counts = BTreeMap::new();
            while !owned.stage.is_over() {
                owned.machine().sleep(RECLAIM_TICK);
                owned.tell_reclaim(&mut counts);
            }
        });
    }
}

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
            for space in scanning.take_newborn() {
                scanner.enter(space, &*scanning);
            }
            let start = scanning.machine().now();
            let mut want = |page| scanning.want(page);
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
            for space in seeking.take_newborn() {
                seeker.enter(space);
            }
            let start = seeking.machine().now();
            let waiting = seeking.waiting();
            let mut want = |page| seeking.want(page);
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
