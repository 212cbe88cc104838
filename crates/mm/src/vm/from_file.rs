//! Faults in regions with a file behind them: its page is mapped, or copied where the region is private and written to.

use alloc::sync::Arc;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::fault::{Attempt, FaultKind, Faulted, Site, done};
use super::region::{Backing, Protection};
use super::{FaultDoor, SpacesGround};
use super::{File, FileKind, Touch};
use crate::ground::machine::{Chore, Machine};

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Maps the page of `file`, of which `first` is the region's first, where the fault is.
    pub(super) fn fault_file(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Attempt {
        self.machine().spend(Chore::SharedFault, 1);
        let index = first + (site.vpn.0 - site.region.start.0);
        let (pfn, hit) = self.files().file_page(file, index, site.region.placement)?;
        // The reference that the look-up gave becomes the entry's.
        let shared = matches!(site.region.backing, Backing::Shared { .. });
        // Nobody needs to be told that shared memory is written to: it may be from the first read on.
        let at_once = file.kind() == FileKind::Memory && site.region.protection == Protection::ReadWrite;
        let bits = match (shared, at_once) {
            (true, true) => site.bits() | bit::WRITE,
            (true, false) => site.bits(),
            (false, _) => bit::ACCESSED,
        };
        let Some(mut held) = site.lock(self.machine(), Entry::NONE) else {
            self.lru().put_page(pfn);
            return Ok(None);
        };
        let page = self.lru().page(pfn);
        page.add_mapped();
        held.set(site.vpn, Entry::of(pfn, bits));
        site.space.stat.count_pages(PageKind::of(page), self.pages().node_of_page(pfn), 1);
        if shared && site.touch == Touch::Write {
            self.files().mark_dirty(pfn);
        }
        done(pfn, if hit { FaultKind::Minor } else { FaultKind::Major })
    }

    /// The first write to a private mapping of a file: a copy of the file's page.
    pub(super) fn copy_from_file(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Attempt {
        self.machine().spend(Chore::Fault, 1);
        let index = first + (site.vpn.0 - site.region.start.0);
        let (from, hit) = self.files().file_page(file, index, site.region.placement)?;
        let copied = self.copy_page(site, Entry::NONE, from);
        self.lru().put_page(from);
        let major = |done: Faulted| Faulted { kind: if hit { done.kind } else { FaultKind::Major }, ..done };
        copied.map(|done| done.map(major))
    }
}
