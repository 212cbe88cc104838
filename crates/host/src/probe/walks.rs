//! Walks of page tables that TLBs do not spare: how much longer the same accesses take to pages of 4 KiB than to pages of 2 MiB.
//!
//! One line of each of so many small pages is read in random order, at the same places of two regions, one of either kind of pages. Caches
//! have as much to hold in both; what differs is walks. Where each read waits for the one before, a walk's whole latency is seen; where
//! none does, what a CPU that walks ahead leaves of it. Programs lie between the two.

use super::Result;
use super::chase::Chain;
use super::region::{LINE_WORDS, MappedRegion, PAGE_BYTES, PAGE_WORDS, Pages};
use super::samples::{SampleSpread, Samples};
use crate::rng::Rng;

/// Lines of a page.
const PAGE_LINES: u32 = (PAGE_WORDS / LINE_WORDS) as u32;
/// Rounds of a number of pages, each over both regions.
const ROUNDS: usize = 15;
/// Reads of a chase.
const STEPS: usize = 16_384;
/// Pages that a TLB's room is looked for among: from the least that any has to a good deal more than the largest.
const ROOM: [u32; 12] = [64, 128, 256, 512, 768, 1024, 1536, 2048, 2560, 3072, 4096, 6144];
/// Pages that no second-level TLB has room for, and whose entries the second-level cache has.
const BEYOND: u32 = 8192;
/// What walks cost is measured over so many pages, or as many as there are: 256 MiB, as programs have that ask for huge pages.
const WALKED: u32 = 65_536;
/// A walk of less than this is not told from noise, ns.
const SEEN_NS: f64 = 2.0;
/// Rooms of TLBs are multiples of this from here on.
const ROOM_STEP: f64 = 256.0;

/// What walks cost, ns an access to one of `pages`, beyond what the access costs in huge pages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageWalks {
    /// Pages of 4 KiB that were read from in turn, one line of each.
    pub pages: u64,
    /// Where each access waits for the one before.
    pub in_turn: SampleSpread,
    /// Where none does.
    pub at_once: SampleSpread,
}

/// What was measured of a TLB.
pub(super) struct Walked {
    /// Translations of small pages that it has room for.
    pub(super) entries: Result<f64>,
    pub(super) walks: PageWalks,
}

/// Two regions of the same places.
struct Regions<'r> {
    small: &'r MappedRegion,
    huge: &'r MappedRegion,
}

/// Walks over a small region beside `huge`, which has to be in huge pages.
pub(super) fn measure(huge: &MappedRegion) -> Result<Walked> {
    if huge.huge_share().is_none_or(|share| share < 0.95) {
        return Err("the kernel gave no pages of 2 MiB to compare with".into());
    }
    let pages = (huge.page_count() as u32).min(WALKED);
    if pages < BEYOND {
        return Err(format!("it takes {BEYOND} pages, and there is memory for {pages}"));
    }
    let small = MappedRegion::new(pages as usize * PAGE_BYTES, Pages::Small);
    let small = small.map_err(|error| format!("no memory in pages of 4 KiB: {error}"))?;
    let regions = Regions { small: &small, huge };
    let entries = regions.entries();
    let (in_turn, at_once) = regions.walks(pages);
    if in_turn.median() < SEEN_NS {
        return Err(format!("an access to one of {pages} small pages takes no longer than in huge pages"));
    }
    let walks = PageWalks { pages: pages.into(), in_turn: in_turn.spread(), at_once: at_once.spread() };
    Ok(Walked { entries, walks })
}

impl Regions<'_> {
    /// Room of the second-level TLB: so many pages, read in turn, that half of what all misses cost is seen.
    fn entries(&self) -> Result<f64> {
        let beyond = self.walks(BEYOND).0.median();
        if beyond < SEEN_NS {
            return Err(format!(
                "an access to one of {BEYOND} small pages takes no longer than in huge pages"
            ));
        }
        let costs: Vec<(f64, f64)> =
            ROOM.iter().map(|&pages| (f64::from(pages), self.walks(pages).0.median())).collect();
        room(&costs, beyond).ok_or_else(|| "walks cost no more beyond any number of pages".into())
    }

    /// What an access takes longer in small pages, waiting for the one before and not.
    fn walks(&self, pages: u32) -> (Samples, Samples) {
        let lines = lines(pages);
        let [mut small, mut huge] = [self.small, self.huge].map(|region| Chain::along(region, lines.clone()));
        let in_turn = Samples::take(ROUNDS, || small.walk_warm(STEPS) - huge.walk_warm(STEPS));
        (in_turn, Samples::take(ROUNDS, || small.read_at_once() - huge.read_at_once()))
    }
}

/// A line of each of the first `pages`, any of its page for else they had few sets of a cache among them, in random order.
fn lines(pages: u32) -> Vec<u32> {
    let mut rng = Rng::new(5, u64::from(pages));
    let mut lines: Vec<u32> =
        (0..pages).map(|page| page * PAGE_LINES + rng.below(PAGE_LINES.into()) as u32).collect();
    rng.shuffle(&mut lines);
    lines
}

/// The number of pages from which on an access costs more than half of what it costs beyond all room, from (pages, ns), ascending: to a
/// multiple of [`ROOM_STEP`], if it is that large. `None` where it is so for the first or never.
fn room(costs: &[(f64, f64)], beyond: f64) -> Option<f64> {
    let half = beyond / 2.0;
    // The last crossing: noise at few pages is none.
    let after = costs.iter().rposition(|&(_, ns)| ns <= half)? + 1;
    let (pages, ns) = costs[after - 1];
    let (more, most) = costs.get(after).copied().unwrap_or((f64::from(BEYOND), beyond));
    let crossing = pages + (more - pages) * (half - ns) / (most - ns).max(f64::EPSILON);
    Some(if crossing < ROOM_STEP { crossing.round() } else { (crossing / ROOM_STEP).round() * ROOM_STEP })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_where_half_of_a_walk_is_seen() {
        let costs =
            [(1024.0, 0.5), (1536.0, 2.1), (2048.0, 3.7), (2560.0, 8.0), (3072.0, 8.5), (4096.0, 9.0)];
        assert_eq!(room(&costs, 9.0), Some(2048.0));
        assert_eq!(room(&[(64.0, 0.0), (128.0, 10.0)], 10.0), Some(96.0));
        assert_eq!(room(&[(64.0, 9.0), (128.0, 10.0)], 10.0), None, "all have walks");
        assert_eq!(room(&[(64.0, 9.0), (6144.0, 0.0)], 10.0), Some(7168.0), "the largest of all");
    }

    #[test]
    fn lines_are_one_of_each_page() {
        let lines = lines(1000);
        let pages: std::collections::BTreeSet<u32> = lines.iter().map(|line| line / PAGE_LINES).collect();
        let places: std::collections::BTreeSet<u32> = lines.iter().map(|line| line % PAGE_LINES).collect();
        assert_eq!((pages.len(), places.len()), (1000, PAGE_LINES as usize));
    }

    #[test]
    fn what_is_measured_is_possible_or_there_is_a_reason() {
        let region = MappedRegion::new(BEYOND as usize * PAGE_BYTES, Pages::Huge).unwrap();
        match measure(&region) {
            Ok(Walked { entries, walks }) => {
                let room =
                    entries.map_or_else(|why| why.contains("pages"), |room| (1.0..=8192.0).contains(&room));
                assert!(room);
                assert!(walks.pages == u64::from(BEYOND) && walks.in_turn.median >= SEEN_NS);
            }
            Err(why) => assert!(why.contains("pages"), "{why}"),
        }
    }

    #[test]
    fn a_region_in_small_pages_is_nothing_to_compare_with() {
        let region = MappedRegion::new(64 << 20, Pages::Small).unwrap();
        assert!(measure(&region).is_err_and(|why| why.contains("no pages of 2 MiB")));
    }
}
