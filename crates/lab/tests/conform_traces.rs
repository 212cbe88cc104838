//! mm against the page traces of stock kernels, and of the kernel with `vm.pcp_batch_scale_max`: it refills and drains as
//! they did. Each figure that the project claims is held here.

use std::path::PathBuf;

use freehold_lab::conform::{FileKind, FileOutcome, PagesMoved, conform_file};

fn conform(name: &str) -> FileOutcome {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/traces");
    let outcome = conform_file(&folder.join(format!("{name}.csv.xz"))).unwrap();
    assert_eq!(outcome.kind, FileKind::PageTrace);
    outcome
}

/// Asserts that every refill and drain of `name` was the kernel's, and gives what moved.
fn all_equal(name: &str) -> PagesMoved {
    let outcome = conform(name);
    let shown: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{name}: {shown:#?}");
    assert_eq!(outcome.equal, outcome.compared);
    let pages = outcome.pages.unwrap();
    assert!(
        outcome.compared >= pages.refills.kernel.count + pages.drains.kernel.count / 2,
        "{name}: {pages:?}"
    );
    assert_eq!(pages.refills.kernel, pages.refills.freehold);
    let drained = (pages.drains.kernel.pages as f64, pages.drains.freehold.pages as f64);
    assert!((drained.0 - drained.1).abs() <= 0.001 * drained.0, "{name}: {drained:?} pages drained");
    pages
}

#[test]
fn one_task() {
    let pages = all_equal("linux-6.18-c2-4G-one-task");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (15, 16_506));
    assert_eq!(pages.drains.kernel.pages, 0);
}

#[test]
fn two_rounds() {
    let pages = all_equal("linux-6.18-c2-2G-two-rounds");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (49, 82_530));
    assert_eq!((pages.drains.kernel.count, pages.drains.kernel.pages), (28, 56_400));
}

/// One refill shows as 2014 pages: two pageblocks were claimed whole, and gave their first pages without an event.
#[test]
fn two_tasks_on_two_nodes() {
    let pages = all_equal("linux-6.18-c4-2n-two-tasks");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (42, 51_783));
}

#[test]
fn below_the_low_watermark() {
    let pages = all_equal("linux-6.18-c2-1G-near-full");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (91, 175_329));
    assert_eq!((pages.drains.kernel.count, pages.drains.kernel.pages), (82, 165_312));
}

#[test]
fn spill_from_node_to_node() {
    let pages = all_equal("linux-6.18-c2-2n-spill");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (259, 151_841));
    assert_eq!((pages.drains.kernel.count, pages.drains.kernel.pages), (225, 136_800));
}

#[test]
fn scale_0() {
    let pages = all_equal("linux-6.12-knob-c2-4G-scale0");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (1_002, 63_126));
    assert_eq!((pages.drains.kernel.count, pages.drains.kernel.pages), (508, 32_004));
}

#[test]
fn scale_6() {
    let pages = all_equal("linux-6.12-knob-c2-4G-scale6");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (22, 48_258));
    assert_eq!((pages.drains.kernel.count, pages.drains.kernel.pages), (6, 20_536));
}

#[test]
fn scale_5_then_0_in_mid_run() {
    let outcome = conform("linux-6.12-knob-c2-4G-5-then-0");
    assert_eq!(outcome.notes, ["vm.pcp_batch_scale_max is 0 from the mark on: its refills say so"]);
    let pages = all_equal("linux-6.12-knob-c2-4G-5-then-0");
    assert_eq!((pages.refills.kernel.count, pages.refills.kernel.pages), (328, 82_782));
    assert_eq!((pages.drains.kernel.count, pages.drains.kernel.pages), (277, 35_028));
}

/// Were the rules of another version in force, the comparison would say so.
#[test]
fn the_comparison_tells_rules_apart() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/traces");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let name = "linux-6.18-c2-4G-one-task";
    let trace = freehold_lab::conform::unpack(read(&format!("{name}.csv.xz"))).unwrap();
    let beside = String::from_utf8(read(&format!("{name}.txt"))).unwrap();
    let older = beside.replace("6.18.15+deb13-amd64", "6.1.0");
    assert_ne!(older, beside);
    let outcome = freehold_lab::conform::conform_trace(&trace, &older).unwrap();
    assert_eq!(outcome.policy, "linux-6.1");
    assert!(outcome.differences.len() > 10, "{:?}", outcome.differences);
}
