//! Values of a knob that are worth trying, from its range.

/// A range is gone through in so many steps, or a few more.
const STEPS: u64 = 7;

/// A range whose upper end is so many times its lower one is gone through by factors.
const WIDE: u64 = 16;

/// Values from `low` to `high`, both among them: all of a few, or else in equal steps, or by equal factors where the range is
/// wide. Whole numbers alone are computed with, so that every machine gives the same.
pub(super) fn ladder(low: u64, high: u64) -> Vec<u64> {
    let (low, high) = (low.min(high), low.max(high));
    if high - low <= STEPS {
        return (low..=high).collect();
    }
    if low > 0 && high / low >= WIDE {
        return by_factors(low, high);
    }
    let step = (high - low).div_ceil(STEPS);
    let mut values: Vec<u64> = (0..STEPS).map(|at| low + at * step).filter(|value| *value < high).collect();
    values.push(high);
    values
}

fn by_factors(low: u64, high: u64) -> Vec<u64> {
    let reaches = |factor: u64| {
        let mut value = low;
        for _ in 0..STEPS {
            value = value.saturating_mul(factor);
        }
        value >= high
    };
    // Powers of two are what people write: 4096, 16384, 65536.
    let mut factor = 2;
    while !reaches(factor) {
        factor *= 2;
    }
    let mut values = vec![];
    let mut value = low;
    while value < high {
        values.push(value);
        value = value.saturating_mul(factor);
    }
    values.push(high);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_becomes_a_few_values_with_both_ends() {
        assert_eq!(ladder(0, 6), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(ladder(0, 100), [0, 15, 30, 45, 60, 75, 90, 100]);
        assert_eq!(ladder(10, 1000), [10, 20, 40, 80, 160, 320, 640, 1000]);
        assert_eq!(ladder(4096, 4_194_304), [4096, 16384, 65536, 262_144, 1_048_576, 4_194_304]);
        assert_eq!(ladder(9, 9), [9]);
        for (low, high) in [(1, u64::MAX), (0, u64::MAX), (3, 50)] {
            let values = ladder(low, high);
            assert!(values.len() <= 9 && values.first() == Some(&low) && values.last() == Some(&high));
            assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        }
    }
}
