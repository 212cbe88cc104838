//! Latency: one thread follows a chain through lines in random order, so that each load waits for the one before.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::region::{LINE_BYTES, LINE_WORDS, MappedRegion};
use super::samples::Samples;
use crate::rng::Rng;

/// Repetitions.
const TIMES: usize = 61;
/// Steps of a walk through what is in a cache.
const WARM_STEPS: usize = 8000;
/// Steps of a walk through what is in none, at most: over within a millisecond, as a rule before somebody else gets the
/// CPU.
const COLD_STEPS: usize = 4000;

/// A chain laid through the first lines of a region: it visits each once and returns to its beginning.
///
/// It is written from beginning to end, so that the lines at its beginning are those that caches have lost first.
#[derive(Debug)]
pub(super) struct Chain<'r> {
    words: &'r [AtomicU64],
    at: usize,
    /// Its lines from beginning to end.
    order: Vec<u32>,
}

impl<'r> Chain<'r> {
    /// A chain through the first `bytes` of `region`.
    pub(super) fn new(region: &'r MappedRegion, bytes: usize) -> Self {
        let lines = (bytes / LINE_BYTES).clamp(1, region.words().len() / LINE_WORDS);
        let mut order: Vec<u32> = (0..lines as u32).collect();
        Rng::new(1, lines as u64).shuffle(&mut order);
        Self::along(region, order)
    }

    /// A chain through those lines of `region`, one at least and each once, in their order.
    pub(super) fn along(region: &'r MappedRegion, order: Vec<u32>) -> Self {
        let words = region.words();
        let word = |line: u32| line as usize * LINE_WORDS;
        for pair in order.windows(2) {
            words[word(pair[0])].store(word(pair[1]) as u64, Relaxed);
        }
        words[word(order[order.len() - 1])].store(word(order[0]) as u64, Relaxed);
        Self { words, at: word(order[0]), order }
    }

    /// Follows the chain for `steps` from where it was left; nanoseconds a step.
    pub(super) fn walk(&mut self, steps: usize) -> f64 {
        let start = Instant::now();
        let mut at = self.at;
        for _ in 0..steps {
            at = self.words[at].load(Relaxed) as usize;
        }
        self.at = black_box(at);
        start.elapsed().as_nanos() as f64 / steps.max(1) as f64
    }

    /// Latency of the level that the chain fits in, and that lines at its beginning have sunk to.
    ///
    /// Before each walk the whole chain is read from beginning to end, without waiting: the walk then takes those that
    /// went down furthest, and is over before others that share the cache have thrown them out.
    pub(super) fn warm(mut self) -> Samples {
        Samples::take(TIMES, || self.walk_warm(WARM_STEPS))
    }

    /// As [`Chain::warm`], once, for `steps`.
    pub(super) fn walk_warm(&mut self, steps: usize) -> f64 {
        self.at = self.order[0] as usize * LINE_WORDS;
        self.refresh();
        self.walk(steps)
    }

    /// Reads every line, none waiting for another; nanoseconds a line.
    pub(super) fn read_at_once(&mut self) -> f64 {
        let passes = (WARM_STEPS / self.order.len()).max(1);
        let (start, mut sum) = (Instant::now(), 0u64);
        for _ in 0..passes {
            for &line in &self.order {
                sum = sum.wrapping_add(self.words[line as usize * LINE_WORDS].load(Relaxed));
            }
        }
        black_box(sum);
        start.elapsed().as_nanos() as f64 / (passes * self.order.len()) as f64
    }

    fn refresh(&self) {
        for _ in 0..2 {
            for &line in &self.order {
                black_box(self.words[line as usize * LINE_WORDS].load(Relaxed));
            }
        }
    }

    /// Latency of a working set that is much larger than every cache: no line is visited twice.
    pub(super) fn cold(mut self) -> Samples {
        let steps = self.cold_steps(TIMES);
        Samples::take(TIMES, || self.walk(steps))
    }

    /// Steps of each of so many walks which end before the lines that were written last.
    pub(super) fn cold_steps(&self, walks: usize) -> usize {
        (self.order.len() / 2 / walks.max(1)).min(COLD_STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::Pages;
    use super::*;

    #[test]
    fn a_chain_visits_every_line_once() {
        let region = MappedRegion::new(1, Pages::Small).unwrap();
        let mut chain = Chain::new(&region, 100 * LINE_BYTES);
        let (start, mut seen) = (chain.at, std::collections::BTreeSet::new());
        for _ in 0..100 {
            chain.walk(1);
            seen.insert(chain.at);
        }
        assert_eq!((seen.len(), chain.at), (100, start));
        assert!(seen.iter().all(|word| word % LINE_WORDS == 0));
    }
}
