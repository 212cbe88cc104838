//! Addresses of 47 bits as pages of an address space of 16 TiB, which is what the memory manager numbers.
//!
//! A process uses a few neighbourhoods of its address space: the program, its heap, its libraries, its stack. The address space is
//! divided into windows of 64 GiB; each that is used gets one of 256 places, with room for neighbours on both sides, so that a
//! range that grows over a window's edge stays in one piece. What lies below 64 GiB, down to the last bit that matters for
//! page tables and huge pages, stays as it was.

use std::collections::BTreeMap;

use mm::vm::Vpn;

use super::steps::PageRange;

const PAGE_SHIFT: u32 = 12;
/// Pages of a window.
const WINDOW_PAGES: u64 = 1 << 24;
/// Windows that there is room for.
const PLACES: u32 = 256;
/// Places from one neighbourhood to the next.
const APART: u32 = 8;

/// Which place each window has.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    places: BTreeMap<u64, u32>,
}

impl Windows {
    /// The page of `address`; `None` where there is no room left.
    pub(super) fn page(&mut self, address: u64) -> Option<Vpn> {
        let page = address >> PAGE_SHIFT;
        let place = self.place(page / WINDOW_PAGES)?;
        Some(Vpn((u64::from(place) * WINDOW_PAGES + page % WINDOW_PAGES) as u32))
    }

    /// The page of `address`, where a page of its window has one already.
    pub(super) fn known(&self, address: u64) -> Option<Vpn> {
        let page = address >> PAGE_SHIFT;
        let place = *self.places.get(&(page / WINDOW_PAGES))?;
        Some(Vpn((u64::from(place) * WINDOW_PAGES + page % WINDOW_PAGES) as u32))
    }

    /// The pages of a range; `None` where it has none, ends beyond the address space, or has no room in one piece.
    pub(super) fn range(&mut self, address: u64, pages: u32) -> Option<PageRange> {
        let last = pages.checked_sub(1)?;
        let start = self.page(address)?;
        let first = address >> PAGE_SHIFT;
        let (from, to) = (first / WINDOW_PAGES, (first + u64::from(last)) / WINDOW_PAGES);
        let place = self.place(from)?;
        for window in from + 1..=to {
            (self.place_beside(window, u64::from(place) + window - from)?).then_some(())?;
        }
        Some(PageRange { start, pages })
    }

    fn place(&mut self, window: u64) -> Option<u32> {
        if let Some(place) = self.places.get(&window) {
            return Some(*place);
        }
        let place = self.beside_a_neighbour(window).or_else(|| self.apart()).or_else(|| self.anywhere())?;
        self.places.insert(window, place);
        Some(place)
    }

    /// Whether `window` has, or can have, this very place.
    fn place_beside(&mut self, window: u64, place: u64) -> Option<bool> {
        let place = u32::try_from(place).ok().filter(|place| *place < PLACES)?;
        if let Some(there) = self.places.get(&window) {
            return Some(*there == place);
        }
        if self.is_taken(place) {
            return Some(false);
        }
        self.places.insert(window, place);
        Some(true)
    }

    fn beside_a_neighbour(&self, window: u64) -> Option<u32> {
        let above = self.places.get(&(window + 1)).and_then(|place| place.checked_sub(1));
        let below = window.checked_sub(1).and_then(|below| self.places.get(&below)).map(|place| place + 1);
        [above, below].into_iter().flatten().find(|place| *place < PLACES && !self.is_taken(*place))
    }

    fn apart(&self) -> Option<u32> {
        let middles = (0..PLACES / APART).map(|nth| nth * APART + APART / 2);
        let free = |middle: u32| (middle - APART / 2..middle + APART / 2).all(|place| !self.is_taken(place));
        middles.into_iter().find(|middle| free(*middle))
    }

    fn anywhere(&self) -> Option<u32> {
        (0..PLACES).find(|place| !self.is_taken(*place))
    }

    fn is_taken(&self, place: u32) -> bool {
        self.places.values().any(|taken| *taken == place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_stays_near() {
        let mut windows = Windows::default();
        let heap = windows.page(0x5555_5555_5000).unwrap();
        let stack = windows.page(0x7fff_ffff_e000).unwrap();
        assert_eq!(windows.page(0x5555_5555_7000), Some(heap.add(2)));
        assert_eq!(heap.0 % 512, 0x155, "its place in a page table is as it was");
        assert_ne!(heap.0 >> 24, stack.0 >> 24);
    }

    #[test]
    fn a_range_over_an_edge_is_in_one_piece() {
        let mut windows = Windows::default();
        let edge = 0x7f10_0000_0000_u64;
        let low = windows.page(edge - 0x1000).unwrap();
        assert_eq!(windows.range(edge - 0x2000, 4), Some(PageRange { start: Vpn(low.0 - 1), pages: 4 }));
        assert_eq!(windows.page(edge), Some(low.add(1)));
    }

    #[test]
    fn there_is_room_for_256_windows_and_no_more() {
        let mut windows = Windows::default();
        for window in 0..256_u64 {
            assert!(windows.page(window * 3 * (WINDOW_PAGES << PAGE_SHIFT)).is_some(), "{window}");
        }
        assert_eq!(windows.page(1), Some(windows.page(0).unwrap()));
        assert_eq!(windows.page(1000 * (WINDOW_PAGES << PAGE_SHIFT)), None);
        assert_eq!(windows.range(0, 0), None);
    }
}
