//! What the workloads ask of the slab allocator, seen in short runs.

use mm::{LockClass, Nanos, Policy, Span};
use sim::Profile;
use toml::Table;

use crate::scene::{Outcome, Phase, Scene, perform};
use crate::workloads::WorkloadSpec;

fn ran(machine: &str, policy: &str, workload: &str) -> Outcome {
    let workload: WorkloadSpec = workload.parse::<Table>().expect("TOML").try_into().expect("a workload");
    let scene = Scene {
        profile: Profile::load(machine).unwrap(),
        policy: Policy::parse(policy).unwrap(),
        knobs: vec![],
        workload,
        seed: 1,
        cpus: vec![],
        shrink: 1,
        warm_up: Nanos(8_000_000),
        phases: vec![Phase::only(Nanos(12_000_000))],
    };
    let outcome = perform(&scene).unwrap_or_else(|error| panic!("{error}")).pop().unwrap();
    assert!(outcome.run.operations > 0);
    assert!(outcome.run.omissions.is_empty(), "{:?}", outcome.run.omissions);
    outcome
}

/// Spans of a kind for each operation.
fn each(outcome: &Outcome, span: Span) -> f64 {
    outcome.measured.span(span).latency.count() as f64 / outcome.run.operations as f64
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.02
}

fn regions(kind: &str, kernel: &str, more: &str) -> String {
    format!("kind = '{kind}'\ntasks = 2\nkernel = '{kernel}'\nround_ns = 1000\ngrace_us = 1500\n{more}")
}

#[test]
fn a_round_asks_for_what_its_kernel_does() {
    // Region, its lock, a node and six in bulk, a list's node, a leaf: and 9 nodes less 2 come back at once, in 3 calls.
    let old = ran("kvm-genoa-2c", "linux-6.5", &regions("mmap1", "6.5", ""));
    assert!(near(each(&old, Span::SlabAlloc), 6.0), "{}", each(&old, Span::SlabAlloc));
    // Measured on 6.18: three objects allocated, of which the region is freed in the call and nodes go to a sheaf.
    let new = ran("kvm-genoa-2c", "linux-6.18", &regions("mmap2", "6.18", ""));
    assert!(near(each(&new, Span::SlabAlloc), 3.0), "{}", each(&new, Span::SlabAlloc));
    assert!(near(each(&new, Span::SlabFree), 3.0), "{}", each(&new, Span::SlabFree));
    assert!(new.run.operations > old.run.operations, "fewer steps take less time");
}

#[test]
fn brk_counts_both_calls() {
    let outcome = ran("kvm-genoa-2c", "linux-6.18", &regions("brk1", "6.18", ""));
    assert!(near(each(&outcome, Span::SlabAlloc), 1.5), "{}", each(&outcome, Span::SlabAlloc));
}

#[test]
fn what_waits_for_a_grace_period_comes_back() {
    let held = |grace_us: u32| {
        let workload = regions("mmap1", "6.5", "");
        let workload = workload.replace("grace_us = 1500", &format!("grace_us = {grace_us}"));
        ran("kvm-genoa-2c", "linux-6.5", &workload).run.memory.slab_pages
    };
    let (short, long) = (held(500), held(4000));
    assert!(short > 0 && long > 2 * short, "{short} and {long} pages for objects that wait");
}

#[test]
fn threads_wait_for_their_address_space_and_processes_do_not() {
    let waited = |sharing: &str| {
        let outcome =
            ran("kvm-genoa-2c", "linux-6.18", &regions("mmap1", "6.18", &format!("sharing = '{sharing}'\n")));
        outcome.measured.class(LockClass::Other).wait.0
    };
    assert_eq!(waited("processes"), 0);
    assert!(waited("threads") > 1_000_000);
}

#[test]
fn messages_over_sockets_are_objects_and_over_pipes_are_not() {
    let hackbench = |ipc: &str| {
        let workload =
            format!("kind = 'hackbench'\ngroups = 1\nipc = '{ipc}'\nsend_ns = 800\nreceive_ns = 800\n");
        ran("epyc-7742", "linux-6.12", &workload)
    };
    let sockets = hackbench("sockets");
    assert!((each(&sockets, Span::SlabAlloc) - 2.0).abs() < 0.2, "{}", each(&sockets, Span::SlabAlloc));
    assert!(near(each(&sockets, Span::SlabFree), 2.0), "{}", each(&sockets, Span::SlabFree));
    assert!(hackbench("pipes").measured.span(Span::SlabAlloc).latency.count() == 0);
}

#[test]
fn a_single_object_comes_and_goes() {
    let workload = "kind = 'slab-bulk'\ntasks = 1\nsize = 64\nobjects = 1\n";
    let calls = each(&ran("kvm-genoa-2c", "linux-6.12", workload), Span::SlabFree);
    assert!(near(calls, 1.0), "{calls}");
}

#[test]
fn batches_come_and_go() {
    for (batch, free, whose) in
        [(1, "in-order", "own"), (16, "shuffled", "own"), (8, "in-order", "neighbours")]
    {
        let workload = format!(
            "kind = 'slab-bulk'\ntasks = 2\nsize = 64\nbatch = {batch}\nobjects = 512\nfree = '{free}'\n\
             whose = '{whose}'\n"
        );
        let outcome = ran("kvm-genoa-2c", "linux-6.12", &workload);
        let calls = each(&outcome, Span::SlabFree) * f64::from(batch);
        assert!((0.8..1.3).contains(&calls), "{batch}: {calls}");
    }
}

#[test]
fn impossible_parameters_are_refused_in_a_line() {
    let refused = |workload: &str| {
        let workload: WorkloadSpec = workload.parse::<Table>().unwrap().try_into().unwrap();
        let profile = Profile::load("kvm-genoa-2c").unwrap();
        let scene = Scene::plain(profile, Policy::default(), workload, Nanos(1000));
        perform(&scene).expect_err("refused").to_string()
    };
    let error = refused(&regions("mmap1", "6.1", ""));
    assert_eq!(error, "workload: kernel is '6.1', but must be a version from 6.4 on, such as 6.5");
    let error = refused("kind = 'slab-bulk'\ntasks = 1\nsize = 64\nobjects = 4\nbatch = 8\n");
    assert!(error.starts_with("workload: objects is 4"), "{error}");
}
