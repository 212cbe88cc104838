//! Differences with their intervals, in percent of what they are differences from.

use lab::measurements::Effect;

use crate::units;

/// What a difference is set beside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<'a> {
    /// The figure's unit.
    pub(crate) unit: &'a str,
    /// Its value before.
    pub(crate) before: f64,
}

impl Scale<'_> {
    /// An effect with half of its interval, in percent.
    pub(crate) fn estimate(self, effect: &Effect) -> String {
        let said = self.relative(effect.mean);
        match effect.half_width() {
            Some(half) if half > 0.0 => {
                let half = self.relative(half);
                format!("{said} ± {}", half.trim_start_matches('+'))
            }
            _ => said,
        }
    }

    /// In percent; in the figure's unit where that is of nothing.
    pub(crate) fn relative(self, value: f64) -> String {
        if self.before == 0.0 {
            let sign = if value < 0.0 { "-" } else { "+" };
            return format!("{sign}{}", plain(self.unit, value.abs()));
        }
        let percent = 100.0 * value / self.before.abs();
        match percent.abs() {
            0.0 => "0 %".to_owned(),
            ..0.0005 => "<0.001 %".to_owned(),
            ..0.1 => format!("{percent:+.3} %"),
            ..1.0 => format!("{percent:+.2} %"),
            _ => format!("{percent:+.1} %"),
        }
    }
}

/// A value in its unit.
pub(crate) fn plain(unit: &str, value: f64) -> String {
    match unit {
        "ns" => units::duration(value),
        "pages" => units::memory(value.max(0.0).round() as u64),
        "pages/s" | "ops/s" | "1/s" => units::rate(value),
        "count" | "events" => units::count(value),
        "percent" => format!("{value:.2} %"),
        "" => format!("{value:.4}"),
        unit => format!("{value:.4} {unit}"),
    }
}
