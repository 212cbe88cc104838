//! Freeing pages that can be read back, written out or moved to slower memory, so that requests find some (the kernel's
//! `vmscan`). kswapd of each node does it between the low and the high mark, a request by itself below the min mark.
//!
//! ```text
//!   slow path ─▶ direct ─┐                       ┌─▶ age: active ─▶ inactive
//!                        ├─▶ shrink a node's ────┤
//!   kswapd ──────────────┘   or zone's lists     └─▶ pages: inactive ─▶ freed, kept, or active again
//! ```
//!
//! How hard it tries is a priority, from 12 (look at 1/4096 of each list) down to 0 (all of it). What is modelled, and
//! what is not, is in docs/reclaim.md.

mod balance;
mod demote;
mod direct;
mod generations;
mod groups;
mod guests;
mod kswapd;
mod lists;
mod node;
mod page_out;
mod pages;
mod pressure;
mod slow_path;
mod swap_out;
#[cfg(all(test, not(shuttle)))]
mod tests;

use alloc::boxed::Box;

use crate::cache::{FilesDoor, SharedDoor, SwappedDoor};
use crate::compact::{CompactDoor, CompactGround};
use crate::ground::{AtomicU32, LockClass, Locked, Machine, Node, Order, Relaxed, Topology, ZoneKind};
use crate::lru::{GenDoor, LruDoor, LruList, VecId};
use crate::memcg::{GroupId, MemcgDoor};
use crate::pages::{Search, Zone, door};
use crate::rules::policy::LruRule;
use crate::slab::{SlabDoor, SlabGround};
use crate::vm::{AheadDoor, Around, RmapDoor, SpacesDoor, SpacesGround, SwapDoor};

use balance::View;
pub use generations::GenReclaimDoor;
use groups::Cursors;
pub(crate) use guests::Asking;
use kswapd::NodeState;
use pressure::Untold;

/// The priority that a reclaimer begins with: lists are looked through in parts of 1 / 2^12.
const DEF_PRIORITY: u32 = 12;

/// Rounds without progress after which kswapd and a request give up.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

/// Who reclaims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reclaimer {
    Kswapd,
    /// A request, for itself.
    Direct,
}

impl Reclaimer {
    /// What becomes of pages around one that is in use, before there was a walk: kswapd keeps a walk's account all the time.
    const fn looks_around(self) -> Around {
        match self {
            Self::Kswapd => Around::Promoted,
            Self::Direct => Around::Activated,
        }
    }
}

/// What a reclaimer wants, what it may do, and what it has done so far (the kernel's `scan_control`). All counts are
/// base pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    by: Reclaimer,
    /// The block that is wanted.
    order: Order,
    /// The highest zone that will do for it.
    highest: ZoneKind,
    /// The group that is too large; the root where the whole machine is short.
    target: GroupId,
    /// The target's set of lists where it is at.
    vec: VecId,
    effort: Effort,
    skipped: Skipped,
    /// What the lists there looked like as the pass began.
    view: View,
    /// What becomes of pages that are in use beside one that is: where they are kept by generations.
    around: Around,
    priority: u32,
    to_reclaim: u32,
    may_swap: bool,
    /// As [`crate::Request::no_fs`].
    no_fs: bool,
    /// A program named the pages: it is no scan.
    asked: bool,
    spares: Spares,
    scanned: u32,
    reclaimed: u32,
    /// What stood in the way since this was last cleared.
    met: Met,
}

/// Pages that stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Spares {
    mapped: bool,
    dirty: bool,
}

/// How far a reclaimer goes beyond what it does at first.
#[derive(Clone, Copy, Debug, Default)]
struct Effort {
    /// It looks at all groups, and does not go on where another stopped.
    all_groups: bool,
    /// Active pages age though there are inactive ones enough.
    ages_all: bool,
    /// Groups within `memory.low` give too.
    takes_low: bool,
}

/// What was passed over that could be tried.
#[derive(Clone, Copy, Debug, Default)]
struct Skipped {
    /// An active list.
    active: bool,
    /// A group within `memory.low`, or part of one.
    low: bool,
}

/// Pages that reclaim came upon.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    /// Isolated to be freed.
    taken: u32,
    /// Of them, dirty ones of files that nobody writes yet.
    dirty: u32,
    /// Being written.
    writeback: u32,
    /// Being written and met for the second time.
    again: u32,
    /// Of them, those that say to kswapd that writing cannot keep up.
    immediate: u32,
}

impl Met {
    fn add(&mut self, other: Self) {
        self.taken += other.taken;
        self.dirty += other.dirty;
        self.writeback += other.writeback;
        self.again += other.again;
        self.immediate += other.immediate;
    }
}

impl Scan {
    fn new(by: Reclaimer, order: Order, highest: ZoneKind) -> Self {
        Self {
            by,
            order,
            highest,
            target: GroupId::ROOT,
            priority: DEF_PRIORITY,
            vec: VecId::default(),
            effort: Effort::default(),
            skipped: Skipped::default(),
            view: View::default(),
            around: by.looks_around(),
            to_reclaim: crate::lru::SWAP_CLUSTER_MAX as u32,
            may_swap: true,
            no_fs: false,
            asked: false,
            spares: Spares::default(),
            scanned: 0,
            reclaimed: 0,
            met: Met::default(),
        }
    }
}

/// What reclaim remembers of a node or zone.
#[derive(Debug, Default)]
struct PlaceState {
    /// All that was isolated last was being written: 1 if so.
    writeback: AtomicU32,
}

/// What reclaim remembers.
#[derive(Debug)]
pub struct Reclaim<M: Machine> {
    nodes: Box<[NodeState]>,
    places: Box<[PlaceState]>,
    /// Where the walk over the groups stands.
    cursors: Locked<M, Cursors>,
    untold: Locked<M, Untold>,
    /// The same for the machine as a whole.
    untold_of_all: AtomicU32,
    /// Room on a request's own node first.
    by_node: node::NodeReclaim,
    /// For each node, where its pages are demoted to.
    slower: Box<[Option<Node>]>,
}

impl<M: Machine> Reclaim<M> {
    /// Nothing has happened yet on this machine.
    pub(crate) fn new(machine: &M, topology: &Topology) -> Self {
        let nodes = topology.nodes.len();
        let zones: usize = topology.nodes.iter().map(|node| node.zones.len()).sum();
        Self {
            slower: demote::slower_nodes(topology),
            by_node: node::NodeReclaim::default(),
            nodes: (0..nodes).map(|_| NodeState::default()).collect(),
            places: (0..nodes.max(zones)).map(|_| PlaceState::default()).collect(),
            cursors: Locked::new(machine, LockClass::Other, 7, Cursors::default()),
            untold: Locked::new(machine, LockClass::Other, 8, Untold::default()),
            untold_of_all: AtomicU32::new(0),
        }
    }

    fn node(&self, node: Node) -> &NodeState {
        &self.nodes[usize::from(node.0)]
    }

    fn place(&self, vec: VecId) -> &PlaceState {
        &self.places[vec.place()]
    }
}

/// What reclaim stands on.
pub trait ReclaimGround<M: Machine>: CompactGround<M> + SpacesGround<M> + SlabGround<M> {
    /// Reclaim's own.
    fn reclaim_state(&self) -> &Reclaim<M>;

    /// `search` fails, and nothing more can be done for it: whoever keeps reports is told.
    fn out_of_memory(&self, search: Search<'_>);
}

door! {
    /// Reclaim: kswapd, direct reclaim, and what a request tries when no block is at hand.
    ReclaimDoor on ReclaimGround, Reclaim<M>: reclaim_state, to {
        memcg: MemcgDoor, lru: LruDoor, generations: GenDoor, by_generations: GenReclaimDoor, files: FilesDoor, spaces: SpacesDoor, rmap: RmapDoor, swap: SwapDoor, swap_ahead: AheadDoor, compaction: CompactDoor, slabs: SlabDoor, swapping: SwapOutDoor
    }
}

door! {
    /// Pages on their way to swap.
    SwapOutDoor on ReclaimGround, Reclaim<M>: reclaim_state, to { lru: LruDoor, swap_ahead: AheadDoor, files: FilesDoor, shared: SharedDoor, swapped: SwappedDoor, spaces: SpacesDoor, rmap: RmapDoor, swap: SwapDoor }
}

door! {
    /// Room on a request's own node before others are asked.
    NodeReclaimDoor on ReclaimGround, Reclaim<M>: reclaim_state, to { lru: LruDoor, reclaim: ReclaimDoor }
}

door! {
    /// Pages that go because a program says so.
    PageOutDoor on ReclaimGround, Reclaim<M>: reclaim_state, to { lru: LruDoor, files: FilesDoor, rmap: RmapDoor, swap: SwapDoor, reclaim: ReclaimDoor }
}

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// Base pages of `zone` that reclaim could free: those of files, and anonymous ones where there is room for them.
    pub(crate) fn reclaimable_pages(self, zone: &Zone<M>) -> u32 {
        let usable = |list: &LruList| list.is_file() || self.has_room_for_anon(zone.node());
        let size = |list| self.lru().zone_size(zone, list);
        LruList::ALL.into_iter().filter(usable).map(size).sum()
    }

    /// Whether anonymous pages of `node` have anywhere to go: to swap, or to slower memory.
    fn has_room_for_anon(self, node: Node) -> bool {
        self.swap().has_swap(GroupId::ROOT) || self.slower_node(node).is_some()
    }

    /// Frees pages of `node`: one pass over its lists at the scan's priority.
    fn shrink_node(self, node: Node, scan: &mut Scan) {
        let before = scan.reclaimed;
        match self.rules().reclaim.lru {
            // Generations give nothing to who may not take all.
            _ if scan.spares != Spares::default() && self.by_generations().are_kept() => {}
            _ if scan.target == GroupId::ROOT && self.by_generations().are_kept() => {
                self.by_generations().shrink_generations_of(node, scan);
            }
            LruRule::PerNode => {
                let Some(zone) = self.pages().zones_of(node, scan.highest).next() else { return };
                self.shrink_for_order(self.lru().vec_of_zone(zone), node, scan);
            }
            LruRule::PerZone => {
                for zone in self.pages().zones_of(node, scan.highest) {
                    self.shrink_for_order(self.lru().vec_of_zone(zone), node, scan);
                }
            }
        }
        if scan.reclaimed > before && scan.target == GroupId::ROOT {
            self.own().node(node).failures.store(0, Relaxed);
        }
    }

    /// One pass over a set of lists, and more while that makes progress towards a block of a higher order.
    fn shrink_for_order(self, vec: VecId, node: Node, scan: &mut Scan) {
        let vec = VecId { group: scan.target, ..vec };
        scan.vec = vec;
        loop {
            let (reclaimed, scanned) = (scan.reclaimed, scan.scanned);
            scan.met = Met::default();
            self.shrink_groups(scan);
            self.note_what_was_met(vec, scan);
            let (freed, looked) = (scan.reclaimed - reclaimed, scan.scanned - scanned);
            pressure::tell(self, scan, looked);
            if looked == 0 || !self.should_continue(vec, (node, freed), scan) {
                return;
            }
        }
    }

    /// Whether more should be freed for a block of a higher order than one pass did (`should_continue_reclaim`): the
    /// kernel wants twice the block's pages, for compaction to work with.
    fn should_continue(self, vec: VecId, (node, freed): (Node, u32), scan: &Scan) -> bool {
        let in_earnest = scan.order.get() > crate::ground::ids::PAGE_ALLOC_COSTLY_ORDER
            || scan.priority < DEF_PRIORITY - 2;
        if scan.order == Order::ZERO || !in_earnest || freed == 0 {
            return false;
        }
        if self.pages().zones_of(node, scan.highest).any(|zone| self.has_gap(zone, scan.order, scan.highest))
        {
            return false;
        }
        let mut lists = LruList::ALL.into_iter().filter(|list| !list.is_active());
        let inactive = |list| self.lru().stat(vec).sizes[LruList::index(list)];
        let left: u32 = lists.by_ref().map(inactive).sum();
        left > self.compaction().compact_gap(scan.order)
            && scan.reclaimed < self.compaction().compact_gap(scan.order)
    }

    /// Whether `zone` has free pages enough above its low mark to make a block of `order` from.
    fn has_gap(self, zone: &Zone<M>, order: Order, highest: ZoneKind) -> bool {
        let mark = zone.mark_low() + self.compaction().compact_gap(order);
        zone.watermark_ok(self.machine(), Order::ZERO, mark, highest, crate::pages::zone::AllocFlags::NONE)
    }

    /// Whether dirty pages are in the way, or pages that are being written, and what follows: the flusher is told, kswapd
    /// waits.
    fn note_what_was_met(self, vec: VecId, scan: &Scan) {
        let Met { taken, dirty, writeback, immediate, .. } = scan.met;
        if taken == 0 {
            return;
        }
        let state = self.own().place(vec);
        if scan.by == Reclaimer::Kswapd {
            state.writeback.store(u32::from(writeback == taken), Relaxed);
            if immediate > 0 {
                self.machine().block(direct::WRITEBACK_WAIT);
            }
        }
        if dirty > 0 {
            self.files().wake_flusher();
        }
    }
}
