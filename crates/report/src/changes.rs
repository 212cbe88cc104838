//! What changed, in a few sentences: each variant against the first.

use std::fmt::Write as _;

use lab::measurements::{Group, Scene};

use crate::heading::mean_of;
use crate::latency::{pooled, span_title, spans};
use crate::locks;
use crate::style::Style;
use crate::units::{duration, rate};

/// Changes below this many percent are not worth a sentence.
const NOTICEABLE_PERCENT: f64 = 1.0;

/// Locks that have a line where somebody waited for them.
const LOCKS: [&str; 3] = ["zone", "list", "barn"];

/// A line per kind of span, the locks that people ask for and the throughput, for each variant after the first; empty
/// where there is one variant only.
pub fn text(style: Style, scene: &Scene<'_>) -> String {
    let Some((base, others)) = scene.groups.split_first() else { return String::new() };
    let mut out = String::new();
    for other in others {
        let _ = writeln!(out, "{}", style.heading(&format!("{} -> {}", base.label, other.label)));
        for line in lines(style, scene, base, other) {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn lines(style: Style, scene: &Scene<'_>, base: &Group<'_>, other: &Group<'_>) -> Vec<String> {
    let mut lines = vec![];
    for span in spans(scene) {
        let (before, after) = (pooled(base, span), pooled(other, span));
        if before.count == 0 || after.count == 0 {
            continue;
        }
        let (mean_before, mean_after) = (before.mean_ns() as f64, after.mean_ns() as f64);
        let change = lower_is_better(style, mean_before, mean_after);
        let title = span_title(span);
        lines.push(format!(
            "{title:<27} mean {} -> {}, {change}",
            duration(mean_before),
            duration(mean_after)
        ));
        if before.count != after.count {
            lines.push(format!("{:<27} {} -> {} of them", "", before.count, after.count));
        }
    }
    lines.extend(LOCKS.into_iter().filter_map(|class| waited(style, class, base, other)));
    lines.extend(throughput(style, base, other));
    lines
}

/// What waiting for the locks of a class came to; `None` where nobody waited.
fn waited(style: Style, class: &str, base: &Group<'_>, other: &Group<'_>) -> Option<String> {
    let wait = |group| locks::pooled(group, class).wait_ns as f64;
    let (before, after) = (wait(base), wait(other));
    let change = (before > 0.0 || after > 0.0).then(|| lower_is_better(style, before, after))?;
    let (before, after) = (duration(before), duration(after));
    Some(format!("{:<27} waited {before} -> {after} in all, {change}", format!("{class} lock")))
}

fn throughput(style: Style, base: &Group<'_>, other: &Group<'_>) -> Option<String> {
    let mean = |group| mean_of(group, |run| run.throughput.pages_per_second);
    let (before, after) = (mean(base), mean(other));
    if before <= 0.0 {
        return None;
    }
    let percent = 100.0 * (after - before) / before;
    let change = match percent {
        _ if percent.abs() < NOTICEABLE_PERCENT => "no noticeable change".to_owned(),
        0.0.. => style.good(&format!("{percent:.0} % more")),
        _ => style.bad(&format!("{:.0} % less", -percent)),
    };
    Some(format!("{:<27} {} -> {}, {change}", "pages allocated", rate(before), rate(after)))
}

fn lower_is_better(style: Style, before: f64, after: f64) -> String {
    if before == 0.0 || 100.0 * (after - before).abs() < NOTICEABLE_PERCENT * before {
        return match (before, after) {
            (0.0, after) if after > 0.0 => style.bad("from nothing"),
            _ => "no noticeable change".into(),
        };
    }
    let (amount, word) =
        if after < before { (before / after, "shorter") } else { (after / before, "longer") };
    let text = match amount {
        _ if after == 0.0 => "gone".to_owned(),
        2.0.. => format!("{amount:.1} times {word}"),
        _ => format!("{:.0} % {word}", 100.0 * (after - before).abs() / before),
    };
    if after < before { style.good(&text) } else { style.bad(&text) }
}
