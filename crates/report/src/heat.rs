//! How often a program's pages are accessed: `freehold heat`.

use std::fmt::Write as _;

use trace::AccessedCost;
use trace::heat::{Heat, Region};

use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units::{duration, plural};

/// The whole account.
pub fn text(style: Style, of: &Heat) -> String {
    let mut out = format!("{}\n", style.heading(&of.title));
    let _ = writeln!(out, "{}, {}", of.source(), of.cpu_model);
    for note in of.notes() {
        for (number, line) in wrap(&note, style.columns() - 2).iter().enumerate() {
            let _ = writeln!(out, "{}{line}", if number == 0 { "" } else { "  " });
        }
    }
    let heads = ["<memory", "MiB", "% in 100 ms", "% in 1 s", "% in 5 s", "% not in 5 s", "rounds"];
    let mut table = Table::new(heads);
    for region in of.regions.iter().chain([&of.all]) {
        table.row(row(region));
    }
    out + "\n" + &table.text(0, style.columns())
}

/// What it cost a recording to look at what is accessed again.
pub fn cost(of: &AccessedCost) -> String {
    format!(
        "looked {}{} at what is accessed again: {} of the recorder's time, {} of the program's for {}, address spaces locked for {} \
         at most (--accesses off leaves it out)",
        plural(u64::from(of.rounds), "time"),
        if of.by_page { " page by page" } else { "" },
        duration(of.own_ns as f64),
        duration(of.walks_ns() as f64),
        plural(of.accessed_pages, "page"),
        duration(of.held_ns_max as f64),
    )
}

fn row(region: &Region) -> Vec<String> {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let mut cells = vec![region.name.clone(), format!("{:.2}", region.mib())];
    cells.extend(region.within.map(percent));
    cells.push(percent(1.0 - region.within.last().copied().unwrap_or(0.0)));
    cells.push(region.rounds.to_string());
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str, resident_kib: u64, within: [f64; 3]) -> Region {
        Region { name: name.into(), resident_kib, within, rounds: 7 }
    }

    #[test]
    fn each_region_has_a_line_and_all_memory_the_last() {
        let heat = Heat {
            title: "sqlite3: look-ups".into(),
            command: "sqlite3 a.db".into(),
            process: "sqlite3".into(),
            kernel: "6.18.44".into(),
            cpu_model: "a CPU".into(),
            date: "2026-11-22".into(),
            rounds: 7,
            rounds_left_out: 1,
            interval_s: 6.0,
            after_s: 10.0,
            cpu_s: 0.937,
            clear_ns: 3_000_000,
            look_ns: 2_000_000,
            flushed: true,
            huge_kib: 0,
            exit_status: Some(0),
            all: region("all", 300 << 10, [0.05, 0.125, 0.5]),
            regions: vec![
                region("heap", 299 << 10, [0.049, 0.12, 0.5]),
                region("the rest", 1 << 10, [0.3, 0.3, 0.4]),
            ],
        };
        insta::assert_snapshot!(text(Style::plain(), &heat));
    }
}
