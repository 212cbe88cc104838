//! The stress runs of CI, and longer ones: `FREEHOLD_STRESS_SECONDS=600 FREEHOLD_STRESS_THREADS=16 cargo test --release
//! -p freehold-host --test stress -- --nocapture`. `FREEHOLD_STRESS_OPERATIONS` sets the operations of a thread instead.

use std::env;
use std::time::Duration;

use freehold_host::stress::{Length, Stress, objects, run, spaces};
use mm::{Firmware, NodeSize, Policy, Topology};

const MIB: u64 = 1 << 20;

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

fn length(operations: u64) -> Length {
    match (number("FREEHOLD_STRESS_SECONDS"), number("FREEHOLD_STRESS_OPERATIONS")) {
        (Some(seconds), _) => Length::Time(Duration::from_secs(seconds)),
        (None, Some(operations)) => Length::Operations(operations),
        (None, None) => Length::Operations(operations),
    }
}

fn one_node(bytes: u64, cpus: u32) -> Topology {
    Topology::x86(&[NodeSize { bytes, cpus }], 1 << 20, vec![vec![10]]).unwrap()
}

fn stress(threads: u32, operations: u64, policy: &str, topology: Topology) {
    let stress = plan(threads, operations, policy, topology);
    match run(&stress) {
        Ok(tally) => {
            println!("{} threads: {tally}", stress.threads);
            assert!(tally.allocated > 0 && tally.pages_checked > 0);
        }
        Err(what) => panic!("{what}"),
    }
}

fn plan(threads: u32, operations: u64, policy: &str, topology: Topology) -> Stress {
    let threads = number("FREEHOLD_STRESS_THREADS").map_or(threads, |threads| threads as u32);
    let policy = Policy::parse(policy).unwrap();
    Stress { threads, length: length(operations), seed: 1, policy, topology }
}

fn stress_objects(threads: u32, operations: u64, policy: &str, topology: Topology) {
    let stress = plan(threads, operations, policy, topology);
    match objects::run(&stress) {
        Ok(tally) => {
            println!("{} threads, {policy}: {tally}", stress.threads);
            assert!(tally.checked > 0 && tally.sent > 0, "{tally}");
            assert!(tally.reused > 0, "no deferred object came back: {tally}");
        }
        Err(what) => panic!("{policy}: {what}"),
    }
}

#[test]
fn two_threads() {
    stress(2, 60_000, "linux-6.18", one_node(192 * MIB, 2));
}

#[test]
fn eight_threads() {
    stress(8, 20_000, "linux-6.18", one_node(256 * MIB, 2));
}

#[test]
fn eight_threads_that_share_one_pageset() {
    stress(8, 10_000, "linux-6.19", one_node(128 * MIB, 1));
}

#[test]
fn eight_threads_with_an_old_kernels_rules() {
    stress(8, 10_000, "linux-6.1", one_node(192 * MIB, 2));
}

#[test]
fn eight_threads_with_arenas() {
    // Of 320 MiB each of four CPUs' arenas would have less than 128; there are two.
    stress(8, 10_000, "freehold", one_node(320 * MIB, 4));
}

#[test]
fn eight_threads_with_divided_zones_that_have_arenas() {
    stress(8, 10_000, "linux-7.2+zones+arenas+yield", one_node(640 * MIB, 4));
}

#[test]
fn two_nodes_and_too_little_memory() {
    let nodes = [NodeSize { bytes: 48 * MIB, cpus: 1 }, NodeSize { bytes: 32 * MIB, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 21], vec![21, 10]]).unwrap();
    stress(8, 10_000, "linux-6.12", topology);
}

/// Where zone order is to be had and zones take turns: `vm.numa_zonelist_order` changes under threads on their way.
#[test]
fn two_nodes_whose_zonelists_change() {
    let nodes = [NodeSize { bytes: 96 * MIB, cpus: 1 }, NodeSize { bytes: 32 * MIB, cpus: 1 }];
    let firmware = Firmware { low_end: 32 * MIB };
    let topology = firmware.lay_out(&nodes, 1 << 20, vec![vec![10, 21], vec![21, 10]]).unwrap();
    for policy in ["linux-3.17", "linux-4.13"] {
        stress(8, 10_000, policy, topology.clone());
    }
}

#[test]
fn objects_with_cpu_slabs_frozen_under_the_lock() {
    stress_objects(4, 20_000, "linux-6.5", one_node(64 * MIB, 2));
}

#[test]
fn objects_with_cpu_slabs() {
    stress_objects(4, 20_000, "linux-6.12", one_node(64 * MIB, 2));
}

#[test]
fn objects_with_sheaves_before_cpu_slabs() {
    stress_objects(4, 20_000, "linux-6.18", one_node(64 * MIB, 2));
}

#[test]
fn objects_with_sheaves_for_all() {
    stress_objects(4, 20_000, "linux-7.2", one_node(64 * MIB, 2));
}

#[test]
fn objects_by_our_own_rules() {
    stress_objects(4, 20_000, "freehold", one_node(64 * MIB, 2));
}

#[test]
fn objects_of_eight_threads_on_one_cpus_part() {
    for policy in ["linux-6.12", "linux-7.2"] {
        stress_objects(8, 10_000, policy, one_node(64 * MIB, 1));
    }
}

#[test]
fn objects_on_two_nodes_and_too_little_memory() {
    for policy in ["linux-6.5", "linux-6.12", "linux-6.18", "linux-7.2", "freehold"] {
        let nodes = [NodeSize { bytes: MIB, cpus: 1 }, NodeSize { bytes: 3 * MIB / 4, cpus: 1 }];
        let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 21], vec![21, 10]]).unwrap();
        stress_objects(4, 10_000, policy, topology);
    }
}

fn two_nodes(first: u64, second: u64) -> Topology {
    let nodes = [NodeSize { bytes: first, cpus: 1 }, NodeSize { bytes: second, cpus: 1 }];
    Topology::x86(&nodes, 1 << 20, vec![vec![10, 21], vec![21, 10]]).unwrap()
}

/// Runs until compaction has come between: whether it finds something to move in a run is up to the host's scheduler.
fn stress_spaces(threads: u32, operations: u64, policy: &str, topology: Topology) {
    const SEEDS: u64 = 8;
    let plan = plan(threads, operations, policy, topology);
    for seed in 1..=SEEDS {
        let stress = Stress { seed, ..plan.clone() };
        let tally = spaces::run(&stress).unwrap_or_else(|what| panic!("{policy}: {what}"));
        println!("{} threads, {policy}: {tally}", stress.threads);
        assert!(tally.checked > 0 && tally.forks > 0 && tally.moved > 0, "{tally}");
        if tally.compacted > 0 && tally.helped > 0 {
            return;
        }
    }
    panic!("{policy}: in {SEEDS} runs compaction moved nothing, or nobody came to help");
}

#[test]
fn address_spaces() {
    for policy in ["linux-6.18", "linux-5.4", "linux-4.4"] {
        stress_spaces(4, 4_000, policy, two_nodes(96 * MIB, 64 * MIB));
    }
}

#[test]
fn address_spaces_and_too_little_memory() {
    for policy in ["linux-6.18", "linux-5.4", "linux-4.4"] {
        stress_spaces(8, 1_000, policy, two_nodes(10 * MIB, 8 * MIB));
    }
}

/// Nearly every request meets nothing but dirty pages, and must not wait for ever.
#[test]
fn address_spaces_and_hardly_any_memory() {
    for policy in ["linux-6.18", "linux-4.4"] {
        stress_spaces(8, 2_000, policy, two_nodes(6 * MIB, 5 * MIB));
    }
}
