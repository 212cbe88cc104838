//! Every replay of a program proves itself: replayed as it was recorded, it is held against what the recorded kernel counted.

use mm::Policy;
use sim::Profile;

use super::plan::{Plan, Variant};
use super::run::{ReplayError, replay};
use super::source::Source;
use crate::measurements::{Proof, ProofRow, Run};
use crate::program::{Counted, Program, Surroundings};

/// What stands for a kernel whose release says nothing, or is newer than any whose rules were read.
const STAND_IN_POLICY: &str = "linux-6.18";

/// Below so many, what a command's account has beyond its events is mostly its start: some thirty faults before it was executed.
const FEWEST_POPULATED: u64 = 200;

/// Replays `source` on `host`, which stands for the recorded machine, with its kernel's rules and its knobs as they stood. `None` if
/// it is no program.
///
/// # Errors
/// What [`replay`] says.
pub fn prove(source: &Source, host: Profile) -> Result<Option<Proof>, ReplayError> {
    let Source::Program(program) = source else { return Ok(None) };
    let policy = policy_of(&program.surroundings)?;
    // What stood at the recorded machine, and cannot act on this program or this profile, changes nothing.
    let plan = Plan { forced: true, ..Plan::new(host, policy) };
    let knobs = program.surroundings.knobs.clone();
    let known = |knob: &(mm::Knob, u64)| plan.policy.check_knob(knob.0, knob.1).is_ok();
    let variant = Variant::from(knobs.into_iter().filter(known).collect::<Vec<_>>());
    let run = replay(source, &plan, &variant)?;
    Ok(Some(Proof {
        workload: program.name.clone(),
        machine: run.machine.clone(),
        policy: run.policy.clone(),
        rows: rows(&program.counted, &run),
        missing: missing(program),
    }))
}

/// The policy that stands for the recorded kernel.
///
/// # Errors
/// None that are known: the policy that stands in is always there.
pub fn policy_of(surroundings: &Surroundings) -> Result<Policy, ReplayError> {
    let policy = surroundings.policy().and_then(|name| Policy::parse(&name).ok());
    let policy = policy.or_else(|| Policy::parse(STAND_IN_POLICY).ok());
    policy.ok_or_else(|| ReplayError::Plan(format!("there is no policy {STAND_IN_POLICY}")))
}

fn rows(counted: &Counted, run: &Run) -> Vec<ProofRow> {
    let used = run.program.unwrap_or_default();
    let row = |what: &str, unit: &str, recorded: u64, replayed: u64| ProofRow {
        what: what.to_owned(),
        unit: unit.to_owned(),
        recorded: recorded as f64,
        replayed: replayed as f64,
    };
    // What calls populate raises no exception, so no event tells of it; the kernel's account of the command does.
    let writes = (used.copies + used.reuses).saturating_sub(used.populated_writes);
    let mut rows = vec![
        row("page faults", "count", counted.faults, used.faults().saturating_sub(used.populated)),
        row("pages copied or reused", "count", counted.writes_to_shared, writes),
    ];
    if let Some(usage) = counted.usage {
        let populated = (usage.minor_faults + usage.major_faults).saturating_sub(counted.faults);
        if populated.max(used.populated) >= FEWEST_POPULATED {
            rows.push(row("pages populated by calls", "count", populated, used.populated));
        }
    }
    if counted.has_page_events {
        // By pages, for a huge one is a single request.
        let of_zones = run.counters.iter().filter(|(name, _)| name.starts_with("pgalloc_"));
        let allocated = of_zones.map(|(_, pages)| pages).sum::<u64>().saturating_sub(used.table_pages);
        rows.push(row("user pages allocated", "pages", counted.pages_allocated, allocated));
    }
    if let Some(usage) = counted.usage {
        rows.push(row("peak RSS", "pages", usage.peak_rss_pages, used.peak_rss_pages));
        let own = (usage.user_ns + usage.system_ns).saturating_sub(counted.recorder_ns);
        rows.push(row("CPU time, recording apart", "ns", own, used.cpu_ns));
    }
    if let Some(fork) = run.forks.largest.first().filter(|fork| fork.recorded_ns > 0) {
        rows.push(row("fork of the largest process", "ns", fork.recorded_ns, fork.fork_ns));
    }
    rows.push(row("run time", "ns", counted.wall_ns, run.simulated_ns));
    rows
}

fn missing(program: &Program) -> Vec<String> {
    let counted = &program.counted;
    let mut missing = vec![];
    if counted.usage.is_none() {
        missing.push("the recording has no account of the command's memory and CPU time".to_owned());
    }
    if !counted.has_page_events {
        missing.push("the recording has no page events (record --events page,…)".to_owned());
    }
    if counted.page_events_counted > 0 {
        missing.push(format!(
            "page events were sampled for a budget (record --budget), at the end those of 1 unit of 1024 frames in {}: {} were counted and \
             not recorded, {} of the user pages recorded above among them; all else was recorded whole",
            counted.page_events_one_in, counted.page_events_counted, counted.pages_counted
        ));
    }
    if !counted.without_huge_pages {
        missing.push(
            "huge pages were on while this was recorded: which small pages of them were touched is not known"
                .to_owned(),
        );
    }
    missing
}
