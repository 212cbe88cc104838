//! Part of the walk over every invariant: what is kept of pageblocks (`+compact-summary`) beside their descriptors.

use alloc::format;
use alloc::string::String;

use super::{ViewsDoor, ViewsGround};
use crate::ground::{Machine, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};
use crate::pages::{BlockUse, FrameKind, FrameState, Mobility, Zone};

impl<M: Machine, G: ViewsGround<M>> ViewsDoor<'_, M, G> {
    /// Compares what is kept of the pageblocks of `zone` with their descriptors.
    pub(crate) fn check_summary(self, zone: &Zone<M>) -> Result<(), String> {
        let Some(summary) = self.blocks().summary() else { return Ok(()) };
        let span = zone.managed_span();
        for block in span.start >> PAGEBLOCK_ORDER..span.end.div_ceil(PAGEBLOCK_PAGES) {
            let start = block << PAGEBLOCK_ORDER;
            // Where zones meet within a pageblock, its word counts for both.
            let found = self.count_block(start..start + PAGEBLOCK_PAGES);
            let kept = summary.block(block);
            if found != kept {
                return Err(format!(
                    "the pageblock at {} has {found:?}, but {kept:?} is kept of it",
                    Pfn(start)
                ));
            }
        }
        Ok(())
    }

    fn count_block(self, frames: core::ops::Range<u32>) -> BlockUse {
        let mut counts = BlockUse::default();
        let mut pfn = frames.start;
        while pfn < frames.end {
            let head = self.head_over(Pfn(pfn));
            let end = head.map_or(pfn + 1, |(head, state)| head.0 + state.order.pages()).min(frames.end);
            match head {
                Some((_, FrameState { kind: FrameKind::Free, .. })) => counts.free += end - pfn,
                Some((_, FrameState { kind: FrameKind::Slab | FrameKind::SlabTail, .. })) => {
                    counts.fixed += end - pfn;
                }
                Some((_, FrameState { kind: FrameKind::Pcp | FrameKind::Allocated, migratetype, .. })) => {
                    let fixed = Mobility::of(migratetype) == Mobility::Fixed;
                    counts.fixed += if fixed { end - pfn } else { 0 };
                }
                _ => {}
            }
            pfn = end;
        }
        counts
    }

    /// The block that `pfn`, aligned to a pageblock or the end of a block, is in.
    fn head_over(self, pfn: Pfn) -> Option<(Pfn, FrameState)> {
        let begins = |head: Pfn| {
            let state = self.map().get(head)?.state();
            (state.kind != FrameKind::Tail && head.0 + state.order.pages() > pfn.0).then_some((head, state))
        };
        // A block above a pageblock begins in the one before.
        begins(pfn).or_else(|| begins(pfn.align_down(Order::MAX)))
    }
}
