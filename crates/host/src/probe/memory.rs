//! One CPU's dealings with memory that is in no cache: clearing, copying, reading and writing pages.
//!
//! Every repetition takes the next part of a region several times the size of the last-level cache, so that nothing is
//! visited twice in a while.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::region::{MappedRegion, PAGE_BYTES, PAGE_WORDS};
use super::samples::Samples;
use super::string;
use crate::rng::Rng;

/// Repetitions.
const TIMES: usize = 25;
/// Pages of a repetition, at most.
const PAGES: usize = 1024;

/// GB/s of clearing pages in random order.
pub(super) fn clear(region: &MappedRegion) -> Samples {
    let order = shuffled(region.page_count());
    let each = (order.len() / TIMES).clamp(1, PAGES);
    let mut next = order.chunks(each).cycle();
    gbps(each * PAGE_BYTES, || {
        next.next().into_iter().flatten().for_each(|&page| string::clear(region, page));
    })
}

/// Nanoseconds of clearing a page of the first `pages`, over and over.
pub(super) fn clear_warm(region: &MappedRegion, pages: usize) -> Samples {
    let once = || {
        let start = Instant::now();
        (0..pages).for_each(|page| string::clear(region, page));
        start.elapsed().as_nanos() as f64 / pages.max(1) as f64
    };
    (0..3).for_each(|_| (0..pages).for_each(|page| string::clear(region, page)));
    Samples::take(101, once)
}

/// GB/s of copying pages of one half to pages of the other, both in random order.
pub(super) fn copy(region: &MappedRegion) -> Samples {
    let half = region.page_count() / 2;
    let (from, to) = (shuffled(half), shuffled(half));
    let pairs: Vec<(usize, usize)> =
        from.into_iter().zip(to.into_iter().rev().map(|page| page + half)).collect();
    let each = (pairs.len() / TIMES).clamp(1, PAGES);
    let mut next = pairs.chunks(each).cycle();
    gbps(each * PAGE_BYTES, || {
        next.next().into_iter().flatten().for_each(|&(from, to)| string::copy(region, from, to));
    })
}

/// GB/s of reading in sequence.
pub(super) fn read(region: &MappedRegion) -> Samples {
    let chunk = chunk_pages(region) * PAGE_WORDS;
    let mut next = region.words().chunks_exact(chunk).cycle();
    gbps(chunk * 8, || {
        let words = next.next().unwrap_or_default();
        black_box(sum(words));
    })
}

/// Reads every word; four sums, so that no addition waits for the one before.
pub(super) fn sum(words: &[std::sync::atomic::AtomicU64]) -> u64 {
    let mut sums = [0u64; 4];
    for four in words.chunks_exact(4) {
        for (sum, word) in sums.iter_mut().zip(four) {
            *sum = sum.wrapping_add(word.load(Relaxed));
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// GB/s of writing in sequence by ordinary stores.
pub(super) fn write(region: &MappedRegion) -> Samples {
    let chunk = chunk_pages(region) * PAGE_WORDS;
    let mut next = region.words().chunks_exact(chunk).cycle();
    gbps(chunk * 8, || {
        for word in next.next().unwrap_or_default() {
            word.store(1, Relaxed);
        }
    })
}

/// Pages of a repetition that goes over a region in sequence.
fn chunk_pages(region: &MappedRegion) -> usize {
    (region.page_count() / TIMES).clamp(1, PAGES)
}

fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    Rng::new(2, count as u64).shuffle(&mut order);
    order
}

fn gbps(bytes: usize, mut work: impl FnMut()) -> Samples {
    Samples::take(TIMES, || {
        let start = Instant::now();
        work();
        bytes as f64 / (start.elapsed().as_nanos().max(1) as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::super::region::Pages;
    use super::*;

    #[test]
    fn speeds_and_walks_are_positive_on_a_small_region() {
        let region = MappedRegion::new(4 << 20, Pages::Small).unwrap();
        for samples in [clear(&region), copy(&region), read(&region), write(&region), clear_warm(&region, 9)]
        {
            assert!(samples.median() > 0.0);
        }
    }
}
