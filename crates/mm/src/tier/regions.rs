//! An address space as regions of about even use, each with a few pages that are asked in place of all: what is known of
//! memory that nobody walks. Regions that differ split, neighbours that are alike become one, so that there are many where use
//! changes and few where it does not.

use alloc::vec::Vec;

use super::ground::{Area, Ground, PageRange, areas};
use crate::ground::{PAGEBLOCK_PAGES, SpaceId, Vpn};

/// Heat of a region all of whose pages were accessed.
pub(super) const HEAT_MAX: u16 = 256;
/// What a reading weighs against all before it, as a shift: 1/2.
const READING_SHIFT: u32 = 1;
/// Pages of a region that are asked at once.
const PROBES: usize = 2;
/// Neighbours that differ by no more than this become one.
const ALIKE: u16 = HEAT_MAX / 16;
/// No region is smaller: a table of entries.
const SMALLEST: u32 = PAGEBLOCK_PAGES;

/// A page that is asked whether it was accessed.
#[derive(Clone, Copy, Debug)]
struct Probe {
    vpn: Vpn,
    /// Its mark was taken away at the last round, so that it says something of the time since.
    is_armed: bool,
}

/// Pages of about even use.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) range: PageRange,
    /// The share of its pages accessed between rounds, of [`HEAT_MAX`].
    pub(super) heat: u16,
    /// The share of its pages that was accessed and is on slow nodes, likewise: what there is to gain. (The product of both
    /// shares is not: where the hot pages were promoted, the rest is cold and slow.)
    pub(super) gain: u16,
    /// Readings so far.
    pub(super) readings: u16,
    /// Up to where it was swept for pages to promote.
    pub(super) swept: Vpn,
    probes: [Probe; PROBES],
}

impl Region {
    fn new(range: PageRange) -> Self {
        let probe = Probe { vpn: range.start, is_armed: false };
        Self { range, heat: 0, gain: 0, readings: 0, swept: range.start, probes: [probe; PROBES] }
    }

    fn part(&self, range: PageRange) -> Self {
        let swept = Vpn(self.swept.0.clamp(range.start.0, range.end.0));
        let probe = Probe { vpn: range.start, is_armed: false };
        Self { range, swept, probes: [probe; PROBES], ..*self }
    }

    /// Reads what is armed, arms what is not.
    pub(super) fn probe(&mut self, space: SpaceId, ground: &impl Ground, random: &mut impl FnMut() -> u64) {
        for index in 0..PROBES {
            let probe = self.probes[index];
            let vpn = if probe.is_armed {
                probe.vpn
            } else {
                Vpn(self.range.start.0 + (random() % u64::from(self.range.pages())) as u32)
            };
            let mut found = None;
            let one = PageRange { start: vpn, end: vpn.add(1) };
            ground.look(space, one, |seen| found = Some((seen.accessed, ground.is_fast(seen.node))));
            self.probes[index] = Probe { vpn, is_armed: !probe.is_armed };
            if probe.is_armed {
                let (accessed, fast) = found.unwrap_or((false, true));
                self.read(accessed, !fast);
            }
        }
    }

    fn read(&mut self, accessed: bool, slow: bool) {
        // The first readings are averaged, later ones push out old ones.
        let shift = READING_SHIFT + u32::from(self.readings >= 2) + u32::from(self.readings >= 8);
        let toward = |before: u16, is: bool| {
            let now = if is { HEAT_MAX } else { 0 };
            if self.readings == 0 { now } else { before - (before >> shift) + (now >> shift) }
        };
        (self.heat, self.gain) = (toward(self.heat, accessed), toward(self.gain, accessed && slow));
        self.readings = self.readings.saturating_add(1);
    }

    fn is_like(&self, other: &Self) -> bool {
        let is_near = |one: u16, two: u16| one.abs_diff(two) <= ALIKE;
        self.readings >= 4
            && other.readings >= 4
            && is_near(self.heat, other.heat)
            && is_near(self.gain, other.gain)
    }
}

/// The regions of an address space.
#[derive(Debug, Default)]
pub(super) struct Regions {
    pub(super) all: Vec<Region>,
}

impl Regions {
    /// Follows the areas as they are now: what is gone goes, what is new comes in pieces of `piece` pages. Of a region that is
    /// partly gone, or that areas share, each part goes on with what is known of the whole.
    pub(super) fn follow(&mut self, space: SpaceId, ground: &impl Ground, piece: u32) {
        let old = core::mem::take(&mut self.all);
        let mut old = old.into_iter().peekable();
        for Area { range, .. } in areas(ground, space).filter(|area| area.is_scanned) {
            while old.next_if(|region| region.range.end <= range.start).is_some() {}
            let mut at = range.start;
            while let Some(region) = old.peek().filter(|region| region.range.start < range.end) {
                let (start, end) = (region.range.start.max(range.start), region.range.end.min(range.end));
                let part = PageRange { start, end };
                let kept = if part == region.range { region.clone() } else { region.part(part) };
                let is_shared = region.range.end > range.end;
                self.fill(PageRange { start: at, end: start }, piece);
                self.all.push(kept);
                at = end;
                if is_shared {
                    break;
                }
                old.next();
            }
            self.fill(PageRange { start: at, end: range.end }, piece);
        }
    }

    fn fill(&mut self, range: PageRange, piece: u32) {
        let mut left = range;
        while left.pages() > 0 {
            let part = left.first(piece.max(SMALLEST));
            self.all.push(Region::new(part));
            left.start = part.end;
        }
    }

    /// Neighbours that are alike become one, of at most `largest` pages; then those in mixed use split, as long as there are fewer
    /// than `most`.
    pub(super) fn reshape(&mut self, largest: u32, most: usize) {
        let mut merged: Vec<Region> = Vec::with_capacity(self.all.len());
        for region in self.all.drain(..) {
            match merged.last_mut() {
                Some(last)
                    if last.range.end == region.range.start
                        && last.is_like(&region)
                        && last.range.pages() + region.range.pages() <= largest =>
                {
                    last.heat = last.heat.midpoint(region.heat);
                    last.gain = last.gain.midpoint(region.gain);
                    last.range.end = region.range.end;
                }
                _ => merged.push(region),
            }
        }
        let room = most.saturating_sub(merged.len());
        self.all = merged;
        self.split(room);
    }

    /// Regions that are neither hot nor cold all over, and have been looked at long enough to know, are halved.
    fn split(&mut self, room: usize) {
        let mut left = room;
        let mut split = Vec::with_capacity(self.all.len() + room.min(self.all.len()));
        for region in self.all.drain(..) {
            let is_mixed = region.heat > ALIKE && region.heat < HEAT_MAX - ALIKE && region.readings >= 6;
            if left == 0 || !is_mixed || region.range.pages() < 2 * SMALLEST {
                split.push(region);
                continue;
            }
            left -= 1;
            let middle = region.range.start.add(region.range.pages() / 2 / SMALLEST * SMALLEST);
            for (start, end) in [(region.range.start, middle), (middle, region.range.end)] {
                split.push(Region { readings: 2, ..region.part(PageRange { start, end }) });
            }
        }
        self.all = split;
    }

    /// Checks that regions cover the areas of `space` that are scanned and nothing else, none twice, none of them empty; and
    /// that what they point to is within them.
    #[cfg(test)]
    pub(super) fn check(&self, space: SpaceId, ground: &impl Ground) {
        let scanned = areas(ground, space).filter(|area| area.is_scanned).map(|area| area.range);
        let regions = self.all.iter().map(|region| region.range);
        assert!(regions.clone().all(|range| range.pages() > 0));
        assert_eq!(joined(regions), joined(scanned));
        for region in &self.all {
            assert!(region.range.start <= region.swept && region.swept <= region.range.end);
            let is_within = |vpn: Vpn| region.range.start <= vpn && vpn < region.range.end;
            assert!(region.probes.iter().all(|probe| !probe.is_armed || is_within(probe.vpn)));
            assert!(region.heat <= HEAT_MAX);
        }
    }
}

/// Ranges in their order, those that touch as one; ranges that overlap stay apart, so that they are like no areas.
#[cfg(test)]
fn joined(ranges: impl Iterator<Item = PageRange>) -> Vec<PageRange> {
    let mut joined: Vec<PageRange> = Vec::new();
    for range in ranges.filter(|range| range.pages() > 0) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}
