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

const fn spec(path: &'static str, unit: &'static str, read: Read, meaning: &'static str) -> MetricSpec {
    MetricSpec { path, unit, meaning, read }
}

/// Every metric.
pub const METRICS: &[MetricSpec] = &[
    spec("SPAN.mean_ns", "ns", Read::Latency(|l, _| per(l.total_ns, l.count)), "mean duration"),
    spec("SPAN.p50_ns", "ns", Read::Latency(|l, _| of(l.p50_ns, l.count)), "half took at most this"),
    spec("SPAN.p99_ns", "ns", Read::Latency(|l, _| of(l.p99_ns, l.count)), "99 in 100 took at most this"),
    spec("SPAN.max_ns", "ns", Read::Latency(|l, _| of(l.max_ns, l.count)), "the longest"),
    spec("SPAN.count_per_second", "1/s", Read::Latency(|l, run| second(l.count, run)), "how many a second"),
    spec(
        "SPAN.total_ns_per_second",
        "ns/s",
        Read::Latency(|l, run| second(l.total_ns, run)),
        "time in them, all CPUs together, per second",
    ),
    spec(
        "SPAN.count_per_operation",
        "1/op",
        Read::Latency(|l, run| per(l.count, run.operations)),
        "how many for each operation of the workload",
    ),
    spec(
        "SPAN.total_ns_per_operation",
        "ns/op",
        Read::Latency(|l, run| per(l.total_ns, run.operations)),
        "time in them for each operation of the workload",
    ),
    spec(
        "SPAN.share.LOW",
        "percent",
        Read::Share,
        "how many of them are in the power-of-two row from LOW ns on",
    ),
    spec(
        "SPAN.emd_buckets",
        "buckets",
        Read::Elsewhere,
        "earth mover's distance from the published histogram, both normalised, in power-of-two rows",
    ),
    spec(
        "SPAN.pages_mean",
        "pages",
        Read::Span(|s, _, _| per(s.pages(), s.latency.count())),
        "base pages that one moves, on average",
    ),
    spec(
        "SPAN.pages_per_second",
        "pages/s",
        Read::Span(|s, _, run| second(s.pages(), run)),
        "base pages that they move a second",
    ),
    spec(
        "SPAN.pages_per_operation",
        "pages/op",
        Read::Span(|s, _, run| per(s.pages(), run.operations)),
        "base pages that they move for each operation of the workload",
    ),
    spec(
        "SPAN.zone_hold_mean_ns",
        "ns",
        Read::Span(|_, c, _| per(c.zone_hold.total().0, c.zone_hold.count())),
        "how long they hold the zone lock each time, on average",
    ),
    spec(
        "SPAN.zone_hold_p99_ns",
        "ns",
        Read::Span(|_, c, _| of(c.zone_hold.percentile(990).0, c.zone_hold.count())),
        "99 in 100 holds took at most this, to 3 %",
    ),
    spec(
        "SPAN.sizes",
        "pages",
        Read::Elsewhere,
        "pages that each moved, in order: an excerpt, compared from where its first number first comes",
    ),
    spec(
        "LOCK.wait_ns_per_second",
        "ns/s",
        Read::Lock(|l, run| second(l.wait_ns, run)),
        "time waited, all CPUs together",
    ),
    spec(
        "LOCK.hold_ns_per_second",
        "ns/s",
        Read::Lock(|l, run| second(l.hold_ns, run)),
        "time held, all locks of the class together",
    ),
    spec(
        "LOCK.wait_mean_ns",
        "ns",
        Read::Lock(|l, _| per(l.wait_ns, l.contended)),
        "mean wait of those that had to wait",
    ),
    spec("LOCK.wait_max_ns", "ns", Read::Lock(|l, _| of(l.wait_max_ns, l.acquired)), "the longest wait"),
    spec("LOCK.hold_mean_ns", "ns", Read::Lock(|l, _| per(l.hold_ns, l.acquired)), "mean hold"),
    spec("LOCK.acquired_per_second", "1/s", Read::Lock(|l, run| second(l.acquired, run)), "times taken"),
    spec(
        "LOCK.contended_percent",
        "percent",
        Read::Lock(|l, _| per(l.contended, l.acquired).map(|share| 100.0 * share)),
        "of the times taken, how many had to wait",
    ),
    spec(
        "LOCK.wait_percent",
        "percent",
        Read::LockShare(|l, measured| Some(100.0 * l.wait_ns as f64 / positive(not_idle(measured).0)?)),
        "of the time that CPUs are not idle, how much they wait for these locks",
    ),
    spec(
        "LOCK.hold_percent",
        "percent",
        Read::LockShare(|l, measured| Some(100.0 * l.hold_ns as f64 / positive(not_idle(measured).0)?)),
        "of the time that CPUs are not idle, how much they hold these locks",
    ),
    spec(
        "pages_per_second",
        "pages/s",
        Read::Whole(|seen| Some(seen.run.throughput.pages_per_second)),
        "base pages allocated",
    ),
    spec(
        "operations_per_second",
        "ops/s",
        Read::Whole(|seen| Some(seen.run.throughput.operations_per_second)),
        "operations of the workload; what one is, the workload says",
    ),
    spec(
        "operations_per_task_second",
        "ops/s",
        Read::Whole(|seen| Some(seen.run.throughput.operations_per_second / positive(seen.run.tasks)?)),
        "the same for each of its tasks, where the workload counts them",
    ),
    spec(
        "cpu.spin_percent",
        "percent",
        Read::Whole(|seen| spin(seen.measured)),
        "of the time that CPUs are not idle, how much they wait for locks",
    ),
    spec(
        "memory.peak_pages",
        "pages",
        Read::Whole(|seen| Some(seen.run.memory.peak_pages as f64)),
        "most pages in use at once",
    ),
    spec(
        "memory.held_pages",
        "pages",
        Read::Whole(|seen| Some(seen.run.memory.held_pages as f64)),
        "in use by tasks at the end",
    ),
    spec(
        "memory.pcp_pages",
        "pages",
        Read::Whole(|seen| Some(seen.run.memory.pcp_pages as f64)),
        "on per-CPU lists at the end",
    ),
    spec(
        "memory.slab_pages",
        "pages",
        Read::Whole(|seen| Some(seen.run.memory.slab_pages as f64)),
        "in slabs at the end",
    ),
    spec(
        "min.NAME",
        "1/s",
        Read::Samples(|sample| sample.min()),
        "least of what parts of the workload that are alike (JVMs) came to at NAME",
    ),
    spec("mean.NAME", "1/s", Read::Samples(|sample| sample.mean()), "their mean"),
    spec("stddev.NAME", "1/s", Read::Samples(|sample| sample.stddev()), "their standard deviation"),
    spec("max.NAME", "1/s", Read::Samples(|sample| sample.max()), "the most of them"),
    spec(
        "sum.NAME",
        "1/s",
        Read::Samples(|sample| Some(sample.mean()? * sample.count() as f64)),
        "all of them together",
    ),
    spec(
        "mean_ns.NAME",
        "ns",
        Read::Samples(|sample| sample.mean()),
        "the mean of the workload's samples NAME of a time",
    ),
    spec("max_ns.NAME", "ns", Read::Samples(|sample| sample.max()), "the longest of them"),
    spec(
        "sum_ns.NAME",
        "ns",
        Read::Samples(|sample| Some(sample.mean()? * sample.count() as f64)),
        "all of them together",
    ),
    spec(
        "p5.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(5)),
        "of a hundred of the workload's samples NAME of a time, 5 took at most this",
    ),
    spec(
        "p10.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(10)),
        "of a hundred of the workload's samples NAME of a time, 10 took at most this",
    ),
    spec(
        "p25.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(25)),
        "of a hundred of the workload's samples NAME of a time, 25 took at most this",
    ),
    spec(
        "p30.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(30)),
        "of a hundred of the workload's samples NAME of a time, 30 took at most this",
    ),
    spec(
        "p40.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(40)),
        "of a hundred of the workload's samples NAME of a time, 40 took at most this",
    ),
    spec(
        "p50.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(50)),
        "of a hundred of the workload's samples NAME of a time, 50 took at most this",
    ),
    spec(
        "p60.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(60)),
        "of a hundred of the workload's samples NAME of a time, 60 took at most this",
    ),
    spec(
        "p75.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(75)),
        "of a hundred of the workload's samples NAME of a time, 75 took at most this",
    ),
    spec(
        "p80.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(80)),
        "of a hundred of the workload's samples NAME of a time, 80 took at most this",
    ),
    spec(
        "p90.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(90)),
        "of a hundred of the workload's samples NAME of a time, 90 took at most this",
    ),
    spec(
        "p95.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(95)),
        "of a hundred of the workload's samples NAME of a time, 95 took at most this",
    ),
    spec(
        "p99.NAME",
        "ns",
        Read::Samples(|sample| sample.percentile(99)),
        "of a hundred of the workload's samples NAME of a time, 99 took at most this",
    ),
    spec(
        "counters.NAME",
        "events",
        Read::Counter(|count, _| Some(count)),
        "a counter of vmstat's, over the run; of one that is kept by zone (pgscan_kswapd, pgalloc) the sum",
    ),
    spec(
        "zone_percent.NAME",
        "percent",
        Read::Zone,
        "a zone's counter of vmstat's (pgalloc_dma32): its part of the sum over all kinds of zone",
    ),
    spec(
        "counters_per_second.NAME",
        "1/s",
        Read::Counter(|count, run| Some(count * 1e9 / positive(run.simulated_ns)?)),
        "the same, per second",
    ),
    spec(
        "counters_per_operation.NAME",
        "1/op",
        Read::Counter(|count, run| Some(count / positive(run.operations)?)),
        "the same, for each operation of the workload",
    ),
    spec(
        "ratio.NAME/NAME",
        "each",
        Read::Ratio,
        "of the first counter's events how many there are for each of the second's (compact_pages_moved/compact_stall)",
    ),
    spec(
        "bandwidth.NAME",
        "MB/s",
        Read::Moved(|moved| Some(moved.bytes as f64 * 1000.0 / positive(moved.time_ns)?)),
        "bytes that the part NAME of the workload moved, as the program counts them, by the time it took; millions",
    ),
    spec(
        "zonelist.NODE",
        "node",
        Read::Elsewhere,
        "nodes that a request of NODE asks, in order: an excerpt, compared from where its first number first comes",
    ),
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
