//! How much of the time between two events of a task was its own.
//!
//! What the recorded kernel and the recorder did then is not: the replay charges for that itself. It is taken out as a debt. An event says
//! what began at it (a fault), so its price is owed from then on, and paid with the time that follows.

use mm::ids::PAGE_SIZE;
use sim::Profile;
use trace::Meta;

/// What the recorded machine spent, ns.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct KernelCosts {
    /// A fault that brings a page in: the exception, the allocation, clearing the page, and recording all events of it.
    pub fault_ns: f64,
    /// Clearing a page, which is part of it.
    pub clear_page_ns: f64,
    /// A page that a call brings in: the allocation, and clearing it.
    pub fill_page_ns: f64,
    /// Recording one event.
    pub event_ns: f64,
    /// Taking a page out of an address space and freeing it, likewise.
    pub unmap_page_ns: f64,
}

impl KernelCosts {
    /// As the recorder measured them before it began, and where it did not, as the profile `host` has them.
    pub fn of(meta: &Meta, host: &Profile) -> Self {
        let clear_page_ns = PAGE_SIZE as f64 / host.value("memory.clear_gbps");
        let comes = host.value("path.fault_ns") + host.value("path.page_alloc_ns") + clear_page_ns;
        let goes = host.value("path.unmap_ns") + host.value("path.page_free_ns");
        // The recorder's loop maps, touches and unmaps: a page's way in and its way out together.
        let slower = meta.cost.map_or(1.0, |cost| cost.fault_ns_recorded / (comes + goes));
        Self {
            fault_ns: slower * comes,
            clear_page_ns,
            fill_page_ns: slower * (host.value("path.page_alloc_ns") + clear_page_ns),
            event_ns: meta.cost.map_or(0.0, |cost| cost.ns_per_event),
            unmap_page_ns: slower * goes,
        }
    }
}

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
}

/// A task's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    place: Place,
    /// Own time not yet handed to a step, ns.
    own: f64,
    /// What the kernel is yet to be given of the task's time, ns.
    debt: f64,
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
            self.own += (passed - self.debt).max(0.0);
            self.debt = (self.debt - passed).max(0.0);
        }
        self.place = Place::Running(time);
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
        self.place = Place::Running(time);
    }

    /// The kernel begins something that takes `ns`.
    pub(super) fn owe(&mut self, ns: f64) {
        self.debt += ns;
    }

    /// The task leaves its CPU at `time`, to sleep.
    pub(super) fn sleep(&mut self, time: u64) {
        self.advance(time);
        (self.place, self.debt) = (Place::Asleep(time), 0.0);
    }

    /// The task leaves its CPU at `time`, and could have gone on.
    pub(super) fn yield_cpu(&mut self, time: u64) {
        self.advance(time);
        self.place = Place::Ready;
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
        self.place = Place::Running(time);
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
