//! The allocators whose objects are measured.

use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use mm::ids::PAGE_SHIFT;
use mm::policy::SheafRule;
use mm::slab::{CacheFlags, CacheId, CacheSpec};
use mm::{Addr, Knobs, Mm, Policy};

use super::OBJECT_SIZE;
use super::ring::{PLACES, Ring};
use crate::host::{Host, HostError};
use crate::machine::HostMachine;

/// Objects that go through a door at a time in bulk.
const BATCH: usize = 64;
/// Objects of a sheaf where the cache has to ask for them: as many as 7.0 and later give to caches of this size.
const ASKED_SHEAF: u32 = 60;
/// No object begins there.
const NO_OBJECT: u64 = u64::MAX;

/// Something that hands out objects of [`OBJECT_SIZE`] bytes. What a measurement does over and over is in here, so that
/// it is compiled for each source by itself.
pub(super) trait ObjectSource: Sync {
    /// The name in tables.
    fn name(&self) -> &str;

    /// An object; where there is none, a number that [`Self::free`] bears.
    fn alloc(&self) -> u64;

    fn free(&self, object: u64);

    /// Allocates an object and frees it, `pairs` times.
    fn hot_pairs(&self, pairs: u32);

    /// Adds objects until `objects` is as long as its capacity, or there are no more.
    fn get(&self, objects: &mut Vec<Addr>);

    /// Frees `objects`.
    fn put(&self, objects: &mut Vec<Addr>);

    /// Where an object is; `None` for what stands for none.
    fn address(&self, object: u64) -> Option<NonNull<u64>>;

    /// Allocates `count` objects, writes a word to each, and puts them into the ring.
    fn produce(&self, ring: &Ring, count: u32);

    /// Reads a word of the `count` objects that come out of the ring, and frees them.
    fn consume(&self, ring: &Ring, count: u32);
}

/// What needs no more than [`ObjectSource::alloc`] and [`ObjectSource::free`], written out for each source.
macro_rules! one_by_one {
    () => {
        fn hot_pairs(&self, pairs: u32) {
            for _ in 0..pairs {
                self.free(black_box(self.alloc()));
            }
        }

        fn produce(&self, ring: &Ring, count: u32) {
            ring.produce(count, || {
                let object = self.alloc();
                if let Some(word) = self.address(object) {
                    // SAFETY: the object is this thread's until it is in the ring, and begins with a word.
                    unsafe { word.write_volatile(object) };
                }
                object
            });
        }

        fn consume(&self, ring: &Ring, count: u32) {
            ring.consume(count, |object| {
                if let Some(word) = self.address(object) {
                    // SAFETY: out of the ring the object is this thread's, and its word was written before that.
                    black_box(unsafe { word.read_volatile() });
                }
                self.free(object);
            });
        }
    };
}

/// This allocator, called as its machine calls it, without owners around objects.
#[derive(Debug)]
pub(super) struct FreeholdObjects {
    name: String,
    mm: Arc<Mm<HostMachine>>,
    cache: CacheId,
    // After `mm`: the daemons tick as they would in use.
    _host: Host,
}

impl FreeholdObjects {
    /// A cache under `policy` whose users hold `objects` at most at a time; where caches have sheaves only if they ask,
    /// also one that does.
    pub(super) fn all_of(policy: &Policy, objects: u64) -> Result<Vec<Self>, HostError> {
        let spec = CacheSpec::new("bench", OBJECT_SIZE).with(CacheFlags::NO_MERGE);
        let mut all = vec![Self::new(policy.name().to_owned(), policy, objects, spec.clone())?];
        if policy.rules().slab.sheaves == SheafRule::OptIn {
            let name = format!("{} (sheaves)", policy.name());
            all.push(Self::new(name, policy, objects, spec.with_sheaves(ASKED_SHEAF))?);
        }
        Ok(all)
    }

    fn new(name: String, policy: &Policy, objects: u64, spec: CacheSpec) -> Result<Self, HostError> {
        let pages = (objects * u64::from(OBJECT_SIZE)) >> PAGE_SHIFT;
        let host = Host::new((2 * pages + 16_384) << PAGE_SHIFT, policy.clone(), Knobs::default())?;
        // SAFETY: this is the host's only user, and it frees what it allocated here.
        let mm = Arc::clone(unsafe { host.mm() });
        let cache = mm.slabs().create_cache(spec).map_err(|error| HostError::Cache(error.to_string()))?;
        Ok(Self { name, mm, cache, _host: host })
    }
}

impl ObjectSource for FreeholdObjects {
    one_by_one!();

    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn alloc(&self) -> u64 {
        self.mm.slabs().kmem_cache_alloc(self.cache).map_or(NO_OBJECT, |object| object.0)
    }

    #[inline]
    fn free(&self, object: u64) {
        let freed = self.mm.slabs().kmem_cache_free(self.cache, Addr(object));
        debug_assert!(freed.is_ok() || object == NO_OBJECT);
    }

    #[inline]
    fn address(&self, object: u64) -> Option<NonNull<u64>> {
        let arena = self.mm.machine().arena();
        (object != NO_OBJECT).then(|| arena.object(Addr(object), OBJECT_SIZE).cast())
    }

    fn get(&self, objects: &mut Vec<Addr>) {
        while objects.len() < objects.capacity() {
            let batch = (objects.capacity() - objects.len()).min(BATCH) as u32;
            if self
                .mm
                .slabs()
                .kmem_cache_alloc_bulk(self.cache, batch, |object| objects.push(object))
                .is_err()
            {
                return;
            }
        }
    }

    fn put(&self, objects: &mut Vec<Addr>) {
        for batch in objects.chunks_mut(BATCH) {
            let freed = self.mm.slabs().kmem_cache_free_bulk(self.cache, batch);
            debug_assert_eq!(freed, Ok(()));
        }
        objects.clear();
    }
}

/// The C library.
#[derive(Clone, Copy, Debug)]
pub(super) struct MallocObjects;

impl ObjectSource for MallocObjects {
    one_by_one!();

    fn name(&self) -> &'static str {
        "malloc"
    }

    #[inline]
    fn alloc(&self) -> u64 {
        // SAFETY: the call has no preconditions.
        unsafe { libc::malloc(OBJECT_SIZE as usize) }.expose_provenance() as u64
    }

    #[inline]
    fn free(&self, object: u64) {
        // SAFETY: callers pass what `alloc` gave, each once; a null pointer may be freed.
        unsafe { libc::free(std::ptr::with_exposed_provenance_mut(object as usize)) };
    }

    #[inline]
    fn address(&self, object: u64) -> Option<NonNull<u64>> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(object as usize))
    }

    fn get(&self, objects: &mut Vec<Addr>) {
        while objects.len() < objects.capacity() {
            objects.push(Addr(self.alloc()));
        }
    }

    fn put(&self, objects: &mut Vec<Addr>) {
        objects.drain(..).for_each(|object| self.free(object.0));
    }
}

/// No allocator at all: places in a row go through the ring, one after the other.
#[derive(Debug)]
pub(super) struct RingAlone {
    objects: Box<[[AtomicU64; OBJECT_SIZE as usize / 8]]>,
    next: AtomicUsize,
}

impl RingAlone {
    /// With more objects than the ring has places, so that none is there twice at a time.
    pub(super) fn new() -> Self {
        let object = |_| std::array::from_fn(|_| AtomicU64::new(0));
        Self { objects: (0..2 * PLACES).map(object).collect(), next: AtomicUsize::new(0) }
    }
}

impl ObjectSource for RingAlone {
    one_by_one!();

    fn name(&self) -> &'static str {
        "ring alone"
    }

    #[inline]
    fn alloc(&self) -> u64 {
        // The producer's alone.
        let next = self.next.load(Relaxed);
        self.next.store(next + 1, Relaxed);
        (next % self.objects.len()) as u64
    }

    #[inline]
    fn free(&self, object: u64) {
        black_box(object);
    }

    #[inline]
    fn address(&self, object: u64) -> Option<NonNull<u64>> {
        NonNull::new(self.objects[object as usize][0].as_ptr())
    }

    fn get(&self, objects: &mut Vec<Addr>) {
        objects.resize(objects.capacity(), Addr(0));
    }

    fn put(&self, objects: &mut Vec<Addr>) {
        objects.clear();
    }
}
