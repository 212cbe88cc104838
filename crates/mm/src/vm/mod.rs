//! Address spaces and files: what programs see of memory. Regions say what may be touched, faults bring pages in, page
//! tables map them, unmapping gives them back in the kernel's batches.
//!
//! ```text
//!   map ─▶ region ──(touch)──▶ fault ─▶ table ─▶ entry ─▶ page ◀─ file (page cache) ─▶ writeback
//!                                │                          │
//!                                └─▶ huge, copy on write    └─▶ rmap: back to the entries, for reclaim and migration
//! ```
//!
//! `region` is the map of an address space, `table` and `entry` its page tables, `fault` and `huge` what a touch does (`thp`
//! says who gets huge pages, `khugepaged` and `collapse` make some of small ones),
//! `zap` unmapping, `fork` copies, `file` the page cache, `writeback` the way of dirty pages, `swap` the slots. Modelled
//! where the seeds' costs lie: there is no executable code, no protection but read-only sharing, no NUMA hints yet.
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
mod pin;
mod region;
mod space;
mod swap;
mod table;
#[cfg(test)]
mod tests;
mod thp;
mod writeback;
mod zap;

use core::fmt;

use crate::ids::PAGEBLOCK_PAGES;

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

/// A virtual page number: address / 4096. 32 bits reach 16 TiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Vpn(pub u32);

impl Vpn {
    /// The page `pages` further up.
    #[must_use]
    pub const fn add(self, pages: u32) -> Self {
        Self(self.0 + pages)
    }

    /// The first page of the same table.
    #[must_use]
    pub(crate) const fn table_start(self) -> Self {
        Self(self.0 & !(PAGEBLOCK_PAGES - 1))
    }

    /// Its place within its table.
    #[inline]
    pub(crate) const fn slot(self) -> usize {
        (self.0 % PAGEBLOCK_PAGES) as usize
    }
}

impl fmt::Display for Vpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "virtual page {:#x}", self.0)
    }
}

/// An address space's number; none is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SpaceId(pub u32);

/// A file's number; none is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// How memory is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It is read.
    Read,
    /// It is written.
    Write,
}
