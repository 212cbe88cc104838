//! Recordings of the running kernel, where it permits that; elsewhere these tests say that they skipped.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_trace::{
    EventKind, Group, Keep, Progress, Reader, RecordError, RecordOptions, Status, Summary, Target, inspect,
    record,
};

fn command(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Writes 32 MiB of memory with a program that every system has.
fn memory_eater() -> Vec<OsString> {
    command(&["dd", "if=/dev/zero", "of=/dev/null", "bs=32M", "count=1", "status=none"])
}

/// Records, or says why not where that is not for us to do.
fn try_record(options: &RecordOptions) -> Option<Summary> {
    match record(options, &mut ()) {
        Ok(summary) => Some(summary),
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_commands_pages_are_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fhr");
    let options = RecordOptions::new(path.clone(), Target::Command(memory_eater()));
    let Some(summary) = try_record(&options) else { return };
    assert_eq!(summary.exit_status, Some(0));
    assert_eq!(summary.unreadable, 0);
    let mut reader = Reader::open(&path).unwrap();
    assert!(!reader.truncated());
    let meta = reader.meta();
    assert_eq!(meta.keep, Keep::Workload);
    assert_eq!(meta.command[0], "dd");
    assert!(meta.topology().is_ok() && meta.vm.contains_key("min_free_kbytes"));
    assert!(meta.cost.is_some_and(|cost| cost.events_per_fault > 0.9));
    let inspection = inspect(&mut reader).unwrap();
    assert_eq!(inspection.events, summary.events);
    // Transparent huge pages may serve all of it in 16 allocations.
    assert!(inspection.pages.allocated >= 8192, "{:?}", inspection.pages);
    let dd = inspection.tasks.iter().find(|task| task.name == "dd").unwrap();
    assert!(dd.in_workload && dd.alloc_pages >= 8192 && dd.runs > 0, "{dd:?}");
    let end = reader.outcome().unwrap().end_ns;
    let start = reader.start();
    for event in reader.events().unwrap() {
        let event = event.unwrap();
        assert!(event.time >= start && event.time.0 <= end);
    }
}

#[test]
fn the_system_is_recorded_with_faults_and_slab() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b.fhr");
    let mut options = RecordOptions::new(path.clone(), Target::AllWhile(memory_eater()));
    options.groups = [Group::Page, Group::Fault, Group::Slab, Group::Sched].into();
    options.masked = true;
    let Some(_) = try_record(&options) else { return };
    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.meta().masked && reader.meta().command.is_empty());
    assert!(reader.tasks().iter().all(|task| task.tid == 0 || task.name.starts_with("task-")));
    let kinds = inspect(&mut reader).unwrap().kinds;
    for expected in ["page_alloc", "page_free", "fault", "slab_alloc", "slab_free", "switch"] {
        assert!(kinds.iter().any(|row| row.kind == expected && row.count > 0), "{expected} in {kinds:?}");
    }
}

/// Stops the recording at the first sign of life.
struct StopAtOnce(Arc<AtomicBool>);

impl Progress for StopAtOnce {
    fn tick(&mut self, _status: Status) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_stopped_recording_is_whole_and_its_command_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.fhr");
    let options = RecordOptions::new(path.clone(), Target::Command(command(&["sleep", "60"])));
    let stop = Arc::clone(&options.stop);
    match record(&options, &mut StopAtOnce(stop)) {
        Ok(summary) => {
            assert!(summary.interrupted);
            assert_eq!(summary.exit_status, Some(128 + libc::SIGTERM));
            let reader = Reader::open(&path).unwrap();
            assert!(!reader.truncated() && reader.outcome().unwrap().interrupted);
        }
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn tiny_rings_lose_events_and_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d.fhr");
    let mut options = RecordOptions::new(path.clone(), Target::Command(memory_eater()));
    options.ring_pages = 4;
    options.groups = [Group::Page, Group::Fault].into();
    let Some(summary) = try_record(&options) else { return };
    let mut reader = Reader::open(&path).unwrap();
    let mut counted = 0;
    for event in reader.events().unwrap() {
        if let EventKind::Lost { count } = event.unwrap().kind {
            counted += count;
        }
    }
    assert_eq!(counted, summary.lost);
    assert!(summary.cost.is_none(), "too small a ring to measure with");
}

#[test]
fn an_earlier_recording_survives_a_command_that_does_not_exist() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("e.fhr");
    let fresh = directory.path().join("fresh.fhr");
    std::fs::write(&path, "precious").unwrap();
    for path in [&path, &fresh] {
        let options = RecordOptions::new(path.clone(), Target::Command(command(&["/nonexistent/program"])));
        match record(&options, &mut ()) {
            Err(error @ RecordError::Command { .. }) => {
                let text = error.to_string();
                assert!(text.starts_with("/nonexistent/program cannot be started"), "{text}");
            }
            Err(error) => eprintln!("skipped: {error}"),
            Ok(_) => panic!("a program that does not exist ran"),
        }
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert!(!fresh.exists());
}

#[test]
fn a_full_disk_keeps_whole_chunks() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    let options = RecordOptions::new("/dev/full".into(), Target::Command(memory_eater()));
    match record(&options, &mut ()) {
        Err(error @ (RecordError::Output { .. } | RecordError::System { .. })) => {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
        Err(error) => eprintln!("skipped: {error}"),
        Ok(_) => panic!("a full disk took a recording"),
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    let mut options = RecordOptions::new("x.fhr".into(), Target::Command(vec![]));
    assert!(matches!(record(&options, &mut ()), Err(RecordError::Options(_))));
    options.target = Target::All;
    options.ring_pages = 100;
    assert!(matches!(record(&options, &mut ()), Err(RecordError::Options(_))));
    options.ring_pages = 64;
    options.target = Target::Process(u32::MAX);
    assert!(matches!(record(&options, &mut ()), Err(RecordError::Options(_))));
    let unknown = Group::parse_list("page,pages").unwrap_err();
    assert_eq!(
        unknown,
        "there is no group of events \"pages\"; there are page, fault, sched, slab, lock, space, file"
    );
}

#[test]
fn an_events_cost_is_measured_or_missing() {
    let mut rounds = 0u64;
    // Nothing of what the round does frees or allocates thousands of pages.
    let idle = freehold_trace::event_cost("kmem:mm_page_pcpu_drain", &mut || {
        rounds += 1;
        Ok(rounds)
    });
    match idle {
        Ok(cost) => assert_eq!((cost, rounds), (None, 60)),
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            return eprintln!("skipped: {error}");
        }
        Err(error) => panic!("{error}"),
    }
    let mut memory = vec![0u8; 0];
    let cost = freehold_trace::event_cost("kmem:mm_page_alloc", &mut || {
        let start = std::time::Instant::now();
        memory = vec![1; 64 << 20];
        Ok(start.elapsed().as_nanos() as u64)
    });
    // Huge pages may serve all of it in a few allocations, which are too few.
    assert!(cost.unwrap().is_none_or(|ns| (0.0..1e6).contains(&ns)));
    assert!(freehold_trace::event_cost("kmem:no_such_event", &mut || Ok(1)).is_err());
}
