//! From a question to its answer.

use super::lever::{Lever, Levers};
use super::screen;
use super::share::{self, Set};
use super::taken::{Midway, Mixture, Taken};
use super::trials::Trials;
use crate::measurements::{Cause, Effect, Interaction, Run, Why, WhyGoal};
use crate::subject::{AskError, Goal, Side, Subject, unknown_figure};

/// Causes that interact with others are looked at in pairs; of more than this many, those whose effect depends most on the others.
const PAIRED: usize = 4;

/// What is asked.
#[derive(Debug)]
pub struct Question {
    /// Of what.
    pub subject: Subject,
    /// The first side.
    pub from: Side,
    /// The second.
    pub to: Side,
    /// The figures to explain; none: the usual one.
    pub goals: Vec<String>,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, from 1; each is one more than the one before.
    pub seeds: u32,
}

/// What there is to say.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which causes make how much.
    pub why: Why,
    /// The runs of the first side, then those of the second.
    pub runs: Vec<Run>,
}

/// Causes: each is one or several levers.
struct Causes<'a> {
    levers: &'a Levers,
    taken: Vec<Taken>,
}

/// Answers `question`, with as many simulations at a time as the present rayon pool has threads. `done` hears of each.
///
/// # Errors
/// A simulation that cannot be, a figure that there is not, or more differences than can be told apart.
pub fn explain(question: &Question, done: &(dyn Fn(&str) + Sync)) -> Result<Answer, AskError> {
    let Question { subject, from, to, seed, seeds, .. } = question;
    let levers = Levers::between(from.clone(), to.clone())
        .ok_or_else(|| AskError::new("the two sides differ in more than 120 things; take nearer ones"))?;
    let goals = goals(question);
    let seeds: Vec<u64> = (0..u64::from((*seeds).max(1))).map(|number| seed.wrapping_add(number)).collect();
    let mut trials = Trials::new(subject, &levers, &goals, seeds.clone(), done);
    trials.all_seeds(&[Taken::NONE, levers.every()])?;
    for goal in &goals {
        let runs = trials.runs(Taken::NONE).chain(trials.runs(levers.every())).collect::<Vec<_>>();
        unknown_figure(goal, runs.into_iter()).map_or(Ok(()), Err)?;
    }
    let causes = Causes { levers: &levers, taken: screen::causes(&mut trials, levers.every())? };
    let masks: Vec<Taken> = share::sets(causes.count()).into_iter().map(|set| causes.mixture(set)).collect();
    trials.all_seeds(&masks)?;
    let answers = (0..goals.len()).map(|goal| causes.answer(&mut trials, &goals, goal));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    let [workload, machine] = subject.names();
    let moved = causes.taken.iter().copied().fold(Taken::NONE, Taken::and);
    let set_aside = levers.every().without(moved).indices().map(|index| levers.get(index).name());
    let why = Why {
        workload,
        machine,
        from: levers.from().name(),
        to: levers.to().name(),
        seeds: seeds.len() as u64,
        simulations: trials.count() as u64,
        differences: levers.len() as u64,
        set_aside: set_aside.collect(),
        method: share::method(causes.count()),
        goals: answers,
    };
    let runs = trials.runs(Taken::NONE).chain(trials.runs(levers.every())).cloned();
    Ok(Answer { why, runs: runs.collect() })
}

fn goals(question: &Question) -> Vec<Goal> {
    let usual = [question.subject.usual_goal()];
    let names = if question.goals.is_empty() { &usual[..] } else { &question.goals };
    names.iter().map(|name| question.subject.goal(name)).collect()
}

impl Causes<'_> {
    fn count(&self) -> usize {
        self.taken.len()
    }

    /// What `set` of them makes of the first side. All of them make the second one: what is not among them changes nothing then.
    fn mixture(&self, set: Set) -> Taken {
        if set == share::full(self.count()) {
            return self.levers.every();
        }
        let moved = (0..self.count()).filter(|&cause| set & (1 << cause) != 0);
        moved.map(|cause| self.taken[cause]).fold(Taken::NONE, Taken::and)
    }

    fn answer(&self, trials: &mut Trials<'_>, goals: &[Goal], goal: usize) -> Result<WhyGoal, AskError> {
        let count = self.count();
        let full = share::full(count);
        let sets = share::sets(count);
        let of_sets = sets.iter().map(|&set| trials.values(self.mixture(set), goal));
        let of_sets = of_sets.collect::<Result<Vec<Vec<f64>>, _>>()?;
        let seeds = of_sets[0].len();
        let v = |set: Set, seed: usize| of_sets[sets.binary_search(&set).expect("it was asked for")][seed];
        let effect = |of: &dyn Fn(usize) -> f64| Effect::of((0..seeds).map(of));
        let shares: Vec<Vec<f64>> = (0..seeds).map(|seed| share::shares(count, |set| v(set, seed))).collect();
        let share_of = |cause: usize| effect(&|seed| shares[seed][cause]);
        let mut causes: Vec<Cause> = vec![];
        let mut apart: Vec<(usize, f64)> = vec![];
        for cause in 0..count {
            let (one, others) = (1 << cause, full & !(1 << cause));
            let alone = |seed: usize| v(one, seed) - v(0, seed);
            let taken_back = |seed: usize| v(full, seed) - v(others, seed);
            let with = |set: Set| effect(&|seed| v(set | one, seed) - v(set, seed) - alone(seed));
            let depends = share::before(count, cause).into_iter().map(with);
            let depends = depends.max_by(|a, b| a.mean.abs().total_cmp(&b.mean.abs())).unwrap_or_default();
            if depends.is_told() {
                apart.push((cause, depends.mean.abs()));
            }
            causes.push(Cause {
                share: share_of(cause),
                alone: effect(&alone),
                taken_back: effect(&taken_back),
                depends,
                ..self.described(cause)
            });
        }
        apart.sort_by(|one, other| other.1.total_cmp(&one.1));
        let apart: Vec<usize> = apart.into_iter().map(|(cause, _)| cause).take(PAIRED).collect();
        let mean = |set: Set| (0..seeds).map(|seed| v(set, seed)).sum::<f64>() / seeds as f64;
        let unit = [self.levers.every(), Taken::NONE]
            .into_iter()
            .find_map(|side| trials.runs(side).find_map(|run| goals[goal].unit(run)));
        let mut answer = WhyGoal {
            metric: goals[goal].name().to_owned(),
            unit: unit.unwrap_or_default().to_owned(),
            before: mean(0),
            after: mean(full),
            change: effect(&|seed| v(full, seed) - v(0, seed)),
            interactions: vec![],
            causes,
        };
        answer.interactions = self.interactions(trials, goal, &apart, &answer)?;
        for cause in 0..count {
            self.by_step(trials, goal, cause, &mut answer.causes[cause])?;
        }
        answer.causes.sort_by(|one, other| other.share.mean.abs().total_cmp(&one.share.mean.abs()));
        Ok(answer)
    }

    /// Those pairs of `apart` that do something together on the first side that they do not do each alone, the largest first.
    fn interactions(
        &self,
        trials: &mut Trials<'_>,
        goal: usize,
        apart: &[usize],
        answer: &WhyGoal,
    ) -> Result<Vec<Interaction>, AskError> {
        let pairs = || {
            apart.iter().enumerate().flat_map(|(at, &one)| apart[at + 1..].iter().map(move |&two| [one, two]))
        };
        let set = |pair: [usize; 2]| self.mixture(1 << pair[0] | 1 << pair[1]);
        trials.all_seeds(&pairs().map(set).collect::<Vec<_>>())?;
        let nothing = trials.values(Taken::NONE, goal)?;
        let mut found = vec![];
        for pair in pairs() {
            let both = trials.values(set(pair), goal)?;
            let [one, two] = pair.map(|cause| trials.values(self.mixture(1 << cause), goal));
            let (one, two) = (one?, two?);
            let beyond = (0..both.len()).map(|seed| both[seed] - one[seed] - two[seed] + nothing[seed]);
            let effect = Effect::of(beyond);
            if effect.is_told() {
                found
                    .push(Interaction { names: pair.map(|cause| answer.causes[cause].name.clone()), effect });
            }
        }
        found.sort_by(|one, other| other.effect.mean.abs().total_cmp(&one.effect.mean.abs()));
        Ok(found)
    }

    /// What each step of a rule makes alone, where there are several and the rule makes anything alone.
    fn by_step(
        &self,
        trials: &mut Trials<'_>,
        goal: usize,
        number: usize,
        cause: &mut Cause,
    ) -> Result<(), AskError> {
        let count = cause.steps.len();
        if count < 2 || !cause.share.is_told() || !cause.alone.is_told() {
            return Ok(());
        }
        let taken = self.taken[number];
        let Some(lever) = taken.indices().next() else { return Ok(()) };
        let midway = |steps| Mixture { taken: Taken::NONE, midway: Some(Midway { lever, steps }) };
        let mut way = vec![Mixture::from(Taken::NONE)];
        way.extend((1..count).map(midway));
        way.push(taken.into());
        trials.all_seeds(&way)?;
        let values =
            way.iter().map(|&mixture| trials.values(mixture, goal)).collect::<Result<Vec<_>, _>>()?;
        for (walked, pair) in values.windows(2).enumerate() {
            let effect = Effect::of(pair[1].iter().zip(&pair[0]).map(|(after, before)| after - before));
            let step = if self.levers.goes_up() { walked } else { count - 1 - walked };
            cause.steps[step].alone = Some(effect);
        }
        Ok(())
    }

    /// What a cause is, without what it does.
    fn described(&self, cause: usize) -> Cause {
        let levers: Vec<&Lever> = self.taken[cause].indices().map(|index| self.levers.get(index)).collect();
        if let [lever] = levers[..] {
            let [from, to] = lever.says();
            return Cause {
                name: lever.name(),
                about: lever.about(),
                from,
                to,
                steps: lever.steps(),
                ..Cause::default()
            };
        }
        let names: Vec<String> = levers.iter().map(|lever| lever.name()).collect();
        Cause {
            name: "together".to_owned(),
            about: format!("what none of these does alone: {}", names.join(", ")),
            ..Cause::default()
        }
    }
}
