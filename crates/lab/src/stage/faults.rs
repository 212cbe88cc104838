//! Faults of recorded programs' tasks, by what these are called.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Faults so far, by name, in the order in which a task first had it.
#[derive(Debug, Default)]
pub(crate) struct TaskFaults(RefCell<Vec<(String, Rc<Cell<u64>>)>>);

impl TaskFaults {
    /// Where a task that is called `name` counts its own.
    pub(crate) fn of(&self, name: &str) -> Rc<Cell<u64>> {
        let mut all = self.0.borrow_mut();
        if let Some((_, faults)) = all.iter().find(|(known, _)| known == name) {
            return Rc::clone(faults);
        }
        let faults = Rc::default();
        all.push((name.to_owned(), Rc::clone(&faults)));
        faults
    }

    /// The names so far.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.borrow().iter().map(|(name, _)| name.clone()).collect()
    }

    /// The faults of each so far.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.0.borrow().iter().map(|(_, faults)| faults.get()).collect()
    }
}
