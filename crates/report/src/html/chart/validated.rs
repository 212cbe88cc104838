//! What a program really changed by under another setting, beside what was predicted.

use std::fmt::Write as _;

use lab::measurements::{Agreement, Validated, ValidatedChange};

use super::Chart;
use super::forest::{Forest, Point, Row, Unit};
use super::mark::Mark;
use crate::table::Table;
use crate::validate_program::{by, direction, width};

/// Rows of a chart; the table has all.
const MOST: usize = 14;

/// A chart for each setting after the first.
pub(in crate::html) fn charts(validated: &Validated) -> Vec<Chart> {
    validated.settings.iter().skip(1).filter_map(|setting| chart(validated, setting)).collect()
}

fn chart(validated: &Validated, setting: &str) -> Option<Chart> {
    let first = validated.settings.first().map_or("", String::as_str);
    let of_setting: Vec<&ValidatedChange> =
        validated.changes.iter().filter(|change| change.setting == setting).collect();
    let drawn: Vec<&&ValidatedChange> =
        of_setting.iter().filter(|change| change.from > 0.0 && change.predicted_from > 0.0).collect();
    let forest = Forest {
        name: format!(
            "real and predicted changes from {first} to {setting}; the table below has the figures"
        ),
        unit: Unit::Ratio,
        axis: "after ÷ before, log scale".into(),
        centre: "no change",
        legend: vec!["real, with its 95 % interval".into(), "predicted".into()],
        rows: drawn.iter().take(MOST).map(|change| row(change)).collect(),
    };
    let svg = forest.svg();
    let mut note = format!("{} real runs of each setting", validated.repeats);
    let more = of_setting.len() - drawn.len().min(MOST);
    if more > 0 {
        let _ = write!(note, "; {more} more in the table");
    }
    let title = format!("Real and predicted: from {first} to {setting}");
    (!svg.is_empty()).then(|| Chart { title, note, svg, table: table(&of_setting) })
}

fn row(change: &ValidatedChange) -> Row {
    let ratio = |by: f64| 1.0 + by / change.from;
    let real = Point {
        at: ratio(change.real),
        between: change.half.map(|half| [ratio(change.real - half).max(0.0), ratio(change.real + half)]),
        mark: Mark::Series(0),
    };
    let predicted =
        Point { at: 1.0 + change.predicted / change.predicted_from, between: None, mark: Mark::Series(1) };
    let said = format!(
        "{}, predicted {}",
        by(&change.unit, change.from, change.real),
        by(&change.unit, change.predicted_from, change.predicted)
    );
    let class = match change.agreement {
        Agreement::Right => "better",
        Agreement::Wrong => "worse",
        Agreement::Small | Agreement::Uncertain => "said",
    };
    Row { label: change.metric.clone(), said, class, points: vec![real, predicted] }
}

fn table(changes: &[&ValidatedChange]) -> Table {
    let mut table = Table::new(["<figure", "real", "±", "predicted", "<direction"]);
    for change in changes {
        let half = width(change).unwrap_or_else(|| "-".to_owned());
        table.row([
            change.metric.clone(),
            by(&change.unit, change.from, change.real),
            half,
            by(&change.unit, change.predicted_from, change.predicted),
            direction(change.agreement).to_owned(),
        ]);
    }
    table
}
