//! khugepaged through its public door: what it puts a huge page in the place of, what it leaves, how fast it goes on. What
//! programs wrote is where it was.

mod remembering;

use std::sync::Arc;

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{AddressSpace, HugePages, MapSpec, Touch, Vpn};
use freehold_mm::{Daemon, Knob, Knobs, Mm, Nanos, NodeSize, Order, Pfn, Policy, Request, Topology};

use remembering::{Remembering, assert_holds, write};

type Space = Arc<AddressSpace<Remembering>>;

const SECOND: u64 = 1_000_000_000;

/// 64 MiB, one CPU; huge pages are for those who ask.
fn machine() -> Mm<Remembering> {
    let nodes = [NodeSize { bytes: 64 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, 2).unwrap();
    knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
    Mm::new(Remembering::default(), topology, Policy::default(), knobs).unwrap()
}

/// `tables` of small pages in a region that asked for huge ones only after they were written to; every `stride`th page is
/// there. Gives what each page holds, too.
fn small_pages(mm: &Mm<Remembering>, tables: u32, stride: u32) -> (Space, Vpn, Vec<u32>) {
    let space = mm.spaces().new_space();
    let pages = tables * PAGEBLOCK_PAGES;
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    let mut numbers = vec![0; pages as usize];
    for page in (0..pages).step_by(stride as usize) {
        numbers[page as usize] = page + 1;
        write(mm, &space, at.add(page), page + 1).unwrap();
    }
    assert_eq!(space.huge_pages(), 0);
    mm.spaces().advise(&space, at, pages, HugePages::Advised);
    (space, at, numbers)
}

fn check(mm: &Mm<Remembering>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

fn end(mm: &Mm<Remembering>, spaces: &[&Space]) {
    for space in spaces {
        mm.spaces().exit(space);
    }
    mm.lru().lru_drain_all();
    assert_eq!(
        (mm.views().memory_use().held(), mm.spaces().committed_pages(), mm.spaces().swap_pages().0),
        (0, 0, 0)
    );
    check(mm);
}

#[test]
fn small_pages_become_a_huge_one_that_holds_what_they_held() {
    for stride in [1, 3, 511] {
        let mm = machine();
        let (space, at, numbers) = small_pages(&mm, 2, stride);
        assert_eq!(mm.collapses().khugepaged(), Some(Nanos(10 * SECOND)));
        check(&mm);
        assert_eq!((space.huge_pages(), space.resident_pages()), (2, 2 * u64::from(PAGEBLOCK_PAGES)));
        let counters = mm.views().counters();
        assert_eq!((counters.get("thp_collapse_alloc"), counters.get("khugepaged_pages_collapsed")), (2, 2));
        assert_eq!(counters.get("khugepaged_full_scans"), 1);
        mm.lru().lru_drain_all();
        // Two huge pages and the frames of four tables; all small pages are free again.
        assert_eq!(mm.views().memory_use().held(), 2 * u64::from(PAGEBLOCK_PAGES) + 4);
        assert_holds(&mm, &space, at, &numbers);
        // What is one page can be taken apart again, and put together.
        mm.spaces().munmap(&space, at.add(5), 1);
        assert_eq!(space.huge_pages(), 1);
        check(&mm);
        end(&mm, &[&space]);
    }
}

/// A huge page of two families: a program's, and its child's, which still maps it whole; the program has written to so many
/// pages since, and has copies of them. Gives what each page of the program and of the child holds, too.
fn forked(mm: &Mm<Remembering>, written: u32) -> ([Space; 2], Vpn, [Vec<u32>; 2]) {
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    mm.spaces().advise(&space, at, PAGEBLOCK_PAGES, HugePages::Advised);
    let old: Vec<u32> = (1..=PAGEBLOCK_PAGES).collect();
    for (page, number) in (0..).zip(&old) {
        write(mm, &space, at.add(page), *number).unwrap();
    }
    assert_eq!(space.huge_pages(), 1);
    let child = mm.spaces().fork(&space).unwrap();
    let mut new = old.clone();
    for page in 0..written {
        new[page as usize] += 10_000;
        write(mm, &space, at.add(page), new[page as usize]).unwrap();
    }
    assert_eq!((space.huge_pages(), child.huge_pages()), (0, 1));
    ([space, child], at, [new, old])
}

/// As Redis is once it saves in a child: its huge pages are mapped by small entries, and copied where they were written to.
#[test]
fn parts_of_a_huge_page_become_a_huge_page_again() {
    let mm = machine();
    let ([space, child], at, [new, _]) = forked(&mm, 5);
    mm.spaces().exit(&child);
    assert_eq!(made(&mm, &space), 1);
    assert_holds(&mm, &space, at, &new);
    mm.lru().lru_drain_all();
    // The huge page, its table, and the two above that.
    assert_eq!(mm.views().memory_use().held(), u64::from(PAGEBLOCK_PAGES) + 3, "the old one is free");
    end(&mm, &[&space]);
}

#[test]
fn so_many_pages_may_be_shared() {
    let mm = machine();
    let ([space, child], at, [new, old]) = forked(&mm, PAGEBLOCK_PAGES - 257);
    assert_eq!(made(&mm, &space), 0, "257 parts are the child's too");
    write(&mm, &space, at.add(300), new[300]).unwrap();
    mm.set_knob(Knob::KhugepagedMaxPtesShared, 255).unwrap();
    assert_eq!(made(&mm, &space), 0);
    mm.set_knob(Knob::KhugepagedMaxPtesShared, 256).unwrap();
    assert_eq!((made(&mm, &space), child.huge_pages()), (1, 1));
    assert_holds(&mm, &space, at, &new);
    assert_holds(&mm, &child, at, &old);
    assert_eq!(write(&mm, &child, at.add(3), 77), Ok(()));
    assert_holds(&mm, &space, at, &new);
    end(&mm, &[&space, &child]);
}

#[test]
fn small_pages_that_are_shared_are_copied_and_stay() {
    let mm = machine();
    let (space, at, numbers) = small_pages(&mm, 1, 2);
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!(made(&mm, &space), 1, "256 of them are shared, as many as may be");
    assert_holds(&mm, &child, at, &numbers);
    assert_eq!(write(&mm, &child, at, 88), Ok(()));
    assert_holds(&mm, &space, at, &numbers);
    end(&mm, &[&space, &child]);
}

/// Runs a round and says how many huge pages it made.
fn made(mm: &Mm<Remembering>, space: &Space) -> u64 {
    let before = space.huge_pages();
    mm.collapses().khugepaged();
    check(mm);
    space.huge_pages() - before
}

#[test]
fn what_somebody_else_has_stays() {
    let mm = machine();
    mm.spaces().set_swap(10);
    let (space, at, numbers) = small_pages(&mm, 1, 1);
    let pinned = mm.rmap().pin_page(&space, at.add(100), Touch::Read).unwrap();
    assert_eq!(made(&mm, &space), 0, "a pinned page");
    mm.rmap().unpin_page(pinned);
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!((made(&mm, &space), child.huge_pages()), (0, 0), "shared pages");
    assert_holds(&mm, &child, at, &numbers);
    mm.spaces().exit(&child);
    // Nobody else maps them now, though they may not be written to without a fault.
    assert_eq!(made(&mm, &space), 1);
    assert_holds(&mm, &space, at, &numbers);
    assert_eq!(write(&mm, &space, at.add(3), 99), Ok(()));
    end(&mm, &[&space]);
}

#[test]
fn too_little_is_left_alone() {
    let mm = machine();
    let (space, at, numbers) = small_pages(&mm, 1, 2);
    mm.set_knob(Knob::KhugepagedMaxPtesNone, 255).unwrap();
    assert_eq!(made(&mm, &space), 0);
    mm.set_knob(Knob::KhugepagedMaxPtesNone, 256).unwrap();
    assert_eq!(made(&mm, &space), 1);
    assert_holds(&mm, &space, at, &numbers);
    // A table that two regions share, of which one does not want any.
    let (other, at, _) = small_pages(&mm, 1, 1);
    mm.spaces().advise(&other, at.add(7), 1, HugePages::Never);
    assert_eq!(made(&mm, &other), 0);
    assert_eq!(other.huge_pages(), 0);
    end(&mm, &[&space, &other]);
}

#[test]
fn pages_in_swap_are_not_read_back_for_it() {
    let mm = machine();
    mm.set_knob(Knob::OvercommitMemory, 1).unwrap();
    mm.spaces().set_swap(1 << 20);
    let (space, at, _) = small_pages(&mm, 1, 1);
    // More than there is memory.
    let hog = mm.spaces().new_space();
    let pages = 64 * PAGEBLOCK_PAGES;
    let start = mm.spaces().mmap(&hog, MapSpec::anonymous(pages).small()).unwrap();
    mm.spaces().populate(&hog, start, pages, Touch::Write).unwrap();
    mm.spaces().exit(&hog);
    assert!(space.swapped_pages() > 0);
    // The rest of its pages were used since.
    mm.spaces().touch_page(&space, at, Touch::Read).unwrap();
    assert_eq!(made(&mm, &space), 0);
    mm.spaces().populate(&space, at, PAGEBLOCK_PAGES, Touch::Write).unwrap();
    assert_eq!(made(&mm, &space), 1);
    end(&mm, &[&space]);
}

#[test]
fn a_round_looks_at_so_many_pages_and_goes_on_where_it_ended() {
    let mm = machine();
    mm.set_knob(Knob::KhugepagedPagesToScan, u64::from(2 * PAGEBLOCK_PAGES)).unwrap();
    mm.set_knob(Knob::KhugepagedScanSleep, 7).unwrap();
    let (one, at, first) = small_pages(&mm, 3, 1);
    let (other, _, _) = small_pages(&mm, 2, 1);
    let rounds: Vec<(u64, u64)> = (0..3)
        .map(|_| {
            assert_eq!(mm.collapses().khugepaged(), Some(Nanos(7_000_000)));
            check(&mm);
            (one.huge_pages(), other.huge_pages())
        })
        .collect();
    assert_eq!(rounds, [(2, 0), (3, 1), (3, 2)]);
    assert_holds(&mm, &one, at, &first);
    end(&mm, &[&one, &other]);
    assert_eq!(mm.collapses().khugepaged(), None, "no region is left");
}

#[test]
fn it_is_woken_by_the_first_fault_and_pauses_when_it_finds_no_huge_page() {
    let mm = machine();
    let spec = || MapSpec::anonymous(PAGEBLOCK_PAGES).advised();
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, spec()).unwrap();
    mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
    assert_eq!(space.huge_pages(), 1);
    let woken = || mm.machine().bare.take_woken().into_iter().filter(|daemon| *daemon == Daemon::Khugepaged);
    assert_eq!(woken().count(), 1, "with the fault, though it got its page");
    // Every page is taken, and of each pair one is given back.
    let taken: Vec<Pfn> = std::iter::from_fn(|| mm.alloc(Request::KERNEL).ok()).collect();
    let (kept, given): (Vec<Pfn>, Vec<Pfn>) = taken.into_iter().partition(|pfn| pfn.0 % 2 == 0);
    for pfn in given {
        mm.free(pfn, Order::ZERO).unwrap();
    }
    for _ in 0..2 {
        let at = mm.spaces().mmap(&space, spec()).unwrap();
        mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
    }
    assert_eq!(
        (mm.views().counters().get("thp_fault_fallback"), woken().count()),
        (2, 0),
        "it has not slept since"
    );
    assert_eq!(mm.collapses().khugepaged(), Some(Nanos(60 * SECOND)));
    assert_eq!(mm.views().counters().get("thp_collapse_alloc_failed"), 1);
    check(&mm);
    for pfn in kept {
        mm.free(pfn, Order::ZERO).unwrap();
    }
    mm.drain_all();
    assert_eq!(mm.collapses().khugepaged(), Some(Nanos(10 * SECOND)));
    assert_eq!(space.huge_pages(), 3);
    end(&mm, &[&space]);
}
