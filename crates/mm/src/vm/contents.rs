//! What private memory holds, as far as swap asks: whether a page is all zeros. A machine whose memory has no contents is told of ranges
//! which part of their pages is; which of them these are follows from their numbers.

use alloc::vec::Vec;

use super::{AddressSpace, Vpn};
use crate::ground::machine::Machine;

/// Pages of an address space, some of which hold nothing but zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZeroPages {
    /// The first page of the range.
    pub start: Vpn,
    /// Pages of the range.
    pub pages: u32,
    /// So many of 65,536 pages hold zeros.
    pub share: u32,
}

impl ZeroPages {
    fn has(&self, vpn: Vpn) -> bool {
        let within = vpn.0.checked_sub(self.start.0);
        within.is_some_and(|within| within < self.pages) && number(vpn) < self.share
    }
}

/// A number below 65,536 that is a page's own: those of pages side by side have nothing in common.
fn number(vpn: Vpn) -> u32 {
    // Knuth's multiplier, 2^32 by the golden ratio; its upper half is what is mixed.
    (vpn.0 ^ vpn.0 >> 15).wrapping_mul(0x9e37_79b1) >> 16
}

impl<M: Machine> AddressSpace<M> {
    /// From now on the pages of these ranges hold zeros as they say, and all others something else. At first none does.
    pub fn say_zeros(&self, machine: &M, ranges: &[ZeroPages]) {
        let mut all = self.zeros.lock_local(machine);
        all.clear();
        all.extend_from_slice(ranges);
    }

    /// What was said of it.
    pub(super) fn said_zeros(&self, machine: &M) -> Vec<ZeroPages> {
        self.zeros.lock_local(machine).clone()
    }

    /// Whether the page at `vpn` holds nothing but zeros.
    pub(super) fn holds_zeros(&self, machine: &M, vpn: Vpn) -> bool {
        self.zeros.lock_local(machine).iter().any(|range| range.has(vpn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_pages_of_a_range_hold_zeros_wherever_it_lies() {
        for start in [0, 512 * 7, 0x3fff_f000] {
            let range = ZeroPages { start: Vpn(start), pages: 10_000, share: 16_384 };
            let count = (start - start.min(9)..start + 10_010).filter(|&page| range.has(Vpn(page))).count();
            assert!((2_300..=2_700).contains(&count), "a quarter: {count} from {start}");
        }
        let all = ZeroPages { start: Vpn(5), pages: 2, share: 65_536 };
        assert_eq!((4..8).map(|page| all.has(Vpn(page))).collect::<Vec<_>>(), [false, true, true, false]);
    }
}
