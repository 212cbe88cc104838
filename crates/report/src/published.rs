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
        table.row(std::iter::once(row.variant.clone()).chain(cells(row)));
    }
    table
}

/// Metric, unit, published, simulated, deviation, error, role.
pub(crate) fn cells(row: &Row) -> [String; 7] {
    [
        row.metric.clone(),
        row.unit.clone(),
        published(row),
        figure(row, row.simulated),
        if row.stddev > 0.0 { number(row.stddev) } else { "-".into() },
        error(row),
        role(row),
    ]
}

/// The role, for a change which way it went, and whether the published figure is inside of the simulated one's interval.
fn role(row: &Row) -> String {
    let role = match row.direction {
        Some(direction) => format!("{}; {}", row.role.name(), direction.name()),
        // One for which nothing was published is only shown.
        None if row.published.is_nan() => "-".into(),
        None => row.role.name().to_owned(),
    };
    match row.inside {
        Some(true) => role + "; inside",
        Some(false) => role + "; outside",
        None => role,
    }
}

/// What was published: a figure or a range.
fn published(row: &Row) -> String {
    match row.published_high {
        Some(high) => format!("{} to {}", figure(row, row.published), figure(row, high)),
        None => figure(row, row.published),
    }
}

/// A line for each experiment. Only independent rows are in median and worst.
pub(crate) fn score_grid(score: &[Score]) -> Table {
    let heads = [
        "<experiment",
        "independent",
        "median |error|",
        "worst |error|",
        "fitted",
        "derived",
        "exact",
        "noise, zero",
        "direction right",
        "histograms",
        "worst distance",
    ];
    let mut table = Table::new(heads);
    for score in score {
        table.row([
            score.experiment.clone(),
            score.independent_rows.to_string(),
            percent(score.median_abs_error),
            percent(score.worst_abs_error),
            score.fitted_rows.to_string(),
            score.derived_rows.to_string(),
            score.exact_rows.to_string(),
            format!("{}, {}", score.noise_rows, score.zero_rows),
            directions(score),
            score.histograms.to_string(),
            if score.worst_emd_buckets.is_finite() {
                format!("{:.2} buckets", score.worst_emd_buckets)
            } else {
                "-".into()
            },
        ]);
    }
    table
}

/// `5 of 7, 11 not asked`.
fn directions(score: &Score) -> String {
    match (score.direction_rows, score.direction_unqualified) {
        (0, 0) => "-".into(),
        (rows, 0) => format!("{} of {rows}", score.direction_right),
        (rows, other) => format!("{} of {rows}, {other} not asked", score.direction_right),
    }
}

/// `+12.3 %`, in points where the row itself is a percentage, in buckets where it is a distance of histograms.
pub(crate) fn error(row: &Row) -> String {
    if row.unit == "buckets" && row.error.is_finite() {
        // The row is the distance itself.
        format!("{:.2} buckets", row.error)
    } else if row.unit == "percent" && row.error.is_finite() {
        format!("{:+.1} points", row.error)
    } else if row.unit == "node" {
        // The number is a name.
        if row.error == 0.0 { "same".into() } else { "another".into() }
    } else if row.error.is_finite() {
        format!("{:+.1} %", 100.0 * row.error)
    } else {
        "-".into()
    }
}

/// A row's figure; a name is a whole number.
fn figure(row: &Row, value: f64) -> String {
    if row.unit == "node" && value.is_finite() { format!("{value:.0}") } else { number(value) }
}

pub(crate) fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{:.1} %", 100.0 * fraction) } else { "-".into() }
}

/// Whole numbers from 100 on, two decimals below, four below 1.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        0.0 => "0".into(),
        ..1.0 => format!("{value:.4}"),
        _ if value.is_finite() => format!("{value:.2}"),
        _ => "-".into(),
    }
}
