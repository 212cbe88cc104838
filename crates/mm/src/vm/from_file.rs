//! Faults in regions with a file behind them: its page is mapped, or copied where the region is private and written to. A
//! read maps what is in memory around it too (`do_fault_around`), and a page that is missing is read with its neighbours. Since 6.18
//! whoever maps a page of a folio maps all of it that the region and its table have room for.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::fault::{Attempt, FaultKind, Faulted, Found, Site};
use super::region::{Backing, Protection};
use super::table::Held;
use super::{FaultDoor, SpacesGround, Vpn};
use super::{File, FileKind, Touch};
use crate::cache::{Asker, Large, Part, ReadPattern, Source, Wanted};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::PageFlag;
use crate::pages::request::AllocError;
use crate::rules::policy::{CodeReadRule, MapAroundRule, MapHitRule};

/// Pages that a read maps with the one that it is for, at most, that one too: `fault_around_bytes` is 64 KiB by default.
const AROUND: u32 = 16;

/// A fault that has to read gives up the locks that it holds for that, and begins anew when it has (`VM_FAULT_RETRY`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Try {
    First,
    AfterRead,
}

/// The entry that maps a page of a file.
fn entry_of(part: Part, bits: u64) -> Entry {
    match part.order {
        Order::ZERO => Entry::of(part.pfn, bits),
        order => Entry::of(part.pfn, bits).part_of(order),
    }
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Maps the page of `file`, of which `first` is the region's first, where the fault is.
    pub(super) fn fault_file(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Attempt {
        self.machine().spend(Chore::SharedFault, 1);
        let in_memory = file.kind() == FileKind::Memory;
        if in_memory {
            let index = first + (site.vpn.0 - site.region.start.0);
            if let Some(done) = self.map_whole_there(site, file, index) {
                return Ok(Some(done));
            }
        }
        if site.touch == Touch::Read {
            if let Some(pfn) = self.map_around(site, file, (first, Try::First)) {
                return Ok(Some(Faulted { pfn, kind: FaultKind::Minor, reads: 0 }));
            }
        }
        let found = self.file_page(site, file, first)?;
        let kind = found.kind(FaultKind::Minor);
        if found.begins_anew && site.touch == Touch::Read {
            if let Some(pfn) = self.map_around(site, file, (first, Try::AfterRead)) {
                self.lru().put_page(found.part.head());
                return Ok(Some(Faulted { pfn, kind, reads: found.reads }));
            }
        }
        if in_memory {
            if let Some(done) = self.map_whole(site, file, &found) {
                return Ok(Some(done));
            }
            self.give_frame(site).inspect_err(|_| self.lru().put_page(found.part.head()))?;
        }
        // The reference that the look-up gave becomes the entry's.
        let (part, head) = (found.part, found.part.head());
        let Some(mut held) = site.lock(self.machine(), Entry::NONE) else {
            self.lru().put_page(head);
            return Ok(None);
        };
        self.map_part(site, &mut held, (site.vpn, part), Self::file_bits(site, file));
        if in_memory {
            self.map_rest_of_shared(site, &mut held, (site.vpn, part, first), file);
        } else {
            self.map_rest(site, &mut held, (site.vpn, part, first), file);
        }
        let shared = matches!(site.region.backing, Backing::Shared { .. });
        if shared && site.touch == Touch::Write {
            self.files().mark_dirty(head);
        }
        Ok(Some(Faulted { pfn: part.pfn, kind, reads: found.reads }))
    }

    /// The bits of an entry that maps a page of `file`.
    pub(super) fn file_bits(site: &Site<'_, M>, file: &File<M>) -> u64 {
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
            let is_code = site.region.protection == Protection::Execute && pattern == ReadPattern::Normal;
            let reads = if is_code && self.rules().reclaim.code_read == CodeReadRule::Ahead {
                let end = first + (site.region.end.0 - site.region.start.0);
                self.files().read_code(file, index..end, from)
            } else {
                self.files().read_around(file, index, pattern, from)
            };
            let (part, source) = self.files().file_page(file, index, (Wanted::Contents, from))?;
            let reads = reads + u32::from(source == Source::Disk);
            return Ok(Found { part, source: Source::Disk, reads, begins_anew: true });
        }
        if !on_disk {
            if let Some(part) = self.add_shared(site, file, index) {
                return Ok(Found::in_memory(part));
            }
        }
        let from =
            if on_disk { from } else { Asker { large: Large(self.huge_urgency(&site.region)), ..from } };
        let (part, source) = self.files().file_page(file, index, (Wanted::Contents, from))?;
        if on_disk && source == Source::Memory {
            let ahead = self.files().read_after_hit(file, (index, part), pattern, from);
            let (reads, begins_anew) = (ahead.unwrap_or(0), ahead.is_some());
            return Ok(Found { part, source, reads, begins_anew });
        }
        Ok(Found { part, source, reads: u32::from(source == Source::Disk), begins_anew: false })
    }

    /// Maps those pages around the fault that are in memory, within its region, its table and an aligned stretch of
    /// [`AROUND`]. Gives the page that the fault is for, if that is among them.
    fn map_around(
        self,
        site: &Site<'_, M>,
        file: &Arc<File<M>>,
        (first, attempt): (u32, Try),
    ) -> Option<Pfn> {
        let start = Vpn(site.vpn.0 / AROUND * AROUND).max(site.region.start);
        let end = Vpn(site.vpn.0 / AROUND * AROUND + AROUND).min(site.region.end);
        let index_of = |vpn: Vpn| first + (vpn.0 - site.region.start.0);
        let found = self.files().find_pages(file, index_of(start), index_of(end));
        if found.is_empty() {
            return None;
        }
        // What there is no memory for is told where the page by itself is mapped.
        let has_table = file.kind() != FileKind::Memory || self.give_frame(site).is_ok();
        let Some(mut held) = site.lock(self.machine(), Entry::NONE).filter(|_| has_table) else {
            let found: Vec<Pfn> = found.iter().map(|(_, part)| part.head()).collect();
            self.lru().put_pages(&found);
            return None;
        };
        let (mut left, mut beside, mut hits, mut last) = (Vec::new(), 0, 0, None);
        let bits = Self::file_bits(site, file);
        for (index, part) in found {
            let (vpn, head) = (site.region.start.add(index - first), part.head());
            if held.entry(vpn) != Entry::NONE {
                left.push(head);
                continue;
            }
            self.map_part(site, &mut held, (vpn, part), bits);
            beside += u32::from(vpn != site.vpn);
            hits += self.hits_of(part, vpn == site.vpn && attempt == Try::First);
            let is_whole = file.kind() != FileKind::Memory || site.region.has_folio(vpn, part.order);
            if last != Some(head) && is_whole {
                self.map_rest(site, &mut held, (vpn, part, first), file);
                last = Some(head);
            }
        }
        let here = held.entry(site.vpn);
        drop(held);
        self.machine().spend(Chore::MapAround, beside);
        self.files().count_mapped_hits(file, hits);
        self.lru().put_pages(&left);
        here.is_present().then(|| here.pfn())
    }

    /// What mapping `part` takes off the faults that had to be read; `is_own`: the fault is for it, and did not have to read it.
    fn hits_of(self, part: Part, is_own: bool) -> u32 {
        let came_back = self.lru().page(part.head()).has(PageFlag::Workingset);
        let counts = match self.rules().reclaim.map_hit {
            MapHitRule::EachPage => true,
            MapHitRule::EachNewPage => !came_back,
            MapHitRule::EachFault => is_own && !came_back,
        };
        counts.into()
    }

    /// Maps `part`, whose reference becomes the entry's, at `vpn`.
    fn map_part(self, site: &Site<'_, M>, held: &mut Held<'_, M>, (vpn, part): (Vpn, Part), bits: u64) {
        let (page, node) = (self.lru().page(part.head()), self.pages().node_of_page(part.head()));
        page.add_mapped();
        if site.region.locked {
            self.unevictable().mlock(part.head());
        }
        held.set(vpn, entry_of(part, bits));
        site.space.stat.count_pages(PageKind::of(page), node, 1);
    }

    /// Maps what else the region and the table have room for of the folio of which `part` was mapped at `vpn`; `first` is the file's page
    /// with which the region begins.
    fn map_rest(
        self,
        site: &Site<'_, M>,
        held: &mut Held<'_, M>,
        (vpn, part, first): (Vpn, Part, u32),
        file: &File<M>,
    ) {
        if part.order == Order::ZERO || self.rules().reclaim.map_around == MapAroundRule::Sixteen {
            return;
        }
        let (region, table) = (&site.region, vpn.table_start());
        let folio = part.folio(first + (vpn.0 - region.start.0));
        // That of the last page of a file on disk is left to the stretch around the fault.
        if file.kind() != FileKind::Memory && file.len().is_some_and(|pages| folio.end >= pages) {
            return;
        }
        let page = self.lru().page(part.head());
        let mut mapped = 0;
        for index in folio.start.max(first)..folio.end {
            let at = region.start.add(index - first);
            let is_within = at >= table && at < table.add(PAGEBLOCK_PAGES) && at < region.end;
            if is_within && held.entry(at) == Entry::NONE {
                page.get();
                let pfn = part.head().add(index - folio.start);
                self.map_part(site, held, (at, Part { pfn, ..part }), Self::file_bits(site, file));
                mapped += 1;
            }
        }
        self.machine().spend(Chore::MapAround, mapped);
    }

    /// The same of shared memory, by the fault that brought it: all of the folio or nothing (`finish_fault`).
    fn map_rest_of_shared(
        self,
        site: &Site<'_, M>,
        held: &mut Held<'_, M>,
        (vpn, part, first): (Vpn, Part, u32),
        file: &File<M>,
    ) {
        let (region, table) = (&site.region, vpn.table_start());
        let folio = part.folio(first + (vpn.0 - region.start.0));
        if part.order == Order::ZERO || folio.start < first {
            return;
        }
        let start = region.start.add(folio.start - first);
        let end = start.add(part.order.pages());
        let is_within = start >= table && end <= table.add(PAGEBLOCK_PAGES) && end <= region.end;
        let all = || (start.0..end.0).map(Vpn).filter(|&at| at != vpn);
        if !is_within || all().any(|at| held.entry(at) != Entry::NONE) {
            return;
        }
        for at in all() {
            self.lru().page(part.head()).get();
            let pfn = part.head().add(at.0 - start.0);
            self.map_part(site, held, (at, Part { pfn, ..part }), Self::file_bits(site, file));
        }
        self.machine().spend(Chore::MapAround, part.order.pages() - 1);
    }

    /// The first write to a private mapping of a file: a copy of the file's page.
    pub(super) fn copy_from_file(self, site: &Site<'_, M>, file: &Arc<File<M>>, first: u32) -> Attempt {
        self.machine().spend(Chore::Fault, 1);
        let found = self.file_page(site, file, first)?;
        let copied = self.copy_page(site, Entry::NONE, found.part.pfn);
        self.lru().put_page(found.part.head());
        let reads = found.reads;
        copied.map(|done| done.map(|done| Faulted { kind: found.kind(done.kind), reads, ..done }))
    }
}
