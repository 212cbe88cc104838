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
mod file;
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
mod writeback;
mod zap;

pub use crate::ground::ids::{FileId, SpaceId, Vpn};
pub(crate) use entry::{Entry, bit};
pub use fault::{FaultError, FaultKind, Faulted};
pub use file::{Cached, File, FileKind};
pub use fork::ForkError;
pub use pin::Pinned;
pub use region::{Backing, HugePages, MapSpec, Placement};
pub(crate) use space::Vm;
pub use space::{AddressSpace, MapError};
pub(crate) use swap::Swap;
pub(crate) use table::Table;
pub use writeback::DirtyPages;

/// How memory is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It is read.
    Read,
    /// It is written.
    Write,
}
