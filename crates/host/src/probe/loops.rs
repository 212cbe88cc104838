//! Pages that come and go, as programs have them: more than any cache holds, each written to once, and all given back. What a page takes
//! so is the sum of much that cannot be seen by itself; a profile's parts are settled by it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::Result;
use super::region::{MappedRegion, PAGE_BYTES, PAGE_WORDS, Sharing};
use super::samples::{SampleSpread, Samples};
use crate::clock::thread_time;

/// Rounds of a step, after one that finds page lists as others left them and memory that a hypervisor may not have given yet.
const ROUNDS: usize = 5;

/// What such loops took, ns of the task's own time a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageLoops {
    /// Bytes that a round maps.
    pub bytes: usize,
    /// The first write to private anonymous memory.
    pub private: SampleSpread,
    /// Unmapping that.
    pub private_gone: SampleSpread,
    /// The first write to shared anonymous memory.
    pub shared: SampleSpread,
}

/// Rounds so far.
#[derive(Default)]
pub(super) struct Rounds {
    private: Vec<f64>,
    private_gone: Vec<f64>,
    shared: Vec<f64>,
}

/// What a page of a round took, ns.
struct Round {
    comes: f64,
    goes: f64,
}

impl Rounds {
    /// Some rounds more, of `bytes` each.
    pub(super) fn go_on(&mut self, bytes: usize) -> Result<()> {
        for sharing in [Sharing::Private, Sharing::Shared] {
            round(bytes, sharing)?;
            for _ in 0..ROUNDS {
                let Round { comes, goes } = round(bytes, sharing)?;
                match sharing {
                    Sharing::Private => {
                        self.private.push(comes);
                        self.private_gone.push(goes);
                    }
                    Sharing::Shared => self.shared.push(comes),
                }
            }
        }
        Ok(())
    }

    /// What all of them say; `None` if there were none.
    pub(super) fn end(self, bytes: usize) -> Option<PageLoops> {
        let spread = |rounds: Vec<f64>| (!rounds.is_empty()).then(|| Samples::of(rounds).spread());
        let (private, private_gone, shared) =
            (spread(self.private)?, spread(self.private_gone)?, spread(self.shared)?);
        Some(PageLoops { bytes, private, private_gone, shared })
    }
}

fn round(bytes: usize, sharing: Sharing) -> Result<Round> {
    let region = MappedRegion::untouched(bytes, sharing)
        .map_err(|error| format!("{} MiB cannot be mapped: {error}", bytes >> 20))?;
    let pages = region.page_count() as f64;
    let each = |took: Duration| took.as_nanos() as f64 / pages;
    let start = thread_time();
    for word in region.words().iter().step_by(PAGE_WORDS) {
        word.store(1, Relaxed);
    }
    let written = thread_time();
    drop(region);
    let gone = thread_time();
    Ok(Round { comes: each(written.saturating_sub(start)), goes: each(gone.saturating_sub(written)) })
}

/// Bytes of a round beside a last-level cache of `l3` bytes, where `available` are to be had: twice what the cache holds.
pub(super) fn bytes_beyond(l3: u64, available: u64) -> usize {
    let wanted = (2 * l3).clamp(64 << 20, 512 << 20);
    let possible = (available / 8).max(8 << 20);
    wanted.min(possible).next_multiple_of(PAGE_BYTES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_of_all_kinds_and_say_what_they_took() {
        let mut rounds = Rounds::default();
        rounds.go_on(4 << 20).unwrap();
        rounds.go_on(4 << 20).unwrap();
        let loops = rounds.end(4 << 20).unwrap();
        assert_eq!(loops.bytes, 4 << 20);
        for spread in [loops.private, loops.private_gone, loops.shared] {
            assert_eq!(spread.samples as usize, 2 * ROUNDS);
            assert!((1.0..1e6).contains(&spread.median), "{spread:?}");
        }
        assert!(Rounds::default().end(4 << 20).is_none());
    }

    #[test]
    fn a_round_is_larger_than_the_cache_where_there_is_memory() {
        assert_eq!(bytes_beyond(32 << 20, 1 << 40), 64 << 20);
        assert_eq!(bytes_beyond(200 << 20, 1 << 40), 400 << 20);
        assert_eq!(bytes_beyond(1 << 30, 1 << 40), 512 << 20);
        assert_eq!(bytes_beyond(32 << 20, 256 << 20), 32 << 20);
        assert_eq!(bytes_beyond(32 << 20, 0), 8 << 20);
    }
}
