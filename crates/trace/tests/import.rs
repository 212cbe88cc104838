//! Import of `perf.data`: files made byte by byte, and one of the perf that is installed.

mod common;

use std::io::Cursor;
use std::process::Command;

use common::perf::PerfData;
use freehold_trace::import::import_from;
use freehold_trace::{Event, EventKind, Gfp, ReadError, Reader, RecordError, import, inspect, is_perf_data};
use mm::{Order, Pfn};

/// Two CPUs whose records come out of order, a loss, an order that cannot be.
fn example() -> PerfData {
    let mut perf = PerfData::default();
    perf.comm((1, 0, 40), "perf-exec")
        .comm((2, 0, 40), "python3")
        .alloc((10, 0, 40), 1000, 0, 0xcc0 | 0x100)
        .alloc((30, 0, 40), 1001, 3, 0x8000)
        .free((20, 1, 50), 77, 0)
        .finished_round()
        .free((40, 1, 50), 1000, 0)
        .free((45, 1, 50), 1000, 11)
        .alloc((35, 0, 40), u64::MAX, 2, 0x40)
        .finished_round()
        .lost((60, 1, 50), 9)
        .free((50, 0, 40), 1001, 3)
        .finished_round();
    perf
}

fn imported(perf: &PerfData) -> (Reader<Cursor<Vec<u8>>>, Vec<Event>) {
    let (bytes, _) = import_from(Cursor::new(perf.build()), vec![]).unwrap();
    let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
    let events = reader.events().unwrap().map(Result::unwrap).collect();
    (reader, events)
}

#[test]
fn records_become_events_in_order_of_time() {
    let (reader, events) = imported(&example());
    let times: Vec<_> = events.iter().map(|event| (event.time.0, event.cpu.0)).collect();
    assert_eq!(times, [(10, 0), (20, 1), (30, 0), (35, 0), (40, 1), (50, 0), (60, 1)]);
    let EventKind::PageAlloc { pfn, order, gfp, .. } = events[0].kind else { panic!("{:?}", events[0]) };
    assert_eq!((pfn, order), (Pfn(1000), Order::ZERO));
    // 0x800 has no single name in this table.
    assert_eq!(gfp, Gfp::IO | Gfp::FS | Gfp::DIRECT_RECLAIM | Gfp::ZERO | Gfp::UNNAMED);
    assert!(matches!(events[3].kind, EventKind::PageAllocFailed { gfp: Gfp::IO, .. }));
    assert!(matches!(events[6].kind, EventKind::Lost { count: 9 }));
    let outcome = reader.outcome().unwrap();
    assert_eq!((outcome.lost, outcome.unreadable, outcome.events), (9, 1, 7));
    let meta = reader.meta();
    assert_eq!((meta.kernel.as_str(), meta.cpus, meta.clock.as_str()), ("6.1.0-test", 4, "monotonic"));
    assert_eq!((meta.start_ns, meta.tracepoints.len()), (1, 2));
}

#[test]
fn the_command_is_the_workload() {
    let (reader, events) = imported(&example());
    let task = reader.task(events[0].task);
    assert_eq!((task.name.as_str(), task.tid, task.in_workload), ("python3", 40, true));
    assert!(!reader.task(events[1].task).in_workload);
    let mut perf = PerfData::default();
    perf.free((1, 0, 7), 5, 0);
    let (reader, events) = imported(&perf);
    assert!(reader.task(events[0].task).in_workload, "without a command everybody is");
}

#[test]
fn packed_records_are_unpacked() {
    assert_eq!(imported(&example().packed()).1, imported(&example()).1);
}

#[test]
fn what_cannot_be_imported_is_told() {
    let message = |bytes: &[u8]| import_from(Cursor::new(bytes), vec![]).unwrap_err().to_string();
    let good = example().build();
    insta::assert_snapshot!(message(b"x"), @"is not a Freehold recording (nor a perf.data file)");
    insta::assert_snapshot!(message(&good[..50]), @"is damaged at byte 0: the header is cut short");
    insta::assert_snapshot!(message(&good[..good.len() - 300]), @"is damaged at byte 1036: a section is cut short");
    insta::assert_snapshot!(message(b"PERFILE2\x10\0\0\0\0\0\0\0"), @"was written through a pipe: let perf write to a file instead");
    insta::assert_snapshot!(message(b"2ELIFREP"), @"comes from a big-endian machine, which cannot be imported");
    let mut killed = good.clone();
    killed[48..56].fill(0);
    insta::assert_snapshot!(message(&killed), @"has no records: perf was killed before it finished, or saw nothing");
    let mut endless = good.clone();
    endless[48..56].fill(0xff);
    insta::assert_snapshot!(message(&endless), @"is damaged at byte 0: the header claims more records than there are");
}

#[test]
fn a_cut_anywhere_never_panics() {
    let good = example().build();
    for end in 0..good.len() {
        assert!(import_from(Cursor::new(&good[..end]), vec![]).is_err(), "cut at {end}");
    }
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 0xff;
        if let Err(RecordError::Input(ReadError::Io(error))) = import_from(Cursor::new(damaged), vec![]) {
            panic!("byte {at}: {error}");
        }
    }
}

#[test]
fn a_file_of_the_installed_perf_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let (data, output) = (directory.path().join("perf.data"), directory.path().join("a.fhr"));
    let events = "kmem:mm_page_alloc,kmem:mm_page_free";
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-a", "-e", events, "-o"]).arg(&data).args(["--", "true"]);
    if !perf.output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no perf, or it may not record");
        return;
    }
    assert!(is_perf_data(&data).unwrap());
    let summary = import(&data, &output).unwrap();
    let inspection = inspect(&mut Reader::open(&output).unwrap()).unwrap();
    assert_eq!(inspection.events, summary.events);
    let script = Command::new("perf").args(["script", "-F", "event", "-i"]).arg(&data).output().unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    for (kind, name) in [("page_alloc", "kmem:mm_page_alloc:"), ("page_free", "kmem:mm_page_free:")] {
        let printed = script.lines().filter(|line| line.trim() == name).count() as u64;
        let counted = inspection.kinds.iter().find(|row| row.kind == kind).map_or(0, |row| row.count);
        assert_eq!(counted, printed, "{kind}");
    }
}
