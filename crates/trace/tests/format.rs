//! The recording format: what is written is read, what is cut off or damaged is noticed.

mod common;

use std::io::Cursor;

use common::{begin, event, meta, read, recording, task};
use freehold_trace::{Event, EventKind, NameId, Outcome, ReadError, Reader, Task};
use mm::{Cpu, Nanos, Order, Pfn, TaskId};
use proptest::collection::vec;
use proptest::prelude::*;

fn free(time: u64, pfn: u32) -> Event {
    let kind = EventKind::PageFree { pfn: Pfn(pfn), order: Order::ZERO };
    Event { time: Nanos(time), cpu: Cpu(1), task: TaskId(2), kind }
}

/// Some hundred bytes with several chunks.
fn small() -> (Vec<Event>, Vec<u8>) {
    let events: Vec<_> = (0..60).map(|n| free(1000 + u64::from(n) * 300, 5000 + n * 7)).collect();
    let bytes = recording(&events, 20);
    (events, bytes)
}

proptest! {
    #[test]
    fn events_survive(events in vec(event(), 0..400), chunk in 1usize..200) {
        let bytes = recording(&events, chunk);
        prop_assert_eq!(read(&bytes), (false, events));
    }

    #[test]
    fn arbitrary_bytes_are_no_recording(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Reader::new(Cursor::new(bytes)).is_err());
    }
}

#[test]
fn tables_and_descriptions_survive() {
    let mut writer = begin();
    writer.push(&free(5, 6)).unwrap();
    writer.flush().unwrap();
    let renamed = Task { name: "renamed".into(), ..task(2) };
    writer.task(TaskId(2), &renamed).unwrap();
    let (bytes, written) = writer.finish(Outcome { exit_status: Some(3), ..Outcome::default() }).unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
    assert_eq!(reader.meta(), &meta());
    assert_eq!(reader.task(TaskId(2)), &renamed);
    assert_eq!(reader.task(TaskId(3)), &task(3));
    assert_eq!((reader.name(NameId::NONE), reader.name(NameId(2))), ("", "name 2"));
    let outcome = reader.outcome().unwrap();
    assert_eq!((outcome.exit_status, outcome.events), (Some(3), 1));
    assert_eq!((reader.event_count(), reader.chunk_count(), reader.truncated()), (1, 1, false));
    assert_eq!(reader.events().unwrap().count(), 1);
}

#[test]
fn chunks_can_be_read_alone() {
    let (events, bytes) = small();
    let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
    assert_eq!(reader.chunk_count(), 3);
    let middle: Vec<_> = reader.events_in(1..2).unwrap().map(Result::unwrap).collect();
    assert_eq!(middle, events[20..40]);
}

#[test]
fn a_cut_at_any_byte_leaves_a_prefix() {
    let (events, bytes) = small();
    let mut readable = 0;
    for end in 0..bytes.len() {
        let (is_wrong, found) = read(&bytes[..end]);
        assert!(is_wrong, "cut at {end}");
        assert_eq!(found, events[..found.len()], "cut at {end}");
        assert!(found.len() >= readable, "cut at {end}: less than with less");
        readable = found.len();
    }
    assert_eq!(readable, events.len());
}

#[test]
fn a_flipped_bit_is_noticed_at_any_byte() {
    let (events, bytes) = small();
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let (is_wrong, found) = read(&damaged);
            assert!(is_wrong, "byte {at}, bit {bit}");
            assert_eq!(found, events[..found.len()], "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_file_from_a_crash_ends_at_its_last_chunk() {
    let (events, bytes) = small();
    let mut zeroed = bytes.clone();
    // A machine that lost power may leave zeros where the last chunk was to be.
    let start = bytes.len() * 2 / 3;
    zeroed[start..].fill(0);
    let mut reader = Reader::new(Cursor::new(zeroed)).unwrap();
    assert!(reader.truncated() && reader.outcome().is_none());
    let count = reader.event_count() as usize;
    let found: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
    assert_eq!(found, events[..count]);
}

#[test]
fn errors_are_one_clear_line() {
    let (_, mut bytes) = small();
    let message = |bytes: &[u8]| Reader::new(Cursor::new(bytes)).unwrap_err().to_string();
    insta::assert_snapshot!(message(b"#!/bin/sh\n"), @"is not a Freehold recording (nor a perf.data file)");
    insta::assert_snapshot!(message(b""), @"was cut short before the first event: there is nothing to read");
    insta::assert_snapshot!(message(&bytes[..30]), @"was cut short before the first event: there is nothing to read");
    bytes[8] = 2;
    insta::assert_snapshot!(message(&bytes), @"is damaged at byte 0: the header's checksum does not fit");
    let crc = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    assert!(matches!(Reader::new(Cursor::new(&bytes)), Err(ReadError::NewerVersion { found: 2 })));
    insta::assert_snapshot!(message(&bytes), @"is a recording of format version 2; this Freehold reads up to 1: use a newer one");
}

#[test]
fn many_events_fill_many_chunks() {
    let events: Vec<_> = (0..200_000u32).map(|n| free(u64::from(n) * 250, n ^ 5)).collect();
    let mut writer = begin();
    for event in &events {
        writer.push(event).unwrap();
    }
    let (bytes, written) = writer.finish(Outcome::default()).unwrap();
    assert_eq!(written.events, 200_000);
    assert_eq!(Reader::new(Cursor::new(&bytes)).unwrap().chunk_count(), 4);
    assert_eq!(read(&bytes), (false, events));
}
