//! The list of experiments.

use lab::experiment::{Experiment, METRICS};
use lab::measurements::Role;

use crate::style::Style;
use crate::table::Table;
use crate::units::plural;

/// A line for each: name, what it runs, how many published figures it has, on which machines, and its title below.
pub fn list(style: Style, experiments: &[Experiment]) -> String {
    let mut table = Table::new(["<experiment", "runs", "predicted", "fitted", "derived", "<machines"]);
    for experiment in experiments {
        let cells: usize = experiment.sweeps.iter().map(|sweep| sweep.cells.len()).sum();
        let figures = |role| experiment.figures(role).to_string();
        table.row([
            experiment.name.clone(),
            (experiment.variants.len() + cells).to_string(),
            figures(Role::Predicted),
            figures(Role::Fitted),
            figures(Role::Derived),
            experiment.machines().join(", "),
        ]);
    }
    let mut out = table.text(0, style.columns());
    out.push('\n');
    let mut titles = Table::new(["<experiment", "<what it is"]);
    for experiment in experiments {
        titles.row([experiment.name.clone(), experiment.title.clone()]);
    }
    out.push_str(&titles.text(0, style.columns()));
    let count = plural(experiments.len() as u64, "experiment");
    out + &format!("\n{count}; `freehold lab run NAME` runs one, and a file of your own by its path\n")
}

/// Every metric that an experiment can name.
pub fn metrics(style: Style) -> String {
    let mut table = Table::new(["<metric", "<unit", "<what it is"]);
    for spec in METRICS {
        table.row([spec.path, spec.unit, spec.meaning]);
    }
    table.text(0, style.columns())
}
