//! Ending simulations from outside: whoever starts a thread says which sign ends the simulations that the thread makes. The sign
//! reaches no result but that one: a run that goes to its end is the same with and without.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static SIGN: RefCell<Stop> = const { RefCell::new(Stop(None)) };
}

/// Simulations that this thread makes from here on end with [`SimError::Stopped`](crate::SimError::Stopped) once `sign` is set, at
/// the next moment at which the engine takes up a task.
pub fn stop_when(sign: Arc<AtomicBool>) {
    SIGN.set(Stop(Some(sign)));
}

/// Whether this thread's sign is set: a simulation that it made may not have come to its end.
pub fn is_stopped() -> bool {
    Stop::of_thread().is_set()
}

/// A simulation's sign, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// The present thread's.
    pub(crate) fn of_thread() -> Self {
        SIGN.with_borrow(Clone::clone)
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: nothing is read that was written before the sign was set.
        self.0.as_ref().is_some_and(|sign| sign.load(Ordering::Relaxed))
    }
}
