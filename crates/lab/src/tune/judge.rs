//! What trials say of settings: how one stands beside the current one, whether another is better beyond the seeds' noise.

use std::cmp::Ordering;

use super::aim::Aims;
use super::bench::{Bench, Values};
use super::space::Setting;
use crate::measurements::{Effect, Held, HeldLimit};

/// What part of a figure a change has to be to be worth a setting.
pub(super) const NOTICEABLE: f64 = 0.001;

/// A setting beside the current one, by means over seeds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Standing {
    /// Whether it could not be simulated.
    pub(super) failed: bool,
    /// How far beyond the limits it is, all together, in parts of each.
    pub(super) breach: f64,
    /// By how much each goal is worse than the current setting's, in parts of that: less than 0 is better.
    pub(super) losses: Vec<f64>,
}

/// Reads trials.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) aims: Aims,
    pub(super) current: Setting,
}

impl Judge {
    /// How `setting` stands on a ground; all of it must have been made with every seed, for the current setting, too.
    pub(super) fn standing(
        &self,
        bench: &Bench<'_>,
        ground: usize,
        setting: &Setting,
        seeds: &[u64],
    ) -> Standing {
        let Some(pairs) = Self::pairs(bench, ground, [setting, &self.current], seeds) else {
            return Standing { failed: true, breach: 0.0, losses: vec![0.0; self.aims.aims.len()] };
        };
        let mean = |of: &dyn Fn(&[&Values; 2]) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
        let loss = |aim: usize| {
            let [own, current] = [0, 1].map(|side| mean(&|pair| Aims::aim(pair[side], aim)));
            let worse = self.aims.aims[aim].loss(own) - self.aims.aims[aim].loss(current);
            if current == 0.0 { worse } else { worse / current.abs() }
        };
        let breach = |limit: usize| {
            let [own, current] = [0, 1].map(|side| mean(&|pair| self.aims.limit(pair[side], limit)));
            self.aims.limits[limit].breach(own, current)
        };
        Standing {
            failed: false,
            breach: (0..self.aims.limits.len()).map(breach).sum(),
            losses: (0..self.aims.aims.len()).map(loss).collect(),
        }
    }

    /// Places of `standings`, the best first: what could be before what could not, what keeps the limits before what breaks
    /// them, what none is better than in every goal before the rest, then by the first goal.
    pub(super) fn order(standings: &[Standing]) -> Vec<usize> {
        let layers = layers(standings);
        let mut places: Vec<usize> = (0..standings.len()).collect();
        places.sort_by(|&one, &two| {
            let (a, b) = (&standings[one], &standings[two]);
            let by = a.failed.cmp(&b.failed).then(a.breach.total_cmp(&b.breach));
            by.then(layers[one].cmp(&layers[two])).then_with(|| compare(&a.losses, &b.losses))
        });
        places
    }

    /// `settings`, the best first.
    pub(super) fn ordered(
        &self,
        bench: &Bench<'_>,
        ground: usize,
        settings: &[Setting],
        seeds: &[u64],
    ) -> Vec<Setting> {
        let standings: Vec<Standing> =
            settings.iter().map(|setting| self.standing(bench, ground, setting, seeds)).collect();
        Self::order(&standings).into_iter().map(|place| settings[place].clone()).collect()
    }

    /// By how much a goal is larger with `setting` than with `base`, seed by seed, in its unit; `None` where either could not be.
    pub(super) fn effect(
        bench: &Bench<'_>,
        ground: usize,
        [setting, base]: [&Setting; 2],
        aim: usize,
        seeds: &[u64],
    ) -> Option<Effect> {
        let pairs = Self::pairs(bench, ground, [setting, base], seeds)?;
        Some(Effect::of(pairs.iter().map(|[own, base]| Aims::aim(own, aim) - Aims::aim(base, aim))))
    }

    /// What each limit's figure came to beside the current setting's; `None` where either could not be.
    pub(super) fn held(
        &self,
        bench: &Bench<'_>,
        ground: usize,
        setting: &Setting,
        seeds: &[u64],
    ) -> Option<Vec<HeldLimit>> {
        let pairs = Self::pairs(bench, ground, [setting, &self.current], seeds)?;
        let of = |limit: usize| {
            let pairs =
                pairs.iter().map(|[own, current]| [own, current].map(|of| self.aims.limit(of, limit)));
            self.aims.limits[limit].held(pairs)
        };
        Some((0..self.aims.limits.len()).map(of).collect())
    }

    /// The mean of a goal, in its unit; `None` where it could not be.
    pub(super) fn mean(
        bench: &Bench<'_>,
        ground: usize,
        setting: &Setting,
        aim: usize,
        seeds: &[u64],
    ) -> Option<Effect> {
        let pairs = Self::pairs(bench, ground, [setting, setting], seeds)?;
        Some(Effect::of(pairs.iter().map(|[own, _]| Aims::aim(own, aim))))
    }

    /// Whether seeds tell that `setting` is no better than `leader`: worse in a goal beyond the noise and in no goal better, or
    /// beyond a limit for certain. Nothing is told by one seed.
    pub(super) fn is_beaten(
        &self,
        bench: &Bench<'_>,
        ground: usize,
        [setting, leader]: [&Setting; 2],
        seeds: &[u64],
    ) -> bool {
        if setting == leader || seeds.len() < 2 {
            return false;
        }
        let Some(held) = self.held(bench, ground, setting, seeds) else { return true };
        if held.iter().any(|held| held.verdict == Held::Broken) {
            return true;
        }
        let effect = |aim: usize| Self::effect(bench, ground, [setting, leader], aim, seeds);
        let Some(effects) = (0..self.aims.aims.len()).map(effect).collect::<Option<Vec<Effect>>>() else {
            return false;
        };
        let aims = || self.aims.aims.iter().zip(&effects);
        aims().any(|(aim, effect)| aim.is_worse(effect))
            && aims().all(|(aim, effect)| aim.loss(effect.mean) >= 0.0)
    }

    /// Whether a change of a goal is so much of what the current setting has that somebody would care.
    pub(super) fn is_noticeable(
        &self,
        bench: &Bench<'_>,
        ground: usize,
        (aim, effect): (usize, &Effect),
        seeds: &[u64],
    ) -> bool {
        let before = Self::mean(bench, ground, &self.current, aim, seeds).map_or(0.0, |mean| mean.mean.abs());
        effect.mean.abs() >= NOTICEABLE * before
    }

    /// Whether `setting` is better than the current one beyond the noise: in a goal better by more than anybody would care not to
    /// have, in none worse, every limit kept.
    pub(super) fn wins(&self, bench: &Bench<'_>, ground: usize, setting: &Setting, seeds: &[u64]) -> bool {
        let Some(held) = self.held(bench, ground, setting, seeds) else { return false };
        let effect = |aim: usize| Self::effect(bench, ground, [setting, &self.current], aim, seeds);
        let Some(effects) = (0..self.aims.aims.len()).map(effect).collect::<Option<Vec<Effect>>>() else {
            return false;
        };
        let is_noticeable =
            |aim: usize, effect: &Effect| self.is_noticeable(bench, ground, (aim, effect), seeds);
        let aims = || self.aims.aims.iter().zip(&effects);
        held.iter().all(|held| held.verdict == Held::Kept)
            && aims()
                .enumerate()
                .any(|(at, (aim, effect))| aim.is_better(effect) && is_noticeable(at, effect))
            && !aims().any(|(aim, effect)| aim.is_worse(effect))
    }

    /// Values of two settings, seed by seed; `None` where one of them could not be.
    fn pairs<'b>(
        bench: &'b Bench<'_>,
        ground: usize,
        settings: [&Setting; 2],
        seeds: &[u64],
    ) -> Option<Vec<[&'b Values; 2]>> {
        let pair = |&seed: &u64| {
            let [own, base] = settings.map(|setting| bench.of(ground, setting, seed).as_ref().ok());
            Some([own?, base?])
        };
        seeds.iter().map(pair).collect()
    }
}

/// For each standing, how many layers of better ones lie before it: the first layer has those than which none is better in every goal.
fn layers(standings: &[Standing]) -> Vec<usize> {
    let mut layers = vec![usize::MAX; standings.len()];
    let mut left: Vec<usize> = (0..standings.len()).collect();
    let mut layer = 0;
    while !left.is_empty() {
        let is_dominated =
            |&one: &usize| left.iter().any(|&other| dominates(&standings[other], &standings[one]));
        let (rest, front): (Vec<usize>, Vec<usize>) = left.iter().copied().partition(is_dominated);
        for place in front {
            layers[place] = layer;
        }
        left = rest;
        layer += 1;
    }
    layers
}

/// Whether `one` is better than `other` in a goal and worse in none.
pub(super) fn dominates(one: &Standing, other: &Standing) -> bool {
    let pairs = || one.losses.iter().zip(&other.losses);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

fn compare(one: &[f64], other: &[f64]) -> Ordering {
    let unequal = one.iter().zip(other).map(|(a, b)| a.total_cmp(b)).find(|by| by.is_ne());
    unequal.unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(breach: f64, losses: &[f64]) -> Standing {
        Standing { failed: false, breach, losses: losses.to_vec() }
    }

    #[test]
    fn limits_come_before_goals_and_layers_before_the_first_goal() {
        let all = [
            standing(0.0, &[0.5, 0.5]),
            standing(0.2, &[-9.0, -9.0]),
            standing(0.0, &[-0.5, 0.1]),
            standing(0.0, &[0.1, -0.5]),
            Standing { failed: true, ..standing(0.0, &[-1.0, -1.0]) },
            standing(0.0, &[-0.4, 0.2]),
        ];
        // 1 and 4 are in a layer before the rest, which does not help them.
        assert_eq!(Judge::order(&all)[4..], [1, 4]);
        let kept: Vec<Standing> = [0, 2, 3, 5].map(|place: usize| all[place].clone()).to_vec();
        assert_eq!(Judge::order(&kept), [1, 2, 3, 0]);
        assert_eq!(layers(&kept), [2, 0, 0, 1]);
    }
}
