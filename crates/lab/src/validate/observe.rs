//! What the recording of a case shows of the kernel.

use mm::MigrateType;
use trace::{Event, EventKind, Meta, Task};

use super::holds::{Both, ProbeCost, find};
use crate::conform::{FormatError, Live, PagesMoved, conform_recording};

/// A case as the kernel ran it while it was recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Pages that the workload's tasks faulted in.
    pub faults: u64,
    /// Refills and drains by the workload's tasks.
    pub holds: Both,
    /// Everybody's pages between lists, as the kernel moved them and as mm did when it was given the same requests.
    pub moved: PagesMoved,
    /// What to keep in mind, a sentence each.
    pub notes: Vec<String>,
}

/// Reads a recording of everybody. `tasks` are the recording's; the workload's have names that begin as
/// [`host::fault_loop::TASK_NAME`] does.
///
/// # Errors
/// If it has no page event, or is of a kernel without rules.
pub fn observe(
    meta: &Meta,
    zoneinfo_after: &str,
    (events, tasks): (&[Event], &[Task]),
    cost: ProbeCost,
) -> Result<Observed, FormatError> {
    let ours = |task: mm::TaskId| {
        tasks.get(task.0 as usize).is_some_and(|task| task.name.starts_with(host::fault_loop::TASK_NAME))
    };
    let outcome = conform_recording(Live { meta, zoneinfo_after, events })?;
    let faults = events.iter().filter(|event| ours(event.task)).map(|event| match event.kind {
        EventKind::PageAlloc { order, migratetype: MigrateType::Movable, .. } => u64::from(order.pages()),
        _ => 0,
    });
    let moved = outcome.pages.clone().unwrap_or_default();
    let mut notes = vec![];
    let lost: u64 =
        events.iter().map(|event| if let EventKind::Lost { count } = event.kind { count } else { 0 }).sum();
    if lost > 0 {
        notes.push(format!(
            "{lost} of {} events were lost, so that counts are not of the same requests.",
            events.len()
        ));
    }
    for (pages, what) in [
        (moved.drains_by_kswapd.kernel.pages, "drained by kswapd's frees"),
        (moved.drains_of_all.pages, "drained from all CPUs' lists at once"),
    ] {
        if pages > 0 {
            notes.push(format!("{pages} pages were {what}, which is not compared."));
        }
    }
    Ok(Observed { faults: faults.sum(), holds: find(events, cost, ours), moved, notes })
}
