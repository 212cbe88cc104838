//! A program that does everything to its address space is recorded, where this machine permits that: each of its calls is an
//! event with the range that the program itself says, each page that it touches a fault, its file read and written.
//!
//! The program is this test itself, run again with `PROGRAM_FILE` set.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;

use freehold_trace::{
    Event, EventKind, MapFlags, NameId, NodeCall, NodeFlags, PolicyMode, Reader, RecordError, RecordOptions,
    SaidOfNodes, Target, record,
};

const PROGRAM_FILE: &str = "FREEHOLD_SPACES_FILE";
/// What tells of direct reads; not all kernels have it.
const DIRECT_EVENT: &str = "/sys/kernel/tracing/events/iomap/iomap_dio_rw_begin";
const PAGE: usize = 4096;
/// Of the program's memory.
const PAGES: usize = 64;
const GROWN_PAGES: usize = 4096;
const FILE_PAGES: usize = 40;

/// What the program does; it writes down where.
#[test]
#[ignore = "run by a_programs_address_space_is_recorded"]
fn program() {
    let Ok(place) = std::env::var(PROGRAM_FILE) else { return };
    let mut says = String::new();
    let mut say = |what: &str, value: usize| writeln!(says, "{what} {value}").unwrap();
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: everything is mapped by this function and used within what it maps; the child ends at once.
    unsafe {
        let map = |pages: usize, protection, flags, fd, offset| {
            let memory = libc::mmap(ptr::null_mut(), pages * PAGE, protection, flags, fd, offset);
            assert_ne!(memory, libc::MAP_FAILED);
            memory.cast::<u8>()
        };
        let own = map(PAGES, 3, anonymous, -1, 0);
        say("own", own as usize);
        for page in 0..PAGES {
            own.add(page * PAGE).write_volatile(1);
        }
        let child = libc::fork();
        if child == 0 {
            own.write_volatile(2);
            libc::_exit(0);
        }
        libc::waitpid(child, ptr::null_mut(), 0);
        let (from, to) = (PAGES * PAGE, GROWN_PAGES * PAGE);
        let moved = libc::mremap(own.cast(), from, to, libc::MREMAP_MAYMOVE).cast::<u8>();
        say("moved", moved as usize);
        libc::madvise(moved.cast(), 8 * PAGE, libc::MADV_DONTNEED);
        libc::mprotect(moved.add(8 * PAGE).cast(), 2 * PAGE, libc::PROT_READ);
        libc::mlock(moved.add(16 * PAGE).cast(), 4 * PAGE);
        libc::munlock(moved.add(16 * PAGE).cast(), 4 * PAGE);
        let bytes = vec![7u8; FILE_PAGES * PAGE];
        fs::write(&place, &bytes).unwrap();
        // The kernel touches this memory for us.
        let buffer = map(FILE_PAGES, 3, anonymous, -1, 0);
        say("buffer", buffer as usize);
        let file = fs::File::open(&place).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!(libc::pread(fd, buffer.cast(), FILE_PAGES * PAGE, 0), (FILE_PAGES * PAGE) as isize);
        let of_file = map(FILE_PAGES - 2, libc::PROT_READ, libc::MAP_SHARED, fd, 2 * PAGE as i64);
        say("file", of_file as usize);
        let filled = map(16, 3, anonymous | libc::MAP_POPULATE, -1, 0);
        say("filled", filled as usize);
        let shared = libc::shmget(libc::IPC_PRIVATE, 5 * PAGE, 0o600 | libc::IPC_CREAT);
        let attached = libc::shmat(shared, ptr::null(), 0);
        say("attached", attached as usize);
        libc::shmctl(shared, libc::IPC_RMID, ptr::null_mut());
        libc::shmdt(attached);
        assert!(libc::munmap(ptr::without_provenance_mut(PAGE + 1), 1) < 0, "an address that is not aligned");
        libc::munmap(moved.cast(), to);
        about_nodes(buffer);
        let direct = map(8, 3, anonymous, -1, 0);
        if reads_directly(&place, direct) {
            say("direct", direct as usize);
        }
    }
    fs::write(format!("{place}.says"), says).unwrap();
}

/// Reads the file's last three pages past the page cache, into pages 0, 1 and 3, with room for a fourth, then its first into page 6. Whether
/// the file system does that by iomap.
///
/// # Safety
/// `memory` is eight pages, and nobody else's.
unsafe fn reads_directly(place: &str, memory: *mut u8) -> bool {
    const EXT4: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    let direct = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(place)
        .map(std::fs::File::into_raw_fd);
    let Ok(fd) = direct else { return false };
    // SAFETY: statfs is plain numbers; the parts of memory are as long as the caller says.
    unsafe {
        let mut system = std::mem::zeroed::<libc::statfs>();
        if libc::fstatfs(fd, &raw mut system) != 0 || ![EXT4, XFS].contains(&system.f_type) {
            return false;
        }
        let part = |page: usize| libc::iovec { iov_base: memory.add(page * PAGE).cast(), iov_len: 2 * PAGE };
        let parts = [part(0), part(3)];
        let read = libc::preadv(fd, parts.as_ptr(), 2, ((FILE_PAGES - 3) * PAGE) as i64);
        assert_eq!(read, 3 * PAGE as isize);
        assert_eq!(libc::pread(fd, memory.add(6 * PAGE).cast(), PAGE, 0), PAGE as isize);
    }
    true
}

/// Says of pages 8 to 11 of the program's memory what may be said of nodes; node 0 is everywhere.
///
/// # Safety
/// `memory` is as long, and nobody else's.
unsafe fn about_nodes(memory: *mut u8) {
    let nodes = [1u64];
    // SAFETY: as the caller says; the mask is longer than what the calls say of it.
    unsafe {
        let range = memory.add(8 * PAGE);
        for advice in
            [libc::MADV_COLD, libc::MADV_PAGEOUT, libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE]
        {
            libc::madvise(range.cast(), 4 * PAGE, advice);
        }
        libc::syscall(libc::SYS_mbind, range, 4 * PAGE, 3, nodes.as_ptr(), 9, 2);
        libc::syscall(libc::SYS_set_mempolicy_home_node, range, 4 * PAGE, 0, 0);
        libc::syscall(libc::SYS_mbind, range, 4 * PAGE, 0, ptr::null::<u64>(), 0, 0);
        libc::syscall(libc::SYS_set_mempolicy, 2, nodes.as_ptr(), 64);
        libc::syscall(libc::SYS_set_mempolicy, 0, ptr::null::<u64>(), 0);
        libc::syscall(libc::SYS_migrate_pages, 0, 9, nodes.as_ptr(), nodes.as_ptr());
    }
}

/// Runs the program and records it; `None` where that is not for us to do.
fn recorded(folder: &Path) -> Option<(Reader<std::fs::File>, BTreeMap<String, u64>)> {
    let file = folder.join("data").into_os_string();
    let me = std::env::current_exe().unwrap().into_os_string();
    let mut words: Vec<OsString> = vec!["env".into()];
    let mut setting = OsString::from(format!("{PROGRAM_FILE}="));
    setting.push(&file);
    words.extend([setting, me]);
    words.extend(["--exact", "program", "--ignored", "--quiet", "--test-threads=1"].map(OsString::from));
    let path = folder.join("a.fhr");
    match record(&RecordOptions::new(path.clone(), Target::Command(words)), &mut ()) {
        Ok(summary) => assert_eq!((summary.exit_status, summary.lost), (Some(0), 0)),
        Err(error @ (RecordError::Permission(_) | RecordError::Missing(_))) => {
            eprintln!("skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let says = fs::read_to_string(folder.join("data.says")).unwrap();
    let says = says.lines().map(|line| line.split_once(' ').unwrap());
    let says = says.map(|(what, value)| (what.to_owned(), value.parse().unwrap())).collect();
    Some((Reader::open(&path).unwrap(), says))
}

/// What is looked for in a recording.
struct Seen {
    events: Vec<Event>,
    names: Vec<String>,
}

impl Seen {
    fn has(&self, what: &str, is_it: impl Fn(&EventKind) -> bool) -> usize {
        let found = self.events.iter().position(|event| is_it(&event.kind));
        found.unwrap_or_else(|| panic!("no {what} among {} events", self.events.len()))
    }

    fn is_file(&self, file: NameId, ending: &str) -> bool {
        self.names[file.0 as usize].ends_with(ending)
    }

    /// Pages of a range with a fault between two events.
    fn faulted(&self, from: usize, to: usize, start: u64, pages: usize, mode: u32) -> usize {
        let mut hit = vec![false; pages];
        for event in &self.events[from..to] {
            if let EventKind::Fault { address, error_code, .. } = event.kind {
                let page = address.wrapping_sub(start) as usize / PAGE;
                if address >= start && page < pages && error_code & 4 == mode {
                    hit[page] = true;
                }
            }
        }
        hit.iter().filter(|hit| **hit).count()
    }
}

#[test]
fn a_programs_address_space_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut reader, says)) = recorded(folder.path()) else { return };
    assert!(reader.meta().without_huge_pages && !reader.meta().counters.is_empty());
    assert!(reader.meta().settings.keys().any(|path| path.contains("read_ahead_kb")));
    let end = reader.outcome().unwrap().clone();
    assert!(end.counters["pgfault"] > reader.meta().counters["pgfault"]);
    assert!(end.usage.is_some_and(|usage| usage.minor_faults > PAGES as u64 && usage.peak_rss_pages > 0));
    let names = reader.names().to_vec();
    let events = reader.events().unwrap().map(Result::unwrap).collect();
    let seen = Seen { events, names };
    address_space(&seen, &says);
    files(&seen, &says);
    let has_nodes = Path::new("/proc/self/numa_maps").exists();
    if reader.meta().via == "bpf" && fs::exists(DIRECT_EVENT).is_ok_and(|there| there) {
        direct(&seen, says.get("direct").copied());
    }
    nodes(&seen, says["buffer"] + 8 * PAGE as u64, (reader.meta().via == "bpf", has_nodes));
}

/// What direct reads needed of the program's memory: not more than there was to read.
fn direct(seen: &Seen, start: Option<u64>) {
    let Some(start) = start else { return };
    let needed = seen.events.iter().filter_map(|event| match event.kind {
        EventKind::Advise { address, advice: EventKind::NEEDED_TO_WRITE, pages, .. } => {
            Some((address.wrapping_sub(start) / PAGE as u64, pages))
        }
        _ => None,
    });
    assert_eq!(needed.collect::<Vec<_>>(), [(0, 2), (3, 1), (6, 1)]);
    let is_map =
        |event: &Event| matches!(event.kind, EventKind::Map { address, pages: 8, .. } if address == start);
    let mapped = seen.events.iter().rposition(is_map).expect("its memory was mapped");
    // The kernel may clear what lies beyond the file's end, page 4, by touching it.
    let by = [(0, 2), (3, 1), (6, 1)].map(|(first, pages)| {
        let at = start + first * PAGE as u64;
        [0, 4].map(|mode| seen.faulted(mapped, seen.events.len(), at, pages, mode))
    });
    assert_eq!(by, [[0, 0]; 3], "no exception tells of them");
}

/// What the program said of four pages from `start` on; perf does not see which nodes.
fn nodes(seen: &Seen, start: u64, (sees_masks, has_nodes): (bool, bool)) {
    let said = |what: &str, at: u64, word: u32, mask: u64| {
        let count = if at == 0 { u32::MAX } else { 4 };
        seen.has(what, |kind| {
            matches!(*kind, EventKind::Advise { address, advice, pages, nodes, .. }
                if (address, advice, pages, nodes) == (at, word, count, mask))
        })
    };
    for (what, word) in [("cold", 20), ("populated to read", 22), ("populated to write", 23)] {
        said(what, start, word, 0);
    }
    said("paged out", start, 21, 0);
    if !has_nodes {
        return;
    }
    let unseen = if sees_masks { 0 } else { NodeFlags::NODES_UNSEEN.0 };
    let word = |call, flags| SaidOfNodes { call, flags: NodeFlags(flags), nodes: 0 }.advice();
    let mask = u64::from(sees_masks);
    let bound =
        said("mbind", start, word(NodeCall::Range(PolicyMode::Interleave), NodeFlags::MOVE.0 | unseen), mask);
    assert!(said("mbind to the default", start, 1100, 0) > bound);
    let set = said("set_mempolicy", 0, word(NodeCall::Task(PolicyMode::Bind), unseen), mask);
    assert!(said("set_mempolicy to the default", 0, 1200, 0) > set);
    said("migrate_pages", 0, word(NodeCall::Migrate, unseen), mask | mask << 32);
}

fn address_space(seen: &Seen, says: &BTreeMap<String, u64>) {
    let exec = seen.has("exec", |kind| matches!(kind, EventKind::Exec));
    let stack = seen
        .has("stack", |kind| matches!(kind, EventKind::Map { flags, .. } if flags.contains(MapFlags::STACK)));
    assert!(exec < stack, "what exec maps follows it");
    let own = says["own"];
    let mapped = seen.has("map", |kind| {
        matches!(*kind, EventKind::Map { address, pages, file: NameId::NONE, .. }
            if address == own && pages as usize == PAGES)
    });
    let moved = says["moved"];
    let remapped = seen.has("remap", |kind| {
        matches!(*kind, EventKind::Remap { from, to, old_pages, pages, .. }
            if from == own && to == moved && old_pages as usize == PAGES && pages as usize == GROWN_PAGES)
    });
    let forked = mapped
        + seen.events[mapped..]
            .iter()
            .position(|event| matches!(event.kind, EventKind::Fork { flags, .. } if flags & 0x100 == 0))
            .expect("a fork that shares no address space");
    assert_eq!(seen.faulted(mapped, forked, own, PAGES, 4), PAGES, "each first touch is a fault");
    let copy = seen.events[forked..remapped]
        .iter()
        .any(|event| matches!(event.kind, EventKind::Fault { address, error_code: 7, .. } if address == own));
    assert!(copy, "the child's write to a shared page");
    seen.has(
        "advice",
        |kind| matches!(*kind, EventKind::Advise { address, advice: 4, pages: 8, .. } if address == moved),
    );
    let at = |page: usize| moved + (page * PAGE) as u64;
    seen.has("protect", |kind| {
        matches!(*kind, EventKind::Protect { address, flags: MapFlags::READ, pages: 2, .. } if address == at(8))
    });
    for held in [1, 0] {
        seen.has("pin", |kind| {
            matches!(*kind, EventKind::Pin { address, held: is, pages: 4, .. } if address == at(16) && is == held)
        });
    }
    let unmapped = seen.has("unmap", |kind| {
        matches!(*kind, EventKind::Unmap { address, pages, .. }
            if address == moved && pages as usize == GROWN_PAGES)
    });
    assert!(unmapped > remapped);
    let is_failed = |event: &Event| matches!(event.kind, EventKind::Unmap { address: 4096, .. });
    assert!(!seen.events.iter().any(is_failed), "a call that failed");
}

fn files(seen: &Seen, says: &BTreeMap<String, u64>) {
    seen.has("map of the file", |kind| {
        matches!(*kind, EventKind::Map { address, file, flags, pages, first: 2, .. }
            if address == says["file"] && pages as usize == FILE_PAGES - 2
                && flags.contains(MapFlags::SHARED) && seen.is_file(file, "/data"))
    });
    seen.has("map that is filled", |kind| {
        matches!(*kind, EventKind::Map { address, flags, pages: 16, .. }
            if address == says["filled"] && flags.contains(MapFlags::POPULATE))
    });
    seen.has("shared memory", |kind| {
        matches!(*kind, EventKind::Map { address, flags, pages: 5, file, .. }
            if address == says["attached"] && flags.contains(MapFlags::SHARED) && file != NameId::NONE)
    });
    seen.has(
        "its end",
        |kind| matches!(*kind, EventKind::Unmap { address, pages: 5, .. } if address == says["attached"]),
    );
    let read = seen.has(
        "read of the whole file",
        |kind| matches!(*kind, EventKind::FileRead { first: 0, pages, .. } if pages as usize == FILE_PAGES),
    );
    let EventKind::FileRead { file: read_file, .. } = seen.events[read].kind else { unreachable!() };
    let key = seen.names[read_file.0 as usize].clone();
    let key = key.split(' ').next().unwrap_or_default();
    assert!(
        seen.names.iter().any(|name| name.starts_with(&format!("{key} ")) && name.ends_with("/data")),
        "{key} is the file that was mapped"
    );
    let filled = seen.faulted(0, seen.events.len(), says["buffer"], FILE_PAGES, 0);
    assert_eq!(filled, FILE_PAGES, "read() into fresh memory faults in the kernel");
}
