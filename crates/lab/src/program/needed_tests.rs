//! Pages that a call needs and that come in without an exception.

use mm::TaskId;
use mm::vm::{Advice, Touch};
use trace::EventKind;

use super::steps::{Call, Company, Doing, PageRange, SignalId};
use super::tests::{
    CHILD, HEAP, RW, SHELL, WRITE, doings, fault, heap_page, map, program, program_of_threads,
};

fn needed(first: u64, pages: u32) -> EventKind {
    let (address, advice) = (HEAP + first * 0x1000, EventKind::NEEDED_TO_WRITE);
    EventKind::Advise { address, advice, pages, nodes: 0, took_ns: 0 }
}

fn user_page(pfn: u32) -> EventKind {
    EventKind::PageAlloc {
        pfn: mm::Pfn(pfn),
        order: mm::Order::ZERO,
        migratetype: mm::MigrateType::Movable,
        gfp: trace::Gfp::HIGHUSER_MOVABLE,
    }
}

#[test]
fn what_a_call_needs_is_populated_and_what_that_took_is_the_kernels() {
    let own_after = |pages: u32| {
        let mut events = vec![
            (1_000, SHELL, EventKind::Exec),
            (2_000, SHELL, map(HEAP, 8, RW)),
            (3_000, SHELL, needed(1, 4)),
        ];
        // 700 ns each are the kernel's, of four at most; those after the next fault are that fault's.
        events.extend((0..pages).map(|page| (3_100 + u64::from(page) * 100, SHELL, user_page(page))));
        events.push((9_000, SHELL, fault(HEAP, WRITE)));
        events.push((9_100, SHELL, user_page(50)));
        events.push((15_000, SHELL, EventKind::Exit));
        let made = program(&events);
        let range = PageRange { start: heap_page().add(1), pages: 4 };
        assert!(made.calls.contains(&Call::Advise { range, advice: Advice::PopulateWrite }));
        assert_eq!(made.omissions.len(), 0);
        [3, 4].map(|step| made.tasks[0].steps[step].own_ns)
    };
    let [[none, fault_after], [two, _], [six, fault_after_six]] = [0, 2, 6].map(own_after);
    assert_eq!([none - two, none - six], [1_400, 2_800]);
    assert_eq!(fault_after, fault_after_six);
}

#[test]
fn pages_come_in_on_the_time_of_who_came_to_them_first() {
    let made = program_of_threads(&[
        (0, SHELL, EventKind::Exec),
        (1_000, SHELL, map(HEAP, 8, RW)),
        (2_000, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0x100, took_ns: 0 }),
        (3_000, SHELL, fault(HEAP, WRITE)),
        (5_000, CHILD, needed(0, 2)),
        (6_000, SHELL, fault(HEAP + 0x1000, WRITE)),
    ]);
    let touch =
        |page| Doing::Touches { page: heap_page().add(page), touch: Touch::Write, company: Company::Alone };
    let [owner, other] = &made.tasks[..] else { panic!("{} tasks", made.tasks.len()) };
    assert_eq!(doings(owner)[3..6], [touch(0), Doing::Awaits(SignalId(1)), touch(1)]);
    assert_eq!(doings(other)[..2], [Doing::Awaits(SignalId(0)), Doing::Calls(2)]);
}
