//! Address spaces and files through their public doors: what is touched is mapped once, what is given back is free, and
//! whoever shares a page sees no other's writes.

mod common;

use std::sync::Arc;

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{
    AddressSpace, Cached, DirtyPages, FaultError, FaultKind, FileKind, HugePages, MapError, MapSpec,
    Placement, Touch, Vpn,
};
use freehold_mm::{Bare, Knob, Knobs, Mm, NodeSize, Policy, Topology};
use proptest::prelude::*;

/// 256 MiB on two nodes, two CPUs.
fn machine(huge: u64) -> Mm<Bare> {
    machine_of(huge, Policy::default())
}

fn machine_of(huge: u64, policy: Policy) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }, NodeSize { bytes: 128 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 20], vec![20, 10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, huge).unwrap();
    Mm::new(Bare::default(), topology, policy, knobs).unwrap()
}

/// Pages handed out, once no CPU keeps any back for the LRU lists.
fn held(mm: &Mm<Bare>) -> u64 {
    mm.lru().lru_drain_all();
    // One that no address space uses any more goes as if memory were short.
    mm.spaces().free_huge_zero();
    mm.views().memory_use().held()
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

fn touch(mm: &Mm<Bare>, space: &AddressSpace<Bare>, vpn: Vpn, touch: Touch) -> Option<FaultKind> {
    mm.spaces().touch_page(space, vpn, touch).unwrap().1
}

/// As captures of 6.12 and 6.18 show (scene zero-fork): a table of small pages that was emptied is a table still.
#[test]
fn a_table_that_advice_empties_is_for_small_pages_until_6_14() {
    let again = |kernel: &str, from: u32| {
        let mm = machine_of(1, Policy::parse(kernel).unwrap());
        let space = mm.spaces().new_space();
        let start = Vpn(PAGEBLOCK_PAGES * 8);
        mm.spaces().mmap_at(&space, start, MapSpec::anonymous(2 * PAGEBLOCK_PAGES)).unwrap();
        mm.spaces().advise(&space, start, PAGEBLOCK_PAGES, HugePages::Never);
        let kinds = [0, PAGEBLOCK_PAGES].map(|page| touch(&mm, &space, start.add(page), Touch::Write));
        assert_eq!(kinds, [Some(FaultKind::Minor), Some(FaultKind::Huge)]);
        mm.spaces().advise(&space, start, PAGEBLOCK_PAGES, HugePages::AsConfigured);
        mm.spaces().discard(&space, start.add(from), PAGEBLOCK_PAGES - from);
        mm.spaces().discard(&space, start, from);
        mm.spaces().discard(&space, start.add(PAGEBLOCK_PAGES), PAGEBLOCK_PAGES);
        assert_eq!(space.resident_pages(), 0);
        let kinds = [0, PAGEBLOCK_PAGES].map(|page| touch(&mm, &space, start.add(page), Touch::Write));
        check(&mm);
        mm.spaces().exit(&space);
        check(&mm);
        assert_eq!(kinds[1], Some(FaultKind::Huge), "it was a huge page's");
        kinds[0]
    };
    assert_eq!(again("linux-6.13", 0), Some(FaultKind::Minor));
    assert_eq!(again("linux-6.14", 0), Some(FaultKind::Huge));
    assert_eq!(again("linux-6.14", 2), Some(FaultKind::Minor), "no call covered all of it");
}

#[test]
fn a_page_is_faulted_in_once_and_given_back() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(1000)).unwrap();
    for page in 0..1000 {
        assert_eq!(touch(&mm, &space, start.add(page), Touch::Write), Some(FaultKind::Minor));
        assert_eq!(touch(&mm, &space, start.add(page), Touch::Write), None);
    }
    assert_eq!((space.resident_pages(), space.table_pages()), (1000, 2 + 2));
    assert_eq!(held(&mm), 1004);
    check(&mm);
    mm.spaces().munmap(&space, start.add(10), 20);
    assert_eq!(space.resident_pages(), 980);
    let gone = mm.spaces().touch_page(&space, start.add(10), Touch::Read);
    assert_eq!(gone.unwrap_err(), FaultError::NoRegion(start.add(10)));
    check(&mm);
    mm.spaces().exit(&space);
    assert_eq!((held(&mm), mm.spaces().committed_pages()), (0, 0));
    check(&mm);
}

#[test]
fn a_fault_in_an_aligned_region_gets_a_huge_page() {
    let mm = machine(1);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(2 * PAGEBLOCK_PAGES + 5)).unwrap();
    assert_eq!(touch(&mm, &space, start.add(700), Touch::Write), Some(FaultKind::Huge));
    assert_eq!(touch(&mm, &space, start.add(2 * PAGEBLOCK_PAGES), Touch::Write), Some(FaultKind::Minor));
    assert_eq!((space.resident_pages(), space.huge_pages()), (513, 1));
    check(&mm);
    // Part of it goes: the entry is split, and the page waits to be; it stays in one piece.
    mm.spaces().munmap(&space, start.add(PAGEBLOCK_PAGES), 12);
    assert_eq!((space.resident_pages(), space.huge_pages()), (501, 0));
    assert_eq!(touch(&mm, &space, start.add(700), Touch::Write), None);
    assert_eq!((counter(&mm, "thp_deferred_split_page"), counter(&mm, "thp_split_page")), (1, 0));
    assert_eq!(held(&mm), 513 + 2 + 2);
    check(&mm);
    mm.spaces().exit(&space);
    assert_eq!(held(&mm), 0);
}

#[test]
fn a_program_asks_for_huge_pages_where_the_setting_leaves_it_to_programs() {
    // Never, always, if asked: for a region that says nothing, one that asks, one that does not want any.
    for (setting, wanted) in [(0, [0, 0, 0]), (1, [1, 1, 0]), (2, [0, 1, 0])] {
        let mm = machine(setting);
        let space = mm.spaces().new_space();
        let spec = || MapSpec::anonymous(PAGEBLOCK_PAGES);
        let got = [spec(), spec().advised(), spec().small()].map(|spec| {
            let (at, before) = (mm.spaces().mmap(&space, spec).unwrap(), space.huge_pages());
            touch(&mm, &space, at, Touch::Write);
            space.huge_pages() - before
        });
        assert_eq!(got, wanted, "{setting}");
        check(&mm);
        mm.spaces().exit(&space);
        assert_eq!(held(&mm), 0);
    }
}

#[test]
fn advice_holds_for_the_pages_that_it_was_given_for() {
    let mm = machine(2);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(4 * PAGEBLOCK_PAGES)).unwrap();
    let of = |table| start.add(table * PAGEBLOCK_PAGES);
    // The second and third table's, a page of which is told otherwise afterwards.
    mm.spaces().advise(&space, of(1), 2 * PAGEBLOCK_PAGES, HugePages::Advised);
    mm.spaces().advise(&space, of(2).add(7), 1, HugePages::Never);
    let kinds = [0, 1, 2, 3].map(|table| touch(&mm, &space, of(table), Touch::Write));
    let (minor, huge) = (Some(FaultKind::Minor), Some(FaultKind::Huge));
    assert_eq!(kinds, [minor, huge, minor, minor]);
    check(&mm);
    mm.spaces().exit(&space);
    assert_eq!((held(&mm), mm.spaces().committed_pages()), (0, 0));
}

#[test]
fn advice_for_part_of_a_huge_page_takes_it_apart() {
    let mm = machine(1);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(2 * PAGEBLOCK_PAGES)).unwrap();
    mm.spaces().populate(&space, start, 2 * PAGEBLOCK_PAGES, Touch::Write).unwrap();
    mm.spaces().advise(&space, start.add(9), PAGEBLOCK_PAGES - 9, HugePages::Never);
    assert_eq!((space.huge_pages(), space.resident_pages()), (1, u64::from(2 * PAGEBLOCK_PAGES)));
    // Two regions share a table now: a fork must not take what it maps for both.
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!((child.huge_pages(), child.resident_pages()), (1, u64::from(2 * PAGEBLOCK_PAGES)));
    check(&mm);
    mm.spaces().exit(&child);
    mm.spaces().exit(&space);
    assert_eq!((held(&mm), mm.spaces().committed_pages()), (0, 0));
}

#[test]
fn page_tables_may_be_in_high_memory_only_if_the_kernel_was_built_so() {
    for highpte in [0, 1] {
        let nodes = [NodeSize { bytes: 2 << 30, cpus: 1 }];
        let topology = Topology::x86_32(&nodes, 1 << 20, vec![vec![10]]).unwrap();
        let knobs = Knobs::default();
        knobs.set(Knob::Highpte, highpte).unwrap();
        let mm = Mm::new(Bare::default(), topology, Policy::default(), knobs).unwrap();
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(4 * PAGEBLOCK_PAGES).small()).unwrap();
        for table in 0..4 {
            touch(&mm, &space, start.add(table * PAGEBLOCK_PAGES), Touch::Write);
        }
        let allocated = mm.views().counters().0;
        let of = |name: &str| allocated.get(name).copied().unwrap_or(0);
        let tables_low = 4 * (1 - highpte);
        // The two tables above those of entries are never in high memory.
        assert_eq!((of("pgalloc_normal"), of("pgalloc_high")), (tables_low + 2, 8 - tables_low), "{highpte}");
        mm.spaces().exit(&space);
        assert_eq!(held(&mm), 0);
        check(&mm);
    }
}

#[test]
fn forked_pages_are_copied_by_who_writes_first() {
    for huge in [0, 1] {
        let mm = machine(huge);
        let parent = mm.spaces().new_space();
        let start = mm.spaces().mmap(&parent, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        mm.spaces().populate(&parent, start, PAGEBLOCK_PAGES, Touch::Write).unwrap();
        let child = mm.spaces().fork(&parent).unwrap();
        let of = |space: &AddressSpace<Bare>, page| {
            mm.spaces().touch_page(space, start.add(page), Touch::Read).unwrap().0
        };
        assert_eq!(of(&parent, 3), of(&child, 3));
        check(&mm);
        assert_eq!(touch(&mm, &child, start.add(3), Touch::Write), Some(FaultKind::Copied));
        assert_ne!(of(&parent, 3), of(&child, 3));
        assert_eq!(of(&parent, 4), of(&child, 4));
        check(&mm);
        mm.spaces().exit(&parent);
        check(&mm);
        // The one that is left owns what it writes to, parts of what is still a huge page too.
        assert_eq!(touch(&mm, &child, start.add(4), Touch::Write), Some(FaultKind::Reused));
        mm.spaces().exit(&child);
        assert_eq!(held(&mm), 0);
    }
}

#[test]
fn a_file_is_read_once_and_shared() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    let here = Placement::default();
    assert_eq!(mm.files().read_file(&file, 7, here).unwrap(), Cached::Miss);
    assert_eq!(mm.files().read_file(&file, 7, here).unwrap(), Cached::Hit);
    let (one, other) = (mm.spaces().new_space(), mm.spaces().new_space());
    let shared = mm.spaces().mmap(&one, MapSpec::shared(&file, 10)).unwrap();
    let private = mm.spaces().mmap(&other, MapSpec::private(&file, 10)).unwrap();
    assert_eq!(touch(&mm, &one, shared.add(7), Touch::Write), Some(FaultKind::Minor));
    assert_eq!(mm.files().dirty_pages(), DirtyPages { dirty: 1, writeback: 0 });
    let seen = mm.spaces().touch_page(&other, private.add(7), Touch::Read).unwrap().0;
    assert_eq!(seen, mm.spaces().touch_page(&one, shared.add(7), Touch::Read).unwrap().0);
    assert_eq!(touch(&mm, &other, private.add(7), Touch::Write), Some(FaultKind::Copied));
    assert_ne!(seen, mm.spaces().touch_page(&other, private.add(7), Touch::Read).unwrap().0);
    assert_eq!(touch(&mm, &other, private.add(8), Touch::Write), Some(FaultKind::Major));
    check(&mm);
    mm.spaces().exit(&one);
    mm.spaces().exit(&other);
    assert_eq!((mm.files().file_pages(), held(&mm)), (2, 2));
    let written = mm.files().take_dirty(10);
    assert_eq!(mm.files().dirty_pages(), DirtyPages { dirty: 0, writeback: 1 });
    mm.files().written(&written);
    check(&mm);
    mm.files().drop_file(&file);
    assert_eq!((mm.files().file_pages(), held(&mm), mm.files().dirty_pages()), (0, 0, DirtyPages::default()));
}

#[test]
fn promises_are_kept_within_bounds() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    assert_eq!(mm.spaces().mmap(&space, MapSpec::anonymous(0)), Err(MapError::Size));
    // More than the whole machine at once, by the heuristic.
    assert_eq!(mm.spaces().mmap(&space, MapSpec::anonymous(1 << 20)), Err(MapError::Overcommit));
    mm.spaces().mmap(&space, MapSpec::anonymous(40_000)).unwrap();
    mm.spaces().mmap(&space, MapSpec::anonymous(40_000)).unwrap();
    mm.set_knob(Knob::OvercommitMemory, 2).unwrap();
    assert_eq!(mm.spaces().mmap(&space, MapSpec::anonymous(1)), Err(MapError::Overcommit));
    mm.set_knob(Knob::OvercommitMemory, 1).unwrap();
    mm.spaces().mmap(&space, MapSpec::anonymous(1 << 25)).unwrap();
    mm.spaces().exit(&space);
    assert_eq!(mm.spaces().committed_pages(), 0);
}

#[test]
fn exhaustion_is_an_error_and_nothing_leaks() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let pages = 70_000;
    mm.set_knob(Knob::OvercommitMemory, 1).unwrap();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    let got = (0..pages)
        .take_while(|&page| mm.spaces().touch_page(&space, start.add(page), Touch::Write).is_ok())
        .count();
    assert!((50_000..pages as usize).contains(&got), "{got}");
    check(&mm);
    let failed = mm.spaces().touch_page(&space, start.add(pages - 1), Touch::Write);
    assert!(matches!(failed, Err(FaultError::Alloc(_))), "{failed:?}");
    mm.spaces().exit(&space);
    assert_eq!(held(&mm), 0);
    check(&mm);
}

/// What may happen to address spaces.
#[derive(Clone, Debug)]
enum Event {
    Map { space: usize, pages: u32 },
    Touch { space: usize, at: u32, write: bool },
    Unmap { space: usize, at: u32, pages: u32 },
    Fork { space: usize },
    Exit { space: usize },
    Split { space: usize, at: u32 },
    ReadFile { at: u32 },
    MapFile { space: usize, private: bool },
    Write { pages: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let space = 0..4usize;
    prop_oneof![
        2 => (space.clone(), 1..1500u32).prop_map(|(space, pages)| Event::Map { space, pages }),
        8 => (space.clone(), 0..4096u32, any::<bool>()).prop_map(|(space, at, write)| Event::Touch { space, at, write }),
        3 => (space.clone(), 0..4096u32, 1..700u32).prop_map(|(space, at, pages)| Event::Unmap { space, at, pages }),
        2 => space.clone().prop_map(|space| Event::Fork { space }),
        1 => space.clone().prop_map(|space| Event::Exit { space }),
        2 => (space.clone(), 0..4096u32).prop_map(|(space, at)| Event::Split { space, at }),
        2 => (0..64u32).prop_map(|at| Event::ReadFile { at }),
        1 => (space, any::<bool>()).prop_map(|(space, private)| Event::MapFile { space, private }),
        1 => (1..40u64).prop_map(|pages| Event::Write { pages }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever address spaces do, every reference is counted, and when all have ended nothing is left.
    #[test]
    fn lives_of_address_spaces(events in prop::collection::vec(event(), 1..60), huge in 0..2u64) {
        let mm = machine(huge);
        let file = mm.files().new_file(FileKind::Disk);
        let mut spaces: Vec<Arc<AddressSpace<Bare>>> = vec![mm.spaces().new_space()];
        for event in events {
            let of = |space: usize| space % spaces.len();
            match event {
                Event::Map { space, pages } => {
                    mm.spaces().mmap(&spaces[of(space)], MapSpec::anonymous(pages)).unwrap();
                }
                Event::Touch { space, at, write } => {
                    let touch = if write { Touch::Write } else { Touch::Read };
                    let at = Vpn(PAGEBLOCK_PAGES + at);
                    for page in 0..9 {
                        let touched = mm.spaces().touch_page(&spaces[of(space)], at.add(page), touch);
                        let fine = matches!(touched, Ok(_) | Err(FaultError::NoRegion(_)));
                        prop_assert!(fine, "{:?}", touched);
                    }
                }
                Event::Unmap { space, at, pages } => {
                    mm.spaces().munmap(&spaces[of(space)], Vpn(PAGEBLOCK_PAGES + at), pages);
                }
                Event::Fork { space } if spaces.len() < 4 => {
                    let child = mm.spaces().fork(&spaces[of(space)]).unwrap();
                    spaces.push(child);
                }
                Event::Fork { .. } => {}
                Event::Exit { space } => {
                    mm.spaces().exit(&spaces[of(space)]);
                    let index = of(space);
                    spaces[index] = mm.spaces().new_space();
                }
                Event::Split { space, at } => {
                    mm.spaces().split_huge(&spaces[of(space)], Vpn(PAGEBLOCK_PAGES + at));
                }
                Event::ReadFile { at } => {
                    mm.files().read_file(&file, at, Placement::default()).unwrap();
                }
                Event::MapFile { space, private } => {
                    let spec = if private { MapSpec::private(&file, 64) } else { MapSpec::shared(&file, 64) };
                    mm.spaces().mmap(&spaces[of(space)], spec).unwrap();
                }
                Event::Write { pages } => {
                    let taken = mm.files().take_dirty(pages);
                    mm.files().written(&taken);
                }
            }
            let checked = mm.spaces().check_vm();
            prop_assert!(checked.is_ok(), "{:?}", checked);
        }
        for space in &spaces {
            mm.spaces().exit(space);
        }
        mm.files().drop_file(&file);
        let checked = mm.views().check();
        prop_assert!(checked.is_ok(), "{:?}", checked);
        prop_assert_eq!((held(&mm), mm.spaces().committed_pages()), (0, 0));
    }
}

#[test]
fn a_region_may_move_within_its_table() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let (from, to) = (Vpn(PAGEBLOCK_PAGES * 3 + 8), Vpn(PAGEBLOCK_PAGES * 3 + 100));
    mm.spaces().mmap_at(&space, from, MapSpec::anonymous(4)).unwrap();
    let frames: Vec<_> =
        (0..4).map(|page| mm.spaces().touch_page(&space, from.add(page), Touch::Write).unwrap().0).collect();
    mm.spaces().mremap(&space, from, 4, to, 6).unwrap();
    for (page, frame) in frames.into_iter().enumerate() {
        assert_eq!(mm.spaces().touch_page(&space, to.add(page as u32), Touch::Read), Ok((frame, None)));
    }
    assert_eq!((space.resident_pages(), space.table_pages()), (4, 1 + 2));
    check(&mm);
}

#[test]
fn what_is_cut_off_a_file_goes_dirty_or_not() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    for page in 0..20 {
        mm.files().write_file(&file, page, Placement::default()).unwrap();
    }
    assert_eq!(mm.files().truncate_pages(&file, 5, 100), 15);
    assert_eq!(mm.files().truncate_pages(&file, 5, 100), 0);
    assert_eq!((mm.files().file_pages(), mm.files().dirty_pages().dirty), (5, 5));
    check(&mm);
    mm.files().drop_file(&file);
    assert_eq!(held(&mm), 0);
}

#[test]
fn a_copy_and_the_page_that_it_takes_the_place_of_are_not_resident_at_once() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(10)).unwrap();
    for page in 0..10 {
        touch(&mm, &space, start.add(page), Touch::Write);
    }
    let child = mm.spaces().fork(&space).unwrap();
    for page in 0..10 {
        assert_eq!(touch(&mm, &child, start.add(page), Touch::Write), Some(FaultKind::Copied));
    }
    let counted = child.counters();
    assert_eq!((counted.peak, counted.anon, counted.copied), (10, 10, 10));
    check(&mm);
}

/// Pages of a private file too: its page goes as the copy comes.
#[test]
fn a_copy_of_a_files_page_counts_as_another_kind() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let file = mm.files().new_file(FileKind::Memory);
    let start = mm.spaces().mmap(&space, MapSpec::private(&file, 4)).unwrap();
    for page in 0..4 {
        touch(&mm, &space, start.add(page), Touch::Read);
    }
    assert_eq!((space.counters().shmem, space.counters().anon), (4, 0));
    touch(&mm, &space, start.add(1), Touch::Write);
    let counted = space.counters();
    assert_eq!((counted.shmem, counted.anon, counted.peak), (3, 1, 4));
    check(&mm);
}

fn counter(mm: &Mm<Bare>, name: &str) -> u64 {
    mm.views().counters().0.get(name).copied().unwrap_or(0)
}

/// A huge page that is shared after a fork: whoever writes splits his own entry and copies a small page. The page stays whole
/// and is not queued for a split, for others have all of it.
#[test]
fn a_write_to_a_shared_huge_page_copies_a_small_one_and_leaves_it_whole() {
    let mm = machine(1);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    touch(&mm, &space, start, Touch::Write);
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!(touch(&mm, &child, start.add(9), Touch::Write), Some(FaultKind::Copied));
    assert_eq!((space.huge_pages(), child.huge_pages()), (1, 0));
    assert_eq!((counter(&mm, "thp_split_pmd"), counter(&mm, "thp_deferred_split_page")), (1, 0));
    assert_eq!(counter(&mm, "thp_split_page"), 0);
    check(&mm);
    // Once the child is gone the parent has it alone, whole.
    mm.spaces().exit(&child);
    assert_eq!(touch(&mm, &space, start.add(9), Touch::Write), Some(FaultKind::Reused));
    assert_eq!(space.huge_pages(), 1);
    check(&mm);
}

/// In parts, the last process that has a huge page copies it small page by small page, or goes on with it since 6.15.
#[test]
fn what_a_child_leaves_of_a_split_huge_page_is_the_parents_again() {
    for (policy, kind) in [("linux-6.14", FaultKind::Copied), ("linux-6.18", FaultKind::Reused)] {
        let mm = machine_of(1, Policy::parse(policy).unwrap());
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        touch(&mm, &space, start, Touch::Write);
        let child = mm.spaces().fork(&space).unwrap();
        assert_eq!(touch(&mm, &space, start.add(3), Touch::Write), Some(FaultKind::Copied), "{policy}");
        assert_eq!(touch(&mm, &space, start.add(3), Touch::Write), None);
        mm.spaces().exit(&child);
        assert_eq!(touch(&mm, &space, start.add(4), Touch::Write), Some(kind), "{policy}");
        check(&mm);
        mm.spaces().exit(&space);
        assert_eq!(held(&mm), 0);
    }
}

/// A page table covers 2 MiB, one above it a GiB, one above that 512 GiB; each goes with the last region that needs it.
#[test]
fn page_tables_of_all_levels_are_counted_and_given_back() {
    const GIB: u32 = 1 << 18;
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = [0, 1, GIB, 600 * GIB].map(|page| Vpn(GIB + page * if page == 1 { PAGEBLOCK_PAGES } else { 1 }));
    let tables = at.map(|start| {
        mm.spaces().mmap_at(&space, start, MapSpec::anonymous(1)).unwrap();
        touch(&mm, &space, start, Touch::Write);
        space.table_pages()
    });
    assert_eq!(tables, [3, 4, 6, 9]);
    check(&mm);
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!(child.table_pages(), 9);
    mm.spaces().exit(&child);
    let left = at.map(|start| {
        mm.spaces().munmap(&space, start, 1);
        check(&mm);
        space.table_pages()
    });
    assert_eq!(left, [8, 6, 3, 0]);
    assert_eq!(held(&mm), 0);
}
