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

/// The example of the series: of 3,200 hot pages all go where new pages begin active; where they begin inactive, none that was active.
#[test]
fn pages_that_are_used_once_push_hot_ones_out_before_5_9() {
    let document = of("workingset-anon", &["example-5.8", "example-5.9"]);
    let hot = |variant: &str| value(&document, variant, "sampled.second.hot.swap") as u64;
    assert_eq!(hot("example-5.8"), 3200);
    let not_active = value(&document, "example-5.9", "sampled.ready.nr_inactive_anon") as u64;
    assert!(hot("example-5.9") <= not_active && not_active < 100, "{} of {not_active}", hot("example-5.9"));
}
