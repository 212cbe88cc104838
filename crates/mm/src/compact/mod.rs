//! Compaction: making large free blocks by moving pages (docs/rules/compaction.md, docs/compaction-history.md). Two
//! scanners go through a zone towards each other: one takes pages off its low end, the other finds free frames for them
//! at its high end. Where they meet, the zone is done.
//!
//! ```text
//!   slow path ─▶ direct ─┐                 ┌─▶ migrate_scan ─▶ (isolated) ─┐
//!   kswapd ──────────────┼─▶ run: a zone ──┤                               ├─▶ moving ─▶ rmap, copy, remap
//!   kcompactd, by hand ──┘   at a time     └─▶ free_scan ────▶ (targets) ──┘
//! ```
//!
//! `suitable` and `defer` decide whether it is worth trying, `finished` when it has been enough, `fast` looks at free
//! lists before it walks. What differs between kernels, and what the thread of 2014 proposed, is in
//! [`crate::rules::policy::CompactRules`]. `+compact-summary` goes another way and needs no scanners: `summary` is what
//! is known of each pageblock, `pick` chooses one, `complete` empties it.

mod background;
mod census;
mod complete;
mod control;
mod defer;
mod direct;
mod events;
mod fast;
mod finished;
mod free_scan;
mod marks;
mod migrate_scan;
mod moving;
pub(crate) mod offline;
mod pick;
mod proactive;
mod run;
mod score;
mod suitable;

use alloc::boxed::Box;
use core::ops::Range;

use crate::ground::{AtomicU32, Machine, Node, Order, PAGEBLOCK_PAGES, Pfn, Relaxed, ZoneId};

use crate::lru::{LruDoor, Owners};
use crate::pages::{Counters, door};

use background::Asked;
pub use census::BlockContents;
pub(crate) use direct::Attempt;
use events::{CompactEvent, CompactEvents};
pub use offline::OfflineError;

/// Pages that are isolated, or looked at, before the locks are let go (`COMPACT_CLUSTER_MAX`).
const CLUSTER_MAX: usize = 32;

/// How far compaction goes for a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mode {
    /// Waits for nothing.
    Async,
    /// Waits for locks, and for pages that are being worked on.
    SyncLight,
}

/// What became of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// Not worth trying: too little free memory, or not fragmented.
    Skipped,
    /// Put off, since earlier attempts failed.
    Deferred,
    /// A lock was contended, the time slice or the budget used up, or there was no frame for a page.
    Contended,
    /// The scanners met, having begun somewhere in the middle.
    PartialSkipped,
    /// The whole zone was gone through.
    Complete,
    /// There is a block.
    Success,
}

/// What compaction remembers, of zones and of nodes.
#[derive(Debug)]
pub struct Compaction {
    zones: Box<[ZoneCompact]>,
    /// What each node's kcompactd is asked for.
    asked: Box<[Asked]>,
}

impl Compaction {
    /// Nothing has happened yet on a machine with so many nodes and these zones, by their managed frames.
    pub(crate) fn new(nodes: usize, zones: impl Iterator<Item = Range<u32>>) -> Self {
        Self {
            zones: zones.map(ZoneCompact::new).collect(),
            asked: (0..nodes).map(|_| Asked::default()).collect(),
        }
    }

    fn of(&self, zone: ZoneId) -> &ZoneCompact {
        &self.zones[usize::from(zone.0)]
    }

    fn asked(&self, node: Node) -> &Asked {
        &self.asked[usize::from(node.0)]
    }
}

/// What compaction stands on.
pub trait CompactGround<M: Machine>: Owners<M> {
    /// Compaction's own.
    fn compaction_state(&self) -> &Compaction;
}

door! {
    /// Compaction of zones by two scanners, and by whom it is asked.
    CompactDoor on CompactGround, Compaction: compaction_state, to {
        lru: LruDoor, emptying: EmptyDoor, marks: MarksDoor
    }
}

door! {
    /// Emptying single pageblocks, by the summary.
    EmptyDoor on CompactGround, Compaction: compaction_state, to {
        lru: LruDoor, compaction: CompactDoor
    }
}

door! {
    /// What is remembered of pageblocks from one compaction to the next.
    MarksDoor on CompactGround, Compaction: compaction_state, to {}
}

door! {
    /// Taking a node's memory out of use, and giving it back.
    OfflineDoor on CompactGround, Compaction: compaction_state, to {
        lru: LruDoor, compaction: CompactDoor
    }
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Adds what was counted in `zone`.
    pub(crate) fn add_counters(self, zone: ZoneId, counters: &mut Counters) {
        self.own().add_counters(zone, counters);
    }
}

/// What compaction remembers of a zone.
#[derive(Debug)]
struct ZoneCompact {
    /// Where the migrate scanner goes on, by mode; both alike where there is one position for all.
    migrate: [AtomicU32; 2],
    /// Where the free scanner goes on.
    free: AtomicU32,
    /// Where it began after marks were cleared last (`compact_init_free_pfn`): nowhere so far.
    first_free: AtomicU32,
    considered: AtomicU32,
    defer_shift: AtomicU32,
    order_failed: AtomicU32,
    /// 1: the skip bits are to be cleared when kswapd goes to sleep.
    flush_skip: AtomicU32,
    /// Pages that a call may scan, where that is tuned; 0: not set yet.
    budget: AtomicU32,
    /// Blocks that were found to be worth emptying, or filling.
    picks: pick::Picks,
    events: CompactEvents,
}

impl ZoneCompact {
    /// Of a zone with the frames `span`.
    fn new(span: Range<u32>) -> Self {
        let fresh = Self {
            migrate: Default::default(),
            free: AtomicU32::new(0),
            first_free: AtomicU32::new(0),
            considered: AtomicU32::new(0),
            defer_shift: AtomicU32::new(0),
            order_failed: AtomicU32::new(0),
            flush_skip: AtomicU32::new(0),
            budget: AtomicU32::new(0),
            picks: pick::Picks::new(),
            events: CompactEvents::default(),
        };
        fresh.reset_positions(span);
        fresh
    }

    /// Both scanners begin anew at the ends of `span`.
    fn reset_positions(&self, span: Range<u32>) {
        self.migrate.iter().for_each(|position| position.store(span.start, Relaxed));
        self.free.store(last_block(&span).0, Relaxed);
    }

    fn migrate_position(&self, mode: Mode) -> Pfn {
        Pfn(self.migrate[mode as usize].load(Relaxed))
    }

    fn free_position(&self) -> Pfn {
        Pfn(self.free.load(Relaxed))
    }
}

/// The first frame of the last pageblock of `span`.
fn last_block(span: &Range<u32>) -> Pfn {
    Pfn(span.end.saturating_sub(1)).align_down(Order::PAGEBLOCK)
}

/// The first frame of the pageblock of `pfn`, and the first behind it.
fn block_of(pfn: Pfn) -> (Pfn, Pfn) {
    let start = pfn.align_down(Order::PAGEBLOCK);
    (start, start.add(PAGEBLOCK_PAGES))
}
