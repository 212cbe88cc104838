//! Inspection of a small recording written by hand.

mod common;

use std::io::Cursor;

use common::begin;
use freehold_trace::{
    Event, EventKind, Gfp, Inspection, Meta, NameId, Reader, RecordingEnd, SwitchState, Writer, inspect,
};
use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};

const MOVABLE: MigrateType = MigrateType::Movable;

fn inspected(events: &[(u64, u16, u32, EventKind)]) -> Inspection {
    let mut writer = begin();
    for &(time, cpu, task, kind) in events {
        writer.push(&Event { time: Nanos(time), cpu: Cpu(cpu), task: TaskId(task), kind }).unwrap();
    }
    let (bytes, _) = writer.finish(RecordingEnd { left_out: 5, ..RecordingEnd::default() }).unwrap();
    inspect(&mut Reader::new(Cursor::new(bytes)).unwrap()).unwrap()
}

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

fn locked(pfn: u32) -> EventKind {
    EventKind::ZoneLocked { pfn: Pfn(pfn), order: Order::ZERO, migratetype: MOVABLE, percpu_refill: true }
}

fn alloc(pfn: u32, of: u8) -> EventKind {
    EventKind::PageAlloc { pfn: Pfn(pfn), order: order(of), migratetype: MOVABLE, gfp: Gfp::KERNEL }
}

fn free(pfn: u32, of: u8) -> EventKind {
    EventKind::PageFree { pfn: Pfn(pfn), order: order(of) }
}

#[test]
fn an_allocation_parts_two_refills_on_its_cpu_alone() {
    let inspection = inspected(&[
        (1, 0, 1, locked(1)),
        (2, 0, 1, locked(2)),
        (3, 1, 2, alloc(9, 0)),
        (4, 0, 1, locked(3)),
        (5, 0, 1, alloc(1, 0)),
        (6, 0, 1, locked(4)),
        (7, 1, 2, locked(5)),
        (8, 0, 1, locked(6)),
    ]);
    let refills = &inspection.refills;
    assert_eq!(refills.len(), 1);
    assert_eq!((refills[0].order, refills[0].migratetype), (Some(0), Some("Movable")));
    assert_eq!((refills[0].count, refills[0].blocks), (3, 6));
    assert_eq!(refills[0].sizes, [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn drains_are_runs_of_any_order() {
    let drain = |pfn, of| EventKind::PcpuDrain { pfn: Pfn(pfn), order: order(of), migratetype: MOVABLE };
    let inspection = inspected(&[
        (1, 0, 0, drain(1, 0)),
        (2, 0, 0, drain(8, 3)),
        (3, 0, 0, free(1, 0)),
        (4, 0, 0, drain(2, 0)),
    ]);
    assert_eq!(inspection.drains.len(), 1);
    assert_eq!(inspection.drains[0].sizes, [(1, 1), (2, 1)]);
}

#[test]
fn pages_are_followed_piece_by_piece() {
    let inspection = inspected(&[
        (1, 0, 0, alloc(512, 9)),
        (2, 0, 0, free(512, 0)),
        (3, 0, 0, free(513, 0)),
        (4, 0, 0, free(77, 1)),
        (5, 0, 1, alloc(514, 1)),
        (6, 0, 1, EventKind::Lost { count: 12 }),
    ]);
    let pages = inspection.pages;
    assert_eq!((pages.allocated, pages.freed, pages.held, pages.peak), (514, 4, 510, 512));
    assert_eq!((pages.unmatched_frees, pages.allocated_twice), (1, 2));
    let losses = inspection.losses;
    assert_eq!((losses.lost, losses.occasions, losses.left_out), (12, 1, 5));
    let first = &inspection.tasks[0];
    assert_eq!(
        (first.tid, first.allocs, first.alloc_pages, first.frees, first.free_pages),
        (0, 1, 512, 3, 4)
    );
}

#[test]
fn running_times_come_from_switches() {
    let switch = |next, state| EventKind::Switch { next: TaskId(next), state };
    let inspection = inspected(&[
        (100, 0, 0, switch(3, SwitchState::Runnable)),
        (150, 1, 0, switch(4, SwitchState::Runnable)),
        (400, 0, 3, switch(0, SwitchState::Sleeping)),
        (900, 0, 0, switch(3, SwitchState::Runnable)),
        (950, 0, 3, switch(0, SwitchState::Dead)),
    ]);
    let task = inspection.tasks.iter().find(|task| task.tid == 30).unwrap();
    assert_eq!((task.runs, task.run_ns), (2, 350));
    let kinds: Vec<_> = inspection.kinds.iter().map(|row| (row.kind, row.count)).collect();
    assert_eq!(kinds, [("switch", 5)]);
    assert_eq!((inspection.first_ns, inspection.last_ns), (100, 950));
}

#[test]
fn slab_objects_are_followed_by_cache() {
    let tracepoints = vec!["kmem:mm_page_alloc".into(), "kmem:kmem_cache_alloc".into()];
    let meta = Meta { tracepoints, ..common::meta() };
    let mut writer = Writer::new(vec![], &meta).unwrap();
    writer.task(TaskId(0), &common::task(0)).unwrap();
    writer.name("filp").unwrap();
    let base = 0xffff_8880_0000_0000;
    let page = base + (0x100 << 12);
    let got = |object: u64, cache: u32, allocated: u32| {
        let (requested, gfp) = (allocated, Gfp::KERNEL);
        EventKind::SlabAlloc { object, cache: NameId(cache), requested, allocated, gfp, node: -1 }
    };
    let freed = |object: u64| EventKind::SlabFree { object, cache: NameId::NONE };
    let events = [
        EventKind::PageAlloc {
            pfn: Pfn(0x100),
            order: order(0),
            migratetype: MigrateType::Unmovable,
            gfp: Gfp::KERNEL,
        },
        got(page, 1, 192),
        got(page + 192, 1, 192),
        got(base + 64, 0, 64),
        got(base + (0x200 << 12), 0, 16_384),
        got(page, 1, 192),
        freed(page),
        freed(page + 192),
        freed(1),
        free(0x100, 0),
    ];
    for (time, kind) in events.into_iter().enumerate() {
        writer.push(&Event { time: Nanos(time as u64), cpu: Cpu(0), task: TaskId(0), kind }).unwrap();
    }
    let (bytes, _) = writer.finish(RecordingEnd::default()).unwrap();
    let inspection = inspect(&mut Reader::new(Cursor::new(bytes)).unwrap()).unwrap();
    let caches: Vec<_> = inspection
        .caches
        .iter()
        .map(|cache| (cache.cache.as_str(), cache.object_bytes, cache.allocs, cache.frees, cache.peak))
        .collect();
    let pages = ("kmalloc of pages", 0, 1, 0, 1);
    assert_eq!(caches, [("filp", 192, 3, 2, 2), pages, ("kmalloc-64", 64, 1, 0, 1)]);
    let objects = inspection.objects;
    assert_eq!((objects.allocated, objects.freed, objects.held, objects.peak), (5, 2, 2, 4));
    assert_eq!((objects.unmatched_frees, objects.allocated_twice), (1, 1));
    assert_eq!((inspection.slab_pages.allocations, inspection.slab_pages.frees), (1, 1));
}
