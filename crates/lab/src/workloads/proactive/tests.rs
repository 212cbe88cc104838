//! What the test of proactive compaction does, on small machines.

use mm::Nanos;
use sim::Profile;

use crate::scene::{Outcome, Scene, SceneError, perform};

/// A phase of three seconds on an 8th of the machine: 4 GiB.
fn ran(policy: &str, more: &str) -> Result<Outcome, SceneError> {
    let text = format!("kind = 'proactive'\n{more}");
    let profile = Profile::load("skylake-1s").unwrap();
    let scene = Scene { shrink: 8, ..Scene::of(profile, policy, &text, Nanos(3_000_000_000)) };
    perform(&scene).map(|mut outcomes| outcomes.pop().expect("a phase"))
}

#[test]
fn compacted_by_hand_nearly_all_that_is_free_is_in_blocks() {
    let outcome = ran("linux-5.8", "asks = 'by-hand'").unwrap();
    let share = outcome.run.samples["huge-share"][0];
    assert!(share > 90.0, "{share}");
    // A page of each four moves, and with it, for each block that comes about, 128.
    let moved = outcome.run.counters["pgmigrate_success"];
    assert!((50_000..300_000).contains(&moved), "{moved}");
}

#[test]
fn a_driver_compacts_for_each_block_where_nobody_did_before() {
    let outcome = ran("linux-5.8", "asks = 'driver'").unwrap();
    let share = outcome.run.samples["hugepage-share"][0];
    assert!((70.0..=100.0).contains(&share), "{share}");
    let got = outcome.run.counters["hugepages_allocated"];
    assert_eq!(got as usize, outcome.run.samples["hugepage"].len());
    let stalls = outcome.run.counters["compact_stall"];
    assert!(stalls > got / 2, "{stalls} of {got}");
}

#[test]
fn what_is_the_kernels_cannot_be_moved() {
    let outcome = ran("linux-5.8", "asks = 'driver'\nfilled = 'kernel'").unwrap();
    assert!(outcome.run.counters["hugepages_allocated"] < 64, "{:?}", outcome.run.counters);
    assert_eq!(outcome.run.counters.get("pgmigrate_success").copied().unwrap_or(0), 0);
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let error = ran("linux-5.8", "asks = 'driver'\nholes = 512").unwrap_err().to_string();
    assert!(error.contains("holes") && error.lines().count() == 1, "{error}");
}
