//! What the engine measures. It is pure data, detailed enough to explain a mean. `lab` turns it into reports.

use mm::{Knob, KnobUse, LockClass, Margin, Nanos, Order, Span, Verdict};

use crate::histogram::Histogram;

/// Where a touched line was found, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// This core's first-level cache.
    L1,
    /// This core's second-level cache.
    L2,
    /// The last-level cache that this core shares.
    L3,
    /// Dirty or owned in the cache of a thread of the same core.
    Smt,
    /// In the private cache of another core under the same last-level cache.
    SameLlc,
    /// In a cache elsewhere on the same socket.
    SameSocket,
    /// In a cache of another socket.
    CrossSocket,
    /// In memory of this CPU's node.
    LocalDram,
    /// In memory of another node.
    RemoteDram,
}

impl Level {
    /// All levels, nearest first.
    pub const ALL: [Self; 9] = [
        Self::L1,
        Self::L2,
        Self::L3,
        Self::Smt,
        Self::SameLlc,
        Self::SameSocket,
        Self::CrossSocket,
        Self::LocalDram,
        Self::RemoteDram,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::Smt => "SMT sibling",
            Self::SameLlc => "same LLC",
            Self::SameSocket => "same socket",
            Self::CrossSocket => "other socket",
            Self::LocalDram => "local DRAM",
            Self::RemoteDram => "remote DRAM",
        }
    }
}

/// Something that happened `count` times and took `time` altogether.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimedCount {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub time: Nanos,
}

impl TimedCount {
    fn subtract(&mut self, earlier: &Self) {
        self.count -= earlier.count;
        self.time.0 -= earlier.time.0;
    }
}

/// Latency of one kind of span, for one group of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpanStats {
    /// From enter to leave, spans within it and waits included.
    pub latency: Histogram,
    /// By the order of the request.
    pub by_order: [OrderStats; Order::MAX.index() + 1],
    /// Spans that did nothing ([`mm::Work::count`] 0): allocations that failed, empty drains.
    pub empty: u64,
}

impl SpanStats {
    /// Base pages moved.
    pub fn pages(&self) -> u64 {
        self.by_order.iter().map(|order| order.pages).sum()
    }
}

/// Spans of one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrderStats {
    /// Spans and the time they took.
    pub spans: TimedCount,
    /// Base pages that they moved.
    pub pages: u64,
}

/// Where the time of a kind of span went, over all tasks. Time is booked to the innermost span.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpanCost {
    /// Lines touched, by the level that they were found in, indexed as [`Level::ALL`]. The time has the instructions
    /// around each touch in it.
    pub touches: [TimedCount; Level::COUNT],
    /// Waits for contended locks, by class as in [`LockClass::ALL`].
    pub waits: [TimedCount; LockClass::ALL.len()],
    /// Lock holds that ended in the span, by class.
    pub holds: [TimedCount; LockClass::ALL.len()],
    /// Locks got from a CPU that held them while this one waited: how many of the waits, and the part of them that
    /// was the lock's way here.
    pub hand_overs: TimedCount,
    /// Taking locks that were free.
    pub lock_taking: TimedCount,
    /// Fixed instruction costs of the paths, and interrupts switched off and on.
    pub instructions: TimedCount,
    /// Clearing, copying and streaming of memory, and modelled accesses.
    pub memory: TimedCount,
    /// How long the zone lock was held, each time.
    pub zone_hold: Histogram,
}

/// Statistics of a lock, or of all locks of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats {
    /// Times taken.
    pub acquired: u64,
    /// Those of them that had to wait.
    pub contended: u64,
    /// Try-locks that found it held.
    pub failed_tries: u64,
    /// Time waited.
    pub wait: Nanos,
    /// The longest wait.
    pub wait_max: Nanos,
    /// Time held.
    pub hold: Nanos,
    /// The longest hold.
    pub hold_max: Nanos,
    /// Times that it went straight to a waiter.
    pub hand_overs: u64,
}

impl LockStats {
    pub(crate) fn add(&mut self, other: &Self) {
        self.acquired += other.acquired;
        self.contended += other.contended;
        self.failed_tries += other.failed_tries;
        self.wait.0 += other.wait.0;
        self.wait_max = self.wait_max.max(other.wait_max);
        self.hold.0 += other.hold.0;
        self.hold_max = self.hold_max.max(other.hold_max);
        self.hand_overs += other.hand_overs;
    }

    fn subtract(&mut self, earlier: &Self) {
        self.acquired -= earlier.acquired;
        self.contended -= earlier.contended;
        self.failed_tries -= earlier.failed_tries;
        self.wait.0 -= earlier.wait.0;
        self.hold.0 -= earlier.hold.0;
        self.hand_overs -= earlier.hand_overs;
    }
}

/// One lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockReport {
    /// Its class.
    pub class: LockClass,
    /// Which of its class, as its maker numbered it.
    pub index: u32,
    /// What happened to it.
    pub stats: LockStats,
}

/// What a knob did, of those that somebody set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KnobTally {
    /// Times that a rule read it.
    pub consulted: u64,
    /// Those of them in which its default would have decided otherwise.
    pub differed: u64,
    /// The nearest that a decision came to being another than the default's, of those that compare figures and were not:
    /// measured by the mark, for small zones have small marks.
    pub nearest: Option<Margin>,
    /// The least figure that such a decision compared.
    pub least_seen: Option<u64>,
    /// The greatest.
    pub most_seen: Option<u64>,
    /// Decisions that compared a figure at or above both marks, its own and the default's.
    pub above: u64,
    /// Those that compared one below both.
    pub below: u64,
}

impl KnobTally {
    pub(crate) fn count(&mut self, used: KnobUse) {
        self.consulted += 1;
        if used.verdict == Verdict::Otherwise {
            self.differed += 1;
            return;
        }
        let Some(margin) = used.margin else { return };
        let is_above = margin.seen >= margin.mark.max(margin.default_mark);
        self.above += u64::from(is_above);
        self.below += u64::from(!is_above);
        self.least_seen = Some(self.least_seen.map_or(margin.seen, |least| least.min(margin.seen)));
        self.most_seen = Some(self.most_seen.map_or(margin.seen, |most| most.max(margin.seen)));
        if self.nearest.is_none_or(|nearest| margin.is_nearer_than(&nearest)) {
            self.nearest = Some(margin);
        }
    }
}

/// How a CPU spent its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// Running a task, spinning excluded.
    pub busy: Nanos,
    /// With nothing to run, or on the way out of that.
    pub idle: Nanos,
    /// Waiting for a lock.
    pub spin: Nanos,
}

/// How a task spent its time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskTime {
    /// Its name.
    pub name: String,
    /// Waiting for locks.
    pub waited: Nanos,
}

/// Everything measured since the simulation, or the last reset, began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Measurements {
    /// Simulated time covered.
    pub simulated: Nanos,
    /// Latencies: `spans[group][span]`, the group as in [`crate::TaskSpec::group`], the span as in [`Span::ALL`].
    pub spans: Vec<[SpanStats; Span::COUNT]>,
    /// Where time went: by span as in [`Span::ALL`]; the last entry is time outside of any.
    pub costs: [SpanCost; Span::COUNT + 1],
    /// Locks by class, as in [`LockClass::ALL`].
    pub classes: [LockStats; LockClass::ALL.len()],
    /// Every lock, in the order in which they were made.
    pub locks: Vec<LockReport>,
    /// Every CPU.
    pub cpus: Vec<CpuTime>,
    /// Every task, in the order in which they were made.
    pub tasks: Vec<TaskTime>,
    /// Modelled accesses ([`crate::SimMachine::access`]) by the level that they found their lines in, as in [`Level::ALL`].
    pub accesses: [u64; Level::COUNT],
    /// Times that a CPU went from one task to another.
    pub context_switches: u64,
    /// Times that the engine went from one CPU to another to keep effects in order; a cost of simulating alone.
    pub yields: u64,
    /// What each knob did that somebody set, in the order of [`mm::KNOBS`]; empty where none was read.
    pub knobs: Vec<KnobTally>,
}

impl Measurements {
    /// What `knob` did.
    pub fn knob(&self, knob: Knob) -> KnobTally {
        self.knobs.get(knob as usize).copied().unwrap_or_default()
    }

    /// A kind of span over all groups.
    pub fn span(&self, span: Span) -> SpanStats {
        let mut sum = SpanStats::default();
        for group in &self.spans {
            let stats = &group[span as usize];
            sum.latency.merge(&stats.latency);
            sum.empty += stats.empty;
            for (mine, theirs) in sum.by_order.iter_mut().zip(&stats.by_order) {
                mine.spans.count += theirs.spans.count;
                mine.spans.time.0 += theirs.spans.time.0;
                mine.pages += theirs.pages;
            }
        }
        sum
    }

    /// Where the time of a kind of span went.
    pub fn cost(&self, span: Span) -> &SpanCost {
        &self.costs[span as usize]
    }

    /// A lock class.
    pub fn class(&self, class: LockClass) -> &LockStats {
        &self.classes[class as usize]
    }

    /// What happened since `earlier`, a former state of the same simulation. Extremes (longest waits and holds, largest
    /// latencies, knobs' nearest decisions) stay those of the whole.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut part = self.clone();
        part.simulated.0 -= earlier.simulated.0;
        part.context_switches -= earlier.context_switches;
        part.yields -= earlier.yields;
        part.accesses.iter_mut().zip(&earlier.accesses).for_each(|(mine, theirs)| *mine -= theirs);
        for (mine, theirs) in part.spans.iter_mut().flatten().zip(earlier.spans.iter().flatten()) {
            mine.subtract(theirs);
        }
        for (mine, theirs) in part.costs.iter_mut().zip(&earlier.costs) {
            mine.subtract(theirs);
        }
        for (mine, theirs) in part.classes.iter_mut().zip(&earlier.classes) {
            mine.subtract(theirs);
        }
        for (mine, theirs) in part.locks.iter_mut().zip(&earlier.locks) {
            mine.stats.subtract(&theirs.stats);
        }
        for (mine, theirs) in part.cpus.iter_mut().zip(&earlier.cpus) {
            mine.busy.0 = mine.busy.0.saturating_sub(theirs.busy.0);
            mine.idle.0 = mine.idle.0.saturating_sub(theirs.idle.0);
            mine.spin.0 = mine.spin.0.saturating_sub(theirs.spin.0);
        }
        for (mine, theirs) in part.tasks.iter_mut().zip(&earlier.tasks) {
            mine.waited.0 -= theirs.waited.0;
        }
        for (mine, theirs) in part.knobs.iter_mut().zip(&earlier.knobs) {
            mine.consulted -= theirs.consulted;
            mine.differed -= theirs.differed;
            mine.above -= theirs.above;
            mine.below -= theirs.below;
        }
        part
    }
}

impl SpanStats {
    fn subtract(&mut self, earlier: &Self) {
        self.latency.subtract(&earlier.latency);
        self.empty -= earlier.empty;
        for (mine, theirs) in self.by_order.iter_mut().zip(&earlier.by_order) {
            mine.spans.subtract(&theirs.spans);
            mine.pages -= theirs.pages;
        }
    }
}

impl SpanCost {
    fn subtract(&mut self, earlier: &Self) {
        let tallies = [&mut self.hand_overs, &mut self.lock_taking, &mut self.instructions, &mut self.memory];
        let former = [&earlier.hand_overs, &earlier.lock_taking, &earlier.instructions, &earlier.memory];
        tallies.into_iter().zip(former).for_each(|(mine, theirs)| mine.subtract(theirs));
        self.touches.iter_mut().zip(&earlier.touches).for_each(|(mine, theirs)| mine.subtract(theirs));
        self.waits.iter_mut().zip(&earlier.waits).for_each(|(mine, theirs)| mine.subtract(theirs));
        self.holds.iter_mut().zip(&earlier.holds).for_each(|(mine, theirs)| mine.subtract(theirs));
        self.zone_hold.subtract(&earlier.zone_hold);
    }
}
