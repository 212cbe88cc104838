//! What a file's evicted pages left behind, by their number in the file: in nodes of 64, as the kernel's tree has them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::lru::Shadow;

/// Pages of a node.
pub(super) const SLOTS: u32 = 64;

/// The shadows of a file.
#[derive(Debug, Default)]
pub(super) struct Shadows(BTreeMap<u32, Box<Node>>);

#[derive(Debug)]
struct Node {
    slots: [Option<Shadow>; SLOTS as usize],
    used: u32,
}

/// The number of the node that page `index` is in.
pub(super) const fn node_of(index: u32) -> u32 {
    index / SLOTS
}

impl Shadows {
    /// The node's shadows are forgotten.
    pub(super) fn remove_node(&mut self, node: u32) {
        self.0.remove(&node);
    }

    /// Whether there are any of pages in `node`.
    pub(super) fn has_node(&self, node: u32) -> bool {
        self.0.contains_key(&node)
    }

    /// The nodes that there are.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.keys().copied()
    }

    /// Page `index` leaves `shadow`.
    pub(super) fn insert(&mut self, index: u32, shadow: Shadow) {
        let empty = || Box::new(Node { slots: [None; SLOTS as usize], used: 0 });
        let node = self.0.entry(index / SLOTS).or_insert_with(empty);
        let before = node.slots[(index % SLOTS) as usize].replace(shadow);
        node.used += u32::from(before.is_none());
    }

    /// Page `index` is there again, or not wanted any more: what it left.
    pub(super) fn remove(&mut self, index: u32) -> Option<Shadow> {
        let node = self.0.get_mut(&(index / SLOTS))?;
        let shadow = node.slots[(index % SLOTS) as usize].take()?;
        node.used -= 1;
        if node.used == 0 {
            self.0.remove(&(index / SLOTS));
        }
        Some(shadow)
    }

    /// The pages from `first` to before `end` are gone.
    pub(super) fn truncate(&mut self, first: u32, end: u32) {
        let nodes = self.0.range(first / SLOTS..=end.saturating_sub(1) / SLOTS);
        let nodes: alloc::vec::Vec<u32> = nodes.map(|(node, _)| *node).collect();
        for node in nodes {
            let (from, to) = (node * SLOTS, node.saturating_mul(SLOTS).saturating_add(SLOTS));
            for index in first.max(from)..end.min(to) {
                self.remove(index);
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_node_goes_with_its_last_shadow() {
        let mut shadows = Shadows::default();
        let shadow = Shadow::default();
        for index in [0, 63, 64, 200, u32::MAX - 1] {
            shadows.insert(index, shadow);
            shadows.insert(index, shadow);
        }
        assert_eq!(shadows.nodes().count(), 4);
        assert_eq!((shadows.remove(63), shadows.remove(63)), (Some(shadow), None));
        shadows.truncate(1, 200);
        assert_eq!((shadows.remove(64), shadows.nodes().count()), (None, 3));
        shadows.truncate(0, u32::MAX);
        assert_eq!(shadows.nodes().count(), 0);
    }
}
