//! The simulator held against the kernel of this machine: their figures side by side, and how many are within their
//! targets.

use std::fmt::Write as _;

use lab::measurements::{Document, Row};
use lab::validate::{Mark, marks, target_of};

use crate::published::{self, percent};
use crate::style::Style;
use crate::table::{Table, wrap};

/// The whole account.
pub fn text(style: Style, document: &Document) -> String {
    let mut out = String::new();
    for of in &document.experiments {
        out.push_str(&style.heading(&of.title));
        out.push('\n');
        for line in wrap(&of.about, style.columns() - 2) {
            let _ = writeln!(out, "  {line}");
        }
        let rows: Vec<&Row> = document.rows.iter().filter(|row| row.experiment == of.name).collect();
        out.push('\n');
        out.push_str(&table(&rows).text(2, style.columns()));
        for source in published::sources(&rows) {
            let _ = writeln!(out, "  source: {source}");
        }
        out.push('\n');
    }
    for mark in marks(&document.rows) {
        let _ = writeln!(out, "{}", style.heading(&line(&mark)));
    }
    out
}

fn table(rows: &[&Row]) -> Table {
    let mut grid = Table::new(["<", "<unit", "this kernel", "simulated", "±", "error", "target", "<"]);
    let mut variant = "";
    for row in rows {
        if row.variant != variant {
            variant = &row.variant;
            grid.row([variant.to_owned()]);
        }
        let [metric, unit, kernel, simulated, stddev, error, _] = published::cells(row);
        let mut cells = vec![format!("  {metric}"), unit, kernel, simulated, stddev, error];
        if let Some(target) = target_of(&row.metric) {
            let within = row.error.abs() <= target.limit;
            cells.push(format!("{:.0} %", 100.0 * target.limit));
            cells.push(if within { "within" } else { "outside" }.to_owned());
        }
        grid.row(cells);
    }
    grid
}

pub(crate) fn line(mark: &Mark) -> String {
    let Mark { target, rows, within, median, worst } = mark;
    let limit = 100.0 * target.limit;
    format!(
        "score: {}: {within} of {rows} within {limit:.0} %, median |error| {}, worst {}",
        target.what,
        percent(*median),
        percent(*worst)
    )
}
