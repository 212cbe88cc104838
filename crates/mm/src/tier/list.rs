//! Pages that are to be moved: from who finds them to who moves them.

use alloc::collections::VecDeque;

use crate::ids::Node;
use crate::vm::{SpaceId, Vpn};

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
#[derive(Debug, Default)]
pub struct Wanted {
    lists: VecDeque<(SpaceId, VecDeque<(Vpn, Node)>)>,
}

impl Wanted {
    /// `page` is to be moved.
    pub fn push(&mut self, page: WantedPage) {
        let of_space = self.lists.iter_mut().rev().find(|(space, _)| *space == page.space);
        match of_space {
            Some((_, list)) => list.push_back((page.vpn, page.node)),
            None => self.lists.push_back((page.space, [(page.vpn, page.node)].into())),
        }
    }

    /// Up to `most` pages of one address space, oldest first; its turn comes again when all others had theirs.
    pub fn take(&mut self, most: usize) -> alloc::vec::Vec<WantedPage> {
        let Some((space, mut list)) = self.lists.pop_front() else { return alloc::vec![] };
        let count = most.min(list.len());
        let taken = list.drain(..count).map(|(vpn, node)| WantedPage { space, vpn, node }).collect();
        if !list.is_empty() {
            self.lists.push_back((space, list));
        }
        taken
    }

    /// Pages that wait.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|(_, list)| list.len()).sum()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// `space` has ended.
    pub fn forget(&mut self, space: SpaceId) {
        self.lists.retain(|(other, _)| *other != space);
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
        wanted.forget(SpaceId(1));
        assert!(wanted.is_empty());
    }
}
