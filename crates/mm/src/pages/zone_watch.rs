//! What a zone's marks and its reserve for others would be with a knob at its default, kept beside those in force on
//! machines that watch knobs ([`Machine::WATCHES_KNOBS`]) and compared wherever free memory is held against a mark.
//!
//! Marks are added up and subtracted on their way to a comparison (a mark and a gap, the distance of two marks), so a
//! [`Level`] remembers of which marks it is made. Where nothing is watched, that is never read.

use alloc::boxed::Box;
use core::ops::{Add, Sub};

use crate::ground::{AtomicU32, Machine, Relaxed, Topology, ZoneKind};
use crate::pages::watermark::{PROTECTION_COLUMNS, Watermarks, protection, watermarks};
use crate::pages::zone::Zone;
use crate::rules::knobs::{Knob, KnobUse, Knobs, Margin};
use crate::rules::policy::{MarkDistanceRule, Rules};

/// Pages that are to stay free: a sum of marks and of fixed amounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Level {
    pub(crate) pages: u32,
    /// How often the min, the low, the high and the promo mark are in it.
    of: [i8; 4],
}

impl Level {
    pub(crate) const fn min(pages: u32) -> Self {
        Self { pages, of: [1, 0, 0, 0] }
    }

    pub(crate) const fn low(pages: u32) -> Self {
        Self { pages, of: [0, 1, 0, 0] }
    }

    pub(crate) const fn high(pages: u32) -> Self {
        Self { pages, of: [0, 0, 1, 0] }
    }

    pub(crate) const fn promo(pages: u32) -> Self {
        Self { pages, of: [0, 0, 0, 1] }
    }

    /// What it would be if the marks `now` were `other`.
    fn with(self, now: &Watermarks, other: &Watermarks) -> u32 {
        let shifts =
            [(now.min, other.min), (now.low, other.low), (now.high, other.high), (now.promo, other.promo)];
        let shift =
            |(times, (now, other)): (i8, (u32, u32))| i64::from(times) * (i64::from(other) - i64::from(now));
        let shifted = i64::from(self.pages) + self.of.into_iter().zip(shifts).map(shift).sum::<i64>();
        shifted.clamp(0, u32::MAX.into()) as u32
    }
}

impl Add<u32> for Level {
    type Output = Self;

    fn add(self, pages: u32) -> Self {
        Self { pages: self.pages + pages, ..self }
    }
}

impl Add for Level {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let of = core::array::from_fn(|mark| self.of[mark] + other.of[mark]);
        Self { pages: self.pages + other.pages, of }
    }
}

impl Sub for Level {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let of = core::array::from_fn(|mark| self.of[mark] - other.of[mark]);
        Self { pages: self.pages - other.pages, of }
    }
}

/// Knobs that marks follow from.
pub(crate) const MARK_KNOBS: [Knob; 3] =
    [Knob::MinFreeKbytes, Knob::WatermarkScaleFactor, Knob::TransparentHugepage];

/// Whether marks follow from `knob` under `rules` with the values of `knobs`: khugepaged's wish counts only where nobody
/// set `min_free_kbytes`.
pub(crate) fn makes_marks(knob: Knob, rules: &Rules, knobs: &Knobs) -> bool {
    match knob {
        Knob::MinFreeKbytes => true,
        Knob::WatermarkScaleFactor => rules.zone.mark_distance == MarkDistanceRule::Scaled,
        Knob::TransparentHugepage => knobs.get(Knob::MinFreeKbytes) == 0,
        _ => false,
    }
}

/// The knob by which a zone of `kind` keeps memory from requests that could use a higher one.
fn reserve_knob(kind: ZoneKind) -> Option<Knob> {
    match kind {
        ZoneKind::Dma => Some(Knob::LowmemReserveDma),
        ZoneKind::Dma32 => Some(Knob::LowmemReserveDma32),
        ZoneKind::Normal => Some(Knob::LowmemReserveNormal),
        ZoneKind::HighMem | ZoneKind::Movable => None,
    }
}

/// Figures that hold with one knob at its default; on while the knob is watched.
#[derive(Debug)]
struct ByDefault<const N: usize> {
    is_on: AtomicU32,
    pages: [AtomicU32; N],
}

impl<const N: usize> Default for ByDefault<N> {
    fn default() -> Self {
        Self { is_on: AtomicU32::new(0), pages: core::array::from_fn(|_| AtomicU32::new(0)) }
    }
}

impl<const N: usize> ByDefault<N> {
    fn set(&self, pages: Option<[u32; N]>) {
        self.is_on.store(u32::from(pages.is_some()), Relaxed);
        for (slot, pages) in self.pages.iter().zip(pages.into_iter().flatten()) {
            slot.store(pages, Relaxed);
        }
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Relaxed) == 1
    }

    fn get(&self) -> Option<[u32; N]> {
        let pages = || core::array::from_fn(|index| self.pages[index].load(Relaxed));
        self.is_on().then(pages)
    }
}

/// What one zone keeps.
#[derive(Debug, Default)]
pub(crate) struct ZoneWatch {
    marks: [ByDefault<4>; MARK_KNOBS.len()],
    reserve: ByDefault<PROTECTION_COLUMNS>,
    /// Whether any of these is on: each request asks.
    is_any_on: AtomicU32,
}

impl ZoneWatch {
    /// One, where the machine watches.
    pub(crate) fn new<M: Machine>() -> Option<Box<Self>> {
        M::WATCHES_KNOBS.then(Box::default)
    }
}

impl<M: Machine> Zone<M> {
    /// Knobs have changed: what the zone's marks and its reserve would be by default is computed anew.
    pub(crate) fn rewatch(&self, topology: &Topology, rules: &Rules, knobs: &Knobs) {
        let Some(watch) = &self.watch else { return };
        for (slot, knob) in watch.marks.iter().zip(MARK_KNOBS) {
            let is_read = knobs.is_set(knob) && makes_marks(knob, rules, knobs);
            slot.set(is_read.then(|| {
                let by_default = knobs.with_default(knob);
                let marks = watermarks(topology, &by_default, rules, self.kind, self.managed);
                [marks.min, marks.low, marks.high, marks.promo]
            }));
        }
        let knob = reserve_knob(self.kind).filter(|&knob| knobs.is_set(knob));
        let node = &topology.nodes[usize::from(self.node.0)];
        watch.reserve.set(knob.map(|knob| protection(node, &knobs.with_default(knob), self.kind)));
        let is_any_on = watch.marks.iter().any(ByDefault::is_on) || watch.reserve.is_on();
        watch.is_any_on.store(is_any_on.into(), Relaxed);
    }

    /// The marks with each watched knob at its default, without boost.
    fn marks_by_default(&self) -> impl Iterator<Item = (Knob, Watermarks)> {
        let watched = self.watch.iter().flat_map(|watch| watch.marks.iter().zip(MARK_KNOBS));
        watched.filter_map(|(slot, knob)| {
            let [min, low, high, promo] = slot.get()?;
            Some((knob, Watermarks { min, low, high, promo }))
        })
    }

    /// Decides by the zone's marks, boost apart; `decision` must have no effect.
    #[inline]
    pub fn decide_by_marks<D: PartialEq>(&self, machine: &M, decision: impl Fn(Watermarks) -> D) -> D {
        let made = decision(self.watermarks());
        if M::WATCHES_KNOBS {
            for (knob, marks) in self.marks_by_default() {
                machine.knob_used(knob, KnobUse::of(&made, &decision(marks)));
            }
        }
        made
    }

    /// Decides by the zone's marks, boost apart, and by what it keeps from requests up to `highest`; `decision` must have no
    /// effect.
    #[inline]
    pub fn decide_by_kept<D: PartialEq>(
        &self,
        machine: &M,
        highest: ZoneKind,
        decision: impl Fn(Watermarks, u32) -> D,
    ) -> D {
        let kept = self.protection()[highest.index()];
        if M::WATCHES_KNOBS {
            if let Some((knob, other)) = self.kept_by_default(kept, highest) {
                let marks = self.watermarks();
                machine.knob_used(knob, KnobUse::of(&decision(marks, kept), &decision(marks, other)));
            }
        }
        self.decide_by_marks(machine, |marks| decision(marks, kept))
    }

    /// What the zone would keep from requests up to `highest` by default, where it keeps `kept`. What a low zone has learned to
    /// keep stays, where that is more than Linux's.
    fn kept_by_default(&self, kept: u32, highest: ZoneKind) -> Option<(Knob, u32)> {
        let other = self.watch.as_ref()?.reserve.get()?[highest.index()];
        let has_learned = kept > self.least_protection(highest);
        Some((reserve_knob(self.kind)?, if has_learned { kept.max(other) } else { other }))
    }

    /// `seen` pages were held against `level` and what is `kept` from requests up to `highest`: tells what the default of
    /// each knob would have decided. `decision` gets both figures and must have no effect.
    #[inline]
    pub(crate) fn watch_level(
        &self,
        machine: &M,
        seen: u32,
        held: (Level, u32, ZoneKind),
        decision: impl Fn(u32, u32) -> bool,
    ) {
        let is_watched = self.watch.as_ref().is_some_and(|watch| watch.is_any_on.load(Relaxed) == 1);
        if is_watched && !self.is_offline() {
            self.tell_level(machine, seen, held, decision);
        }
    }

    #[inline(never)]
    fn tell_level(
        &self,
        machine: &M,
        seen: u32,
        (level, kept, highest): (Level, u32, ZoneKind),
        decision: impl Fn(u32, u32) -> bool,
    ) {
        let made = decision(level.pages, kept);
        let tell = |knob: Knob, other: (u32, u32)| {
            let by_default = decision(other.0, other.1);
            let sum = |(mark, kept): (u32, u32)| u64::from(mark) + u64::from(kept);
            let (mark, default_mark) = (sum((level.pages, kept)), sum(other));
            let margin = Margin { seen: seen.into(), mark, default_mark };
            machine.knob_used(knob, KnobUse::of(&made, &by_default).with(margin));
        };
        let now = self.watermarks();
        for (knob, marks) in self.marks_by_default() {
            tell(knob, (level.with(&now, &marks), kept));
        }
        if let Some((knob, other)) = self.kept_by_default(kept, highest) {
            tell(knob, (level.pages, other));
        }
    }
}

/// Decides by the sum of a mark over `zones`; `decision` must have no effect.
pub(crate) fn decide_by_sum<'a, M: Machine + 'a, Zones: Iterator<Item = &'a Zone<M>>, D: PartialEq>(
    machine: &M,
    zones: impl Fn() -> Zones,
    mark: fn(&Zone<M>) -> Level,
    decision: impl Fn(u32) -> D,
) -> D {
    let made = decision(zones().map(|zone| mark(zone).pages).sum());
    if M::WATCHES_KNOBS {
        for knob in MARK_KNOBS {
            let by_default = |zone: &Zone<M>| {
                let mut watched = zone.marks_by_default();
                Some(mark(zone).with(&zone.watermarks(), &watched.find(|(of, _)| *of == knob)?.1))
            };
            if let Some(sum) = zones().map(by_default).sum::<Option<u32>>() {
                machine.knob_used(knob, KnobUse::of(&made, &decision(sum)));
            }
        }
    }
    made
}

/// Decides by the sum of what `of` makes of the marks of each of `zones`; `decision` must have no effect.
pub fn decide_by_sum_of_marks<'a, M: Machine + 'a, Zones: Iterator<Item = &'a Zone<M>>, D: PartialEq>(
    machine: &M,
    zones: impl Fn() -> Zones,
    of: impl Fn(&Zone<M>, Watermarks) -> u64,
    decision: impl Fn(u64) -> D,
) -> D {
    let made = decision(zones().map(|zone| of(zone, zone.watermarks())).sum());
    if M::WATCHES_KNOBS {
        for knob in MARK_KNOBS {
            let by_default = |zone: &Zone<M>| {
                Some(of(zone, zone.marks_by_default().find(|(watched, _)| *watched == knob)?.1))
            };
            if let Some(sum) = zones().map(by_default).sum::<Option<u64>>() {
                machine.knob_used(knob, KnobUse::of(&made, &decision(sum)));
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_follows_the_marks_that_it_is_made_of() {
        let now = Watermarks { min: 100, low: 125, high: 150, promo: 175 };
        let other = Watermarks { min: 40, low: 50, high: 60, promo: 70 };
        let (min, low, high) = (Level::min(100), Level::low(125), Level::high(150));
        assert_eq!((min + 7).with(&now, &other), 47);
        assert_eq!((low + 7 + (high - min)).with(&now, &other), 50 + 7 + 20);
        // A boost stays as it is.
        assert_eq!(Level::high(150 + 512).with(&now, &other), 60 + 512);
    }
}
