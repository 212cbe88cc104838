//! What a fair scheduler answers about tasks of the same weight on one CPU: who gets it, and whether who has it has to give it up.

/// Who takes turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::conform::scenes) enum Task {
    Program,
    Kswapd,
    /// A worker of the kernel's work queues, which has little to do.
    Worker,
    /// The one that writes dirty pages.
    Flusher,
}

/// Something of each.
#[derive(Debug, Default)]
pub(super) struct Tasks<T>([T; 4]);

impl<T> Tasks<T> {
    pub(super) fn get(&self, task: Task) -> &T {
        &self.0[task as usize]
    }

    pub(super) fn of(&mut self, task: Task) -> &mut T {
        &mut self.0[task as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Task, &T)> {
        [Task::Program, Task::Kswapd, Task::Worker, Task::Flusher].into_iter().zip(&self.0)
    }
}

/// Rules of turns. Times are of the CPU, in ns. Who has the CPU had it since it was picked.
pub(super) trait Fair: std::fmt::Debug {
    /// From now on the program counts as so many tasks, which share what it has.
    fn set_programs(&mut self, programs: i64);
    /// Who has the CPU had it for so long.
    fn ran(&mut self, ns: i64);
    /// A tick looks at who has the CPU; says whether somebody else should be asked.
    fn tick(&mut self) -> bool;
    /// In how long the slice of who has the CPU ends, where that is seen at once and not at the next tick.
    fn slice_left(&self) -> Option<i64>;
    /// The slice of who has the CPU is over.
    fn slice_ends(&mut self);
    /// `task` has something to do; says whether somebody else should be asked.
    fn wake(&mut self, task: Task) -> bool;
    /// Who has the CPU has nothing more to do.
    fn sleep(&mut self);
    /// Who gets the CPU.
    fn pick(&mut self) -> Option<Task>;
}
