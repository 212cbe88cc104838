//! Objects through the library's front door.

use freehold_host::{Host, Object};
use mm::slab::{CacheFlags, CacheSpec, SlabError};
use mm::{Knobs, Policy};

const MIB: u64 = 1 << 20;
const POLICIES: [&str; 5] = ["linux-6.5", "linux-6.12", "linux-6.18", "linux-7.2", "freehold"];

fn host(policy: &str) -> Host {
    Host::new(64 * MIB, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
}

/// Every object is back: gives back all that is held for speed. Sheaves that gather deferred objects begin to wait when
/// they are flushed, and the slabs of their objects after that.
fn give_back(host: &Host) {
    for _ in 0..3 {
        host.end_grace_period();
        host.end_grace_period();
        host.run_all_deferred();
        host.shrink_caches();
    }
    host.check().unwrap();
}

#[test]
fn objects_are_aligned_writable_and_apart() {
    for policy in POLICIES {
        let host = host(policy);
        let specs = [
            CacheSpec::new("byte", 1),
            CacheSpec::new("line", 64).with(CacheFlags::CACHE_ALIGNED),
            CacheSpec::new("constructed", 100).with(CacheFlags::CONSTRUCTOR),
            CacheSpec::new("node", 256).aligned(256).with_sheaves(32),
            CacheSpec::new("watched", 60).with(CacheFlags::DEBUG),
            CacheSpec::new("pages", 9000).aligned(4096),
        ];
        let caches: Vec<_> =
            specs.into_iter().map(|spec| (spec.alignment(), host.cache(spec).unwrap())).collect();
        let mut held = vec![];
        for (number, &(align, cache)) in (0u8..200).zip(caches.iter().cycle()) {
            let mut object = cache.alloc().unwrap();
            assert_eq!(object.len(), cache.object_size() as usize);
            assert_eq!(object.address().as_ptr().align_offset(align as usize), 0, "{policy}: {object:?}");
            object.fill(number);
            held.push(object);
        }
        for (number, object) in (0u8..).zip(&held) {
            assert!(object.iter().all(|&byte| byte == number), "{policy}: {object:?}");
        }
        host.check().unwrap();
        drop(held);
        give_back(&host);
        for (_, cache) in caches {
            let used = cache.check().unwrap();
            assert_eq!((used.in_use, used.slabs), (0, 0), "{policy}: {cache:?}");
        }
    }
}

#[test]
fn kmalloc_gives_as_many_bytes_as_were_asked_for() {
    let host = host("linux-7.2");
    for size in [1, 8, 65, 192, 1000, 8192] {
        assert_eq!(host.kmalloc(size).unwrap().len(), size as usize);
    }
    for size in [0, 8193, u32::MAX] {
        assert_eq!(host.kmalloc(size).unwrap_err(), SlabError::Size(size));
    }
    assert!(host.cache(CacheSpec::new("none", 0)).is_err());
    host.check().unwrap();
}

#[test]
fn many_at_once_and_objects_of_another_cache_among_them() {
    for policy in POLICIES {
        let (host, elsewhere) = (host(policy), host(policy));
        let cache = host.cache(CacheSpec::new("many", 128)).unwrap();
        let mut objects = vec![];
        cache.alloc_many(500, &mut objects).unwrap();
        assert_eq!(objects.len(), 500);
        objects.insert(250, host.kmalloc(32).unwrap());
        objects.insert(100, elsewhere.cache(CacheSpec::new("many", 128)).unwrap().alloc().unwrap());
        cache.free_many(objects);
        assert_eq!(cache.check().unwrap().in_use, 0, "{policy}");
        give_back(&host);
        give_back(&elsewhere);
    }
}

#[test]
fn deferred_objects_come_back_after_a_grace_period() {
    for policy in POLICIES {
        let host = host(policy);
        let cache = host.cache(CacheSpec::new("deferred", 200).with(CacheFlags::TYPESAFE_BY_RCU)).unwrap();
        let objects: Vec<Object> = (0..100).map(|_| cache.alloc().unwrap()).collect();
        objects.into_iter().for_each(Object::defer);
        host.run_all_deferred();
        let used = cache.check().unwrap();
        assert_eq!(
            used.in_use.max(used.deferred),
            100,
            "{policy}: nobody said that a grace period has ended"
        );
        give_back(&host);
        assert_eq!(cache.check().unwrap().slabs, 0, "{policy}");
    }
}

#[test]
fn what_is_set_aside_is_there() {
    for policy in POLICIES {
        let host = host(policy);
        let cache = host.cache(CacheSpec::new("aside", 168).with_sheaves(32)).unwrap();
        for count in [1, 32, 500] {
            let mut aside = match cache.prefill(count) {
                Ok(aside) => aside,
                Err(error) => {
                    assert_eq!(error, SlabError::NoSheaves(cache.id()), "{policy}");
                    continue;
                }
            };
            assert!(aside.len() >= count, "{policy}");
            let taken: Vec<Object> = (0..count / 2).map(|_| aside.take().unwrap()).collect();
            drop(aside);
            drop(taken);
        }
        assert!(cache.prefill(u32::MAX).is_err());
        give_back(&host);
        assert_eq!(cache.check().unwrap().slabs, 0, "{policy}");
    }
}

#[test]
fn objects_are_freed_by_other_threads() {
    for policy in POLICIES {
        let host = host(policy);
        let cache = host.cache(CacheSpec::new("handed over", 64)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let objects: Vec<Object> = (0..5000).map(|_| cache.alloc().unwrap()).collect();
                scope.spawn(move || drop(objects));
            }
        });
        assert_eq!(cache.check().unwrap().in_use, 0, "{policy}");
        give_back(&host);
    }
}
