//! What kmmscand keeps of an address space (`kmmscand_mm_slot`), and the four cases by which the period of its scans and
//! their size change with what they find.

use alloc::vec::Vec;

use super::feedback::Feedback;
use super::ground::Ground;
use super::hot::Hot;
use crate::ground::{Nanos, Node, SpaceId, Vpn};
use crate::rules::revision::Revision;

/// Percent by which a period shrinks where scans stay useful, and grows where they stay useless.
const PERIOD_TUNE_PERCENT: u64 = 15;
/// A period changes by this many bits where usefulness begins or ends. (The patch's comment says 2 << 3; its code shifts.)
const PERIOD_SHIFT: u32 = 3;
/// A size changes by this many bits.
const SIZE_SHIFT: u32 = 1;

/// An address space that is scanned.
#[derive(Debug)]
pub struct Slot {
    /// Which.
    pub space: SpaceId,
    /// Where the next scan begins.
    pub(super) address: Vpn,
    /// From the end of a scan to the next one.
    pub(super) period: Nanos,
    /// Bytes of addresses of the next scan; all where the revision does not throttle.
    pub(super) size: u64,
    /// Useful pages of the last scan (the post's X).
    pub(super) useful: u64,
    /// When the next scan is due.
    pub(super) next: Nanos,
    /// Multiplies the period; 0: the address space is not scanned (V3's `prctl`).
    pub(super) scalar: u8,
    pub(super) hot: Hot,
    /// Accessed pages of each fast node in the scan that is under way.
    pub(super) accessed: Vec<u64>,
    /// The fast node that had most of them in the last scan that saw any.
    pub(super) target: Option<Node>,
    /// What period, size and next scan would be with each watched knob at its default, in the scanner's order of them.
    pub(super) by_default: Vec<Slot>,
}

impl Slot {
    /// The slot of an address space that is born `now`.
    pub fn new(space: SpaceId, revision: &Revision, now: Nanos, nodes: u16) -> Self {
        Self {
            space,
            address: Vpn(0),
            period: revision.period.first,
            size: revision.size.map_or(u64::MAX, |size| size.first),
            useful: 0,
            next: Nanos(now.0 + revision.delay.0),
            scalar: 1,
            hot: Hot::new(revision.hot),
            accessed: alloc::vec![0; usize::from(nodes)],
            target: None,
            by_default: Vec::new(),
        }
    }

    /// Its period is multiplied from now on; 0 takes it out. V3 checks no range.
    pub fn set_scalar(&mut self, scalar: u8) {
        self.scalar = scalar;
    }

    /// From the end of a scan to the next one.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Bytes of addresses of the next scan.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A scan has ended: where the address space's fast pages were accessed most is where others are to go.
    pub(super) fn note_target(&mut self, ground: &impl Ground) {
        let accessed = |node: &Node| self.accessed[usize::from(node.0)];
        let most = (0..ground.nodes()).rev().map(Node).max_by_key(accessed);
        self.target = most.filter(|node| accessed(node) > 0).or(self.target);
    }

    /// A scan ended `now` that found so many useful pages (the post's Y).
    pub(super) fn scanned(&mut self, found: u64, now: Nanos, revision: &Revision, feedback: &Feedback) {
        let smoothed = if revision.is_smoothed { found + (self.useful >> 4) } else { found };
        let useful = if smoothed < revision.ignored_below { 0 } else { smoothed };
        let (period, size) = tuned((self.period, self.size), (self.useful > 0, useful > 0));
        self.period = Nanos(period.0.clamp(revision.period.min.0, revision.period.max.0));
        if let Some(bounds) = revision.size {
            self.size = size.clamp(bounds.min, bounds.max);
        }
        if revision.has_feedback {
            self.period = feedback.stretch(self.period);
        }
        self.useful = useful;
        self.next = Nanos(now.0 + self.period.0 * u64::from(self.scalar));
    }
}

/// Period and size after a scan: by whether the last one (X) and this one (Y) were useful.
fn tuned((period, size): (Nanos, u64), useful: (bool, bool)) -> (Nanos, u64) {
    let percent = |percent: u64| Nanos(period.0 * percent / 100);
    match useful {
        (false, false) => (percent(100 + PERIOD_TUNE_PERCENT), size >> SIZE_SHIFT),
        // The largest, whatever it is.
        (false, true) => (Nanos(period.0 >> PERIOD_SHIFT), u64::MAX),
        (true, false) => (Nanos(period.0 << PERIOD_SHIFT), size),
        (true, true) => (percent(100 - PERIOD_TUNE_PERCENT), size.saturating_mul(1 << SIZE_SHIFT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::{V0, V0_NOTHROTTLE, V1, V3};

    const MS: u64 = 1_000_000;
    const MIB: u64 = 1 << 20;

    fn after(revision: &Revision, finds: &[u64]) -> (u64, u64) {
        let mut slot = Slot::new(SpaceId(0), revision, Nanos(0), 1);
        for found in finds {
            slot.scanned(*found, Nanos(0), revision, &Feedback::default());
        }
        (slot.period.0 / MS, slot.size / MIB)
    }

    #[test]
    fn the_four_cases() {
        assert_eq!(after(&V0, &[]), (2000, 4096));
        assert_eq!(after(&V0, &[0]), (2300, 2048), "X = 0, Y = 0");
        assert_eq!(after(&V0, &[500]), (400, 16384), "X = 0, Y > 0: 250 ms is below the least");
        assert_eq!(after(&V0, &[500, 0]), (3200, 16384), "X > 0, Y = 0");
        assert_eq!(after(&V0, &[500, 0, 500, 500]), (400, 16384), "X > 0, Y > 0");
    }

    #[test]
    fn values_stay_within_their_bounds() {
        assert_eq!(after(&V0, &[0; 40]), (5000, 512));
        assert_eq!(after(&V3, &[0; 40]), (5000, 256));
        assert_eq!(after(&V3, &[1000; 40]), (600, 4096));
    }

    #[test]
    fn few_useful_pages_are_none() {
        assert_eq!(after(&V0, &[99]), after(&V0, &[0]));
        assert_ne!(after(&V0, &[100]), after(&V0, &[0]));
        assert_eq!(after(&V1, &[255]), after(&V1, &[0]));
        assert_ne!(after(&V1, &[256]), after(&V1, &[0]));
        // A 16th of the last scan's is added: 240 + 16.
        let mut slot = Slot::new(SpaceId(0), &V3, Nanos(0), 1);
        slot.scanned(256, Nanos(0), &V3, &Feedback::default());
        slot.scanned(240, Nanos(0), &V3, &Feedback::default());
        assert_eq!(slot.useful, 256);
    }

    #[test]
    fn without_throttling_the_size_is_all() {
        let mut slot = Slot::new(SpaceId(0), &V0_NOTHROTTLE, Nanos(0), 1);
        slot.scanned(0, Nanos(0), &V0_NOTHROTTLE, &Feedback::default());
        assert_eq!((slot.size, slot.period), (u64::MAX, Nanos(2300 * MS)));
    }

    #[test]
    fn failing_migrations_stretch_periods_past_their_bounds() {
        let mut feedback = Feedback::default();
        (0..1024).for_each(|_| feedback.failed());
        let mut slot = Slot::new(SpaceId(0), &V3, Nanos(0), 1);
        (0..20).for_each(|_| slot.scanned(0, Nanos(7), &V3, &feedback));
        assert_eq!(slot.next, Nanos(7 + 55_000 * MS));
    }
}
