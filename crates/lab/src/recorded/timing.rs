//! How much of the time between two events of a task was its own: not the recorder's, not the allocator's, not spent off
//! the CPU.

use mm::ids::PAGE_SIZE;
use sim::Profile;
use trace::{EventKind, Meta, SwitchState};

/// What the recorded machine spent per operation, to be taken out of a task's own time, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostCosts {
    /// Recording one event.
    pub event_ns: f64,
    /// An allocation served by the pageset.
    pub alloc_ns: f64,
    /// A free to the pageset.
    pub free_ns: f64,
    /// Clearing a page.
    pub clear_page_ns: f64,
    /// An allocation of a slab object that a CPU has at hand.
    pub object_alloc_ns: f64,
    /// A free of a slab object to where the CPU has others.
    pub object_free_ns: f64,
}

impl HostCosts {
    /// Nothing is taken out.
    pub const NONE: Self = Self {
        event_ns: 0.0,
        alloc_ns: 0.0,
        free_ns: 0.0,
        clear_page_ns: 0.0,
        object_alloc_ns: 0.0,
        object_free_ns: 0.0,
    };

    /// What the machine of a recording spent: on recording as it measured itself, on the allocator and on clearing as the
    /// profile `host` has it, for want of one of that very machine.
    pub fn of(meta: &Meta, host: &Profile) -> Self {
        Self {
            event_ns: meta.cost.map_or(0.0, |cost| cost.ns_per_event),
            alloc_ns: host.value("path.page_alloc_ns"),
            free_ns: host.value("path.page_free_ns"),
            clear_page_ns: PAGE_SIZE as f64 / host.value("memory.clear_gbps"),
            object_alloc_ns: host.value("path.slab_alloc_ns"),
            object_free_ns: host.value("path.slab_free_ns"),
        }
    }
}

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Not seen yet.
    Unseen,
    /// On a CPU since a time.
    Running(u64),
    /// Off since a time, to sleep.
    Asleep(u64),
    /// Off, but ready: that wait belongs to the recorded machine.
    Preempted,
}

/// A task's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    place: Place,
    /// Own time not yet handed to a step, in ns.
    own: f64,
    /// What the last event was.
    last: Last,
}

/// What the task was in the midst of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    Own,
    Refilling,
    Freeing,
}

/// What the recorded kernel's slab allocator does with pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlabPages {
    /// It takes them.
    Taken,
    /// It gives them back.
    GivenBack,
}

/// What an event is to the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The refill of a request that will follow: pages for a page list, or for a slab.
    Refill,
    /// The request.
    Alloc {
        /// Pages that were cleared for it.
        cleared: u32,
    },
    /// A free.
    Free,
    /// What comes with a free.
    Drain,
    /// A slab object is handed out.
    AllocObject,
    /// A slab object is freed.
    FreeObject,
    /// Anything else.
    Other,
}

impl Clock {
    pub(super) const NEW: Self = Self { place: Place::Unseen, own: 0.0, last: Last::Own };

    /// An event of the task at `time`, on its CPU.
    pub(super) fn event(&mut self, time: u64, kind: &EventKind, costs: &HostCosts) {
        self.phase(time, phase(kind), costs);
    }

    /// A page event of the slab allocator's, in the midst of an object's allocation or free.
    pub(super) fn slab_pages(&mut self, time: u64, pages: SlabPages, costs: &HostCosts) {
        let phase = match pages {
            SlabPages::Taken => Phase::Refill,
            SlabPages::GivenBack => Phase::Drain,
        };
        self.phase(time, phase, costs);
    }

    fn phase(&mut self, time: u64, phase: Phase, costs: &HostCosts) {
        let since = match self.place {
            Place::Running(since) => time.saturating_sub(since),
            // Without switches recorded, the first event of a task is where its time begins.
            Place::Unseen | Place::Asleep(_) | Place::Preempted => 0,
        };
        self.place = Place::Running(time);
        let since = (since as f64 - costs.event_ns).max(0.0);
        let inside = matches!(
            (self.last, phase),
            (Last::Refilling, Phase::Refill | Phase::Alloc { .. } | Phase::AllocObject)
                | (Last::Freeing, Phase::Drain)
        );
        if !inside {
            let spent = match phase {
                Phase::Alloc { cleared } => costs.alloc_ns + f64::from(cleared) * costs.clear_page_ns,
                Phase::Free => costs.free_ns,
                Phase::AllocObject => costs.object_alloc_ns,
                Phase::FreeObject => costs.object_free_ns,
                Phase::Refill | Phase::Drain | Phase::Other => 0.0,
            };
            self.own += (since - spent).max(0.0);
        }
        self.last = match phase {
            Phase::Refill => Last::Refilling,
            Phase::Free | Phase::FreeObject | Phase::Drain => Last::Freeing,
            Phase::Alloc { .. } | Phase::AllocObject | Phase::Other => Last::Own,
        };
    }

    /// The task leaves its CPU at `time`.
    pub(super) fn leave(&mut self, time: u64, state: SwitchState, costs: &HostCosts) {
        self.event(time, &EventKind::Exit, costs);
        self.place = match state {
            SwitchState::Runnable => Place::Preempted,
            _ => Place::Asleep(time),
        };
    }

    /// The task gets a CPU at `time`; gives for how long it slept, in ns.
    pub(super) fn enter(&mut self, time: u64) -> u64 {
        let slept = match self.place {
            Place::Asleep(since) => time.saturating_sub(since),
            Place::Unseen | Place::Running(_) | Place::Preempted => 0,
        };
        self.place = Place::Running(time);
        slept
    }

    /// Something that belongs to the task happens at `time` while it is not on a CPU; gives for how long it slept until
    /// then, in ns. `None` if it is on a CPU, or was never seen.
    pub(super) fn while_away(&mut self, time: u64) -> Option<u64> {
        match self.place {
            Place::Asleep(since) => {
                self.place = Place::Asleep(time.max(since));
                Some(time.saturating_sub(since))
            }
            Place::Preempted => Some(0),
            Place::Unseen | Place::Running(_) => None,
        }
    }

    /// Takes the whole nanoseconds of own time that no step has yet.
    pub(super) fn take_own(&mut self) -> u64 {
        let own = self.own as u64;
        self.own -= own as f64;
        own
    }
}

fn phase(kind: &EventKind) -> Phase {
    match kind {
        EventKind::ZoneLocked { .. } => Phase::Refill,
        EventKind::PageAlloc { order, gfp, .. } => {
            Phase::Alloc { cleared: if gfp.contains(trace::Gfp::ZERO) { order.pages() } else { 0 } }
        }
        EventKind::PageFree { .. } => Phase::Free,
        EventKind::PageFreeBatched { .. } | EventKind::PcpuDrain { .. } => Phase::Drain,
        EventKind::SlabAlloc { .. } => Phase::AllocObject,
        EventKind::SlabFree { .. } => Phase::FreeObject,
        _ => Phase::Other,
    }
}

#[cfg(test)]
mod tests {
    use mm::{MigrateType, Order, Pfn};

    use super::*;

    const COSTS: HostCosts = HostCosts {
        event_ns: 100.0,
        alloc_ns: 30.0,
        free_ns: 20.0,
        clear_page_ns: 70.0,
        object_alloc_ns: 10.0,
        object_free_ns: 5.0,
    };

    const OBJECT: EventKind = EventKind::SlabAlloc {
        object: 1,
        cache: trace::NameId(1),
        requested: 8,
        allocated: 8,
        gfp: trace::Gfp::KERNEL,
        node: -1,
    };

    fn alloc(gfp: trace::Gfp) -> EventKind {
        EventKind::PageAlloc { pfn: Pfn(1), order: Order::ZERO, migratetype: MigrateType::Movable, gfp }
    }

    fn refill() -> EventKind {
        EventKind::ZoneLocked {
            pfn: Pfn(1),
            order: Order::ZERO,
            migratetype: MigrateType::Movable,
            percpu_refill: true,
        }
    }

    #[test]
    fn what_is_not_the_tasks_is_taken_out() {
        let mut clock = Clock::NEW;
        clock.enter(1_000);
        clock.event(2_000, &alloc(trace::Gfp::ZERO), &COSTS);
        assert_eq!(clock.take_own(), 800, "1000 less the event, the allocator and the clearing");
    }

    #[test]
    fn a_refill_is_the_allocators() {
        let mut clock = Clock::NEW;
        clock.enter(0);
        clock.event(1_100, &refill(), &COSTS);
        clock.event(5_000, &refill(), &COSTS);
        clock.event(9_000, &alloc(trace::Gfp::NONE), &COSTS);
        assert_eq!(clock.take_own(), 1_000);
    }

    #[test]
    fn a_slabs_pages_are_the_allocators() {
        let mut clock = Clock::NEW;
        clock.enter(0);
        clock.slab_pages(1_100, SlabPages::Taken, &COSTS);
        clock.event(9_000, &OBJECT, &COSTS);
        assert_eq!(clock.take_own(), 1_000);
        clock.event(10_000, &OBJECT, &COSTS);
        assert_eq!(clock.take_own(), 890, "1000 less the event and the allocation");
    }

    #[test]
    fn what_happens_while_a_task_sleeps_parts_its_sleep() {
        let mut clock = Clock::NEW;
        assert_eq!(clock.while_away(5), None);
        clock.enter(0);
        assert_eq!(clock.while_away(5), None);
        clock.leave(1_000, SwitchState::Sleeping, &COSTS);
        assert_eq!(clock.while_away(1_400), Some(400));
        assert_eq!(clock.while_away(1_300), Some(0), "events may be a little out of order");
        assert_eq!(clock.enter(2_000), 600);
    }

    #[test]
    fn sleep_is_told_from_preemption() {
        let mut clock = Clock::NEW;
        clock.enter(0);
        clock.leave(1_100, SwitchState::Sleeping, &COSTS);
        assert_eq!(clock.enter(51_100), 50_000);
        clock.leave(52_200, SwitchState::Runnable, &COSTS);
        assert_eq!(clock.enter(90_000), 0);
        assert_eq!(clock.take_own(), 2_000);
    }
}
