//! khugepaged: looks through address spaces for tables of small pages that a huge one could take the place of, so many
//! pages in a round (`transparent_hugepage.khugepaged.*`). A round goes on where the one before ended; what it does with a
//! table is in `collapse`.
//!
//! It knows the address spaces that have entered (`khugepaged_enter_vma`): by a fault where a huge page may be, whether there is one or
//! not; as shared memory is mapped that may have one; as a region of theirs grows by what is mapped beside it, or is advised; and the
//! children of such. Of these it looks at all that may be huge by then. What may be huge only since a knob was set is nothing to it before that.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::collapse::{Asker, Collapse};
use super::region::Region;
use super::space::AddressSpace;
use super::{CollapseDoor, SpacesGround};
use super::{SpaceId, Vpn};
use crate::ground::ids::{Nanos, PAGEBLOCK_PAGES};
use crate::ground::machine::{Daemon, LockClass, Machine};
use crate::ground::sync::{AtomicU32, Locked, Relaxed};
use crate::pages::stat::SlowEvents;
use crate::rules::knobs::Knob;

/// How long it sleeps when there was no huge page to be had (`khugepaged/alloc_sleep_millisecs`).
const ALLOC_SLEEP: Nanos = Nanos(60_000_000_000);

/// Where a round goes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Position {
    space: SpaceId,
    table: Vpn,
}

/// What khugepaged remembers.
#[derive(Debug)]
pub(super) struct Khugepaged<M: Machine> {
    next: Locked<M, Position>,
    /// 1 from the fault that woke it until it finds no region to look at.
    works: AtomicU32,
}

impl<M: Machine> Khugepaged<M> {
    pub(super) fn new(machine: &M) -> Self {
        Self {
            next: Locked::new(machine, LockClass::Other, 3, Position::default()),
            works: AtomicU32::new(0),
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> CollapseDoor<'_, M, G> {
    /// khugepaged is to look at `space` from now on.
    #[inline]
    pub(super) fn enter(self, space: &AddressSpace<M>) {
        if space.entered.load(Relaxed) == 0 {
            space.entered.store(1, Relaxed);
        }
        let works = &self.own().khugepaged.works;
        if works.load(Relaxed) == 0 && works.swap(1, Relaxed) == 0 {
            self.machine().wake(Daemon::Khugepaged);
        }
    }

    /// `region` of `space` is to be mapped: shared memory that may be huge is entered then. Other memory is by a fault.
    pub(super) fn note_shared(self, space: &AddressSpace<M>, region: &Region<M>) {
        if region.shared_file().is_some() && self.range(region).is_some() {
            self.enter(space);
        }
    }

    /// `pages` were mapped at `start`: where a region before or after them has become one with them, that is entered.
    pub(super) fn note_merged(self, space: &AddressSpace<M>, (start, pages): (Vpn, u32)) {
        let region = space.region_of(self.machine(), start).map(|(region, _)| region);
        if region.is_some_and(|region| region.pages() > pages && self.range(&region).is_some()) {
            self.enter(space);
        }
    }

    /// The pages from `start` to before `end` of `space` are to be huge, a program says.
    pub(super) fn note_advised(self, space: &AddressSpace<M>, (start, end): (Vpn, Vpn)) {
        let may_be = {
            let regions = space.regions.lock_local(self.machine());
            regions.within(start, end).any(|region| self.range(region).is_some())
        };
        if may_be {
            self.enter(space);
        }
    }

    /// A round of khugepaged; gives how long it sleeps then, `None` if until it is woken.
    pub fn khugepaged(self) -> Option<Nanos> {
        let state = &self.own().khugepaged;
        let spaces = self.spaces_to_scan();
        if spaces.is_empty() {
            state.works.store(0, Relaxed);
            return None;
        }
        // What a CPU holds back from the lists has a reference more.
        self.lru().lru_drain_all();
        let mut done = 0;
        let mut next = *state.next.lock_local(self.machine());
        let sleep = loop {
            let is_whole = next == Position::default();
            if let Some(sleep) = self.scan_spaces(&spaces, &mut next, &mut done) {
                break sleep;
            }
            SlowEvents::bump(&self.own().events.khugepaged_full_scans);
            next = Position::default();
            if is_whole {
                break self.scan_sleep();
            }
        };
        *state.next.lock_local(self.machine()) = next;
        Some(sleep)
    }

    fn scan_sleep(self) -> Nanos {
        self.knobs().decide(self.machine(), Knob::KhugepagedScanSleep, |ms| Nanos(ms * 1_000_000))
    }

    /// Address spaces that have entered and have a region that may be huge, by number.
    fn spaces_to_scan(self) -> Vec<Arc<AddressSpace<M>>> {
        let mut spaces = self.spaces().all_spaces();
        // One is come back to, whether or not it has pages of its own yet.
        spaces.retain(|space| space.entered.load(Relaxed) == 1 && !self.ranges(space, |_| true).is_empty());
        spaces.sort_unstable_by_key(|space| space.id.0);
        spaces
    }

    /// The tables of `space` that lie in regions that may be huge and are shared memory, or have pages of the process's own, not but pages of
    /// zeros (`anon_vma`).
    fn ranges_to_scan(self, space: &AddressSpace<M>) -> Vec<Range> {
        self.ranges(space, |region| {
            region.shared_file().is_some() || self.spaces().has_own_pages(space, region)
        })
    }

    /// The tables of `space` that lie in regions that may be huge, of those that are `wanted`.
    fn ranges(self, space: &AddressSpace<M>, wanted: impl Fn(&Region<M>) -> bool) -> Vec<Range> {
        let regions = space.regions.lock_local(self.machine());
        regions.iter().filter_map(|region| self.range(region).filter(|_| wanted(region))).collect()
    }

    /// The tables that lie in `region`, if that may be huge and has any.
    fn range(self, region: &Region<M>) -> Option<Range> {
        let first = Vpn(region.start.0.checked_next_multiple_of(PAGEBLOCK_PAGES)?);
        let end = region.end.table_start();
        let is_shared = region.shared_file().is_some();
        let may_be = if is_shared {
            first < end && self.faults().may_be_huge_shared(region, first)
        } else {
            self.spaces().may_be_huge(region)
        };
        (may_be && first < end).then_some(Range { first, end, is_shared })
    }

    /// Looks at tables from `next` on until it has looked at as many pages as a round may, with those that are `done`. Gives
    /// how long to sleep where it stopped; `None` where it came to the end.
    fn scan_spaces(
        self,
        spaces: &[Arc<AddressSpace<M>>],
        next: &mut Position,
        done: &mut u64,
    ) -> Option<Nanos> {
        let from = *next;
        for space in spaces.iter().filter(|space| space.id >= from.space) {
            let lowest = if space.id == from.space { from.table } else { Vpn(0) };
            for range in self.ranges_to_scan(space) {
                for table in range.tables(space, lowest) {
                    *next = Position { space: space.id, table };
                    let after = *done + u64::from(PAGEBLOCK_PAGES);
                    let by = (Knob::KhugepagedPagesToScan, after);
                    if self.knobs().decide_by(self.machine(), by, |most| most, |most| after > most) {
                        return Some(self.scan_sleep());
                    }
                    *done = after;
                    next.table = table.add(PAGEBLOCK_PAGES);
                    let collapsed = if range.is_shared {
                        self.collapse_shared(space, table, Asker::Daemon)
                    } else {
                        self.collapse(space, table, Asker::Daemon)
                    };
                    match collapsed {
                        Collapse::Done => SlowEvents::bump(&self.own().events.khugepaged_pages_collapsed),
                        Collapse::Stays => {}
                        Collapse::NoMemory => return Some(ALLOC_SLEEP),
                    }
                }
            }
        }
        None
    }
}

/// Tables of a region that may be huge: the first page of the first, and the end of the last.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: Vpn,
    end: Vpn,
    is_shared: bool,
}

impl Range {
    /// The first pages of its tables from `lowest` on: of shared memory all, of other those that have been used.
    fn tables<M: Machine>(self, space: &AddressSpace<M>, lowest: Vpn) -> Vec<Vpn> {
        let first = self.first.max(lowest);
        if self.is_shared {
            (first.0..self.end.0).step_by(PAGEBLOCK_PAGES as usize).map(Vpn).collect()
        } else {
            space.tables.within(first, self.end).map(|(table, _)| table).collect()
        }
    }
}
