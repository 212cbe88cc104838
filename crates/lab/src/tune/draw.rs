//! Which settings are tried: drawn, by whole numbers alone, so that one seed gives the same on every machine.

use std::collections::BTreeSet;

use super::space::{Axis, Setting, Space};
use crate::stage::Random;

/// Draws settings.
#[derive(Clone, Debug)]
pub(super) struct Draw(Random);

impl Draw {
    /// The draws of `seed`.
    pub(super) fn of(seed: u64) -> Self {
        Self(Random::of(seed))
    }

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// `count` settings in which each knob takes each of its values alike often (a Latin hypercube); fewer where two are the same.
    pub(super) fn spread(&mut self, space: &Space, count: usize) -> Vec<Setting> {
        let column = |draw: &mut Self, axis: &Axis| {
            let mut column: Vec<u8> = (0..count).map(|at| (at * axis.values.len() / count) as u8).collect();
            if count < axis.values.len() {
                // With fewer settings than values each comes from a part of its own.
                for (at, place) in column.iter_mut().enumerate() {
                    let [low, high] = [at, at + 1].map(|edge| edge * axis.values.len() / count);
                    *place = (low + draw.below(high - low)) as u8;
                }
            }
            draw.shuffle(&mut column);
            column
        };
        let columns: Vec<Vec<u8>> = space.axes.iter().map(|axis| column(self, axis)).collect();
        let settings = (0..count).map(|at| columns.iter().map(|column| column[at]).collect());
        settings.collect::<BTreeSet<Setting>>().into_iter().collect()
    }

    /// Settings that differ from the current one in one knob, `count` at most: the ends of every knob before what lies between.
    pub(super) fn singles(&mut self, space: &Space, count: usize) -> Vec<Setting> {
        let current = space.current();
        let (mut ends, mut between) = (vec![], vec![]);
        for (place, axis) in space.axes.iter().enumerate() {
            let last = axis.values.len() as u8 - 1;
            for at in (0..=last).filter(|at| *at != axis.current) {
                let mut setting = current.clone();
                setting[place] = at;
                let is_end = at == 0 || at == last || !axis.is_numeric();
                if is_end { ends.push(setting) } else { between.push(setting) }
            }
        }
        self.shuffle(&mut ends);
        self.shuffle(&mut between);
        ends.extend(between);
        ends.truncate(count);
        ends
    }

    /// Settings near `elites` that are not in `seen`, `count` at most: one knob a value further or back (another, of words),
    /// then knobs of two elites mixed.
    pub(super) fn near(
        &mut self,
        space: &Space,
        elites: &[Setting],
        seen: &BTreeSet<Setting>,
        count: usize,
    ) -> Vec<Setting> {
        let mut drawn: Vec<Setting> = vec![];
        for elite in elites {
            let mut steps = vec![];
            for (place, axis) in space.axes.iter().enumerate() {
                let is_step =
                    |at: &u8| at.abs_diff(elite[place]) == 1 || (!axis.is_numeric() && *at != elite[place]);
                for at in (0..axis.values.len() as u8).filter(is_step) {
                    let mut setting = elite.clone();
                    setting[place] = at;
                    steps.push(setting);
                }
            }
            self.shuffle(&mut steps);
            drawn.extend(steps);
        }
        for _ in 0..count {
            let Some(mixed) = self.mixed(space, elites) else { break };
            drawn.push(mixed);
        }
        let mut taken = BTreeSet::new();
        drawn.retain(|setting| !seen.contains(setting) && taken.insert(setting.clone()));
        drawn.truncate(count);
        drawn
    }

    /// Knobs of two elites mixed, one of them perhaps a step further.
    fn mixed(&mut self, space: &Space, elites: &[Setting]) -> Option<Setting> {
        if elites.is_empty() {
            return None;
        }
        let [one, other] = [0, 1].map(|_| &elites[self.below(elites.len())]);
        let mut setting: Setting =
            one.iter().zip(other).map(|(&a, &b)| if self.below(2) == 0 { a } else { b }).collect();
        let place = self.below(space.axes.len());
        let values = space.axes[place].values.len();
        setting[place] = if space.axes[place].is_numeric() {
            (usize::from(setting[place]) + self.below(3)).saturating_sub(1).min(values - 1) as u8
        } else {
            self.below(values) as u8
        };
        Some(setting)
    }
}

/// Every setting of a space that is small enough to be gone through.
pub(super) fn every(space: &Space) -> Vec<Setting> {
    space.axes.iter().fold(vec![vec![]], |settings: Vec<Setting>, axis| {
        let longer = |setting: &Setting| {
            let with = |at: usize| [&setting[..], &[at as u8]].concat();
            (0..axis.values.len()).map(with).collect::<Vec<_>>()
        };
        settings.iter().flat_map(longer).collect()
    })
}
