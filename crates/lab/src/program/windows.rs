//! Addresses of 47 bits as pages of an address space of 16 TiB, which is what the memory manager numbers.
//!
//! A process uses a few neighbourhoods of its address space: the program, its heap, its libraries, its stack. The address space is
//! divided into windows of 64 GiB; each that is used gets one of 192 wide places, with room for neighbours on both sides, so that what
//! grows over a window's edge stays in one piece. Some programs do otherwise (V8 maps each part of its heap at an address by chance):
//! once the wide places are taken, windows of 64 MiB get narrow ones, for as long as anything is mapped in them. What lies below a
//! place's size, down to the last bit that matters for page tables and huge pages, stays as it was. A range over places that are not
//! side by side becomes several. One that there is no room for is mapped in each window when that gets its place, at a touch
//! ([`Windows::take_fresh`]).

use std::collections::BTreeMap;

use mm::vm::Vpn;

use super::steps::PageRange;

const PAGE_SHIFT: u32 = 12;
/// Pages of a wide window, and of a narrow one.
const WIDE_PAGES: u64 = 1 << 24;
const NARROW_PAGES: u64 = 1 << 14;
/// Wide windows that there is room for.
const WIDE_PLACES: u32 = 192;
/// Narrow windows that there is room for, in what is left of the 256 places of a wide window's size.
const NARROW_PLACES: u32 = (256 - WIDE_PLACES) * (WIDE_PAGES / NARROW_PAGES) as u32;
/// Wide windows of the largest range that gets places before it is touched: 1 TiB.
const LARGEST: u64 = 16;
/// Wide places from one neighbourhood to the next.
const APART: u32 = 8;

/// A part of a range of addresses that is in one piece as pages, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Its pages.
    pub(super) range: PageRange,
    /// Pages of the range of addresses that come before it.
    pub(super) skipped: u32,
}

/// Which place each window has.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    wide: BTreeMap<u64, u32>,
    narrow: BTreeMap<u64, u32>,
    /// Narrow places that were given back, the next to be given last.
    free: Vec<u32>,
    /// Narrow places that were ever given.
    given: u32,
    /// Windows that have a place since [`Self::take_fresh`], from which address to before which.
    fresh: Vec<(u64, u64)>,
}

impl Windows {
    /// The page of `address`; `None` where there is no room left.
    pub(super) fn page(&mut self, address: u64) -> Option<Vpn> {
        let page = address >> PAGE_SHIFT;
        self.known(address).or_else(|| {
            self.give_place(page)?;
            self.known(address)
        })
    }

    /// The page of `address`, where a page of its window has one already.
    pub(super) fn known(&self, address: u64) -> Option<Vpn> {
        let page = address >> PAGE_SHIFT;
        let wide = self.wide.get(&(page / WIDE_PAGES));
        let place = wide.map(|place| u64::from(*place) * WIDE_PAGES + page % WIDE_PAGES).or_else(|| {
            let place = self.narrow.get(&(page / NARROW_PAGES))?;
            Some(u64::from(WIDE_PLACES) * WIDE_PAGES + u64::from(*place) * NARROW_PAGES + page % NARROW_PAGES)
        })?;
        Some(Vpn(place as u32))
    }

    /// The windows that have a place since this was asked last, from which address to before which.
    pub(super) fn take_fresh(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.fresh)
    }

    /// The pages of a range, in ascending order of addresses; `None` where it has none, it is too large to get places before it is
    /// touched, or there is no room left.
    pub(super) fn pieces(&mut self, address: u64, pages: u32) -> Option<Vec<Piece>> {
        if u64::from(pages) / WIDE_PAGES > self.room() {
            return None;
        }
        let mut pieces: Vec<Piece> = vec![];
        let mut skipped = 0;
        while skipped < pages {
            let at = (address >> PAGE_SHIFT) + u64::from(skipped);
            let start = self.page(at << PAGE_SHIFT)?;
            let window = if self.wide.contains_key(&(at / WIDE_PAGES)) { WIDE_PAGES } else { NARROW_PAGES };
            let here = (window - at % window).min(u64::from(pages - skipped)) as u32;
            match pieces.last_mut() {
                Some(Piece { range: last, .. }) if last.start.0.checked_add(last.pages) == Some(start.0) => {
                    last.pages += here;
                }
                _ => pieces.push(Piece { range: PageRange { start, pages: here }, skipped }),
            }
            skipped += here;
        }
        (!pieces.is_empty()).then_some(pieces)
    }

    /// The pages of those parts of a range whose windows have places, in ascending order of addresses.
    pub(super) fn known_pieces(&self, address: u64, pages: u32) -> Vec<Piece> {
        let first = address >> PAGE_SHIFT;
        let end = first + u64::from(pages);
        let wide = self.wide.keys().map(|window| (window * WIDE_PAGES, WIDE_PAGES));
        let narrow = self.narrow.keys().map(|window| (window * NARROW_PAGES, NARROW_PAGES));
        let within = wide.chain(narrow).filter_map(|(start, window)| {
            let (from, to) = (start.max(first), (start + window).min(end));
            let start = self.known(from << PAGE_SHIFT).filter(|_| from < to)?;
            let range = PageRange { start, pages: (to - from) as u32 };
            Some(Piece { range, skipped: (from - first) as u32 })
        });
        let mut pieces: Vec<Piece> = within.collect();
        pieces.sort_unstable_by_key(|piece| piece.skipped);
        pieces
    }

    /// Nothing is mapped any more between these addresses, which lie in windows of which `is_used` says whether anything else is.
    pub(super) fn leave(&mut self, (start, end): (u64, u64), is_used: impl Fn(u64, u64) -> bool) {
        let bytes = NARROW_PAGES << PAGE_SHIFT;
        let left = self.narrow.range(start / bytes..end.div_ceil(bytes));
        let left =
            left.map(|(window, _)| *window).filter(|window| !is_used(window * bytes, (window + 1) * bytes));
        for window in left.collect::<Vec<u64>>() {
            self.free.extend(self.narrow.remove(&window));
        }
    }

    fn give_place(&mut self, page: u64) -> Option<()> {
        let window = page / WIDE_PAGES;
        let wide = self.beside_a_neighbour(window).or_else(|| self.apart()).or_else(|| self.anywhere());
        let (start, window) = if let Some(place) = wide {
            self.wide.insert(window, place);
            (window * WIDE_PAGES, WIDE_PAGES)
        } else {
            let place = self.free.pop().or_else(|| self.next_narrow())?;
            self.narrow.insert(page / NARROW_PAGES, place);
            (page / NARROW_PAGES * NARROW_PAGES, NARROW_PAGES)
        };
        self.fresh.push((start << PAGE_SHIFT, (start + window) << PAGE_SHIFT));
        Some(())
    }

    /// How many wide windows a range may take at once.
    fn room(&self) -> u64 {
        LARGEST.min(u64::from(WIDE_PLACES) - self.wide.len() as u64)
    }

    fn next_narrow(&mut self) -> Option<u32> {
        let next = Some(self.given).filter(|next| *next < NARROW_PLACES);
        self.given += u32::from(next.is_some());
        next
    }

    fn beside_a_neighbour(&self, window: u64) -> Option<u32> {
        let above = self.wide.get(&(window + 1)).and_then(|place| place.checked_sub(1));
        let below = window.checked_sub(1).and_then(|below| self.wide.get(&below)).map(|place| place + 1);
        [above, below].into_iter().flatten().find(|place| *place < WIDE_PLACES && !self.is_taken(*place))
    }

    fn apart(&self) -> Option<u32> {
        let middles = (0..WIDE_PLACES / APART).map(|nth| nth * APART + APART / 2);
        let free = |middle: u32| (middle - APART / 2..middle + APART / 2).all(|place| !self.is_taken(place));
        middles.into_iter().find(|middle| free(*middle))
    }

    fn anywhere(&self) -> Option<u32> {
        (0..WIDE_PLACES).find(|place| !self.is_taken(*place))
    }

    fn is_taken(&self, place: u32) -> bool {
        self.wide.values().any(|taken| *taken == place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: u64 = WIDE_PAGES << PAGE_SHIFT;
    const NARROW: u64 = NARROW_PAGES << PAGE_SHIFT;

    /// All wide places are taken.
    fn crowded() -> Windows {
        let mut windows = Windows::default();
        for window in 0..u64::from(WIDE_PLACES) {
            assert!(windows.page(window * 3 * WIDE).unwrap().0 < WIDE_PLACES << 24, "{window}");
        }
        windows
    }

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
        let range = PageRange { start: Vpn(low.0 - 1), pages: 4 };
        assert_eq!(windows.pieces(edge - 0x2000, 4), Some(vec![Piece { range, skipped: 0 }]));
        assert_eq!(windows.page(edge), Some(low.add(1)));
        assert_eq!(windows.pieces(edge, 0), None);
    }

    #[test]
    fn a_range_over_places_that_are_not_side_by_side_is_in_pieces() {
        let mut windows = Windows::default();
        let (low, high) = (windows.page(8 * WIDE - 0x1000).unwrap(), windows.page(9 * WIDE).unwrap());
        let pieces = windows.pieces(8 * WIDE - 0x1000, (1 << 24) + 2).unwrap();
        let alone = Piece { range: PageRange { start: low, pages: 1 }, skipped: 0 };
        let rest = PageRange { start: Vpn(high.0 - (1 << 24)), pages: (1 << 24) + 1 };
        assert_eq!(
            pieces,
            [alone, Piece { range: rest, skipped: 1 }],
            "the window between has its place beside the upper one"
        );
    }

    #[test]
    fn where_wide_places_are_taken_narrow_ones_are_given_and_given_back() {
        let mut windows = crowded();
        let at = 1000 * WIDE + 5 * NARROW + 0x20_3000;
        let page = windows.page(at).unwrap();
        assert!(page.0 >= WIDE_PLACES << 24);
        assert_eq!(page.0 % NARROW_PAGES as u32, 0x203, "its place in a page table is as it was");
        let pieces = windows.pieces(at, NARROW_PAGES as u32).unwrap();
        assert_eq!(pieces.len(), 1, "the next place is beside it");
        windows.leave((at, at + NARROW), |start, _| start == 1000 * WIDE + 5 * NARROW);
        assert_eq!(windows.known(at), Some(page), "something else is mapped there");
        assert_eq!(windows.known(at + NARROW), None);
        assert_eq!(
            windows.page(7 * NARROW + 1001 * WIDE).unwrap().0 >> 14,
            (page.0 >> 14) + 1,
            "its place again"
        );
    }

    #[test]
    fn a_range_that_is_too_large_has_the_pieces_that_have_places() {
        let mut windows = Windows::default();
        let pages = 2 * LARGEST as u32 * WIDE_PAGES as u32;
        let (far, near) = (windows.page(9 * WIDE).unwrap(), windows.page(3 * WIDE + 0x5000).unwrap());
        assert_eq!(windows.pieces(3 * WIDE + 0x1000, pages), None);
        let starts = windows.known_pieces(3 * WIDE + 0x1000, pages);
        let starts: Vec<(u32, Vpn)> = starts.iter().map(|piece| (piece.skipped, piece.range.start)).collect();
        assert_eq!(starts, [(0, Vpn(near.0 - 4)), ((6 << 24) - 1, far)]);
    }

    #[test]
    fn there_is_an_end_of_narrow_places() {
        let mut windows = crowded();
        let at = |nth: u32| 1000 * WIDE + u64::from(nth) * 2 * NARROW;
        for nth in 0..NARROW_PLACES {
            assert!(windows.page(at(nth)).is_some(), "{nth}");
        }
        assert_eq!(windows.page(at(NARROW_PLACES)), None);
        assert_eq!(windows.pieces(at(NARROW_PLACES), 1), None);
        windows.leave((at(3), at(4)), |_, _| false);
        assert!(windows.page(at(NARROW_PLACES)).is_some());
    }
}
