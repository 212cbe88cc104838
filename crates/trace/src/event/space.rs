//! What events of address spaces say: how a range is mapped, what was there when a recording began.

use std::fmt;
use std::ops::BitOr;

/// What tells a file from all others while it exists: the name of a file in a recording begins with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileKey {
    /// The file system's device: major number << 20 | minor number, as the kernel has it.
    pub device: u32,
    /// The file's number in it. The first shared memory of System V has 0.
    pub inode: u64,
}

impl FileKey {
    /// No file: memory of the program's own, or the kernel's.
    pub const NONE: Self = Self { device: 0, inode: 0 };

    /// The key in a file's name, such as `254:0:1234 /usr/bin/dd`; `None` if the name is no file's.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut numbers = name.split(' ').next()?.split(':');
        let mut next = || numbers.next().filter(|text| !text.starts_with('+'));
        let (major, minor): (u32, u32) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let inode = next()?.parse().ok()?;
        let is_whole = next().is_none() && major < 1 << 12 && minor < 1 << 20;
        is_whole.then_some(Self { device: major << 20 | minor, inode })
    }
}

impl fmt::Display for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.device >> 20, self.device & 0xf_ffff, self.inode)
    }
}

/// What may be done with a range of an address space, and how it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MapFlags(pub u32);

impl MapFlags {
    /// It may be read.
    pub const READ: Self = Self(1);
    /// It may be written.
    pub const WRITE: Self = Self(2);
    /// Instructions in it may run.
    pub const EXECUTE: Self = Self(4);
    /// What is written is everybody's who maps it (`MAP_SHARED`).
    pub const SHARED: Self = Self(8);
    /// All of it is brought in at once (`MAP_POPULATE`).
    pub const POPULATE: Self = Self(16);
    /// It is brought in and stays (`MAP_LOCKED`, `mlockall`).
    pub const LOCKED: Self = Self(32);
    /// A stack: it grows downwards when it is touched below.
    pub const STACK: Self = Self(64);
    /// The heap that `brk` makes larger.
    pub const HEAP: Self = Self(128);
    /// Pages of `hugetlbfs`.
    pub const HUGETLB: Self = Self(256);
    /// Nothing was set aside for it (`MAP_NORESERVE`).
    pub const NORESERVE: Self = Self(512);
    /// It was mapped already when the recording began.
    pub const BEFORE: Self = Self(1024);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for MapFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What was there in a range of an address space when the recording began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PresentKind {
    /// Pages of the program's own.
    Anonymous = 0,
    /// Huge pages of the program's own; which of their small pages were touched is not known.
    Huge = 1,
    /// Pages in swap.
    Swapped = 2,
    /// Pages of a file or of shared memory.
    File = 3,
    /// The page of zeros, for memory that was read and never written.
    Zero = 4,
    /// Of huge pages that were told of just before, small ones that hold nothing but zeros: they were perhaps never touched.
    HugeZeros = 5,
    /// So many private pages of the mapping that begins at this address, somewhere in it, were read for what they hold.
    Read = 6,
    /// Nothing: accessed bits were looked at, so many µs (in the place of pages) after they were cleared, of which the process was on a CPU for
    /// so many (in the place of zeros); with 0, they were cleared just now. What follows of the next kind is what came since the look before.
    Looked = 7,
    /// Of the 64 pages from this address on, those that were accessed: a bit each, the first 32 in the place of pages, the others in that
    /// of zeros.
    Used = 8,
}

impl PresentKind {
    /// All kinds, by their number.
    pub const ALL: [Self; 9] = [
        Self::Anonymous,
        Self::Huge,
        Self::Swapped,
        Self::File,
        Self::Zero,
        Self::HugeZeros,
        Self::Read,
        Self::Looked,
        Self::Used,
    ];
}
