//! What changed: each variant against the first, in a headline and a line for each figure. Only what differs beyond the
//! seeds' own differences, and of a time beyond the model's interval, is called a change; what got worse is named as well as what got better.

use std::fmt::Write as _;

use lab::measurements::{Change, Group, Sample, Scene, Told, changes};

use crate::interval::{self, Model};
use crate::latency::{span_title, spans};
use crate::style::Style;
use crate::table::wrap;
use crate::units::figure;

/// Changes below this many percent are not worth a sentence.
const NOTICEABLE_PERCENT: f64 = 1.0;

/// A headline is about spans and locks that took this part of the run's time at least, if there is one.
const WEIGHTY_SHARE: f64 = 0.01;

/// How many changes a headline lists besides the first.
const LISTED: usize = 6;

/// Locks that have a line where somebody waited for them.
const LOCKS: [&str; 3] = ["zone", "list", "barn"];

/// What is asked of a recorded program, in the order in which it is said.
const PROGRAM: [&str; 16] = [
    "elapsed_ns",
    "cpu_ns",
    "walk_ns",
    "peak_rss",
    "page_faults",
    "huge_faults",
    "pages_copied",
    "major_faults",
    "swapped_in",
    "swapped_out",
    "refaults_anon",
    "refaults_file",
    "killed",
    "fork_ns",
    "forked_fault_p99_ns",
    "forked_copies",
];

/// Titles are this wide.
const TITLE: usize = 27;

/// Which changes a list is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Those for the better.
    Better,
    /// Those for the worse.
    Worse,
}

/// For each variant after the first: a headline, then a line per kind of span, the locks that people ask for, throughput
/// and failed allocations. Empty where there is one variant only.
pub fn text(style: Style, scene: &Scene<'_>) -> String {
    let Some((base, others)) = scene.groups.split_first() else { return String::new() };
    let mut out = String::new();
    let seeds = scene.groups.iter().map(|group| group.runs.len()).min().unwrap_or(0);
    for other in others {
        let all = changes(base, other);
        let _ = writeln!(out, "{}", style.heading(&format!("{} -> {}", base.label, other.label)));
        for line in wrap(&headline(&all, [base, other]), style.columns() - 2) {
            let _ = writeln!(out, "  {}", style.heading(&line));
        }
        for line in lines(style, scene, &all) {
            let _ = writeln!(out, "  {line}");
        }
    }
    if seeds > 1 && !others.is_empty() {
        let _ = writeln!(
            out,
            "  {}",
            style.faint(&format!("± half of the 95 % interval of a mean over {seeds} seeds"))
        );
        let model = "in brackets: where the machine itself has the change of a time with 80 %";
        let _ = writeln!(out, "  {}", style.faint(model));
    }
    out
}

/// What changed most, which way, between which means; what else got better; what got worse; and what no mainline kernel
/// has. One line, to be wrapped.
pub fn headline(all: &[Change], groups: [&Group<'_>; 2]) -> String {
    let seeds = groups.iter().map(|group| group.runs.len()).min().unwrap_or(0);
    let mut said = vec![];
    if seeds < 2 {
        said.push("One seed: no interval; another may say otherwise.".to_owned());
    }
    let mut real: Vec<&Change> = all.iter().filter(|change| is_real(change)).collect();
    real.sort_by(|one, other| other.ratio().total_cmp(&one.ratio()));
    match lead(all, &real) {
        None if seeds < 2 => said.push("No noticeable change.".into()),
        None if all.iter().all(|change| change.told() == Told::Same) => {
            said.push("Identical in all seeds.".into());
        }
        None if all.iter().any(is_seen) => said.push("Nothing exceeds the model's interval.".into()),
        None => said.push("No difference beyond the seeds'.".into()),
        Some(lead) => {
            said.push(format!(
                "Changed most: {}, {} ({}).",
                title(&lead.figure.name),
                amount(lead),
                figures(lead)
            ));
            let rest: Vec<&Change> = real.into_iter().filter(|change| !std::ptr::eq(*change, lead)).collect();
            let exact = |sample: &Sample| sample.min() == sample.max();
            if seeds >= 2 && all.iter().all(|change| exact(&change.before) && exact(&change.after)) {
                said.push("All seeds agree to the bit.".into());
            }
            let lead_is_better = lead.is_better() == Some(true);
            let (better, worse) =
                if lead_is_better { ("Also better", "Worse") } else { ("Better", "Also worse") };
            said.extend(list(better, &rest, Side::Better));
            said.extend(list(worse, &rest, Side::Worse));
            let got_worse = |change: &&Change| change.is_better() == Some(false);
            if seeds >= 2 && lead_is_better && !rest.iter().any(got_worse) {
                said.push("Nothing got worse beyond the intervals.".into());
            }
        }
    }
    said.extend(not_told_apart(all));
    said.extend(not_in_mainline(groups));
    said.join(" ")
}

/// Whether a change has a direction, is large enough, is not the seeds' (of one seed, nobody knows), and is not what the model may be off by.
pub(crate) fn is_real(change: &Change) -> bool {
    is_seen(change) && Model::of(change).survives()
}

/// The same, whatever the model's interval is: the simulated machine does it.
pub(crate) fn is_seen(change: &Change) -> bool {
    let told = matches!(change.told(), Told::Apart | Told::OneSeed);
    // What the lists are about once is enough: the whole run's time follows from its throughput.
    let listed = change.figure.name != "simulated_ns";
    told && listed && change.is_better().is_some() && is_noticeable(change)
}

/// What the simulated machine does and the real one may not.
fn not_told_apart(all: &[Change]) -> Option<String> {
    let those: Vec<String> = all
        .iter()
        .filter(|change| is_seen(change) && Model::of(change) == Model::Open)
        .map(|change| title(&change.figure.name))
        .collect();
    let more = those.len().saturating_sub(LISTED);
    let mut text = those.get(..LISTED.min(those.len())).filter(|some| !some.is_empty())?.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more below");
    }
    Some(format!("Not told apart, within the model's interval: {text}."))
}

pub(crate) fn is_noticeable(change: &Change) -> bool {
    100.0 * (change.ratio() - 1.0) >= NOTICEABLE_PERCENT
}

/// What the headline is about: of `real`, which is sorted, the first mean, wait, rate or count of failures that matters.
fn lead<'a>(all: &[Change], real: &[&'a Change]) -> Option<&'a Change> {
    let is_summary =
        |change: &&&Change| !change.figure.name.contains("max_ns") && !change.figure.name.contains("p99_ns");
    let weighty = |change: &&&Change| share(all, change) >= WEIGHTY_SHARE;
    let summaries = || real.iter().filter(is_summary);
    summaries().find(weighty).or_else(|| summaries().next()).or_else(|| real.first()).copied()
}

/// What part of the run's time a span or a lock takes, in whichever variant it takes more; 1 for what is no time.
pub(crate) fn share(all: &[Change], change: &Change) -> f64 {
    let of = |name: &str| all.iter().find(|change| change.figure.name == name).map(Change::means);
    let run = of("simulated_ns").map_or(0.0, |(before, after)| before.max(after));
    let (before, after) = change.means();
    let took = match change.figure.name.strip_suffix(".mean_ns") {
        Some(span) => {
            let (count_before, count_after) = of(&format!("{span}.count")).unwrap_or((0.0, 0.0));
            (before * count_before).max(after * count_after)
        }
        None if change.figure.unit == "ns" => before.max(after),
        None => return 1.0,
    };
    if run > 0.0 { took / run } else { 1.0 }
}

/// `Worse: page free p99 27.0 times longer (135 ns -> 3.646 µs), pages allocated 3 % less (…).`
fn list(heading: &str, changes: &[&Change], side: Side) -> Option<String> {
    let those: Vec<String> = changes
        .iter()
        .filter(|change| change.is_better() == Some(side == Side::Better))
        .map(|change| match side {
            Side::Better => format!("{} {}", title(&change.figure.name), amount(change)),
            Side::Worse => format!("{} {} ({})", title(&change.figure.name), amount(change), figures(change)),
        })
        .collect();
    let more = those.len().saturating_sub(LISTED);
    let mut text = those.get(..LISTED.min(those.len())).filter(|some| !some.is_empty())?.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more below");
    }
    Some(format!("{heading}: {text}."))
}

/// The knobs of either that no mainline kernel has.
fn not_in_mainline(groups: [&Group<'_>; 2]) -> Option<String> {
    let mut names: Vec<&str> = groups
        .iter()
        .flat_map(|group| &group.first().notes)
        .filter(|note| note.contains("no mainline kernel has this"))
        .filter_map(|note| note.split('=').next())
        .collect();
    names.dedup();
    (!names.is_empty()).then(|| format!("No mainline kernel has {}.", names.join(", ")))
}

/// A figure's name as people say it.
pub(crate) fn title(name: &str) -> String {
    let Some((subject, what)) = name.rsplit_once('.') else {
        return match name {
            "pages_per_second" => "pages allocated".into(),
            "operations_per_second" => "operations".into(),
            "simulated_ns" => "whole run".into(),
            "elapsed_ns" => "run time".into(),
            "cpu_ns" => "CPU time".into(),
            "walk_ns" => "of it, page walks".into(),
            "peak_rss" => "peak RSS".into(),
            "fork_ns" => "fork of largest process".into(),
            "forked_fault_p99_ns" => "its fault p99 after it".into(),
            "forked_copies" => "memory copied after it".into(),
            other => other.replace('_', " "),
        };
    };
    if let Some(recording) = subject.strip_prefix("recording.") {
        return format!("{recording} {}", title(what));
    }
    let subject = match subject.strip_prefix("lock.") {
        Some(class) => format!("{class} lock"),
        None => span_title(subject),
    };
    let what = match what {
        "mean_ns" => "mean",
        "p99_ns" => "p99",
        "max_ns" => "max",
        "wait_ns" => "wait",
        "wait_max_ns" => "longest wait",
        other => other,
    };
    format!("{subject} {what}")
}

fn lines(style: Style, scene: &Scene<'_>, all: &[Change]) -> Vec<String> {
    let of = |name: String| all.iter().find(|change| change.figure.name == name);
    let mut lines = vec![];
    for name in PROGRAM {
        if let Some(change) = of(name.to_owned()).filter(|change| !is_constant(change)) {
            lines.push(row(style, &format!("{:<TITLE$} ", title(name)), change));
        }
    }
    let by_recording = all.iter().filter(|change| change.figure.name.starts_with("recording."));
    for change in by_recording.filter(|change| !is_constant(change)) {
        lines.push(row(style, &format!("{:<TITLE$} ", title(&change.figure.name)), change));
    }
    for span in spans(scene) {
        let mut first = span_title(span);
        let mut push = |what: &str, change: &Change| {
            lines.push(row(style, &format!("{first:<TITLE$} {what:<5} "), change));
            first.clear();
        };
        if let Some(mean) = of(format!("{span}.mean_ns")) {
            push("mean", mean);
        }
        for (what, key) in [("p99", "p99_ns"), ("max", "max_ns")] {
            if let Some(tail) = of(format!("{span}.{key}")).filter(|tail| is_seen(tail)) {
                push(what, tail);
            }
        }
        if let Some(count) = of(format!("{span}.count")).filter(|count| !is_constant(count)) {
            push("count", count);
        }
    }
    for class in LOCKS {
        if let Some(wait) = of(format!("lock.{class}.wait_ns")) {
            lines.push(row(style, &format!("{:<TITLE$} waited ", format!("{class} lock")), wait));
        }
        if let Some(longest) = of(format!("lock.{class}.wait_max_ns")).filter(|longest| is_seen(longest)) {
            lines.push(row(style, &format!("{:<TITLE$} at most ", ""), longest));
        }
    }
    for name in ["pages_per_second", "operations_per_second"] {
        if let Some(change) = of(name.to_owned()) {
            lines.push(row(style, &format!("{:<TITLE$} ", title(name)), change));
        }
    }
    if let Some(failed) = of("failed_allocations".into()).filter(|failed| !is_constant(failed)) {
        lines.push(row(style, &format!("{:<TITLE$} ", title("failed_allocations")), failed));
    }
    lines
}

/// Whether nothing is to be said of a count: it is the same in both, in all seeds.
fn is_constant(change: &Change) -> bool {
    let mut values = change.before.values().chain(change.after.values());
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// `head` and the change behind it, on a second line where the first has no room.
fn row(style: Style, head: &str, change: &Change) -> String {
    let plain = match change.told() {
        Told::Same => "the same in all seeds".to_owned(),
        Told::Within => "no difference beyond the seeds'".to_owned(),
        Told::Apart | Told::OneSeed if !is_noticeable(change) => "no noticeable change".to_owned(),
        Told::Apart | Told::OneSeed => by_model(change),
    };
    let figures = figures(change);
    // Two of indentation, a comma and a space.
    let taken = [head, &figures, &plain].map(|part| part.chars().count()).iter().sum::<usize>() + 4;
    let gap =
        if taken > style.columns() { format!("\n{:1$}", "", head.chars().count() + 2) } else { " ".into() };
    let said = match change.is_better().filter(|_| is_real(change)) {
        None => plain,
        Some(true) => style.good(&plain),
        Some(false) => style.bad(&plain),
    };
    format!("{head}{figures},{gap}{said}")
}

/// How much a change is, and what of that the model's interval leaves.
fn by_model(change: &Change) -> String {
    let said = amount(change);
    match (Model::of(change), interval::range(change)) {
        (Model::Open, _) => format!("{said}: not told apart"),
        (Model::Silent, _) => format!("{said} (no interval)"),
        (_, Some(range)) => format!("{said} ({range})"),
        (_, None) => said,
    }
}

/// `101.3 µs ± 3 % -> 4.380 µs ± 1 %`.
pub(crate) fn figures(change: &Change) -> String {
    let of = |sample: &Sample| estimate(change.figure.unit, sample);
    format!("{} -> {}", of(&change.before), of(&change.after))
}

/// A mean with half of its interval, in percent of it; of one seed, and of none that differ, the mean alone.
pub(crate) fn estimate(unit: &str, sample: &Sample) -> String {
    let mean = sample.mean().unwrap_or(0.0);
    let said = figure(unit, mean);
    let half = sample.mean_interval().map_or(0.0, |interval| (interval.high - interval.low) / 2.0);
    match 100.0 * half / mean.abs() {
        percent if half == 0.0 || !percent.is_finite() => said,
        ..0.05 => format!("{said} ± <0.1 %"),
        percent @ ..0.95 => format!("{said} ± {percent:.1} %"),
        percent => format!("{said} ± {percent:.0} %"),
    }
}

/// `23.1 times shorter`, `9 % more`, `from nothing`, `gone`.
pub(crate) fn amount(change: &Change) -> String {
    let (before, after) = change.means();
    let word = match (change.figure.unit, after < before) {
        ("ns", true) => "shorter",
        ("ns", false) => "longer",
        ("count", true) => "fewer",
        (_, true) => "less",
        (_, false) => "more",
    };
    match change.ratio() {
        _ if before == 0.0 => "from nothing".into(),
        _ if after == 0.0 => "gone".into(),
        2.0.. => format!("{:.1} times {word}", change.ratio()),
        _ => format!("{:.0} % {word}", 100.0 * (after - before).abs() / before),
    }
}
