//! A program that runs already is recorded, where this machine permits that: what it had mapped, touched, read and been advised
//! before is in the recording, and what it does from then on.
//!
//! The program is this test itself, run again with `PROGRAM_FILE` set.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::time::Duration;

use freehold_trace::{
    EventKind, MapFlags, PresentKind, Reader, RecordError, RecordOptions, Summary, Target, record,
};

const PROGRAM_FILE: &str = "FREEHOLD_ATTACH_FILE";
const PAGE: usize = 4096;
const PAGES: usize = 96;
/// Pages touched before the recording, and by its end.
const BEFORE: usize = 40;
const FILE_PAGES: usize = 30;
const LENGTH: Duration = Duration::from_millis(700);

/// Maps and touches, then touches more from time to time until it is killed, a page at a time.
#[test]
#[ignore = "run by a_running_programs_memory_is_recorded"]
fn program() {
    let Ok(place) = std::env::var(PROGRAM_FILE) else { return };
    fs::write(&place, vec![7u8; FILE_PAGES * PAGE]).unwrap();
    let _open = fs::File::open(&place).unwrap();
    // SAFETY: a fresh mapping, used within its length.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(ptr::null_mut(), PAGES * PAGE, 3, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, PAGES * PAGE, libc::MADV_NOHUGEPAGE);
        let memory = memory.cast::<u8>();
        for page in 0..BEFORE {
            memory.add(page * PAGE).write_volatile(1);
        }
        let end = libc::sbrk(0) as usize;
        fs::write(format!("{place}.new"), format!("memory {}\nheap {end}\n", memory as usize)).unwrap();
        fs::rename(format!("{place}.new"), format!("{place}.says")).unwrap();
        let go = format!("{place}.go");
        while !Path::new(&go).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The recording is under way: its own file says so.
        std::thread::sleep(LENGTH / 3);
        for page in BEFORE..PAGES {
            memory.add(page * PAGE).write_volatile(1);
        }
        libc::sbrk(8 * PAGE as isize);
        std::thread::sleep(Duration::from_secs(20));
    }
}

/// Ends the program whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the file that the program waits for once events come.
struct Go(std::path::PathBuf);

impl freehold_trace::Progress for Go {
    fn tick(&mut self, _status: freehold_trace::Status) {
        let _ = fs::write(&self.0, "");
    }
}

fn try_record(options: &RecordOptions, go: &mut Go) -> Option<Summary> {
    match record(options, go) {
        Ok(summary) => Some(summary),
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Starts the program and waits until it has said where its memory is.
fn started(folder: &Path) -> (Running, BTreeMap<String, u64>) {
    let place = folder.join("data");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "program", "--ignored", "--quiet"])
        .env(PROGRAM_FILE, &place)
        .stdout(Stdio::null());
    let running = Running(command.spawn().unwrap());
    let said = folder.join("data.says");
    while !said.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let says = fs::read_to_string(&said).unwrap();
    let says = says.lines().map(|line| line.split_once(' ').unwrap());
    (running, says.map(|(what, value)| (what.to_owned(), value.parse().unwrap())).collect())
}

#[test]
fn a_running_programs_memory_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (running, says) = started(folder.path());
    let path = folder.path().join("a.fhr");
    let mut options = RecordOptions::new(path.clone(), Target::Process(running.0.id()));
    options.length = Some(LENGTH);
    let Some(summary) = try_record(&options, &mut Go(folder.path().join("data.go"))) else { return };
    assert!(!summary.interrupted && !summary.without_huge_pages);
    let mut reader = Reader::open(&path).unwrap();
    let start = reader.start();
    let usage = reader.outcome().unwrap().usage.unwrap();
    assert!(usage.minor_faults >= (PAGES - BEFORE) as u64, "{usage:?}");
    let names = reader.names().to_vec();
    let events: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
    let memory = says["memory"];
    let at = |page: usize| memory + (page * PAGE) as u64;
    let has = |what: &str, is_it: &dyn Fn(&EventKind) -> bool| {
        let found = events.iter().find(|event| is_it(&event.kind));
        assert!(found.is_some(), "no {what} among {} events", events.len());
        found.unwrap().time
    };
    let mapped = has("map", &|kind| {
        matches!(*kind, EventKind::Map { address, pages, flags, .. } if flags.contains(MapFlags::BEFORE)
            && address <= memory && at(PAGES) <= address + (u64::from(pages) << 12))
    });
    assert_eq!(mapped, start, "what was there has the time of the start");
    has(
        "advice",
        &|kind| matches!(*kind, EventKind::Advise { address, advice: 15, .. } if address == memory),
    );
    has("present pages", &|kind| {
        matches!(*kind, EventKind::Present { address, pages, kind: PresentKind::Anonymous, .. }
            if address <= memory && address + (u64::from(pages) << 12) == at(BEFORE))
    });
    has("cached file", &|kind| {
        matches!(*kind, EventKind::Cached { file, first: 0, pages, cached }
            if names[file.0 as usize].ends_with("/data") && pages == FILE_PAGES as u32 && cached == pages)
    });
    for page in BEFORE..PAGES {
        has("fault", &|kind| matches!(*kind, EventKind::Fault { address, .. } if address == at(page)));
    }
    has("growth of a heap that was there before", &|kind| {
        matches!(*kind, EventKind::Map { address, pages: 8, flags, .. }
            if address == says["heap"].next_multiple_of(4096) && flags.contains(MapFlags::HEAP)
                && !flags.contains(MapFlags::BEFORE))
    });
}

/// Moves a process into a cgroup, and lets it go on a little later.
struct Join {
    members: std::path::PathBuf,
    pid: u32,
    go: Go,
    ticks: u32,
}

impl freehold_trace::Progress for Join {
    fn tick(&mut self, status: freehold_trace::Status) {
        self.ticks += 1;
        if self.ticks == 1 {
            fs::write(&self.members, self.pid.to_string()).unwrap();
        } else if self.ticks == 4 {
            self.go.tick(status);
        }
    }
}

/// A cgroup of its own, taken away at the end.
struct OwnGroup(std::path::PathBuf);

impl OwnGroup {
    fn new() -> Option<Self> {
        let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
        let name = format!("freehold-test-{}", std::process::id());
        let folders = roots.map(|root| root.join(&name));
        let made = folders
            .into_iter()
            .find(|folder| fs::create_dir(folder).is_ok() && folder.join("cgroup.procs").exists());
        made.map(Self)
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn who_joins_a_cgroup_is_recorded_with_what_it_has() {
    let Some(group) = OwnGroup::new() else {
        eprintln!("skipped: no cgroup can be made");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (running, says) = started(folder.path());
    let path = folder.path().join("a.fhr");
    let mut options = RecordOptions::new(path.clone(), Target::Cgroup(group.0.clone()));
    options.length = Some(LENGTH * 2);
    let go = Go(folder.path().join("data.go"));
    let mut join = Join { members: group.0.join("cgroup.procs"), pid: running.0.id(), go, ticks: 0 };
    match record(&options, &mut join) {
        Ok(_) => {}
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    drop(running);
    let mut reader = Reader::open(&path).unwrap();
    let tasks = reader.tasks().to_vec();
    let events: Vec<_> = reader.events().unwrap().map(Result::unwrap).collect();
    let memory = says["memory"];
    let present = events.iter().position(|event| {
        matches!(event.kind, EventKind::Present { address, pages, .. }
            if address <= memory && address + (u64::from(pages) << 12) == memory + (BEFORE * PAGE) as u64)
    });
    let fault = events.iter().position(|event| {
        matches!(event.kind, EventKind::Fault { address, .. } if address == memory + (BEFORE * PAGE) as u64)
    });
    assert!(present.is_some() && present < fault, "{present:?} {fault:?} of {} events", events.len());
    assert!(tasks[events[fault.unwrap()].task.0 as usize].in_workload);
}
