//! Chances in whole numbers, the same to the bit on every machine: whether something that happens so often on average has
//! happened at all, and how often it will have happened when it first does.

use crate::stage::Random;

/// Fixed-point one of counts.
pub(super) const ONE: u64 = 1 << 20;
/// e^(-1/16), of 2^64.
const STEP: u128 = 17_329_112_349_219_823_218;
/// Of so many expected events none is as good as impossible: e^-16.
pub(super) const CERTAIN: u64 = 16 * ONE;

/// 16ths of an expected event until none left undone is beyond what a draw can tell.
const STEPS: usize = 16 * 32;
/// e^(-n/16) for each n, of 2^64: every look at a page asks for one of them.
static SHARES: [u64; STEPS + 1] = shares();

const fn shares() -> [u64; STEPS + 1] {
    let mut shares = [u64::MAX; STEPS + 1];
    let mut step = 1;
    while step <= STEPS {
        shares[step] = ((shares[step - 1] as u128 * STEP) >> 64) as u64;
        step += 1;
    }
    shares
}

/// e^(-count), of 2^64, for a count below [`CERTAIN`].
fn none_of(count: u64) -> u64 {
    let sixteenths = (count / (ONE / 16)) as usize;
    // Of what is left of a 16th, two terms of the series: an error below 5e-5.
    let rest = u128::from(count % (ONE / 16));
    let one = u128::from(ONE);
    let tail = one - rest + rest * rest / (2 * one);
    (u128::from(SHARES[sixteenths]) * tail / one) as u64
}

/// Whether something happened of which `expected` (in units of [`ONE`]) were to be expected.
pub(super) fn happened(expected: u64, random: &mut Random) -> bool {
    match expected {
        0 => false,
        CERTAIN.. => true,
        _ => random.next() >= none_of(expected),
    }
}

/// After how many expected events, in units of [`ONE`], the first one happens.
pub(super) fn until_first(random: &mut Random) -> u64 {
    // -ln(u) by how often e^(-1/16) goes into u, and evenly within a 16th.
    let draw = random.next();
    let sixteenths = SHARES[1..].partition_point(|&share| share > draw) as u64;
    sixteenths * (ONE / 16) + random.below(ONE / 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_rare_events() {
        let mut random = Random::of(3);
        for (expected, percent) in [(0.01, 0.995), (0.1, 9.516), (1.0, 63.21), (3.0, 95.02)] {
            let count = (expected * ONE as f64) as u64;
            let hits = (0..200_000).filter(|_| happened(count, &mut random)).count();
            let got = hits as f64 / 2000.0;
            assert!((got - percent).abs() < 0.35, "{expected}: {got} %, not {percent}");
        }
        assert!(!happened(0, &mut random) && happened(40 * ONE, &mut random));
    }

    #[test]
    fn the_first_event_is_one_expected_event_away_on_average() {
        let mut random = Random::of(5);
        let draws: Vec<u64> = (0..100_000).map(|_| until_first(&mut random)).collect();
        let mean = draws.iter().sum::<u64>() as f64 / 100_000.0 / ONE as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        let late = draws.iter().filter(|draw| **draw > 2 * ONE).count() as f64 / 1000.0;
        assert!((late - 13.53).abs() < 0.5, "{late} % later than two");
    }
}
