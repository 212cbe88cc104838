//! The regions of an address space (`vm_area_struct`): which virtual pages there are, what stands behind them, where
//! their memory is to come from, what may be done to them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::mempolicy::MemPolicy;
use super::swap_cluster::Reads;
use super::{File, ReadPattern, Touch, Vpn};
use crate::ground::ids::PAGEBLOCK_PAGES;
use crate::ground::machine::Machine;
use crate::pages::request::Placement;

/// What stands behind a region.
#[derive(Debug)]
pub enum Backing<M: Machine> {
    /// Nothing: memory of the process's own, zeros at first.
    Anonymous,
    /// A file from page `first` on, changed for all who map it.
    Shared {
        /// The file.
        file: Arc<File<M>>,
        /// Its page at the region's start.
        first: u32,
    },
    /// A file from page `first` on; who writes to a page gets a copy of its own.
    Private {
        /// The file.
        file: Arc<File<M>>,
        /// Its page at the region's start.
        first: u32,
    },
}

impl<M: Machine> Backing<M> {
    /// Whether `pages` of it have numbers: a file has 16 TiB.
    pub(super) fn has(&self, pages: u32) -> bool {
        match self {
            Self::Anonymous => true,
            Self::Shared { first, .. } | Self::Private { first, .. } => first.checked_add(pages).is_some(),
        }
    }
}

impl<M: Machine> Clone for Backing<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Anonymous => Self::Anonymous,
            Self::Shared { file, first } => Self::Shared { file: Arc::clone(file), first: *first },
            Self::Private { file, first } => Self::Private { file: Arc::clone(file), first: *first },
        }
    }
}

/// Whether faults in a region may get huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HugePages {
    /// As `transparent_hugepage.enabled` says.
    #[default]
    AsConfigured,
    /// If `transparent_hugepage.enabled` is not 0, and more is done for them: the program asked (`MADV_HUGEPAGE`).
    Advised,
    /// Never (`MADV_NOHUGEPAGE`).
    Never,
}

/// What a program may do to the pages of a region (`PROT_…`). Regions side by side that may be executed and not stay two: a fault
/// that maps pages around itself ends at the region's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// Nothing (`PROT_NONE`).
    None,
    /// Read them.
    Read,
    /// Read and execute them (`PROT_READ | PROT_EXEC`).
    Execute,
    /// Read and write them; whether they may be executed besides makes no difference here.
    #[default]
    ReadWrite,
}

impl Protection {
    /// Whether memory may be touched so.
    pub(super) fn allows(self, touch: Touch) -> bool {
        match touch {
            Touch::Read => self != Self::None,
            Touch::Write => self == Self::ReadWrite,
        }
    }
}

/// Whether a region counts as promised (`vm.overcommit_memory`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reserve {
    /// If the process may write to pages of its own in it.
    #[default]
    IfWritable,
    /// Never (`MAP_NORESERVE`). Linux counts it all the same where `vm.overcommit_memory` is 2.
    Never,
}

/// Who said where a region's memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PolicyOf {
    /// The task, of all that it has (`set_mempolicy`), or nobody.
    Task,
    /// Somebody did of this range (`mbind`).
    Range,
}

/// What to map.
#[derive(Debug)]
pub struct MapSpec<M: Machine> {
    /// Pages, from 1.
    pub pages: u32,
    /// What stands behind them.
    pub backing: Backing<M>,
    /// Where their memory comes from.
    pub placement: Placement,
    /// In which order within that: the policy of the task that maps them (`set_mempolicy`), as if it had said so of the region.
    pub policy: MemPolicy,
    /// Whether they may be huge.
    pub huge: HugePages,
    /// What may be done to them.
    pub protection: Protection,
    /// Whether they count as promised.
    pub reserve: Reserve,
}

impl<M: Machine> MapSpec<M> {
    /// `pages` of anonymous memory, where the tasks that touch them are.
    pub fn anonymous(pages: u32) -> Self {
        Self {
            pages,
            backing: Backing::Anonymous,
            placement: Placement::default(),
            policy: MemPolicy::Local,
            huge: HugePages::AsConfigured,
            protection: Protection::ReadWrite,
            reserve: Reserve::IfWritable,
        }
    }

    /// The first `pages` of `file`, shared.
    pub fn shared(file: &Arc<File<M>>, pages: u32) -> Self {
        Self { backing: Backing::Shared { file: Arc::clone(file), first: 0 }, ..Self::anonymous(pages) }
    }

    /// The first `pages` of `file`, private.
    pub fn private(file: &Arc<File<M>>, pages: u32) -> Self {
        Self { backing: Backing::Private { file: Arc::clone(file), first: 0 }, ..Self::anonymous(pages) }
    }

    /// The same from nodes as `placement` says.
    #[must_use]
    pub fn placed(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// The same, huge where the setting leaves that to programs.
    #[must_use]
    pub fn advised(self) -> Self {
        Self { huge: HugePages::Advised, ..self }
    }

    /// The same, never huge.
    #[must_use]
    pub fn small(self) -> Self {
        Self { huge: HugePages::Never, ..self }
    }

    /// The same from page `first` of its file on; of anonymous memory, the same.
    #[must_use]
    pub fn from_page(self, first: u32) -> Self {
        let backing = match self.backing {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Shared { file, .. } => Backing::Shared { file, first },
            Backing::Private { file, .. } => Backing::Private { file, first },
        };
        Self { backing, ..self }
    }

    /// The same, of which only so much may be done.
    #[must_use]
    pub fn protected(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// The same, not counted as promised.
    #[must_use]
    pub fn unreserved(self) -> Self {
        Self { reserve: Reserve::Never, ..self }
    }

    /// The region at `start`.
    pub(super) fn region(self, start: Vpn) -> Region<M> {
        let Self { pages, backing, placement, policy, huge, protection, reserve } = self;
        let region = Region {
            start,
            end: start.add(pages),
            backing,
            placement,
            policy,
            policy_of: PolicyOf::Task,
            huge,
            protection,
            reserve,
            is_promised: false,
            pattern: ReadPattern::Normal,
            locked: false,
            anon: start.0,
            reads: Reads::default(),
        };
        Region { is_promised: region.is_to_be_promised(), ..region }
    }
}

/// A region.
#[derive(Debug)]
pub(crate) struct Region<M: Machine> {
    pub(in crate::vm) start: Vpn,
    pub(in crate::vm) end: Vpn,
    pub(in crate::vm) backing: Backing<M>,
    pub(in crate::vm) placement: Placement,
    /// Where its pages come from within `placement`, if anybody said so; [`MemPolicy::Local`]: nobody did.
    pub(in crate::vm) policy: MemPolicy,
    /// Whether that is the range's own.
    pub(in crate::vm) policy_of: PolicyOf,
    pub(in crate::vm) huge: HugePages,
    pub(in crate::vm) protection: Protection,
    pub(in crate::vm) reserve: Reserve,
    /// It was counted as promised, and stays so (`VM_ACCOUNT`).
    pub(in crate::vm) is_promised: bool,
    /// How it will be read, where it is a file's.
    pub(in crate::vm) pattern: ReadPattern,
    /// Its pages stay in memory (`mlock`).
    pub(in crate::vm) locked: bool,
    /// The number that the first page has in its family, where it is the process's own: that of the virtual page that the
    /// region was first mapped at. A region that moves keeps it (`vm_pgoff`).
    pub(in crate::vm) anon: u32,
    /// What of it was read from swap before (`swap_readahead_info`).
    pub(in crate::vm) reads: Reads,
}

impl<M: Machine> Clone for Region<M> {
    fn clone(&self) -> Self {
        Self { backing: self.backing.clone(), ..*self }
    }
}

impl<M: Machine> Region<M> {
    pub(crate) fn pages(&self) -> u32 {
        self.end.0 - self.start.0
    }

    /// Pages that count against overcommit: those that the process may come to need of its own.
    pub(crate) fn committed(&self) -> u32 {
        if self.is_promised { self.pages() } else { 0 }
    }

    /// Whether it counts against overcommit as it is.
    pub(super) fn is_to_be_promised(&self) -> bool {
        let private = !matches!(self.backing, Backing::Shared { .. });
        private && self.protection == Protection::ReadWrite && self.reserve == Reserve::IfWritable
    }

    /// The number that a page of the process's own at `vpn` has in its family.
    pub(super) fn anon_index(&self, vpn: Vpn) -> u32 {
        self.anon.wrapping_add(vpn.0.wrapping_sub(self.start.0))
    }

    /// The same region with its first page at `start`.
    pub(super) fn moved(&self, start: Vpn) -> Self {
        Self { start, end: start.add(self.pages()), backing: self.backing.clone(), ..*self }
    }

    /// The `pages` from `start` on that come after this region's, or that it has itself, with what stands behind them.
    pub(super) fn continued(&self, start: Vpn, pages: u32) -> Self {
        let whole = Self { end: Vpn(u32::MAX), ..self.clone() };
        whole.cut(start, start.add(pages))
    }

    /// Whether `next`, which begins where this region ends, is more of the same: then the two are one (`vma_merge`).
    fn goes_on_in(&self, next: &Self) -> bool {
        let same_file = |one: &Arc<File<M>>, other: &Arc<File<M>>| Arc::ptr_eq(one, other);
        let backing = match (&self.backing, &next.backing) {
            (Backing::Anonymous, Backing::Anonymous) => true,
            (Backing::Shared { file, first }, Backing::Shared { file: other, first: after })
            | (Backing::Private { file, first }, Backing::Private { file: other, first: after }) => {
                same_file(file, other) && first.wrapping_add(self.pages()) == *after
            }
            _ => false,
        };
        let shown = |region: &Self| {
            let said = (region.huge, region.pattern, region.locked);
            ((region.placement, region.policy, region.policy_of), said, region.protection, region.reserve)
        };
        backing
            && self.end == next.start
            && shown(self) == shown(next)
            && self.is_promised == next.is_promised
            && self.anon_index(next.start) == next.anon
    }

    /// The same region from `start` to `end`, which lie within it.
    fn cut(&self, start: Vpn, end: Vpn) -> Self {
        let skipped = start.0 - self.start.0;
        let anon = self.anon_index(start);
        let backing = match &self.backing {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Shared { file, first } => {
                Backing::Shared { file: Arc::clone(file), first: first + skipped }
            }
            Backing::Private { file, first } => {
                Backing::Private { file: Arc::clone(file), first: first + skipped }
            }
        };
        Self { start, end, backing, anon, ..*self }
    }
}

/// The regions, by their start; they do not overlap.
#[derive(Debug)]
pub(crate) struct Regions<M: Machine>(BTreeMap<u32, Region<M>>);

impl<M: Machine> Default for Regions<M> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// Where the first region may begin, as Linux leaves the first pages out.
const LOWEST: u32 = PAGEBLOCK_PAGES;

impl<M: Machine> Regions<M> {
    /// The region that `vpn` is in.
    pub(crate) fn find(&self, vpn: Vpn) -> Option<&Region<M>> {
        let (_, region) = self.0.range(..=vpn.0).next_back()?;
        (vpn < region.end).then_some(region)
    }

    /// The same, to be changed.
    pub(super) fn find_mut(&mut self, vpn: Vpn) -> Option<&mut Region<M>> {
        let (_, region) = self.0.range_mut(..=vpn.0).next_back()?;
        (vpn < region.end).then_some(region)
    }

    /// The lowest gap of `pages`, aligned so that huge pages fit where any would.
    pub(crate) fn gap(&self, pages: u32) -> Option<Vpn> {
        let align = if pages >= PAGEBLOCK_PAGES { PAGEBLOCK_PAGES } else { 1 };
        let mut at = LOWEST;
        for region in self.0.values() {
            if region.start.0 >= at && region.start.0 - at >= pages {
                break;
            }
            at = at.max(region.end.0.checked_next_multiple_of(align)?);
        }
        at.checked_add(pages).map(|_| Vpn(at))
    }

    pub(crate) fn insert(&mut self, region: Region<M>) {
        self.0.insert(region.start.0, region);
    }

    /// As [`Self::insert`]; a region that goes on where another ends, and is the like of it, becomes one with it.
    pub(crate) fn insert_merged(&mut self, region: Region<M>) {
        let mut region = region;
        let below = self.0.range(..region.start.0).next_back().map(|(start, _)| *start);
        if let Some(start) = below.filter(|start| self.0[start].goes_on_in(&region)) {
            if let Some(below) = self.0.remove(&start) {
                region = Region { end: region.end, ..below };
            }
        }
        if self.0.get(&region.end.0).is_some_and(|above| region.goes_on_in(above)) {
            if let Some(above) = self.0.remove(&region.end.0) {
                region.end = above.end;
            }
        }
        self.insert(region);
    }

    /// Whether anything is mapped from `start` to before `end`.
    pub(crate) fn has_any(&self, start: Vpn, end: Vpn) -> bool {
        self.0.range(..end.0).next_back().is_some_and(|(_, region)| region.end > start)
    }

    /// The first page from `start` on that is in no region; `end` if that comes first, for regions beyond it are not looked at.
    pub(crate) fn mapped_up_to(&self, start: Vpn, end: Vpn) -> Vpn {
        let mut at = start;
        while let Some(region) = self.find(at).filter(|_| at < end) {
            at = region.end;
        }
        at.min(end)
    }

    /// Takes out what lies from `start` to before `end`, cutting regions that reach beyond.
    pub(crate) fn take(&mut self, start: Vpn, end: Vpn) -> alloc::vec::Vec<Region<M>> {
        let touched = self.0.range(..end.0).rev().take_while(|(_, region)| region.end > start);
        let starts: alloc::vec::Vec<u32> = touched.map(|(start, _)| *start).collect();
        let mut taken = alloc::vec![];
        for first in starts.into_iter().rev() {
            let Some(region) = self.0.remove(&first) else { continue };
            if region.start < start {
                self.insert(region.cut(region.start, start));
            }
            if end < region.end {
                self.insert(region.cut(end, region.end));
            }
            taken.push(region.cut(region.start.max(start), region.end.min(end)));
        }
        taken
    }

    /// Where the regions next to the pages from `start` to `end` end and begin.
    pub(crate) fn neighbours(&self, start: Vpn, end: Vpn) -> (Vpn, Vpn) {
        let below = self.0.range(..start.0).next_back().map_or(0, |(_, region)| region.end.0);
        let above = self.0.range(end.0..).next().map_or(u32::MAX, |(start, _)| *start);
        (Vpn(below), Vpn(above))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region<M>> {
        self.0.values()
    }

    /// Those that have pages from `start` to before `end`, in order. Others are not looked at: programs have thousands.
    pub(crate) fn within(&self, start: Vpn, end: Vpn) -> impl Iterator<Item = &Region<M>> {
        let reaching = self.0.range(..start.0).next_back().map(|(_, region)| region);
        let reaching = reaching.filter(move |region| start < end && region.end > start);
        reaching.into_iter().chain(self.0.range(start.0..end.0.max(start.0)).map(|(_, region)| region))
    }
}
