//! Each finding on a run in which it holds, and on one just short of it.

use super::{FINDINGS, findings};
use crate::measurements::{
    ForkUse, Forks, KnobOutcome, KnobUses, Latency, LockStat, LockWaits, ProgramUse, RecordingCounts,
    RecordingUse, Run,
};

const SECOND: u64 = 1_000_000_000;

fn blank() -> Run {
    Run { variant: "v".into(), machine: "m".into(), simulated_ns: SECOND, ..Run::default() }
}

fn span(name: &str, count: u64, mean_ns: u64, p99_ns: u64) -> Run {
    let latency =
        Latency { count, mean_ns, p99_ns, max_ns: p99_ns, total_ns: count * mean_ns, ..Latency::default() };
    Run { latency: [(name.to_owned(), latency)].into(), ..blank() }
}

fn lock(class: &str, wait_ns: u64) -> Run {
    let stat = LockStat { acquired: 100, contended: 50, wait_ns, wait_max_ns: wait_ns / 2, hold_ns: 9 };
    Run { locks: [(class.to_owned(), stat)].into(), ..blank() }
}

fn counters(run: Run, counted: &[(&str, u64)]) -> Run {
    Run { counters: counted.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(), ..run }
}

/// Ten tasks, of which `few` wait `long_ns` each and the others `short_ns`.
fn waiters(few: usize, long_ns: u64, short_ns: u64) -> Run {
    let wait = |number: usize| if number < few { long_ns } else { short_ns };
    Run { lock_waits: LockWaits::of((0..10).map(|number| ("task", wait(number)))), ..blank() }
}

fn program(used: ProgramUse) -> Run {
    Run { program: Some(used), ..blank() }
}

fn grown(peak_rss_pages: u64, huge_faults: u64) -> Vec<Run> {
    let base = ProgramUse { peak_rss_pages: 1000, ..ProgramUse::default() };
    let other = ProgramUse { huge_faults, peak_rss_pages, ..ProgramUse::default() };
    vec![program(base), Run { variant: "huge".into(), ..program(other) }]
}

fn fork(resident_pages: u64, copied_pages: u64) -> Run {
    let largest = vec![ForkUse { resident_pages, copied_pages, ..ForkUse::default() }];
    Run { forks: Forks { count: 1, largest }, ..blank() }
}

fn looks(all: u64, local: u64) -> Run {
    let counts = RecordingCounts {
        numa_hint_faults: all,
        numa_hint_faults_local: local,
        ..RecordingCounts::default()
    };
    Run { recordings: vec![RecordingUse { counts, ..RecordingUse::default() }], ..blank() }
}

fn knob(outcomes: [KnobOutcome; 2]) -> Vec<Run> {
    let run = |(number, outcome): (usize, KnobOutcome)| {
        let uses = KnobUses { outcome, consulted: 5, ..KnobUses::default() };
        Run { variant: number.to_string(), knob_uses: [("vm.swappiness".to_owned(), uses)].into(), ..blank() }
    };
    outcomes.into_iter().enumerate().map(run).collect()
}

/// Runs in which the finding of that name holds, and runs in which it does not.
fn cases(name: &str) -> [Vec<Run>; 2] {
    let ms = |ms: u64| ms * 1_000_000;
    match name {
        "long-batches" => [
            vec![span("refill", 900, 30_000, 50_000)],
            [span("refill", 900, 30_000, 49_999), span("drain", 300, 30_000, 90_000)]
                .map(|run| Run { variant: run.latency.keys().cloned().collect(), ..run })
                .into(),
        ],
        "zone-lock-waits" => [vec![lock("zone", ms(10))], vec![lock("zone", ms(9))]],
        "list-lock-waits" => [vec![lock("barn", ms(10))], vec![lock("list", ms(9))]],
        "mmap-lock-waits" => [vec![lock("mmap", ms(10))], vec![lock("zone", ms(10))]],
        "few-waiters" => [vec![waiters(3, ms(20), ms(1))], vec![waiters(4, ms(20), ms(1))]],
        "direct-reclaim" => [
            vec![counters(span("direct_reclaim", 10, 100_000, 1), &[("allocstall_normal", 10)])],
            vec![counters(span("direct_reclaim", 9, 100_000, 1), &[("allocstall_normal", 9)])],
        ],
        "compaction-stalls" => [
            vec![counters(span("compact", 10, 100_000, 1), &[("compact_stall", 1)])],
            // A daemon's alone.
            vec![counters(span("compact", 10, 100_000, 1), &[("compact_daemon_wake", 1)])],
        ],
        "pages-of-other-nodes" => [
            vec![counters(blank(), &[("numa_hit", 19_000), ("numa_miss", 1000)])],
            vec![counters(blank(), &[("numa_hit", 19_000), ("numa_miss", 999)])],
        ],
        "remote-accesses" => [vec![looks(100, 70)], vec![looks(100, 71)]],
        "huge-pages-untouched" => [grown(1050, 1), grown(1050, 0)],
        "huge-pages-fall-back" => [
            vec![counters(blank(), &[("thp_fault_alloc", 72), ("thp_fault_fallback", 8)])],
            vec![counters(blank(), &[("thp_fault_alloc", 80), ("thp_fault_fallback", 8)])],
        ],
        "copies-after-fork" => [vec![fork(4100, 410)], vec![fork(4100, 409)]],
        "page-walks" => {
            let walks = |walk_ns| vec![program(ProgramUse { cpu_ns: 100, walk_ns, ..ProgramUse::default() })];
            [walks(5), walks(4)]
        }
        "idle-knob" => [
            knob([KnobOutcome::Consulted, KnobOutcome::RefusedButForced]),
            knob([KnobOutcome::Consulted, KnobOutcome::Acted]),
        ],
        other => panic!("{other} has no cases"),
    }
}

#[test]
fn a_knob_at_its_default_is_idle_only_beside_another_value() {
    let found =
        |outcomes| findings(&knob(outcomes)).into_iter().filter(|found| found.name == "idle-knob").count();
    assert_eq!(found([KnobOutcome::AtDefault, KnobOutcome::AtDefault]), 0);
    assert_eq!(found([KnobOutcome::AtDefault, KnobOutcome::Consulted]), 1);
}

#[test]
fn each_finding_holds_where_it_should_and_not_just_short_of_it() {
    for spec in &FINDINGS {
        let [with, without] = cases(spec.name);
        let found = |runs: &[Run]| {
            findings(runs).into_iter().filter(|found| found.name == spec.name).collect::<Vec<_>>()
        };
        let held = found(&with);
        assert_eq!(held.len(), 1, "{}: {held:?}", spec.name);
        assert!((0.0..=1.0).contains(&held[0].weight) && !held[0].figures.is_empty(), "{held:?}");
        assert!(held[0].figures.values().all(|value| value.is_finite()), "{held:?}");
        assert_eq!(found(&without), [], "{}", spec.name);
    }
}

#[test]
fn a_run_of_nothing_has_none() {
    assert_eq!(findings(&[Run::default()]), []);
    assert_eq!(findings(&[]), []);
}

#[test]
fn what_weighs_most_comes_first_and_seeds_are_one_variant() {
    let runs = [
        lock("zone", 20_000_000),
        Run { seed: 2, ..lock("zone", 40_000_000) },
        Run { variant: "w".into(), ..lock("zone", 90_000_000) },
    ];
    let told: Vec<(String, f64)> =
        findings(&runs).into_iter().map(|found| (found.variant, found.weight)).collect();
    assert_eq!(told, [("w".to_owned(), 0.09), ("v".to_owned(), 0.03)]);
}

#[test]
fn every_finding_has_its_section() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let names: Vec<&str> = FINDINGS.iter().map(|spec| spec.name).collect();
    assert_eq!(sections, names);
    for section in page.split("\n## ").skip(1) {
        for part in ["**Condition.**", "**Meaning.**", "**Try.**"] {
            assert!(section.contains(part), "{part} is missing from\n{section}");
        }
    }
}
