//! Event counters under vmstat's names, beside the baseline's.

use lab::measurements::{Group, Scene};

use crate::style::Style;
use crate::table::Table;

/// A counter and its value in each variant, the mean over repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterRow<'a> {
    /// vmstat's name.
    pub name: &'a str,
    /// One value a variant.
    pub values: Vec<f64>,
}

/// The counters that are not 0 in every variant, by name.
pub fn counters<'a>(scene: &Scene<'a>) -> Vec<CounterRow<'a>> {
    let mut names: Vec<&str> = scene
        .groups
        .iter()
        .flat_map(|group| &group.runs)
        .flat_map(|run| run.counters.keys())
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    let value = |group: &Group<'_>, name: &str| {
        let of = |run: &&lab::measurements::Run| run.counters.get(name).copied().unwrap_or(0) as f64;
        group.runs.iter().map(of).sum::<f64>() / group.runs.len() as f64
    };
    let counter =
        |name| CounterRow { name, values: scene.groups.iter().map(|group| value(group, name)).collect() };
    names
        .into_iter()
        .map(counter)
        .filter(|counter| counter.values.iter().any(|&value| value != 0.0))
        .collect()
}

/// A line per counter: its value in each variant and, from the second on, its change against the first.
pub fn table(style: Style, scene: &Scene<'_>) -> String {
    let table = grid(scene);
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

pub(crate) fn grid(scene: &Scene<'_>) -> Table {
    let mut heads = vec!["<counter".to_owned()];
    for (index, group) in scene.groups.iter().enumerate() {
        heads.push(group.label.clone());
        if index > 0 {
            heads.push("change".into());
        }
    }
    let mut table = Table::new(&heads);
    for counter in counters(scene) {
        let mut row = vec![counter.name.to_owned()];
        for (index, &value) in counter.values.iter().enumerate() {
            row.push(format!("{value:.0}"));
            if index > 0 {
                row.push(change(counter.values[0], value));
            }
        }
        table.row(row);
    }
    table
}

/// `+12.3%`, `×23.1` where it more than doubled, `new` where there was none, `=` where nothing changed.
pub(crate) fn change(base: f64, value: f64) -> String {
    if (value - base).abs() < f64::EPSILON {
        "=".into()
    } else if base == 0.0 {
        "new".into()
    } else if value > 2.0 * base {
        format!("×{:.1}", value / base)
    } else {
        format!("{:+.1}%", 100.0 * (value - base) / base)
    }
}
