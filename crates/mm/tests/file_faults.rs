//! Mappings and reads of files: what is read besides what was asked for, and what a fault maps besides its own page.

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{
    Advice, AdviceError, FaultKind, Faulted, FileKind, HugePages, MapSpec, MemoryLock, Placement, Protection,
    ReadDone, ReadPattern, Touch,
};
use freehold_mm::{Bare, Knob, Knobs, Mm, NodeSize, Policy, Topology};

/// 128 MiB, one CPU.
fn machine(huge: u64) -> Mm<Bare> {
    let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::TransparentHugepage, huge).unwrap();
    Mm::new(Bare::default(), topology, Policy::default(), knobs).unwrap()
}

/// What a fault did, and how many pages it read.
fn did(faulted: Faulted) -> (FaultKind, u32) {
    (faulted.kind, faulted.reads)
}

#[test]
fn a_mapping_is_read_around_its_faults_and_mapped_by_sixteens() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    file.set_len(200);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 200)).unwrap();
    let fault = |page: u32| did(mm.spaces().fault(&space, at.add(page), Touch::Read).unwrap());
    // From 24 to 55, of which the 48th is marked; mapped is from 32 to 47.
    assert_eq!(fault(40), (FaultKind::Major, 32));
    assert_eq!((space.counters().file, file.cached_pages(mm.machine())), (16, 32));
    assert_eq!(mm.spaces().touch_page(&space, at.add(47), Touch::Read).unwrap().1, None);
    // The mark: the next window is read, and nobody waits.
    assert_eq!(fault(48), (FaultKind::Minor, 32));
    assert_eq!(file.cached_pages(mm.machine()), 64);
    // The last pages of the file.
    assert_eq!(fault(190), (FaultKind::Major, 26));
    let counters = space.counters();
    assert_eq!((counters.major, counters.minor), (2, 1));
    mm.spaces().check_vm().unwrap();
    mm.spaces().exit(&space);
}

#[test]
fn a_mapping_that_is_said_to_be_random_reads_single_pages() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    file.set_len(200);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 200)).unwrap();
    mm.spaces().madvise(&space, at, 200, Advice::Reads(ReadPattern::Random)).unwrap();
    let kinds = [40, 41, 60].map(|page| did(mm.spaces().fault(&space, at.add(page), Touch::Read).unwrap()));
    assert_eq!(kinds, [(FaultKind::Major, 1); 3]);
    mm.spaces().exit(&space);
}

#[test]
fn a_reader_who_goes_on_waits_once() {
    let mm = machine(0);
    let file = mm.files().new_file(FileKind::Disk);
    file.set_len(1000);
    let read = |first| mm.files().read_pages(&file, first..first + 16, Placement::default()).unwrap();
    assert_eq!(read(0), ReadDone { hits: 15, waits: 1, reads: 32 });
    // The 16th page is the mark of the first window.
    assert_eq!(read(16), ReadDone { hits: 16, waits: 0, reads: 32 });
    assert_eq!(read(32), ReadDone { hits: 16, waits: 0, reads: 32 });
    // Somewhere else: what was asked for.
    assert_eq!(read(500), ReadDone { hits: 15, waits: 1, reads: 16 });
    // The end.
    mm.files().advise_file(&file, ReadPattern::Random);
    assert_eq!(read(990), ReadDone { hits: 9, waits: 7, reads: 16 });
}

#[test]
fn shared_memory_may_be_written_from_the_first_read_on() {
    let mm = machine(0);
    let shared = mm.files().new_file(FileKind::Memory);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::shared(&shared, 40)).unwrap();
    let touch = |page: u32, touch| mm.spaces().touch_page(&space, at.add(page), touch).unwrap().1;
    assert_eq!(touch(3, Touch::Read), Some(FaultKind::Minor));
    assert_eq!(touch(3, Touch::Write), None);
    let child = mm.spaces().fork(&space).unwrap();
    // Its page table is empty; what is there comes by sixteens.
    assert_eq!((child.resident_pages(), child.table_pages()), (0, 0));
    assert_eq!(touch(4, Touch::Write), Some(FaultKind::Minor));
    let counters = space.counters();
    assert_eq!((counters.shmem, counters.anon, counters.file), (2, 0, 0));
    assert_eq!(mm.spaces().touch_page(&child, at, Touch::Read).unwrap().1, Some(FaultKind::Minor));
    assert_eq!(child.counters().shmem, 3);
    mm.spaces().check_vm().unwrap();
}

#[test]
fn advice_that_is_taken_and_advice_that_is_not() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let pages = 2 * PAGEBLOCK_PAGES;
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    let advise = |advice| mm.spaces().madvise(&space, at, pages, advice);
    advise(Advice::PopulateRead).unwrap();
    let counters = space.counters();
    assert_eq!((counters.zero, counters.anon), (u64::from(pages), 0));
    advise(Advice::PopulateWrite).unwrap();
    let counters = space.counters();
    assert_eq!((counters.copied, counters.anon, counters.minor), (1024, 1024, 2048));
    // Though the setting is never.
    advise(Advice::Collapse).unwrap();
    assert_eq!(space.counters().huge_pages, 2);
    advise(Advice::Huge(HugePages::Never)).unwrap();
    assert_eq!(advise(Advice::Collapse), Ok(()), "they are huge already");
    assert_eq!(advise(Advice::PageOut), Err(AdviceError::Unsupported));
    advise(Advice::DontNeed).unwrap();
    assert_eq!(space.counters().resident(), 0);
    assert_eq!(space.counters().peak, 1024);
    let beyond = mm.spaces().madvise(&space, at, pages + 1, Advice::Cold);
    assert_eq!(beyond, Err(AdviceError::NotMapped));
    mm.spaces().check_vm().unwrap();
}

#[test]
fn locked_memory_is_there_at_once_and_what_may_not_be_written_is_read() {
    let mm = machine(0);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(30)).unwrap();
    mm.spaces().protect(&space, at.add(20), 10, Protection::Read).unwrap();
    mm.spaces().mlock(&space, at, 30, MemoryLock::Keep).unwrap();
    let counters = space.counters();
    assert_eq!((counters.anon, counters.zero, counters.minor), (20, 10, 30));
    mm.spaces().mlock(&space, at, 30, MemoryLock::Release).unwrap();
    assert_eq!(mm.spaces().mlock(&space, at, 31, MemoryLock::Keep), Err(AdviceError::NotMapped));
    mm.spaces().check_vm().unwrap();
}

/// What two mappings had, one after the other, was used twice; where it was said to be read in order, or here and there, its mappings say nothing.
#[test]
fn pages_that_were_mapped_twice_are_active() {
    for (pattern, active) in
        [(ReadPattern::Normal, 40), (ReadPattern::Sequential, 0), (ReadPattern::Random, 0)]
    {
        for kind in [FileKind::Disk, FileKind::Memory] {
            let mm = machine(0);
            let (file, space) = (mm.files().new_file(kind), mm.spaces().new_space());
            let active_pages = || {
                mm.lru().lru_drain_all();
                let counters = mm.views().counters();
                ["nr_active_anon", "nr_active_file"].map(|name| counters.get(name)).iter().sum::<u64>()
            };
            for (round, active) in [(1, 0), (2, active), (3, active)] {
                let at = mm.spaces().mmap(&space, MapSpec::shared(&file, 60)).unwrap();
                mm.spaces().madvise(&space, at, 60, Advice::Reads(pattern)).unwrap();
                mm.spaces().populate(&space, at, 40, Touch::Read).unwrap();
                mm.lru().lru_drain_all();
                if round == 2 {
                    mm.spaces().madvise(&space, at, 60, Advice::DontNeed).unwrap();
                }
                mm.spaces().munmap(&space, at, 60);
                assert_eq!(active_pages(), active, "{pattern:?}, {kind:?}, round {round}");
            }
            assert_eq!(mm.views().counters().get("pgactivate"), active, "{pattern:?}, {kind:?}");
            mm.spaces().check_vm().unwrap();
        }
    }
}
