//! The recording format: what is written is read, what is cut off or damaged is noticed.

mod common;

use std::io::Cursor;

use common::{begin, event, meta, read, recording, task};
use freehold_trace::{Event, EventKind, How, NameId, ReadError, Reader, RecordingEnd, Task};
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
    fn whatever_happens_to_a_file_is_said(
        events in vec(event(), 1..200),
        chunk in 1usize..50,
        flips in vec((any::<prop::sample::Index>(), 1u8..), 0..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let bytes = recording(&events, chunk);
        let mut damaged = bytes.clone();
        for (at, bits) in flips {
            damaged[at.index(bytes.len())] ^= bits;
        }
        damaged.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let (is_wrong, found) = read(&damaged);
        prop_assert_eq!(is_wrong, damaged != bytes);
        prop_assert!(are_in_order(&found, &events));
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
    let (bytes, written) =
        writer.finish(RecordingEnd { exit_status: Some(3), ..RecordingEnd::default() }).unwrap();
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
fn a_recording_can_be_read_as_if_it_had_been_stopped_earlier() {
    let (events, bytes) = small();
    for count in [0, 1, 20, 37, events.len(), events.len() + 9] {
        let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
        reader.stop_after(count as u64);
        let first: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
        assert_eq!(first, events[..count.min(events.len())]);
        assert_eq!(reader.event_count(), first.len() as u64);
        let second: Vec<_> = reader.events_in(1..2).unwrap().map(Result::unwrap).collect();
        assert_eq!(second, events[20.min(first.len())..40.min(first.len())]);
    }
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
            assert!(are_in_order(&found, &events), "byte {at}, bit {bit}");
            let lost = events.len() - found.len();
            assert!(lost % 20 == 0, "byte {at}, bit {bit}: whole chunks are lost, not {lost} events");
        }
    }
}

/// Whether `some` are of `all`, in their order.
fn are_in_order(some: &[Event], all: &[Event]) -> bool {
    let mut all = all.iter();
    some.iter().all(|event| all.any(|other| other == event))
}

/// Where each chunk begins, by its four letters, and where the trailer does.
fn boundaries(bytes: &[u8]) -> Vec<(String, usize)> {
    let (mut at, mut found) = (16, vec![]);
    while at + 20 <= bytes.len() {
        let stored = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        found.push((String::from_utf8(bytes[at..at + 4].to_vec()).unwrap(), at));
        at += 20 + stored;
    }
    found.push(("trailer".into(), at));
    found
}

#[test]
fn a_damaged_chunk_costs_its_own_events_alone() {
    let (events, bytes) = small();
    let second = boundaries(&bytes).into_iter().filter(|(kind, _)| kind == "EVNT").nth(1).unwrap().1;
    let told = |bytes: &[u8]| {
        let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
        let found: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, [&events[..20], &events[40..]].concat());
        (*reader.damage().unwrap(), reader.outcome().is_some())
    };
    let mut damaged = bytes.clone();
    damaged[second + 25] ^= 4;
    let (damage, is_ended) = told(&damaged);
    assert_eq!((damage.offset, damage.chunks, damage.events, is_ended), (second as u64, 1, Some(20), true));
    insta::assert_snapshot!(
        damage.to_string().replace(&second.to_string(), "N"),
        @"is damaged at byte N, after 1 chunk of events and 0.000007 s: 1 chunk with 20 events cannot be read"
    );
    // The same without an index: the damaged chunk's head leads on.
    let end = damaged.len() - 16;
    damaged[end..].fill(0);
    let (damage, is_ended) = told(&damaged);
    assert_eq!((damage.offset, damage.chunks, damage.events, is_ended), (second as u64, 1, None, true));
}

#[test]
fn a_cut_at_each_chunk_says_where() {
    let (events, bytes) = small();
    let mut whole = 0;
    for (kind, at) in boundaries(&bytes).iter().skip(1) {
        let mut reader = Reader::new(Cursor::new(&bytes[..*at])).unwrap();
        let damage = *reader.damage().unwrap();
        assert_eq!((damage.offset, damage.how), (*at as u64, How::Cut), "before {kind}");
        assert_eq!(damage.end_is_missing, !matches!(kind.as_str(), "INDX" | "trailer"), "before {kind}");
        let found: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, events[..whole * 20], "before {kind}");
        whole += usize::from(kind == "EVNT");
    }
    assert_eq!(whole, 3);
}

#[test]
fn events_after_a_lost_table_are_not_made_up() {
    let (_, bytes) = small();
    let tasks = boundaries(&bytes).into_iter().find(|(kind, _)| kind == "TASK").unwrap().1;
    let mut damaged = bytes;
    damaged[tasks + 21] ^= 1;
    let reader = Reader::new(Cursor::new(damaged)).unwrap();
    assert_eq!(reader.event_count(), 0);
    let damage = reader.damage().unwrap();
    assert_eq!((damage.offset, damage.chunks, damage.events), (tasks as u64, 3, Some(60)));
    assert!(damage.to_string().ends_with("before its first event: 3 chunks with 60 events cannot be read"));
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
    let (bytes, written) = writer.finish(RecordingEnd::default()).unwrap();
    assert_eq!(written.events, 200_000);
    assert_eq!(Reader::new(Cursor::new(&bytes)).unwrap().chunk_count(), 4);
    assert_eq!(read(&bytes), (false, events));
}
