//! What mmtests prints below a comparison: allocations by zone, what kswapd and requests themselves scanned and reclaimed, how
//! well and how fast, huge pages, and whether pages came from the node that was asked. A column for each variant.

use std::fmt::Write as _;

use lab::measurements::Run;

use crate::style::Style;

/// A line: its name and what it says of a run.
type MonitorLine = (&'static str, fn(&Run) -> String);

const LINES: [MonitorLine; 22] = [
    ("DMA allocs", |run| count(run, "pgalloc_dma")),
    ("DMA32 allocs", |run| count(run, "pgalloc_dma32")),
    ("Normal allocs", |run| count(run, "pgalloc_normal")),
    ("Movable allocs", |run| count(run, "pgalloc_movable")),
    ("Direct pages scanned", |run| count(run, "pgscan_direct")),
    ("Kswapd pages scanned", |run| count(run, "pgscan_kswapd")),
    ("Kswapd pages reclaimed", |run| count(run, "pgsteal_kswapd")),
    ("Direct pages reclaimed", |run| count(run, "pgsteal_direct")),
    ("Kswapd efficiency", |run| efficiency(run, "kswapd")),
    ("Kswapd velocity", |run| velocity(run, &["pgscan_kswapd"])),
    ("Direct efficiency", |run| efficiency(run, "direct")),
    ("Direct velocity", |run| velocity(run, &["pgscan_direct"])),
    ("Percentage direct scans", direct_scans),
    ("Zone normal velocity", |run| velocity(run, &["pgscan_kswapd_normal", "pgscan_direct_normal"])),
    ("Zone dma32 velocity", |run| velocity(run, &["pgscan_kswapd_dma32", "pgscan_direct_dma32"])),
    ("Zone dma velocity", |run| velocity(run, &["pgscan_kswapd_dma", "pgscan_direct_dma"])),
    ("THP fault alloc", |run| count(run, "thp_fault_alloc")),
    ("THP collapse alloc", |_| "-".to_owned()),
    ("THP splits", |run| count(run, "thp_split_page")),
    ("NUMA alloc hit", |run| count(run, "numa_hit")),
    ("NUMA alloc miss", |run| count(run, "numa_miss")),
    ("Kswapd wakes", |run| count(run, "pageoutrun")),
];

fn count(run: &Run, name: &str) -> String {
    run.counter(name).to_string()
}

/// Pages freed of those looked at; all, where none was.
fn efficiency(run: &Run, who: &str) -> String {
    let (scanned, freed) = (run.counter(&format!("pgscan_{who}")), run.counter(&format!("pgsteal_{who}")));
    format!("{}%", (100 * freed).checked_div(scanned).unwrap_or(100))
}

/// Pages looked at a second.
fn velocity(run: &Run, names: &[&str]) -> String {
    let scanned: u64 = names.iter().map(|name| run.counter(name)).sum();
    let seconds = run.simulated_ns as f64 / 1e9;
    format!("{:.3}", if seconds > 0.0 { scanned as f64 / seconds } else { 0.0 })
}

fn direct_scans(run: &Run) -> String {
    let (direct, kswapd) = (run.counter("pgscan_direct"), run.counter("pgscan_kswapd"));
    format!("{}%", 100 * direct / (direct + kswapd).max(1))
}

/// The table, of each variant's first run. Collapses are not simulated.
pub fn table(style: Style, runs: &[&Run]) -> String {
    let mut columns: Vec<&Run> = vec![];
    for run in runs {
        if columns.iter().all(|column| column.variant != run.variant) {
            columns.push(run);
        }
    }
    let mut out = style.heading("Simulated, what mmtests counts besides; the first seed") + "\n";
    let width = columns.iter().map(|run| run.variant.len()).max().unwrap_or(0).max(12);
    let _ = write!(out, "{:24}", "");
    for run in &columns {
        let _ = write!(out, " {:>width$}", run.variant);
    }
    out.push('\n');
    for (name, value) in LINES {
        let _ = write!(out, "{name:24}");
        for run in &columns {
            let _ = write!(out, " {:>width$}", value(run));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_zones_and_of_nodes_are_both_read() {
        let run = |variant: &str, counters: &[(&str, u64)]| Run {
            variant: variant.into(),
            simulated_ns: 2_000_000_000,
            counters: counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..Run::default()
        };
        let zones = [
            ("pgalloc_dma32", 5),
            ("pgscan_kswapd_normal", 300),
            ("pgscan_kswapd_dma32", 100),
            ("pgsteal_kswapd_normal", 200),
        ];
        let nodes = [("pgalloc_normal", 7), ("pgscan_direct", 30), ("pgsteal_direct", 30), ("numa_miss", 2)];
        let (old, new) = (run("linux-3.17", &zones), run("linux-6.18", &nodes));
        insta::assert_snapshot!(table(Style::plain(), &[&old, &new]));
    }
}
