//! Moving what is wanted, and what is remembered of it.

use super::super::*;
use super::world::*;
use crate::ground::{Nanos, Node, PAGE_SIZE, SpaceId, Vpn};

fn batch(pages: std::ops::Range<u32>) -> Vec<WantedPage> {
    pages.map(|page| WantedPage { space: SpaceId(1), vpn: Vpn(page), node: Node(1) }).collect()
}

/// Ten slow pages, and two fast ones behind.
fn world() -> World {
    let world = World::new();
    world.area(1, 0, 12);
    world.map(1, 0, 10, SLOW, Access::ALWAYS);
    world.map(1, 10, 2, Node(0), Access::ALWAYS);
    world
}

#[test]
fn what_is_gone_neither_moved_nor_failed() {
    let world = world();
    world.unmap(3);
    let mut mover = Mover::new(Flush::EachBatch);
    // Pages 10 and 11 are fast already, 12 was never there.
    let pass = mover.work(&world, &batch(2..13));
    assert_eq!(pass, Pass { moved: 7, failed: 0, no_room: 0 });
    assert!(world.promoted().iter().all(|&(vpn, node)| vpn != Vpn(3) && node == Node(1)));
}

#[test]
fn pages_that_somebody_holds_fail() {
    let world = world();
    world.pin(4);
    let pass = Mover::new(Flush::EachBatch).work(&world, &batch(0..10));
    assert_eq!(pass, Pass { moved: 9, failed: 1, no_room: 0 });
}

#[test]
fn no_room_is_a_failure_that_is_told_apart() {
    let world = world();
    world.set_room(Node(1), 4 * PAGE_SIZE);
    world.pin(0);
    let pass = Mover::new(Flush::EachBatch).work(&world, &batch(0..10));
    assert_eq!(pass, Pass { moved: 4, failed: 6, no_room: 5 });
}

#[test]
fn cpus_are_told_of_each_page_or_of_each_batch() {
    for (flush, flushes) in [(Flush::EachPage, 9), (Flush::EachBatch, 1)] {
        let world = world();
        world.pin(4);
        let mut mover = Mover::new(flush);
        mover.work(&world, &batch(0..10));
        assert_eq!(world.flushes(), flushes, "{flush:?}");
        // Nothing moves any more: nobody has to learn of it.
        mover.work(&world, &batch(0..10));
        mover.work(&world, &[]);
        assert_eq!(world.flushes(), flushes, "{flush:?}");
    }
}

#[test]
fn what_is_gone_does_not_tell_on_periods() {
    let mut mover = Mover::new(Flush::EachBatch);
    let world = world();
    world.pin(0);
    for _ in 0..1023 {
        mover.work(&world, &batch(0..1));
        mover.work(&world, &batch(10..12));
    }
    assert_eq!(mover.feedback().failed_percent(), 0, "the window of 1024 lacks one");
    mover.work(&world, &batch(1..2));
    // 1023 of 1024 failed: 99 %, nine times ten.
    assert_eq!(mover.feedback().failed_percent(), 99);
    assert_eq!(mover.feedback().stretch(Nanos(100)), Nanos(1000));
}

#[test]
fn lists_lose_nothing_and_are_fair() {
    let world = World::new();
    let mut wanted = Wanted::default();
    for space in 0..50 {
        world.area(space, 0, 100);
        world.map(space, 0, 100, SLOW, Access::ALWAYS);
        let pages =
            (0..=space).map(|page| WantedPage { space: SpaceId(space), vpn: Vpn(page), node: Node(0) });
        pages.for_each(|page| wanted.push(page));
    }
    let mut mover = Mover::new(Flush::EachBatch);
    let (mut moved, mut turns) = (0, vec![]);
    while !wanted.is_empty() {
        let batch = wanted.take(10);
        turns.push(batch[0].space.0);
        moved += mover.work(&world, &batch).moved;
    }
    // Space n wants n + 1 pages: 50 * 51 / 2 in all. All have a turn before one has its second: those with more than ten.
    assert_eq!((moved, wanted.len()), (1275, 0));
    assert_eq!(turns[..50], list(0..50));
    assert_eq!(turns[50..90], list(10..50));
}
