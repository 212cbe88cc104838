//! Address spaces and files: what programs see of memory. Regions say what may be touched, faults bring pages in, page
//! tables map them, unmapping gives them back in the kernel's batches.
//!
//! ```text
//!   map ─▶ region ──(touch)──▶ fault ─▶ table ─▶ entry ─▶ page ◀─ file (page cache) ─▶ writeback
//!                                │                          │
//!                                └─▶ huge, copy on write    └─▶ rmap: back to the entries, for reclaim and migration
//! ```
//!
//! `region` is the map of an address space, `table`, `upper` and `entry` its page tables, `fault`, `copy`, `from_file`, `zero` and
//! `huge` what a touch does (`thp` says who gets huge pages, `khugepaged` and `collapse` make some of small ones), `zap`
//! unmapping, `remap` moving, `protect` what may be touched, `fork` copies, `family` who shares pages after that,
//! `swap` the slots (`slots`, which are free, `swap_ahead` and `swap_cluster`, which are read together, `swap_behind` and `swap_queue`, which are written,
//! `swap_beside` and `swap_kept`, which are in memory too, `zswap` and `zswap_pool`, which are in memory compressed), `deferred` huge pages that are to be split, `counters` what is counted of an
//! address space, `hint` makes pages fault for NUMA balancing.
//!
//! A fault looks its region up, allocates without any lock held, and installs the page under the table's lock if the
//! regions are still those that it saw (`AddressSpace::generation`): who unmaps first takes the region out, then clears
//! entries under the same locks, so nothing is ever left behind.

mod advice;
mod check;
mod collapse;
mod collapse_shared;
mod contents;
mod copy;
mod counters;
mod deferred;
mod entry;
mod family;
mod fault;
mod fork;
mod from_file;
mod hint;
mod huge;
mod khugepaged;
mod large;
pub mod mempolicy;
pub(crate) mod migrate;
mod migrate_by;
mod pin;
mod protect;
mod region;
mod remap;
pub(crate) mod rmap;
mod shared;
mod slots;
mod space;
mod swap;
mod swap_ahead;
mod swap_behind;
mod swap_beside;
mod swap_cluster;
mod swap_kept;
mod swap_large;
mod swap_queue;
mod table;
#[cfg(test)]
mod tests;
mod thp;
mod upper;
mod young;
mod zap;
mod zero;
mod zswap;
mod zswap_pool;

pub use crate::cache::{
    Cached, DirtyFolio, DirtyPages, FileKind, Folio, MemoryFile, ReadDone, ReadPattern, Reader,
};
pub use crate::ground::ids::{FileId, SpaceId, Vpn};
pub use crate::pages::request::Placement;
pub use advice::{Advice, AdviceError, MemoryLock};
pub use contents::ZeroPages;
pub use counters::SpaceCounters;
pub(crate) use entry::{Entry, bit};
pub use fault::{FaultError, FaultKind, Faulted};
pub use fork::ForkError;
pub use hint::{HintArea, Hinted};
pub use pin::Pinned;
pub use region::{Backing, HugePages, MapSpec, Protection, Reserve};
pub use space::Vm;
pub use space::{AddressSpace, MapError, PartOf, Residence};
pub use swap::SwapDevice;
pub(crate) use swap::{LargeSwap, Swap};
pub(crate) use swap_queue::Leaving;
pub(crate) use table::Table;
pub use thp::is_as_by_default;
pub(crate) use young::{Around, Walk};

use crate::cache::{FilesDoor, FilesGround, SharedDoor, SwappedDoor};
use crate::ground::machine::Machine;
use crate::lru::{GenDoor, LruDoor, UnevictableDoor};
use crate::memcg::MemcgDoor;
use crate::pages::door;

/// A file, which address spaces map.
pub type File<M> = crate::cache::File<M, AddressSpace<M>>;

/// What address spaces stand on.
pub trait SpacesGround<M: Machine>: FilesGround<M, Space = AddressSpace<M>> {
    /// The address spaces' own.
    fn address_spaces(&self) -> &Vm<M>;
}

door! {
    /// Address spaces: what programs do to them.
    SpacesDoor on SpacesGround, Vm<M>: address_spaces, to {
        memcg: MemcgDoor, lru: LruDoor, unevictable: UnevictableDoor, files: FilesDoor, shared: SharedDoor, rmap: RmapDoor, swap: SwapDoor, collapses: CollapseDoor, faults: FaultDoor, tables: TablesDoor
    }
}

door! {
    /// Huge pages that are to be split some time.
    DeferredDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, rmap: RmapDoor, spaces: SpacesDoor }
}

door! {
    /// Slots of swap: whose they are, what their pages left.
    SwapDoor on SpacesGround, Vm<M>: address_spaces, to { memcg: MemcgDoor, lru: LruDoor, spaces: SpacesDoor }
}

door! {
    /// Private memory that was read from swap with other, and is still to be wanted.
    AheadDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, swapped: SwappedDoor, swap: SwapDoor }
}

door! {
    /// Page faults.
    FaultDoor on SpacesGround, Vm<M>: address_spaces, to {
        lru: LruDoor, unevictable: UnevictableDoor, files: FilesDoor, shared: SharedDoor, spaces: SpacesDoor, swap: SwapDoor, swap_ahead: AheadDoor, collapses: CollapseDoor, tables: TablesDoor, deferred: DeferredDoor
    }
}

door! {
    /// Page tables: entries cleared, split, copied, moved and write-protected, for whatever reason.
    TablesDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, unevictable: UnevictableDoor, files: FilesDoor, shared: SharedDoor, spaces: SpacesDoor, swap: SwapDoor, deferred: DeferredDoor }
}

door! {
    /// From a page back to those who map it: whether they used it, out of their tables, over to another frame.
    RmapDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, generations: GenDoor, files: FilesDoor, swapped: SwappedDoor, spaces: SpacesDoor, swap: SwapDoor, swap_ahead: AheadDoor, deferred: DeferredDoor, tables: TablesDoor }
}

door! {
    /// khugepaged: huge pages made of small ones.
    CollapseDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, unevictable: UnevictableDoor, files: FilesDoor, shared: SharedDoor, spaces: SpacesDoor, swap: SwapDoor, rmap: RmapDoor, faults: FaultDoor, tables: TablesDoor, deferred: DeferredDoor }
}

/// How memory is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It is read.
    Read,
    /// It is written.
    Write,
}
