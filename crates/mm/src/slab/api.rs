//! The doors: objects of a cache, objects by size, one by one, in bulk, now or after a grace period.

use super::cache::CacheId;
use super::chain::Chain;
use super::kmalloc::{KmallocClass, KmallocKind};
use super::registry::SlabPlace;
use super::stat::SlabEvent;
use super::{SlabCx, SlabDoor, SlabError, SlabGround};
use crate::ground::{Addr, Machine, Node, Pfn, Span, Work};
use crate::pages::AllocError;
use crate::rules::policy::CpuSlabRule;

impl<'a, M: Machine, G: SlabGround<M>> SlabDoor<'a, M, G> {
    /// An object of cache `id`, from the CPU's node if it can be.
    ///
    /// # Errors
    /// If there is no memory, or no such cache.
    #[inline]
    pub fn kmem_cache_alloc(self, id: CacheId) -> Result<Addr, SlabError> {
        self.kmem_cache_alloc_node(id, None)
    }

    /// The same from `node`, where one is given.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn kmem_cache_alloc_node(self, id: CacheId, node: Option<Node>) -> Result<Addr, SlabError> {
        let cx = self.slab_cx(id)?;
        let since = self.machine().enter(Span::SlabAlloc);
        let object = cx.alloc_object(node);
        let work = Work { count: u32::from(object.is_ok()), ..Work::default() };
        self.machine().leave(Span::SlabAlloc, since, work);
        Ok(object?)
    }

    /// Hands out `count` objects of cache `id`, each to `put`.
    ///
    /// # Errors
    /// If memory ran out: those that there were have been handed out, and are the caller's.
    pub fn kmem_cache_alloc_bulk(
        self,
        id: CacheId,
        count: u32,
        mut put: impl FnMut(Addr),
    ) -> Result<(), SlabError> {
        let cx = self.slab_cx(id)?;
        let since = self.machine().enter(Span::SlabAlloc);
        let mut given = 0;
        let done = cx.alloc_many(count, |object| {
            given += 1;
            put(object);
        });
        self.machine().leave(Span::SlabAlloc, since, Work { count: given, ..Work::default() });
        Ok(done?)
    }

    /// Frees an object of cache `id`.
    ///
    /// # Errors
    /// If it is not an object of that cache; with debugging on, also if it is free or was written to where it must not
    /// be. Then nothing was changed.
    #[inline]
    pub fn kmem_cache_free(self, id: CacheId, object: Addr) -> Result<(), SlabError> {
        let (cx, head) = self.object_of(id, object)?;
        self.free_checked(cx, head, object)
    }

    /// Frees objects of cache `id` together. The row is used up: it holds other values afterwards.
    ///
    /// # Errors
    /// If one is not an object of that cache: then none was freed.
    pub fn kmem_cache_free_bulk(self, id: CacheId, objects: &mut [Addr]) -> Result<(), SlabError> {
        for object in objects.iter() {
            self.object_of(id, *object)?;
        }
        let cx = self.slab_cx(id)?;
        let since = self.machine().enter(Span::SlabFree);
        let freed = cx.free_many(objects);
        self.machine().leave(Span::SlabFree, since, Work { count: objects.len() as u32, ..Work::default() });
        freed
    }

    /// An object of at least `size` bytes, from the row `kind`.
    ///
    /// # Errors
    /// If there is no memory; or `size` is 0 or more than the largest class, 8192 bytes: whole pages serve that.
    pub fn kmalloc(self, kind: KmallocKind, size: u32) -> Result<Addr, SlabError> {
        let class = KmallocClass::of(kind, size).ok_or(SlabError::Size(size))?;
        self.kmem_cache_alloc(self.kmalloc_cache(class)?.id)
    }

    /// Frees an object, whatever its cache.
    ///
    /// # Errors
    /// If it is not an object of any cache; or as [`SlabDoor::kmem_cache_free`].
    pub fn kfree(self, object: Addr) -> Result<(), SlabError> {
        let place = self.slab_around(object).ok_or(SlabError::NotAnObject(object))?;
        self.free_checked(self.object_at(place, object)?, place.head, object)
    }

    /// Frees an object after a grace period (`call_rcu`): it is queued by itself on this CPU.
    ///
    /// # Errors
    /// If it is not an object of that cache.
    pub fn free_deferred(self, id: CacheId, object: Addr) -> Result<(), SlabError> {
        let (cx, _) = self.object_of(id, object)?;
        self.own().deferred.defer_object(cx, object);
        Ok(())
    }

    /// Frees an object after a grace period (`kfree_rcu`): in a sheaf with others where the cache has sheaves, else by
    /// itself.
    ///
    /// # Errors
    /// If it is not an object of that cache.
    pub fn kfree_rcu(self, id: CacheId, object: Addr) -> Result<(), SlabError> {
        let (cx, head) = self.object_of(id, object)?;
        let since = self.machine().enter(Span::SlabFree);
        let in_sheaf = cx.sheaves_serve(head) && cx.free_to_rcu_sheaf(object);
        if !in_sheaf {
            self.own().deferred.defer_object(cx, object);
        }
        self.machine().leave(Span::SlabFree, since, Work { count: 1, ..Work::default() });
        Ok(())
    }

    #[inline]
    pub(super) fn slab_cx(self, id: CacheId) -> Result<SlabCx<'a, M, G>, SlabError> {
        let cache = self.cache(id).ok_or(SlabError::NoCache(id))?;
        Ok(SlabCx { slabs: self, cache })
    }

    #[inline]
    fn object_of(self, id: CacheId, object: Addr) -> Result<(SlabCx<'a, M, G>, Pfn), SlabError> {
        let place = self.slab_around(object).ok_or(SlabError::NotAnObject(object))?;
        if place.cache != id {
            return Err(SlabError::WrongCache(object, place.cache));
        }
        Ok((self.object_at(place, object)?, place.head))
    }

    /// The cache of the slab at `place`, if an object of it begins at `object`.
    #[inline]
    fn object_at(self, place: SlabPlace, object: Addr) -> Result<SlabCx<'a, M, G>, SlabError> {
        let cx = self.slab_cx(place.cache)?;
        cx.cache.number(place.head, place.order, object).ok_or(SlabError::NotAnObject(object))?;
        Ok(cx)
    }

    #[inline]
    fn free_checked(self, cx: SlabCx<'a, M, G>, head: Pfn, object: Addr) -> Result<(), SlabError> {
        let since = self.machine().enter(Span::SlabFree);
        let freed = cx.free_object_checked(head, object);
        self.machine().leave(Span::SlabFree, since, Work { count: 1, ..Work::default() });
        freed
    }
}

impl<M: Machine, G: SlabGround<M>> SlabCx<'_, M, G> {
    #[inline]
    pub(super) fn alloc_object(self, node: Option<Node>) -> Result<Addr, AllocError> {
        if self.cache.has_sheaves() && node.is_none_or(|node| node == self.slabs.pages().local_node()) {
            if let Some(object) = self.sheaves().alloc_from_sheaves() {
                return Ok(object);
            }
        }
        self.alloc_without_sheaves(node)
    }

    #[inline]
    pub(super) fn alloc_without_sheaves(self, node: Option<Node>) -> Result<Addr, AllocError> {
        if self.cache.spec.is_debug() {
            return self.debugging().alloc_debug(node);
        }
        if self.stock().stock_serves() {
            return self.stock().alloc_from_stock(node);
        }
        match self.rules().cpu_slabs {
            CpuSlabRule::WithPartials => self.alloc_from_slabs(node),
            CpuSlabRule::None => self.sheaves().alloc_single(node),
        }
    }

    fn alloc_many(self, count: u32, mut put: impl FnMut(Addr)) -> Result<(), AllocError> {
        let by_slabs = self.rules().cpu_slabs == CpuSlabRule::WithPartials;
        if self.cache.has_sheaves() || self.cache.spec.is_debug() || !by_slabs {
            for _ in 0..count {
                put(self.alloc_object(None)?);
            }
            return Ok(());
        }
        self.alloc_many_from_slabs(count, put)
    }

    fn free_many(self, objects: &mut [Addr]) -> Result<(), SlabError> {
        if self.cache.has_sheaves() || self.stock().stock_serves() || self.cache.spec.is_debug() {
            for object in objects.iter() {
                if let Some(head) = self.slabs.slab_head(*object) {
                    self.free_object_checked(head, *object)?;
                }
            }
            return Ok(());
        }
        self.free_many_to_slabs(objects);
        Ok(())
    }

    /// Frees an object of the slab at `head`, after a look at it where the cache is debugged.
    #[inline]
    pub(super) fn free_object_checked(self, head: Pfn, object: Addr) -> Result<(), SlabError> {
        if self.cache.spec.is_debug() {
            return self.debugging().free_debug(head, object);
        }
        self.free_object(head, object);
        Ok(())
    }

    /// Frees an object of the slab at `head`.
    #[inline]
    fn free_object(self, head: Pfn, object: Addr) {
        if self.sheaves_serve(head) && self.sheaves().free_to_sheaves(object) {
            return;
        }
        if self.stock().stock_serves() {
            return self.stock().free_to_stock(head, object);
        }
        self.free_to_slabs(head, Chain::one(object));
    }

    /// Sheaves hold objects of the CPU's own node only.
    #[inline]
    pub(super) fn sheaves_serve(self, head: Pfn) -> bool {
        self.cache.has_sheaves()
            && (self.cache.nodes.len() == 1 || self.node_of(head) == self.slabs.pages().local_node())
    }

    /// An object for a sheaf to be made of.
    pub(super) fn alloc_bare(self) -> Result<Addr, AllocError> {
        self.alloc_without_sheaves(None)
    }

    /// Frees such an object.
    pub(super) fn free_bare(self, head: Pfn, object: Addr) {
        self.free_to_slabs(head, Chain::one(object));
    }

    /// Puts an object in the sheaf that gathers what waits for a grace period; a full one is queued. False if there is
    /// no sheaf for it.
    fn free_to_rcu_sheaf(self, object: Addr) -> bool {
        let mut cpu = self.lock_cpu();
        if cpu.sheaves.rcu.is_none() {
            drop(cpu);
            let empty = self.sheaves().barn_take_empty().or_else(|| self.sheaves().new_sheaf());
            let Some(empty) = empty else {
                self.count(SlabEvent::FreeRcuSheafFail, 1);
                return false;
            };
            cpu = self.lock_cpu();
            if cpu.sheaves.rcu.is_some() {
                drop(cpu);
                self.sheaves().put_away_empty(empty);
                return self.free_to_rcu_sheaf(object);
            }
            cpu.sheaves.rcu = Some(super::sheaf::Sheaf::empty(empty));
        }
        let capacity = self.sheaves().capacity();
        let mut full = None;
        if let Some(sheaf) = &mut cpu.sheaves.rcu {
            sheaf.push(self.machine(), object);
            full = (sheaf.len == capacity).then_some(*sheaf);
        }
        if full.is_some() {
            cpu.sheaves.rcu = None;
        }
        drop(cpu);
        if let Some(sheaf) = full {
            self.slabs.own().deferred.defer_sheaf(self, sheaf);
        }
        self.count(SlabEvent::FreeRcuSheaf, 1);
        true
    }
}
