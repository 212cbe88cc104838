//! zswap, through public doors: what is stored, loaded and written back, what is charged, and that no page, slot or frame is lost.

mod swapped;

use freehold_mm::vm::{FaultKind, SwapDevice, Touch};
use freehold_mm::{Daemon, Knob};
use swapped::{PAGES, Set, Swapped, swapped, swapped_pages};

const ON: Set = &[(Knob::ZswapEnabled, 1)];
const ZRAM: SwapDevice = SwapDevice::Zram { ratio_percent: 300 };

/// Pages stored, loaded and written back, and those that the device wrote and read.
fn counted(machine: &Swapped) -> [u64; 5] {
    ["zswpout", "zswpin", "zswpwb", "pswpout", "pswpin"].map(|name| machine.count(name))
}

fn since(machine: &Swapped, before: [u64; 5]) -> [u64; 5] {
    let now = counted(machine);
    core::array::from_fn(|at| now[at] - before[at])
}

/// Linux 6.18.44, 28 November 2026, a program of 8,192 pages, swap in a file on a disk that does not turn, a cgroup that is emptied before each step: pages
/// stored and loaded, major faults, pages that came with others and those of these that were wanted.
#[test]
fn as_much_is_stored_and_loaded_as_in_linux() {
    let machine = swapped_pages("linux-6.18", (SwapDevice::DISK, 4 * 8192), ON, 8192);
    assert_eq!(counted(&machine), [8192, 0, 0, 0, 0]);
    let step = |pages: Vec<u32>, touch: Touch| {
        let (before, faults) = (counted(&machine), machine.counted());
        for page in pages {
            machine.mm.spaces().touch_page(&machine.space, machine.at.add(page), touch).unwrap();
        }
        let [out, loaded, written_back, written, read] = since(&machine, before);
        assert_eq!((out, written_back, written, read), (0, 0, 0, 0));
        let after = machine.counted();
        let [major, _, ahead, hits] = core::array::from_fn(|at| after[at] - faults[at]);
        machine.check();
        [loaded, major, ahead, hits]
    };
    let all = || (0..8192).collect::<Vec<u32>>();
    let empty = || {
        let before = counted(&machine);
        machine.send_out();
        machine.empty();
        assert_eq!(machine.space.resident_pages(), 0);
        machine.check();
        since(&machine, before)
    };
    assert_eq!(step(all(), Touch::Read), [8192, 1026, 7166, 7166]);
    assert_eq!(empty(), [8192, 0, 0, 0, 0], "what was only read is stored again");
    assert_eq!(step(all(), Touch::Read), [8192, 1026, 7166, 7166]);
    assert_eq!(empty(), [8192, 0, 0, 0, 0]);
    assert_eq!(step((0..8192).step_by(4).collect(), Touch::Read), [2055, 2047, 8, 1]);
    assert_eq!(empty(), [2055, 0, 0, 0, 0], "so is what nobody came to");
    assert_eq!(machine.mm.swap().zswap_pages().1, 8192);
    machine.end();
}

/// Up to 6.8 what is loaded stays where it was.
#[test]
fn older_kernels_leave_what_is_read() {
    let machine = swapped("linux-6.6", SwapDevice::DISK, ON);
    machine.read_each(0..PAGES);
    assert_eq!(machine.mm.swap().zswap_pages().1, PAGES);
    let before = counted(&machine);
    machine.send_out();
    machine.empty();
    assert_eq!(since(&machine, before), [0; 5]);
    machine.write(3);
    machine.check();
    machine.end();
}

/// A machine of 64 MiB whose pool may have 1 %, a third of what is stored in it.
fn small_pool(policy: &str, device: SwapDevice) -> Swapped {
    let set = [(Knob::ZswapEnabled, 1), (Knob::ZswapMaxPoolPercent, 1)];
    swapped(policy, device, &set)
}

/// What finds no room goes to the device, and comes back from there; what is stored stays until it is wanted, or is written back.
#[test]
fn what_does_not_fit_goes_to_the_device() {
    for device in [SwapDevice::DISK, SwapDevice::Synchronous, ZRAM] {
        let machine = small_pool("linux-6.18", device);
        let [stored, _, written_back, written, _] = counted(&machine);
        let (frames, pages) = machine.mm.swap().zswap_pages();
        assert!(stored > 300 && stored + written == PAGES.into(), "{device:?} {stored} {written}");
        assert_eq!((u64::from(pages), written_back, frames), (stored, 0, pages.div_ceil(3)), "{device:?}");
        assert!(machine.mm.machine().take_woken().contains(&Daemon::ZswapShrinker));
        machine.check();
        machine.read_each(0..PAGES);
        assert_eq!(counted(&machine), [stored, stored, 0, written, written], "{device:?}");
        assert_eq!(machine.mm.swap().zswap_pages(), (0, 0));
        machine.end();
    }
}

/// A run of the worker gives up after sparing sixteen pages; each is spared once. Before 6.12 it writes down to nine tenths at once.
#[test]
fn the_worker_spares_what_it_comes_to_first() {
    let machine = small_pool("linux-6.18", SwapDevice::DISK);
    let (full, pages) = machine.mm.swap().zswap_pages();
    machine.mm.swap().shrink_zswap();
    assert_eq!((counted(&machine)[2], machine.mm.swap().zswap_pages().1), (0, pages));
    (0..=pages / 16 + 1).for_each(|_| machine.mm.swap().shrink_zswap());
    let (frames, left) = machine.mm.swap().zswap_pages();
    assert_eq!(counted(&machine)[2], u64::from(pages - left));
    assert!(frames <= full * 9 / 10 && frames + 2 > full * 9 / 10, "{frames} of {full}");
    assert_eq!(machine.read(0), Some(FaultKind::Swapped));
    machine.read_each(0..PAGES);
    machine.end();

    let older = small_pool("linux-6.6", SwapDevice::DISK);
    let (full, _) = older.mm.swap().zswap_pages();
    older.mm.swap().shrink_zswap();
    assert!(older.mm.swap().zswap_pages().0 <= full * 9 / 10);
    older.end();
}

/// Once full, it takes nothing until so much is free again.
#[test]
fn it_takes_more_only_below_its_threshold() {
    let machine = small_pool("linux-6.18", SwapDevice::DISK);
    let (full, _) = machine.mm.swap().zswap_pages();
    machine.read_each(0..8);
    let before = counted(&machine);
    machine.send_out();
    assert_eq!(since(&machine, before)[0], 0, "a few have gone: it is still taken to be full");
    machine.read_each(0..full);
    let before = counted(&machine);
    machine.send_out();
    assert!(since(&machine, before)[0] > 50);
    machine.end();
}

/// A group is charged what it has there, and nothing for zram or before 5.19.
#[test]
fn groups_are_charged_what_is_compressed() {
    for (policy, device, set, charged) in [
        ("linux-6.18", SwapDevice::DISK, ON, PAGES.div_ceil(3)),
        ("linux-5.15", SwapDevice::DISK, ON, 0),
        ("linux-6.18", ZRAM, &[], 0),
    ] {
        let machine = swapped(policy, device, set);
        let tables = machine.space.table_pages();
        let usage = machine.mm.memcg().usage(machine.group);
        assert_eq!(usage - tables, u64::from(charged), "{policy} {device:?}");
        machine.end();
    }
}
