//! The experiments that come along, made small: what they say must stay within bands. How well they do in full is in
//! docs/results.md.

use freehold_lab::experiment::{Experiment, Options, inexact_rows, run};
use freehold_lab::measurements::{Document, Role};
use mm::Nanos;
use sim::profile::FigureKind;
use toml::Value;

/// An experiment with less memory and less simulated time.
fn small(name: &str, mib: i64, run_ms: u64) -> Experiment {
    let mut experiment = Experiment::load(name).unwrap_or_else(|error| panic!("{error}"));
    for variant in &mut experiment.variants {
        variant.setup.workload.insert("mib".into(), Value::Integer(mib));
        variant.setup.workload.insert("stagger_ms".into(), Value::Integer(50));
        if variant.setup.workload.contains_key("rounds_before") {
            variant.setup.workload.insert("rounds_before".into(), Value::Integer(2));
        }
        variant.setup.warm_up = Nanos(100_000_000);
        for phase in &mut variant.phases {
            phase.length = Nanos(run_ms * 1_000_000);
        }
    }
    experiment
}

fn ran(experiment: Experiment, threads: usize) -> Document {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let options = Options { seeds: Some(1), ..Options::default() };
    let document = pool.install(|| run(vec![experiment], &options, &|_| {}));
    document.unwrap_or_else(|error| panic!("{error}")).without_wall_time()
}

fn value(document: &Document, variant: &str, metric: &str) -> f64 {
    let row = document.rows.iter().find(|row| row.variant == variant && row.metric == metric);
    row.unwrap_or_else(|| panic!("no row {variant} {metric}")).simulated
}

#[test]
fn pcp_batch_in_small_goes_the_published_way() {
    let document = ran(small("pcp-batch", 1536, 100), 2);
    assert_eq!(document.score[0].histograms, 5);
    // Published: 0.043 and 0.058. Refills of 63 pages in place of up to 2016.
    for (zero, five) in [("epyc-7w83-0", "epyc-7w83-5"), ("xeon-8260-1n-0", "xeon-8260-1n-5")] {
        let ratio = value(&document, &format!("{zero} against {five}"), "refill.mean_ns");
        assert!((0.02..0.12).contains(&ratio), "{zero}: {ratio}");
        let distance = value(&document, zero, "refill.emd_buckets");
        assert!(distance < 2.0, "{zero}: {distance} buckets off");
    }
}

/// What machines share is fitted to these rows (`make fit`). A path that comes to cost more or less than its figure shows here: from 25 to
/// 29 November 2026 faults of this loop were without their exceptions, and every rate a sixth to a fifth too high.
#[test]
fn what_the_model_was_fitted_to_stays_as_near_as_the_fit() {
    let experiment = Experiment::load("pcp-hold").unwrap_or_else(|error| panic!("{error}"));
    let document = ran(experiment, 2);
    let fitted: Vec<_> = document.rows.iter().filter(|row| row.role == Role::Fitted).collect();
    let off = |metric: &str| -> Vec<f64> {
        fitted.iter().filter(|row| row.metric == metric).map(|row| row.error.abs()).collect()
    };
    let (rates, holds) = (off("pages_per_second"), [off("drain.mean_ns"), off("refill.mean_ns")].concat());
    assert_eq!((rates.len(), holds.len()), (18, 58));
    assert!(rates.iter().all(|error| *error < 0.08), "{rates:?}");
    assert!(holds.iter().all(|error| *error < 0.32), "{holds:?}");
}

/// Else a row would be said to be predicted that a figure was chosen by, as EPYC's were once by a sleep of its waiters.
#[test]
fn no_machine_is_fitted_to_the_histograms_that_it_predicts() {
    let experiment = Experiment::load("pcp-batch").unwrap_or_else(|error| panic!("{error}"));
    for variant in &experiment.variants {
        for (spec, figure) in variant.setup.profile.figures() {
            let by_the_post = figure.kind == FigureKind::Fitted && figure.source.contains("shao-2024");
            assert!(!by_the_post, "{}: {} is fitted to {}", variant.name, spec.key, figure.source);
        }
    }
}

#[test]
fn one_seed_gives_one_document_on_any_number_of_threads() {
    let of = |threads| {
        let mut experiment = small("pcp-batch", 512, 20);
        experiment.variants.truncate(2);
        experiment.comparisons.truncate(1);
        ran(experiment, threads)
    };
    let (one, two) = (of(1).to_json(), of(2).to_json());
    assert!(one == two, "{one}\n{two}");
}

#[test]
fn pcp_sequence_is_exact() {
    let experiment = Experiment::load("pcp-sequence").unwrap_or_else(|error| panic!("{error}"));
    let document = ran(experiment, 1);
    assert_eq!(document.rows.len(), 3 + 5);
    assert!(document.rows.iter().all(|row| row.error.abs() < f64::EPSILON), "{:#?}", document.rows);
    assert!(inexact_rows(&document).is_empty());
}

#[test]
fn fallback_lists_are_exact_and_decide_how_fast_stream_is() {
    let experiment = Experiment::load("zonelist-load").unwrap_or_else(|error| panic!("{error}"));
    let document = ran(experiment, 2);
    assert_eq!(document.rows.iter().filter(|row| row.role == Role::Exact).count(), 2 * 2 + 4 * 4);
    assert!(inexact_rows(&document).is_empty());
    let of = |variant: &str| value(&document, variant, "bandwidth.copy");
    let (before, after) = (of("from-0+1-5.15"), of("from-0+1-5.16"));
    // Published: 1.92, and no change the other way round.
    assert!((1.8..2.05).contains(&(after / before)), "{before} {after}");
    assert!((of("from-2+3-5.16") / of("from-2+3-5.15") - 1.0).abs() < 0.001);
}

/// A quarter of the CPUs, grace periods of 6 ms in place of 36.
#[test]
fn slub_list_lock_in_small_goes_the_published_way() {
    let mut experiment = Experiment::load("slub-list-lock").unwrap_or_else(|error| panic!("{error}"));
    let kept = ["mmap1-25-base", "mmap1-25-order", "mmap1-25-partial-4x", "mmap1-25-freehold"];
    experiment.variants.retain(|variant| kept.contains(&variant.name.as_str()));
    experiment.comparisons.clear();
    for variant in &mut experiment.variants {
        variant.setup.workload.insert("grace_us".into(), Value::Integer(6000));
        variant.setup.warm_up = Nanos(20_000_000);
        for phase in &mut variant.phases {
            phase.length = Nanos(12_000_000);
        }
    }
    let document = ran(experiment, 2);
    let of = |variant: &str, metric: &str| value(&document, variant, metric);
    let (rate, spin) = ("operations_per_task_second", "cpu.spin_percent");
    let base = of("mmap1-25-base", rate);
    for (variant, faster, spins) in [
        // Published: 33.3 and 34.9 % faster.
        ("mmap1-25-order", 1.15..1.80, 5.0..30.0),
        ("mmap1-25-partial-4x", 1.15..1.80, 5.0..30.0),
        ("mmap1-25-freehold", 1.38..2.20, 0.0..2.0),
    ] {
        let (ratio, spin) = (of(variant, rate) / base, of(variant, spin));
        assert!(faster.contains(&ratio), "{variant}: {ratio} times as fast as base");
        assert!(spins.contains(&spin), "{variant}: {spin} % spinning");
    }
    let spin = of("mmap1-25-base", spin);
    assert!((30.0..60.0).contains(&spin), "base: {spin} % spinning");
    let pages = "memory.slab_pages";
    assert!(of("mmap1-25-freehold", pages) <= of("mmap1-25-base", pages));
}
