//! From what a simulation measured to the figures of a [`Run`](crate::measurements::Run).

use std::collections::BTreeMap;

use mm::slab::SlabEvent;
use mm::{Knob, LockClass, MemoryUse, Nanos, Span};
use sim::Measurements;

use crate::measurements::{
    KnobValue, Latency, LockStat, LockWaits, Memory, ProgramUse, RecordingUse, Run, Throughput,
};
use crate::reach::{self, Refusal};
use crate::stage::{Setup, Stage};

/// What a run was, as far as nothing measured says it.
pub(crate) struct About<'a> {
    /// The machine and what it was given.
    pub(crate) setup: Setup<'a>,
    /// The workload's title.
    pub(crate) workload: String,
    /// The variant's name.
    pub(crate) variant: String,
    /// The knobs in force.
    pub(crate) knobs: &'a [(Knob, u64)],
    /// Knobs that were changed on the way.
    pub(crate) changed: &'a [Knob],
    /// Knobs that cannot act, and were set by force.
    pub(crate) refused: &'a [Refusal],
}

/// What was measured since measurements were reset, as a run's figures and as it is. How sure they are is the caller's to say, and
/// slabs' counters ([`slab_counters`]) are its to add. Reading counters takes locks, so it comes after the measurements.
pub(crate) fn measured(stage: &Stage, about: &About<'_>) -> (Run, Measurements) {
    stage.note_waits();
    let measured = stage.machine().measurements();
    let memory = stage.mm.views().memory_use();
    // Counting takes time, in which tasks go on.
    let simulated = Nanos(measured.simulated.0 - stage.start.get().0);
    let done = run(stage, &measured, simulated, memory);
    let setup = &about.setup;
    let set = about.knobs.iter().map(|&(knob, value)| (knob, Some(value)));
    let set = set.chain(about.changed.iter().map(|&knob| (knob, None)));
    let run = Run {
        workload: about.workload.clone(),
        machine: setup.profile.name().to_owned(),
        machine_digest: setup.profile.digest(),
        policy: setup.policy.name().to_owned(),
        variant: about.variant.clone(),
        seed: setup.seed,
        knobs: knobs(about.knobs),
        notes: not_in_mainline(about.knobs),
        knob_uses: reach::uses(set, about.refused, &measured),
        counters: counters(stage),
        omissions: stage.tally.omissions().map(|(name, count)| (name.to_owned(), count)).collect(),
        ..done
    };
    (run, measured)
}

/// vmstat's counters, and what the workload noted.
fn counters(stage: &Stage) -> BTreeMap<String, u64> {
    let mut counters = stage.counters();
    counters.extend(stage.tally.notes().into_iter().map(|(name, times)| (name.to_owned(), times)));
    counters
}

/// What was measured in `simulated` of time.
fn run(stage: &Stage, measured: &Measurements, simulated: Nanos, memory: MemoryUse) -> Run {
    let seconds = simulated.0 as f64 / 1e9;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let operations = stage.tally.operations();
    let slab_pages = stage.mm.slabs().slab_pages();
    Run {
        simulated_ns: simulated.0,
        operations,
        tasks: stage.tasks.get().into(),
        samples: stage.tally.samples(),
        throughput: Throughput {
            pages_per_second: per_second(measured.span(Span::PageAlloc).pages()),
            operations_per_second: per_second(operations),
        },
        moved: stage.tally.all_moved(),
        latency: latencies(measured),
        locks: locks(measured),
        lock_waits: LockWaits::of(measured.tasks.iter().map(|task| (task.name.as_str(), task.waited.0))),
        recordings: recordings(stage),
        cgroups: stage.groups_used(),
        program: stage.tally.program().map(|used| ProgramUse { cpu_ns: busy_ns(measured), ..used }),
        forks: stage.tally.forks(),
        memory: Memory {
            peak_pages: stage.tally.peak(),
            // Slabs may have grown since the rest was counted.
            held_pages: memory.held().saturating_sub(slab_pages),
            slab_pages,
            pcp_pages: memory.pcp,
        },
        ..Run::default()
    }
}

/// What each recording came to; nothing where one ran on one node, for then all is in the run's own figures.
fn recordings(stage: &Stage) -> Vec<RecordingUse> {
    let all = stage.tally.recordings();
    if all.len() > 1 || stage.mm.topology().nodes.len() > 1 { all } else { vec![] }
}

/// Time of all CPUs that was not idle, ns.
fn busy_ns(measured: &Measurements) -> u64 {
    measured.cpus.iter().map(|cpu| cpu.busy.0 + cpu.spin.0).sum()
}

/// Knobs that were set, under their names; a value that has a word is that word.
pub(crate) fn knobs(set: &[(Knob, u64)]) -> BTreeMap<String, KnobValue> {
    let written = |knob: Knob, value: u64| match knob.words() {
        [] => KnobValue::from(value as i64),
        _ => KnobValue::Text(knob.written(value).to_string()),
    };
    set.iter().map(|&(knob, value)| (knob.spec().name.to_owned(), written(knob, value))).collect()
}

/// A line for each knob that was set away from its default and that no mainline kernel has.
pub(crate) fn not_in_mainline(set: &[(Knob, u64)]) -> Vec<String> {
    let lacking = set
        .iter()
        .map(|&(knob, value)| (knob.spec(), value))
        .filter(|(spec, value)| spec.kernels.is_none() && *value != spec.default);
    lacking.map(|(spec, value)| format!("{}={value}: {}", spec.name, spec.stands_for)).collect()
}

/// What slabs went through, over all caches and CPUs, under the names of SLUB_STATS: `slab_alloc_slab`. Counters that are 0 are not
/// there.
pub(crate) fn slab_counters(stage: &Stage) -> BTreeMap<String, u64> {
    let count = |event: SlabEvent| {
        let of_cache = |id| stage.mm.slabs().slab_events(id, event).into_iter().sum::<u64>();
        stage.mm.slabs().caches().map(|cache| of_cache(cache.id())).sum::<u64>()
    };
    let counted = SlabEvent::ALL.iter().map(|&event| (format!("slab_{}", event.name()), count(event)));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Latencies of all kinds of span that happened, by name.
fn latencies(measured: &Measurements) -> BTreeMap<String, Latency> {
    let spans = Span::ALL.into_iter().filter_map(|span| {
        let histogram = measured.span(span).latency;
        (histogram.count() > 0).then(|| (span.name().to_owned(), latency(&histogram)))
    });
    spans.collect()
}

/// A histogram's figures.
pub(crate) fn latency(histogram: &sim::Histogram) -> Latency {
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

/// Lock classes that were taken, by name.
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
