//! Recording by programs in the kernel: the same as by perf. And the compiled programs are those of the sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use freehold_trace::{
    EventKind, Gfp, Group, NameId, Reader, RecordError, RecordOptions, Summary, Target, Via, record,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
const OBJECTS: [&str; 2] = ["accessed.bpf.o", "recorder.bpf.o"];
/// One recording at a time: whoever else runs decides whose time frees fall on that were put off.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    let _alone = alone();
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
    for kind in ["fault", "page_alloc", "page_free", "file_read", "file_add", "file_drop"] {
        let (ours, perfs) = (count(&by_programs, kind), count(&by_perf, kind));
        assert!(ours.abs_diff(perfs) <= 20 + perfs / 50, "{kind}: {ours} by programs, {perfs} by perf");
    }
    assert!(count(&by_programs, "fault") >= 6000 && count(&by_programs, "switch") > 0, "{by_programs:?}");
    assert!(count(&by_programs, "zone_locked") > 0, "{by_programs:?}");
    assert_eq!(count(&by_programs, "lost"), 0);
    assert_eq!(count(&by_programs, "page_free_batched"), 0, "what programs do to their memory says it");
}

/// Pages of files in memory come into being without an event of the page cache.
#[test]
fn programs_record_what_is_written_to_files_in_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.rec");
    let name = format!("/dev/shm/freehold-test-{}", std::process::id());
    // Writes from the beginning and at a place, pages beyond the end, a hole; and a device, which lies on a tmpfs too.
    let script = format!(
        "printf abc > {name}; dd if=/dev/zero of={name} bs=8k seek=2 count=3 conv=notrunc status=none; \
         fallocate -o 65536 -l 12288 {name}; fallocate -p -o 16384 -l 8192 {name}; printf abc > /dev/null; rm {name}"
    );
    let command = ["/bin/sh", "-c", &script].map(OsString::from).into();
    let mut options = RecordOptions::new(path.clone(), Target::Command(command));
    options.via = Via::Bpf;
    match record(&options, &mut ()) {
        Ok(summary) => assert_eq!(summary.exit_status, Some(0)),
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            return eprintln!("skipped: {error}");
        }
        Err(error) => panic!("{error}"),
    }
    let mut reader = Reader::open(&path).unwrap();
    let devices = reader.meta().memory_devices.clone();
    let names = reader.names().to_vec();
    let in_memory =
        |file: NameId| devices.iter().any(|device| names[file.0 as usize].starts_with(&format!("{device}:")));
    let (mut written, mut gone) = (vec![], 0);
    for event in reader.events().unwrap().map(Result::unwrap) {
        match event.kind {
            EventKind::FileWrite { file, first, pages } if in_memory(file) => written.push((first, pages)),
            EventKind::FileDrop { file, pages, .. } if in_memory(file) => gone += pages,
            _ => {}
        }
    }
    assert_eq!(written, [(0, 1), (4, 2), (6, 2), (8, 2), (16, 3)]);
    assert_eq!(gone, 1 + 6 + 3, "the hole's two, and the rest as the file is removed");
}

#[test]
fn everybodys_events_are_recorded_by_programs_too() {
    let _alone = alone();
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
    let _alone = alone();
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

/// Some hundred thousand first touches, more than any small budget has room for.
const TOUCHES: &str = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do \
                       dd if=/dev/zero of=/dev/null bs=48M count=1 status=none; done";
/// Computes for some tenths of a second and touches next to nothing: whatever an event is measured to cost on a loaded machine,
/// its few are far within a budget of all that it computes.
const COMPUTES: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";

/// A shell's script recorded at a budget, in a share.
fn within(budget: f64, script: &str, path: &Path) -> Option<Summary> {
    let command = ["/bin/sh", "-c", script].map(OsString::from).into();
    let mut options = RecordOptions::new(path.to_owned(), Target::Command(command));
    (options.via, options.budget) = (Via::Bpf, Some(budget));
    match record(&options, &mut ()) {
        Ok(summary) => Some(summary),
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_passes_a_budget_is_counted_and_not_recorded() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.rec");
    let Some(summary) = within(0.000_1, TOUCHES, &path) else { return };
    let mut reader = Reader::open(&path).unwrap();
    let sampled = reader.outcome().unwrap().sampled.clone().unwrap();
    assert_eq!(summary.sampled.as_ref(), Some(&sampled));
    let shares: Vec<u32> = sampled.steps.iter().map(|step| step.page_events_one_in).collect();
    assert!(shares.starts_with(&[2, 4]) && sampled.page_events_counted > 0, "{sampled:?}");
    let names = reader.names().to_vec();
    let (mut faults, mut pages, mut marks) = (0u64, 0u64, 0);
    for event in reader.events().unwrap().map(Result::unwrap) {
        match event.kind {
            EventKind::Fault { .. } => faults += 1,
            EventKind::PageAlloc { order, gfp, .. } if gfp.contains(Gfp::MOVABLE) => {
                pages += u64::from(order.pages());
            }
            EventKind::Mark { text } => {
                marks += usize::from(names[text.0 as usize].starts_with("record."));
            }
            _ => {}
        }
    }
    assert_eq!(marks, sampled.steps.len(), "each step stands among the events");
    assert!(
        faults > 300_000 && pages * 2 < faults,
        "{pages} pages of {faults} faults are recorded one by one"
    );
    let all = pages + sampled.user_pages_counted;
    assert!(all.abs_diff(faults) < faults / 20, "{all} pages with the counted ones, {faults} faults");
}

#[test]
fn a_recording_within_its_budget_is_whole() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(summary) = within(1.0, COMPUTES, &folder.path().join("e.rec")) else { return };
    let sampled = summary.sampled.unwrap();
    assert_eq!((sampled.steps.len(), sampled.page_events_counted), (0, 0));
    assert!(sampled.spent_ns > 0 && sampled.cpu_ns > sampled.spent_ns, "{sampled:?}");
}

#[test]
fn a_budget_that_cannot_be_kept_is_refused() {
    let refused = |change: fn(&mut RecordOptions)| {
        let mut options = RecordOptions::new("/dev/null".into(), Target::All);
        options.budget = Some(0.02);
        change(&mut options);
        record(&options, &mut ()).unwrap_err().to_string()
    };
    assert!(refused(|options| options.via = Via::Perf).contains("--via bpf"));
    assert!(refused(|options| options.groups = [Group::Page].into()).contains("sched"));
    assert!(refused(|options| options.ring_pages = 4).contains("--ring"));
    assert!(refused(|options| options.budget = Some(0.0)).contains("0.01%"));
}

#[test]
fn the_committed_object_is_made_of_the_sources() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bpf");
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let result = Command::new(script).arg(folder.path()).output().unwrap();
    if result.status.code() == Some(2) {
        return eprintln!("skipped: {}", String::from_utf8_lossy(&result.stderr).trim_end());
    }
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let read = |path: &Path| std::fs::read(path).unwrap();
    for object in OBJECTS {
        let is_same = read(&folder.path().join(object)) == read(&Path::new(FOLDER).join(object));
        assert!(is_same, "the sources have changed since {object} was made of them: run `make bpf`");
    }
}
