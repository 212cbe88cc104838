//! Freehold's promotion (`+promote`). It asks a few pages of each region of an address space in each round, so that it knows where memory in
//! use lies without walking it; where that is on slow nodes, it sweeps region by region, the densest first, and wants the
//! pages that two sweeps in a row found accessed (where nearly all that was asked is in use, one). It remembers the regions and how far it swept them, and goes on there.
//! What it may spend on looking is a share of one CPU's time, whatever there is to look at.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::ground::{Ground, PageRange, areas};
use super::hot::Hot;
use super::kmmscand::fast;
use super::list::WantedPage;
use super::regions::{HEAT_MAX, Regions};
use crate::ground::{Nanos, Node, PAGE_SIZE, PAGEBLOCK_PAGES, SpaceId, Vpn};
use crate::rules::revision::HotRule;

/// Regions of an address space, at most.
const REGIONS_MAX: usize = 1024;
/// Regions that a new area begins with, where it is large enough.
const REGIONS_FIRST: u64 = 128;
/// Pages of the smallest of them.
const FIRST_MIN: u64 = 8 * PAGEBLOCK_PAGES as u64;
/// A region that was merged is at most this part of the address space.
const LARGEST_SHARE: u64 = 32;
/// Regions with less to gain than this are not swept. One page of a cold region that was in use by chance is not so much.
const GAIN_MIN: u16 = 3 * HEAT_MAX / 16;
/// Regions of which so much is in use and slow, by so many readings, are swept once and not twice.
const DENSE: u16 = 7 * HEAT_MAX / 8;
const DENSE_READINGS: u16 = 4;
/// Readings without which a region's gain means nothing.
const READINGS_MIN: u16 = 2;
/// Pages swept at a time.
const STRIDE: u32 = 8 * PAGEBLOCK_PAGES;
/// What probing may take of the budget; the rest is for sweeps.
const PROBING_SHARE: u64 = 4;
/// What was not spent is kept for so many rounds: use that changes is found out at once, and then there is nothing to find.
const ROUNDS_SAVED: i64 = 20;
/// The list of pages to be moved is long enough to work on for so many rounds.
const ROUNDS_AHEAD: u64 = 8;
/// Bytes moved in a second, as a guess for how long a list is.
const MOVED_PER_SECOND: u64 = 1 << 30;

/// What looking may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// From one round to the next.
    pub period: Nanos,
    /// Thousandths of one CPU's time.
    pub permille: u64,
}

impl Budget {
    fn of_round(self) -> u64 {
        self.period.0 / 1000 * self.permille
    }
}

/// A range swept once, for the second time to come.
#[derive(Clone, Copy, Debug)]
struct Swept {
    range: PageRange,
    at: Nanos,
}

/// What is known of an address space.
#[derive(Debug)]
struct Known {
    space: SpaceId,
    regions: Regions,
    /// Where the next round goes on asking.
    next: usize,
    swept: VecDeque<Swept>,
    /// What its best region has to gain.
    best: u16,
    /// Strides that went to each node.
    strides: Vec<u64>,
    once: Hot,
}

/// The scanning half of freehold's promotion.
#[derive(Debug)]
pub struct Seeker {
    budget: Budget,
    known: VecDeque<Known>,
    /// Time that may be spent on looking now: what rounds allow, less what was spent. Below 0, it is made up for.
    credit: i64,
    random: u64,
}

impl Seeker {
    /// One that knows no address space. `seed` decides which pages it asks.
    pub fn new(budget: Budget, seed: u64) -> Self {
        Self {
            budget,
            known: VecDeque::new(),
            credit: budget.of_round() as i64 * ROUNDS_SAVED,
            random: seed | 1,
        }
    }

    /// `space` is born.
    pub fn enter(&mut self, space: SpaceId) {
        let once = Hot::new(HotRule::Second);
        let (regions, swept) = (Regions::default(), VecDeque::new());
        self.known.push_back(Known { space, regions, next: 0, swept, best: 0, strides: Vec::new(), once });
    }

    /// A round: pages that are hot are told to `want`, unless `waiting` pages are plenty already. Gives the pause until the
    /// next.
    pub fn round(
        &mut self,
        ground: &impl Ground,
        waiting: usize,
        want: &mut impl FnMut(WantedPage),
    ) -> Nanos {
        let start = ground.now();
        self.known.retain(|known| ground.is_alive(known.space));
        let allowed = self.budget.of_round();
        self.credit = (self.credit + allowed as i64).min(allowed as i64 * ROUNDS_SAVED);
        if self.credit <= 0 {
            return self.budget.period;
        }
        // A round does not take longer than its period.
        let now = (self.credit as u64).min(self.budget.period.0);
        self.ask(ground, start.0 + now.min(allowed) / PROBING_SHARE);
        let plenty = MOVED_PER_SECOND / PAGE_SIZE * self.budget.period.0 / 1_000_000_000 * ROUNDS_AHEAD;
        if (waiting as u64) < plenty {
            self.sweep(ground, start.0 + now, want);
        }
        self.credit -= ground.now().0.saturating_sub(start.0) as i64;
        self.budget.period
    }

    /// Asks regions of all address spaces until the time `until`; the next round goes on behind them.
    fn ask(&mut self, ground: &impl Ground, until: u64) {
        for _ in 0..self.known.len() {
            let Some(mut known) = self.known.pop_front() else { break };
            if !ground.may_look(known.space) {
                // Somebody changes its map: it keeps its place within its regions, and its turn passes.
                self.known.push_back(known);
                continue;
            }
            if known.next == 0 {
                known.prepare(ground);
            }
            let random = &mut self.random;
            let mut draw = || xorshift(random);
            while known.next < known.regions.all.len() && ground.now().0 < until {
                known.regions.all[known.next].probe(known.space, ground, &mut draw);
                known.next += 1;
            }
            known.rank();
            if known.next < known.regions.all.len() {
                // Its turn is not over.
                self.known.push_front(known);
                return;
            }
            known.next = 0;
            self.known.push_back(known);
            if ground.now().0 >= until {
                return;
            }
        }
    }

    /// Sweeps until the time `until`: first what was swept a round or more ago, then the regions with most to gain. Where there is
    /// no room for what it would find, it does not begin: what is swept once and never again would pile up.
    fn sweep(&mut self, ground: &impl Ground, until: u64, want: &mut impl FnMut(WantedPage)) {
        if !fast(ground).any(|node| ground.has_room(node, 1)) {
            return;
        }
        let period = self.budget.period;
        let waits = |known: &&mut Known| !known.swept.is_empty() && ground.may_look(known.space);
        for known in self.known.iter_mut().filter(waits) {
            while ground.now().0 < until && known.sweep_again(ground, period, want) {}
        }
        let gains = |known: &&mut Known| known.best >= GAIN_MIN && ground.may_look(known.space);
        while ground.now().0 < until {
            let best = self.known.iter_mut().filter(gains).max_by_key(|known| known.best);
            let Some(known) = best else { return };
            known.sweep_best(ground, want);
        }
    }
}

impl Known {
    /// Brings the regions up to the areas as they are.
    fn prepare(&mut self, ground: &impl Ground) {
        let scanned = areas(ground, self.space).filter(|area| area.is_scanned);
        let pages = scanned.map(|area| u64::from(area.range.pages())).sum::<u64>();
        let piece = (pages / REGIONS_FIRST).clamp(FIRST_MIN, u64::from(u32::MAX)) as u32;
        let piece = piece / PAGEBLOCK_PAGES * PAGEBLOCK_PAGES;
        self.regions.follow(self.space, ground, piece);
        let largest = (pages / LARGEST_SHARE).clamp(u64::from(piece), u64::from(u32::MAX)) as u32;
        self.regions.reshape(largest, REGIONS_MAX);
    }

    /// Where the next pages go: of the fast nodes with room, the one that had the fewest so far for each thread that runs
    /// there; if there is no room where threads run, the one with most room.
    fn target(&mut self, ground: &impl Ground) -> Option<Node> {
        self.strides.resize(usize::from(ground.nodes()), 0);
        let with_room = || fast(ground).filter(|&node| ground.has_room(node, 1));
        let threads = |node: Node| u64::from(ground.threads_on(self.space, node));
        let served = |node: &Node| (self.strides[usize::from(node.0)] + 1) * 1024 / threads(*node).max(1);
        let near = with_room().filter(|&node| threads(node) > 0).min_by_key(served);
        let target = near.or_else(|| with_room().max_by_key(|&node| ground.room(node)))?;
        self.strides[usize::from(target.0)] += 1;
        Some(target)
    }

    /// What the best region has to gain.
    fn rank(&mut self) {
        let known = self.regions.all.iter().filter(|region| region.readings >= READINGS_MIN);
        self.best = known.map(|region| region.gain).max().unwrap_or(0);
    }

    /// Sweeps for the second time what was swept a round or more ago; says whether there was any, and room for it.
    fn sweep_again(
        &mut self,
        ground: &impl Ground,
        period: Nanos,
        want: &mut impl FnMut(WantedPage),
    ) -> bool {
        let is_ripe = |swept: &&Swept| ground.now().0 >= swept.at.0 + period.0;
        let Some(swept) = self.swept.front().filter(is_ripe).copied() else { return false };
        let Some(node) = self.target(ground) else { return false };
        self.swept.pop_front();
        let space = self.space;
        look(&mut self.once, space, ground, swept.range, &mut |vpn| want(WantedPage { space, vpn, node }));
        true
    }

    /// Sweeps a stride of the region with most to gain for the first time. Where nearly all that was asked is in use and slow,
    /// that stands for the first access, and this sweep finds the second.
    fn sweep_best(&mut self, ground: &impl Ground, want: &mut impl FnMut(WantedPage)) {
        let known = self.regions.all.iter_mut().filter(|region| region.readings >= READINGS_MIN);
        let Some(region) = known.max_by_key(|region| region.gain) else { return };
        let range = PageRange { start: region.swept, end: region.range.end }.first(STRIDE);
        let is_dense = region.gain >= DENSE && region.readings >= DENSE_READINGS;
        region.swept = range.end;
        if region.swept >= region.range.end {
            // Until it is asked again there is nothing more to find in it.
            (region.swept, region.gain) = (region.range.start, 0);
        }
        self.rank();
        let target = if is_dense { self.target(ground) } else { None };
        let Some(node) = target else {
            look(&mut self.once, self.space, ground, range, &mut |_| {});
            return self.swept.push_back(Swept { range, at: ground.now() });
        };
        let space = self.space;
        ground.look(space, range, |seen| {
            if seen.accessed && !ground.is_fast(seen.node) {
                want(WantedPage { space, vpn: seen.vpn, node });
            }
        });
    }
}

/// Looks at slow pages of `range`; those found accessed twice in a row are hot.
fn look(once: &mut Hot, space: SpaceId, ground: &impl Ground, range: PageRange, hot: &mut impl FnMut(Vpn)) {
    ground.look(space, range, |seen| {
        if !ground.is_fast(seen.node) && once.is_hot(seen) {
            hot(seen.vpn);
        }
    });
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
