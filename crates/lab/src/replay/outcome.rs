//! From what the simulation measured to a [`Run`].

use std::collections::BTreeMap;

use mm::Nanos;
use sim::Measurements;

use super::objects;
use super::plan::{Plan, Variant};
use super::player::Play;
use crate::measurements::{Confidence, Run};
use crate::results;

/// What a run is made of.
pub(super) struct Parts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) variant: &'a Variant,
    pub(super) play: &'a Play,
    pub(super) measured: &'a Measurements,
    /// From the first task's start to the last one's end.
    pub(super) simulated: Nanos,
}

pub(super) fn run(parts: &Parts<'_>) -> Run {
    let Parts { plan, variant, play, measured, simulated } = parts;
    let stage = &play.stage;
    Run {
        workload: workload_name(plan, play),
        machine: plan.profile.name().to_owned(),
        policy: plan.policy.name().to_owned(),
        variant: variant.name(),
        seed: plan.seed,
        confidence: Confidence::Extrapolated,
        confidence_reason: confidence_reason(plan),
        knobs: results::knobs(&variant.knobs),
        counters: stage.mm.counters().0.into_iter().chain(objects::counters(stage)).collect(),
        omissions: omissions(play),
        ..results::run(stage, measured, *simulated, stage.mm.memory_use())
    }
}

fn workload_name(plan: &Plan, play: &Play) -> String {
    let name = &play.workload.name;
    match (plan.copies, plan.repeat) {
        (1, 1) => name.clone(),
        (copies, 1) => format!("{name}, {copies} copies"),
        (copies, repeat) => format!("{name}, {copies} copies, {repeat} rounds each"),
    }
}

fn confidence_reason(plan: &Plan) -> String {
    format!(
        "how many pages a refill or drain moves follows {}'s rules, which are held against kernels; times on {} rest on \
         published and estimated latencies that were not checked against a run of that machine",
        plan.policy.name(),
        plan.profile.name()
    )
}

fn omissions(play: &Play) -> BTreeMap<String, u64> {
    let mut omissions = play.workload.omissions.by_name();
    omissions.extend(play.stage.tally.omissions().map(|(name, count)| (name.to_owned(), count)));
    omissions
}
