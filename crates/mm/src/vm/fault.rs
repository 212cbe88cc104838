//! What happens when memory is touched that no entry lets through: a page is brought in, copied, or an error says that
//! there is nothing to touch or no memory for it.
//!
//! Here a fault finds out which of these it is; `huge`, `large`, `zero`, `copy` and `from_file` do it.

use core::fmt;

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::large::SizeEvents;
use super::mempolicy::{InterleaveBy, MemPolicy};
use super::region::{Backing, Region};
use super::space::AddressSpace;
use super::swap::{OnDevice, SlotRead, Swapped};
use super::table::{Held, Table};
use super::{DirtyPages, ReadPattern, Touch, Vpn};
use super::{FaultDoor, SpacesDoor, SpacesGround};
use crate::cache::{Asker, Part, Source};
use crate::ground::ids::{Nanos, Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine, Span, SwapIo, Work};
use crate::ground::sync::{AtomicU64, Relaxed};
use crate::lru::page::{Mapping, PageFlag};
use crate::lru::{By, Came, VecEvent};
use crate::memcg::{Effort, GroupId};
use crate::pages::request::{AllocError, Request};
use crate::pages::stat::{Counters, SlowEvents};
use crate::rules::knobs::Knob;

/// What a fault did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Nothing: the page was there already.
    Spurious,
    /// A page was mapped.
    Minor,
    /// A huge page was mapped.
    Huge,
    /// A huge page of shared memory was, which may have been there before (`thp_file_mapped`).
    HugeShared,
    /// A page, that of zeros too, was copied, for it is written to and shared.
    Copied,
    /// A page that was mapped only to be read may be written to from now on: it has no other owner, or is a file's that all
    /// may write to.
    Reused,
    /// The page was there, marked by NUMA balancing, and is not any more: whoever touched it may do so now, and faults again if
    /// the entry does not let him ([`SpacesDoor::hint`]).
    Hint,
    /// The page of zeros was mapped, to be read.
    ZeroPage,
    /// The huge page of zeros was mapped.
    HugeZeroPage,
    /// The page's contents have to come from a file's disk, for which the caller waits.
    Major,
    /// They came from swap, which took as long as it takes ([`Machine::swap_io`]). A major fault too.
    Swapped,
}

impl FaultKind {
    pub(super) const COUNT: usize = Self::Swapped as usize + 1;

    /// Whether the kernel counts it as a major fault.
    pub const fn is_major(self) -> bool {
        matches!(self, Self::Major | Self::Swapped)
    }

    /// Pages that the entry covers which it made or found: 512 of a huge one.
    pub const fn pages(self) -> u32 {
        match self {
            Self::Huge | Self::HugeShared | Self::HugeZeroPage => PAGEBLOCK_PAGES,
            _ => 1,
        }
    }
}

/// A fault that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faulted {
    /// The frame that the virtual page is mapped to.
    pub pfn: Pfn,
    /// What was done.
    pub kind: FaultKind,
    /// Pages that come from a disk for it: that of a major fault, and those that are read with it or ahead.
    pub reads: u32,
}

/// Why a fault could not be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultError {
    /// No region is there (`SIGSEGV`).
    NoRegion(Vpn),
    /// The region may not be touched so (`SIGSEGV` too; whoever has a handler goes on).
    Forbidden(Vpn),
    /// There is no memory for the page.
    Alloc(AllocError),
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRegion(vpn) => write!(f, "{vpn} is not mapped"),
            Self::Forbidden(vpn) => write!(f, "{vpn} may not be touched so"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FaultError {}

impl From<AllocError> for FaultError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// Events of address spaces, under vmstat's names (khugepaged's own under those of its files in sysfs).
#[derive(Debug, Default)]
pub(crate) struct VmEvents {
    pub(in crate::vm) pgfault: AtomicU64,
    pub(in crate::vm) pgmajfault: AtomicU64,
    pub(in crate::vm) pgreuse: AtomicU64,
    pub(in crate::vm) thp_fault_alloc: AtomicU64,
    pub(in crate::vm) thp_fault_fallback: AtomicU64,
    pub(in crate::vm) thp_file_alloc: AtomicU64,
    pub(in crate::vm) thp_file_fallback: AtomicU64,
    pub(in crate::vm) thp_file_fallback_charge: AtomicU64,
    pub(in crate::vm) thp_file_mapped: AtomicU64,
    pub(in crate::vm) thp_zero_page_alloc: AtomicU64,
    pub(in crate::vm) thp_zero_page_alloc_failed: AtomicU64,
    pub(in crate::vm) thp_split_pmd: AtomicU64,
    pub(in crate::vm) thp_split_page: AtomicU64,
    pub(in crate::vm) thp_deferred_split_page: AtomicU64,
    pub(in crate::vm) thp_migration_success: AtomicU64,
    pub(in crate::vm) thp_swpout: AtomicU64,
    pub(in crate::vm) thp_swpout_fallback: AtomicU64,
    pub(in crate::vm) thp_collapse_alloc: AtomicU64,
    pub(in crate::vm) thp_collapse_alloc_failed: AtomicU64,
    pub(in crate::vm) thp_scan_exceed_none_pte: AtomicU64,
    pub(in crate::vm) khugepaged_pages_collapsed: AtomicU64,
    pub(in crate::vm) khugepaged_full_scans: AtomicU64,
    pub(in crate::vm) pswpin: AtomicU64,
    pub(in crate::vm) pswpout: AtomicU64,
    pub(in crate::vm) swap_ra: AtomicU64,
    pub(in crate::vm) swap_ra_hit: AtomicU64,
    pub(in crate::vm) swpin_zero: AtomicU64,
    pub(in crate::vm) swpout_zero: AtomicU64,
    pub(in crate::vm) sizes: SizeEvents,
}

impl VmEvents {
    /// Adds what was counted to `counters`; kinds that did not happen are left out.
    fn report(&self, counters: &mut Counters) {
        let events = [
            ("pgfault", &self.pgfault),
            ("pgmajfault", &self.pgmajfault),
            ("pgreuse", &self.pgreuse),
            ("thp_fault_alloc", &self.thp_fault_alloc),
            ("thp_fault_fallback", &self.thp_fault_fallback),
            ("thp_file_alloc", &self.thp_file_alloc),
            ("thp_file_fallback", &self.thp_file_fallback),
            ("thp_file_fallback_charge", &self.thp_file_fallback_charge),
            ("thp_file_mapped", &self.thp_file_mapped),
            ("thp_scan_exceed_none_pte", &self.thp_scan_exceed_none_pte),
            ("thp_zero_page_alloc", &self.thp_zero_page_alloc),
            ("thp_zero_page_alloc_failed", &self.thp_zero_page_alloc_failed),
            ("thp_split_pmd", &self.thp_split_pmd),
            ("thp_split_page", &self.thp_split_page),
            ("thp_deferred_split_page", &self.thp_deferred_split_page),
            ("thp_migration_success", &self.thp_migration_success),
            ("thp_swpout", &self.thp_swpout),
            ("thp_swpout_fallback", &self.thp_swpout_fallback),
            ("thp_collapse_alloc", &self.thp_collapse_alloc),
            ("thp_collapse_alloc_failed", &self.thp_collapse_alloc_failed),
            ("khugepaged_pages_collapsed", &self.khugepaged_pages_collapsed),
            ("khugepaged_full_scans", &self.khugepaged_full_scans),
            ("pswpin", &self.pswpin),
            ("pswpout", &self.pswpout),
            ("swap_ra", &self.swap_ra),
            ("swap_ra_hit", &self.swap_ra_hit),
            ("swpin_zero", &self.swpin_zero),
            ("swpout_zero", &self.swpout_zero),
        ];
        for (name, event) in events {
            let count = event.load(Relaxed);
            if count > 0 {
                counters.add(name, count);
            }
        }
        self.sizes.report(counters);
    }
}

/// How long a fault waits for a page that is on its way to another frame before it looks again.
const MIGRATION_WAIT: Nanos = Nanos(2_000);

/// Where a fault is.
pub(super) struct Site<'a, M: Machine> {
    pub(super) space: &'a AddressSpace<M>,
    pub(super) region: Region<M>,
    /// That of the regions when this one was looked up.
    pub(super) generation: u32,
    pub(super) table: &'a Table<M>,
    pub(super) vpn: Vpn,
    pub(super) touch: Touch,
}

/// A page of a file that a fault is for, with a reference to its folio.
pub(super) struct Found {
    pub(super) part: Part,
    pub(super) source: Source,
    /// Pages that come from the disk.
    pub(super) reads: u32,
    /// The fault gave up its locks to have something read, for itself or ahead, and begins anew (`VM_FAULT_RETRY`).
    pub(super) begins_anew: bool,
}

impl Found {
    /// It was there, or begins as zeros.
    pub(super) const fn in_memory(part: Part) -> Self {
        Self { part, source: Source::Memory, reads: 0, begins_anew: false }
    }

    /// What the fault was, which is of `kind` where that did not take long.
    pub(super) const fn kind(&self, kind: FaultKind) -> FaultKind {
        match self.source {
            Source::Memory => kind,
            Source::Disk => FaultKind::Major,
            Source::Swap => FaultKind::Swapped,
        }
    }
}

/// What an attempt came to: `None` if what it went by has changed, and it must be made again.
pub(super) type Attempt = Result<Option<Faulted>, FaultError>;

/// What a new page is to hold at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Contents {
    Zeros,
    /// It will be filled.
    Any,
    /// It will be filled from swap, and charged to whom it belonged.
    Swapped,
}

impl<M: Machine> Site<'_, M> {
    /// Who brings a page to it (`lru_gen_enter_fault`): a fault, unless pages there are said to be used once.
    pub(super) fn by(&self) -> By {
        if self.region.pattern == ReadPattern::Normal { By::Fault } else { By::Other }
    }

    /// Who asks for a file's pages for it.
    pub(super) fn asker(&self) -> Asker {
        Asker { placement: self.region.placement, by: self.by(), ..Asker::default() }
    }

    /// Whose turn it is where a region's pages are interleaved, for a page of `order`.
    pub(super) fn turn(&self, order: Order) -> InterleaveBy<'static> {
        InterleaveBy::Index(u64::from(self.region.anon_index(self.vpn) >> order.get()))
    }

    /// The table's lock, if the entry is still `expected` (but for the processor's bits), the regions are as they were, and
    /// the table has its frame.
    pub(super) fn lock<'a>(&'a self, machine: &'a M, expected: Entry) -> Option<Held<'a, M>> {
        let held = self.table.lock(machine);
        let same = held.entry(self.vpn).without(PROCESSOR) == expected.without(PROCESSOR);
        let valid = same && self.space.generation() == self.generation && held.state.frame.is_some();
        valid.then_some(held)
    }

    /// The bits of an entry for a page that this touch may use at once.
    pub(super) fn bits(&self) -> u64 {
        match self.touch {
            Touch::Read => bit::ACCESSED,
            Touch::Write => bit::ACCESSED | bit::DIRTY | bit::WRITE,
        }
    }
}

const PROCESSOR: u64 = bit::ACCESSED | bit::DIRTY;

#[allow(clippy::unnecessary_wraps, reason = "it is how an attempt ends well")]
pub(super) fn done(pfn: Pfn, kind: FaultKind) -> Attempt {
    Ok(Some(Faulted { pfn, kind, reads: 0 }))
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Touches `vpn` of `space`, faulting if it must. `None` in [`Ok`] means that there was no fault.
    ///
    /// # Errors
    /// As [`SpacesDoor::fault`].
    #[inline]
    pub fn touch_page(
        self,
        space: &AddressSpace<M>,
        vpn: Vpn,
        touch: Touch,
    ) -> Result<(Pfn, Option<FaultKind>), FaultError> {
        match space.access(vpn, touch) {
            Some(pfn) => Ok((pfn, None)),
            None => self.fault(space, vpn, touch).map(|done| (done.pfn, Some(done.kind))),
        }
    }

    /// Serves a page fault at `vpn`. What has to be read from a disk is the caller's to wait for
    /// ([`FaultKind::Major`]).
    ///
    /// # Errors
    /// If nothing is mapped there that may be touched so, or there is no memory.
    pub fn fault(self, space: &AddressSpace<M>, vpn: Vpn, touch: Touch) -> Result<Faulted, FaultError> {
        let since = self.machine().enter(Span::Fault);
        self.machine().spend(Chore::Exception, 1);
        self.serve(space, vpn, touch, since)
    }

    /// As [`Self::touch_page`], by a call that brings pages in for its caller: a fault without an exception
    /// (`faultin_page`).
    ///
    /// # Errors
    /// As [`SpacesDoor::fault`].
    pub(super) fn bring_page(
        self,
        space: &AddressSpace<M>,
        vpn: Vpn,
        touch: Touch,
    ) -> Result<Option<FaultKind>, FaultError> {
        if space.access(vpn, touch).is_some() {
            return Ok(None);
        }
        let since = self.machine().enter(Span::Fault);
        self.serve(space, vpn, touch, since).map(|done| Some(done.kind))
    }

    /// Serves a fault whose span began at `since`.
    fn serve(
        self,
        space: &AddressSpace<M>,
        vpn: Vpn,
        touch: Touch,
        since: Nanos,
    ) -> Result<Faulted, FaultError> {
        if self.lru().keeps_generations() {
            space.note_group(self.memcg().current());
        }
        let result = loop {
            match self.faults().try_fault(space, vpn, touch) {
                Ok(Some(done)) => break Ok(done),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        self.faults().count_fault(space, result);
        self.memcg().settle_high();
        let work = Work { count: u32::from(result.is_ok()), ..Work::default() };
        self.machine().leave(Span::Fault, since, work);
        result
    }

    /// Adds the events of address spaces, and where file pages are, to `counters`.
    pub(crate) fn count_vm(self, counters: &mut Counters) {
        self.own().events.report(counters);
        let DirtyPages { dirty, writeback } = self.files().dirty_pages();
        let now =
            [("nr_file_pages", self.files().file_pages()), ("nr_dirty", dirty), ("nr_writeback", writeback)];
        for (name, pages) in now.into_iter().filter(|(_, pages)| *pages > 0) {
            counters.add(name, pages);
        }
    }

    /// What page tables are allocated with.
    pub(super) fn table_request(self) -> Request {
        let request_at = |setting: u64| if setting == 0 { Request::KERNEL } else { Request::HIGHUSER };
        if M::WATCHES_KNOBS {
            // Where no zone is high, both may use the same ones.
            let highest = |request: Request| {
                let kinds = self.zones().iter().map(super::super::pages::zone::Zone::kind);
                kinds.filter(|&kind| kind <= request.highest).max()
            };
            self.knobs().decide(self.machine(), Knob::Highpte, |setting| highest(request_at(setting)));
        }
        Request { zero: true, ..request_at(self.knobs().get(Knob::Highpte)) }
    }
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Counts a fault that is over, unless there was nothing to touch (`mm_account_fault`).
    fn count_fault(self, space: &AddressSpace<M>, result: Result<Faulted, FaultError>) {
        if !matches!(result, Err(FaultError::NoRegion(_) | FaultError::Forbidden(_))) {
            SlowEvents::bump(&self.own().events.pgfault);
        }
        let Ok(Faulted { kind, pfn, .. }) = result else { return };
        space.stat.count_fault(kind);
        if kind.is_major() {
            self.lru().count_of(pfn, VecEvent::MajorFault, 1);
            SlowEvents::bump(&self.own().events.pgmajfault);
        }
    }

    fn try_fault(self, space: &AddressSpace<M>, vpn: Vpn, touch: Touch) -> Attempt {
        let (region, generation) = space.region_of(self.machine(), vpn).ok_or(FaultError::NoRegion(vpn))?;
        if !region.protection.allows(touch) {
            return Err(FaultError::Forbidden(vpn));
        }
        let is_valid = || space.generation() == generation;
        let table = if region.maps_shared(touch) {
            self.table_of_shared(space, vpn, &is_valid)?
        } else {
            self.tables().give_table(space, vpn, is_valid)?
        };
        let site = Site { space, region, generation, table, vpn, touch };
        let (entry, size) = table.entry_and_size(vpn);
        if entry.is_present() {
            return self.fault_present(&site, entry, size);
        }
        if entry.is_zeros() {
            return self.fault_zeros(&site, entry, size);
        }
        if let Some(slot) = entry.slot() {
            return self.swap_in(&site, entry, slot);
        }
        if entry.migrating_from().is_some() {
            self.machine().block(MIGRATION_WAIT);
            return Ok(None);
        }
        match (&site.region.backing, touch) {
            (Backing::Anonymous, _) => match self.fault_huge(&site) {
                Some(done) => Ok(Some(done)),
                None => self.fault_anonymous(&site),
            },
            (Backing::Shared { file, first }, _) | (Backing::Private { file, first }, Touch::Read) => {
                self.fault_file(&site, file, *first)
            }
            (Backing::Private { file, first }, Touch::Write) => self.copy_from_file(&site, file, *first),
        }
    }

    /// A page for `site`, from where its region says.
    pub(super) fn alloc_page(self, site: &Site<'_, M>, contents: Contents) -> Result<Pfn, AllocError> {
        let (placement, zero) = (site.region.placement, contents == Contents::Zeros);
        let request = Request { node: placement.node, allowed: placement.allowed, zero, ..Request::USER };
        let pfn = match site.region.policy {
            MemPolicy::Local => self.alloc(request),
            policy => self.spaces().alloc_by(policy, site.turn(Order::ZERO), request),
        }?;
        if contents != Contents::Swapped {
            self.lru().charge(pfn)?;
        }
        Ok(pfn)
    }

    fn fault_anonymous(self, site: &Site<'_, M>) -> Attempt {
        self.machine().spend(Chore::Fault, 1);
        if site.touch == Touch::Read {
            if let Some(frame) = self.own().zeros.frame(self.pages()) {
                return Ok(Self::install_zeros(self.machine(), site, frame));
            }
        }
        if let Some(done) = self.fault_large(site) {
            return Ok(Some(done));
        }
        let pfn = self.alloc_page(site, Contents::Zeros)?;
        self.install_new(site, Entry::NONE, pfn, FaultKind::Minor)
    }

    /// Maps `pfn`, which was just allocated for `site`, in the place of `expected`, or frees it again.
    pub(super) fn install_new(
        self,
        site: &Site<'_, M>,
        expected: Entry,
        pfn: Pfn,
        kind: FaultKind,
    ) -> Attempt {
        self.make_anon(site, pfn);
        self.install_anon(site, expected, pfn, kind)
    }

    /// The page at `pfn` becomes one of `site`'s own, that nothing is known of.
    fn make_anon(self, site: &Site<'_, M>, pfn: Pfn) {
        let (page, index) = (self.lru().page(pfn), site.region.anon_index(site.vpn));
        page.init(Mapping::Anon(site.space.family), index, &[PageFlag::SwapBacked]);
        page.note_placement(site.region.placement);
    }

    /// The same of a page that is `site`'s own already.
    fn install_anon(self, site: &Site<'_, M>, expected: Entry, pfn: Pfn, kind: FaultKind) -> Attempt {
        let page = self.lru().page(pfn);
        let Some(mut held) = site.lock(self.machine(), expected) else {
            self.lru().put_page(pfn);
            return Ok(None);
        };
        page.add_mapped();
        let write = if site.region.protection.allows(Touch::Write) { bit::WRITE } else { 0 };
        held.set(site.vpn, Entry::of(pfn, write | bit::ACCESSED | bit::DIRTY | bit::EXCLUSIVE));
        // The lock is held to the end: without it the page may be unmapped, and freed, as soon as the entry is set.
        self.count_installed(site, expected, pfn);
        if kind == FaultKind::Swapped {
            page.set(PageFlag::SwapCache);
        }
        if site.region.locked {
            self.unevictable().mlock_new(pfn);
        }
        self.lru().lru_add_by(pfn, site.by());
        page.clear(PageFlag::SwapCache);
        done(pfn, kind)
    }

    /// The page at `pfn` is mapped in the place of `before`: of a page that it takes the place of, not both are resident.
    pub(super) fn count_installed(self, site: &Site<'_, M>, before: Entry, pfn: Pfn) {
        let node = self.pages().node_of_page(pfn);
        if before.is_present() {
            let old = before.head();
            let kind = PageKind::of(self.lru().page(old));
            site.space.stat.count_copy((kind, self.pages().node_of_page(old)), node);
        } else {
            site.space.stat.count_pages(PageKind::Anon, node, 1);
        }
    }

    fn swap_in(self, site: &Site<'_, M>, entry: Entry, slot: u32) -> Attempt {
        self.machine().spend(Chore::Fault, 1);
        let Some(Swapped { group, came, device, read }) = self.swap().swapped(slot) else { return Ok(None) };
        if read != SlotRead::Alone {
            return self.swap_in_ahead(site, entry, (slot, read));
        }
        if let Some(done) = self.swap_in_large(site, slot) {
            return Ok(Some(done));
        }
        let pfn = self.alloc_page(site, Contents::Swapped)?;
        if group != GroupId::ROOT {
            self.lru().charge_to(pfn, group, Effort::Full)?;
        }
        self.swap().bring(slot, SwapIo::Read);
        if device == OnDevice::Zeros {
            self.machine().clear(pfn, Order::ZERO);
        }
        self.make_anon(site, pfn);
        if let Came::Back(shadow) = came {
            self.lru().refault(pfn, shadow, site.by(), |group| self.swap().has_swap(group));
        }
        let installed = self.install_anon(site, entry, pfn, FaultKind::Swapped)?;
        if installed.is_some() {
            site.space.stat.count_swapped(-1);
            self.swap().came_back(slot, pfn);
        }
        Ok(installed)
    }
}
