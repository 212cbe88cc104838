//! Compaction that nobody asked for: when it begins, what it leaves, and who wakes it.

mod remembering;

use std::sync::Arc;

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{AddressSpace, MapSpec, Touch, Vpn};
use freehold_mm::{Cpu, Daemon, Knob, Knobs, Mm, Nanos, Node, NodeSize, Policy, Topology};

use remembering::{Remembering, read, write};

const INTERVAL: Nanos = Nanos(500_000_000);

fn machine(policy: &str) -> Mm<Remembering> {
    let nodes = [NodeSize { bytes: 256 << 20, cpus: 2 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    let policy = Policy::parse(policy).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
    Mm::new(Remembering::default(), topology, policy, knobs).unwrap()
}

/// A program has one in four pages left of most of memory: what is free is in pieces.
fn in_pieces(mm: &Mm<Remembering>) -> (Arc<AddressSpace<Remembering>>, Vpn, u32) {
    let space = mm.spaces().new_space();
    let pages = (mm.views().memory_use().free as u32 - 3 * PAGEBLOCK_PAGES) & !3;
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    for page in 0..pages {
        write(mm, &space, at.add(page), page).unwrap();
    }
    for page in (0..pages).step_by(4) {
        mm.spaces().munmap(&space, at.add(page), 3);
    }
    mm.lru().lru_drain_all();
    mm.drain_all();
    (space, at, pages)
}

/// Whether the vmstat tick of `cpu` wakes kcompactd.
fn tick_wakes(mm: &Mm<Remembering>, cpu: u16) -> bool {
    mm.machine().bare.take_woken();
    mm.vmstat_tick(Cpu(cpu));
    mm.machine().bare.take_woken().contains(&Daemon::Kcompactd(Node(0)))
}

fn check(mm: &Mm<Remembering>) {
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
}

#[test]
fn memory_in_pieces_is_put_together_until_little_is_in_pieces() {
    for proactiveness in [20, 50, 65] {
        let mm = machine("linux-6.18");
        let (space, at, pages) = in_pieces(&mm);
        mm.set_knob(Knob::CompactionProactiveness, proactiveness).unwrap();
        check(&mm);
        assert!(mm.compaction().fragmentation_score(Node(0)) > 90);
        assert!(!tick_wakes(&mm, 1), "one CPU of a node looks");
        assert!(tick_wakes(&mm, 0));
        assert_eq!(mm.compaction().compact_proactively(Node(0)), Some(INTERVAL));
        check(&mm);
        let score = mm.compaction().fragmentation_score(Node(0));
        assert!(u64::from(score) <= 100 - proactiveness + 1, "{score} at {proactiveness}");
        // No more than that: it costs.
        assert!(u64::from(score) + 12 > 100 - proactiveness, "{score} at {proactiveness}");
        let counters = mm.views().counters();
        assert!(counters.get("compact_daemon_migrate_scanned") > 0);
        assert_eq!((counters.get("compact_stall"), counters.get("compact_daemon_wake")), (0, 0));
        for page in (3..pages).step_by(4) {
            assert_eq!(read(&mm, &space, at.add(page)), Ok(page));
        }
        assert!(!tick_wakes(&mm, 0), "it was there");
        mm.spaces().exit(&space);
        check(&mm);
    }
}

#[test]
fn what_is_looked_at_unasked_counts_as_kcompactds_since_6_2() {
    for (policy, counts) in [("linux-5.10", false), ("linux-6.1", false), ("linux-6.12", true)] {
        let mm = machine(policy);
        let (space, _, _) = in_pieces(&mm);
        mm.compaction().compact_proactively(Node(0));
        let counters = mm.views().counters();
        let of = |name: &str| counters.get(name);
        assert!(of("compact_migrate_scanned") > 0 && of("compact_free_scanned") > 0, "{policy}");
        let daemons = (of("compact_daemon_migrate_scanned"), of("compact_daemon_free_scanned"));
        let all = (of("compact_migrate_scanned"), of("compact_free_scanned"));
        assert_eq!(daemons, if counts { all } else { (0, 0) }, "{policy}");
        mm.spaces().exit(&space);
    }
}

#[test]
fn nobody_compacts_unasked_where_it_is_not_wanted() {
    for (policy, proactiveness, wanted) in
        [("linux-5.8", None, false), ("linux-5.9", Some(20), true), ("linux-6.18", Some(0), false)]
    {
        let mm = machine(policy);
        match proactiveness {
            Some(value) => mm.set_knob(Knob::CompactionProactiveness, value).unwrap(),
            // Not even its default value can be set.
            None => assert!(mm.set_knob(Knob::CompactionProactiveness, 20).is_err(), "{policy}"),
        }
        let (space, _, _) = in_pieces(&mm);
        assert_eq!(tick_wakes(&mm, 0), wanted, "{policy}");
        assert_eq!(mm.compaction().compact_proactively(Node(0)).is_some(), wanted, "{policy}");
        assert_eq!(mm.views().counters().get("compact_pages_moved") > 0, wanted, "{policy}");
        mm.spaces().exit(&space);
    }
}

#[test]
fn where_nothing_helps_it_pauses_for_half_a_minute() {
    let mm = machine("linux-6.18");
    let (space, at, pages) = in_pieces(&mm);
    // Every page that is left is somebody's to work with.
    let pinned: Vec<_> = (3..pages)
        .step_by(4)
        .map(|page| mm.rmap().pin_page(&space, at.add(page), freehold_mm::vm::Touch::Read).unwrap())
        .collect();
    assert_eq!(mm.compaction().compact_proactively(Node(0)), Some(Nanos(32_000_000_000)));
    // No time passes on this machine: it is not due again.
    assert_eq!(mm.compaction().compact_proactively(Node(0)), Some(Nanos(32_000_000_000)));
    assert!(!tick_wakes(&mm, 0));
    check(&mm);
    for page in pinned {
        mm.rmap().unpin_page(page);
    }
    mm.spaces().exit(&space);
}

#[test]
fn whole_memory_wakes_nobody() {
    let mm = machine("linux-6.18");
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(20_000).small()).unwrap();
    mm.spaces().populate(&space, at, 20_000, Touch::Write).unwrap();
    assert!(!tick_wakes(&mm, 0));
    assert_eq!(mm.compaction().compact_proactively(Node(0)), None);
    assert_eq!(mm.views().counters().get("compact_migrate_scanned"), 0);
    mm.spaces().exit(&space);
}

#[test]
fn ours_moves_unasked_only_what_completes_blocks() {
    let mm = machine("freehold");
    let (space, at, pages) = in_pieces(&mm);
    mm.set_knob(Knob::CompactionProactiveness, 50).unwrap();
    assert_eq!(mm.compaction().compact_proactively(Node(0)), Some(INTERVAL));
    let score = mm.compaction().fragmentation_score(Node(0));
    assert!((38..=51).contains(&score), "{score}");
    let count = |name: &str| mm.views().counters().get(name);
    assert!(count("compact_pages_moved") > 0);
    assert_eq!(count("compact_pages_moved"), count("freehold_compact_completing"));
    assert_eq!(count("freehold_compact_unasked"), 1);
    for page in (3..pages).step_by(4) {
        assert_eq!(read(&mm, &space, at.add(page)), Ok(page));
    }
    check(&mm);
    mm.spaces().exit(&space);
}
