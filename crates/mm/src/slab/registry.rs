//! All caches: made, found by number, and those of `kmalloc` by size.

use super::{CacheSizing, CacheSpec, SlabCx, SlabDoor, SlabError, SlabGround, SlabSystem, merge};
use alloc::vec::Vec;

use super::cache::{Cache, CacheId, Ground};
use super::deferred::Deferred;
use super::kmalloc::{KmallocClass, KmallocKind};
use super::sheaf::{HEADER, POINTER, Sheaf};
use super::slots::Slots;
use super::watch::{CacheWatch, Limits};
use crate::ground::{Acquire, Addr, AtomicU32, LockClass, Locked, Machine, Order, Pfn, Release};
use crate::pages::{Frame, FrameKind, SlabPart};

/// Classes of all rows of `kmalloc`.
const CLASSES: usize = KmallocKind::ALL.len() * super::kmalloc::SIZES.len();

/// A slab: where it begins, whose it is, how large it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabPlace {
    pub(super) head: Pfn,
    pub(super) cache: CacheId,
    pub(super) order: Order,
}

/// The slab allocator's part of the memory manager.
pub struct SlabAllocator<M: Machine> {
    pub(super) caches: Slots<Cache<M>>,
    pub(super) deferred: Deferred<M>,
    /// Held while a cache is made.
    making: Locked<M, ()>,
    /// For each class of `kmalloc` its cache's number and one, or 0 where it was not needed yet.
    kmalloc: [AtomicU32; CLASSES],
}

impl<M: Machine> SlabAllocator<M> {
    pub(crate) fn new(machine: &M, cpus: usize) -> Self {
        Self {
            caches: Slots::new(Frame::MAX_CACHES),
            deferred: Deferred::new(machine, cpus),
            making: Locked::new(machine, LockClass::Other, 1, ()),
            kmalloc: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    fn class(&self, class: KmallocClass) -> Option<&Cache<M>> {
        let number = self.kmalloc[class.number()].load(Acquire);
        self.caches.get((number as usize).checked_sub(1)?)
    }
}

impl<'a, M: Machine, G: SlabGround<M>> SlabDoor<'a, M, G> {
    /// Makes a cache, or finds one whose slabs it can share.
    ///
    /// # Errors
    /// If there cannot be such a cache, or none more.
    pub fn create_cache(self, spec: CacheSpec) -> Result<CacheId, SlabError> {
        spec.check().map_err(SlabError::Spec)?;
        // Not for long, and by itself: a CPU's lock is taken under it, which nobody holds who comes here.
        let _making = self.own().making.lock_local(self.machine());
        self.make_kmalloc(KmallocKind::Normal)?;
        if let Some(cache) = self.own().caches.iter().find(|cache| merge::can_share(cache.spec(), &spec)) {
            cache.aliases.lock(self.machine()).push(spec.name);
            return Ok(cache.id);
        }
        let id = self.add_cache(spec)?;
        self.give_sheaves(id);
        Ok(id)
    }

    /// The cache numbered `id`, if there is one.
    pub fn cache(self, id: CacheId) -> Option<&'a Cache<M>> {
        self.own().caches.get(usize::from(id.0))
    }

    /// All caches.
    pub fn caches(self) -> impl Iterator<Item = &'a Cache<M>> {
        self.own().caches.iter()
    }

    /// The cache that serves requests of `class`.
    ///
    /// # Errors
    /// If there can be no more caches.
    pub fn kmalloc_cache(self, class: KmallocClass) -> Result<&'a Cache<M>, SlabError> {
        if self.own().class(class).is_none() {
            let _making = self.own().making.lock_local(self.machine());
            self.make_kmalloc(KmallocKind::Normal)?;
            self.make_kmalloc(class.kind())?;
        }
        self.own().class(class).ok_or(SlabError::TooManyCaches)
    }

    /// Makes a row of `kmalloc` caches, where it is not there yet. Sheaves come last: they are objects of such caches.
    fn make_kmalloc(self, kind: KmallocKind) -> Result<(), SlabError> {
        let missing = |class: &KmallocClass| self.own().class(*class).is_none();
        let mut made = Vec::new();
        for class in KmallocClass::row(kind).filter(missing) {
            let id = self.add_cache(class.spec(self.rules()))?;
            self.own().kmalloc[class.number()].store(u32::from(id.0) + 1, Release);
            made.push(id);
        }
        for id in made {
            self.give_sheaves(id);
        }
        Ok(())
    }

    fn add_cache(self, spec: CacheSpec) -> Result<CacheId, SlabError> {
        if !self.own().caches.has_room() {
            return Err(SlabError::TooManyCaches);
        }
        let id = CacheId(self.own().caches.len() as u16);
        let ground = Ground {
            machine: self.machine(),
            cpus: self.topology().cpus.len(),
            nodes: self.topology().nodes.len(),
        };
        let sizing = self.cache_sizing(&spec);
        let (rules, system) = (self.rules(), SlabSystem::of(self.topology()));
        let watch = CacheWatch::new::<M>(rules, self.knobs(), system, &spec);
        self.own().caches.push(Cache::new(&ground, id, spec, (sizing, watch)));
        Ok(id)
    }

    fn cache_sizing(self, spec: &CacheSpec) -> CacheSizing {
        CacheSizing::compute(self.rules(), self.knobs(), SlabSystem::of(self.topology()), spec)
    }

    /// What follows anew when a knob changes: limits, not orders, which a cache keeps for life.
    pub(crate) fn resize_caches(self) {
        for cache in self.own().caches.iter() {
            cache.resize(Limits::of(&self.cache_sizing(&cache.spec)));
            if let Some(watch) = &cache.watch {
                let system = SlabSystem::of(self.topology());
                watch.update(self.rules(), self.knobs(), system, &cache.spec);
            }
        }
    }

    /// Every CPU gets its main sheaf. One for which there is no memory goes without.
    fn give_sheaves(self, id: CacheId) {
        let Some(cache) = self.cache(id).filter(|cache| cache.has_sheaves()) else { return };
        let cx = SlabCx { slabs: self, cache };
        for cpu in &cache.cpus {
            let sheaf = cx.sheaves().new_sheaf().map(Sheaf::empty);
            cpu.local.lock_local(self.machine()).sheaves.main = sheaf;
        }
    }

    /// The cache that sheaves of `capacity` objects are from.
    pub(super) fn sheaf_store(self, capacity: u32) -> Option<SlabCx<'a, M, G>> {
        let bytes = HEADER + POINTER * u64::from(capacity);
        let class = KmallocClass::of(KmallocKind::Normal, u32::try_from(bytes).ok()?)?;
        Some(SlabCx { slabs: self, cache: self.own().class(class)? })
    }

    /// The slab that `at` lies in, if it lies in one.
    #[inline]
    pub(super) fn slab_around(self, at: Addr) -> Option<SlabPlace> {
        let head = at.pfn();
        match self.map().get(head)?.slab_part() {
            SlabPart::Head { cache, order } => Some(SlabPlace { head, cache: CacheId(cache), order }),
            SlabPart::Tail { order } => {
                let head = head.align_down(order);
                match self.map().get(head)?.slab_part() {
                    SlabPart::Head { cache, order } => Some(SlabPlace { head, cache: CacheId(cache), order }),
                    SlabPart::Tail { .. } | SlabPart::None => None,
                }
            }
            SlabPart::None => None,
        }
    }

    /// The first frame of the slab that `at` lies in, if it lies in one: with less to work out than [`Self::slab_around`].
    #[inline]
    pub(super) fn slab_head(self, at: Addr) -> Option<Pfn> {
        let pfn = at.pfn();
        let frame = self.map().get(pfn)?;
        if frame.slab_cache().is_some() {
            return Some(pfn);
        }
        let state = frame.state();
        (state.kind == FrameKind::SlabTail).then(|| pfn.align_down(state.order))
    }

    /// The slab that `at` lies in and its cache.
    #[inline]
    pub(super) fn slab_of(self, at: Addr) -> Option<(SlabCx<'a, M, G>, Pfn)> {
        let place = self.slab_around(at)?;
        Some((SlabCx { slabs: self, cache: self.cache(place.cache)? }, place.head))
    }

    /// The cache of the slab that begins at `head`.
    #[inline]
    pub(super) fn slab_at(self, head: Pfn) -> Option<SlabCx<'a, M, G>> {
        let number = self.map().get(head)?.slab_cache()?;
        let cache = self.own().caches.get(usize::from(number))?;
        Some(SlabCx { slabs: self, cache })
    }
}
