//! Schedules of khugepaged beside faults, unmapping, pins and forks of the same pages, explored by shuttle as in
//! `shuttle_vm.rs`: every page holds the number that was written to it last, wherever it is by then.
#![cfg(shuttle)]

mod explored;

use std::sync::atomic::{AtomicU64, Ordering};

use explored::{
    Cpus, Space, Tiny, assert_met, check_whole, exit_all, explore_some, join, on_cpu, read, tiny, write,
};
use freehold_mm::Knob;
use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{FileKind, MapSpec, Touch, Vpn};
use shuttle::sync::Arc;

/// A schedule is of hundreds of descriptors and entries.
const OF_HUGE: usize = 4;

/// A table of small pages of which a few are there: the first five hold 1 to 5. From now on it may be huge.
fn sparse() -> (Arc<Tiny>, Space, Vpn) {
    let mm = tiny(4 * PAGEBLOCK_PAGES, Cpus::Pinned, "linux-6.18");
    mm.set_knob(Knob::TransparentHugepage, 0).unwrap();
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
    (0..5).for_each(|page| write(&mm, &space, at.add(page), page + 1));
    mm.set_knob(Knob::TransparentHugepage, 1).unwrap();
    mm.lru().lru_drain_all();
    (mm, space, at)
}

fn end(mm: &Tiny, spaces: &[&Space]) {
    exit_all(mm, spaces);
    check_whole(mm);
}

/// What schedules came to: tables that became huge pages, and those that stayed.
#[derive(Default)]
struct Ends {
    collapsed: AtomicU64,
    stayed: AtomicU64,
}

impl Ends {
    const fn new() -> Self {
        Self { collapsed: AtomicU64::new(0), stayed: AtomicU64::new(0) }
    }

    fn note(&self, mm: &Tiny) {
        let collapsed = mm.views().counters().get("khugepaged_pages_collapsed");
        self.collapsed.fetch_add(collapsed, Ordering::Relaxed);
        self.stayed.fetch_add(u64::from(collapsed == 0), Ordering::Relaxed);
    }

    /// There were schedules of both kinds.
    fn assert_both(&self) {
        assert_met(self.collapsed.load(Ordering::Relaxed));
        assert_met(self.stayed.load(Ordering::Relaxed));
    }
}

/// A page comes to an empty entry, and others are written to and read, while the table becomes a huge page.
#[test]
fn faults_beside_a_collapse() {
    static ENDS: Ends = Ends::new();
    explore_some(OF_HUGE, || {
        let (mm, space, at) = sparse();
        let daemon = Arc::clone(&mm);
        let faulter = (Arc::clone(&mm), Arc::clone(&space));
        let writer = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                daemon.collapses().khugepaged();
            }),
            on_cpu(1, move || {
                let (mm, space) = faulter;
                write(&mm, &space, at.add(300), 9);
                assert_eq!(read(&mm, &space, at.add(300)).unwrap(), 9);
            }),
            on_cpu(1, move || {
                let (mm, space) = writer;
                write(&mm, &space, at.add(2), 7);
                assert_eq!(
                    (read(&mm, &space, at.add(2)).unwrap(), read(&mm, &space, at.add(4)).unwrap()),
                    (7, 5)
                );
            }),
        ]);
        ENDS.note(&mm);
        let seen = [0, 1, 2, 4, 300].map(|page| read(&mm, &space, at.add(page)).unwrap());
        assert_eq!(seen, [1, 2, 7, 5, 9]);
        end(&mm, &[&space]);
    });
    ENDS.assert_both();
}

/// Part of the table is unmapped, and something else comes to its place.
#[test]
fn unmapping_beside_a_collapse() {
    static ENDS: Ends = Ends::new();
    explore_some(OF_HUGE, || {
        let (mm, space, at) = sparse();
        let daemon = Arc::clone(&mm);
        let unmapper = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                daemon.collapses().khugepaged();
            }),
            on_cpu(1, move || {
                let (mm, space) = unmapper;
                mm.spaces().munmap(&space, at.add(1), 2);
                let again = mm.spaces().mmap(&space, MapSpec::anonymous(1).small()).unwrap();
                assert_eq!(again, at.add(1));
                assert_eq!(read(&mm, &space, again).unwrap(), 0);
                write(&mm, &space, again, 8);
            }),
        ]);
        ENDS.note(&mm);
        let seen = [0, 1, 3, 4].map(|page| read(&mm, &space, at.add(page)).unwrap());
        assert_eq!(seen, [1, 8, 4, 5]);
        end(&mm, &[&space]);
    });
    ENDS.assert_both();
}

/// A page is pinned and written to through its frame, while the address space forks.
#[test]
fn pins_and_forks_beside_a_collapse() {
    static ENDS: Ends = Ends::new();
    explore_some(OF_HUGE, || {
        let (mm, space, at) = sparse();
        let daemon = Arc::clone(&mm);
        let pinner = (Arc::clone(&mm), Arc::clone(&space));
        let forker = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                daemon.collapses().khugepaged();
            }),
            on_cpu(1, move || {
                let (mm, space) = pinner;
                let pinned = mm.rmap().pin_page(&space, at.add(3), Touch::Read).unwrap();
                shuttle::thread::yield_now();
                let frame = pinned.frame();
                let again = mm.rmap().pin_page(&space, at.add(3), Touch::Read).unwrap();
                assert_eq!(again.frame(), frame, "a pinned page stays");
                mm.rmap().unpin_page(again);
                mm.rmap().unpin_page(pinned);
            }),
            on_cpu(0, move || {
                let (mm, space) = forker;
                let child = mm.spaces().fork(&space).unwrap();
                assert_eq!(read(&mm, &child, at).unwrap(), 1);
                write(&mm, &child, at.add(1), 6);
                assert_eq!(read(&mm, &child, at.add(1)).unwrap(), 6);
                mm.spaces().exit(&child);
            }),
        ]);
        ENDS.note(&mm);
        let seen = [0, 1, 2, 3, 4].map(|page| read(&mm, &space, at.add(page)).unwrap());
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        end(&mm, &[&space]);
    });
    ENDS.assert_both();
}

/// Its pages move to other frames, and two rounds run at once.
#[test]
fn migration_beside_a_collapse() {
    static ENDS: Ends = Ends::new();
    explore_some(OF_HUGE, || {
        let (mm, space, at) = sparse();
        let [one, other] = [Arc::clone(&mm), Arc::clone(&mm)];
        let mover = (Arc::clone(&mm), Arc::clone(&space));
        join(vec![
            on_cpu(0, move || {
                one.collapses().khugepaged();
            }),
            on_cpu(1, move || {
                other.collapses().khugepaged();
            }),
            on_cpu(1, move || {
                // To another frame of the same node.
                let (mm, space) = mover;
                for page in 0..5 {
                    let _ = mm.rmap().move_page(&space, at.add(page), freehold_mm::Node(0));
                }
            }),
        ]);
        ENDS.note(&mm);
        let seen = [0, 1, 2, 3, 4].map(|page| read(&mm, &space, at.add(page)).unwrap());
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        end(&mm, &[&space]);
    });
    ENDS.assert_both();
}

/// The same of shared memory: a child's touches map what is there, a page comes, others are cut off and sent away from who maps them.
#[test]
fn faults_and_truncation_beside_a_collapse_of_shared_memory() {
    static ENDS: Ends = Ends::new();
    explore_some(OF_HUGE, || {
        let mm = tiny(4 * PAGEBLOCK_PAGES, Cpus::Pinned, "linux-6.18");
        let (file, space) = (mm.files().new_file(FileKind::Memory), mm.spaces().new_space());
        let at = mm.spaces().mmap(&space, MapSpec::shared(&file, PAGEBLOCK_PAGES)).unwrap();
        let child = mm.spaces().fork(&space).unwrap();
        (0..5).for_each(|page| write(&mm, &space, at.add(page), page + 1));
        mm.set_knob(Knob::SharedHugepage, 1).unwrap();
        mm.lru().lru_drain_all();
        let daemon = Arc::clone(&mm);
        let faulter = (Arc::clone(&mm), Arc::clone(&child));
        let cutter = (Arc::clone(&mm), Arc::clone(&space), std::sync::Arc::clone(&file));
        join(vec![
            on_cpu(0, move || {
                daemon.collapses().khugepaged();
            }),
            on_cpu(1, move || {
                let (mm, child) = faulter;
                assert_eq!(read(&mm, &child, at.add(2)).unwrap(), 3);
                write(&mm, &child, at.add(300), 9);
                assert_eq!(read(&mm, &child, at.add(300)).unwrap(), 9);
            }),
            on_cpu(1, move || {
                let (mm, space, file) = cutter;
                mm.spaces().discard(&space, at.add(1), 1);
                assert_eq!(read(&mm, &space, at.add(1)).unwrap(), 2, "the file has it");
                mm.pages_out().cut_off(&file, 4, 1);
            }),
        ]);
        ENDS.note(&mm);
        let seen = [0, 1, 2, 3, 300].map(|page| read(&mm, &space, at.add(page)).unwrap());
        assert_eq!(seen, [1, 2, 3, 4, 9]);
        exit_all(&mm, &[&space, &child]);
        mm.files().drop_file(&file);
        mm.lru().lru_drain_all();
        check_whole(&mm);
    });
    ENDS.assert_both();
}
