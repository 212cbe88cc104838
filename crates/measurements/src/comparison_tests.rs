use super::*;
use crate::{Latency, LockStat, Throughput};

fn run(variant: &str, seed: u64, mean_ns: u64) -> Run {
    let mut run = Run {
        workload: "loop".into(),
        machine: "epyc".into(),
        policy: "linux-6.18".into(),
        variant: variant.into(),
        seed,
        throughput: Throughput { pages_per_second: 1e9 / mean_ns as f64, operations_per_second: 0.0 },
        ..Run::default()
    };
    run.latency
        .insert("refill".into(), Latency { count: 1, mean_ns, p99_ns: 2 * mean_ns, ..Latency::default() });
    run.locks.insert("zone".into(), LockStat { acquired: 1, wait_ns: 10 * mean_ns, ..LockStat::default() });
    run
}

fn document(runs: Vec<Run>) -> Document {
    Document { runs, ..Document::new("replay") }
}

fn named(name: &str, runs: Vec<Run>) -> (String, Document) {
    (name.into(), document(runs))
}

#[test]
fn variants_of_one_document_are_columns() {
    let runs = vec![
        run("5", 1, 400),
        run("5", 2, 402),
        run("5", 3, 404),
        run("0", 1, 20),
        run("0", 2, 21),
        run("0", 3, 22),
    ];
    let comparison = compare(&[named("a", runs)]).expect("comparable");
    let table = &comparison.tables[0];
    assert_eq!(table.columns, ["5", "0"]);
    let names: Vec<&str> = table.rows.iter().map(|row| row.metric.name.as_str()).collect();
    assert_eq!(names, ["pages_per_second", "refill.mean_ns", "refill.p99_ns", "lock.zone.wait_ns"]);
    let refill = &table.rows[1];
    assert_eq!(refill.mean(0), Some(402.0));
    assert!(refill.differs(1), "402 ± 5 and 21 ± 2.5 have nothing in common");
    assert!(!refill.differs(0));
}

#[test]
fn documents_of_one_variant_are_columns_whatever_they_are() {
    let comparison = compare(&[named("a", vec![run("5", 1, 400)]), named("b", vec![run("0", 1, 20)])])
        .expect("comparable");
    assert_eq!(comparison.tables[0].columns, ["a", "b"]);
    assert!(!comparison.tables[0].rows[0].differs(1), "one run each tells nothing of confidence");
}

#[test]
fn documents_of_several_variants_meet_variant_by_variant() {
    let a = vec![run("5", 1, 400), run("0", 1, 20), run("3", 1, 99)];
    let mut b = vec![run("0", 1, 10), run("5", 1, 200)];
    for run in &mut b {
        run.policy = "freehold".into();
    }
    let comparison = compare(&[named("a", a), named("b", b)]).expect("comparable");
    let titles: Vec<&str> = comparison.tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(titles, ["loop epyc 5", "loop epyc 0"]);
    assert_eq!(comparison.tables[1].rows[1].mean(1), Some(10.0));
    assert_eq!(comparison.alone, ["a: 3"]);
}

#[test]
fn a_document_without_runs_is_named() {
    let error = compare(&[named("a", vec![run("5", 1, 1)]), named("b.json", vec![])]).expect_err("empty");
    assert_eq!(error, "b.json: has no runs to compare");
}

#[test]
fn gains_are_positive_when_better() {
    assert_eq!(Better::Lower.gain_percent(400.0, 100.0), Some(75.0));
    assert_eq!(Better::Higher.gain_percent(400.0, 100.0), Some(-75.0));
    assert_eq!(Better::Lower.gain_percent(0.0, 0.0), Some(0.0));
    assert_eq!(Better::Lower.gain_percent(0.0, 1.0), None);
}
