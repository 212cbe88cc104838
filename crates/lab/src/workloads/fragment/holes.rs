//! Making holes: what lies in memory goes piece by piece at random, in runs as large as the wanted fragmentation index
//! needs them, and what the kernel takes then is scattered over the holes.

use mm::vm::{MapSpec, Touch};
use mm::{Node, Order, Zone};
use sim::SimMachine;

use super::fill::kernel_request;
use super::{BLOCK, Fragment, Region, Remains, index_of, is_asked, largest_zone, pages_of, placement};
use crate::stage::{Random, Stage};

/// How often the index is looked at on the way to the goal.
const LOOKS: u64 = 128;
/// How near the index must come to what is wanted, in thousandths.
const TOLERANCE: i32 = 3;

/// The longest run that goes at once: half a pageblock.
const RUN_MAX: u32 = BLOCK / 2;

/// What holes are made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Room for what the kernel takes late, and as much again.
    Scattered,
    /// The free memory that is wanted, at the index that is wanted.
    Free,
}

/// How large the next holes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Size {
    /// Single pages: free memory becomes more fragmented.
    Pages,
    /// Runs of 32 to 256 pages: it becomes less so.
    Runs,
}

/// Who makes them.
pub(super) struct Holes<'a> {
    stage: &'a Stage,
    spec: Fragment,
    random: &'a mut Random,
}

impl<'a> Holes<'a> {
    pub(super) fn new(stage: &'a Stage, spec: Fragment, random: &'a mut Random) -> Self {
        Self { stage, spec, random }
    }

    /// Makes holes until there is as much free memory as `goal` says, and for [`Purpose::Free`] the index is what it is to
    /// be; half as much again at most.
    pub(super) fn dig(&mut self, remains: &mut Remains, goal: Purpose) {
        let share = |share| pages_of(self.stage, remains.node, share);
        let wanted = match goal {
            Purpose::Scattered => 2 * share(self.spec.scattered),
            Purpose::Free => share(self.spec.free),
        };
        let step = (wanted / LOOKS).max(1);
        self.settle(remains);
        for _ in 0..LOOKS * 3 / 2 {
            let (free, index) = (self.free(remains.node), self.index(remains.node));
            let off = index - self.spec.index as i32;
            if free >= wanted && (goal == Purpose::Scattered || off.abs() <= TOLERANCE) {
                break;
            }
            let size = if off > 0 { Size::Runs } else { Size::Pages };
            self.make(remains, step, size);
            self.settle(remains);
        }
    }

    /// The kernel takes single pages: there are no pageblocks for it.
    pub(super) fn scatter(&mut self, remains: &mut Remains) {
        let request = kernel_request(placement(self.stage, remains.node));
        for _ in 0..pages_of(self.stage, remains.node, self.spec.scattered) {
            let Ok(page) = self.stage.mm.alloc(request) else { break };
            remains.kernel.push((page, Order::ZERO));
        }
        self.stage.mm.drain_all();
    }

    /// Holes of `pages` in all, more or less.
    fn make(&mut self, remains: &mut Remains, pages: u64, size: Size) {
        let mut made = 0;
        // Where a hole is already nothing comes of it.
        for _ in 0..pages * 4 {
            if made >= pages {
                break;
            }
            let run = match size {
                Size::Pages => 1,
                Size::Runs => RUN_MAX >> self.random.below(4),
            };
            made += self.hole(remains, run);
        }
    }

    /// A hole of up to `run` pages somewhere; gives its pages.
    fn hole(&mut self, remains: &mut Remains, run: u32) -> u64 {
        let (own, pinned) = (u64::from(remains.anon.pages), u64::from(remains.pinned.pages));
        let (anon, file) = (own + pinned, u64::from(remains.file_pages));
        let at = self.random.below((anon + file + remains.kernel.len() as u64).max(1));
        if at < anon {
            let (region, at) = if at < own { (remains.anon, at) } else { (remains.pinned, at - own) };
            return self.hole_in(remains, region, at as u32, run);
        }
        if at < anon + file {
            let first = (at - anon) as u32 / run * run;
            return self.stage.mm.files().forget_pages(&remains.file, first..first + run).into();
        }
        if remains.kernel.is_empty() {
            return 0;
        }
        let (block, order) = remains.kernel.swap_remove((at - anon - file) as usize);
        self.stage.mm.free(block, order).expect("the kernel has what it took");
        u64::from(order.pages())
    }

    /// The run around the page `at` of a region whose frames are aligned as a block of the size would be.
    fn hole_in(&self, remains: &Remains, region: Region, at: u32, run: u32) -> u64 {
        let Some(frame) = remains.space.access(region.start.add(at), Touch::Read) else { return 0 };
        let first = at.saturating_sub(frame.0 % run);
        let before = remains.space.resident_pages();
        self.stage.mm.spaces().discard(
            &remains.space,
            region.start.add(first),
            run.min(region.pages - first),
        );
        before - remains.space.resident_pages()
    }

    /// Nothing is kept back by a CPU, and no free block is as large as a pageblock.
    fn settle(&mut self, remains: &Remains) {
        let Stage { mm, .. } = self.stage;
        mm.lru().lru_drain_all();
        mm.drain_all();
        let zone = self.zone(remains.node);
        let has_enough = || {
            let free = zone.free_pages();
            zone.decide_by_marks(mm.machine(), |marks| free > marks.high + 4 * BLOCK)
        };
        while self.index(remains.node) == -1000 && has_enough() {
            if !self.break_up(remains) {
                break;
            }
        }
    }

    /// A process takes a whole pageblock as a huge page, splits it, and gives every other piece of eight pages back. False
    /// if there is none that it may take.
    fn break_up(&mut self, remains: &Remains) -> bool {
        let Stage { mm, .. } = self.stage;
        let from = placement(self.stage, remains.node);
        let Ok(start) = mm.spaces().mmap(&remains.huge, MapSpec::anonymous(BLOCK).placed(from)) else {
            return false;
        };
        let before = mm.views().free_blocks_in(self.zone(remains.node));
        if mm.spaces().populate(&remains.huge, start, BLOCK, Touch::Write).is_err() {
            return false;
        }
        mm.spaces().split_huge(&remains.huge, start);
        mm.lru().lru_drain_all();
        let skew = self.random.below(2) as u32;
        for piece in (0..BLOCK / 8).filter(|piece| piece % 2 == skew) {
            mm.spaces().discard(&remains.huge, start.add(piece * 8), 8);
        }
        mm.drain_all();
        large(&mm.views().free_blocks_in(self.zone(remains.node))) < large(&before)
    }

    fn zone(&self, node: Node) -> &'a Zone<SimMachine> {
        largest_zone(self.stage, node).expect("only nodes with memory are fragmented")
    }

    fn free(&self, node: Node) -> u64 {
        let zones = self.stage.mm.zones().iter().filter(|zone| zone.node() == node && is_asked(zone));
        zones.map(Zone::free_pages_exact).sum()
    }

    fn index(&self, node: Node) -> i32 {
        index_of(&self.stage.mm.views().free_blocks_in(self.zone(node)), Order::PAGEBLOCK)
    }
}

/// Pages in free blocks as large as a pageblock or larger.
fn large(blocks: &[u64]) -> u64 {
    let orders = blocks.iter().enumerate().skip(Order::PAGEBLOCK.index());
    orders.map(|(order, count)| count << order).sum()
}
