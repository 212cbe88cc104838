//! What SPECjbb's JVMs do, in short runs on the machine of Mel Gorman's post.

use mm::{Knob, Nanos, Policy};
use sim::Profile;
use toml::Table;

use crate::scene::{Outcome, Phase, Scene, SceneError, perform};
use crate::workloads::WorkloadSpec;

/// One phase of 800 ms without a warm-up; memory is an 8th of the machine's and of what the JVMs take.
fn ran(knobs: &[(Knob, u64)], more: &str) -> Result<Outcome, SceneError> {
    let text = format!(
        "kind = 'specjbb'\nmeasure_ms = 40\nsmall_mib = 256\nlive_mib = 25\nown_ns = 26000\n\
         reads = 40\nnew_bytes = 4096\ncollect_every = 200\ncollect_reads = 4650\ncollect_warehouse_reads = 128\n{more}"
    );
    let workload: WorkloadSpec = text.parse::<Table>().expect("TOML").try_into().expect("a workload");
    let scene = Scene {
        profile: Profile::load("westmere-ex").unwrap(),
        policy: Policy::parse("linux-3.17").unwrap(),
        knobs: knobs.to_vec(),
        workload,
        seed: 1,
        cpus: vec![],
        shrink: 8,
        warm_up: Nanos(0),
        phases: vec![Phase::only(Nanos(800_000_000))],
    };
    perform(&scene).map(|mut outcomes| outcomes.pop().expect("a phase"))
}

#[test]
fn each_jvm_is_measured_with_each_number_of_warehouses() {
    let outcome = ran(&[], "heap_mib = 4096\nwarehouses = [1, 6]").unwrap();
    let (one, six) = (&outcome.run.samples["warehouses-1"], &outcome.run.samples["warehouses-6"]);
    assert_eq!((one.len(), six.len()), (4, 4));
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    // An operation takes 26 us and its reads; six threads are faster than one, and less than six times so.
    assert!((20_000.0..38_000.0).contains(&mean(one)), "{one:?}");
    assert!((2.0..6.0).contains(&(mean(six) / mean(one))), "{one:?} {six:?}");
    // Two starts of four JVMs, each with huge pages for its heap.
    let huge = outcome.run.counters["thp_fault_alloc"];
    assert_eq!(huge, 2 * 4 * (4096 / 8 / 2));
    assert_eq!(outcome.run.counters["numa_miss"], 0);
}

#[test]
fn order_decides_where_the_end_of_a_large_heap_lies() {
    // 14,656 MiB fit into the node of 16 GiB, but not into its 13 GiB of Normal.
    let large = "warehouses = [6]\nheap_mib = 14400\nnodes = [0]";
    let start = |order| ran(&[(Knob::NumaZonelistOrder, order)], large).unwrap();
    let (node, zone) = (start(1), start(2));
    let count = |outcome: &Outcome, name: &str| outcome.run.counters.get(name).copied().unwrap_or(0);
    assert_eq!((count(&node, "numa_miss"), count(&zone, "pgalloc_dma32")), (0, 0));
    assert!(count(&node, "pgalloc_dma32") > 0 && count(&zone, "numa_miss") > 0);
    let rate = |outcome: &Outcome| outcome.run.samples["warehouses-6"][0];
    assert!(rate(&node) > rate(&zone), "{} {}", rate(&node), rate(&zone));
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    for (more, word) in [
        ("heap_mib = 4096\nwarehouses = []", "warehouses"),
        ("heap_mib = 4096\nwarehouses = [1]\nnodes = [9]", "node 9"),
    ] {
        let error = ran(&[], more).unwrap_err().to_string();
        assert!(error.contains(word) && error.lines().count() == 1, "{error}");
    }
}
