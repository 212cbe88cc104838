//! The short answer of `lab run`: how near each experiment came to what was published, what went another way, and how sure that is.

use lab::measurements::{Account, Direction, Document, Role, Row, Run, Score, SweepTable, scenes};

use super::{WORDS, item, more, remarks, sure};
use crate::explain;
use crate::published::{error, number, percent};
use crate::style::Style;
use crate::units::plural;
use crate::{bounds, findings, interval};

/// Comparisons, figures or machines that are named; the tables have all.
const NAMED: usize = 3;

/// A paragraph for each experiment.
pub fn experiments(style: Style, document: &Document) -> String {
    let mut out = String::new();
    for account in &document.experiments {
        out += &of(style, document, account);
    }
    out += &findings::short(style, &document.findings, &scenes(&document.runs), WORDS);
    out += &bounds::text(style, &document.fail_if);
    if let Some(coverage) = interval::coverage_line(&document.rows).filter(|_| document.experiments.len() > 1)
    {
        out += &item(style, 0, "all:", &coverage);
    }
    if out.is_empty() { out } else { out + &more(style, "every figure beside the published one") }
}

fn of(style: Style, document: &Document, account: &Account) -> String {
    let rows: Vec<&Row> = document.rows.iter().filter(|row| row.experiment == account.name).collect();
    let runs: Vec<Run> = document.runs.iter().filter(|run| run.experiment == account.name).cloned().collect();
    let mut out = String::new();
    for line in crate::table::wrap(&format!("{}: {}", account.name, account.title), style.columns()) {
        out += &(style.heading(&line) + "\n");
    }
    for score in document.score.iter().filter(|score| score.experiment == account.name) {
        out += &item(style, 2, "published:", &beside(score, &rows));
    }
    if let Some(coverage) = interval::coverage(&rows) {
        out += &item(style, 2, "inside of 80 % intervals:", &coverage);
    }
    out += &comparisons(style, &rows);
    out += &inexact(style, &rows);
    if rows.iter().all(|row| !row.published.is_finite()) {
        out += &unpublished(style, &rows);
    }
    out += &account.sweeps.iter().map(|table| sweep(style, table)).collect::<String>();
    // Somebody asked for them.
    out += &account.explanations.iter().map(|of| explain::text(style, of)).collect::<String>();
    out += &remarks::text(style, &runs, &scenes(&runs));
    out + &sure(style, &runs)
}

/// `12 independent figures, median |error| 8.9 %, worst -40.2 % (refill.mean_ns of epyc-5); not counted: 4 fitted`.
fn beside(score: &Score, rows: &[&Row]) -> String {
    let mut parts = vec![plural(score.independent_rows, "independent figure")];
    if score.independent_rows > 0 {
        parts.push(format!("median |error| {}", percent(score.median_abs_error)));
        let counts =
            |row: &&&Row| row.role == Role::Predicted && row.error.is_finite() && row.unit != "buckets";
        let size = |row: &Row| if row.unit == "percent" { row.error.abs() / 100.0 } else { row.error.abs() };
        let worst = rows.iter().filter(counts).max_by(|one, other| size(one).total_cmp(&size(other)));
        if let Some(row) = worst {
            parts.push(format!("worst {} ({} of {})", error(row), row.metric, row.variant));
        }
        parts.extend(without_bound(rows));
    }
    if score.direction_rows > 0 {
        parts.push(format!("{} of {} directions right", score.direction_right, score.direction_rows));
    }
    if score.fitted_rows > 0 {
        parts.push(format!("{} more were fitted", score.fitted_rows));
    }
    parts.join(", ")
}

/// Figures that are infinitely far off: published as 0 and simulated otherwise, or not simulated at all.
fn without_bound(rows: &[&Row]) -> Option<String> {
    let is_one =
        |row: &&&Row| row.role == Role::Predicted && row.published.is_finite() && !row.error.is_finite();
    let first = rows.iter().find(is_one)?;
    let count = rows.iter().filter(is_one).count();
    Some(format!("{count} infinitely far off ({} of {})", first.metric, first.variant))
}

/// Comparisons: those that went another way than published first.
fn comparisons(style: Style, rows: &[&Row]) -> String {
    let mut compared: Vec<&&Row> = rows.iter().filter(|row| row.direction.is_some()).collect();
    compared
        .sort_by_key(|row| row.direction.map_or(0, |direction| u8::from(direction != Direction::Opposite)));
    let one = |row: &&&Row| {
        let (published, simulated) =
            (signed(row, row.published, ""), signed(row, row.simulated, &spread(row)));
        let way = row.direction.map_or("", Direction::name);
        format!("{} of {}: {simulated}, published {published} ({way})", row.metric, row.variant)
    };
    let named: Vec<String> = compared.iter().take(NAMED).map(one).collect();
    let rest = compared.len().saturating_sub(NAMED);
    let lines: String = named.iter().map(|line| item(style, 2, "change:", line)).collect();
    if rest > 0 { format!("{lines}  {rest} changes more\n") } else { lines }
}

/// ` ±3.20`: the deviation over the seeds, where there is one to speak of.
fn spread(row: &Row) -> String {
    if row.stddev >= 5e-5 { format!(" ±{}", number(row.stddev)) } else { String::new() }
}

/// `-94.3 %` of a change; other units say themselves.
fn signed(row: &Row, value: f64, spread: &str) -> String {
    match row.unit.as_str() {
        "percent" if value.is_finite() => format!("{value:+.1}{spread} %"),
        unit => format!("{}{spread} {unit}", number(value)),
    }
}

/// What had to be equal and is not.
fn inexact(style: Style, rows: &[&Row]) -> String {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|row| row.role == Role::Exact && row.error != 0.0)
        .map(|row| format!("{} of {} ({})", row.metric, row.variant, error(row)))
        .collect();
    if wrong.is_empty() {
        String::new()
    } else {
        item(style, 2, "should be exact and is not:", &wrong.join(", "))
    }
}

/// Figures beside which nothing was published.
fn unpublished(style: Style, rows: &[&Row]) -> String {
    let one = |row: &&Row| {
        let spread = spread(row);
        format!("{} of {} {}{spread} {}", row.metric, row.variant, number(row.simulated), row.unit)
    };
    let named: Vec<String> = rows.iter().take(2 * NAMED).map(one).collect();
    let rest = rows.len().saturating_sub(2 * NAMED);
    if named.is_empty() {
        return String::new();
    }
    let more = if rest > 0 { format!("; {rest} more") } else { String::new() };
    item(style, 2, "simulated:", &(named.join(", ") + &more))
}

/// Which machines need another value than the usual one.
fn sweep(style: Style, table: &SweepTable) -> String {
    let needed: Vec<String> = table
        .verdicts
        .iter()
        .filter(|verdict| verdict.needed)
        .map(|verdict| match verdict.advised {
            Some(value) => format!("{} {value}", verdict.row),
            None => format!("{} none is enough", verdict.row),
        })
        .collect();
    if table.verdicts.is_empty() {
        return item(style, 2, "sweep:", &format!("{}; {} rows", table.title, table.rows.len()));
    }
    let named = needed[..needed.len().min(NAMED)].join(", ");
    let rest = needed.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let text = format!(
        "{}: {} of {} need another value{}{named}{more}",
        table.knob,
        needed.len(),
        table.verdicts.len(),
        if needed.is_empty() { "" } else { ": " }
    );
    item(style, 2, "sweep:", &text)
}
