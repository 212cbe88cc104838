//! Folios of files: which sizes readahead and writes make, and that they come, are mapped, cut and go as one.

mod common;

use std::sync::Arc;

use freehold_mm::ids::{Order, PAGEBLOCK_PAGES};
use freehold_mm::vm::{
    AddressSpace, DirtyPages, File, FileKind, Folio, MapError, MapSpec, Placement, Protection, Reader, Touch,
    Vpn,
};
use freehold_mm::{Bare, Knob, Knobs, Mm, NodeSize, Policy, Topology};

/// 128 MiB, one CPU.
fn machine(policy: &str) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
}

/// A file of so many pages on a device that reads 32 ahead, with folios however large.
fn file(mm: &Mm<Bare>, pages: u32) -> Arc<File<Bare>> {
    let file = mm.files().new_file(FileKind::Disk);
    file.set_len(pages);
    file.set_largest_folio(Order::PAGEBLOCK);
    file
}

/// First page and order of each folio, in the order of the file.
fn folios(mm: &Mm<Bare>, file: &Arc<File<Bare>>) -> Vec<(u32, u8)> {
    mm.files().folios(file).into_iter().map(|Folio { first, order, .. }| (first, order.get())).collect()
}

/// The same from page `first` to before `end`, with how many of an order follow each other.
fn runs(mm: &Mm<Bare>, file: &Arc<File<Bare>>, (first, end): (u32, u32)) -> Vec<(u8, usize)> {
    let orders: Vec<u8> = folios(mm, file)
        .into_iter()
        .filter(|(at, _)| (first..end).contains(at))
        .map(|(_, order)| order)
        .collect();
    orders.chunk_by(|one, next| one == next).map(|run| (run[0], run.len())).collect()
}

/// A mapping of the first `pages` of `file`, and where it begins.
fn mapped(mm: &Mm<Bare>, file: &Arc<File<Bare>>, pages: u32) -> (Arc<AddressSpace<Bare>>, Vpn) {
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::shared(file, pages)).unwrap();
    (space, at)
}

/// Touches pages 17, 18 and so on up to `last` of a mapped file of 2048 pages.
fn touched(policy: &str, last: u32) -> (Mm<Bare>, Arc<File<Bare>>) {
    let mm = machine(policy);
    let file = file(&mm, 2048);
    let (space, at) = mapped(&mm, &file, 2048);
    for page in 17..=last {
        mm.spaces().touch_page(&space, at.add(page), Touch::Read).unwrap();
    }
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
    mm.lru().lru_drain_all();
    mm.views().check().unwrap();
    (mm, file)
}

fn marks(mm: &Mm<Bare>, file: &Arc<File<Bare>>) -> Vec<u32> {
    mm.files().folios(file).into_iter().filter(|folio| folio.has_mark).map(|folio| folio.first).collect()
}

/// Published by Ryan Roberts, 20250609092729.274960-3-ryan.roberts@arm.com: every folio.
#[test]
fn windows_have_the_published_folios() {
    for policy in ["linux-6.12", "linux-6.16"] {
        let (mm, file) = touched(policy, 17);
        assert_eq!((runs(&mm, &file, (0, 2048)), marks(&mm, &file)), (vec![(0, 32)], vec![25]), "{policy}");
        let (mm, file) = touched(policy, 25);
        let second = vec![(0, 1), (1, 1), (2, 7), (0, 1)];
        assert_eq!((runs(&mm, &file, (33, 2048)), marks(&mm, &file)), (second.clone(), vec![33]), "{policy}");
        let (mm, file) = touched(policy, 1900);
        for window in (33..1900).step_by(32) {
            assert_eq!(runs(&mm, &file, (window, window + 32)), second, "{policy}: from {window} on");
        }
    }
}

/// What follows from the two commits of 6.17; nobody published it.
#[test]
fn since_6_17_windows_end_where_folios_do_and_folios_go_on_growing() {
    let (mm, file) = touched("linux-6.18", 200);
    let all = runs(&mm, &file, (1, 256));
    assert_eq!(all, [(0, 33), (1, 1), (2, 7), (4, 2), (5, 5)]);
    assert_eq!(marks(&mm, &file), [224]);
}

#[test]
fn a_write_has_folios_as_long_as_itself() {
    let mm = machine("linux-6.18");
    let file = file(&mm, 100);
    mm.files().write_pages(&file, 3..41, Placement::default).unwrap();
    assert_eq!(folios(&mm, &file), [(3, 0), (4, 2), (8, 3), (16, 4), (32, 3), (40, 0)]);
    let taken = mm.files().take_dirty(1000);
    assert_eq!(taken.iter().map(|folio| folio.pages).sum::<u32>(), 38);
    mm.files().written(&taken);
    // One page of eight is written to: all eight are dirty, and one goes to the disk.
    mm.files().write_file(&file, 33, Placement::default()).unwrap();
    assert_eq!(mm.files().dirty_pages().dirty, 8);
    let taken = mm.files().take_dirty(1000);
    assert_eq!(taken.iter().map(|folio| folio.pages).collect::<Vec<_>>(), [1]);
    mm.files().written(&taken);
    assert_eq!(mm.files().dirty_pages(), DirtyPages::default());
    mm.views().check().unwrap();
}

#[test]
fn what_is_brought_in_asks_for_no_block_where_a_write_was_before() {
    let mm = machine("linux-6.18");
    let file = file(&mm, 100);
    let asked = || {
        let counters = mm.views().counters();
        counters
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("pgalloc_"))
            .map(|(_, pages)| pages)
            .sum::<u64>()
    };
    mm.files().write_pages(&file, 16..32, Placement::default).unwrap();
    let before = asked();
    assert!(mm.files().bring_pages(&file, 16..32, Placement::default()));
    assert_eq!(asked(), before);
    assert!(mm.files().bring_pages(&file, 8..48, Placement::default()));
    assert_eq!(asked(), before + 24);
    assert_eq!(folios(&mm, &file), [(8, 3), (16, 4), (32, 4)]);
}

#[test]
fn a_folio_is_used_once_by_a_call_and_by_calls_that_go_on_in_it() {
    let mm = machine("linux-6.18");
    mm.set_knob(Knob::LruGenEnabled, 0).unwrap();
    let file = file(&mm, 128);
    mm.files().write_pages(&file, 0..64, Placement::default).unwrap();
    mm.files().write_pages(&file, 64..128, Placement::default).unwrap();
    mm.files().written(&mm.files().take_dirty(1000));
    let mut reader = Reader::default();
    let mut active = |first| {
        mm.files().read_pages_by(&mut reader, &file, first..first + 8, Placement::default()).unwrap();
        mm.lru().lru_drain_all();
        mm.views().counters().get("nr_active_file")
    };
    assert_eq!((0..64).step_by(8).map(&mut active).max(), Some(0), "one folio of 64 pages, read on and on");
    assert_eq!(active(0), 0, "back to its first page: it is the folio of the call before");
    assert_eq!((active(64), active(0)), (0, 64));
}

#[test]
fn a_file_that_is_cut_within_a_folio_keeps_the_rest() {
    let mm = machine("linux-6.18");
    let file = file(&mm, 64);
    mm.files().write_pages(&file, 0..64, Placement::default).unwrap();
    assert_eq!(mm.files().forget_pages(&file, 0..64), 0, "it is dirty");
    assert_eq!(mm.files().truncate_pages(&file, 40, 100), 24);
    assert_eq!((file.cached_pages(mm.machine()), mm.files().dirty_pages().dirty), (40, 40));
    assert!(folios(&mm, &file).into_iter().all(|(_, order)| order == 0));
    mm.views().check().unwrap();
    let taken = mm.files().take_dirty(1000);
    assert_eq!(taken.len(), 40);
    mm.files().written(&taken);
    assert_eq!(mm.files().forget_pages(&file, 0..64), 40);
    mm.files().write_pages(&file, 0..16, Placement::default).unwrap();
    mm.files().written(&mm.files().take_dirty(1000));
    assert_eq!(mm.files().forget_pages(&file, 0..15), 0, "part of a folio stays");
    assert_eq!(mm.files().forget_pages(&file, 0..16), 16);
    mm.lru().lru_drain_all();
    assert_eq!(mm.views().memory_use().held(), 0);
}

#[test]
fn a_mapped_folio_is_found_from_any_of_its_pages() {
    let mm = machine("linux-6.18");
    let file = file(&mm, 64);
    mm.files().write_pages(&file, 0..64, Placement::default).unwrap();
    mm.files().written(&mm.files().take_dirty(1000));
    // A mapping of pages 5 to 44, in two tables, and one of all.
    let (part, whole) = (mm.spaces().new_space(), mm.spaces().new_space());
    let at = Vpn(3 * PAGEBLOCK_PAGES - 10);
    mm.spaces().mmap_at(&part, at, MapSpec::shared(&file, 40).from_page(5)).unwrap();
    let all = mm.spaces().mmap(&whole, MapSpec::shared(&file, 64)).unwrap();
    for page in (0..40).step_by(16) {
        mm.spaces().touch_page(&part, at.add(page), Touch::Read).unwrap();
        mm.spaces().touch_page(&whole, all.add(page), Touch::Read).unwrap();
    }
    mm.spaces().check_vm().unwrap();
    let mapped = part.counters().file + whole.counters().file;
    assert!(mapped > 60, "{mapped}: faults map sixteen");
    assert_eq!(mm.files().truncate_pages(&file, 0, 64), 0, "it is mapped");
    assert_eq!(mm.pages_out().cut_off(&file, 20, 44), 44, "it leaves all page tables, and is cut");
    mm.spaces().check_vm().unwrap();
    assert_eq!((part.counters().file, whole.counters().file, file.cached_pages(mm.machine())), (0, 0, 20));
    for space in [part, whole] {
        mm.spaces().exit(&space);
    }
    mm.files().drop_file(&file);
    mm.lru().lru_drain_all();
    assert_eq!(mm.views().memory_use().held(), 0);
}

#[test]
fn reclaim_takes_folios_whole_and_they_come_back_as_what_left() {
    let mm = machine("linux-6.18");
    mm.set_knob(Knob::LruGenEnabled, 0).unwrap();
    let file = file(&mm, 60_000);
    let read = |first| {
        mm.files().read_pages(&file, first..first + 16, Placement::default()).unwrap();
        common::play(&mm);
    };
    for first in (0..60_000).step_by(16) {
        read(first);
    }
    mm.lru().lru_drain_all();
    mm.views().check().unwrap();
    let counter = |name: &str| mm.views().counters().get(name);
    let stolen = counter("pgsteal_direct") + counter("pgsteal_kswapd");
    assert_eq!(60_000 - file.cached_pages(mm.machine()), stolen);
    assert!(stolen > 25_000, "{stolen}");
    let early = mm.files().folios(&file)[100];
    assert_eq!(early.order.get(), 5, "{early:?}");
    for first in (0..1_024).step_by(16) {
        read(first);
    }
    assert!(counter("workingset_refault_file") >= 1_024);
    mm.views().check().unwrap();
}

/// What a capture of 6.18.15 counted (scene map-file-mglru-6.18): 64 MiB touched page by page.
#[test]
fn a_fault_maps_the_whole_folio_since_6_18() {
    let faults = |policy| {
        let mm = machine(policy);
        let file = file(&mm, 16_384);
        let (space, at) = mapped(&mm, &file, 16_384);
        for page in 0..16_384 {
            mm.spaces().touch_page(&space, at.add(page), Touch::Read).unwrap();
        }
        let counters = space.counters();
        mm.spaces().check_vm().unwrap();
        mm.spaces().exit(&space);
        assert_eq!((counters.major, counters.file), (1, 16_384), "{policy}");
        counters.minor
    };
    assert_eq!(faults("linux-6.18"), 516);
    // Of the first 96 pages six, and of each of 509 folios of 32 its two halves.
    assert_eq!(faults("linux-6.17"), 6 + 2 * 509);
}

#[test]
fn the_last_page_that_a_file_can_have_is_mapped_and_none_behind_it() {
    let mm = machine("linux-6.18");
    let file = file(&mm, u32::MAX);
    let space = mm.spaces().new_space();
    let spec = |pages| MapSpec::shared(&file, pages).from_page(u32::MAX - 20);
    assert_eq!(mm.spaces().mmap(&space, spec(21)), Err(MapError::Size));
    let at = mm.spaces().mmap(&space, spec(20)).unwrap();
    assert_eq!(mm.spaces().mremap(&space, at, 20, at, 21), Err(MapError::Size));
    assert_eq!(mm.spaces().mremap(&space, at, 0, at.add(600), 21), Err(MapError::Size));
    for page in 0..20 {
        mm.spaces().touch_page(&space, at.add(page), Touch::Read).unwrap();
    }
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
    mm.files().truncate_pages(&file, 0, u32::MAX);
    assert_eq!(file.cached_pages(mm.machine()), 0);
}

/// Since 6.18: single pages from the fault on, within the mapping.
#[test]
fn code_is_read_from_the_fault_on_within_its_mapping() {
    for (policy, wanted) in [("linux-6.17", (24..56, 32)), ("linux-6.18", (40..50, 10))] {
        let mm = machine(policy);
        let file = file(&mm, 200);
        let space = mm.spaces().new_space();
        let spec = MapSpec::shared(&file, 50).protected(Protection::Execute);
        let at = mm.spaces().mmap(&space, spec).unwrap();
        let faulted = mm.spaces().fault(&space, at.add(40), Touch::Read).unwrap();
        let there: Vec<u32> = folios(&mm, &file).into_iter().map(|(first, _)| first).collect();
        assert_eq!((there, faulted.reads), (wanted.0.collect(), wanted.1), "{policy}");
        mm.spaces().exit(&space);
    }
}

/// A folio of which one process has used all parts is used once, and its second round is its last on classic lists.
#[test]
fn a_folio_that_one_process_used_is_used_once() {
    let mm = machine("linux-6.18");
    mm.set_knob(Knob::LruGenEnabled, 0).unwrap();
    let file = file(&mm, 4_096);
    let (space, at) = mapped(&mm, &file, 4_096);
    for page in 0..4_096 {
        mm.spaces().touch_page(&space, at.add(page), Touch::Read).unwrap();
    }
    let stream = self::file(&mm, 60_000);
    for first in (0..60_000).step_by(16) {
        mm.files().read_pages(&stream, first..first + 16, Placement::default()).unwrap();
        common::play(&mm);
    }
    assert_eq!(file.cached_pages(mm.machine()), 0, "the stream is longer than memory, twice");
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
}
