//! The mechanisms that rules belong to. Evidence is gathered by mechanism: a kernel's page lists may have been compared
//! with traces while its compaction never was.

use core::fmt;

/// A part of memory management that can be checked by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mechanism {
    /// What zones keep free: marks, protection, thresholds.
    Watermarks,
    /// Per-CPU page lists and the buddy lists behind them: refills, drains, sizes.
    PageLists,
    /// The slab allocator.
    Slabs,
    /// Which zones and nodes are asked, in which order.
    Zonelists,
    /// What a program has mapped: faults, copies on write, what is resident.
    AddressSpaces,
    /// LRU lists, kswapd, requests that reclaim for themselves, limits of groups, demotion.
    Reclaim,
    /// The same with pages kept by generations (MGLRU) in place of active and inactive lists.
    Generations,
    /// Moving pages so that large blocks are free.
    Compaction,
    /// Huge pages at faults, and khugepaged.
    HugePages,
    /// Pages in use that move from slow nodes to fast ones.
    Promotion,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Watermarks,
        Self::PageLists,
        Self::Slabs,
        Self::Zonelists,
        Self::AddressSpaces,
        Self::Reclaim,
        Self::Generations,
        Self::Compaction,
        Self::HugePages,
        Self::Promotion,
    ];

    /// Its name in documents: `page-lists`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Watermarks => "watermarks",
            Self::PageLists => "page-lists",
            Self::Slabs => "slabs",
            Self::Zonelists => "zonelists",
            Self::AddressSpaces => "address-spaces",
            Self::Reclaim => "reclaim",
            Self::Generations => "generations",
            Self::Compaction => "compaction",
            Self::HugePages => "huge-pages",
            Self::Promotion => "promotion",
        }
    }

    /// Its name in a sentence: `page lists`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::PageLists => "page lists",
            Self::AddressSpaces => "address spaces",
            Self::Generations => "reclaim by generations",
            Self::HugePages => "huge pages",
            other => other.name(),
        }
    }

    /// The mechanism with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
