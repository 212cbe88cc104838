//! What is in each pageblock, by a walk over all descriptors: what compaction could make of a zone if it knew everything. For
//! measurements and tests; nothing is charged for it.

use super::{CompactGround, EmptyDoor};
use crate::ground::{Machine, Order, PAGEBLOCK_PAGES, Pfn};
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::{FrameKind, FrameState, Zone};

/// What is in a pageblock, in pages that add up to 512 where all of it is the zone's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockContents {
    /// Its first frame.
    pub start: Pfn,
    /// Free, or on a CPU's pageset.
    pub free: u32,
    /// Small pages on an LRU list that nobody has pinned and that are not being written.
    pub movable: u32,
    /// All others: they stay.
    pub fixed: u32,
}

impl<'a, M: Machine, G: CompactGround<M>> EmptyDoor<'a, M, G> {
    /// What is in each of the pageblocks that are wholly `zone`'s, as far as can be told without a lock.
    pub fn block_contents(self, zone: &'a Zone<M>) -> impl Iterator<Item = BlockContents> + 'a {
        let span = zone.managed_span();
        let first = span.start.next_multiple_of(PAGEBLOCK_PAGES);
        let starts = (first..span.end).step_by(PAGEBLOCK_PAGES as usize);
        starts
            .filter(move |start| start + PAGEBLOCK_PAGES <= span.end)
            .map(move |start| self.contents_of(Pfn(start)))
    }

    fn contents_of(self, start: Pfn) -> BlockContents {
        let mut contents = BlockContents { start, ..BlockContents::default() };
        let end = start.add(PAGEBLOCK_PAGES);
        let mut pfn = start;
        while pfn < end {
            let (state, behind) = self.block_over(pfn);
            let pages = behind.0.min(end.0) - pfn.0;
            match state.kind {
                FrameKind::Free | FrameKind::Pcp => contents.free += pages,
                FrameKind::Allocated if state.order == Order::ZERO && self.could_move(pfn) => {
                    contents.movable += pages;
                }
                _ => contents.fixed += pages,
            }
            pfn = pfn.add(pages);
        }
        contents
    }

    /// The block that `pfn` is in, which begins there or is larger than a pageblock, and the frame behind it.
    fn block_over(self, pfn: Pfn) -> (FrameState, Pfn) {
        let state = self.map().frame(pfn).state();
        let head = pfn.align_down(Order::MAX);
        let whole = self.map().frame(head).state();
        if state.kind == FrameKind::Tail
            && head.0 + whole.order.pages() > pfn.0
            && whole.kind != FrameKind::Tail
        {
            return (whole, head.add(whole.order.pages()));
        }
        let pages = if state.kind == FrameKind::Tail { 1 } else { state.order.pages() };
        (state, pfn.add(pages))
    }

    fn could_move(self, pfn: Pfn) -> bool {
        if !self.lru().has_pages() {
            return false;
        }
        let page = self.lru().page(pfn);
        let own = match page.mapping() {
            Mapping::None => return false,
            Mapping::Anon(_) => 0,
            Mapping::File(_) | Mapping::Slot => 1,
        };
        page.has(PageFlag::Lru) && !page.has(PageFlag::Writeback) && page.refs() <= page.mapped() + own
    }
}
