//! What ran, and how sure the answer is.

use std::fmt::Write as _;

use lab::measurements::{Confidence, Group, Run, Scene};

use crate::style::Style;
use crate::table::wrap;
use crate::{labels, units};

/// The workload and the machine, then a line for each variant: policy, knobs, repetitions, simulated time.
pub fn scene(style: Style, scene: &Scene<'_>) -> String {
    let mut out = style.heading(&format!("{} on {}", scene.workload, scene.machine));
    out.push('\n');
    let width = scene.groups.iter().map(|group| group.label.chars().count()).max().unwrap_or(0);
    for group in &scene.groups {
        let _ = writeln!(out, "  {:<width$}  {}", group.label, variant(group));
    }
    out
}

/// `linux-6.18, vm.pcp_batch_scale_max=0, seeds 1 to 3, 2.100 s simulated`.
pub fn variant(group: &Group<'_>) -> String {
    let run = group.first();
    let mut parts = vec![run.policy.clone()];
    parts.extend(run.knobs.iter().map(|(name, value)| format!("{name}={value}")));
    parts.push(seeds(group));
    parts.push(format!("{} simulated", units::duration(mean(group, |run| run.simulated_ns))));
    parts.join(", ")
}

/// The label and why it is not a better one, once for each that differs: `predicted: …`.
pub fn confidence(style: Style, runs: &[Run]) -> String {
    let mut out = String::new();
    let mut said: Vec<(Confidence, &str)> = vec![];
    for run in runs {
        let this = (run.confidence, run.confidence_reason.as_str());
        if said.contains(&this) {
            continue;
        }
        said.push(this);
        let text = match this.1 {
            "" => "no reason was recorded",
            reason => reason,
        };
        let label = format!("{}:", this.0);
        let room = style.columns() - label.len() - 1;
        let lines = wrap(text, room).join(&format!("\n{}", " ".repeat(label.len() + 1)));
        let _ = writeln!(out, "{} {lines}", style.heading(&label));
    }
    out + &labels::text(style, &runs.iter().collect::<Vec<_>>())
}

/// What a reader must know of the figures: what no mainline kernel has, what changed while it ran, what could not be
/// carried out as recorded; a line each, empty where there is nothing.
pub fn remarks(style: Style, scene: &Scene<'_>) -> String {
    let mut out = String::new();
    for group in &scene.groups {
        for note in &group.first().notes {
            // A note of a setting begins with the setting, which may be all that the variant is called.
            let named = note.starts_with(&format!("{}:", group.label));
            let label = if named { String::new() } else { format!("{}: ", group.label) };
            let _ = writeln!(out, "{label}{}", style.bad(note));
        }
    }
    out + &not_as_recorded(style, scene)
}

/// What could not be carried out as recorded, in one line where all variants have the same.
fn not_as_recorded(style: Style, scene: &Scene<'_>) -> String {
    let of_each: Vec<Vec<String>> = scene.groups.iter().map(omissions).collect();
    let same = of_each.windows(2).all(|pair| pair[0] == pair[1]);
    let told = if same { 1 } else { of_each.len() };
    let mut out = String::new();
    for (group, omissions) in scene.groups.iter().zip(&of_each).take(told) {
        if omissions.is_empty() {
            continue;
        }
        let label = if same { String::new() } else { format!("{}: ", group.label) };
        let line = format!("not as recorded: {}", omissions.join(", "));
        let _ = writeln!(out, "{label}{}", style.bad(&line));
    }
    out
}

/// What a variant could not carry out as recorded, a phrase for each kind: `94 frees without allocation`, or `94 to 97` where
/// the seeds differ.
pub(crate) fn omissions(group: &Group<'_>) -> Vec<String> {
    let mut kinds: Vec<&str> =
        group.runs.iter().flat_map(|run| run.omissions.keys()).map(String::as_str).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let phrase = |kind: &str| {
        let counts = || group.runs.iter().map(|run| run.omissions.get(kind).copied().unwrap_or(0));
        let (least, most) = (counts().min()?, counts().max()?);
        let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
        (most > 0).then(|| format!("{count} {}", kind.replace('_', " ")))
    };
    kinds.into_iter().filter_map(phrase).collect()
}

fn seeds(group: &Group<'_>) -> String {
    let first = group.first().seed;
    let consecutive = group.runs.windows(2).all(|pair| pair[0].seed.checked_add(1) == Some(pair[1].seed));
    match group.runs.as_slice() {
        [_] => format!("seed {first}"),
        [.., last] if consecutive => format!("seeds {first} to {}", last.seed),
        runs => {
            let seeds: Vec<String> = runs.iter().map(|run| run.seed.to_string()).collect();
            format!("seeds {}", seeds.join(" "))
        }
    }
}

/// The mean of a count over a group's repetitions.
pub(crate) fn mean(group: &Group<'_>, count: impl Fn(&Run) -> u64) -> f64 {
    mean_of(group, |run| count(run) as f64)
}

/// The mean of a figure over a group's repetitions.
pub(crate) fn mean_of(group: &Group<'_>, figure: impl Fn(&Run) -> f64) -> f64 {
    group.runs.iter().map(|run| figure(run)).sum::<f64>() / group.runs.len() as f64
}
