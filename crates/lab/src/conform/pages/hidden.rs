//! What no event shows of a run: when each CPU's vmstat tick came, how many pages were on the lists exactly, and how far
//! refills had grown when the trace began.

use super::lists::{PagesetId, Shape};
use super::story::{Story, What};
use crate::conform::read::trace_csv::PageTrace;

/// Hidden figures of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hidden {
    /// The ticks that were not seen to drain, by CPU, ascending.
    pub(super) ticks: Vec<Vec<Tick>>,
    /// Pages that each pageset had more than zoneinfo said a moment before the trace.
    pub(super) more: Vec<i32>,
    /// `alloc_factor` of each pageset when the trace began.
    pub(super) alloc_factor: Vec<u8>,
}

/// A tick that was not seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Tick {
    /// When it was due, in microseconds.
    pub(super) at_us: u64,
    pub(super) cpu: u16,
    /// Nothing was heard of the CPU thereafter. An idle CPU's tick is put off, so that one that would have drained, and
    /// did not, did not come.
    pub(super) idle: bool,
}

/// Where in each second the ticks of CPU 0 come, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Phase(pub(super) u64);

pub(super) const SECOND_US: u64 = 1_000_000;

/// The kernel sets ticks of different CPUs three jiffies apart; Debian's kernels, and the default, have 250 in a second.
const SKEW_US: u64 = 12_000;

/// A CPU of which nothing is heard for so long after a tick was due is idle.
const IDLE_US: u64 = 20_000;

/// Of a trace so long, or of so many CPUs, that there are more ticks than this, none is looked for.
const MOST_TICKS: u64 = 100_000;

/// Ticks that a trace shows, by their drains.
#[derive(Clone, Debug)]
pub(super) struct SeenTicks {
    by_cpu: Vec<Vec<u64>>,
    /// When something was heard of each CPU.
    heard: Vec<Vec<u64>>,
    first_us: u64,
    last_us: u64,
}

impl SeenTicks {
    pub(super) fn of(story: &Story, trace: &PageTrace) -> Self {
        let mut by_cpu = vec![vec![]; story.shape.cpus];
        for step in &story.steps {
            if let What::Tick(cpu) = step.what {
                by_cpu[usize::from(cpu)].push(trace.events[step.event as usize].time_us);
            }
        }
        let mut heard = vec![vec![]; story.shape.cpus];
        for event in &trace.events {
            if let Some(heard) = heard.get_mut(usize::from(event.cpu)) {
                heard.push(event.time_us);
            }
        }
        let first_us = trace.events.first().map_or(0, |event| event.time_us);
        let last_us = trace.events.last().map_or(0, |event| event.time_us);
        Self { by_cpu, heard, first_us, last_us }
    }

    /// The phases that the seen ticks would have if they came on time.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let by_cpu = self.by_cpu.iter().enumerate();
        by_cpu.flat_map(|(cpu, ticks)| ticks.iter().map(move |tick| Phase::of_cpu(cpu, *tick))).collect()
    }

    /// The ticks that were not seen, if `phase` is the phase: one a second on each CPU. A tick that comes late is
    /// followed by the next that is at least three quarters of a second away.
    pub(super) fn others(&self, phase: Phase) -> Vec<Vec<Tick>> {
        let seconds = self.last_us.saturating_sub(self.first_us) / SECOND_US + 1;
        if seconds * self.by_cpu.len() as u64 > MOST_TICKS {
            return vec![vec![]; self.by_cpu.len()];
        }
        let of_cpu = |(cpu, seen): (usize, &Vec<u64>)| {
            let mut ticks = vec![];
            let mut next = phase.next(cpu, self.first_us);
            let mut seen = seen.iter().copied().peekable();
            while next <= self.last_us {
                if let Some(seen) = seen.next_if(|seen| *seen < next + SECOND_US / 2) {
                    next = phase.next(cpu, seen + SECOND_US * 3 / 4);
                } else {
                    ticks.push(Tick { at_us: next, cpu: cpu as u16, idle: self.is_idle(cpu, next) });
                    next += SECOND_US;
                }
            }
            ticks
        };
        self.by_cpu.iter().enumerate().map(of_cpu).collect()
    }

    fn is_idle(&self, cpu: usize, from: u64) -> bool {
        let heard = &self.heard[cpu];
        let next = heard.get(heard.partition_point(|at| *at < from));
        next.is_none_or(|at| *at > from + IDLE_US)
    }
}

impl Phase {
    fn skew(cpu: usize) -> u64 {
        cpu as u64 * SKEW_US % SECOND_US
    }

    fn of_cpu(cpu: usize, tick_us: u64) -> Self {
        Self((tick_us + Self::skew(cpu)) % SECOND_US)
    }

    /// The first tick of `cpu` at `from` or later.
    fn next(self, cpu: usize, from: u64) -> u64 {
        let offset = (self.0 + SECOND_US - Self::skew(cpu)) % SECOND_US;
        let behind = (from % SECOND_US + SECOND_US - offset) % SECOND_US;
        from + (SECOND_US - behind) % SECOND_US
    }
}

impl Hidden {
    /// No ticks but those seen; all else as zoneinfo says.
    pub(super) fn none(shape: Shape) -> Self {
        Self {
            ticks: vec![vec![]; shape.cpus],
            more: vec![0; shape.pagesets()],
            alloc_factor: vec![0; shape.pagesets()],
        }
    }

    /// All ticks, in order of time.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut ticks = self.ticks.concat();
        ticks.sort_unstable();
        ticks
    }

    pub(super) fn more(&self, pageset: PagesetId) -> i32 {
        self.more[pageset.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When ticks are due that were not seen, on a trace that begins at 3.3 s, with a phase of 0.35 s.
    fn due(by_cpu: Vec<Vec<u64>>, last_us: u64) -> Vec<Vec<u64>> {
        let heard = vec![vec![]; by_cpu.len()];
        let seen = SeenTicks { by_cpu, heard, first_us: 3_300_000, last_us };
        let at = |ticks: Vec<Tick>| ticks.iter().map(|tick| tick.at_us).collect();
        seen.others(Phase(350_000)).into_iter().map(at).collect()
    }

    #[test]
    fn ticks_come_once_a_second_a_little_earlier_on_each_further_cpu() {
        let ticks = due(vec![vec![], vec![]], 5_400_000);
        assert_eq!(ticks, [[3_350_000, 4_350_000, 5_350_000], [3_338_000, 4_338_000, 5_338_000]]);
    }

    #[test]
    fn a_tick_that_was_seen_stands_for_the_nearest() {
        assert_eq!(due(vec![vec![4_380_000]], 6_000_000), [[3_350_000, 5_350_000]]);
        assert_eq!(due(vec![vec![4_650_000]], 6_500_000), [[3_350_000, 6_350_000]]);
    }

    #[test]
    fn a_cpu_of_which_nothing_is_heard_is_idle() {
        let heard = vec![vec![3_360_000, 4_400_000]];
        let seen = SeenTicks { by_cpu: vec![vec![]], heard, first_us: 3_300_000, last_us: 5_400_000 };
        let idle: Vec<bool> = seen.others(Phase(350_000))[0].iter().map(|tick| tick.idle).collect();
        assert_eq!(idle, [false, true, true]);
    }
}
