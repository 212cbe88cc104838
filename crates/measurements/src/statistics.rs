//! Means, deviations and confidence intervals of a few repetitions.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Repeated measurements of one quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
}

/// An interval of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the two have no value in common.
    pub fn parts_from(self, other: Self) -> bool {
        self.high < other.low || other.high < self.low
    }
}

impl Sample {
    /// Of `values`; those that are not finite are left out.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        Self { values: values.into_iter().filter(|value| value.is_finite()).collect() }
    }

    /// The values.
    pub fn values(&self) -> impl Iterator<Item = f64> + use<'_> {
        self.values.iter().copied()
    }

    /// How many values.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The smallest; `None` of nothing.
    pub fn min(&self) -> Option<f64> {
        self.values.iter().copied().reduce(f64::min)
    }

    /// The largest; `None` of nothing.
    pub fn max(&self) -> Option<f64> {
        self.values.iter().copied().reduce(f64::max)
    }

    /// The arithmetic mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }

    /// The least value that `percent` of a hundred values are not above; `None` of nothing.
    pub fn percentile(&self, percent: u32) -> Option<f64> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let rank = (values.len() * percent as usize).div_ceil(100);
        values.get(rank.saturating_sub(1)).copied()
    }

    /// The middle one, or the upper of two; `None` of nothing.
    pub fn median(&self) -> Option<f64> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// The harmonic mean, for rates; `None` of nothing, 0 where a value is 0 or less.
    pub fn harmonic_mean(&self) -> Option<f64> {
        if self.values.iter().any(|&value| value <= 0.0) {
            return Some(0.0);
        }
        self.reciprocals().mean().map(f64::recip)
    }

    /// The standard deviation of the population that the values are drawn from (n - 1); `None` of fewer than two.
    pub fn stddev(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.count() > 1)?;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        Some((squares / (self.count() - 1) as f64).sqrt())
    }

    /// The deviation in percent of the mean; `None` where either is missing or the mean is 0.
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.mean().filter(|mean| *mean != 0.0)?;
        self.stddev().map(|stddev| 100.0 * stddev / mean.abs())
    }

    /// Where the mean lies with 95 % confidence, by Student's t; `None` of fewer than two values.
    pub fn mean_interval(&self) -> Option<Interval> {
        let (mean, stddev) = (self.mean()?, self.stddev()?);
        let degrees = (self.count() - 1) as f64;
        let t = StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(0.975);
        let half = t * stddev / (self.count() as f64).sqrt();
        Some(Interval { low: mean - half, high: mean + half })
    }

    /// Where the harmonic mean lies with 95 % confidence: the interval of the mean of the reciprocals, turned over.
    /// `None` of fewer than two values, or where a value is 0 or less.
    pub fn harmonic_mean_interval(&self) -> Option<Interval> {
        if self.values.iter().any(|&value| value <= 0.0) {
            return None;
        }
        let Interval { low, high } = self.reciprocals().mean_interval()?;
        // A lower end at or below 0 says that the rate has no upper bound.
        let upper = if low > 0.0 { low.recip() } else { f64::INFINITY };
        Some(Interval { low: high.recip(), high: upper })
    }

    fn reciprocals(&self) -> Self {
        Self { values: self.values.iter().copied().map(f64::recip).collect() }
    }
}

/// What is known of a sample whose values are not: published means and deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n - 1).
    pub stddev: f64,
    /// Number of values.
    pub count: usize,
}

impl Moments {
    /// Those of `sample`; `None` of fewer than two values.
    pub fn of(sample: &Sample) -> Option<Self> {
        Some(Self { mean: sample.mean()?, stddev: sample.stddev()?, count: sample.count() })
    }

    /// Whether the two means differ with 95 % confidence, by Welch's t. Two that do not deviate at all differ if they are
    /// not equal: nothing is left to chance.
    pub fn differs_from(self, other: Self) -> bool {
        match self.welch(other) {
            Some(half) => (other.mean - self.mean).abs() > half,
            None => self.stddev + other.stddev == 0.0 && (self.mean - other.mean).abs() > 0.0,
        }
    }

    /// By how much `other`'s mean is larger, and half the width of the interval in which that lies with 95 % confidence (Welch's
    /// t): 0 where neither deviates, `None` where one has fewer than two values.
    pub fn change(self, other: Self) -> (f64, Option<f64>) {
        let certain = || (self.count > 1 && other.count > 1).then_some(0.0);
        (other.mean - self.mean, self.welch(other).or_else(certain))
    }

    /// Half the width of the interval in which the difference of the two means lies with 95 % confidence; `None` where one
    /// has fewer than two values, or neither deviates.
    fn welch(self, other: Self) -> Option<f64> {
        let part = |of: Self| of.stddev.powi(2) / of.count as f64;
        let (one, two) = (part(self), part(other));
        if self.count < 2 || other.count < 2 || one + two <= 0.0 {
            return None;
        }
        let below = |part: f64, count: usize| part.powi(2) / (count - 1) as f64;
        let degrees = (one + two).powi(2) / (below(one, self.count) + below(two, other.count));
        Some(StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(0.975) * (one + two).sqrt())
    }

    /// By how many percent of this mean `other`'s is larger, and half the width of the interval in which that lies with
    /// 95 % confidence (Welch's t of two means with deviations of their own; that of the base as a divisor is left out).
    /// `None` where one has fewer than two values, or neither deviates.
    pub fn change_percent(self, other: Self) -> Option<(f64, f64)> {
        let half = self.welch(other).filter(|_| self.mean != 0.0)?;
        let percent = 100.0 / self.mean.abs();
        Some((percent * (other.mean - self.mean), percent * half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: Option<f64>, right: f64) {
        let left = left.expect("a value");
        assert!((left - right).abs() < 1e-6 * right.abs(), "{left} is not {right}");
    }

    #[test]
    fn textbook_values() {
        let sample = Sample::new([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        near(sample.mean(), 5.0);
        near(sample.stddev(), (32.0f64 / 7.0).sqrt());
        near(sample.coefficient_of_variation(), 100.0 * (32.0f64 / 7.0).sqrt() / 5.0);
        near(Sample::new([40.0, 60.0]).harmonic_mean(), 48.0);
        near(Sample::new([5.0, 1.0, 3.0]).median(), 3.0);
        assert_eq!((sample.min(), sample.max()), (Some(2.0), Some(9.0)));
    }

    #[test]
    fn the_interval_uses_students_t() {
        // t(0.975, 2) = 4.302653: 10 ± 4.302653 × 1 / √3.
        let interval = Sample::new([9.0, 10.0, 11.0]).mean_interval().expect("three values");
        near(Some(interval.high), 10.0 + 4.302_652_73 / 3f64.sqrt());
        near(Some(interval.low), 10.0 - 4.302_652_73 / 3f64.sqrt());
    }

    #[test]
    fn a_harmonic_interval_surrounds_its_mean() {
        let sample = Sample::new([90.0, 100.0, 110.0]);
        let (mean, interval) = (sample.harmonic_mean().expect("a mean"), sample.harmonic_mean_interval());
        let interval = interval.expect("an interval");
        assert!(interval.low < mean && mean < interval.high);
        assert_eq!(Sample::new([0.0, 1.0]).harmonic_mean_interval(), None);
    }

    #[test]
    fn one_value_has_no_interval_and_none_has_no_mean() {
        assert_eq!(Sample::new([1.0]).mean_interval(), None);
        assert_eq!(Sample::new([1.0]).stddev(), None);
        assert_eq!(Sample::new([f64::NAN]).mean(), None);
        assert_eq!(Sample::new([]).harmonic_mean(), None);
        assert_eq!(Sample::new([]).median(), None);
    }

    #[test]
    fn a_change_has_an_interval() {
        // docs/published.md#gorman-2014, 10 warehouses and 1: the first lies outside of its interval, the second does not.
        let moments = |mean, stddev| Moments { mean, stddev, count: 4 };
        let ten = moments(124_432.5, 7434.03).change_percent(moments(140_904.0, 5171.91)).unwrap();
        assert!((ten.0 - 13.24).abs() < 0.01 && (8.5..10.0).contains(&ten.1), "{ten:?}");
        let one = moments(30_953.25, 1260.38).change_percent(moments(31_917.75, 1109.66)).unwrap();
        assert!(one.1 > one.0, "{one:?}");
        assert_eq!(moments(1.0, 0.0).change_percent(moments(2.0, 0.0)), None);
    }
}
