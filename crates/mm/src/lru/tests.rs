use super::*;
use crate::ground::{Order, ZoneKind};
use crate::lru::ReclaimEvent;
use crate::lru::page::Mapping;
use crate::mm::Mm;
use crate::{Bare, Knobs, Policy, Request, Topology};

/// One node with two zones, two CPUs.
fn mm(policy: &str) -> Mm<Bare> {
    let topology = Topology::one_node(&[ZoneKind::Dma32, ZoneKind::Normal], 4096, 2);
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
}

fn file_page(mm: &Mm<Bare>, request: Request) -> Pfn {
    let pfn = mm.alloc(request).unwrap();
    mm.lru().page(pfn).init(Mapping::File(0), pfn.0, &[]);
    mm.lru().lru_add(pfn);
    pfn
}

fn anon_page(mm: &Mm<Bare>, order: Order) -> Pfn {
    let pfn = mm.alloc(Request::USER.of_order(order)).unwrap();
    mm.lru().page(pfn).init(Mapping::Anon(0), pfn.0, &[PageFlag::SwapBacked]);
    mm.lru().lru_add(pfn);
    pfn
}

fn counter(mm: &Mm<Bare>, name: &str) -> u64 {
    mm.views().counters().get(name)
}

#[test]
fn pages_reach_the_list_a_batch_at_a_time() {
    for (policy, batch) in [("linux-4.4", 14), ("linux-6.6", 15), ("linux-6.18", 31)] {
        let mm = mm(policy);
        for _ in 1..batch {
            file_page(&mm, Request::USER);
        }
        assert_eq!(counter(&mm, "nr_inactive_file"), 0, "{policy}");
        let last = file_page(&mm, Request::USER);
        assert_eq!(counter(&mm, "nr_inactive_file"), batch, "{policy}");
        assert_eq!(mm.lru().page(last).refs(), 1, "the batch let go of it");
        mm.views().check().unwrap();
    }
}

#[test]
fn a_huge_page_does_not_wait() {
    let mm = mm("linux-6.18");
    file_page(&mm, Request::USER);
    anon_page(&mm, Order::PAGEBLOCK);
    assert_eq!((counter(&mm, "nr_inactive_file"), counter(&mm, "nr_inactive_anon")), (1, 512));
    mm.views().check().unwrap();
}

#[test]
fn anonymous_pages_begin_as_active_before_5_9() {
    for (policy, list) in [("linux-5.8", "nr_active_anon"), ("linux-5.9", "nr_inactive_anon")] {
        let mm = mm(policy);
        anon_page(&mm, Order::ZERO);
        mm.lru().lru_drain_all();
        assert_eq!(counter(&mm, list), 1, "{policy}");
    }
}

#[test]
fn a_page_that_is_read_twice_becomes_active() {
    let mm = mm("linux-6.18");
    let (once, twice, early) =
        (file_page(&mm, Request::USER), file_page(&mm, Request::USER), file_page(&mm, Request::USER));
    mm.lru().mark_accessed(early);
    mm.lru().mark_accessed(early);
    mm.lru().lru_drain_all();
    assert!(mm.lru().page(early).has(PageFlag::Active), "in the batch of new pages still");
    mm.lru().mark_accessed(once);
    mm.lru().mark_accessed(twice);
    mm.lru().mark_accessed(twice);
    mm.lru().lru_drain_all();
    assert_eq!((counter(&mm, "nr_inactive_file"), counter(&mm, "nr_active_file")), (1, 2));
    assert_eq!(counter(&mm, "pgactivate"), 1);
    assert!(mm.lru().page(once).has(PageFlag::Referenced) && !mm.lru().page(twice).has(PageFlag::Referenced));
    mm.views().check().unwrap();
}

#[test]
fn a_page_that_nobody_wants_any_more_goes_with_its_batch() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..3).map(|_| file_page(&mm, Request::USER)).collect();
    assert!(pages.iter().all(|&pfn| !mm.lru().page(pfn).put()), "the batch has it still");
    assert_eq!(mm.views().memory_use().held(), 3);
    mm.lru().lru_drain_all();
    assert_eq!((mm.views().memory_use().held(), counter(&mm, "nr_inactive_file")), (0, 0));
    mm.views().check().unwrap();
}

#[test]
fn the_oldest_are_isolated_and_come_back_to_the_head() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..40).map(|_| file_page(&mm, Request::USER)).collect();
    mm.lru().lru_drain_all();
    let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
    let take = |most| {
        mm.lru().isolate(vec, LruList::InactiveFile, (most, ZoneKind::Movable), Some(ReclaimEvent::Skip))
    };
    let oldest = take(5);
    assert_eq!(oldest.cluster.pages(), &pages[..5]);
    assert_eq!(mm.lru().isolated(vec, LruList::InactiveFile), 5);
    assert_eq!(counter(&mm, "nr_inactive_file"), 35);
    mm.views().check().unwrap();
    mm.lru().put_back(vec, &oldest.cluster, Generation::Inactive);
    mm.lru().end_isolation(vec, LruList::InactiveFile, &oldest);
    assert_eq!(mm.lru().isolated(vec, LruList::InactiveFile), 0);
    let rest = take(100);
    assert_eq!(rest.cluster.pages(), &pages[5..37], "a run is of 32");
    mm.lru().put_back(vec, &rest.cluster, Generation::Inactive);
    mm.lru().end_isolation(vec, LruList::InactiveFile, &rest);
    mm.views().check().unwrap();
}

#[test]
fn pages_of_too_high_a_zone_are_passed_over() {
    let low = Request { highest: ZoneKind::Dma32, ..Request::USER };
    for (policy, skipped) in [("linux-4.7", 0), ("linux-6.18", 2)] {
        let mm = mm(policy);
        let high = [file_page(&mm, Request::USER), file_page(&mm, Request::USER)];
        let wanted = file_page(&mm, low);
        mm.lru().lru_drain_all();
        let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
        let found =
            mm.lru().isolate(vec, LruList::InactiveFile, (32, ZoneKind::Dma32), Some(ReclaimEvent::Activate));
        assert_eq!((found.cluster.pages(), found.scanned), (&[wanted][..], 1), "{policy}");
        assert_eq!((counter(&mm, "pgskip_normal"), u64::from(found.skipped)), (skipped, skipped), "{policy}");
        // They count as looked at.
        assert_eq!(counter(&mm, "pgactivate"), 1 + skipped, "{policy}");
        mm.lru().put_back(vec, &found.cluster, Generation::Inactive);
        mm.lru().end_isolation(vec, LruList::InactiveFile, &found);
        assert!(high.iter().all(|&pfn| mm.lru().page(pfn).has(PageFlag::Lru)));
        mm.views().check().unwrap();
    }
}

#[test]
fn who_frees_a_page_takes_it_off_its_list() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..31).map(|_| file_page(&mm, Request::USER)).collect();
    assert!(mm.lru().page(pages[7]).put());
    mm.lru().lru_forget(pages[7]);
    mm.free(pages[7], Order::ZERO).unwrap();
    assert_eq!(counter(&mm, "nr_inactive_file"), 30);
    mm.views().check().unwrap();
}

#[test]
fn a_page_whose_writeback_ended_goes_next() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..31).map(|_| file_page(&mm, Request::USER)).collect();
    mm.lru().lru_rotate(pages[20]);
    mm.lru().lru_drain_all();
    assert_eq!(counter(&mm, "pgrotated"), 1);
    let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
    let first =
        mm.lru().isolate(vec, LruList::InactiveFile, (1, ZoneKind::Movable), Some(ReclaimEvent::Skip));
    assert_eq!(first.cluster.pages(), &[pages[20]]);
    mm.lru().put_back(vec, &first.cluster, Generation::Inactive);
    mm.lru().end_isolation(vec, LruList::InactiveFile, &first);
}

#[test]
fn isolated_pages_may_change_sides() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..31).map(|_| file_page(&mm, Request::USER)).collect();
    let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
    let moved = |list, most, to| {
        let found = mm.lru().isolate(vec, list, (most, ZoneKind::Movable), Some(ReclaimEvent::Skip));
        mm.lru().put_back(vec, &found.cluster, to);
        mm.lru().end_isolation(vec, list, &found);
    };
    moved(LruList::InactiveFile, 5, Generation::Active);
    moved(LruList::ActiveFile, 2, Generation::Inactive);
    assert_eq!((counter(&mm, "nr_inactive_file"), counter(&mm, "nr_active_file")), (28, 3));
    assert_eq!((counter(&mm, "pgactivate"), counter(&mm, "pgdeactivate")), (5, 2));
    assert!(mm.lru().page(pages[4]).has(PageFlag::Active) && !mm.lru().page(pages[0]).has(PageFlag::Active));
    mm.views().check().unwrap();
}

#[test]
fn who_comes_second_leaves_a_page_where_it_is() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..31).map(|_| file_page(&mm, Request::USER)).collect();
    let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
    let found =
        mm.lru().isolate(vec, LruList::InactiveFile, (1, ZoneKind::Movable), Some(ReclaimEvent::Skip));
    // As a huge page does that could not be split.
    mm.lru().lru_add(pages[0]);
    mm.lru().lru_drain_all();
    mm.lru().put_back(vec, &found.cluster, Generation::Active);
    mm.lru().end_isolation(vec, LruList::InactiveFile, &found);
    assert!(!mm.lru().page(pages[0]).has(PageFlag::Active));
    assert_eq!((counter(&mm, "nr_inactive_file"), mm.lru().page(pages[0]).refs()), (31, 1));
    mm.views().check().unwrap();
}

#[test]
fn check_finds_a_wrong_flag() {
    let mm = mm("linux-6.18");
    let pfn = file_page(&mm, Request::USER);
    mm.lru().lru_drain_all();
    mm.lru().page(pfn).set(PageFlag::Active);
    assert!(mm.views().check().unwrap_err().contains("does not belong on nr_inactive_file"));
    mm.lru().page(pfn).clear(PageFlag::Active);
    mm.lru().page(pfn).clear(PageFlag::Lru);
    assert!(mm.views().check().is_err());
}
