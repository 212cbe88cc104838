//! How much of the time between two events of a task was its own.
//!
//! What the recorded kernel and the recorder did then is not: the replay charges for that itself. It is taken out as a debt. An event says
//! what began at it (a fault), so its price is owed from then on, and paid with the time that follows.

use mm::ids::PAGE_SIZE;
use sim::Profile;
use trace::{Meta, RecordingCost};

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
    /// A page's next access once its accessed bit was cleared, beyond what it takes else; 0 where that was not measured.
    pub bit_ns: f64,
}

/// The machine that made a recording, as far as it is known.
#[derive(Clone, PartialEq, Debug)]
pub enum RecordedOn {
    /// It itself, measured.
    Measured {
        /// As it was measured.
        profile: Profile,
        /// What a replay on that profile takes for a page.
        page: PageLoop,
    },
    /// Another, in its place.
    StandIn(Profile),
}

/// What a small page of private memory takes on a simulated machine, ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageLoop {
    /// A first write to it, all that comes with it.
    pub comes_ns: f64,
    /// Unmapping it.
    pub goes_ns: f64,
}

impl RecordedOn {
    /// What is known of it, or of the one that stands for it.
    pub const fn profile(&self) -> &Profile {
        let (Self::Measured { profile, .. } | Self::StandIn(profile)) = self;
        profile
    }

    /// A page's way in, which is cleared in no cache, and its way out.
    fn page(&self) -> PageLoop {
        let profile = match self {
            Self::Measured { page, .. } => return *page,
            Self::StandIn(profile) => profile,
        };
        let [fault, allocation, unmap, free] =
            ["path.fault_ns", "path.page_alloc_ns", "path.unmap_ns", "path.page_free_ns"]
                .map(|path| profile.value(path));
        PageLoop {
            comes_ns: fault + allocation + clearing_ns(profile, "memory.clear_gbps"),
            goes_ns: unmap + free,
        }
    }

    /// How many times as long a page took in the recorder's loop while it recorded as `loop_ns`, which it takes here.
    fn slower(&self, cost: &RecordingCost, loop_ns: f64) -> f64 {
        match self {
            // By recording alone: the replay takes as long for a page as was measured here without.
            Self::Measured { .. } => 1.0 + (cost.fault_ns_recorded - cost.fault_ns).max(0.0) / loop_ns,
            Self::StandIn(_) => cost.fault_ns_recorded / loop_ns,
        }
    }
}

fn clearing_ns(profile: &Profile, speed: &str) -> f64 {
    PAGE_SIZE as f64 / profile.value(speed)
}

impl KernelCosts {
    /// As the recorder measured them before it began, as far as `on` does not have them.
    pub fn of(meta: &Meta, on: &RecordedOn) -> Self {
        let host = on.profile();
        let clear_page_ns = clearing_ns(host, "memory.clear_gbps");
        let [allocation, exception] =
            ["path.page_alloc_ns", "path.exception_ns"].map(|path| host.value(path));
        let PageLoop { comes_ns, goes_ns } = on.page();
        let Some(cost) = meta.cost else {
            return Self {
                fault_ns: comes_ns,
                clear_page_ns,
                fill_page_ns: allocation + clear_page_ns,
                populate_page_ns: comes_ns - exception,
                event_ns: 0.0,
                unmap_page_ns: goes_ns,
                bit_ns: 0.0,
            };
        };
        // The recorder's loop maps, touches and unmaps a few pages again and again: a page's way in and its way out together, and cleared in a
        // cache. A program's pages are taken to be in none, as the simulation takes them, which clears them once more: what only one of both
        // counts would be the program's own time, under every setting.
        let warm = clearing_ns(host, "memory.hot_gbps").min(clear_page_ns);
        let cold = clear_page_ns - warm;
        let slower = on.slower(&cost, comes_ns - cold + goes_ns);
        Self {
            fault_ns: slower * (comes_ns - cold) + cold,
            clear_page_ns,
            fill_page_ns: slower * (allocation + warm) + cold,
            populate_page_ns: slower * (comes_ns - exception - cold) + cold,
            event_ns: cost.ns_per_event,
            unmap_page_ns: slower * goes_ns,
            bit_ns: cost.bit_ns as f64,
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

    /// Costs of a machine on which the recorder's loop took so long while it recorded.
    fn costs(fault_ns_recorded: f64) -> KernelCosts {
        let cost = RecordingCost { ns_per_event: 150.0, fault_ns_recorded, ..RecordingCost::default() };
        KernelCosts::of(&Meta { cost: Some(cost), ..Meta::default() }, &RecordedOn::StandIn(genoa()))
    }

    fn genoa() -> Profile {
        Profile::load("kvm-genoa-2c").unwrap()
    }

    #[test]
    fn on_the_machine_itself_a_page_is_what_a_replay_takes_and_what_recording_adds() {
        let page = PageLoop { comes_ns: 1_500.0, goes_ns: 200.0 };
        let on = RecordedOn::Measured { profile: genoa(), page };
        let of = |fault_ns, fault_ns_recorded| {
            let cost = RecordingCost { fault_ns, fault_ns_recorded, ..RecordingCost::default() };
            KernelCosts::of(&Meta { cost: Some(cost), ..Meta::default() }, &on)
        };
        let plain = of(900.0, 900.0);
        assert_eq!(
            plain,
            of(2_000.0, 1_900.0),
            "how long the loop takes says nothing, and recording gives no time back"
        );
        assert!((plain.fault_ns - 1_500.0).abs() < 0.01 && (plain.unmap_page_ns - 200.0).abs() < 0.01);
        let recorded = of(900.0, 1_300.0);
        let more = recorded.fault_ns + recorded.unmap_page_ns - 1_700.0;
        assert!((more - 400.0).abs() < 0.01, "{recorded:?}");
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
        let host = genoa();
        let of = KernelCosts::of(&Meta::default(), &RecordedOn::StandIn(host.clone()));
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
