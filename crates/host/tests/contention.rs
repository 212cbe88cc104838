//! Policies against each other on real threads: what is measured fits together.

use std::time::Duration;

use freehold_host::bench::contention::{ContentionPlan, Slice, Variant, run};
use mm::{Knob, Policy};

fn variant(policy: &str, scale: u64) -> Variant {
    Variant { policy: Policy::parse(policy).unwrap(), knobs: vec![(Knob::PcpBatchScaleMax, scale)] }
}

fn plan(variants: Vec<Variant>) -> ContentionPlan {
    ContentionPlan {
        threads: vec![1, 2],
        variants,
        pages: 32_768,
        rounds: 2,
        slice: Duration::from_millis(5),
    }
}

#[test]
fn every_variant_is_measured_in_every_round_with_every_number_of_threads() {
    let outcome = run(&plan(vec![variant("linux-6.18", 5), variant("freehold", 5)]), |_| ()).unwrap();
    let keys: Vec<(u32, u32, usize)> =
        outcome.slices.iter().map(|slice| (slice.round, slice.threads, slice.variant)).collect();
    let rounds = (0..2).flat_map(|round| [(round, 1, 0), (round, 1, 1), (round, 2, 0), (round, 2, 1)]);
    assert_eq!(keys, rounds.collect::<Vec<_>>());
    for slice in &outcome.slices {
        assert!(slice.pages_per_second > 0.0 && slice.stamped_pages_per_second > 0.0);
        assert_eq!((slice.failed, slice.lost), (0, 0));
        assert!(slice.pages >= 32_768 * u64::from(slice.threads), "each thread had a round");
    }
}

#[test]
fn locks_and_spans_agree() {
    let outcome = run(&plan(vec![variant("linux-6.18", 0)]), |_| ()).unwrap();
    for slice in &outcome.slices {
        let spans = (slice.refills.len() + slice.drains.len()) as u64;
        assert_eq!(slice.zone.acquired, spans, "one hold for each refill and drain");
        let in_spans: u64 = slice.refills.iter().chain(&slice.drains).sum();
        let zone = &slice.zone;
        assert!(zone.held_ns + zone.waited_ns <= in_spans + 2 * spans, "{zone:?} of {in_spans} ns");
        assert!(zone.contended <= zone.acquired && zone.waited_max_ns <= zone.waited_ns);
    }
    let alone = |slice: &&Slice| slice.threads == 1;
    assert!(outcome.slices.iter().filter(alone).all(|slice| slice.zone.contended == 0));
}

#[test]
fn a_smaller_scale_makes_shorter_holds_and_more() {
    let outcome = run(&plan(vec![variant("linux-6.18", 5), variant("linux-6.18", 0)]), |_| ()).unwrap();
    let of = |variant: usize| outcome.slices.iter().filter(move |slice| slice.variant == variant);
    let median = |variant: usize| {
        let mut all: Vec<u64> = of(variant).flat_map(|slice| slice.refills.iter().copied()).collect();
        all.sort_unstable();
        (all.len(), all[all.len() / 2])
    };
    let ((few, long), (many, short)) = (median(0), median(1));
    assert!(many > 4 * few && long > 4 * short, "{few} of {long} ns, {many} of {short} ns");
}

#[test]
fn what_cannot_be_mapped_is_an_error() {
    let mut plan = plan(vec![variant("linux-6.18", 5)]);
    plan.threads = vec![1 << 20];
    plan.pages = 1 << 24;
    assert!(run(&plan, |_| ()).is_err());
}
