//! What reclaim and writing take of a scene's CPU, on which an instruction takes a nanosecond. Reclaim by the page was counted; what
//! comes on top was read off traces of exec-map-classic, file-loop-classic, file-loop-mglru, min-free-set and swappiness-0-classic on 6.1 to 7.2 (docs/reclaim.md#kswapds-turns).

use mm::bare::Moment;
use mm::{Batch, Chore, Span, SwapIo, Traced};

/// For a folio that is looked at, and for each of its pages: 2,150 for a single page of 6.12 with cgroups (2,233 by generations, 2,073 on the classic lists),
/// 6,775 for 32 pages of a file in 6.18.
const A_FOLIO: u64 = 2_001;
const A_PAGE: u64 = 149;

/// For a page that is to leave the active list, 650 to 1,190.
const AN_ACTIVE_PAGE: u64 = 900;

/// What is added where a page goes to swap, 10,624 in all.
const TO_SWAP: u64 = 8_391;

/// kswapd's way to its first batch, and from the last one to sleep: 2,000 and 6,000. (In scenes without swap the first takes 14,000, which is not known why.)
pub(super) const A_RUN: u64 = 8_000;

/// The same for a request that reclaims: 2,000 and 2,000.
const A_REQUEST: u64 = 4_000;

/// For a folio that the flusher writes to a disk that takes no time, and for each of its pages: 1,024 pages took 4.53 ms one by one (6.12) and 2.47 ms by
/// sixteens (6.18; 2.58 in 7.2) in traces of write-limit-mglru.
pub(super) const A_WRITTEN_FOLIO: u64 = 2_150;
pub(super) const A_WRITTEN_PAGE: u64 = 2_280;

/// What of `moment` takes time of the CPU, in ns.
pub(super) fn of(moment: Moment) -> Option<u64> {
    match moment {
        Moment::Spends(Chore::ReclaimPage, times) => Some(A_FOLIO * u64::from(times)),
        Moment::Traces(Traced::Batch(batch)) => Some(of_batch(batch)),
        Moment::Enters(Span::DirectReclaim) => Some(A_REQUEST),
        Moment::Swaps(SwapIo::Write) => Some(TO_SWAP),
        _ => None,
    }
}

fn of_batch(batch: Batch) -> u64 {
    let a_page = if batch.event.ends_with("shrink_active") { AN_ACTIVE_PAGE } else { A_PAGE };
    a_page * u64::from(batch.taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(event: &'static str, taken: u32) -> Moment {
        let lru = "nr_inactive_file";
        Moment::Traces(Traced::Batch(Batch {
            event,
            lru,
            scanned: taken,
            taken,
            gone: taken,
            active: 0,
            priority: 12,
        }))
    }

    #[test]
    fn a_folio_of_32_pages_takes_what_was_counted() {
        let folio = of(Moment::Spends(Chore::ReclaimPage, 1)).unwrap();
        assert_eq!(folio + of(batch("mm_vmscan_lru_shrink_inactive", 32)).unwrap(), 6_769);
        assert_eq!(folio + of(batch("mm_vmscan_lru_shrink_inactive", 1)).unwrap(), 2_150);
        assert_eq!(of(batch("mm_vmscan_lru_shrink_active", 2)), Some(1_800));
        assert_eq!(of(Moment::Enters(Span::PageAlloc)), None);
    }
}
