//! How many migrations fail of late, and what that does to scan periods (kmmscand V3): who cannot move pages need not look
//! for them so often.

use crate::ground::Nanos;

/// Migrations after which old ones count for a quarter.
const WINDOW: u32 = 1024;

/// Migrations that went well and that failed, older ones weighing less.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Feedback {
    ok: u32,
    failed: u32,
    /// Of the window that is under way.
    new_ok: u32,
    new_failed: u32,
}

impl Feedback {
    /// A page moved.
    pub fn moved(&mut self) {
        self.new_ok += 1;
        self.turn();
    }

    /// A page stayed.
    pub fn failed(&mut self) {
        self.new_failed += 1;
        self.turn();
    }

    fn turn(&mut self) {
        if self.new_ok + self.new_failed < WINDOW {
            return;
        }
        self.ok = self.ok / 4 + self.new_ok;
        self.failed = self.failed / 4 + self.new_failed;
        (self.new_ok, self.new_failed) = (0, 0);
    }

    /// Failed migrations in a hundred.
    pub fn failed_percent(&self) -> u64 {
        let all = u64::from(self.ok) + u64::from(self.failed);
        (100 * u64::from(self.failed)).checked_div(all).unwrap_or(0)
    }

    /// `period`, longer by a time itself for every ten percent that failed. It is not clamped again: in V3 it may exceed the
    /// largest period.
    pub fn stretch(&self, period: Nanos) -> Nanos {
        Nanos(period.0 * (1 + self.failed_percent() / 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_migrations_count_for_a_quarter() {
        let mut feedback = Feedback::default();
        (0..1023).for_each(|_| feedback.failed());
        assert_eq!(feedback.failed_percent(), 0, "the first window is not full");
        feedback.failed();
        assert_eq!((feedback.failed_percent(), feedback.stretch(Nanos(100))), (100, Nanos(1100)));
        (0..1024).for_each(|_| feedback.moved());
        // 256 of 1280.
        assert_eq!((feedback.failed_percent(), feedback.stretch(Nanos(100))), (20, Nanos(300)));
    }
}
