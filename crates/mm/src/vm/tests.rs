//! What reclaim and migration ask of address spaces: who touched a page, taking it out of all page tables, moving it.

use alloc::sync::Arc;

use super::region::HugePages;
use super::{
    AddressSpace, Advice, AdviceError, AheadDoor, DirtyFolio, FaultKind, FileKind, MapSpec, MemoryLock,
    Placement, ReadPattern, SpaceCounters, SwapDevice, Touch, Vpn, Walk, bit,
};
use crate::MigrateError;
use crate::ground::Nanos;
use crate::ground::bare::Bare;
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::Daemon;
use crate::ground::topology::{NodeSize, Topology};
use crate::lru::Swappiness;
use crate::lru::page::PageFlag;
use crate::memcg::GroupId;
use crate::mm::Mm;
use crate::pages::request::Request;
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::Policy;
use crate::vm::rmap::Leave;

fn machine(huge: u64) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, alloc::vec![alloc::vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, huge).unwrap();
    Mm::new(Bare::default(), topology, Policy::default(), knobs).unwrap()
}

/// Pages handed out, once no CPU keeps any back for the LRU lists.
fn held(mm: &Mm<Bare>) -> u64 {
    mm.lru().lru_drain_all();
    mm.views().memory_use().held()
}

fn read(mm: &Mm<Bare>, space: &AddressSpace<Bare>, vpn: Vpn) -> (Pfn, Option<FaultKind>) {
    mm.spaces().touch_page(space, vpn, Touch::Read).unwrap()
}

#[test]
fn a_touch_is_seen_once_by_all_who_share() {
    let mm = machine(0);
    let parent = mm.spaces().new_space();
    let at = mm.spaces().mmap(&parent, MapSpec::anonymous(4)).unwrap();
    mm.spaces().populate(&parent, at, 4, Touch::Write).unwrap();
    let child = mm.spaces().fork(&parent).unwrap();
    let (other, _) = read(&mm, &parent, at.add(1));
    assert_eq!(mm.rmap().referenced(other).places, 1, "the child has used nothing yet");
    let (pfn, _) = read(&mm, &child, at);
    assert_eq!(mm.rmap().referenced(pfn).places, 2);
    assert_eq!(mm.rmap().referenced(pfn).places, 0);
    read(&mm, &child, at);
    assert_eq!(mm.rmap().referenced(pfn).places, 1);
}

/// Who ages a list asks for touches only: what is known of a page stays for whoever decides on it.
#[test]
fn asking_for_touches_leaves_what_is_known_of_a_page() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(1)).unwrap();
    mm.spaces().populate(&space, at, 1, Touch::Write).unwrap();
    let (pfn, _) = read(&mm, &space, at);
    mm.lru().page(pfn).set(PageFlag::Referenced);
    assert_eq!(mm.rmap().referenced(pfn).places, 1);
    assert!(mm.lru().page(pfn).has(PageFlag::Referenced));
}

/// Who walks a group's tables leaves a space alone that had no time to run since.
#[test]
fn tables_are_walked_again_once_their_program_may_have_run() {
    let mm = machine(0);
    mm.set_knob(Knob::LruGenEnabled, 7).unwrap();
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(1)).unwrap();
    mm.spaces().populate(&space, at, 1, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    let (pfn, _) = read(&mm, &space, at);
    let vec = mm.lru().vec_of(pfn);
    let walk = Walk { vec, generation: mm.rmap().generations().youngest(vec), swappiness: Swappiness(60) };
    let is_young = || space.table(at).unwrap().entry(at).has(bit::ACCESSED);
    mm.rmap().walk_tables(walk);
    assert!(!is_young());
    read(&mm, &space, at);
    mm.rmap().walk_tables(walk);
    assert!(is_young(), "it did not run since");
    mm.machine().set_now(Nanos(4_000_000));
    mm.rmap().walk_tables(walk);
    assert!(!is_young());
}

/// What is new to a group is walked whole, whatever was found dense before it came.
#[test]
fn a_new_space_is_walked_whole() {
    let mm = machine(0);
    mm.set_knob(Knob::LruGenEnabled, 7).unwrap();
    let touched = || {
        let space = mm.spaces().new_space();
        let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
        mm.lru().lru_drain_all();
        (space, at)
    };
    let is_young = |(space, at): &(Arc<AddressSpace<Bare>>, Vpn)| {
        space.table(*at).unwrap().entry(*at).has(bit::ACCESSED)
    };
    let first = touched();
    let vec = mm.lru().vec_of(read(&mm, &first.0, first.1).0);
    let generation = mm.rmap().generations().youngest(vec);
    mm.rmap().walk_tables(Walk { vec, generation, swappiness: Swappiness(60) });
    assert!(!is_young(&first));
    read(&mm, &first.0, first.1);
    let second = touched();
    mm.machine().set_now(Nanos(4_000_000));
    mm.rmap().walk_tables(Walk { vec, generation: generation + 1, swappiness: Swappiness(60) });
    assert!(is_young(&first), "one page of 512 in use is too few to look there again");
    assert!(!is_young(&second));
}

/// What programs said of how they read decides whether a touch is seen.
#[test]
fn touches_of_mappings_that_are_read_in_order_are_not_seen() {
    let cases = [
        ("linux-6.1", ReadPattern::Sequential, 0),
        ("linux-6.1", ReadPattern::Random, 1),
        ("linux-6.6", ReadPattern::Sequential, 0),
        ("linux-6.6", ReadPattern::Random, 0),
        ("linux-6.6", ReadPattern::Normal, 1),
    ];
    for (policy, pattern, seen) in cases {
        let topology =
            Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }], 1 << 20, alloc::vec![alloc::vec![10]]);
        let policy_of = Policy::parse(policy).unwrap();
        let mm = Mm::new(Bare::default(), topology.unwrap(), policy_of, Knobs::default()).unwrap();
        let space = mm.spaces().new_space();
        let at = mm.spaces().mmap(&space, MapSpec::anonymous(1)).unwrap();
        mm.spaces().madvise(&space, at, 1, Advice::Reads(pattern)).unwrap();
        let (pfn, _) = mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
        let child = mm.spaces().fork(&space).unwrap();
        assert_eq!(mm.rmap().referenced(pfn).places, seen, "{policy} {pattern:?}");
        read(&mm, &child, at);
        assert_eq!(mm.rmap().referenced(pfn).places, seen, "{policy} {pattern:?}, of a child");
    }
}

/// Of a range, what lies before locked memory is advised.
#[test]
fn locked_memory_is_not_to_be_told_to_go() {
    for advice in [Advice::DontNeed, Advice::Free, Advice::Cold] {
        let mm = machine(0);
        let space = mm.spaces().new_space();
        let at = mm.spaces().mmap(&space, MapSpec::anonymous(4)).unwrap();
        mm.spaces().populate(&space, at, 4, Touch::Write).unwrap();
        mm.spaces().mlock(&space, at.add(2), 1, MemoryLock::Keep).unwrap();
        assert_eq!(mm.spaces().madvise(&space, at, 4, advice), Err(AdviceError::Invalid), "{advice:?}");
        let there = if advice == Advice::DontNeed { 2 } else { 4 };
        assert_eq!(space.resident_pages(), there, "{advice:?}");
        mm.spaces().madvise(&space, at.add(3), 1, advice).unwrap();
    }
}

/// A page of a private mapping that comes back from swap while pages in use would have left it room belongs to them.
#[test]
fn what_comes_back_early_from_swap_is_active() {
    let topology =
        Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }], 1 << 20, alloc::vec![alloc::vec![10]]);
    let policy = Policy::parse("linux-6.6").unwrap();
    let mm = Mm::new(Bare::default(), topology.unwrap(), policy, Knobs::default()).unwrap();
    mm.spaces().set_swap(10);
    let file = mm.files().new_file(FileKind::Disk);
    for page in 0..8 {
        mm.files().read_file(&file, page, Placement::default()).unwrap();
    }
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(1)).unwrap();
    mm.spaces().populate(&space, at, 1, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    mm.pages_out().page_out(&space, at, 1).unwrap();
    assert_eq!(space.swapped_pages(), 1);
    let (pfn, kind) = read(&mm, &space, at);
    assert_eq!(kind, Some(FaultKind::Swapped));
    assert!(mm.lru().page(pfn).has(PageFlag::Active));
    mm.lru().lru_drain_all();
    assert_eq!(mm.views().counters().get("nr_active_anon"), 1);
    mm.views().check().unwrap();
}

#[test]
fn faults_that_a_call_had_are_counted_apart_too() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(8)).unwrap();
    mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
    mm.spaces().populate(&space, at, 4, Touch::Read).unwrap();
    let counted = || {
        let SpaceCounters { minor, zero, copied, populated, populated_writes, .. } = space.counters();
        [minor, zero, copied, populated, populated_writes]
    };
    assert_eq!(counted(), [4, 3, 0, 3, 0], "one was there");
    mm.spaces().populate(&space, at, 8, Touch::Write).unwrap();
    assert_eq!(counted(), [11, 3, 3, 10, 3], "three pages of zeros are copied");
}

#[test]
fn what_is_swapped_out_comes_back() {
    let mm = machine(0);
    mm.spaces().set_swap(10);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(4)).unwrap();
    mm.spaces().populate(&space, at, 4, Touch::Write).unwrap();
    let child = mm.spaces().fork(&space).unwrap();
    let (pfn, _) = read(&mm, &space, at);
    mm.lru().lru_drain_all();
    mm.lru().page(pfn).get();
    let slot = mm.swap().swap_slots(GroupId::ROOT, Order::ZERO).unwrap();
    assert!(mm.rmap().try_to_unmap(pfn, Leave::Swap(slot)));
    mm.swap().release_slots(slot, Order::ZERO);
    assert!(mm.files().remove_mapping(pfn, GroupId::ROOT));
    mm.lru().free_page(pfn);
    mm.spaces().check_vm().unwrap();
    assert_eq!((space.swapped_pages(), child.swapped_pages(), mm.spaces().swap_pages().0), (1, 1, 1));
    assert_eq!(read(&mm, &child, at).1, Some(FaultKind::Swapped));
    assert_eq!((space.swapped_pages(), child.swapped_pages(), mm.spaces().swap_pages().0), (1, 0, 1));
    mm.spaces().exit(&space);
    mm.spaces().exit(&child);
    assert_eq!((held(&mm), mm.spaces().swap_pages().0), (0, 0));
}

/// What lies beside its slot moves like other pages, once the disk has it, and so does what keeps its slot.
#[test]
fn what_is_in_swap_and_in_memory_moves() {
    let mm = machine(0);
    mm.spaces().set_swap_on(SwapDevice::DISK, 100);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(4)).unwrap();
    mm.spaces().populate(&space, at, 4, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    mm.pages_out().page_out(&space, at, 4).unwrap();
    mm.lru().lru_drain_all();
    let (slot, from) = mm.swap().all_beside()[0];
    let migrate = |from: Pfn| {
        let alone = mm.lru().isolate_page(from).unwrap();
        let moved = mm.rmap().migrate_to(from, Request::USER);
        match moved {
            Ok(()) => mm.lru().end_isolation_of(alone),
            Err(_) => mm.lru().put_back_page(from, alone),
        }
        moved
    };
    assert_eq!(migrate(from), Err(MigrateError::Busy), "it is on its way to the disk");
    AheadDoor::on(&mm).note_written();
    mm.lru().lru_drain_all();
    assert_eq!(migrate(from), Ok(()));
    mm.spaces().check_vm().unwrap();
    let (same, to) = mm.swap().all_beside()[0];
    assert!(slot == same && to != from);
    assert_eq!(read(&mm, &space, at), (to, Some(FaultKind::Minor)), "it is found where it is now");
    assert!(mm.lru().page(to).has(PageFlag::SwapCache));
    mm.lru().lru_drain_all();
    assert_eq!(migrate(to), Ok(()));
    let (last, _) = read(&mm, &space, at);
    assert!(last != to && mm.lru().page(last).has(PageFlag::SwapCache), "it has kept its slot");
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
    assert_eq!((held(&mm), mm.spaces().swap_pages().0), (0, 0));
}

#[test]
fn what_is_cut_off_a_file_goes_wherever_it_is_mapped() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Memory);
    let (one, other) = (mm.spaces().new_space(), mm.spaces().new_space());
    let at = mm.spaces().mmap(&one, MapSpec::shared(&file, 8)).unwrap();
    let there = mm.spaces().mmap(&other, MapSpec::shared(&file, 8)).unwrap();
    mm.spaces().populate(&one, at, 8, Touch::Write).unwrap();
    mm.spaces().populate(&other, there, 8, Touch::Write).unwrap();
    let own = mm.spaces().mmap(&other, MapSpec::private(&file, 8)).unwrap();
    mm.spaces().populate(&other, own, 3, Touch::Write).unwrap();
    assert_eq!(mm.pages_out().cut_off(&file, 2, 4), 4);
    mm.spaces().check_vm().unwrap();
    let resident = |space| AddressSpace::resident_pages(space);
    assert_eq!((resident(&one), resident(&other)), (4, 4 + 3), "copies of a private mapping stay");
    assert_eq!(file.cached_within(mm.machine(), 0, 8), 4);
    read(&mm, &one, at.add(3));
    assert_eq!(file.cached_within(mm.machine(), 0, 8), 5, "a hole is filled by who touches it");
    mm.spaces().exit(&one);
    mm.spaces().exit(&other);
    mm.files().drop_file(&file);
    assert_eq!(held(&mm), 0);
}

#[test]
fn a_page_moves_and_all_who_map_it_follow() {
    for (huge, order) in [(0, Order::ZERO), (1, Order::PAGEBLOCK)] {
        let mm = machine(huge);
        let parent = mm.spaces().new_space();
        let at = mm.spaces().mmap(&parent, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        mm.spaces().populate(&parent, at, PAGEBLOCK_PAGES, Touch::Write).unwrap();
        let child = mm.spaces().fork(&parent).unwrap();
        let (from, _) = read(&mm, &parent, at);
        let to = mm.alloc(Request::USER.of_order(order)).unwrap();
        mm.lru().lru_drain_all();
        mm.lru().page(from).get();
        // A second reference pins it.
        mm.lru().page(from).get();
        assert_eq!(mm.rmap().migrate_page(from, to), Err(MigrateError::Pinned));
        mm.spaces().check_vm().unwrap();
        assert_eq!(read(&mm, &child, at).0, from);
        mm.lru().page(from).put();
        mm.lru().lru_drain_all();
        mm.lru().lru_forget(from);
        mm.rmap().migrate_page(from, to).unwrap();
        mm.spaces().check_vm().unwrap();
        assert_eq!((read(&mm, &parent, at).0, read(&mm, &child, at).0), (to, to));
        mm.spaces().exit(&parent);
        mm.spaces().exit(&child);
        assert_eq!(held(&mm), 0);
        mm.views().check().unwrap();
    }
}

#[test]
fn a_dirty_page_of_a_file_moves_and_is_written_later() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    mm.files().write_file(&file, 3, Placement::default()).unwrap();
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 4)).unwrap();
    let (from, _) = read(&mm, &space, at.add(3));
    let to = mm.alloc(Request::USER).unwrap();
    mm.lru().lru_drain_all();
    mm.lru().page(from).get();
    mm.lru().lru_forget(from);
    mm.rmap().migrate_page(from, to).unwrap();
    assert_eq!(read(&mm, &space, at.add(3)).0, to);
    let taken = mm.files().take_dirty(10);
    assert_eq!(taken, [DirtyFolio { pfn: to, pages: 1 }]);
    mm.files().written(&taken);
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
    mm.files().drop_file(&file);
    assert_eq!(held(&mm), 0);
}

#[test]
fn a_clean_page_of_a_file_can_be_had_back_but_no_dirty_or_used_one() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    mm.files().read_file(&file, 3, Placement::default()).unwrap();
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 4)).unwrap();
    let (pfn, _) = read(&mm, &space, at.add(3));
    mm.lru().lru_drain_all();
    mm.lru().page(pfn).get();
    assert!(!mm.files().remove_mapping(pfn, GroupId::ROOT), "it is mapped");
    assert!(mm.rmap().try_to_unmap(pfn, Leave::Nothing));
    mm.files().mark_dirty(pfn);
    assert!(!mm.files().remove_mapping(pfn, GroupId::ROOT), "it is dirty");
    mm.files().written(&mm.files().take_dirty(1));
    assert!(mm.files().remove_mapping(pfn, GroupId::ROOT));
    mm.lru().free_page(pfn);
    mm.spaces().exit(&space);
    assert_eq!((mm.files().file_pages(), held(&mm)), (0, 0));
}

#[test]
fn a_huge_page_is_split_for_who_has_a_reference() {
    let mm = machine(1);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    let (head, _) = mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
    mm.lru().lru_drain_all();
    mm.lru().page(head).get();
    assert!(mm.spaces().split_huge_page(head));
    assert_eq!((mm.lru().page(head).refs(), mm.lru().page(head.add(1)).refs()), (2, 1));
    mm.lru().put_page(head);
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
    assert_eq!(held(&mm), 0);
}

#[test]
fn khugepaged_leaves_what_nobody_used_of_late() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    mm.spaces().populate(&space, at, PAGEBLOCK_PAGES, Touch::Write).unwrap();
    for page in 0..PAGEBLOCK_PAGES {
        let pfn = space.table(at).unwrap().entry(at.add(page)).pfn();
        assert_eq!(mm.rmap().referenced(pfn).places, 1);
    }
    mm.set_knob(Knob::TransparentHugepage, 1).unwrap();
    assert_eq!(mm.collapses().khugepaged(), None, "nobody has entered");
    mm.spaces().advise(&space, at, PAGEBLOCK_PAGES, HugePages::Advised);
    assert!(mm.collapses().khugepaged().is_some());
    assert_eq!(space.huge_pages(), 0);
    read(&mm, &space, at.add(9));
    assert!(mm.collapses().khugepaged().is_some());
    assert_eq!(space.huge_pages(), 1);
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
    assert_eq!(held(&mm), 0);
}

#[test]
fn what_was_given_away_goes_without_swap_unless_it_was_written_since() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(4)).unwrap();
    mm.spaces().populate(&space, at, 4, Touch::Write).unwrap();
    mm.spaces().madvise(&space, at, 4, super::Advice::Free).unwrap();
    mm.lru().lru_drain_all();
    assert_eq!(mm.views().counters().0["pglazyfree"], 4);
    assert_eq!(mm.views().counters().0["nr_inactive_file"], 4);
    assert_eq!(mm.spaces().touch_page(&space, at, Touch::Write).unwrap().1, None);
    let [written, left] = [0, 1].map(|page| space.table(at).unwrap().entry(at.add(page)).pfn());
    for (pfn, gone) in [(written, false), (left, true)] {
        mm.lru().page(pfn).get();
        assert_eq!(mm.rmap().try_to_unmap(pfn, Leave::Nothing), gone);
        mm.lru().put_page(pfn);
    }
    assert_eq!((space.resident_pages(), read(&mm, &space, at).1), (3, None));
    assert_eq!(read(&mm, &space, at.add(1)).1, Some(FaultKind::ZeroPage));
    mm.spaces().check_vm().unwrap();
}

#[test]
fn what_is_discarded_is_gone_and_still_mapped() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let before = held(&mm);
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(64)).unwrap();
    mm.spaces().populate(&space, at, 64, Touch::Write).unwrap();
    mm.spaces().discard(&space, at.add(10), 20);
    assert_eq!(space.resident_pages(), 44);
    // Page tables remain besides, one of each level.
    assert_eq!(held(&mm), before + 44 + 3);
    assert!(
        space.access(at.add(9), Touch::Read).is_some() && space.access(at.add(10), Touch::Read).is_none()
    );
    assert_eq!(read(&mm, &space, at.add(29)).1, Some(FaultKind::ZeroPage));
    mm.spaces().exit(&space);
    assert_eq!(held(&mm), before);
    mm.spaces().check_vm().unwrap();
}

#[test]
fn pages_of_a_file_are_forgotten_if_they_are_clean_and_nobodys() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    let space = mm.spaces().new_space();
    for page in 0..4 {
        mm.files().read_file(&file, page, Placement::default()).unwrap();
    }
    mm.files().write_file(&file, 1, Placement::default()).unwrap();
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 1).from_page(2)).unwrap();
    read(&mm, &space, at);
    mm.lru().lru_drain_all();
    let forgotten = [0, 1, 2, 3, 4].map(|page| mm.files().forget_pages(&file, page..page + 1) == 1);
    assert_eq!(
        forgotten,
        [true, false, false, true, false],
        "one is dirty, one mapped, and there is no fifth"
    );
    assert_eq!(file.cached_pages(mm.machine()), 2);
    mm.spaces().check_vm().unwrap();
}

#[test]
fn khugepaged_begins_with_the_first_fault_where_a_huge_page_may_be() {
    let woken = |thp: u64, pages: u32| {
        let mm = machine(thp);
        let space = mm.spaces().new_space();
        let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
        mm.machine().take_woken();
        mm.spaces().touch_page(&space, at, Touch::Write).unwrap();
        (mm.machine().take_woken().contains(&Daemon::Khugepaged), space.huge_pages())
    };
    assert_eq!(woken(1, PAGEBLOCK_PAGES), (true, 1), "though the fault got its huge page");
    assert_eq!(woken(1, PAGEBLOCK_PAGES / 2), (false, 0));
    assert_eq!(woken(0, PAGEBLOCK_PAGES), (false, 0));
}

/// Of a range's regions all are found and no others, wherever it begins and ends: in one, between two, at a border.
#[test]
fn regions_within_a_range_are_those_that_have_pages_in_it() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(20)).unwrap();
    for hole in [2, 3, 9, 10, 15] {
        mm.spaces().munmap(&space, at.add(hole), 1);
    }
    let regions = space.regions.lock_local(mm.machine());
    assert_eq!(regions.iter().count(), 4);
    for (start, end) in (0..24).flat_map(|start| (0..24).map(move |end| (at.add(start), at.add(end)))) {
        let expected = regions.iter().filter(|region| region.start.max(start) < region.end.min(end));
        let found: Vec<Vpn> = regions.within(start, end).map(|region| region.start).collect();
        assert_eq!(found, expected.map(|region| region.start).collect::<Vec<_>>(), "{start:?} to {end:?}");
    }
}
