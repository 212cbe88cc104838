//! Recording by programs in the kernel: the same as by perf. And the compiled programs are those of the sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_trace::{EventKind, Group, Reader, RecordError, RecordOptions, Target, Via, record};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
const OBJECT: &str = "recorder.bpf.o";

/// A program that maps, touches, forks, runs others, writes and reads a file.
fn program(folder: &Path) -> Vec<OsString> {
    let file = folder.join("data");
    let file = file.display();
    let script = format!(
        "dd if=/dev/zero of=/dev/null bs=24M count=2 status=none; \
         dd if=/dev/zero of={file} bs=64k count=40 status=none; cat {file} >/dev/null; rm {file}"
    );
    ["/bin/sh", "-c", &script].map(OsString::from).into()
}

/// Files' pages come in blocks of whatever size memory has: these count by the page, all else by the event.
fn weight(kind: &EventKind) -> u64 {
    match *kind {
        EventKind::FileAdd { pages, .. } | EventKind::FileDrop { pages, .. } => pages.into(),
        _ => 1,
    }
}

/// What a recording of it has, by kind. `None` where that is not for us to do.
fn counts(via: Via, folder: &Path) -> Option<BTreeMap<&'static str, u64>> {
    let path = folder.join("a.rec");
    let mut options = RecordOptions::new(path.clone(), Target::Command(program(folder)));
    options.via = via;
    let summary = match record(&options, &mut ()) {
        Ok(summary) => summary,
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            eprintln!("skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!((summary.exit_status, summary.unreadable), (Some(0), 0));
    let mut reader = Reader::open(&path).unwrap();
    let expected = if via == Via::Bpf { "bpf" } else { "perf" };
    assert_eq!((summary.via.as_str(), reader.meta().via.as_str()), (expected, expected));
    assert!(reader.meta().cost.is_some_and(|cost| cost.events_per_fault > 0.9));
    let tasks = reader.tasks().to_vec();
    let events = reader.events().unwrap().map(Result::unwrap);
    // Before, the process gives up what it had of this one, which other tests change. perf was seen to drop what happens on the
    // time of an idle task, such as frees that were put off.
    let own = events
        .skip_while(|event| event.kind != EventKind::Exec)
        .filter(|event| tasks[event.task.0 as usize].in_workload);
    let mut counts = BTreeMap::new();
    own.for_each(|event| *counts.entry(event.kind.name()).or_default() += weight(&event.kind));
    Some(counts)
}

#[test]
fn programs_record_what_perf_records() {
    let folder = tempfile::tempdir().unwrap();
    // The first run brings what it needs into the page cache.
    if counts(Via::Perf, folder.path()).is_none() {
        return;
    }
    let Some(by_programs) = counts(Via::Bpf, folder.path()) else { return };
    let Some(by_perf) = counts(Via::Perf, folder.path()) else { return };
    let count = |of: &BTreeMap<&str, u64>, kind| of.get(kind).copied().unwrap_or(0);
    // Nothing decides these but the program.
    for kind in ["fork", "exit", "exec", "map", "unmap", "protect", "advise", "remap", "file_write"] {
        assert_eq!(count(&by_programs, kind), count(&by_perf, kind), "{kind}");
    }
    // Addresses that are drawn at random decide a few page tables and faults, interrupts whose time frees fall on. What is taken from the zones and given back
    // depends on what per-CPU lists held before, and switches on who else ran.
    for kind in
        ["fault", "page_alloc", "page_free", "page_free_batched", "file_read", "file_add", "file_drop"]
    {
        let (ours, perfs) = (count(&by_programs, kind), count(&by_perf, kind));
        assert!(ours.abs_diff(perfs) <= 20 + perfs / 50, "{kind}: {ours} by programs, {perfs} by perf");
    }
    assert!(count(&by_programs, "fault") >= 6000 && count(&by_programs, "switch") > 0, "{by_programs:?}");
    assert!(count(&by_programs, "zone_locked") > 0, "{by_programs:?}");
    assert_eq!(count(&by_programs, "lost"), 0);
}

#[test]
fn everybodys_events_are_recorded_by_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.rec");
    let mut options = RecordOptions::new(path.clone(), Target::AllWhile(program(folder.path())));
    options.via = Via::Bpf;
    options.groups = Group::ALL.into();
    match record(&options, &mut ()) {
        Ok(_) => {}
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            return eprintln!("skipped: {error}");
        }
        Err(error) => panic!("{error}"),
    }
    let mut reader = Reader::open(&path).unwrap();
    let events: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
    let has = |what: fn(&EventKind) -> bool| events.iter().any(|event| what(&event.kind));
    assert!(has(|kind| matches!(kind, EventKind::PageAlloc { .. })));
    assert!(has(|kind| matches!(kind, EventKind::Switch { .. })));
    // perf records those that no program is for.
    assert!(has(|kind| matches!(kind, EventKind::SlabAlloc { .. })));
    assert!(has(|kind| matches!(kind, EventKind::Waking { .. })));
    let tasks: std::collections::BTreeSet<_> = events.iter().map(|event| event.task).collect();
    assert!(tasks.len() > 4, "{} tasks", tasks.len());
}

#[test]
fn a_tiny_ring_of_programs_loses_events_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.rec");
    let mut options = RecordOptions::new(path.clone(), Target::Command(program(folder.path())));
    options.via = Via::Bpf;
    options.ring_pages = 4;
    let summary = match record(&options, &mut ()) {
        Ok(summary) => summary,
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            return eprintln!("skipped: {error}");
        }
        Err(error) => panic!("{error}"),
    };
    let mut reader = Reader::open(&path).unwrap();
    let lost = reader.events().unwrap().map(|event| match event.unwrap().kind {
        EventKind::Lost { count } => count,
        _ => 0,
    });
    assert_eq!(lost.sum::<u64>(), summary.lost);
    assert!(summary.lost > 0 && summary.cost.is_none(), "{summary:?}");
}

#[test]
fn the_committed_object_is_made_of_the_sources() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bpf");
    let folder = tempfile::tempdir().unwrap();
    let made: PathBuf = folder.path().join(OBJECT);
    let result = Command::new(script).arg(&made).output().unwrap();
    if result.status.code() == Some(2) {
        return eprintln!("skipped: {}", String::from_utf8_lossy(&result.stderr).trim_end());
    }
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let read = |path: &Path| std::fs::read(path).unwrap();
    let is_same = read(&made) == read(&Path::new(FOLDER).join(OBJECT));
    assert!(is_same, "the sources have changed since recorder.bpf.o was made of them: run `make bpf`");
}
