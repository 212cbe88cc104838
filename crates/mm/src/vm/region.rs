//! The regions of an address space (`vm_area_struct`): which virtual pages there are, what stands behind them, where
//! their memory is to come from.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::{File, Vpn};
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

/// What to map.
#[derive(Debug)]
pub struct MapSpec<M: Machine> {
    /// Pages, from 1.
    pub pages: u32,
    /// What stands behind them.
    pub backing: Backing<M>,
    /// Where their memory comes from.
    pub placement: Placement,
    /// Whether they may be huge.
    pub huge: HugePages,
}

impl<M: Machine> MapSpec<M> {
    /// `pages` of anonymous memory, where the tasks that touch them are.
    pub fn anonymous(pages: u32) -> Self {
        let (placement, huge) = (Placement::default(), HugePages::AsConfigured);
        Self { pages, backing: Backing::Anonymous, placement, huge }
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
}

/// A region.
#[derive(Debug)]
pub(crate) struct Region<M: Machine> {
    pub(in crate::vm) start: Vpn,
    pub(in crate::vm) end: Vpn,
    pub(in crate::vm) backing: Backing<M>,
    pub(in crate::vm) placement: Placement,
    pub(in crate::vm) huge: HugePages,
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

    /// Pages that the process may come to need of its own: those that count against overcommit.
    pub(crate) fn committed(&self) -> u32 {
        match self.backing {
            Backing::Shared { .. } => 0,
            Backing::Anonymous | Backing::Private { .. } => self.pages(),
        }
    }

    /// The same region from `start` to `end`, which lie within it.
    fn cut(&self, start: Vpn, end: Vpn) -> Self {
        let skipped = start.0 - self.start.0;
        let backing = match &self.backing {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Shared { file, first } => {
                Backing::Shared { file: Arc::clone(file), first: first + skipped }
            }
            Backing::Private { file, first } => {
                Backing::Private { file: Arc::clone(file), first: first + skipped }
            }
        };
        Self { start, end, backing, ..*self }
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
}
