//! What the recorded kernel and the recorder took of a task's time, by what they did: taken out of it by
//! [`super::clock`]. The recorder measures its own loop before it begins; the rest is as the machine that made the
//! recording has it, or the one that stands for it.

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
}
