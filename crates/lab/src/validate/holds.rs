//! Holds of the zone lock as a recording shows them: a refill is a run of pages taken from the buddy lists on one CPU, a
//! drain a run of pages given back, each under one hold. Between a run's first and last event nothing else happens there,
//! for interrupts are off; what the events themselves cost is taken out.

use mm::{MigrateType, Nanos, Order, TaskId};
use trace::{Event, EventKind};

use crate::measurements::Sample;

/// What recording adds to each event of a run, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProbeCost {
    /// To a page that is taken for a pageset.
    pub refill_ns: f64,
    /// To a page that is given back.
    pub drain_ns: f64,
}

/// Runs shorter than this, in blocks, say little of time by the page: clocks and the first lines weigh too much.
const TIMED_BLOCKS_MIN: u64 = 16;

/// All holds of one kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Holds {
    /// How many.
    pub count: u64,
    /// Base pages moved under them.
    pub pages: u64,
    /// ns a page, of each run of at least 16 single pages; the recording's cost is taken out, so that noise may make it
    /// negative.
    pub ns_per_page: Vec<f64>,
}

impl Holds {
    /// Pages moved under one hold: the mean; 0 without holds.
    pub fn mean_pages(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.pages as f64 / self.count as f64 }
    }

    /// The median of [`Self::ns_per_page`].
    pub fn median_ns_per_page(&self) -> Option<f64> {
        Sample::new(self.ns_per_page.iter().copied()).median()
    }
}

/// Refills and drains.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Both {
    /// Refills of per-CPU lists.
    pub refills: Holds,
    /// Drains of them.
    pub drains: Holds,
}

/// What the blocks of one hold have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A refill is of one list.
    Refill(Order, MigrateType),
    /// A drain goes through all lists.
    Drain,
}

/// A run that goes on.
#[derive(Clone, Copy, Debug)]
struct OpenHold {
    kind: Kind,
    first: Nanos,
    last: Nanos,
    blocks: u64,
    pages: u64,
}

/// The holds of those tasks that are `ours`.
pub fn find(events: &[Event], cost: ProbeCost, ours: impl Fn(TaskId) -> bool) -> Both {
    let cpus = events.iter().map(|event| usize::from(event.cpu.0) + 1).max().unwrap_or(0);
    let mut open: Vec<Option<OpenHold>> = vec![None; cpus];
    let mut both = Both::default();
    for event in events {
        let run = &mut open[usize::from(event.cpu.0)];
        let moved = match event.kind {
            EventKind::ZoneLocked { order, migratetype, percpu_refill: true, .. } => {
                Some((Kind::Refill(order, migratetype), order))
            }
            EventKind::PcpuDrain { order, .. } => Some((Kind::Drain, order)),
            _ => None,
        };
        match (moved.filter(|_| ours(event.task)), run) {
            (Some((kind, order)), Some(run)) if run.kind == kind => {
                run.last = event.time;
                run.blocks += 1;
                run.pages += u64::from(order.pages());
            }
            (next, run) => {
                run.take().into_iter().for_each(|ended| both.add(ended, cost));
                let begin = |(kind, order): (Kind, Order)| OpenHold {
                    kind,
                    first: event.time,
                    last: event.time,
                    blocks: 1,
                    pages: u64::from(order.pages()),
                };
                *run = next.map(begin);
            }
        }
    }
    open.into_iter().flatten().for_each(|ended| both.add(ended, cost));
    both
}

impl Both {
    fn add(&mut self, run: OpenHold, cost: ProbeCost) {
        let (holds, cost_ns) = match run.kind {
            Kind::Refill(..) => (&mut self.refills, cost.refill_ns),
            Kind::Drain => (&mut self.drains, cost.drain_ns),
        };
        holds.count += 1;
        holds.pages += run.pages;
        if run.blocks >= TIMED_BLOCKS_MIN && run.pages == run.blocks {
            let between = run.last.0.saturating_sub(run.first.0) as f64 / (run.blocks - 1) as f64;
            holds.ns_per_page.push(between - cost_ns);
        }
    }
}
