//! Filling memory, and making the same hole in each 2 MiB of it.

use std::sync::Arc;

use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::{AddressSpace, MapSpec, Placement, Touch, Vpn};
use mm::{Node, NodeMask, Order, Pfn, Request, Zone, ZoneKind};
use sim::SimMachine;

use super::Filled;
use crate::stage::Stage;

/// What lies in memory.
#[derive(Default)]
pub(super) struct Lying {
    spaces: Vec<Arc<AddressSpace<SimMachine>>>,
    /// Single pages of the kernel's.
    pages: Vec<Pfn>,
}

/// Fills every node up to its high marks, and gives the first `holes` pages of each 2 MiB back.
pub(super) fn fill(stage: &Stage, with: Filled, holes: u32) -> Lying {
    let mut lying = Lying::default();
    for node in (0..stage.mm.topology().nodes.len() as u16).map(Node) {
        match with {
            Filled::Anonymous => lying.anonymous(stage, node, holes),
            Filled::Kernel => lying.kernel(stage, node, holes),
        }
    }
    stage.mm.drain_all();
    lying
}

impl Lying {
    /// Small pages of a program, 2 MiB of addresses at a time.
    fn anonymous(&mut self, stage: &Stage, node: Node, holes: u32) {
        let mm = &stage.mm;
        let space = mm.spaces().new_space();
        let blocks = (free_pages(stage, node) / u64::from(PAGEBLOCK_PAGES)) as u32;
        let from = Placement { node: Some(node), allowed: [node].into_iter().collect::<NodeMask>() };
        let spec = MapSpec::anonymous(blocks * PAGEBLOCK_PAGES).small().placed(from);
        let Ok(start) = mm.spaces().mmap(&space, spec) else { return };
        let mut last = 0;
        while last < blocks && free_pages(stage, node) > kept(stage, node) {
            if mm
                .spaces()
                .populate(&space, start.add(last * PAGEBLOCK_PAGES), PAGEBLOCK_PAGES, Touch::Write)
                .is_err()
            {
                break;
            }
            last += 1;
        }
        let punch = |block: u32| mm.spaces().munmap(&space, Vpn(start.0 + block * PAGEBLOCK_PAGES), holes);
        (0..last).for_each(punch);
        self.spaces.push(space);
    }

    /// Blocks of the kernel's, of which the first pages are given back one by one, and a page of a program: without any there
    /// is nothing to compact.
    fn kernel(&mut self, stage: &Stage, node: Node, holes: u32) {
        let mm = &stage.mm;
        let allowed = [node].into_iter().collect::<NodeMask>();
        let space = mm.spaces().new_space();
        let spec = MapSpec::anonymous(1).placed(Placement { node: Some(node), allowed });
        if let Ok(start) = mm.spaces().mmap(&space, spec) {
            mm.spaces()
                .populate(&space, start, 1, Touch::Write)
                .expect("memory for a page of a machine that is not filled yet");
        }
        self.spaces.push(space);
        let request = Request { node: Some(node), allowed, ..Request::KERNEL.of_order(Order::PAGEBLOCK) };
        let mut blocks = vec![];
        while free_pages(stage, node) > kept(stage, node) {
            let Ok(block) = mm.alloc(request) else { break };
            blocks.push(block);
        }
        for block in blocks {
            mm.pages().split(block, Order::PAGEBLOCK).expect("the block was allocated above");
            for page in 0..PAGEBLOCK_PAGES {
                if page < holes {
                    mm.free(block.add(page), Order::ZERO).expect("a page of a split block");
                } else {
                    self.pages.push(block.add(page));
                }
            }
        }
    }

    /// Gives everything back.
    pub(super) fn go(self, stage: &Stage) {
        self.spaces.iter().for_each(|space| stage.mm.spaces().exit(space));
        for page in self.pages {
            stage.mm.free(page, Order::ZERO).expect("a page that was kept");
        }
    }
}

/// Zones that requests may come from without leaving DMA's to devices.
fn zones(stage: &Stage, node: Node) -> impl Iterator<Item = &Zone<SimMachine>> {
    stage.mm.zones().iter().filter(move |zone| zone.node() == node && zone.kind() != ZoneKind::Dma)
}

pub(super) fn free_pages(stage: &Stage, node: Node) -> u64 {
    zones(stage, node).map(|zone| u64::from(zone.free_pages())).sum()
}

/// What zones keep when nobody is to reclaim: their high marks, what low zones keep from requests that could use others, and
/// what page tables and CPUs' lists may take at once.
fn kept(stage: &Stage, node: Node) -> u64 {
    let of = |zone: &Zone<SimMachine>| {
        zone.decide_by_kept(stage.mm.machine(), ZoneKind::Movable, |marks, kept| {
            u64::from(marks.high) + u64::from(kept) + u64::from(4 * PAGEBLOCK_PAGES)
        })
    };
    zones(stage, node).map(of).sum()
}
