//! `vm.defrag_mode`: pageblocks keep to one type as long as reclaim and compaction can help it, and whole ones are kept free.

use std::sync::Arc;

use freehold_mm::vm::{AddressSpace, MapSpec, Touch};
use freehold_mm::{
    Bare, Daemon, Knob, Knobs, Mm, Node, NodeSize, Order, Policy, Request, Topology, Urgency, ZoneKind,
};

/// A node of 128 MiB.
fn machine(mode: u64) -> Mm<Bare> {
    let topology = Topology::x86(&[NodeSize { bytes: 128 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
    let mm = Mm::new(Bare::default(), topology, Policy::parse("linux-6.18").unwrap(), knobs).unwrap();
    mm.set_knob(Knob::DefragMode, mode).unwrap();
    // Else mixing types wakes kswapd too.
    mm.set_knob(Knob::WatermarkBoostFactor, 0).unwrap();
    mm
}

/// A program takes nearly all memory and gives back every second page of it: what is free is movable, and in pieces.
fn in_pieces(mm: &Mm<Bare>) -> Arc<AddressSpace<Bare>> {
    let space = mm.spaces().new_space();
    let pages = mm.views().memory_use().free as u32 - 2000;
    let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    mm.spaces().populate(&space, start, pages, Touch::Write).unwrap();
    for page in (0..pages).step_by(2) {
        mm.spaces().munmap(&space, start.add(page), 1);
    }
    mm.lru().lru_drain_all();
    mm.drain_all();
    mm.machine().take_woken();
    space
}

/// No whole block is free any more.
fn take_blocks(mm: &Mm<Bare>) {
    let block = Request { urgency: Urgency::Never, ..Request::THP };
    while mm.alloc(block).is_ok() {}
}

/// Kernel pages that can be had with `urgency`, up to `most`.
fn kernel_pages(mm: &Mm<Bare>, urgency: Urgency, most: usize) -> usize {
    let request = Request { urgency, ..Request::KERNEL };
    (0..most).take_while(|_| mm.alloc(request).is_ok()).count()
}

fn mixed(mm: &Mm<Bare>) -> u64 {
    let counters = mm.views().counters();
    counters.get("freehold_pageblock_steals") + counters.get("freehold_pageblock_claims")
}

#[test]
fn who_cannot_wait_gets_no_page_of_another_type() {
    let [off, on] = [0, 1].map(|mode| {
        let mm = machine(mode);
        let space = in_pieces(&mm);
        take_blocks(&mm);
        let before = mixed(&mm);
        let had = kernel_pages(&mm, Urgency::NoWait, 4096);
        let mixed = mixed(&mm) - before;
        mm.spaces().exit(&space);
        mm.views().check().unwrap();
        (had, mixed > 0)
    });
    assert_eq!(off, (4096, true));
    assert!(on.0 < 1024 && !on.1, "{on:?}: what is left of its own pageblocks");
}

#[test]
fn who_can_wait_reclaims_and_in_the_end_mixes_all_the_same() {
    let mm = machine(1);
    let space = in_pieces(&mm);
    take_blocks(&mm);
    kernel_pages(&mm, Urgency::NoWait, 4096);
    let stalls = |mm: &Mm<Bare>| {
        let counters = mm.views().counters();
        ["dma", "dma32", "normal"]
            .map(|zone| counters.get(&format!("allocstall_{zone}")))
            .into_iter()
            .sum::<u64>()
    };
    let before = (mixed(&mm), stalls(&mm));
    assert_eq!(kernel_pages(&mm, Urgency::Waits, 1), 1);
    assert!(mixed(&mm) > before.0, "nothing could be reclaimed");
    assert!(stalls(&mm) > before.1 + 8, "{} rounds", stalls(&mm) - before.1);
    // Once the block is its own, its pages are there for all.
    assert!(kernel_pages(&mm, Urgency::NoWait, 8) > 0);
    mm.spaces().exit(&space);
    mm.views().check().unwrap();
}

#[test]
fn a_lack_of_blocks_wakes_kswapd_though_pages_are_free() {
    for mode in [0, 1] {
        let mm = machine(mode);
        let space = in_pieces(&mm);
        take_blocks(&mm);
        kernel_pages(&mm, Urgency::NoWait, 1024);
        let woken = mm.machine().take_woken();
        assert_eq!(woken.contains(&Daemon::Kswapd(Node(0))), mode == 1, "{woken:?}");
        mm.spaces().exit(&space);
    }
}

#[test]
fn kcompactd_makes_as_many_whole_blocks_as_the_high_mark_has() {
    let [off, on] = [0, 1].map(|mode| {
        let mm = machine(mode);
        let block = mm.alloc(Request::THP).unwrap();
        let space = in_pieces(&mm);
        take_blocks(&mm);
        mm.set_knob(Knob::MinFreeKbytes, 8192).unwrap();
        let high: u32 = mm.zone(Node(0), ZoneKind::Dma32).unwrap().watermarks().high;
        // A block is wanted: kswapd finds nothing to reclaim until it gives up, and leaves it to kcompactd.
        for _ in 0..=16 {
            assert!(mm.alloc(Request { urgency: Urgency::NoWait, ..Request::THP }).is_err());
            mm.reclaim().kswapd(Node(0));
        }
        // There is one again, which would do for the request.
        mm.free(block, Order::PAGEBLOCK).unwrap();
        mm.drain_all();
        assert!(mm.machine().take_woken().contains(&Daemon::Kcompactd(Node(0))), "mode {mode}");
        mm.compaction().kcompactd(Node(0));
        let blocks = mm.views().counters().get("nr_free_pages_blocks");
        mm.spaces().exit(&space);
        mm.views().check().unwrap();
        (blocks, u64::from(high))
    });
    assert!((512..=1024).contains(&off.0), "{off:?}: one block of each zone will do");
    assert!(on.0 > on.1 && on.0 < on.1 + 2048 && on.1 > 2048, "{on:?}");
}
