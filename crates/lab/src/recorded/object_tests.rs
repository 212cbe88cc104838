//! Recordings with slab events made by hand, and what becomes of them.

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};
use trace::{Event, EventKind, Gfp, NameId, SlabPages, SwitchState};

use crate::recorded::{Action, BlockId, Builder, HostCosts, NamedTask, ObjectCache, ObjectId, Recorded};

const WORKER: u32 = 0;
const CHILD: u32 = 1;
const IDLE: u32 = 2;
const BASE: u64 = 0xffff_8880_0000_0000;

/// Events at a time on a CPU by a task.
fn build(events: &[(u64, u16, u32, EventKind)]) -> Recorded {
    let event =
        |&(time, cpu, task, kind)| Event { time: Nanos(time), cpu: Cpu(cpu), task: TaskId(task), kind };
    let events: Vec<Event> = events.iter().map(event).collect();
    let tasks = vec![NamedTask::inside("worker"), NamedTask::inside("child"), NamedTask::outside("swapper")];
    let names = vec![String::new(), "dentry".into(), "filp".into()];
    let pages = SlabPages::of_events(&events);
    let mut builder = Builder::new("test", tasks, HostCosts::NONE).with_slabs(names, pages);
    for event in &events {
        builder.event(event);
    }
    builder.finish()
}

fn get(object: u64, cache: u32) -> EventKind {
    let (gfp, node) = (Gfp::KERNEL, -1);
    EventKind::SlabAlloc { object, cache: NameId(cache), requested: 192, allocated: 192, gfp, node }
}

fn put(object: u64) -> EventKind {
    EventKind::SlabFree { object, cache: NameId::NONE }
}

fn away(next: u32) -> EventKind {
    EventKind::Switch { next: TaskId(next), state: SwitchState::Sleeping }
}

fn actions(workload: &Recorded, task: usize) -> Vec<(u32, Action)> {
    workload.tasks[task].ops.iter().map(|op| (op.own_ns, op.action)).collect()
}

fn taken(object: u32, cache: u16) -> Action {
    Action::AllocObject { object: ObjectId(object), cache }
}

fn freed(object: u32) -> Action {
    Action::FreeObject(ObjectId(object))
}

#[test]
fn objects_are_taken_and_freed_where_and_when_they_were() {
    let workload = build(&[
        (100, 0, WORKER, get(0x1000, 1)),
        (150, 0, WORKER, get(0x2000, 0)),
        (300, 0, WORKER, put(0x1000)),
        (400, 1, CHILD, put(0x2000)),
    ]);
    assert_eq!(actions(&workload, 0), [(0, taken(0, 0)), (50, taken(1, 1)), (150, freed(0))]);
    assert_eq!(actions(&workload, 1), [(0, freed(1))], "another task frees what the first one got");
    let names: Vec<String> = workload.caches.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["dentry", "kmalloc-192"]);
    assert!(matches!(workload.caches[1], ObjectCache::Kmalloc(_)));
    assert_eq!((workload.objects, workload.operations), (2, 4));
    assert!(workload.omissions.by_name().is_empty(), "{:?}", workload.omissions);
}

#[test]
fn slabs_make_their_own_pages() {
    let pfn = 0x20_0000;
    let gfp = Gfp::KERNEL | Gfp::COMP;
    let (order, migratetype) = (Order::ZERO, MigrateType::Unmovable);
    let page = EventKind::PageAlloc { pfn: Pfn(pfn), order, migratetype, gfp };
    let other = EventKind::PageAlloc { pfn: Pfn(7), order, migratetype, gfp };
    let at = BASE + (u64::from(pfn) << 12);
    let workload = build(&[
        (100, 0, WORKER, other),
        (200, 0, WORKER, page),
        (900, 0, WORKER, get(at + 192, 1)),
        (1_000, 0, WORKER, put(at + 192)),
        (1_100, 0, WORKER, EventKind::PageFree { pfn: Pfn(pfn), order }),
        (1_200, 0, WORKER, EventKind::PageFree { pfn: Pfn(7), order }),
    ]);
    let free = Action::Free { first: 0, count: 1 };
    let alloc = Action::Alloc { block: BlockId(0), kind: 0 };
    let expected = [(0, alloc), (100, taken(0, 0)), (100, freed(0)), (100, free)];
    assert_eq!(actions(&workload, 0), expected, "the time in which the slab was made is not the task's");
    assert_eq!(workload.omissions.page_events_of_slabs, 2);
    assert_eq!(workload.omissions.frees_without_allocation, 0);
}

#[test]
fn a_task_that_is_away_frees_on_its_cpu() {
    let workload = build(&[
        (0, 1, WORKER, get(0x1000, 1)),
        (100, 1, WORKER, get(0x2000, 1)),
        (200, 1, WORKER, away(IDLE)),
        (500, 1, IDLE, put(0x1000)),
        (600, 0, IDLE, put(0x2000)),
        (900, 1, IDLE, away(WORKER)),
        (950, 1, WORKER, get(0x3000, 1)),
    ]);
    let expected = [
        (0, taken(0, 0)),
        (100, taken(1, 0)),
        (100, Action::Run),
        (0, Action::Sleep(300)),
        (0, freed(0)),
        (0, Action::Sleep(400)),
        (50, taken(2, 0)),
    ];
    assert_eq!(actions(&workload, 0), expected);
    assert!(workload.tasks[1].outsiders, "what another CPU frees is another task's");
    assert_eq!(actions(&workload, 1), [(0, freed(1))]);
}

#[test]
fn a_task_that_runs_elsewhere_leaves_its_objects_to_others() {
    let workload = build(&[
        (0, 1, WORKER, get(0x1000, 1)),
        (10, 0, WORKER, get(0x2000, 1)),
        (20, 1, IDLE, put(0x1000)),
        (30, 0, IDLE, put(0x2000)),
    ]);
    assert_eq!(actions(&workload, 1), [(0, freed(0)), (0, Action::Sleep(10)), (0, freed(1))]);
}

#[test]
fn an_object_that_is_handed_out_again_was_freed_before() {
    let workload = build(&[
        (0, 0, WORKER, get(0x1000, 1)),
        (10, 0, WORKER, get(0x1000, 1)),
        (20, 1, CHILD, get(0x1000, 1)),
        (30, 1, IDLE, get(0x1000, 1)),
        (40, 1, CHILD, put(0x1000)),
    ]);
    let child = [(0, freed(1)), (0, taken(2, 0)), (20, Action::Run)];
    assert_eq!(actions(&workload, 0), [(0, taken(0, 0)), (10, freed(0)), (0, taken(1, 0))]);
    assert_eq!(actions(&workload, 1), child);
    assert_eq!(actions(&workload, 2), [(0, freed(2))]);
    assert_eq!(workload.omissions.implied_object_frees, 3);
    assert_eq!(workload.omissions.object_frees_without_allocation, 1);
}

#[test]
fn what_is_no_slab_object_is_left_to_page_events() {
    let large = EventKind::SlabAlloc {
        object: 0x8000,
        cache: NameId::NONE,
        requested: 10_000,
        allocated: 16_384,
        gfp: Gfp::KERNEL,
        node: -1,
    };
    let workload = build(&[
        (0, 0, WORKER, large),
        (1, 0, WORKER, put(0x8000)),
        (2, 0, WORKER, put(0)),
        (3, 0, WORKER, get(0, 1)),
    ]);
    assert_eq!(workload.operations, 0);
    let names: Vec<String> = workload.omissions.by_name().into_keys().collect();
    assert_eq!(names, ["failed_when_recorded"]);
}

#[test]
fn unknown_objects_and_names_are_counted() {
    let nameless = EventKind::SlabAlloc {
        object: 0x1000,
        cache: NameId(77),
        requested: 40,
        allocated: 40,
        gfp: Gfp::KERNEL,
        node: -1,
    };
    let workload =
        build(&[(0, 0, WORKER, put(0x5000)), (1, 0, WORKER, nameless), (2, 0, WORKER, put(0x1000))]);
    assert_eq!(actions(&workload, 0), [(1, taken(0, 0)), (1, freed(0))]);
    let names: Vec<String> = workload.omissions.by_name().into_keys().collect();
    assert_eq!(names, ["object_frees_without_allocation", "objects_of_unnamed_caches"]);
}
