//! Metrics: what a published figure can be set beside. A metric is a path, `refill.mean_ns`, whose parts are listed in
//! [`METRICS`]; everything that knows metrics follows from that table.

use std::fmt;

use mm::{LockClass, Span};
use sim::Measurements;
use sim::measure::{SpanCost, SpanStats};

use crate::measurements::{Latency, LockStat, Moved, Run};

/// What a run left behind.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its measurements.
    pub run: &'a Run,
    /// What the simulator measured besides.
    pub measured: &'a Measurements,
}

/// A metric that can be read from a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    path: String,
    subject: Subject,
    line: usize,
}

/// What a metric is of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// A kind of span, by its key in [`Run::latency`].
    Span { key: String, span: Span },
    /// A class of locks.
    Lock(LockClass),
    /// A counter.
    Counter(String),
    /// The run.
    Whole,
    /// A power-of-two row.
    Row { key: String, low: u64 },
    /// A timed part of the workload.
    Part(String),
    /// A node's fallback list, by its key in [`Run::sequences`].
    Zonelist,
}

/// A line of [`METRICS`].
#[derive(Clone, Copy)]
pub struct MetricSpec {
    /// The path. `SPAN`, `LOCK`, `NAME` and `LOW` stand for names.
    pub path: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
    read: Read,
}

#[derive(Clone, Copy)]
enum Read {
    /// From a span's latencies.
    Latency(fn(&Latency, &Run) -> Option<f64>),
    /// From what the simulator kept of a span; not for one group of tasks alone.
    Span(fn(&SpanStats, &SpanCost, &Run) -> Option<f64>),
    Lock(fn(&LockStat, &Run) -> Option<f64>),
    LockShare(fn(&LockStat, &Measurements) -> Option<f64>),
    Whole(fn(Seen<'_>) -> Option<f64>),
    Counter(fn(f64, &Run) -> Option<f64>),
    Moved(fn(Moved) -> Option<f64>),
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
        "counters.NAME",
        "events",
        Read::Counter(|count, _| Some(count)),
        "a counter of vmstat's, over the run",
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

fn per(amount: u64, each: u64) -> Option<f64> {
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

impl Metric {
    /// Reads a path.
    ///
    /// # Errors
    /// There is no such metric: what of it is not known, and what would be.
    pub fn parse(path: &str) -> Result<Self, String> {
        let (subject, pattern) = subject(path)?;
        let line = METRICS.iter().position(|spec| spec.path == pattern).ok_or_else(|| {
            let (head, _) = pattern.split_once('.').unwrap_or((&pattern, ""));
            let known = METRICS.iter().filter_map(|spec| spec.path.strip_prefix(head)?.strip_prefix('.'));
            format!(
                "{path} is no metric; after the first part there is {}",
                known.collect::<Vec<_>>().join(", ")
            )
        })?;
        let in_group = matches!(&subject, Subject::Span { key, .. } if key.contains('/'));
        if in_group && matches!(METRICS[line].read, Read::Span(_)) {
            return Err(format!("{path} is not kept for a group of tasks; it is for all of them together"));
        }
        Ok(Self { path: path.to_owned(), subject, line })
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        METRICS[self.line].unit
    }

    /// Its value in a run; `None` where nothing of the kind happened.
    pub fn read(&self, seen: Seen<'_>) -> Option<f64> {
        let run = seen.run;
        match (&self.subject, METRICS[self.line].read) {
            (Subject::Span { key, .. }, Read::Latency(read)) => read(run.latency.get(key)?, run),
            (Subject::Span { span, .. }, Read::Span(read)) => {
                read(&seen.measured.span(*span), seen.measured.cost(*span), run)
            }
            (Subject::Row { key, low }, Read::Share) => share(run.latency.get(key)?, *low),
            (Subject::Lock(class), Read::Lock(read)) => {
                read(run.locks.get(class.name()).unwrap_or(&LockStat::default()), run)
            }
            (Subject::Lock(class), Read::LockShare(read)) => {
                read(run.locks.get(class.name()).unwrap_or(&LockStat::default()), seen.measured)
            }
            (Subject::Counter(name), Read::Counter(read)) => {
                read(run.counters.get(name).copied().unwrap_or(0) as f64, run)
            }
            (Subject::Part(name), Read::Moved(read)) => read(*run.moved.get(name)?),
            (Subject::Whole, Read::Whole(read)) => read(seen),
            _ => None,
        }
    }

    /// The key of the sequence that it names, if it names one: `drain` for `drain.sizes`.
    pub fn sequence(&self) -> Option<&str> {
        match &self.subject {
            Subject::Span { key, .. } if METRICS[self.line].path == "SPAN.sizes" => Some(key),
            Subject::Zonelist => Some(&self.path),
            _ => None,
        }
    }

    /// Whether it has no value of its own, but only beside something that was published.
    pub fn is_beside_published(&self) -> bool {
        matches!(METRICS[self.line].read, Read::Elsewhere)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.path)
    }
}

/// What a path is of, and the path with stand-ins for its names, as in the table.
fn subject(path: &str) -> Result<(Subject, String), String> {
    if METRICS.iter().any(|spec| spec.path == path && matches!(spec.read, Read::Whole(_))) {
        return Ok((Subject::Whole, path.to_owned()));
    }
    let (head, tail) = path.split_once('.').ok_or_else(|| unknown(path))?;
    if head.starts_with("counters") && !tail.is_empty() {
        return Ok((Subject::Counter(tail.to_owned()), format!("{head}.NAME")));
    }
    if head == "bandwidth" && !tail.is_empty() {
        return Ok((Subject::Part(tail.to_owned()), "bandwidth.NAME".into()));
    }
    if head == "zonelist" {
        tail.parse::<u16>().map_err(|_| format!("{path}: after zonelist. comes a node's number"))?;
        return Ok((Subject::Zonelist, "zonelist.NODE".into()));
    }
    if let Some(class) = LockClass::ALL.into_iter().find(|class| class.name() == head) {
        return Ok((Subject::Lock(class), format!("LOCK.{tail}")));
    }
    let name = head.rsplit_once('/').map_or(head, |(_, name)| name);
    let span = Span::ALL.into_iter().find(|span| span.name() == name).ok_or_else(|| unknown(path))?;
    if let Some(low) = tail.strip_prefix("share.") {
        let row = low.parse().ok().filter(|&low| crate::measurements::log2_low(low) == low);
        let low = row.ok_or_else(|| format!("{path}: a row begins at 0 or a power of two from 2 on"))?;
        return Ok((Subject::Row { key: head.to_owned(), low }, "SPAN.share.LOW".into()));
    }
    Ok((Subject::Span { key: head.to_owned(), span }, format!("SPAN.{tail}")))
}

fn unknown(path: &str) -> String {
    let whole = METRICS.iter().filter(|spec| matches!(spec.read, Read::Whole(_))).map(|spec| spec.path);
    let first: Vec<&str> = Span::ALL
        .into_iter()
        .map(Span::name)
        .chain(LockClass::ALL.into_iter().map(LockClass::name))
        .chain(["counters", "bandwidth", "zonelist"])
        .collect();
    let whole: Vec<&str> = whole.collect();
    format!("{path} is no metric; metrics begin with {}, or are {}", first.join(", "), whole.join(", "))
}

fn share(latency: &Latency, low: u64) -> Option<f64> {
    let in_row = latency.log2.iter().find(|row| row.0 == low).map_or(0, |row| row.1);
    per(in_row, latency.count).map(|share| 100.0 * share)
}

#[cfg(test)]
mod tests {
    use mm::Nanos;

    use super::*;
    use crate::measurements::Throughput;

    fn run() -> Run {
        let mut run = Run {
            simulated_ns: 500_000_000,
            operations: 4,
            tasks: 4,
            throughput: Throughput { pages_per_second: 7.0, operations_per_second: 8.0 },
            ..Run::default()
        };
        run.latency.insert("refill".into(), Latency::from_samples([100, 100, 300, 500]));
        run.latency.insert("web/page_alloc".into(), Latency::from_samples([40]));
        let zone = LockStat { acquired: 10, contended: 4, wait_ns: 800, wait_max_ns: 500, hold_ns: 1000 };
        run.locks.insert("zone".into(), zone);
        run.counters.insert("pgfree".into(), 12);
        run.moved.insert("copy".into(), Moved { bytes: 12_000_000, time_ns: 4_000_000 });
        run
    }

    fn measured() -> Measurements {
        let mut measured = Measurements { spans: vec![Default::default()], ..Measurements::default() };
        let drains = &mut measured.spans[0][Span::Drain as usize];
        drains.latency.record(Nanos(5));
        drains.latency.record(Nanos(5));
        drains.by_order[0].pages = 126;
        measured.costs[Span::Drain as usize].zone_hold.record(Nanos(31));
        measured.cpus = vec![sim::CpuTime { busy: Nanos(75), idle: Nanos(900), spin: Nanos(25) }];
        measured
    }

    fn value(path: &str) -> Option<f64> {
        let (run, measured) = (run(), measured());
        Metric::parse(path).expect(path).read(Seen { run: &run, measured: &measured })
    }

    #[test]
    fn paths_lead_to_figures() {
        let expected = [
            ("refill.mean_ns", 250.0),
            ("refill.p99_ns", 500.0),
            ("refill.count_per_second", 8.0),
            ("refill.total_ns_per_second", 2000.0),
            ("refill.count_per_operation", 1.0),
            ("refill.share.64", 50.0),
            ("refill.share.0", 0.0),
            ("web/page_alloc.max_ns", 40.0),
            ("drain.pages_mean", 63.0),
            ("drain.pages_per_second", 252.0),
            ("drain.zone_hold_mean_ns", 31.0),
            ("zone.wait_ns_per_second", 1600.0),
            ("zone.wait_mean_ns", 200.0),
            ("zone.contended_percent", 40.0),
            ("zone.wait_percent", 800.0),
            ("operations_per_task_second", 2.0),
            ("pages_per_second", 7.0),
            ("cpu.spin_percent", 25.0),
            ("counters.pgfree", 12.0),
            ("counters_per_second.pgfree", 24.0),
            ("counters.numa_miss", 0.0),
            ("bandwidth.copy", 3000.0),
        ];
        for (path, figure) in expected {
            assert_eq!(value(path), Some(figure), "{path}");
        }
    }

    #[test]
    fn what_did_not_happen_has_no_value() {
        assert_eq!(value("drain.mean_ns"), None);
        assert_eq!(value("fault.zone_hold_p99_ns"), None);
        assert_eq!(value("bandwidth.triad"), None);
        assert_eq!(value("refill.emd_buckets"), None, "only beside a published histogram");
    }

    #[test]
    fn every_line_of_the_table_can_be_named() {
        for spec in METRICS {
            let path = spec.path.replace("SPAN", "drain").replace("LOCK", "pcp").replace("NAME", "pgfree");
            let metric = Metric::parse(&path.replace("LOW", "4").replace("NODE", "2")).expect(spec.path);
            assert_eq!(metric.unit(), spec.unit);
        }
    }

    #[test]
    fn others_are_refused_with_what_there_is() {
        for path in [
            "",
            "refill",
            "refill.mean",
            "reffil.mean_ns",
            "zone.mean_ns",
            "refill.share.3",
            "counters.",
            "bandwidth.",
            "zonelist.x",
        ] {
            let error = Metric::parse(path).expect_err(path);
            assert!(error.lines().count() == 1 && error.starts_with(path), "{error}");
        }
        let error = Metric::parse("web/refill.pages_mean").expect_err("not kept");
        assert!(error.contains("all of them together"), "{error}");
    }

    #[test]
    fn a_sequence_is_told_from_a_figure() {
        assert_eq!(Metric::parse("drain.sizes").expect("a metric").sequence(), Some("drain"));
        assert_eq!(Metric::parse("drain.mean_ns").expect("a metric").sequence(), None);
        assert_eq!(Metric::parse("zonelist.2").expect("a metric").sequence(), Some("zonelist.2"));
    }
}
