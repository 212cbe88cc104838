//! The experiments of docs/published.md#raghavendra-2024: what was published of 8 GiB, and what is predicted of freehold,
//! must stay within bands. In full they are in docs/results.md.

mod small;

use freehold_lab::measurements::Document;
use small::{load, ran, value};

/// Seconds of a metric's row.
fn seconds(document: &Document, variant: &str, metric: &str) -> f64 {
    value(document, variant, metric) / 1e9
}

#[test]
fn abench_over_8_gib_takes_about_as_long_as_published() {
    let document = ran(load("kmmscand", &["numab2-8g", "v0-8g", "freehold-8g"]));
    let time = |variant: &str| seconds(&document, variant, "mean_ns.completion");
    let (balancing, v0, ours) = (time("numab2-8g"), time("v0-8g"), time("freehold-8g"));
    assert!((balancing / 133.66 - 1.0).abs() < 0.1, "{balancing} s");
    assert!((v0 / 113.77 - 1.0).abs() < 0.1, "{v0} s");
    assert!(v0 < 0.95 * balancing, "{v0} s with kmmscand, {balancing} s without");
    assert!(ours < v0, "{ours} s");
    // The post calls its overheads an upper bound: 13.93 s and 65.74 s.
    let patched = seconds(&document, "v0-8g", "sum_ns.scan") + seconds(&document, "v0-8g", "sum_ns.migrate");
    assert!((13.93 / 2.0..=13.93).contains(&patched), "{patched} s");
    let base =
        ["sum_ns.hint-scan", "sum_ns.hint-fault"].map(|metric| seconds(&document, "numab2-8g", metric));
    assert!((65.743 / 2.0..=65.743).contains(&(base[0] + base[1])), "{base:?} s");
}

#[test]
fn a_chunk_at_the_far_end_is_found_by_regions_and_not_by_small_scans() {
    let document = ran(load("hot-pages", &["far-chunk-v0-nothrottle", "far-chunk-v0", "far-chunk-freehold"]));
    let time = |name: &str| seconds(&document, &format!("far-chunk-{name}"), "mean_ns.completion");
    // The post's drawback: with scans as small as they become where nothing is found, the run is over before.
    assert!(time("v0") > 1.3 * time("v0-nothrottle"), "{} s and {} s", time("v0"), time("v0-nothrottle"));
    assert!(time("freehold") < 0.92 * time("v0-nothrottle"), "{} s", time("freehold"));
}
