//! Where the winner was tried that the search did not see: other seeds, machines a little different, other recordings.

use super::bench::Bench;
use super::judge::Judge;
use super::space::Setting;
use crate::measurements::{Elsewhere, ElsewhereVerdict, Held, Wins};
use crate::subject::AskError;

/// A setting beside the current one, on grounds that the search did not see.
pub(super) struct Trying<'a, 'b> {
    pub(super) judge: &'a Judge,
    pub(super) bench: &'a mut Bench<'b>,
    pub(super) winner: &'a Setting,
}

impl Trying<'_, '_> {
    /// Makes the trials of both settings.
    pub(super) fn make(&mut self, ground: usize, seeds: &[u64]) -> Result<(), AskError> {
        self.bench.make(ground, &[self.judge.current.clone(), self.winner.clone()], seeds)
    }

    /// Whether it wins on a ground with a seed: the first goal is better, and no limit is broken.
    fn wins(&self, ground: usize, seed: u64) -> bool {
        let standing = self.judge.standing(self.bench, ground, self.winner, &[seed]);
        !standing.failed && standing.breach <= 0.0 && standing.losses[0] < 0.0
    }

    /// How often it wins with these seeds, which were made.
    pub(super) fn seeds(&self, ground: usize, seeds: &[u64]) -> Wins {
        let lost = seeds.iter().filter(|&&seed| !self.wins(ground, seed));
        count(seeds.len(), lost.map(|seed| format!("seed {seed}")).collect())
    }

    /// On how many of `grounds` it wins with a seed.
    pub(super) fn grounds(&mut self, grounds: &[(usize, String)], seed: u64) -> Result<Wins, AskError> {
        for (ground, _) in grounds {
            self.make(*ground, &[seed])?;
        }
        let lost = grounds.iter().filter(|(ground, _)| !self.wins(*ground, seed));
        Ok(count(grounds.len(), lost.map(|(_, name)| name.clone()).collect()))
    }

    /// What it does on another workload.
    pub(super) fn elsewhere(
        &mut self,
        ground: usize,
        name: &str,
        seeds: &[u64],
    ) -> Result<Elsewhere, AskError> {
        self.make(ground, seeds)?;
        let effect = Judge::effect(self.bench, ground, [self.winner, &self.judge.current], 0, seeds);
        let before = Judge::mean(self.bench, ground, &self.judge.current, 0, seeds);
        let held = self.judge.held(self.bench, ground, self.winner, seeds);
        let (Some(change), Some(before), Some(held)) = (effect, before, held) else {
            let verdict = ElsewhereVerdict::CannotBe;
            return Ok(Elsewhere { name: name.to_owned(), verdict, ..Elsewhere::default() });
        };
        let aim = &self.judge.aims.aims[0];
        let is_broken = held.iter().any(|held| held.verdict == Held::Broken);
        let verdict = if aim.is_worse(&change) || is_broken {
            ElsewhereVerdict::Loses
        } else if aim.is_better(&change) {
            ElsewhereVerdict::Wins
        } else {
            ElsewhereVerdict::NoDifference
        };
        Ok(Elsewhere { name: name.to_owned(), before: before.mean, change, verdict })
    }
}

fn count(of: usize, lost: Vec<String>) -> Wins {
    Wins { wins: (of - lost.len()) as u64, of: of as u64, lost }
}
