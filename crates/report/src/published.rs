//! Simulated figures beside published ones, row by row, with the error of each.

use std::fmt::Write as _;

use lab::measurements::{Row, Score};

use crate::style::Style;
use crate::table::Table;

/// An experiment's rows under its name, where the figures come from, then every experiment's score.
pub fn table(style: Style, rows: &[Row], score: &[Score]) -> String {
    let mut out = String::new();
    let mut experiments: Vec<&str> = rows.iter().map(|row| row.experiment.as_str()).collect();
    experiments.dedup();
    let mut done: Vec<&str> = vec![];
    for experiment in experiments {
        if done.contains(&experiment) {
            continue;
        }
        done.push(experiment);
        let of: Vec<&Row> = rows.iter().filter(|row| row.experiment == experiment).collect();
        let _ = writeln!(out, "{}", style.heading(experiment));
        out.push_str(&rows_of(style, &of));
        let mut sources: Vec<&str> =
            of.iter().map(|row| row.source.as_str()).filter(|s| !s.is_empty()).collect();
        sources.dedup();
        for source in sources {
            let _ = writeln!(out, "  source: {source}");
        }
        out.push('\n');
    }
    if !score.is_empty() {
        out.push_str(&scores(style, score));
    }
    out
}

fn rows_of(style: Style, rows: &[&Row]) -> String {
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
    table.text(2, style.columns())
}

fn scores(style: Style, score: &[Score]) -> String {
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
    table.text(0, style.columns())
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
