//! Walking over cold descriptors of 64 bytes, as a refill does that takes pages from free blocks: what is left of a
//! miss's latency when the line was next in sequence, and how long a prefetcher needs to get ahead.
//!
//! Runs of descriptors begin where nobody has been, each at the beginning of a page of lines, for prefetchers go by
//! pages. A run waits for the one before; within a run nothing waits, as in the kernel, which knows where the next
//! descriptor is.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::region::{LINE_WORDS, MappedRegion, PAGE_WORDS};
use super::samples::Samples;
use crate::rng::Rng;

/// Repetitions, and runs of each, at most.
const TIMES: usize = 25;
const RUNS: usize = 64;
pub(super) const PAGE_LINES: usize = PAGE_WORDS / LINE_WORDS;
/// Descriptors of the shorter run: enough for any prefetcher to be ahead.
pub(super) const SHORT: usize = PAGE_LINES / 2;

/// Nanoseconds.
pub(super) struct Walked {
    /// A cold run of one descriptor.
    pub(super) one: Samples,
    /// A cold run of [`SHORT`] descriptors.
    pub(super) short: Samples,
    /// A cold run of all descriptors of a page of lines.
    pub(super) long: Samples,
    /// One descriptor of a run that is in the first-level cache.
    pub(super) warm: Samples,
}

impl Walked {
    /// A descriptor's share of a random miss of `miss_ns` once the prefetcher is ahead.
    pub(super) fn overlap(&self, miss_ns: f64) -> Samples {
        let rest = (PAGE_LINES - SHORT) as f64;
        let (short, warm) = (self.short.median(), self.warm.median());
        self.long.map(|long| (((long - short) / rest - warm) / miss_ns).clamp(0.01, 1.0))
    }

    /// Whole misses at the beginning of a run, for the rest costing `overlap` of one each.
    pub(super) fn train(&self, miss_ns: f64, overlap: f64) -> Samples {
        let (lines, warm) = (SHORT as f64, self.warm.median());
        let whole = |short: f64| {
            let misses = (short - lines * warm) / miss_ns;
            ((misses - lines * overlap) / (1.0 - overlap).max(0.01)).round().clamp(0.0, lines)
        };
        self.short.map(whole)
    }
}

/// Walks runs over `region`, which is several times as large as the last-level cache.
pub(super) fn walk(region: &MappedRegion) -> Walked {
    let words = region.words();
    let mut order: Vec<usize> = (0..region.page_count()).collect();
    Rng::new(3, order.len() as u64).shuffle(&mut order);
    // Only what was written longest ago is walked.
    for &page in &order {
        words[page * PAGE_WORDS..][..PAGE_WORDS].iter().for_each(|word| word.store(0, Relaxed));
    }
    // Three lengths of run share the first half.
    let each = (order.len() / 2 / 3 / TIMES).clamp(1, RUNS);
    let mut chunks = order.chunks(each);
    let mut cold =
        |lines: usize| Samples::take(TIMES, || runs(words, chunks.next().unwrap_or(&order[..1]), lines));
    let (one, short, long) = (cold(1), cold(SHORT), cold(PAGE_LINES));
    let again = vec![order[0]; RUNS];
    let warm = Samples::take(TIMES, || runs(words, &again, PAGE_LINES)).map(|ns| ns / PAGE_LINES as f64);
    Walked { one, short, long, warm }
}

/// Nanoseconds a run of so many lines at the beginning of each of `pages`.
fn runs(words: &[AtomicU64], pages: &[usize], lines: usize) -> f64 {
    let start = Instant::now();
    let mut found = 0;
    for &page in pages {
        // What was found is nothing; the CPU does not know, and waits for it.
        found = link(words, page * PAGE_WORDS + found as usize, lines);
    }
    std::hint::black_box(found);
    start.elapsed().as_nanos() as f64 / pages.len().max(1) as f64
}

/// Links descriptors from the word `first` on: each gets the one before it as predecessor, and that one gets it as
/// successor. Says what their flags have in common with a bit that none has.
fn link(words: &[AtomicU64], first: usize, lines: usize) -> u64 {
    let (mut before, mut found) = (first, 0);
    for at in (0..lines).map(|line| first + line * LINE_WORDS) {
        found |= words[at].load(Relaxed);
        words[at + 1].store(before as u64, Relaxed);
        words[before + 2].store(at as u64, Relaxed);
        before = at;
    }
    found & 1
}

#[cfg(test)]
mod tests {
    use super::super::region::Pages;
    use super::*;

    #[test]
    fn linking_makes_a_list_of_the_run() {
        let region = MappedRegion::new(4 << 20, Pages::Small).unwrap();
        assert_eq!(link(region.words(), PAGE_WORDS, 9), 0);
        let word = |at: usize| region.words()[at].load(Relaxed) as usize;
        let lines: Vec<usize> = (0..9).map(|line| PAGE_WORDS + line * LINE_WORDS).collect();
        assert!(lines.windows(2).all(|pair| word(pair[1] + 1) == pair[0] && word(pair[0] + 2) == pair[1]));
    }

    #[test]
    fn a_model_that_is_walked_gives_its_figures_back() {
        // 100 ns a miss, three of them whole, a fifth of the others, 1 ns for each descriptor itself.
        let run = |lines: usize| {
            let rest = lines.saturating_sub(3) as f64;
            Samples::of(vec![lines as f64 + 100.0 * lines.min(3) as f64 + 20.0 * rest])
        };
        let (one, short, long) = (run(1), run(SHORT), run(PAGE_LINES));
        let walked = Walked { one, short, long, warm: Samples::of(vec![1.0]) };
        let overlap = walked.overlap(100.0).median();
        assert!((overlap - 0.2).abs() < 1e-9);
        assert!((walked.train(100.0, overlap).median() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_region_is_walked() {
        let walked = walk(&MappedRegion::new(16 << 20, Pages::Small).unwrap());
        assert!(walked.one.median() > 0.0 && walked.short.median() <= walked.long.spread().max);
    }
}
