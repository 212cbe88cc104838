//! Tasks that were killed while they may be waiting for memory: they leave the slow path with an error, and all that
//! they held by then is whole.

use alloc::collections::BTreeSet;

use crate::ground::{AtomicU32, LockClass, Locked, Machine, Relaxed, TaskId};
use crate::pages::Pages;

/// The tasks, and how many there are: nearly always none.
#[derive(Debug)]
pub(super) struct Killed<M: Machine> {
    count: AtomicU32,
    tasks: Locked<M, BTreeSet<TaskId>>,
}

impl<M: Machine> Killed<M> {
    pub(super) fn new(machine: &M) -> Self {
        let tasks = Locked::new(machine, LockClass::Other, 4, BTreeSet::new());
        Self { count: AtomicU32::new(0), tasks }
    }
}

impl<M: Machine> Pages<M> {
    /// `task` has been killed: its requests do not wait any more, but end in [`crate::AllocError::Killed`] where there is
    /// no block at hand. One that sleeps on the machine finds out when it wakes, after 100 ms at most.
    pub fn kill(&self, task: TaskId) {
        let killed = &self.killed;
        let mut tasks = killed.tasks.lock(&self.machine);
        tasks.insert(task);
        killed.count.store(tasks.len() as u32, Relaxed);
    }

    /// `task` has ended: its number may be another's from now on.
    pub fn forget_task(&self, task: TaskId) {
        let killed = &self.killed;
        let mut tasks = killed.tasks.lock(&self.machine);
        tasks.remove(&task);
        killed.count.store(tasks.len() as u32, Relaxed);
    }

    /// Whether `task` has been killed (`fatal_signal_pending`).
    pub fn is_killed(&self, task: TaskId) -> bool {
        let killed = &self.killed;
        killed.count.load(Relaxed) > 0 && killed.tasks.lock(&self.machine).contains(&task)
    }
}
