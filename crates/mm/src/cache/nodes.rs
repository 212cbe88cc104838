//! Nodes of files' trees in which nothing but shadows is left: they take memory, so a shrinker of their own keeps them in check
//! (`shadow_lru_isolate`, `count_shadow_nodes`). Each belongs to the set of lists that its last page was on, and those that have
//! been empty for longest go first, all their shadows with them: what comes back then is new.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::shadows::SLOTS;
use super::{File, FilesDoor, FilesGround};
use crate::ground::Machine;
use crate::ground::ids::PAGE_SIZE;
use crate::lru::{LruList, VecEvent, VecId};
use crate::memcg::GroupId;
use crate::rules::policy::ShadowNodeRule;

/// Nodes that a shrinker takes at a time (`SHRINK_BATCH`).
const BATCH: u64 = 128;

/// Bytes of a node, with the pointer to whom it is charged.
const NODE_BYTES: u64 = 576 + 8;

/// A node of a file's tree: the file's number, and the node's.
pub(super) type NodeId = (u32, u32);

/// Whose it is: a group, and the node or zone.
type Owner = (GroupId, usize);

/// All nodes without pages.
#[derive(Debug, Default)]
pub(super) struct ShadowNodes {
    /// In the order in which they lost their last pages.
    lists: BTreeMap<Owner, BTreeMap<u64, NodeId>>,
    places: BTreeMap<NodeId, (Owner, u64)>,
    /// What the shrinker left for later, by whose nodes they are.
    deferred: BTreeMap<Owner, u64>,
    next: u64,
}

impl ShadowNodes {
    fn add(&mut self, node: NodeId, owner: Owner) {
        self.remove(node);
        self.lists.entry(owner).or_default().insert(self.next, node);
        self.places.insert(node, (owner, self.next));
        self.next += 1;
    }

    fn remove(&mut self, node: NodeId) {
        if let Some((owner, number)) = self.places.remove(&node) {
            if let Some(list) = self.lists.get_mut(&owner) {
                list.remove(&number);
            }
        }
    }

    fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Whether the node is known to have no page.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.places.contains_key(&node)
    }

    fn count(&self, owner: Owner) -> u64 {
        self.lists.get(&owner).map_or(0, |list| list.len() as u64)
    }

    /// Takes out those of `owner` that are to go where it may have `most`, as a shrinker without seeks does at a priority
    /// (`do_shrink_slab`).
    fn take(&mut self, owner: Owner, most: u64, priority: u32) -> Vec<NodeId> {
        let freeable = self.count(owner).saturating_sub(most);
        if freeable == 0 {
            return Vec::new();
        }
        let deferred = self.deferred.get(&owner).copied().unwrap_or(0);
        let part = freeable / 2;
        let mut left = ((deferred >> priority) + part).min(2 * freeable);
        let mut taken = Vec::new();
        while left >= BATCH || left >= freeable {
            let now = left.min(BATCH);
            for _ in 0..now {
                let Some((_, node)) = self.lists.get_mut(&owner).and_then(BTreeMap::pop_first) else { break };
                self.places.remove(&node);
                taken.push(node);
            }
            left -= now;
            if left == 0 {
                break;
            }
        }
        let rest = (deferred + part).saturating_sub(taken.len() as u64).min(2 * freeable);
        self.deferred.insert(owner, rest);
        taken
    }
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// The node has no page any more, and shadows: it was of `vec`.
    pub(super) fn node_lost_pages(self, node: NodeId, vec: VecId) {
        let mut nodes = self.own().shadow_nodes.lock_local(self.machine());
        nodes.add(node, (vec.group, vec.place()));
    }

    /// The node has a page again, or is gone.
    pub(super) fn node_has_pages(self, file: u32, node: u32) {
        self.own().shadow_nodes.lock_local(self.machine()).remove((file, node));
    }

    /// Nodes of all files' trees that have pages, or shadows and nothing else; each takes 584 bytes of the kernel's memory.
    pub fn tree_nodes(self) -> u64 {
        let files: Vec<Arc<File<M, G::Space>>> = {
            let files = self.own().files.lock_local(self.machine());
            files.values().map(Arc::clone).collect()
        };
        let of = |file: &Arc<File<M, G::Space>>| file.state.lock_local(self.machine()).in_nodes.len() as u64;
        files.iter().map(of).sum::<u64>() + self.own().shadow_nodes.lock_local(self.machine()).len()
    }

    /// After reclaim has looked through the lists of `vec`: nodes of its pages go that it has too many of.
    pub(crate) fn shrink_shadow_nodes(self, vec: VecId, priority: u32) {
        let owner = (vec.group, vec.place());
        let taken = {
            let mut nodes = self.own().shadow_nodes.lock_local(self.machine());
            if nodes.count(owner) == 0 {
                return;
            }
            let most = match self.rules().reclaim.shadow_node {
                ShadowNodeRule::SlabsByGeneration if self.lru().keeps_generations() => {
                    self.slabs_seen(vec) + u64::from(self.lru().unevictable_seen(vec))
                }
                _ => u64::from(self.lru().pages_seen(vec)),
            } >> 3;
            nodes.take(owner, most, priority)
        };
        self.lru().count_in(vec, VecEvent::NodeReclaim, taken.len() as u32);
        for (file, node) in taken {
            if let Some(file) = self.file(file) {
                self.empty_node(&file, node);
            }
        }
    }

    /// Pages of slabs that nodes of files take in the group and those below, as reclaim sees them; what nobody is charged for is not seen.
    /// (The kernel takes the group's alone.)
    fn slabs_seen(self, vec: VecId) -> u64 {
        if vec.group == GroupId::ROOT {
            return 0;
        }
        let stat = self.lru().stat(vec);
        let pages: u32 =
            [LruList::InactiveFile, LruList::ActiveFile].map(|list| stat.sizes[list.index()]).iter().sum();
        u64::from(pages.div_ceil(SLOTS)) * NODE_BYTES / PAGE_SIZE
    }

    /// Its shadows are forgotten, unless a page came back meanwhile.
    fn empty_node(self, file: &File<M, G::Space>, node: u32) {
        let mut state = file.state.lock_local(self.machine());
        if !state.has_pages_in(node) {
            state.shadows.remove_node(node);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const OWNER: Owner = (GroupId::ROOT, 0);

    fn nodes(count: u32) -> ShadowNodes {
        let mut nodes = ShadowNodes::default();
        (0..count).for_each(|node| nodes.add((0, node), OWNER));
        nodes
    }

    #[test]
    fn half_of_what_is_too_much_goes_in_whole_batches_and_the_oldest_first() {
        assert_eq!(nodes(300).take(OWNER, 300, 12), []);
        assert_eq!(nodes(255).take(OWNER, 0, 12), [], "half is less than a batch");
        let mut some = nodes(300);
        let taken = some.take(OWNER, 44, 12);
        assert_eq!((taken.len(), taken[0], taken[127]), (128, (0, 0), (0, 127)));
        assert_eq!(some.count(OWNER), 172);
    }

    #[test]
    fn what_was_left_for_later_counts_as_priorities_go_down() {
        let mut some = nodes(100);
        assert_eq!(some.take(OWNER, 0, 12), []);
        assert_eq!(some.take(OWNER, 0, 0).len(), 100, "50 left for later and 50 now are all");
    }

    #[test]
    fn a_node_that_has_a_page_again_is_on_no_list() {
        let mut some = nodes(2);
        some.remove((0, 0));
        some.remove((0, 7));
        assert_eq!((some.count(OWNER), some.places.len()), (1, 1));
    }
}
