//! What a page trace does not say and must be inferred: which list a page was on, which request caused a refill, why a
//! drain came. The outcome is a list of steps to take mm through, with the kernel's refills and drains beside it.

use mm::{Order, Pfn};

use super::lists::{ListId, PagesetId, Shape};

/// A step of the run, as mm is to be taken through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// The event behind it, as an index into the trace.
    pub(super) event: u32,
    /// The page, as an index into the trace's frames.
    pub(super) page: u32,
    pub(super) what: What,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A block is taken off a list; the number is one more than that of the refill that it causes, 0 for none.
    Take(ListId, u32),
    /// The same, by the bulk allocator, which leaves no event.
    TakeUnseen(ListId, u32),
    /// A block is taken from a zone's buddy lists.
    TakeBuddy(u16, Order),
    /// A block goes to a list.
    Put(ListId, Actor),
    /// A block goes to a zone's buddy lists.
    PutBuddy(u16, Order),
    /// The vmstat tick of a CPU that was seen to drain.
    Tick(u16),
    /// What the kernel drained, as an index into [`Story::drains`].
    Drained(u32),
    /// The knob changes: to `vm.pcp_batch_scale_max` of this value.
    Knob(u8),
}

/// Who frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Actor {
    Task,
    /// kswapd: the zone is being reclaimed.
    Kswapd,
}

/// A refill by the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KernelRefill {
    /// The first event of the run.
    pub(super) event: u32,
    pub(super) list: ListId,
    /// Blocks that were seen.
    pub(super) seen: u32,
    /// Blocks that came to light later: nothing but a refill of the list can have brought them, most likely this one.
    pub(super) revealed: u32,
    /// The same of this refill and its neighbours on the list.
    pub(super) revealed_near: u32,
    /// First blocks of pageblocks claimed whole, of which the kernel says nothing, and which never came to light.
    pub(super) silent: u32,
}

/// A drain by the kernel, of one pageset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KernelDrain {
    /// The first event of the run.
    pub(super) event: u32,
    pub(super) pageset: PagesetId,
    pub(super) cause: Cause,
    /// Another drain of the pageset was under way, and went on afterwards.
    pub(super) amid: bool,
    /// Base pages.
    pub(super) pages: u32,
    /// Blocks from each list.
    pub(super) blocks: Vec<(ListId, u32)>,
}

/// Why pages were drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// A free found too many on the lists.
    Free,
    /// A free by kswapd did.
    Kswapd,
    /// The CPU's vmstat tick: `high` has fallen, or the lists of another node's zone were idle.
    Tick,
    /// Somebody emptied the lists: another CPU, or a request in direct reclaim.
    All,
}

/// A run, ready to be replayed.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) shape: Shape,
    pub(super) steps: Vec<Step>,
    pub(super) refills: Vec<KernelRefill>,
    pub(super) drains: Vec<KernelDrain>,
    /// Blocks that were on each list when the trace began.
    pub(super) initial: Vec<u32>,
    /// Lists that were refilled, so that nothing was on them for good.
    pub(super) refilled: Vec<bool>,
    /// Blocks in use when the trace began and freed in it, by zone and order.
    pub(super) in_use: Vec<[u32; Order::MAX.index() + 1]>,
    /// Events of frames that are in no zone.
    pub(super) homeless: u64,
}

impl Story {
    /// The blocks that the kernel's refill can have taken.
    pub(super) fn taken(&self, refill: u32) -> std::ops::RangeInclusive<u32> {
        let refill = &self.refills[refill as usize];
        refill.seen..=refill.seen + refill.silent + refill.revealed_near
    }

    /// Which of two neighbouring refills brought a block is not certain: adds up what each may have.
    pub(super) fn add_up_revealed(&mut self) {
        let mut of_list: Vec<Vec<usize>> = vec![vec![]; self.shape.lists()];
        for (number, refill) in self.refills.iter().enumerate() {
            of_list[refill.list.index()].push(number);
        }
        for refills in of_list {
            for (at, number) in refills.iter().enumerate() {
                let near = &refills[at.saturating_sub(1)..refills.len().min(at + 3)];
                let revealed = near.iter().map(|number| self.refills[*number].revealed).sum();
                self.refills[*number].revealed_near = revealed;
            }
        }
    }
}

impl KernelRefill {
    /// Blocks that it took, as far as is known.
    pub(super) fn blocks(&self) -> u32 {
        self.seen + self.revealed
    }
}

/// The pageblock of a frame.
pub(super) fn pageblock(pfn: Pfn) -> u32 {
    pfn.0 >> mm::ids::PAGEBLOCK_ORDER
}
