//! Which CPU a task wakes on: its last one if that is idle, else the least loaded one; sibling threads and shared caches
//! count. Also, which task an idle CPU takes from others.

use std::cmp::Reverse;

use super::sched::Sched;
use super::state::CpuMode;
use crate::lines::Lines;
use crate::locks::NOBODY;
use crate::task::Role;

/// The CPU for `task`, which has just been woken.
pub(super) fn choose(sched: &Sched, task: u32, lines: &Lines) -> u16 {
    let task = &sched.tasks[task as usize];
    let idle = |cpu: u16| sched.cpus[usize::from(cpu)].mode == CpuMode::Idle;
    let alone = |cpu: u16| idle(cpu) && lines.busy_near(cpu).core == 0;
    if task.allowed.len() == 1 || alone(task.cpu) {
        return task.cpu;
    }
    let burden = |cpu: u16| {
        let state = &sched.cpus[usize::from(cpu)];
        let load = state.queue.len() + usize::from(state.mode != CpuMode::Idle);
        let near = lines.busy_near(cpu);
        (load, near.core, near.llc, cpu != task.cpu, cpu)
    };
    task.allowed.iter().map(|cpu| cpu.0).min_by_key(|&cpu| burden(cpu)).unwrap_or(task.cpu)
}

/// Takes, for the idle `cpu`, the first task that may run there from the longest queue that has one.
pub(super) fn steal(sched: &mut Sched, cpu: u16) -> Option<u32> {
    let may = |sched: &Sched, task: u32| {
        let task = &sched.tasks[task as usize];
        task.role == Role::Ordinary && task.allowed.iter().any(|allowed| allowed.0 == cpu)
    };
    let has_one = |from: &usize| {
        let state = &sched.cpus[*from];
        // One that only waits for its CPU to come out of idleness is about to run.
        state.current != NOBODY && state.queue.iter().any(|task| may(sched, *task))
    };
    let from = (0..sched.cpus.len())
        .filter(has_one)
        .max_by_key(|from| (sched.cpus[*from].queue.len(), Reverse(*from)))?;
    let at = sched.cpus[from].queue.iter().position(|task| may(sched, *task))?;
    sched.cpus[from].queue.remove(at)
}
