//! What others see of all rooms: /proc's files, counters under vmstat's names, the report when memory is out, and the walk
//! that checks every invariant. Views read; they change nothing.

mod blocks;
pub(crate) mod check;
pub(crate) mod counters;
mod groups;
pub mod oom;
pub mod procfs;

use crate::cache::FilesDoor;
use crate::compact::CompactDoor;
use crate::ground::Machine;
use crate::lru::{LruDoor, UnevictableDoor};
use crate::pages::door;
use crate::reclaim::{ReclaimDoor, ReclaimGround};
use crate::slab::SlabDoor;
use crate::vm::SpacesDoor;
use oom::OomReports;

/// What views look at.
pub trait ViewsGround<M: Machine>: ReclaimGround<M> {
    /// The reports of requests that failed.
    fn oom_reports(&self) -> &OomReports<M>;
}

door! {
    /// What others see.
    ViewsDoor on ViewsGround, OomReports<M>: oom_reports, to {
        lru: LruDoor, unevictable: UnevictableDoor, files: FilesDoor, spaces: SpacesDoor, compaction: CompactDoor, reclaim: ReclaimDoor, slabs: SlabDoor
    }
}
