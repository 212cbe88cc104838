//! Turns before 6.6, as 6.1 has them (CFS): who has had least gets the CPU. Who was woken is placed half a period before the others at most, and
//! has it at once where it is a millisecond behind.

use super::fair::{Fair, Task, Tasks};

/// In such a time everybody has the CPU once (`sched_latency`), on one CPU.
const PERIOD: i64 = 6_000_000;

/// Shorter than this nobody has it because of a tick (`sched_min_granularity`).
const LEAST: i64 = 750_000;

/// Who is woken gets the CPU at once if it had so much less than who has it (`sched_wakeup_granularity`).
const BEHIND: i64 = 1_000_000;

#[derive(Debug)]
struct Entity {
    /// As how many it counts.
    weight: i64,
    /// Time had by each of these. Only differences mean something.
    had: i64,
    is_queued: bool,
}

impl Default for Entity {
    fn default() -> Self {
        Self { weight: 1, had: 0, is_queued: false }
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct Cfs {
    /// How many times as long all this is on the machine's CPUs.
    factor: i64,
    tasks: Tasks<Entity>,
    current: Option<Task>,
    /// How long the current task has had the CPU since it was picked.
    since: i64,
    /// What everybody has had at least.
    least: i64,
}

impl Cfs {
    /// On a machine of so many CPUs; nobody is there.
    pub(super) fn new(cpus: usize) -> Self {
        let factor = i64::from(1 + cpus.max(1).ilog2());
        Self { factor, tasks: Tasks::default(), current: None, since: 0, least: 0 }
    }

    fn queued(&self) -> impl Iterator<Item = (Task, &Entity)> {
        self.tasks.iter().filter(|(_, entity)| entity.is_queued)
    }

    fn had_of_current(&self) -> Option<i64> {
        self.current.map(|task| self.tasks.get(task).had)
    }

    fn keep_least(&mut self) {
        let least = self.queued().map(|(_, entity)| entity.had).min();
        self.least = self.least.max(least.unwrap_or(self.least));
    }
}

impl Fair for Cfs {
    fn set_programs(&mut self, programs: i64) {
        self.tasks.of(Task::Program).weight = programs;
    }

    fn ran(&mut self, ns: i64) {
        if let Some(task) = self.current {
            let entity = self.tasks.of(task);
            entity.had += ns / entity.weight;
            self.since += ns;
            self.keep_least();
        }
    }

    fn tick(&mut self) -> bool {
        let others = self.queued().filter(|(task, _)| Some(*task) != self.current);
        let (Some(other), Some(had)) = (others.map(|(_, entity)| entity.had).min(), self.had_of_current())
        else {
            return false;
        };
        let part = PERIOD * self.factor / self.queued().map(|(_, entity)| entity.weight).sum::<i64>();
        self.since > part || self.since >= LEAST * self.factor && had - other > part
    }

    fn slice_left(&self) -> Option<i64> {
        None
    }

    fn slice_ends(&mut self) {}

    fn wake(&mut self, task: Task) -> bool {
        if self.tasks.get(task).is_queued {
            return false;
        }
        let at_least = self.least - PERIOD * self.factor / 2;
        let entity = self.tasks.of(task);
        entity.had = entity.had.max(at_least);
        entity.is_queued = true;
        let had = entity.had;
        self.had_of_current().is_none_or(|current| current - had > BEHIND * self.factor)
    }

    fn sleep(&mut self) {
        if let Some(task) = self.current.take() {
            self.tasks.of(task).is_queued = false;
            self.keep_least();
        }
    }

    fn pick(&mut self) -> Option<Task> {
        let current = self.current;
        let least = self.queued().min_by_key(|(task, entity)| (entity.had, Some(*task) != current));
        let task = least.map(|(task, _)| task);
        if task != current {
            (self.current, self.since) = (task, 0);
        }
        task
    }
}
