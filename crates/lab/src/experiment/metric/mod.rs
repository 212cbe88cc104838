//! Metrics: what a published figure can be set beside. A metric is a path, `refill.mean_ns`, whose parts are listed in
//! [`METRICS`]; everything that knows metrics follows from that table.

mod seen;
mod table;

use std::collections::BTreeMap;
use std::fmt;

use mm::{LockClass, Span};

use self::table::{Read, per};
use crate::measurements::{Latency, LockStat, Sample};

pub use seen::Seen;
pub use table::{METRICS, MetricSpec};

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
    /// A kind of span, by its key in [`Run::latency`](crate::measurements::Run::latency).
    Span { key: String, span: Span },
    /// A class of locks.
    Lock(LockClass),
    /// A counter.
    Counter(String),
    /// A counter, and the one that it is divided by.
    Ratio(String, String),
    /// Parts of the workload that are alike, by what they did.
    Samples(String),
    /// The run.
    Whole,
    /// A power-of-two row.
    Row { key: String, low: u64 },
    /// A timed part of the workload.
    Part(String),
    /// A node's fallback list, by its key in [`Run::sequences`](crate::measurements::Run::sequences).
    Zonelist,
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
            (Subject::Counter(name), Read::Counter(read)) => read(run.counter(name) as f64, run),
            (Subject::Part(name), Read::Moved(read)) => read(*run.moved.get(name)?),
            (Subject::Samples(name), Read::Samples(read)) => {
                read(Sample::new(run.samples.get(name)?.iter().copied()))
            }
            (Subject::Counter(name), Read::Zone) => zone_percent(&run.counters, name),
            (Subject::Ratio(of, by), Read::Ratio) => per(run.counter(of), run.counter(by)),
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
    if (head.starts_with("counters") || head == "zone_percent") && !tail.is_empty() {
        return Ok((Subject::Counter(tail.to_owned()), format!("{head}.NAME")));
    }
    if head == "ratio" {
        let (of, by) =
            tail.split_once('/').ok_or_else(|| format!("{path}: after ratio. come two counters, A/B"))?;
        return Ok((Subject::Ratio(of.to_owned(), by.to_owned()), "ratio.NAME/NAME".into()));
    }
    if head == "bandwidth" && !tail.is_empty() {
        return Ok((Subject::Part(tail.to_owned()), "bandwidth.NAME".into()));
    }
    if head == "zonelist" {
        tail.parse::<u16>().map_err(|_| format!("{path}: after zonelist. comes a node's number"))?;
        return Ok((Subject::Zonelist, "zonelist.NODE".into()));
    }
    let of_samples = |spec: &&MetricSpec| {
        matches!(spec.read, Read::Samples(_))
            && spec.path.split_once('.').is_some_and(|(first, _)| first == head)
    };
    if let Some(spec) = METRICS.iter().find(of_samples).filter(|_| !tail.is_empty()) {
        return Ok((Subject::Samples(tail.to_owned()), spec.path.to_owned()));
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
    let of_samples = METRICS.iter().filter(|spec| matches!(spec.read, Read::Samples(_)));
    let first: Vec<&str> = Span::ALL
        .into_iter()
        .map(Span::name)
        .chain(LockClass::ALL.into_iter().map(LockClass::name))
        .chain(["counters", "zone_percent", "ratio", "bandwidth", "zonelist"])
        .chain(of_samples.filter_map(|spec| Some(spec.path.split_once('.')?.0)))
        .collect();
    let whole: Vec<&str> = whole.collect();
    format!("{path} is no metric; metrics begin with {}, or are {}", first.join(", "), whole.join(", "))
}

/// `name`, `pgalloc_dma32`, in percent of the same counter of all kinds of zone.
fn zone_percent(counters: &BTreeMap<String, u64>, name: &str) -> Option<f64> {
    let (counter, _) = name.rsplit_once('_')?;
    let kinds = mm::ZoneKind::ALL.map(|kind| format!("{counter}_{}", kind.name().to_lowercase()));
    let sum: u64 = kinds.iter().filter_map(|kind| counters.get(kind)).sum();
    let own = counters.get(name).copied().unwrap_or(0);
    (sum > 0).then(|| 100.0 * own as f64 / sum as f64)
}

fn share(latency: &Latency, low: u64) -> Option<f64> {
    let in_row = latency.log2.iter().find(|row| row.0 == low).map_or(0, |row| row.1);
    per(in_row, latency.count).map(|share| 100.0 * share)
}

#[cfg(test)]
mod tests {
    use mm::Nanos;
    use sim::Measurements;

    use super::*;
    use crate::measurements::{Moved, Run, Throughput};

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
        run.counters.extend([("pgalloc_dma32".into(), 10), ("pgalloc_normal".into(), 30)]);
        run.samples.insert("jvms-2".into(), vec![1.0, 2.0, 6.0]);
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
            ("counters.pgalloc", 40.0),
            ("bandwidth.copy", 3000.0),
            ("zone_percent.pgalloc_dma32", 25.0),
            ("min.jvms-2", 1.0),
            ("mean.jvms-2", 3.0),
            ("max.jvms-2", 6.0),
            ("sum.jvms-2", 9.0),
            ("mean_ns.jvms-2", 3.0),
            ("p50.jvms-2", 2.0),
            ("sampled.jvms-2", 3.0),
            ("p99.jvms-2", 6.0),
            ("p5.jvms-2", 1.0),
            ("ratio.pgalloc_normal/pgfree", 2.5),
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
        assert_eq!(value("ratio.pgfree/numa_miss"), None);
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
            "ratio.pgfree",
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
