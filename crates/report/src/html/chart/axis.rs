//! Scales: where a value stands, and which values have a line.

/// From values to places on a drawing.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    /// Where the lowest value stands.
    start: f64,
    /// Where the highest does.
    end: f64,
}

/// How values are spaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Equal differences are equally far.
    Linear,
    /// Equal ratios are.
    Log,
}

impl Kind {
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
        }
    }
}

impl Scale {
    /// Values from `low` to `high`, from `start` to `end` on the drawing.
    pub(super) fn new(kind: Kind, [low, high]: [f64; 2], [start, end]: [f64; 2]) -> Self {
        Self { kind, low: kind.of(low), high: kind.of(high), start, end }
    }

    /// Where `value` stands; what is beyond an end stands at the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let width = self.high - self.low;
        let part = if width > 0.0 { (self.kind.of(value) - self.low) / width } else { 0.5 };
        self.start + (self.end - self.start) * part.clamp(0.0, 1.0)
    }

    /// The lowest and the highest value of a linear scale.
    pub(super) const fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Whether `value` is on the scale.
    pub(super) fn holds(&self, value: f64) -> bool {
        let slack = (self.high - self.low) * 1e-9;
        (self.low - slack..=self.high + slack).contains(&self.kind.of(value))
    }

    /// Of `values` that it holds, those that stand `apart` units from the one before at least.
    pub(super) fn spaced(&self, values: impl IntoIterator<Item = f64>, apart: f64) -> Vec<f64> {
        let mut kept: Vec<f64> = vec![];
        for value in values.into_iter().filter(|value| self.holds(*value)) {
            if kept.last().is_none_or(|last| (self.at(value) - self.at(*last)).abs() >= apart) {
                kept.push(value);
            }
        }
        kept
    }
}

/// Powers of ten between two values, those included.
pub(super) fn decades(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (first..=last).map(|exponent| 10f64.powi(exponent))
}

/// Round values between two, about `count` of them.
pub(super) fn round(low: f64, high: f64, count: f64) -> Vec<f64> {
    let rough = (high - low) / count.max(1.0);
    if !rough.is_finite() || rough <= 0.0 {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_equally_far_on_a_log_scale() {
        let scale = Scale::new(Kind::Log, [1.0, 100.0], [0.0, 200.0]);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!(
            (scale.at(1e9) - 200.0).abs() < 1e-9 && scale.at(0.0).abs() < 1e-9,
            "ends hold what is beyond"
        );
        assert_eq!(scale.spaced([1.0, 2.0, 10.0, 1000.0], 50.0), [1.0, 10.0]);
    }

    #[test]
    fn lines_are_at_round_values() {
        assert_eq!(round(0.0, 9.7, 4.0), [0.0, 5.0]);
        assert_eq!(round(-30.0, 70.0, 5.0), [-20.0, 0.0, 20.0, 40.0, 60.0]);
        assert_eq!(round(3.0, 3.0, 5.0), [3.0]);
        assert_eq!(decades(20.0, 900.0).collect::<Vec<_>>(), [10.0, 100.0, 1000.0]);
    }
}
