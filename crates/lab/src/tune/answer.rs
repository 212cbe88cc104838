//! From a question to a setting and how sure that is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::aim::Limit;
use super::bench::{Bench, Evaluator, Trial};
use super::draw::every;
use super::ground::{Ground, Keep, Simulator};
use super::journal::Journal;
use super::judge::{Judge, dominates};
use super::maker::{Borrowed, Maker};
use super::prune::prune;
use super::question::{ELSEWHERE_SEEDS, Method, Prepared};
use super::race::{Course, race};
use super::robust::Trying;
use super::space::{Setting, Space};
use super::{curve, screen};
use crate::measurements::{FailedSetting, Robustness, Run, Tune, TuneCandidate};
use crate::subject::{AskError, Goal, unknown_figure};

/// So many of the best are listed.
const RANKED: usize = 3;

/// What there is to say.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The setting.
    pub tune: Tune,
    /// Runs of the current setting, then those of the winner, with seeds that the search did not see; of the current one alone
    /// where it stays and nothing else came into question.
    pub runs: Vec<Run>,
}

/// Where an answer is being made.
struct Making<'a, 'm> {
    prepared: &'a Prepared,
    space: Space,
    judge: Judge,
    maker: Maker<'m>,
    seeds: Vec<u64>,
    tune: Tune,
}

impl Prepared {
    /// Searches, with as many simulations at a time as the present rayon pool has threads. `done` hears of each, with what part of
    /// one of full length it is, in thousandths.
    ///
    /// # Errors
    /// The current setting cannot be simulated, a figure that there is not, a journal that cannot be written.
    pub fn answer(&self, journal: &Journal, done: &(dyn Fn(&str, u64) + Sync)) -> Result<Answer, AskError> {
        self.made_by(Maker::Simulation { journal, done }, &self.course())
    }

    /// Searches by trials that somebody outside makes.
    pub(super) fn answer_by(&self, evaluator: &mut dyn Evaluator) -> Result<Answer, AskError> {
        let course = Course { permille: vec![1000], ..self.course() };
        self.made_by(Maker::Outside(RefCell::new(evaluator)), &course)
    }

    fn made_by(&self, maker: Maker<'_>, course: &Course) -> Result<Answer, AskError> {
        let (space, judge) = (self.space.clone(), self.judge());
        let making = Making {
            prepared: self,
            space,
            judge,
            maker,
            seeds: course.seeds.clone(),
            tune: Tune::default(),
        };
        making.answer(course)
    }
}

impl Making<'_, '_> {
    /// Shortened forms of the workload, and the whole; of one that somebody outside measures there is the whole alone.
    fn grounds(&self) -> &[Ground] {
        let all = &self.prepared.question.grounds[..];
        match self.maker {
            Maker::Simulation { .. } => all,
            Maker::Outside(_) => &all[all.len() - 1..],
        }
    }

    fn whole(&self) -> usize {
        self.grounds().len() - 1
    }

    fn evaluator<'s>(
        &'s self,
        grounds: &'s [Ground],
        keep: fn(&Trial) -> Keep,
        kept: &'s Mutex<BTreeMap<Trial, Run>>,
    ) -> Box<dyn Evaluator + 's> {
        let Self { prepared, space, .. } = self;
        match &self.maker {
            Maker::Simulation { journal, done } => {
                Box::new(Simulator { grounds, space, goals: &prepared.goals, journal, done, keep, kept })
            }
            Maker::Outside(evaluator) => Box::new(Borrowed(evaluator)),
        }
    }

    fn answer(mut self, course: &Course) -> Result<Answer, AskError> {
        let run = self.look()?;
        self.describe(run.as_ref())?;
        if self.prepared.question.knobs.is_empty() {
            self.screen()?;
        }
        let candidate = self.search(course)?;
        self.tune.space = self.space.described();
        match candidate {
            Some(candidate) => self.verify(&candidate),
            None => Ok(Answer { tune: self.tune.clone(), runs: run.into_iter().collect() }),
        }
    }

    /// The current setting, once: whether it can be, and which figures there are. Nothing of what somebody outside measures.
    fn look(&self) -> Result<Option<Run>, AskError> {
        if matches!(self.maker, Maker::Outside(_)) {
            return Ok(None);
        }
        let whole = self.whole();
        let kept = Mutex::default();
        let mut evaluator = self.evaluator(self.grounds(), |_| Keep::Run, &kept);
        let trial = Trial { ground: whole, setting: self.space.current(), seed: self.seeds[0] };
        let mut bench = Bench::new(&mut *evaluator, self.costs());
        bench.make(whole, std::slice::from_ref(&trial.setting), &self.seeds)?;
        if let Err(why) = bench.of(whole, &trial.setting, trial.seed) {
            return Err(AskError::new(format!("the current setting cannot be simulated: {why}")));
        }
        let run = taken(&kept).remove(&trial);
        let run = run.ok_or_else(|| AskError::new("the current setting left nothing to look at"))?;
        for goal in &self.prepared.goals {
            unknown_figure(goal, std::iter::once(&run)).map_or(Ok(()), Err)?;
        }
        for &seed in &self.seeds {
            let values = bench.of(whole, &trial.setting, seed).as_ref().map_err(AskError::new)?;
            if let Some(at) = values.iter().position(Option::is_none) {
                let name = self.prepared.goals[at].name();
                return Err(AskError::new(format!(
                    "{name} has no value with seed {seed}: nothing of the kind happened; choose another --goal or --keep"
                )));
            }
        }
        Ok(Some(run))
    }

    fn costs(&self) -> Vec<u64> {
        self.grounds().iter().map(|ground| ground.permille).collect()
    }

    /// Says what is asked, in the units that the figures have.
    fn describe(&mut self, run: Option<&Run>) -> Result<(), AskError> {
        if let Some(run) = run {
            let limits = std::mem::take(&mut self.judge.aims.limits).into_iter();
            let resolved = limits.map(|limit| {
                let unit = limit.goal.unit(run).unwrap_or_default();
                limit.in_unit(unit)
            });
            self.judge.aims.limits = resolved.collect::<Result<Vec<_>, _>>()?;
        }
        let aims = &self.judge.aims;
        if let Some(limit) = aims.limits.iter().find(|limit| !limit.is_known()) {
            return Err(limit.of_no_unit());
        }
        let unit = |goal: &Goal| run.and_then(|run| goal.unit(run)).unwrap_or_default();
        let [workload, machine] = self.grounds()[self.whole()].subject.names();
        // The one that is always there is not listed.
        let asked = &aims.limits[..aims.limits.len() - 1];
        self.tune = Tune {
            workload,
            machine,
            side: self.space.base.name(),
            goals: aims.aims.iter().map(|aim| aim.described(unit(&aim.goal))).collect(),
            limits: asked.iter().map(Limit::described).collect(),
            ..Tune::default()
        };
        Ok(())
    }

    fn screen(&mut self) -> Result<(), AskError> {
        let kept = Mutex::default();
        let mut evaluator = self.evaluator(self.grounds(), |_| Keep::Figures, &kept);
        let mut bench = Bench::new(&mut *evaluator, self.costs());
        let screened = screen::screen(&self.space, &self.space.current(), &mut bench, self.seeds[0])?;
        let (made, spent) = (bench.count() as u64, bench.spent());
        drop(evaluator);
        (self.tune.search.simulations, self.tune.search.cost) = (made, spent as f64 / 1000.0);
        self.judge = self.judge.for_current(screened.current());
        self.space = screened;
        Ok(())
    }

    /// The best setting of the search, if it is better than the current one beyond the noise.
    fn search(&mut self, course: &Course) -> Result<Option<Setting>, AskError> {
        if self.space.axes.is_empty() {
            "no knob changes anything that is looked at".clone_into(&mut self.tune.stays);
            return Ok(None);
        }
        let whole = self.whole();
        let kept = Mutex::default();
        let mut found = Tune { search: self.tune.search.clone(), ..self.tune.clone() };
        let candidate = {
            let mut evaluator = self.evaluator(self.grounds(), |_| Keep::Figures, &kept);
            let mut bench = Bench::new(&mut *evaluator, self.costs());
            let spent = (found.search.cost * 1000.0) as u64;
            let budget = 1000 * self.prepared.budget_for(&self.space);
            let left = Course { budget: budget.saturating_sub(spent), ..course.clone() };
            let finalists = self.finalists(&mut bench, &left, &mut found)?;
            let search = &mut found.search;
            search.simulations += bench.count() as u64;
            search.cost += bench.spent() as f64 / 1000.0;
            (search.tried, search.seeds) = (bench.settings() as u64, self.seeds.len() as u64);
            search.budget = budget as f64 / 1000.0;
            found.current = self.candidate(&bench, whole, &self.judge.current, &self.seeds);
            found.search.means.clone_from(&found.current.means);
            let first = finalists.iter().take(RANKED);
            found.ranked = first.map(|of| self.candidate(&bench, whole, of, &self.seeds)).collect();
            let candidate = self.chosen(&bench, &finalists, &mut found);
            let searched = bench.count();
            let pruned =
                candidate.map(|best| prune(&self.space, &self.judge, &mut bench, whole, &best, &self.seeds));
            let pruned = pruned.transpose()?;
            let failed = bench.failed().into_iter();
            found.failed =
                failed.map(|(of, why)| FailedSetting { setting: self.space.name(&of), why }).collect();
            found.search.simulations_after = (bench.count() - searched) as u64;
            pruned.map(|pruned| {
                found.contributions = pruned.contributions;
                pruned.setting
            })
        };
        self.tune = found;
        Ok(candidate)
    }

    fn finalists(
        &self,
        bench: &mut Bench<'_>,
        course: &Course,
        found: &mut Tune,
    ) -> Result<Vec<Setting>, AskError> {
        let whole = self.whole();
        if let [axis] = &self.space.axes[..] {
            if axis.is_numeric() && axis.values.len() > 2 {
                found.curve = Some(curve::measure(&self.space, &self.judge, bench, whole, &self.seeds)?);
            }
            let all: Vec<Setting> = (0..axis.values.len()).map(|at| vec![at as u8]).collect();
            bench.make(whole, &all, &self.seeds)?;
            return Ok(self.judge.ordered(bench, whole, &all, &self.seeds));
        }
        if self.prepared.question.method == Method::Every {
            let all = every(&self.space);
            bench.make(whole, &all, &self.seeds)?;
            return Ok(self.judge.ordered(bench, whole, &all, &self.seeds));
        }
        let raced = race(&self.space, &self.judge, bench, course)?;
        found.search.levels = raced.levels;
        Ok(raced.finalists)
    }

    /// The first of the finalists that is better than the current setting beyond the noise, and the front.
    fn chosen(&self, bench: &Bench<'_>, finalists: &[Setting], found: &mut Tune) -> Option<Setting> {
        let whole = self.whole();
        let standings: Vec<_> =
            finalists.iter().map(|of| self.judge.standing(bench, whole, of, &self.seeds)).collect();
        let is_on_front = |at: &usize| {
            let own = &standings[*at];
            !own.failed
                && own.breach <= 0.0
                && !standings.iter().any(|other| other.breach <= 0.0 && dominates(other, own))
        };
        if self.judge.aims.aims.len() > 1 {
            let front = (0..finalists.len()).filter(is_on_front);
            found.front = front.map(|at| self.candidate(bench, whole, &finalists[at], &self.seeds)).collect();
        }
        let wins =
            |of: &&Setting| **of != self.judge.current && self.judge.wins(bench, whole, of, &self.seeds);
        let winner = finalists.iter().find(wins).cloned();
        if winner.is_none() {
            let seeds = self.seeds.len();
            found.stays = format!(
                "no setting that was tried is better by a thousandth and beyond the noise of {seeds} seeds"
            );
        }
        winner
    }

    fn candidate(&self, bench: &Bench<'_>, ground: usize, setting: &Setting, seeds: &[u64]) -> TuneCandidate {
        let aims = 0..self.judge.aims.aims.len();
        let mean = |aim: usize| Judge::mean(bench, ground, setting, aim, seeds).map_or(0.0, |mean| mean.mean);
        let change = |aim: usize| {
            Judge::effect(bench, ground, [setting, &self.judge.current], aim, seeds).unwrap_or_default()
        };
        let mut held = self.judge.held(bench, ground, setting, seeds).unwrap_or_default();
        held.truncate(self.judge.aims.limits.len() - 1);
        TuneCandidate {
            knobs: self.space.texts(setting),
            seeds: seeds.len() as u64,
            means: aims.clone().map(mean).collect(),
            changes: aims.map(change).collect(),
            held,
        }
    }

    /// Tries the candidate with seeds that the search did not see; if it still wins, on other machines and workloads.
    fn verify(&self, candidate: &Setting) -> Result<Answer, AskError> {
        let Prepared { question, .. } = self.prepared;
        let whole = &self.grounds()[self.whole()];
        let is_simulated = matches!(self.maker, Maker::Simulation { .. });
        let variants = if is_simulated { whole.variants() } else { vec![] };
        let also = if is_simulated { &question.also[..] } else { &[] };
        let names: Vec<(usize, String)> =
            variants.iter().enumerate().map(|(at, (name, _))| (1 + at, name.clone())).collect();
        let mut grounds = vec![whole.clone()];
        grounds.extend(variants.into_iter().map(|(_, ground)| ground));
        let first_other = grounds.len();
        grounds.extend(also.iter().map(|(_, ground)| ground.clone()));
        let kept = Mutex::default();
        let keep = |trial: &Trial| if trial.ground == 0 { Keep::Run } else { Keep::Figures };
        let mut evaluator = self.evaluator(&grounds, keep, &kept);
        let mut bench = Bench::new(&mut *evaluator, vec![1000; grounds.len()]);
        let unseen = self.prepared.unseen();
        let mut tune = self.tune.clone();
        let mut trying = Trying { judge: &self.judge, bench: &mut bench, winner: candidate };
        trying.make(0, &unseen)?;
        let stands = self.judge.wins(trying.bench, 0, candidate, &unseen);
        if stands {
            let seeds = trying.seeds(0, &unseen);
            let variants = trying.grounds(&names, unseen[0])?;
            let few = &unseen[..ELSEWHERE_SEEDS.min(unseen.len())];
            let others =
                also.iter().enumerate().map(|(at, (name, _))| trying.elsewhere(first_other + at, name, few));
            let others = others.collect::<Result<Vec<_>, _>>()?;
            tune.robustness = Some(Robustness { seeds, variants, others });
        }
        tune.search.simulations_after += bench.count() as u64;
        tune.current = self.candidate(&bench, 0, &self.judge.current, &unseen);
        let tried = self.candidate(&bench, 0, candidate, &unseen);
        if stands {
            tune.winner = Some(tried);
        } else {
            let name = self.space.name(candidate);
            tune.stays = format!(
                "{name} was better in the search, and is not beyond the noise of {} unseen seeds",
                unseen.len()
            );
        }
        let mut kept = taken(&kept);
        let runs = [&self.judge.current, candidate].into_iter().flat_map(|setting| {
            unseen.iter().map(|&seed| Trial { ground: 0, setting: setting.clone(), seed }).collect::<Vec<_>>()
        });
        let runs: Vec<Run> = runs.filter_map(|trial| kept.remove(&trial)).collect();
        Ok(Answer { tune, runs })
    }
}

fn taken(kept: &Mutex<BTreeMap<Trial, Run>>) -> BTreeMap<Trial, Run> {
    std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner))
}
