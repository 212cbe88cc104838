//! What each knob that was set did: it acted, it was read but changed no decision, or it could not act.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab::measurements::{Group, KnobOutcome, KnobUses, Scene};

use crate::style::Style;

/// A line for each variant and knob; empty where no knob was set.
pub fn text(style: Style, scene: &Scene<'_>) -> String {
    let mut out = String::new();
    for group in &scene.groups {
        for (knob, uses) in of_group(group) {
            if out.is_empty() {
                let _ = writeln!(out, "{}", style.heading("what the knobs did"));
            }
            let sentence = match uses.outcome {
                KnobOutcome::Acted | KnobOutcome::AtDefault => uses.sentence(),
                KnobOutcome::Consulted | KnobOutcome::RefusedButForced => style.bad(&uses.sentence()),
            };
            let _ = writeln!(out, "  {}: {sentence}", place(group, &knob));
        }
    }
    out
}

/// The lines of one variant, without colours.
pub(crate) fn lines(group: &Group<'_>) -> Vec<String> {
    of_group(group).into_iter().map(|(knob, uses)| format!("{knob}: {}", uses.sentence())).collect()
}

/// The variant's name, and the knob's where the former does not begin with it.
fn place(group: &Group<'_>, knob: &str) -> String {
    let label = &group.label;
    if label.starts_with(knob) && !label.contains(' ') { label.clone() } else { format!("{label}: {knob}") }
}

/// What each knob did in all repetitions together.
pub(crate) fn of_group(group: &Group<'_>) -> BTreeMap<String, KnobUses> {
    let mut all: BTreeMap<String, KnobUses> = BTreeMap::new();
    for (knob, uses) in group.runs.iter().flat_map(|run| &run.knob_uses) {
        match all.get_mut(knob) {
            None => {
                all.insert(knob.clone(), uses.clone());
            }
            Some(sum) => sum.add(uses),
        }
    }
    all
}
