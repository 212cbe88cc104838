//! Published figures beside simulated ones.

use lab::measurements::{Role, Row};

use super::Chart;
use super::forest::{self, Forest, Point, Unit};
use super::mark::Mark;
use crate::published::{error, grid, number};

/// Rows of a chart; the table has all.
const MOST: usize = 16;

/// Of an experiment: its figures as ratios, its changes in percent; what has nothing to show is left out.
pub(in crate::html) fn charts(name: &str, rows: &[&Row]) -> Vec<Chart> {
    let known = |row: &&&Row| row.published.is_finite() && row.simulated.is_finite();
    let of = |is_change: bool| -> Vec<&Row> {
        let wanted = rows.iter().filter(known).filter(|row| (row.unit == "percent") == is_change);
        wanted.filter(|row| !matches!(row.unit.as_str(), "buckets" | "node")).copied().collect()
    };
    let is_figure = |row: &&Row| row.published > 0.0 && row.simulated > 0.0;
    let figures: Vec<&Row> = of(false).into_iter().filter(is_figure).collect();
    [figures_chart(name, &figures), changes_chart(name, &of(true))].into_iter().flatten().collect()
}

/// Simulated figures as parts of published ones.
fn figures_chart(name: &str, rows: &[&Row]) -> Option<Chart> {
    let row = |row: &&Row| {
        let of = |value: f64| value / row.published;
        let point = Point {
            at: of(row.simulated),
            between: (row.stddev > 0.0)
                .then(|| [of((row.simulated - row.stddev).max(0.0)), of(row.simulated + row.stddev)]),
            mark: Mark::Series(usize::from(row.role == Role::Fitted)),
        };
        let said = format!("{} ({} {})", error(row), number(row.simulated), row.unit);
        forest::Row { label: row.metric.clone(), said, class: "said", points: vec![point] }
    };
    let forest = Forest {
        name: format!(
            "{name}: each simulated figure as a multiple of the published one; the table below has the figures"
        ),
        unit: Unit::Ratio,
        axis: "simulated ÷ published, log scale".into(),
        centre: "as published",
        legend: vec!["not fitted to this figure".into(), "fitted to it".into()],
        rows: under_variants(rows, row),
    };
    finish(
        format!("{name}: simulated against published"),
        "whiskers: deviation over the seeds",
        rows,
        &forest,
    )
}

/// Published and simulated changes on one scale.
fn changes_chart(name: &str, rows: &[&Row]) -> Option<Chart> {
    let row = |row: &&Row| {
        let between = (row.stddev > 0.0).then_some([row.simulated - row.stddev, row.simulated + row.stddev]);
        let points = vec![
            Point {
                at: row.published,
                between: row.published_high.map(|high| [row.published, high]),
                mark: Mark::Series(1),
            },
            Point { at: row.simulated, between, mark: Mark::Series(0) },
        ];
        let way = row.direction.map_or("", lab::measurements::Direction::name);
        let said = format!("{:+.1} %, published {:+.1} %", row.simulated, row.published);
        let class = if way == "opposite way" { "worse" } else { "said" };
        forest::Row { label: row.metric.clone(), said, class, points }
    };
    let forest = Forest {
        name: format!("{name}: published and simulated changes in percent; the table below has the figures"),
        unit: Unit::Percent,
        axis: "change against the baseline, percent".into(),
        centre: "no change",
        legend: vec!["simulated".into(), "published".into()],
        rows: under_variants(rows, row),
    };
    finish(
        format!("{name}: changes, published and simulated"),
        "whiskers: deviation over the seeds",
        rows,
        &forest,
    )
}

/// The first rows, each variant's under its name.
fn under_variants(rows: &[&Row], row: impl Fn(&&Row) -> forest::Row) -> Vec<forest::Row> {
    let mut out = vec![];
    let mut variant = None;
    for of in rows.iter().take(MOST) {
        if variant.replace(&of.variant) != Some(&of.variant) {
            out.push(forest::Row::heading(&of.variant));
        }
        out.push(row(of));
    }
    out
}

fn finish(title: String, note: &str, rows: &[&Row], forest: &Forest) -> Option<Chart> {
    let svg = forest.svg();
    let note = match rows.len().saturating_sub(MOST) {
        0 => note.to_owned(),
        more => format!("{note}; {more} more in the table"),
    };
    (!svg.is_empty()).then(|| Chart { title, note, svg, table: grid(rows) })
}
