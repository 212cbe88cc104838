//! What is printed of policies on real threads, for a fixed set of measurements.

use freehold_report::{Style, contention};
use lab::measurements::{Confidence, Document, Latency, LockStat, Run, Throughput};

fn run(threads: &str, policy: &str, round: u64, pages_per_second: f64) -> Run {
    let samples = (1..=100).map(|sample| sample * 10 + round);
    let lock = LockStat { acquired: 200, contended: 10, wait_ns: 5000, wait_max_ns: 900, hold_ns: 100_000 };
    Run {
        workload: format!("{threads}, 32768 pages each, allocated, written, freed"),
        machine: "this machine (Some CPU, 2 CPUs)".into(),
        policy: policy.into(),
        seed: round,
        confidence: Confidence::Exact,
        confidence_reason: "measured on this machine, nothing simulated".into(),
        knobs: if policy == "freehold" {
            [].into()
        } else {
            [("vm.pcp_batch_scale_max".into(), 5.into())].into()
        },
        throughput: Throughput { pages_per_second, operations_per_second: pages_per_second },
        latency: [("refill".to_owned(), Latency::from_samples(samples))].into(),
        locks: [("zone".to_owned(), lock)].into(),
        omissions: [("requests_without_a_page".to_owned(), u64::from(threads == "2 threads"))].into(),
        ..Run::default()
    }
}

#[test]
fn two_policies_alone_and_together() {
    let mut document = Document::new("bench contention");
    for threads in ["1 thread", "2 threads"] {
        for round in 1..=3 {
            let speed = 1e7 + round as f64 * 1e5;
            document.runs.push(run(threads, "linux-6.18", round, speed));
            document.runs.push(run(threads, "freehold", round, speed * (1.0 + round as f64 / 100.0)));
        }
    }
    insta::assert_snapshot!(contention::text(Style::plain(), &document));
    assert_eq!(contention::text(Style::plain(), &Document::new("")), "");
}
