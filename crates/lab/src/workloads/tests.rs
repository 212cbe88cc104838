//! What workloads do to memory, seen in short runs.

use mm::{Nanos, Policy, Span};
use sim::Profile;
use toml::Table;

use super::WorkloadSpec;
use crate::scene::{Outcome, Phase, Scene, perform};

fn ran(policy: &str, run_ms: u64, workload: &str) -> Outcome {
    let workload: WorkloadSpec = workload.parse::<Table>().expect("TOML").try_into().expect("a workload");
    let scene = Scene {
        profile: Profile::load("xeon-8260").unwrap(),
        policy: Policy::parse(policy).unwrap(),
        knobs: vec![],
        workload,
        seed: 1,
        cpus: vec![],
        shrink: 1,
        warm_up: Nanos(10_000_000),
        phases: vec![Phase::only(Nanos(run_ms * 1_000_000))],
    };
    perform(&scene).unwrap_or_else(|error| panic!("{error}")).pop().unwrap()
}

fn near(value: f64, expected: f64, by: f64) -> bool {
    (value / expected - 1.0).abs() < by
}

/// Pages that refills take for each that is allocated.
fn from_zone(outcome: &Outcome) -> f64 {
    let pages = |span| outcome.measured.span(span).pages() as f64;
    pages(Span::Refill) / pages(Span::PageAlloc)
}

const MESSAGES: &str = "kind = 'producer-consumer'\npairs = 2\norders = [3, 2]\nin_flight = 3\n\
    send_ns = 10000\nreceive_ns = 10000\n";

#[test]
fn messages_take_their_time_and_all_their_pages_from_the_zone() {
    for placement in ["free", "smt", "llc", "node"] {
        let outcome = ran("linux-6.12", 20, &format!("{MESSAGES}placement = '{placement}'\n"));
        // A message is two allocations and two frees; 10 us and some more for them.
        let messages = outcome.run.throughput.operations_per_second / 4.0 / 2.0;
        assert!(
            (60_000.0..100_000.0).contains(&messages),
            "{placement}: {messages} messages a second a pair"
        );
        assert!(near(from_zone(&outcome), 1.0, 0.02), "{placement}: {}", from_zone(&outcome));
        // On the way, with the sender, and with the receiver.
        let most = 2 * (3 + 1 + 1) * (8 + 4);
        let peak = outcome.run.memory.peak_pages;
        assert!(peak <= most && peak >= most / 4, "{placement}: {peak} pages of {most}");
    }
}

#[test]
fn on_one_cpu_pages_come_back() {
    let outcome = ran("linux-6.6", 20, &format!("{MESSAGES}placement = 'same'\n"));
    assert!(from_zone(&outcome) < 0.2, "{}", from_zone(&outcome));
}

#[test]
fn messages_keep_their_rate() {
    let outcome = ran("linux-6.12", 50, &format!("{MESSAGES}per_second = 20000\n"));
    let messages = outcome.run.throughput.operations_per_second / 4.0 / 2.0;
    assert!(near(messages, 20_000.0, 0.02), "{messages}");
}

#[test]
fn processes_come_and_go() {
    let workload = "kind = 'process-churn'\njobs = 8\nkib_min = 256\nkib_max = 8192\nus_per_page = 2\n";
    let outcome = ran("linux-6.12", 50, workload);
    assert!(outcome.run.omissions.is_empty(), "{:?}", outcome.run.omissions);
    // All at their largest at once, with page tables, and slab pages of one and a half for each 10 pages.
    let most = 8 * 2048 * 117 / 100;
    let peak = outcome.run.memory.peak_pages;
    assert!(peak < most && peak > most / 8, "{peak} pages of {most}");
    let used = outcome.measured.cpus.iter().filter(|cpu| cpu.busy.0 > 1_000_000).count();
    assert!((8..16).contains(&used), "each has a CPU of its own: {used}");
    let by_order = outcome.measured.span(Span::PageAlloc).by_order;
    let share = by_order[1].spans.count as f64 / by_order[0].spans.count as f64;
    assert!(near(share, 0.05 / 1.05, 0.1), "one page in 20 is a block of order 1: {share}");
}

#[test]
fn tuned_pagesets_keep_what_processes_leave() {
    let workload = "kind = 'process-churn'\njobs = 96\nkib_min = 1024\nkib_max = 8192\nus_per_page = 2\n";
    let [old, new] = ["linux-6.6", "linux-6.7"].map(|policy| from_zone(&ran(policy, 40, workload)));
    assert!(old > 0.5, "pagesets of some hundred pages keep little of a process: {old}");
    assert!(new < old / 2.0, "{new} against {old}");
}

const HOST: &str = "kind = 'colocated'\nservices = 4\nevery_us = 100\nblocks = 8\nprocesses = 6\nmib = 4\n";

#[test]
fn services_are_measured_apart_from_the_job() {
    let outcome = ran("linux-6.12", 50, HOST);
    let count = |name: &str| outcome.run.latency[name].count;
    let requested = 4 * (8 + 2) * 500;
    assert!(
        count("latency/page_alloc").abs_diff(requested) < requested / 50,
        "{}",
        count("latency/page_alloc")
    );
    assert_eq!(count("latency/page_alloc") + count("throughput/page_alloc"), count("page_alloc"));
    // Nothing comes back to the CPU that takes requests, nor is anything taken where they are finished.
    assert!(count("latency/refill") > 4 * 8 * 500 / 2016 && count("latency/drain") > 4);
    assert_eq!(count("throughput/fault"), count("fault"));
}

#[test]
fn a_job_exits_together() {
    let peak = ran("linux-6.12", 50, HOST).run.memory.peak_pages;
    // Each process has 1024 pages and 2 page tables when the last one is done; services have a request or two.
    let job = 6 * (1024 + 2);
    assert!((job..=job + 4 * 2 * 9).contains(&peak), "{peak} pages of {job}");
    let rounds = ran("linux-6.12", 50, HOST).measured.span(Span::PageFree).pages() / job;
    assert!(rounds > 3, "it exits again and again: {rounds}");
}

const STREAM: &str = "kind = 'stream'\nnodes = [0]\nthreads_per_node = 20\nmib = 256\n";

#[test]
fn stream_runs_at_the_speed_of_where_its_arrays_are() {
    let rate = |memory: &str, name: &str| {
        let outcome = ran("linux-6.12", 60, &format!("{STREAM}memory_nodes = {memory}\n"));
        let moved = outcome.run.moved[name];
        moved.bytes as f64 / moved.time_ns as f64
    };
    // A node's memory gives 113 GB/s, reads and writes together; the way between the sockets 34 in each direction.
    assert!(near(rate("[0]", "copy"), 113.0, 0.03), "{}", rate("[0]", "copy"));
    assert!(near(rate("[]", "triad"), 113.0, 0.03), "an own node comes first");
    assert!(near(rate("[1]", "copy"), 2.0 * 34.0, 0.03), "{}", rate("[1]", "copy"));
    assert!(near(rate("[1]", "add"), 1.5 * 34.0, 0.03), "{}", rate("[1]", "add"));
}

#[test]
fn stream_holds_its_arrays() {
    let outcome = ran("linux-6.12", 20, &format!("{STREAM}order = 0\n"));
    let whole = 3 * (256 << 8);
    let held = outcome.run.memory.held_pages;
    assert!((whole..whole + 100).contains(&held), "{held} pages of {whole}");
    assert!(outcome.run.omissions.is_empty());
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let refused = |text: &str| {
        let spec: WorkloadSpec = text.parse::<Table>().expect("TOML").try_into().expect("a workload");
        let scene = Scene {
            profile: Profile::load("kvm-genoa-2c").unwrap(),
            policy: Policy::parse("linux-6.12").unwrap(),
            knobs: vec![],
            workload: spec,
            seed: 1,
            cpus: vec![],
            shrink: 1,
            warm_up: Nanos(0),
            phases: vec![Phase::only(Nanos(1_000_000))],
        };
        perform(&scene).expect_err(text).to_string()
    };
    let said = refused(&MESSAGES.replace("3, 2", "4"));
    assert_eq!(said, "workload: an order is 4, but must be from 0 to 3");
    let said = refused(&format!("{MESSAGES}placement = 'smt'"));
    assert_eq!(said, "workload: placement: there are no two CPUs to run on two threads of a core");
    let said = refused("kind = 'process-churn'\njobs = 1\nkib_min = 8\nkib_max = 4\nus_per_page = 1\n");
    assert_eq!(said, "workload: kib_max is 4, but must be from 8 to 1073741824");
    let said = refused(&HOST.replace("services = 4", "services = 0"));
    assert_eq!(said, "workload: services is 0, but must be from 1 to 50000");
    let said = refused(&STREAM.replace("256", "9000"));
    assert!(said.starts_with("workload: mib is 9000, but three arrays must fit into the "), "{said}");
    let said = refused(STREAM);
    assert_eq!(said, "workload: node 0 has 2 CPUs for 20 threads; set threads_per_node or nodes");
    let said = refused(&format!("{STREAM}memory_nodes = [7]\n"));
    assert_eq!(said, "workload: memory_nodes: the machine has no node 7 with memory");
    let said = refused(&STREAM.replace("[0]", "[]"));
    assert_eq!(said, "workload: nodes is empty; name a node whose CPUs are to run threads");
    let said = refused(&format!("{STREAM}order = 11\n"));
    assert_eq!(said, "workload: order is 11, but must be from 0 to 10");
}

/// Yafang Shao's loop in small, with rounds behind it when the clock starts, or simulated time before it is measured.
fn python(machine: &str, rounds_before: u32, mib: u32, warm_up_ms: u64) -> Scene {
    let workload = format!(
        "kind = 'python-loop'\nprocesses = 10\nmib = {mib}\nstagger_ms = 1000\nrounds_before = {rounds_before}\n"
    );
    let profile = Profile::load(machine).unwrap();
    let loops = Scene::of(profile, "linux-6.11+pcp_batch_scale_max", &workload, Nanos(100_000_000));
    Scene { shrink: 16, warm_up: Nanos(warm_up_ms * 1_000_000), ..loops }
}

#[test]
fn rounds_before_the_clock_starts_age_free_lists_as_simulated_ones_do() {
    let refill = |rounds_before, warm_up_ms| {
        let outcome = perform(&python("epyc-7w83", rounds_before, 1536, warm_up_ms)).unwrap().pop().unwrap();
        outcome.measured.span(Span::Refill).latency.mean().0 as f64
    };
    // 900 ms are seven to eight rounds. They make refills a tenth to a sixth longer here: far fewer than the 24 to 70 of the
    // experiments.
    let (young, aged, simulated) = (refill(0, 30), refill(8, 30), refill(0, 930));
    assert!(
        aged > 1.08 * young && near(aged, simulated, 0.08),
        "{young} ns, then {aged}; simulated {simulated}"
    );
}

#[test]
fn rounds_before_the_clock_need_their_memory() {
    let said = perform(&python("kvm-genoa-2c", 1, 1 << 16, 0)).unwrap_err().to_string();
    assert_eq!(said, "workload: rounds_before: memory runs out before the clock starts");
}

#[test]
fn a_fault_of_the_loop_costs_as_much_as_one_of_an_address_space() {
    let mean = |workload: &str| {
        let faults = ran("linux-6.12", 40, workload).measured.span(Span::Fault);
        assert!(faults.latency.count() > 5_000, "{workload}");
        faults.latency.mean().0 as f64
    };
    for (memory, kind) in [("anonymous", ""), ("shared", " shared")] {
        let round = format!("fork\nmap a 16M{kind} nohuge\ntouch a\nunmap a\nend\n");
        let spaces = mean(&format!("kind = 'script'\ntext = '''\n{}'''\n", round.repeat(30)));
        let pages = mean(&format!("kind = 'page-fault'\ntasks = 1\nmib = 16\nmemory = '{memory}'\n"));
        assert!(near(pages, spaces, 0.1), "{memory}: {pages} ns by the page, {spaces} by the address space");
    }
}
