//! Figures over time: a run is looked at from outside at moments that are evenly spaced. How long it will be nobody knows beforehand, so
//! the space between them doubles whenever there are as many as are kept, and every second one goes.

use std::cell::RefCell;
use std::rc::Rc;

use mm::Nanos;
use sim::{Passing, Sim};

use crate::measurements::Timeline;
use crate::stage::Stage;

/// So many moments are kept at most; half of them at least where the run is long enough.
const MOMENTS: usize = 128;
/// Between the first moments.
const FIRST: Nanos = Nanos(10_000);

/// A moment, and what was seen then.
#[derive(Clone, Debug)]
struct Moment {
    passing: Passing,
    free_pages: Vec<u64>,
    resident_pages: u64,
}

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Seen {
    moments: Vec<Moment>,
    apart: Nanos,
}

impl Default for Seen {
    fn default() -> Self {
        Self { moments: vec![], apart: FIRST }
    }
}

/// Looks at `sim` from now on.
pub(super) fn look_on(sim: &Sim, stage: &Rc<Stage>, seen: &Rc<RefCell<Seen>>) {
    let (stage, seen) = (Rc::downgrade(stage), Rc::clone(seen));
    sim.on_pass(Nanos(0), move |passing| {
        let Some(stage) = stage.upgrade() else { return Nanos(u64::MAX) };
        let start = stage.start.get();
        if passing.now < start {
            return start;
        }
        let (free_pages, resident_pages) = (stage.free_pages(), stage.resident_pages());
        seen.borrow_mut().add(Moment { passing: *passing, free_pages, resident_pages })
    });
}

impl Seen {
    /// Keeps a moment; says when the next is due.
    fn add(&mut self, moment: Moment) -> Nanos {
        self.moments.push(moment);
        if self.moments.len() >= MOMENTS {
            let mut number = 0;
            self.moments.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.apart.0 *= 2;
        }
        let last = self.moments.last().map_or(0, |moment| moment.passing.now.0);
        Nanos(last + self.apart.0)
    }

    /// All of it, by the time since `start`.
    pub(super) fn timeline(&self, start: Nanos) -> Timeline {
        let kept: Vec<&Moment> = self.moments.iter().filter(|moment| moment.passing.now >= start).collect();
        let nodes = kept.first().map_or(0, |moment| moment.free_pages.len());
        let resident_pages: Vec<u64> = kept.iter().map(|moment| moment.resident_pages).collect();
        Timeline {
            at_ns: kept.iter().map(|moment| moment.passing.now.0 - start.0).collect(),
            free_pages: (0..nodes)
                .map(|node| kept.iter().map(|moment| moment.free_pages[node]).collect())
                .collect(),
            faults: kept.iter().map(|moment| moment.passing.faults).collect(),
            lock_wait_ns: kept.iter().map(|moment| moment.passing.lock_wait.0).collect(),
            resident_pages: if resident_pages.iter().any(|pages| *pages > 0) {
                resident_pages
            } else {
                vec![]
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(now: Nanos) -> Moment {
        let passing = Passing { now, faults: now.0 / 100, lock_wait: Nanos(0) };
        Moment { passing, free_pages: vec![7, now.0], resident_pages: 0 }
    }

    #[test]
    fn moments_are_evenly_spaced_however_long_a_run_is() {
        for end in [FIRST.0 * 3, FIRST.0 * 1_000, FIRST.0 * 1_000_000] {
            let (mut seen, mut due) = (Seen::default(), Nanos(0));
            while due.0 < end {
                due = seen.add(moment(due));
            }
            let timeline = seen.timeline(Nanos(0));
            let apart: Vec<u64> = timeline.at_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(apart.windows(2).all(|pair| pair[0] == pair[1]), "{apart:?}");
            let count = timeline.at_ns.len();
            assert!(count < MOMENTS && (count > MOMENTS / 2 - 2 || end < FIRST.0 * 64), "{count} of {end}");
            assert_eq!(timeline.free_pages[1], timeline.at_ns);
            assert!(timeline.resident_pages.is_empty(), "no program, no resident memory");
        }
    }

    #[test]
    fn what_was_before_the_start_is_left_out() {
        let mut seen = Seen::default();
        for now in [0, 10, 20, 30] {
            seen.add(moment(Nanos(now)));
        }
        assert_eq!(seen.timeline(Nanos(15)).at_ns, [5, 15]);
    }
}
