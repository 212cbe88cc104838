//! Pages that are to be moved: from who finds them to who moves them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::ground::{Node, SpaceId, Vpn};

/// A page that is wanted elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedPage {
    /// Whose.
    pub space: SpaceId,
    /// Where it is mapped.
    pub vpn: Vpn,
    /// Where it is to go.
    pub node: Node,
}

/// The migration lists of all address spaces (one each from V2 on), which are served in turn.
///
/// With a thousand of them a page finds its list, and the number of pages its sum, without a look at all others.
#[derive(Debug, Default)]
pub struct Wanted {
    /// None is empty.
    lists: BTreeMap<SpaceId, VecDeque<(Vpn, Node)>>,
    /// Whose turn comes when: each address space that has a list, once.
    turns: VecDeque<SpaceId>,
    /// Pages on all lists.
    pages: usize,
}

impl Wanted {
    /// `page` is to be moved.
    pub fn push(&mut self, page: WantedPage) {
        let list = self.lists.entry(page.space).or_default();
        if list.is_empty() {
            self.turns.push_back(page.space);
        }
        list.push_back((page.vpn, page.node));
        self.pages += 1;
    }

    /// Up to `most` pages of one address space, oldest first; its turn comes again when all others had theirs.
    pub fn take(&mut self, most: usize) -> Vec<WantedPage> {
        let Some(space) = self.turns.pop_front() else { return Vec::new() };
        let Some(list) = self.lists.get_mut(&space) else { return Vec::new() };
        let count = most.min(list.len());
        let taken = list.drain(..count).map(|(vpn, node)| WantedPage { space, vpn, node }).collect();
        if list.is_empty() {
            self.lists.remove(&space);
        } else {
            self.turns.push_back(space);
        }
        self.pages -= count;
        taken
    }

    /// Pages that wait.
    pub fn len(&self) -> usize {
        self.pages
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// `space` has ended.
    pub fn forget(&mut self, space: SpaceId) {
        let Some(list) = self.lists.remove(&space) else { return };
        self.pages -= list.len();
        self.turns.retain(|other| *other != space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_spaces_take_turns_and_pages_keep_their_order() {
        let mut wanted = Wanted::default();
        for (space, vpn) in [(1, 10), (1, 11), (2, 20), (1, 12), (2, 21)] {
            wanted.push(WantedPage { space: SpaceId(space), vpn: Vpn(vpn), node: Node(0) });
        }
        assert_eq!(wanted.len(), 5);
        let mut order = vec![];
        while !wanted.is_empty() {
            order.push(wanted.take(2).iter().map(|page| page.vpn.0).collect::<Vec<_>>());
        }
        assert_eq!(order, [vec![10, 11], vec![20, 21], vec![12]]);
        assert!(wanted.take(2).is_empty());
    }

    #[test]
    fn what_has_ended_is_not_moved() {
        let mut wanted = Wanted::default();
        wanted.push(WantedPage { space: SpaceId(1), vpn: Vpn(1), node: Node(0) });
        wanted.push(WantedPage { space: SpaceId(2), vpn: Vpn(1), node: Node(0) });
        wanted.forget(SpaceId(1));
        wanted.forget(SpaceId(3));
        assert_eq!(wanted.len(), 1);
        assert_eq!(wanted.take(9).len(), 1);
        assert!(wanted.is_empty());
    }
}
