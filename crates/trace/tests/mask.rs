//! Masks: names and addresses go, what belongs together stays together.

mod common;

use std::collections::BTreeMap;
use std::io::Cursor;

use common::{event, recording};
use freehold_trace::{
    Event, EventKind, MapFlags, Mask, Meta, NameId, Reader, RecordingEnd, Task, Writer, ZoneSpan, inspect,
    mask,
};
use mm::{Order, Pfn, TaskId};
use proptest::collection::vec;
use proptest::prelude::*;

fn zones() -> Vec<ZoneSpan> {
    let zone = |name: &str, start_pfn, spanned| ZoneSpan {
        name: name.into(),
        start_pfn,
        spanned,
        ..ZoneSpan::default()
    };
    vec![zone("DMA", 1, 4095), zone("DMA32", 4096, 782_336), zone("Normal", 1 << 20, 5_000_100)]
}

fn masked_pfn(mask: &mut Mask, pfn: u32) -> u32 {
    let kind = EventKind::PageFree { pfn: Pfn(pfn), order: Order::ZERO };
    let event = Event { time: mm::Nanos(0), cpu: mm::Cpu(0), task: TaskId(0), kind };
    match mask.event(event).kind {
        EventKind::PageFree { pfn, .. } => pfn.0,
        other => panic!("a free became {other:?}"),
    }
}

#[test]
fn frames_change_places_within_their_zone_in_whole_blocks() {
    let zones = zones();
    let mut mask = Mask::with_key(&zones, [1, 2]);
    let mut moved = 0;
    let mut seen = BTreeMap::new();
    for zone in &zones {
        for pfn in (zone.start_pfn..zone.start_pfn + zone.spanned).step_by(509) {
            let masked = masked_pfn(&mut mask, pfn as u32);
            assert!(zone.contains(Pfn(masked)), "{pfn} of {} went to {masked}", zone.name);
            assert_eq!(masked % 1024, pfn as u32 % 1024);
            assert_eq!(seen.insert(masked, pfn), None, "two frames became {masked}");
            moved += u32::from(u64::from(masked) != pfn);
        }
    }
    assert!(moved as usize > seen.len() * 9 / 10, "{moved} of {} moved", seen.len());
    assert_eq!(masked_pfn(&mut mask, 5_000_000), masked_pfn(&mut Mask::with_key(&zones, [1, 2]), 5_000_000));
    assert_ne!(masked_pfn(&mut mask, 5_000_000), masked_pfn(&mut Mask::with_key(&zones, [1, 3]), 5_000_000));
}

proptest! {
    #[test]
    fn a_masked_recording_has_the_same_shape(events in vec(event(), 1..300)) {
        let bytes = recording(&events, 100);
        let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
        let (hidden, written) = mask(&mut reader, vec![]).unwrap();
        prop_assert_eq!(written.events, events.len() as u64);
        let mut hidden = Reader::new(Cursor::new(hidden)).unwrap();
        let (before, after) = (inspect(&mut reader).unwrap(), inspect(&mut hidden).unwrap());
        prop_assert!(after.masked);
        prop_assert_eq!(before.kinds, after.kinds);
        prop_assert_eq!(before.allocations, after.allocations);
        prop_assert_eq!(before.refills, after.refills);
        prop_assert_eq!(before.drains, after.drains);
        for (before, after) in events.iter().zip(hidden.events().unwrap()) {
            let after = after.unwrap();
            prop_assert_eq!((before.time, before.cpu, before.task), (after.time, after.cpu, after.task));
        }
    }
}

#[test]
fn names_numbers_and_the_command_are_gone() {
    let meta = Meta {
        command: vec!["secret".into(), "--password=x".into()],
        cpus: 2,
        kernel: "6.18".into(),
        ..Meta::default()
    };
    let mut writer = Writer::new(vec![], &meta).unwrap();
    let task = Task { pid: 4711, tid: 4712, name: "secret".into(), in_workload: true };
    writer.task(TaskId(0), &task).unwrap();
    let kind = EventKind::Fault { address: 0x7f12_3456_7890, ip: 0x4011_2233, error_code: 6 };
    let event = Event { time: mm::Nanos(1), cpu: mm::Cpu(0), task: TaskId(0), kind };
    writer.push(&event).unwrap();
    let (bytes, _) = writer.finish(RecordingEnd::default()).unwrap();
    let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
    let (hidden, _) = mask(&mut reader, vec![]).unwrap();
    let mut hidden = Reader::new(Cursor::new(hidden)).unwrap();
    assert!(hidden.meta().masked && hidden.meta().command.is_empty());
    assert_eq!(hidden.meta().kernel, "6.18");
    let expected = Task { pid: 1, tid: 2, name: "task-1".into(), in_workload: true };
    assert_eq!(hidden.task(TaskId(0)), &expected);
    let event = hidden.events().unwrap().next().unwrap().unwrap();
    let EventKind::Fault { address, ip, error_code } = event.kind else { panic!("{event:?}") };
    assert!(
        address != 0x7f12_3456_7890
            && address % (1 << 30) == 0x7f12_3456_7890 % (1 << 30)
            && ip != 0x4011_2233
    );
    assert_eq!(error_code, 6);
}

/// A recording of two maps side by side, a thread, and files under several names.
fn of_spaces() -> Vec<u8> {
    let settings = [
        ("/sys/fs/cgroup/memory/shop/till/memory.limit_in_bytes", "5"),
        ("/sys/fs/cgroup/memory/shop/memory.limit_in_bytes", "9"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/proc/cmdline", "secret"),
    ];
    let settings = settings.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let mut writer = Writer::new(vec![], &Meta { cpus: 1, settings, ..Meta::default() }).unwrap();
    for (id, (pid, tid)) in [(900, 901), (900, 900), (950, 950)].into_iter().enumerate() {
        let task = Task { pid, tid, name: "shop".into(), in_workload: true };
        writer.task(TaskId(id as u32), &task).unwrap();
    }
    for name in ["254:1:77", "254:1:78 /shop/customers", "254:1:77 /shop/till", "[vdso]", "dentry"] {
        writer.name(name).unwrap();
    }
    let map = |address, file| EventKind::Map {
        address,
        file: NameId(file),
        flags: MapFlags::READ,
        pages: 1 << 18,
        first: 3,
        took_ns: 5,
    };
    let kinds = [
        map(0x7f00_4020_1000, 3),
        map(0x7f00_8020_1000, 1),
        EventKind::Fault { address: 0x7f00_8020_1fff, ip: 1, error_code: 4 },
        map(0x40_0000, 2),
        map(0x50_0000, 4),
        EventKind::Pin { address: 0, held: 1, pages: u32::MAX, took_ns: 0 },
    ];
    for (time, kind) in kinds.into_iter().enumerate() {
        let time = mm::Nanos(time as u64);
        writer.push(&Event { time, cpu: mm::Cpu(0), task: TaskId(0), kind }).unwrap();
    }
    writer.finish(RecordingEnd::default()).unwrap().0
}

#[test]
fn address_spaces_keep_their_structure_and_lose_their_names() {
    let mut reader = Reader::new(Cursor::new(of_spaces())).unwrap();
    let (hidden, _) = mask(&mut reader, vec![]).unwrap();
    let mut hidden = Reader::new(Cursor::new(hidden)).unwrap();
    let names: Vec<&str> = hidden.names().iter().map(String::as_str).collect();
    assert_eq!(names, ["", "file-1", "file-2", "file-1", "[vdso]", "dentry"]);
    let numbers: Vec<(u32, u32)> = hidden.tasks().iter().map(|task| (task.pid, task.tid)).collect();
    assert_eq!(numbers, [(1, 2), (1, 1), (3, 3)]);
    let settings: Vec<&str> = hidden.meta().settings.keys().map(String::as_str).collect();
    let expected = [
        "/sys/fs/cgroup/memory/cgroup-1/cgroup-2/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/cgroup-1/memory.limit_in_bytes",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ];
    let mut settings = settings;
    settings.sort_unstable();
    assert_eq!(settings.len(), 3);
    assert_eq!(settings[2], expected[2]);
    assert!(
        settings[..2].iter().all(|path| path.starts_with("/sys/fs/cgroup/memory/cgroup-")),
        "{settings:?}"
    );
    let addresses = |reader: &mut Reader<_>| -> Vec<u64> {
        let events = reader.events().unwrap().map(|event| event.unwrap().kind);
        let address = |kind| match kind {
            EventKind::Map { address, .. }
            | EventKind::Pin { address, .. }
            | EventKind::Fault { address, .. } => address,
            other => panic!("{other:?}"),
        };
        events.map(address).collect()
    };
    let (before, after) = (addresses(&mut reader), addresses(&mut hidden));
    let distance = after[0] - before[0];
    assert!(distance > 0 && distance % (1 << 30) == 0);
    for (before, after) in before[..5].iter().zip(&after) {
        assert_eq!(after - before, distance, "one distance for all");
    }
    assert_eq!(after[5], 0, "all that is mapped");
}
