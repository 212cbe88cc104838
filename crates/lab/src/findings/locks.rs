//! Findings about locks: long holds, waits, and who waits.

use super::{Found, Seen};
use crate::measurements::Run;

/// A refill or drain holds the zone lock all the while, with nobody else served: from here on others notice, ns.
const LONG_BATCH_NS: f64 = 50_000.0;
/// Batches are worth a finding from this part of the run's time on, all CPUs together.
const BATCHES_SHARE: f64 = 0.01;
/// Waits are worth a finding from this part of the run's time on, all CPUs together.
const WAITS_SHARE: f64 = 0.01;
/// As many tasks as this have to do most of the waiting.
const FEW: usize = 3;
/// This is most of it.
const MOST: f64 = 0.8;
/// Of fewer tasks than this a few are not few.
const MANY_TASKS: f64 = 8.0;

/// Refills or drains whose p99 is 50 µs or more, and which take a hundredth of the run or more.
pub(super) fn long_batches(seen: &Seen<'_>) -> Vec<Found> {
    let of = |span: &'static str| {
        let of = |what: fn(&crate::measurements::Latency) -> u64| {
            seen.mean(|run| run.latency.get(span).map_or(0.0, |latency| what(latency) as f64))
        };
        let (p99, mean, count) = (of(|of| of.p99_ns), of(|of| of.mean_ns), of(|of| of.count));
        let weight = seen.share(|run| run.latency.get(span).map_or(0, |of| of.total_ns));
        let found = if p99 >= LONG_BATCH_NS && weight >= BATCHES_SHARE {
            Found::new(weight, [("p99_ns", p99), ("mean_ns", mean), ("count", count)])
        } else {
            vec![]
        };
        Found::of(span, found)
    };
    ["refill", "drain"].into_iter().flat_map(of).collect()
}

pub(super) fn zone_lock(seen: &Seen<'_>) -> Vec<Found> {
    waits(seen, &["zone"])
}

/// SLUB's `list_lock`, and barns'.
pub(super) fn list_lock(seen: &Seen<'_>) -> Vec<Found> {
    waits(seen, &["list", "barn"])
}

pub(super) fn mmap_lock(seen: &Seen<'_>) -> Vec<Found> {
    waits(seen, &["mmap"])
}

/// Waits for locks of these classes that are 1 % of the run or more.
fn waits(seen: &Seen<'_>, classes: &[&str]) -> Vec<Found> {
    let sum = |run: &Run, of: fn(&crate::measurements::LockStat) -> u64| {
        classes.iter().filter_map(|class| run.locks.get(*class)).map(of).sum::<u64>()
    };
    let share = seen.share(|run| sum(run, |lock| lock.wait_ns));
    if share < WAITS_SHARE {
        return vec![];
    }
    let (acquired, contended) = (
        seen.mean(|run| sum(run, |lock| lock.acquired) as f64),
        seen.mean(|run| sum(run, |lock| lock.contended) as f64),
    );
    let longest = seen.mean(|run| {
        let locks = classes.iter().filter_map(|class| run.locks.get(*class));
        locks.map(|lock| lock.wait_max_ns).max().unwrap_or(0) as f64
    });
    let wait = seen.mean(|run| sum(run, |lock| lock.wait_ns) as f64);
    let contended_share = if acquired > 0.0 { contended / acquired } else { 0.0 };
    Found::new(
        share,
        [
            ("wait_ns", wait),
            ("wait_share", share),
            ("wait_max_ns", longest),
            ("contended_share", contended_share),
        ],
    )
}

/// Three tasks of eight or more do four fifths of all waiting for locks, which is 1 % of the run or more.
pub(super) fn few_waiters(seen: &Seen<'_>) -> Vec<Found> {
    let share = seen.share(|run| run.lock_waits.wait_ns);
    let tasks = seen.mean(|run| run.lock_waits.tasks as f64);
    let of_few = seen.mean(|run| run.lock_waits.share_of(FEW));
    if share < WAITS_SHARE || tasks < MANY_TASKS || of_few < MOST {
        return vec![];
    }
    let wait = seen.mean(|run| run.lock_waits.wait_ns as f64);
    Found::new(
        share,
        [
            ("of_few_share", of_few),
            ("few", FEW as f64),
            ("tasks", tasks),
            ("wait_ns", wait),
            ("wait_share", share),
        ],
    )
}
