use mm::{Access, Line, LineKind, Order, Pfn};

use super::*;
use crate::profile::Profile;

struct Rig {
    lines: Lines,
    costs: Costs,
}

/// The Xeon: cpu 0 and 48 share a core, 0 and 1 a last-level cache, 0 and 24 are on two sockets. 64-byte descriptors.
fn rig() -> Rig {
    let profile = Profile::load("xeon-8260").unwrap();
    let costs = Costs::new(&profile);
    let lines = Lines::new(&costs, &profile.topology(), &profile.shape().places(), 0);
    Rig { lines, costs }
}

impl Rig {
    fn touch(&mut self, cpu: u16, kind: LineKind, index: u32, access: Access) -> Level {
        let before = self.lines.spent(Span::COUNT, &self.costs);
        let who = Toucher { cpu, span: Span::COUNT, now: 0 };
        self.lines.touch(Line { kind, index }, access, who, &self.costs);
        let after = self.lines.spent(Span::COUNT, &self.costs);
        Level::ALL.into_iter().find(|level| before[*level as usize] != after[*level as usize]).unwrap()
    }

    fn frame(&mut self, cpu: u16, pfn: u32, access: Access) -> Level {
        self.touch(cpu, LineKind::Frame, pfn, access)
    }

    /// `cpu` brings in so many pages' worth of other lines.
    fn age(&mut self, cpu: u16, order: u8) {
        let who = Toucher { cpu, span: Span::COUNT, now: 0 };
        let order = Order::new(order).unwrap();
        self.lines.stream((Pfn(1 << 22), order), Traffic::Clear, who, &self.costs);
    }
}

const FRAME: u32 = 1 << 21;

#[test]
fn every_level_is_reached_as_intended() {
    use Access::{Read, Write};
    let mut rig = rig();
    assert_eq!(rig.frame(0, FRAME, Write), Level::LocalDram);
    assert_eq!(rig.frame(0, FRAME, Write), Level::L1);
    rig.age(0, 4);
    assert_eq!(rig.frame(0, FRAME, Write), Level::L2);
    assert_eq!(rig.frame(48, FRAME, Write), Level::Smt);
    assert_eq!(rig.frame(1, FRAME, Write), Level::SameLlc);
    assert_eq!(rig.frame(24, FRAME, Write), Level::CrossSocket);
    assert_eq!(rig.frame(24, FRAME + 64, Write), Level::RemoteDram);
    assert_eq!(rig.frame(24, FRAME, Read), Level::L1);
    rig.age(24, 9);
    assert_eq!(rig.frame(24, FRAME, Read), Level::L3);
    (0..10).for_each(|_| rig.age(24, 10));
    assert_eq!(rig.frame(24, FRAME, Read), Level::RemoteDram);
    // What the owner's caches have lost, others find in memory too.
    assert_eq!(rig.frame(0, FRAME, Write), Level::CrossSocket);
    (0..10).for_each(|_| rig.age(0, 10));
    assert_eq!(rig.frame(1, FRAME, Write), Level::LocalDram);
}

#[test]
fn other_dies_of_a_socket_are_further_than_the_own() {
    let profile = Profile::load("epyc-7w83").unwrap();
    let costs = Costs::new(&profile);
    let mut rig = Rig { lines: Lines::new(&costs, &profile.topology(), &profile.shape().places(), 0), costs };
    rig.frame(0, FRAME, Access::Write);
    assert_eq!(rig.frame(1, FRAME, Access::Write), Level::SameLlc);
    assert_eq!(rig.frame(8, FRAME, Access::Write), Level::SameSocket);
}

#[test]
fn shared_lines_are_read_near_and_written_far() {
    let mut rig = rig();
    let zone = |rig: &mut Rig, cpu, access| rig.touch(cpu, LineKind::Zone, 2, access);
    assert_eq!(zone(&mut rig, 0, Access::Write), Level::LocalDram);
    assert_eq!(zone(&mut rig, 1, Access::Read), Level::SameLlc);
    assert_eq!(zone(&mut rig, 24, Access::Read), Level::CrossSocket);
    for cpu in [0, 1, 24] {
        assert!(zone(&mut rig, cpu, Access::Read) <= Level::L2, "cpu {cpu} has a copy");
    }
    assert_eq!(zone(&mut rig, 0, Access::Write), Level::SameSocket);
    assert_eq!(zone(&mut rig, 0, Access::Write), Level::L1);
    assert_eq!(zone(&mut rig, 1, Access::Read), Level::SameLlc);
}

#[test]
fn small_descriptors_share_lines() {
    let profile = Profile::load("kvm-genoa-2c").unwrap();
    let costs = Costs::new(&profile);
    let mut rig = Rig { lines: Lines::new(&costs, &profile.topology(), &profile.shape().places(), 2), costs };
    assert_eq!(rig.frame(0, 4096, Access::Write), Level::LocalDram);
    assert_eq!(rig.frame(0, 4099, Access::Write), Level::L1);
    assert_eq!(rig.frame(0, 4100, Access::Write), Level::LocalDram);
}

#[test]
fn misses_of_a_page_overlap_once_the_prefetcher_is_ahead() {
    let mut rig = rig();
    // Far enough apart that no two misses are waited for together.
    let mut now = 0;
    let mut cost = |rig: &mut Rig, pfn: u32| {
        now += 1 << 20;
        let who = Toucher { cpu: 0, span: Span::COUNT, now };
        rig.lines.touch(Line { kind: LineKind::Frame, index: pfn }, Access::Write, who, &rig.costs)
    };
    let alone = cost(&mut rig, FRAME);
    assert_eq!(cost(&mut rig, FRAME + 1), alone, "the second miss trains it");
    let ahead = cost(&mut rig, FRAME + 2);
    assert!(ahead < alone / 4, "{ahead} of {alone}");
    assert_eq!(cost(&mut rig, FRAME + 64), alone, "another page");
    assert_eq!(cost(&mut rig, FRAME + 9), ahead, "the first page is still followed");
    rig.age(0, 0);
    assert_eq!(cost(&mut rig, FRAME + 10), alone, "not after other work");
}

#[test]
fn misses_within_the_window_are_waited_for_together() {
    let mut rig = rig();
    let mut now = 1 << 20;
    let mut cost = |rig: &mut Rig, pfn: u32, later: u64, access| {
        now += later;
        let who = Toucher { cpu: 0, span: Span::COUNT, now };
        let cost = rig.lines.touch(Line { kind: LineKind::Frame, index: pfn }, access, who, &rig.costs);
        now += cost;
        cost
    };
    let alone = cost(&mut rig, FRAME, 0, Access::Read);
    let (touch, window) = (rig.costs.touch, rig.costs.window);
    assert_eq!(cost(&mut rig, FRAME + 64, window / 2, Access::Read), touch, "it was under way");
    assert_eq!(cost(&mut rig, FRAME + 128, window, Access::Read), alone, "too late for that");
    let stored = cost(&mut rig, FRAME + 192, 2 * window, Access::Store);
    assert!(touch < stored && stored < alone / 4, "nobody waits for a store: {stored} of {alone}");
}

#[test]
fn threads_of_a_core_share_its_caches() {
    let mut rig = rig();
    let fits = |rig: &mut Rig| {
        rig.frame(0, FRAME, Access::Write);
        rig.age(0, 8);
        rig.frame(0, FRAME, Access::Write)
    };
    assert_eq!(fits(&mut rig), Level::L2);
    rig.lines.change_busy(0, 1);
    rig.lines.change_busy(48, 1);
    rig.age(0, 8);
    assert_eq!(fits(&mut rig), Level::L3);
}

/// Misses that lie close together in time overlap, unless an atomic instruction stands between them.
#[test]
fn an_atomic_instruction_is_waited_for() {
    let cost = |rig: &mut Rig, pfn, access| {
        let who = Toucher { cpu: 0, span: Span::COUNT, now: 0 };
        rig.lines.touch(Line { kind: LineKind::Frame, index: pfn }, access, who, &rig.costs)
    };
    let mut overlapping = rig();
    let whole = cost(&mut overlapping, FRAME, Access::Read);
    assert!(cost(&mut overlapping, FRAME + 1000, Access::Read) < whole, "under way with the first");
    let mut parted = rig();
    assert_eq!(cost(&mut parted, FRAME, Access::Read), whole);
    assert_eq!(cost(&mut parted, FRAME + 1000, Access::Atomic), whole);
    assert_eq!(cost(&mut parted, FRAME + 2000, Access::Read), whole);
}
