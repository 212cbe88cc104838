//! Turns as of 6.6, as 6.12 has them (EEVDF): who has had no more than the average may have the CPU, and of those whose slice ends first.
//!
//! What a task is owed (its lag, the average less what it has had) it keeps while it sleeps, and is placed by it when it is woken. One that goes
//! to sleep and is ahead stays in the queue until the others have caught up. So whoever joins or leaves moves the average, and with it what
//! everybody is owed. How often these rules were right on traces is in docs/reclaim.md#kswapds-turns.

use mm::version::Version;

use super::TICK;
use super::fair::{Fair, Task, Tasks};

/// The slice on one CPU.
const SLICE: i64 = 700_000;

/// What changed. Traces of 6.12, 6.18 and 7.2 have it so; in which version between them it came is from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rules {
    /// Whenever its time is counted, who has no slice to finish gives way (6.17); before, only who is ahead.
    gives_way_after_slice: bool,
    /// The end of a slice is seen by a timer of its own (`HRTICK`, 7.2), not at the next tick.
    has_timer: bool,
    /// Who is woken before it has left the queue meets an average that is up to date (7.2).
    counts_first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Sleeps,
    /// It sleeps, but stays in the queue, for it is ahead.
    Leaves,
    Queued,
}

#[derive(Debug)]
struct Entity {
    /// As how many it counts.
    weight: i64,
    /// Time had by each of these. Only differences mean something.
    had: i64,
    /// Where its slice ends.
    deadline: i64,
    /// What it was owed when it went to sleep.
    lag: i64,
    place: Place,
    /// It keeps the CPU to the end of its slice, unless it is ahead.
    keeps: bool,
}

impl Default for Entity {
    fn default() -> Self {
        Self { weight: 1, had: 0, deadline: 0, lag: 0, place: Place::Sleeps, keeps: false }
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct Eevdf {
    rules: Rules,
    slice: i64,
    tasks: Tasks<Entity>,
    current: Option<Task>,
    /// What the current task had since its time was last counted.
    uncounted: i64,
}

impl Eevdf {
    /// On a machine of so many CPUs; nobody is there.
    pub(super) fn new(version: Version, cpus: usize) -> Self {
        Self {
            rules: Rules {
                gives_way_after_slice: version >= Version::new(6, 17),
                has_timer: version >= Version::new(7, 2),
                counts_first: version >= Version::new(7, 2),
            },
            slice: SLICE * i64::from(1 + cpus.max(1).ilog2()),
            tasks: Tasks::default(),
            current: None,
            uncounted: 0,
        }
    }

    fn queued(&self) -> impl Iterator<Item = (Task, &Entity)> {
        self.tasks.iter().filter(|(_, entity)| entity.place != Place::Sleeps)
    }

    /// How many are in the queue, and what they have had together.
    fn count_and_sum(&self) -> (i64, i64) {
        self.queued().fold((0, 0), |(count, sum), (_, entity)| {
            (count + entity.weight, sum + entity.weight * entity.had)
        })
    }

    fn is_eligible(&self, task: Task) -> bool {
        let (count, sum) = self.count_and_sum();
        self.tasks.get(task).had * count <= sum
    }

    /// What `task` is owed, as far as that is kept.
    fn lag(&self, task: Task) -> i64 {
        let (count, sum) = self.count_and_sum();
        let entity = self.tasks.get(task);
        let most = TICK.max(2 * self.slice) / entity.weight;
        (sum.div_euclid(count.max(1)) - entity.had).clamp(-most, most)
    }

    /// Counts the current task's time; says whether it should give way.
    fn count(&mut self) -> bool {
        let ran = std::mem::take(&mut self.uncounted);
        let Some(current) = self.current.filter(|_| ran > 0) else { return false };
        let slice = self.slice;
        let entity = self.tasks.of(current);
        entity.had += ran / entity.weight;
        let is_over = entity.had >= entity.deadline;
        if is_over {
            entity.deadline = entity.had + slice / entity.weight;
            entity.keeps = false;
        }
        let is_free = !entity.keeps;
        self.queued().count() > 1
            && (is_over || is_free && (self.rules.gives_way_after_slice || !self.is_eligible(current)))
    }

    /// Into the queue, by what it is owed: `lag` holds after its own weight has moved the average.
    fn enter(&mut self, task: Task) {
        let (count, sum) = self.count_and_sum();
        let slice = self.slice;
        let entity = self.tasks.of(task);
        if count > 0 {
            entity.had = sum.div_euclid(count) - entity.lag * (count + entity.weight) / count;
        }
        entity.deadline = entity.had + slice / entity.weight;
        entity.place = Place::Queued;
    }

    /// It was ahead when it went to sleep; where it no longer is, it begins anew and is owed nothing.
    fn come_back(&mut self, task: Task) {
        if self.rules.counts_first {
            self.count();
        }
        if self.lag(task) > 0 {
            let entity = self.tasks.of(task);
            (entity.place, entity.lag) = (Place::Sleeps, 0);
            self.enter(task);
        }
        self.tasks.of(task).place = Place::Queued;
    }

    /// Who should have the CPU of those in the queue.
    fn best(&self) -> Option<Task> {
        let current = self.current.filter(|task| self.tasks.get(*task).place != Place::Sleeps);
        let current = current.filter(|task| self.is_eligible(*task));
        if let Some(task) = current.filter(|task| self.tasks.get(*task).keeps) {
            return Some(task);
        }
        let others = self.queued().filter(|(task, _)| Some(*task) != self.current && self.is_eligible(*task));
        let other = others.min_by_key(|(_, entity)| entity.deadline);
        match (current, other) {
            (Some(task), Some((_, entity))) if self.tasks.get(task).deadline < entity.deadline => Some(task),
            (_, Some((task, _))) => Some(task),
            (task, None) => task,
        }
    }
}

impl Fair for Eevdf {
    fn set_programs(&mut self, programs: i64) {
        self.count();
        self.tasks.of(Task::Program).weight = programs;
    }

    fn ran(&mut self, ns: i64) {
        self.uncounted += ns;
    }

    fn tick(&mut self) -> bool {
        self.count()
    }

    fn slice_left(&self) -> Option<i64> {
        let current = self.current.filter(|_| self.rules.has_timer && self.queued().count() > 1)?;
        let entity = self.tasks.get(current);
        Some((entity.deadline - entity.had) * entity.weight - self.uncounted)
    }

    fn slice_ends(&mut self) {
        self.count();
    }

    fn wake(&mut self, task: Task) -> bool {
        let mut gives_way = false;
        match self.tasks.get(task).place {
            Place::Queued => return false,
            Place::Leaves => self.come_back(task),
            Place::Sleeps => {
                gives_way = self.count();
                self.enter(task);
            }
        }
        gives_way |= self.count();
        gives_way || self.best() == Some(task)
    }

    fn sleep(&mut self) {
        self.count();
        let Some(task) = self.current.take() else { return };
        if self.is_eligible(task) {
            let lag = self.lag(task);
            let entity = self.tasks.of(task);
            (entity.place, entity.lag) = (Place::Sleeps, lag);
        } else {
            self.tasks.of(task).place = Place::Leaves;
        }
    }

    fn pick(&mut self) -> Option<Task> {
        self.count();
        loop {
            let task = self.best()?;
            if self.tasks.get(task).place == Place::Leaves {
                // It is its turn, and it does not want it: now it is gone, and owed nothing.
                let lag = self.lag(task).min(0);
                let entity = self.tasks.of(task);
                (entity.place, entity.lag) = (Place::Sleeps, lag);
                continue;
            }
            if self.current != Some(task) {
                self.tasks.of(task).keeps = true;
                self.current = Some(task);
            }
            return Some(task);
        }
    }
}
