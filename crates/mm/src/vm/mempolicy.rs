//! Where a program wants its memory: what `set_mempolicy` and `mbind` set (Linux's mm/mempolicy.c; preferred-many since
//! 5.15, weighted interleave since 6.9). A policy turns a request into one with a node to ask first and the nodes that may
//! be used; whoever has address spaces keeps the policies.

use alloc::boxed::Box;
use core::fmt;

use super::{SpacesDoor, SpacesGround};
use crate::ground::ids::{Node, Pfn};
use crate::ground::machine::Machine;
use crate::ground::sync::{AtomicU8, AtomicU32, Relaxed};
use crate::pages::request::{AllocError, Request, Urgency};
use crate::pages::zonelist::NodeMask;

/// Where memory should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemPolicy {
    /// On the node of the CPU that asks, else near it (`MPOL_DEFAULT`, `MPOL_LOCAL`).
    #[default]
    Local,
    /// On this node, else near it (`MPOL_PREFERRED`).
    Preferred(Node),
    /// On the nearest of these nodes, without waiting for it; else on any other (`MPOL_PREFERRED_MANY`).
    PreferredMany(NodeMask),
    /// On these nodes, the nearest first, and on no other (`MPOL_BIND`).
    Bind(NodeMask),
    /// On these nodes in turn; if that node is full, near it (`MPOL_INTERLEAVE`).
    Interleave(NodeMask),
    /// The same, each node for as many pages as its weight ([`SpacesDoor::set_interleave_weight`]; `MPOL_WEIGHTED_INTERLEAVE`).
    WeightedInterleave(NodeMask),
    /// On this node and on no other (`__GFP_THISNODE`).
    ThisNode(Node),
}

/// Whose turn it is where nodes take turns.
#[derive(Clone, Copy, Debug)]
pub enum InterleaveBy<'a> {
    /// The task's own count goes on: its policy is for whatever it allocates.
    Task(&'a InterleaveCursor),
    /// By the page's place in its mapping or file, in pages: the same place always has the same node.
    Index(u64),
}

impl InterleaveBy<'_> {
    /// The node whose turn it is, of `nodes`; `None` if there are none.
    fn node(self, nodes: NodeMask, weight: impl Fn(Node) -> u16) -> Option<Node> {
        match self {
            Self::Task(cursor) => Some(cursor.next(nodes, weight)).filter(|&node| nodes.contains(node)),
            Self::Index(index) => node_at(index, nodes, weight),
        }
    }
}

/// How far a task has come in its turns.
#[derive(Debug)]
pub struct InterleaveCursor(AtomicU32);

/// A cursor as it is kept: the last node in the upper half, what is left of its weight in the lower.
#[derive(Clone, Copy)]
struct Cursor {
    last: Node,
    left: u16,
}

impl Cursor {
    fn unpack(word: u32) -> Self {
        Self { last: Node((word >> 16) as u16), left: word as u16 }
    }

    fn pack(self) -> u32 {
        u32::from(self.last.0) << 16 | u32::from(self.left)
    }

    /// The cursor after one more page, which goes to its `last`; `nodes` must not be empty.
    fn step(self, nodes: NodeMask, weight: impl Fn(Node) -> u16) -> Self {
        if self.left > 0 && nodes.contains(self.last) {
            return Self { left: self.left - 1, ..self };
        }
        let after = |node: &Node| self.last.0 == u16::MAX || *node > self.last;
        let next = nodes.nodes().find(after).or_else(|| nodes.nodes().next());
        let last = next.unwrap_or(self.last);
        Self { last, left: weight(last).saturating_sub(1) }
    }
}

impl Default for InterleaveCursor {
    /// Before the first turn of the lowest node.
    fn default() -> Self {
        Self(AtomicU32::new(Cursor { last: Node(u16::MAX), left: 0 }.pack()))
    }
}

impl InterleaveCursor {
    fn next(&self, nodes: NodeMask, weight: impl Fn(Node) -> u16) -> Node {
        let step = |word| Some(Cursor::unpack(word).step(nodes, &weight).pack());
        // The closure never declines.
        let before = self.0.fetch_update(Relaxed, Relaxed, step).unwrap_or_else(|word| word);
        Cursor::unpack(before).step(nodes, weight).last
    }
}

/// The node of the page at `index`, of `nodes`, which must not be empty.
fn node_at(index: u64, nodes: NodeMask, weight: impl Fn(Node) -> u16) -> Option<Node> {
    let total: u64 = nodes.nodes().map(|node| u64::from(weight(node))).sum();
    let mut left = index.checked_rem(total)?;
    nodes.nodes().find(|&node| {
        let weight = u64::from(weight(node));
        let here = left < weight;
        left = left.saturating_sub(weight);
        here
    })
}

/// The weights of nodes in weighted interleave (/sys/kernel/mm/mempolicy/weighted_interleave/nodeN). All are 1 until they
/// are set; kernels from 6.16 on may begin with others, by bandwidth.
#[derive(Debug)]
pub(crate) struct InterleaveWeights(Box<[AtomicU8]>);

impl InterleaveWeights {
    pub(crate) fn new(nodes: usize) -> Self {
        Self((0..nodes).map(|_| AtomicU8::new(1)).collect())
    }

    fn get(&self, node: Node) -> u16 {
        self.0.get(usize::from(node.0)).map_or(1, |weight| u16::from(weight.load(Relaxed)))
    }
}

/// Why a policy or a weight cannot be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemPolicyError {
    /// None of the policy's nodes has memory.
    NoMemory,
    /// The machine has no such node.
    NoNode(Node),
    /// A weight is from 1 to 255.
    Weight(u32),
}

impl fmt::Display for MemPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemory => f.write_str("none of the memory policy's nodes has memory"),
            Self::NoNode(node) => write!(f, "the machine has no node {}", node.0),
            Self::Weight(weight) => write!(f, "a node's weight cannot be {weight}; 1 to 255 are possible"),
        }
    }
}

impl core::error::Error for MemPolicyError {}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Checks that memory can be had under `policy`.
    ///
    /// # Errors
    /// If it names a node that the machine does not have, or only nodes without memory.
    pub fn check_mempolicy(self, policy: MemPolicy) -> Result<(), MemPolicyError> {
        let mask = match policy {
            MemPolicy::Local => return Ok(()),
            MemPolicy::Preferred(node) | MemPolicy::ThisNode(node) => {
                if usize::from(node.0) >= self.topology().nodes.len() {
                    return Err(MemPolicyError::NoNode(node));
                }
                if let MemPolicy::Preferred(_) = policy {
                    // Its neighbours will do.
                    return Ok(());
                }
                NodeMask::only(node)
            }
            MemPolicy::PreferredMany(mask)
            | MemPolicy::Bind(mask)
            | MemPolicy::Interleave(mask)
            | MemPolicy::WeightedInterleave(mask) => mask,
        };
        if mask.and(self.pages().zonelists().with_memory()).is_empty() {
            return Err(MemPolicyError::NoMemory);
        }
        Ok(())
    }

    /// The weight of `node` in weighted interleave; 1 where nobody set it.
    pub fn interleave_weight(self, node: Node) -> u32 {
        u32::from(self.own().weights.get(node))
    }

    /// Gives `node` a weight, 1 to 255 pages a turn.
    ///
    /// # Errors
    /// If there is no such node, or the weight is another.
    pub fn set_interleave_weight(self, node: Node, weight: u32) -> Result<(), MemPolicyError> {
        let slot = self.own().weights.0.get(usize::from(node.0)).ok_or(MemPolicyError::NoNode(node))?;
        let pages = u8::try_from(weight).ok().filter(|&pages| pages > 0);
        slot.store(pages.ok_or(MemPolicyError::Weight(weight))?, Relaxed);
        Ok(())
    }

    /// Allocates a block where `policy` says, within the nodes that `request` allows; `by` says whose turn it is where
    /// nodes take turns.
    ///
    /// # Errors
    /// As [`crate::Mm::alloc`]; [`AllocError::NoZone`] too if no node that the request allows is the policy's.
    pub fn alloc_by(
        self,
        policy: MemPolicy,
        by: InterleaveBy<'_>,
        request: Request,
    ) -> Result<Pfn, AllocError> {
        let placed = self.place(policy, by, request).ok_or(AllocError::NoZone)?;
        match policy {
            MemPolicy::Interleave(_) | MemPolicy::WeightedInterleave(_) => {
                let pfn = self.alloc(placed)?;
                self.count_interleaved(pfn, placed.node);
                Ok(pfn)
            }
            MemPolicy::PreferredMany(_) => {
                let urgency = match placed.urgency {
                    Urgency::Waits => Urgency::NoWait,
                    other => other,
                };
                let first = Request { urgency, ..placed };
                self.alloc(first).or_else(|_| self.alloc(Request { allowed: request.allowed, ..placed }))
            }
            _ => self.alloc(placed),
        }
    }

    /// `request` as `policy` places it: the node to ask first, and the nodes that may be used. Of preferred-many it is the
    /// first of two attempts. `None` if no node is left.
    pub fn place(self, policy: MemPolicy, by: InterleaveBy<'_>, request: Request) -> Option<Request> {
        let usable = request.allowed.and(self.pages().zonelists().with_memory());
        let at = |node| Request { node: Some(node), ..request };
        let within = |mask: NodeMask| Request { allowed: request.allowed.and(mask), ..request };
        let left = |mask: NodeMask| Some(mask.and(usable)).filter(|nodes| !nodes.is_empty());
        match policy {
            MemPolicy::Local => Some(request),
            MemPolicy::Preferred(node) => Some(at(node)),
            MemPolicy::ThisNode(node) => Some(Request { this_node: true, ..at(node) }),
            // What must be in a lower zone is had where that is.
            MemPolicy::Bind(_) if request.highest < self.pages().zonelists().policy_zone() => Some(request),
            MemPolicy::Bind(mask) => left(mask).map(within),
            MemPolicy::PreferredMany(mask) => Some(left(mask).map_or(request, within)),
            MemPolicy::Interleave(mask) => {
                let nodes = left(mask)?;
                by.node(nodes, |_| 1).map(at)
            }
            MemPolicy::WeightedInterleave(mask) => {
                let nodes = left(mask)?;
                by.node(nodes, |node| self.own().weights.get(node)).map(at)
            }
        }
    }

    /// Counts a page that came from the node whose turn it was.
    fn count_interleaved(self, pfn: Pfn, wanted: Option<Node>) {
        if let Some(zone) = self.pages().zone_of(pfn).filter(|zone| Some(zone.node()) == wanted) {
            zone.stat().count_interleaved();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn mask(nodes: &[u16]) -> NodeMask {
        nodes.iter().map(|&node| Node(node)).collect()
    }

    #[test]
    fn a_cursor_goes_round_its_nodes() {
        let cursor = InterleaveCursor::default();
        let turns = |nodes: &[u16], count| -> Vec<u16> {
            (0..count).map(|_| cursor.next(mask(nodes), |_| 1).0).collect()
        };
        assert_eq!(turns(&[0, 1, 3], 5), [0, 1, 3, 0, 1]);
        // The nodes may change in between.
        assert_eq!(turns(&[0, 2], 3), [2, 0, 2]);
        assert_eq!(turns(&[255], 2), [255, 255]);
    }

    #[test]
    fn a_heavier_node_keeps_its_turn_longer() {
        let cursor = InterleaveCursor::default();
        let weight = |node: Node| if node == Node(1) { 3 } else { 1 };
        let turns: Vec<u16> = (0..10).map(|_| cursor.next(mask(&[0, 1, 2]), weight).0).collect();
        assert_eq!(turns, [0, 1, 1, 1, 2, 0, 1, 1, 1, 2]);
        let places: Vec<u16> =
            (0..10).filter_map(|at| Some(node_at(at, mask(&[0, 1, 2]), weight)?.0)).collect();
        assert_eq!(places, turns);
    }

    #[test]
    fn a_node_that_leaves_the_mask_loses_what_is_left_of_its_turn() {
        let cursor = InterleaveCursor::default();
        assert_eq!(cursor.next(mask(&[0, 1]), |_| 200), Node(0));
        assert_eq!(cursor.next(mask(&[1, 2]), |_| 200), Node(1));
        assert_eq!(node_at(7, NodeMask::NONE, |_| 1), None);
    }
}
