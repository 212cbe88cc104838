//! What was counted while memory was short: no play has that to the page, so real and simulated counts stand beside each other, with
//! the error; and of each region and file, which pages stayed. Compared are counts since the first mark, where the kernel
//! counted 1,000 and more.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::Mark;
use super::seen::Seen;
use crate::conform::outcome::{Counted, CounterRow, Shortage, StayedRow};

/// Below this, a kernel's count says little.
const LEAST: u64 = 1000;

/// vmstat's names; [`OVER_ZONES`] are sums.
const OF_MACHINE: [&str; 29] = [
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "pswpin",
    "pswpout",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "allocstall",
    "pgskip",
    "pgmajfault",
    "zone_reclaim_success",
    "zone_reclaim_failed",
    "pgrotated",
    "oom_kill",
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_pages_migrated",
];

/// Those that vmstat has by zone.
const OVER_ZONES: [&str; 2] = ["allocstall", "pgskip"];

/// A group's, under the names of memory.stat and memory.events.
const OF_GROUP: [&str; 12] = [
    "pgscan",
    "pgsteal",
    "pgactivate",
    "pgdeactivate",
    "pgrefill",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "events max",
    "events high",
    "events oom_kill",
];

/// A mark of a capture, and the same of a play.
type Both<'a> = (&'a Mark<'a>, &'a Seen);

/// The rows of all counters, by the marks of both sides.
pub(super) fn counters(marks: &[Both<'_>]) -> Vec<CounterRow> {
    let of_machine = OF_MACHINE.into_iter().filter_map(|name| {
        let count = |(mark, seen): &Both<'_>| (of(&mark.events, name), ours(&seen.events, name));
        row(name.to_owned(), marks, count)
    });
    let groups: BTreeSet<&String> = marks.iter().flat_map(|(_, seen)| seen.groups.keys()).collect();
    let named = groups.into_iter().flat_map(|group| OF_GROUP.map(|name| (group, name)));
    let of_groups = named.filter_map(|(group, name)| {
        let count = |(mark, seen): &Both<'_>| {
            let kernel = mark.groups.get(group.as_str()).map_or(0, |stat| of(stat, name));
            (kernel, seen.groups.get(group).map_or(0, |stat| ours(stat, name)))
        };
        row(format!("{group}: {name}"), marks, count)
    });
    of_machine.chain(of_groups).collect()
}

/// What the shortage cost from the first mark to the last.
pub(super) fn shortage(marks: &[Both<'_>]) -> Shortage {
    let (Some(first), Some(last)) = (marks.first(), marks.last()) else { return Shortage::default() };
    let counted = |names: [&str; 2]| {
        let kernel = |both: &Both<'_>| names.map(|name| of(&both.0.events, name)).iter().sum::<u64>();
        let freehold = |both: &Both<'_>| names.map(|name| ours(&both.1.events, name)).iter().sum::<u64>();
        Counted {
            kernel: kernel(last).saturating_sub(kernel(first)),
            freehold: freehold(last).saturating_sub(freehold(first)),
        }
    };
    Shortage {
        refaults: counted(["workingset_refault_anon", "workingset_refault_file"]),
        swapped_in: counted(["pswpin", ""]),
        scanned: counted(["pgscan_anon", "pgscan_file"]),
    }
}

/// What a kernel counted.
fn of(events: &BTreeMap<&str, u64>, name: &str) -> u64 {
    sum(events.iter().map(|(key, count)| (*key, *count)), name)
}

fn ours(events: &BTreeMap<String, u64>, name: &str) -> u64 {
    sum(events.iter().map(|(key, count)| (key.as_str(), *count)), name)
}

fn sum<'a>(events: impl Iterator<Item = (&'a str, u64)>, name: &str) -> u64 {
    let of_zones = OVER_ZONES.contains(&name);
    let is_it = |key: &str| key == name || of_zones && key.starts_with(name);
    events.filter(|(key, _)| is_it(key)).map(|(_, count)| count).sum()
}

/// The row of a counter that `count` reads, both sides' at a mark.
fn row(counter: String, marks: &[Both<'_>], count: impl Fn(&Both<'_>) -> (u64, u64)) -> Option<CounterRow> {
    let (before, before_ours) = count(marks.first()?);
    let since = |both: &Both<'_>| {
        let (kernel, ours) = count(both);
        (kernel.saturating_sub(before), ours.saturating_sub(before_ours))
    };
    let (kernel, freehold) = since(marks.last()?);
    let counts_at_all = counter.ends_with("oom_kill") && kernel + freehold > 0;
    if kernel < LEAST && !counts_at_all {
        return None;
    }
    let at_marks = marks.iter().map(|both| (since(both), both.0.label));
    let counted = at_marks.filter(|((kernel, _), _)| *kernel >= LEAST);
    let worst = counted.map(|(counts, label)| (error(counts), label));
    let worst = worst.max_by(|one, other| one.0.abs().total_cmp(&other.0.abs())).unwrap_or((0.0, ""));
    Some(CounterRow {
        counter,
        kernel,
        freehold,
        percent: error((kernel, freehold)),
        worst_percent: worst.0,
        worst_mark: worst.1.to_owned(),
    })
}

/// By how much ours is off, in percent of the kernel's.
fn error((kernel, ours): (u64, u64)) -> f64 {
    100.0 * (ours as f64 - kernel as f64) / kernel.max(1) as f64
}

/// Of each region and file, in how much of an eighth both sides differ: on average over the eighths and marks, and at most.
pub(super) fn stayed(marks: &[Both<'_>]) -> Vec<StayedRow> {
    let mut rows: BTreeMap<(&str, &str), (f64, u32, f64, &str)> = BTreeMap::new();
    for (mark, seen) in marks {
        for (&name, kernel) in &mark.regions {
            for what in ["cached", "present", "swapped"].into_iter().filter(|what| kernel.contains_key(what))
            {
                let ours = seen.regions.get(name).and_then(|region| region.get(what)).copied();
                let (kernel, ours) = (kernel[what], ours.unwrap_or_default());
                let eighth = mark.pages.get(name).copied().unwrap_or(0) as f64 / 8.0;
                let row = rows.entry((name, what)).or_insert((0.0, 0, 0.0, ""));
                for (kernel, ours) in kernel.into_iter().zip(ours) {
                    let points = 100.0 * kernel.abs_diff(ours) as f64 / eighth.max(1.0);
                    row.0 += points;
                    row.1 += 1;
                    if points > row.2 {
                        (row.2, row.3) = (points, mark.label);
                    }
                }
            }
        }
    }
    let row = |((name, what), (sum, count, worst, label)): ((&str, &str), (f64, u32, f64, &str))| StayedRow {
        name: format!("{name} {what}"),
        mean_points: sum / f64::from(count.max(1)),
        worst_points: worst,
        worst_mark: label.to_owned(),
    };
    rows.into_iter().map(row).collect()
}
