//! What the kernel keeps for itself of a scene's files: the nodes of their trees, in slabs. These are pages that go to lists of their own, and where
//! none of these is free they take pageblocks from movable pages, which take them back: that mixes types, and raises marks of the smallest zone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use mm::{Bare, MigrateType, Mm, Order, Pfn, Request};

/// Nodes of a slab (`radix_tree_node` in slabinfo of 6.1 to 7.2).
const OF_SLAB: u64 = 14;

/// A slab's pages: two.
const SLAB: Order = Order::new(1).expect("two pages are an order");

/// Nodes of a level of a tree under one of the next.
const UNDER_ONE: u64 = 64;

/// Slabs without nodes that are kept (`min_partial`).
const KEPT: usize = 5;

/// The slabs that came since the first mark: what was there then is among what its kernel had not free.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Nodes at the first mark, once that is said.
    first: Cell<Option<u64>>,
    /// The oldest first.
    slabs: RefCell<VecDeque<Pfn>>,
}

impl Trees {
    /// The first mark is said.
    pub(super) fn begin(&self, mm: &Mm<Bare>) {
        let first = self.first.get().unwrap_or_else(|| mm.files().tree_nodes());
        self.first.set(Some(first));
    }

    /// Slabs come and go with the nodes that there are now.
    pub(super) fn grow(&self, mm: &Mm<Bare>) {
        let Some(first) = self.first.get() else { return };
        let nodes = mm.files().tree_nodes().saturating_sub(first);
        let wanted = (nodes + nodes / UNDER_ONE).div_ceil(OF_SLAB) as usize;
        // Allocating one asks for none.
        let Ok(mut slabs) = self.slabs.try_borrow_mut() else { return };
        let request =
            Request { order: SLAB, migratetype: MigrateType::Reclaimable, no_fs: true, ..Request::KERNEL };
        while slabs.len() < wanted {
            // Without memory for a node a page is not read; that is not played.
            let Ok(slab) = mm.alloc(request) else { return };
            slabs.push_back(slab);
        }
        while slabs.len() > wanted + KEPT {
            let Some(slab) = slabs.pop_front() else { return };
            // It was allocated above.
            let _ = mm.free(slab, SLAB);
        }
    }
}

#[cfg(test)]
mod tests {
    use mm::vm::{FileKind, Placement};

    use super::*;
    use crate::conform::scenes::tests::machine;

    #[test]
    fn a_file_has_a_slab_for_each_fourteen_nodes_of_its_tree() {
        let mm = machine();
        let trees = Trees::default();
        let file = mm.files().new_file(FileKind::Disk);
        let read = |pages| mm.files().read_pages(&file, pages, Placement::default()).unwrap();
        let slabs_after = |pages| {
            read(pages);
            trees.grow(&mm);
            trees.slabs.borrow().len()
        };
        assert_eq!(slabs_after(0..64), 0, "nothing is known before the first mark");
        trees.begin(&mm);
        assert_eq!(mm.files().tree_nodes(), 1);
        assert_eq!(slabs_after(64..15 * 64), 1, "what was there then is not counted");
        assert_eq!(slabs_after(15 * 64..16 * 64), 2);
        mm.files().drop_file(&file);
        trees.grow(&mm);
        assert_eq!((mm.files().tree_nodes(), trees.slabs.borrow().len()), (0, 2), "a few are kept");
    }
}
