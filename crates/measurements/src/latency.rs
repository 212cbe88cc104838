//! Latency distributions: exact figures and power-of-two rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a kind of span took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Latency {
    /// How many spans.
    pub count: u64,
    /// Mean, rounded down.
    pub mean_ns: u64,
    /// Half of the spans took at most this.
    pub p50_ns: u64,
    /// 99 in 100 took at most this.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All together.
    pub total_ns: u64,
    /// `(low, count)`: how many took `low` to `2 × low - 1` (0 and 1 for the row at 0), ascending, empty rows left
    /// out. The rows are those of bcc's funclatency.
    pub log2: Vec<(u64, u64)>,
}

/// The lowest value of the power-of-two row that holds `ns`: 0 for 0 and 1, 2 for 2 and 3, 4 for 4 to 7 …
pub const fn log2_low(ns: u64) -> u64 {
    if ns < 2 { 0 } else { 1 << ns.ilog2() }
}

/// Which row, counted from 0, begins at or holds `ns`.
const fn row(ns: u64) -> usize {
    if ns < 2 { 0 } else { ns.ilog2() as usize }
}

impl Latency {
    /// The exact distribution of `samples`, each in ns. Percentiles are by nearest rank.
    pub fn from_samples(samples: impl IntoIterator<Item = u64>) -> Self {
        let mut samples: Vec<u64> = samples.into_iter().collect();
        samples.sort_unstable();
        let Some(&max_ns) = samples.last() else { return Self::default() };
        let count = samples.len();
        let total_ns = samples.iter().fold(0u64, |sum, &ns| sum.saturating_add(ns));
        let rank = |percent: usize| samples[(count * percent).div_ceil(100).max(1) - 1];
        let mut log2: Vec<(u64, u64)> = vec![];
        for &ns in &samples {
            let low = log2_low(ns);
            match log2.last_mut() {
                Some(last) if last.0 == low => last.1 += 1,
                _ => log2.push((low, 1)),
            }
        }
        Self {
            count: count as u64,
            mean_ns: total_ns / count as u64,
            p50_ns: rank(50),
            p99_ns: rank(99),
            max_ns,
            total_ns,
            log2,
        }
    }
}

/// What a histogram shows of one latency, or of several repetitions pooled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many spans.
    pub count: u64,
    /// All together, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Spans per row: `rows[0]` is 0 to 1 ns, `rows[i]` is `2^i` to `2^(i+1) - 1`. The last row is not empty.
    pub rows: Vec<u64>,
}

impl Distribution {
    /// Every span of `latencies` in one distribution.
    pub fn pool<'a>(latencies: impl IntoIterator<Item = &'a Latency>) -> Self {
        let mut pool = Self::default();
        for latency in latencies {
            pool.count = pool.count.saturating_add(latency.count);
            pool.total_ns = pool.total_ns.saturating_add(latency.total_ns);
            pool.max_ns = pool.max_ns.max(latency.max_ns);
            for &(low, count) in latency.log2.iter().filter(|&&(_, count)| count > 0) {
                let row = row(low);
                if pool.rows.len() <= row {
                    pool.rows.resize(row + 1, 0);
                }
                pool.rows[row] = pool.rows[row].saturating_add(count);
            }
        }
        pool
    }

    /// Mean in ns, rounded down; 0 when nothing was counted.
    pub const fn mean_ns(&self) -> u64 {
        match self.total_ns.checked_div(self.count) {
            Some(mean) => mean,
            None => 0,
        }
    }

    /// Lowest and highest value of row `row`.
    pub const fn bounds(row: usize) -> (u64, u64) {
        match row {
            0 => (0, 1),
            63.. => (1 << 63, u64::MAX),
            _ => (1 << row, (1 << (row + 1)) - 1),
        }
    }
}

impl From<&Latency> for Distribution {
    fn from(latency: &Latency) -> Self {
        Self::pool([latency])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_samples() {
        let latency = Latency::from_samples(1..=200);
        assert_eq!((latency.p50_ns, latency.p99_ns, latency.max_ns), (100, 198, 200));
        assert_eq!((latency.count, latency.total_ns, latency.mean_ns), (200, 20_100, 100));
        assert_eq!(Latency::from_samples([7]).p99_ns, 7);
        assert_eq!(Latency::from_samples([]), Latency::default());
    }

    #[test]
    fn the_first_row_holds_zero_and_one() {
        assert_eq!(Latency::from_samples([0, 1, 2, 3, 4]).log2, [(0, 2), (2, 2), (4, 1)]);
        assert_eq!(Distribution::bounds(0), (0, 1));
        assert_eq!(Distribution::bounds(16), (65_536, 131_071));
        assert_eq!(Distribution::bounds(63), (1 << 63, u64::MAX));
    }

    proptest! {
        #[test]
        fn a_sample_lies_within_its_row(ns: u64) {
            let (low, high) = Distribution::bounds(row(ns));
            prop_assert!(low <= ns && ns <= high);
            prop_assert_eq!(low, log2_low(ns));
        }

        #[test]
        fn pooling_is_the_distribution_of_all(a in prop::collection::vec(0u64..1 << 40, 0..50),
                                              b in prop::collection::vec(0u64..1 << 40, 0..50)) {
            let both = Latency::from_samples(a.iter().chain(&b).copied());
            let pool = Distribution::pool([&Latency::from_samples(a), &Latency::from_samples(b)]);
            prop_assert_eq!(pool, Distribution::from(&both));
        }
    }
}
