//! What is counted of an address space, to be held against what a kernel says of a process: its faults by what they did
//! (`/proc/PID/stat`, and events that Linux counts for the whole machine alone), its resident pages by kind and their peak
//! (`RssAnon`, `RssFile`, `RssShmem`, `VmHWM`), its page tables (`VmPTE`) and its pages in swap (`VmSwap`).

use alloc::boxed::Box;

use super::fault::FaultKind;
use crate::ground::ids::{Node, PAGEBLOCK_PAGES};
use crate::ground::sync::{AtomicI64, AtomicU64, Relaxed};
use crate::lru::page::{Mapping, Page, PageFlag};

/// What a resident page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageKind {
    /// The process's own.
    Anon,
    /// Of a file on a disk.
    File,
    /// Shared memory.
    Shmem,
}

impl PageKind {
    const COUNT: usize = 3;

    /// What `page`, which is mapped, is.
    pub(crate) fn of(page: &Page) -> Self {
        match page.mapping() {
            Mapping::File(_) if page.has(PageFlag::SwapBacked) => Self::Shmem,
            Mapping::File(_) => Self::File,
            Mapping::Anon(_) | Mapping::Slot | Mapping::None => Self::Anon,
        }
    }
}

/// What is counted of an address space. Pages are of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceCounters {
    /// Faults that had to wait for a disk or for swap (`maj_flt`).
    pub major: u64,
    /// All other faults that were served (`min_flt`).
    pub minor: u64,
    /// Of these, those that mapped a huge page (`thp_fault_alloc`).
    pub huge: u64,
    /// Faults that were to get a huge page and found none (`thp_fault_fallback`).
    pub huge_fallback: u64,
    /// Of all faults, those that copied a page that is shared, a file's or the page of zeros too, for a write to it.
    pub copied: u64,
    /// Of the minor ones, writes to a page that was write-protected and had no other owner (`pgreuse`, huge ones too).
    pub reused: u64,
    /// Of the minor ones, reads that mapped the page of zeros, or the huge one.
    pub zero: u64,
    /// Of all faults, those that a call had for the task ([`super::SpacesDoor::populate`]): no exceptions.
    pub populated: u64,
    /// Of these, copies and reuses.
    pub populated_writes: u64,
    /// Resident pages of the process's own (`RssAnon`).
    pub anon: u64,
    /// Resident pages of files (`RssFile`).
    pub file: u64,
    /// Resident pages of shared memory (`RssShmem`).
    pub shmem: u64,
    /// The most that these three ever came to (`VmHWM`).
    pub peak: u64,
    /// Frames that page tables take, those of all levels but the top one (`VmPTE`).
    pub tables: u64,
    /// All frames that page tables ever took, those that are given back too.
    pub tables_taken: u64,
    /// Pages in swap (`VmSwap`).
    pub swapped: u64,
    /// Huge pages of the process's own that are mapped whole.
    pub huge_pages: u64,
}

impl SpaceCounters {
    /// Resident pages (`VmRSS`).
    pub fn resident(&self) -> u64 {
        self.anon + self.file + self.shmem
    }
}

/// An address space's counts.
#[derive(Debug)]
pub(super) struct SpaceStat {
    /// Pages mapped, by node.
    placed: Box<[AtomicI64]>,
    /// The same by kind.
    kinds: [AtomicI64; PageKind::COUNT],
    /// All of them, and the most that they ever were.
    resident: AtomicI64,
    peak: AtomicI64,
    /// Frames of page tables.
    table_frames: AtomicI64,
    tables_taken: AtomicU64,
    /// Pages in swap.
    swapped: AtomicI64,
    /// Huge pages mapped whole.
    huge_pages: AtomicI64,
    faults: [AtomicU64; FaultKind::COUNT],
    huge_fallback: AtomicU64,
    copied: AtomicU64,
    populated: AtomicU64,
    populated_writes: AtomicU64,
}

fn at_least_0(count: &AtomicI64) -> u64 {
    count.load(Relaxed).max(0) as u64
}

impl SpaceStat {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            placed: (0..nodes).map(|_| AtomicI64::new(0)).collect(),
            kinds: Default::default(),
            resident: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            table_frames: AtomicI64::new(0),
            tables_taken: AtomicU64::new(0),
            swapped: AtomicI64::new(0),
            huge_pages: AtomicI64::new(0),
            faults: Default::default(),
            huge_fallback: AtomicU64::new(0),
            copied: AtomicU64::new(0),
            populated: AtomicU64::new(0),
            populated_writes: AtomicU64::new(0),
        }
    }

    pub(super) fn on(&self, node: Node) -> u64 {
        self.placed.get(usize::from(node.0)).map_or(0, at_least_0)
    }

    pub(super) fn resident(&self) -> u64 {
        at_least_0(&self.resident)
    }

    pub(super) fn tables(&self) -> u64 {
        at_least_0(&self.table_frames)
    }

    pub(super) fn swapped(&self) -> u64 {
        at_least_0(&self.swapped)
    }

    pub(super) fn huge_pages(&self) -> u64 {
        at_least_0(&self.huge_pages)
    }

    /// `pages` of a kind on `node` are mapped from now on; less than none are unmapped. 512 at once of the process's own are a huge page.
    pub(super) fn count_pages(&self, kind: PageKind, node: Node, pages: i64) {
        self.placed[usize::from(node.0)].fetch_add(pages, Relaxed);
        self.kinds[kind as usize].fetch_add(pages, Relaxed);
        let now = self.resident.fetch_add(pages, Relaxed) + pages;
        if pages > 0 {
            self.peak.fetch_max(now, Relaxed);
        }
        if kind == PageKind::Anon && pages.unsigned_abs() == u64::from(PAGEBLOCK_PAGES) {
            self.huge_pages.fetch_add(pages.signum(), Relaxed);
        }
    }

    /// A page of the process's own on `node` takes the place of `old`, a page of a kind on a node: what is resident stays as
    /// much as it was.
    pub(super) fn count_copy(&self, old: (PageKind, Node), node: Node) {
        self.placed[usize::from(old.1.0)].fetch_sub(1, Relaxed);
        self.placed[usize::from(node.0)].fetch_add(1, Relaxed);
        self.kinds[old.0 as usize].fetch_sub(1, Relaxed);
        self.kinds[PageKind::Anon as usize].fetch_add(1, Relaxed);
    }

    /// A huge page is mapped in parts from now on.
    pub(super) fn count_split(&self) {
        self.huge_pages.fetch_sub(1, Relaxed);
    }

    pub(super) fn count_tables(&self, frames: i64) {
        self.table_frames.fetch_add(frames, Relaxed);
        self.tables_taken.fetch_add(frames.max(0).unsigned_abs(), Relaxed);
    }

    pub(super) fn count_swapped(&self, pages: i64) {
        self.swapped.fetch_add(pages, Relaxed);
    }

    pub(super) fn count_fault(&self, kind: FaultKind) {
        self.faults[kind as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn count_huge_fallback(&self) {
        self.huge_fallback.fetch_add(1, Relaxed);
    }

    /// A page was copied, whether or not its contents had to be waited for.
    pub(super) fn count_copied(&self) {
        self.copied.fetch_add(1, Relaxed);
    }

    /// A fault that did `kind` was a call's.
    pub(super) fn count_populated(&self, kind: FaultKind) {
        self.populated.fetch_add(1, Relaxed);
        if matches!(kind, FaultKind::Copied | FaultKind::Reused) {
            self.populated_writes.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn read(&self) -> SpaceCounters {
        let faults = |kind: FaultKind| self.faults[kind as usize].load(Relaxed);
        let all: u64 = self.faults.iter().map(|faults| faults.load(Relaxed)).sum();
        let pages = |kind: PageKind| at_least_0(&self.kinds[kind as usize]);
        let major = faults(FaultKind::Major) + faults(FaultKind::Swapped);
        SpaceCounters {
            major,
            minor: all - major,
            huge: faults(FaultKind::Huge),
            huge_fallback: self.huge_fallback.load(Relaxed),
            copied: self.copied.load(Relaxed),
            reused: faults(FaultKind::Reused),
            zero: faults(FaultKind::ZeroPage) + faults(FaultKind::HugeZeroPage),
            populated: self.populated.load(Relaxed),
            populated_writes: self.populated_writes.load(Relaxed),
            anon: pages(PageKind::Anon),
            file: pages(PageKind::File),
            shmem: pages(PageKind::Shmem),
            peak: at_least_0(&self.peak),
            tables: self.tables(),
            tables_taken: self.tables_taken.load(Relaxed),
            swapped: self.swapped(),
            huge_pages: self.huge_pages(),
        }
    }
}
