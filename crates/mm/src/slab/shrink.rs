//! Giving back what a cache holds for speed: CPU slabs, partial slabs, sheaves, empty slabs on nodes' lists
//! (`kmem_cache_shrink`, `/sys/kernel/slab/CACHE/shrink`).

use super::cache::{CacheId, NodeCache};
use super::node::{End, Slabs};
use super::{SlabCx, SlabDoor, SlabError, SlabGround};
use crate::ground::{Machine, Pfn};
use crate::pages::List;

impl<M: Machine, G: SlabGround<M>> SlabDoor<'_, M, G> {
    /// Flushes every CPU's part of cache `id` and its barns, gives empty slabs back, and sorts the others so that the
    /// fullest are used first. Slabs that then remain.
    ///
    /// # Errors
    /// If there is no such cache.
    pub fn shrink_cache(self, id: CacheId) -> Result<u32, SlabError> {
        let cx = self.slab_cx(id)?;
        let cpus = 0..cx.cache.cpus.len();
        if cx.cache.has_sheaves() {
            cpus.clone().for_each(|cpu| cx.sheaves().flush_cpu_sheaves(cpu));
            cx.sheaves().flush_barns();
        }
        cpus.clone().for_each(|cpu| cx.stock().flush_stock(cpu));
        cx.stock().flush_depots();
        // After these: slabs that their objects go back to become this CPU's partial ones.
        cpus.for_each(|cpu| cx.flush_cpu_slabs(cpu));
        cx.cache.nodes.iter().for_each(|node| cx.shrink_node(node));
        Ok(cx.sheaves().slabs())
    }

    /// Shrinks all caches; slabs that then remain.
    pub fn shrink_all(self) -> u32 {
        let each = |cache: &super::Cache<M>| self.shrink_cache(cache.id()).unwrap_or(0);
        self.caches().map(each).sum()
    }
}

impl<'a, M: Machine, G: SlabGround<M>> SlabCx<'a, M, G> {
    fn shrink_node(self, node: &'a NodeCache<M>) {
        /// Slabs with so many free objects or fewer are sorted.
        const SORTED: usize = 32;
        let mut empty = Slabs::EMPTY;
        let mut partials = self.lock_list(node);
        let mut by_free = [const { Slabs::EMPTY }; SORTED];
        let mut next = partials.list.first();
        while let Some(head) = next {
            next = List::after(self.map(), head);
            let objects = self.cache.objects(self.order_of(head));
            let free = (objects - self.look(head).in_use()) as usize;
            if free == objects as usize {
                self.unlist(node, &mut partials, head);
                empty.push(self, head);
            } else if (1..=SORTED).contains(&free) {
                self.unlist(node, &mut partials, head);
                by_free[free - 1].push(self, head);
            }
        }
        for slabs in by_free.iter_mut().rev() {
            while let Some(head) = slabs.pop(self) {
                self.list(node, &mut partials, head, End::Head);
            }
        }
        drop(partials);
        while let Some(head) = empty.pop(self) {
            self.discard(head);
        }
    }

    /// The slab's frame is one of this cache's.
    pub(super) fn owns(self, head: Pfn) -> bool {
        self.map().frame(head).slab_cache() == Some(self.cache.id.0)
    }
}
