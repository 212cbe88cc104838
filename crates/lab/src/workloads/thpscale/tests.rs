//! What thpscale does, on a small machine.

use mm::{Knob, Nanos};
use sim::Profile;

use crate::scene::{Outcome, Scene, SceneError, perform};

/// A phase of 20 s on an 8th of the machine: 4 GiB.
fn ran(policy: &str, threads: &str, percent: u32) -> Result<Outcome, SceneError> {
    let text = format!("kind = 'thpscale'\nthreads = {threads}\nmemory_percent = {percent}");
    let scene = Scene {
        knobs: vec![(Knob::TransparentHugepage, 1)],
        shrink: 8,
        ..Scene::of(Profile::load("skylake-1s").unwrap(), policy, &text, Nanos(20_000_000_000))
    };
    perform(&scene).map(|mut outcomes| outcomes.pop().expect("a phase"))
}

#[test]
fn where_memory_is_plenty_all_are_huge_at_the_price_of_writing() {
    let outcome = ran("linux-5.1", "[1, 3]", 30).unwrap();
    assert_eq!(outcome.run.counters["thpscale_done"], 2);
    for threads in [1, 3] {
        assert_eq!(outcome.run.samples[&format!("huge-{threads}")], [100.0]);
        // 2 MiB cleared at 10 GB/s and written once more.
        let took = &outcome.run.samples[&format!("fault-both-{threads}")];
        assert!(took.iter().all(|ns| (200e3..1500e3).contains(ns)), "{took:?}");
    }
    // Half of 30 % of nearly 4 GiB in parts of 2 MiB.
    let parts = outcome.run.samples["fault-both-1"].len();
    assert!((280..312).contains(&parts), "{parts}");
}

#[test]
fn where_it_is_not_blocks_must_be_made() {
    let outcome = ran("linux-5.1", "[3]", 80).unwrap();
    assert_eq!(outcome.run.counters["thpscale_done"], 1);
    let count = |name: &str| outcome.run.counters.get(name).copied().unwrap_or(0);
    assert!(count("compact_stall") > 0, "{:?}", outcome.run.counters);
    assert!(count("pgmigrate_success") > 256, "{:?}", outcome.run.counters);
    let huge = outcome.run.samples["huge-3"][0];
    assert!(huge > 50.0, "{huge}");
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    for (threads, percent, word) in
        [("[]", 80, "threads"), ("[3]", 0, "memory_percent"), ("[4000]", 80, "8 MiB")]
    {
        let error = ran("linux-5.1", threads, percent).unwrap_err().to_string();
        assert!(error.contains(word) && error.lines().count() == 1, "{error}");
    }
}
