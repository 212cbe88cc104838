//! A node goes out of use while the machine runs (memory hot-unplug): its zones serve nobody any more, and what can be moved
//! moves to other nodes. If anything is left that cannot, the node stays in use and the error says how much.
//!
//! Its zones keep all of their memory from every request, as a zone keeps some from those that can go elsewhere; so
//! requests that are on their way find it full and go on to the next. Zonelists still name it.

use core::fmt;

use super::{CompactGround, OfflineDoor};
use crate::ground::{Machine, Node, Pfn};
use crate::pages::{FrameKind, NodeMask, Request, Zone, zone_flag};

/// Why a node stays in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfflineError {
    /// There is no such node, or it has no memory.
    NoMemory(Node),
    /// No other node has memory.
    Last(Node),
    /// So many pages cannot be moved: the kernel's own, pinned ones, or those that no other node has room for.
    InUse {
        /// The node.
        node: Node,
        /// The pages.
        pages: u64,
    },
}

impl fmt::Display for OfflineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemory(node) => write!(f, "node {} has no memory that could go out of use", node.0),
            Self::Last(node) => write!(f, "node {} is the last one with memory", node.0),
            Self::InUse { node, pages } => {
                write!(f, "node {} stays in use: {pages} of its pages cannot be moved", node.0)
            }
        }
    }
}

impl core::error::Error for OfflineError {}

/// How often the lists are gone through: what was busy at first may not be later.
const ROUNDS: u32 = 3;

impl<'a, M: Machine, G: CompactGround<M>> OfflineDoor<'a, M, G> {
    /// Takes the memory of `node` out of use; gives the pages that were moved to other nodes. Others may allocate and
    /// free meanwhile.
    ///
    /// # Errors
    /// Why it stays in use; then it serves requests as before, though pages may have moved.
    pub fn offline_node(self, node: Node) -> Result<u64, OfflineError> {
        let has = |node: Node| self.zones().iter().any(|zone| zone.node() == node && !zone.is_offline());
        if !has(node) {
            return Err(OfflineError::NoMemory(node));
        }
        if !self.zones().iter().any(|zone| zone.node() != node && has(zone.node())) {
            return Err(OfflineError::Last(node));
        }
        self.zones_on(node).for_each(Zone::set_offline);
        let moved = (0..ROUNDS).map(|_| self.evacuate(node)).sum();
        self.pages().drain_all();
        match self.held_on(node) {
            0 => Ok(moved),
            pages => {
                self.online_node(node);
                Err(OfflineError::InUse { node, pages })
            }
        }
    }

    /// Puts the memory of `node` back into use.
    pub fn online_node(self, node: Node) {
        for zone in self.zones_on(node).filter(|zone| zone.clear_flag(zone_flag::OFFLINE)) {
            self.pages().apply_protection(zone);
        }
    }

    fn zones_on(self, node: Node) -> impl Iterator<Item = &'a Zone<M>> {
        self.zones().iter().filter(move |zone| zone.node() == node)
    }

    /// Pages of `node` that somebody holds.
    fn held_on(self, node: Node) -> u64 {
        let held = |zone: &Zone<M>| {
            let pcp = zone.pagesets().iter().map(|set| u64::from(set.pcp().lock(self.machine()).count()));
            u64::from(zone.managed()).saturating_sub(zone.free_pages_exact() + pcp.sum::<u64>())
        };
        self.zones_on(node).map(held).sum()
    }

    /// Moves what is on LRU lists from `node` to other nodes; gives the pages that went.
    fn evacuate(self, node: Node) -> u64 {
        self.lru().lru_drain_all();
        self.zones_on(node).map(|zone| self.evacuate_zone(zone)).sum()
    }

    fn evacuate_zone(self, zone: &Zone<M>) -> u64 {
        let span = zone.managed_span();
        let (mut at, mut moved) = (span.start, 0);
        while at < span.end {
            let state = self.map().frame(Pfn(at)).state();
            if state.kind == FrameKind::Allocated && self.evacuate_page(zone.node(), Pfn(at)) {
                moved += u64::from(state.order.pages());
            }
            // Where a block was split or merged meanwhile, the next round sees what this one passes by.
            at += if state.kind == FrameKind::Tail { 1 } else { state.order.pages() };
        }
        moved
    }

    /// Moves the page at `pfn`, if it is on a list and may go; says whether it did.
    fn evacuate_page(self, node: Node, pfn: Pfn) -> bool {
        let Some(isolated) = self.lru().isolate_page(pfn) else { return false };
        let request = Request { allowed: NodeMask::ALL.without(node), ..Request::USER };
        if self.ground.move_to(pfn, request).is_err() {
            self.lru().put_back_page(pfn, isolated);
            return false;
        }
        self.lru().end_isolation_of(isolated);
        true
    }
}
