//! A program that ran for real under several settings, beside what a replay of it predicted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;

/// One program under all its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Validated {
    /// The command.
    pub workload: String,
    /// The profile that predicted.
    pub machine: String,
    /// The policy that predicted.
    pub policy: String,
    /// The settings, in the order in which they were asked for: it was recorded under the first.
    pub settings: Vec<String>,
    /// Real runs under each setting.
    pub repeats: u64,
    /// Every figure of every setting.
    pub rows: Vec<ValidatedRow>,
    /// Every figure's change from the first setting to each other one.
    pub changes: Vec<ValidatedChange>,
    /// What the prediction leaves out, a sentence each.
    pub left_out: Vec<String>,
}

/// A figure under one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ValidatedRow {
    /// The setting.
    pub setting: String,
    /// What it is of: `page faults`, or a counter's name in /proc/vmstat.
    pub metric: String,
    /// `count`, `pages` or `ns`.
    pub unit: String,
    /// The mean of the real runs.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub real: f64,
    /// Half of the mean's 95 % interval; `None` of one run.
    pub half: Option<f64>,
    /// The mean over the seeds; `None` where a replay has no such figure.
    pub predicted: Option<f64>,
}

/// A figure's change from the first setting to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ValidatedChange {
    /// The other setting.
    pub setting: String,
    /// What it is of.
    pub metric: String,
    /// `count`, `pages` or `ns`.
    pub unit: String,
    /// The mean of the real runs under the first setting.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub from: f64,
    /// By how much the real mean is larger under the other.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub real: f64,
    /// Half of that difference's 95 % interval; `None` of one run.
    pub half: Option<f64>,
    /// What was predicted under the first setting.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub predicted_from: f64,
    /// By how much the prediction is larger under the other.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub predicted: f64,
    /// Whether the prediction went the real way.
    pub agreement: Agreement,
}

/// Which way a prediction went, beside the real change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The real way.
    Right,
    /// The other way, or no way.
    Wrong,
    /// Not asked: the real change is 5 % or less.
    #[default]
    Small,
    /// Not asked: the real change lies within its interval, or is of one run, which has none.
    Uncertain,
}

impl ValidatedRow {
    /// How far off the prediction is, in percent of the real figure; `None` where either is missing or none happened.
    pub fn error_percent(&self) -> Option<f64> {
        let predicted = self.predicted.filter(|_| self.real > 0.0)?;
        Some(100.0 * (predicted - self.real) / self.real)
    }
}

impl ValidatedChange {
    /// Real changes of this part of the figure or less are not asked for their direction.
    pub const SMALL: f64 = 0.05;

    /// Whether `predicted` went the way of `real`, by the other fields.
    pub fn judge(&self) -> Agreement {
        let beyond = self.half.is_some_and(|half| self.real.abs() > half);
        if self.real.abs() <= Self::SMALL * self.from.abs() {
            Agreement::Small
        } else if !beyond {
            Agreement::Uncertain
        } else if self.predicted * self.real > 0.0 {
            Agreement::Right
        } else {
            Agreement::Wrong
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_asked_where_the_real_change_is_clear() {
        let change = |from, real, half, predicted| {
            ValidatedChange { from, real, half, predicted, ..ValidatedChange::default() }.judge()
        };
        assert_eq!(change(100.0, 20.0, Some(5.0), 1.0), Agreement::Right);
        assert_eq!(change(100.0, -20.0, Some(5.0), -90.0), Agreement::Right);
        assert_eq!(change(100.0, 20.0, Some(5.0), -1.0), Agreement::Wrong);
        assert_eq!(change(100.0, 20.0, Some(5.0), 0.0), Agreement::Wrong);
        assert_eq!(change(100.0, 5.0, Some(0.1), 5.0), Agreement::Small);
        assert_eq!(change(100.0, 20.0, Some(21.0), 20.0), Agreement::Uncertain);
        assert_eq!(change(100.0, 20.0, None, 20.0), Agreement::Uncertain);
        // From nothing every change is large.
        assert_eq!(change(0.0, 150.0, Some(0.0), 149.0), Agreement::Right);
        assert_eq!(change(0.0, 0.0, Some(0.0), 0.0), Agreement::Small);
    }

    #[test]
    fn errors_are_of_what_happened() {
        let row =
            |real, predicted| ValidatedRow { real, predicted, ..ValidatedRow::default() }.error_percent();
        assert_eq!(row(200.0, Some(210.0)), Some(5.0));
        assert_eq!(row(0.0, Some(210.0)), None);
        assert_eq!(row(200.0, None), None);
    }
}
