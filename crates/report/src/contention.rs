//! Policies on real threads: how fast, against the first of them, then latencies and the zone lock.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab::measurements::{Document, Group, Sample, Scene, scenes};

use crate::style::Style;
use crate::table::Table;
use crate::units::rate;
use crate::{heading, latency, locks};

/// For each number of threads a table of speeds, one of latencies and one of locks; then what the figures rest on.
pub fn text(style: Style, document: &Document) -> String {
    let mut out = String::new();
    for mut scene in scenes(&document.runs) {
        // Where policies differ, nobody asks what is not set.
        for group in &mut scene.groups {
            group.label = group.label.trim_end_matches("/defaults").to_owned();
        }
        out.push_str(&style.heading(&format!("{}, on {}", scene.workload, scene.machine)));
        out.push('\n');
        out.push_str(&omissions(style, &scene));
        for table in [
            speeds(&scene).text(0, style.columns()),
            latency::measured(style, &scene),
            locks::table(style, &scene),
        ] {
            if !table.is_empty() {
                out.push_str(&table);
                out.push('\n');
            }
        }
    }
    out + &heading::confidence(style, &document.runs)
}

/// What fell short, a line each; empty where nothing did.
fn omissions(style: Style, scene: &Scene<'_>) -> String {
    let mut out = String::new();
    for group in &scene.groups {
        let all = group.runs.iter().flat_map(|run| &run.omissions);
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        all.for_each(|(kind, count)| *sums.entry(kind).or_default() += count);
        for (kind, count) in sums.into_iter().filter(|(_, count)| *count > 0) {
            let line = format!("{}: {count}", kind.replace('_', " "));
            let _ = writeln!(out, "{}: {}", group.label, style.bad(&line));
        }
    }
    out
}

/// Pages a second of all threads together. The change is that of the median against the first variant's, and where the
/// change of each round against the first variant in the same round lay.
fn speeds(scene: &Scene<'_>) -> Table {
    let mut table =
        Table::new(["<pages allocated", "median", "<rounds", "ns a page", "against the first", "<rounds"]);
    let first = &scene.groups[0];
    for group in &scene.groups {
        let speed = pages_per_second(group);
        let Some(median) = speed.median().filter(|median| *median > 0.0) else { continue };
        let mut row =
            vec![group.label.clone(), rate(median), between(&speed, rate), format!("{:.1}", 1e9 / median)];
        if group.label != first.label {
            let changes = changes(first, group);
            row.extend(changes.median().map(|change| format!("{change:+.1} %")));
            row.push(between(&changes, |change| format!("{change:+.1}")));
        }
        table.row(row);
    }
    table
}

fn pages_per_second(group: &Group<'_>) -> Sample {
    Sample::new(group.runs.iter().map(|run| run.throughput.pages_per_second))
}

/// Percent, round by round, for what disturbs a round disturbs all of it.
fn changes(first: &Group<'_>, group: &Group<'_>) -> Sample {
    let change = |run: &&lab::measurements::Run| {
        let before = first.runs.iter().find(|other| other.seed == run.seed)?.throughput.pages_per_second;
        (before > 0.0).then(|| 100.0 * (run.throughput.pages_per_second / before - 1.0))
    };
    Sample::new(group.runs.iter().filter_map(change))
}

fn between(sample: &Sample, say: impl Fn(f64) -> String) -> String {
    match (sample.min(), sample.max()) {
        (Some(min), Some(max)) => format!("{} to {}", say(min), say(max)),
        _ => String::new(),
    }
}
