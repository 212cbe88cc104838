//! How far a simulated change is from the published one: one time against another on the same machine.
//!
//! What a level is off by, both sides share, and a change loses it: the interval of a level says nothing of a change. What is left is what the
//! two sides do not share, and that grows with the change: a setting that does nothing is simulated as one that does nothing, one that
//! makes a time twenty times shorter may have made it ten times shorter. So the interval of a change by a factor is a constant factor
//! either way, and the square root of the change itself.

use std::collections::BTreeMap;

use super::intervals::TimeKind;
use super::rows::Times;

/// Fewer changes than this have no interval.
const ROWS_MIN: usize = 20;
/// The part of the next machine's changes that the interval is to hold.
const INSIDE: f64 = 0.8;
/// A row outside of an interval of 80 % counts this much of its distance.
const OUTSIDE: f64 = 2.0 / (1.0 - INSIDE);

/// The interval of 80 % of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeInterval {
    /// How far off a change is at least to be expected, as a factor either way.
    pub factor: f64,
    /// Changes behind it.
    pub rows: usize,
    /// Their machines.
    pub machines: usize,
    /// The part of them inside of the interval that the other machines gave.
    pub inside: f64,
    /// That interval in the middle of the rows, a factor either way.
    pub left_out: f64,
    /// The left-out intervals' score: width of logarithms, and ten times how far a row lies outside.
    pub score: f64,
    /// The same of nine in ten to one in ten of what was published on other machines.
    pub naive: f64,
}

/// A change as published and as simulated.
#[derive(Clone, Copy)]
struct Pair {
    published: f64,
    simulated: f64,
}

impl Pair {
    /// How far off it is, either way, beyond the root of the simulated change.
    fn off(self) -> f64 {
        larger(self.published / self.simulated) / larger(self.simulated).sqrt()
    }
}

/// A factor, or its reciprocal: the one from 1 on.
fn larger(factor: f64) -> f64 {
    factor.max(factor.recip())
}

type ByMachine<'a> = BTreeMap<&'a str, Vec<Pair>>;

impl ChangeInterval {
    /// What the changes among `all` say; `None` where they are fewer than 20, or of one machine.
    pub fn of(all: &[Times]) -> Option<Self> {
        let mut machines: ByMachine<'_> = BTreeMap::new();
        for changes in all.iter().filter(|times| times.kind == TimeKind::Change) {
            let pairs = changes.published.iter().zip(&changes.simulated);
            let pairs = pairs.map(|(&published, &simulated)| Pair { published, simulated });
            machines.entry(&changes.machine).or_default().extend(pairs);
        }
        let rows = machines.values().map(Vec::len).sum();
        if rows < ROWS_MIN || machines.len() < 2 {
            return None;
        }
        let (mut inside, mut widths, mut score, mut naive) = (0, vec![], 0.0, 0.0);
        for (name, pairs) in &machines {
            let others: ByMachine<'_> = machines
                .iter()
                .filter(|(other, _)| *other != name)
                .map(|(of, pairs)| (*of, pairs.clone()))
                .collect();
            let factor = within(&others);
            let (low, high) = deciles(&others);
            for pair in pairs {
                let half = factor * larger(pair.simulated).sqrt();
                let off = larger(pair.published / pair.simulated);
                inside += usize::from(off <= half);
                score += 2.0 * half.ln() + OUTSIDE * (off / half).max(1.0).ln();
                naive += (high / low).ln()
                    + OUTSIDE * (low / pair.published).max(pair.published / high).max(1.0).ln();
                widths.push(half);
            }
        }
        widths.sort_by(f64::total_cmp);
        Some(Self {
            factor: within(&machines),
            rows,
            machines: machines.len(),
            inside: inside as f64 / rows as f64,
            left_out: widths[rows / 2],
            score: score / rows as f64,
            naive: naive / rows as f64,
        })
    }

    /// From where to where the real change lies, of one that is simulated as `change`, a factor above 0.
    pub fn around(&self, change: f64) -> (f64, f64) {
        let half = self.factor * larger(change).sqrt();
        (change / half, change * half)
    }

    /// Changes by a larger factor than this, either way, exclude that nothing changed.
    pub fn least_told(&self) -> f64 {
        self.factor * self.factor
    }

    /// Whether the interval of a change by `factor` excludes that nothing changed.
    pub fn tells(&self, factor: f64) -> bool {
        // From nothing, or to nothing, is as large a change as there is.
        !factor.is_finite() || factor <= 0.0 || larger(factor) > self.least_told()
    }
}

/// Within which factor four in five changes are off, each machine counted as one, however many changes it has.
fn within(machines: &ByMachine<'_>) -> f64 {
    let mut offs: Vec<(f64, f64)> = vec![];
    for pairs in machines.values() {
        offs.extend(pairs.iter().map(|pair| (pair.off().max(1.0), 1.0 / pairs.len() as f64)));
    }
    offs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let enough = INSIDE * machines.len() as f64 - 1e-9;
    let mut sum = 0.0;
    for &(off, weight) in &offs {
        sum += weight;
        if sum >= enough {
            return off;
        }
    }
    offs.last().map_or(f64::INFINITY, |(off, _)| *off)
}

/// The tenth and the ninetieth percentile of published changes.
fn deciles(machines: &ByMachine<'_>) -> (f64, f64) {
    let mut published: Vec<f64> = machines.values().flatten().map(|pair| pair.published).collect();
    published.sort_by(f64::total_cmp);
    let at = |percent: usize| published[(published.len() - 1) * percent / 100];
    (at(10), at(90))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(machine: &str, published: &[f64], simulated: &[f64]) -> Times {
        Times {
            experiment: "e".into(),
            machine: machine.into(),
            kind: TimeKind::Change,
            published: published.to_vec(),
            simulated: simulated.to_vec(),
        }
    }

    #[test]
    fn the_interval_is_what_four_in_five_machines_need() {
        let all: Vec<Times> = [1.0, 1.1, 1.2, 1.3, 9.0]
            .into_iter()
            .zip(["a", "b", "c", "d", "e"])
            .map(|(off, machine)| changes(machine, &[off; 4], &[1.0; 4]))
            .collect();
        let of = ChangeInterval::of(&all).unwrap();
        assert_eq!((of.rows, of.machines), (20, 5));
        assert!((of.factor - 1.3).abs() < 1e-9, "{of:?}");
        // Without e, the others' 1.3 holds all but e; without any other, 9 holds them.
        assert!((of.inside - 0.8).abs() < 1e-9, "{of:?}");
        assert!(of.tells(1.7) && of.tells(0.5) && !of.tells(1.6) && !of.tells(0.6) && of.tells(0.0));
        let (low, high) = of.around(4.0);
        assert!((low - 4.0 / 2.6).abs() < 1e-9 && (high - 4.0 * 2.6).abs() < 1e-9);
    }

    #[test]
    fn a_large_change_may_be_off_by_its_root() {
        let of = |simulated: f64| {
            let [one, other] = ["a", "b"].map(|machine| changes(machine, &[1.0; 10], &[simulated; 10]));
            ChangeInterval::of(&[one, other]).unwrap().factor
        };
        assert!(
            (of(4.0) - 2.0).abs() < 1e-9 && (of(0.25) - 2.0).abs() < 1e-9 && (of(1.0) - 1.0).abs() < 1e-9
        );
    }

    #[test]
    fn few_changes_and_those_of_one_machine_have_none() {
        let few = [changes("a", &[1.0; 10], &[1.0; 10]), changes("b", &[1.0; 9], &[1.0; 9])];
        assert_eq!(ChangeInterval::of(&few), None);
        assert_eq!(ChangeInterval::of(&[changes("a", &[1.0; 30], &[1.0; 30])]), None);
    }
}
