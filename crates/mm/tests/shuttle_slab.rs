//! Schedules of the slab allocator, explored as those of pages are (shuttle.rs): objects that go between two CPUs by
//! every path there is. What is held is held once, keeps what was written to it, and in the end every invariant holds
//! and every page is back but those of CPUs' main sheaves.
#![cfg(shuttle)]

mod explored;

use explored::{Cpus, Tiny, explore, join, on_cpu, on_nodes, tiny};
use freehold_mm::slab::kmalloc::{KmallocClass, KmallocKind};
use freehold_mm::slab::{CacheFlags, CacheId, CacheSpec, SlabEvent};
use freehold_mm::{Addr, Knob, Machine};
use shuttle::sync::{Arc, Mutex};

/// On both sides of every rule's change.
const POLICIES: [&str; 5] = ["linux-6.5", "linux-6.12", "linux-6.18", "linux-7.2", "freehold"];
const FRAMES: u32 = 1024;
/// Objects of which 8 are in a slab, and CPUs keep 2 partial slabs; sheaves, where all have them, hold 4.
const SIZE: u32 = 4096;

/// Sheaves where the policy gives them to who asks, so small that they are soon full and empty.
fn spec() -> CacheSpec {
    CacheSpec::new("explored", SIZE).with_sheaves(2)
}

/// Takes an object for `me`, and writes to it: at its ends, and where a free one holds its link.
fn take(mm: &Tiny, id: CacheId, me: u32) -> Addr {
    let object = mm.slabs().kmem_cache_alloc(id).unwrap();
    hold(mm, object, me);
    object
}

fn hold(mm: &Tiny, object: Addr, me: u32) {
    let other = mm.machine().holders.lock().unwrap().insert(object.0, me);
    assert_eq!(other, None, "{object} was given to {me} while it is {other:?}'s");
    stamps(object).for_each(|at| mm.machine().store(at, stamp(object)));
}

fn stamps(object: Addr) -> impl Iterator<Item = Addr> {
    [0, SIZE / 2, SIZE - 8].into_iter().map(move |offset| object.add(u64::from(offset)))
}

fn stamp(object: Addr) -> u64 {
    !object.0
}

/// The object is nobody's from here on.
fn leave(mm: &Tiny, object: Addr) -> Addr {
    for at in stamps(object) {
        assert_eq!(mm.machine().load(at), stamp(object), "somebody wrote to {object}");
    }
    let owner = mm.machine().holders.lock().unwrap().remove(&object.0);
    assert!(owner.is_some(), "{object} is freed and nobody's");
    object
}

fn free(mm: &Tiny, id: CacheId, object: Addr) {
    mm.slabs().kmem_cache_free(id, leave(mm, object)).unwrap();
}

fn free_all(mm: &Tiny, id: CacheId, objects: impl IntoIterator<Item = Addr>) {
    objects.into_iter().for_each(|object| free(mm, id, object));
}

/// All was freed: it comes back, and every invariant holds on the way.
fn check_whole(mm: &Tiny) {
    mm.slabs().check_caches().unwrap();
    // Sheaves that gather deferred objects begin to wait when they are flushed, and their slabs after that.
    for _ in 0..3 {
        mm.slabs().end_grace_period();
        mm.slabs().end_grace_period();
        mm.slabs().run_all_deferred();
        mm.slabs().shrink_all();
    }
    mm.slabs().check_caches().unwrap();
    let (mut in_use, mut sheaves) = (0, 0);
    for cache in mm.slabs().caches() {
        in_use += mm.slabs().check_cache(cache.id()).unwrap().in_use;
        sheaves += if cache.sizing().sheaf_capacity > 0 { 2 } else { 0 };
    }
    assert_eq!(in_use, sheaves, "objects in use, and CPUs' sheaves");
    mm.drain_all();
    assert_eq!(mm.views().check().unwrap().allocated, mm.slabs().slab_pages());
}

/// Two threads, each on its CPU, do `work` on a cache that `prepare` has made ready.
fn two<T: Clone + Send + 'static>(
    mm: impl Fn() -> Arc<Tiny> + Send + Sync + Clone + 'static,
    prepare: impl Fn(&Tiny, CacheId) -> [T; 2] + Send + Sync + Clone + 'static,
    work: impl Fn(&Tiny, CacheId, u32, T) + Send + Sync + Clone + 'static,
) {
    explore(move || {
        let mm = mm();
        let id = mm.slabs().create_cache(spec()).unwrap();
        let threads = prepare(&mm, id)
            .into_iter()
            .zip(0..)
            .map(|(given, cpu)| {
                let (mm, work) = (Arc::clone(&mm), work.clone());
                on_cpu(cpu, move || work(&mm, id, u32::from(cpu) + 1, given))
            })
            .collect();
        join(threads);
        check_whole(&mm);
    });
}

/// Each allocates, and frees what the other has allocated.
fn exchange(mode: Cpus, policy: &'static str) {
    two(
        move || tiny(FRAMES, mode, policy),
        |_, _| {
            let shelf: Arc<Mutex<Vec<Addr>>> = Arc::default();
            [Arc::clone(&shelf), shelf]
        },
        |mm, id, me, shelf| {
            for _ in 0..3 {
                let object = take(mm, id, me);
                shelf.lock().unwrap().push(object);
                let first = shelf.lock().unwrap().remove(0);
                free(mm, id, first);
            }
        },
    );
}

#[test]
fn objects_cross_cpus() {
    POLICIES.into_iter().for_each(|policy| exchange(Cpus::Pinned, policy));
}

#[test]
fn threads_roam() {
    POLICIES.into_iter().for_each(|policy| exchange(Cpus::Roaming, policy));
}

/// Objects of full slabs: of every slab, some for either CPU to free.
fn full_slabs(mm: &Tiny, id: CacheId, slabs: usize) -> [Vec<Addr>; 2] {
    let mut objects: Vec<Addr> = (0..8 * slabs).map(|_| take(mm, id, 3)).collect();
    objects.sort_unstable_by_key(|object| object.0);
    let (mut first, mut second) = (vec![], vec![]);
    for (number, object) in objects.into_iter().enumerate() {
        match number % 8 {
            // Both free to each slab, and none becomes empty by one of them alone.
            0 | 1 => first.push(object),
            2 | 3 => second.push(object),
            _ => free_later(mm, object),
        }
    }
    [first, second]
}

/// These stay held; `free_late` frees them.
fn free_later(mm: &Tiny, object: Addr) {
    mm.machine().holders.lock().unwrap().insert(object.0, 9);
}

fn free_late(mm: &Tiny, id: CacheId) {
    let late: Vec<Addr> = {
        let holders = mm.machine().holders.lock().unwrap();
        holders.iter().filter(|(_, owner)| **owner == 9).map(|(at, _)| Addr(*at)).collect()
    };
    free_all(mm, id, late);
}

/// CPU partial slabs overflow to the node's list while the other CPU frees to the same slabs and takes from that list.
#[test]
fn partial_slabs_overflow() {
    for policy in ["linux-6.5", "linux-6.12"] {
        two(
            move || tiny(FRAMES, Cpus::Pinned, policy),
            |mm, id| full_slabs(mm, id, 4),
            |mm, id, me, objects| {
                free_all(mm, id, objects);
                let again = [take(mm, id, me), take(mm, id, me)];
                free_all(mm, id, again);
                if me == 1 {
                    free_late(mm, id);
                }
            },
        );
    }
}

/// Both free all there is, so that slabs become empty on whoever's list they are; a node keeps none that is empty.
#[test]
fn slabs_become_empty() {
    for policy in POLICIES {
        two(
            move || tiny(FRAMES, Cpus::Pinned, policy),
            |mm, id| {
                mm.set_knob(Knob::NodePartialScale, 0).unwrap();
                let mut objects: Vec<Addr> = (0..16).map(|_| take(mm, id, 3)).collect();
                objects.sort_unstable_by_key(|object| object.0);
                let is_even = |object: &Addr| object.0 / u64::from(SIZE) % 2 == 0;
                let (even, odd): (Vec<Addr>, Vec<Addr>) = objects.into_iter().partition(is_even);
                [even, odd]
            },
            |mm, id, _, objects| free_all(mm, id, objects),
        );
    }
}

/// The second CPU is on another node: what it frees goes to slabs past its sheaves, while the first refills its own from
/// the same slabs.
#[test]
fn refills_meet_frees() {
    for policy in POLICIES {
        two(
            move || on_nodes(&[FRAMES, FRAMES], Cpus::Pinned, policy),
            |mm, id| {
                let [first, second] = full_slabs(mm, id, 2);
                free_all(mm, id, first);
                mm.slabs().shrink_cache(id).unwrap();
                [vec![], second]
            },
            |mm, id, me, objects| {
                free_all(mm, id, objects);
                let held: Vec<Addr> = (0..6).map(|_| take(mm, id, me)).collect();
                free_all(mm, id, held);
                if me == 2 {
                    free_late(mm, id);
                }
            },
        );
    }
}

/// Full and empty sheaves go between two CPUs and their barn; stocks, through the depot.
#[test]
fn sheaves_change_hands() {
    for policy in ["linux-6.18", "linux-7.2", "freehold"] {
        for mode in [Cpus::Pinned, Cpus::Roaming] {
            two(
                move || tiny(FRAMES, mode, policy),
                |_, _| [(), ()],
                |mm, id, me, ()| {
                    for count in [6, 9] {
                        let held: Vec<Addr> = (0..count).map(|_| take(mm, id, me)).collect();
                        free_all(mm, id, held);
                    }
                },
            );
        }
    }
}

/// One thread's objects wait for grace periods that the other ends; memory that waits is not handed out.
#[test]
fn deferred_frees_meet_who_runs_them() {
    for policy in POLICIES {
        two(
            move || tiny(FRAMES, Cpus::Roaming, policy),
            |mm, id| [(0..5).map(|_| take(mm, id, 3)).collect(), vec![]],
            |mm, id, me, objects: Vec<Addr>| {
                for (number, object) in objects.iter().enumerate() {
                    let object = leave(mm, *object);
                    if number % 2 == 0 {
                        mm.slabs().kfree_rcu(id, object)
                    } else {
                        mm.slabs().free_deferred(id, object)
                    }
                    .unwrap();
                }
                if me == 2 {
                    mm.slabs().end_grace_period();
                    mm.slabs().end_grace_period();
                    mm.slabs().run_all_deferred();
                }
                let held = [take(mm, id, me), take(mm, id, me)];
                mm.slabs().run_deferred(2);
                free_all(mm, id, held);
            },
        );
    }
}

/// The cache is shrunk, its knobs are turned and its stocks are ticked while it is used.
#[test]
fn caches_shrink_in_mid_run() {
    for policy in POLICIES {
        two(
            move || tiny(FRAMES, Cpus::Pinned, policy),
            |mm, id| full_slabs(mm, id, 2),
            |mm, id, me, objects| {
                if me == 1 {
                    let held = [take(mm, id, me), take(mm, id, me), take(mm, id, me)];
                    free_all(mm, id, objects.into_iter().chain(held));
                } else {
                    mm.set_knob(Knob::CpuPartialScale, 0).unwrap();
                    free_all(mm, id, objects);
                    mm.slabs().shrink_cache(id).unwrap();
                    mm.vmstat_tick(freehold_mm::Cpu(0));
                    free_late(mm, id);
                }
            },
        );
    }
}

/// Sheaves are lent, used and brought back; where there are none, many objects are had at once.
#[test]
fn objects_are_set_aside() {
    for policy in POLICIES {
        two(
            move || tiny(FRAMES, Cpus::Roaming, policy),
            |_, _| [2, 5],
            |mm, id, me, count| {
                let mut held = vec![];
                match mm.slabs().prefill_sheaf(id, count) {
                    Ok(mut lent) => {
                        held.extend((1..count).map(|_| mm.slabs().alloc_from_sheaf(&mut lent).unwrap()));
                        held.iter().for_each(|object| hold(mm, *object, me));
                        mm.slabs().return_sheaf(lent);
                    }
                    Err(_) => {
                        let put = |object| {
                            hold(mm, object, me);
                            held.push(object);
                        };
                        mm.slabs().kmem_cache_alloc_bulk(id, count, put).unwrap();
                    }
                }
                for object in &held {
                    leave(mm, *object);
                }
                mm.slabs().kmem_cache_free_bulk(id, &mut held).unwrap();
            },
        );
    }
}

/// Both make caches at once, some of which are one, and `kmalloc`'s too.
#[test]
fn caches_are_made_at_once() {
    for policy in ["linux-6.12", "linux-7.2"] {
        explore(move || {
            let mm = tiny(FRAMES, Cpus::Pinned, policy);
            let made: Arc<Mutex<Vec<CacheId>>> = Arc::default();
            let threads = [("one", 100), ("other", 104)]
                .into_iter()
                .zip(0..)
                .map(|((name, size), cpu)| {
                    let (mm, made) = (Arc::clone(&mm), Arc::clone(&made));
                    on_cpu(cpu, move || {
                        let object = mm.slabs().kmalloc(KmallocKind::Accounted, size).unwrap();
                        let spec = CacheSpec::new(name, size);
                        let [shared, own] = [spec.clone(), spec.with(CacheFlags::NO_MERGE)]
                            .map(|spec| mm.slabs().create_cache(spec).unwrap());
                        made.lock().unwrap().extend([shared, own]);
                        for id in [shared, own] {
                            let object = mm.slabs().kmem_cache_alloc(id).unwrap();
                            mm.slabs().kmem_cache_free(id, object).unwrap();
                        }
                        mm.slabs().kfree(object).unwrap();
                    })
                })
                .collect();
            join(threads);
            let mut made = std::mem::take(&mut *made.lock().unwrap());
            made.sort_unstable();
            made.dedup();
            assert_eq!(made.len(), 3, "100 and 104 bytes share slabs unless they must not");
            let rows = [KmallocKind::Normal, KmallocKind::Accounted];
            let classes = rows.into_iter().flat_map(KmallocClass::row).count();
            assert_eq!(mm.slabs().caches().count(), made.len() + classes);
            check_whole(&mm);
        });
    }
}

/// An object that is freed twice at once is found once, and handed out once.
#[test]
fn a_double_free_is_found_from_two_sides() {
    for policy in ["linux-6.12", "linux-7.2", "freehold"] {
        explore(move || {
            let mm = tiny(FRAMES, Cpus::Pinned, policy);
            let id = mm.slabs().create_cache(CacheSpec::new("watched", 60).with(CacheFlags::DEBUG)).unwrap();
            let object = mm.slabs().kmem_cache_alloc(id).unwrap();
            let found: Arc<Mutex<u32>> = Arc::default();
            let threads = (0..2)
                .map(|cpu| {
                    let (mm, found) = (Arc::clone(&mm), Arc::clone(&found));
                    on_cpu(cpu, move || {
                        let refused = mm.slabs().kmem_cache_free(id, object).is_err();
                        *found.lock().unwrap() += u32::from(refused);
                    })
                })
                .collect();
            join(threads);
            assert_eq!(*found.lock().unwrap(), 1);
            let frees: u64 = mm.slabs().slab_events(id, SlabEvent::FreeSlowpath).iter().sum();
            assert_eq!(frees, 1);
            check_whole(&mm);
        });
    }
}
