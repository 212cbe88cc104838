//! Programs on CXL memory, small: a scale model of the machine, tens of MiB, a few seconds.

use mm::{Knob, Nanos};
use sim::Profile;

use crate::scene::{Outcome, Scene, SceneError, perform};

/// Nine seconds of `workload` on epyc-512-cxl with a GiB a node.
fn ran(policy: &str, knobs: &[(Knob, u64)], shrink: u32, workload: &str) -> Result<Outcome, SceneError> {
    let text = Profile::load("epyc-512-cxl").unwrap().to_toml();
    let text = text.replace("memory_mib = 131072", "memory_mib = 1024");
    let profile = Profile::parse("small", &text.replace("memory_mib = 262144", "memory_mib = 2048")).unwrap();
    let text = format!("kind = 'hot-pages'\n{workload}");
    let knobs =
        [(Knob::NumaBalancing, 0), (Knob::OvercommitMemory, 1)].into_iter().chain(knobs.iter().copied());
    let scene = Scene {
        knobs: knobs.collect(),
        cpus: (0..8).map(mm::Cpu).collect(),
        shrink,
        ..Scene::of(profile, policy, &text, Nanos(9_000_000_000))
    };
    perform(&scene).map(|mut outcomes| outcomes.pop().expect("a phase"))
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.run.counters.get(name).copied().unwrap_or(0)
}

fn sample(outcome: &Outcome, name: &str) -> f64 {
    outcome.run.samples.get(name).map_or(0.0, |samples| samples.iter().sum())
}

/// 128 MiB that four threads go over.
const EVEN: &str = "processes = [{ threads = 4, passes = 1600, node = 2, regions = [{ mib = 128 }] }]";
const PAGES: u64 = 128 * 256;

#[test]
fn without_promotion_all_stays_on_the_slow_node() {
    let outcome = ran("linux-6.11", &[], 1, EVEN).unwrap();
    assert_eq!((counter(&outcome, "pgpromote_success"), counter(&outcome, "accesses_fast")), (0, 0));
    // Counted in units of 1024, of which a stretch's last is rarely whole.
    let made = 4 * 1600 * PAGES / 1024;
    assert!((made * 99 / 100..=made).contains(&counter(&outcome, "accesses_slow")));
}

#[test]
fn every_policy_brings_what_is_used_to_the_fast_node() {
    let slow = sample(&ran("linux-6.11", &[], 1, EVEN).unwrap(), "completion");
    for policy in ["kmmscand-v0-nothrottle", "kmmscand-v0", "freehold"] {
        let outcome = ran(policy, &[], 1, EVEN).unwrap();
        let moved = counter(&outcome, "pgpromote_success");
        assert!((PAGES * 99 / 100..=PAGES).contains(&moved), "{policy}: {moved}");
        assert!(sample(&outcome, "completion") < 0.9 * slow, "{policy}");
        assert!(sample(&outcome, "scan") > 0.0 && sample(&outcome, "migrate") > 0.0, "{policy}");
        let parts: f64 = ["scan", "migrate", "hint-scan", "hint-fault"]
            .into_iter()
            .map(|part| sample(&outcome, part))
            .sum();
        assert!((sample(&outcome, "overhead") / parts - 1.0).abs() < 1e-12, "{policy}");
    }
    // A scan a second after birth, and for V3 another one, half a second or more behind it.
    for policy in ["kmmscand-v1", "kmmscand-v2", "kmmscand-v3"] {
        let outcome = ran(policy, &[], 1, EVEN).unwrap();
        assert!(counter(&outcome, "pgpromote_success") > PAGES * 9 / 10, "{policy}");
    }
    let balancing = [(Knob::NumaBalancing, 2)];
    let outcome = ran("linux-6.11", &balancing, 1, EVEN).unwrap();
    assert_eq!(counter(&outcome, "numa_pages_migrated"), PAGES);
    assert!(sample(&outcome, "hint-fault") > 0.0);
    let busy = ran("linux-6.11", &balancing, 1, &format!("hint_busy_percent = 50\n{EVEN}")).unwrap();
    let left = PAGES - counter(&busy, "numa_pages_migrated");
    assert!((PAGES / 20..PAGES * 19 / 20).contains(&left), "{left} pages were busy in every window so far");
}

#[test]
fn the_first_scan_waits_as_long_as_numa_balancing_does() {
    let late = [(Knob::BalancingScanDelay, 20_000)];
    let moved = |policy: &str| counter(&ran(policy, &late, 1, EVEN).unwrap(), "pgpromote_success");
    assert_eq!((moved("kmmscand-v1"), moved("kmmscand-v0")), (0, PAGES), "V0 does not wait");
}

#[test]
fn what_is_not_used_stays() {
    let partly =
        "processes = [{ threads = 4, node = 2, regions = [{ mib = 128, segments = [[96, 0], [32, 1]] }] }]";
    for policy in ["kmmscand-v0", "freehold"] {
        let outcome = ran(policy, &[], 1, partly).unwrap();
        let moved = counter(&outcome, "pgpromote_success");
        assert!((PAGES / 4 * 99 / 100..=PAGES / 4).contains(&moved), "{policy}: {moved}");
    }
}

#[test]
fn memory_that_was_just_written_looks_as_if_it_were_in_use() {
    let idle = |fresh: bool| {
        let text = format!(
            "processes = [{{ threads = 0, fresh = {fresh}, node = 2, regions = [{{ mib = 128 }}] }}]"
        );
        counter(&ran("kmmscand-v0", &[], 1, &text).unwrap(), "pgpromote_success")
    };
    assert_eq!((idle(false), idle(true)), (0, PAGES));
}

#[test]
fn a_page_that_stands_for_many_costs_as_many() {
    let whole = ran("kmmscand-v0", &[], 1, EVEN).unwrap();
    let scaled = ran("kmmscand-v0", &[], 8, EVEN).unwrap();
    assert_eq!(counter(&scaled, "pgpromote_success"), PAGES);
    for name in ["completion", "migrate", "scan"] {
        let (one, other) = (sample(&whole, name), sample(&scaled, name));
        assert!((other / one - 1.0).abs() < 0.1, "{name}: {one} ns, and {other} by eighths");
    }
}

#[test]
fn a_hot_set_that_moves_is_followed() {
    let moving = "processes = [{ threads = 4, node = 2, regions = [{ mib = 128, segments = [[16, 99], [16, 0]], shift = 2, every_ms = 1000 }] }]";
    let outcome = ran("freehold", &[], 1, moving).unwrap();
    let (fast, slow) = (counter(&outcome, "accesses_fast"), counter(&outcome, "accesses_slow"));
    assert!(fast > 2 * slow, "{fast} fast, {slow} slow");
}

#[test]
fn a_fast_node_that_is_full_is_relieved_of_what_nobody_uses() {
    let full = "processes = [{ threads = 0, node = 0, regions = [{ mib = 900 }] },
        { threads = 4, node = 2, regions = [{ mib = 512 }] }]";
    let pushed = |demotion: u64| {
        let knobs = [(Knob::DemotionEnabled, demotion)];
        ran("kmmscand-v0", &knobs, 1, full).unwrap()
    };
    let (without, with) = (pushed(0), pushed(1));
    assert_eq!(counter(&without, "pgdemote_kswapd"), 0);
    assert!(counter(&with, "pgdemote_kswapd") > 1000, "{}", counter(&with, "pgdemote_kswapd"));
    let fast = |outcome: &Outcome| counter(outcome, "accesses_fast");
    assert!(fast(&with) > fast(&without), "{} and {}", fast(&with), fast(&without));
}

#[test]
fn one_seed_gives_one_result() {
    let [one, other] = [(); 2].map(|()| ran("freehold", &[], 1, EVEN).unwrap().run);
    assert_eq!((one.samples, one.counters), (other.samples, other.counters));
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    for (workload, word) in [
        ("processes = []", "processes"),
        ("processes = [{ node = 3, regions = [{ mib = 1 }] }]", "node"),
        ("processes = [{ node = 2, regions = [] }]", "regions"),
        ("processes = [{ node = 2, regions = [{ mib = 0 }] }]", "mib"),
        ("processes = [{ node = 2, regions = [{ mib = 1, segments = [[1, 0]] }] }]", "weights"),
        ("processes = [{ node = 2, regions = [{ mib = 4096 }] }]", "node 2"),
        ("hint_busy_percent = 100\nprocesses = [{ node = 2, regions = [{ mib = 1 }] }]", "hint_busy_percent"),
    ] {
        let error = ran("freehold", &[], 1, workload).unwrap_err().to_string();
        assert!(error.contains(word) && error.lines().count() == 1, "{workload}: {error}");
    }
}
