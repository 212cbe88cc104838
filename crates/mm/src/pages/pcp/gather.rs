//! Blocks on their way from a pageset to the buddy lists, taken off before a zone lock is.
//!
//! Where there are several arenas, blocks that were neighbours on a pageset may belong to different ones; gathered, they
//! are freed arena by arena, each lock taken once.
//!
//! `+touch`: most of the time that a drain holds the zone lock it waits for descriptors that are in no cache near: the
//! blocks' own, their buddies', and those of the buddies' neighbours on the free lists, from which a merge takes them.
//! All of these can be told beforehand, and are fetched before the lock is taken. What is told without the lock may be
//! wrong by then; it costs a fetch and nothing else, for under the lock all is looked at again.

use super::hold::Hold;
use super::{LISTS, Pcp};
use crate::ground::{Access, Guard, Machine, Order, Pfn};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::pages::frame::{FrameKind, Mobility};
use crate::pages::list::List;

/// Blocks that are gathered at a time, so few that their lines stay in a first-level cache. A hold that may end early
/// moves as many in any case.
const AT_A_TIME: usize = 64;

/// Whether a drain should go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GoesOn {
    /// Nobody waited for the lock.
    Yes,
    /// Somebody did.
    No,
}

/// A block on no list.
#[derive(Clone, Copy, Debug)]
struct Loose {
    pfn: Pfn,
    order: Order,
    arena: u8,
    /// What its list says of it.
    was: Mobility,
}

/// Blocks that are on no list.
#[derive(Debug)]
pub(super) struct Gathered {
    blocks: [Loose; AT_A_TIME],
    len: usize,
}

impl Pcp {
    /// Takes blocks of `pages` together, or as many as are gathered at a time, off the lists, in the order in which a
    /// drain does: round-robin, beginning with list `from`, the coldest of each first. `from` becomes the list to go
    /// on with.
    pub(super) fn gather<M: Machine>(&mut self, cx: ZoneCx<'_, M>, pages: u32, from: &mut usize) -> Gathered {
        let none = Loose { pfn: Pfn(0), order: Order::ZERO, arena: 0, was: Mobility::Movable };
        let mut gathered = Gathered { blocks: [none; AT_A_TIME], len: 0 };
        let mut left = pages.min(self.count());
        while left > 0 && gathered.len < AT_A_TIME {
            let order = Self::list_order(*from);
            let was = Self::list_mobility(*from);
            self.touch_list(cx.cx.machine, *from);
            let Some(pfn) = self.lists[*from].pop_back(cx.cx.mem()) else {
                *from = (*from + 1) % LISTS;
                continue;
            };
            self.tuning.count -= order.pages();
            left = left.saturating_sub(order.pages());
            let arena = cx.zone.arenas.read_owner(cx.cx.machine, pfn) as u8;
            gathered.blocks[gathered.len] = Loose { pfn, order, arena, was };
            gathered.len += 1;
        }
        gathered
    }
}

impl Gathered {
    /// Fetches the lines that freeing the blocks will need, as far as that can be told now.
    pub(super) fn fetch<M: Machine>(&self, cx: ZoneCx<'_, M>) {
        for block in &self.blocks[..self.len] {
            fetch(cx, block.pfn, block.order);
        }
    }

    /// Frees the blocks, each arena's in one hold of its lock and in the order in which they were gathered. Gives their
    /// pages.
    pub(super) fn free<M: Machine>(&mut self, cx: ZoneCx<'_, M>, hold: &mut Hold) -> (u32, GoesOn) {
        let mut left = &mut self.blocks[..self.len];
        let (mut freed, mut goes_on) = (0, GoesOn::Yes);
        while let Some(&Loose { pfn, arena, .. }) = left.first() {
            let mut free = cx.zone.arenas.lock_owner(cx.cx.machine, pfn);
            let mut others = 0;
            for index in 0..left.len() {
                let block = left[index];
                if block.arena != arena {
                    left[others] = block;
                    others += 1;
                    continue;
                }
                free_block(cx, &mut free, block);
                freed += block.order.pages();
                if hold.is_over(&free) {
                    goes_on = GoesOn::No;
                }
            }
            left = &mut left[..others];
        }
        (freed, goes_on)
    }
}

fn free_block<M: Machine>(cx: ZoneCx<'_, M>, free: &mut Guard<'_, M, FreeAreas>, block: Loose) {
    let migratetype = cx.cx.blocks.read(cx.cx.machine, block.pfn);
    cx.cx.blocks.joined(cx.cx.machine, (block.pfn, block.order), block.was);
    free.free(cx, block.pfn, block.order, migratetype);
}

/// Fetches the lines that freeing the block at `pfn` will need: goes the way of its merges.
fn fetch<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, order: Order) {
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
