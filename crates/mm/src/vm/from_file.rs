//! Faults in regions with a file behind them: its page is mapped, or copied where the region is private and written to. A
//! read maps what is in memory around it too (`do_fault_around`), and a page that is missing is read with its neighbours.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::fault::{Attempt, FaultKind, Faulted, Site};
use super::region::{Backing, Protection};
use super::{FaultDoor, SpacesGround, Vpn};
use super::{File, FileKind, Touch};
use crate::cache::Wanted;
use crate::ground::ids::Pfn;
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::PageFlag;
use crate::pages::request::AllocError;

/// Pages that a read maps with the one that it is for, at most, that one too: `fault_around_bytes` is 64 KiB by default.
const AROUND: u32 = 16;

/// A page of a file that a fault is for.
struct Found {
    pfn: Pfn,
    /// It was there, and nobody waits for a disk.
    hit: bool,
    /// Pages that come from the disk.
    reads: u32,
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Maps the page of `file`, of which `first` is the region's first, where the fault is.
    pub(super) fn fault_file(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Attempt {
        self.machine().spend(Chore::SharedFault, 1);
        if site.touch == Touch::Read {
            if let Some(pfn) = self.map_around(site, file, first) {
                return Ok(Some(Faulted { pfn, kind: FaultKind::Minor, reads: 0 }));
            }
        }
        let found = self.file_page(site, file, first)?;
        // The reference that the look-up gave becomes the entry's.
        let pfn = found.pfn;
        let Some(mut held) = site.lock(self.machine(), Entry::NONE) else {
            self.lru().put_page(pfn);
            return Ok(None);
        };
        let page = self.lru().page(pfn);
        page.add_mapped();
        held.set(site.vpn, Entry::of(pfn, Self::file_bits(site, file)));
        site.space.stat.count_pages(PageKind::of(page), self.pages().node_of_page(pfn), 1);
        if site.region.locked {
            page.set(PageFlag::Mlocked);
        }
        let shared = matches!(site.region.backing, Backing::Shared { .. });
        if shared && site.touch == Touch::Write {
            self.files().mark_dirty(pfn);
        }
        let kind = if found.hit { FaultKind::Minor } else { FaultKind::Major };
        Ok(Some(Faulted { pfn, kind, reads: found.reads }))
    }

    /// The bits of an entry that maps a page of `file`.
    fn file_bits(site: &Site<'_, M>, file: &File<M>) -> u64 {
        // Nobody needs to be told that shared memory is written to: it may be from the first read on.
        let at_once = file.kind() == FileKind::Memory && site.region.protection == Protection::ReadWrite;
        match (matches!(site.region.backing, Backing::Shared { .. }), at_once) {
            (true, true) => site.bits() | bit::WRITE,
            (true, false) => site.bits(),
            (false, _) => bit::ACCESSED,
        }
    }

    /// The page that the fault is for, with a reference for the caller; it and what is read with it is in `file` then.
    fn file_page(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Result<Found, AllocError> {
        let index = first + (site.vpn.0 - site.region.start.0);
        let (from, pattern) = (site.asker(), site.region.pattern);
        let on_disk = file.kind() != FileKind::Memory;
        if on_disk && !self.files().has_page(file, index) {
            let reads = self.files().read_around(file, index, pattern, from);
            let (pfn, there) = self.files().file_page(file, index, (Wanted::Contents, from))?;
            return Ok(Found { pfn, hit: false, reads: reads + u32::from(!there) });
        }
        let (pfn, hit) = self.files().file_page(file, index, (Wanted::Contents, from))?;
        let reads = if on_disk && hit {
            self.files().read_after_hit(file, (index, pfn), pattern, from)
        } else {
            u32::from(!hit)
        };
        Ok(Found { pfn, hit, reads })
    }

    /// Maps those pages around the fault that are in memory, within its region, its table and an aligned stretch of
    /// [`AROUND`]. Gives the page that the fault is for, if that is among them.
    fn map_around(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Option<Pfn> {
        let start = Vpn(site.vpn.0 / AROUND * AROUND).max(site.region.start);
        let end = Vpn(site.vpn.0 / AROUND * AROUND + AROUND).min(site.region.end);
        let index_of = |vpn: Vpn| first + (vpn.0 - site.region.start.0);
        let found = self.files().find_pages(file, index_of(start), index_of(end));
        if found.is_empty() {
            return None;
        }
        let Some(mut held) = site.lock(self.machine(), Entry::NONE) else {
            let found: Vec<Pfn> = found.iter().map(|&(_, pfn)| pfn).collect();
            self.lru().put_pages(&found);
            return None;
        };
        let (mut mapped, mut left, mut beside) = (None, Vec::new(), 0);
        let bits = Self::file_bits(site, file);
        for (index, pfn) in found {
            let vpn = site.region.start.add(index - first);
            if held.entry(vpn) != Entry::NONE {
                left.push(pfn);
                continue;
            }
            let page = self.lru().page(pfn);
            page.add_mapped();
            held.set(vpn, Entry::of(pfn, bits));
            site.space.stat.count_pages(PageKind::of(page), self.pages().node_of_page(pfn), 1);
            self.files().count_mapped_hits(file, 1);
            if vpn == site.vpn {
                mapped = Some(pfn);
            } else {
                beside += 1;
            }
        }
        drop(held);
        self.machine().spend(Chore::MapAround, beside);
        self.lru().put_pages(&left);
        mapped
    }

    /// The first write to a private mapping of a file: a copy of the file's page.
    pub(super) fn copy_from_file(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Attempt {
        self.machine().spend(Chore::Fault, 1);
        let found = self.file_page(site, file, first)?;
        let copied = self.copy_page(site, Entry::NONE, found.pfn);
        self.lru().put_page(found.pfn);
        let kind = |done: Faulted| if found.hit { done.kind } else { FaultKind::Major };
        copied.map(|done| done.map(|done| Faulted { kind: kind(done), reads: found.reads, ..done }))
    }
}
