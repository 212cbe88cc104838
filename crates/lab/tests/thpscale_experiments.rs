//! The experiments of other machines' compaction that come along, made small: what they say must stay within bands.

mod small;

use mm::Nanos;
use sim::Profile;
use small::{counter, counters, load, ran, ran_with, value};
use toml::Value;

/// Seeds that the success rate is the mean of: before the series, that of 32 threads differs from seed to seed by 7 in the
/// standard deviation, by more than 20 between two of six.
const SEEDS: u32 = 4;

/// Twelve and 32 threads alone: the second process comes upon what the first has left.
#[test]
fn thpscale_gets_more_huge_pages_for_less_looking() {
    let mut experiment = load("thpscale", &["linux-5.0", "linux-5.1"]);
    for variant in &mut experiment.variants {
        variant
            .setup
            .workload
            .insert("threads".into(), Value::Array(vec![Value::Integer(12), Value::Integer(32)]));
        variant.figures.retain(|figure| figure.metric.path().ends_with("huge-32"));
        for phase in &mut variant.phases {
            phase.length = Nanos(16_000_000_000);
        }
    }
    let document = ran_with(experiment, SEEDS);
    let (before, after) = ("linux-5.0", "linux-5.1");
    for variant in [before, after] {
        assert_eq!(counters(&document, variant, "thpscale_done"), [2; SEEDS as usize], "{variant}");
    }
    let huge = |variant| value(&document, variant, "mean.huge-32");
    assert!((65.0..93.0).contains(&huge(before)), "published 80.5, simulated {}", huge(before));
    assert!(huge(after) > huge(before) && huge(after) > 85.0, "published 97.1, simulated {}", huge(after));
    let sum = |variant, name| counters(&document, variant, name).iter().sum::<u64>() as f64;
    let scanned = |name| sum(before, name) / sum(after, name);
    let (migrate, free) = (scanned("compact_migrate_scanned"), scanned("compact_free_scanned"));
    assert!(migrate > 1.1, "published 2.9 over all, simulated {migrate}");
    assert!(free > 1.5, "published 39.9 over all, simulated {free}");
}

/// On 4 GiB of the small machine.
#[test]
fn proactives_driver_pays_for_each_block_before_5_9() {
    let mut experiment = load("proactive", &["driver-5.8"]);
    for variant in &mut experiment.variants {
        variant.setup.profile = Profile::load("skylake-1s").unwrap_or_else(|error| panic!("{error}"));
        variant.setup.shrink = 8;
        for phase in &mut variant.phases {
            phase.length = Nanos(8_000_000_000);
        }
    }
    let document = ran(experiment);
    let share = value(&document, "driver-5.8", "mean.hugepage-share");
    assert!((90.0..=100.0).contains(&share), "published 98.4, simulated {share}");
    let blocks = counter(&document, "driver-5.8", "hugepages_allocated");
    let moved = counter(&document, "driver-5.8", "pgmigrate_success");
    assert!((100..160).contains(&(moved / blocks)), "{moved} pages for {blocks} blocks");
}
