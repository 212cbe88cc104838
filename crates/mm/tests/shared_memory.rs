//! Shared memory where memory runs low, through public doors: it goes to swap, comes back by whoever wants it, and no slot or page is lost.

mod common;

use common::play;
use freehold_mm::vm::{AddressSpace, Cached, FaultKind, File, FileKind, MapSpec, Placement, Touch, Vpn};
use freehold_mm::{Bare, GroupId, Knob, Knobs, Limit, Mm, NodeSize, Policy, TaskId, Topology};
use proptest::prelude::*;
use std::sync::Arc;

/// Kernels with classic lists and with generations, and ours.
const POLICIES: [&str; 5] = ["linux-5.4", "linux-6.6", "linux-6.12", "linux-6.18", "freehold"];

/// A node of so many MiB, and so many pages of swap.
fn machine(policy: &str, mib: u64, swap: u32) -> Mm<Bare> {
    let topology = Topology::x86(&[NodeSize { bytes: mib << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
    knobs.set(Knob::OvercommitMemory, 1).unwrap();
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
    mm.spaces().set_swap(swap);
    mm
}

/// `pages` of shared memory, mapped by a space of its own.
fn share(mm: &Mm<Bare>, pages: u32) -> (Arc<File<Bare>>, Arc<AddressSpace<Bare>>, Vpn) {
    let (file, space) = (mm.files().new_file(FileKind::Memory), mm.spaces().new_space());
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, pages)).unwrap();
    (file, space, at)
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn shared_memory_larger_than_memory_goes_to_swap() {
    for policy in POLICIES {
        let mm = machine(policy, 48, 100_000);
        let (file, space, at) = share(&mm, 30_000);
        for page in 0..30_000 {
            mm.spaces().touch_page(&space, at.add(page), Touch::Write).unwrap();
            play(&mm);
        }
        let (there, away) = (file.cached_pages(mm.machine()), file.swapped_pages(mm.machine()));
        assert!(away > 15_000, "{policy}: {away}");
        assert_eq!(there + away, 30_000, "{policy}: each page is here or there");
        let counters = mm.views().counters();
        assert_eq!(
            (u64::from(mm.spaces().swap_pages().0), counters.get("pswpout")),
            (away, away),
            "{policy}"
        );
        assert_eq!(space.swapped_pages(), 0, "{policy}: no entry says where they are");
        assert!(space.resident_pages() <= there, "{policy}");
        check(&mm);
        let back = mm.spaces().touch_page(&space, at, Touch::Read).unwrap();
        assert_eq!(back.1, Some(FaultKind::Swapped), "{policy}");
        let counters = mm.views().counters();
        let read = counters.get("pswpin");
        assert_eq!((counters.get("pgmajfault"), read - counters.get("swap_ra")), (1, 1), "{policy}");
        assert_eq!(file.pages_read_ahead(mm.machine()), read - 1, "{policy}");
        mm.spaces().exit(&space);
        assert_eq!(mm.files().read_file(&file, 1, Placement::default()), Ok(Cached::Hit), "{policy}");
        let counters = mm.views().counters();
        let read = counters.get("pswpin") - counters.get("swap_ra") + counters.get("swap_ra_hit");
        assert_eq!(read, 2, "{policy}: a call brings it too");
        let away = file.swapped_pages(mm.machine());
        let gone = mm.files().truncate_pages(&file, 0, 15_000);
        assert_eq!(file.cached_within(mm.machine(), 0, 15_000), 0, "{policy}");
        let freed = away - file.swapped_pages(mm.machine());
        assert_eq!(u64::from(gone) + freed, 15_000, "{policy}: what was away is forgotten");
        check(&mm);
        mm.files().drop_file(&file);
        mm.lru().lru_drain_all();
        assert_eq!((mm.views().memory_use().held(), mm.spaces().swap_pages().0), (0, 0), "{policy}");
    }
}

#[test]
fn where_swap_ends_shared_memory_stays() {
    for policy in POLICIES {
        let mm = machine(policy, 32, 100);
        let (file, space, at) = share(&mm, 20_000);
        let touched = (0..20_000).take_while(|&page| {
            play(&mm);
            mm.spaces().touch_page(&space, at.add(page), Touch::Write).is_ok()
        });
        let touched = touched.count() as u64;
        assert_eq!(file.swapped_pages(mm.machine()), 100, "{policy}");
        assert_eq!(file.cached_pages(mm.machine()) + 100, touched, "{policy}: nothing was thrown away");
        check(&mm);
    }
}

/// A page that comes back while those in use would have left it room belongs to them.
#[test]
fn shared_memory_that_comes_back_early_is_active() {
    let mm = machine("linux-6.6", 64, 10);
    let disk = mm.files().new_file(FileKind::Disk);
    for page in 0..8 {
        mm.files().read_file(&disk, page, Placement::default()).unwrap();
    }
    let (_, space, at) = share(&mm, 1);
    mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    mm.pages_out().page_out(&space, at, 1).unwrap();
    assert_eq!(mm.spaces().swap_pages().0, 1, "a program may send it out itself");
    mm.spaces().touch_page(&space, at, Touch::Read).unwrap();
    mm.lru().lru_drain_all();
    let counters = mm.views().counters();
    let names = ["nr_active_anon", "workingset_refault_anon", "workingset_activate_anon"];
    assert_eq!(names.map(|name| counters.get(name)), [1, 1, 1]);
    check(&mm);
}

/// Reclaim for a page that is read ahead takes shared memory from whoever maps it, and leaves it in memory: it would be a file system that writes
/// it, from within one (since 5.8).
#[test]
fn reading_ahead_does_not_send_shared_memory_to_swap() {
    for (policy, stays) in [("linux-5.4", false), ("linux-5.10", true), ("linux-6.18", true)] {
        let mm = machine(policy, 64, 10_000);
        let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
        mm.memcg().join(TaskId(0), group);
        mm.memcg().set_limit(group, Limit::Max, 2_500);
        let (memory, space, at) = share(&mm, 3_000);
        for page in 0..3_000 {
            mm.spaces().touch_page(&space, at.add(page), Touch::Write).unwrap();
        }
        let disk = mm.files().new_file(FileKind::Disk);
        disk.set_len(4_000);
        disk.set_read_ahead(32);
        for first in (0..4_000).step_by(4) {
            mm.files().read_pages(&disk, first..first + 4, Placement::default()).unwrap();
        }
        let unmapped = memory.cached_pages(mm.machine()) - space.resident_pages();
        assert_eq!(unmapped > 0, stays, "{policy}: {unmapped} pages are in memory and not mapped");
        check(&mm);
    }
}

/// Before 6.14 the slots around are read too, as long as that is of use; what nobody wants goes again, and is not written.
#[test]
fn neighbours_come_too_where_they_are_of_use() {
    for (policy, by_clusters) in [("linux-6.12", true), ("linux-6.18", false)] {
        let mm = machine(policy, 64, 1000);
        let (file, space, at) = share(&mm, 512);
        mm.spaces().populate(&space, at, 512, Touch::Write).unwrap();
        mm.lru().lru_drain_all();
        mm.pages_out().page_out(&space, at, 512).unwrap();
        assert_eq!(file.swapped_pages(mm.machine()), 512, "{policy}");
        for page in 0..256 {
            mm.spaces().touch_page(&space, at.add(page), Touch::Read).unwrap();
        }
        let counted = || {
            let counters = mm.views().counters();
            ["pgmajfault", "pswpin", "swap_ra", "swap_ra_hit"].map(|name| counters.get(name))
        };
        // Slot 0 is the header's: page 7 is the first of the second eight, and 255 the first of the last.
        let wanted = if by_clusters { [33, 263, 230, 223] } else { [256, 256, 0, 0] };
        assert_eq!(counted(), wanted, "{policy}");
        let ahead = if by_clusters { 7 } else { 0 };
        assert_eq!(file.pages_read_ahead(mm.machine()), ahead, "{policy}");
        check(&mm);
        // Here and there they are of none: half as many with each, and then no more.
        let before = counted();
        for page in [300, 340, 380, 420, 460, 500] {
            mm.spaces().touch_page(&space, at.add(page), Touch::Read).unwrap();
        }
        let read = counted()[1] - before[1];
        assert_eq!(read, if by_clusters { 6 + 3 + 1 } else { 6 }, "{policy}");
        check(&mm);
        mm.files().drop_file(&file);
        assert_eq!(mm.spaces().swap_pages().0, 0, "{policy}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Touch(Touch),
    Read,
    Write,
    PageOut,
    CutOff,
    Forget,
    Unmap,
}

fn steps() -> impl Strategy<Value = Vec<(Step, u32, u32)>> {
    let step = prop_oneof![
        4 => Just(Step::Touch(Touch::Write)),
        3 => Just(Step::Touch(Touch::Read)),
        1 => Just(Step::Read),
        1 => Just(Step::Write),
        2 => Just(Step::PageOut),
        1 => Just(Step::CutOff),
        1 => Just(Step::Forget),
        1 => Just(Step::Unmap),
    ];
    prop::collection::vec((step, 0..9_000_u32, 1..2_500_u32), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_page_is_in_two_places_and_none_is_lost(steps in steps(), policy in 0..POLICIES.len(), swap in 500..9_000_u32) {
        const PAGES: u32 = 11_500;
        let mm = machine(POLICIES[policy], 32, swap);
        let (file, space, at) = share(&mm, PAGES);
        let mut known = std::collections::BTreeSet::new();
        for (step, first, pages) in steps {
            match step {
                Step::CutOff => {
                    mm.pages_out().cut_off(&file, first, pages);
                    known.retain(|page| !(first..first + pages).contains(page));
                }
                Step::Forget => drop(mm.files().forget_pages(&file, first..first + pages)),
                Step::Unmap => {
                    mm.spaces().munmap(&space, at, PAGES);
                    mm.spaces().mmap_at(&space, at, MapSpec::shared(&file, PAGES)).unwrap();
                }
                Step::PageOut => drop(mm.pages_out().page_out(&space, at.add(first), pages)),
                Step::Touch(_) | Step::Read | Step::Write => {
                    for page in first..first + pages {
                        let done = match step {
                            Step::Touch(touch) => mm.spaces().touch_page(&space, at.add(page), touch).is_ok(),
                            Step::Read => mm.files().read_file(&file, page, Placement::default()).is_ok(),
                            _ => mm.files().write_file(&file, page, Placement::default()).is_ok(),
                        };
                        if done {
                            known.insert(page);
                        }
                        play(&mm);
                    }
                }
            }
            check(&mm);
            let there = file.cached_pages(mm.machine()) + file.swapped_pages(mm.machine());
            prop_assert_eq!(there, known.len() as u64, "{:?}", step);
            prop_assert_eq!(u64::from(mm.spaces().swap_pages().0), file.swapped_pages(mm.machine()));
        }
        mm.spaces().exit(&space);
        mm.files().drop_file(&file);
        mm.lru().lru_drain_all();
        prop_assert_eq!((mm.views().memory_use().held(), mm.spaces().swap_pages().0), (0, 0));
    }
}
