//! What several tests need: arbitrary events and recordings of them.

#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod perf;

use freehold_trace::{
    Event, EventKind, Gfp, MapFlags, Meta, NameId, PresentKind, Reader, RecordingEnd, SwitchState, Task,
    Writer,
};
use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};
use proptest::prelude::*;

pub const CPUS: u16 = 5;
pub const TASKS: u32 = 7;
pub const NAMES: u32 = 4;

fn order() -> impl Strategy<Value = Order> {
    (0u8..=10).prop_map(|order| Order::new(order).unwrap())
}

fn migratetype() -> impl Strategy<Value = MigrateType> {
    (0u8..6).prop_map(|value| MigrateType::from_index(value).unwrap())
}

fn pfn() -> impl Strategy<Value = Pfn> {
    prop_oneof![any::<u32>(), 1000u32..1100].prop_map(Pfn)
}

fn page_kind() -> impl Strategy<Value = EventKind> {
    (0..6, pfn(), order(), migratetype(), any::<u32>()).prop_map(|(kind, pfn, order, migratetype, bits)| {
        let (gfp, percpu_refill) = (Gfp(bits), bits & 1 != 0);
        match kind {
            0 => EventKind::PageAlloc { pfn, order, migratetype, gfp },
            1 => EventKind::PageAllocFailed { order, migratetype, gfp },
            2 => EventKind::PageFree { pfn, order },
            3 => EventKind::PageFreeBatched { pfn },
            4 => EventKind::ZoneLocked { pfn, order, migratetype, percpu_refill },
            _ => EventKind::PcpuDrain { pfn, order, migratetype },
        }
    })
}

fn other_kind() -> impl Strategy<Value = EventKind> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<i16>());
    (0..10, numbers, 0..TASKS, 0..NAMES, 0u64..6).prop_map(|(kind, (a, b, c, d, node), task, name, state)| {
        let (task, cache) = (TaskId(task), NameId(name));
        let state = SwitchState::from_index(state).unwrap();
        match kind {
            0 => EventKind::Switch { next: task, state },
            1 => EventKind::Fork { child: task, flags: c, took_ns: c.rotate_left(7) },
            2 => EventKind::Exit,
            3 => EventKind::Fault { address: a, ip: b, error_code: c },
            4 => EventKind::SlabAlloc { object: a, cache, requested: c, allocated: d, gfp: Gfp(c), node },
            5 => EventKind::SlabFree { object: a, cache },
            6 => EventKind::ContentionBegin { lock: a, flags: c },
            7 => EventKind::ContentionEnd { lock: a, result: d as i32 },
            8 => EventKind::Mark { text: cache },
            _ => EventKind::Lost { count: a },
        }
    })
}

fn range_kind() -> impl Strategy<Value = EventKind> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>());
    (0..16, numbers, 0..TASKS, 0..NAMES, 0usize..7).prop_map(
        |(kind, (a, b, c, d, e), task, name, present)| {
            let (address, file, flags) = (a, NameId(name), MapFlags(e));
            let (pages, first) = (c, d);
            match kind {
                0 => EventKind::Map { address, file, flags, pages, first, took_ns: e },
                1 => EventKind::Unmap { address, pages, took_ns: d },
                2 => EventKind::Remap { from: a, to: b, old_pages: c, pages: d, took_ns: e },
                3 => EventKind::Protect { address, flags, pages, took_ns: d },
                4 => EventKind::Advise { address, advice: e, pages, nodes: b, took_ns: d },
                5 => EventKind::Pin { address, held: e, pages, took_ns: d },
                6 => EventKind::Exec,
                7 => EventKind::Waking { task: TaskId(task) },
                8 => EventKind::FileRead { file, first, pages },
                9 => EventKind::FileWrite { file, first, pages },
                13 => EventKind::FileDrop { file, first, pages },
                10 => EventKind::FileAdd { file, first, pages },
                11 => EventKind::Present { address, kind: PresentKind::ALL[present], pages, zeros: e },
                12 => EventKind::Cached { file, first, pages, cached: e },
                14 => EventKind::AccessedSince {
                    address,
                    accessed: e,
                    pages,
                    cpu_ns: d,
                    resident: first,
                    huge: e,
                },
                _ => EventKind::Accessed { address, accessed: e, pages, cpu_ns: d, resident: first, huge: e },
            }
        },
    )
}

pub fn event() -> impl Strategy<Value = Event> {
    let time = prop_oneof![0u64..1000, any::<u64>()];
    let kind = prop_oneof![2 => page_kind(), 1 => other_kind(), 1 => range_kind()];
    (time, 0..CPUS, 0..TASKS, kind).prop_map(|(time, cpu, task, kind)| Event {
        time: Nanos(time),
        cpu: Cpu(cpu),
        task: TaskId(task),
        kind,
    })
}

pub fn meta() -> Meta {
    Meta { source: "test".into(), cpus: u32::from(CPUS), ..Meta::default() }
}

pub fn task(number: u32) -> Task {
    Task { pid: number, tid: number * 10, name: format!("täsk {number}"), in_workload: number % 2 == 0 }
}

/// A recording of `events`, with a chunk boundary after every `chunk` of them.
pub fn recording(events: &[Event], chunk: usize) -> Vec<u8> {
    let mut writer = begin();
    for part in events.chunks(chunk) {
        for event in part {
            writer.push(event).unwrap();
        }
        writer.flush().unwrap();
    }
    writer.finish(RecordingEnd { end_ns: 7, ..RecordingEnd::default() }).unwrap().0
}

/// A writer that knows all tasks and names.
pub fn begin() -> Writer<Vec<u8>> {
    let mut writer = Writer::new(vec![], &meta()).unwrap();
    (0..TASKS).for_each(|number| writer.task(TaskId(number), &task(number)).unwrap());
    (1..NAMES).for_each(|number| writer.name(&format!("name {number}")).unwrap());
    writer
}

/// What a reader makes of `bytes`: whether it says that something is wrong, and the events that it gives.
pub fn read(bytes: &[u8]) -> (bool, Vec<Event>) {
    let Ok(mut reader) = Reader::new(std::io::Cursor::new(bytes)) else { return (true, vec![]) };
    let mut is_wrong = reader.damage().is_some();
    let mut events = vec![];
    match reader.events() {
        Ok(stream) => {
            for event in stream {
                match event {
                    Ok(event) => events.push(event),
                    Err(_) => is_wrong = true,
                }
            }
        }
        Err(_) => is_wrong = true,
    }
    (is_wrong, events)
}
