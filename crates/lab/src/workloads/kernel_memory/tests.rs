//! Processes on a small 32-bit machine: what becomes of low memory.

use mm::{Knob, Nanos, Policy};
use sim::Profile;
use toml::Table;

use crate::scene::{Outcome, Phase, Scene, perform};
use crate::workloads::WorkloadSpec;

/// numa-32bit with 1 GiB a node: 896 MiB of node 0 are low memory.
fn ran(order: u64, highpte: u64, workload: &str) -> Outcome {
    let text = Profile::load("numa-32bit").unwrap().to_toml();
    let profile = Profile::parse("small", &text.replace("memory_mib = 4096", "memory_mib = 1024")).unwrap();
    let text = format!("kind = 'kernel-memory'\nnodes = [0]\n{workload}");
    let workload: WorkloadSpec = text.parse::<Table>().expect("TOML").try_into().expect("a workload");
    let scene = Scene {
        profile,
        policy: Policy::parse("linux-3.17").unwrap(),
        knobs: vec![
            (Knob::NumaZonelistOrder, order),
            (Knob::Highpte, highpte),
            (Knob::TransparentHugepage, 0),
            (Knob::OvercommitMemory, 1),
        ],
        workload,
        seed: 1,
        cpus: vec![],
        shrink: 1,
        warm_up: Nanos(2_000_000_000),
        phases: vec![Phase::only(Nanos(3_000_000_000))],
    };
    perform(&scene).unwrap_or_else(|error| panic!("{error}")).pop().unwrap()
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.run.counters.get(name).copied().unwrap_or(0)
}

const FEW: &str =
    "life_ms = 500\nprocesses = 4\nanon_mib = 8\nshared_mib = 64\nfile_mib = 32\nmetadata_mib = 8\n";

#[test]
fn processes_come_work_and_go() {
    for order in [1, 2] {
        let outcome = ran(order, 0, FEW);
        assert_eq!(counter(&outcome, "processes_killed"), 0);
        // Lives of 250 to 750 ms and some start-up, four at a time, 3 to 5 s.
        let done = counter(&outcome, "processes_done");
        assert!((8..=48).contains(&done), "{done}");
        assert!(outcome.run.operations > 0 && counter(&outcome, "freehold_oom") == 0);
    }
}

/// More anonymous memory than node 0 has above low memory, and page tables: 20 processes with one for each 2 MiB of 4 GiB.
const MANY: &str = "life_ms = 20000\nprocesses = 20\nanon_mib = 100\nshared_mib = 4096\nkernel_kib = 512\nfile_mib = 64\nmetadata_mib = 16\n";

#[test]
fn low_memory_is_kept_by_zone_order_and_not_by_node_order() {
    let [node, zone] = [1, 2].map(|order| ran(order, 0, MANY));
    assert!(counter(&node, "processes_killed") > 0, "{:?}", node.run.counters);
    assert_eq!((counter(&zone, "processes_killed"), counter(&zone, "freehold_oom")), (0, 0));
    let high = |outcome: &Outcome| counter(outcome, "pgalloc_high");
    assert!(high(&zone) > high(&node), "{} {}", high(&zone), high(&node));
}

#[test]
fn page_tables_in_high_memory_relieve_low_memory() {
    let [low, high] = [0, 1].map(|highpte| ran(1, highpte, MANY));
    let killed = |outcome: &Outcome| counter(outcome, "processes_killed");
    assert!(killed(&high) < killed(&low), "{} {}", killed(&high), killed(&low));
}

#[test]
fn nodes_must_have_cpus() {
    let text = format!("kind = 'kernel-memory'\nnodes = [7]\n{FEW}");
    let scene = Scene::of(Profile::load("numa-32bit").unwrap(), "linux-3.17", &text, Nanos(1_000_000));
    let said = perform(&scene).unwrap_err().to_string();
    assert_eq!(said, "workload: nodes is [7], but none of them has a CPU to run on");
}
