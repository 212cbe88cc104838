//! The slab allocator on this machine, for programs that need objects of one size: [`ObjectCache`] hands out [`Object`]s,
//! which go back when dropped, from any thread.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{fmt, mem, ptr, slice};

use mm::Addr;
use mm::slab::kmalloc::{KmallocClass, KmallocKind};
use mm::slab::{CacheId, CacheSpec, LentSheaf, SlabError, SlabUse};

use crate::host::Host;

impl Host {
    /// A cache of objects as `spec` says; maybe one that is there already, if its slabs can be shared.
    ///
    /// # Errors
    /// If there cannot be such a cache, or none more.
    pub fn cache(&self, spec: CacheSpec) -> Result<ObjectCache<'_>, SlabError> {
        let bytes = spec.object_size;
        let id = self.raw().slabs().create_cache(spec)?;
        Ok(ObjectCache { host: self, id, bytes })
    }

    /// The cache of `kmalloc` that serves objects of `size` bytes, 1 to 8192.
    ///
    /// # Errors
    /// If no class serves this size, or there can be no more caches.
    pub fn kmalloc_cache(&self, size: u32) -> Result<ObjectCache<'_>, SlabError> {
        let class = KmallocClass::of(KmallocKind::Normal, size).ok_or(SlabError::Size(size))?;
        let id = self.raw().slabs().kmalloc_cache(class)?.id();
        Ok(ObjectCache { host: self, id, bytes: size })
    }

    /// An object of `size` bytes, 1 to 8192.
    ///
    /// # Errors
    /// If there is no memory, or no class serves this size.
    pub fn kmalloc(&self, size: u32) -> Result<Object<'_>, SlabError> {
        self.kmalloc_cache(size)?.alloc()
    }

    /// Gives back what all caches hold for speed; slabs that then remain.
    pub fn shrink_caches(&self) -> u32 {
        self.raw().slabs().shrink_all()
    }

    /// An RCU grace period has ended, says the caller, and the next one begins. An object that was deferred is free for
    /// use once a grace period has ended that began after that.
    pub fn end_grace_period(&self) {
        self.raw().slabs().end_grace_period();
    }

    /// Frees up to `most` deferred objects of this thread's CPU that have waited long enough, those in sheaves whole
    /// sheaves at a time and not counted; how many it freed.
    pub fn run_deferred(&self, most: u32) -> u32 {
        self.raw().slabs().run_deferred(most)
    }

    /// Frees all deferred objects that have waited long enough.
    pub fn run_all_deferred(&self) {
        self.raw().slabs().run_all_deferred();
    }
}

/// A cache of objects of one size.
#[derive(Clone, Copy)]
pub struct ObjectCache<'h> {
    host: &'h Host,
    id: CacheId,
    bytes: u32,
}

impl<'h> ObjectCache<'h> {
    /// The cache's number.
    pub fn id(self) -> CacheId {
        self.id
    }

    /// Bytes of an object.
    pub fn object_size(self) -> u32 {
        self.bytes
    }

    /// Allocates an object. Its bytes are whatever was there before.
    ///
    /// # Errors
    /// If there is no memory.
    #[inline]
    pub fn alloc(self) -> Result<Object<'h>, SlabError> {
        Ok(self.own(self.host.raw().slabs().kmem_cache_alloc(self.id)?))
    }

    /// Allocates `count` objects into `objects`.
    ///
    /// # Errors
    /// If memory ran out: those that there were are in `objects`.
    pub fn alloc_many(self, count: u32, objects: &mut Vec<Object<'h>>) -> Result<(), SlabError> {
        self.host.raw().slabs().kmem_cache_alloc_bulk(self.id, count, |at| objects.push(self.own(at)))
    }

    /// Frees objects together. Those of other caches are freed one by one.
    pub fn free_many(self, objects: Vec<Object<'h>>) {
        let (ours, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|object| object.is_of(self));
        let mut ours: Vec<Addr> = ours.into_iter().map(Object::into_address).collect();
        let freed = self.host.raw().slabs().kmem_cache_free_bulk(self.id, &mut ours);
        debug_assert_eq!(freed, Ok(()), "objects that are owned can be freed");
        drop(others);
    }

    /// Sets objects aside, at least `count` of them, so that allocations to come cannot fail.
    ///
    /// # Errors
    /// If there is no memory, or the policy gives the cache no sheaves.
    pub fn prefill(self, count: u32) -> Result<Prefilled<'h>, SlabError> {
        let lent = self.host.raw().slabs().prefill_sheaf(self.id, count)?;
        Ok(Prefilled { cache: self, lent: Some(lent) })
    }

    /// Gives back what the cache holds for speed; slabs that then remain.
    pub fn shrink(self) -> u32 {
        self.host.raw().slabs().shrink_cache(self.id).unwrap_or(0)
    }

    /// Walks the cache's invariants and says where its memory is. No other thread may use the cache meanwhile, or it may
    /// find fault where there is none.
    ///
    /// # Errors
    /// The first invariant that does not hold, in one line.
    pub fn check(self) -> Result<SlabUse, String> {
        self.host.raw().slabs().check_cache(self.id)
    }

    /// The object at `at`, which was allocated just now for whoever gets this.
    #[inline]
    fn own(self, at: Addr) -> Object<'h> {
        Object { cache: self, at }
    }
}

impl fmt::Debug for ObjectCache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectCache({}, {} bytes)", self.id.0, self.bytes)
    }
}

/// An object: bytes that are the holder's alone until it is dropped.
pub struct Object<'h> {
    cache: ObjectCache<'h>,
    at: Addr,
}

impl<'h> Object<'h> {
    /// Where it begins; aligned as its cache says.
    #[inline]
    pub fn address(&self) -> NonNull<u8> {
        self.cache.host.raw().machine().arena().object(self.at, self.cache.bytes)
    }

    /// Frees it after a grace period: see [`Host::end_grace_period`].
    pub fn defer(self) {
        let cache = self.cache;
        let deferred = cache.host.raw().slabs().kfree_rcu(cache.id, self.into_address());
        debug_assert_eq!(deferred, Ok(()), "an object that is owned can be freed");
    }

    /// The same, never gathered with others: what `call_rcu` for each object does.
    pub fn defer_by_itself(self) {
        let cache = self.cache;
        let deferred = cache.host.raw().slabs().free_deferred(cache.id, self.into_address());
        debug_assert_eq!(deferred, Ok(()), "an object that is owned can be freed");
    }

    /// Its cache.
    pub fn cache(&self) -> ObjectCache<'h> {
        self.cache
    }

    fn is_of(&self, cache: ObjectCache<'h>) -> bool {
        self.cache.id == cache.id && ptr::eq(self.cache.host, cache.host)
    }

    fn into_address(self) -> Addr {
        let at = self.at;
        mem::forget(self);
        at
    }
}

impl Deref for Object<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the object is mapped as long as the host lives, its bytes are always initialised (zero at first), and it
        // is this owner's alone: the host frees an object only through its owner.
        unsafe { slice::from_raw_parts(self.address().as_ptr(), self.cache.bytes as usize) }
    }
}

impl DerefMut for Object<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the owner is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.address().as_ptr(), self.cache.bytes as usize) }
    }
}

impl Drop for Object<'_> {
    #[inline]
    fn drop(&mut self) {
        let freed = self.cache.host.raw().slabs().kmem_cache_free(self.cache.id, self.at);
        debug_assert_eq!(freed, Ok(()), "an object that is owned can be freed");
    }
}

impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}, {} bytes)", self.at, self.cache.bytes)
    }
}

/// Objects set aside; those that were not taken go back when this is dropped.
#[derive(Debug)]
pub struct Prefilled<'h> {
    cache: ObjectCache<'h>,
    /// `None` only while it is dropped.
    lent: Option<LentSheaf>,
}

impl<'h> Prefilled<'h> {
    /// Objects left.
    pub fn len(&self) -> u32 {
        self.lent.as_ref().map_or(0, LentSheaf::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes one.
    pub fn take(&mut self) -> Option<Object<'h>> {
        let at = self.cache.host.raw().slabs().alloc_from_sheaf(self.lent.as_mut()?)?;
        Some(self.cache.own(at))
    }
}

impl Drop for Prefilled<'_> {
    fn drop(&mut self) {
        if let Some(lent) = self.lent.take() {
            self.cache.host.raw().slabs().return_sheaf(lent);
        }
    }
}
