//! Ranges faulted on a small machine.

use mm::{Knob, Nanos};
use sim::Profile;

use crate::scene::{Outcome, Scene, perform};

/// westmere-ex with 1 GiB a node.
fn ran(policy: &str, workload: &str) -> Outcome {
    let text = Profile::load("westmere-ex").unwrap().to_toml();
    let profile = Profile::parse("small", &text.replace("memory_mib = 16384", "memory_mib = 1024")).unwrap();
    let text = format!("kind = 'thp-fault'\nmib = 8\n{workload}");
    let scene = Scene {
        knobs: vec![(Knob::OvercommitMemory, 1)],
        ..Scene::of(profile, policy, &text, Nanos(2_000_000_000))
    };
    perform(&scene).unwrap_or_else(|error| panic!("{error}")).pop().unwrap()
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.run.counters.get(name).copied().unwrap_or(0)
}

fn sum(outcome: &Outcome, name: &str) -> f64 {
    outcome.run.samples.get(name).map_or(0.0, |samples| samples.iter().sum())
}

/// Nothing but the program's own memory stands in the way.
const MOVABLE: &str = "every_ms = 10\n[fragment]\nkernel = 200\nfile = 3000\nfree = 2000\nindex = 950\n";

#[test]
fn what_is_movable_is_made_room_for() {
    let outcome = ran("linux-4.20", &format!("{MOVABLE}\n"));
    assert_eq!(counter(&outcome, "thp_wanted"), 8);
    assert!(counter(&outcome, "thp_got") + counter(&outcome, "thp_missed") == 8);
    assert!(counter(&outcome, "fragmentation_index").abs_diff(950) <= 5);
    assert_eq!(outcome.run.samples["stall-range"].len(), 2);
    assert_eq!(outcome.run.samples["fault"].len(), 8);
    assert!((sum(&outcome, "stall-range") - sum(&outcome, "touch-2mib")).abs() < 1.0);
    assert!((sum(&outcome, "stall-range-faults") - sum(&outcome, "fault")).abs() < 1.0);
}

#[test]
fn who_always_wants_the_cpu_gets_slices_of_it() {
    let stall = |load| {
        let outcome = ran("linux-3.16", &format!("load = {load}\nown_us = 500\n{MOVABLE}\n"));
        assert_eq!(counter(&outcome, "thp_wanted"), 8);
        sum(&outcome, "plain-range") + sum(&outcome, "stall-range")
    };
    // The program works for more than a slice in all.
    assert!(stall(6) > stall(0) + 6.0 * 3e6, "{} {}", stall(6), stall(0));
}

#[test]
fn shares_must_fit_in_memory() {
    let text = "kind = 'thp-fault'\n[fragment]\nkernel = 6000\nfile = 5000\nfree = 500\nindex = 950\n";
    let scene = Scene::of(Profile::load("kvm-genoa-2c").unwrap(), "linux-3.16", text, Nanos(1_000_000));
    let said = perform(&scene).unwrap_err().to_string();
    assert_eq!(said, "workload: the sum of the shares of fragment is 11500, but must be from 0 to 10000");
}
