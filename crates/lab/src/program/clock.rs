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
    /// Clearing a page that is in no cache, which is part of it.
    pub clear_page_ns: f64,
    /// A page of a file that a call brings in: the allocation, and clearing it.
    pub fill_page_ns: f64,
    /// A page of its caller's that a call brings in: a fault without its exception.
    pub populate_page_ns: f64,
    /// Recording one event.
    pub event_ns: f64,
    /// Taking a page out of an address space and freeing it, likewise.
    pub unmap_page_ns: f64,
}

impl KernelCosts {
    /// As the recorder measured them before it began, and where it did not, as the profile `host` has them.
    pub fn of(meta: &Meta, host: &Profile) -> Self {
        let clearing_ns = |speed: &str| PAGE_SIZE as f64 / host.value(speed);
        let clear_page_ns = clearing_ns("memory.clear_gbps");
        let [fault, allocation] = ["path.fault_ns", "path.page_alloc_ns"].map(|path| host.value(path));
        let exception = host.value("path.exception_ns");
        let goes = host.value("path.unmap_ns") + host.value("path.page_free_ns");
        let Some(cost) = meta.cost else {
            return Self {
                fault_ns: fault + allocation + clear_page_ns,
                clear_page_ns,
                fill_page_ns: allocation + clear_page_ns,
                populate_page_ns: fault - exception + allocation + clear_page_ns,
                event_ns: 0.0,
                unmap_page_ns: goes,
            };
        };
        // The recorder's loop maps, touches and unmaps a few pages again and again: a page's way in and its way out together, and cleared in a
        // cache. A program's pages are taken to be in none, as the simulation takes them, which clears them once more: what only one of both
        // counts would be the program's own time, under every setting.
        let warm = clearing_ns("memory.hot_gbps").min(clear_page_ns);
        let slower = cost.fault_ns_recorded / (fault + allocation + warm + goes);
        let cold = clear_page_ns - warm;
        Self {
            fault_ns: slower * (fault + allocation + warm) + cold,
            clear_page_ns,
            fill_page_ns: slower * (allocation + warm) + cold,
            populate_page_ns: slower * (fault - exception + allocation + warm) + cold,
            event_ns: cost.ns_per_event,
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

    /// The kernel begins something that takes `ns`.
    pub(super) fn owe(&mut self, ns: f64) {
        self.debt += ns;
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
    use trace::RecordingCost;

    use super::*;

    /// Costs of a machine on which the recorder's loop took so long while it recorded.
    fn costs(fault_ns_recorded: f64) -> KernelCosts {
        let cost = RecordingCost { ns_per_event: 150.0, fault_ns_recorded, ..RecordingCost::default() };
        KernelCosts::of(
            &Meta { cost: Some(cost), ..Meta::default() },
            &Profile::load("kvm-genoa-2c").unwrap(),
        )
    }

    #[test]
    fn a_page_of_a_program_is_cleared_in_no_cache_and_one_of_the_recorders_loop_is() {
        let host = Profile::load("kvm-genoa-2c").unwrap();
        let [cold, warm] =
            ["memory.clear_gbps", "memory.hot_gbps"].map(|speed| PAGE_SIZE as f64 / host.value(speed));
        let of = costs(2_400.0);
        assert!((of.fault_ns + of.unmap_page_ns - 2_400.0 - (cold - warm)).abs() < 0.01, "{of:?}");
        assert!(cold - warm > 200.0, "or there is nothing to tell apart");
        let slow = costs(4_800.0);
        assert!(
            (slow.fault_ns + slow.unmap_page_ns - of.fault_ns - of.unmap_page_ns - 2_400.0).abs() < 0.01,
            "the machine is slower, and clearing in memory is as it was"
        );
    }

    #[test]
    fn what_was_not_measured_is_the_profiles() {
        let host = Profile::load("kvm-genoa-2c").unwrap();
        let of = KernelCosts::of(&Meta::default(), &host);
        let whole = host.value("path.fault_ns") + host.value("path.page_alloc_ns") + of.clear_page_ns;
        assert!((of.fault_ns - whole).abs() < 0.01 && of.event_ns == 0.0, "{of:?}");
    }

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
