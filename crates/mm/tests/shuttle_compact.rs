//! Schedules of compaction beside allocation, frees, faults, unmapping, forks and pins, explored by shuttle as in
//! `shuttle_vm.rs`: every page holds what was written to it last, and in the end all memory is back.
#![cfg(shuttle)]

mod explored;

use std::sync::atomic::{AtomicU64, Ordering};

use explored::{Cpus, Space, Tiny, assert_met, exit_all, explore_some, join, on_cpu, read, tiny, write};
use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{MapSpec, Touch, Vpn};
use freehold_mm::{Knob, Node, Order, Request, Urgency};
use shuttle::sync::Arc;

/// A schedule goes over a thousand descriptors.
const OF_ZONES: usize = 8;

/// Kernels with other rules for scanners, capture and searches, and ours.
const POLICIES: [&str; 4] = ["linux-3.15", "linux-4.20", "linux-6.18", "freehold"];

/// Pages that hold numbers: 1 to so many.
const KEPT: u32 = 6;

/// A zone of three pageblocks and a bit, with a page here and there in the low ones: between them something was that is
/// free now.
fn in_pieces(policy: &str) -> (Arc<Tiny>, Space, Vpn) {
    let mm = tiny(3 * PAGEBLOCK_PAGES + 100, Cpus::Pinned, policy);
    mm.set_knob(Knob::TransparentHugepage, 0).unwrap();
    let space = mm.spaces().new_space();
    let between = 150;
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(KEPT * between).small()).unwrap();
    mm.spaces().populate(&space, at, KEPT * between, Touch::Write).unwrap();
    for page in 0..KEPT {
        mm.spaces().munmap(&space, at.add(page * between + 1), between - 1);
        write(&mm, &space, at.add(page * between), page + 1);
    }
    mm.lru().lru_drain_all();
    mm.drain_all();
    (mm, space, at)
}

fn kept(at: Vpn, page: u32) -> Vpn {
    at.add(page * 150)
}

fn end(mm: &Tiny, spaces: &[&Space]) {
    exit_all(mm, spaces);
    mm.drain_all();
    // (Frames that pages move to are counted when they are freed and not when they are taken, as in the kernel.)
    let pages = mm.views().check().unwrap();
    let managed = mm.zones().iter().map(|zone| u64::from(zone.managed())).sum();
    assert_eq!((pages.free, pages.pcp, pages.allocated), (managed, 0, 0));
}

/// Pages move to the zone's end while they are written to, one is pinned, and others come and go.
#[test]
fn compaction_beside_faults_and_pins() {
    static MOVED: AtomicU64 = AtomicU64::new(0);
    for policy in POLICIES {
        explore_some(OF_ZONES, move || {
            let (mm, space, at) = in_pieces(policy);
            let compactor = Arc::clone(&mm);
            let writer = (Arc::clone(&mm), Arc::clone(&space));
            let pinner = (Arc::clone(&mm), Arc::clone(&space));
            join(vec![
                on_cpu(0, move || compactor.compaction().compact_node(Node(0))),
                on_cpu(1, move || {
                    let (mm, space) = writer;
                    write(&mm, &space, kept(at, 0), 11);
                    assert_eq!(read(&mm, &space, kept(at, 0)).unwrap(), 11);
                    mm.spaces().munmap(&space, kept(at, 1), 1);
                    let again = mm.spaces().mmap(&space, MapSpec::anonymous(1).small()).unwrap();
                    write(&mm, &space, again, 12);
                    assert_eq!(read(&mm, &space, again).unwrap(), 12);
                }),
                on_cpu(1, move || {
                    let (mm, space) = pinner;
                    let pinned = mm.rmap().pin_page(&space, kept(at, 3), Touch::Write).unwrap();
                    shuttle::thread::yield_now();
                    let now = mm.rmap().pin_page(&space, kept(at, 3), Touch::Read).unwrap();
                    assert_eq!(now.frame(), pinned.frame(), "a pinned page stays");
                    mm.rmap().unpin_page(now);
                    mm.machine().contents[pinned.frame().0 as usize].store(14, Ordering::Relaxed);
                    mm.rmap().unpin_page(pinned);
                }),
            ]);
            MOVED.fetch_add(mm.views().counters().get("compact_pages_moved"), Ordering::Relaxed);
            let seen = [0, 2, 3, 4, 5].map(|page| read(&mm, &space, kept(at, page)).unwrap());
            assert_eq!(seen, [11, 3, 14, 5, 6]);
            end(&mm, &[&space]);
        });
    }
    assert_met(MOVED.load(Ordering::Relaxed));
}

/// Two requests compact for themselves, while single pages are taken and given back; what each gets is its own.
#[test]
fn requests_compact_beside_each_other() {
    static GOT: AtomicU64 = AtomicU64::new(0);
    for policy in POLICIES {
        explore_some(OF_ZONES, move || {
            let (mm, space, at) = in_pieces(policy);
            // What is whole is taken, so that a request must compact.
            let order = Order::new(8).unwrap();
            let never = Request { urgency: Urgency::Never, ..Request::USER };
            let taken: Vec<_> = std::iter::from_fn(|| mm.alloc(never.of_order(order)).ok()).collect();
            let asker = |mm: Arc<Tiny>| {
                move || {
                    let request = Request { urgency: Urgency::TriesHard, ..Request::USER }.of_order(order);
                    if let Ok(pfn) = mm.alloc(request) {
                        GOT.fetch_add(1, Ordering::Relaxed);
                        for page in 0..order.pages() {
                            let owner = &mm.machine().owners[pfn.add(page).0 as usize];
                            assert_eq!(owner.swap(1, Ordering::Relaxed), 0, "handed out twice");
                        }
                        shuttle::thread::yield_now();
                        for page in 0..order.pages() {
                            mm.machine().owners[pfn.add(page).0 as usize].store(0, Ordering::Relaxed);
                        }
                        mm.free(pfn, order).unwrap();
                    }
                }
            };
            let single = Arc::clone(&mm);
            join(vec![
                on_cpu(0, asker(Arc::clone(&mm))),
                on_cpu(1, asker(Arc::clone(&mm))),
                on_cpu(1, move || {
                    for _ in 0..3 {
                        if let Ok(pfn) = single.alloc(Request { urgency: Urgency::NoWait, ..Request::KERNEL })
                        {
                            let owner = &single.machine().owners[pfn.0 as usize];
                            assert_eq!(owner.swap(2, Ordering::Relaxed), 0, "handed out twice");
                            shuttle::thread::yield_now();
                            owner.store(0, Ordering::Relaxed);
                            single.free(pfn, Order::ZERO).unwrap();
                        }
                    }
                }),
            ]);
            for pfn in taken {
                mm.free(pfn, order).unwrap();
            }
            let seen = [0, 1, 2, 3, 4, 5].map(|page| read(&mm, &space, kept(at, page)).unwrap());
            assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
            end(&mm, &[&space]);
        });
    }
    assert_met(GOT.load(Ordering::Relaxed));
}

/// A family forks, ends and writes to shared pages while they move; kswapd and the proactive daemon look on.
#[test]
fn compaction_beside_a_family() {
    static MOVED: AtomicU64 = AtomicU64::new(0);
    for policy in POLICIES {
        explore_some(OF_ZONES, move || {
            let (mm, space, at) = in_pieces(policy);
            let compactor = Arc::clone(&mm);
            let other = Arc::clone(&mm);
            let forker = (Arc::clone(&mm), Arc::clone(&space));
            join(vec![
                on_cpu(0, move || compactor.compaction().compact_node(Node(0))),
                on_cpu(1, move || {
                    other.compaction().compact_proactively(Node(0));
                    other.compaction().kcompactd(Node(0));
                }),
                on_cpu(1, move || {
                    let (mm, space) = forker;
                    let child = mm.spaces().fork(&space).unwrap();
                    write(&mm, &child, kept(at, 2), 33);
                    assert_eq!(
                        (read(&mm, &child, kept(at, 2)).unwrap(), read(&mm, &child, kept(at, 4)).unwrap()),
                        (33, 5)
                    );
                    mm.spaces().exit(&child);
                }),
            ]);
            MOVED.fetch_add(mm.views().counters().get("compact_pages_moved"), Ordering::Relaxed);
            let seen = [0, 1, 2, 3, 4, 5].map(|page| read(&mm, &space, kept(at, page)).unwrap());
            assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
            end(&mm, &[&space]);
        });
    }
    assert_met(MOVED.load(Ordering::Relaxed));
}
