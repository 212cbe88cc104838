use super::*;
use crate::ground::{Order, Pfn};
use crate::lru::By;
use crate::lru::page::Mapping;
use crate::mm::Mm;
use crate::{Bare, Knob, Knobs, Policy, Request, Topology};

fn mm(policy: &str) -> Mm<Bare> {
    let topology = Topology::one_node(&[ZoneKind::Dma32, ZoneKind::Normal], 4096, 1);
    let knobs = Knobs::default();
    knobs.set(Knob::LruGenEnabled, 7).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
}

fn page(mm: &Mm<Bare>, kind: Kind, by: By) -> Pfn {
    let pfn = mm.alloc(Request::USER).unwrap();
    match kind {
        Kind::File => mm.lru().page(pfn).init(Mapping::File(0), pfn.0, &[]),
        Kind::Anon => mm.lru().page(pfn).init(Mapping::Anon(0), pfn.0, &[PageFlag::SwapBacked]),
    }
    mm.lru().lru_add_by(pfn, by);
    pfn
}

fn vec(mm: &Mm<Bare>) -> VecId {
    mm.lru().vec_of_zone(&mm.zones()[0])
}

/// How many generations before the youngest the page is.
fn back(mm: &Mm<Bare>, pfn: Pfn) -> u64 {
    let place = mm.lru().page(pfn).generation().unwrap() as u64;
    (GenDoor::on(mm).youngest(vec(mm)) + MAX_GENERATIONS - place) % MAX_GENERATIONS
}

#[test]
fn pages_come_to_generations_by_who_brings_them() {
    // A fault's anonymous page and file's page, what a call reads, an anonymous page that comes otherwise.
    for (policy, expected) in
        [("linux-6.6", [0, 0, 2, 1]), ("linux-6.18", [1, 1, 3, 1]), ("linux-7.2", [1, 2, 3, 1])]
    {
        let mm = mm(policy);
        let pages = [
            page(&mm, Kind::Anon, By::Fault),
            page(&mm, Kind::File, By::Fault),
            page(&mm, Kind::File, By::Other),
            page(&mm, Kind::Anon, By::Other),
        ];
        mm.lru().lru_drain_all();
        assert_eq!(pages.map(|pfn| back(&mm, pfn)), expected, "{policy}");
        mm.views().check().unwrap();
    }
}

/// What is still in the swap cache counts as what calls read, unless a fault makes it young.
#[test]
fn memory_in_the_swap_cache_comes_to_older_generations() {
    for (policy, expected) in [("linux-6.6", [0, 2]), ("linux-6.18", [1, 3]), ("linux-7.2", [2, 3])] {
        let mm = mm(policy);
        let pages = [By::Fault, By::Other].map(|by| {
            let pfn = mm.alloc(Request::USER).unwrap();
            let flags = [PageFlag::SwapBacked, PageFlag::SwapCache];
            mm.lru().page(pfn).init(Mapping::Anon(0), pfn.0, &flags);
            mm.lru().lru_add_by(pfn, by);
            pfn
        });
        mm.lru().lru_drain_all();
        assert_eq!(pages.map(|pfn| back(&mm, pfn)), expected, "{policy}");
    }
}

#[test]
fn a_look_for_pages_in_use_passes_over_those_that_reclaim_has_taken() {
    for (policy, expected) in [("linux-6.12", false), ("linux-6.18", true)] {
        let mm = mm(policy);
        let pfn = page(&mm, Kind::File, By::Other);
        mm.lru().lru_drain_all();
        assert!(!GenDoor::on(&mm).leaves_alone(mm.lru().page(pfn)), "{policy}");
        GenDoor::on(&mm).drop_empty_generations(vec(&mm), Swappiness(0));
        let choice = GenDoor::on(&mm).choose(vec(&mm), Swappiness(0));
        let oldest = Oldest { vec: vec(&mm), choice, highest: ZoneKind::Movable, budget: 64, events: None };
        assert_eq!(GenDoor::on(&mm).take_oldest(oldest).pages, [pfn], "{policy}");
        assert_eq!(GenDoor::on(&mm).leaves_alone(mm.lru().page(pfn)), expected, "{policy}");
        GenDoor::on(&mm).put_back_oldest(vec(&mm), &[pfn]);
    }
}

#[test]
fn a_new_generation_makes_others_older_and_the_oldest_are_emptied_first() {
    let mm = mm("linux-6.18");
    let (vec, both) = (vec(&mm), Swappiness(60));
    let (read, faulted) = (page(&mm, Kind::File, By::Other), page(&mm, Kind::Anon, By::Fault));
    mm.lru().lru_drain_all();
    assert_eq!(mm.views().counters().get("nr_active_anon"), 1);
    assert!(GenDoor::on(&mm).begin_generation(vec, 3, both));
    assert!(!GenDoor::on(&mm).begin_generation(vec, 3, both), "somebody was faster");
    assert_eq!((back(&mm, read), back(&mm, faulted)), (3, 2));
    assert_eq!(mm.views().counters().get("nr_active_anon"), 0);
    mm.views().check().unwrap();
    assert!(GenDoor::on(&mm).drop_empty_generations(vec, both));
    mm.views().check().unwrap();
}

#[test]
fn what_cannot_be_swapped_becomes_young_by_waiting() {
    let mm = mm("linux-6.18");
    let vec = vec(&mm);
    let pfn = page(&mm, Kind::Anon, By::Other);
    mm.lru().lru_drain_all();
    for generation in 3..6 {
        assert!(GenDoor::on(&mm).begin_generation(vec, generation, Swappiness(0)));
        mm.views().check().unwrap();
    }
    assert_eq!(back(&mm, pfn), 0);
}

#[test]
fn a_page_in_use_belongs_to_the_youngest_and_is_moved_when_it_is_met() {
    let mm = mm("linux-6.6");
    let vec = vec(&mm);
    let pages: Vec<Pfn> = (0..15).map(|_| page(&mm, Kind::File, By::Other)).collect();
    for generation in [3, 4] {
        assert!(GenDoor::on(&mm).begin_generation(vec, generation, Swappiness(0)));
    }
    GenDoor::on(&mm).promote(vec, &pages[..5], 5);
    assert!(pages[..5].iter().all(|&pfn| back(&mm, pfn) == 0));
    mm.views().check().unwrap();
    GenDoor::on(&mm).drop_empty_generations(vec, Swappiness(0));
    let choice = GenDoor::on(&mm).choose(vec, Swappiness(0));
    let taken = GenDoor::on(&mm).take_oldest(Oldest {
        vec,
        choice,
        highest: ZoneKind::Movable,
        budget: 4096,
        events: None,
    });
    let emptied: Vec<Pfn> = pages[5..].iter().rev().copied().collect();
    assert_eq!(
        taken.pages, emptied,
        "turned around as their generation was emptied; without those that are young"
    );
    assert_eq!((taken.looked, taken.taken), (15, 10));
    mm.views().check().unwrap();
    GenDoor::on(&mm).put_back_oldest(vec, &taken.pages);
    mm.views().check().unwrap();
}

#[test]
fn calls_count_uses_and_tiers_follow() {
    for (policy, tiers) in [("linux-6.6", [0, 0, 1, 2, 2, 3, 3]), ("linux-6.18", [0, 0, 1, 2, 2, 3, 3])] {
        let mm = mm(policy);
        let pfn = page(&mm, Kind::File, By::Other);
        let seen = tiers.map(|_| {
            let tier = GenDoor::on(&mm).uses_of(mm.lru().page(pfn)).tier;
            mm.lru().mark_accessed(pfn);
            tier
        });
        assert_eq!(seen, tiers, "{policy}");
    }
}

#[test]
fn lists_of_one_sort_become_those_of_the_other() {
    let mm = mm("linux-6.18");
    for kind in Kind::ALL {
        for by in [By::Fault, By::Other] {
            for _ in 0..20 {
                page(&mm, kind, by);
            }
        }
    }
    mm.lru().lru_drain_all();
    mm.views().check().unwrap();
    let sizes = |mm: &Mm<Bare>| LruList::ALL.map(|list| mm.views().counters().get(list.name()));
    let before = sizes(&mm);
    for setting in [0, 7, 0] {
        mm.set_knob(Knob::LruGenEnabled, setting).unwrap();
        mm.views().check().unwrap();
        assert_eq!(sizes(&mm), before);
    }
    assert_eq!(before.iter().sum::<u64>(), 80);
}

#[test]
fn who_frees_a_page_takes_it_off_its_generation() {
    let mm = mm("linux-6.18");
    let pages: Vec<Pfn> = (0..31).map(|_| page(&mm, Kind::File, By::Other)).collect();
    assert!(mm.lru().page(pages[7]).put());
    mm.lru().lru_forget(pages[7]);
    mm.free(pages[7], Order::ZERO).unwrap();
    assert_eq!(mm.views().counters().get("nr_inactive_file"), 30);
    mm.views().check().unwrap();
}

#[test]
fn check_finds_a_page_that_says_another_generation() {
    let mm = mm("linux-6.18");
    let pfn = page(&mm, Kind::File, By::Other);
    mm.lru().lru_drain_all();
    mm.lru().page(pfn).join_generation(1);
    assert!(mm.views().check().is_err());
}

/// Since 6.17 a batch looks at no more than its pass has to.
#[test]
fn a_small_pass_takes_few() {
    for (policy, taken) in [("linux-6.12", 12), ("linux-6.18", 4), ("linux-7.2", 4)] {
        let mm = mm(policy);
        let vec = vec(&mm);
        for _ in 0..12 {
            page(&mm, Kind::File, By::Other);
        }
        mm.lru().lru_drain_all();
        for generation in [3, 4] {
            assert!(GenDoor::on(&mm).begin_generation(vec, generation, Swappiness(0)));
        }
        GenDoor::on(&mm).drop_empty_generations(vec, Swappiness(0));
        let choice = GenDoor::on(&mm).choose(vec, Swappiness(0));
        let oldest = Oldest { vec, choice, highest: ZoneKind::Movable, budget: 4, events: None };
        let scanned = GenDoor::on(&mm).take_oldest(oldest);
        assert_eq!(scanned.taken, taken, "{policy}");
        GenDoor::on(&mm).put_back_oldest(vec, &scanned.pages);
        mm.views().check().unwrap();
    }
}

/// An address space that had no time to run since a walk began with it is left alone, and so is what was found dense there.
#[test]
fn a_space_is_walked_again_once_it_may_have_run() {
    use WalkedTables::{All, Dense};
    let mm = mm("linux-6.18");
    let (vec, gens) = (vec(&mm), GenDoor::on(&mm));
    mm.machine().set_now(Nanos(TICK.0 - 2));
    assert_eq!(gens.begins_with(vec, &[1]), [Some(All)], "it is new to the group");
    gens.begin_filter(vec, 4);
    gens.note_dense(vec, 4, 7);
    mm.machine().set_now(Nanos(TICK.0 - 1));
    assert_eq!(gens.begins_with(vec, &[1, 2]), [None, Some(All)]);
    assert!(gens.is_dense(vec, 4, 7) && !gens.is_dense(vec, 4, 8));
    assert!(gens.is_dense(vec, 3, 8), "no filter was begun for it: all are looked at");
    mm.machine().set_now(TICK);
    assert_eq!(gens.begins_with(vec, &[1]), [Some(Dense)], "a tick has come, in the walk or after it");
    assert_eq!(gens.begins_with(vec, &[1, 2]), [None, Some(All)], "the second had left the group");
}

#[test]
fn until_6_13_what_was_found_young_beside_another_stays() {
    for (policy, stays) in [("linux-6.12", true), ("linux-6.18", false)] {
        let mm = mm(policy);
        let pfn = page(&mm, Kind::Anon, By::Fault);
        let page = mm.lru().page(pfn);
        page.set(PageFlag::Referenced);
        assert!(!GenDoor::on(&mm).was_found_young(page), "{policy}: by a call");
        page.add_mapped();
        assert_eq!(GenDoor::on(&mm).was_found_young(page), stays, "{policy}");
        page.clear(PageFlag::Referenced);
        assert!(!GenDoor::on(&mm).was_found_young(page), "{policy}");
    }
}
