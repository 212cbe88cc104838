//! kmmscand and its revisions: what a scan goes over, and when the next one comes.

use super::super::*;
use super::world::*;
use crate::ground::{Nanos, Node, PAGE_SIZE, SpaceId, Vpn};

const SPACE: SpaceId = SpaceId(1);

/// A daemon on a world with address space 1.
struct Run<'a> {
    world: &'a World,
    daemon: Kmmscand,
}

impl<'a> Run<'a> {
    fn new(world: &'a World, revision: Revision) -> Self {
        let mut daemon = Kmmscand::new(revision);
        daemon.enter(SPACE, world);
        Self { world, daemon }
    }

    fn cycle(&mut self) -> Vec<WantedPage> {
        let mut wanted = vec![];
        self.daemon.cycle(self.world, Feedback::default, &mut |page| wanted.push(page));
        wanted
    }

    /// The next scan of address space 1, when its time has come.
    fn scan(&mut self) -> Vec<WantedPage> {
        let next = self.daemon.slot(SPACE).unwrap().next;
        self.world.sleep_until(next);
        self.cycle()
    }

    /// The same; gives the first page of each area that it looked at, in GiB.
    fn scan_of(&mut self) -> Vec<u32> {
        self.scan();
        self.world.looked().iter().map(|(_, range)| range.start.0 / GIB).collect()
    }

    fn size_mib(&mut self) -> u64 {
        self.daemon.slot(SPACE).unwrap().size() >> 20
    }
}

/// Areas of 1 GiB, of which `hot` pages of the area `at` are in use on the slow node.
fn in_areas(count: u32, at: u32, hot: u32) -> World {
    let world = World::new();
    world.areas(1, 0, count, GIB);
    world.map(1, at * GIB, hot, SLOW, Access::ALWAYS);
    world
}

#[test]
fn one_large_area_makes_scan_size_inert() {
    for revision in [V0, V0_NOTHROTTLE] {
        let world = World::new();
        world.area(1, 0, 32 * GIB);
        world.map(1, 31 * GIB, 200, SLOW, Access::ALWAYS);
        let mut run = Run::new(&world, revision);
        for _ in 0..5 {
            assert_eq!((run.scan().len(), world.looked()), (200, vec![(SPACE, pages(0, 32 * GIB))]));
        }
    }
}

#[test]
fn a_scan_that_ends_with_the_last_area_is_followed_by_one_of_nothing() {
    // V1 to V3 have no rule by which the scan would go on and find the end. Every second scan finds nothing there, so that the
    // period is now eight times as long, now an eighth.
    let world = World::new();
    world.area(1, 0, 32 * GIB);
    world.map(1, 0, 300, SLOW, Access::ALWAYS);
    let mut run = Run::new(&world, V1);
    let mut found = vec![];
    for _ in 0..4 {
        found.push((run.scan().len(), run.daemon.slot(SPACE).unwrap().period().0 / MS));
    }
    // 300 / 16 is less than 256, and 5000 / 8 is 625.
    assert_eq!(found, [(300, 500), (0, 4000), (300, 500), (0, 4000)]);
}

#[test]
fn above_a_hundred_useful_pages_a_scan_goes_on_to_the_end() {
    // The first scan is of 4 GiB. 99 pages are none, and halve it; 100 are some, and the next one is of 16 GiB.
    for (hot, first, second) in [(99, 0..4, 4..6), (100, 0..4, 4..20), (101, 0..64, 0..64)] {
        let world = in_areas(64, 0, hot);
        let mut run = Run::new(&world, V0);
        assert_eq!(run.scan_of(), list(first), "{hot} pages");
        assert_eq!(run.scan_of(), list(second), "{hot} pages");
    }
    let world = in_areas(64, 0, 10_000);
    let mut run = Run::new(&world, V1);
    assert_eq!(run.scan_of(), [0], "V1 stops at its size, whatever it found");
    assert_eq!(run.scan_of(), [1, 2, 3, 4], "and goes on there");
}

#[test]
fn without_throttling_scans_are_of_all() {
    let world = in_areas(64, 0, 0);
    let mut run = Run::new(&world, V0_NOTHROTTLE);
    for _ in 0..3 {
        assert_eq!(run.scan_of(), list(0..64));
    }
}

#[test]
fn a_useful_chunk_at_the_far_end_is_reached_late() {
    // The post's drawback. Scans of nothing are of 4, 2 and 1 areas, and then of one each, for no scan is of less than an area:
    // the second is of areas 4 and 5, the third of area 6, scan n of area n + 3, and area 63 has its turn in scan 60.
    let world = in_areas(64, 63, 1000);
    let mut run = Run::new(&world, V0);
    let mut scans = 0;
    while run.scan().is_empty() {
        scans += 1;
        assert_eq!(run.size_mib(), [2048, 1024, 512][scans.min(3) - 1]);
    }
    assert_eq!(scans + 1, 60);
    // 59 pauses: 2.3, 2.645, 3.042, 3.498, 4.023 and 4.626 s, and 53 of 5 s.
    assert_eq!(world.now().0 / (1000 * MS), 285);
    assert_eq!(run.size_mib(), 16_384);
    world.looked();
    // From there it starts anew, and 16 GiB at a time it needs three scans until it is there again.
    assert_eq!(run.scan_of(), list(0..16));
    assert_eq!(run.scan_of(), list(16..32), "a scan of nothing after a useful one leaves the size");
    assert_eq!(run.scan_of(), list(32..40), "the next ones halve it");
}

#[test]
fn areas_that_are_not_scanned_count_for_size() {
    let world = World::new();
    (0..3).for_each(|at| world.unscanned(1, at * GIB, (at + 1) * GIB));
    world.areas(1, 3 * GIB, 2, GIB);
    (0..5).for_each(|at| world.map(1, at * GIB, 10, SLOW, Access::ALWAYS));
    let mut run = Run::new(&world, V0);
    let wanted = run.scan();
    assert_eq!(world.looked(), [(SPACE, pages(3 * GIB, 4 * GIB))]);
    assert_eq!(list(wanted.iter().map(|page| page.vpn.0)), list(3 * GIB..3 * GIB + 10));
}

#[test]
fn large_pages_count_for_all_that_they_are() {
    let world = World::new();
    world.areas(1, 0, 8, GIB);
    world.map_large(1, 0, 1, 512, SLOW, Access::ALWAYS);
    let mut run = Run::new(&world, V0);
    assert_eq!(run.scan().len(), 1);
    assert_eq!(world.looked().len(), 8, "512 are more than 100");
}

#[test]
fn the_first_scan_comes_at_once_or_after_a_second() {
    for (revision, delay) in [(V0, 0), (V0_NOTHROTTLE, 0), (V1, 1000), (V2, 1000), (V3, 1000)] {
        let world = in_areas(1, 0, 1);
        let mut run = Run::new(&world, revision);
        if delay > 0 {
            world.sleep_until(Nanos(delay * MS - 1));
            run.cycle();
            assert_eq!(world.looked(), []);
        }
        world.sleep_until(Nanos(delay * MS));
        run.cycle();
        assert_eq!(world.looked().len(), 1);
    }
}

/// A slow area of which pages 0 to 9 are always in use, 10 to 19 were used once; pages in use on both fast nodes.
fn mixed() -> World {
    let world = World::new();
    world.area(1, 0, GIB);
    world.map(1, 0, 10, SLOW, Access::ALWAYS);
    world.map(1, 10, 10, SLOW, Access::once(0));
    world.map(1, 100, 3, Node(0), Access::ALWAYS);
    world.map(1, 200, 5, Node(1), Access::ALWAYS);
    world.map(1, 300, 50, Node(0), Access::NEVER);
    world
}

fn wants(wanted: &[WantedPage]) -> Vec<(u32, u16)> {
    wanted.iter().map(|page| (page.vpn.0, page.node.0)).collect()
}

/// What the first two scans of all there is want.
fn scans(world: &World, revision: Revision) -> [Vec<(u32, u16)>; 2] {
    let mut run = Run::new(world, Revision { size: None, ..revision });
    [wants(&run.scan()), wants(&run.scan())]
}

#[test]
fn v3_wants_at_the_second_access_and_where_fast_pages_are_in_use() {
    let to = |node: u16, count: u32| list((0..count).map(|page| (page, node)));
    assert_eq!(scans(&mixed(), V0), [to(0, 20), to(0, 10)], "node 0, at the first access");
    // What was accessed where is known after a scan.
    for revision in [V1, V2] {
        assert_eq!(scans(&mixed(), revision), [to(0, 20), to(1, 10)]);
    }
    assert_eq!(scans(&mixed(), V3), [vec![], to(1, 10)]);
}

#[test]
fn v3_falls_back_where_there_is_no_room() {
    let world = mixed();
    world.set_room(Node(1), 0);
    let second = |revision| scans(&world, revision)[1][0].1;
    assert_eq!((second(V2), second(V3)), (1, 0));
    world.set_room(Node(0), 0);
    assert_eq!(second(V3), 1, "there is no better one");
    world.set_room(Node(1), PAGE_SIZE);
    assert_eq!(second(V3), 1);
}

#[test]
fn an_address_space_that_has_ended_is_dropped() {
    let world = in_areas(1, 0, 1);
    let mut run = Run::new(&world, V0);
    world.end(1);
    run.cycle();
    assert!(run.daemon.slot(SPACE).is_none());
    assert_eq!(world.looked(), []);
}

#[test]
fn an_address_space_whose_map_is_busy_keeps_its_turn() {
    let world = in_areas(8, 0, 0);
    let mut run = Run::new(&world, V0);
    run.scan();
    world.looked();
    world.set_busy(1, true);
    assert_eq!(run.scan_of(), []);
    assert_eq!(run.size_mib(), 2048, "it was not a scan that found nothing");
    world.set_busy(1, false);
    run.cycle();
    assert_eq!(
        world.looked()[0],
        (SPACE, pages(4 * GIB, 5 * GIB)),
        "the next cycle finds it due, where it was"
    );
}

#[test]
fn a_cycle_has_so_many_address_spaces_at_most() {
    let world = World::new();
    (1..=5).for_each(|space| world.area(space, 0, 1));
    let mut run = Run::new(&world, Revision { spaces_max: 2, ..V0 });
    (2..=5).for_each(|space| run.daemon.enter(SpaceId(space), &world));
    for turns in [&[1, 2][..], &[3, 4], &[5]] {
        run.cycle();
        let looked = world.looked().into_iter().map(|(space, _)| space.0);
        assert_eq!(list(looked), turns, "space 1 is not due again when 5 has its turn");
    }
}

#[test]
fn a_scalar_stretches_periods_and_0_ends_scans() {
    let world = in_areas(1, 0, 0);
    let mut run = Run::new(&world, V3);
    run.daemon.slot(SPACE).unwrap().set_scalar(0);
    for second in 0..100 {
        world.sleep_until(Nanos(second * 1000 * MS));
        run.cycle();
    }
    assert_eq!(world.looked(), []);
    run.daemon.slot(SPACE).unwrap().set_scalar(3);
    run.cycle();
    assert_eq!(world.looked().len(), 1);
    assert_eq!(run.daemon.slot(SPACE).unwrap().next, Nanos(world.now().0 + 3 * 2300 * MS));
    assert_eq!(
        run.daemon.slot(SPACE).map(|slot| (slot.period(), slot.address)).unwrap(),
        (Nanos(2300 * MS), Vpn(GIB))
    );
}
