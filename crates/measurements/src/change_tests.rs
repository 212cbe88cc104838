use super::*;
use crate::{CgroupUse, Latency, LockStat, ProgramUse, Throughput};

fn run(variant: &str, seed: u64, refill_ns: u64) -> Run {
    let latency = Latency { count: 10, total_ns: 10 * refill_ns, mean_ns: refill_ns, ..Latency::default() };
    Run {
        variant: variant.into(),
        seed,
        latency: [("refill".to_owned(), latency)].into(),
        throughput: Throughput { pages_per_second: 1e6, operations_per_second: 0.0 },
        ..Run::default()
    }
}

fn change(before: &[f64], after: &[f64]) -> Change {
    let figure = Figure { name: "refill.mean_ns".into(), unit: "ns", better: Some(Better::Lower) };
    let sample = |values: &[f64]| Sample::new(values.iter().copied());
    Change { figure, before: sample(before), after: sample(after) }
}

#[test]
fn seeds_tell_two_variants_apart_or_not() {
    assert_eq!(change(&[100.0, 101.0, 99.0], &[50.0, 51.0, 49.0]).told(), Told::Apart);
    // One seed says 7 times longer, another 6.3 times shorter.
    assert_eq!(change(&[10.0, 40.0, 63.0], &[70.0, 42.0, 10.0]).told(), Told::Within);
    assert_eq!(change(&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0]).told(), Told::Same);
    // Identical in all seeds, and different: nothing is left to chance.
    assert_eq!(change(&[5.0, 5.0, 5.0], &[6.0, 6.0, 6.0]).told(), Told::Apart);
    assert_eq!(change(&[0.0, 0.0, 0.0], &[839_347.0, 839_300.0, 839_400.0]).told(), Told::Apart);
    assert_eq!(change(&[5.0], &[50.0]).told(), Told::OneSeed);
    assert_eq!(change(&[5.0], &[5.0]).told(), Told::OneSeed);
}

#[test]
fn better_goes_by_the_figure() {
    assert_eq!(change(&[2.0], &[1.0]).is_better(), Some(true));
    assert_eq!(change(&[1.0], &[2.0]).is_better(), Some(false));
    assert_eq!(change(&[1.0], &[1.0]).is_better(), None);
    assert!((change(&[1.0], &[4.0]).ratio() - 4.0).abs() < 1e-9);
    assert!(change(&[0.0], &[4.0]).ratio().is_infinite());
    assert!((change(&[0.0], &[0.0]).ratio() - 1.0).abs() < 1e-9);
}

#[test]
fn means_have_an_interval_from_two_seeds_on() {
    let runs = [run("a", 1, 9), run("b", 1, 7), run("a", 2, 10), run("a", 3, 11)];
    let all = means(&runs);
    let of = |variant: &str, metric: &str| {
        all.iter().find(|mean| mean.variant == variant && mean.metric == metric).expect("a mean").clone()
    };
    let a = of("a", "refill.mean_ns");
    // t(0.975, 2) = 4.302653, deviation 1, three seeds.
    let half = 4.302_652_73 / 3f64.sqrt();
    assert!((a.mean - 10.0).abs() < 1e-9 && (a.low.unwrap() - (10.0 - half)).abs() < 1e-6, "{a:?}");
    assert_eq!((a.seeds, a.unit.as_str()), (3, "ns"));
    let b = of("b", "refill.mean_ns");
    assert_eq!((b.mean, b.low, b.high, b.seeds), (7.0, None, None, 1));
    let rate = of("a", "pages_per_second");
    assert_eq!((rate.low, rate.high), (Some(1e6), Some(1e6)), "identical in all seeds");
}

#[test]
fn what_happens_in_one_variant_alone_is_counted_from_nothing() {
    let mut other = run("b", 1, 7);
    other.omissions.insert(FAILED_ALLOCATIONS.into(), 5);
    other.locks.insert("zone".into(), LockStat { wait_ns: 8, ..LockStat::default() });
    other.latency.insert("drain".into(), Latency { count: 3, total_ns: 9, ..Latency::default() });
    let runs = [run("a", 1, 9), other];
    let groups = groups(&runs);
    let all = changes(&groups[0], &groups[1]);
    let of = |name: &str| all.iter().find(|change| change.figure.name == name).map(Change::means);
    assert_eq!(of(FAILED_ALLOCATIONS), Some((0.0, 5.0)));
    assert_eq!(of("lock.zone.wait_ns"), Some((0.0, 8.0)));
    assert_eq!(of("drain.count"), Some((0.0, 3.0)));
    assert_eq!(of("drain.mean_ns"), None, "how long it would have taken nobody knows");
}

#[test]
fn who_is_killed_is_better_in_nothing() {
    let program = |variant: &str, seed, killed_ns| {
        let group = CgroupUse { name: "program".into(), killed_ns, ..CgroupUse::default() };
        Run { program: Some(ProgramUse::default()), cgroups: vec![group], ..run(variant, seed, 100 - seed) }
    };
    let (whole, other) = (program("a", 1, None), program("b", 2, None));
    let cut = program("c", 3, Some(7));
    let better = |other: &Run| {
        let runs = [whole.clone(), other.clone()];
        let groups = groups(&runs);
        let all = changes(&groups[0], &groups[1]);
        let told = all.iter().filter_map(|change| Some((change.figure.name.clone(), change.is_better()?)));
        told.collect::<Vec<_>>()
    };
    assert!(better(&other).contains(&("refill.mean_ns".to_owned(), true)));
    assert_eq!(better(&cut), [("killed".to_owned(), false), (FAILED_ALLOCATIONS.to_owned(), false)]);
}
