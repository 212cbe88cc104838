//! An experiment's account: rows beside published ones, histograms beside published ones, sweeps, where means come from,
//! the score.

use std::fmt::Write as _;

use lab::measurements::{
    Account, Confidence, Distribution, Document, HistogramPair, Role, Row, Run, Score, SweepMetric,
    SweepTable,
};

use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units::{duration, plural};
use crate::{bounds, explain, findings, histogram, interval, latency, monitor, published, samples};

/// All experiments of a document.
pub fn accounts(style: Style, document: &Document) -> String {
    let mut parts: Vec<String> = document.experiments.iter().map(|of| account(style, document, of)).collect();
    parts.push(findings::text(style, &document.findings));
    parts.push(bounds::text(style, &document.fail_if));
    parts.push(interval::text(style, document));
    parts.extend(interval::coverage_line(&document.rows).map(|line| paragraph(style, "all:", &line)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// One experiment of a document.
pub fn account(style: Style, document: &Document, of: &Account) -> String {
    let mut parts = vec![heading(style, document, of)];
    let rows: Vec<&Row> = document.rows.iter().filter(|row| row.experiment == of.name).collect();
    if !rows.is_empty() {
        parts.push(table(style, &rows));
    }
    parts.extend(of.histograms.iter().map(|pair| beside(style, pair)));
    parts.extend(of.sweeps.iter().map(|table| sweep(style, table)));
    parts.extend(of.explanations.iter().map(|of| explain::text(style, of)));
    let runs: Vec<&Run> = document.runs.iter().filter(|run| run.experiment == of.name).collect();
    parts.push(samples::tables(style, &runs, &rows));
    if runs.iter().any(|run| run.counters.contains_key("pgfault")) {
        parts.push(monitor::table(style, &runs));
    }
    parts.push(confidence(style, &runs));
    parts.push(reasons(style, &rows));
    parts.extend(
        of.not_compared
            .iter()
            .map(|not| paragraph(style, "not compared:", &format!("{}: {}", not.figures, not.because))),
    );
    parts.extend(
        document.score.iter().filter(|score| score.experiment == of.name).map(|score| line(style, score)),
    );
    parts.extend(
        interval::coverage(&rows).map(|inside| paragraph(style, "inside of 80 % intervals:", &inside)),
    );
    if !of.learnt.is_empty() {
        parts.push(paragraph(style, "learnt:", &of.learnt));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// The figures that do not count, by role and reason.
fn reasons(style: Style, rows: &[&Row]) -> String {
    let mut said: Vec<((Role, &str), Vec<String>)> = vec![];
    let counts = |row: &&&Row| !matches!(row.role, Role::Predicted | Role::Zero | Role::Exact);
    for row in rows.iter().filter(counts).filter(|row| row.published.is_finite()) {
        let this = (row.role, row.because.as_str());
        let name = format!("{} of {}", row.metric, row.variant);
        match said.iter_mut().find(|(other, _)| *other == this) {
            Some((_, names)) => names.push(name),
            None => said.push((this, vec![name])),
        }
    }
    said.sort_by_key(|((role, _), _)| *role);
    let one = |((role, because), names): ((Role, &str), Vec<String>)| {
        let label = format!("{}:", role.name());
        match because {
            "" => paragraph(style, &label, &names.join(", ")),
            because => paragraph(style, &label, &format!("{} ({because})", names.join(", "))),
        }
    };
    said.into_iter().map(one).collect()
}

/// A text behind a label.
fn paragraph(style: Style, label: &str, text: &str) -> String {
    let lines = wrap(&format!("{label} {text}"), style.columns() - 2).join("\n  ");
    lines.replacen(label, &style.heading(label), 1) + "\n"
}

fn heading(style: Style, document: &Document, of: &Account) -> String {
    let mut out = style.heading(&format!("{}: {}", of.name, of.title)) + "\n";
    for line in wrap(&of.about, style.columns() - 2) {
        let _ = writeln!(out, "  {line}");
    }
    let runs = document.runs.iter().filter(|run| run.experiment == of.name);
    let mut cases: Vec<(&str, f64, u64)> = vec![];
    for run in runs {
        match cases.iter_mut().find(|case| case.0 == run.variant) {
            Some(case) => case.2 += 1,
            None => cases.push((&run.variant, run.simulated_ns as f64, 1)),
        }
    }
    let (shortest, longest) =
        cases.iter().fold((f64::MAX, 0.0f64), |(low, high), case| (low.min(case.1), high.max(case.1)));
    if let Some(seeds) = cases.iter().map(|case| case.2).max() {
        // A phase ends a little before or after its time.
        let length = if longest < 1.01 * shortest {
            duration(longest)
        } else {
            format!("{} to {}", duration(shortest), duration(longest))
        };
        let _ = writeln!(out, "  {}, {length} simulated for each", plural(seeds, "seed"));
    }
    out
}

/// The rows, under the variants that they are of, and where the figures come from.
fn table(style: Style, rows: &[&Row]) -> String {
    let mut grid = Table::new(["<", "<unit", "published", "simulated", "±", "error", "<"]);
    let mut variant = "";
    for row in rows {
        if row.variant != variant {
            variant = &row.variant;
            grid.row([variant.to_owned()]);
        }
        let [metric, cells @ ..] = published::cells(row);
        grid.row(std::iter::once(format!("  {metric}")).chain(cells));
    }
    let mut out = grid.text(2, style.columns());
    for source in published::sources(rows) {
        for (index, line) in wrap(source, style.columns() - 10).iter().enumerate() {
            let _ = writeln!(out, "  {} {line}", if index == 0 { "source:" } else { "       " });
        }
    }
    out
}

/// The published histogram beside the simulated one.
fn beside(style: Style, pair: &HistogramPair) -> String {
    let scale = if pair.over_seconds > 0.0 {
        format!("simulated, as of {} s", pair.over_seconds)
    } else {
        "simulated, as of so many".to_owned()
    };
    let title = format!("{}: {}", pair.variant, latency::span_title(&pair.span));
    let columns =
        [("published", Distribution::from(&pair.published)), (&*scale, Distribution::from(&pair.simulated))];
    format!("{}\n\n{}", style.heading(&title), histogram::side_by_side(style, &columns))
}

/// A table for each metric, and the verdicts.
fn sweep(style: Style, table: &SweepTable) -> String {
    let mut out = style.heading(&table.title) + "\n";
    let _ = writeln!(out, "  columns are values of {}", table.knob);
    for metric in &table.metrics {
        out.push_str(&values(table, metric).text(2, style.columns()));
        out.push('\n');
    }
    if table.verdicts.is_empty() {
        return out;
    }
    for line in wrap(&table.criterion, style.columns() - 2) {
        let _ = writeln!(out, "  {line}");
    }
    out.push_str(&verdicts(table).text(2, style.columns()));
    out
}

fn values(table: &SweepTable, metric: &SweepMetric) -> Table {
    let heads = table.values.iter().map(u64::to_string);
    let mut grid = Table::new(std::iter::once(format!("<{}", metric.metric)).chain(heads));
    for (row, means) in table.rows.iter().zip(&metric.means) {
        let cells = means.iter().map(|mean| figure(mean.unwrap_or(f64::NAN), &metric.unit));
        grid.row(std::iter::once(row.clone()).chain(cells));
    }
    grid
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        _ if !value.is_finite() => "-".into(),
        "ns" => duration(value),
        _ => published::number(value),
    }
}

fn verdicts(table: &SweepTable) -> Table {
    let mut grid = Table::new(["<machine", "at the usual value", "<needs it", "value", "costs"]);
    for verdict in &table.verdicts {
        let advised = match (verdict.needed, verdict.advised) {
            (false, _) => "-".to_owned(),
            (true, Some(value)) => value.to_string(),
            (true, None) => "none is enough".to_owned(),
        };
        grid.row([
            verdict.row.clone(),
            figure(verdict.usual, &table.criterion_unit),
            if verdict.needed { "yes" } else { "no" }.to_owned(),
            advised,
            if verdict.cost_percent.is_finite() {
                format!("{:+.1} %", verdict.cost_percent)
            } else {
                "-".into()
            },
        ]);
    }
    grid
}

/// Each label with its reason, and what it is said of where there are several.
fn confidence(style: Style, runs: &[&Run]) -> String {
    let mut said: Vec<((Confidence, &str), Vec<&str>)> = vec![];
    for run in runs {
        let this = (run.confidence, run.confidence_reason.as_str());
        let known = said.iter().position(|(other, _)| *other == this);
        let at = known.unwrap_or_else(|| {
            said.push((this, vec![]));
            said.len() - 1
        });
        let of = &mut said[at].1;
        if !of.contains(&run.machine.as_str()) {
            of.push(&run.machine);
        }
    }
    let mut out = String::new();
    for ((confidence, reason), machines) in &said {
        let label = match said.len() {
            1 => format!("{confidence}:"),
            _ => format!("{confidence} on {}:", machines.join(", ")),
        };
        out += &paragraph(style, &label, reason);
    }
    out
}

/// The score in a line or two.
fn line(style: Style, score: &Score) -> String {
    let mut parts = vec![plural(score.independent_rows, "independent row")];
    if score.independent_rows > 0 {
        parts.push(format!("median |error| {}", published::percent(score.median_abs_error)));
        parts.push(format!("worst {}", published::percent(score.worst_abs_error)));
    }
    if score.direction_rows > 0 {
        parts.push(format!("{} of {} directions right", score.direction_right, score.direction_rows));
    }
    if score.direction_unqualified > 0 {
        parts.push(format!("{} did not qualify", plural(score.direction_unqualified, "direction")));
    }
    let not_counted = [
        (score.fitted_rows, "fitted"),
        (score.derived_rows, "derived"),
        (score.noise_rows, "within noise"),
        (score.zero_rows, "0 = 0"),
        (score.exact_rows, "exact"),
    ];
    let not_counted = not_counted.iter().filter(|(rows, _)| *rows > 0);
    let not_counted: Vec<String> = not_counted.map(|(rows, what)| format!("{rows} {what}")).collect();
    if !not_counted.is_empty() {
        parts.push(format!("not counted: {}", not_counted.join(" + ")));
    }
    if score.histograms > 0 {
        let worst = match score.worst_emd_buckets {
            worst if worst.is_finite() => format!("{worst:.2} buckets off at most"),
            _ => "not all simulated".to_owned(),
        };
        parts.push(format!("{} {worst}", plural(score.histograms, "histogram")));
    }
    let text = wrap(&format!("score: {}", parts.join(", ")), style.columns());
    text.iter().map(|line| style.heading(line) + "\n").collect()
}
