//! Whether a figure keeps its bound, with what repetitions leave open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bound::{Bound, BoundError, BoundSide, Limit};
use super::statistics::{Moments, Sample};

/// Whether a bound is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// The whole 95 % interval is on the right side of the limit.
    Kept,
    /// The limit lies within the interval: other seeds may say otherwise.
    #[default]
    Unsure,
    /// The whole interval is beyond the limit.
    Broken,
}

/// A figure beside its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Whether it is kept.
    pub held: Held,
    /// The figure's mean, in its unit.
    pub mean: f64,
    /// The limit, in the same unit.
    pub limit: f64,
    /// Half the width of the 95 % interval of what lies between mean and limit: of the mean alone where the limit is an amount, of
    /// both means where it is a part of the first variant's; 0 where all seeds agree, `None` of a single seed.
    pub half_width: Option<f64>,
}

impl Judged {
    /// The end of the interval that decides: the one nearer to what is allowed where the bound is broken, the one nearer to what is
    /// forbidden elsewhere.
    pub fn deciding_end(&self, side: BoundSide) -> f64 {
        let half = self.half_width.unwrap_or(0.0);
        match (side, self.held) {
            (BoundSide::Max, Held::Broken) | (BoundSide::Min, Held::Kept | Held::Unsure) => self.mean - half,
            (BoundSide::Min, Held::Broken) | (BoundSide::Max, Held::Kept | Held::Unsure) => self.mean + half,
        }
    }
}

impl Bound {
    /// Judges `sample`, a value for each seed in `unit`, beside the `first` variant's, which only a percentage asks for. A single
    /// value has no interval and is taken as it is. `None` where one of them has no value.
    ///
    /// # Errors
    /// A limit of another kind than `unit`.
    pub fn judge(&self, unit: &str, first: &Sample, sample: &Sample) -> Result<Option<Judged>, BoundError> {
        let limit = self.limit_in(unit, first.mean().unwrap_or(f64::NAN))?;
        let Some(mean) = sample.mean().filter(|_| limit.is_finite()) else { return Ok(None) };
        let half_width = match self.limit {
            Limit::Amount { .. } => sample.mean_interval().map(|interval| interval.high - mean),
            Limit::OfFirst(part) => {
                let scaled = Sample::new(first.values().map(|value| part * value));
                let both = Moments::of(&scaled).zip(Moments::of(sample));
                both.and_then(|(limit, own)| limit.change(own).1)
            }
        };
        let beyond = match self.side {
            BoundSide::Max => mean - limit,
            BoundSide::Min => limit - mean,
        };
        let half = half_width.unwrap_or(0.0);
        let held = match beyond {
            _ if beyond > half => Held::Broken,
            // At the limit is within it.
            _ if beyond + half <= 0.0 => Held::Kept,
            _ => Held::Unsure,
        };
        Ok(Some(Judged { held, mean, limit, half_width }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(bound: &str, first: &[f64], sample: &[f64]) -> Option<Held> {
        let bound: Bound = bound.parse().unwrap();
        let [first, sample] = [first, sample].map(|values| Sample::new(values.iter().copied()));
        bound.judge("ns", &first, &sample).unwrap().map(|judged| judged.held)
    }

    #[test]
    fn an_amount_is_judged_by_the_means_interval() {
        // t(0.975, 2) = 4.30: 10 ± 2.48.
        let sample = [9.0, 10.0, 11.0];
        assert_eq!(held("a:max=13", &[], &sample), Some(Held::Kept));
        assert_eq!(held("a:max=12", &[], &sample), Some(Held::Unsure));
        assert_eq!(held("a:max=8", &[], &sample), Some(Held::Unsure));
        assert_eq!(held("a:max=7", &[], &sample), Some(Held::Broken));
        assert_eq!(held("a:min=7", &[], &sample), Some(Held::Kept));
        assert_eq!(held("a:min=13", &[], &sample), Some(Held::Broken));
        assert_eq!(held("a:max=10", &[], &[10.0]), Some(Held::Kept), "at the limit is within");
        assert_eq!(held("a:max=9", &[], &[10.0]), Some(Held::Broken), "one seed is taken as it is");
        assert_eq!(held("a:max=9", &[], &[]), None);
    }

    #[test]
    fn a_percentage_is_judged_by_both_intervals() {
        let base = [100.0, 101.0, 99.0];
        assert_eq!(held("a:max=105%", &base, &[101.0, 100.0, 100.5]), Some(Held::Kept));
        assert_eq!(held("a:max=105%", &base, &[106.0, 105.0, 104.0]), Some(Held::Unsure));
        assert_eq!(held("a:max=105%", &base, &[121.0, 120.0, 119.0]), Some(Held::Broken));
        assert_eq!(held("a:min=98%", &base, &[91.0, 90.0, 89.0]), Some(Held::Broken));
        assert_eq!(held("a:min=100%", &[5.0, 5.0], &[5.0, 5.0]), Some(Held::Kept), "all seeds agree");
        assert_eq!(held("a:min=98%", &[], &[5.0]), None, "there is no first variant");
    }

    #[test]
    fn the_end_that_decides_is_the_one_nearer_to_the_limit() {
        let bound: Bound = "a:max=7".parse().unwrap();
        let sample = Sample::new([9.0, 10.0, 11.0]);
        let judged = bound.judge("ns", &Sample::default(), &sample).unwrap().unwrap();
        assert!((judged.deciding_end(bound.side) - 7.52).abs() < 0.01, "{judged:?}");
        let loose: Bound = "a:max=30".parse().unwrap();
        let judged = loose.judge("ns", &Sample::default(), &sample).unwrap().unwrap();
        assert!((judged.deciding_end(loose.side) - 12.48).abs() < 0.01, "{judged:?}");
    }
}
