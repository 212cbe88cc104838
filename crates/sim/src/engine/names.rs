//! What tasks are called, and how long those of a name have waited for locks: `cc1/0` and `cc1/7` are both of `cc1`.

use mm::Nanos;

use super::Core;
use super::run::Sim;
use crate::time::{Ticks, to_nanos};

/// The names so far, in the order in which a task first had them.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(String, Ticks)>);

impl Names {
    /// The number of the name that a task called `task` is of.
    pub(super) fn number(&mut self, task: &str) -> u32 {
        let name = task.rsplit_once('/').map_or(task, |(name, _)| name);
        let known = self.0.iter().position(|(known, _)| known == name);
        known.unwrap_or_else(|| {
            self.0.push((name.to_owned(), 0));
            self.0.len() - 1
        }) as u32
    }

    /// A task of this name has waited.
    pub(super) fn waited(&mut self, number: u32, wait: Ticks) {
        self.0[number as usize].1 += wait;
    }

    /// Nobody has waited.
    pub(super) fn reset(&mut self) {
        self.0.iter_mut().for_each(|(_, waited)| *waited = 0);
    }
}

impl Sim {
    /// The names of tasks so far, without what follows a last slash, in the order of [`super::Passing::waits`].
    pub fn task_names(&self) -> Vec<String> {
        self.core().sched.borrow().names.0.iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Core {
    /// What tasks of each name have waited for locks.
    pub(super) fn waits(&self) -> Vec<Nanos> {
        self.sched.borrow().names.0.iter().map(|(_, waited)| to_nanos(*waited)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_differ_by_a_number_have_one_name() {
        let mut names = Names::default();
        let numbers = ["cc1/0", "kswapd0", "cc1/1", "a/b/2", "a/b/3"].map(|task| names.number(task));
        assert_eq!(numbers, [0, 1, 0, 2, 2]);
        names.waited(2, 5);
        names.waited(2, 3);
        assert_eq!(names.0[2], ("a/b".to_owned(), 8));
        names.reset();
        assert_eq!(names.0[2].1, 0);
    }
}
