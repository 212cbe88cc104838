//! The lock table: how often each class was taken, how often somebody was in the way, how long that cost.

use lab::measurements::{Group, LockStat, Scene};

use crate::style::Style;
use crate::table::Table;
use crate::units::duration;

/// A line per class and variant. `wait mean` is per contended acquisition, `hold mean` per acquisition; counts and
/// totals are over all repetitions. Empty where no lock was taken.
pub fn table(style: Style, scene: &Scene<'_>) -> String {
    let table = grid(scene);
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

pub(crate) fn grid(scene: &Scene<'_>) -> Table {
    let heads = [
        "<lock",
        "<",
        "acquired",
        "contended",
        "%",
        "wait mean",
        "wait max",
        "wait total",
        "hold mean",
        "hold total",
    ];
    let mut table = Table::new(heads);
    for class in classes(scene) {
        for group in &scene.groups {
            let stat = pooled(group, class);
            if is_used(&stat) {
                table.row([class.to_owned(), group.label.clone()].into_iter().chain(cells(&stat)));
            }
        }
    }
    table
}

/// The classes that were taken in any variant.
pub fn classes<'a>(scene: &Scene<'a>) -> Vec<&'a str> {
    let mut classes: Vec<&str> = vec![];
    for run in scene.groups.iter().flat_map(|group| &group.runs) {
        for (class, stat) in &run.locks {
            if is_used(stat) && !classes.contains(&class.as_str()) {
                classes.push(class);
            }
        }
    }
    // The zone lock is what people look for.
    classes.sort_by_key(|class| (*class != "zone", *class));
    classes
}

/// A class over all repetitions of a variant.
pub fn pooled(group: &Group<'_>, class: &str) -> LockStat {
    let mut all = LockStat::default();
    for stat in group.runs.iter().filter_map(|run| run.locks.get(class)) {
        all.acquired = all.acquired.saturating_add(stat.acquired);
        all.contended = all.contended.saturating_add(stat.contended);
        all.wait_ns = all.wait_ns.saturating_add(stat.wait_ns);
        all.wait_max_ns = all.wait_max_ns.max(stat.wait_max_ns);
        all.hold_ns = all.hold_ns.saturating_add(stat.hold_ns);
    }
    all
}

const fn is_used(stat: &LockStat) -> bool {
    stat.acquired > 0 || stat.contended > 0
}

/// Acquired, contended, percent, wait mean, max and total, hold mean and total.
pub(crate) fn cells(stat: &LockStat) -> [String; 8] {
    let per = |ns: u64, count: u64| match count {
        0 => "-".to_owned(),
        _ => duration(ns as f64 / count as f64),
    };
    let percent = match stat.acquired {
        0 => "-".to_owned(),
        acquired => format!("{:.2}", 100.0 * stat.contended as f64 / acquired as f64),
    };
    [
        stat.acquired.to_string(),
        stat.contended.to_string(),
        percent,
        per(stat.wait_ns, stat.contended),
        duration(stat.wait_max_ns as f64),
        duration(stat.wait_ns as f64),
        per(stat.hold_ns, stat.acquired),
        duration(stat.hold_ns as f64),
    ]
}
