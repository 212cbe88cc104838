//! What becomes of events, through the builder's door.

use mm::vm::{Advice, HugePages, Protection, Reserve, Touch, Vpn};
use mm::{Cpu, Nanos, TaskId};
use trace::{Event, EventKind, MapFlags, NameId, PolicyMode, PresentKind, SwitchState, Task};

use super::build::Builder;
use super::steps::{Before, Begins, Call, Company, Doing, FileRange, MapCall, PageRange, Program, SignalId};
use super::{KernelCosts, SaidPolicy, TaskProgram, UsedPeriod, WhatIsThere};
use crate::recorded::TaskRef;

pub(super) const SHELL: u32 = 0;
pub(super) const CHILD: u32 = 1;
pub(super) const WORLD: u32 = 2;
pub(super) const HEAP: u64 = 0x5555_5560_0000;
pub(super) const RW: MapFlags = MapFlags(3);

/// 100 ns to record an event, 1 µs for a fault.
const COSTS: KernelCosts = KernelCosts {
    fault_ns: 1_000.0,
    clear_page_ns: 200.0,
    fill_page_ns: 300.0,
    populate_page_ns: 700.0,
    event_ns: 100.0,
    unmap_page_ns: 50.0,
    bit_ns: 40.0,
};

fn task(pid: u32, in_workload: bool) -> Task {
    Task { pid, tid: pid, name: format!("task-{pid}"), in_workload }
}

/// The program of these events, at these times, by these tasks.
pub(super) fn program(events: &[(u64, u32, EventKind)]) -> Program {
    made_of(vec![task(10, true), task(11, true), task(12, false)], events)
}

/// The same, where the first two tasks are threads of one process.
pub(super) fn program_of_threads(events: &[(u64, u32, EventKind)]) -> Program {
    let thread = Task { pid: 10, ..task(11, true) };
    made_of(vec![task(10, true), thread, task(12, false)], events)
}

fn made_of(tasks: Vec<Task>, events: &[(u64, u32, EventKind)]) -> Program {
    let names = ["", "8:1:7 /usr/bin/cc", "8:1:7", "0:1:3 /dev/zero (deleted)"].map(str::to_owned);
    let mut builder = Builder::new("made", tasks, names.to_vec(), COSTS);
    for &(time, task, kind) in events {
        builder.event(&Event { time: Nanos(time), cpu: Cpu(0), task: TaskId(task), kind });
    }
    builder.finish()
}

pub(super) fn map(address: u64, pages: u32, flags: MapFlags) -> EventKind {
    EventKind::Map { address, file: NameId::NONE, flags, pages, first: 0, took_ns: 0 }
}

pub(super) fn map_file(address: u64, pages: u32, file: u32, flags: MapFlags) -> EventKind {
    EventKind::Map { address, file: NameId(file), flags, pages, first: 4, took_ns: 0 }
}

pub(super) fn fault(address: u64, error_code: u32) -> EventKind {
    EventKind::Fault { address, ip: 0, error_code }
}

pub(super) const WRITE: u32 = 6;
pub(super) const READ: u32 = 4;

pub(super) fn doings(task: &TaskProgram) -> Vec<Doing> {
    task.steps.iter().map(|step| step.doing).collect()
}

/// The heap's page in the replay: its window is the first that is met.
pub(super) fn heap_page() -> Vpn {
    Vpn((4 << 24) + ((HEAP >> 12) % (1 << 24)) as u32)
}

#[test]
fn a_program_maps_and_touches() {
    let made = program(&[
        (1_000, SHELL, EventKind::Exec),
        (2_000, SHELL, map(HEAP, 4, RW)),
        (3_000, SHELL, fault(HEAP + 0x1000, WRITE)),
        (9_000, SHELL, fault(HEAP, READ)),
        (9_500, SHELL, EventKind::Exit),
    ]);
    let range = PageRange { start: heap_page(), pages: 4 };
    let mapped = MapCall::own(range);
    assert_eq!(made.calls, [Call::Exec, Call::Map(mapped), Call::Exit]);
    let steps = &made.tasks[0].steps;
    assert_eq!(
        doings(&made.tasks[0])[..4],
        [
            Doing::Calls(0),
            Doing::Calls(1),
            Doing::Touches { page: heap_page().add(1), touch: Touch::Write, company: Company::Alone },
            Doing::Touches { page: heap_page(), touch: Touch::Read, company: Company::Alone },
        ]
    );
    assert_eq!(steps[3].own_ns, 5_000, "6000 less the fault, of which recording is a part");
    assert_eq!(made.tasks[0].begins, Begins::InSpace(0));
    assert_eq!((made.counted.faults, made.omissions.len()), (2, 0));
}

/// A thread that touches 40 pages, then its process exits on the time of the other, which is woken for that.
fn exits(builder: &mut Builder) {
    let touch = |page: u64| (3_000 + page * 3_000, SHELL, fault(HEAP + page * 0x1000, WRITE));
    let ends = |next| EventKind::Switch { next: TaskId(next), state: SwitchState::Dead };
    let mut events = vec![
        (1_000, SHELL, EventKind::Exec),
        (1_500, SHELL, map(HEAP, 40, RW)),
        (2_000, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0x100, took_ns: 300 }),
    ];
    events.extend((0..40).map(touch));
    events.extend([
        (130_000, SHELL, EventKind::Exit),
        (131_000, SHELL, ends(CHILD)),
        (132_000, CHILD, EventKind::Exit),
        (190_000, CHILD, ends(2)),
    ]);
    for (time, task, kind) in events {
        builder.event(&Event { time: Nanos(time), cpu: Cpu(0), task: TaskId(task), kind });
    }
}

#[test]
fn what_is_freed_at_the_end_is_the_kernels_time_and_the_task_has_left_when_it_wakes_others() {
    let thread = Task { pid: 10, ..task(11, true) };
    let made = |kernel: &str| {
        let mut builder = Builder::new(
            "made",
            vec![task(10, true), thread.clone(), task(12, false)],
            vec![String::new()],
            COSTS,
        );
        builder.program.surroundings.kernel = kernel.into();
        exits(&mut builder);
        builder.finish()
    };
    let own = |program: &Program, task: usize| -> u64 {
        program.tasks[task].steps.iter().map(|step| u64::from(step.own_ns)).sum()
    };
    let new = made("6.18.44");
    assert_eq!(new.calls.iter().filter(|call| **call == Call::Exit).count(), 2);
    assert_eq!(own(&new, 1), 1_000, "until it says so; the 58 us thereafter are the kernel's");
    // Before 6.16 all of it was over by then: 40 pages take 2 us of what lies before.
    let old = made("6.1.0");
    assert_eq!((own(&old, 1), own(&old, 0)), (0, own(&new, 0)));
}

#[test]
fn what_a_call_took_is_not_the_tasks_own() {
    let slow = EventKind::Unmap { address: HEAP, pages: 4, took_ns: 4_000 };
    let made = program(&[(1_000, SHELL, EventKind::Exec), (8_000, SHELL, slow)]);
    assert_eq!(made.tasks[0].steps[1].own_ns, 2_900, "7000 less 4000 and the event of exec");
}

#[test]
fn a_child_has_a_copy_and_a_thread_the_same() {
    let start = |flags| {
        program(&[
            (1_000, SHELL, EventKind::Exec),
            (1_500, SHELL, map(HEAP, 4, RW)),
            (2_000, SHELL, EventKind::Fork { child: TaskId(CHILD), flags, took_ns: 300 }),
            (3_000, CHILD, EventKind::Unmap { address: HEAP, pages: 4, took_ns: 0 }),
            (4_000, SHELL, fault(HEAP, WRITE)),
        ])
    };
    let forked = start(0);
    assert_eq!(forked.tasks[1].begins, Begins::AsFork);
    assert_eq!(forked.forked_ns.into_iter().collect::<Vec<_>>(), [(1, 300)]);
    let starts = forked.tasks[0].steps.iter().find(|step| step.doing == Doing::Starts(TaskRef(1)));
    assert_eq!(starts.unwrap().own_ns, 100, "500 less what the fork took and the event before it");
    assert!(doings(&forked.tasks[0]).contains(&Doing::Starts(TaskRef(1))));
    assert!(forked.omissions.is_empty(), "{:?}", forked.omissions);
    let thread = start(0x100);
    assert_eq!(thread.tasks[1].begins, Begins::AsThread);
    assert_eq!(thread.omissions["faults_outside_of_mappings"], 1, "the child unmapped it for both");
}

#[test]
fn what_a_thread_takes_away_stays_between_the_touches_of_the_others() {
    let gives_back = |address, pages| EventKind::Advise { address, pages, advice: 4, nodes: 0, took_ns: 0 };
    let made = program_of_threads(&[
        (0, SHELL, EventKind::Exec),
        (1_000, SHELL, map(HEAP, 8, RW)),
        (2_000, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0x100, took_ns: 0 }),
        (3_000, SHELL, fault(HEAP, WRITE)),
        (4_000, SHELL, fault(HEAP + 0x4000, WRITE)),
        (5_000, CHILD, gives_back(HEAP, 4)),
        (6_000, SHELL, fault(HEAP, WRITE)),
        (7_000, SHELL, fault(HEAP + 0x1000, WRITE)),
        (8_000, CHILD, gives_back(HEAP + 0x6000, 1)),
    ]);
    let touch =
        |pages| Doing::Touches { page: heap_page().add(pages), touch: Touch::Write, company: Company::Alone };
    let [owner, other] = &made.tasks[..] else { panic!("{} tasks", made.tasks.len()) };
    assert_eq!(doings(owner)[3..8], [touch(0), touch(4), Doing::Awaits(SignalId(1)), touch(0), touch(1)]);
    assert_eq!(owner.awaited, [(3, SignalId(0))]);
    assert_eq!(doings(other)[..3], [Doing::Awaits(SignalId(0)), Doing::Calls(2), Doing::Calls(3)]);
    assert_eq!(other.awaited, [(1, SignalId(1))]);
}

#[test]
fn who_is_woken_by_a_peer_waits_for_it_and_who_is_not_sleeps() {
    let sleep = |next| EventKind::Switch { next: TaskId(next), state: SwitchState::Sleeping };
    let wake = EventKind::Waking { task: TaskId(SHELL) };
    let made = program(&[
        (0, SHELL, EventKind::Exec),
        (10, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0, took_ns: 0 }),
        (1_000, SHELL, sleep(CHILD)),
        (4_000, CHILD, wake),
        (5_000, CHILD, sleep(SHELL)),
        (6_000, SHELL, sleep(WORLD)),
        (9_000, WORLD, wake),
        (9_500, WORLD, sleep(SHELL)),
        (9_900, SHELL, map(HEAP, 1, RW)),
    ]);
    let waits: Vec<Doing> = doings(&made.tasks[0])
        .into_iter()
        .filter(|doing| matches!(doing, Doing::Awaits(_) | Doing::Sleeps(_)))
        .collect();
    assert_eq!(waits, [Doing::Awaits(SignalId(0)), Doing::Sleeps(3_000)], "the wait for a CPU is neither");
    assert_eq!(doings(&made.tasks[1])[0], Doing::Signals(SignalId(0)));
    assert_eq!(made.tasks[1].steps[0].own_ns, 3_000, "what it waits for takes as long");
}

#[test]
fn what_a_call_cuts_off_a_file_goes_after_it() {
    let gone = |first, pages| EventKind::FileDrop { file: NameId(3), first, pages };
    let made = program(&[
        (0, SHELL, EventKind::Exec),
        (100, SHELL, map_file(0x7f00_1000_0000, 8, 3, RW | MapFlags::SHARED)),
        (1_000, SHELL, EventKind::FileWrite { file: NameId(3), first: 6, pages: 2 }),
        (5_300, SHELL, gone(4, 1)),
        (5_400, SHELL, gone(5, 2)),
        (5_500, SHELL, gone(11, 1)),
        (6_000, SHELL, EventKind::Unmap { address: 0x7f00_1000_0000, pages: 8, took_ns: 900 }),
        (7_000, SHELL, gone(7, 1)),
        (9_000, SHELL, EventKind::Exit),
    ]);
    let file = |first, pages| FileRange { file: 0, first, pages };
    let calls = &made.calls[2..];
    assert_eq!(calls[0], Call::Write(file(6, 2)));
    assert!(matches!(calls[1], Call::Unmap(_)), "{calls:?}");
    assert_eq!(
        calls[2..],
        [Call::Drop(file(4, 3)), Call::Drop(file(11, 1)), Call::Drop(file(7, 1)), Call::Exit]
    );
    let own: Vec<u32> = made.tasks[0].steps[2..].iter().map(|step| step.own_ns).collect();
    // Two pages were written, 600 ns of the kernel's; of the call's time none is the program's own; the last cut is no call's.
    assert_eq!(own, [900 - 600 - 100, 4_100 - 100, 0, 0, 3_000 - 100, 0], "the last is the exit");
}

#[test]
fn pages_of_files_that_a_call_brings_in_were_there_unless_they_came() {
    let library = |flags| map_file(0x7f00_0000_0000, 40, 1, flags);
    let pin = |held| EventKind::Pin { address: 0x7f00_0000_2000, held, pages: 3, took_ns: 0 };
    let came = EventKind::FileAdd { file: NameId(2), first: 7, pages: 1 };
    let before = |events: &[(u64, u32, EventKind)]| program(events).files[0].before.clone();
    let exec = (0, SHELL, EventKind::Exec);
    assert!(before(&[exec, (9, SHELL, library(MapFlags::READ)), (20, SHELL, pin(2))]).is_empty());
    let pinned = [exec, (9, SHELL, library(MapFlags::READ)), (10, SHELL, came), (20, SHELL, pin(1))];
    assert_eq!(before(&pinned), [(6, 1), (8, 1)]);
    assert_eq!(before(&[exec, (9, SHELL, library(MapFlags::READ | MapFlags::POPULATE))]), [(4, 40)]);
}

#[test]
fn files_that_were_there_before_are_known() {
    let read = |first, pages| EventKind::FileRead { file: NameId(2), first, pages };
    let made = program(&[
        (0, SHELL, EventKind::Exec),
        (10, SHELL, EventKind::FileAdd { file: NameId(2), first: 0, pages: 2 }),
        (20, SHELL, read(0, 3)),
        (30, SHELL, map_file(0x7f00_0000_0000, 40, 1, MapFlags::READ)),
        (40, SHELL, fault(0x7f00_0000_0000 + 0x1_3000, READ)),
        (50, SHELL, map_file(0x7f00_1000_0000, 4, 3, RW | MapFlags::SHARED)),
    ]);
    assert_eq!(made.files.len(), 2);
    assert_eq!(made.files[0].name, "8:1:7 /usr/bin/cc");
    assert_eq!(made.files[0].before, [(2, 1), (20, 16)], "page 23 and what a fault maps around it");
    assert_eq!(made.files[1].kind, mm::vm::FileKind::Memory);
    let ranges: Vec<&Call> = made.calls[1..3].iter().collect();
    let file = |first, pages| FileRange { file: 0, first, pages };
    assert_eq!(ranges, [&Call::Fill(file(0, 2)), &Call::Read(file(0, 3))]);
}

#[test]
fn what_was_there_before_comes_before_all_steps() {
    let before = RW | MapFlags::BEFORE;
    let made = program(&[
        (100, SHELL, map(HEAP, 8, before)),
        (100, SHELL, EventKind::Present { address: HEAP, kind: PresentKind::Anonymous, pages: 3, zeros: 0 }),
        (900, SHELL, fault(HEAP + 0x4000, WRITE)),
    ]);
    let touched = PageRange { start: heap_page(), pages: 3 };
    assert!(
        matches!(made.before[0][..], [Before::Mapped(_), Before::Touched(range, Touch::Write)] if range == touched)
    );
    assert_eq!(made.tasks[0].begins, Begins::InSpace(0));
    assert_eq!(made.tasks[0].steps.len(), 1);
}

#[test]
fn what_cannot_be_carried_over_is_counted() {
    let made = program(&[
        (100, SHELL, fault(HEAP, WRITE)),
        (200, SHELL, EventKind::Unmap { address: HEAP, pages: 1, took_ns: 0 }),
        (300, SHELL, EventKind::Exec),
        (400, SHELL, fault(0x1000, WRITE)),
        (500, SHELL, fault(0xffff_8000_0000_0000, WRITE)),
        (600, SHELL, EventKind::Lost { count: 7 }),
    ]);
    let omitted: Vec<(&str, u64)> = made.omissions.into_iter().collect();
    let wanted = [
        ("calls_before_exec", 1),
        ("faults_before_exec", 1),
        ("faults_outside_of_mappings", 1),
        ("lost_events", 7),
    ];
    assert_eq!(omitted, wanted);
}

/// V8 maps each part of its heap at an address by chance.
#[test]
fn a_heap_all_over_the_address_space_is_carried_over() {
    const PART: u32 = 64;
    let part = |nth: u64| nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17 & !0x3_ffff;
    let mut events = vec![(10, SHELL, EventKind::Exec)];
    for nth in 0..100_000 {
        let (time, address) = (100 * (nth + 1), part(nth));
        events.push((time, SHELL, map(address, PART, RW)));
        events.push((time + 50, SHELL, fault(address + 0x5000, WRITE)));
        if nth >= 20_000 {
            let gone = EventKind::Unmap { address: part(nth - 20_000), pages: PART, took_ns: 0 };
            events.push((time + 80, SHELL, gone));
        }
    }
    let made = program(&events);
    assert_eq!(made.omissions, std::collections::BTreeMap::new());
    assert_eq!((made.counted.faults, made.calls.len()), (100_000, 1 + 100_000 + 80_000));
}

/// A sanitizer maps 14 TiB for its shadow, and says what it is to be before it touches some of it.
#[test]
fn what_there_is_no_room_for_is_mapped_where_it_is_touched() {
    const SHADOW: u64 = 0x0200_8fff_7000;
    const PAGES: u32 = 14 << 28;
    let advise = |advice| EventKind::Advise { address: SHADOW, advice, pages: PAGES, nodes: 0, took_ns: 0 };
    let made = program(&[
        (10, SHELL, EventKind::Exec),
        (20, SHELL, map(SHADOW, PAGES, MapFlags::READ | MapFlags::NORESERVE)),
        (30, SHELL, advise(15)),
        (40, SHELL, EventKind::Protect { address: SHADOW, flags: RW, pages: PAGES, took_ns: 0 }),
        (50, SHELL, fault(SHADOW + (5 << 40), WRITE)),
        (60, SHELL, fault(SHADOW + (5 << 40) + 0x1000, WRITE)),
        (70, SHELL, advise(4)),
    ]);
    assert_eq!((made.counted.faults, made.omissions.len()), (2, 0));
    let [Call::Exec, Call::Map(map), Call::Advise { range, advice }, Call::Advise { range: gone, .. }] =
        made.calls[..]
    else {
        panic!("{:?}", made.calls)
    };
    assert_eq!((map.protection, map.range.pages), (Protection::ReadWrite, 1 << 24), "a window");
    assert_eq!(map.reserve, Reserve::Never);
    assert_eq!((range, advice), (map.range, Advice::Huge(HugePages::Never)));
    assert_eq!(gone, map.range, "the rest has no page");
}

#[test]
fn all_that_may_be_touched_is_pinned_and_let_go() {
    let pin = |held| EventKind::Pin { address: 0, held, pages: u32::MAX, took_ns: 0 };
    let made = program(&[
        (10, SHELL, EventKind::Exec),
        (20, SHELL, map(HEAP, 4, RW)),
        (30, SHELL, map(HEAP + 0x10_0000, 4, MapFlags(0))),
        (40, SHELL, map(HEAP + 0x20_0000, 2, MapFlags::READ)),
        (50, SHELL, pin(1)),
        (60, SHELL, pin(0)),
    ]);
    let range = |first, pages| PageRange { start: heap_page().add(first), pages };
    let pinned = [(0, 4), (0x200, 2)].map(|(first, pages)| range(first, pages));
    let wanted = [Call::Pin(pinned[0]), Call::Pin(pinned[1]), Call::Unpin(pinned[0]), Call::Unpin(pinned[1])];
    assert_eq!(made.calls[4..], wanted);
    assert_eq!(made.omissions.len(), 0);
}

/// Page events are there to compare with: without them the program is the same.
#[test]
fn page_events_are_only_counted() {
    let page = |pfn| EventKind::PageAlloc {
        pfn: mm::Pfn(pfn),
        order: mm::Order::ZERO,
        migratetype: mm::MigrateType::Movable,
        gfp: trace::Gfp::HIGHUSER_MOVABLE,
    };
    let events = [
        (1_000, SHELL, EventKind::Exec),
        (2_000, SHELL, map(HEAP, 4, RW)),
        (3_000, SHELL, fault(HEAP, WRITE)),
        (3_400, SHELL, page(7)),
        (9_000, SHELL, fault(HEAP + 0x1000, WRITE)),
        (9_300, SHELL, page(8)),
        (9_900, SHELL, EventKind::PageFree { pfn: mm::Pfn(7), order: mm::Order::ZERO }),
        (9_950, SHELL, EventKind::Exit),
    ];
    let is_page_event =
        |kind: &EventKind| matches!(kind, EventKind::PageAlloc { .. } | EventKind::PageFree { .. });
    let stripped: Vec<_> = events.iter().filter(|(_, _, kind)| !is_page_event(kind)).copied().collect();
    let (with, without) = (program(&events), program(&stripped));
    assert_eq!((with.counted.pages_allocated, without.counted.pages_allocated), (2, 0));
    assert_eq!(Program { counted: without.counted, ..with }, without);
}

/// Two threads fault at one page: both get one where the second began before the first can have mapped its own.
#[test]
fn how_far_faults_are_apart_says_whether_both_got_a_page() {
    let companies = |gap: u64| {
        let made = program(&[
            (1_000, SHELL, EventKind::Exec),
            (1_500, SHELL, map(HEAP, 4, RW)),
            (2_000, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0x100, took_ns: 0 }),
            (5_000, SHELL, fault(HEAP, WRITE)),
            (5_000 + gap, CHILD, fault(HEAP, WRITE)),
        ]);
        let company = |doing: Doing| match doing {
            Doing::Touches { company, .. } => Some(company),
            _ => None,
        };
        made.tasks.iter().flat_map(doings).filter_map(company).collect::<Vec<_>>()
    };
    assert_eq!(companies(100), [Company::AtOnce; 2]);
    assert_eq!(companies(900), [Company::Close; 2], "of 1000 that a fault takes");
}

#[test]
fn who_goes_on_without_a_wake_that_was_seen_has_slept() {
    let made = program(&[
        (1_000, SHELL, EventKind::Exec),
        (2_000, SHELL, map(HEAP, 4, RW)),
        (3_000, SHELL, EventKind::Switch { next: TaskId(WORLD), state: SwitchState::Sleeping }),
        (903_000, SHELL, fault(HEAP, WRITE)),
        (904_500, SHELL, EventKind::Switch { next: TaskId(WORLD), state: SwitchState::Sleeping }),
        (1_904_500, SHELL, EventKind::Switch { next: TaskId(WORLD), state: SwitchState::Sleeping }),
        (1_905_500, WORLD, EventKind::Switch { next: TaskId(SHELL), state: SwitchState::Runnable }),
        (1_906_000, SHELL, EventKind::Exit),
    ]);
    let sleeps = |doing: &Doing| match doing {
        Doing::Sleeps(ns) => Some(*ns),
        _ => None,
    };
    assert_eq!(
        doings(&made.tasks[0]).iter().filter_map(sleeps).collect::<Vec<_>>(),
        [900_000, 1_000_000, 1_000]
    );
    assert_eq!(made.omissions["wakes_not_seen"], 2);
    let own: u32 = made.tasks[0].steps.iter().map(|step| step.own_ns).sum();
    assert!(own < 4_000, "no sleep is computing: {own}");
}

#[test]
fn who_was_there_before_is_asleep_until_it_does_something() {
    let before = MapFlags(RW.0 | MapFlags::BEFORE.0);
    let made = program(&[
        (1_000, SHELL, map(HEAP, 4, before)),
        (1_000, SHELL, EventKind::Advise { address: HEAP, pages: 4, advice: 14, nodes: 0, took_ns: 0 }),
        (
            1_000,
            SHELL,
            EventKind::Present { address: HEAP, kind: PresentKind::Anonymous, pages: 2, zeros: 0 },
        ),
        (51_000, WORLD, EventKind::Waking { task: TaskId(SHELL) }),
        (52_000, WORLD, EventKind::Switch { next: TaskId(SHELL), state: SwitchState::Runnable }),
        (53_000, SHELL, fault(HEAP + 0x2000, WRITE)),
    ]);
    let steps = &made.tasks[0].steps;
    assert_eq!(steps[0].own_ns, 0);
    assert_eq!(steps[1].doing, Doing::Sleeps(50_000), "{steps:?}");
    assert!(matches!(steps[2].doing, Doing::Touches { .. }));
    assert_eq!(made.counted.wall_ns, 53_000);
}

#[test]
fn what_the_kernel_tries_again_is_one_fault() {
    let kernels = 0;
    let made = program(&[
        (1_000, SHELL, EventKind::Exec),
        (2_000, SHELL, map(HEAP, 4, RW)),
        (3_000, SHELL, fault(HEAP, kernels)),
        (3_100, SHELL, fault(HEAP, kernels)),
        (3_200, SHELL, fault(HEAP, kernels)),
        (4_000, SHELL, fault(HEAP + 0x1000, kernels)),
        (5_000, SHELL, fault(HEAP + 0x2000, READ)),
        (5_100, SHELL, fault(HEAP + 0x2000, READ)),
    ]);
    let touched =
        doings(&made.tasks[0]).iter().filter(|doing| matches!(doing, Doing::Touches { .. })).count();
    assert_eq!((touched, made.counted.faults), (4, 4), "a program's own faults are as many as they are");
}

fn advise(advice: u32, nodes: u64, pages: u32) -> EventKind {
    let address = if pages == u32::MAX { 0 } else { HEAP };
    EventKind::Advise { address, advice, pages, nodes, took_ns: 0 }
}

#[test]
fn what_is_said_of_memory_becomes_a_call_or_is_counted_by_name() {
    let of = |kind: EventKind| {
        let events =
            [(1_000, SHELL, EventKind::Exec), (2_000, SHELL, map(HEAP, 8, RW)), (3_000, SHELL, kind)];
        let made = program(&events);
        (made.calls.last().copied().unwrap(), made.omissions)
    };
    let range = PageRange { start: heap_page(), pages: 8 };
    let policy = SaidPolicy { mode: PolicyMode::Interleave, nodes: 3 };
    let there = WhatIsThere::Moves;
    let all = u32::MAX;
    for (kind, call) in [
        (advise(20, 0, 8), Call::Advise { range, advice: Advice::Cold }),
        (advise(21, 0, 8), Call::Advise { range, advice: Advice::PageOut }),
        (advise(23, 0, 8), Call::Advise { range, advice: Advice::PopulateWrite }),
        (advise(25, 0, 8), Call::Advise { range, advice: Advice::Collapse }),
        (advise(0x2_0000 + 1103, 3, 8), Call::Bind { range, policy, there }),
        (advise(1203, 3, all), Call::SetPolicy(policy)),
        (advise(1400, 1 | 2 << 32, all), Call::MoveNodes { from: 1, to: 2 }),
        (EventKind::Pin { address: HEAP, held: 0, pages: 8, took_ns: 0 }, Call::Unpin(range)),
    ] {
        let (made, omissions) = of(kind);
        assert_eq!((made, omissions.len()), (call, 0));
    }
    for (kind, name) in [
        (advise(77, 0, 8), "advice_not_simulated"),
        (advise(0x8_0000 + 1102, 0, 8), "policies_whose_nodes_were_not_seen"),
        (advise(0x20_0000 + 1102, 1, 8), "policies_of_relative_nodes"),
        (advise(1300, 1, 8), "home_nodes_of_policies"),
        (advise(0x80_0000 + 1400, 1, all), "moves_of_another_process"),
        (
            EventKind::Advise { address: 0, advice: 1500, pages: 3, nodes: 0, took_ns: 0 },
            "moves_of_single_pages",
        ),
        (EventKind::Pin { address: HEAP, held: 2, pages: 8, took_ns: 0 }, "ranges_locked_once_touched"),
    ] {
        let (made, omissions) = of(kind);
        assert!(matches!(made, Call::Map(_)), "{made:?}");
        assert_eq!(omissions, [(name, 1)].into());
    }
    assert_eq!(of(advise(16, 0, 8)).1.len(), 0, "core dumps are of no interest");
}

#[test]
fn looks_by_page_divide_a_long_time_into_periods() {
    let looked = |us: (u32, u32)| EventKind::Present {
        address: 0,
        kind: PresentKind::Looked,
        pages: us.0,
        zeros: us.1,
    };
    let used = |address, bits| EventKind::Present { address, kind: PresentKind::Used, pages: bits, zeros: 0 };
    let accessed =
        EventKind::Accessed { address: HEAP, accessed: 1, pages: 8, cpu_ns: 500, resident: 2, huge: 0 };
    let made = program(&[
        (0, WORLD, EventKind::Switch { next: TaskId(SHELL), state: SwitchState::Sleeping }),
        (1_000, SHELL, EventKind::Exec),
        (2_000, SHELL, map(HEAP, 8, RW)),
        (3_000, SHELL, fault(HEAP, WRITE)),
        (50_000, SHELL, looked((0, 0))),
        (60_000, SHELL, looked((10, 10))),
        (60_000, SHELL, used(HEAP, 0b101)),
        (60_000, SHELL, accessed),
        (90_000, SHELL, looked((40, 40))),
        (90_000, SHELL, used(HEAP + 0x3000, 1)),
        (90_000, SHELL, looked((0, 0))),
        (95_000, SHELL, looked((5, 4))),
        (95_000, SHELL, used(HEAP, 1)),
        (99_000, SHELL, fault(HEAP + 0x1000, WRITE)),
    ]);
    let TaskProgram { steps, walked, .. } = &made.tasks[0];
    let own: Vec<u64> = walked.iter().map(|from| made.used[from.look as usize].own_ns).collect();
    assert_eq!(walked.iter().map(|from| from.step).collect::<Vec<u32>>(), [0, 4, 5], "{steps:?}");
    // Less 40 ns for each bit that came back.
    assert_eq!(own[1..], [39_880, 8_960], "what no event came in is divided, too");
    let [first, period, last] = &made.used[..] else { panic!("{:?}", made.used) };
    assert!(first.looks.is_empty());
    let pages = |look: usize, of: &UsedPeriod| of.looks[look].pages.clone();
    let range = |nth, pages| PageRange { start: heap_page().add(nth), pages };
    assert_eq!(pages(0, period), [range(0, 1), range(2, 1)]);
    assert_eq!(pages(1, period), [range(3, 1)]);
    assert_eq!((period.cpu_ns(), last.cpu_ns(), pages(0, last)), (40_000, 4_000, vec![range(0, 1)]));
    assert!(made.walked.iter().all(|walked| *walked == made.walked[1]), "what the one moment has found");
}
