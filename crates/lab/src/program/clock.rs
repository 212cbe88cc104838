//! How much of the time between two events of a task was its own.
//!
//! What the recorded kernel and the recorder did then is not: the replay charges for that itself. It is taken out as a debt. An event says
//! what began at it (a fault), so its price is owed from then on, and paid with the time that follows.

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    /// Not seen yet.
    #[default]
    Unseen,
    /// There before the recording, which begins at this time: whether it runs or sleeps then is said by what is seen of it first.
    Before(u64),
    /// On a CPU since a time.
    Running(u64),
    /// Off since a time, until it is woken.
    Asleep(u64),
    /// Off, but ready: that wait belongs to the recorded machine.
    Ready,
    /// It exits: what it still does on a CPU is the kernel's.
    Gone,
}

/// A task's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    place: Place,
    /// Own time not yet handed to a step, ns.
    own: f64,
    /// What the kernel is yet to be given of the task's time, ns.
    debt: f64,
    /// What it had of the time that is counted as own already, ns.
    late: f64,
}

impl Clock {
    /// The task was there before the recording, which begins at `time`.
    pub(super) fn begin_before(&mut self, time: u64) {
        self.place = Place::Before(time);
    }

    /// Whether nothing was seen of it since the recording began, at this very `time`.
    pub(super) fn begins_at(&self, time: u64) -> bool {
        self.place == Place::Before(time)
    }

    /// For how long it had slept when something is seen of it at `time` that only a running task does, ns; `None` if it ran.
    pub(super) fn goes_on(&mut self, time: u64) -> Option<u64> {
        let Place::Asleep(_) = self.place else { return None };
        self.enter(time)
    }

    /// Something happens on the task's CPU at `time`.
    pub(super) fn advance(&mut self, time: u64) {
        if let Place::Running(since) | Place::Before(since) = self.place {
            let passed = time.saturating_sub(since) as f64;
            let own = (passed - self.debt).max(0.0);
            let late = own.min(self.late);
            self.late -= late;
            self.own += own - late;
            self.debt = (self.debt - passed).max(0.0);
        }
        self.be(Place::Running(time));
    }

    /// The task begins to exit at `time`, or has done so.
    pub(super) fn exit(&mut self, time: u64) {
        self.pass(time);
        self.place = Place::Gone;
    }

    fn be(&mut self, place: Place) {
        if self.place != Place::Gone {
            self.place = place;
        }
    }

    /// If it runs, it still does at `time`.
    pub(super) fn pass(&mut self, time: u64) {
        if let Place::Running(_) = self.place {
            self.advance(time);
        }
    }

    /// A call returns at `time` that took `took` ns, all of them the kernel's.
    pub(super) fn called(&mut self, time: u64, took: u64) {
        if let Place::Running(since) | Place::Before(since) = self.place {
            self.advance(time.saturating_sub(took).max(since));
        }
        self.be(Place::Running(time));
    }

    /// Whether it has a CPU, as far as was seen.
    pub(super) const fn is_running(&self) -> bool {
        matches!(self.place, Place::Running(_))
    }

    /// The kernel begins something that takes `ns`.
    pub(super) fn owe(&mut self, ns: f64) {
        self.debt += ns;
    }

    /// Of the time before, `ns` were not the task's own, as is seen now: as much of what follows is not either, whenever that is.
    pub(super) fn owe_late(&mut self, ns: f64) {
        self.late += ns;
    }

    /// The task leaves its CPU at `time`, to sleep.
    pub(super) fn sleep(&mut self, time: u64) {
        self.advance(time);
        self.be(Place::Asleep(time));
        self.debt = 0.0;
    }

    /// The task leaves its CPU at `time`, and could have gone on.
    pub(super) fn yield_cpu(&mut self, time: u64) {
        self.advance(time);
        self.be(Place::Ready);
    }

    /// It is woken at `time`; for how long it slept, ns. `None` if it did not sleep.
    pub(super) fn wake(&mut self, time: u64) -> Option<u64> {
        let (Place::Asleep(since) | Place::Before(since)) = self.place else { return None };
        self.place = Place::Ready;
        Some(time.saturating_sub(since))
    }

    /// The task gets a CPU at `time`; for how long it slept, ns, if nobody was seen to wake it. If it was not seen to leave its CPU
    /// before, it slept since it was last seen.
    pub(super) fn enter(&mut self, time: u64) -> Option<u64> {
        let slept = match self.place {
            Place::Running(since) => Some(time.saturating_sub(since)),
            _ => self.wake(time),
        };
        self.be(Place::Running(time));
        slept
    }

    /// Takes the whole nanoseconds of own time that no step has yet.
    pub(super) fn take_own(&mut self) -> u64 {
        let own = self.own as u64;
        self.own -= own as f64;
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_paid_with_the_time_after_it() {
        let mut clock = Clock::default();
        clock.enter(1_000);
        clock.advance(2_000);
        clock.owe(700.0);
        clock.advance(2_300);
        assert_eq!(clock.take_own(), 1_000, "the kernel had all of the 300");
        clock.advance(4_300);
        assert_eq!(clock.take_own(), 1_600, "and 400 of these 2000");
    }

    #[test]
    fn what_is_owed_late_outlasts_a_sleep() {
        let mut clock = Clock::default();
        clock.enter(0);
        clock.owe(100.0);
        clock.owe_late(700.0);
        clock.sleep(300);
        clock.enter(1_000);
        clock.advance(2_000);
        assert_eq!(clock.take_own(), 500, "100 and 200 of the 300, and 500 of these 1000");
    }

    #[test]
    fn time_passes_for_who_runs() {
        let mut clock = Clock::default();
        clock.pass(500);
        clock.enter(1_000);
        clock.pass(1_700);
        assert_eq!(clock.take_own(), 700);
        clock.sleep(2_000);
        clock.pass(9_000);
        assert_eq!((clock.take_own(), clock.wake(9_500)), (300, Some(7_500)));
    }

    #[test]
    fn a_call_is_the_kernels() {
        let mut clock = Clock::default();
        clock.enter(0);
        clock.called(5_000, 4_000);
        clock.advance(5_500);
        assert_eq!(clock.take_own(), 1_500);
    }

    #[test]
    fn what_follows_an_exit_is_the_kernels() {
        let mut clock = Clock::default();
        clock.enter(1_000);
        clock.exit(3_000);
        assert_eq!(clock.take_own(), 2_000);
        clock.yield_cpu(50_000);
        assert_eq!(clock.enter(60_000), None);
        clock.called(70_000, 0);
        clock.advance(80_000);
        clock.sleep(90_000);
        assert_eq!((clock.take_own(), clock.wake(95_000)), (0, None));
    }

    #[test]
    fn sleep_ends_when_the_task_is_woken() {
        let mut clock = Clock::default();
        assert_eq!(clock.wake(5), None);
        clock.enter(0);
        clock.sleep(1_000);
        assert_eq!(clock.wake(4_000), Some(3_000));
        assert_eq!(clock.enter(9_000), None, "the wait for a CPU is not sleep");
        clock.yield_cpu(10_000);
        assert_eq!(clock.enter(50_000), None);
        assert_eq!(clock.take_own(), 2_000);
        assert_eq!(clock.enter(70_000), Some(20_000), "nobody saw it leave");
        assert_eq!(clock.take_own(), 0);
    }
}
