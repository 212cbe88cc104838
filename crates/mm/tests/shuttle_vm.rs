//! Schedules of address spaces explored by shuttle, as in `shuttle.rs`: threads fault, unmap, map again, fork, exit, move
//! and split pages of the same address space or of one family, write and read files and end them, while reclaim takes
//! what it can. Every frame holds one number, so that a page that is lost, shared when it should not be, or copied too
//! early is seen; in the end every reference is counted and all memory is back.
#![cfg(shuttle)]

mod explored;

use std::sync::atomic::{AtomicU64, Ordering};

use explored::{
    Cpus, Space, Tiny, assert_met, check_whole, explore, explore_some, join, on_cpu, on_nodes, read, tiny,
    write,
};
use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{FileKind, MapSpec, Placement, SwapDevice, Touch, Vpn};
use freehold_mm::{Knob, Machine, MigrateError, Nanos, Node};
use shuttle::sync::Arc;

/// All address spaces and files have ended.
fn end(mm: &Tiny) {
    mm.spaces().check_vm().unwrap();
    mm.lru().lru_drain_all();
    mm.spaces().check_vm().unwrap();
    assert_eq!(
        (mm.spaces().all_spaces().len(), mm.spaces().committed_pages(), mm.spaces().swap_pages().0),
        (0, 0, 0)
    );
    check_whole(mm);
}

fn small(mm: &Tiny, pages: u32) -> (Space, Vpn) {
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    (space, at)
}

/// What is mapped where something else was unmapped a moment ago keeps its pages, while faults go on beside it.
#[test]
fn a_region_in_the_place_of_one_that_goes() {
    for policy in ["linux-6.18", "linux-4.4"] {
        explore(move || {
            let mm = tiny(32, Cpus::Pinned, policy);
            let (space, at) = small(&mm, 3);
            write(&mm, &space, at.add(1), 7);
            let faulter = (Arc::clone(&mm), Arc::clone(&space));
            let unmapper = (Arc::clone(&mm), Arc::clone(&space));
            let mapper = (Arc::clone(&mm), Arc::clone(&space));
            join(vec![
                on_cpu(0, move || {
                    let (mm, space) = faulter;
                    (0..3).for_each(|page| {
                        let _ = mm.spaces().touch_page(&space, at.add(page), Touch::Write);
                    });
                }),
                on_cpu(1, move || {
                    let (mm, space) = unmapper;
                    mm.spaces().munmap(&space, at.add(1), 2);
                }),
                on_cpu(1, move || {
                    let (mm, space) = mapper;
                    let new = mm.spaces().mmap(&space, MapSpec::anonymous(2).small()).unwrap();
                    assert_eq!(read(&mm, &space, new), Ok(0));
                    write(&mm, &space, new, 9);
                    assert_eq!(read(&mm, &space, new), Ok(9));
                    mm.spaces().munmap(&space, new, 2);
                }),
            ]);
            mm.spaces().exit(&space);
            end(&mm);
        });
    }
}

/// A page that was just installed is unmapped at once by another thread.
#[test]
fn a_page_that_goes_as_it_comes() {
    explore(|| {
        let mm = tiny(32, Cpus::Pinned, "linux-6.18");
        let file = mm.files().new_file(FileKind::Disk);
        let (space, at) = small(&mm, 2);
        let shared = mm.spaces().mmap(&space, MapSpec::shared(&file, 2)).unwrap();
        let faulter = (Arc::clone(&mm), Arc::clone(&space));
        let unmapper = (Arc::clone(&mm), Arc::clone(&space));
        let dropper = (Arc::clone(&mm), Arc::clone(&file));
        join(vec![
            on_cpu(0, move || {
                let (mm, space) = faulter;
                let _ = mm.spaces().touch_page(&space, at, Touch::Write);
                let _ = mm.spaces().touch_page(&space, shared, Touch::Read);
                let _ = mm.spaces().touch_page(&space, shared, Touch::Write);
            }),
            on_cpu(1, move || {
                let (mm, space) = unmapper;
                mm.spaces().munmap(&space, at, 2);
                mm.spaces().munmap(&space, shared, 2);
                // Somebody else's page, maybe in the frame that was given back.
                let (mm, file) = dropper;
                mm.files().read_file(&file, 7, Placement::default()).unwrap();
            }),
        ]);
        mm.spaces().exit(&space);
        mm.files().drop_file(&file);
        end(&mm);
    });
}

/// The parent's pages are written to, unmapped and faulted in while it forks; the child lives and ends beside that.
#[test]
fn fork_beside_the_parents_faults() {
    explore(|| {
        let mm = tiny(32, Cpus::Pinned, "linux-6.18");
        let (space, at) = small(&mm, 3);
        write(&mm, &space, at, 1);
        let forker = (Arc::clone(&mm), Arc::clone(&space));
        let writer = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                let (mm, space) = forker;
                let child = mm.spaces().fork(&space).unwrap();
                write(&mm, &child, at, 5);
                assert_eq!(read(&mm, &child, at), Ok(5));
                mm.spaces().exit(&child);
            }),
            on_cpu(1, move || {
                let (mm, space) = writer;
                let _ = mm.spaces().touch_page(&space, at.add(1), Touch::Write);
                mm.spaces().munmap(&space, at.add(2), 1);
                assert_eq!(read(&mm, &space, at), Ok(1));
            }),
        ]);
        assert_eq!(read(&mm, &space, at), Ok(1));
        mm.spaces().exit(&space);
        end(&mm);
    });
}

/// Two threads of a process that has forked write to a page that it shares, while it forks again.
#[test]
fn copies_are_of_what_was_written_last() {
    explore(|| {
        let mm = tiny(32, Cpus::Pinned, "linux-6.18");
        let (space, at) = small(&mm, 1);
        write(&mm, &space, at, 1);
        let child = mm.spaces().fork(&space).unwrap();
        let toucher = (Arc::clone(&mm), Arc::clone(&space));
        let ender = (Arc::clone(&mm), Arc::clone(&child));
        let writer = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                let _ = toucher.0.spaces().touch_page(&toucher.1, at, Touch::Write);
            }),
            on_cpu(1, move || ender.0.spaces().exit(&ender.1)),
            on_cpu(1, move || {
                let (mm, space) = writer;
                write(&mm, &space, at, 2);
                let child = mm.spaces().fork(&space).unwrap();
                assert_eq!(read(&mm, &child, at), Ok(2));
                mm.spaces().exit(&child);
            }),
        ]);
        assert_eq!(read(&mm, &space, at), Ok(2));
        mm.spaces().exit(&space);
        end(&mm);
    });
}

/// A page that a family shares moves while its members write to it, fork and end.
#[test]
fn a_shared_page_that_moves() {
    static MOVED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = on_nodes(&[24, 24], Cpus::Pinned, "linux-6.18");
        let (parent, at) = small(&mm, 2);
        write(&mm, &parent, at, 1);
        write(&mm, &parent, at.add(1), 1);
        let child = mm.spaces().fork(&parent).unwrap();
        mm.lru().lru_drain_all();
        let mover = (Arc::clone(&mm), Arc::clone(&parent));
        let writer = (Arc::clone(&mm), Arc::clone(&child));
        let forker = (Arc::clone(&mm), Arc::clone(&parent));
        join(vec![
            on_cpu(0, move || {
                let (mm, space) = mover;
                for page in 0..2 {
                    let moved = mm.rmap().move_page(&space, at.add(page), Node(1));
                    MOVED.fetch_add(u64::from(moved.is_ok()), Ordering::Relaxed);
                    assert_ne!(moved, Err(MigrateError::Unmovable));
                }
            }),
            on_cpu(1, move || {
                let (mm, space) = writer;
                write(&mm, &space, at, 2);
                assert_eq!(read(&mm, &space, at), Ok(2));
            }),
            on_cpu(0, move || {
                let (mm, space) = forker;
                let third = mm.spaces().fork(&space).unwrap();
                assert_eq!(read(&mm, &third, at), Ok(1));
                write(&mm, &third, at.add(1), 3);
                mm.spaces().exit(&third);
            }),
        ]);
        let seen =
            [(&parent, at), (&child, at), (&parent, at.add(1))].map(|(space, at)| read(&mm, space, at));
        assert_eq!(seen, [Ok(1), Ok(2), Ok(1)]);
        mm.spaces().check_vm().unwrap();
        mm.spaces().exit(&parent);
        mm.spaces().exit(&child);
        end(&mm);
    });
    assert_met(MOVED.load(Ordering::Relaxed));
}

/// Anonymous pages go to swap and come back while they are forked, written to and unmapped.
#[test]
fn swap_beside_a_family() {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    swap_on_beside_a_family(SwapDevice::Synchronous, 0, ("pswpout", &WRITTEN));
}

/// The same from a disk: what is read with others is claimed, forked, unmapped and taken again.
#[test]
fn swap_on_a_disk_beside_a_family() {
    static HITS: AtomicU64 = AtomicU64::new(0);
    swap_on_beside_a_family(SwapDevice::DISK, 0, ("swap_ra_hit", &HITS));
}

/// The same from zswap, whose pool is full now and then.
#[test]
fn zswap_beside_a_family() {
    static LOADED: AtomicU64 = AtomicU64::new(0);
    swap_on_beside_a_family(SwapDevice::DISK, 4, ("zswpin", &LOADED));
}

/// zswap may have `pool` percent of memory; 0: there is none.
fn swap_on_beside_a_family(device: SwapDevice, pool: u64, (what, met): (&'static str, &'static AtomicU64)) {
    explore(move || {
        let mm = tiny(24, Cpus::Pinned, "linux-6.18");
        mm.set_knob(Knob::ZswapEnabled, pool.min(1)).unwrap();
        mm.set_knob(Knob::ZswapMaxPoolPercent, pool).unwrap();
        mm.spaces().set_swap_on(device, 40);
        let (space, at) = small(&mm, 12);
        mm.spaces().populate(&space, at, 8, Touch::Write).unwrap();
        mm.lru().lru_drain_all();
        let toucher = (Arc::clone(&mm), Arc::clone(&space));
        let forker = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                let (mm, space) = toucher;
                (0..12).for_each(|page| {
                    let _ = mm.spaces().touch_page(&space, at.add(page), Touch::Write);
                });
                mm.reclaim().kswapd(Node(0));
            }),
            on_cpu(1, move || {
                let (mm, space) = forker;
                if let Ok(child) = mm.spaces().fork(&space) {
                    let _ = mm.spaces().touch_page(&child, at, Touch::Write);
                    mm.reclaim().kswapd(Node(0));
                    mm.swap().shrink_zswap();
                    mm.spaces().exit(&child);
                }
            }),
        ]);
        met.fetch_add(mm.views().counters().get(what), Ordering::Relaxed);
        mm.spaces().check_vm().unwrap();
        mm.spaces().exit(&space);
        end(&mm);
    });
    assert_met(met.load(Ordering::Relaxed));
}

/// Pages of shared memory go to swap and come back while two spaces touch them, a call writes some, and others are cut off.
#[test]
fn swap_beside_those_who_share() {
    static SWAPPED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = tiny(24, Cpus::Pinned, "linux-6.18");
        mm.spaces().set_swap(40);
        let file = mm.files().new_file(FileKind::Memory);
        let spaces = [mm.spaces().new_space(), mm.spaces().new_space()];
        let at = spaces.each_ref().map(|space| mm.spaces().mmap(space, MapSpec::shared(&file, 12)).unwrap());
        mm.spaces().populate(&spaces[0], at[0], 8, Touch::Write).unwrap();
        mm.lru().lru_drain_all();
        let touch = |number: usize, touch: Touch| {
            let (mm, space, at) = (Arc::clone(&mm), Arc::clone(&spaces[number]), at[number]);
            move || {
                mm.reclaim().kswapd(Node(0));
                (0..12).for_each(|page| {
                    let _ = mm.spaces().touch_page(&space, at.add(page), touch);
                });
            }
        };
        let (first, second, third) = (touch(0, Touch::Write), touch(1, Touch::Read), touch(0, Touch::Read));
        let other = (Arc::clone(&mm), Arc::clone(&file));
        join(vec![
            on_cpu(0, first),
            on_cpu(1, move || {
                second();
                third();
            }),
            on_cpu(1, move || {
                let (mm, file) = other;
                let _ = mm.files().write_file(&file, 3, Placement::default());
                mm.reclaim().kswapd(Node(0));
                mm.pages_out().cut_off(&file, 4, 4);
                mm.files().forget_pages(&file, 0..12);
            }),
        ]);
        SWAPPED.fetch_add(mm.views().counters().get("pswpin"), Ordering::Relaxed);
        mm.spaces().check_vm().unwrap();
        spaces.iter().for_each(|space| mm.spaces().exit(space));
        mm.files().drop_file(&file);
        end(&mm);
    });
    assert_met(SWAPPED.load(Ordering::Relaxed));
}

/// Files are read, written, mapped and written back, and end while reclaim has their pages in hand.
#[test]
fn files_end_while_reclaim_has_their_pages() {
    static RECLAIMED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = tiny(12, Cpus::Pinned, "linux-6.18");
        let file = mm.files().new_file(FileKind::Disk);
        for page in 0..6 {
            mm.files().read_file(&file, page, Placement::default()).unwrap();
        }
        mm.lru().lru_drain_all();
        let ender = (Arc::clone(&mm), Arc::clone(&file));
        let daemon = Arc::clone(&mm);
        join(vec![
            on_cpu(0, move || {
                let (mm, file) = ender;
                // Reclaim takes a while to come to a page.
                (0..mm.machine().random() % 400).for_each(|_| mm.machine().block(Nanos(0)));
                mm.files().drop_file(&file);
            }),
            on_cpu(1, move || daemon.reclaim().kswapd(Node(0))),
        ]);
        let counters = mm.views().counters();
        RECLAIMED.fetch_add(counters.get("pgsteal_kswapd"), Ordering::Relaxed);
        assert_eq!(mm.files().file_pages(), 0);
        end(&mm);
    });
    assert_met(RECLAIMED.load(Ordering::Relaxed));
}

#[test]
fn mapped_files_are_written_and_reclaimed() {
    static RECLAIMED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = tiny(16, Cpus::Pinned, "linux-6.18");
        let file = mm.files().new_file(FileKind::Disk);
        let space = mm.spaces().new_space();
        let shared = mm.spaces().mmap(&space, MapSpec::shared(&file, 3)).unwrap();
        let private = mm.spaces().mmap(&space, MapSpec::private(&file, 3)).unwrap();
        let user = (Arc::clone(&mm), Arc::clone(&space), Arc::clone(&file));
        let daemon = Arc::clone(&mm);
        join(vec![
            on_cpu(0, move || {
                let (mm, space, file) = user;
                for page in 0..3 {
                    let _ = mm.spaces().touch_page(&space, shared.add(page), Touch::Write);
                    let _ = mm.spaces().touch_page(&space, private.add(page), Touch::Read);
                    let _ = mm.spaces().touch_page(&space, private.add(page), Touch::Write);
                    let _ = mm.files().write_file(&file, 3 + page, Placement::default());
                }
            }),
            on_cpu(1, move || {
                for _ in 0..2 {
                    let taken = daemon.files().take_dirty(2);
                    daemon.files().written(&taken);
                    daemon.lru().lru_drain_all();
                    daemon.reclaim().kswapd(Node(0));
                }
            }),
        ]);
        RECLAIMED.fetch_add(mm.views().counters().get("pgsteal_kswapd"), Ordering::Relaxed);
        mm.spaces().check_vm().unwrap();
        mm.spaces().exit(&space);
        mm.files().drop_file(&file);
        assert_eq!(
            (mm.files().file_pages(), mm.files().dirty_pages().dirty, mm.files().dirty_pages().writeback),
            (0, 0, 0)
        );
        end(&mm);
    });
    assert_met(RECLAIMED.load(Ordering::Relaxed));
}

/// Huge pages: one descriptor for each of 512 frames and entries makes a schedule a thousand times as long.
const OF_HUGE: usize = 40;

/// A huge page moves while part of it is unmapped, something else is mapped there, and it is forked.
#[test]
fn a_huge_page_that_moves_and_is_taken_apart() {
    static MOVED: AtomicU64 = AtomicU64::new(0);
    explore_some(OF_HUGE, || {
        let mm = on_nodes(&[3 * PAGEBLOCK_PAGES, 3 * PAGEBLOCK_PAGES], Cpus::Pinned, "linux-6.18");
        mm.set_knob(Knob::TransparentHugepage, 1).unwrap();
        let space = mm.spaces().new_space();
        let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        write(&mm, &space, at.add(5), 7);
        assert_eq!(space.huge_pages(), 1);
        mm.lru().lru_drain_all();
        let mover = (Arc::clone(&mm), Arc::clone(&space));
        let unmapper = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                let moved = mover.0.rmap().move_page(&mover.1, at.add(5), Node(1));
                MOVED.fetch_add(u64::from(moved.is_ok()), Ordering::Relaxed);
            }),
            on_cpu(1, move || {
                let (mm, space) = unmapper;
                mm.spaces().munmap(&space, at, 1);
                let again = mm.spaces().mmap(&space, MapSpec::anonymous(1).small()).unwrap();
                assert_eq!(again, at);
                let _ = mm.spaces().touch_page(&space, again, Touch::Write);
                assert_eq!(read(&mm, &space, at.add(5)), Ok(7));
            }),
        ]);
        assert_eq!(read(&mm, &space, at.add(5)), Ok(7));
        mm.spaces().check_vm().unwrap();
        mm.spaces().exit(&space);
        end(&mm);
    });
    assert_met(MOVED.load(Ordering::Relaxed));
}

/// A page of four frames comes while others fault beside it, give part of it back, and fork it and write.
#[test]
fn a_large_page_comes_goes_in_part_and_is_shared() {
    explore(|| {
        let mm = tiny(64, Cpus::Pinned, "linux-6.18");
        mm.set_knob(Knob::Hugepages16kB, 1).unwrap();
        let space = mm.spaces().new_space();
        let at = Vpn(PAGEBLOCK_PAGES);
        mm.spaces().mmap_at(&space, at, MapSpec::anonymous(8)).unwrap();
        write(&mm, &space, at.add(5), 7);
        let one = (Arc::clone(&mm), Arc::clone(&space));
        let other = (Arc::clone(&mm), Arc::clone(&space));
        let forker = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                let (mm, space) = one;
                write(&mm, &space, at, 1);
                mm.spaces().discard(&space, at.add(1), 2);
                assert_eq!(read(&mm, &space, at), Ok(1));
            }),
            on_cpu(1, move || {
                let (mm, space) = other;
                write(&mm, &space, at.add(3), 3);
                assert_eq!(read(&mm, &space, at.add(3)), Ok(3));
            }),
            on_cpu(1, move || {
                let (mm, space) = forker;
                let child = mm.spaces().fork(&space).unwrap();
                write(&mm, &child, at.add(5), 8);
                assert_eq!(read(&mm, &space, at.add(5)), Ok(7));
                assert_eq!(read(&mm, &child, at.add(5)), Ok(8));
                assert_eq!(read(&mm, &child, at.add(4)), Ok(0));
                mm.spaces().exit(&child);
            }),
        ]);
        assert_eq!([0, 3, 5].map(|page| read(&mm, &space, at.add(page))), [Ok(1), Ok(3), Ok(7)]);
        mm.spaces().exit(&space);
        end(&mm);
    });
}
