//! NUMA balancing: which pages are made to fault, and what faults do.

use super::super::*;
use super::world::*;
use crate::ground::{Nanos, Node, PAGE_SIZE, SpaceId};

const SECOND: u64 = 1000 * MS;
const GIB_BYTES: u64 = 1 << 30;

/// The kernel's own settings, with a window of 8 MiB in place of 256, and 8 GiB a second in place of 64.
fn settings(mode: Mode) -> BalancingSettings {
    BalancingSettings {
        mode,
        delay: Nanos(SECOND),
        period_min: Nanos(SECOND),
        period_max: Nanos(60 * SECOND),
        window: 8 << 20,
        hot: Nanos(SECOND),
        rate_limit: 8 * GIB_BYTES,
    }
}

/// Windows over address space 1, as page numbers.
struct Windows<'a> {
    world: &'a World,
    scan: HintScan,
    settings: BalancingSettings,
}

impl<'a> Windows<'a> {
    fn new(world: &'a World, mode: Mode) -> Self {
        let settings = settings(mode);
        Self { world, scan: HintScan::new(SpaceId(1), Nanos(0), &settings), settings }
    }

    /// Pages marked in the next window, and the first and the last it went over.
    fn next(&mut self) -> (u64, u32, u32) {
        let marked = self.scan.mark(self.world, &self.settings);
        let ranges = self.world.marked();
        (marked, ranges.first().map_or(0, |first| first.start.0), ranges.last().map_or(0, |last| last.end.0))
    }
}

#[test]
fn windows_are_of_their_size_resume_and_wrap_around() {
    let world = World::new();
    world.areas(1, 1000, 1, 20 * MIB);
    world.map(1, 1000, 20 * MIB, SLOW, Access::NEVER);
    let mut windows = Windows::new(&world, Mode::Tiering);
    let at = |mib: u32| 1000 + mib * MIB;
    assert_eq!(windows.next(), (2048, at(0), at(8)));
    assert_eq!(windows.next(), (2048, at(8), at(16)));
    assert_eq!(windows.next(), (1024, at(16), at(20)), "the end ends the window");
    assert_eq!(windows.next(), (2048, at(0), at(8)));
}

#[test]
fn a_window_goes_over_eight_times_its_size_at_most() {
    let world = World::new();
    world.area(1, 0, GIB);
    world.map(1, 60 * MIB, 8 * MIB, SLOW, Access::NEVER);
    let mut windows = Windows::new(&world, Mode::Tiering);
    // 4 MiB of pages lie within the first 64 MiB.
    assert_eq!(windows.next(), (1024, 0, 64 * MIB));
    assert_eq!(windows.next(), (1024, 64 * MIB, 128 * MIB));
    assert_eq!(windows.next(), (0, 128 * MIB, 192 * MIB));
}

#[test]
fn areas_that_are_not_scanned_cost_no_window() {
    let world = World::new();
    world.unscanned(1, 0, 100 * GIB);
    world.area(1, 100 * GIB, 101 * GIB);
    world.map(1, 0, 10, SLOW, Access::NEVER);
    world.map(1, 100 * GIB, GIB, SLOW, Access::NEVER);
    let mut windows = Windows::new(&world, Mode::Tiering);
    assert_eq!(windows.next(), (2048, 100 * GIB, 100 * GIB + 8 * MIB));
}

#[test]
fn in_mode_2_only_pages_of_slow_nodes_are_marked() {
    for (mode, marked) in [(Mode::Normal, 30), (Mode::Tiering, 10), (Mode::Both, 30)] {
        let world = World::new();
        world.area(1, 0, 512);
        (0..3).for_each(|node| world.map(1, node * 100, 10, Node(node as u16), Access::NEVER));
        assert_eq!(Windows::new(&world, mode).next().0, marked, "{mode:?}");
    }
}

#[test]
fn windows_come_after_a_delay() {
    let world = World::new();
    world.area(1, 0, GIB);
    let mut windows = Windows::new(&world, Mode::Normal);
    assert!(!windows.scan.is_due(Nanos(SECOND - 1)) && windows.scan.is_due(Nanos(SECOND)));
    windows.next();
    let now = world.now().0;
    assert!(!windows.scan.is_due(Nanos(now + SECOND - 1)) && windows.scan.is_due(Nanos(now + SECOND)));
}

/// A program's faults in a pass: so many of ten local, so many of ten a thread's own, and what became of the first.
#[derive(Clone, Copy)]
struct PassFaults {
    local: u32,
    private: u32,
    first: Moved,
}

/// Periods in ms, one after each pass with such faults, of a program of so many MiB.
fn periods(resident: u64, passes: &[PassFaults]) -> Vec<u64> {
    let world = World::new();
    world.area(1, 0, MIB);
    let mut windows = Windows::new(&world, Mode::Normal);
    let settings = windows.settings;
    let mut after = vec![];
    for (number, pass) in passes.iter().chain(passes.last()).enumerate() {
        for index in 0..10 {
            let moved = if index == 0 { pass.first } else { Moved::Stayed };
            let is_private = index < pass.private;
            let of_page =
                HintFault { is_private, ..fault(Node(u16::from(index >= pass.local)), 0, Some(0), 0) };
            windows.scan.note(of_page, moved, resident << 20, &settings);
            if index == 0 && number > 0 {
                // The first fault after a pass.
                after.push(windows.scan.period().0 / MS);
            }
        }
        // One area, in one window: the end of the pass.
        windows.next();
    }
    after
}

#[test]
fn windows_come_the_less_often_the_more_faults_are_local_or_a_threads_own() {
    let pass = |local, private| PassFaults { local, private, first: Moved::Stayed };
    let one = |local, private| periods(256, &[pass(local, private)])[0];
    assert_eq!((one(10, 10), one(0, 7), one(8, 3)), (1300, 1100, 1100));
    assert_eq!(one(6, 6), 1000, "not under the least");
    assert_eq!(periods(256, &[pass(10, 10), pass(10, 10)]), [1300, 1690]);
    let failed = PassFaults { local: 10, private: 10, first: Moved::Failed };
    assert_eq!(periods(256, &[failed; 2]), [2000, 4000]);
}

#[test]
fn a_large_programs_windows_come_more_often() {
    let pass = |local, private| PassFaults { local, private, first: Moved::Stayed };
    // Ten windows of memory: a tenth of the bounds, and never under 100 ms.
    assert_eq!(periods(2560, &[pass(0, 0); 2]), [300, 100]);
    assert_eq!(periods(2560, &[pass(6, 2); 2]), [900, 810]);
    assert_eq!(periods(25_600, &[pass(0, 0); 2]), [300, 100]);
    let failed = PassFaults { local: 0, private: 0, first: Moved::Failed };
    assert_eq!(periods(2560, &[failed; 4]), [2000, 4000, 6000, 6000]);
}

fn fault(from: Node, by: u16, last_by: Option<u16>, marked: u64) -> HintFault {
    let users = Users::Modelled;
    HintFault {
        from,
        by: Node(by),
        last_by: last_by.map(Node),
        is_private: true,
        marked: Nanos(marked),
        users,
    }
}

/// A machine whose fast nodes have less room than a 16th of them, which is 4 GiB.
fn full() -> World {
    let world = World::new();
    world.set_room(Node(0), 4 * GIB_BYTES - 1);
    world.set_room(Node(1), 4 * GIB_BYTES - 1);
    world
}

#[test]
fn hot_is_what_faults_within_a_second_of_its_mark() {
    for mode in [Mode::Tiering, Mode::Both] {
        let world = full();
        world.sleep_until(Nanos(10 * SECOND));
        let mut balancing = Balancing::new(settings(mode), 3);
        let mut of = |marked| balancing.fault(fault(SLOW, 1, None, marked), PAGE_SIZE, &world);
        assert_eq!(of(9 * SECOND + 1), Some(Node(1)), "it goes to the CPU that used it");
        assert_eq!(of(9 * SECOND), None);
    }
}

#[test]
fn a_node_with_room_takes_all() {
    let world = full();
    world.sleep_until(Nanos(10 * SECOND));
    world.set_room(Node(1), 4 * GIB_BYTES);
    let mut balancing = Balancing::new(BalancingSettings { rate_limit: 0, ..settings(Mode::Tiering) }, 3);
    let mut by = |node| balancing.fault(fault(SLOW, node, None, 0), PAGE_SIZE, &world);
    assert_eq!((by(0), by(1)), (None, Some(Node(1))));
}

#[test]
fn promotions_to_a_node_stay_within_a_rate() {
    let world = full();
    let mut balancing = Balancing::new(settings(Mode::Tiering), 3);
    let mut promoted = |by| {
        let mut fault = || balancing.fault(fault(SLOW, by, None, world.now().0), 1 << 30, &world);
        (0..20).filter(|_| fault().is_some()).count()
    };
    assert_eq!((promoted(0), promoted(0), promoted(1)), (8, 0, 8), "8 GiB a second for each node");
    world.sleep_until(Nanos(SECOND));
    assert_eq!(promoted(0), 8);
}

/// The threshold, ms, found by trying marks of all ages. Pages of no bytes are no candidates.
fn threshold(balancing: &mut Balancing, world: &World) -> u64 {
    let mut is_hot = |age: &u64| {
        let marked = world.now().0 - age * MS;
        balancing.fault(fault(SLOW, 0, None, marked), 0, world).is_some()
    };
    (0..=3000).take_while(|age| is_hot(age)).count() as u64
}

/// So many candidates of 1 GiB, and on to the next minute.
fn minute(balancing: &mut Balancing, world: &World, candidates: u32) {
    for _ in 0..candidates {
        balancing.fault(fault(SLOW, 0, None, world.now().0), GIB_BYTES, world);
    }
    world.sleep(Nanos(60 * SECOND));
}

#[test]
fn the_threshold_follows_the_rate() {
    // The rate allows 480 GiB a minute; between nine tenths of it and eleven the threshold stays. It moves by an eighth of a second.
    for (candidates, after) in [(0, 1125), (431, 1125), (433, 1000), (527, 1000), (529, 875)] {
        let (world, mut balancing) = (full(), Balancing::new(settings(Mode::Tiering), 3));
        minute(&mut balancing, &world, candidates);
        assert_eq!(threshold(&mut balancing, &world), after, "{candidates} GiB");
        world.sleep(Nanos(59 * SECOND));
        assert_eq!(threshold(&mut balancing, &world), after, "once in a minute");
    }
}

#[test]
fn the_threshold_has_bounds_and_begins_anew_where_there_is_room() {
    let (world, mut balancing) = (full(), Balancing::new(settings(Mode::Tiering), 3));
    let mut after = |minutes, candidates| {
        (0..minutes).for_each(|_| minute(&mut balancing, &world, candidates));
        threshold(&mut balancing, &world)
    };
    assert_eq!(after(20, 600), 125);
    // Only faults look at the clock: there must be one a minute.
    assert_eq!(after(20, 1), 2000);
    world.set_room(Node(0), 5 * GIB_BYTES);
    balancing.fault(fault(SLOW, 0, None, 0), PAGE_SIZE, &world);
    world.set_room(Node(0), 0);
    assert_eq!(threshold(&mut balancing, &world), 1000);
}

/// A program of whose faults so many were by CPUs of nodes 0 and 1.
fn after_faults(mode: Mode, by: [u32; 2], world: &World) -> Balancing {
    let mut balancing = Balancing::new(settings(mode), 3);
    for (node, count) in by.into_iter().enumerate() {
        (0..count)
            .for_each(|_| _ = balancing.fault(fault(Node(node as u16), node as u16, None, 0), 1, world));
    }
    balancing
}

#[test]
fn mode_1_moves_between_fast_nodes_what_is_used_twice_from_there() {
    let world = full();
    world.sleep_until(Nanos(100 * SECOND));
    let mut balancing = after_faults(Mode::Normal, [2, 20], &world);
    let mut of = |from, last_by| balancing.fault(fault(from, 1, last_by, 100 * SECOND), 1, &world);
    assert_eq!(of(Node(0), None), None, "the first fault may be chance");
    assert_eq!(of(Node(0), Some(0)), None, "the one before was from elsewhere");
    assert_eq!(of(Node(0), Some(1)), Some(Node(1)));
    assert_eq!(of(Node(1), Some(1)), None, "it is there already");
    assert_eq!(of(SLOW, None), None, "of slow nodes too");
    assert_eq!(of(SLOW, Some(1)), Some(Node(1)));
    assert_eq!(balancing.fault(fault(Node(1), 0, Some(0), 0), 1, &world), None, "node 0 has no claim");
}

#[test]
fn mode_3_is_mode_2_for_slow_pages_and_mode_1_for_fast_ones() {
    let world = full();
    world.sleep_until(Nanos(100 * SECOND));
    let mut both = after_faults(Mode::Both, [2, 20], &world);
    let mut tiering = after_faults(Mode::Tiering, [2, 20], &world);
    let of = |balancing: &mut Balancing, from| {
        balancing.fault(fault(from, 1, Some(1), 100 * SECOND), 1, &world).is_some()
    };
    assert_eq!((of(&mut both, Node(0)), of(&mut both, SLOW)), (true, true));
    assert_eq!((of(&mut tiering, Node(0)), of(&mut tiering, SLOW)), (false, true));
}

#[test]
fn a_node_has_a_claim_with_more_than_three_faults_of_four() {
    let world = full();
    for (by, moves) in [([1, 1], false), ([2, 1], false), ([3, 1], true), ([8, 3], false), ([9, 3], true)] {
        let mut balancing = after_faults(Mode::Normal, by, &world);
        // This fault counts too: to node 0.
        let to = balancing.fault(fault(Node(1), 0, Some(0), 0), 1, &world);
        assert_eq!(to.is_some(), moves, "{by:?}");
    }
}

#[test]
fn faults_of_slow_pages_say_nothing_of_a_programs_place_where_tiers_are_balanced() {
    let world = full();
    let counts =
        |mode, from, last_by| Balancing::new(settings(mode), 3).counts(fault(from, 0, last_by, 0), &world);
    for mode in [Mode::Normal, Mode::Tiering, Mode::Both] {
        assert!(counts(mode, Node(1), None));
        assert!(!counts(mode, SLOW, None), "its first fault");
        assert_eq!(counts(mode, SLOW, Some(0)), mode == Mode::Normal);
    }
}
