//! The outcome of holding mm against captures and traces of stock kernels: a line per disagreement, a count at the end.

use std::fmt::Write as _;

use lab::conform::{CachesCompared, CounterRow, FileOutcome, PagesMoved, Sides, StayedRow};

use crate::style::Style;
use crate::units::plural;

/// A line per file and per disagreement, what moved in a page trace, and the count.
pub fn outcomes(style: Style, outcomes: &[FileOutcome]) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        out.push_str(&file(style, outcome));
    }
    let compared: u64 = outcomes.iter().map(|outcome| outcome.compared).sum();
    let disagreements: usize = outcomes.iter().map(|outcome| outcome.differences.len()).sum();
    let _ = writeln!(
        out,
        "{}, {} compared, {}",
        plural(outcomes.len() as u64, "file"),
        plural(compared, "figure"),
        plural(disagreements as u64, "disagreement"),
    );
    out
}

fn file(style: Style, outcome: &FileOutcome) -> String {
    let verdict = format!("{} of {} equal", outcome.equal, outcome.compared);
    let verdict = if outcome.differences.is_empty() { style.good(&verdict) } else { style.bad(&verdict) };
    let policy = if outcome.policy.is_empty() { String::new() } else { format!(" ({})", outcome.policy) };
    let mut out = format!("{}{policy}: {verdict}\n", outcome.file);
    for difference in &outcome.differences {
        let _ = writeln!(out, "  {difference}");
    }
    out.push_str(&counted(outcome));
    let caches = outcome.caches.map(|CachesCompared { compared, equal }| {
        format!("{}, {equal} with every figure equal", plural(compared, "slab cache"))
    });
    let details = outcome.pages.iter().flat_map(pages).chain(caches);
    for line in details.chain(outcome.notes.iter().cloned()) {
        let _ = writeln!(out, "  {}", style.faint(&line));
    }
    out
}

/// What was counted while memory was short, real beside simulated, and which pages stayed.
fn counted(outcome: &FileOutcome) -> String {
    let mut out = String::new();
    if outcome.counters.is_empty() && outcome.stayed.is_empty() {
        return out;
    }
    let _ = writeln!(
        out,
        "  {:<34}{:>10}{:>12}{:>9}  worst at a mark",
        "since the first mark", "real", "simulated", "error"
    );
    for row in &outcome.counters {
        let CounterRow { counter, kernel, freehold, percent, worst_percent, worst_mark } = row;
        let _ = write!(out, "  {counter:<34}{kernel:>10}{freehold:>12}{percent:>+8.1}%");
        let _ = writeln!(out, "  {worst_percent:+.1}% {worst_mark}");
    }
    let errors: Vec<f64> = outcome.counters.iter().map(|row| row.percent.abs()).collect();
    let _ = writeln!(
        out,
        "  {} counters: off by {:.1} % at the median, {:.1} % at most",
        errors.len(),
        median(&errors),
        errors.iter().copied().fold(0.0, f64::max)
    );
    for StayedRow { name, mean_points, worst_points, worst_mark } in &outcome.stayed {
        let _ = writeln!(
            out,
            "  {:<34}off by {mean_points:.1} points of an eighth on average, {worst_points:.1} at most ({worst_mark})",
            format!("which pages: {name}")
        );
    }
    out
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// What moved between page lists and buddy lists, a line a kind.
fn pages(moved: &PagesMoved) -> Vec<String> {
    let both = [("refills", moved.refills), ("drains", moved.drains)];
    let mut lines: Vec<String> = both.into_iter().map(|(what, sides)| both_sides(what, &sides)).collect();
    if moved.drains_by_kswapd != Sides::default() {
        lines.push(both_sides("drains by kswapd, not compared", &moved.drains_by_kswapd));
    }
    let told =
        [("emptied by drain_all", moved.drains_of_all), ("taken from idle lists", moved.drains_of_idle)];
    for (what, moves) in told.into_iter().filter(|(_, moves)| moves.count > 0) {
        lines.push(format!("{what}, told to mm: {} of {} pages", moves.count, moves.pages));
    }
    lines
}

fn both_sides(what: &str, Sides { kernel, freehold }: &Sides) -> String {
    let error = match kernel.pages {
        0 => String::new(),
        pages => format!(" ({:+.2} %)", 100.0 * (freehold.pages as f64 / pages as f64 - 1.0)),
    };
    format!(
        "{what}: kernel {} of {} pages, freehold {} of {} pages{error}",
        kernel.count, kernel.pages, freehold.count, freehold.pages,
    )
}
