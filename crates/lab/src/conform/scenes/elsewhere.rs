//! kswapd of a node whose CPUs the program is not on. The testbed has one thread for all CPUs, and a clock that counts the instructions
//! of all: who runs has the thread until the next timer, and often again after it. So another CPU works while the program's sleeps, and else
//! only now and then (docs/reclaim.md#kswapds-turns).

use std::cell::Cell;

use mm::Nanos;
use mm::version::Version;

/// How long after a wake another CPU has the thread first: at the next tick or so.
const FIRST: u64 = 4_000_000;

/// How long it is from one turn to the next. Traces of two scenes have 16 and 64 ms (6.12), 20 ms (6.18) and 2 to 20 ms (7.2, whose slices end
/// by timers of their own); for 7.2 that of five lengths was chosen at which its captures of two nodes came nearest (docs/reclaim.md#kswapds-turns).
fn every(version: Version) -> u64 {
    if version >= Version::new(7, 2) { 4_000_000 } else { 20_000_000 }
}

/// How long it has the thread, half of a tick on average.
const FOR: u64 = 2_000_000;

/// The turns of another CPU, in the capture's time.
#[derive(Debug)]
pub(super) struct Elsewhere {
    every: u64,
    next: Cell<u64>,
    left: Cell<u64>,
}

impl Elsewhere {
    /// Those of a kernel's guests.
    pub(super) fn new(version: Version) -> Self {
        Self { every: every(version), next: Cell::default(), left: Cell::default() }
    }

    /// It has something to do from `now` on.
    pub(super) fn wake(&self, now: Nanos) {
        self.next.set(now.0 + FIRST);
    }

    /// Whether it gets the thread at `now`: from then on for [`FOR`].
    pub(super) fn takes_turn(&self, now: Nanos) -> bool {
        let is_due = now.0 >= self.next.get();
        if is_due {
            self.next.set(now.0 + self.every);
            self.left.set(FOR);
        }
        is_due
    }

    /// The program's CPU sleeps: it has the thread for as long as it likes.
    pub(super) fn leave_alone(&self) {
        self.left.set(u64::MAX);
    }

    /// It worked for `ns`; says whether its turn is over.
    pub(super) fn ran(&self, ns: u64) -> bool {
        self.left.set(self.left.get().saturating_sub(ns));
        self.left.get() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cpu_works_now_and_then_unless_it_is_alone() {
        let cpu = Elsewhere::new(Version::new(6, 18));
        cpu.wake(Nanos(1_000_000));
        let takes_turn = |ns| cpu.takes_turn(Nanos(ns));
        assert!(!takes_turn(4_999_999));
        assert!(takes_turn(5_000_000));
        assert!(!cpu.ran(1_999_999) && cpu.ran(1));
        assert!(!takes_turn(24_999_999));
        assert!(takes_turn(25_000_000));
        cpu.leave_alone();
        assert!(!cpu.ran(1_000_000_000));
    }
}
