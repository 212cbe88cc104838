//! The cost of stores to cold lines with work between them, where only a store waits for the line.
//!
//! A store that misses waits in the store buffer, and the CPU goes on until the buffer is full. The cost of a store
//! therefore depends on the work between stores; here it is as much as a kernel does for a page.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::busy::{delay, steps_of};
use super::region::{MappedRegion, PAGE_WORDS};
use super::samples::Samples;
use crate::rng::Rng;

/// Repetitions, and stores of each.
const TIMES: usize = 25;
const STORES: usize = 256;
/// Work between two stores, ns: about what a page costs in a refill or drain.
pub(super) const WORK_NS: f64 = 20.0;

/// Nanoseconds that a store to a cold line takes beyond one to a line in the first-level cache, each after
/// [`WORK_NS`] of other work.
pub(super) fn cold(region: &MappedRegion) -> Samples {
    let words = region.words();
    let mut order: Vec<usize> = (0..region.page_count()).map(|page| page * PAGE_WORDS).collect();
    Rng::new(4, order.len() as u64).shuffle(&mut order);
    // Only what was written longest ago is stored to.
    for &page in &order {
        words[page..][..PAGE_WORDS].iter().for_each(|word| word.store(0, Relaxed));
    }
    let steps = steps_of(WORK_NS);
    let each = (order.len() / 2 / TIMES).clamp(1, STORES);
    let same = vec![order[0]; each];
    store(words, &same, steps);
    let mut next = order.chunks(each);
    Samples::take(TIMES, || {
        let cold = store(words, next.next().unwrap_or(&same), steps);
        cold - store(words, &same, steps)
    })
}

/// Nanoseconds a store.
fn store(words: &[AtomicU64], to: &[usize], steps: u32) -> f64 {
    let start = Instant::now();
    for &word in to {
        delay(steps);
        words[word].store(1, Relaxed);
    }
    start.elapsed().as_nanos() as f64 / to.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::region::Pages;
    use super::*;

    #[test]
    fn stores_are_timed_with_the_work_between_them_taken_out() {
        let region = MappedRegion::new(8 << 20, Pages::Small).unwrap();
        let spread = cold(&region).spread();
        assert_eq!(spread.samples, TIMES as u32);
        assert!(store(region.words(), &[0, PAGE_WORDS], steps_of(1000.0)) > 300.0);
    }
}
