//! Blocks on their way from a pageset to the buddy lists, taken off before the zone lock is: `+touch`.
//!
//! Most of the time that a drain holds the zone lock it waits for descriptors that are in no cache near: the blocks' own,
//! their buddies', and those of the buddies' neighbours on the free lists, from which a merge takes them. All of these
//! can be told beforehand. So some blocks at a time are gathered, the lines that freeing them will need are fetched, and
//! only then is the lock taken. What is told without the lock may be wrong by then; it costs a fetch and nothing else,
//! for under the lock all is looked at again.

use super::{LISTS, Pcp};
use crate::buddy::ZoneCx;
use crate::frame::FrameKind;
use crate::ids::{Order, Pfn};
use crate::list::List;
use crate::machine::{Access, Machine};

/// Blocks that are gathered at a time, so few that their lines stay in a first-level cache. A hold that may end early
/// moves as many in any case.
const AT_A_TIME: usize = 64;

/// Blocks that are on no list.
#[derive(Debug)]
pub(super) struct Gathered {
    blocks: [(Pfn, Order); AT_A_TIME],
    len: usize,
}

impl Gathered {
    /// What there is.
    pub(super) fn blocks(&self) -> &[(Pfn, Order)] {
        &self.blocks[..self.len]
    }
}

impl Pcp {
    /// Takes blocks of `pages` together, or as many as are gathered at a time, off the lists, in the order in which a
    /// drain does: round-robin, beginning with list `from`, the coldest of each first. `from` becomes the list to go
    /// on with.
    pub(super) fn gather<M: Machine>(&mut self, cx: ZoneCx<'_, M>, pages: u32, from: &mut usize) -> Gathered {
        let mut gathered = Gathered { blocks: [(Pfn(0), Order::ZERO); AT_A_TIME], len: 0 };
        let mut left = pages.min(self.count());
        while left > 0 && gathered.len < AT_A_TIME {
            let order = Self::list_order(*from);
            self.touch_list(cx.cx.machine, *from);
            let Some(pfn) = self.lists[*from].pop_back(cx.cx.mem()) else {
                *from = (*from + 1) % LISTS;
                continue;
            };
            self.tuning.count -= order.pages();
            left = left.saturating_sub(order.pages());
            gathered.blocks[gathered.len] = (pfn, order);
            gathered.len += 1;
        }
        gathered
    }
}

/// Fetches the lines that freeing the block at `pfn` will need, as far as that can be told now: goes the way of its
/// merges.
pub(super) fn fetch<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) {
    let (mem, map) = (cx.cx.mem(), cx.cx.map);
    let mut pfn = pfn;
    for order in order.to(Order::MAX) {
        let buddy = pfn.buddy(order);
        let Some(frame) = map.get(buddy) else { return };
        mem.touch(buddy, Access::Read);
        let state = frame.state();
        if state.kind != FrameKind::Free || state.order != order || state.zone != cx.zone.id {
            return;
        }
        mem.touch(buddy, Access::Write);
        for neighbour in [List::after(map, buddy), List::before(map, buddy)].into_iter().flatten() {
            if map.get(neighbour).is_some() {
                mem.touch(neighbour, Access::Write);
            }
        }
        pfn = Pfn(pfn.0.min(buddy.0));
    }
}
