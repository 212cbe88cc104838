//! Which pages a program used, and when, where a recording has looked page by page.
//!
//! The recorder clears the accessed bits of an address space from time to time, and looks at them again and again in between. So it is known of each
//! page when it was first used after each clearing, to a few ms: [`UsedPeriod`] is what was found from one clearing to the next. Accesses beyond
//! the first of a period leave no trace.

use mm::vm::Vpn;

use super::steps::PageRange;
use super::windows::Windows;

/// What the kernel has not counted yet of a process's CPU time is at most a tick of the slowest clock, µs.
const TICK_US: u32 = 10_000;

/// What an address space used from one clearing of its accessed bits to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UsedPeriod {
    /// Looks, one after the other; empty where nobody looked page by page.
    pub looks: Vec<UsedLook>,
    /// Own time of its tasks in the period, as the steps have it, ns.
    pub own_ns: u64,
}

/// The pages that were used for the first time since a look before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsedLook {
    /// CPU time of the process from clearing to this look, in the kernel too, ns.
    pub until_ns: u64,
    /// In the order of their addresses.
    pub pages: Vec<PageRange>,
}

impl UsedPeriod {
    /// CPU time of the process in the period, in the kernel too, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.looks.last().map_or(0, |look| look.until_ns)
    }
}

/// A period that has not ended yet.
#[derive(Debug, Default)]
pub(super) struct OpenPeriod {
    looks: Vec<OpenLook>,
}

#[derive(Debug)]
struct OpenLook {
    /// Time since clearing, and CPU time of the process in it as far as the kernel knew it, µs.
    passed_us: u32,
    cpu_us: u32,
    pages: Vec<PageRange>,
}

impl OpenPeriod {
    pub(super) fn look(&mut self, passed_us: u32, cpu_us: u32) {
        self.looks.push(OpenLook { passed_us, cpu_us, pages: vec![] });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// With the last look, those of the 64 pages from `address` on whose bits are set came.
    pub(super) fn used(&mut self, windows: &Windows, address: u64, bits: u64) {
        let Some(look) = self.looks.last_mut() else { return };
        let pieces = windows.known_pieces(address, u64::BITS - bits.leading_zeros());
        for piece in pieces {
            let own = bits >> piece.skipped;
            let own = own & u64::MAX.checked_shr(64 - piece.range.pages).unwrap_or(0);
            runs(own, |first, pages| {
                let start = Vpn(piece.range.start.0 + first);
                match look.pages.last_mut() {
                    Some(last) if last.start.0 + last.pages == start.0 => last.pages += pages,
                    _ => look.pages.push(PageRange { start, pages }),
                }
            });
        }
    }

    /// It ends, and the tasks' steps have `own_ns` of own time in it.
    pub(super) fn end(self, own_ns: u64) -> UsedPeriod {
        let [passed, cpu] = self.looks.last().map_or([1, 0], |last| [last.passed_us.max(1), last.cpu_us]);
        // CPU time is known to a tick: within that it is taken to pass evenly.
        let until_us = |look: &OpenLook| {
            let even = u64::from(cpu) * u64::from(look.passed_us) / u64::from(passed);
            even.clamp(look.cpu_us.into(), u64::from(look.cpu_us) + u64::from(TICK_US)).min(cpu.into())
        };
        let looks = self.looks.into_iter();
        let looks = looks.map(|look| UsedLook { until_ns: 1000 * until_us(&look), pages: look.pages });
        UsedPeriod { looks: looks.collect(), own_ns }
    }
}

/// Hands runs of set bits on: the first, and how many.
fn runs(mut bits: u64, mut each: impl FnMut(u32, u32)) {
    let mut passed = 0;
    while bits != 0 {
        let skipped = bits.trailing_zeros();
        let set = (bits >> skipped).trailing_ones();
        each(passed + skipped, set);
        passed += skipped + set;
        bits = bits.checked_shr(skipped + set).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_put_together_where_they_lie_together() {
        let mut windows = Windows::default();
        let page = windows.page(64 << 12).unwrap();
        let mut period = OpenPeriod::default();
        period.used(&windows, 64 << 12, 1);
        assert!(period.is_empty(), "nobody looked");
        period.look(1000, 0);
        period.used(&windows, 64 << 12, 1 << 63 | 0b110_1000);
        period.used(&windows, 128 << 12, 0b11);
        period.used(&windows, 1 << 46, u64::MAX);
        let range = |first, pages| PageRange { start: page.add(first), pages };
        let ended = period.end(77);
        assert_eq!(ended.looks[0].pages, [range(3, 1), range(5, 2), range(63, 3)]);
        assert_eq!((ended.own_ns, ended.cpu_ns()), (77, 0));
    }

    #[test]
    fn cpu_time_passes_evenly_as_far_as_nothing_else_is_known() {
        let mut period = OpenPeriod::default();
        for (passed_us, cpu_us) in [(10_000, 0), (20_000, 4_000), (50_000, 4_000), (100_000, 50_000)] {
            period.look(passed_us, cpu_us);
        }
        let until: Vec<u64> = period.end(0).looks.iter().map(|look| look.until_ns / 1000).collect();
        assert_eq!(until, [5_000, 10_000, 14_000, 50_000], "asleep for most of the third");
    }

    #[test]
    fn all_bits_are_one_run() {
        let mut found = vec![];
        runs(u64::MAX, |first, pages| found.push((first, pages)));
        runs(0, |_, _| unreachable!());
        assert_eq!(found, [(0, 64)]);
    }
}
