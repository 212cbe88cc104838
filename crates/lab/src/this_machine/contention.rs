//! Policies against each other on this machine's real threads, locks and memory, as measurements. What is measured, and
//! how, is in [`host::bench::contention`].

use std::collections::BTreeMap;

use host::bench::contention::{ContentionPlan, ContentionResult, Slice, Variant};
use host::probe::Hardware;
use mm::policy::{DEFAULT_POLICY, EXAMPLE_POLICIES, FREEHOLD};
use mm::{Knob, Policy, Topology};

use crate::drive::figures;
use crate::measurements::{
    Confidence, Document, Latency, LockStat, REQUESTS_WITHOUT_A_PAGE, Run, Sample, Throughput,
};
use crate::reach::{self, Brings, Refusal, Where};
use crate::replay::{Setting, combinations};

/// What is set against each other where nothing is said: the default policy at both ends of `vm.pcp_batch_scale_max`,
/// each part on top of it, and `freehold`.
pub fn default_variants() -> Vec<Variant> {
    let mut variants: Vec<Variant> = [5, 0]
        .into_iter()
        .map(|scale| Variant { policy: Policy::default(), knobs: vec![(Knob::PcpBatchScaleMax, scale)] })
        .collect();
    let part = |name: &&str| name.strip_prefix(DEFAULT_POLICY).is_some_and(|rest| rest.starts_with('+'));
    let names = EXAMPLE_POLICIES.iter().copied().filter(part).chain([FREEHOLD]);
    let policies = names.filter_map(|name| Policy::parse(name).ok());
    variants.extend(policies.map(|policy| Variant { policy, knobs: vec![] }));
    variants
}

/// Each policy with every combination of the settings' values.
pub fn variants(policies: &[Policy], settings: &[Setting]) -> Vec<Variant> {
    let with = |policy: &Policy| {
        let combined = combinations(settings).into_iter();
        combined.map(|set| Variant { policy: policy.clone(), knobs: set.knobs }).collect::<Vec<_>>()
    };
    policies.iter().flat_map(with).collect()
}

/// The knobs of each variant of `plan` that cannot act on threads that allocate pages from one zone `topology`, and why.
pub fn refusals(plan: &ContentionPlan, topology: &Topology) -> Vec<Vec<Refusal>> {
    let brings = Brings::default();
    let of = |variant: &Variant| {
        reach::refusals(&Where { brings, topology, policy: &variant.policy, set: &variant.knobs })
    };
    plan.variants.iter().map(of).collect()
}

/// Says in `document`, which is that of `plan`, which knobs were measured by force.
pub fn mark_forced(document: &mut Document, plan: &ContentionPlan, refused: &[Vec<Refusal>]) {
    for (variant, refused) in plan.variants.iter().zip(refused) {
        let (policy, knobs) = (variant.policy.name(), figures::knobs(&variant.knobs));
        let of_variant = |run: &&mut Run| run.policy == policy && run.knobs == knobs;
        for run in document.runs.iter_mut().filter(of_variant) {
            reach::mark_forced(&mut run.knob_uses, refused);
        }
        for refusal in refused {
            let note = format!("{policy}: by force: {refusal}");
            if !document.notes.contains(&note) {
                document.notes.push(note);
            }
        }
    }
}

/// The document of what was measured; `command` is the command line. Fewer threads come first; a round is a repetition.
pub fn document(
    command: String,
    plan: &ContentionPlan,
    outcome: &ContentionResult,
    hardware: &Hardware,
) -> Document {
    let reason = reason(plan, outcome);
    let machine = machine(hardware);
    let mut slices: Vec<&Slice> = outcome.slices.iter().collect();
    slices.sort_by_key(|slice| (slice.threads, slice.round, slice.variant));
    let run = |slice: &&Slice| Run {
        machine: machine.clone(),
        confidence_reason: reason.clone(),
        ..run(plan, slice)
    };
    Document { runs: slices.iter().map(run).collect(), ..Document::new(command) }
}

fn run(plan: &ContentionPlan, slice: &Slice) -> Run {
    let variant = &plan.variants[slice.variant];
    let latencies = [("refill", &slice.refills), ("drain", &slice.drains)].into_iter();
    let latencies = latencies.filter(|(_, samples)| !samples.is_empty());
    let zone = LockStat {
        acquired: slice.zone.acquired,
        contended: slice.zone.contended,
        wait_ns: slice.zone.waited_ns,
        wait_max_ns: slice.zone.waited_max_ns,
        hold_ns: slice.zone.held_ns,
    };
    let threads = if slice.threads == 1 { "1 thread" } else { &format!("{} threads", slice.threads) };
    Run {
        workload: format!("{threads}, {} pages each, allocated, written, freed", plan.pages),
        policy: variant.policy.name().to_owned(),
        seed: u64::from(slice.round) + 1,
        confidence: Confidence::Exact,
        knobs: figures::knobs(&variant.knobs),
        wall_ns: plan.slice.as_nanos() as u64,
        operations: slice.pages,
        throughput: Throughput {
            pages_per_second: slice.pages_per_second,
            operations_per_second: slice.stamped_pages_per_second,
        },
        latency: latencies
            .map(|(name, samples)| (name.to_owned(), Latency::from_samples(samples.iter().copied())))
            .collect(),
        locks: BTreeMap::from([("zone".to_owned(), zone)]),
        omissions: omissions(slice),
        ..Run::default()
    }
}

fn omissions(slice: &Slice) -> BTreeMap<String, u64> {
    let counts = [(REQUESTS_WITHOUT_A_PAGE, slice.failed), ("spans_not_noted_down", slice.lost)];
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

fn machine(hardware: &Hardware) -> String {
    let model = if hardware.model.is_empty() { "unnamed CPU" } else { &hardware.model };
    format!("this machine ({model}, {} CPUs)", hardware.cpus.len())
}

/// What the figures rest on.
fn reason(plan: &ContentionPlan, outcome: &ContentionResult) -> String {
    let mut said = vec![format!(
        "measured on this machine, nothing simulated: a zone of {} pages, threads kept on CPUs. Pages are by second of \
         CPU time, from rounds without time stamps; latencies and lock times are from rounds of their own",
        outcome.zone_pages
    )];
    if let Some(cost) = stamps_cost(&outcome.slices) {
        let direction = if cost < 0.0 { "more" } else { "fewer" };
        said.push(format!(
            ", in which time stamps made one thread's pages a second {:.1} % {direction}",
            cost.abs()
        ));
    }
    let disturbed = Sample::new(outcome.slices.iter().map(|slice| 100.0 * slice.disturbed)).median();
    if let Some(disturbed) = disturbed.filter(|percent| *percent >= 1.0) {
        said.push(format!(
            "; other work on the machine had a CPU for {disturbed:.0} % of a thread's time: means and maxima have such \
             times in them, the speed of one thread has not"
        ));
    }
    let linux = Policy::default().rules().lists.descriptor_bytes;
    if plan.variants.iter().any(|variant| variant.policy.rules().lists.descriptor_bytes != linux) {
        let small =
            "; frame descriptors have 16 bytes here under every policy: a smaller one changes nothing";
        said.push(small.to_owned());
    }
    if outcome.slices.iter().any(|slice| slice.refills.is_empty()) {
        let kept =
            "; where there is no refill, CPUs' page lists kept all that a thread frees: it takes more pages";
        said.push(kept.to_owned());
    }
    if outcome.unpinned > 0 {
        said.push(format!("; threads that could not be kept on their CPU: {}", outcome.unpinned));
    }
    let most = outcome.slices.iter().map(|slice| slice.threads as usize).max().unwrap_or(0);
    if most > outcome.cpus.len() {
        said.push(format!(
            "; up to {most} threads shared what CPUs there are ({}), so that waits have others' turns in them",
            outcome.cpus.len()
        ));
    }
    said.concat()
}

/// By how many percent time stamps made a thread slower that nobody contends with, in the median of all such slices.
fn stamps_cost(slices: &[Slice]) -> Option<f64> {
    let cost = |slice: &Slice| {
        (slice.threads == 1 && slice.pages_per_second > 0.0)
            .then(|| 100.0 * (1.0 - slice.stamped_pages_per_second / slice.pages_per_second))
    };
    Sample::new(slices.iter().filter_map(cost)).median()
}
