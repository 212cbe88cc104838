//! Address spaces and files: what programs see of memory. Regions say what may be touched, faults bring pages in, page
//! tables map them, unmapping gives them back in the kernel's batches.
//!
//! ```text
//!   map ─▶ region ──(touch)──▶ fault ─▶ table ─▶ entry ─▶ page ◀─ file (page cache) ─▶ writeback
//!                                │                          │
//!                                └─▶ huge, copy on write    └─▶ rmap: back to the entries, for reclaim and migration
//! ```
//!
//! `region` is the map of an address space, `table` and `entry` its page tables, `fault` and `huge` what a touch does
//! (`thp` says who gets huge pages, `khugepaged` and `collapse` make some of small ones), `zap` unmapping, `fork` copies,
//! `file` the page cache, `writeback` the way of dirty pages, `swap` the slots. Modelled where the cost of the published
//! workloads lies: there is no executable code, no protection but read-only sharing, no NUMA hints yet.
//!
//! A fault looks its region up, allocates without any lock held, and installs the page under the table's lock if the
//! regions are still those that it saw (`AddressSpace::generation`): who unmaps first takes the region out, then clears
//! entries under the same locks, so nothing is ever left behind.

mod check;
mod collapse;
mod entry;
mod fault;
mod fork;
mod huge;
mod khugepaged;
pub mod mempolicy;
pub(crate) mod migrate;
mod pin;
mod region;
pub(crate) mod rmap;
mod space;
mod swap;
mod table;
#[cfg(test)]
mod tests;
mod thp;
mod zap;

pub use crate::cache::{Cached, DirtyPages, FileKind};
pub use crate::ground::ids::{FileId, SpaceId, Vpn};
pub use crate::pages::request::Placement;
pub(crate) use entry::{Entry, bit};
pub use fault::{FaultError, FaultKind, Faulted};
pub use fork::ForkError;
pub use pin::Pinned;
pub use region::{Backing, HugePages, MapSpec};
pub use space::Vm;
pub use space::{AddressSpace, MapError};
pub(crate) use swap::Swap;
pub(crate) use table::Table;

use crate::cache::{FilesDoor, FilesGround};
use crate::ground::machine::Machine;
use crate::lru::LruDoor;
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
        lru: LruDoor, files: FilesDoor, rmap: RmapDoor, collapses: CollapseDoor
    }
}

door! {
    /// From a page back to those who map it: whether they used it, out of their tables, over to another frame.
    RmapDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, files: FilesDoor, spaces: SpacesDoor }
}

door! {
    /// khugepaged: huge pages made of small ones.
    CollapseDoor on SpacesGround, Vm<M>: address_spaces, to { lru: LruDoor, files: FilesDoor, spaces: SpacesDoor, rmap: RmapDoor }
}

/// How memory is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It is read.
    Read,
    /// It is written.
    Write,
}
