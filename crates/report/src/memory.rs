//! Where pages were.

use lab::measurements::{Memory, Scene};

use crate::heading::mean;
use crate::style::Style;
use crate::table::Table;
use crate::units;

/// A line per variant: the most in use, and what was held, in slabs and on per-CPU lists at the end; means over
/// repetitions. Empty where nothing was counted.
pub fn table(style: Style, scene: &Scene<'_>) -> String {
    let table = grid(scene);
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

pub(crate) fn grid(scene: &Scene<'_>) -> Table {
    let mut table = Table::new(["<memory", "peak", "held at end", "slab", "per-CPU lists"]);
    let mut all = scene.groups.iter().flat_map(|group| &group.runs);
    if all.all(|run| run.memory == Memory::default()) {
        return table;
    }
    for group in &scene.groups {
        let pages = |of: fn(&Memory) -> u64| {
            let pages = mean(group, |run| of(&run.memory)).round() as u64;
            if pages == 0 { "-".to_owned() } else { units::memory(pages) }
        };
        table.row([
            group.label.clone(),
            pages(|memory| memory.peak_pages),
            pages(|memory| memory.held_pages),
            pages(|memory| memory.slab_pages),
            pages(|memory| memory.pcp_pages),
        ]);
    }
    table
}
