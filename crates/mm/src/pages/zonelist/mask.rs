//! Sets of nodes.

use alloc::vec::{IntoIter, Vec};

use crate::ground::Node;

/// The nodes that a topology can have.
const NODES: u16 = 256;

/// The nodes that a request may use. An empty mask is never handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeMask([u64; 4]);

impl NodeMask {
    /// Every node.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// No node.
    pub(crate) const NONE: Self = Self([0; 4]);

    /// Just `node`.
    pub fn only(node: Node) -> Self {
        let mut mask = Self([0; 4]);
        mask.insert(node);
        mask
    }

    /// The same without `node`.
    #[must_use]
    pub fn without(mut self, node: Node) -> Self {
        if let Some(word) = self.0.get_mut(usize::from(node.0) / 64) {
            *word &= !(1 << (node.0 % 64));
        }
        self
    }

    /// Adds `node`. Nodes from 256 on, which no topology has, are left out.
    pub fn insert(&mut self, node: Node) {
        if let Some(word) = self.0.get_mut(usize::from(node.0 / 64)) {
            *word |= 1 << (node.0 % 64);
        }
    }

    /// The nodes that are in `other` too.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Whether there is no node in it.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// How many nodes there are in it.
    pub fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The nodes in it, lowest first.
    pub fn nodes(self) -> impl Iterator<Item = Node> {
        (0..NODES).map(Node).filter(move |&node| self.contains(node))
    }

    /// Whether `node` may be used.
    #[inline]
    pub fn contains(self, node: Node) -> bool {
        self.0.get(usize::from(node.0 / 64)).is_some_and(|word| word >> (node.0 % 64) & 1 == 1)
    }
}

impl FromIterator<Node> for NodeMask {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        let mut mask = Self([0; 4]);
        for node in nodes {
            mask.insert(node);
        }
        mask
    }
}

impl IntoIterator for NodeMask {
    type Item = Node;
    type IntoIter = IntoIter<Node>;

    fn into_iter(self) -> IntoIter<Node> {
        self.nodes().collect::<Vec<_>>().into_iter()
    }
}
