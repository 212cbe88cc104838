//! Where experiments meet the simulation: a variant and a seed become a [`Scene`].

use mm::Knob;
use serde::Deserialize;

use crate::experiment::spec::Variant;
use crate::reach::{Refusal, Where, refusals, too_late};
use crate::scene::{self, Outcome, Scene};
use crate::stage;
use crate::workloads::WorkloadSpec;

/// The knobs of `variant`, of its start and of its phases, that cannot act on its workload, machine or under its policy.
pub fn refused(variant: &Variant) -> Vec<Refusal> {
    let setup = &variant.setup;
    let Ok(workload) = WorkloadSpec::deserialize(setup.workload.clone()) else { return vec![] };
    let later = variant.phases.iter().flat_map(|phase| &phase.set);
    let set: Vec<(Knob, u64)> = setup.knobs.iter().chain(later).copied().collect();
    let (topology, brings) = (setup.profile.topology(), workload.brings());
    let mut refused = refusals(&Where { brings, topology: &topology, policy: &setup.policy, set: &set });
    let later = variant.phases.iter().flat_map(|phase| &phase.set).map(|&(knob, _)| knob);
    refused.extend(too_late(later, &stage::AT_START));
    refused
}

/// Simulates a variant: an outcome for each of its phases.
pub(super) fn perform(variant: &Variant, seed: u64) -> Result<Vec<Outcome>, String> {
    let setup = &variant.setup;
    let workload = WorkloadSpec::deserialize(setup.workload.clone());
    let scene = Scene {
        profile: setup.measured().map_err(|error| error.to_string())?,
        policy: setup.policy.clone(),
        knobs: setup.knobs.clone(),
        workload: workload.map_err(|error| format!("workload: {}", error.message()))?,
        seed,
        cpus: setup.cpus.clone(),
        shrink: setup.shrink,
        warm_up: setup.warm_up,
        phases: variant.phases.clone(),
    };
    let in_order = variant.figures.iter().any(|figure| figure.metric.sequence().is_some());
    let outcomes = if in_order { scene::perform_in_order(&scene) } else { scene::perform(&scene) };
    outcomes.map_err(|error| error.to_string())
}
