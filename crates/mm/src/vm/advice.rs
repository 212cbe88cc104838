//! What a program says of its memory (`madvise`, `mlock`, `mbind`).

use alloc::vec::Vec;
use core::fmt;

use super::entry::{Entry, bit};
use super::fault::FaultError;
use super::mempolicy::{MemPolicy, MemPolicyError};
use super::region::{Backing, HugePages, PolicyOf, Region, Regions};
use super::space::AddressSpace;
use super::table::Held;
use super::{ReadPattern, RmapDoor, SpacesDoor, SpacesGround, TablesDoor, Touch, Vpn};
use crate::ground::ids::{PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::ground::sync::Relaxed;
use crate::lru::page::{Mapping, PageFlag};

/// A word of `madvise`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// The memory goes at once, and reads as zeros or as its file.
    DontNeed,
    /// What it holds may go when memory is short, unless it is written before that; private anonymous memory alone.
    Free,
    /// It will not be used soon: it is to be the first to go.
    Cold,
    /// It is to go to swap or its file now.
    PageOut,
    /// Each page is read, or written, now.
    PopulateRead,
    /// As [`Self::PopulateRead`].
    PopulateWrite,
    /// Huge pages are to be made of it now, whatever khugepaged's settings are.
    Collapse,
    /// Faults are to get huge pages, or none.
    Huge(HugePages),
    /// How it will be read, where it is a file's.
    Reads(ReadPattern),
}

/// Why advice was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdviceError {
    /// Not all of it is mapped; what is was advised.
    NotMapped,
    /// It makes no sense for this memory (`EINVAL`).
    Invalid,
    /// It is for reclaim to take (`PageOutDoor::page_out`).
    Unsupported,
    /// A page cannot be had.
    Fault(FaultError),
}

impl fmt::Display for AdviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotMapped => "not all of these pages are mapped",
            Self::Invalid => "this advice makes no sense for this memory",
            Self::Unsupported => "this advice is for reclaim to take",
            Self::Fault(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for AdviceError {}

impl From<FaultError> for AdviceError {
    fn from(error: FaultError) -> Self {
        Self::Fault(error)
    }
}

/// Locked memory is not to go, and refuses to be told so: up to where `advice` is taken (`madvise_dontneed_free_valid_vma`,
/// `can_madv_lru_vma`).
fn taken_up_to<M: Machine>(regions: &Regions<M>, (start, end): (Vpn, Vpn), advice: Advice) -> Vpn {
    if !matches!(advice, Advice::DontNeed | Advice::Free | Advice::Cold) {
        return end;
    }
    let mut locked = regions.within(start, end).filter(|region| region.locked);
    locked.next().map_or(end, |region| region.start.max(start))
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Takes `advice` for the `pages` from `start` on of `space`.
    ///
    /// # Errors
    /// If not all of them are mapped, or the advice cannot be taken.
    pub fn madvise(
        self,
        space: &AddressSpace<M>,
        start: Vpn,
        pages: u32,
        advice: Advice,
    ) -> Result<(), AdviceError> {
        let end = Vpn(start.0.saturating_add(pages));
        let upto = taken_up_to(&space.regions.lock_local(self.machine()), (start, end), advice);
        match advice {
            Advice::PopulateRead => self.populate(space, start, pages, Touch::Read)?,
            Advice::PopulateWrite => self.populate(space, start, pages, Touch::Write)?,
            Advice::Huge(huge) => self.advise(space, start, pages, huge),
            Advice::PageOut => return Err(AdviceError::Unsupported),
            Advice::Collapse => return self.collapse_now(space, start, end),
            Advice::DontNeed => self.discard(space, start, upto.0 - start.0),
            Advice::Free | Advice::Cold => self.age(space, start, upto, advice)?,
            Advice::Reads(pattern) => {
                space.patterned.store(1, Relaxed);
                self.change_regions(space, start, end, |region| Region { pattern, ..region });
            }
        }
        if upto < end {
            return Err(AdviceError::Invalid);
        }
        let mapped = space.regions.lock_local(self.machine()).mapped_up_to(start, end);
        if mapped < end { Err(AdviceError::NotMapped) } else { Ok(()) }
    }

    /// Keeps the `pages` from `start` on of `space` in memory, each of which is brought in (`mlock`), or lets them go again
    /// (`munlock`) if `lock` says so. They leave the lists that reclaim looks through meanwhile.
    ///
    /// # Errors
    /// If not all of them are mapped, or a page cannot be had.
    pub fn mlock(
        self,
        space: &AddressSpace<M>,
        start: Vpn,
        pages: u32,
        lock: MemoryLock,
    ) -> Result<(), AdviceError> {
        self.machine().spend(Chore::Syscall, 1);
        let end = Vpn(start.0.saturating_add(pages));
        if space.regions.lock_local(self.machine()).mapped_up_to(start, end) < end {
            return Err(AdviceError::NotMapped);
        }
        let locked = lock == MemoryLock::Keep;
        self.change_regions(space, start, end, |region| Region { locked, ..region });
        let cpu = self.machine().cpu();
        self.lru().lru_drain_cpu(cpu);
        self.tables().each_page(space, (start, end), |held, vpn| {
            let head = held.entry(vpn).head();
            if locked {
                self.unevictable().mlock(head);
            } else {
                self.unevictable().munlock(head);
            }
        });
        self.lru().lru_drain_cpu(cpu);
        if locked { self.bring_in(space, start, end) } else { Ok(()) }
    }

    /// Touches all pages from `start` to before `end`: by writing where that is allowed and the memory is the process's own
    /// (`populate_vma_page_range`).
    fn bring_in(self, space: &AddressSpace<M>, start: Vpn, end: Vpn) -> Result<(), AdviceError> {
        let mut at = start;
        while at < end {
            let found = space.region_of(self.machine(), at);
            let (region, _) = found.ok_or(AdviceError::NotMapped)?;
            let shared = matches!(region.backing, Backing::Shared { .. });
            let upto = region.end.min(end);
            let touch =
                if region.protection.allows(Touch::Write) && !shared { Touch::Write } else { Touch::Read };
            self.populate(space, at, upto.0 - at.0, touch)?;
            at = upto;
        }
        Ok(())
    }

    /// Changes what is said of regions, cut at `start` and `end`.
    pub(super) fn change_regions(
        self,
        space: &AddressSpace<M>,
        start: Vpn,
        end: Vpn,
        change: impl Fn(Region<M>) -> Region<M>,
    ) {
        let _changes = space.changes.lock_local(self.machine());
        {
            let mut regions = space.regions.lock_local(self.machine());
            for region in regions.take(start, end) {
                regions.insert_merged(change(region));
            }
            // No fault goes by the regions as they were.
            space.next_generation();
        }
        // What one entry maps is of one region.
        for edge in [start, end].into_iter().filter(|edge| *edge != edge.table_start()) {
            self.tables().open_at(space, edge);
        }
    }

    /// From now on faults in the `pages` from `start` on of `space` take memory where `policy` says (`mbind`); what is there
    /// stays. `MemPolicy::Local` takes an earlier policy back.
    ///
    /// # Errors
    /// If none of the policy's nodes has memory.
    pub fn mbind(
        self,
        space: &AddressSpace<M>,
        start: Vpn,
        pages: u32,
        policy: MemPolicy,
    ) -> Result<(), MemPolicyError> {
        self.machine().spend(Chore::Syscall, 1);
        self.check_mempolicy(policy)?;
        let end = Vpn(start.0.saturating_add(pages));
        let policy_of = PolicyOf::Range;
        self.change_regions(space, start, end, |region| Region { policy, policy_of, ..region });
        Ok(())
    }

    /// Makes huge pages of all tables from `start` to before `end`.
    fn collapse_now(self, space: &AddressSpace<M>, start: Vpn, end: Vpn) -> Result<(), AdviceError> {
        self.machine().spend(Chore::Syscall, 1);
        self.lru().lru_drain_all();
        let mut table = Vpn(start.0.next_multiple_of(PAGEBLOCK_PAGES));
        let mut failed = table.add(PAGEBLOCK_PAGES) > end;
        while table.add(PAGEBLOCK_PAGES) <= end {
            failed |= !self.collapses().collapse_at_once(space, table);
            table = table.add(PAGEBLOCK_PAGES);
        }
        if failed { Err(AdviceError::Invalid) } else { Ok(()) }
    }

    /// Says of pages of the process's own that they may go, or of any that they will not be used soon.
    fn age(self, space: &AddressSpace<M>, start: Vpn, end: Vpn, advice: Advice) -> Result<(), AdviceError> {
        self.machine().spend(Chore::Syscall, 1);
        let is_shared = |vpn: Vpn| {
            let region = space.region_of(self.machine(), vpn).map(|(region, _)| region);
            region.is_some_and(|region| !matches!(region.backing, Backing::Anonymous))
        };
        if advice == Advice::Free && is_shared(start) {
            return Err(AdviceError::Invalid);
        }
        // What this CPU holds back is on no list yet.
        self.lru().lru_drain_cpu(self.machine().cpu());
        self.tables().each_page(space, (start, end), |held, vpn| match advice {
            Advice::Free => self.tables().give_away(held, vpn),
            _ => self.tables().make_cold(held, vpn),
        });
        Ok(())
    }
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Whether all of `range` is mapped by regions of `space`.
    pub(crate) fn is_mapped(self, space: &AddressSpace<M>, (start, end): (Vpn, Vpn)) -> bool {
        space.regions.lock_local(self.machine()).mapped_up_to(start, end) >= end
    }

    /// The pages in `range` that `space` alone maps and that are not locked, which are to go out now: each with a reference for the
    /// caller, and as if it had not been used. Large ones that cannot go whole, or lie in it in part, are
    /// split first (`madvise_cold_or_pageout_pte_range`).
    pub(crate) fn give_out(self, space: &AddressSpace<M>, range: (Vpn, Vpn)) -> Vec<Pfn> {
        let mut all = Vec::new();
        for (first, table) in space.tables.within(range.0, range.1) {
            let (start, end) = (range.0.max(first), range.1.min(first.add(PAGEBLOCK_PAGES)));
            // The lock is not to be held any more.
            let large = self.large_within(&table.lock(self.machine()), (start, end));
            for Large { head, mapped } in large {
                if mapped < self.pages().order_of(head).pages() || !self.goes_whole(head) {
                    self.spaces().split_huge_page(head);
                }
                self.lru().put_page(head);
            }
            let mut held = table.lock(self.machine());
            let is_huge = held.huge() != Entry::NONE;
            if is_huge && end.0 - start.0 < PAGEBLOCK_PAGES {
                continue;
            }
            let count = if is_huge { 1 } else { end.0 - start.0 };
            all.extend((0..count).filter_map(|step| self.give_out_at(&mut held, (start.add(step), start))));
        }
        all
    }

    /// The page that the entry for `vpn` maps, if it goes by that: a large one that is mapped in parts, at the last of them, if all are from
    /// `start` on.
    fn give_out_at(self, held: &mut Held<'_, M>, (vpn, start): (Vpn, Vpn)) -> Option<Pfn> {
        let entry = held.entry(vpn);
        if !entry.is_present() {
            return None;
        }
        let (head, page) = (entry.head(), self.lru().page(entry.head()));
        let goes = if entry.has(bit::PART) {
            held.clear_bits(vpn, bit::ACCESSED);
            let pages = self.pages().order_of(head).pages();
            let is_last = entry.pfn() == head.add(pages - 1);
            is_last && page.mapped() == pages && vpn.0 - start.0 + 1 >= pages
        } else {
            page.is_mapped_once()
        };
        if !goes || page.has(PageFlag::Mlocked) {
            return None;
        }
        held.clear_bits(vpn, bit::ACCESSED);
        page.clear(PageFlag::Referenced);
        page.get();
        Some(head)
    }

    /// Large pages that the table maps from `start` to `end`: each with a reference for the caller.
    fn large_within(self, held: &Held<'_, M>, (start, end): (Vpn, Vpn)) -> Vec<Large> {
        let mut all: Vec<Large> = Vec::new();
        let is_huge = held.huge() != Entry::NONE;
        for vpn in (start.0..end.0).map(Vpn) {
            let entry = held.entry(vpn);
            if !entry.is_present() || !(entry.has(bit::PART) || is_huge) {
                continue;
            }
            let head = entry.head();
            match all.last_mut() {
                Some(last) if last.head == head => last.mapped += 1,
                _ => {
                    self.lru().page(head).get();
                    all.push(Large { head, mapped: 1 });
                }
            }
        }
        all
    }
}

/// A large page of which a table maps so many parts in a range.
struct Large {
    head: Pfn,
    mapped: u32,
}

/// Whether pages are kept in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryLock {
    /// They are (`mlock`).
    Keep,
    /// Not any more (`munlock`).
    Release,
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// Calls `then` with each page that is mapped in `range`; of a huge page that lies in it, once. One that does not is
    /// split.
    fn each_page(self, space: &AddressSpace<M>, range: (Vpn, Vpn), then: impl Fn(&mut Held<'_, M>, Vpn)) {
        for (first, table) in space.tables.within(range.0, range.1) {
            let (start, end) = (range.0.max(first), range.1.min(first.add(PAGEBLOCK_PAGES)));
            let mut held = table.lock(self.machine());
            if held.huge() != Entry::NONE && end.0 - start.0 == PAGEBLOCK_PAGES {
                if held.huge().is_present() {
                    then(&mut held, start);
                }
                continue;
            }
            self.split_table(space, start, &mut held);
            for vpn in (start.0..end.0).map(Vpn) {
                if held.entry(vpn).is_present() {
                    then(&mut held, vpn);
                }
            }
        }
    }

    /// The page at `vpn` may be freed, unless it is written before that (`madvise_free_pte_range`).
    fn give_away(self, held: &mut Held<'_, M>, vpn: Vpn) {
        let head = held.entry(vpn).head();
        let page = self.lru().page(head);
        if !matches!(page.mapping(), Mapping::Anon(_))
            || !page.is_mapped_once()
            || self.swap().has_others(head)
        {
            return;
        }
        page.clear(PageFlag::Dirty);
        self.swap().let_go(head);
        held.clear_bits(vpn, bit::ACCESSED | bit::DIRTY);
        self.lru().lru_give_away(head);
    }

    fn make_cold(self, held: &mut Held<'_, M>, vpn: Vpn) {
        held.clear_bits(vpn, bit::ACCESSED);
        let head = held.entry(vpn).head();
        let page = self.lru().page(head);
        page.clear(PageFlag::Referenced);
        if page.is_mapped_once() {
            self.lru().lru_deactivate(head);
        }
    }
}
