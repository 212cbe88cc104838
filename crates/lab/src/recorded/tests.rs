//! Recordings made by hand, and what becomes of them.

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};
use trace::{Event, EventKind, Gfp, SwitchState};

use crate::recorded::{Action, BlockId, Builder, HostCosts, NamedTask, Recorded};

const WORKER: TaskId = TaskId(0);
const CHILD: TaskId = TaskId(1);
const KSWAPD: TaskId = TaskId(2);

fn build(events: &[(u64, TaskId, EventKind)]) -> Recorded {
    let tasks = vec![NamedTask::inside("worker"), NamedTask::inside("child"), NamedTask::outside("kswapd0")];
    let mut builder = Builder::new("test", tasks, HostCosts::NONE);
    for &(time, task, kind) in events {
        builder.event(&Event { time: Nanos(time), cpu: Cpu(0), task, kind });
    }
    builder.finish()
}

fn alloc(pfn: u32) -> EventKind {
    let gfp = Gfp::HIGHUSER_MOVABLE;
    EventKind::PageAlloc { pfn: Pfn(pfn), order: Order::ZERO, migratetype: MigrateType::Movable, gfp }
}

fn free(pfn: u32) -> EventKind {
    EventKind::PageFree { pfn: Pfn(pfn), order: Order::ZERO }
}

fn actions(workload: &Recorded, task: usize) -> Vec<(u32, Action)> {
    workload.tasks[task].ops.iter().map(|op| (op.own_ns, op.action)).collect()
}

#[test]
fn operations_keep_their_order_and_own_time() {
    let workload = build(&[
        (100, WORKER, alloc(7)),
        (250, WORKER, alloc(8)),
        (1_000, WORKER, free(7)),
        (1_400, WORKER, free(8)),
    ]);
    let expected = [
        (0, Action::Alloc { block: BlockId(0), kind: 0 }),
        (150, Action::Alloc { block: BlockId(1), kind: 0 }),
        (1_150, Action::Free { first: 0, count: 1 }),
        (0, Action::Free { first: 1, count: 1 }),
    ];
    assert_eq!(actions(&workload, 0), expected);
    assert_eq!(workload.tasks[0].frees, [BlockId(0), BlockId(1)]);
    assert_eq!((workload.blocks, workload.operations, workload.recorded_events), (2, 4, 4));
}

#[test]
fn batched_frees_stay_together() {
    let mut events = vec![];
    for page in 0..40 {
        events.push((page, WORKER, alloc(page as u32)));
    }
    for page in 0..40 {
        events.push((100, WORKER, free(page)));
        if page == 30 || page == 39 {
            let batch = if page == 30 { 0..31 } else { 31..40 };
            events.extend(batch.map(|page| (100, WORKER, EventKind::PageFreeBatched { pfn: Pfn(page) })));
        }
    }
    let workload = build(&events);
    let frees: Vec<u8> = workload.tasks[0]
        .ops
        .iter()
        .filter_map(|op| if let Action::Free { count, .. } = op.action { Some(count) } else { None })
        .collect();
    assert_eq!(frees, [31, 9]);
}

#[test]
fn sleeps_are_kept_and_preemption_is_not() {
    let switch = |next, state| EventKind::Switch { next, state };
    let workload = build(&[
        (0, WORKER, alloc(1)),
        (500, WORKER, switch(KSWAPD, SwitchState::Sleeping)),
        (9_500, KSWAPD, switch(WORKER, SwitchState::Idle)),
        (9_600, WORKER, switch(KSWAPD, SwitchState::Runnable)),
        (20_000, KSWAPD, switch(WORKER, SwitchState::Idle)),
        (20_300, WORKER, free(1)),
    ]);
    let expected = [
        (0, Action::Alloc { block: BlockId(0), kind: 0 }),
        (500, Action::Run),
        (0, Action::Sleep(9_000)),
        (400, Action::Free { first: 0, count: 1 }),
    ];
    assert_eq!(actions(&workload, 0), expected);
}

#[test]
fn others_who_free_become_the_outsiders() {
    let workload = build(&[(0, WORKER, alloc(1)), (10, KSWAPD, free(1)), (20, KSWAPD, free(99))]);
    assert_eq!(workload.tasks.len(), 2);
    assert!(workload.tasks[1].outsiders);
    assert_eq!(workload.tasks[1].frees, [BlockId(0)]);
    assert_eq!(
        workload.omissions.frees_without_allocation, 0,
        "a stranger's free of a stranger's page is nothing"
    );
}

#[test]
fn what_cannot_be_carried_over_is_counted() {
    let lost = EventKind::Lost { count: 12 };
    let workload =
        build(&[(0, WORKER, free(5)), (1, WORKER, alloc(6)), (2, WORKER, alloc(6)), (3, WORKER, lost)]);
    assert_eq!(workload.omissions.frees_without_allocation, 1);
    assert_eq!(workload.omissions.implied_frees, 1);
    assert_eq!(workload.tasks[1].frees, [BlockId(0)], "somebody else gave the page back in between");
    assert_eq!(workload.omissions.lost_events, 12);
    let names: Vec<String> = workload.omissions.by_name().into_keys().collect();
    assert_eq!(names, ["frees_without_allocation", "implied_frees", "lost_events"]);
}

#[test]
fn a_child_begins_when_its_parent_forks() {
    let workload = build(&[
        (0, WORKER, alloc(1)),
        (10, WORKER, EventKind::Fork { child: CHILD, flags: 0, took_ns: 0 }),
        (50, CHILD, alloc(2)),
    ]);
    let child = super::TaskRef(1);
    assert_eq!(actions(&workload, 0)[1], (10, Action::Start(child)));
    assert!(workload.tasks[1].started_by_other && !workload.tasks[0].started_by_other);
    assert_eq!(workload.tasks[1].name, "child");
}

#[test]
fn an_order_9_block_may_come_back_in_pages() {
    let order = Order::PAGEBLOCK;
    let huge = EventKind::PageAlloc {
        pfn: Pfn(512),
        order,
        migratetype: MigrateType::Movable,
        gfp: Gfp::TRANSHUGE_LIGHT,
    };
    let workload = build(&[(0, WORKER, huge), (5, WORKER, free(513))]);
    let actions: Vec<Action> = workload.tasks[0].ops.iter().map(|op| op.action).collect();
    assert_eq!(actions[1], Action::Split { block: BlockId(0), parts: BlockId(1), order });
    assert_eq!(actions[2], Action::Free { first: 0, count: 1 });
    assert_eq!(workload.tasks[0].frees, [BlockId(2)]);
    assert_eq!(workload.blocks, 513);
}
