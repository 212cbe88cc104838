//! A line per kind of span and variant: how many, mean, percentiles, the longest.

use lab::measurements::{Distribution, Group, Latency, Scene};

use crate::interval;
use crate::style::Style;
use crate::table::Table;
use crate::units::duration;

/// Spans in the order that people ask for them; others follow by name.
const FIRST: [&str; 5] = ["refill", "drain", "page_alloc", "page_free", "fault"];

/// The name of a span with the kernel function that it stands for.
pub fn span_title(span: &str) -> String {
    match span {
        "refill" => "refill (rmqueue_bulk)".into(),
        "drain" => "drain (free_pcppages_bulk)".into(),
        "page_alloc" => "page allocation".into(),
        "page_free" => "page free".into(),
        "fault" => "page fault".into(),
        "slab_alloc" => "slab object allocation".into(),
        "slab_free" => "slab object free".into(),
        other => other.replace('_', " "),
    }
}

/// The spans that happened in any variant of `scene`.
pub fn spans<'a>(scene: &Scene<'a>) -> Vec<&'a str> {
    let mut spans: Vec<&str> = vec![];
    for run in scene.groups.iter().flat_map(|group| &group.runs) {
        for (span, latency) in &run.latency {
            if latency.count > 0 && !spans.contains(&span.as_str()) {
                spans.push(span);
            }
        }
    }
    let place = |span: &str| FIRST.iter().position(|first| *first == span).unwrap_or(FIRST.len());
    spans.sort_by_key(|span| (place(span), *span));
    spans
}

/// All repetitions of a span in one distribution.
pub fn pooled(group: &Group<'_>, span: &str) -> Distribution {
    Distribution::pool(of(group, span))
}

/// The table of simulated latencies. Counts, means and maxima are over all repetitions, percentiles are the mean of the repetitions'. Beside a
/// mean stands the model's interval of it.
pub fn table(style: Style, scene: &Scene<'_>) -> String {
    text(style, &grid(scene))
}

/// The same of latencies that were measured on a real machine, of which no model tells.
pub(crate) fn measured(style: Style, scene: &Scene<'_>) -> String {
    let heads = ["<latency", "<", "count", "mean", "p50", "p99", "max", "total"];
    text(style, &rows(Table::new(heads), scene, |_, _| None))
}

fn text(style: Style, table: &Table) -> String {
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

pub(crate) fn grid(scene: &Scene<'_>) -> Table {
    let heads = ["<latency", "<", "count", "mean", "80 %", "p50", "p99", "max", "total"];
    rows(Table::new(heads), scene, |span, mean| {
        Some(interval::of_figure(&format!("{span}.mean_ns"), "ns", mean))
    })
}

/// A row for each span and group; `beside` a mean stands what there is to say of it.
fn rows(mut table: Table, scene: &Scene<'_>, beside: impl Fn(&str, f64) -> Option<String>) -> Table {
    for span in spans(scene) {
        for group in &scene.groups {
            let all = pooled(group, span);
            if all.count == 0 {
                continue;
            }
            let percentile = |of_one: fn(&Latency) -> u64| {
                let each: Vec<f64> = of(group, span).map(|latency| of_one(latency) as f64).collect();
                duration(each.iter().sum::<f64>() / each.len() as f64)
            };
            let mean = all.mean_ns() as f64;
            let named = [span.to_owned(), group.label.clone(), all.count.to_string(), duration(mean)];
            let rest = [
                percentile(|latency| latency.p50_ns),
                percentile(|latency| latency.p99_ns),
                duration(all.max_ns as f64),
                duration(all.total_ns as f64),
            ];
            table.row(named.into_iter().chain(beside(span, mean)).chain(rest));
        }
    }
    table
}

fn of<'a>(group: &Group<'a>, span: &str) -> impl Iterator<Item = &'a Latency> {
    group.runs.iter().filter_map(move |run| run.latency.get(span)).filter(|latency| latency.count > 0)
}
