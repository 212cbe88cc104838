//! Forks of recorded programs: what each took, and what sharing its pages with the child cost the parent while that lasted.

use std::fmt::Write as _;

use lab::measurements::{ForkUse, Scene};

use crate::style::Style;
use crate::table::Table;
use crate::units;

/// Forks of processes with fewer resident pages than this are not worth a line: 16 MiB.
const WORTHY_PAGES: u64 = 4096;
/// Forks that have a line, of each variant.
const LINES: usize = 3;

/// A line for each of the largest forks of each variant, of its first seed. Empty where no large process forked.
pub fn text(style: Style, scene: &Scene<'_>) -> String {
    let mut table = Table::new([
        "<",
        "<",
        "resident",
        "fork",
        "faults",
        "p50",
        "p99",
        "longest",
        "copied",
        "child lasted",
    ]);
    let mut is_empty = true;
    for group in &scene.groups {
        let forks = group.first().forks.largest.iter().take(LINES);
        for fork in forks.filter(|fork| fork.resident_pages >= WORTHY_PAGES) {
            table.row(cells(&group.label, fork));
            is_empty = false;
        }
    }
    if is_empty {
        return String::new();
    }
    let mut out = String::new();
    let title = "forks of large processes: their cost, and the parent's faults while the child had its pages";
    let _ = writeln!(out, "{}", style.heading(title));
    out.push_str(&table.text(2, style.columns()));
    out
}

fn cells(variant: &str, fork: &ForkUse) -> [String; 10] {
    let time = |ns: u64| units::duration(ns as f64);
    [
        variant.to_owned(),
        fork.parent.clone(),
        units::memory(fork.resident_pages),
        time(fork.fork_ns),
        units::count(fork.faults as f64),
        time(fork.fault_p50_ns),
        time(fork.fault_p99_ns),
        time(fork.fault_max_ns),
        units::memory(fork.copied_pages),
        time(fork.lasted_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::measurements::{Forks, Run, scenes};

    #[test]
    fn large_forks_have_a_line_for_each_variant() {
        let run = |variant: &str, fork_ns: u64, pages: u64| {
            let fork = ForkUse {
                parent: "redis-server".into(),
                resident_pages: pages,
                fork_ns,
                lasted_ns: 300_000_000,
                faults: 17_000,
                fault_p50_ns: 1_200,
                fault_p99_ns: 4_100,
                fault_max_ns: 90_000,
                copied_pages: 16_900,
                ..ForkUse::default()
            };
            let forks = Forks { count: 1, largest: vec![fork] };
            Run { workload: "redis".into(), variant: variant.into(), forks, ..Run::default() }
        };
        let runs = [run("never", 2_000_000, 25_600), run("always", 90_000, 25_600)];
        let scene = &scenes(&runs)[0];
        insta::assert_snapshot!(text(Style::plain(), scene), @r"
        forks of large processes: their cost, and the parent's faults while the child had its pages
                                 resident      fork  faults       p50       p99   longest     copied  child lasted
          never   redis-server  100.0 MiB  2.000 ms   17000  1.200 µs  4.100 µs  90.00 µs  66.02 MiB      300.0 ms
          always  redis-server  100.0 MiB  90.00 µs   17000  1.200 µs  4.100 µs  90.00 µs  66.02 MiB      300.0 ms
        ");
        let small = [run("never", 2_000_000, 256)];
        assert_eq!(text(Style::plain(), &scenes(&small)[0]), "");
    }
}
