//! The table of metrics: a line for each thing that a published figure can be set beside, with how it is read.

use sim::Measurements;
use sim::measure::{SpanCost, SpanStats};

use crate::experiment::metric::seen::Seen;
use crate::measurements::{Latency, LockStat, Moved, Run, Sample};

/// A line of [`METRICS`].
#[derive(Clone, Copy)]
pub struct MetricSpec {
    /// The path. `SPAN`, `LOCK`, `NAME` and `LOW` stand for names.
    pub path: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
    pub(super) read: Read,
}

#[derive(Clone, Copy)]
pub(super) enum Read {
    /// From a span's latencies.
    Latency(fn(&Latency, &Run) -> Option<f64>),
    /// From what the simulator kept of a span; not for one group of tasks alone.
    Span(fn(&SpanStats, &SpanCost, &Run) -> Option<f64>),
    Lock(fn(&LockStat, &Run) -> Option<f64>),
    LockShare(fn(&LockStat, &Measurements) -> Option<f64>),
    Whole(fn(Seen<'_>) -> Option<f64>),
    Counter(fn(f64, &Run) -> Option<f64>),
    Moved(fn(Moved) -> Option<f64>),
    Samples(fn(Sample) -> Option<f64>),
    /// A counter's part of its kind.
    Zone,
    /// A counter by another.
    Ratio,
    /// How many percent of spans are in a row.
    Share,
    /// Set beside a published histogram, or a published sequence; not read by itself.
    Elsewhere,
}

const fn metric(path: &'static str, unit: &'static str, read: Read) -> MetricSpec {
    MetricSpec { path, unit, meaning: "", read }
}

impl MetricSpec {
    const fn is(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }
}

/// A percentile of samples.
macro_rules! percentile {
    ($of_100:literal) => {
        metric(concat!("p", $of_100, ".NAME"), "ns", Read::Samples(|sample| sample.percentile($of_100))).is(
            concat!("of a hundred of the workload's samples NAME of a time, ", $of_100, " took at most this"),
        )
    };
}

/// Every metric.
pub const METRICS: &[MetricSpec] = &[
    metric("SPAN.mean_ns", "ns", Read::Latency(|l, _| per(l.total_ns, l.count))).is("mean duration"),
    metric("SPAN.p50_ns", "ns", Read::Latency(|l, _| of(l.p50_ns, l.count))).is("half took at most this"),
    metric("SPAN.p99_ns", "ns", Read::Latency(|l, _| of(l.p99_ns, l.count)))
        .is("99 in 100 took at most this"),
    metric("SPAN.max_ns", "ns", Read::Latency(|l, _| of(l.max_ns, l.count))).is("the longest"),
    metric("SPAN.count_per_second", "1/s", Read::Latency(|l, run| second(l.count, run)))
        .is("how many a second"),
    metric("SPAN.total_ns_per_second", "ns/s", Read::Latency(|l, run| second(l.total_ns, run)))
        .is("time in them, all CPUs together, per second"),
    metric("SPAN.count_per_operation", "1/op", Read::Latency(|l, run| per(l.count, run.operations)))
        .is("how many for each operation of the workload"),
    metric("SPAN.total_ns_per_operation", "ns/op", Read::Latency(|l, run| per(l.total_ns, run.operations)))
        .is("time in them for each operation of the workload"),
    metric("SPAN.share.LOW", "percent", Read::Share)
        .is("how many of them are in the power-of-two row from LOW ns on"),
    metric("SPAN.emd_buckets", "buckets", Read::Elsewhere)
        .is("earth mover's distance from the published histogram, both normalised, in power-of-two rows"),
    metric("SPAN.pages_mean", "pages", Read::Span(|s, _, _| per(s.pages(), s.latency.count())))
        .is("base pages that one moves, on average"),
    metric("SPAN.pages_per_second", "pages/s", Read::Span(|s, _, run| second(s.pages(), run)))
        .is("base pages that they move a second"),
    metric("SPAN.pages_per_operation", "pages/op", Read::Span(|s, _, run| per(s.pages(), run.operations)))
        .is("base pages that they move for each operation of the workload"),
    metric(
        "SPAN.zone_hold_mean_ns",
        "ns",
        Read::Span(|_, c, _| per(c.zone_hold.total().0, c.zone_hold.count())),
    )
    .is("how long they hold the zone lock each time, on average"),
    metric(
        "SPAN.zone_hold_p99_ns",
        "ns",
        Read::Span(|_, c, _| of(c.zone_hold.percentile(990).0, c.zone_hold.count())),
    )
    .is("99 in 100 holds took at most this, to 3 %"),
    metric("SPAN.sizes", "pages", Read::Elsewhere)
        .is("pages that each moved, in order: an excerpt, compared from where its first number first comes"),
    metric("LOCK.wait_ns_per_second", "ns/s", Read::Lock(|l, run| second(l.wait_ns, run)))
        .is("time waited, all CPUs together"),
    metric("LOCK.hold_ns_per_second", "ns/s", Read::Lock(|l, run| second(l.hold_ns, run)))
        .is("time held, all locks of the class together"),
    metric("LOCK.wait_mean_ns", "ns", Read::Lock(|l, _| per(l.wait_ns, l.contended)))
        .is("mean wait of those that had to wait"),
    metric("LOCK.wait_max_ns", "ns", Read::Lock(|l, _| of(l.wait_max_ns, l.acquired))).is("the longest wait"),
    metric("LOCK.hold_mean_ns", "ns", Read::Lock(|l, _| per(l.hold_ns, l.acquired))).is("mean hold"),
    metric("LOCK.acquired_per_second", "1/s", Read::Lock(|l, run| second(l.acquired, run))).is("times taken"),
    metric(
        "LOCK.contended_percent",
        "percent",
        Read::Lock(|l, _| per(l.contended, l.acquired).map(|share| 100.0 * share)),
    )
    .is("of the times taken, how many had to wait"),
    metric(
        "LOCK.wait_percent",
        "percent",
        Read::LockShare(|l, measured| Some(100.0 * l.wait_ns as f64 / positive(not_idle(measured).0)?)),
    )
    .is("of the time that CPUs are not idle, how much they wait for these locks"),
    metric(
        "LOCK.hold_percent",
        "percent",
        Read::LockShare(|l, measured| Some(100.0 * l.hold_ns as f64 / positive(not_idle(measured).0)?)),
    )
    .is("of the time that CPUs are not idle, how much they hold these locks"),
    metric("pages_per_second", "pages/s", Read::Whole(|seen| Some(seen.run.throughput.pages_per_second)))
        .is("base pages allocated"),
    metric(
        "operations_per_second",
        "ops/s",
        Read::Whole(|seen| Some(seen.run.throughput.operations_per_second)),
    )
    .is("operations of the workload; what one is, the workload says"),
    metric(
        "operations_per_task_second",
        "ops/s",
        Read::Whole(|seen| Some(seen.run.throughput.operations_per_second / positive(seen.run.tasks)?)),
    )
    .is("the same for each of its tasks, where the workload counts them"),
    metric("cpu.spin_percent", "percent", Read::Whole(|seen| spin(seen.measured)))
        .is("of the time that CPUs are not idle, how much they wait for locks"),
    metric("memory.peak_pages", "pages", Read::Whole(|seen| Some(seen.run.memory.peak_pages as f64)))
        .is("most pages in use at once"),
    metric("memory.held_pages", "pages", Read::Whole(|seen| Some(seen.run.memory.held_pages as f64)))
        .is("in use by tasks at the end"),
    metric("memory.pcp_pages", "pages", Read::Whole(|seen| Some(seen.run.memory.pcp_pages as f64)))
        .is("on per-CPU lists at the end"),
    metric("memory.slab_pages", "pages", Read::Whole(|seen| Some(seen.run.memory.slab_pages as f64)))
        .is("in slabs at the end"),
    metric("min.NAME", "1/s", Read::Samples(|sample| sample.min()))
        .is("least of what parts of the workload that are alike (JVMs) came to at NAME"),
    metric("mean.NAME", "1/s", Read::Samples(|sample| sample.mean())).is("their mean"),
    metric("stddev.NAME", "1/s", Read::Samples(|sample| sample.stddev())).is("their standard deviation"),
    metric("max.NAME", "1/s", Read::Samples(|sample| sample.max())).is("the most of them"),
    metric("sum.NAME", "1/s", Read::Samples(|sample| Some(sample.mean()? * sample.count() as f64)))
        .is("all of them together"),
    metric("mean_ns.NAME", "ns", Read::Samples(|sample| sample.mean()))
        .is("the mean of the workload's samples NAME of a time"),
    metric("max_ns.NAME", "ns", Read::Samples(|sample| sample.max())).is("the longest of them"),
    metric("sum_ns.NAME", "ns", Read::Samples(|sample| Some(sample.mean()? * sample.count() as f64)))
        .is("all of them together"),
    metric("sampled.NAME", "each", Read::Samples(|sample| sample.mean()))
        .is("the mean of the workload's samples NAME that are counts (a script's `mark LABEL COUNTER`)"),
    percentile!(5),
    percentile!(10),
    percentile!(25),
    percentile!(30),
    percentile!(40),
    percentile!(50),
    percentile!(60),
    percentile!(75),
    percentile!(80),
    percentile!(90),
    percentile!(95),
    percentile!(99),
    metric("counters.NAME", "events", Read::Counter(|count, _| Some(count)))
        .is("a counter of vmstat's, over the run; of one that is kept by zone (pgscan_kswapd, pgalloc) the \
            sum"),
    metric("zone_percent.NAME", "percent", Read::Zone)
        .is("a zone's counter of vmstat's (pgalloc_dma32): its part of the sum over all kinds of zone"),
    metric(
        "counters_per_second.NAME",
        "1/s",
        Read::Counter(|count, run| Some(count * 1e9 / positive(run.simulated_ns)?)),
    )
    .is("the same, per second"),
    metric(
        "counters_per_operation.NAME",
        "1/op",
        Read::Counter(|count, run| Some(count / positive(run.operations)?)),
    )
    .is("the same, for each operation of the workload"),
    metric("ratio.NAME/NAME", "each", Read::Ratio)
        .is("of the first counter's events how many there are for each of the second's \
            (compact_pages_moved/compact_stall)"),
    metric(
        "bandwidth.NAME",
        "MB/s",
        Read::Moved(|moved| Some(moved.bytes as f64 * 1000.0 / positive(moved.time_ns)?)),
    )
    .is("bytes that the part NAME of the workload moved, as the program counts them, by the time it \
            took; millions"),
    metric("zonelist.NODE", "node", Read::Elsewhere)
        .is("nodes that a request of NODE asks, in order: an excerpt, compared from where its first number \
            first comes"),
];

fn positive(number: u64) -> Option<f64> {
    (number > 0).then_some(number as f64)
}

pub(super) fn per(amount: u64, each: u64) -> Option<f64> {
    Some(amount as f64 / positive(each)?)
}

/// A figure of something that happened.
fn of(figure: u64, count: u64) -> Option<f64> {
    (count > 0).then_some(figure as f64)
}

fn second(amount: u64, run: &Run) -> Option<f64> {
    Some(amount as f64 * 1e9 / positive(run.simulated_ns)?)
}

/// Time that CPUs were not idle, and how much of it they waited for locks, ns.
fn not_idle(measured: &Measurements) -> (u64, u64) {
    let add = |(all, spin), cpu: &sim::CpuTime| (all + cpu.spin.0 + cpu.busy.0, spin + cpu.spin.0);
    measured.cpus.iter().fold((0, 0), add)
}

fn spin(measured: &Measurements) -> Option<f64> {
    let (all, spin) = not_idle(measured);
    Some(100.0 * spin as f64 / positive(all)?)
}
