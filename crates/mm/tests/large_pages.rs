//! Anonymous pages of several frames that small entries map: who gets which size, what becomes of them in parts, and what is counted.

use std::sync::Arc;

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{AddressSpace, Advice, FaultKind, HugePages, MapSpec, Touch, Vpn};
use freehold_mm::{Bare, Knob, Knobs, Mm, NodeSize, Policy, Topology};

const NEVER: u64 = 0;
const ALWAYS: u64 = 1;
const MADVISE: u64 = 2;
const INHERIT: u64 = 3;

/// A machine on which the knobs have these values, and huge pages are nobody's otherwise.
fn machine(sizes: &[(Knob, u64)]) -> Mm<Bare> {
    machine_of("linux-6.18", sizes)
}

fn machine_of(kernel: &str, sizes: &[(Knob, u64)]) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, NEVER).unwrap();
    for &(knob, value) in sizes {
        knobs.set(knob, value).unwrap();
    }
    Mm::new(Bare::default(), topology, Policy::parse(kernel).unwrap(), knobs).unwrap()
}

fn faults(mm: &Mm<Bare>, space: &AddressSpace<Bare>, pages: std::ops::Range<u32>, start: Vpn) -> usize {
    let touched = |page| mm.spaces().touch_page(space, start.add(page), Touch::Write).unwrap().1.is_some();
    pages.filter(|&page| touched(page)).count()
}

fn count(mm: &Mm<Bare>, name: &str) -> u64 {
    mm.views().counters().get(name)
}

fn check(mm: &Mm<Bare>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn a_fault_takes_the_largest_size_whose_place_is_empty() {
    let mm = machine(&[(Knob::Hugepages64kB, ALWAYS), (Knob::Hugepages16kB, ALWAYS)]);
    let space = mm.spaces().new_space();
    // Four pages and a half of 64 KiB, from the middle of one on.
    let start = Vpn(PAGEBLOCK_PAGES * 8 + 8);
    mm.spaces().mmap_at(&space, start, MapSpec::anonymous(72)).unwrap();
    assert_eq!(faults(&mm, &space, 0..72, start), 2 + 4, "two of 16 KiB in front, four of 64 KiB");
    assert_eq!(space.resident_pages(), 72);
    assert_eq!(
        [count(&mm, "hugepages-64kB.anon_fault_alloc"), count(&mm, "hugepages-16kB.anon_fault_alloc")],
        [4, 2]
    );
    check(&mm);
    mm.spaces().exit(&space);
    check(&mm);
}

#[test]
fn who_gets_a_size_is_said_by_its_file_and_by_that_of_all() {
    for (size, all, advised, expected) in [
        (NEVER, ALWAYS, true, 16),
        (ALWAYS, NEVER, false, 1),
        (MADVISE, ALWAYS, false, 16),
        (MADVISE, NEVER, true, 1),
        (INHERIT, NEVER, true, 16),
        (INHERIT, MADVISE, true, 1),
    ] {
        let mm = machine(&[
            (Knob::Hugepages64kB, size),
            (Knob::TransparentHugepage, all),
            (Knob::Hugepages2048kB, NEVER),
        ]);
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        if advised {
            mm.spaces().madvise(&space, start, PAGEBLOCK_PAGES, Advice::Huge(HugePages::Advised)).unwrap();
        }
        assert_eq!(faults(&mm, &space, 0..16, start), expected, "{size}, {all}, advised: {advised}");
        check(&mm);
    }
}

#[test]
fn huge_pages_have_a_file_of_their_own_too() {
    for (size, expected) in [(INHERIT, NEVER), (ALWAYS, ALWAYS)] {
        let mm = machine(&[(Knob::Hugepages2048kB, size)]);
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        faults(&mm, &space, 0..1, start);
        assert_eq!(count(&mm, "thp_fault_alloc"), expected, "{size}");
    }
}

#[test]
fn who_writes_to_a_shared_one_copies_one_page() {
    let mm = machine(&[(Knob::Hugepages64kB, ALWAYS)]);
    let parent = mm.spaces().new_space();
    let start = mm.spaces().mmap(&parent, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    assert_eq!(faults(&mm, &parent, 0..16, start), 1);
    let child = mm.spaces().fork(&parent).unwrap();
    let written = mm.spaces().touch_page(&child, start.add(5), Touch::Write).unwrap().1;
    assert_eq!(written, Some(FaultKind::Copied));
    check(&mm);
    mm.spaces().exit(&parent);
    // All but one of its pages are the child's alone now.
    let again = |page| mm.spaces().touch_page(&child, start.add(page), Touch::Write).unwrap().1;
    assert_eq!([again(4), again(5)], [Some(FaultKind::Reused), None]);
    check(&mm);
    mm.spaces().exit(&child);
    check(&mm);
}

/// Who is alone with a large page in parts again, and writes to all of them: how many are copied.
#[test]
fn whoever_is_left_alone_with_parts_copies_none_some_or_all() {
    let huge = (Knob::TransparentHugepage, ALWAYS);
    for (kernel, knob, pages, copied) in [
        ("linux-5.18", huge, PAGEBLOCK_PAGES, PAGEBLOCK_PAGES - 2),
        ("linux-5.19", huge, PAGEBLOCK_PAGES, PAGEBLOCK_PAGES - 1),
        ("linux-6.12", (Knob::Hugepages64kB, ALWAYS), 16, 15),
        ("linux-6.18", (Knob::Hugepages64kB, ALWAYS), 16, 0),
    ] {
        let mm = machine_of(kernel, &[knob]);
        let parent = mm.spaces().new_space();
        let start = Vpn(PAGEBLOCK_PAGES * 8);
        mm.spaces().mmap_at(&parent, start, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        assert_eq!(faults(&mm, &parent, 0..pages, start), 1, "{kernel}");
        let child = mm.spaces().fork(&parent).unwrap();
        // From here on it has what is left in parts.
        let write = |page| mm.spaces().touch_page(&parent, start.add(page), Touch::Write).unwrap().1;
        assert_eq!(write(0), Some(FaultKind::Copied));
        mm.spaces().exit(&child);
        let copies = (1..pages).filter(|&page| write(page) == Some(FaultKind::Copied)).count();
        assert_eq!(copies, copied as usize, "{kernel}");
        check(&mm);
        mm.spaces().exit(&parent);
        check(&mm);
    }
}

#[test]
fn one_of_which_a_part_is_given_back_stays_whole_and_is_split_later() {
    let mm = machine(&[(Knob::Hugepages64kB, ALWAYS)]);
    let space = mm.spaces().new_space();
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    faults(&mm, &space, 0..16, start);
    let held = mm.views().memory_use().held();
    mm.spaces().discard(&space, start, 3);
    assert_eq!((space.resident_pages(), mm.views().memory_use().held()), (13, held));
    assert_eq!(count(&mm, "hugepages-64kB.split_deferred"), 1);
    // What is put back there is small: the place of the large one is not empty.
    assert_eq!(faults(&mm, &space, 0..3, start), 3);
    check(&mm);
    mm.spaces().exit(&space);
    check(&mm);
}

#[test]
fn where_there_is_no_memory_for_one_a_smaller_one_is_taken() {
    let sizes = [(Knob::Hugepages1024kB, ALWAYS), (Knob::Hugepages16kB, ALWAYS)];
    let mm = machine(&[sizes[0], sizes[1], (Knob::OvercommitMemory, 1)]);
    let space = mm.spaces().new_space();
    let pages = 34_000;
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    let touch = |page| mm.spaces().touch_page(&space, start.add(page), Touch::Write).is_ok();
    let there = (0..pages).take_while(|&page| touch(page)).count();
    assert!(there > 20_000, "{there}");
    assert!(count(&mm, "hugepages-1024kB.anon_fault_alloc") > 50);
    assert!(count(&mm, "hugepages-1024kB.anon_fault_fallback") > 0);
    assert!(count(&mm, "hugepages-16kB.anon_fault_alloc") > 0);
    check(&mm);
    mm.spaces().exit(&space);
    check(&mm);
}

/// A machine of a kernel that gives fresh memory in pages of 64 KiB, more of it than there is, and 20,000 pages of swap; what there was in the
/// end has been checked.
fn short_of_memory(kernel: &str) -> (Mm<Bare>, Arc<AddressSpace<Bare>>, Vpn) {
    let mm = machine_of(kernel, &[(Knob::Hugepages64kB, ALWAYS), (Knob::OvercommitMemory, 1)]);
    mm.spaces().set_swap(20_000);
    let space = mm.spaces().new_space();
    let pages = 40_000;
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    // Until memory is full they come sixteen at a time; then a fault does not reclaim for more than a page.
    let faults = faults(&mm, &space, 0..pages, start);
    assert!((2_000..15_000).contains(&faults), "{faults}");
    assert!(space.swapped_pages() > 5_000);
    check(&mm);
    (mm, space, start)
}

#[test]
fn where_memory_is_short_large_ones_are_swapped_whole() {
    let (mm, space, start) = short_of_memory("linux-6.18");
    assert!(count(&mm, "hugepages-64kB.swpout") > 300);
    assert_eq!(count(&mm, "hugepages-64kB.split"), 0);
    assert_eq!(count(&mm, "hugepages-64kB.swpout_fallback"), 0);
    let before = space.swapped_pages();
    assert_eq!(mm.spaces().touch_page(&space, start, Touch::Read).unwrap().1, Some(FaultKind::Swapped));
    let back = before - space.swapped_pages();
    assert_eq!(
        (back, count(&mm, "hugepages-64kB.swpin_fallback")),
        (1, 1),
        "there is no block for it without reclaim"
    );
    mm.spaces().exit(&space);
    check(&mm);
}

/// What a program has sent out in two pages of 64 KiB, after `change`, and touches again, in the order of `touched`: how many pages come with each.
fn come_back<const N: usize>(
    kernel: &str,
    change: impl Fn(&Mm<Bare>, &AddressSpace<Bare>, Vpn),
    touched: [u32; N],
) -> [u32; N] {
    let mm = machine_of(kernel, &[(Knob::Hugepages64kB, ALWAYS)]);
    mm.spaces().set_swap(1536);
    let space = mm.spaces().new_space();
    let start = Vpn(PAGEBLOCK_PAGES * 8);
    mm.spaces().mmap_at(&space, start, MapSpec::anonymous(32)).unwrap();
    assert_eq!(faults(&mm, &space, 0..32, start), 2);
    mm.pages_out().page_out(&space, start, 32).unwrap();
    assert_eq!(space.swapped_pages(), 32);
    change(&mm, &space, start);
    let back = touched.map(|page| {
        let before = space.swapped_pages();
        let kind = mm.spaces().touch_page(&space, start.add(page), Touch::Read).unwrap().1;
        assert_eq!(kind, Some(FaultKind::Swapped), "{page}");
        (before - space.swapped_pages()) as u32
    });
    check(&mm);
    assert_eq!(space.counters().major, N as u64);
    mm.spaces().exit(&space);
    check(&mm);
    assert_eq!(mm.spaces().swap_pages().0, 0);
    back
}

#[test]
fn what_is_in_slots_in_a_row_comes_back_in_one_piece_since_6_12() {
    let as_it_was = |_: &Mm<Bare>, _: &AddressSpace<Bare>, _: Vpn| {};
    assert_eq!(come_back("linux-6.12", as_it_was, [5, 16]), [16, 16]);
    assert_eq!(come_back("linux-6.11", as_it_was, [5, 4]), [1, 1]);
}

#[test]
fn it_comes_back_in_the_sizes_that_the_region_may_have_by_then() {
    let smaller = |mm: &Mm<Bare>, _: &AddressSpace<Bare>, _: Vpn| {
        mm.set_knob(Knob::Hugepages64kB, NEVER).unwrap();
        mm.set_knob(Knob::Hugepages16kB, ALWAYS).unwrap();
    };
    assert_eq!(come_back("linux-6.18", smaller, [5, 0, 31]), [4, 4, 4]);
    let none = |mm: &Mm<Bare>, _: &AddressSpace<Bare>, _: Vpn| {
        mm.set_knob(Knob::Hugepages64kB, NEVER).unwrap();
    };
    assert_eq!(come_back("linux-6.18", none, [5]), [1]);
    let zswap = |mm: &Mm<Bare>, _: &AddressSpace<Bare>, _: Vpn| {
        mm.set_knob(Knob::ZswapEnabled, 1).unwrap();
    };
    assert_eq!(come_back("linux-6.18", zswap, [5]), [1]);
}

#[test]
fn of_one_that_is_there_in_part_the_rest_comes_back_page_by_page() {
    let cut = |mm: &Mm<Bare>, space: &AddressSpace<Bare>, start: Vpn| {
        mm.spaces().discard(space, start.add(3), 1);
    };
    assert_eq!(come_back("linux-6.18", cut, [5, 16]), [1, 16]);
    let forked = |mm: &Mm<Bare>, space: &AddressSpace<Bare>, start: Vpn| {
        let child = mm.spaces().fork(space).unwrap();
        mm.spaces().discard(&child, start, 16);
        mm.spaces().exit(&child);
    };
    assert_eq!(come_back("linux-6.18", forked, [5, 16]), [16, 16]);
}

#[test]
fn before_6_10_they_are_swapped_in_pieces() {
    let (mm, space, _) = short_of_memory("linux-6.8");
    assert!(count(&mm, "hugepages-64kB.split") > 300);
    assert_eq!(count(&mm, "hugepages-64kB.swpout"), 0);
    mm.spaces().exit(&space);
    check(&mm);
}

/// What becomes of two huge pages that a program sends out, by the slots that there are.
fn sent_out(kernel: &str, slots: u32) -> [u64; 5] {
    let mm = machine_of(kernel, &[(Knob::TransparentHugepage, ALWAYS)]);
    mm.spaces().set_swap(slots);
    let space = mm.spaces().new_space();
    let (start, pages) = (Vpn(PAGEBLOCK_PAGES * 8), 2 * PAGEBLOCK_PAGES);
    mm.spaces().mmap_at(&space, start, MapSpec::anonymous(pages)).unwrap();
    faults(&mm, &space, 0..pages, start);
    mm.pages_out().page_out(&space, start, pages).unwrap();
    check(&mm);
    let counts =
        ["thp_swpout", "thp_swpout_fallback", "thp_split_page", "pswpout"].map(|name| count(&mm, name));
    let swapped = u64::from(mm.spaces().swap_pages().0);
    mm.spaces().exit(&space);
    check(&mm);
    assert_eq!(mm.spaces().swap_pages().0, 0);
    let [whole, fallback, split, written] = counts;
    [whole, fallback, split, written, swapped]
}

#[test]
fn a_huge_page_is_swapped_whole_where_there_are_as_many_slots_in_a_row() {
    assert_eq!(sent_out("linux-6.18", 1536), [2, 0, 0, 1024, 1024]);
    assert_eq!(sent_out("linux-6.6", 1536), [2, 0, 0, 1024, 1024]);
    // One lies where its slots begin; what is left, with the slots before it, is for single pages.
    assert_eq!(sent_out("linux-6.18", 1100), [1, 1, 1, 1024, 1024]);
    assert_eq!(sent_out("linux-4.12", 1536), [0, 0, 2, 1024, 1024]);
}
