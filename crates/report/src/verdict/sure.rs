//! How sure the answer is: its weakest part, and why it is no surer.

use lab::measurements::{Confidence, Label, Run, least_confidence};
use mm::policy::Mechanism;

use super::item;
use crate::style::Style;

/// A line: `extrapolated, for times of page lists: no published figure …`. Empty without runs.
pub fn sure(style: Style, runs: &[Run]) -> String {
    let Some((weakest, reason)) = least_confidence(runs) else { return String::new() };
    let label = format!("{weakest}:");
    match of_mechanisms(runs, weakest) {
        Some(said) => item(style, 0, &label, &said),
        None if reason.is_empty() => item(style, 0, &label, "no reason was recorded"),
        None => item(style, 0, &label, reason),
    }
}

/// `times of page lists, slabs: why`, of the mechanisms whose label is `weakest`, with the first one's reason.
fn of_mechanisms(runs: &[Run], weakest: Confidence) -> Option<String> {
    let mut first: Option<&Label> = None;
    // What is so of each: counts, times.
    let mut found: Vec<(&'static str, [bool; 2])> = vec![];
    for run in runs {
        for mechanism in Mechanism::ALL {
            let Some(of) = run.labels.get(mechanism.name()) else { continue };
            for (what, label) in [Some(&of.counts), of.times.as_ref()].into_iter().enumerate() {
                let Some(label) = label.filter(|label| label.label == weakest) else { continue };
                first.get_or_insert(label);
                match found.iter_mut().find(|(name, _)| *name == mechanism.words()) {
                    Some((_, is_so)) => is_so[what] = true,
                    None => found.push((mechanism.words(), [what == 0, what == 1])),
                }
            }
        }
    }
    let mut parts: Vec<String> = vec![];
    while let Some(&(_, kind)) = found.first() {
        let (same, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, of)| *of == kind);
        found = others;
        let names: Vec<&str> = same.into_iter().map(|(name, _)| name).collect();
        let names = match names.len() {
            1..=2 => names.join(", "),
            many => format!("{}, {} more", names[0], many - 1),
        };
        let what = if kind == [true; 2] { "" } else { ["times of ", "counts of "][usize::from(kind[0])] };
        parts.push(format!("{what}{names}"));
    }
    Some(format!("{}: {}", parts.join(", "), first?.reason))
}
