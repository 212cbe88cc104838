//! The lists that reclaim looks through: of a node since 4.8, of a zone before, four each: inactive and active, of
//! anonymous memory (and shared memory: what can only go to swap) and of files. New pages come to the head, reclaim
//! takes from the tail. What is locked into memory is on a list of its own, beside these ([`UnevictableDoor`]).
//!
//! ```text
//!   lru_add ─▶ a CPU's batch ─▶ inactive ──(used twice)──▶ active
//!                                  │ ▲                        │
//!                                  ▼ └───(reclaim, tail)──────┘
//!                               isolated ─▶ freed, or put back
//! ```
//!
//! A list holds no reference: who frees a page takes it off ([`LruDoor::lru_forget`]), and who takes a page off to work with
//! it (`isolate`) gets a reference first, which a page on its way out refuses. The flag Lru is set exactly while a page
//! is on a list, and changes under the list's lock. Active changes under that lock too, or under the lock of the batch that
//! a new page is in. A page that is split or migrated may come to a list by itself while somebody has it isolated; who
//! comes second leaves it there.

mod batch;
mod check;
mod cost;
mod events;
mod generations;
mod isolate;
mod owners;
pub(crate) mod page;
mod refs;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod unevictable;
mod vec;
mod workingset;

use alloc::boxed::Box;

use crate::ground::{AtomicU32, AtomicU64, Cpu, LockClass, Locked, Machine, Once, Pfn, Relaxed, ZoneId};
use crate::lru::page::{Lines, Page, PageFlag};
use crate::memcg::{GroupId, MemcgDoor, MemcgGround};
use crate::pages::{Counters, List, Pages, Zone, door};
use crate::rules::knobs::Knob;
use crate::rules::policy::LruRule;

use batch::CpuBatches;
pub(crate) use cost::Cost;
pub(crate) use events::ReclaimEvent;
use events::ReclaimEvents;
pub use generations::GenDoor;
use generations::GenLists;
pub(crate) use generations::WalkedTables;
pub(crate) use generations::{Kind, MAIN, MIN_BATCH, MIN_GENERATIONS, Oldest, Scanned, Swappiness, WALKS};
pub(crate) use isolate::{Alone, Cluster, Generation, Isolator, SWAP_CLUSTER_MAX};
pub use owners::{MigrateError, Owners};
pub use unevictable::UnevictableDoor;
use vec::{GroupVecs, LruVec};
pub(crate) use vec::{VecEvent, VecId};
pub use workingset::Shadow;
pub(crate) use workingset::{By, Came};

/// Pages that reclaim may free: two generations of two kinds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LruList {
    InactiveAnon,
    ActiveAnon,
    InactiveFile,
    ActiveFile,
}

impl LruList {
    pub(crate) const COUNT: usize = 4;
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::InactiveAnon, Self::ActiveAnon, Self::InactiveFile, Self::ActiveFile];

    /// The list that a page with these flags belongs to.
    fn of(page: &Page) -> Self {
        match (page.has(PageFlag::SwapBacked), page.has(PageFlag::Active)) {
            (true, false) => Self::InactiveAnon,
            (true, true) => Self::ActiveAnon,
            (false, false) => Self::InactiveFile,
            (false, true) => Self::ActiveFile,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    pub(crate) const fn is_file(self) -> bool {
        matches!(self, Self::InactiveFile | Self::ActiveFile)
    }

    pub(crate) const fn is_active(self) -> bool {
        matches!(self, Self::ActiveAnon | Self::ActiveFile)
    }

    /// The inactive list of the same kind.
    pub(crate) const fn inactive(self) -> Self {
        if self.is_file() { Self::InactiveFile } else { Self::InactiveAnon }
    }

    /// The active list of the same kind.
    pub(crate) const fn active(self) -> Self {
        if self.is_file() { Self::ActiveFile } else { Self::ActiveAnon }
    }

    /// The name in vmstat.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InactiveAnon => "nr_inactive_anon",
            Self::ActiveAnon => "nr_active_anon",
            Self::InactiveFile => "nr_inactive_file",
            Self::ActiveFile => "nr_active_file",
        }
    }
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Where new pages come.
    Head,
    /// Where reclaim begins.
    Tail,
}

/// The lists of a node or a zone.
#[derive(Debug)]
struct Lists {
    two: [List; LruList::COUNT],
    /// There while pages are kept by generations.
    generations: Option<Box<GenLists>>,
    unevictable: List,
}

/// All lists of the machine.
#[derive(Debug)]
pub struct Lru<M: Machine> {
    rule: LruRule,
    /// 1 while pages are kept by generations.
    by_generation: AtomicU32,
    /// How often a worker that reclaim woke had the CPU.
    worked: AtomicU64,
    /// The root's.
    vecs: Box<[LruVec<M>]>,
    /// Those of other groups, from the first page that is charged to them.
    groups: GroupVecs<M>,
    cpus: Box<[Locked<M, CpuBatches>]>,
    /// What happened to pages, by zone.
    events: Box<[ReclaimEvents]>,
    /// What is known of pages besides their descriptors; made when the first address space or file is.
    lines: Once<Lines>,
    /// Frames that have a line there.
    end: Pfn,
}

impl<M: Machine> Lru<M> {
    /// Empty lists, for pages of `pages`.
    pub(crate) fn new(pages: &Pages<M>) -> Self {
        let (machine, rule) = (pages.machine(), pages.policy().rules().reclaim.lru);
        let topology = pages.topology();
        let (nodes, zones, cpus) = (topology.nodes.len(), pages.zones().len(), topology.cpus.len());
        let vecs = match rule {
            LruRule::PerNode => nodes,
            LruRule::PerZone => zones,
        };
        let by_generation = pages.knobs().get(Knob::LruGenEnabled) & MAIN != 0;
        let batches = |cpu| Locked::new(machine, LockClass::LruBatch, cpu, CpuBatches::default());
        Self {
            rule,
            by_generation: AtomicU32::new(by_generation.into()),
            worked: AtomicU64::new(0),
            vecs: vec::of_group(machine, GroupId::ROOT, (vecs, by_generation)),
            groups: GroupVecs::default(),
            cpus: (0..cpus as u32).map(batches).collect(),
            events: (0..zones).map(|_| ReclaimEvents::default()).collect(),
            lines: Once::default(),
            end: pages.map().end(),
        }
    }

    /// What is known of the page at `pfn` besides its descriptor.
    #[inline]
    pub(crate) fn page(&self, pfn: Pfn) -> &Page {
        self.lines.get_or(|| Lines::new(self.end)).page(pfn)
    }

    /// Whether anything was ever asked of a page: some address space or file has been made.
    #[inline]
    pub(crate) fn has_pages(&self) -> bool {
        self.lines.get().is_some()
    }

    fn batches(&self, cpu: Cpu) -> &Locked<M, CpuBatches> {
        &self.cpus[usize::from(cpu.0)]
    }
}

/// What the lists stand on.
pub trait LruGround<M: Machine>: MemcgGround<M> {
    /// The lists' own.
    fn lru_lists(&self) -> &Lru<M>;
}

door! {
    /// The lists, and the references of pages.
    LruDoor on LruGround, Lru<M>: lru_lists, to { memcg: MemcgDoor, generations: GenDoor, unevictable: UnevictableDoor }
}

impl<'a, M: Machine, G: LruGround<M>> LruDoor<'a, M, G> {
    /// What is known of the page at `pfn` besides its descriptor.
    #[inline]
    pub(crate) fn page(self, pfn: Pfn) -> &'a Page {
        self.own().page(pfn)
    }

    /// Whether some address space or file has been made: there are pages that could be reclaimed.
    #[inline]
    pub(crate) fn has_pages(self) -> bool {
        self.own().has_pages()
    }

    /// `event` happened to the block at `pfn`.
    pub(crate) fn count(self, pfn: Pfn, event: ReclaimEvent) {
        self.own().count(self.map(), pfn, event);
    }

    /// What was counted in `zone`.
    pub(crate) fn events(self, zone: ZoneId) -> &'a ReclaimEvents {
        self.own().events(zone)
    }

    /// Adds what was counted in `zone`, and what is on its lists.
    pub(crate) fn add_counters(self, zone: &Zone<M>, counters: &mut Counters) {
        self.own().add_counters((zone.id(), zone.kind()), counters);
        for list in LruList::ALL {
            counters.add(list.name(), u64::from(self.zone_size(zone, list)));
        }
        let locked = [self.unevictable().zone_size(zone).into(), self.unevictable().locked_pages(zone)];
        for (name, pages) in
            ["nr_unevictable", "nr_mlock"].into_iter().zip(locked).filter(|(_, pages)| *pages > 0)
        {
            counters.add(name, pages);
        }
    }

    /// Puts a page on its list, whose lock is held.
    fn list_page(self, lists: &mut Lists, pfn: Pfn, end: End) {
        if self.page(pfn).has(PageFlag::Mlocked) {
            return self.unevictable().list(lists, pfn);
        }
        if self.page(pfn).has(PageFlag::Unevictable) {
            self.page(pfn).clear(PageFlag::Unevictable);
            self.count(pfn, ReclaimEvent::Rescue);
        }
        if lists.generations.is_some() {
            // Told for each page: where it lies is another place than by default.
            self.pages().knobs().decide(self.machine(), Knob::LruGenEnabled, |setting| setting & MAIN);
            return self.generations().list_in_generation(self.vec_of(pfn), lists, pfn, end);
        }
        let (page, state) = (self.page(pfn), self.map().frame(pfn).state());
        let list = LruList::of(page);
        match end {
            End::Head => lists.two[list.index()].push_front(self.pages().cx().mem(), pfn),
            End::Tail => lists.two[list.index()].push_back(self.pages().cx().mem(), pfn),
        }
        page.set(PageFlag::Lru);
        self.size_of(page, state.zone, list).fetch_add(state.order.pages(), Relaxed);
    }

    /// Takes a page off its list, whose lock is held.
    fn unlist_page(self, lists: &mut Lists, pfn: Pfn) {
        let (page, state) = (self.page(pfn), self.map().frame(pfn).state());
        if page.has(PageFlag::Unevictable) {
            return self.unevictable().unlist(lists, pfn);
        }
        if let Some(place) = page.generation() {
            return self.generations().unlist_from_generation(self.vec_of(pfn), lists, pfn, place);
        }
        let list = LruList::of(page);
        lists.two[list.index()].remove(self.pages().cx().mem(), pfn);
        page.clear(PageFlag::Lru);
        self.size_of(page, state.zone, list).fetch_sub(state.order.pages(), Relaxed);
    }

    /// The last references to all of `pages` are gone: each leaves its list, and a stretch of one set takes its lock once
    /// (`release_pages`).
    pub(crate) fn lru_forget_each(self, pages: &[Pfn]) {
        let vec = |pfn: Pfn| self.vec_of(pfn);
        for stretch in pages.chunk_by(|&one, &next| vec(one) == vec(next)) {
            if !stretch.iter().any(|&pfn| self.page(pfn).has(PageFlag::Lru)) {
                continue;
            }
            let mut lists = self.vec(vec(stretch[0])).lists.lock(self.machine());
            for &pfn in stretch.iter().filter(|pfn| self.page(**pfn).has(PageFlag::Lru)) {
                self.unlist_page(&mut lists, pfn);
            }
        }
    }

    /// The page leaves its list, if it is on one: the last reference to it is gone and the caller is about to free it, or
    /// to make several pages of it.
    pub(crate) fn lru_forget(self, pfn: Pfn) {
        let page = self.page(pfn);
        if page.has(PageFlag::Lru) {
            let vec = self.vec_of(pfn);
            let mut lists = self.vec(vec).lists.lock(self.machine());
            // Somebody may have isolated it in the meantime, where it gives references still.
            if page.has(PageFlag::Lru) {
                self.unlist_page(&mut lists, pfn);
            }
        }
    }
}
