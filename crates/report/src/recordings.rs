//! What each recording of a replay came to, where several ran side by side or the machine has several nodes.

use lab::measurements::{Group, RecordingUse, Scene};

use crate::style::Style;
use crate::table::Table;
use crate::units::{count, duration, memory};

/// A line per recording and variant: its run time, faults, memory, what NUMA balancing did, and on which nodes the
/// pages of its copies' largest processes were, the last time that these had nine tenths of their peaks; means over repetitions. Empty where one recording ran on one node.
pub fn table(style: Style, scene: &Scene<'_>) -> String {
    let table = grid(scene);
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

pub(crate) fn grid(scene: &Scene<'_>) -> Table {
    let heads =
        ["<recording", "<", "run time", "page faults", "peak RSS", "hint faults", "moved", "<pages by node"];
    let mut table = Table::new(heads);
    let recordings = scene.groups.iter().map(|group| group.first().recordings.len()).max().unwrap_or(0);
    for number in 0..recordings {
        for group in &scene.groups {
            if let Some(used) = group.first().recordings.get(number) {
                table.row(row(group, used, number));
            }
        }
    }
    table
}

fn row(group: &Group<'_>, used: &RecordingUse, number: usize) -> [String; 8] {
    let mean = |of: &dyn Fn(&RecordingUse) -> f64| {
        let values = group.runs.iter().filter_map(|run| run.recordings.get(number)).map(of);
        values.sum::<f64>() / group.runs.len() as f64
    };
    let counted = |of: fn(&RecordingUse) -> u64| {
        let value = mean(&|used| of(used) as f64);
        if value > 0.0 { count(value) } else { "-".to_owned() }
    };
    let name = match used.copies {
        1 => used.name.clone(),
        copies => format!("{}, {copies} copies", used.name),
    };
    let on = |node: usize| mean(&|used| used.shares().get(node).copied().unwrap_or(0.0));
    let nodes = (0..used.pages_by_node.len()).map(|node| (node, on(node)));
    let placed: Vec<String> = nodes
        .filter(|(_, percent)| *percent >= 0.05)
        .map(|(node, percent)| format!("N{node} {percent:.1} %"))
        .collect();
    [
        name,
        group.label.clone(),
        duration(mean(&|used| used.elapsed_ns as f64)),
        counted(|used| used.counts.page_faults),
        memory(mean(&|used| used.counts.peak_rss_pages as f64).round() as u64),
        counted(|used| used.counts.numa_hint_faults),
        counted(|used| used.counts.numa_pages_migrated),
        placed.join("  "),
    ]
}
