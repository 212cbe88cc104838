//! What is asked, and where will be searched.

use super::aim::{Aim, Aims, Limit};
use super::ground::Ground;
use super::judge::Judge;
use super::race::Course;
use super::space::{KnobChoice, Space};
use crate::measurements::TuneSpace;
use crate::subject::{AskError, Goal, Side};

/// Simulations of full length that a search may cost where nobody says how many, at least and at most; a quarter of the space between.
const BUDGET: [u64; 2] = [64, 256];
/// Unseen seeds are so far from the search's own.
const UNSEEN: u64 = 10_000;
/// Other workloads run with so many unseen seeds.
pub(super) const ELSEWHERE_SEEDS: usize = 3;

/// What is asked.
#[derive(Debug)]
pub struct Question {
    /// The workload on its machine: shortened forms ascending, the whole last.
    pub grounds: Vec<Ground>,
    /// Other workloads on the same machine, and this one on others, each by its name.
    pub also: Vec<(String, Ground)>,
    /// The current setting: the policy, and knobs that are set.
    pub base: Side,
    /// Knobs to search; empty: those that can act.
    pub knobs: Vec<KnobChoice>,
    /// What is to become better, the most important first; empty: the usual figure.
    pub goals: Vec<String>,
    /// What has to stay: `rss:max=105%`.
    pub keep: Vec<String>,
    /// The first seed.
    pub seed: u64,
    /// Seeds of finalists, from 2.
    pub seeds: u32,
    /// Unseen seeds that the winner is tried with, from 2.
    pub unseen: u32,
    /// What the search may cost, in simulations of full length; `None`: 64, or a quarter of the settings up to 256.
    pub budget: Option<u32>,
    /// How to search.
    pub method: Method,
}

/// How to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// By a race, within the budget.
    #[default]
    Race,
    /// Every setting in full length with every seed, whatever it costs.
    Every,
}

/// So many settings are gone through one by one.
const MOST_SETTINGS: u64 = 100_000;

/// A question whose space is known.
#[derive(Debug)]
pub struct Prepared {
    pub(super) question: Question,
    pub(super) space: Space,
    pub(super) aims: Aims,
    pub(super) goals: Vec<Goal>,
}

impl Prepared {
    /// Finds the space and reads what is asked for.
    ///
    /// # Errors
    /// A knob, a goal or a limit that cannot be; no knob that can act.
    pub fn of(question: Question) -> Result<Self, AskError> {
        let Some(whole) = question.grounds.last() else {
            return Err(AskError::new("there is nothing to simulate"));
        };
        let subject = &whole.subject;
        let space = Space::of(subject, question.base.clone(), &question.knobs)?;
        if question.method == Method::Every && space.size() > MOST_SETTINGS {
            let size = space.size();
            return Err(AskError::new(format!(
                "{size} settings are too many for every one of them; {MOST_SETTINGS} are the most"
            )));
        }
        let usual = [subject.usual_goal()];
        let goals = if question.goals.is_empty() { &usual[..] } else { &question.goals };
        let aims = goals.iter().map(|text| Aim::parse(subject, text)).collect::<Result<Vec<_>, _>>()?;
        let mut limits =
            question.keep.iter().map(|text| Limit::parse(subject, text)).collect::<Result<Vec<_>, _>>()?;
        limits.push(Limit::no_failures(subject));
        let aims = Aims { aims, limits };
        let goals = aims.goals();
        Ok(Self { question, space, aims, goals })
    }

    /// Where will be searched.
    pub fn space(&self) -> TuneSpace {
        self.space.described()
    }

    /// What is wrong with the recording's file.
    pub fn damage(&self) -> Option<&str> {
        self.question.grounds.last()?.subject.damage()
    }

    /// What the search may cost, in simulations of full length.
    pub fn budget(&self) -> u64 {
        self.budget_for(&self.space)
    }

    pub(super) fn budget_for(&self, space: &Space) -> u64 {
        let usual = || (space.size() / 4).clamp(BUDGET[0], BUDGET[1]);
        self.question.budget.map_or_else(usual, u64::from)
    }

    /// What all of it may cost, trying the winner elsewhere too, in thousandths of a simulation of full length.
    pub fn planned(&self) -> u64 {
        let variants = self.question.grounds.last().map_or(0, |whole| whole.variants().len());
        let after = 2 * (self.unseen().len() + variants + ELSEWHERE_SEEDS * self.question.also.len());
        1000 * (self.budget() + after as u64)
    }

    pub(super) fn unseen(&self) -> Vec<u64> {
        let first = self.question.seed.wrapping_add(UNSEEN);
        (0..u64::from(self.question.unseen.max(2))).map(|number| first.wrapping_add(number)).collect()
    }

    pub(super) fn course(&self) -> Course {
        let seed = self.question.seed;
        Course {
            permille: self.question.grounds.iter().map(|ground| ground.permille).collect(),
            seeds: (0..u64::from(self.question.seeds.max(2)))
                .map(|number| seed.wrapping_add(number))
                .collect(),
            budget: 1000 * self.budget(),
            seed,
        }
    }

    pub(super) fn judge(&self) -> Judge {
        Judge { aims: self.aims.clone(), current: self.space.current() }
    }
}
