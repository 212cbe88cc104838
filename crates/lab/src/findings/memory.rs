//! Findings about memory that runs short or lies elsewhere.

use super::{Found, Seen};
use crate::measurements::RecordingCounts;

/// Time in direct reclaim or compaction is worth a finding from this part of the run on, all CPUs together.
const STALLED_SHARE: f64 = 0.001;
/// Pages that came from another node than wanted, of all.
const MISSED_SHARE: f64 = 0.05;
/// Fewer pages than this tell nothing.
const MISSED_PAGES: f64 = 1000.0;
/// Looks of NUMA balancing that found their page on another node, of all.
const REMOTE_SHARE: f64 = 0.3;
/// Fewer looks than this tell nothing.
const LOOKS: f64 = 100.0;

/// Requests that reclaimed pages themselves, for a thousandth of the run or more.
pub(super) fn direct_reclaim(seen: &Seen<'_>) -> Vec<Found> {
    stalls(
        seen,
        "allocstall",
        "direct_reclaim",
        &[("stolen", "pgsteal_direct"), ("scanned", "pgscan_direct")],
    )
}

/// Requests that compacted memory themselves, for a thousandth of the run or more.
pub(super) fn compaction_stalls(seen: &Seen<'_>) -> Vec<Found> {
    stalls(seen, "compact_stall", "compact", &[("failed", "compact_fail"), ("succeeded", "compact_success")])
}

/// `counter` says how many requests stalled, `span` how long, `others` what came of it.
fn stalls(seen: &Seen<'_>, counter: &str, span: &str, others: &[(&str, &str)]) -> Vec<Found> {
    let count = seen.counter(counter);
    let share = seen.share(|run| run.latency.get(span).map_or(0, |of| of.total_ns));
    if count == 0.0 || share < STALLED_SHARE {
        return vec![];
    }
    let longest = seen.mean(|run| run.latency.get(span).map_or(0.0, |of| of.max_ns as f64));
    let mut found = Found::new(share, [("stalls", count), ("stall_share", share), ("max_ns", longest)]);
    for one in &mut found {
        one.figures.extend(others.iter().map(|(name, counter)| ((*name).to_owned(), seen.counter(counter))));
    }
    found
}

/// Pages that were asked of one node and came from another (`numa_miss`): a twentieth of all or more.
pub(super) fn other_nodes(seen: &Seen<'_>) -> Vec<Found> {
    let (hit, miss) = (seen.counter("numa_hit"), seen.counter("numa_miss"));
    let share = if hit + miss > 0.0 { miss / (hit + miss) } else { 0.0 };
    if miss < MISSED_PAGES || share < MISSED_SHARE {
        return vec![];
    }
    Found::new(share, [("missed_pages", miss), ("missed_share", share)])
}

/// NUMA balancing found three in ten of the pages that it looked at on another node than the task, or more.
pub(super) fn remote_accesses(seen: &Seen<'_>) -> Vec<Found> {
    let sum = |of: fn(&RecordingCounts) -> u64| {
        seen.mean(|run| run.recordings.iter().map(|used| of(&used.counts)).sum::<u64>() as f64)
    };
    let (looks, local) = (sum(|of| of.numa_hint_faults), sum(|of| of.numa_hint_faults_local));
    let share = if looks > 0.0 { 1.0 - local / looks } else { 0.0 };
    if looks < LOOKS || share < REMOTE_SHARE {
        return vec![];
    }
    Found::new(
        share,
        [("looks", looks), ("remote_share", share), ("moved_pages", sum(|of| of.numa_pages_migrated))],
    )
}
