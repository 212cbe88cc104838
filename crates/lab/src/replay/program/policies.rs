//! What programs say of nodes while they run. A policy is a task's in Linux, and a process's here: who is not alone in its address space
//! cannot change it.

use mm::vm::mempolicy::MemPolicy;

use super::process::{Memory, Outcome, Process};
use crate::program::{Call, PageRange, SaidPolicy, WhatIsThere, node_mask};
use crate::stage::Stage;

/// Policies of tasks that share an address space with others; policies of nodes that this machine lacks.
const OF_THREADS: &str = "policies_of_threads";
const NO_NODES: &str = "policies_of_nodes_that_the_machine_lacks";

/// Makes such a call.
pub(super) fn make(stage: &Stage, process: &Process, call: &Call) -> Outcome {
    match *call {
        Call::Bind { range, policy, there } => bind(stage, process, range, (policy, there)),
        Call::SetPolicy(policy) => set(stage, process, policy),
        Call::MoveNodes { from, to } => {
            stage.mm.rmap().move_nodes(&process.space, node_mask(from), node_mask(to));
            Outcome::Done
        }
        _ => Outcome::LeftOut,
    }
}

fn bind(
    stage: &Stage,
    process: &Process,
    PageRange { start, pages }: PageRange,
    (policy, there): (SaidPolicy, WhatIsThere),
) -> Outcome {
    let spaces = stage.mm.spaces();
    let tasks = process.memory().policy;
    let policy = match policy.policy() {
        None => {
            stage.mm.rmap().unbind(&process.space, start, pages, tasks);
            tasks
        }
        Some(policy) if spaces.mbind(&process.space, start, pages, policy).is_err() => {
            return Outcome::NotMade(NO_NODES);
        }
        Some(policy) => policy,
    };
    if there == WhatIsThere::Moves {
        stage.mm.rmap().move_by_policy(&process.space, start, pages, policy);
    }
    Outcome::Done
}

fn set(stage: &Stage, process: &Process, policy: SaidPolicy) -> Outcome {
    if process.tasks() > 1 {
        return Outcome::NotMade(OF_THREADS);
    }
    let policy = policy.policy().unwrap_or(MemPolicy::Local);
    if stage.mm.rmap().set_mempolicy(&process.space, policy).is_err() {
        return Outcome::NotMade(NO_NODES);
    }
    process.set_memory(Memory { policy, ..process.memory() });
    Outcome::Done
}
