//! Shared memory in pages of several frames (`shmem_enabled`): which of it has them, what becomes of the entries that map them whole, and
//! their way to swap and back.

mod common;

use common::play;
use freehold_mm::ids::{Node, PAGEBLOCK_PAGES};
use freehold_mm::vm::{
    AddressSpace, Advice, FaultKind, File, FileKind, HugePages, MapSpec, MemoryFile, MemoryLock, Placement,
    Protection, Touch, Vpn,
};
use freehold_mm::{Bare, GroupId, Knob, Knobs, Limit, Mm, NodeSize, Policy, TaskId, Topology};
use proptest::prelude::*;
use std::sync::Arc;

const HUGE: u32 = PAGEBLOCK_PAGES;
const NEVER: u64 = 0;
const ALWAYS: u64 = 1;
const WITHIN_SIZE: u64 = 2;
const ADVISE: u64 = 3;
const DENY: u64 = 4;
const FORCE: u64 = 5;

/// A node of so many MiB, and so many pages of swap.
fn machine(policy: &str, mib: u64, swap: u32, set: &[(Knob, u64)]) -> Mm<Bare> {
    let topology = Topology::x86(&[NodeSize { bytes: mib << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
    knobs.set(Knob::OvercommitMemory, 1).unwrap();
    for &(knob, value) in set {
        knobs.set(knob, value).unwrap();
    }
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
    mm.spaces().set_swap(swap);
    mm
}

fn always(policy: &str) -> Mm<Bare> {
    machine(policy, 128, 20_000, &[(Knob::SharedHugepage, ALWAYS)])
}

/// `pages` of shared memory, mapped by a space of its own.
fn share(mm: &Mm<Bare>, pages: u32) -> (Arc<File<Bare>>, Arc<AddressSpace<Bare>>, Vpn) {
    let (file, space) = (mm.files().new_file(FileKind::Memory), mm.spaces().new_space());
    file.set_len(pages);
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, pages)).unwrap();
    (file, space, at)
}

fn touch(mm: &Mm<Bare>, space: &AddressSpace<Bare>, vpn: Vpn, touch: Touch) -> Option<FaultKind> {
    mm.spaces().touch_page(space, vpn, touch).unwrap().1
}

fn counts<const N: usize>(mm: &Mm<Bare>, names: [&str; N]) -> [u64; N] {
    let counters = mm.views().counters();
    names.map(|name| counters.get(name))
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

const SHARED: Option<FaultKind> = Some(FaultKind::HugeShared);
const MINOR: Option<FaultKind> = Some(FaultKind::Minor);

#[test]
fn a_fault_brings_a_huge_page_that_others_map_too() {
    let mm = always("linux-6.18");
    let (file, space, at) = share(&mm, 2 * HUGE);
    let tables = space.table_pages();
    assert_eq!(touch(&mm, &space, at.add(700), Touch::Write), SHARED);
    assert_eq!(touch(&mm, &space, at.add(512), Touch::Read), None);
    assert_eq!((file.cached_pages(mm.machine()), space.resident_pages()), (512, 512));
    assert_eq!(space.counters().shmem, 512);
    assert_eq!(space.table_pages() - tables, 2, "only those above it");
    let child = mm.spaces().fork(&space).unwrap();
    assert_eq!(child.resident_pages(), 0, "shared memory is faulted in anew");
    assert_eq!(touch(&mm, &child, at.add(513), Touch::Read), SHARED);
    assert_eq!(touch(&mm, &child, at.add(3), Touch::Read), SHARED);
    assert_eq!(counts(&mm, ["thp_file_alloc", "thp_file_mapped", "thp_fault_alloc"]), [2, 3, 0]);
    check(&mm);
    mm.spaces().exit(&child);
    mm.spaces().exit(&space);
    check(&mm);
    mm.files().drop_file(&file);
    mm.lru().lru_drain_all();
    assert_eq!(mm.views().memory_use().held(), 0);
}

/// By setting, advice and where the file is; 3.5 MiB, of which the second half huge page cannot be one.
#[test]
fn who_has_huge_pages_is_said_by_the_setting() {
    use MemoryFile::{Mounted, OwnMount, Unnamed};
    let (as_set, advised, never) = (HugePages::AsConfigured, HugePages::Advised, HugePages::Never);
    for (value, huge, memory, expected) in [
        (NEVER, advised, Unnamed, false),
        (ALWAYS, as_set, Unnamed, true),
        (ALWAYS, never, Unnamed, false),
        (ALWAYS, as_set, OwnMount, true),
        (ALWAYS, advised, Mounted, false),
        (WITHIN_SIZE, as_set, Unnamed, true),
        (ADVISE, as_set, Unnamed, false),
        (ADVISE, advised, Unnamed, true),
        (ADVISE, advised, OwnMount, true),
        (DENY, advised, Unnamed, false),
        (FORCE, as_set, Mounted, true),
        (FORCE, never, Mounted, false),
    ] {
        let mm = machine("linux-6.18", 64, 0, &[(Knob::SharedHugepage, value)]);
        let (file, space) = (mm.files().new_file(FileKind::Memory), mm.spaces().new_space());
        file.set_memory(memory);
        let spec = MapSpec { huge, ..MapSpec::shared(&file, HUGE + 384) };
        let at = mm.spaces().mmap(&space, spec).unwrap();
        let wanted = if expected { SHARED } else { MINOR };
        assert_eq!(touch(&mm, &space, at.add(9), Touch::Write), wanted, "{value} {huge:?} {memory:?}");
        assert_eq!(
            touch(&mm, &space, at.add(HUGE + 9), Touch::Write),
            MINOR,
            "it would reach beyond the region"
        );
        check(&mm);
    }
}

#[test]
fn a_size_has_a_file_of_its_own_for_memory_without_a_name() {
    for (size, all, memory, expected) in [
        (ALWAYS, NEVER, MemoryFile::Unnamed, 4),
        (ALWAYS, NEVER, MemoryFile::OwnMount, 64),
        (ALWAYS, DENY, MemoryFile::Unnamed, 64),
        (4, ADVISE, MemoryFile::Unnamed, 64),
        (4, ALWAYS, MemoryFile::Unnamed, 4),
    ] {
        let set = [(Knob::Shared64kB, size), (Knob::SharedHugepage, all), (Knob::Shared2048kB, NEVER)];
        let mm = machine("linux-6.18", 64, 0, &set);
        let (file, space) = (mm.files().new_file(FileKind::Memory), mm.spaces().new_space());
        file.set_memory(memory);
        let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 64)).unwrap();
        let faults = (0..64).filter(|&page| touch(&mm, &space, at.add(page), Touch::Write).is_some()).count();
        assert_eq!(faults, expected, "{size} {all} {memory:?}: all of a folio is mapped with its first page");
        assert_eq!(space.resident_pages(), 64);
        check(&mm);
    }
}

/// What changes in part loses its entry, and comes back by the next touch; the page stays.
#[test]
fn an_entry_for_all_of_it_is_cleared_where_a_part_changes() {
    type Change = fn(&Mm<Bare>, &AddressSpace<Bare>, Vpn);
    let changes: [(Change, Option<FaultKind>); 3] = [
        (|mm, space, at| mm.spaces().discard(space, at.add(7), 9), SHARED),
        (|mm, space, at| mm.spaces().munmap(space, at.add(500), 12), MINOR),
        (|mm, space, at| mm.spaces().protect(space, at.add(100), 9, Protection::Read).unwrap(), MINOR),
    ];
    for (number, (change, then)) in changes.into_iter().enumerate() {
        let mm = always("linux-6.12");
        let (file, space, at) = share(&mm, HUGE);
        touch(&mm, &space, at, Touch::Write);
        change(&mm, &space, at);
        check(&mm);
        assert_eq!(space.resident_pages(), 0, "{number}");
        assert_eq!(touch(&mm, &space, at.add(2), Touch::Read), then, "{number}");
        assert_eq!(file.cached_pages(mm.machine()), 512, "{number}");
        assert_eq!(counts(&mm, ["thp_split_pmd"]), [1], "{number}");
        check(&mm);
    }
}

#[test]
fn a_private_mapping_reads_it_and_copies_small_pages() {
    let mm = always("linux-6.18");
    let (file, space, at) = share(&mm, HUGE);
    touch(&mm, &space, at, Touch::Write);
    let own = mm.spaces().mmap(&space, MapSpec::private(&file, HUGE)).unwrap();
    assert_eq!(touch(&mm, &space, own.add(5), Touch::Read), SHARED);
    assert_eq!(touch(&mm, &space, own.add(5), Touch::Write), Some(FaultKind::Copied));
    assert_eq!((space.counters().anon, space.counters().shmem), (1, 512), "the other entry stands");
    check(&mm);
    mm.spaces().exit(&space);
    check(&mm);
}

#[test]
fn a_huge_page_moves_with_its_entry() {
    let topology =
        Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }; 2], 1 << 20, vec![vec![10, 20], vec![20, 10]]);
    let knobs = Knobs::default();
    knobs.set(Knob::SharedHugepage, ALWAYS).unwrap();
    let mm =
        Mm::new(Bare::default(), topology.unwrap(), Policy::parse("linux-6.18").unwrap(), knobs).unwrap();
    let (_, space, at) = share(&mm, HUGE);
    touch(&mm, &space, at, Touch::Write);
    mm.lru().lru_drain_all();
    mm.rmap().move_page(&space, at.add(9), Node(1)).unwrap();
    assert_eq!((space.pages_on(Node(0)), space.pages_on(Node(1))), (0, 512));
    assert_eq!(touch(&mm, &space, at.add(9), Touch::Write), None);
    check(&mm);
}

/// Kernels before 6.12 split it first; since 6.14 what went whole comes back whole, where swap has no queue.
#[test]
fn it_goes_to_swap_whole_and_comes_back_whole() {
    for (policy, whole_out, whole_in) in [
        ("linux-6.6", false, false),
        ("linux-6.12", true, false),
        ("linux-6.18", true, true),
        ("linux-7.2", true, true),
    ] {
        let mm = always(policy);
        let (file, space, at) = share(&mm, HUGE);
        touch(&mm, &space, at, Touch::Write);
        mm.lru().lru_drain_all();
        mm.pages_out().page_out(&space, at, HUGE).unwrap();
        assert_eq!((file.swapped_pages(mm.machine()), space.resident_pages()), (512, 0), "{policy}");
        let [out, split] = counts(&mm, ["thp_swpout", "thp_split_page"]);
        assert_eq!((out, split), (u64::from(whole_out), u64::from(!whole_out)), "{policy}");
        check(&mm);
        assert_eq!(touch(&mm, &space, at.add(7), Touch::Write), Some(FaultKind::Swapped), "{policy}");
        let back = if whole_in { (512, 0, 512) } else { (1, 511, 1) };
        let found =
            (file.cached_pages(mm.machine()), file.swapped_pages(mm.machine()), space.resident_pages());
        assert_eq!(found, back, "{policy}");
        check(&mm);
        mm.spaces().exit(&space);
        mm.files().drop_file(&file);
        mm.lru().lru_drain_all();
        assert_eq!((mm.views().memory_use().held(), mm.spaces().swap_pages().0), (0, 0), "{policy}");
    }
}

/// Where its group has no room for all of it, a huge page does not come; what went so comes back in parts.
#[test]
fn without_room_in_its_group_it_is_of_small_pages() {
    let mm = always("linux-6.18");
    let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
    mm.memcg().join(TaskId(0), group);
    mm.memcg().set_limit(group, Limit::Max, 1_000);
    let (file, space, at) = share(&mm, 4 * HUGE);
    for page in 0..4 * HUGE {
        touch(&mm, &space, at.add(page), Touch::Write);
    }
    let [alloc, fallback, of_charge] =
        counts(&mm, ["thp_file_alloc", "thp_file_fallback", "thp_file_fallback_charge"]);
    assert!(alloc >= 1 && fallback >= 1 && fallback == of_charge, "{alloc} {fallback} {of_charge}");
    check(&mm);
    for page in (0..4 * HUGE).rev() {
        touch(&mm, &space, at.add(page), Touch::Read);
        mm.lru().flush_stats(group);
    }
    assert_eq!(file.cached_pages(mm.machine()) + file.swapped_pages(mm.machine()), u64::from(4 * HUGE));
    check(&mm);
}

#[test]
fn khugepaged_puts_one_in_the_place_of_small_ones_whoever_maps_them() {
    let mm = machine("linux-6.18", 128, 0, &[(Knob::KhugepagedMaxPtesNone, 256)]);
    let (file, space, at) = share(&mm, 3 * HUGE);
    let child = mm.spaces().fork(&space).unwrap();
    for page in 0..HUGE + 256 {
        touch(&mm, &space, at.add(page), Touch::Write);
        touch(&mm, &child, at.add(page), Touch::Read);
    }
    touch(&mm, &space, at.add(2 * HUGE), Touch::Write);
    assert_eq!(mm.collapses().khugepaged(), None, "nothing may be huge");
    mm.knobs().set(Knob::SharedHugepage, ALWAYS).unwrap();
    assert_eq!(mm.collapses().khugepaged(), None, "nobody has entered");
    mm.spaces().advise(&space, at, 3 * HUGE, HugePages::Advised);
    let tables = space.table_pages();
    mm.collapses().khugepaged().unwrap();
    assert_eq!(file.cached_pages(mm.machine()), 2 * 512 + 1, "of the third too little is there");
    let names = ["thp_collapse_alloc", "khugepaged_pages_collapsed", "thp_file_mapped"];
    assert_eq!(counts(&mm, names), [2, 2, 0]);
    assert_eq!((space.resident_pages(), child.resident_pages()), (1, 0), "nobody maps them yet");
    assert_eq!(tables - space.table_pages(), 2);
    check(&mm);
    assert_eq!(touch(&mm, &child, at.add(9), Touch::Read), SHARED);
    assert_eq!(touch(&mm, &space, at.add(HUGE + 400), Touch::Write), SHARED);
    check(&mm);
}

#[test]
fn a_program_may_have_one_made_and_mapped_at_once() {
    let mm = machine("linux-6.12", 128, 0, &[]);
    let (_, space, at) = share(&mm, HUGE);
    for page in 0..64 {
        touch(&mm, &space, at.add(page), Touch::Write);
    }
    mm.lru().lru_drain_all();
    mm.spaces().madvise(&space, at, HUGE, Advice::Collapse).unwrap();
    assert_eq!(space.resident_pages(), 512);
    assert_eq!(touch(&mm, &space, at.add(400), Touch::Write), None);
    assert_eq!(counts(&mm, ["thp_collapse_alloc", "thp_file_mapped"]), [1, 1]);
    check(&mm);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Touch(Touch),
    Write,
    PageOut,
    CutOff,
    Discard,
    Remap,
    Protect(Protection),
    Lock(MemoryLock),
    Collapse,
    Khugepaged,
    Fork,
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<(Step, u32, u32)>> {
    let step = prop_oneof![
        5 => Just(Step::Touch(Touch::Write)),
        4 => Just(Step::Touch(Touch::Read)),
        1 => Just(Step::Write),
        3 => Just(Step::PageOut),
        2 => Just(Step::CutOff),
        2 => Just(Step::Discard),
        1 => Just(Step::Remap),
        1 => Just(Step::Protect(Protection::Read)),
        2 => Just(Step::Protect(Protection::ReadWrite)),
        1 => Just(Step::Lock(MemoryLock::Keep)),
        2 => Just(Step::Lock(MemoryLock::Release)),
        2 => Just(Step::Collapse),
        2 => Just(Step::Khugepaged),
        1 => Just(Step::Fork),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec((step, 0..PAGES - 1, 1..1_500_u32), 1..40)
}

/// What a step does to a mapping other than to touch, cut or copy it.
fn change(
    mm: &Mm<Bare>,
    (file, space, at): (&Arc<File<Bare>>, &Arc<AddressSpace<Bare>>, Vpn),
    (step, first, pages): (Step, u32, u32),
) {
    let from = at.add(first);
    match step {
        Step::Discard => mm.spaces().discard(space, from, pages),
        Step::Remap => {
            mm.spaces().munmap(space, at, PAGES);
            mm.spaces().mmap_at(space, at, MapSpec::shared(file, PAGES)).unwrap();
        }
        Step::PageOut => drop(mm.pages_out().page_out(space, from, pages)),
        Step::Protect(protection) => mm.spaces().protect(space, from, pages, protection).unwrap(),
        Step::Lock(lock) => drop(mm.spaces().mlock(space, from, pages, lock)),
        Step::Collapse => drop(mm.spaces().madvise(space, from, pages, Advice::Collapse)),
        Step::Khugepaged => drop(mm.collapses().khugepaged()),
        Step::Compact => mm.compaction().compact_node(Node(0)),
        Step::Touch(_) | Step::Write | Step::CutOff | Step::Fork => unreachable!("made by the caller"),
    }
}

/// 9 MiB and some pages.
const PAGES: u32 = 9 * 256 + 77;
const POLICIES: [&str; 6] = ["linux-4.14", "linux-6.1", "linux-6.12", "linux-6.18", "linux-7.2", "freehold"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn nothing_is_lost_whatever_is_done_to_it(
        steps in steps(),
        policy in 0..POLICIES.len(),
        (value, size) in (0..6_u64, 0..5_u64),
        (mib, swap) in (8..40_u64, 0..6_000_u32),
    ) {
        let mut set = vec![(Knob::SharedHugepage, value), (Knob::KhugepagedMaxPtesNone, 511)];
        // Since 6.11.
        set.extend((policy > 1).then_some((Knob::Shared64kB, size)));
        let mm = machine(POLICIES[policy], mib, swap, &set);
        let (file, space, at) = share(&mm, PAGES);
        let mut children: Vec<Arc<AddressSpace<Bare>>> = Vec::new();
        let mut known = std::collections::BTreeSet::new();
        for (step, first, pages) in steps {
            let pages = pages.min(PAGES - first);
            match step {
                Step::CutOff => {
                    mm.pages_out().cut_off(&file, first, pages);
                    known.retain(|page| !(first..first + pages).contains(page));
                }
                Step::Touch(_) | Step::Write => {
                    let of_child = |page| children.last().map(|child| mm.spaces().touch_page(child, at.add(page), Touch::Read));
                    for page in first..first + pages {
                        let done = match step {
                            Step::Touch(touch) => {
                                of_child(page);
                                mm.spaces().touch_page(&space, at.add(page), touch).is_ok()
                            }
                            _ => mm.files().write_file(&file, page, Placement::default()).is_ok(),
                        };
                        known.extend(done.then_some(page));
                        play(&mm);
                    }
                }
                Step::Fork => children.extend(mm.spaces().fork(&space)),
                other => change(&mm, (&file, &space, at), (other, first, pages)),
            }
            check(&mm);
            let there = file.cached_pages(mm.machine()) + file.swapped_pages(mm.machine());
            prop_assert!(there >= known.len() as u64, "{:?}: {} of {}", step, there, known.len());
            prop_assert_eq!(u64::from(mm.spaces().swap_pages().0), file.swapped_pages(mm.machine()));
        }
        for child in &children {
            mm.spaces().exit(child);
        }
        mm.spaces().exit(&space);
        check(&mm);
        mm.files().drop_file(&file);
        mm.lru().lru_drain_all();
        prop_assert_eq!((mm.views().memory_use().held(), mm.spaces().swap_pages().0), (0, 0));
    }
}
