//! The verdict: what changed beyond the seeds, what got worse, and what it says where nothing did.

use freehold_report::{Style, changes};
use lab::measurements::{Latency, LockStat, Run, Throughput, scenes};

/// A run whose page frees take this long in the mean, with this p99, in ns.
fn run(variant: &str, seed: u64, mean_ns: u64, p99_ns: u64) -> Run {
    let latency = Latency {
        count: 1_000,
        total_ns: 1_000 * mean_ns,
        mean_ns,
        p99_ns,
        max_ns: 9_000,
        ..Latency::default()
    };
    Run {
        workload: "loop".into(),
        machine: "kvm-genoa-2c".into(),
        policy: "linux-6.18".into(),
        variant: variant.into(),
        seed,
        simulated_ns: 10_000_000,
        latency: [("page_free".to_owned(), latency)].into(),
        locks: [("zone".to_owned(), LockStat { acquired: 9, wait_ns: 500, ..LockStat::default() })].into(),
        throughput: Throughput { pages_per_second: 1e6, operations_per_second: 0.0 },
        ..Run::default()
    }
}

fn text(runs: &[Run]) -> String {
    changes::text(Style::plain(), &scenes(runs)[0])
}

fn three(variant: &str, means: [u64; 3], p99s: [u64; 3]) -> Vec<Run> {
    (0..3).map(|seed| run(variant, seed as u64 + 1, means[seed], p99s[seed])).collect()
}

#[test]
fn what_got_worse_stands_in_the_headline() {
    let mut runs = three("a", [800, 805, 795], [135, 135, 135]);
    runs.extend(three("b", [690, 700, 695], [3_647, 3_650, 3_640]));
    insta::assert_snapshot!(text(&runs), @r"
    a -> b
      Changed most: page free p99, 27.0 times longer (135 ns -> 3.646 µs ± 0.3 %). Not told apart, within the
      model's interval: page free mean.
      page free                   mean  800 ns ± 2 % -> 695 ns ± 2 %, 13 % shorter: not told apart
                                  p99   135 ns -> 3.646 µs ± 0.3 %, 27.0 times longer (4.2 to 174 times)
      zone lock                   waited 500 ns -> 500 ns, the same in all seeds
      pages allocated             1.000 M/s -> 1.000 M/s, the same in all seeds
      ± half of the 95 % interval of a mean over 3 seeds
      in brackets: where the machine itself has the change of a time with 80 %
    ");
}

#[test]
fn seeds_that_disagree_show_no_difference() {
    // Seed 1 says 7 times longer, seed 3 says 6.3 times shorter.
    let mut runs = three("a", [10, 40, 63], [135, 135, 135]);
    runs.extend(three("b", [70, 42, 10], [135, 135, 135]));
    insta::assert_snapshot!(text(&runs), @r"
    a -> b
      No difference beyond the seeds'.
      page free                   mean  38 ns ± 175 % -> 41 ns ± 183 %, no difference beyond the seeds'
      zone lock                   waited 500 ns -> 500 ns, the same in all seeds
      pages allocated             1.000 M/s -> 1.000 M/s, the same in all seeds
      ± half of the 95 % interval of a mean over 3 seeds
      in brackets: where the machine itself has the change of a time with 80 %
    ");
}

#[test]
fn a_workload_without_chance_is_identical_in_all_seeds() {
    let mut runs = three("a", [10; 3], [135; 3]);
    runs.extend(three("b", [10; 3], [135; 3]));
    insta::assert_snapshot!(text(&runs), @r"
    a -> b
      Identical in all seeds.
      page free                   mean  10 ns -> 10 ns, the same in all seeds
      zone lock                   waited 500 ns -> 500 ns, the same in all seeds
      pages allocated             1.000 M/s -> 1.000 M/s, the same in all seeds
      ± half of the 95 % interval of a mean over 3 seeds
      in brackets: where the machine itself has the change of a time with 80 %
    ");
    let mut runs = three("a", [10; 3], [135; 3]);
    runs.extend(three("b", [12; 3], [135; 3]));
    insta::assert_snapshot!(text(&runs), @r"
    a -> b
      Nothing exceeds the model's interval. Not told apart, within the model's interval: page free mean.
      page free                   mean  10 ns -> 12 ns, 20 % longer: not told apart
      zone lock                   waited 500 ns -> 500 ns, the same in all seeds
      pages allocated             1.000 M/s -> 1.000 M/s, the same in all seeds
      ± half of the 95 % interval of a mean over 3 seeds
      in brackets: where the machine itself has the change of a time with 80 %
    ");
}

#[test]
fn one_seed_has_no_interval() {
    let runs = [run("a", 1, 100, 135), run("b", 1, 50, 135)];
    insta::assert_snapshot!(text(&runs), @r"
    a -> b
      One seed: no interval; another may say otherwise. Changed most: page free mean, 2.0 times shorter (100 ns ->
      50 ns).
      page free                   mean  100 ns -> 50 ns, 2.0 times shorter (1.1 to 3.5 times)
      zone lock                   waited 500 ns -> 500 ns, no noticeable change
      pages allocated             1.000 M/s -> 1.000 M/s, no noticeable change
    ");
    let runs = [run("a", 1, 100, 135), run("b", 1, 100, 135)];
    assert!(text(&runs).contains("One seed: no interval; another may say otherwise. No noticeable change."));
}

#[test]
fn failed_allocations_and_knobs_of_no_kernel_are_named() {
    let mut runs = three("a", [100, 101, 102], [135; 3]);
    let mut failing = three("vm.pcp_batch_scale_max=0", [90, 91, 92], [135; 3]);
    for (run, failed) in failing.iter_mut().zip([839_347, 839_300, 839_400]) {
        run.omissions.insert("failed_allocations".into(), failed);
        run.notes =
            vec!["vm.pcp_batch_scale_max=0: no mainline kernel has this (CONFIG_… at build time)".into()];
    }
    runs.extend(failing);
    insta::assert_snapshot!(text(&runs), @r"
    a -> vm.pcp_batch_scale_max=0
      Changed most: failed allocations, from nothing (0 -> 839349 ± <0.1 %). Not told apart, within the model's
      interval: page free mean. No mainline kernel has vm.pcp_batch_scale_max.
      page free                   mean  101 ns ± 2 % -> 91 ns ± 3 %, 10 % shorter: not told apart
      zone lock                   waited 500 ns -> 500 ns, the same in all seeds
      pages allocated             1.000 M/s -> 1.000 M/s, the same in all seeds
      failed allocations          0 -> 839349 ± <0.1 %, from nothing
      ± half of the 95 % interval of a mean over 3 seeds
      in brackets: where the machine itself has the change of a time with 80 %
    ");
}

#[test]
fn the_headline_fits_the_width() {
    let mut runs = three("a", [800, 805, 795], [135, 135, 135]);
    runs.extend(three("b", [690, 700, 695], [3_647, 3_650, 3_640]));
    for columns in [80, 120] {
        let text = changes::text(
            Style::terminal(columns).with_ink(freehold_report::style::Ink::Plain),
            &scenes(&runs)[0],
        );
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
}
