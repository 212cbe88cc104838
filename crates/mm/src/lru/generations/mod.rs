//! Pages by generations (MGLRU, `lru_gen.enabled`): in the place of an active and an inactive list, two to four generations of each
//! kind, numbered upwards. New generations are made when few are left (`reclaim/generations/age`); the oldest pages go first
//! (`scan`), but for those that calls used often, as long as such pages came back early before (`control`).
//!
//! ```text
//!   used through a page table ─▶ youngest ──(a new one is made)──▶ … ──▶ oldest ─▶ freed
//!   read by calls ─────────────▶ second oldest or so                    └▶ next, if used often enough
//! ```
//!
//! A generation has a list for each kind of zone. A page knows its generation, and on which list it is: a walk over page tables
//! changes the former alone, and reclaim moves the page when it meets it. Both change under the lists' lock. PG_active is clear on
//! these lists; the two youngest generations count as active ones elsewhere.

mod check;
mod control;
mod place;
mod refault;
mod scan;
mod switch;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod uses;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::page::{Page, PageFlag};
use super::{Lru, LruDoor, LruGround, LruList, VecId};
use crate::ground::{
    Acquire, AtomicU32, AtomicU64, LockClass, Locked, Machine, Nanos, Pfn, Relaxed, Release, ZoneKind,
};
use crate::memcg::MemcgDoor;
use crate::pages::{List, door};
use crate::rules::policy::{GenTurnRule, GenerationRules};

pub(crate) use scan::{Oldest, Scanned};
pub(crate) use switch::{MAIN, WALKS};

/// Generations of a kind: not fewer, not more.
pub(crate) const MIN_GENERATIONS: u64 = 2;
pub(crate) const MAX_GENERATIONS: u64 = 4;
const PLACES: usize = MAX_GENERATIONS as usize;
/// Classes of pages by how often calls used them.
pub(crate) const TIERS: usize = 4;
/// Pages that eviction takes at a time (`MIN_LRU_BATCH`).
pub(crate) const MIN_BATCH: u32 = 64;
/// Pages that are looked at in one hold of the lock (`MAX_LRU_BATCH`).
const MAX_BATCH: u32 = 4096;
const ZONES: usize = ZoneKind::ALL.len();

door! {
    /// Generations of pages: where pages go among them, which are the oldest, what came back.
    GenDoor on LruGround, Lru<M>: lru_lists, to { lru: LruDoor, memcg: MemcgDoor }
}

/// The two kinds of pages, as far as generations go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Anon,
    File,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Anon, Self::File];

    pub(crate) fn of(page: &Page) -> Self {
        if page.has(PageFlag::SwapBacked) { Self::Anon } else { Self::File }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Anon => Self::File,
            Self::File => Self::Anon,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The list that pages of this kind are on for those who know of active and inactive ones.
    pub(crate) const fn list(self, is_active: bool) -> LruList {
        match (self, is_active) {
            (Self::Anon, false) => LruList::InactiveAnon,
            (Self::Anon, true) => LruList::ActiveAnon,
            (Self::File, false) => LruList::InactiveFile,
            (Self::File, true) => LruList::ActiveFile,
        }
    }
}

/// How eager reclaim is to swap, 0 to 200; at 0 anonymous pages stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Swappiness(pub(crate) u32);

impl Swappiness {
    /// Whether pages of `kind` may go.
    pub(crate) fn may_take(self, kind: Kind) -> bool {
        kind == Kind::File || self.0 > 0
    }

    /// The kinds that may go.
    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |&kind| self.may_take(kind))
    }
}

/// Lists by the place of their generation, by kind, by kind of zone.
#[derive(Debug, Default)]
pub(super) struct GenLists([[[List; ZONES]; 2]; PLACES]);

/// Counts of one kind, by tier.
type Tiers = [AtomicU64; TIERS];

/// What is known of a set's generations without its lock. Numbers and pages change under it.
#[derive(Debug)]
pub(super) struct GenVec<M: Machine> {
    /// The youngest.
    max: AtomicU64,
    /// The oldest, by kind.
    min: [AtomicU64; 2],
    /// When each began, ns, by place.
    born: [AtomicU64; PLACES],
    /// Base pages, as [`GenLists`].
    pages: [[[AtomicU32; ZONES]; 2]; PLACES],
    /// Since the oldest generation is that, by kind: evicted pages that came back early, evicted ones, and such as were spared.
    refaulted: [Tiers; 2],
    evicted: [Tiers; 2],
    spared: [Tiers; 2],
    /// The same before that, half for each generation ago: what came back, and evicted and spared ones together.
    past_refaulted: [Tiers; 2],
    past_total: [Tiers; 2],
    walks: Locked<M, Walks>,
    /// Groups in turn: its place in their order, as `reclaim/generations/turns` keeps it.
    pub(super) turn: AtomicU64,
}

/// Walks over page tables for new generations.
#[derive(Debug, Default)]
struct Walks {
    /// The youngest generation when the last one began, and one more.
    done: u64,
    /// Tables in which many entries were used of late: by the rest of the generation's number, the ones to look at in its walk.
    /// (The kernel has two Bloom filters of 2^15 bits.) `None`: all.
    dense: [Option<BTreeSet<u64>>; 2],
    /// Address spaces that a walk began with, and after which tick and which worker the last one did.
    walked: BTreeMap<u32, (u64, u64)>,
}

/// At which tables of an address space a walk looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WalkedTables {
    /// At all: it came to the group since the last walk.
    All,
    /// At those in which many entries were used of late.
    Dense,
}

/// A program that goes on and on is switched to again after most ticks of the clock, at 250 Hz: kernel threads have had the CPU.
/// (The kernel keeps a bit for each address space and node, which a switch sets, and a walk clears as it begins. In a trace of 6.12, a
/// program that reclaimed was switched to again after 692 of 846 ticks, most often by RCU's thread.)
const TICK: Nanos = Nanos(4_000_000);

const fn place_of(generation: u64) -> usize {
    (generation % MAX_GENERATIONS) as usize
}

impl<M: Machine> GenVec<M> {
    /// Empty generations, four of each kind.
    pub(super) fn new(machine: &M, number: u32) -> Box<Self> {
        Box::new(Self {
            max: AtomicU64::new(MIN_GENERATIONS + 1),
            min: Default::default(),
            born: core::array::from_fn(|_| AtomicU64::new(machine.now().0)),
            pages: Default::default(),
            refaulted: Default::default(),
            evicted: Default::default(),
            spared: Default::default(),
            past_refaulted: Default::default(),
            past_total: Default::default(),
            walks: Locked::new(machine, LockClass::Other, number, Walks::default()),
            turn: AtomicU64::new(0),
        })
    }

    pub(super) fn max(&self) -> u64 {
        // Pairs with the release in `begin`: who sees the number sees an empty generation.
        self.max.load(Acquire)
    }

    pub(super) fn min(&self, kind: Kind) -> u64 {
        self.min[kind.index()].load(Relaxed)
    }

    /// How many generations of `kind` there are.
    fn count(&self, kind: Kind) -> u64 {
        self.max() - self.min(kind) + 1
    }

    /// Whether pages of the generation at `place` count as active.
    pub(super) fn is_active(&self, place: usize) -> bool {
        let max = self.max();
        place == place_of(max) || place == place_of(max - 1)
    }

    /// Base pages of a generation of `kind`.
    pub(super) fn size(&self, generation: u64, kind: Kind) -> u32 {
        self.pages[place_of(generation)][kind.index()].iter().map(|pages| pages.load(Relaxed)).sum()
    }
}

impl<'a, M: Machine, G: LruGround<M>> GenDoor<'a, M, G> {
    fn gen_rules(self) -> GenerationRules {
        self.rules().reclaim.generations
    }

    /// The generations of `vec`, which are there once pages were kept so.
    fn gens(self, vec: VecId) -> &'a GenVec<M> {
        let number = vec.group.index() * self.own().vecs.len() + vec.place();
        self.lru().vec(vec).gens.get_or(|| GenVec::new(self.machine(), number as u32))
    }

    /// The number of the youngest generation of `vec`.
    pub(crate) fn youngest(self, vec: VecId) -> u64 {
        self.gens(vec).max()
    }

    /// When `generation`, one of those there are, began.
    pub(crate) fn born(self, vec: VecId, generation: u64) -> Nanos {
        Nanos(self.gens(vec).born[place_of(generation)].load(Relaxed))
    }

    /// That of the oldest of `kind`.
    pub(crate) fn oldest(self, vec: VecId, kind: Kind) -> u64 {
        self.gens(vec).min(kind)
    }

    /// How many there are.
    pub(crate) fn generation_count(self, vec: VecId, kind: Kind) -> u64 {
        self.gens(vec).count(kind)
    }

    /// Base pages of one.
    pub(crate) fn generation_size(self, vec: VecId, generation: u64, kind: Kind) -> u32 {
        self.gens(vec).size(generation, kind)
    }

    /// The number of the oldest of the kinds that may go.
    pub(crate) fn oldest_evictable(self, vec: VecId, swappiness: Swappiness) -> u64 {
        swappiness.kinds().map(|kind| self.oldest(vec, kind)).min().unwrap_or(0)
    }

    /// Base pages of `vec` of kinds that may go.
    pub(crate) fn evictable(self, vec: VecId, swappiness: Swappiness) -> u32 {
        let gens = self.gens(vec);
        let of = |kind| (gens.min(kind)..=gens.max()).map(move |generation| gens.size(generation, kind));
        swappiness.kinds().flat_map(of).sum()
    }

    /// Whether the page at `pfn` is of the youngest generation.
    pub(in crate::lru) fn is_youngest(self, pfn: Pfn) -> bool {
        self.lru().page(pfn).generation() == Some(place_of(self.gens(self.lru().vec_of(pfn)).max()))
    }

    /// Whether the page at `pfn` is of the oldest generation of its kind.
    pub(in crate::lru) fn is_oldest(self, pfn: Pfn) -> bool {
        let page = self.lru().page(pfn);
        let min = self.gens(self.lru().vec_of(pfn)).min(Kind::of(page));
        page.generation() == Some(place_of(min))
    }

    /// The group's turn, as the order of groups keeps it.
    pub(crate) fn turn(self, vec: VecId) -> &'a AtomicU64 {
        &self.gens(vec).turn
    }

    /// A walk for the generation after `generation` begins, if nobody made that since.
    pub(crate) fn begin_walk(self, vec: VecId, generation: u64) -> bool {
        let mut walks = self.gens(vec).walks.lock(self.machine());
        if walks.done > generation {
            return false;
        }
        walks.done = generation + 1;
        true
    }

    /// There is something to walk: what is found dense is for the walk of `generation`, and no more what was found two before.
    pub(crate) fn begin_filter(self, vec: VecId, generation: u64) {
        self.gens(vec).walks.lock(self.machine()).dense[generation as usize % 2] = Some(BTreeSet::new());
    }

    /// At which tables of each of `spaces`, all there are in the group, a walk for `vec` looks that begins now. At none if a walk began with it
    /// and it was not switched to since (`lru_gen_use_mm`), as far as time tells.
    pub(crate) fn begins_with(self, vec: VecId, spaces: &[u32]) -> Vec<Option<WalkedTables>> {
        let now = (self.machine().now().0 / TICK.0, self.own().worked.load(Relaxed));
        let mut walks = self.gens(vec).walks.lock(self.machine());
        let begins = |space| match walks.walked.get(space) {
            None => Some(WalkedTables::All),
            Some(&then) => (then != now).then_some(WalkedTables::Dense),
        };
        let begun = spaces.iter().map(begins).collect();
        walks.walked = spaces.iter().map(|space| (*space, now)).collect();
        begun
    }

    /// Whether a worker that is woken has the CPU before reclaim goes on.
    pub(crate) fn workers_run_at_once(self) -> bool {
        self.gen_rules().turn == GenTurnRule::AtOnce
    }

    /// A worker had the CPU.
    pub(crate) fn worker_ran(self) {
        self.own().worked.fetch_add(1, Relaxed);
    }

    /// Whether `table` is looked at in the walk of `generation`.
    pub(crate) fn is_dense(self, vec: VecId, generation: u64, table: u64) -> bool {
        let walks = self.gens(vec).walks.lock(self.machine());
        walks.dense[generation as usize % 2].as_ref().is_none_or(|dense| dense.contains(&table))
    }

    /// Many entries of `table` were used: it is to be looked at in the walk of `generation`.
    pub(crate) fn note_dense(self, vec: VecId, generation: u64, table: u64) {
        let mut walks = self.gens(vec).walks.lock(self.machine());
        if let Some(dense) = &mut walks.dense[generation as usize % 2] {
            dense.insert(table);
        }
    }

    /// A new generation begins (`inc_max_seq`), unless one has since `generation` was the youngest; with the lists' lock held.
    /// Says whether it did.
    fn begin(self, vec: VecId, generation: u64) -> bool {
        let gens = self.gens(vec);
        if gens.max() != generation {
            return false;
        }
        let (leaves, comes) = (place_of(generation.wrapping_sub(1)), place_of(generation + 1));
        for kind in Kind::ALL {
            for zone in ZoneKind::ALL {
                let pages = |place: usize| gens.pages[place][kind.index()][zone as usize].load(Relaxed);
                self.shift(vec, (kind, zone), pages(leaves), true);
                // Of a kind that cannot go, the oldest become the youngest.
                self.shift(vec, (kind, zone), pages(comes), false);
            }
        }
        gens.born[place_of(generation + 1)].store(self.machine().now().0, Relaxed);
        gens.max.store(generation + 1, Release);
        true
    }

    /// So many pages do not count as active any more, or count so from now on, as `was_active` has it.
    fn shift(self, vec: VecId, (kind, zone): (Kind, ZoneKind), pages: u32, was_active: bool) {
        let sizes = &self.lru().vec(vec).sizes[zone as usize];
        sizes[kind.list(was_active).index()].fetch_sub(pages, Relaxed);
        sizes[kind.list(!was_active).index()].fetch_add(pages, Relaxed);
    }
}
