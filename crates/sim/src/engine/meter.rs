//! What is measured while the simulation runs; [`Measurements`] is made from it.

use mm::{Knob, KnobId, KnobUse, LockClass, Nanos, Span, TaskId, Work};

use crate::histogram::Histogram;
use crate::lines::SPANS;
use crate::measure::{KnobTally, SpanCost, SpanStats, TimedCount};
use crate::time::{Ticks, to_nanos};

/// A span that has ended, as a hook sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanRecord {
    /// What it was.
    pub span: Span,
    /// Whose.
    pub task: TaskId,
    /// On which CPU it ended.
    pub cpu: mm::Cpu,
    /// When it began.
    pub since: Nanos,
    /// When it ended.
    pub until: Nanos,
    /// What it did.
    pub work: Work,
}

/// A function that is told of every span.
pub(super) type Hook = Box<dyn FnMut(&SpanRecord)>;

/// Number and ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    time: Ticks,
}

impl Sum {
    fn add(&mut self, time: Ticks) {
        self.count += 1;
        self.time += time;
    }

    fn tally(self) -> TimedCount {
        TimedCount { count: self.count, time: to_nanos(self.time) }
    }
}

/// Where time in a kind of span went, touches apart.
#[derive(Clone, Debug, Default)]
struct Spent {
    waits: [Sum; LockClass::ALL.len()],
    holds: [Sum; LockClass::ALL.len()],
    hand_overs: Sum,
    lock_taking: Sum,
    instructions: Sum,
    memory: Sum,
    zone_hold: Histogram,
}

#[derive(Default)]
pub(super) struct Meter {
    pub(super) groups: Vec<[SpanStats; Span::COUNT]>,
    spent: [Spent; SPANS],
    pub(super) yields: u64,
    /// By knob; empty until one is used. What a knob decided before the clock starts shapes what is measured later, so this
    /// is never reset.
    pub(super) knobs: Vec<KnobTally>,
    /// When measuring began.
    pub(super) since: Ticks,
}

impl Meter {
    /// Makes room for the spans of `group`.
    pub(super) fn know_group(&mut self, group: u16) {
        while self.groups.len() <= usize::from(group) {
            self.groups.push(Default::default());
        }
    }

    pub(super) fn knob(&mut self, knob: KnobId, used: KnobUse) {
        if self.knobs.is_empty() {
            self.knobs = vec![KnobTally::default(); mm::KNOBS.len()];
        }
        self.knobs[usize::from(knob.0)].count(used);
    }

    /// `knob` gets another value: what the one before did does not count for this one.
    pub(super) fn forget_knob(&mut self, knob: Knob) {
        if let Some(tally) = self.knobs.get_mut(knob as usize) {
            *tally = KnobTally::default();
        }
    }

    pub(super) fn span(&mut self, group: u16, span: Span, latency: Nanos, work: Work) {
        let stats = &mut self.groups[usize::from(group)][span as usize];
        stats.latency.record(latency);
        let order = &mut stats.by_order[work.order.index()];
        order.spans.count += 1;
        order.spans.time.0 += latency.0;
        order.pages += u64::from(work.count) << work.order.get();
        stats.empty += u64::from(work.count == 0);
    }

    pub(super) fn waited(&mut self, span: usize, class: LockClass, wait: Ticks, hand_over: Ticks) {
        self.spent[span].waits[class as usize].add(wait);
        self.spent[span].hand_overs.add(hand_over);
    }

    pub(super) fn took(&mut self, span: usize, time: Ticks) {
        self.spent[span].lock_taking.add(time);
    }

    pub(super) fn held(&mut self, span: usize, class: LockClass, hold: Ticks) {
        let spent = &mut self.spent[span];
        spent.holds[class as usize].add(hold);
        if class == LockClass::Zone {
            spent.zone_hold.record(to_nanos(hold));
        }
    }

    pub(super) fn instructions(&mut self, span: usize, time: Ticks) {
        self.spent[span].instructions.add(time);
    }

    pub(super) fn memory(&mut self, span: usize, time: Ticks) {
        self.spent[span].memory.add(time);
    }

    /// Waits for locks in all.
    pub(super) fn waited_in_all(&self) -> Ticks {
        self.spent.iter().flat_map(|spent| &spent.waits).map(|sum| sum.time).sum()
    }

    /// What is known of a span but its touches.
    pub(super) fn cost(&self, span: usize) -> SpanCost {
        let spent = &self.spent[span];
        SpanCost {
            touches: Default::default(),
            waits: spent.waits.map(Sum::tally),
            holds: spent.holds.map(Sum::tally),
            hand_overs: spent.hand_overs.tally(),
            lock_taking: spent.lock_taking.tally(),
            instructions: spent.instructions.tally(),
            memory: spent.memory.tally(),
            zone_hold: spent.zone_hold.clone(),
        }
    }

    /// Forgets everything measured before `now`.
    pub(super) fn reset(&mut self, now: Ticks) {
        let groups = self.groups.len();
        *self = Self { since: now, knobs: core::mem::take(&mut self.knobs), ..Self::default() };
        self.groups.resize_with(groups, Default::default);
    }
}
