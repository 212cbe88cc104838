//! Daemons at work: a run in which nobody needs one, and what each brings about.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::{DirtyPages, FileKind, MapSpec, Placement, Touch};
use mm::{Knob, Machine, Nanos, Node, Order, Pfn, Policy, Request, Urgency};
use sim::{Measurements, Profile, Sim, SimOptions, TaskSpec};

use super::{start, start_working};
use crate::stage::{GroupSetup, Setup, Stage};

const SECOND: u64 = 1_000_000_000;

fn stage(policy: &Policy, knobs: &[(Knob, u64)]) -> (Sim, Rc<Stage>) {
    let profile = Profile::load("kvm-genoa-2c").unwrap();
    let sim = Sim::new(&profile, SimOptions::default());
    let stage = Stage::new(
        &sim,
        &Setup {
            profile: &profile,
            policy,
            knobs,
            built: &[],
            groups: GroupSetup::default(),
            cpus: &[],
            seed: 1,
        },
    )
    .unwrap();
    (sim, Rc::new(stage))
}

/// A stage with all daemons, and default rules.
fn with_daemons(knobs: &[(Knob, u64)]) -> (Sim, Rc<Stage>) {
    let (sim, stage) = stage(&Policy::default(), knobs);
    start(&sim, &stage);
    (sim, stage)
}

/// Two tasks that take pages and give them back; with and without whoever else `daemons` starts.
fn measured(daemons: fn(&Sim, &Rc<Stage>)) -> (Measurements, Nanos) {
    let (mut sim, stage) = stage(&Policy::default(), &[]);
    daemons(&sim, &stage);
    for number in 0..2 {
        let stage = Rc::clone(&stage);
        sim.spawn(TaskSpec::new(format!("task/{number}")), move || {
            for _ in 0..2000 {
                let pages: Vec<_> =
                    (0..50).map(|_| stage.mm.alloc(Request::USER).expect("memory for 100 pages")).collect();
                for page in pages {
                    stage.mm.free(page, Order::ZERO).expect("it was allocated above");
                }
                stage.machine().sleep(Nanos(1_000_000));
            }
        });
    }
    let end = sim.run(None).unwrap().now;
    let mut measured = sim.measurements();
    // Who is there and never waits is not noticed.
    measured.tasks.retain(|task| task.waited > Nanos(0));
    (measured, end)
}

#[test]
fn who_writes_to_no_file_and_needs_no_huge_page_does_not_notice_daemons_for_that() {
    let without = measured(start_working);
    assert_eq!(measured(start), without);
    assert!(without.1 > Nanos(2_000_000_000), "{:?}", without.1);
}

/// When what a task wrote was no longer dirty and on the disk, in ms; 100 s if it never was.
fn clean_after(knobs: &[(Knob, u64)], pages: u32) -> u64 {
    clean_where_set_later(knobs, &[], pages)
}

/// The same where some are set otherwise after 20 s.
fn clean_where_set_later(knobs: &[(Knob, u64)], later: &[(Knob, u64)], pages: u32) -> u64 {
    let (mut sim, stage) = with_daemons(knobs);
    stage.disk.set_speed(100);
    let (set, clock, later) = (Rc::clone(&stage), sim.machine(), later.to_vec());
    sim.spawn(TaskSpec::new("setter"), move || {
        for (knob, value) in later {
            clock.sleep(Nanos(20 * SECOND));
            set.mm.set_knob(knob, value).unwrap();
        }
    });
    let (seen, machine) = (Rc::clone(&stage), sim.machine());
    let clean = Rc::new(Cell::new(0));
    let at = Rc::clone(&clean);
    sim.spawn(TaskSpec::new("writer"), move || {
        let file = seen.mm.files().new_file(FileKind::Disk);
        for page in 0..pages {
            seen.mm.files().write_file(&file, page, Placement::default()).expect("memory");
        }
        assert_ne!(seen.mm.files().dirty_pages(), DirtyPages::default());
        let is_over = || machine.now() >= Nanos(100 * SECOND);
        while seen.mm.files().dirty_pages() != DirtyPages::default() && !is_over() {
            machine.sleep(Nanos(1_000_000));
        }
        at.set(machine.now().0 / 1_000_000);
        seen.mm.files().drop_file(&file);
    });
    sim.run(None).unwrap();
    stage.mm.views().check().unwrap();
    clean.get()
}

#[test]
fn what_is_dirty_for_half_a_minute_is_written() {
    // 2000 pages take 82 ms; the flusher looks every 5 s.
    let ms = clean_after(&[], 2000);
    assert!((30_000..35_100).contains(&ms), "{ms} ms");
}

#[test]
fn how_long_something_may_be_dirty_is_set() {
    let after = |look: u64, expire: u64| {
        clean_after(&[(Knob::DirtyWritebackCentisecs, look), (Knob::DirtyExpireCentisecs, expire)], 2000)
    };
    let [as_often_as_by_default, oftener, never] = [after(500, 200), after(50, 200), after(0, 200)];
    assert!((5_000..5_200).contains(&as_often_as_by_default), "{as_often_as_by_default} ms");
    assert!((2_000..2_700).contains(&oftener), "{oftener} ms");
    assert_eq!(never, 100_000);
    let look = |value| [(Knob::DirtyWritebackCentisecs, value)];
    let late = clean_where_set_later(&[look(0)[0], (Knob::DirtyExpireCentisecs, 200)], &look(50), 2000);
    assert!((20_000..25_600).contains(&late), "{late} ms");
}

#[test]
fn what_is_too_much_is_written_at_once() {
    // Nothing may be dirty: writers wait for the disk.
    let ms = clean_after(&[(Knob::DirtyBackgroundRatio, 0)], 2000);
    assert!((82..1000).contains(&ms), "{ms} ms");
}

/// All that could be a huge page is taken while a task touches its memory, and given back a while later.
#[test]
fn a_huge_page_comes_a_minute_after_none_was_to_be_had() {
    let (mut sim, stage) = with_daemons(&[]);
    let came = Rc::new(Cell::new(0));
    let (seen, at) = (Rc::clone(&stage), Rc::clone(&came));
    sim.spawn(TaskSpec::new("task"), move || {
        let mm = &seen.mm;
        let request = Request { urgency: Urgency::Atomic, ..Request::USER }.of_order(Order::PAGEBLOCK);
        let mut taken: Vec<Pfn> = std::iter::from_fn(|| mm.alloc(request).ok()).collect();
        // One that all but a page of is free is none any more.
        let broken = taken.pop().expect("memory");
        mm.pages().split(broken, Order::PAGEBLOCK).unwrap();
        (1..PAGEBLOCK_PAGES).for_each(|page| mm.free(broken.add(page), Order::ZERO).unwrap());
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
        mm.spaces().touch_page(&space, start, Touch::Write).unwrap();
        assert_eq!((space.resident_pages(), space.huge_pages()), (1, 0));
        seen.machine().sleep(Nanos(15 * SECOND));
        for pfn in taken {
            mm.free(pfn, Order::PAGEBLOCK).unwrap();
        }
        while space.huge_pages() == 0 && seen.machine().now() < Nanos(200 * SECOND) {
            seen.machine().sleep(Nanos(SECOND));
        }
        at.set(seen.machine().now().0 / SECOND);
        mm.spaces().exit(&space);
        mm.free(broken, Order::ZERO).unwrap();
    });
    sim.run(None).unwrap();
    stage.mm.views().check().unwrap();
    assert_eq!(stage.mm.views().counters().get("thp_collapse_alloc_failed"), 1);
    // When it was woken the page was on its way still; 10 s later there was no huge page, a minute after that there was.
    assert!((70..73).contains(&came.get()), "{} s", came.get());
}

/// How much of free memory is in pieces, every 250 ms for 4 s, after a program has given back three pages of four of most
/// of memory.
fn scores(policy: &str, proactiveness: u64) -> Vec<u32> {
    let policy = Policy::parse(policy).unwrap();
    let mut knobs = vec![(Knob::MinFreeKbytes, 1024)];
    // Kernels before 5.9 have no such knob, and no such daemon.
    if policy.check_knob(Knob::CompactionProactiveness, proactiveness).is_ok() {
        knobs.push((Knob::CompactionProactiveness, proactiveness));
    }
    let (mut sim, stage) = stage(&policy, &knobs);
    start(&sim, &stage);
    let scores = Rc::new(RefCell::new(vec![]));
    let (seen, noted) = (Rc::clone(&stage), Rc::clone(&scores));
    sim.spawn(TaskSpec::new("program"), move || {
        let mm = &seen.mm;
        let space = mm.spaces().new_space();
        // What is left over is taken in whole blocks.
        let request = Request { urgency: Urgency::Never, ..Request::USER };
        let pages = 200 * PAGEBLOCK_PAGES;
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
        mm.spaces().populate(&space, start, pages, Touch::Write).unwrap();
        let blocks = std::iter::from_fn(|| mm.alloc(request.of_order(Order::PAGEBLOCK)).ok());
        let blocks: Vec<Pfn> = blocks.collect();
        for page in (0..pages).step_by(4) {
            mm.spaces().munmap(&space, start.add(page), 3);
        }
        for _ in 0..16 {
            seen.machine().sleep(Nanos(250_000_000));
            noted.borrow_mut().push(mm.compaction().fragmentation_score(Node(0)));
        }
        for block in blocks {
            mm.free(block, Order::PAGEBLOCK).unwrap();
        }
        mm.spaces().exit(&space);
    });
    sim.run(None).unwrap();
    stage.mm.views().check().unwrap();
    stage.mm.spaces().check_vm().unwrap();
    scores.take()
}

#[test]
fn memory_in_pieces_is_put_together_by_the_daemon() {
    let without = scores("linux-6.18", 0);
    assert!(without.iter().all(|score| *score > 80), "{without:?}");
    // From 60 percent down to 50 of each zone.
    let with = scores("linux-6.18", 50);
    assert!(with[0] > 80 && with[15] <= 60, "{with:?}");
    let before = scores("linux-5.8", 50);
    assert!(before.iter().all(|score| *score > 80), "not before 5.9: {before:?}");
}
