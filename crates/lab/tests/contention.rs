//! From what threads measured to a document.

use std::time::Duration;

use freehold_lab::measurements::{Confidence, Document};
use freehold_lab::replay::parse_setting;
use freehold_lab::this_machine::contention::{default_variants, document, variants};
use host::bench::contention::{ContentionPlan, ContentionResult, Slice, ZoneLock};
use host::probe::Hardware;
use mm::Policy;

fn slice(variant: usize, threads: u32, round: u32, speed: f64) -> Slice {
    Slice {
        variant,
        threads,
        round,
        pages_per_second: speed,
        stamped_pages_per_second: speed * 0.98,
        pages: 1000,
        refills: vec![500, 600, 700],
        drains: vec![],
        lost: 0,
        zone: ZoneLock { acquired: 3, contended: 1, waited_ns: 40, waited_max_ns: 40, held_ns: 1500 },
        disturbed: 0.25,
        failed: u64::from(round),
    }
}

#[test]
fn slices_become_runs_fewer_threads_first() {
    let plan = ContentionPlan {
        threads: vec![1, 2],
        variants: default_variants(),
        pages: 32_768,
        rounds: 2,
        slice: Duration::from_millis(20),
    };
    let slices = vec![slice(0, 2, 0, 3e7), slice(1, 1, 0, 1e7), slice(0, 1, 1, 2e7)];
    let outcome = ContentionResult { slices, cpus: vec![0], unpinned: 1, zone_pages: 262_144 };
    let document = document("bench contention".into(), &plan, &outcome, &Hardware::default());
    let told: Vec<(&str, &str, u64)> =
        document.runs.iter().map(|run| (run.workload.as_str(), run.policy.as_str(), run.seed)).collect();
    let one = "1 thread, 32768 pages each, allocated, written, freed";
    let two = "2 threads, 32768 pages each, allocated, written, freed";
    assert_eq!(told, [(one, "linux-6.18", 1), (one, "linux-6.18", 2), (two, "linux-6.18", 1)]);
    let run = &document.runs[1];
    assert_eq!(run.knobs["vm.pcp_batch_scale_max"], 5.into());
    assert_eq!((run.latency["refill"].p50_ns, run.latency.contains_key("drain")), (600, false));
    assert_eq!((run.locks["zone"].wait_ns, run.locks["zone"].hold_ns), (40, 1500));
    assert_eq!((run.confidence, run.omissions["requests_without_a_page"]), (Confidence::Exact, 1));
    insta::assert_snapshot!(run.confidence_reason);
    assert_eq!(Document::from_json(&document.to_json()).unwrap(), document);
}

#[test]
fn nothing_said_is_linux_at_both_ends_its_parts_and_ours() {
    let variants = default_variants();
    let names: Vec<&str> = variants.iter().map(|variant| variant.policy.name()).collect();
    assert_eq!(names[..2], ["linux-6.18", "linux-6.18"]);
    assert_eq!(names.last(), Some(&"freehold"));
    assert!(names.contains(&"linux-6.18+yield") && names.contains(&"linux-6.18+touch"), "{names:?}");
    let scales: Vec<u64> = variants[..2].iter().map(|variant| variant.knobs[0].1).collect();
    assert_eq!(scales, [5, 0]);
    assert!(variants[2..].iter().all(|variant| variant.knobs.is_empty()));
}

#[test]
fn policies_are_combined_with_settings() {
    let policies = [Policy::default(), Policy::parse("freehold").unwrap()];
    let setting = |text| parse_setting(text).unwrap();
    let all = variants(&policies, &[setting("vm.pcp_batch_scale_max=5,3"), setting("vm.stat_interval=2")]);
    assert_eq!(all.len(), 4);
    assert_eq!(
        (all[1].policy.name(), all[1].knobs[0].1, all[3].policy.name()),
        ("linux-6.18", 3, "freehold")
    );
    assert_eq!(variants(&policies, &[]).len(), 2);
}
