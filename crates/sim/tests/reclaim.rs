//! Memory running low in simulated time: kswapd beside the tasks that need memory, a disk that takes its time, tasks that
//! are killed while they wait. Everything ends, and the same way each time.

use std::cell::Cell;
use std::rc::Rc;

use mm::vm::{FileKind, MapSpec, Placement, Touch};
use mm::{
    AllocError, Counters, Daemon, Knob, Knobs, LockClass, Machine, Mm, Nanos, Node, Policy, Request, Span,
    TaskId,
};
use sim::{Measurements, Profile, Sim, SimMachine, SimOptions, TaskSpec};

type Memory = Mm<SimMachine>;

/// A machine of the profile's CPUs with a few MiB in each zone, kswapds, and whoever writes dirty pages.
fn machine(policy: &str, swap: u32) -> (Sim, Rc<Memory>) {
    let profile = Profile::load("xeon-8260").unwrap();
    let mut topology = profile.topology();
    for zone in topology.nodes.iter_mut().flat_map(|node| &mut node.zones) {
        zone.spanned = zone.spanned.min(8192);
        zone.present = zone.spanned;
        zone.managed = zone.spanned;
    }
    let knobs = Knobs::default();
    for (knob, value) in
        [(Knob::TransparentHugepage, 0), (Knob::MinFreeKbytes, 1024), (Knob::OvercommitMemory, 1)]
    {
        knobs.set(knob, value).unwrap();
    }
    let sim = Sim::new(&profile, SimOptions::default());
    let mm = Rc::new(Mm::new(sim.machine(), topology, Policy::parse(policy).unwrap(), knobs).unwrap());
    mm.spaces().set_swap(swap);
    for node in (0..mm.topology().nodes.len()).map(|node| Node(node as u16)) {
        let mm = Rc::clone(&mm);
        let body = move || loop {
            mm.machine().block(Nanos(u64::MAX));
            mm.reclaim().kswapd(node);
        };
        sim.spawn_daemon(Daemon::Kswapd(node), TaskSpec::new(format!("kswapd{}", node.0)), body);
    }
    (sim, mm)
}

/// A disk that writes 32 pages a millisecond, when somebody asks.
fn with_disk(sim: &mut Sim, mm: &Rc<Memory>) {
    let mm = Rc::clone(mm);
    let body = move || loop {
        mm.machine().block(Nanos(u64::MAX));
        loop {
            let pages = mm.files().take_dirty(32);
            if pages.is_empty() {
                break;
            }
            mm.machine().block(Nanos(1_000_000));
            mm.files().written(&pages);
        }
    };
    sim.spawn_daemon(Daemon::Flusher, TaskSpec::new("flusher"), body);
}

/// Six tasks, each so much later than the one before: two read files, two write some, two have programs that do not fit.
fn all_at_once(policy: &str, apart: Nanos) -> (Measurements, Counters) {
    let (mut sim, mm) = machine(policy, 100_000);
    with_disk(&mut sim, &mm);
    // Nobody writes before reclaim asks for it.
    mm.set_knob(Knob::DirtyRatio, 100).unwrap();
    mm.set_knob(Knob::DirtyBackgroundRatio, 100).unwrap();
    for number in 0..6u32 {
        let mm = Rc::clone(&mm);
        let body = move || {
            let file = mm.files().new_file(FileKind::Disk);
            let space = mm.spaces().new_space();
            let start = mm.spaces().mmap(&space, MapSpec::anonymous(12_000)).unwrap();
            for page in 0..12_000 {
                match number % 3 {
                    0 => drop(mm.files().read_file(&file, page, Placement::default()).unwrap()),
                    1 => drop(mm.files().write_file(&file, page, Placement::default()).unwrap()),
                    _ => drop(mm.spaces().touch_page(&space, start.add(page), Touch::Write).unwrap()),
                }
            }
            mm.spaces().exit(&space);
            mm.files().drop_file(&file);
        };
        sim.spawn(TaskSpec::new(format!("task/{number}")).at(Nanos(u64::from(number) * apart.0)), body);
    }
    sim.run(None).unwrap();
    mm.lru().lru_drain_all();
    mm.views().check().unwrap();
    mm.spaces().check_vm().unwrap();
    // Pages that the disk has in hand are its own still.
    let in_hand = mm.files().dirty_pages().writeback;
    assert_eq!((mm.views().memory_use().held() - in_hand, mm.spaces().swap_pages().0), (0, 0), "{policy}");
    (sim.measurements(), mm.views().counters())
}

fn sum(counters: &Counters, name: &str) -> u64 {
    counters.0.iter().filter(|(key, _)| key.starts_with(name)).map(|(_, value)| value).sum()
}

#[test]
fn kswapd_and_requests_share_the_work() {
    for policy in ["linux-4.4", "linux-6.18", "freehold"] {
        let (measured, counters) = all_at_once(policy, Nanos(777));
        let (kswapd, direct) = (sum(&counters, "pgsteal_kswapd"), sum(&counters, "pgsteal_direct"));
        assert!(kswapd > 1000 && direct > 1000, "{policy}: {kswapd} and {direct}");
        // 72,000 pages are wanted where there are some 28,000; who is done gives back what is left of his.
        assert!(kswapd + direct > 12_000, "{policy}: what does not fit is freed: {kswapd} and {direct}");
        assert_eq!(counters.get("freehold_oom"), 0, "{policy}");
        // Whether reclaim comes upon any page while the disk has it hangs on a few hundred ns of when tasks start.
        let rotated = |apart| all_at_once(policy, Nanos(apart)).1.get("pgrotated");
        assert!(
            [777, 1777, 3777].into_iter().map(rotated).sum::<u64>() > 0,
            "{policy}: pages that were written go first"
        );
        assert!(measured.class(LockClass::Lru).acquired > 1000, "{policy}");
        assert!(measured.span(Span::DirectReclaim).latency.count() > 0, "{policy}");
        let again = all_at_once(policy, Nanos(777));
        assert_eq!((again.0.simulated, again.1), (measured.simulated, counters), "{policy}");
    }
}

#[test]
fn a_task_that_is_killed_while_it_waits_leaves_with_an_error() {
    // Nobody writes the dirty pages, so the request waits for as long as it may.
    let (mut sim, mm) = machine("linux-6.18", 0);
    let (victim, ended) = (Rc::new(Cell::new(TaskId(0))), Rc::new(Cell::new(None)));
    {
        let (mm, victim, ended) = (Rc::clone(&mm), Rc::clone(&victim), Rc::clone(&ended));
        sim.spawn(TaskSpec::new("victim"), move || {
            victim.set(mm.machine().task());
            mm.set_knob(Knob::DirtyRatio, 100).unwrap();
            let file = mm.files().new_file(FileKind::Disk);
            let mut page = 0;
            while mm.files().write_file(&file, page, Placement::default()).is_ok() {
                page += 1;
            }
            ended.set(Some((mm.alloc(Request::USER), mm.machine().now())));
            mm.pages().forget_task(victim.get());
            mm.files().drop_file(&file);
        });
    }
    {
        let mm = Rc::clone(&mm);
        sim.spawn(TaskSpec::new("killer").at(Nanos(100_000_000)), move || {
            mm.pages().kill(victim.get());
            mm.machine().unblock(victim.get());
        });
    }
    sim.run(None).unwrap();
    let (result, when) = ended.get().unwrap();
    assert_eq!(result, Err(AllocError::Killed));
    assert!(when.0 < 1_000_000_000, "{when:?}");
    mm.lru().lru_drain_all();
    mm.views().check().unwrap();
    assert_eq!(mm.views().memory_use().held(), 0);
}
