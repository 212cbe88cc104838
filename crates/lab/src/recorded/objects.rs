//! Slab objects of a recording: which cache each comes from, and which free belongs to which allocation.

use std::collections::{BTreeSet, HashMap, HashSet};

use mm::slab::kmalloc::KmallocClass;
use mm::slab::{CacheFlags, CacheSpec};
use trace::{Gfp, NameId, slabs};

use super::ops::{ObjectCache, ObjectId, Omissions};

/// Caches that a workload may have; the memory manager takes 4096, those of `kmalloc` among them.
const CACHES_MAX: usize = 3_500;
/// Addresses up to this stand for no object: `kfree` of nothing, and of an object of no size.
const NO_OBJECT_MAX: u64 = 16;

/// What a recorded allocation says of its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub(super) cache: NameId,
    pub(super) requested: u32,
    pub(super) allocated: u32,
    pub(super) gfp: Gfp,
}

/// An object that is held at this point of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    pub(super) object: ObjectId,
    /// The recorded task that got it.
    pub(super) owner: usize,
}

/// What a free gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Freed {
    /// An object of the workload's.
    Object(Held),
    /// Nothing: no object, or whole pages, which have events of their own.
    Nothing,
    /// An object that the recording does not know of.
    Unknown,
}

/// What tells caches apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Kmalloc(KmallocClass),
    Named { name: NameId, requested: u32, allocated: u32 },
}

/// The objects held, by address, and the caches seen.
#[derive(Debug, Default)]
pub(super) struct Objects {
    names: Vec<String>,
    reclaimable: BTreeSet<NameId>,
    caches: Vec<ObjectCache>,
    /// For each cache its number; none where there can be no such cache.
    numbers: HashMap<Key, Option<u16>>,
    /// Bytes that an object of each name took when first seen.
    sizes: HashMap<NameId, u32>,
    held: HashMap<u64, Held>,
    /// Objects that are blocks of pages.
    large: HashSet<u64>,
    next: u32,
}

impl Objects {
    /// For a recording with these names, in which slabs of some caches are of reclaimable pages.
    pub(super) fn new(names: Vec<String>, reclaimable: BTreeSet<NameId>) -> Self {
        Self { names, reclaimable, ..Self::default() }
    }

    /// The caches, by number, and how many objects there were.
    pub(super) fn finish(self) -> (Vec<ObjectCache>, u32) {
        (self.caches, self.next)
    }

    /// The number of the cache that an object is from; `None` if it is from none that can be played.
    pub(super) fn cache(&mut self, asked: Asked, omissions: &mut Omissions) -> Option<u16> {
        let key = key(asked);
        if let Key::Named { name, allocated, .. } = key {
            let first = *self.sizes.entry(name).or_insert(allocated);
            let is_unnamed = self.names.get(name.0 as usize).is_none_or(String::is_empty);
            omissions.objects_of_unnamed_caches += u64::from(is_unnamed);
            omissions.objects_of_another_size += u64::from(!is_unnamed && allocated != first);
        }
        let number = if let Some(number) = self.numbers.get(&key) {
            *number
        } else {
            let number = self.add(key);
            self.numbers.insert(key, number);
            number
        };
        omissions.objects_of_impossible_caches += u64::from(number.is_none());
        number
    }

    fn add(&mut self, key: Key) -> Option<u16> {
        let cache = match key {
            Key::Kmalloc(class) => ObjectCache::Kmalloc(class),
            Key::Named { name, requested, allocated } => {
                let spec = self.spec(name, requested, allocated);
                spec.check().ok()?;
                ObjectCache::Named(spec)
            }
        };
        if self.caches.len() >= CACHES_MAX {
            return None;
        }
        self.caches.push(cache);
        Some((self.caches.len() - 1) as u16)
    }

    /// The recorded kernel has merged what it merges; what it kept apart stays apart.
    fn spec(&self, name: NameId, requested: u32, allocated: u32) -> CacheSpec {
        let text = match self.names.get(name.0 as usize).map(String::as_str) {
            None | Some("") => format!("unnamed-{allocated}"),
            Some(text) => text.to_owned(),
        };
        let mut flags = CacheFlags::NO_MERGE;
        if self.reclaimable.contains(&name) {
            flags = flags.with(CacheFlags::RECLAIMABLE);
        }
        CacheSpec { slab_size: Some(allocated), ..CacheSpec::new(&text, requested).with(flags) }
    }

    /// Task `owner` got the object at `address`. Gives its number, and who held that address until now: the free is
    /// missing from the recording.
    pub(super) fn alloc(&mut self, address: u64, owner: usize) -> (ObjectId, Option<Held>) {
        let object = ObjectId(self.next);
        self.next += 1;
        self.large.remove(&address);
        (object, self.held.insert(address, Held { object, owner }))
    }

    /// Somebody outside of the workload got the object at `address`: who held it gave it back before.
    pub(super) fn forget(&mut self, address: u64) -> Option<Held> {
        self.held.remove(&address)
    }

    /// Whole pages were handed out as an object.
    pub(super) fn alloc_large(&mut self, address: u64) {
        self.large.insert(address);
    }

    /// The object at `address` was freed.
    pub(super) fn free(&mut self, address: u64) -> Freed {
        match self.held.remove(&address) {
            Some(held) => Freed::Object(held),
            None if address <= NO_OBJECT_MAX || self.large.remove(&address) => Freed::Nothing,
            None => Freed::Unknown,
        }
    }
}

/// An object without a cache's name is `kmalloc`'s, if it has the size of one of its classes.
fn key(asked: Asked) -> Key {
    let Asked { cache, requested, allocated, gfp } = asked;
    if let Some(class) = slabs::kmalloc_class(cache, allocated, gfp) {
        return Key::Kmalloc(class);
    }
    // Without a name, what was asked for would make a cache of each size that somebody asks for.
    let requested = if cache == NameId::NONE { allocated } else { requested };
    Key::Named { name: cache, requested, allocated }
}

/// Whether the object is whole pages, which have events of their own.
pub(super) fn is_large(asked: Asked) -> bool {
    slabs::is_large(asked.cache, asked.allocated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(cache: u32, requested: u32, allocated: u32, gfp: Gfp) -> Asked {
        Asked { cache: NameId(cache), requested, allocated, gfp }
    }

    fn objects() -> Objects {
        Objects::new(vec![String::new(), "dentry".into()], [NameId(1)].into())
    }

    #[test]
    fn kmalloc_is_told_by_size_and_flags() {
        let (mut objects, mut omissions) = (objects(), Omissions::default());
        for gfp in [Gfp::KERNEL, Gfp::KERNEL | Gfp::ACCOUNT, Gfp::RECLAIMABLE | Gfp::ACCOUNT, Gfp::DMA] {
            objects.cache(asked(0, 60, 64, gfp), &mut omissions).unwrap();
        }
        objects.cache(asked(0, 33, 64, Gfp::KERNEL), &mut omissions).unwrap();
        let names: Vec<String> = objects.finish().0.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["kmalloc-64", "kmalloc-cg-64", "kmalloc-rcl-64", "dma-kmalloc-64"]);
        assert_eq!(omissions, Omissions::default());
    }

    #[test]
    fn a_named_cache_has_the_size_that_was_recorded() {
        let (mut objects, mut omissions) = (objects(), Omissions::default());
        assert_eq!(objects.cache(asked(1, 190, 192, Gfp::KERNEL), &mut omissions), Some(0));
        assert_eq!(objects.cache(asked(1, 190, 192, Gfp::KERNEL), &mut omissions), Some(0));
        let ObjectCache::Named(spec) = &objects.caches[0] else { panic!("{:?}", objects.caches) };
        assert_eq!((spec.name.as_str(), spec.object_size, spec.stride()), ("dentry", 190, 192));
        assert!(spec.flags.has(CacheFlags::RECLAIMABLE.with(CacheFlags::NO_MERGE)));
    }

    #[test]
    fn what_is_odd_is_counted() {
        let (mut objects, mut omissions) = (objects(), Omissions::default());
        assert_eq!(objects.cache(asked(1, 192, 192, Gfp::KERNEL), &mut omissions), Some(0));
        assert_eq!(objects.cache(asked(1, 200, 256, Gfp::KERNEL), &mut omissions), Some(1));
        assert_eq!(objects.cache(asked(9, 24, 24, Gfp::KERNEL), &mut omissions), Some(2), "a name too many");
        assert_eq!(objects.cache(asked(0, 20, 40, Gfp::KERNEL), &mut omissions), Some(3), "no class");
        assert_eq!(objects.cache(asked(1, 0, 192, Gfp::KERNEL), &mut omissions), None);
        assert_eq!(objects.cache(asked(1, 192, 8, Gfp::KERNEL), &mut omissions), None);
        assert_eq!(objects.cache(asked(1, u32::MAX, u32::MAX, Gfp::KERNEL), &mut omissions), None);
        assert_eq!(omissions.objects_of_unnamed_caches, 2);
        assert_eq!(omissions.objects_of_another_size, 3);
        assert_eq!(omissions.objects_of_impossible_caches, 3);
    }

    #[test]
    fn there_are_only_so_many_caches() {
        let (mut objects, mut omissions) = (objects(), Omissions::default());
        let sizes = (1..=CACHES_MAX as u32 + 5).map(|size| size * 8);
        let got =
            sizes.filter(|&size| objects.cache(asked(1, size, size, Gfp::NONE), &mut omissions).is_some());
        assert_eq!(got.count(), CACHES_MAX);
        assert_eq!(omissions.objects_of_impossible_caches, 5);
    }

    #[test]
    fn frees_find_their_objects() {
        let mut objects = objects();
        let (first, displaced) = objects.alloc(0x1000, 1);
        assert_eq!(displaced, None);
        let (second, displaced) = objects.alloc(0x1000, 2);
        assert_eq!(displaced, Some(Held { object: first, owner: 1 }));
        assert_eq!(objects.free(0x1000), Freed::Object(Held { object: second, owner: 2 }));
        assert_eq!(objects.free(0x1000), Freed::Unknown);
        assert_eq!((objects.free(0), objects.free(16)), (Freed::Nothing, Freed::Nothing));
        objects.alloc_large(0x8000);
        assert_eq!((objects.free(0x8000), objects.free(0x8000)), (Freed::Nothing, Freed::Unknown));
    }
}
