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

/// `times of page lists and slabs: why`, of the mechanisms whose label is `weakest`, with the first one's reason.
fn of_mechanisms(runs: &[Run], weakest: Confidence) -> Option<String> {
    let mut found: Vec<(&'static str, &'static str, &Label)> = vec![];
    for run in runs {
        for mechanism in Mechanism::ALL {
            let Some(of) = run.labels.get(mechanism.name()) else { continue };
            for (what, label) in [("counts", Some(&of.counts)), ("times", of.times.as_ref())] {
                let Some(label) = label.filter(|label| label.label == weakest) else { continue };
                if !found.iter().any(|&(other, of, _)| (other, of) == (what, mechanism.words())) {
                    found.push((what, mechanism.words(), label));
                }
            }
        }
    }
    let (_, _, first) = *found.first()?;
    let mut names: Vec<String> = vec![];
    for (what, of, _) in &found {
        match names.iter_mut().find(|name| name.ends_with(&format!(" of {of}"))) {
            // Both are.
            Some(name) => (*of).clone_into(name),
            None => names.push(format!("{what} of {of}")),
        }
    }
    let others = match names.len() {
        1..=3 => names.join(", "),
        many => format!("{} and {} more", names[..2].join(", "), many - 2),
    };
    Some(format!("{others}: {}", first.reason))
}
