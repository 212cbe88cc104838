//! How sure each mechanism of a run is, with the reason.

use std::fmt::Write as _;

use lab::measurements::{Label, MechanismLabel, Run};
use mm::policy::Mechanism;

use crate::style::Style;
use crate::table::Table;

/// A table for each machine and policy that differ in their labels; empty where the runs' own labels say it all.
pub fn text(style: Style, runs: &[&Run]) -> String {
    let mut said: Vec<(String, Table)> = vec![];
    for run in runs.iter().filter(|run| !is_said(run)) {
        let title = format!("{} on {}", run.policy, run.machine);
        if said.iter().any(|(other, _)| *other == title) {
            continue;
        }
        said.push((title, of_run(run)));
    }
    let mut out = String::new();
    for (title, table) in said {
        let _ = writeln!(out, "{}", style.heading(&format!("how sure, by mechanism: {title}")));
        out += &table.text(2, style.columns());
    }
    out
}

/// Whether the run's own label says all that there is to say.
fn is_said(run: &Run) -> bool {
    let mut labels = run.labels.values();
    labels.all(|of| of.reason == run.confidence_reason)
}

fn of_run(run: &Run) -> Table {
    let mut table = Table::new(["<", "<", "<", "<"]);
    for mechanism in Mechanism::ALL {
        if let Some(of) = run.labels.get(mechanism.name()) {
            rows(&mut table, mechanism, of);
        }
    }
    table.without_heads()
}

fn rows(table: &mut Table, mechanism: Mechanism, of: &MechanismLabel) {
    let row = |first: &str, what: &str, label: &Label| {
        [first.to_owned(), what.to_owned(), label.label.name().to_owned(), label.reason.clone()]
    };
    table.row(row(mechanism.words(), "counts", &of.counts));
    if let Some(times) = &of.times {
        table.row(row("", "times", times));
    }
}
