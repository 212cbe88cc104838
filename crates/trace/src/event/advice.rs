//! Words of an `advise` event that are no `madvise`'s: other calls that say something of a range, or need one.

use super::EventKind;

impl EventKind {
    /// An advice to all of an address space that is no `madvise`: no huge pages from here on (`PR_SET_THP_DISABLE`).
    pub const FORBID_HUGE_PAGES: u32 = 1001;
    /// The opposite.
    pub const ALLOW_HUGE_PAGES: u32 = 1000;
    /// No `madvise` either: a direct write needed a range in memory. What of it was not there came in as by `MADV_POPULATE_READ` (22).
    pub const NEEDED_TO_READ: u32 = 1022;
    /// The same of a direct read, which writes to the range: as by `MADV_POPULATE_WRITE` (23).
    pub const NEEDED_TO_WRITE: u32 = 1023;
}
