//! The whole account of a document's runs on a terminal.

use std::fmt::Write as _;

use lab::measurements::{Document, Scene, compare, scenes};

use crate::style::Style;
use crate::{
    bounds, cgroups, changes, counters, findings, forks, heading, histogram, interval, knob_uses, latency,
    locks, memory, mmtests, proof, published, recordings, to_set,
};

/// Spans whose histograms are shown in full: those that seed the question of batch sizes.
const HISTOGRAMS: [&str; 2] = ["refill", "drain"];

/// Everything: for each workload and machine what ran, what changed, what the knobs did, histograms of refill and drain side by side,
/// latencies, locks, memory and counters; then the comparison, rows beside published ones, and how sure the answer is.
pub fn full(style: Style, document: &Document) -> String {
    let mut parts = vec![];
    for scene in scenes(&document.runs) {
        parts.push(account(style, &scene));
    }
    if document.runs.len() > 1 {
        parts.extend(comparison(style, document));
    }
    if !document.rows.is_empty() || !document.score.is_empty() {
        parts.push(published::table(style, &document.rows, &document.score));
    }
    parts.push(findings::text(style, &document.findings));
    parts.push(bounds::text(style, &document.fail_if));
    parts.push(to_set::text(style, &document.runs));
    parts.push(proof::text(style, &document.proofs));
    parts.push(interval::text(style, document));
    parts.push(heading::confidence(style, &document.runs));
    join(parts)
}

/// One workload on one machine: the answer first, then what it rests on.
pub fn account(style: Style, scene: &Scene<'_>) -> String {
    join(vec![
        heading::scene(style, scene) + &heading::remarks(style, scene),
        changes::text(style, scene),
        recordings::table(style, scene),
        cgroups::table(style, scene),
        forks::text(style, scene),
        knob_uses::text(style, scene),
        histograms(style, scene),
        latency::table(style, scene),
        locks::table(style, scene),
        memory::table(style, scene),
        counters::table(style, scene),
    ])
}

/// Refill and drain, each with the variants side by side.
pub fn histograms(style: Style, scene: &Scene<'_>) -> String {
    let mut parts = vec![];
    for span in latency::spans(scene).into_iter().filter(|span| HISTOGRAMS.contains(span)) {
        let mut text = String::new();
        let _ = writeln!(text, "{}\n", style.heading(&latency::span_title(span)));
        let columns: Vec<(&str, _)> =
            scene.groups.iter().map(|group| (group.label.as_str(), latency::pooled(group, span))).collect();
        text.push_str(&histogram::side_by_side(style, &columns));
        parts.push(text);
    }
    join(parts)
}

fn comparison(style: Style, document: &Document) -> Option<String> {
    let comparison = compare(&[(String::new(), document.clone())]).ok()?;
    comparison.tables.iter().any(|table| table.columns.len() > 1).then(|| mmtests::means(style, &comparison))
}

/// The parts that have something in them, an empty line between.
fn join(parts: Vec<String>) -> String {
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n")
}
