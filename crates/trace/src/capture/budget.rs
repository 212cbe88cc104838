//! `--budget`: what recording may cost the tasks that are recorded, as a share of the CPU time that they have of their own.
//!
//! The rule: ten times a second it is looked at how many events their tasks had since the last look, at what an event was measured to
//! cost before the start. Where that passes the budget, page events of half of the frames are recorded no more, then of another half,
//! down to one frame in 64; then accessed bits are looked at no more. It never goes back. All other events stay, for a replay needs
//! each of them. What is not recorded of page events is counted by the programs in the kernel.

use super::calibrate;
use super::options::{Looking, RecordOptions};
use super::source::Source;
use crate::error::RecordError;
use crate::meta::{RecordingCost, Sampled, SamplingStep};

/// CPU time between two looks that says enough, ns.
const LOOK_CPU_NS: u64 = 10_000_000;
/// Of so many units of frames the events of one are recorded at the least.
const ONE_IN_MAX: u32 = 64;

/// What events cost the task that causes them, ns.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct EventCosts {
    /// One that is recorded.
    recorded_ns: f64,
    /// A page event that is only counted.
    counted_ns: f64,
}

/// What there was so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct SoFar {
    /// Events recorded.
    pub(super) events: u64,
    /// Page events that were only counted.
    pub(super) counted: u64,
    /// CPU time of the tasks, ns.
    pub(super) cpu_ns: u64,
}

/// What is to be done from here on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Saving {
    /// Page events of one unit of frames in so many, a power of two.
    PagesOneIn(u32),
    /// No looking at accessed bits.
    NoAccesses,
}

/// Whether accessed bits are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Accesses {
    AreLookedAt,
    AreNot,
}

/// A budget and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Budget {
    /// Of the tasks' own CPU time.
    share: f64,
    costs: EventCosts,
    last: SoFar,
    one_in: u32,
    accesses: Accesses,
    steps: Vec<SamplingStep>,
}

impl Budget {
    /// The budget that was asked for, with what events are measured to cost here; `events` are stopped before and after.
    ///
    /// # Errors
    /// Why it could not be kept here.
    pub(super) fn asked_for(
        options: &RecordOptions,
        events: &mut Source,
        cost: Option<RecordingCost>,
    ) -> Result<Option<Self>, RecordError> {
        let Some(share) = options.budget else { return Ok(None) };
        if !events.can_sample() {
            let why = "a budget cannot be kept by perf, and BPF cannot record here (--via bpf says why)";
            return Err(RecordError::Missing(why.into()));
        }
        let Some(cost) = cost else {
            let why = "a budget cannot be kept: what an event costs could not be measured";
            return Err(RecordError::Missing(why.into()));
        };
        let recorded_ns = cost.ns_per_event;
        let counted_ns = calibrate::counted_ns(events, recorded_ns)?.unwrap_or(0.0);
        let is_looked = options.looking() != Looking::Never;
        let accesses = if is_looked { Accesses::AreLookedAt } else { Accesses::AreNot };
        Ok(Some(Self::new(share, EventCosts { recorded_ns, counted_ns }, accesses)))
    }

    fn new(share: f64, costs: EventCosts, accesses: Accesses) -> Self {
        Self { share, costs, last: SoFar::default(), one_in: 1, accesses, steps: vec![] }
    }

    /// What is to be saved from `time` on, ns by the events' clock, when there was so much.
    pub(super) fn look(&mut self, time: u64, now: SoFar) -> Option<Saving> {
        let since = SoFar {
            events: now.events - self.last.events,
            counted: now.counted - self.last.counted,
            cpu_ns: now.cpu_ns - self.last.cpu_ns,
        };
        if since.cpu_ns < LOOK_CPU_NS {
            return None;
        }
        self.last = now;
        let spent = self.spent_ns(since);
        if spent <= self.share * (since.cpu_ns as f64 - spent).max(0.0) {
            return None;
        }
        let saving = match (self.one_in, self.accesses) {
            (one_in, _) if one_in < ONE_IN_MAX => Saving::PagesOneIn(2 * one_in),
            (_, Accesses::AreLookedAt) => Saving::NoAccesses,
            _ => return None,
        };
        match saving {
            Saving::PagesOneIn(one_in) => self.one_in = one_in,
            Saving::NoAccesses => self.accesses = Accesses::AreNot,
        }
        let stops_accesses = saving == Saving::NoAccesses;
        self.steps.push(SamplingStep { at_ns: time, page_events_one_in: self.one_in, stops_accesses });
        Some(saving)
    }

    /// What recording cost the tasks, ns.
    fn spent_ns(&self, of: SoFar) -> f64 {
        of.events as f64 * self.costs.recorded_ns + of.counted as f64 * self.costs.counted_ns
    }

    /// The account of it, when there was so much in all; `user_pages` are those of the page events that were only counted.
    pub(super) fn account(&self, all: SoFar, user_pages: u64) -> Sampled {
        Sampled {
            budget_ppm: (self.share * 1e6).round() as u32,
            spent_ns: self.spent_ns(all) as u64,
            cpu_ns: all.cpu_ns,
            page_events_counted: all.counted,
            user_pages_counted: user_pages,
            counted_ns: (all.counted as f64 * self.costs.counted_ns) as u64,
            steps: self.steps.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: EventCosts = EventCosts { recorded_ns: 100.0, counted_ns: 40.0 };

    fn so_far(events: u64, counted: u64, cpu_ms: u64) -> SoFar {
        SoFar { events, counted, cpu_ns: cpu_ms * 1_000_000 }
    }

    #[test]
    fn a_recording_within_its_budget_is_whole() {
        let mut budget = Budget::new(0.02, COSTS, Accesses::AreLookedAt);
        // 19,000 events of 100 ns in 100 ms: 1.9 ms of 98.1.
        for look in 1..50 {
            assert_eq!(budget.look(look, so_far(19_000 * look, 0, 100 * look)), None);
        }
        let account = budget.account(so_far(19_000 * 50, 0, 5_000), 0);
        assert_eq!((account.spent_ns, account.budget_ppm), (95_000_000, 20_000));
        assert!(account.steps.is_empty());
    }

    #[test]
    fn what_is_too_much_is_halved_and_then_accessed_bits_go() {
        let mut budget = Budget::new(0.02, COSTS, Accesses::AreLookedAt);
        assert_eq!(budget.look(1, so_far(2_000, 0, 9)), None, "too little to tell");
        let mut savings = vec![];
        for look in 1..20 {
            savings.extend(budget.look(look, so_far(50_000 * look, 0, 100 * look)));
        }
        let halves = [2, 4, 8, 16, 32, 64].map(Saving::PagesOneIn);
        assert_eq!(savings, [&halves[..], &[Saving::NoAccesses]].concat());
        assert_eq!(budget.account(so_far(0, 0, 0), 0).steps.len(), 7);
    }

    #[test]
    fn it_is_the_time_since_the_last_look_that_counts() {
        let mut budget = Budget::new(0.02, COSTS, Accesses::AreNot);
        assert_eq!(budget.look(1, so_far(50_000, 0, 100)), Some(Saving::PagesOneIn(2)));
        // 30,000 counted at 40 ns: 1.2 ms of 98.8, and 5000 recorded.
        assert_eq!(budget.look(2, so_far(55_000, 30_000, 200)), None);
        assert_eq!(budget.look(3, so_far(60_000, 80_000, 300)), Some(Saving::PagesOneIn(4)));
    }
}
