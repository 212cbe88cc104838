//! Findings about what programs get: huge pages, copies after forks, walks of page tables, knobs that decide nothing.

use super::{Found, Seen, mean};
use crate::measurements::{KnobOutcome, KnobUses, Run};

/// Peak RSS grows by this part or more.
const GROWN: f64 = 0.05;
/// Faults that wanted a huge page and got a small one, of all that wanted one.
const FELL_BACK: f64 = 0.1;
/// Fewer of them than this tell nothing.
const FEW_FAULTS: f64 = 8.0;
/// Pages copied after a fork, of those resident then.
const COPIED: f64 = 0.1;
/// Of smaller processes nobody notices it: 16 MiB.
const LARGE_PAGES: f64 = 4096.0;
/// Walks of page tables, of the CPU time.
const WALKS: f64 = 0.05;

/// Peak RSS is a twentieth larger than the first variant's, with more huge faults than there: nobody touched the rest of them.
pub(super) fn untouched(seen: &Seen<'_>) -> Vec<Found> {
    let Some(first) = seen.first else { return vec![] };
    let rss = |run: &Run| run.program.map_or(0.0, |used| used.peak_rss_pages as f64);
    let huge = |run: &Run| run.program.map_or(0.0, |used| used.huge_faults as f64);
    let (before, after) = (mean(first, rss), seen.mean(rss));
    let more = seen.mean(huge) - mean(first, huge);
    let grown = if before > 0.0 { after / before - 1.0 } else { 0.0 };
    if grown < GROWN || more <= 0.0 {
        return vec![];
    }
    Found::new(
        grown,
        [("rss_grown_share", grown), ("rss_grown_pages", after - before), ("huge_faults", seen.mean(huge))],
    )
}

/// One in ten faults that wanted a huge page, or more, got small ones.
pub(super) fn fall_back(seen: &Seen<'_>) -> Vec<Found> {
    let (got, fell) = (seen.counter("thp_fault_alloc"), seen.counter("thp_fault_fallback"));
    let share = if got + fell > 0.0 { fell / (got + fell) } else { 0.0 };
    if fell < FEW_FAULTS || share < FELL_BACK {
        return vec![];
    }
    Found::new(share, [("fell_back", fell), ("fell_back_share", share)])
}

/// While the largest fork's child had the pages, a tenth of what was resident or more was copied.
pub(super) fn copies_after_fork(seen: &Seen<'_>) -> Vec<Found> {
    let of = |what: fn(&crate::measurements::ForkUse) -> u64| {
        seen.mean(|run| run.forks.largest.first().map_or(0.0, |fork| what(fork) as f64))
    };
    let (resident, copied) = (of(|fork| fork.resident_pages), of(|fork| fork.copied_pages));
    let share = if resident > 0.0 { copied / resident } else { 0.0 };
    if resident < LARGE_PAGES || share < COPIED {
        return vec![];
    }
    let p99 = of(|fork| fork.fault_p99_ns);
    Found::new(
        share,
        [
            ("copied_pages", copied),
            ("copied_share", share),
            ("resident_pages", resident),
            ("fault_p99_ns", p99),
        ],
    )
}

/// Walks of page tables take a twentieth of the CPU time or more, as far as accesses are known.
pub(super) fn page_walks(seen: &Seen<'_>) -> Vec<Found> {
    let share = seen.mean(|run| {
        let used = run.program.filter(|used| used.cpu_ns > 0);
        used.map_or(0.0, |used| used.walk_ns as f64 / used.cpu_ns as f64)
    });
    if share < WALKS {
        return vec![];
    }
    let walks = seen.mean(|run| run.program.map_or(0.0, |used| used.walk_ns as f64));
    Found::new(share, [("walk_share", share), ("walk_ns", walks)])
}

/// A knob that was set to something else than its default and, in no variant, decided otherwise: told once, with the first variant.
pub(super) fn idle_knob(seen: &Seen<'_>) -> Vec<Found> {
    if seen.first.is_some() {
        return vec![];
    }
    let mut all: std::collections::BTreeMap<&str, KnobUses> = std::collections::BTreeMap::new();
    let runs = seen.siblings.iter().flat_map(|group| &group.runs);
    for (knob, uses) in runs.flat_map(|run| &run.knob_uses) {
        all.entry(knob).and_modify(|sum| sum.add(uses)).or_insert_with(|| uses.clone());
    }
    let idle = all
        .into_iter()
        .filter(|(_, uses)| !matches!(uses.outcome, KnobOutcome::Acted | KnobOutcome::AtDefault));
    idle.flat_map(|(knob, uses)| Found::of(knob, Found::new(1.0, [("consulted", uses.consulted as f64)])))
        .collect()
}
