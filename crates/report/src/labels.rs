//! How sure each mechanism of a run is, with the reason.

use std::fmt::Write as _;

use lab::measurements::{Label, MechanismLabel, Run};
use mm::policy::Mechanism;
use serde::Serialize;

use crate::style::Style;
use crate::table::Table;

/// What is said of one policy on one machine.
#[derive(Serialize)]
pub(crate) struct OfPolicy {
    /// The policy and the machine.
    pub(crate) title: String,
    /// A row for what each mechanism did and one for how long that took.
    pub(crate) rows: Vec<LabelRow>,
}

#[derive(Serialize)]
pub(crate) struct LabelRow {
    /// The mechanism; empty in its second row.
    mechanism: &'static str,
    /// `counts` or `times`.
    what: &'static str,
    label: &'static str,
    reason: String,
}

/// A table for each machine and policy that differ in their labels; empty where the runs' own labels say it all.
pub fn text(style: Style, runs: &[&Run]) -> String {
    let mut out = String::new();
    for of in by_policy(runs) {
        let mut table = Table::new(["<", "<", "<", "<"]);
        for row in of.rows {
            table.row([row.mechanism, row.what, row.label, &row.reason]);
        }
        let _ = writeln!(out, "{}", style.heading(&format!("how sure, by mechanism: {}", of.title)));
        out += &table.without_heads().text(2, style.columns());
    }
    out
}

/// The same as data.
pub(crate) fn by_policy(runs: &[&Run]) -> Vec<OfPolicy> {
    let mut said: Vec<OfPolicy> = vec![];
    for run in runs.iter().filter(|run| !is_said(run)) {
        let title = format!("{} on {}", run.policy, run.machine);
        if said.iter().all(|of| of.title != title) {
            said.push(OfPolicy { title, rows: of_run(run) });
        }
    }
    said
}

/// Whether the run's own label says all that there is to say.
fn is_said(run: &Run) -> bool {
    let mut labels = run.labels.values();
    labels.all(|of| of.reason == run.confidence_reason)
}

fn of_run(run: &Run) -> Vec<LabelRow> {
    let known = Mechanism::ALL.into_iter();
    known.filter_map(|of| Some(rows(of, run.labels.get(of.name())?))).flatten().collect()
}

fn rows(mechanism: Mechanism, of: &MechanismLabel) -> impl Iterator<Item = LabelRow> {
    let row = |mechanism: &'static str, what: &'static str, of: &Label| {
        let (label, reason) = (of.label.name(), of.reason.clone());
        LabelRow { mechanism, what, label, reason }
    };
    let counts = row(mechanism.words(), "counts", &of.counts);
    std::iter::once(counts).chain(of.times.as_ref().map(|times| row("", "times", times)))
}
