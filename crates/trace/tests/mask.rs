//! Masks: names and addresses go, what belongs together stays together.

mod common;

use std::collections::BTreeMap;
use std::io::Cursor;

use common::{event, recording};
use freehold_trace::{
    Event, EventKind, Mask, Meta, Reader, RecordingEnd, Task, Writer, ZoneSpan, inspect, mask,
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
    let expected = Task { pid: 1, tid: 1, name: "task-1".into(), in_workload: true };
    assert_eq!(hidden.task(TaskId(0)), &expected);
    let event = hidden.events().unwrap().next().unwrap().unwrap();
    let EventKind::Fault { address, ip, error_code } = event.kind else { panic!("{event:?}") };
    assert!(address != 0x7f12_3456_7000 && address % 4096 == 0 && ip != 0x4011_2233);
    assert_eq!(error_code, 6);
}
