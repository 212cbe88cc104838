//! What tasks are called, and what those of a name came to: `cc1/0` and `cc1/7` are both of `cc1`.

use mm::Nanos;

use super::Core;
use super::run::Sim;
use crate::time::{Ticks, to_nanos};

/// What tasks of a name came to since measuring began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NameSeen {
    /// Faults.
    pub faults: u64,
    /// What they have waited for locks.
    pub lock_wait: Nanos,
}

/// The same, with a name.
#[derive(Debug)]
struct Named {
    name: String,
    faults: u64,
    waited: Ticks,
}

/// The names so far, in the order in which a task first had them.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Named>);

impl Names {
    /// The number of the name that a task called `task` is of.
    pub(super) fn number(&mut self, task: &str) -> u32 {
        let name = task.rsplit_once('/').map_or(task, |(name, _)| name);
        let known = self.0.iter().position(|known| known.name == name);
        known.unwrap_or_else(|| {
            self.0.push(Named { name: name.to_owned(), faults: 0, waited: 0 });
            self.0.len() - 1
        }) as u32
    }

    /// A task of this name has waited.
    pub(super) fn waited(&mut self, number: u32, wait: Ticks) {
        self.0[number as usize].waited += wait;
    }

    /// A task of this name had a fault.
    pub(super) fn faulted(&mut self, number: u32) {
        self.0[number as usize].faults += 1;
    }

    /// Nobody has waited, or had a fault.
    pub(super) fn reset(&mut self) {
        self.0.iter_mut().for_each(|named| (named.faults, named.waited) = (0, 0));
    }

    fn seen(&self) -> Vec<NameSeen> {
        let seen = |named: &Named| NameSeen { faults: named.faults, lock_wait: to_nanos(named.waited) };
        self.0.iter().map(seen).collect()
    }
}

impl Sim {
    /// The names of tasks so far, without what follows a last slash, in the order of [`super::Passing::by_name`].
    pub fn task_names(&self) -> Vec<String> {
        self.core().sched.borrow().names.0.iter().map(|named| named.name.clone()).collect()
    }
}

impl Core {
    /// What tasks of each name came to.
    pub(super) fn by_name(&self) -> Vec<NameSeen> {
        self.sched.borrow().names.seen()
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
        names.waited(2, 5 << 10);
        names.waited(2, 3 << 10);
        names.faulted(2);
        assert_eq!(names.0[2].name, "a/b");
        assert_eq!(names.seen()[2], NameSeen { faults: 1, lock_wait: Nanos(8) });
        names.reset();
        assert_eq!(names.seen(), [NameSeen::default(); 3]);
    }
}
