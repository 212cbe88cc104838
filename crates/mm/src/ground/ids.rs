//! The index spaces of memory management, a newtype each, so that a page frame is never taken for a count of pages
//! or a CPU for a node. All are plain integers inside and cost nothing.

use core::fmt;

/// Bytes in a page: x86-64's base page.
pub const PAGE_SIZE: u64 = 4096;
/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// The largest order that the buddy allocator keeps: blocks of 4 MiB.
pub const MAX_PAGE_ORDER: u8 = 10;
/// Order of a pageblock, the unit of grouping by mobility: 2 MiB, also the order of a huge page.
pub const PAGEBLOCK_ORDER: u8 = 9;
/// Pages in a pageblock.
pub const PAGEBLOCK_PAGES: u32 = 1 << PAGEBLOCK_ORDER;
/// Orders above this one are "costly": the allocator may give up on them early.
pub const PAGE_ALLOC_COSTLY_ORDER: u8 = 3;

/// A page frame number: physical address / 4096. 32 bits reach 16 TiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pfn(pub u32);

impl Pfn {
    /// The frame `pages` further up.
    #[inline]
    #[must_use]
    pub const fn add(self, pages: u32) -> Self {
        Self(self.0 + pages)
    }

    /// The block of `order` that holds this frame starts here.
    #[inline]
    #[must_use]
    pub const fn align_down(self, order: Order) -> Self {
        Self(self.0 & !(order.pages() - 1))
    }

    /// The buddy of the block of `order` that starts here.
    #[inline]
    #[must_use]
    pub const fn buddy(self, order: Order) -> Self {
        Self(self.0 ^ order.pages())
    }
}

impl fmt::Display for Pfn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pfn {:#x}", self.0)
    }
}

/// A physical address, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Addr(pub u64);

impl Addr {
    /// Where frame `pfn` begins.
    #[inline]
    pub const fn of(pfn: Pfn) -> Self {
        Self((pfn.0 as u64) << PAGE_SHIFT)
    }

    /// The frame that it lies in. Addresses beyond the last frame that can be told give that one.
    #[inline]
    pub const fn pfn(self) -> Pfn {
        let pfn = self.0 >> PAGE_SHIFT;
        Pfn(if pfn > u32::MAX as u64 { u32::MAX } else { pfn as u32 })
    }

    /// Bytes from the start of its frame.
    #[inline]
    pub const fn offset(self) -> u32 {
        (self.0 % PAGE_SIZE) as u32
    }

    /// The address `bytes` further up.
    #[inline]
    #[must_use]
    pub const fn add(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// log2 of the pages in a block, 0 to [`MAX_PAGE_ORDER`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Order(u8);

impl Order {
    /// A single page.
    pub const ZERO: Self = Self(0);
    /// The largest block.
    pub const MAX: Self = Self(MAX_PAGE_ORDER);
    /// A pageblock, and a transparent huge page.
    pub const PAGEBLOCK: Self = Self(PAGEBLOCK_ORDER);

    /// `order`, if it is one that the buddy allocator keeps.
    #[inline]
    pub const fn new(order: u8) -> Option<Self> {
        if order <= MAX_PAGE_ORDER { Some(Self(order)) } else { None }
    }

    /// As a number, 0 to 10.
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// As an index into an array of 11.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Pages in a block of this order.
    #[inline]
    pub const fn pages(self) -> u32 {
        1 << self.0
    }

    /// The next larger order, if there is one.
    #[inline]
    #[must_use]
    pub const fn up(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }

    /// The next smaller order; order 0 has none.
    #[inline]
    #[must_use]
    pub const fn down(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(order) => Some(Self(order)),
            None => None,
        }
    }

    /// Every order from `self` to `last`, upwards.
    pub fn to(self, last: Self) -> impl DoubleEndedIterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}", self.0)
    }
}

/// A logical CPU, numbered from 0 without gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cpu(pub u16);

/// A memory node, numbered from 0 without gaps; it may lack CPUs or memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Node(pub u16);

/// A task (a thread, a process, a daemon), as the machine numbers them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TaskId(pub u32);

/// A zone of the whole machine: an index into [`crate::Mm::zones`], in order of node, then of [`ZoneKind`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ZoneId(pub u16);

/// Nanoseconds, as a duration or since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

/// The kinds of zone, lowest addresses first. No kernel has all: DMA32 is of 64-bit ones, HighMem of 32-bit ones
/// ([`crate::WordSize::zone_kinds`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma = 0,
    /// Below 4 GiB.
    Dma32 = 1,
    /// The rest, or on 32-bit machines what the kernel has mapped for good.
    Normal = 2,
    /// What a 32-bit kernel must map before it can reach it: user memory and page cache, no structures of its own.
    HighMem = 3,
    /// Pages that can all be migrated.
    Movable = 4,
}

impl ZoneKind {
    /// All kinds, lowest first.
    pub const ALL: [Self; 5] = [Self::Dma, Self::Dma32, Self::Normal, Self::HighMem, Self::Movable];
    /// How many there are.
    pub const COUNT: usize = 5;

    /// As an index into an array of five.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The kernel's name: `DMA`, `DMA32`, `Normal`, `HighMem`, `Movable`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dma => "DMA",
            Self::Dma32 => "DMA32",
            Self::Normal => "Normal",
            Self::HighMem => "HighMem",
            Self::Movable => "Movable",
        }
    }

    /// The kind that `/proc/zoneinfo` calls `name`; `None` for the zones that we leave out (Device).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What can be done about a page in the way of a larger block: how free lists and pageblocks are grouped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    #[default]
    Unmovable = 0,
    /// User memory and page cache.
    Movable = 1,
    /// Caches that can be shrunk.
    Reclaimable = 2,
    /// Pageblocks kept for atomic high-order requests.
    HighAtomic = 3,
    /// Lent to movable pages until a device needs it.
    Cma = 4,
    /// Being taken out of use.
    Isolate = 5,
}

impl MigrateType {
    /// All types, in the kernel's order.
    pub const ALL: [Self; 6] =
        [Self::Unmovable, Self::Movable, Self::Reclaimable, Self::HighAtomic, Self::Cma, Self::Isolate];
    /// How many there are.
    pub const COUNT: usize = 6;
    /// How many have per-CPU lists of their own: unmovable, movable, reclaimable.
    pub const PCP_COUNT: usize = 3;

    /// As an index into an array of six.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The type numbered `value`, as [`Self::index`] counts.
    #[inline]
    pub const fn from_index(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Unmovable),
            1 => Some(Self::Movable),
            2 => Some(Self::Reclaimable),
            3 => Some(Self::HighAtomic),
            4 => Some(Self::Cma),
            5 => Some(Self::Isolate),
            _ => None,
        }
    }

    /// The name in `/proc/pagetypeinfo`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unmovable => "Unmovable",
            Self::Movable => "Movable",
            Self::Reclaimable => "Reclaimable",
            Self::HighAtomic => "HighAtomic",
            Self::Cma => "CMA",
            Self::Isolate => "Isolate",
        }
    }
}

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
