//! The experiments whose programs are scripts: what they come to must stay what it is. How well they do is in docs/results.md.

mod small;

use freehold_lab::experiment::inexact_rows;
use freehold_lab::measurements::Document;
use small::{counter, load, ran, value};

/// All variants of the experiment, or these.
fn of(name: &str, variants: &[&str]) -> Document {
    let document = ran(load(name, variants));
    for variant in variants {
        assert_eq!(
            counter(&document, variant, "script_done"),
            1,
            "{name} {variant}: its script came to its end"
        );
        assert_eq!(counter(&document, variant, "script_refused"), 0, "{name} {variant}: no call was refused");
    }
    document
}

#[test]
fn marks_are_as_far_apart_as_published() {
    let document = of("watermark-scale", &["before", "scaled", "min-free-1g"]);
    assert!(inexact_rows(&document).is_empty(), "{:#?}", document.rows);
    let distance = |variant: &str| value(&document, variant, "sampled.marks.watermark_distance");
    assert!(distance("before") < distance("scaled") && distance("scaled") < distance("min-free-1g"));
}

#[test]
fn huge_pages_that_cannot_go_are_split_all_the_same() {
    let document = of("pageout-thp", &["linux-6.19"]);
    let of = |metric: &str| value(&document, "linux-6.19", metric) as u64;
    assert_eq!([of("sampled.before.a.huge"), of("sampled.after.a.huge")], [4096, 0]);
    assert_eq!([of("sampled.after.a.rss"), of("sampled.after.pswpout")], [4096, 0]);
    assert_eq!(of("sampled.after.thp_split_page"), 8);
}

/// The rule of 5.4: nothing below the limit, then longer with the square, and 8 waits of 2 s for each MB at last.
#[test]
fn who_goes_over_high_waits_as_published() {
    let document = of("memory-high", &["before", "delays", "delays-with-own", "linux-6.18"]);
    let seconds = |variant: &str, mb: u32| value(&document, variant, &format!("mean_ns.mb-{mb}")) / 1e9;
    assert!(seconds("before", 110) < 0.002 && seconds("delays", 97) < 0.002);
    for (mb, published) in [(104, 1.016), (110, 5.760), (116, 14.144)] {
        let (bare, own) = (seconds("delays", mb), seconds("delays-with-own", mb));
        assert!(bare < published && (0.9..1.1).contains(&(own / published)), "{mb} MB: {bare} and {own} s");
    }
    assert!((15.9..16.1).contains(&seconds("delays", 120)), "{}", seconds("delays", 120));
    let halved = seconds("linux-6.18", 110) / seconds("delays", 110);
    assert!((0.45..0.55).contains(&halved), "batches of 64: half as many waits: {halved}");
}

/// The example of the series: of 3,200 hot pages all go where new pages begin active; where they begin inactive, none that was active, of which
/// reclaim has begun to take the oldest.
#[test]
fn pages_that_are_used_once_push_hot_ones_out_before_5_9() {
    let document = of("workingset-anon", &["example-5.8", "example-5.9"]);
    let hot = |variant: &str| value(&document, variant, "sampled.second.hot.swap") as u64;
    assert_eq!(hot("example-5.8"), 3200);
    let not_active = value(&document, "example-5.9", "sampled.ready.nr_inactive_anon") as u64;
    assert!(
        hot("example-5.9") <= not_active && hot("example-5.9") < 320,
        "{} of {not_active}",
        hot("example-5.9")
    );
}

/// A file goes round in what is free below the Normal zone, of which nothing is left in large blocks: kswapd is idle until that is used up,
/// then takes as much as is read, and the Normal zone stays as it is.
#[test]
fn readahead_of_large_folios_keeps_kswapd_busy_on_a_fragmented_node() {
    let document = ran(load("kswapd-treadmill", &["two-lists"]));
    let of = |metric: &str| value(&document, "two-lists", &format!("sampled.{metric}"));
    assert_eq!(
        counter(&document, "two-lists", "script_done"),
        14,
        "the programs, the sampler and twelve children"
    );
    assert_eq!(counter(&document, "two-lists", "script_refused"), 0);
    for idle in ["A_warm.pgscan_kswapd/s", "A.pgscan_kswapd/s", "s-8.pgscan_kswapd", "C2.pgscan_kswapd/s"] {
        assert_eq!(of(idle) as u64, 0, "{idle}");
    }
    let near = |metric: &str, published: f64, by: f64| {
        assert!((of(metric) / published - 1.0).abs() < by, "{metric}: {} and not {published}", of(metric));
    };
    near("C_warm.pgscan_kswapd/s", 51135.0, 0.05);
    near("C_warm.nr_file_pages/M", 3886.0, 0.15);
    near("C2.nr_file_pages/M", 4067.0, 0.15);
    near("C.set.hits/set.reads", 17.52, 0.1);
    near("C2.workingset_refault_file/s", 386.0, 0.1);
    assert_eq!(
        of("s-20.pgscan_kswapd") as u64 % 1280,
        0,
        "five runs of 32 pages, each of which takes a folio of 256"
    );
}
