//! The simulator held against the kernel of this machine: page-fault workloads run for real, recorded and unrecorded
//! ([`host::fault_loop`]), and the same workloads simulated on a profile of the machine. Figures are compared in two
//! ways.
//!
//! - *Counts*: mm is given the very allocations and frees that were recorded, everybody's on the machine, and must refill
//!   and drain as the kernel did ([`crate::conform`]).
//! - *Times*: the simulated workload beside the real one. How long the kernel holds the zone lock is seen from outside,
//!   as runs of events ([`holds`]); faults a second are those of an unrecorded run.
//!
//! Nothing here runs anything for real: it takes what was measured, simulates, and makes a [`Document`] of both.

pub mod holds;
mod observe;
pub mod program;
mod rows;
mod simulate;

use std::fmt;

use host::fault_loop::{FaultRounds, Memory};

use crate::measurements::{Account, Document, Run, Sample};

pub use holds::ProbeCost;
pub use observe::{Observed, observe};
pub use rows::{Mark, TARGETS, Target, marks, target_of};
pub use simulate::{Plan, Simulated, simulate};

/// What a comparison says of huge pages on a guest that gives free memory back to its host.
pub const HOSTS_MEMORY: &str = "This guest gives free memory back to its host, 2 s after it was freed or later: touched again it costs a \
     fault there, huge pages more often than small ones, which real runs have and the prediction leaves out \
     (docs/model.md#what-is-left-out).";

/// The name of these rows and runs in a [`Document`].
pub const NAME: &str = "validate";

/// A workload: so many tasks, each of its own process, on such memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// What is mapped.
    pub memory: Memory,
    /// Tasks, from 1.
    pub tasks: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tasks == 1 { "" } else { "s" };
        write!(f, "{} memory, {} task{s}", self.memory.name(), self.tasks)
    }
}

/// A case, for real and simulated.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The case.
    pub case: Case,
    /// What its recording shows.
    pub observed: Observed,
    /// What each task did unrecorded.
    pub unrecorded: Vec<FaultRounds>,
    /// The simulations, one for each seed.
    pub simulated: Vec<Simulated>,
}

/// What all cases have in common.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The kernel's release.
    pub release: String,
    /// The profile's name and what it is.
    pub machine: String,
    /// What an event of a hold costs.
    pub cost: ProbeCost,
    /// What to keep in mind of this machine meanwhile, a sentence each.
    pub notes: Vec<String>,
}

/// Everything side by side.
pub fn document(command: String, setting: &Setting, compared: &[Compared]) -> Document {
    let rows: Vec<_> = compared.iter().flat_map(|case| rows::of(setting, case)).collect();
    let score = marks(&rows).iter().map(Mark::score).collect();
    let runs: Vec<Run> =
        compared.iter().flat_map(|case| case.simulated.iter().flat_map(Simulated::runs)).cloned().collect();
    let account = Account {
        name: NAME.into(),
        title: format!("Linux {} on this machine, and {}", setting.release, setting.machine),
        about: about(setting, compared),
        ..Account::default()
    };
    let notes = unseen_holds(setting, compared).into_iter().collect();
    Document { notes, rows, score, runs, experiments: vec![account], ..Document::new(command) }
}

/// That tracing cannot show lock holds here: where an event costs more than what is left of a hold's page without it.
fn unseen_holds(setting: &Setting, compared: &[Compared]) -> Option<String> {
    let held = |of: fn(&Observed) -> &holds::Holds| {
        let medians = compared.iter().filter_map(|case| of(&case.observed).median_ns_per_page());
        Sample::new(medians).median()
    };
    let both = [
        ("refill", setting.cost.refill_ns, held(|observed| &observed.holds.refills)),
        ("drain", setting.cost.drain_ns, held(|observed| &observed.holds.drains)),
    ];
    let unseen = both
        .into_iter()
        .filter_map(|(kind, cost, held)| held.filter(|held| cost > *held).map(|held| (kind, cost, held)));
    let said: Vec<String> = unseen
        .map(|(kind, cost, held)| format!("{cost:.0} ns an event for {held:.0} ns a page of a {kind}"))
        .collect();
    (!said.is_empty()).then(|| {
        let said = said.join(", ");
        format!("This machine's tracing cannot show how long locks are held ({said}): its rows of holds are no evidence.")
    })
}

/// What was measured how.
fn about(setting: &Setting, compared: &[Compared]) -> String {
    let mut said = vec![
        "Each task maps memory with huge pages off (MADV_NOHUGEPAGE), writes a byte to each page, unmaps, and begins anew. \
         trace.*: mm was given every allocation and free that was recorded on the machine, the kernel's own refills and \
         drains beside it. The rest: the workload simulated by itself."
            .to_owned(),
        format!(
            "A hold is a run of events under one zone lock, first to last, by page, less {:.0} ns that recording an event of \
             a refill costs here and {:.0} ns of a drain; of all runs the median. Faults a second are by the tasks' CPU \
             time, unrecorded.",
            setting.cost.refill_ns, setting.cost.drain_ns
        ),
    ];
    said.extend(setting.notes.iter().cloned());
    for case in compared {
        said.extend(case.observed.notes.iter().map(|note| format!("{}: {note}", case.case)));
        said.extend(share(&case.unrecorded).map(|share| format!("{}: {share}", case.case)));
    }
    said.join(" ")
}

/// How much of the time the tasks had their CPUs, where that was not nearly all of it.
fn share(unrecorded: &[FaultRounds]) -> Option<String> {
    let cpu: u64 = unrecorded.iter().flat_map(|task| &task.cpu_ns).sum();
    let elapsed: u64 = unrecorded.iter().map(|task| task.elapsed_ns).sum();
    let share = 100.0 * cpu as f64 / elapsed.max(1) as f64;
    (share < 90.0).then(|| format!("tasks had their CPUs for {share:.0} % of the time."))
}

/// Faults a second of all tasks together: each by the median of its rounds.
fn faults_per_second(tasks: &[FaultRounds]) -> f64 {
    let of = |task: &FaultRounds| {
        let median = Sample::new(task.cpu_ns.iter().map(|ns| *ns as f64)).median();
        median.map_or(0.0, |ns| task.pages as f64 * 1e9 / ns.max(1.0))
    };
    tasks.iter().map(of).sum()
}

#[cfg(test)]
mod tests;
