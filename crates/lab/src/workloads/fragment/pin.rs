//! Pages that somebody works with: pinned for good, for nobody unpins what is dropped.

use mm::vm::{MapSpec, Touch, Vpn};

use super::{Remains, WHOLE, placement};
use crate::stage::{Random, Stage};

/// Pins all that is left of the memory that is to stay, and `busy` of 10,000 pages of the file.
pub(super) fn pin(stage: &Stage, busy: u32, remains: &mut Remains, random: &mut Random) {
    for page in 0..remains.pinned.pages {
        let vpn = remains.pinned.start.add(page);
        // In a hole there is nothing.
        remains.stay +=
            u64::from(remains.space.access(vpn, Touch::Read).is_some() && keep(stage, remains, vpn));
    }
    if busy == 0 || remains.file_pages == 0 {
        return;
    }
    let spec = MapSpec::shared(&remains.file, remains.file_pages).placed(placement(stage, remains.node));
    let Ok(start) = stage.mm.spaces().mmap(&remains.space, spec) else { return };
    for page in 0..remains.file_pages {
        if random.below(WHOLE) < u64::from(busy) {
            remains.stay += u64::from(keep(stage, remains, start.add(page)));
        }
    }
    // What is pinned need not be mapped.
    stage.mm.spaces().munmap(&remains.space, start, remains.file_pages);
}

/// Pins what is at `vpn`; says whether it could.
fn keep(stage: &Stage, remains: &Remains, vpn: Vpn) -> bool {
    let pinned = stage.mm.rmap().pin_page(&remains.space, vpn, Touch::Read);
    pinned.is_ok()
}
