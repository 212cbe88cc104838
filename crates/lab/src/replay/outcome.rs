//! From what the simulation measured to a [`Run`].

use std::collections::BTreeMap;

use mm::{LockClass, Nanos, Span};
use sim::Measurements;

use super::plan::{Plan, Variant};
use super::player::Stage;
use crate::measurements::{Confidence, KnobValue, Latency, LockStat, Memory, Run, Throughput};

/// What a run is made of.
pub(super) struct Parts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) variant: &'a Variant,
    pub(super) stage: &'a Stage,
    pub(super) measured: &'a Measurements,
    /// From the first task's start to the last one's end.
    pub(super) simulated: Nanos,
}

pub(super) fn run(parts: &Parts<'_>) -> Run {
    let Parts { plan, variant, stage, measured, simulated } = parts;
    let operations = stage.tally.operations.get();
    let seconds = simulated.0 as f64 / 1e9;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let memory = stage.mm.memory_use();
    Run {
        workload: workload_name(plan, stage),
        machine: plan.profile.name().to_owned(),
        policy: plan.policy.name().to_owned(),
        variant: variant.name(),
        seed: plan.seed,
        confidence: Confidence::Extrapolated,
        confidence_reason: confidence_reason(plan),
        knobs: knobs(variant),
        simulated_ns: simulated.0,
        wall_ns: 0,
        operations,
        throughput: Throughput {
            pages_per_second: per_second(measured.span(Span::PageAlloc).pages()),
            operations_per_second: per_second(operations),
        },
        latency: latencies(measured),
        locks: locks(measured),
        memory: Memory {
            peak_pages: stage.tally.peak.get(),
            held_pages: memory.held(),
            slab_pages: 0,
            pcp_pages: memory.pcp,
        },
        counters: stage.mm.counters().0,
        omissions: omissions(stage),
    }
}

fn workload_name(plan: &Plan, stage: &Stage) -> String {
    let name = &stage.workload.name;
    match (plan.copies, plan.repeat) {
        (1, 1) => name.clone(),
        (copies, 1) => format!("{name}, {copies} copies"),
        (copies, repeat) => format!("{name}, {copies} copies, {repeat} rounds each"),
    }
}

fn confidence_reason(plan: &Plan) -> String {
    format!(
        "how many pages a refill or drain moves follows {}'s rules, which are held against kernels; times on {} rest on \
         published and estimated latencies that were not checked against a run of that machine",
        plan.policy.name(),
        plan.profile.name()
    )
}

fn knobs(variant: &Variant) -> BTreeMap<String, KnobValue> {
    variant
        .knobs
        .iter()
        .map(|(knob, value)| (knob.spec().name.to_owned(), KnobValue::from(*value as i64)))
        .collect()
}

fn latencies(measured: &Measurements) -> BTreeMap<String, Latency> {
    let spans = Span::ALL.into_iter().filter_map(|span| {
        let histogram = measured.span(span).latency;
        (histogram.count() > 0).then(|| (span.name().to_owned(), latency(&histogram)))
    });
    spans.collect()
}

fn latency(histogram: &sim::Histogram) -> Latency {
    // The simulator's rows are 0, 1, 2 to 3, …; funclatency's are 0 to 1, 2 to 3, ….
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    for (row, count) in histogram.log2().into_iter().enumerate().filter(|(_, count)| *count > 0) {
        *rows.entry(if row < 2 { 0 } else { 1 << (row - 1) }).or_default() += count;
    }
    Latency {
        count: histogram.count(),
        mean_ns: histogram.mean().0,
        p50_ns: histogram.percentile(500).0,
        p99_ns: histogram.percentile(990).0,
        max_ns: histogram.max().0,
        total_ns: histogram.total().0,
        log2: rows.into_iter().collect(),
    }
}

fn locks(measured: &Measurements) -> BTreeMap<String, LockStat> {
    let classes = LockClass::ALL.into_iter().filter_map(|class| {
        let stats = measured.class(class);
        let stat = LockStat {
            acquired: stats.acquired,
            contended: stats.contended + stats.failed_tries,
            wait_ns: stats.wait.0,
            wait_max_ns: stats.wait_max.0,
            hold_ns: stats.hold.0,
        };
        (stats.acquired > 0).then(|| (class.name().to_owned(), stat))
    });
    classes.collect()
}

fn omissions(stage: &Stage) -> BTreeMap<String, u64> {
    let mut omissions = stage.workload.omissions.by_name();
    let of_machine = [
        ("failed_allocations", &stage.tally.failed),
        ("frees_of_failed_allocations", &stage.tally.frees_of_failed),
    ];
    for (name, counter) in of_machine {
        if counter.get() > 0 {
            omissions.insert(name.to_owned(), counter.get());
        }
    }
    omissions
}
