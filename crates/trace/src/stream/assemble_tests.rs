//! What is kept of slab events.

use std::io::Cursor;
use std::num::NonZeroU64;

use super::assemble::{Assembler, Membership};
use super::record::{Origin, Record};
use crate::event::{Event, EventKind, Task};
use crate::format::{Reader, Writer};
use crate::meta::{Keep, Meta, RecordingEnd};
use crate::stream::schema::Schema;
use crate::tracefs::format::Format;

const HEAD: &str = "format:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n";
const SIZES: &str = "\tfield:size_t bytes_req;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:size_t bytes_alloc;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned long gfp_flags;\toffset:32;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"%s\", __print_flags(REC->gfp_flags, \"|\", {(unsigned long)(( gfp_t)0x40u), \"__GFP_IO\"}, \
    {(unsigned long)(( gfp_t)0x80u), \"__GFP_FS\"}, {(unsigned long)(( gfp_t)0x400u), \"__GFP_DIRECT_RECLAIM\"}, \
    {(unsigned long)(( gfp_t)0x100u), \"__GFP_ZERO\"})\n";

const WORKER: u32 = 10;
const OTHER: u32 = 20;

fn assembler() -> Assembler<Vec<u8>> {
    let mut schema = Schema::default();
    let alloc = format!("name: kmalloc\nID: 1\n{HEAD}{SIZES}");
    let free = format!("name: kfree\nID: 2\n{HEAD}\nprint fmt: \"x\", REC->ptr\n");
    for format in [alloc, free] {
        assert_eq!(schema.add(&Format::parse(&format).unwrap()), Ok(true));
    }
    let writer = Writer::new(vec![], &Meta { cpus: 2, ..Meta::default() }).unwrap();
    let mut assembler = Assembler::new(writer, schema, Membership::Descendants, Keep::Workload);
    for tid in [WORKER, OTHER] {
        assembler.add_task(Task { pid: tid, tid, name: String::new(), in_workload: tid == WORKER });
    }
    assembler
}

/// An object goes out (true) or comes back at `time`, on the time of a task.
fn take(assembler: &mut Assembler<Vec<u8>>, time: u64, (tid, is_alloc, object): (u32, bool, u64)) {
    let mut raw = if is_alloc { vec![1, 0, 0, 0] } else { vec![2, 0, 0, 0] };
    raw.extend_from_slice(&tid.to_le_bytes());
    for number in [object, 60, 64, 0x40] {
        raw.extend_from_slice(&u64::to_le_bytes(number));
    }
    assembler.take(Origin { time, pid: tid, tid, cpu: 1 }, Record::Sample(&raw)).unwrap();
}

#[test]
fn times_are_rounded_down_and_events_stay_in_order() {
    let mut assembler = assembler();
    assembler.round_times(NonZeroU64::new(32).unwrap());
    for (time, object) in [(0, 0xa0), (31, 0xb0), (32, 0xc0), (1_000_007, 0xd0)] {
        take(&mut assembler, time, (WORKER, true, object));
    }
    let (bytes, _) = assembler.into_writer().finish(RecordingEnd::default()).unwrap();
    let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
    let events = reader.events().unwrap().map(|event| event.unwrap());
    let at = |event: Event| match event.kind {
        EventKind::SlabAlloc { object, .. } => (event.time.0, object),
        other => unreachable!("{other:?}"),
    };
    let seen: Vec<(u64, u64)> = events.map(at).collect();
    assert_eq!(seen, [(0, 0xa0), (0, 0xb0), (32, 0xc0), (1_000_000, 0xd0)]);
}

fn kept(story: &[(u32, bool, u64)]) -> (Vec<EventKind>, u64) {
    let mut assembler = assembler();
    for (time, &what) in story.iter().enumerate() {
        take(&mut assembler, time as u64, what);
    }
    let left_out = assembler.counts().left_out;
    let (bytes, _) = assembler.into_writer().finish(RecordingEnd::default()).unwrap();
    let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
    let kinds = reader.events().unwrap().map(|event| event.unwrap().kind).collect();
    (kinds, left_out)
}

#[test]
fn others_frees_of_the_workloads_objects_are_kept() {
    let (kinds, left_out) = kept(&[
        (WORKER, true, 0x1000),
        (OTHER, true, 0x2000),
        (OTHER, false, 0x2000),
        (OTHER, false, 0x1000),
        (OTHER, false, 0x1000),
        (WORKER, false, 0x3000),
    ]);
    let objects: Vec<(bool, u64)> = kinds
        .iter()
        .map(|kind| match *kind {
            EventKind::SlabAlloc { object, .. } => (true, object),
            EventKind::SlabFree { object, .. } => (false, object),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(objects, [(true, 0x1000), (false, 0x1000), (false, 0x3000)]);
    assert_eq!(left_out, 3);
}

#[test]
fn an_object_that_somebody_else_got_since_is_theirs() {
    let (kinds, left_out) = kept(&[(WORKER, true, 0x1000), (OTHER, true, 0x1000), (OTHER, false, 0x1000)]);
    assert_eq!((kinds.len(), left_out), (1, 2));
}
