//! From what the simulation measured to a [`Run`].

use std::collections::BTreeMap;

use mm::Nanos;
use sim::Measurements;

use super::plan::{Change, Plan, Variant};
use super::player::Play;
use crate::drive::figures;
use crate::evidence::{self, Checked, Table};
use crate::measurements::{CHANGES_NOT_REACHED, Run};
use crate::reach::{self, Refusal};

/// What a run is made of.
pub(super) struct Parts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) variant: &'a Variant,
    pub(super) play: &'a Play,
    pub(super) measured: &'a Measurements,
    /// Knobs that cannot act.
    pub(super) refused: &'a [Refusal],
    /// From the first task's start to the last one's end.
    pub(super) simulated: Nanos,
    /// Changes that were to come after the last task's end.
    pub(super) changes_not_reached: u64,
}

pub(super) fn run(parts: &Parts<'_>) -> Run {
    let Parts { plan, variant, play, measured, refused, simulated, changes_not_reached } = parts;
    let stage = &play.stage;
    let changed = plan.changes.iter().map(|change| change.knob);
    let set = variant.knobs.iter().map(|(knob, _)| *knob).chain(changed);
    let mut run = Run {
        workload: workload_name(plan, play),
        machine: plan.profile.name().to_owned(),
        machine_digest: plan.profile.digest(),
        policy: plan.policy.name().to_owned(),
        variant: variant.name(),
        seed: plan.seed,
        knobs: figures::knobs(&variant.knobs),
        notes: notes(plan, variant),
        knob_uses: reach::uses(set, refused, measured),
        counters: stage.mm.views().counters().0.into_iter().chain(figures::slab_counters(stage)).collect(),
        omissions: omissions(play, *changes_not_reached),
        ..figures::run(stage, measured, *simulated, stage.mm.views().memory_use())
    };
    evidence::label(&mut run, Table::bundled(), &plan.policy, &plan.profile, Checked::ByRows);
    run
}

fn workload_name(plan: &Plan, play: &Play) -> String {
    let name = &play.workload.name;
    match (plan.copies, plan.repeat) {
        (1, 1) => name.clone(),
        (copies, 1) => format!("{name}, {copies} copies"),
        (copies, repeat) => format!("{name}, {copies} copies, {repeat} rounds each"),
    }
}

/// What no mainline kernel has, and what changes while it runs.
fn notes(plan: &Plan, variant: &Variant) -> Vec<String> {
    let mut notes = figures::not_in_mainline(&variant.knobs);
    for Change { at, knob, value } in &plan.changes {
        let change =
            format!("{}={} from {} ms on", knob.spec().name, knob.written(*value), at.0 as f64 / 1e6);
        notes.push(match figures::not_in_mainline(&[(*knob, *value)]).first() {
            Some(lacking) => format!("{change}; {lacking}"),
            None => change,
        });
    }
    notes
}

fn omissions(play: &Play, changes_not_reached: u64) -> BTreeMap<String, u64> {
    let mut omissions = play.workload.omissions.by_name();
    if changes_not_reached > 0 {
        omissions.insert(CHANGES_NOT_REACHED.to_owned(), changes_not_reached);
    }
    omissions.extend(play.stage.tally.omissions().map(|(name, count)| (name.to_owned(), count)));
    omissions
}
