//! Private memory that comes back from swap on a disk, through public doors: what is read with a page, what becomes of that, and that no page
//! or slot is lost.

mod swapped;

use freehold_mm::Knob;
use freehold_mm::vm::{Advice, FaultKind, MapSpec, SwapDevice, Touch};
use swapped::{PAGES, Set, swapped, swapped_pages};

/// Where pages lie side by side both in their region and in slots, a disk is read in eights, and seven of eight faults wait for nothing.
#[test]
fn pages_that_follow_are_read_together() {
    const TURNING: Set = &[(Knob::SwapRotational, 1)];
    const BY_SLOTS: Set = &[(Knob::VmaRaEnabled, 0)];
    let cases: [(&str, SwapDevice, Set, [u64; 4]); 6] = [
        // The first window begins three pages before the region, and none goes beyond a page table.
        ("linux-6.18", SwapDevice::DISK, &[], [130, 1024, 894, 894]),
        // Slot 0 is the header's: page 7 is the first of the second eight.
        ("linux-6.18", SwapDevice::DISK, TURNING, [129, 1024, 895, 895]),
        ("linux-6.18", SwapDevice::DISK, BY_SLOTS, [129, 1024, 895, 895]),
        ("linux-4.9", SwapDevice::DISK, &[], [129, 1024, 895, 895]),
        ("linux-6.18", SwapDevice::Synchronous, &[], [1024, 1024, 0, 0]),
        ("linux-6.18", SwapDevice::Zram { ratio_percent: 300 }, &[], [1024, 1024, 0, 0]),
    ];
    for (policy, device, set, wanted) in cases {
        let machine = swapped(policy, device, set);
        let first = machine.read(0);
        assert_eq!(first, Some(FaultKind::Swapped), "{policy} {device:?} {set:?}");
        machine.check();
        machine.read_each(1..PAGES);
        assert_eq!(machine.counted(), wanted, "{policy} {device:?} {set:?}");
        machine.end();
    }
}

/// `vm.page-cluster` says how many at most: 2^5 for a region whatever it says, none at 0.
#[test]
fn no_more_are_read_than_is_said() {
    for (order, turns, majors) in [(0, 0, 1024), (1, 0, 512), (5, 0, 36), (7, 0, 36), (7, 1, 13)] {
        let set = [(Knob::PageCluster, order), (Knob::SwapRotational, turns)];
        let machine = swapped("linux-6.18", SwapDevice::DISK, &set);
        machine.read_each(0..PAGES);
        assert_eq!(machine.counted()[0], majors, "{set:?}");
        machine.end();
    }
}

/// Who wants pages here and there soon has them alone.
#[test]
fn what_is_of_no_use_is_not_read() {
    for turns in [0, 1] {
        let machine = swapped("linux-6.18", SwapDevice::DISK, &[(Knob::SwapRotational, turns)]);
        // Each sixteenth, in an order that never goes to a neighbour.
        machine.read_each((0..64).map(|step| step * 37 % 64 * 16));
        let [majors, read, ahead, hits] = machine.counted();
        assert_eq!((majors, hits), (64, 0), "{turns}");
        assert!(read == majors + ahead && ahead <= 7 + 3 + 1, "{turns}: {ahead}");
        machine.end();
    }
}

/// What was read ahead and is not wanted goes again when memory is short, and nothing is written for it.
#[test]
fn what_nobody_came_to_goes_unwritten() {
    let machine = swapped("linux-6.18", SwapDevice::DISK, &[]);
    machine.read_each((0..PAGES / 64).map(|page| page * 64));
    let written = machine.count("pswpout");
    assert!(machine.count("swap_ra") > 3);
    machine.empty();
    assert_eq!(machine.count("pswpout"), written);
    machine.check();
    assert_eq!(machine.read(1), Some(FaultKind::Swapped), "it came with page 0, and has gone");
    machine.read_each(0..PAGES);
    machine.end();
}

/// A page that was only read keeps its slot, and goes there again without being written; one that was written to is.
#[test]
fn what_was_only_read_is_not_written_again() {
    let machine = swapped("linux-6.18", SwapDevice::DISK, &[]);
    machine.read_each(0..PAGES);
    let slots = || machine.mm.spaces().swap_pages().0;
    assert_eq!((slots(), machine.space.swapped_pages()), (PAGES, 0), "each page keeps its slot");
    machine.check();
    let written = machine.count("pswpout");
    (0..16).for_each(|page| machine.write(page));
    machine.send_out();
    assert_eq!(machine.space.swapped_pages(), u64::from(PAGES));
    assert_eq!(machine.count("pswpout") - written, 16);
    machine.check();
    (0..PAGES).for_each(|page| machine.write(page));
    assert_eq!(slots(), 0, "who writes first thing gives the slot back");
    machine.end();
}

/// A page that keeps a slot may be copied, given away and unmapped: then it does not any more.
#[test]
fn a_kept_slot_goes_with_its_page() {
    let machine = swapped("linux-6.18", SwapDevice::DISK, &[]);
    machine.read_each(0..512);
    let child = machine.mm.spaces().fork(&machine.space).unwrap();
    machine.read_each(0..512);
    (0..256).for_each(|page| machine.write(page));
    machine.check();
    machine.mm.spaces().touch_page(&child, machine.at.add(300), Touch::Write).unwrap();
    machine.mm.spaces().exit(&child);
    machine.check();
    machine.mm.lru().lru_drain_all();
    machine.mm.spaces().madvise(&machine.space, machine.at.add(400), 50, Advice::Free).unwrap();
    machine.check();
    machine.mm.spaces().discard(&machine.space, machine.at.add(450), 20);
    machine.send_out();
    machine.end();
}

/// Once half of swap is used, slots are given back; where there is none left, those that are kept go first.
#[test]
fn slots_are_kept_while_there_are_enough() {
    let machine = swapped_pages("linux-6.18", (SwapDevice::DISK, PAGES + 100), &[], PAGES);
    machine.read_each(0..PAGES);
    let (left, _) = machine.mm.spaces().swap_pages();
    assert!((1..PAGES / 2 + 60).contains(&left), "{left}");
    let other = machine.mm.spaces().new_space();
    let at = machine.mm.spaces().mmap(&other, MapSpec::anonymous(PAGES).small()).unwrap();
    machine.mm.spaces().populate(&other, at, PAGES, Touch::Write).unwrap();
    machine.mm.lru().lru_drain_all();
    machine.mm.pages_out().page_out(&other, at, PAGES).unwrap();
    machine.empty();
    assert_eq!(other.swapped_pages(), u64::from(PAGES), "those that were kept make room");
    machine.check();
    machine.mm.spaces().exit(&other);
    machine.end();
}

/// What is unmapped while it is beside its slot goes with it.
#[test]
fn what_is_given_back_takes_what_was_read_ahead_along() {
    let machine = swapped("linux-6.18", SwapDevice::DISK, &[]);
    machine.read(0);
    assert!(machine.counted()[2] > 0);
    machine.mm.spaces().discard(&machine.space, machine.at, PAGES);
    assert_eq!((machine.space.resident_pages(), machine.mm.spaces().swap_pages().0), (0, 0));
    machine.end();
}

/// Which pages of [`CAPTURED_PAGES`] a program reads, one after the other.
#[derive(Clone, Copy, Debug)]
enum Reads {
    Forwards,
    Backwards,
    AnyOrder,
    EachFourth,
    /// 16 at a time, from anywhere on.
    Sixteens,
}

const CAPTURED_PAGES: u32 = 8192;

impl Reads {
    fn are_by_chance(self) -> bool {
        matches!(self, Self::AnyOrder | Self::Sixteens)
    }

    fn pages(self) -> Vec<u32> {
        let mut random = 7_u32;
        let mut below = |end: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((u64::from(random) * u64::from(end)) >> 32) as u32
        };
        let all = 0..CAPTURED_PAGES;
        match self {
            Self::Forwards => all.collect(),
            Self::Backwards => all.rev().collect(),
            Self::AnyOrder => all.map(|_| below(CAPTURED_PAGES)).collect(),
            Self::EachFourth => all.step_by(4).collect(),
            Self::Sixteens => {
                let starts = (0..CAPTURED_PAGES / 16).map(|_| below(CAPTURED_PAGES - 16));
                starts.flat_map(|start| start..start + 16).collect()
            }
        }
    }
}

/// What Linux 6.18.44 counted (`make swap-disk`, 28 November 2026) for a program that read 8,192 pages which had all gone to a file of swap on a virtio disk, as
/// that says of itself (it turns) and as it was told to say (it does not): major faults, pages read, those that came with others, those of
/// these that were wanted. What was read by chance was so by another chance than here.
#[test]
fn as_many_are_read_as_linux_reads() {
    use Reads::{AnyOrder, Backwards, EachFourth, Forwards, Sixteens};
    let captured: [(u64, u64, Reads, [u64; 4]); 30] = [
        (1, 3, Forwards, [1027, 8192, 7165, 7165]),
        (1, 3, Backwards, [1027, 8192, 7165, 7165]),
        (1, 3, AnyOrder, [5155, 5209, 54, 18]),
        (1, 3, EachFourth, [2048, 2048, 0, 0]),
        (1, 3, Sixteens, [942, 6164, 5222, 4258]),
        (1, 0, Forwards, [8192, 8192, 0, 0]),
        (1, 0, Backwards, [8192, 8192, 0, 0]),
        (1, 0, AnyOrder, [5173, 5173, 0, 0]),
        (1, 0, EachFourth, [2048, 2048, 0, 0]),
        (1, 0, Sixteens, [5200, 5200, 0, 0]),
        (1, 5, Forwards, [258, 8192, 7934, 7934]),
        (1, 5, Backwards, [259, 8192, 7933, 7933]),
        (1, 5, AnyOrder, [5010, 5439, 429, 163]),
        (1, 5, EachFourth, [2048, 2048, 0, 0]),
        (1, 5, Sixteens, [633, 7082, 6449, 4567]),
        (0, 3, Forwards, [1026, 8192, 7166, 7166]),
        (0, 3, Backwards, [1025, 8192, 7167, 7167]),
        (0, 3, AnyOrder, [5135, 5237, 102, 38]),
        (0, 3, EachFourth, [2047, 2055, 8, 1]),
        (0, 3, Sixteens, [1013, 6236, 5223, 4187]),
        (0, 0, Forwards, [8192, 8192, 0, 0]),
        (0, 0, Backwards, [8192, 8192, 0, 0]),
        (0, 0, AnyOrder, [5173, 5173, 0, 0]),
        (0, 0, EachFourth, [2048, 2048, 0, 0]),
        (0, 0, Sixteens, [5200, 5200, 0, 0]),
        (0, 5, Forwards, [260, 8192, 7932, 7932]),
        (0, 5, Backwards, [260, 8192, 7932, 7932]),
        (0, 5, AnyOrder, [5135, 5237, 102, 38]),
        (0, 5, EachFourth, [2047, 2055, 8, 1]),
        (0, 5, Sixteens, [547, 7085, 6538, 4653]),
    ];
    for (turns, order, reads, linux) in captured {
        let set = [(Knob::SwapRotational, turns), (Knob::PageCluster, order)];
        let machine =
            swapped_pages("linux-6.18", (SwapDevice::DISK, 4 * CAPTURED_PAGES), &set, CAPTURED_PAGES);
        machine.read_each(reads.pages().into_iter());
        let counted = machine.counted();
        let may_differ = |linux: u64| match (turns, reads.are_by_chance()) {
            (0, false) => 0,
            (_, false) => 10,
            (_, true) => 400.max(linux / 20),
        };
        let near =
            linux.into_iter().zip(counted).all(|(linux, ours)| linux.abs_diff(ours) <= may_differ(linux));
        assert!(near, "{turns} {order} {reads:?}: Linux {linux:?}, here {counted:?}");
        machine.end();
    }
}
