//! Simulated figures beside published ones, row by row, with the error of each.

use std::fmt::Write as _;

use lab::measurements::{Row, Score};

use crate::style::Style;
use crate::table::Table;

/// An experiment's rows under its name, where the figures come from, then every experiment's score.
pub fn table(style: Style, rows: &[Row], score: &[Score]) -> String {
    let mut out = String::new();
    for (experiment, rows) in experiments(rows) {
        let _ = writeln!(out, "{}", style.heading(experiment));
        out.push_str(&grid(&rows).text(2, style.columns()));
        for source in sources(&rows) {
            let _ = writeln!(out, "  source: {source}");
        }
        out.push('\n');
    }
    if !score.is_empty() {
        out.push_str(&score_grid(score).text(0, style.columns()));
    }
    out
}

/// The rows of each experiment, in order of first appearance.
pub(crate) fn experiments(rows: &[Row]) -> Vec<(&str, Vec<&Row>)> {
    let mut experiments: Vec<(&str, Vec<&Row>)> = vec![];
    for row in rows {
        match experiments.iter_mut().find(|(name, _)| *name == row.experiment) {
            Some((_, of)) => of.push(row),
            None => experiments.push((&row.experiment, vec![row])),
        }
    }
    experiments
}

/// Where the figures come from, each source once.
pub(crate) fn sources<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    let mut sources: Vec<&str> = vec![];
    for row in rows.iter().filter(|row| !row.source.is_empty()) {
        if !sources.contains(&row.source.as_str()) {
            sources.push(&row.source);
        }
    }
    sources
}

pub(crate) fn grid(rows: &[&Row]) -> Table {
    let heads = ["<variant", "<metric", "<unit", "published", "simulated", "±", "error", "<"];
    let mut table = Table::new(heads);
    for row in rows {
        table.row([
            row.variant.clone(),
            row.metric.clone(),
            row.unit.clone(),
            number(row.published),
            number(row.simulated),
            if row.stddev > 0.0 { number(row.stddev) } else { "-".into() },
            error(row),
            row.role.name().to_owned(),
        ]);
    }
    table
}

pub(crate) fn score_grid(score: &[Score]) -> Table {
    let heads = ["<experiment", "predicted rows", "direction right", "median |error|", "worst |error|"];
    let mut table = Table::new(heads);
    for score in score {
        table.row([
            score.experiment.clone(),
            score.predicted_rows.to_string(),
            score.direction_right.to_string(),
            percent(score.median_abs_error),
            percent(score.worst_abs_error),
        ]);
    }
    table
}

/// `+12.3 %`, in points where the row itself is a percentage.
pub(crate) fn error(row: &Row) -> String {
    if row.unit == "percent" && row.error.is_finite() {
        format!("{:+.1} points", row.error)
    } else if row.error.is_finite() {
        format!("{:+.1} %", 100.0 * row.error)
    } else {
        "-".into()
    }
}

fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{:.1} %", 100.0 * fraction) } else { "-".into() }
}

/// Whole numbers from 100 on, two decimals below.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        _ if value.is_finite() => format!("{value:.2}"),
        _ => "-".into(),
    }
}
