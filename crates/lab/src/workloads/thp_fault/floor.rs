//! The least that a range of huge pages could cost at this machine's prices, by who knew everything: clearing, and moving the
//! fewest pages that stand in the way.

use mm::{Chore, Order, Zone};
use sim::{SimMachine, Traffic};

use crate::stage::Stage;

/// What there is to gain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    /// Pageblocks that could be emptied, or are empty.
    pub(super) blocks: u64,
    /// The fewest pages to move for as many of them as are wanted.
    pub(super) moved: u64,
    /// What those blocks cost, ns; those that are missing cost nothing here.
    pub(super) ns: u64,
}

/// The floor for `wanted` huge pages as memory is now.
pub(super) fn floor(stage: &Stage, wanted: u32) -> Floor {
    let mut pages: Vec<u32> = stage.mm.zones().iter().flat_map(|zone| to_move(stage, zone)).collect();
    pages.sort_unstable();
    let (blocks, wanted) = (pages.len() as u64, wanted as usize);
    pages.truncate(wanted);
    let moved = pages.iter().map(|&pages| u64::from(pages)).sum();
    let machine = stage.machine();
    let page = machine.price(Chore::Migrate).0
        + machine.price(Chore::RmapStep).0
        + machine.price_of_block(Traffic::Copy, Order::ZERO).0;
    let fault = machine.price(Chore::Exception).0 + machine.price(Chore::Fault).0;
    let block = fault + machine.price_of_block(Traffic::Clear, Order::PAGEBLOCK).0;
    Floor { blocks, moved, ns: pages.len() as u64 * block + moved * page }
}

/// Pages to move for each of the zone's pageblocks that has none which stays.
fn to_move<'a>(stage: &'a Stage, zone: &'a Zone<SimMachine>) -> impl Iterator<Item = u32> + 'a {
    stage.mm.emptying().block_contents(zone).filter(|block| block.fixed == 0).map(|block| block.movable)
}
