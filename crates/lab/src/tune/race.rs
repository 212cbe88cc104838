//! The search: many settings on short forms of the workload with few seeds, the better ones on longer forms with more.
//!
//! Each generation is a successive halving (Jamieson and Talwalkar 2016) over the shortened forms, and before each halving a
//! setting goes that is told to be worse than the best of the rung by paired differences over the same seeds, as irace
//! (López-Ibáñez and others 2016) eliminates. The next generation is drawn around the best so far. A model of the figure was
//! considered (Bayesian optimization): knobs here are few, half of them words, effects come in steps, and what is drawn would
//! depend on floating-point libraries; a race needs ranks alone.

use std::collections::BTreeSet;

use super::bench::Bench;
use super::draw::{Draw, every};
use super::judge::{Judge, Standing};
use super::space::{Setting, Space};
use crate::measurements::Level;
use crate::subject::AskError;

/// Settings that are tried in full length and in every shortened form, besides the current one, to see whether a form tells them
/// apart as the whole does.
const PROBES: usize = 7;
/// A shortened form is raced on if it agrees this far with the whole.
const AGREES: f64 = 0.5;
/// … and the next longer form, or the whole, costs at least so many times as much, in tenths.
const APART: u64 = 15;
/// How many generations there are, at most.
const GENERATIONS: u64 = 4;
/// So many settings come to the end of the race.
const FINALISTS: usize = 4;
/// Of a rung on a shortened form one in so many goes on.
const SHORT_CUT: usize = 3;
/// Of a rung in full length.
const WHOLE_CUT: usize = 2;
/// Seeds at the end of a generation.
const MEASURED: usize = 3;
/// The next generation is drawn around so many.
const ELITES: usize = 3;

/// How to search.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// What part of the whole each ground is, in thousandths, shortened forms ascending; the last is the whole, 1000.
    pub(super) permille: Vec<u64>,
    /// Seeds of finalists; all earlier rungs take the first of them.
    pub(super) seeds: Vec<u64>,
    /// What the search may cost, in thousandths of a simulation of full length. The last rung may go beyond it by a few.
    pub(super) budget: u64,
    /// Where what is drawn begins.
    pub(super) seed: u64,
}

/// What the race came to.
#[derive(Clone, Debug)]
pub(super) struct Raced {
    /// Settings that ran in full length with every seed, the best first; the current one may be among them.
    pub(super) finalists: Vec<Setting>,
    /// How far shortened forms could be believed.
    pub(super) levels: Vec<Level>,
}

/// A rung: where, and with how many seeds.
#[derive(Clone, Copy, Debug)]
struct Rung {
    ground: usize,
    seeds: usize,
}

pub(super) struct Race<'a, 'b> {
    space: &'a Space,
    judge: &'a Judge,
    bench: &'a mut Bench<'b>,
    course: &'a Course,
    draw: Draw,
    /// Settings that a generation began with.
    seen: BTreeSet<Setting>,
    /// Settings that came to full length.
    measured: BTreeSet<Setting>,
}

/// Races the settings of `space`.
pub(super) fn race(
    space: &Space,
    judge: &Judge,
    bench: &mut Bench<'_>,
    course: &Course,
) -> Result<Raced, AskError> {
    let (seen, measured) = (BTreeSet::new(), BTreeSet::new());
    let mut race = Race { space, judge, bench, course, draw: Draw::of(course.seed), seen, measured };
    let levels = race.probe()?;
    let rungs = race.rungs(&levels);
    for generation in 0..GENERATIONS {
        let pool = race.pool(generation, &rungs);
        if pool.is_empty() {
            break;
        }
        race.generation(pool, &rungs)?;
    }
    let finalists = race.finals()?;
    Ok(Raced { finalists, levels })
}

impl Race<'_, '_> {
    fn whole(&self) -> usize {
        self.course.permille.len() - 1
    }

    fn seeds(&self, count: usize) -> &[u64] {
        &self.course.seeds[..count.min(self.course.seeds.len())]
    }

    /// Makes trials, of the current setting, too.
    fn make(&mut self, rung: Rung, settings: &[Setting]) -> Result<(), AskError> {
        let mut all = vec![self.judge.current.clone()];
        all.extend(settings.iter().cloned());
        let count = rung.seeds.min(self.course.seeds.len());
        self.bench.make(rung.ground, &all, &self.course.seeds[..count])?;
        if rung.ground == self.whole() {
            self.measured.extend(all);
        }
        Ok(())
    }

    /// Runs a few settings in every form, and says how far the shorter ones agree with the whole.
    fn probe(&mut self) -> Result<Vec<Level>, AskError> {
        let whole = self.whole();
        // With little to spend little is spent on that.
        let count = PROBES.min((self.course.budget / 8000) as usize).max(2);
        let probes: Vec<Setting> = if whole == 0 { vec![] } else { self.spread(count) };
        for ground in (0..=whole).rev() {
            self.make(Rung { ground, seeds: 1 }, &probes)?;
        }
        if let Err(why) = self.bench.of(whole, &self.judge.current, self.course.seeds[0]) {
            return Err(AskError::new(format!("the current setting cannot be simulated: {why}")));
        }
        self.bench.weigh(&self.judge.current, self.course.seeds[0]);
        let mut all = vec![self.judge.current.clone()];
        all.extend(probes);
        let of = |ground: usize| -> Vec<Standing> {
            all.iter()
                .map(|setting| self.judge.standing(self.bench, ground, setting, self.seeds(1)))
                .collect()
        };
        let long = of(whole);
        let mut shorter = 0;
        let level = |ground: usize| {
            let agreement = agreement(&of(ground), &long);
            let cost_permille = self.bench.cost(ground);
            let is_apart = |short: u64, long: u64| 10 * long >= APART * short;
            let pays = is_apart(shorter, cost_permille) && is_apart(cost_permille, self.bench.cost(whole));
            let used = agreement >= AGREES && self.is_like_whole(ground) && pays;
            if used {
                shorter = cost_permille;
            }
            Level { permille: self.course.permille[ground], cost_permille, agreement, used }
        };
        Ok((0..whole).map(level).collect())
    }

    /// Whether everything that is looked at happens in a shortened form, with the current setting, as it does in the whole.
    fn is_like_whole(&self, ground: usize) -> bool {
        let happens = |ground: usize| {
            let tried = self.bench.of(ground, &self.judge.current, self.course.seeds[0]).as_ref().ok();
            tried.map(|values| values.iter().map(Option::is_some).collect::<Vec<_>>())
        };
        happens(ground) == happens(self.whole())
    }

    /// Where a generation is raced: on the forms that can be believed, each with a seed more than the one before, then on the whole.
    fn rungs(&self, levels: &[Level]) -> Vec<Rung> {
        let used = levels.iter().enumerate().filter(|(_, level)| level.used).map(|(ground, _)| ground);
        let mut rungs: Vec<Rung> =
            used.enumerate().map(|(at, ground)| Rung { ground, seeds: 1 + at }).collect();
        let ground = self.whole();
        rungs.push(Rung { ground, seeds: 1 });
        if rungs.len() == 1 {
            rungs.push(Rung { ground, seeds: 2 });
        }
        rungs.push(Rung { ground, seeds: MEASURED });
        rungs
    }

    /// What a generation costs for each setting that it begins with, in thousandths of a simulation of full length.
    fn price(&self, rungs: &[Rung]) -> u64 {
        let mut price = 0;
        let mut left = 1000;
        let mut before = Rung { ground: usize::MAX, seeds: 0 };
        for &rung in rungs {
            let known = if rung.ground == before.ground { before.seeds } else { 0 };
            price += left * self.bench.cost(rung.ground) * (rung.seeds - known) as u64 / 1000;
            left /= self.cut(rung) as u64;
            before = rung;
        }
        price
    }

    fn cut(&self, rung: Rung) -> usize {
        if rung.ground == self.whole() { WHOLE_CUT } else { SHORT_CUT }
    }

    /// The settings with which a generation begins, none of which any did before.
    fn pool(&mut self, generation: u64, rungs: &[Rung]) -> Vec<Setting> {
        // The finalists' seeds are kept back, and so is the current setting's part of it.
        let finals = (self.finalists() + 1) * self.course.seeds.len().saturating_sub(MEASURED) * 1000;
        let left = self.course.budget.saturating_sub(self.bench.spent() + finals as u64);
        let count = left / (GENERATIONS - generation) / self.price(rungs).max(1);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let all = usize::try_from(self.space.size()).unwrap_or(usize::MAX);
        let mut pool = BTreeSet::new();
        if all.saturating_sub(self.seen.len()) <= count {
            pool.extend(every(self.space).into_iter().filter(|setting| !self.seen.contains(setting)));
        } else if generation == 0 {
            pool.extend(self.draw.singles(self.space, count / 2));
            pool.extend(self.spread(count.saturating_sub(pool.len())));
        } else {
            let elites: Vec<Setting> = self.ranked().into_iter().take(ELITES).collect();
            let near = self.draw.near(self.space, &elites, &self.seen, count * 3 / 4);
            pool.extend(near);
            pool.extend(self.spread(count.saturating_sub(pool.len())));
        }
        pool.retain(|setting| !self.seen.contains(setting) && *setting != self.judge.current);
        self.seen.extend(pool.iter().cloned());
        pool.into_iter().collect()
    }

    /// Settings spread over the whole space, each knob's values alike often.
    fn spread(&mut self, count: usize) -> Vec<Setting> {
        self.draw.spread(self.space, count)
    }

    fn generation(&mut self, mut pool: Vec<Setting>, rungs: &[Rung]) -> Result<(), AskError> {
        for (at, &rung) in rungs.iter().enumerate() {
            self.make(rung, &pool)?;
            if at + 1 < rungs.len() {
                pool = self.cut_down(&pool, rung);
            }
        }
        Ok(())
    }

    /// Those of a rung that go on.
    fn cut_down(&self, pool: &[Setting], rung: Rung) -> Vec<Setting> {
        let seeds = self.seeds(rung.seeds);
        let ordered = self.judge.ordered(self.bench, rung.ground, pool, seeds);
        let keep = ordered.len().div_ceil(self.cut(rung)).max(1);
        let Some(leader) = ordered.first().cloned() else { return vec![] };
        let goes_on = |setting: &Setting| {
            let tried = [setting, &leader];
            self.bench.of(rung.ground, setting, seeds[0]).is_ok()
                && !self.judge.is_beaten(self.bench, rung.ground, tried, seeds)
        };
        ordered.into_iter().take(keep).filter(goes_on).collect()
    }

    /// Those that came to full length, the best first, by the seeds that all of them had.
    fn ranked(&self) -> Vec<Setting> {
        self.judge.ordered(
            self.bench,
            self.whole(),
            &self.measured.iter().cloned().collect::<Vec<_>>(),
            self.seeds(1),
        )
    }

    /// How many come to the end: fewer where there is little to spend.
    fn finalists(&self) -> usize {
        let seeds = self.course.seeds.len() as u64;
        FINALISTS.min((self.course.budget / (4000 * seeds)) as usize).max(2)
    }

    /// The best of all generations with every seed, fewer and fewer of them.
    fn finals(&mut self) -> Result<Vec<Setting>, AskError> {
        let ground = self.whole();
        let many = self.ranked().into_iter().take(2 * self.finalists()).collect::<Vec<_>>();
        self.make(Rung { ground, seeds: MEASURED }, &many)?;
        let mut left: Vec<Setting> = self.judge.ordered(self.bench, ground, &many, self.seeds(MEASURED));
        left.truncate(self.finalists());
        let mut seeds = MEASURED;
        while seeds < self.course.seeds.len() {
            seeds += 1;
            self.make(Rung { ground, seeds }, &left)?;
            left = self.judge.ordered(self.bench, ground, &left, self.seeds(seeds));
            let leader = left[0].clone();
            let seeds = self.seeds(seeds);
            left.retain(|setting| !self.judge.is_beaten(self.bench, ground, [setting, &leader], seeds));
        }
        Ok(left)
    }
}

/// Of the differences between settings in full length, what part has the same sign in the short form, less what part has the other:
/// large differences count for more. 1 where there is no difference at all.
fn agreement(short: &[Standing], long: &[Standing]) -> f64 {
    let (mut alike, mut all) = (0.0, 0.0);
    for one in 0..long.len() {
        for other in 0..one {
            let is_known = |of: &[Standing]| !of[one].failed && !of[other].failed;
            for aim in 0..long[one].losses.len() {
                let difference = |of: &[Standing]| of[one].losses[aim] - of[other].losses[aim];
                let (in_short, in_long) = (difference(short), difference(long));
                if is_known(long) && in_long != 0.0 {
                    all += in_long.abs();
                    let is_told = is_known(short) && in_short != 0.0;
                    let sign = if is_told { (in_short * in_long).signum() } else { 0.0 };
                    alike += sign * in_long.abs();
                }
            }
        }
    }
    if all == 0.0 { 1.0 } else { alike / all }
}
