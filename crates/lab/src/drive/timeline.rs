//! Figures over time: a run is looked at from outside at moments that are evenly spaced. How long it will be nobody knows beforehand, so
//! the space between them doubles whenever there are as many as are kept, and every second one goes.

use std::cell::RefCell;
use std::rc::Rc;

use mm::Nanos;
use sim::{Passing, Sim};

use crate::measurements::{ProcessOverTime, TaskOverTime, Timeline};
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
    /// By name, as many as there were.
    by_name: Vec<u64>,
}

/// The names that moments tell apart by place.
#[derive(Debug, Default)]
pub(super) struct NamesSeen {
    /// Of processes.
    pub(super) processes: Vec<String>,
    /// Of tasks, as the simulated machine tells them apart.
    pub(super) tasks: Vec<String>,
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
        let (resident_pages, by_name) = stage.resident_pages();
        let (passing, free_pages) = (passing.clone(), stage.free_pages());
        let moment = Moment { passing, free_pages, resident_pages, by_name };
        seen.borrow_mut().add(moment)
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
    pub(super) fn timeline(&self, start: Nanos, names: &NamesSeen) -> Timeline {
        let kept: Vec<&Moment> = self.moments.iter().filter(|moment| moment.passing.now >= start).collect();
        let nodes = kept.first().map_or(0, |moment| moment.free_pages.len());
        let resident_pages: Vec<u64> = kept.iter().map(|moment| moment.resident_pages).collect();
        Timeline {
            at_ns: kept.iter().map(|moment| moment.passing.now.0 - start.0).collect(),
            free_pages: (0..nodes)
                .map(|node| kept.iter().map(|moment| moment.free_pages[node]).collect())
                .collect(),
            faults: kept.iter().map(|moment| moment.passing.faults).collect(),
            processes: processes(&kept, &names.processes),
            tasks: tasks(&kept, &names.tasks),
            lock_wait_ns: kept.iter().map(|moment| moment.passing.lock_wait.0).collect(),
            resident_pages: if resident_pages.iter().any(|pages| *pages > 0) {
                resident_pages
            } else {
                vec![]
            },
        }
    }
}

/// Those of most memory at a moment.
fn processes(kept: &[&Moment], names: &[String]) -> Vec<ProcessOverTime> {
    let of = |place: usize| {
        let pages = |moment: &&Moment| moment.by_name.get(place).copied().unwrap_or(0);
        ProcessOverTime { name: names[place].clone(), resident_pages: kept.iter().map(pages).collect() }
    };
    let most = |process: &ProcessOverTime| process.resident_pages.iter().copied().max().unwrap_or(0);
    let mut processes: Vec<ProcessOverTime> = (0..names.len()).map(of).collect();
    processes.retain(|process| most(process) > 0);
    processes.sort_by_key(|process| std::cmp::Reverse(most(process)));
    processes.truncate(Timeline::PROCESSES);
    if processes.len() > 1 { processes } else { vec![] }
}

/// Those that waited longest, then those with most faults.
fn tasks(kept: &[&Moment], names: &[String]) -> Vec<TaskOverTime> {
    let of = |(place, name): (usize, &String)| {
        let seen = |moment: &&Moment| moment.passing.by_name.get(place).copied().unwrap_or_default();
        TaskOverTime {
            name: name.clone(),
            faults: kept.iter().map(|moment| seen(moment).faults).collect(),
            lock_wait_ns: kept.iter().map(|moment| seen(moment).lock_wait.0).collect(),
        }
    };
    let all: Vec<TaskOverTime> = names.iter().enumerate().map(of).collect();
    let by_waits = most(&all, |of| &of.lock_wait_ns);
    let by_faults = most(&all, |of| &of.faults).into_iter().filter(|of| !by_waits.contains(of));
    let found: Vec<TaskOverTime> = by_waits.iter().copied().chain(by_faults).cloned().collect();
    if found.len() > 1 { found } else { vec![] }
}

/// Those that came to most of a figure, the most first.
fn most(all: &[TaskOverTime], figure: impl Fn(&TaskOverTime) -> &[u64]) -> Vec<&TaskOverTime> {
    let last = |of: &TaskOverTime| figure(of).last().copied().unwrap_or(0);
    let mut most: Vec<&TaskOverTime> = all.iter().filter(|of| last(of) > 0).collect();
    most.sort_by_key(|of| std::cmp::Reverse(last(of)));
    most.truncate(Timeline::TASKS);
    most
}

#[cfg(test)]
mod tests {
    use sim::NameSeen;

    use super::*;

    fn moment(now: Nanos) -> Moment {
        let passing = Passing { now, faults: now.0 / 100, lock_wait: Nanos(0), by_name: vec![] };
        Moment { passing, free_pages: vec![7, now.0], resident_pages: 0, by_name: vec![] }
    }

    #[test]
    fn processes_are_told_by_name_those_with_most_first() {
        let mut seen = Seen::default();
        for by_name in [vec![5], vec![9, 0], vec![2, 0, 30]] {
            let now = Nanos(seen.moments.len() as u64);
            seen.add(Moment { by_name, ..moment(now) });
        }
        let names = |names: &[&str]| NamesSeen {
            processes: names.iter().map(|&name| name.to_owned()).collect(),
            ..NamesSeen::default()
        };
        let found = seen.timeline(Nanos(0), &names(&["sh", "never-there", "cc1"])).processes;
        let found: Vec<_> = found.iter().map(|of| (of.name.as_str(), &of.resident_pages[..])).collect();
        assert_eq!(found, [("cc1", &[0, 0, 30][..]), ("sh", &[5, 9, 2])]);
        assert!(seen.timeline(Nanos(0), &names(&["sh"])).processes.is_empty(), "one name is all there is");
    }

    #[test]
    fn tasks_are_told_by_name_those_that_waited_longest_first() {
        let mut seen = Seen::default();
        for by_name in [&[][..], &[(5, 0), (9, 0), (0, 3)], &[(5, 0), (70, 0), (1, 8), (0, 0)]] {
            let mut now = moment(Nanos(seen.moments.len() as u64));
            let named = |&(wait, faults): &(u64, u64)| NameSeen { faults, lock_wait: Nanos(wait) };
            now.passing.by_name = by_name.iter().map(named).collect();
            seen.add(now);
        }
        let names = |tasks: &[&str]| NamesSeen {
            tasks: tasks.iter().map(|&name| name.to_owned()).collect(),
            ..NamesSeen::default()
        };
        let found = seen.timeline(Nanos(0), &names(&["sh", "kswapd0", "cc1", "idle"])).tasks;
        let found: Vec<_> =
            found.iter().map(|of| (of.name.as_str(), &of.lock_wait_ns[..], of.faults[2])).collect();
        let expected = [("kswapd0", &[0, 9, 70][..], 0), ("sh", &[0, 5, 5], 0), ("cc1", &[0, 0, 1], 8)];
        assert_eq!(found, expected);
        assert!(seen.timeline(Nanos(0), &names(&["sh"])).tasks.is_empty(), "one name is all there is");
    }

    #[test]
    fn moments_are_evenly_spaced_however_long_a_run_is() {
        for end in [FIRST.0 * 3, FIRST.0 * 1_000, FIRST.0 * 1_000_000] {
            let (mut seen, mut due) = (Seen::default(), Nanos(0));
            while due.0 < end {
                due = seen.add(moment(due));
            }
            let timeline = seen.timeline(Nanos(0), &NamesSeen::default());
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
        assert_eq!(seen.timeline(Nanos(15), &NamesSeen::default()).at_ns, [5, 15]);
    }
}
