use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::bare::Moment;
use crate::ground::{Cpu, Daemon, Nanos, Pfn, TaskId, WordSize};
use crate::lru::Swappiness;
use crate::lru::page::PageFlag;
use crate::memcg::GroupAsk;
use crate::mm::Mm;
use crate::pages::Level;
use crate::vm::{Cached, File, FileKind, MapSpec, Placement, Touch};
use crate::{AllocError, Bare, CpuSpec, Knob, Knobs, NodeSpec, Policy, Request, Topology, Urgency, ZoneSpec};

const POLICIES: [&str; 4] = ["linux-4.4", "linux-5.8", "linux-6.6", "linux-6.18"];

/// A node with DMA32 and Normal of 16 MiB each, one CPU.
fn mm(policy: &str) -> Mm<Bare> {
    let zone =
        |kind, start| ZoneSpec { kind, start: Pfn(start), spanned: 4096, present: 4096, managed: 4096 };
    let topology = Topology {
        word: WordSize::Bits64,
        nodes: vec![NodeSpec { zones: vec![zone(ZoneKind::Dma32, 0), zone(ZoneKind::Normal, 4096)] }],
        cpus: vec![CpuSpec { node: Node(0), cache_slice: 0 }],
        distance: vec![vec![10]],
    };
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 512).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
}

/// Page `index` of `file` comes into memory by a read call.
fn read(mm: &Mm<Bare>, file: &File<Bare>, index: u32) -> Cached {
    mm.files().read_file(file, index, Placement::default()).unwrap()
}

/// Reads pages of a new file until kswapd is wanted; gives the file and how many pages of it were read.
fn fill(mm: &Mm<Bare>) -> (Arc<File<Bare>>, u32) {
    let file = mm.files().new_file(FileKind::Disk);
    let mut pages = 0;
    mm.machine().take_woken();
    while mm.machine().take_woken().is_empty() {
        read(mm, &file, pages);
        pages += 1;
    }
    mm.lru().lru_drain_all();
    (file, pages)
}

/// The same with pages that differ from the disk.
fn fill_dirty(mm: &Mm<Bare>) -> (Arc<File<Bare>>, u32) {
    let file = mm.files().new_file(FileKind::Disk);
    let mut pages = 0;
    mm.machine().take_woken();
    while !mm.machine().take_woken().contains(&Daemon::Kswapd(Node(0))) {
        mm.files().write_file(&file, pages, Placement::default()).unwrap();
        pages += 1;
    }
    mm.lru().lru_drain_all();
    (file, pages)
}

fn counter(mm: &Mm<Bare>, name: &str) -> u64 {
    mm.views().counters().0.iter().filter(|(key, _)| key.starts_with(name)).map(|(_, value)| value).sum()
}

#[test]
fn kswapd_brings_zones_back_to_the_high_mark() {
    for policy in POLICIES {
        let mm = mm(policy);
        let (_file, pages) = fill(&mm);
        assert!(mm.zones().iter().all(|zone| zone.free_pages() <= zone.mark_low().pages + 64), "{policy}");
        mm.reclaim().kswapd(Node(0));
        let high = |zone: &Zone<Bare>| zone.free_pages() > zone.mark_high().pages;
        if policy == "linux-4.4" {
            assert!(mm.zones().iter().all(high), "{policy}");
            assert!(mm.views().counters().get("pgsteal_kswapd_dma32") > 0);
        } else {
            assert!(mm.zones().iter().any(high), "{policy}");
        }
        let freed = counter(&mm, "pgsteal_kswapd");
        assert!(freed > 0 && freed <= counter(&mm, "pgscan_kswapd"), "{policy}");
        assert_eq!(mm.views().memory_use().held(), u64::from(pages) - freed, "{policy}");
        assert_eq!(counter(&mm, "pgscan_direct"), 0);
        assert!(mm.zones().iter().all(|zone| !zone.has_flag(crate::pages::zone::zone_flag::RECLAIM_ACTIVE)));
        mm.views().check().unwrap();
    }
}

#[test]
fn kswapd_sleeps_on_where_nothing_is_wanted() {
    let mm = mm("linux-6.18");
    fill(&mm);
    mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Movable);
    assert_eq!(mm.machine().take_woken(), [Daemon::Kswapd(Node(0))]);
    mm.reclaim().kswapd(Node(0));
    mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Movable);
    assert_eq!(mm.machine().take_woken(), []);
}

#[test]
fn requests_free_for_themselves_where_kswapd_does_not_run() {
    for policy in POLICIES {
        let mm = mm(policy);
        let file = mm.files().new_file(FileKind::Disk);
        for page in 0..20_000 {
            read(&mm, &file, page);
        }
        assert!(counter(&mm, "pgsteal_direct") > 10_000, "{policy}");
        assert_eq!(counter(&mm, "pgsteal_kswapd"), 0, "{policy}");
        assert_eq!(mm.views().memory_use().held(), 20_000 - counter(&mm, "pgsteal_direct"), "{policy}");
        assert!(counter(&mm, "allocstall") > 0);
        assert_eq!(counter(&mm, "freehold_oom"), 0);
        mm.views().check().unwrap();
    }
}

#[test]
fn pages_that_were_read_again_survive() {
    let mm = mm("linux-6.18");
    let (file, pages) = fill(&mm);
    (0..100).for_each(|page| assert_eq!(read(&mm, &file, page), Cached::Hit));
    mm.lru().lru_drain_all();
    for page in pages..pages + 3000 {
        read(&mm, &file, page);
    }
    assert!(file.cached_pages(mm.machine()) < u64::from(pages) + 500);
    (0..100).for_each(|page| assert_eq!(read(&mm, &file, page), Cached::Hit, "read twice, and the oldest"));
    assert!((100..200).all(|page| read(&mm, &file, page) == Cached::Miss));
    mm.views().check().unwrap();
}

#[test]
fn a_request_for_low_memory_frees_low_memory() {
    let low = Request { highest: ZoneKind::Dma32, ..Request::USER };
    for policy in POLICIES {
        let mm = mm(policy);
        fill(&mm);
        for _ in 0..1000 {
            mm.alloc(low).unwrap();
        }
        assert!(counter(&mm, "pgsteal_direct") > 500, "{policy}");
        let of_normal = mm.lru().events(crate::ZoneId(1)).get(crate::lru::ReclaimEvent::StealDirect);
        assert_eq!(of_normal, 0, "{policy}");
        assert_eq!(counter(&mm, "pgskip_normal") > 0, policy != "linux-4.4", "{policy}");
        mm.views().check().unwrap();
    }
}

/// A zone whose marks were raised wakes kswapd for itself and the zones below: what lies above is passed over, and counted as looked at.
#[test]
fn a_boost_of_low_memory_frees_low_memory() {
    for policy in ["linux-5.8", "linux-6.18"] {
        let mm = mm(policy);
        fill(&mm);
        mm.reclaim().kswapd(Node(0));
        let before = ["pgsteal_kswapd", "pgskip_normal"].map(|name| counter(&mm, name));
        let of_normal = || mm.lru().events(crate::ZoneId(1)).get(crate::lru::ReclaimEvent::StealKswapd);
        let normal = of_normal();
        mm.zones()[0].set_boost(64);
        mm.zones()[0].set_flag(crate::pages::zone::zone_flag::BOOSTED);
        mm.alloc(Request { highest: ZoneKind::Dma32, ..Request::USER }).unwrap();
        mm.reclaim().kswapd(Node(0));
        assert!(counter(&mm, "pgsteal_kswapd") > before[0], "{policy}");
        assert!(counter(&mm, "pgskip_normal") > before[1], "{policy}");
        assert_eq!(of_normal(), normal, "{policy}");
        assert_eq!(mm.zones()[0].boost(), 0, "{policy}");
        mm.views().check().unwrap();
    }
}

/// Raised marks wake kswapd for low memory before its short sleep is over: since 5.2 it passes over what lies above, before it looked after all again.
#[test]
fn who_is_woken_early_looks_after_what_it_was_woken_for() {
    for (policy, is_for_low_alone) in [("linux-5.1", false), ("linux-5.8", true), ("linux-6.18", true)] {
        let mm = Rc::new(mm(policy));
        fill(&mm);
        let (waking, is_woken) = (Rc::downgrade(&mm), core::cell::Cell::new(false));
        mm.machine().watch(move |moment| {
            let sleeps = matches!(moment, Moment::Blocks(_)) && !is_woken.replace(true);
            if let (Some(mm), true) = (waking.upgrade(), sleeps) {
                mm.zones()[0].set_boost(64);
                mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Dma32);
            }
        });
        mm.reclaim().kswapd(Node(0));
        assert_eq!(counter(&mm, "pgskip_normal") > 0, is_for_low_alone, "{policy}");
        assert_eq!(mm.zones()[0].boost(), 0, "{policy}");
    }
}

#[test]
fn kswapd_leaves_dirty_pages_to_the_flusher_and_may_give_up_meanwhile() {
    let mm = mm("linux-6.18");
    let (file, pages) = fill_dirty(&mm);
    mm.reclaim().kswapd(Node(0));
    assert!(mm.machine().take_woken().contains(&Daemon::Flusher));
    assert_eq!(file.cached_pages(mm.machine()), u64::from(pages), "none is lost");
    assert!(mm.reclaim().kswapd_gave_up(Node(0)));
    mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Movable);
    assert_eq!(mm.machine().take_woken(), []);
    mm.views().check().unwrap();
    // The disk is done with them: they go first.
    let written = mm.files().take_dirty(500);
    assert!(written.iter().all(|folio| mm.lru().page(folio.pfn).has(PageFlag::Writeback)));
    mm.files().written(&written);
    assert!(counter(&mm, "pgrotated") > 0);
    while counter(&mm, "pgsteal_direct") == 0 {
        mm.alloc(Request::USER).unwrap();
    }
    assert!(!mm.reclaim().kswapd_gave_up(Node(0)));
    mm.views().check().unwrap();
}

#[test]
fn a_huge_page_of_old_kernels_reclaims_but_wakes_nobody() {
    let mm = mm("linux-4.4");
    fill(&mm);
    let _ = mm.alloc(Request::THP);
    // Who tells others of it is no reclaimer.
    assert!(mm.machine().take_woken().iter().all(|daemon| *daemon == Daemon::PressureWorker));
    assert!(counter(&mm, "pgscan_direct") > 0);
    let scanned = counter(&mm, "pgscan_direct");
    assert!(mm.alloc(Request { urgency: Urgency::Never, ..Request::THP }).is_err());
    assert_eq!(counter(&mm, "pgscan_direct"), scanned);
    mm.views().check().unwrap();
}

#[test]
fn out_of_memory_is_an_error_and_a_report() {
    for policy in POLICIES {
        let mm = mm(policy);
        let file = mm.files().new_file(FileKind::Disk);
        read(&mm, &file, 0);
        let held: Vec<Pfn> = core::iter::from_fn(|| mm.alloc(Request::USER).ok()).collect();
        assert_eq!(mm.alloc(Request::KERNEL), Err(AllocError::OutOfMemory), "{policy}");
        assert_eq!(counter(&mm, "freehold_oom"), 2);
        let reports = mm.views().oom_reports();
        assert!(reports[0].starts_with("task 0 invoked oom-killer: gfp_mask=GFP_HIGHUSER_MOVABLE, order=0"));
        assert!(reports[1].starts_with("task 0 invoked oom-killer: gfp_mask=GFP_KERNEL, order=0"));
        mm.views().check().unwrap();
        for pfn in held {
            mm.free(pfn, Order::ZERO).unwrap();
        }
        assert!(mm.alloc(Request::KERNEL).is_ok());
    }
}

#[test]
fn reports_are_few() {
    let mm = mm("linux-6.18");
    while mm.alloc(Request::USER).is_ok() {}
    for _ in 0..30 {
        let _ = mm.alloc(Request::USER);
    }
    assert_eq!((counter(&mm, "freehold_oom"), mm.views().oom_reports().len()), (31, 4));
}

#[test]
fn who_was_killed_waits_no_more() {
    let mm = mm("linux-6.18");
    let held: Vec<Pfn> = core::iter::from_fn(|| mm.alloc(Request::USER).ok()).collect();
    mm.pages().kill(TaskId(0));
    assert_eq!(mm.alloc(Request::USER), Err(AllocError::Killed));
    mm.free(held[0], Order::ZERO).unwrap();
    mm.pages().drain_cpu(Cpu(0));
    mm.views().check().unwrap();
    mm.pages().forget_task(TaskId(0));
    assert!(!mm.pages().is_killed(TaskId(0)));
}

#[test]
fn a_report_has_the_kernels_shape() {
    let mm = mm("linux-6.18");
    let file = mm.files().new_file(FileKind::Disk);
    read(&mm, &file, 0);
    mm.lru().lru_drain_all();
    assert!(
        mm.alloc(Request { highest: ZoneKind::Dma, ..Request::KERNEL }).is_err(),
        "there is no such zone"
    );
    assert_eq!(mm.views().oom_reports(), [""; 0]);
    let expected = "\
Mem-Info:
active_anon:0 inactive_anon:0
 active_file:0 inactive_file:1
 dirty:0 writeback:0
 slab:0 free:8191 free_pcp:0
Node 0 active_anon:0kB inactive_anon:0kB active_file:0kB inactive_file:4kB all_unreclaimable? no
Node 0 DMA32 free:16384kB boost:0kB min:256kB low:320kB high:384kB reserved_highatomic:0kB active_anon:0kB inactive_anon:0kB active_file:0kB inactive_file:0kB present:16384kB managed:16384kB free_pcp:0kB
lowmem_reserve[]: 0 0 16 16 16
Node 0 Normal free:16380kB boost:0kB min:256kB low:320kB high:384kB reserved_highatomic:0kB active_anon:0kB inactive_anon:0kB active_file:0kB inactive_file:4kB present:16384kB managed:16384kB free_pcp:0kB
lowmem_reserve[]: 0 0 0 0 0
Node 0 DMA32: 0*4kB 0*8kB 0*16kB 0*32kB 0*64kB 0*128kB 0*256kB 0*512kB 0*1024kB 0*2048kB 4*4096kB (M) = 16384kB
Node 0 Normal: 1*4kB (M) 1*8kB (M) 1*16kB (M) 1*32kB (M) 1*64kB (M) 1*128kB (M) 1*256kB (M) 1*512kB (M) 1*1024kB (M) 1*2048kB (M) 3*4096kB (M) = 16380kB
1 total pagecache pages
Free swap  = 0kB
Total swap = 0kB
8192 pages RAM
0 pages reserved
";
    assert_eq!(mm.views().mem_info(), expected);
}

#[test]
fn where_pages_are_promoted_kswapd_goes_on_to_the_promo_mark() {
    let mm = mm("linux-6.18");
    mm.set_knob(Knob::MinFreeKbytes, 4096).unwrap();
    fill(&mm);
    mm.reclaim().kswapd(Node(0));
    let above =
        |mark: fn(&Zone<Bare>) -> Level| mm.zones().iter().any(|zone| zone.free_pages() > mark(zone).pages);
    assert!(above(Zone::mark_high) && !above(Zone::mark_promo));
    mm.set_knob(Knob::NumaBalancing, 1).unwrap();
    mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Movable);
    assert_eq!(mm.machine().take_woken(), [], "mode 1 promotes nothing");
    mm.set_knob(Knob::NumaBalancing, 2).unwrap();
    mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Movable);
    assert_eq!(mm.machine().take_woken(), [Daemon::Kswapd(Node(0))]);
    mm.reclaim().kswapd(Node(0));
    assert!(above(Zone::mark_promo));
    mm.views().check().unwrap();
}

/// How long a request would wait after a pass that met `met`, on a machine full of dirty pages or of clean ones.
fn congestion(policy: &str, dirty: bool, met: Met) -> Option<Nanos> {
    let mm = mm(policy);
    let _file = if dirty { fill_dirty(&mm) } else { fill(&mm) };
    let flags = crate::pages::zone::AllocFlags::NONE;
    let mark = crate::pages::alloc_path::Mark::Min;
    let search = crate::pages::alloc_path::Search { request: &Request::USER, node: Node(0), mark, flags };
    mm.reclaim().congestion_wait(search, met)
}

#[test]
fn since_5_16_a_request_waits_a_jiffy_and_only_where_writing_cannot_keep_up() {
    let (long, jiffy) = (Some(Nanos(100_000_000)), Some(Nanos(4_000_000)));
    let dirty = Met { taken: 32, dirty: 32, ..Met::default() };
    assert_eq!(congestion("linux-5.15", true, dirty), long);
    assert_eq!(congestion("linux-5.16", true, dirty), None);
    let again = Met { taken: 32, writeback: 32, again: 32, ..Met::default() };
    assert_eq!(congestion("linux-5.15", true, again), long);
    assert_eq!(congestion("linux-5.16", true, again), jiffy);
    assert_eq!(
        congestion("linux-6.18", true, Met { again: 31, ..again }),
        None,
        "one is met for the first time"
    );
    assert_eq!(congestion("linux-6.18", false, again), None, "there is enough else");
}

/// A search by a request of a program, as it stands at the min mark.
fn at_min(mm: &Mm<Bare>) -> Nanos {
    let flags = crate::pages::zone::AllocFlags::NONE;
    let mark = crate::pages::alloc_path::Mark::Min;
    let request = Request::USER;
    mm.machine().take_slept();
    mm.reclaim().throttle(crate::pages::alloc_path::Search { request: &request, node: Node(0), mark, flags });
    mm.machine().take_slept()
}

#[test]
fn a_request_waits_for_kswapd_while_half_of_the_min_marks_is_not_free() {
    let mm = mm("linux-6.18");
    fill(&mm);
    assert_eq!(at_min(&mm), Nanos(0), "the min marks are free");
    mm.set_knob(Knob::MinFreeKbytes, 16_384).unwrap();
    let marks = || mm.zones().iter().map(|zone| zone.mark_min().pages).sum::<u32>();
    let free = || mm.zones().iter().map(Zone::free_pages).sum::<u32>();
    assert!(free() > 0 && free() <= marks() / 2);
    mm.machine().take_woken();
    assert_eq!(at_min(&mm), Nanos(1_000_000_000), "a second, where nobody runs kswapd");
    assert_eq!(mm.machine().take_woken()[0], Daemon::Kswapd(Node(0)));
    mm.pages().kill(TaskId(0));
    assert_eq!(at_min(&mm), Nanos(0), "who was killed goes on");
    mm.pages().forget_task(TaskId(0));
    mm.reclaim().own().node(Node(0)).failures.store(MAX_RECLAIM_RETRIES, crate::ground::sync::Relaxed);
    assert_eq!(at_min(&mm), Nanos(0), "kswapd has given up");
}

#[test]
fn no_wait_where_nothing_could_be_freed() {
    let mm = mm("linux-6.18");
    let held: Vec<Pfn> =
        core::iter::from_fn(|| mm.alloc(Request { urgency: Urgency::NoWait, ..Request::USER }).ok())
            .collect();
    assert!(!held.is_empty());
    mm.set_knob(Knob::MinFreeKbytes, 16_384).unwrap();
    let marks: u32 = mm.zones().iter().map(|zone| zone.mark_min().pages).sum();
    assert!(mm.zones().iter().map(Zone::free_pages).sum::<u32>() <= marks / 2);
    assert_eq!(at_min(&mm), Nanos(0), "no page of these could go");
}

#[test]
fn a_page_moves_only_to_a_zone_above_its_high_mark_and_reserve() {
    let room = |reserve_ratio| {
        let mm = mm("linux-6.18");
        mm.set_knob(Knob::LowmemReserveDma32, reserve_ratio).unwrap();
        let request = Request { urgency: Urgency::NoWait, highest: ZoneKind::Dma32, ..Request::USER };
        // Normal to its low mark, then DMA32 page by page: the reserve is not kept from those who can use no other.
        while mm.zones()[1].free_pages() > mm.zones()[1].mark_high().pages {
            mm.alloc(Request { highest: ZoneKind::Normal, ..request }).unwrap();
        }
        while mm.reclaim().has_room_above_high(Node(0)) {
            mm.alloc(request).unwrap();
        }
        let zone = &mm.zones()[0];
        let kept = zone.protection()[ZoneKind::Movable.index()];
        (zone.free_pages() - zone.mark_high().pages, kept)
    };
    let ((small, kept_small), (large, kept_large)) = (room(256), room(8));
    assert!(kept_large > 8 * kept_small && kept_small > 0);
    // The last refill of a pageset goes by batches.
    assert!(small <= kept_small + 1 && small + 64 > kept_small, "{small} {kept_small}");
    assert!(large <= kept_large + 1 && large + 64 > kept_large, "{large} {kept_large}");
}

/// Touches `pages` of a program's own and lets a new generation begin; nothing of them counts as used.
fn older(mm: &Mm<Bare>, pages: u32) {
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
    let touched: Vec<Pfn> = (0..pages)
        .map(|page| mm.spaces().touch_page(&space, at.add(page), Touch::Write).unwrap().0)
        .collect();
    mm.lru().lru_drain_all();
    for &pfn in &touched {
        crate::vm::RmapDoor::on(mm).referenced(pfn);
    }
    let vec = mm.lru().vec_of(touched[0]);
    assert!(GenDoor::on(mm).begin_generation(vec, GenDoor::on(mm).youngest(vec), Swappiness(60)));
}

/// Whether a new generation is needed is asked before each batch; since 7.2 too, where how many pages a pass looks at is settled as it begins.
#[test]
fn a_pass_that_empties_a_generation_begins_a_new_one() {
    for policy in ["linux-6.18", "linux-7.2"] {
        let mm = mm(policy);
        // No walks: they would find the program again.
        mm.set_knob(Knob::LruGenEnabled, 1).unwrap();
        mm.spaces().set_swap(5000);
        let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
        mm.memcg().join(TaskId(0), group);
        older(&mm, 40);
        older(&mm, 1000);
        let vec = VecId { group, ..mm.lru().vec_of_zone(&mm.zones()[0]) };
        GenDoor::on(&mm).drop_empty_generations(vec, Swappiness(60));
        let before = GenDoor::on(&mm).youngest(vec);
        // Passes at priorities 10 to 6 take 31 of them, the one at 5 all others of the older ones, and has to go on.
        ReclaimDoor::on(&mm).reclaim_in_group(GroupAsk { group, pages: 50, no_fs: false });
        assert_eq!(GenDoor::on(&mm).youngest(vec) - before, 1, "{policy}");
        mm.views().check().unwrap();
    }
}

#[test]
fn with_defrag_mode_whole_blocks_alone_make_up_the_mark() {
    let wakes = [0, 1].map(|mode| {
        let mm = mm("linux-6.18");
        mm.set_knob(Knob::MinFreeKbytes, 4096).unwrap();
        mm.set_knob(Knob::DefragMode, mode).unwrap();
        read(&mm, &mm.files().new_file(FileKind::Disk), 0);
        mm.lru().lru_drain_all();
        // Some blocks are left above the low mark, and of the rest every second page is free.
        let page = Request { urgency: Urgency::Never, ..Request::USER };
        let taken: Vec<Pfn> = core::iter::from_fn(|| mm.alloc(page).ok()).collect();
        for pfn in taken.into_iter().filter(|pfn| pfn.0 % 2 == 0) {
            mm.free(pfn, Order::ZERO).unwrap();
        }
        mm.drain_all();
        mm.machine().take_woken();
        mm.reclaim().wake_kswapd_for(Node(0), Order::PAGEBLOCK, ZoneKind::Movable);
        let for_block = mm.machine().take_woken().contains(&Daemon::Kswapd(Node(0)));
        mm.reclaim().wake_kswapd_for(Node(0), Order::ZERO, ZoneKind::Movable);
        (for_block, mm.machine().take_woken().contains(&Daemon::Kswapd(Node(0))))
    });
    assert_eq!(wakes, [(false, false), (true, false)], "single pages are enough for single pages");
}

#[test]
fn below_the_low_mark_types_mix_before_a_lower_zone_is_asked() {
    let mm = mm("linux-6.18");
    mm.set_knob(Knob::WatermarkBoostFactor, 0).unwrap();
    // Of kernel memory some is free in DMA32, and none in Normal.
    let low = Request { highest: ZoneKind::Dma32, urgency: Urgency::Never, ..Request::KERNEL };
    // So many that the rest of their pageblock is too little to be claimed.
    let kernel: Vec<Pfn> = (0..400).map(|_| mm.alloc(low).unwrap()).collect();
    let page = Request { urgency: Urgency::Never, ..Request::USER };
    let taken: Vec<Pfn> = core::iter::from_fn(|| mm.alloc(page).ok()).collect();
    for pfn in kernel {
        mm.free(pfn, Order::ZERO).unwrap();
    }
    mm.drain_all();
    // As much is free in both, and the marks are around that.
    let zone = |kind: ZoneKind| mm.zone(Node(0), kind).unwrap();
    let free = zone(ZoneKind::Dma32).free_pages();
    let of_normal = taken.iter().filter(|&&pfn| mm.zone_of(pfn).unwrap().kind() == ZoneKind::Normal);
    let missing = free - zone(ZoneKind::Normal).free_pages();
    for &pfn in of_normal.take(missing as usize) {
        mm.free(pfn, Order::ZERO).unwrap();
    }
    mm.drain_all();
    mm.set_knob(Knob::MinFreeKbytes, u64::from(free) * 4 * 2 * 9 / 10).unwrap();
    for kind in [ZoneKind::Normal, ZoneKind::Dma32] {
        let (min, low) = (zone(kind).mark_min().pages, zone(kind).mark_low().pages);
        let free = zone(kind).free_pages();
        assert!((min + 16..low).contains(&free), "{}: {free} of {min} to {low}", kind.name());
    }
    let pfn = mm.alloc(Request { urgency: Urgency::NoWait, ..Request::KERNEL }).unwrap();
    assert_eq!(mm.zone_of(pfn).unwrap().kind(), ZoneKind::Normal);
}
