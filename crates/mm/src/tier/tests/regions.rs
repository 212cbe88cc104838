//! Regions: they follow areas that come and go, and keep what is known of them; they split where use differs, and become one
//! where it does not.

use proptest::prelude::*;

use super::super::Area;
use super::super::regions::{HEAT_MAX, Regions};
use super::world::*;
use crate::ground::{Nanos, Node, SpaceId, Vpn};

const SPACE: SpaceId = SpaceId(1);

fn bounds(regions: &Regions) -> Vec<(u32, u32)> {
    regions.all.iter().map(|region| (region.range.start.0, region.range.end.0)).collect()
}

/// All of them have been looked at long enough, and are of this heat.
fn set_heat(regions: &mut Regions, heat: impl Fn(u32) -> u16) {
    for region in &mut regions.all {
        (region.readings, region.heat) = (9, heat(region.range.start.0));
    }
}

/// Regions of `piece` pages over areas from page 0 on.
fn over(count: u32, size: u32, piece: u32) -> (World, Regions) {
    let world = World::new();
    world.areas(1, 0, count, size);
    let mut regions = Regions::default();
    regions.follow(SPACE, &world, piece);
    regions.check(SPACE, &world);
    (world, regions)
}

#[test]
fn regions_cover_the_areas_that_are_scanned() {
    let world = World::new();
    world.area(1, 0, 4096);
    world.unscanned(1, 4096, 8192);
    world.area(1, 8192, 12_000);
    let mut regions = Regions::default();
    regions.follow(SPACE, &world, 2048);
    regions.check(SPACE, &world);
    assert_eq!(bounds(&regions), [(0, 2048), (2048, 4096), (8192, 10_240), (10_240, 12_000)]);
}

#[test]
fn what_is_known_outlives_changes_of_areas() {
    let (world, mut regions) = over(1, 8192, 2048);
    set_heat(&mut regions, |start| (start / 2048) as u16);
    // The first 1000 pages and the last are unmapped, a hole is made in the middle, and something new is above.
    let area = |start, end| Area { range: pages(start, end), is_scanned: true };
    world.set_areas(1, vec![area(1000, 5000), area(5100, 8000), area(8192, 9000)]);
    regions.follow(SPACE, &world, 2048);
    regions.check(SPACE, &world);
    let known: Vec<_> =
        regions.all.iter().map(|region| (region.range.start.0, region.heat, region.readings)).collect();
    assert_eq!(known, [(1000, 0, 9), (2048, 1, 9), (4096, 2, 9), (5100, 2, 9), (6144, 3, 9), (8192, 0, 0)]);
}

#[test]
fn a_region_over_two_areas_stays_known() {
    let (world, mut regions) = over(2, 1024, 1024);
    set_heat(&mut regions, |_| 100);
    regions.all.iter_mut().for_each(|region| region.readings = 5);
    regions.reshape(4096, 1);
    assert_eq!(bounds(&regions), [(0, 2048)]);
    regions.follow(SPACE, &world, 1024);
    regions.check(SPACE, &world);
    assert!(regions.all.iter().all(|region| (region.heat, region.readings) == (100, 5)));
}

#[test]
fn neighbours_that_are_alike_become_one_up_to_a_size() {
    let (world, mut regions) = over(1, 8192, 1024);
    set_heat(&mut regions, |start| if start < 4096 { 0 } else { HEAT_MAX });
    regions.reshape(3072, 100);
    regions.check(SPACE, &world);
    assert_eq!(bounds(&regions), [(0, 3072), (3072, 4096), (4096, 7168), (7168, 8192)]);
    // A hole lies between.
    let world = World::new();
    world.area(1, 0, 1024);
    world.area(1, 1025, 2048);
    let mut regions = Regions::default();
    regions.follow(SPACE, &world, 1024);
    set_heat(&mut regions, |_| 0);
    regions.reshape(8192, 100);
    assert_eq!(regions.all.len(), 2);
}

#[test]
fn regions_that_nobody_knows_yet_stay_apart() {
    let (_, mut regions) = over(1, 4096, 1024);
    regions.reshape(4096, 100);
    assert_eq!(regions.all.len(), 4);
}

#[test]
fn regions_that_are_neither_hot_nor_cold_split() {
    let (world, mut regions) = over(1, 8192, 2048);
    set_heat(&mut regions, |start| [0, 128, 90, HEAT_MAX][start as usize / 2048]);
    regions.reshape(2048, 100);
    regions.check(SPACE, &world);
    assert_eq!(
        bounds(&regions),
        [(0, 2048), (2048, 3072), (3072, 4096), (4096, 5120), (5120, 6144), (6144, 8192)]
    );
    let (_, mut regions) = over(1, 8192, 2048);
    set_heat(&mut regions, |_| 128);
    regions.all[3].heat = 160;
    regions.reshape(2048, 5);
    assert_eq!(regions.all.len(), 5, "there may be five");
    let (_, mut regions) = over(1, 512, 512);
    set_heat(&mut regions, |_| 128);
    regions.reshape(2048, 100);
    assert_eq!(regions.all.len(), 1, "none is smaller than a table");
}

#[test]
fn heat_follows_what_is_found() {
    let (world, mut regions) = over(1, 4096, 1024);
    let of = [(SLOW, Access::ALWAYS), (SLOW, Access::NEVER), (Node(0), Access::ALWAYS)];
    // The fourth is not mapped.
    (0..3).for_each(|at| world.map(1, at * 1024, 1024, of[at as usize].0, of[at as usize].1));
    let mut draw = 0;
    for _ in 0..40 {
        for region in &mut regions.all {
            region.probe(SPACE, &world, &mut || {
                draw += 77;
                draw
            });
        }
        world.sleep(Nanos(100 * MS));
    }
    regions.check(SPACE, &world);
    let heat: Vec<bool> = regions.all.iter().map(|region| region.heat > HEAT_MAX / 2).collect();
    assert_eq!(heat, [true, false, true, false]);
    // Probes are armed and read in turn: what they say is of the time since they were armed.
    assert!(regions.all.iter().all(|region| region.readings == 40));
    assert_eq!(world.looked().len(), 4 * 40 * 2);
}

fn some_areas() -> impl Strategy<Value = Vec<Area>> {
    // Gaps and sizes, so that areas are in order; some touch.
    let area = (prop_oneof![Just(0), 1..3000u32], 1..5000u32, prop::bool::weighted(0.8));
    prop::collection::vec(area, 0..8).prop_map(|areas| {
        let mut at = 0;
        let place = |(gap, size, is_scanned)| {
            let start = at + gap;
            at = start + size;
            Area { range: pages(start, at), is_scanned }
        };
        areas.into_iter().map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_areas_do_regions_cover_them(
        changes in prop::collection::vec((some_areas(), 0..3000u32, any::<u64>()), 1..8),
        largest in 512..20_000u32,
        most in 1..40usize,
    ) {
        let world = World::new();
        let mut regions = Regions::default();
        for (areas, piece, heat) in changes {
            world.set_areas(1, areas);
            regions.follow(SPACE, &world, piece);
            regions.check(SPACE, &world);
            let before = regions.all.len();
            for (at, region) in regions.all.iter_mut().enumerate() {
                let drawn = heat.rotate_left(at as u32 * 7);
                region.readings = (drawn % 12) as u16;
                region.heat = [0, 8, 128, 250, HEAT_MAX][(drawn / 16 % 5) as usize];
                let pages = u64::from(region.range.pages());
                region.swept = Vpn(region.range.start.0 + (drawn / 128 % (pages + 1)) as u32);
                region.probe(SPACE, &world, &mut || drawn);
            }
            regions.reshape(largest, most);
            regions.check(SPACE, &world);
            prop_assert!(regions.all.len() <= before.max(most));
        }
    }
}
