//! The disk of the simulated machine: one, which serves one request at a time in the order in which they come. What a file
//! holds comes from it and goes to it at a steady rate. Seeks are left out, as for a disk that is read and written in order, unless a
//! workload says how long one takes: then whoever asks says whether his request goes on where one before it ended.

use std::cell::Cell;

use mm::Nanos;
use mm::ids::PAGE_SIZE;
use sim::SimMachine;

/// MB (10^6 bytes) a second where a workload says nothing. An estimate: what hard disks of the 2010s read and wrote in order
/// at their outer tracks.
pub(crate) const DEFAULT_MB_PER_SECOND: u32 = 150;

/// Where a request begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Where one before it ended.
    Next,
    Elsewhere,
}

/// The disk.
#[derive(Debug)]
pub struct Disk {
    mb_per_second: Cell<u32>,
    /// What a request takes besides that is not where the one before it ended.
    seek: Cell<Nanos>,
    /// When it will have served all requests that have come.
    free_at: Cell<Nanos>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            mb_per_second: Cell::new(DEFAULT_MB_PER_SECOND),
            seek: Cell::new(Nanos(0)),
            free_at: Cell::new(Nanos(0)),
        }
    }
}

impl Disk {
    /// It moves so many MB a second from now on, from 1.
    pub(crate) fn set_speed(&self, mb_per_second: u32) {
        self.mb_per_second.set(mb_per_second.max(1));
    }

    /// A seek, with half a turn, takes so long from now on.
    pub(crate) fn set_seek(&self, seek: Nanos) {
        self.seek.set(seek);
    }

    /// The calling task moves `pages` and sleeps until that is done.
    pub(crate) fn transfer(&self, machine: &SimMachine, pages: u64) {
        machine.sleep_until(self.begin(machine, pages, Place::Next));
    }

    /// The calling task has `pages` moved, from there on, and goes on; says when that is done.
    pub(crate) fn begin(&self, machine: &SimMachine, pages: u64, place: Place) -> Nanos {
        // Requests come in order of simulated time.
        machine.sync();
        self.book(mm::Machine::now(machine), pages, place)
    }

    /// When a request for `pages` that comes at `now` is done.
    fn book(&self, now: Nanos, pages: u64, place: Place) -> Nanos {
        let start = now.0.max(self.free_at.get().0);
        let takes = pages * PAGE_SIZE * 1000 / u64::from(self.mb_per_second.get());
        let seek = if place == Place::Elsewhere { self.seek.get().0 } else { 0 };
        self.free_at.set(Nanos(start + seek + takes));
        self.free_at.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_those_before_them() {
        let disk = Disk::default();
        disk.set_speed(100);
        // 100 pages are 409,600 bytes: 4.096 ms.
        assert_eq!(disk.book(Nanos(1000), 100, Place::Next), Nanos(4_097_000));
        assert_eq!(disk.book(Nanos(2000), 100, Place::Next), Nanos(8_193_000));
        assert_eq!(
            disk.book(Nanos(10_000_000), 0, Place::Elsewhere),
            Nanos(10_000_000),
            "nobody said what a seek takes"
        );
    }

    #[test]
    fn who_goes_elsewhere_seeks() {
        let disk = Disk::default();
        disk.set_speed(100);
        disk.set_seek(Nanos(2_000_000));
        assert_eq!(disk.book(Nanos(0), 100, Place::Elsewhere), Nanos(6_096_000));
        assert_eq!(disk.book(Nanos(0), 100, Place::Next), Nanos(10_192_000));
    }
}
