//! Arenas seen from inside: who owns which range, and what moves when.

use alloc::vec;
use alloc::vec::Vec;

use super::Arenas;
use crate::ground::Relaxed;
use crate::{
    Bare, Cpu, Knob, Knobs, MigrateType, Mm, Order, Pfn, Policy, Request, Topology, Urgency, ZoneKind,
};

const RANGE: u32 = Order::MAX.pages();

/// One Normal zone of so many ranges and so many arenas, four CPUs, hardly a reserve.
fn mm(policy: &str, ranges: u32, arenas: u64) -> Mm<Bare> {
    let topology = Topology::one_node(&[ZoneKind::Normal], ranges * RANGE, 4);
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1).unwrap();
    knobs.set(Knob::WatermarkScaleFactor, 1).unwrap();
    knobs.set(Knob::Arenas, arenas).unwrap();
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
}

fn arenas(mm: &Mm<Bare>) -> &Arenas<Bare> {
    &mm.zones()[0].arenas
}

/// Ranges by the arena that owns them.
fn owned(mm: &Mm<Bare>) -> Vec<u32> {
    let mut owned = vec![0; arenas(mm).count() as usize];
    for range in 0..mm.zones()[0].managed / RANGE {
        owned[arenas(mm).owner(Pfn(range * RANGE)) as usize] += 1;
    }
    owned
}

fn home(mm: &Mm<Bare>, cpu: usize) -> u32 {
    mm.zones()[0].pagesets[cpu].home.load(Relaxed)
}

/// Asks for up to `most` blocks on `cpu`.
fn take(mm: &Mm<Bare>, cpu: u16, request: Request, most: usize) -> Vec<Pfn> {
    mm.machine().set_cpu(Cpu(cpu));
    core::iter::from_fn(|| mm.alloc(request).ok()).take(most).collect()
}

fn free(mm: &Mm<Bare>, blocks: impl IntoIterator<Item = Pfn>) {
    blocks.into_iter().for_each(|pfn| mm.free(pfn, Order::ZERO).unwrap());
}

/// Free blocks of the largest order.
fn whole(mm: &Mm<Bare>) -> u32 {
    let info = mm.views().buddyinfo();
    info.split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn one_cpu_can_have_all_memory() {
    for policy in
        ["linux-6.18", "linux-6.18+arenas", "linux-6.18+zones", "linux-5.10+zones+arenas", "freehold"]
    {
        for order in [0, 3, 9, 10] {
            let order = Order::new(order).unwrap();
            let mm = mm(policy, 12, 6);
            let got = take(&mm, 2, Request::USER.of_order(order), usize::MAX).len() as u32;
            // What is left is the reserve, and what the CPU has not yet told the zone's counter.
            let held_back = mm.zones()[0].pagesets[2].stat_threshold as u32;
            let reserve = mm.zones()[0].watermarks().min + held_back + order.pages();
            assert!(got * order.pages() + reserve >= 12 * RANGE, "{policy}, {order}: {got}");
            mm.views().check().unwrap();
        }
    }
}

#[test]
fn whole_ranges_move_to_where_they_are_needed() {
    let mm = mm("linux-6.18+arenas", 32, 4);
    assert_eq!(owned(&mm), [8, 8, 8, 8]);
    let held = take(&mm, 1, Request::USER, 20 * RANGE as usize);
    let now = owned(&mm);
    assert!(now[1] >= 20 && now.iter().sum::<u32>() == 32, "{now:?}");
    mm.views().check().unwrap();
    free(&mm, held);
    mm.drain_all();
    assert_eq!(whole(&mm), 32, "contiguity is kept");
    assert_eq!(owned(&mm), now, "they stay until somebody needs them");
    mm.views().check().unwrap();
}

#[test]
fn ranges_of_divided_zones_stay() {
    let mm = mm("linux-6.18+zones", 32, 4);
    let held = take(&mm, 1, Request::USER, 20 * RANGE as usize);
    assert_eq!(held.len(), 20 * RANGE as usize);
    assert_eq!(owned(&mm), [8, 8, 8, 8]);
    mm.views().check().unwrap();
}

#[test]
fn ranges_move_only_within_a_part() {
    let mm = mm("linux-6.18+zones+arenas", 32, 4);
    let held = take(&mm, 0, Request::USER, 20 * RANGE as usize);
    assert_eq!(held.len(), 20 * RANGE as usize);
    let now = owned(&mm);
    assert_eq!((now[0] + now[1], now[2], now[3]), (16, 8, 8));
    assert!(now[0] > 8);
    mm.views().check().unwrap();
}

#[test]
fn a_range_in_use_stays_with_its_arena() {
    let mm = mm("linux-6.18+arenas", 8, 2);
    let one = take(&mm, 1, Request::USER, 1)[0];
    assert_eq!(arenas(&mm).owner(one), 1);
    let held = take(&mm, 0, Request::USER, usize::MAX);
    assert!(held.len() as u32 > 7 * RANGE);
    assert_eq!(arenas(&mm).owner(one), 1);
    free(&mm, [one]);
    mm.drain_all();
    assert_eq!(take(&mm, 0, Request::USER, 1), [one], "the last page is taken from where it is");
    mm.views().check().unwrap();
}

#[test]
fn cpus_that_meet_part() {
    let mm = mm("linux-6.18+arenas", 8, 4);
    assert_eq!([0, 1, 2, 3].map(|cpu| home(&mm, cpu)), [0, 1, 2, 3]);
    {
        let first = arenas(&mm).all().next().unwrap();
        let _held = first.lock(mm.machine());
        let got = take(&mm, 0, Request::USER, 1);
        assert_eq!(arenas(&mm).owner(got[0]), 1);
    }
    assert_eq!(home(&mm, 0), 1);
}

#[test]
fn pieces_are_used_up_before_more_ranges_are_broken() {
    let mm = mm("linux-6.18+arenas+yield", 64, 2);
    let held = take(&mm, 1, Request::USER, 12 * RANGE as usize);
    let (back, kept): (Vec<_>, Vec<_>) = held.iter().partition(|pfn| pfn.0 % 2 == 1);
    free(&mm, back);
    mm.drain_all();
    let broken = 64 - whole(&mm);
    let got = take(&mm, 0, Request::USER, 4 * RANGE as usize);
    assert_eq!((home(&mm, 0), 64 - whole(&mm)), (1, broken));
    free(&mm, got.into_iter().chain(kept));
    mm.drain_all();
    assert_eq!(whole(&mm), 64);
    mm.views().check().unwrap();
}

#[test]
fn kernel_memory_has_ranges_in_each_arena_while_there_are_plenty() {
    let mm = mm("linux-6.18+arenas", 32, 4);
    for cpu in 0..4 {
        for pfn in take(&mm, cpu, Request::KERNEL, 100) {
            assert_eq!(arenas(&mm).owner(pfn), u32::from(cpu));
            assert_eq!(mm.pages().pageblock(pfn), MigrateType::Unmovable);
        }
    }
    let counters = mm.views().counters();
    assert_eq!(counters.get("freehold_pageblock_claims"), 4);
    assert_eq!(counters.get("freehold_pageblock_steals"), 0);
    mm.views().check().unwrap();
}

#[test]
fn kernel_memory_shares_pageblocks_when_whole_ranges_are_few() {
    let mm = mm("linux-6.18+arenas", 32, 4);
    // Of each arena, seven of its eight ranges are in use.
    for cpu in 0..4 {
        assert_eq!(take(&mm, cpu, Request::USER.of_order(Order::MAX), 7).len(), 7);
    }
    for cpu in 0..4 {
        assert_eq!(take(&mm, cpu, Request::KERNEL, 100).len(), 100);
    }
    assert_eq!(mm.views().counters().get("freehold_pageblock_claims"), 1);
    mm.views().check().unwrap();
}

#[test]
fn the_atomic_reserve_is_the_zones() {
    let mm = mm("linux-6.18+arenas", 60, 4);
    let atomic = Request { urgency: Urgency::Atomic, ..Request::KERNEL }.of_order(Order::new(3).unwrap());
    mm.set_knob(Knob::MinFreeKbytes, 16 << 10).unwrap();
    let reserved = || {
        let blocks = (0..60 * RANGE).step_by(512).map(|pfn| mm.pages().pageblock(Pfn(pfn)));
        blocks.filter(|&kind| kind == MigrateType::HighAtomic).count()
    };
    let all = take(&mm, 3, Request::KERNEL, usize::MAX);
    assert_eq!(reserved(), 0);
    let got = take(&mm, 0, atomic, 8);
    assert_eq!(got.len(), 8);
    assert!((1..=2).contains(&reserved()), "1 % of the zone, rounded up to pageblocks: {}", reserved());
    assert_eq!(take(&mm, 1, atomic, 4).len(), 4, "another CPU finds it too");
    mm.views().check().unwrap();
    free(&mm, all);
    mm.drain_all();
    let all = take(&mm, 2, Request::KERNEL, usize::MAX);
    assert_eq!(reserved(), 0, "it is given up before a request fails");
    assert!(!all.is_empty());
    mm.views().check().unwrap();
}

#[test]
fn the_number_of_homes_changes_in_mid_run() {
    let mm = mm("linux-6.18+arenas", 32, 4);
    mm.set_knob(Knob::Arenas, 1).unwrap();
    assert_eq!([0, 1, 2, 3].map(|cpu| home(&mm, cpu)), [0; 4]);
    let held = take(&mm, 3, Request::USER, 30 * RANGE as usize);
    assert_eq!(held.len(), 30 * RANGE as usize);
    assert!(owned(&mm)[0] >= 30);
    mm.set_knob(Knob::Arenas, 64).unwrap();
    assert_eq!([0, 1, 2, 3].map(|cpu| home(&mm, cpu)), [0, 1, 2, 3]);
    mm.views().check().unwrap();
}

#[test]
fn views_sum_over_arenas() {
    let one = mm("linux-6.18", 32, 0);
    let four = mm("linux-6.18+arenas", 32, 4);
    assert_eq!(arenas(&four).count(), 4);
    let views = |mm: &Mm<Bare>| {
        [mm.views().buddyinfo(), mm.views().pagetypeinfo(), mm.views().zoneinfo(), mm.views().vmstat()]
    };
    assert_eq!(views(&one), views(&four));
}
