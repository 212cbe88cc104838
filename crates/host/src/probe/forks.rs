//! What a page adds to a fork: one of a process with more pages, less one with fewer, in CPU time of the process that forks. The pages' tables and
//! descriptors have sunk out of the nearer caches, as those of a program that has done something else since.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::Result;
use super::region::{LINE_WORDS, MappedRegion, PAGE_BYTES, Pages};
use super::samples::{SampleSpread, Samples};
use crate::clock::thread_time;

/// Rounds, each with a fork of either size.
const ROUNDS: usize = 9;
/// Bytes of the smaller process's region, and of the larger one's where there is memory.
const FEW_BYTES: usize = 16 << 20;
const MANY_BYTES: usize = 144 << 20;
/// Written before each fork, at most: more than what is near.
const SINK_BYTES: usize = 256 << 20;

/// What each page of 4 KiB adds to a fork, its part of page tables with it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForkSlope {
    /// Bytes of private memory of the two processes that were compared.
    pub bytes: [usize; 2],
    /// ns a page.
    pub page: SampleSpread,
}

/// Measured where `available` bytes are to be had; `sink` is written to so that caches lose the rest.
pub(super) fn measure(sink: &MappedRegion, available: u64) -> Result<ForkSlope> {
    let many_bytes = MANY_BYTES.min(available as usize / 4 / FEW_BYTES * FEW_BYTES);
    if many_bytes < 2 * FEW_BYTES {
        return Err(format!("it takes {} MiB of memory to be had", (8 * FEW_BYTES) >> 20));
    }
    let away = sink.keep_from_children();
    away.map_err(|error| format!("the kernel copies all memory to children: {error}"))?;
    let pages = ((many_bytes - FEW_BYTES) / PAGE_BYTES) as f64;
    let mut each = vec![];
    for _ in 0..ROUNDS {
        let (few, many) = (fork_of(FEW_BYTES, sink)?, fork_of(many_bytes, sink)?);
        each.push((many.as_nanos() as f64 - few.as_nanos() as f64) / pages);
    }
    Ok(ForkSlope { bytes: [FEW_BYTES, many_bytes], page: Samples::of(each).spread() })
}

/// The forking thread's CPU time in a fork of this process with so many bytes more.
fn fork_of(bytes: usize, sink: &MappedRegion) -> Result<Duration> {
    let region = MappedRegion::new(bytes, Pages::Small)
        .map_err(|error| format!("{} MiB cannot be mapped: {error}", bytes >> 20))?;
    let words = SINK_BYTES.min(sink.bytes()) / 8;
    sink.words()[..words].iter().step_by(LINE_WORDS).for_each(|word| word.store(2, Relaxed));
    let start = thread_time();
    // SAFETY: the child calls nothing but `_exit`, which any thread's child may.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the process at once; no destructor and no buffer of the parent's is touched.
        unsafe { libc::_exit(0) };
    }
    let took = thread_time().saturating_sub(start);
    drop(region);
    if child < 0 {
        return Err(format!("fork: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the child is this call's own, and its status is not asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_pages_take_longer_to_fork() {
        let sink = MappedRegion::new(8 << 20, Pages::Small).unwrap();
        let slope = measure(&sink, 1 << 40).unwrap();
        assert_eq!((slope.bytes, slope.page.samples as usize), ([FEW_BYTES, MANY_BYTES], ROUNDS));
        assert!(slope.page.median > 0.0, "{slope:?}");
        assert!(measure(&sink, 64 << 20).is_err_and(|why| why.contains("128 MiB")));
        let least = measure(&sink, (128 << 20) + 4096).unwrap();
        assert_eq!(least.bytes, [FEW_BYTES, 2 * FEW_BYTES]);
    }
}
