//! Repetitions and what is said of them: the median, and how far they lie apart.

/// Repetitions of one measurement, ascending.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Samples(Vec<f64>);

/// Where repetitions lay, in the unit of what was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SampleSpread {
    /// The least.
    pub min: f64,
    /// A quarter of them are at or below this.
    pub p25: f64,
    /// The middle one.
    pub median: f64,
    /// A quarter of them are at or above this.
    pub p75: f64,
    /// The greatest.
    pub max: f64,
    /// How many there were.
    pub samples: u32,
}

impl Samples {
    /// `times` repetitions, at least one.
    pub(super) fn take(times: usize, mut once: impl FnMut() -> f64) -> Self {
        Self::of((0..times.max(1)).map(|_| once()).collect())
    }

    /// Those of `values`, which has one at least.
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        debug_assert!(!values.is_empty());
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// All of several.
    pub(super) fn joined(all: Vec<Self>) -> Self {
        Self::of(all.into_iter().flat_map(|samples| samples.0).collect())
    }

    pub(super) fn median(&self) -> f64 {
        self.at(2)
    }

    /// The value that `quarters` of four quarters of them do not exceed.
    fn at(&self, quarters: usize) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last * quarters).div_ceil(4)).copied().unwrap_or_default()
    }

    /// Every sample with something done to it that keeps their order or turns it round.
    pub(super) fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self::of(self.0.iter().map(|&value| change(value)).collect())
    }

    pub(super) fn spread(&self) -> SampleSpread {
        SampleSpread {
            min: self.at(0),
            p25: self.at(1),
            median: self.at(2),
            p75: self.at(3),
            max: self.at(4),
            samples: self.0.len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_of_five_and_of_one() {
        let spread = Samples::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]).spread();
        assert_eq!((spread.min, spread.p25, spread.median), (1.0, 2.0, 3.0));
        assert_eq!((spread.p75, spread.max, spread.samples), (4.0, 5.0, 5));
        let one = Samples::take(0, || 7.0).spread();
        assert_eq!((one.min, one.p75, one.samples), (7.0, 7.0, 1));
    }

    #[test]
    fn speeds_turn_the_order_round() {
        let speeds = Samples::of(vec![1.0, 2.0, 4.0]).map(|ns| 8.0 / ns).spread();
        assert_eq!((speeds.min, speeds.median, speeds.max), (2.0, 4.0, 8.0));
    }
}
