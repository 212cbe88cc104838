//! From what the simulation measured to a [`Run`].

use mm::Knob;

use super::plan::{Change, Plan, Variant};
use super::source::Source;
use crate::drive::figures::{self, About};
use crate::evidence::{self, Checked, Table};
use crate::measurements::{CHANGES_NOT_REACHED, OOM_KILL, ProgramUse, RecordingCounts, Run};
use crate::reach::Refusal;
use crate::stage::{Setup, Stage};
use crate::workloads::Workload;

/// What a run was.
pub(super) struct Parts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) variant: &'a Variant,
    pub(super) setup: Setup<'a>,
    pub(super) copies: &'a dyn Workload,
    /// What it is of.
    pub(super) source: &'a Source,
    /// Knobs that cannot act.
    pub(super) refused: &'a [Refusal],
    /// Changes that were to come after the last task's end.
    pub(super) changes_not_reached: u64,
}

/// The run that has ended on `stage`.
pub(super) fn run(stage: &Stage, parts: &Parts<'_>) -> Run {
    let Parts { plan, variant, setup, copies, source, refused, changes_not_reached } = *parts;
    let changed: Vec<Knob> = plan.changes.iter().map(|change| change.knob).collect();
    let about = About {
        setup,
        workload: copies.title(),
        variant: variant.name(),
        knobs: &variant.knobs,
        changed: &changed,
        refused,
    };
    let (mut run, _) = figures::measured(stage, &about);
    run.notes.extend(plan.changes.iter().map(note));
    run.notes.extend(about_memory(stage, &run, source));
    run.notes.extend(about_walks(source, variant, run.program.as_ref()));
    // A guest's profile is known by its nested page walks.
    let is_guest = plan.profile.value("tlb.nested_ratio") > 1.0;
    run.notes.extend(about_host(source, variant).filter(|_| is_guest));
    run.counters.extend(figures::slab_counters(stage));
    run.counters.extend(hint_counters(stage));
    run.omissions.extend(source.omissions());
    if changes_not_reached > 0 {
        run.omissions.insert(CHANGES_NOT_REACHED.to_owned(), changes_not_reached);
    }
    evidence::label(&mut run, Table::bundled(), &plan.policy, &plan.profile, Checked::ByRows);
    run
}

/// What NUMA balancing did to recorded programs, under vmstat's names; nothing where it made no page fault.
fn hint_counters(stage: &Stage) -> Vec<(String, u64)> {
    let mut all = RecordingCounts::default();
    stage.tally.recordings().iter().for_each(|used| all.add(&used.counts));
    let counted = [
        ("numa_pte_updates", all.numa_pte_updates),
        ("numa_hint_faults", all.numa_hint_faults),
        ("numa_hint_faults_local", all.numa_hint_faults_local),
        ("numa_pages_migrated", all.numa_pages_migrated),
    ];
    let counted = counted.into_iter().filter(|_| all.numa_pte_updates > 0);
    counted.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Own time of which it is not known how often pages were accessed leaves a verdict on huge pages open above this share.
const KNOWN_SHARE_MIN: f64 = 0.01;

fn is_about_huge(variant: &Variant) -> bool {
    let is_of_huge = |knob: Knob| {
        let of_all = matches!(knob, Knob::TransparentHugepage | Knob::SharedHugepage);
        of_all || matches!(knob, Knob::Hugepages2048kB | Knob::Shared2048kB)
    };
    variant.knobs.iter().any(|(knob, _)| is_of_huge(*knob))
}

/// What a verdict on huge pages leaves out where the recorded machine is a guest whose free memory is its host's.
fn about_host(source: &Source, variant: &Variant) -> Option<String> {
    let reports = source.programs().iter().any(|program| program.surroundings.reports_free_pages);
    (reports && is_about_huge(variant)).then(|| {
        "the recorded guest gives free memory back to its host: touched again it costs a fault there, huge pages more often than small \
         ones, which is left out (docs/model.md#what-is-left-out)"
            .to_owned()
    })
}

/// What a verdict on huge pages says, or leaves out, of what they do to accesses between faults.
fn about_walks(source: &Source, variant: &Variant, used: Option<&ProgramUse>) -> Option<String> {
    let programs = source.programs();
    if programs.is_empty() || !is_about_huge(variant) {
        return None;
    }
    let used = used.copied().unwrap_or_default();
    let known = used.walk_known_ns as f64 / used.own_ns.max(1) as f64;
    if programs.iter().all(|program| program.walked.is_empty()) || known < KNOWN_SHARE_MIN {
        return Some("the TLB misses that huge pages save are left out".to_owned());
    }
    // Without its own share of such misses, so that variants that know as much say it once.
    Some(format!(
        "the TLB misses that huge pages save are estimated from samples of accessed bits for {:.0} % of the program's own time, left \
         out of the rest, and not proven (docs/model.md#tlb-misses)",
        100.0 * known
    ))
}

/// What was assumed where memory is short, and who was killed for it.
fn about_memory(stage: &Stage, run: &Run, source: &Source) -> Vec<String> {
    let mut notes = vec![];
    for killed in &run.cgroups {
        if let Some(ns) = killed.killed_ns {
            let meanwhile = killed.killed_on_their_way.map_or_else(String::new, |pages| {
                format!(
                    " while {pages} pages were on their way to swap's disk, for which a cgroup of version 2 does not wait \
                     (docs/swap.md#killed-with-swap-left)"
                )
            });
            notes.push(format!(
                "{} was killed after {:.3} s: nothing more could be freed within its limits{meanwhile}",
                killed.name,
                ns as f64 / 1e9
            ));
        }
    }
    let killed = run.counter(OOM_KILL);
    if killed > 0 {
        notes.push(format!(
            "{} killed by kswapd: nothing was left alone for lru_gen.min_ttl_ms",
            if killed == 1 { "one copy was".to_owned() } else { format!("{killed} copies were") }
        ));
    }
    if run.program.is_some() && stage.is_short_of_memory() {
        notes.push(about_uses(source));
        notes.extend(stage.assumed_of_swap());
        notes.extend(about_zeros(run, source));
    }
    notes
}

/// From what it follows which pages are used again.
fn about_uses(source: &Source) -> String {
    let programs = source.programs();
    if !programs.iter().all(|program| program.tells_pages_apart()) {
        return "which pages the program uses again is estimated from looks at accessed bits, or assumed \
                (docs/replay.md#limits-and-swap)"
            .into();
    }
    let own_ns =
        programs.iter().flat_map(|program| &program.used).map(|period| period.own_ns).max().unwrap_or(0);
    let advice =
        if own_ns > SELDOM_NS { "; record --accesses often, if this was not, sees more" } else { "" };
    format!(
        "when each page is used again was seen to some ms, once for each time that accessed bits were cleared, at most {} ms of own time \
         apart; what lies between is assumed (docs/replay.md#limits-and-swap){advice}",
        own_ns.div_ceil(1_000_000)
    )
}

/// Who goes over memory again within less is not seen to do so, ns.
const SELDOM_NS: u64 = 150_000_000;

/// Which part of what went to swap was taken to be zeros.
fn about_zeros(run: &Run, source: &Source) -> Option<String> {
    let zeros = run.counter("swpout_zero");
    let written = run.counter("pswpout") + run.counter("zswpout");
    let were_read = source.programs().iter().any(|program| program.zeros.iter().any(|read| !read.is_empty()));
    match (zeros + written, were_read) {
        // Of what was read some may be zeros: kernels before 6.12 write them like others.
        (0, _) | (_, true) if zeros == 0 => None,
        (all, true) => Some(format!(
            "{:.0} % of the pages that went to swap hold nothing but zeros and are not written, as of those that were read when this was \
             recorded",
            100.0 * zeros as f64 / all as f64
        )),
        (_, false) => Some("no page that went to swap is taken to hold nothing but zeros: none was read when this was recorded".to_owned()),
    }
}

/// What changes while it runs, and whether no mainline kernel has it.
fn note(change: &Change) -> String {
    let Change { at, knob, value } = change;
    let change = format!("{}={} from {} ms on", knob.spec().name, knob.written(*value), at.0 as f64 / 1e6);
    match figures::not_in_mainline(&[(*knob, *value)]).first() {
        Some(lacking) => format!("{change}; {lacking}"),
        None => change,
    }
}
