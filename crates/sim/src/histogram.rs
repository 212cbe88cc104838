//! A histogram of durations in integers only: 32 linear steps to each power of two, so that a percentile is right to
//! 3 % and the same on every machine.

use mm::Nanos;

const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS;

/// Counts of durations, with their number, sum and extremes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    count: u64,
    total: u64,
    min: u64,
    max: u64,
    /// Empty until the first value.
    buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { count: 0, total: 0, min: u64::MAX, max: 0, buckets: vec![] }
    }
}

impl Histogram {
    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        self.buckets[bucket(value.0)] += 1;
        self.count += 1;
        self.total += value.0;
        self.min = self.min.min(value.0);
        self.max = self.max.max(value.0);
    }

    /// Values recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn total(&self) -> Nanos {
        Nanos(self.total)
    }

    /// The largest, 0 if there is none.
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// The smallest, 0 if there is none.
    pub fn min(&self) -> Nanos {
        Nanos(if self.count == 0 { 0 } else { self.min })
    }

    /// The mean, rounded down; 0 without values.
    pub fn mean(&self) -> Nanos {
        Nanos(self.total.checked_div(self.count).unwrap_or(0))
    }

    /// The value that `per_mille` of 1000 values do not exceed (500 is the median), to within 3 %: the last value of
    /// its bucket, or the maximum if that is less. 0 without values.
    pub fn percentile(&self, per_mille: u32) -> Nanos {
        let rank = (u128::from(self.count) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Nanos(last_of(index).clamp(self.min, self.max));
            }
        }
        Nanos(0)
    }

    /// Counts by power of two, row by row as bcc's funclatency prints them, but for the row of 0: row 0 counts zeros,
    /// row `i` values from 2^(i-1) to 2^i - 1 (funclatency prints 0 and 1 as one row). Ends with the highest in use.
    pub fn log2(&self) -> Vec<u64> {
        let mut rows = vec![0; 65];
        for (index, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            rows[(64 - last_of(index).leading_zeros()) as usize] += count;
        }
        let used = rows.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        rows.truncate(used);
        rows
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Takes out what `earlier`, a former state of this histogram, counted. Minimum and maximum stay those of the
    /// whole, for they cannot be told apart any more.
    pub fn subtract(&mut self, earlier: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&earlier.buckets) {
            *mine -= theirs;
        }
        self.count -= earlier.count;
        self.total -= earlier.total;
    }
}

fn bucket(value: u64) -> usize {
    let bits = 64 - value.leading_zeros();
    if bits <= STEP_BITS {
        return value as usize;
    }
    let shift = bits - STEP_BITS - 1;
    ((shift as usize + 1) << STEP_BITS) + ((value >> shift) as usize & (STEPS - 1))
}

/// The largest value that falls into bucket `index`.
fn last_of(index: usize) -> u64 {
    if index < STEPS {
        return index as u64;
    }
    let shift = (index >> STEP_BITS) - 1;
    let first = ((STEPS + (index & (STEPS - 1))) as u64) << shift;
    first + ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_tile_the_numbers() {
        for index in 1..BUCKETS {
            assert_eq!(bucket(last_of(index)), index);
            assert_eq!(bucket(last_of(index - 1) + 1), index);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn rows_are_those_of_funclatency() {
        let mut histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, 1023, 1024] {
            histogram.record(Nanos(value));
        }
        assert_eq!(histogram.log2(), [1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_three_percent(mut values in prop::collection::vec(0u64..1 << 40, 1..200), p in 1u32..=1000) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.record(Nanos(*value));
            }
            values.sort_unstable();
            let rank = (values.len() * p as usize).div_ceil(1000).max(1);
            let (exact, got) = (values[rank - 1], histogram.percentile(p).0);
            prop_assert!(got >= exact && got <= exact + exact / 32 + 1, "{got} for {exact}");
        }

        #[test]
        fn merging_is_recording_both(a in prop::collection::vec(any::<u32>(), 0..50), b in prop::collection::vec(any::<u32>(), 0..50)) {
            let of = |values: &[u32]| {
                let mut histogram = Histogram::default();
                for value in values {
                    histogram.record(Nanos(u64::from(*value)));
                }
                histogram
            };
            let mut both = of(&a);
            both.merge(&of(&b));
            prop_assert_eq!(both, of(&[a, b].concat()));
        }
    }
}
