//! Faults on files: what was in memory, and what came for them.

use mm::TaskId;
use mm::vm::{Touch, Vpn};
use trace::{EventKind, MapFlags, NameId, SwitchState};

use super::steps::{Call, Doing, FileRange, Program};
use super::tests::{
    CHILD, HEAP, READ, RW, SHELL, WORLD, doings, fault, map, map_file, program, program_of_threads,
};

/// Where the file is mapped, from its page 4 on.
const AT: u64 = 0x7f00_0000_0000;

fn came(first: u32, pages: u32) -> EventKind {
    EventKind::FileAdd { file: NameId(2), first, pages }
}

fn goes(next: u32, state: SwitchState) -> EventKind {
    EventKind::Switch { next: TaskId(next), state }
}

/// What a program does that maps 64 pages of a file and reads page 4 + `page` of it, with these events after that.
fn reads(page: u64, then: &[(u64, u32, EventKind)]) -> Program {
    let mut events = vec![
        (0, SHELL, EventKind::Exec),
        (1_000, SHELL, map_file(AT, 64, 1, MapFlags::READ)),
        (3_000, SHELL, fault(AT + page * 0x1000, READ)),
    ];
    events.extend(then);
    program(&events)
}

/// Whether each of a task's steps from the third on is a touch.
fn are_touches(program: &Program) -> Vec<bool> {
    let is_touch = |doing: &Doing| matches!(doing, Doing::Touches { .. });
    doings(&program.tasks[0])[2..].iter().map(is_touch).collect()
}

#[test]
fn a_page_that_comes_for_a_fault_was_not_there_and_comes_before_the_touch() {
    // It is waited for: from 3,500 to 90,000.
    let made = reads(
        20,
        &[
            (3_200, SHELL, came(24, 1)),
            (3_500, SHELL, goes(WORLD, SwitchState::Blocked)),
            (90_000, WORLD, EventKind::Waking { task: TaskId(SHELL) }),
            (91_000, WORLD, goes(SHELL, SwitchState::Runnable)),
            (95_000, SHELL, EventKind::Exit),
        ],
    );
    assert!(made.files[0].before.is_empty(), "neither it nor its neighbours: {:?}", made.files[0].before);
    let filled =
        made.calls.iter().position(|call| *call == Call::Fill(FileRange { file: 0, first: 24, pages: 1 }));
    let steps = doings(&made.tasks[0]);
    assert_eq!(steps[2], Doing::Calls(filled.expect("it came") as u32));
    assert!(matches!(steps[3], Doing::Sleeps(86_500)), "{steps:?}");
    assert_eq!(are_touches(&made), [false, false, true, false]);
    assert_eq!(made.counted.faults, 1);
}

#[test]
fn a_page_that_does_not_come_was_there_and_is_touched_before_all_else() {
    let sleeps = (3_500, SHELL, goes(WORLD, SwitchState::Sleeping));
    let wakes = (90_000, WORLD, EventKind::Waking { task: TaskId(SHELL) });
    let runs = (91_000, WORLD, goes(SHELL, SwitchState::Runnable));
    // Another page is read ahead, on its time.
    let other = (3_200, SHELL, came(60, 4));
    let made = reads(20, &[other, sleeps, wakes, runs, (95_000, SHELL, EventKind::Exit)]);
    assert_eq!(made.files[0].before, [(20, 16)], "page 24, and what its fault maps around it");
    assert_eq!(are_touches(&made), [false, true, false, false], "what is read ahead, the touch, the sleep");
    let made = reads(20, &[(4_000, SHELL, fault(AT + 0x2_8000, READ))]);
    assert_eq!(made.files[0].before, [(20, 32)]);
    assert_eq!(are_touches(&made), [true, true], "the second when the recording ends");
}

#[test]
fn what_the_kernel_tries_again_comes_before_its_touch_too() {
    const KERNELS: u32 = 0;
    let again = fault(AT + 0x1_4000, KERNELS);
    let made = program(&[
        (0, SHELL, EventKind::Exec),
        (1_000, SHELL, map_file(AT, 64, 1, MapFlags::READ)),
        (3_000, SHELL, again),
        (3_300, SHELL, again),
        (3_500, SHELL, came(20, 8)),
        (9_000, SHELL, EventKind::Exit),
    ]);
    assert_eq!((made.counted.faults, made.files[0].before.len()), (1, 0));
    assert_eq!(are_touches(&made), [false, true, false]);
}

#[test]
fn the_same_address_mapped_anew_is_another_fault() {
    // A read() into fresh memory, twice.
    let gone = EventKind::Unmap { address: HEAP, pages: 1, took_ns: 0 };
    let round = |time| {
        [(time, SHELL, map(HEAP, 1, RW)), (time + 100, SHELL, fault(HEAP, 2)), (time + 900, SHELL, gone)]
    };
    let events = [vec![(0, SHELL, EventKind::Exec)], round(1_000).into(), round(3_000).into()].concat();
    assert_eq!(program(&events).counted.faults, 2);
}

#[test]
fn who_wakes_another_has_made_its_touch() {
    let sleeps = |next| goes(next, SwitchState::Sleeping);
    let made = program_of_threads(&[
        (0, SHELL, EventKind::Exec),
        (1_000, SHELL, map_file(AT, 64, 1, MapFlags::READ)),
        (2_000, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0x100, took_ns: 0 }),
        (2_100, SHELL, goes(CHILD, SwitchState::Runnable)),
        (2_500, CHILD, fault(AT, READ)),
        (2_600, CHILD, sleeps(SHELL)),
        (3_000, SHELL, fault(AT + 0x1_4000, READ)),
        (3_500, SHELL, EventKind::Waking { task: TaskId(CHILD) }),
        (9_000, SHELL, EventKind::Exit),
    ]);
    let owner = doings(&made.tasks[0]);
    let place = |is_it: fn(&Doing) -> bool| owner.iter().position(is_it).expect("it is there");
    let touched = place(|doing| matches!(doing, Doing::Touches { touch: Touch::Read, page: Vpn(_), .. }));
    assert!(touched < place(|doing| matches!(doing, Doing::Signals(_))), "{owner:?}");
}
