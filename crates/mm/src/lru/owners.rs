//! How pages leave those who own them, address spaces and files, for reclaim, compaction, promotion and offlining alike: a
//! page is isolated (`isolate`), moved, and put back where it stayed. The lists isolate and take back; who owns a page is
//! known above them.

use core::fmt;

use super::LruGround;
use crate::ground::{Machine, Pfn};
use crate::pages::Request;

/// Moving isolated pages. Whoever isolated a page ends its isolation if it moved, or else puts it back.
pub trait Owners<M: Machine>: LruGround<M> {
    /// Moves the page at `from` to a frame that `request`, of the page's order, is given.
    ///
    /// # Errors
    /// Why it stayed.
    fn move_to(&self, from: Pfn, request: Request) -> Result<(), MigrateError>;

    /// Moves the page at `from` to the frame `to` of the same order, which the caller allocated; `from` is free then.
    ///
    /// # Errors
    /// Why it stayed; the caller keeps both frames.
    fn move_into(&self, from: Pfn, to: Pfn) -> Result<(), MigrateError>;

    /// The same, but `from` is not freed: it is the caller's frame then, to which nobody refers.
    ///
    /// # Errors
    /// Why it stayed; the caller keeps both frames.
    fn move_out(&self, from: Pfn, to: Pfn) -> Result<(), MigrateError>;
}

/// Why a page stayed where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateError {
    /// Somebody changes it, or it is being written.
    Busy,
    /// Somebody besides page tables and its file refers to it.
    Pinned,
    /// It belongs to no address space and no file: nobody could be told where it went.
    Unmovable,
    /// Nothing is mapped there.
    Absent,
    /// There is no free frame for it.
    NoMemory,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the page is being changed or written",
            Self::Pinned => "the page is pinned",
            Self::Unmovable => "the page is not one that can move",
            Self::Absent => "no page is mapped there",
            Self::NoMemory => "the node has no free frame for the page",
        })
    }
}

impl core::error::Error for MigrateError {}
