//! What cgroups came to, where any limit of one is set, under the names of their files.

use lab::measurements::{CgroupUse, Group, Scene};

use crate::style::Style;
use crate::table::Table;
use crate::units::{count, duration, memory};

/// Counters of `memory.stat` that have a column, some together.
const STAT: [&[&str]; 7] = [
    &["workingset_refault_anon"],
    &["workingset_refault_file"],
    &["pgscan"],
    &["pgsteal"],
    &["pswpin", "zswpin"],
    &["pswpout", "zswpout"],
    &["pgmajfault"],
];

/// A line per cgroup and variant: the most that it had, what happened for its limits, what reclaim did in it; means over
/// repetitions. Empty where no limit was set.
pub fn table(style: Style, scene: &Scene<'_>) -> String {
    let table = grid(scene);
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

pub(crate) fn grid(scene: &Scene<'_>) -> Table {
    let heads = [
        "<cgroup",
        "<",
        "peak",
        "max",
        "high",
        "oom",
        "refault anon",
        "file",
        "scanned",
        "stolen",
        "swapped in",
        "out",
        "major faults",
        "delay",
    ];
    let mut table = Table::new(heads);
    let cgroups = scene.groups.iter().map(|group| group.first().cgroups.len()).max().unwrap_or(0);
    for number in 0..cgroups {
        for group in &scene.groups {
            if let Some(used) = group.first().cgroups.get(number) {
                table.row(row(group, used, number));
            }
        }
    }
    table
}

fn row(group: &Group<'_>, used: &CgroupUse, number: usize) -> [String; 14] {
    let mean = |of: &dyn Fn(&CgroupUse) -> f64| {
        let values = group.runs.iter().filter_map(|run| run.cgroups.get(number)).map(of);
        values.sum::<f64>() / group.runs.len() as f64
    };
    let counted = |of: &dyn Fn(&CgroupUse) -> u64| {
        let value = mean(&|used| of(used) as f64);
        if value > 0.0 { count(value) } else { "-".to_owned() }
    };
    let [anon, file, scanned, stolen, swapped_in, swapped_out, major] =
        STAT.map(|names| counted(&|used| names.iter().map(|name| used.count(name)).sum()));
    let event = |name: &str| counted(&|used| used.event(name));
    let delay = mean(&|used| used.high_delay_ns as f64);
    [
        used.name.clone(),
        group.label.clone(),
        memory((mean(&|used| used.peak as f64) / mm::ids::PAGE_SIZE as f64).round() as u64),
        event("max"),
        event("high"),
        event("oom"),
        anon,
        file,
        scanned,
        stolen,
        swapped_in,
        swapped_out,
        major,
        if delay > 0.0 { duration(delay) } else { "-".to_owned() },
    ]
}

#[cfg(test)]
mod tests {
    use lab::measurements::{Run, scenes};

    use super::*;

    #[test]
    fn a_cgroup_has_a_line_for_each_variant() {
        let run = |variant: &str, max: u64, swapped: u64| {
            let cgroup = CgroupUse {
                name: "db".into(),
                peak: 64 << 20,
                events: [("max".to_owned(), max)].into(),
                stat: [("pswpin".to_owned(), swapped)].into(),
                ..CgroupUse::default()
            };
            Run { workload: "db".into(), variant: variant.into(), cgroups: vec![cgroup], ..Run::default() }
        };
        let runs = [run("memory.max=67108864", 12, 3000), run("memory.max=max", 0, 0)];
        let text = table(Style::plain(), &scenes(&runs)[0]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines[1].contains("64.00 MiB") && lines[1].contains("12") && lines[1].contains("3000"),
            "{text}"
        );
        assert_eq!(table(Style::plain(), &scenes(&[Run::default()])[0]), "");
    }
}
