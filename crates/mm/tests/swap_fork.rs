//! What several processes have in swap since a fork, through public doors: it is read once for all of them, and with others from zram too.

mod swapped;

use std::sync::Arc;

use freehold_mm::vm::{AddressSpace, Advice, FaultKind, SwapDevice, Touch};
use freehold_mm::{Bare, Knob};
use swapped::{PAGES, Swapped, swapped, swapped_pages};

const ZRAM: SwapDevice = SwapDevice::Zram { ratio_percent: 300 };

/// What one of both does with the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Nothing,
    Reads,
    ReadsBackwards,
    ReadsEachFourth,
    Writes,
}

impl Does {
    fn pages(self, all: u32) -> Vec<u32> {
        match self {
            Self::Nothing => vec![],
            Self::Reads | Self::Writes => (0..all).collect(),
            Self::ReadsBackwards => (0..all).rev().collect(),
            Self::ReadsEachFourth => (0..all).step_by(4).collect(),
        }
    }
}

/// `space` does it; gives major faults, pages read, those of them that came with others, and those of these that were wanted.
fn counted(machine: &Swapped, space: &AddressSpace<Bare>, does: Does) -> [u64; 4] {
    let before = machine.counted();
    let touch = if does == Does::Writes { Touch::Write } else { Touch::Read };
    for page in does.pages(machine.pages) {
        machine.mm.spaces().touch_page(space, machine.at.add(page), touch).unwrap();
    }
    let after = machine.counted();
    core::array::from_fn(|at| after[at] - before[at])
}

fn forked(machine: &Swapped) -> Arc<AddressSpace<Bare>> {
    machine.mm.spaces().fork(&machine.space).unwrap()
}

fn end_both(machine: Swapped, child: &AddressSpace<Bare>) {
    machine.check();
    machine.mm.spaces().exit(child);
    machine.end();
}

/// What Linux 6.18.44 counted (28 November 2026) of a process with 4,096 pages in swap, and of its parent after it, by `vm.page-cluster`; from zram and from a
/// disk that does not turn it was the same.
#[test]
fn as_many_are_read_after_a_fork_as_linux_reads() {
    use Does::{Nothing, Reads, ReadsBackwards, ReadsEachFourth, Writes};
    const NONE: [u64; 4] = [0; 4];
    let captured = [
        (3, Reads, [514, 4096, 3582, 3582], Reads, NONE),
        (3, ReadsBackwards, [513, 4096, 3583, 3583], Reads, NONE),
        (3, Writes, [514, 4096, 3582, 3582], Reads, NONE),
        (3, Writes, [514, 4096, 3582, 3582], Writes, NONE),
        (3, Reads, [514, 4096, 3582, 3582], Writes, NONE),
        (3, ReadsEachFourth, [1023, 1031, 8, 1], Reads, [960, 3065, 2105, 2112]),
        (3, Nothing, NONE, Reads, [514, 4096, 3582, 3582]),
        (0, Reads, [4096, 4096, 0, 0], Reads, NONE),
        (0, Writes, [4096, 4096, 0, 0], Writes, NONE),
        (0, ReadsEachFourth, [1024, 1024, 0, 0], Reads, [3072, 3072, 0, 0]),
        (0, Nothing, NONE, Reads, [4096, 4096, 0, 0]),
        (5, Reads, [132, 4096, 3964, 3964], Reads, NONE),
        (5, ReadsEachFourth, [1023, 1031, 8, 1], Reads, [256, 3065, 2809, 2816]),
    ];
    for device in [ZRAM, SwapDevice::DISK] {
        for (cluster, first, of_child, then, of_parent) in captured {
            let set = [(Knob::PageCluster, cluster)];
            let machine = swapped_pages("linux-6.18", (device, 4 * 4096), &set, 4096);
            let child = forked(&machine);
            let here = (counted(&machine, &child, first), counted(&machine, &machine.space, then));
            assert_eq!(here, (of_child, of_parent), "{device:?} {cluster} {first:?} {then:?}");
            end_both(machine, &child);
        }
    }
}

/// Both map one page while they read, and who writes gets a copy: the other still has what was read.
#[test]
fn both_map_what_was_read_for_one() {
    for device in [ZRAM, SwapDevice::DISK] {
        let machine = swapped("linux-6.18", device, &[]);
        let child = forked(&machine);
        let of_child =
            |page, touch| machine.mm.spaces().touch_page(&child, machine.at.add(page), touch).unwrap();
        let (pfn, kind) = of_child(10, Touch::Read);
        assert_eq!(kind, Some(FaultKind::Swapped));
        let here = machine.mm.spaces().touch_page(&machine.space, machine.at.add(10), Touch::Read).unwrap();
        assert_eq!(here, (pfn, Some(FaultKind::Minor)));
        machine.check();
        let (copy, kind) = of_child(10, Touch::Write);
        assert!(copy != pfn && kind == Some(FaultKind::Copied));
        machine.check();
        let (copy, kind) = of_child(500, Touch::Write);
        assert_eq!(kind, Some(FaultKind::Swapped));
        let here = machine.mm.spaces().touch_page(&machine.space, machine.at.add(500), Touch::Write).unwrap();
        assert!(
            here.0 != copy && here.1 == Some(FaultKind::Minor),
            "what was read for the child is the parent's"
        );
        end_both(machine, &child);
    }
}

/// What one of both unmaps waits for the other; what nobody waits for goes.
#[test]
fn what_one_gives_back_stays_for_the_other() {
    let machine = swapped("linux-6.18", ZRAM, &[]);
    let child = forked(&machine);
    counted(&machine, &child, Does::Reads);
    machine.check();
    machine.mm.spaces().madvise(&child, machine.at, 100, Advice::Free).unwrap();
    machine.mm.spaces().discard(&child, machine.at.add(100), 100);
    machine.check();
    assert_eq!(machine.read(50), Some(FaultKind::Minor));
    assert_eq!(machine.read(150), Some(FaultKind::Minor));
    machine.mm.spaces().exit(&child);
    machine.check();
    assert_eq!(counted(&machine, &machine.space, Does::Reads), [0; 4]);
    machine.end();
}

/// Beside their slots, mapped or not, they go as other pages do, and are not written again.
#[test]
fn what_both_have_goes_unwritten() {
    for device in [ZRAM, SwapDevice::DISK] {
        let machine = swapped("linux-6.18", device, &[]);
        let child = forked(&machine);
        let written = machine.count("pswpout");
        counted(&machine, &child, Does::Reads);
        machine.read_each(0..PAGES / 2);
        machine.mm.lru().lru_drain_all();
        // The first time, what was used stays.
        (0..2).for_each(|_| machine.empty());
        machine.check();
        assert_eq!((child.resident_pages(), machine.space.resident_pages()), (0, 0));
        assert_eq!(machine.count("pswpout"), written, "{device:?}");
        assert_eq!(machine.read(1), Some(FaultKind::Swapped));
        end_both(machine, &child);
    }
}

/// Up to 4.14 what is in zram is read as from a disk, and since 7.0 always alone, for all who have it.
#[test]
fn zram_reads_by_the_version() {
    let alone = [1024, 1024, 0, 0];
    let ahead = [130, 1024, 894, 894];
    for (policy, for_one, for_two) in [
        ("linux-4.14", ahead, ahead),
        ("linux-4.15", alone, ahead),
        ("linux-6.19", alone, ahead),
        ("linux-7.0", alone, alone),
    ] {
        let machine = swapped(policy, ZRAM, &[]);
        assert_eq!(counted(&machine, &machine.space, Does::Reads), for_one, "{policy}");
        machine.end();
        let machine = swapped(policy, ZRAM, &[]);
        let child = forked(&machine);
        assert_eq!(counted(&machine, &child, Does::Reads), for_two, "{policy}");
        assert_eq!(counted(&machine, &machine.space, Does::Reads), [0; 4], "{policy}");
        let (slots, _) = machine.mm.spaces().swap_pages();
        assert_eq!(slots == 0, policy == "linux-7.0", "{policy} keeps {slots} slots");
        end_both(machine, &child);
    }
}
