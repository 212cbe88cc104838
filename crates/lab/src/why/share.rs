//! Sharing a difference out. `v(S)` is a figure where the causes `S` are moved; a cause's part depends on what was moved before it
//! wherever causes interact. So it is averaged over orders: over all where there are few causes, else over one order and its
//! reverse. Along each order the parts add up to the whole, and so do their means.

use crate::measurements::ShareMethod;

/// Up to so many causes all orders are gone through: 16 sets of causes.
const ALL_ORDERS: usize = 4;

/// A set of causes: bit `n` is cause `n`.
pub(super) type Set = u128;

/// How `count` causes share.
pub(super) fn method(count: usize) -> ShareMethod {
    if count <= ALL_ORDERS { ShareMethod::AllOrders } else { ShareMethod::TwoOrders }
}

/// The sets whose figures are needed for `count` causes, fewer than 128: those of the orders, each cause alone, and all but each.
pub(super) fn sets(count: usize) -> Vec<Set> {
    let full = full(count);
    let mut all: Vec<Set> = match method(count) {
        ShareMethod::AllOrders => (0..=full).collect(),
        ShareMethod::TwoOrders => {
            let prefixes = (0..=count).map(full_of);
            let ends = (0..=count).map(|length| full & !full_of(length));
            let singles = (0..count).flat_map(|cause| [1 << cause, full & !(1 << cause)]);
            prefixes.chain(ends).chain(singles).collect()
        }
    };
    all.sort_unstable();
    all.dedup();
    all
}

/// All `count` causes.
pub(super) fn full(count: usize) -> Set {
    full_of(count)
}

fn full_of(length: usize) -> Set {
    (1 << length) - 1
}

/// The share of each of `count` causes in `v(full) - v(0)`; they add up to it.
pub(super) fn shares(count: usize, v: impl Fn(Set) -> f64) -> Vec<f64> {
    let full = full(count);
    let share = |cause: usize| {
        let one: Set = 1 << cause;
        let part = |before: Set| v(before | one) - v(before);
        match method(count) {
            ShareMethod::AllOrders => {
                let without = (0..=full).filter(|set| set & one == 0);
                without.map(|set| weight(count, set.count_ones()) * part(set)).sum()
            }
            ShareMethod::TwoOrders => {
                let before = full_of(cause);
                f64::midpoint(part(before), part(full & !before & !one))
            }
        }
    };
    (0..count).map(share).collect()
}

/// Sets of other causes with which `cause` is looked at on the way through the orders, those that are not empty.
pub(super) fn before(count: usize, cause: usize) -> Vec<Set> {
    let one: Set = 1 << cause;
    let sets = sets(count);
    let is_seen = |set: &Set| set & one == 0 && *set != 0 && sets.binary_search(&(set | one)).is_ok();
    sets.iter().copied().filter(is_seen).collect()
}

/// In what part of all orders of `count` causes exactly a given set of `before` comes before a given other cause.
fn weight(count: usize, before: u32) -> f64 {
    let factorial = |number: usize| (1..=number).product::<usize>() as f64;
    let before = before as usize;
    factorial(before) * factorial(count - before - 1) / factorial(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    /// Effects of single causes, and of neighbours together.
    fn pairs(set: Set) -> f64 {
        let single: f64 = (0..8).filter(|n| set & (1 << n) != 0).map(|n| f64::from(n + 1)).sum();
        let both: f64 = (0..7).filter(|n| set & (3 << n) == 3 << n).map(|n| 10.0 * f64::from(n + 1)).sum();
        single + both
    }

    #[test]
    fn shares_are_known_values_and_add_up() {
        assert_eq!(shares(2, |set| [0.0, 1.0, 2.0, 13.0][set as usize]), [6.0, 7.0]);
        // A glove and two others: the textbook's 2/3, 1/6, 1/6.
        let glove = |set: Set| f64::from(u8::from(set & 1 == 1 && set & 6 != 0));
        let parts = shares(3, glove);
        assert!(
            near(parts[0], 2.0 / 3.0) && near(parts[1], 1.0 / 6.0) && near(parts[2], 1.0 / 6.0),
            "{parts:?}"
        );
        for count in 1..=8 {
            let sum: f64 = shares(count, pairs).iter().sum();
            assert!(near(sum, pairs(full(count)) - pairs(0)), "{count}");
        }
        assert!(shares(0, |_| 0.0).is_empty());
    }

    #[test]
    fn where_causes_interact_in_pairs_two_orders_say_what_all_orders_say() {
        let parts = shares(6, pairs);
        for (cause, part) in parts.iter().enumerate() {
            let n = cause as f64;
            let with_lower = if cause > 0 { 10.0 * n } else { 0.0 };
            let with_upper = if cause < 5 { 10.0 * (n + 1.0) } else { 0.0 };
            assert!(near(*part, n + 1.0 + f64::midpoint(with_lower, with_upper)), "{cause}: {part}");
        }
    }

    #[test]
    fn a_cause_is_looked_at_among_others_as_far_as_orders_go() {
        assert_eq!(before(3, 0), [0b010, 0b100, 0b110]);
        assert_eq!(before(1, 0), []);
        // Its places in the order and in its reverse, and last of all.
        assert_eq!(before(6, 2), [0b000_011, 0b111_000, 0b111_011]);
    }

    #[test]
    fn every_set_that_is_read_was_asked_for() {
        for count in 0..=9 {
            let sets = sets(count);
            shares(count, |set| {
                assert!(sets.binary_search(&set).is_ok(), "{set:b} of {count}");
                0.0
            });
            assert!(sets.len() <= if count <= ALL_ORDERS { 1 << count } else { 4 * count - 4 }, "{count}");
        }
    }
}
