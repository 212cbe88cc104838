//! Pages, handed out and taken back: zones, their free lists, the page lists of CPUs, and the way of a request through them.
//!
//! ```text
//!   request ─▶ alloc_path ─▶ zonelist ─▶ zone ─▶ pcp   (this CPU's lists, under pcp->lock)
//!              free                       │       │ refill, drain
//!                                         │       ▼
//!                                         └─▶ arena ─▶ buddy   (under zone->lock; fallback when a type runs out)
//! ```
//!
//! `frame`, `list`, `pageblock` and `buddy` are the free lists, `arena` divides them among CPUs; `watermark` says what must
//! stay free, `highatomic` what is kept for atomic requests, `zone_price` what low zones keep, `fair` whose turn it is;
//! `daemons` is what no request waits for, `steps` are single steps of the paths, for conformance.

pub(crate) mod alloc_path;
pub(crate) mod arena;
mod boot;
pub(crate) mod buddy;
pub(crate) mod daemons;
mod door;
pub(crate) mod fair;
pub(crate) mod fallback;
pub(crate) mod frame;
mod free;
mod highatomic;
mod killed;
pub(crate) mod list;
pub(crate) mod pageblock;
pub(crate) mod pcp;
pub mod request;
pub mod stat;
mod steps;
pub(crate) mod summary;
pub mod watermark;
pub(crate) mod zone;
pub(crate) mod zone_price;
pub(crate) mod zone_watch;
pub mod zonelist;

use alloc::boxed::Box;

use crate::ground::{Machine, MigrateType, Node, Order, Pfn, Topology, ZoneId, ZoneKind};
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::Policy;

pub(crate) use alloc_path::Mark;
pub use alloc_path::Search;
pub(crate) use arena::{PIECES_STEP, Types};
pub(crate) use buddy::{FreeAreas, ZoneCx};
pub use daemons::ReclaimState;
pub use door::PagesGround;
pub(crate) use door::door;
pub(crate) use fallback::fallbacks;
pub use frame::{Frame, FrameKind, FrameState, MemMap};
pub(crate) use frame::{Mobility, NONE as NO_FRAME, SlabPart};
use killed::Killed;
pub(crate) use list::{List, Mem};
use pageblock::Pageblocks;
pub(crate) use pcp::Pcp;
pub(crate) use request::Placement;
pub use request::{AllocError, FreeError, Request, Urgency};
pub use stat::Counters;
pub(crate) use stat::{Events, SlowEvents};
pub use steps::Steps;
pub(crate) use summary::{BLOCKS_PER_LINE, BlockUse, Summary};
pub(crate) use watermark::{PROTECTION_COLUMNS, protection, watermarks};
use zone::Cx;
pub(crate) use zone::{AllocFlags, zone_flag};
pub use zone::{Zone, ZoneBlock};
pub(crate) use zone_price::LowZone;
pub(crate) use zone_watch::{Level, decide_by_sum};
pub use zonelist::{NodeMask, OrderChoice, Zonelists};

/// The page allocator of a machine.
pub struct Pages<M: Machine> {
    machine: M,
    topology: Topology,
    policy: Policy,
    knobs: Knobs,
    map: MemMap,
    blocks: Pageblocks,
    zones: Box<[Zone<M>]>,
    zonelists: Zonelists,
    killed: Killed<M>,
}

/// What the page allocator asks of those above it. It knows nothing of who answers.
pub trait Above<M: Machine> {
    /// Types mixed in a zone of `kind` on `node`, and its marks are higher: kswapd is to see to it, for that zone and those below.
    fn wake_kswapd(&self, node: Node, kind: ZoneKind);

    /// Whether pages were ever given to somebody that they could be taken from: to an address space or a file.
    fn has_users(&self) -> bool;

    /// `search`, which would rather have `preferred`, found `zone` below its mark: room is made on the zone's node, where that is set.
    /// Says whether it may be above it now.
    fn reclaim_on_node(&self, search: Search<'_>, zone: &Zone<M>, preferred: &Zone<M>) -> bool;

    /// `search` found no block above the low mark of any zone: room is made for it, if that can be done.
    ///
    /// # Errors
    /// There is no block, and there will not be one.
    fn alloc_slow(&self, search: Search<'_>) -> Result<ZoneBlock, AllocError>;
}

impl<M: Machine> Pages<M> {
    #[inline]
    pub(crate) fn cx(&self) -> Cx<'_, M> {
        Cx {
            machine: &self.machine,
            map: &self.map,
            blocks: &self.blocks,
            knobs: &self.knobs,
            rules: self.policy.rules(),
        }
    }

    #[inline]
    pub(crate) fn zone_cx(&self, zone: ZoneId) -> ZoneCx<'_, M> {
        ZoneCx { cx: self.cx(), zone: &self.zones[usize::from(zone.0)] }
    }

    /// Single steps of the paths of requests and frees.
    pub fn steps(&self) -> Steps<'_, M> {
        Steps { pages: self }
    }

    /// The machine that this runs on.
    #[inline]
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// What this was told of the machine.
    #[inline]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The policy in force.
    #[inline]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The knobs' values; [`crate::Mm::set_knob`] changes them.
    #[inline]
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// The frame descriptors.
    #[inline]
    pub fn map(&self) -> &MemMap {
        &self.map
    }

    /// What is known of pageblocks.
    #[inline]
    pub(crate) fn blocks(&self) -> &Pageblocks {
        &self.blocks
    }

    /// The type of the pageblock that `pfn` is in.
    pub fn pageblock(&self, pfn: Pfn) -> MigrateType {
        self.blocks.get(pfn)
    }

    /// The populated zones, by [`ZoneId`].
    #[inline]
    pub fn zones(&self) -> &[Zone<M>] {
        &self.zones
    }

    /// The order of the page whose head is `pfn`.
    #[inline]
    pub(crate) fn order_of(&self, pfn: Pfn) -> Order {
        self.map.frame(pfn).state().order
    }

    #[inline]
    pub(crate) fn node_of_page(&self, pfn: Pfn) -> Node {
        self.zones[usize::from(self.map.frame(pfn).state().zone.0)].node
    }

    /// The zone of `kind` on `node`, if it is populated.
    pub fn zone(&self, node: Node, kind: ZoneKind) -> Option<&Zone<M>> {
        self.zones.iter().find(|zone| zone.node == node && zone.kind == kind)
    }

    /// The zones of `node` up to `highest`, the highest first.
    pub(crate) fn zones_of(&self, node: Node, highest: ZoneKind) -> impl Iterator<Item = &Zone<M>> {
        self.zones.iter().rev().filter(move |zone| zone.node == node && zone.kind <= highest)
    }

    /// The zone whose span `pfn` is in.
    pub fn zone_of(&self, pfn: Pfn) -> Option<&Zone<M>> {
        self.zones.iter().find(|zone| zone.span().contains(&pfn.0))
    }

    /// The nodes that a task on `node` asks, in order ("Fallback order" in the kernel's log).
    pub fn fallback_order(&self, node: Node) -> &[Node] {
        self.zonelists.fallback(node)
    }

    /// The zones that a task on `node` asks, in order.
    pub fn zonelist(&self, node: Node) -> impl Iterator<Item = (Node, ZoneKind)> {
        self.zonelists.zones(node)
    }

    /// The zones that requests ask, by node.
    #[inline]
    pub(crate) fn zonelists(&self) -> &Zonelists {
        &self.zonelists
    }

    /// The order that zonelists have, and what decided it.
    pub fn zonelist_order(&self) -> OrderChoice {
        let setting = self.knobs.get(Knob::NumaZonelistOrder);
        OrderChoice::by_setting(&self.topology, self.policy.rules().zone.zonelist_order, setting)
    }
}

impl<M: Machine> core::fmt::Debug for Pages<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pages").field("zones", &self.zones).finish_non_exhaustive()
    }
}
