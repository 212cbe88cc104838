//! What a thread measures while it works: how long its refills and drains took, and what it had to do with zone locks.

use std::cell::RefCell;

/// Spans of one kind that are kept, at most; more are counted only.
const KEPT_MAX: usize = 1 << 20;

/// Durations in ticks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Durations {
    kept: Vec<u32>,
    /// Those for which there was no room.
    pub(super) lost: u64,
}

impl Durations {
    fn push(&mut self, ticks: u64) {
        if self.kept.len() < self.kept.capacity() {
            self.kept.push(u32::try_from(ticks).unwrap_or(u32::MAX));
        } else {
            self.lost += 1;
        }
    }

    pub(super) fn kept(&self) -> &[u32] {
        &self.kept
    }
}

/// Dealings with zone locks, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LockTicks {
    pub(super) acquired: u64,
    pub(super) contended: u64,
    pub(super) waited: u64,
    pub(super) waited_max: u64,
    pub(super) held: u64,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Meter {
    pub(super) refills: Durations,
    pub(super) drains: Durations,
    pub(super) zone: LockTicks,
}

thread_local!(static METER: RefCell<Meter> = RefCell::default());

/// This thread begins to measure anew.
pub(super) fn begin() {
    let durations = || Durations { kept: Vec::with_capacity(KEPT_MAX), lost: 0 };
    let meter = Meter { refills: durations(), drains: durations(), zone: LockTicks::default() };
    METER.with_borrow_mut(|own| *own = meter);
}

/// What this thread measured.
pub(super) fn end() -> Meter {
    METER.with_borrow_mut(std::mem::take)
}

#[inline]
pub(super) fn refilled(ticks: u64) {
    METER.with_borrow_mut(|meter| meter.refills.push(ticks));
}

#[inline]
pub(super) fn drained(ticks: u64) {
    METER.with_borrow_mut(|meter| meter.drains.push(ticks));
}

#[inline]
pub(super) fn waited(ticks: u64) {
    METER.with_borrow_mut(|meter| {
        meter.zone.contended += 1;
        meter.zone.waited += ticks;
        meter.zone.waited_max = meter.zone.waited_max.max(ticks);
    });
}

#[inline]
pub(super) fn held(ticks: u64) {
    METER.with_borrow_mut(|meter| {
        meter.zone.acquired += 1;
        meter.zone.held += ticks;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_meter_of_its_own() {
        begin();
        refilled(5);
        drained(u64::MAX);
        waited(3);
        waited(2);
        held(9);
        std::thread::spawn(|| refilled(1)).join().unwrap();
        let meter = end();
        assert_eq!((meter.refills.kept(), meter.drains.kept()), (&[5][..], &[u32::MAX][..]));
        assert_eq!(meter.zone, LockTicks { acquired: 1, contended: 2, waited: 5, waited_max: 3, held: 9 });
        assert_eq!(end(), Meter::default());
    }

    #[test]
    fn without_room_they_are_counted() {
        // Nothing was begun, so there is room for none.
        let meter = std::thread::spawn(|| {
            refilled(1);
            end()
        });
        assert_eq!(meter.join().unwrap().refills.lost, 1);
    }
}
