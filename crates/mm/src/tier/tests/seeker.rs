//! Freehold's promotion: what it finds, how soon, and what it leaves alone.

use super::super::*;
use super::world::*;
use crate::ground::{Nanos, Node, PAGE_SIZE, SpaceId, Vpn};

/// One percent of a CPU, ten rounds a second.
const BUDGET: Budget = Budget { period: Nanos(100 * MS), permille: 10 };

/// The seeker on a world, and who moves what it wants at once.
struct Run<'a> {
    world: &'a World,
    seeker: Seeker,
    mover: Mover,
}

impl<'a> Run<'a> {
    fn new(world: &'a World, spaces: u32) -> Self {
        let mut seeker = Seeker::new(BUDGET, 7);
        (1..=spaces).for_each(|space| seeker.enter(SpaceId(space)));
        Self { world, seeker, mover: Mover::new(Flush::EachBatch) }
    }

    /// A round; gives what it wants.
    fn round(&mut self) -> Vec<WantedPage> {
        let mut wanted = vec![];
        let pause = self.seeker.round(self.world, 0, &mut |page| wanted.push(page));
        self.world.sleep(pause);
        wanted
    }

    /// Rounds until `second`; what is wanted is moved. Gives all of it.
    fn until(&mut self, second: u64) -> Vec<WantedPage> {
        let mut all = vec![];
        while self.world.now().0 < second * 1000 * MS {
            let wanted = self.round();
            self.mover.work(self.world, &wanted);
            all.extend(wanted);
        }
        all
    }
}

/// How many pages from `start` on are on fast nodes.
fn fast_of(world: &World, start: u32, count: u32) -> u32 {
    let is_fast = |page: &u32| world.node_of(SpaceId(1), Vpn(*page)).is_some_and(|node| world.is_fast(node));
    (start..start + count).filter(is_fast).count() as u32
}

/// 32 areas of 256 MiB, all of slow pages; those of the last 128 MiB are in use.
fn far_chunk() -> World {
    let world = World::new();
    world.areas(1, 0, 32, 256 * MIB);
    world.map(1, 0, (8192 - 128) * MIB, SLOW, Access::NEVER);
    world.map(1, (8192 - 128) * MIB, 128 * MIB, SLOW, Access::ALWAYS);
    world
}

/// Pages that kmmscand looks at until it wants something.
fn looks_of(revision: Revision) -> u64 {
    let world = far_chunk();
    let mut daemon = Kmmscand::new(revision);
    daemon.enter(SpaceId(1), &world);
    let mut found = false;
    while !found {
        let next = daemon.slot(SpaceId(1)).unwrap().next;
        world.sleep_until(next);
        daemon.cycle(&world, Feedback::default, &mut |_| found = true);
    }
    world.looked_pages()
}

#[test]
fn a_hot_chunk_at_the_far_end_is_found_with_few_looks() {
    let world = far_chunk();
    let mut run = Run::new(&world, 1);
    let (chunk, count) = ((8192 - 128) * MIB, 128 * MIB);
    while fast_of(&world, chunk, count) < count * 9 / 10 && world.now().0 < 60_000 * MS {
        let wanted = run.round();
        run.mover.work(&world, &wanted);
    }
    let (looks, v0, v3) = (world.looked_pages(), looks_of(V0), looks_of(V3));
    assert!(fast_of(&world, chunk, count) >= count * 9 / 10);
    // 74,820 looks of 569 ms, most of them at the chunk itself, which is looked at twice. V0 looks at all 2,097,152 pages until it
    // finds the first useful one, V3 at all of them twice.
    assert!(15 * looks < v0 && 30 * looks < v3, "{looks} looks, V0 {v0}, V3 {v3}");
    assert!(world.now().0 < 2000 * MS);
}

#[test]
fn a_hot_set_that_moves_is_followed() {
    let world = World::new();
    world.area(1, 0, 2 * GIB);
    let at = [100 * MIB, 1000 * MIB, 1700 * MIB];
    let second = 1000 * MS;
    world.map(1, 0, at[0], SLOW, Access::NEVER);
    for (index, start) in at.into_iter().enumerate() {
        let from = index as u64 * 20 * second;
        world.map(1, start, 64 * MIB, SLOW, Access::between(from, from + 20 * second));
    }
    let mut run = Run::new(&world, 1);
    for (index, start) in at.into_iter().enumerate() {
        run.until(20 * (index as u64 + 1));
        let fast = fast_of(&world, start, 64 * MIB);
        assert!(fast > 64 * MIB * 9 / 10, "{fast} pages of the set that is hot");
    }
}

#[test]
fn what_was_accessed_once_stays() {
    let world = World::new();
    world.area(1, 0, GIB / 4);
    (0..256).for_each(|mib| world.map(1, mib * MIB, MIB, SLOW, Access::once(u64::from(mib) * 100 * MS)));
    let mut run = Run::new(&world, 1);
    assert!(run.until(40).is_empty());
    assert!(world.looked_pages() > u64::from(64 * MIB), "not for lack of looks");
}

#[test]
fn nothing_is_wanted_that_is_fast() {
    let world = World::new();
    world.area(1, 0, GIB / 4);
    // Every other MiB.
    (0..256).for_each(|mib| {
        let node = [Node(0), SLOW][mib as usize % 2];
        world.map(1, mib * MIB, MIB, node, Access::ALWAYS);
    });
    let mut run = Run::new(&world, 1);
    let wanted = run.until(20);
    assert!(wanted.len() as u32 >= 128 * MIB * 9 / 10, "{}", wanted.len());
    assert!(wanted.iter().all(|page| page.vpn.0 / MIB % 2 == 1));
}

/// 64 MiB of slow pages in use.
fn hot() -> World {
    let world = World::new();
    world.area(1, 0, 64 * MIB);
    world.map(1, 0, 64 * MIB, SLOW, Access::ALWAYS);
    world
}

#[test]
fn without_room_nothing_is_wanted_and_nothing_swept() {
    let world = hot();
    (0..2).for_each(|node| world.set_room(Node(node), 0));
    let mut run = Run::new(&world, 1);
    assert!(run.until(10).is_empty());
    assert!(world.looked().iter().all(|(_, range)| range.pages() == 1), "it goes on asking, and no more");
    world.set_room(Node(1), 1 << 30);
    let wanted = run.until(12);
    assert!(wanted.len() as u32 > 64 * MIB / 2, "{}", wanted.len());
    assert!(wanted.iter().all(|page| page.node == Node(1)));
    assert!(world.room(Node(1)) < (1 << 30) - wanted.len() as u64 / 2 * PAGE_SIZE);
}

#[test]
fn a_list_that_is_long_already_is_not_made_longer() {
    let world = hot();
    let mut run = Run::new(&world, 1);
    for _ in 0..50 {
        run.seeker.round(&world, 1 << 20, &mut |page| panic!("{page:?}"));
        world.sleep(BUDGET.period);
    }
    assert!(!run.until(10).is_empty());
}

#[test]
fn pages_go_where_threads_run_and_in_proportion() {
    let world = hot();
    world.set_threads([3, 1, 0]);
    let wanted = Run::new(&world, 1).until(10);
    let to = |node| wanted.iter().filter(|page| page.node == Node(node)).count() as u32;
    assert!(to(0) + to(1) > 64 * MIB * 9 / 10);
    // Strides of 16 MiB are not many: one may be over.
    assert!(to(1).abs_diff(16 * MIB) <= 16 * MIB && to(0) > 2 * to(1), "{} and {}", to(0), to(1));
    let world = hot();
    world.set_threads([0, 1, 0]);
    world.set_room(Node(1), 16 << 20);
    let wanted = Run::new(&world, 1).until(10);
    assert!(wanted.iter().any(|page| page.node == Node(0)), "where no thread runs, rather than nowhere");
}

#[test]
fn a_map_that_is_busy_is_left_alone() {
    let world = hot();
    let mut run = Run::new(&world, 1);
    (0..20).for_each(|_| _ = run.round());
    world.looked();
    world.set_busy(1, true);
    (0..20).for_each(|_| assert!(run.round().is_empty()));
    assert!(world.looked().is_empty());
    world.set_busy(1, false);
    assert!(!run.until(10).is_empty());
}

#[test]
fn memory_that_is_not_scanned_does_not_make_regions_coarse() {
    let world = World::new();
    world.area(1, 0, GIB);
    world.map(1, 0, GIB, SLOW, Access::NEVER);
    world.unscanned(1, GIB, 1000 * GIB);
    Run::new(&world, 1).round();
    // Two pages of each of 64 regions of 16 MiB.
    assert_eq!(world.looked_pages(), 128);
}

#[test]
fn address_spaces_that_end_are_forgotten() {
    let world = hot();
    world.area(2, 0, 16 * MIB);
    world.map(2, 0, 16 * MIB, SLOW, Access::ALWAYS);
    let mut run = Run::new(&world, 2);
    (0..3).for_each(|_| _ = run.round());
    world.end(1);
    world.looked();
    let wanted = run.until(10);
    assert!(wanted.len() as u32 >= 16 * MIB * 9 / 10);
    assert!(wanted.iter().all(|page| page.space == SpaceId(2)));
    assert!(world.looked().iter().all(|(space, _)| *space == SpaceId(2)));
}
