//! A bell that a daemon sleeps on. Ringing it again before it was heard costs one load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The bell.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: AtomicBool,
    gate: Mutex<()>,
    bell: Condvar,
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The bell was rung.
    Raised,
    /// The time was up.
    TimedOut,
    /// The daemon is to end.
    Stopped,
}

impl Signal {
    /// Rings. Stays rung until somebody waits.
    pub(crate) fn raise(&self) {
        // The load saves a write to the line. One that is out of date loses this ring, which may be: who rings has found memory short,
        // and the next who does rings again. AcqRel pairs with the swap in `wait`: what was written before the ring is seen by who heard it.
        let already = self.raised.load(Ordering::Relaxed) || self.raised.swap(true, Ordering::AcqRel);
        if !already {
            self.notify();
        }
    }

    /// Lets all who wait look at their stop flags.
    pub(crate) fn notify(&self) {
        // A waiter looks with the gate held: it has either seen what changed, or waits by now.
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        drop(gate);
        self.bell.notify_all();
    }

    /// Waits until the bell is rung, `stop` is set, or, where it is given, `at_most` has passed.
    pub(crate) fn wait(&self, stop: &AtomicBool, at_most: Option<Duration>) -> Woken {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Acquire pairs with the release of who stops: what it did before is done.
            if stop.load(Ordering::Acquire) {
                return Woken::Stopped;
            }
            // Taken back before the waiter looks around, so that a ring during its work is kept for the next wait.
            if self.raised.swap(false, Ordering::AcqRel) {
                return Woken::Raised;
            }
            gate = match at_most {
                None => self.bell.wait(gate).unwrap_or_else(PoisonError::into_inner),
                Some(at_most) => {
                    let waited = self.bell.wait_timeout(gate, at_most);
                    let (gate, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    if result.timed_out() {
                        return Woken::TimedOut;
                    }
                    gate
                }
            };
        }
    }
}
