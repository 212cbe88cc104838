//! Who wakes kcompactd, and what becomes of what could not be done when it was asked for.

use freehold_mm::vm::{FileKind, MapSpec, Placement, Touch};
use freehold_mm::{Bare, Cpu, Daemon, Knob, Knobs, Mm, Node, NodeSize, Policy, Request, Topology, Urgency};

const KSWAPD: Daemon = Daemon::Kswapd(Node(0));
const KCOMPACTD: Daemon = Daemon::Kcompactd(Node(0));

/// A node of 128 MiB.
fn machine(policy: &str) -> Mm<Bare> {
    let topology = Topology::x86(&[NodeSize { bytes: 128 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
    // Else mixing types wakes kswapd too, in those that boost marks.
    mm.set_knob(Knob::WatermarkBoostFactor, 0).ok();
    mm
}

/// A program has all memory but 600 pages, and gives back every `step`th page of it.
fn with_gaps(mm: &Mm<Bare>, step: usize) {
    let space = mm.spaces().new_space();
    let pages = mm.views().memory_use().free as u32 - 600;
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    mm.spaces().populate(&space, start, pages, Touch::Write).unwrap();
    for page in (0..pages).step_by(step) {
        mm.spaces().munmap(&space, start.add(page), 1);
    }
    mm.lru().lru_drain_all();
    mm.drain_all();
    mm.machine().take_woken();
}

/// A huge page is asked for by who may not reclaim, until none is left.
fn ask(mm: &Mm<Bare>) {
    let block = Request { urgency: Urgency::NoWait, ..Request::THP };
    let mut had = 0;
    while mm.alloc(block).is_ok() {
        had += 1;
    }
    assert!(had < 8, "{had} of a machine in pieces");
}

/// kswapd finds nothing to free for a block until it gives up.
fn give_up(mm: &Mm<Bare>) {
    for _ in 0..20 {
        ask(mm);
        mm.reclaim().kswapd(Node(0));
    }
    mm.machine().take_woken();
}

#[test]
fn requests_that_may_not_reclaim_wake_it_where_kswapd_gave_up() {
    for (policy, wakes) in
        [("linux-4.6", false), ("linux-4.16", false), ("linux-4.17", true), ("linux-6.18", true)]
    {
        let mm = machine(policy);
        with_gaps(&mm, 2);
        give_up(&mm);
        ask(&mm);
        let woken = mm.machine().take_woken();
        assert!(!woken.contains(&KSWAPD), "{policy}: it gave up");
        assert_eq!(woken.contains(&KCOMPACTD), wakes, "{policy}");
        mm.views().check().unwrap();
    }
}

#[test]
fn kswapd_wakes_it_for_what_it_gives_up_having_freed_enough() {
    for with_file in [false, true] {
        let mm = machine("linux-6.18");
        if with_file {
            // Each beside a page that stays.
            let file = mm.files().new_file(FileKind::Disk);
            for page in 0..8000 {
                mm.files().read_file(&file, page, Placement::default()).unwrap();
                mm.alloc(Request { urgency: Urgency::Never, ..Request::USER }).unwrap();
            }
        }
        with_gaps(&mm, 40);
        ask(&mm);
        assert!(mm.machine().take_woken().contains(&KSWAPD));
        let runs = || mm.views().counters().get("pageoutrun");
        let before = runs();
        mm.reclaim().kswapd(Node(0));
        assert_eq!(runs() - before, 1, "{with_file}: it sleeps, for single pages are free");
        let woken = mm.machine().take_woken().contains(&KCOMPACTD);
        assert_eq!(woken, with_file, "nothing else can be freed");
        mm.views().check().unwrap();
    }
}

#[test]
fn who_reclaims_compacts_for_itself() {
    let mm = machine("linux-6.18");
    with_gaps(&mm, 2);
    give_up(&mm);
    let stalls = || mm.views().counters().get("compact_stall");
    let before = stalls();
    mm.alloc(Request { urgency: Urgency::Once, ..Request::THP }).ok();
    assert_eq!(stalls() - before, 1);
    assert!(!mm.machine().take_woken().contains(&KCOMPACTD));
}

#[test]
fn what_cannot_be_done_waits_for_the_next_look() {
    let mm = machine("linux-6.18");
    // Never in pieces enough for a look by itself.
    mm.set_knob(Knob::CompactionProactiveness, 1).unwrap();
    // Too little is free to move anything to.
    with_gaps(&mm, 100);
    give_up(&mm);
    ask(&mm);
    assert_eq!(mm.machine().take_woken(), [], "nothing can be done");
    let woken = || mm.views().counters().get("compact_daemon_wake");
    mm.vmstat_tick(Cpu(0));
    assert!(mm.machine().take_woken().contains(&KCOMPACTD));
    mm.compaction().kcompactd(Node(0));
    assert_eq!((woken(), mm.views().counters().get("compact_daemon_migrate_scanned")), (1, 0));
    // Once is enough.
    mm.compaction().kcompactd(Node(0));
    assert_eq!(woken(), 1);
    mm.views().check().unwrap();
}
