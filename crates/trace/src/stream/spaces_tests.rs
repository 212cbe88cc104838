//! What becomes of calls, forks, execs and mappings, from records made by hand.

use std::fmt::Write as _;
use std::io::Cursor;

use super::assemble::{Assembler, Membership};
use super::record::{Mapping, Origin, Record};
use crate::event::{Call, Event, EventKind, FileKey, MapFlags, NameId, Task};
use crate::format::{Reader, Writer};
use crate::meta::{Keep, Meta, RecordingEnd};
use crate::stream::schema::Schema;
use crate::stream::spaces::{Spaces, Span};
use crate::tracefs::format::Format;

/// The tracepoints of these tests, their numbers by their place, and their fields of eight bytes each.
const POINTS: [(&str, &str); 17] = [
    ("", ""),
    ("sys_enter_mmap", "addr len prot flags fd off"),
    ("sys_exit_mmap", "ret"),
    ("sys_enter_munmap", "addr len"),
    ("sys_exit_munmap", "ret"),
    ("sys_enter_brk", "brk"),
    ("sys_exit_brk", "ret"),
    ("sys_enter_mremap", "addr old_len new_len"),
    ("sys_exit_mremap", "ret"),
    ("page_fault_user", "address ip error_code"),
    ("task_newtask", "pid clone_flags"),
    ("sched_process_exec", "old_pid"),
    ("mm_filemap_get_pages", "s_dev i_ino index last_index"),
    ("sys_enter_mlockall", "flags"),
    ("sys_exit_mlockall", "ret"),
    ("sched_waking", "pid"),
    ("sys_enter_clone", "clone_flags"),
];
const ENTER_MMAP: u64 = 1;
const ENTER_MUNMAP: u64 = 3;
const ENTER_BRK: u64 = 5;
const ENTER_MREMAP: u64 = 7;
const FAULT: u64 = 9;
const NEW_TASK: u64 = 10;
const EXECUTED: u64 = 11;
const READ: u64 = 12;
const ENTER_MLOCKALL: u64 = 13;
const WAKING: u64 = 15;
const ENTER_CLONE: u64 = 16;

const MAIN: u32 = 10;
const THREAD: u32 = 11;
const OTHER: u32 = 20;
const PRIVATE_ANONYMOUS: u64 = 0x22;
const ENOMEM: u64 = -12i64 as u64;

/// A story that an assembler is told.
struct Story {
    assembler: Assembler<Vec<u8>>,
    time: u64,
}

impl Story {
    /// A process of the workload with a thread, and somebody else.
    fn new() -> Self {
        let mut schema = Schema::default();
        for (id, (name, fields)) in POINTS.iter().enumerate().skip(1) {
            let mut format = format!("name: {name}\nID: {id}\n");
            for (place, field) in fields.split(' ').enumerate() {
                let offset = 8 + 8 * place;
                let _ =
                    writeln!(format, "\tfield:unsigned long {field};\toffset:{offset};\tsize:8;\tsigned:0;");
            }
            assert_eq!(schema.add(&Format::parse(&format).unwrap()), Ok(true), "{name}");
        }
        let writer = Writer::new(vec![], &Meta { cpus: 1, ..Meta::default() }).unwrap();
        let mut assembler = Assembler::new(writer, schema, Membership::Descendants, Keep::Workload);
        for (pid, tid) in [(MAIN, MAIN), (MAIN, THREAD), (OTHER, OTHER)] {
            assembler.add_task(Task { pid, tid, name: String::new(), in_workload: pid == MAIN });
        }
        Self { assembler, time: 0 }
    }

    fn origin(&mut self, tid: u32) -> Origin {
        self.time += 10;
        let pid = if tid == THREAD { MAIN } else { tid };
        Origin { time: self.time, pid, tid, cpu: 0 }
    }

    fn record(&mut self, tid: u32, record: Record<'_>) -> &mut Self {
        let origin = self.origin(tid);
        self.assembler.take(origin, record).unwrap();
        self
    }

    fn sample(&mut self, tid: u32, point: u64, fields: &[u64]) -> &mut Self {
        let mut raw = (point | u64::from(tid) << 32).to_le_bytes().to_vec();
        for field in fields {
            raw.extend_from_slice(&field.to_le_bytes());
        }
        self.record(tid, Record::Sample(&raw))
    }

    /// A call from beginning to end, with nothing in between.
    fn call(&mut self, tid: u32, enter: u64, arguments: &[u64], result: u64) -> &mut Self {
        self.sample(tid, enter, arguments).sample(tid, enter + 1, &[result])
    }

    fn mapped(&mut self, tid: u32, address: u64, len: u64, file: FileKey, path: &str) -> &mut Self {
        let (protection, flags) = (3, 2);
        let mapping =
            Mapping { address, len, offset: 0x2000, file, protection, flags, path: path.as_bytes() };
        let pid = if tid == THREAD { MAIN } else { tid };
        self.record(tid, Record::Mapped { pid, tid, mapping })
    }

    fn exec(&mut self, tid: u32) -> &mut Self {
        self.record(tid, Record::Comm { pid: tid, tid, name: b"new", is_exec: true })
    }

    fn fork(&mut self, parent: u32, child: [u32; 2]) -> &mut Self {
        let [pid, tid] = child;
        self.record(parent, Record::Fork { pid, tid, parent_pid: parent, parent_tid: parent })
    }

    /// All that was written, with the numbers of the tasks as the kernel has them.
    fn written(self) -> Written {
        let (bytes, _) = self.assembler.into_writer().finish(RecordingEnd::default()).unwrap();
        let mut reader = Reader::new(Cursor::new(bytes)).unwrap();
        let events: Vec<Event> = reader.events().unwrap().map(Result::unwrap).collect();
        Written { names: reader.names().to_vec(), tasks: reader.tasks().to_vec(), events }
    }
}

struct Written {
    names: Vec<String>,
    tasks: Vec<Task>,
    events: Vec<Event>,
}

impl Written {
    fn kinds(&self) -> Vec<EventKind> {
        self.events.iter().map(|event| event.kind).collect()
    }

    fn tids(&self) -> Vec<u32> {
        self.events.iter().map(|event| self.tasks[event.task.0 as usize].tid).collect()
    }
}

fn map(address: u64, pages: u32, flags: MapFlags, took_ns: u32) -> EventKind {
    EventKind::Map { address, file: NameId::NONE, flags, pages, first: 0, took_ns }
}

const OWN: MapFlags = MapFlags(3);

#[test]
fn a_call_becomes_one_event_where_it_ends_unless_it_failed() {
    let mut story = Story::new();
    story
        .sample(MAIN, ENTER_MMAP, &[0, 0x5000, 3, PRIVATE_ANONYMOUS | 0x8000, u64::MAX, 0])
        .mapped(MAIN, 0x6f_f000, 0x6000, FileKey::NONE, "//anon")
        .sample(MAIN, ENTER_MMAP + 1, &[0x70_0000])
        .call(MAIN, ENTER_MMAP, &[0, 1 << 60, 3, PRIVATE_ANONYMOUS, u64::MAX, 0], ENOMEM)
        .call(MAIN, ENTER_MUNMAP, &[0x70_0000, 0x1001], 0)
        .call(OTHER, ENTER_MUNMAP, &[0x70_0000, 0x1000], 0)
        .sample(MAIN, ENTER_MUNMAP + 1, &[0]);
    let populated = MapFlags(3 | 16);
    let expected =
        [map(0x70_0000, 5, populated, 20), EventKind::Unmap { address: 0x70_0000, pages: 2, took_ns: 10 }];
    let written = story.written();
    assert_eq!(written.kinds(), expected);
    assert_eq!(written.events[0].time.0, 30, "where the call ended");
}

#[test]
fn a_fault_within_a_call_stays_where_it_was_and_the_call_where_it_ended() {
    let mut story = Story::new();
    story.sample(MAIN, ENTER_MUNMAP, &[0x1000, 0x1000]).sample(MAIN, FAULT, &[0x5008, 7, 6]).sample(
        MAIN,
        ENTER_MUNMAP + 1,
        &[0],
    );
    let fault = EventKind::Fault { address: 0x5008, ip: 7, error_code: 6 };
    let unmap = EventKind::Unmap { address: 0x1000, pages: 1, took_ns: 20 };
    assert_eq!(story.written().kinds(), [fault, unmap]);
}

#[test]
fn a_range_that_is_mapped_again_before_munmap_ends_was_unmapped_before() {
    let anonymous = [0, 0x2000, 3, PRIVATE_ANONYMOUS, u64::MAX, 0];
    let mut story = Story::new();
    story
        .sample(MAIN, ENTER_MUNMAP, &[0x10_0000, 0x4000])
        .call(THREAD, ENTER_MMAP, &anonymous, 0x10_1000)
        .sample(MAIN, ENTER_MUNMAP + 1, &[0])
        .sample(MAIN, ENTER_MUNMAP, &[0x20_0000, 0x4000])
        .call(THREAD, ENTER_MMAP, &anonymous, 0x30_0000)
        .sample(MAIN, ENTER_MUNMAP + 1, &[0]);
    let unmap = |address, took_ns| EventKind::Unmap { address, pages: 4, took_ns };
    let written = story.written();
    let expected =
        [unmap(0x10_0000, 20), map(0x10_1000, 2, OWN, 10), map(0x30_0000, 2, OWN, 10), unmap(0x20_0000, 30)];
    assert_eq!(written.kinds(), expected);
    assert_eq!(written.tids(), [MAIN, THREAD, THREAD, MAIN]);
}

#[test]
fn the_heap_grows_and_shrinks_by_whole_pages_once_its_end_is_known() {
    let heap = MapFlags::READ | MapFlags::WRITE | MapFlags::HEAP;
    let mut story = Story::new();
    story
        .call(MAIN, ENTER_BRK, &[0x9000], 0x9000)
        .call(MAIN, ENTER_BRK, &[0], 0x9000)
        .call(MAIN, ENTER_BRK, &[0xb010], 0xb010)
        .call(MAIN, ENTER_BRK, &[0xb020], 0xb020)
        .call(MAIN, ENTER_BRK, &[1 << 60], 0xb020)
        .fork(MAIN, [30, 30])
        .sample(MAIN, NEW_TASK, &[30, 0x0120_0011])
        .call(30, ENTER_BRK, &[0xa000], 0xa000);
    let written = story.written();
    assert_eq!(written.kinds()[0], map(0x9000, 3, heap, 10));
    assert_eq!(written.kinds()[2], EventKind::Unmap { address: 0xa000, pages: 2, took_ns: 10 });
    assert_eq!(written.tids(), [MAIN, MAIN, 30]);
}

#[test]
fn files_are_named_by_number_and_path_and_shared_memory_is_a_file() {
    let file = FileKey { device: 254 << 20 | 3, inode: 77 };
    let shared = FileKey { device: 1, inode: 0 };
    let mut story = Story::new();
    story
        .sample(MAIN, READ, &[file.device.into(), 77, 4, 5])
        .sample(MAIN, ENTER_MMAP, &[0, 0x3000, 1, 1, 5, 0x7000])
        .mapped(MAIN, 0x50_0000, 0x3000, file, "/a b")
        .sample(MAIN, ENTER_MMAP + 1, &[0x50_0000])
        .sample(MAIN, ENTER_MMAP, &[0, 0x3000, 3, 0x21, u64::MAX, 0])
        .mapped(MAIN, 0x60_0000, 0x3000, shared, "/dev/zero (deleted)")
        .sample(MAIN, ENTER_MMAP + 1, &[0x60_0000])
        .call(MAIN, ENTER_MMAP, &[0, 0x1000, 1, 2, 5, 0], 0x70_0000);
    let written = story.written();
    assert_eq!(
        written.names,
        ["", "254:3:77", "254:3:77 /a b", "0:1:0 /dev/zero (deleted)", "unknown"].map(String::from)
    );
    assert_eq!(FileKey::of_name(&written.names[2]), Some(file));
    let read = EventKind::FileRead { file: NameId(1), first: 4, pages: 2 };
    let (of_file, of_shared) = (MapFlags(1 | 8), MapFlags(3 | 8));
    let map = |address, file, flags, pages, first, took_ns| EventKind::Map {
        address,
        file: NameId(file),
        flags,
        pages,
        first,
        took_ns,
    };
    let expected = [
        read,
        map(0x50_0000, 2, of_file, 3, 7, 20),
        map(0x60_0000, 3, of_shared, 3, 0, 20),
        map(0x70_0000, 4, MapFlags::READ, 1, 0, 10),
    ];
    assert_eq!(written.kinds(), expected);
}

#[test]
fn a_long_read_is_told_once() {
    let mut story = Story::new();
    story
        .sample(MAIN, READ, &[1, 5, 0, 99])
        .sample(MAIN, READ, &[1, 5, 15, 99])
        .sample(MAIN, READ, &[1, 5, 30, 99])
        .sample(MAIN, READ, &[1, 5, 100, 101])
        .sample(MAIN, READ, &[1, 6, 101, 101])
        .sample(MAIN, READ, &[1, 6, 101, 101]);
    let firsts: Vec<u32> = story
        .written()
        .kinds()
        .iter()
        .map(|kind| match kind {
            EventKind::FileRead { first, .. } => *first,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(firsts, [0, 100, 101, 101]);
}

#[test]
fn exec_brings_its_own_mappings_and_stacks_that_grow_are_left_out() {
    let file = FileKey { device: 1 << 20, inode: 9 };
    let mut story = Story::new();
    story
        .exec(MAIN)
        .mapped(MAIN, 0x7f_0000, 0x2000, FileKey::NONE, "[stack]")
        .mapped(MAIN, 0x7e_0000, 0x12000, FileKey::NONE, "[stack]")
        .mapped(MAIN, 0x40_0000, 0x1000, file, "/bin/p")
        .mapped(MAIN, 0x50_0000, 0x2000, FileKey::NONE, "[vdso]")
        .sample(MAIN, EXECUTED, &[MAIN.into()])
        .mapped(MAIN, 0x7d_0000, 0x22000, FileKey::NONE, "[stack]");
    let written = story.written();
    let of = |address, file, flags, pages, first| EventKind::Map {
        address,
        file: NameId(file),
        flags: MapFlags(flags),
        pages,
        first,
        took_ns: 0,
    };
    let expected = [
        EventKind::Exec,
        of(0x7f_0000, 0, 3 | 64, 2, 0),
        EventKind::Unmap { address: 0x7f_0000, pages: 2, took_ns: 0 },
        of(0x7e_0000, 0, 3 | 64, 18, 0),
        of(0x40_0000, 1, 3, 1, 2),
        of(0x50_0000, 2, 3, 2, 0),
    ];
    assert_eq!(written.kinds(), expected);
    assert_eq!(written.names[1..], ["1:0:9 /bin/p", "[vdso]"].map(String::from));
}

#[test]
fn a_thread_that_runs_exec_becomes_its_process() {
    let mut story = Story::new();
    story
        .sample(MAIN, ENTER_MUNMAP, &[0x1000, 0x1000])
        .record(MAIN, Record::Exit { pid: MAIN, tid: MAIN })
        .exec(MAIN)
        .sample(MAIN, EXECUTED, &[THREAD.into()])
        .sample(MAIN, ENTER_MUNMAP + 1, &[0]);
    let written = story.written();
    assert_eq!(written.kinds(), [EventKind::Exit, EventKind::Exec, EventKind::Exit]);
    assert_eq!(written.tids(), [MAIN, MAIN, THREAD]);
    let [first, second, _] = [0, 1, 2].map(|event| written.events[event].task);
    assert_ne!(first, second, "the task that ended is not the one that goes on");
    assert!(written.tasks[second.0 as usize].in_workload);
}

#[test]
fn a_fork_is_told_once_with_what_is_shared() {
    let vfork = 0x4111u64;
    let mut story = Story::new();
    story.fork(MAIN, [30, 30]).sample(MAIN, NEW_TASK, &[30, vfork]).fork(MAIN, [31, 31]).sample(
        MAIN,
        FAULT,
        &[1, 2, 3],
    );
    let written = story.written();
    let flags: Vec<u32> = written
        .kinds()
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Fork { flags, .. } => Some(*flags),
            _ => None,
        })
        .collect();
    assert_eq!(flags, [vfork as u32, 0], "the second one's tracepoint was lost");
    assert_eq!(written.events.iter().map(|event| event.time.0).collect::<Vec<_>>(), [10, 30, 40]);
}

#[test]
fn a_fork_says_how_long_the_call_had_taken() {
    let mut story = Story::new();
    story
        .sample(MAIN, ENTER_CLONE, &[0x11])
        .sample(MAIN, FAULT, &[1, 2, 3])
        .fork(MAIN, [30, 30])
        .sample(MAIN, NEW_TASK, &[30, 0x11])
        .fork(MAIN, [31, 31])
        .sample(MAIN, NEW_TASK, &[31, 0x11]);
    let written = story.written();
    let forks = |kind: &EventKind| match *kind {
        EventKind::Fork { flags, took_ns, .. } => Some((flags, took_ns)),
        _ => None,
    };
    let forks: Vec<_> = written.kinds().iter().filter_map(forks).collect();
    assert_eq!(forks[0], (0x11, 20));
    assert_eq!(forks[1].0, 0x11);
}

#[test]
fn what_is_mapped_after_mlockall_is_locked_but_not_in_a_child() {
    let anonymous = [0, 0x1000, 3, PRIVATE_ANONYMOUS, u64::MAX, 0];
    let mut story = Story::new();
    story
        .call(MAIN, ENTER_MLOCKALL, &[3], 0)
        .call(MAIN, ENTER_MMAP, &anonymous, 0x10_0000)
        .fork(MAIN, [30, 30])
        .sample(MAIN, NEW_TASK, &[30, 17])
        .call(30, ENTER_MMAP, &anonymous, 0x20_0000)
        .call(MAIN, ENTER_MREMAP, &[0x10_0000, 0x1000, 0x3000], 0x40_0000);
    let kinds = story.written().kinds();
    assert_eq!(kinds[0], EventKind::Pin { address: 0, held: 1, pages: u32::MAX, took_ns: 10 });
    assert_eq!(kinds[1], map(0x10_0000, 1, OWN | MapFlags::LOCKED, 10));
    assert_eq!(kinds[3], map(0x20_0000, 1, OWN, 10));
    let moved = EventKind::Remap { from: 0x10_0000, to: 0x40_0000, old_pages: 1, pages: 3, took_ns: 10 };
    assert_eq!(kinds[4], moved);
}

#[test]
fn what_is_to_be_locked_once_it_is_touched_is_not_brought_in() {
    let mut story = Story::new();
    // MCL_FUTURE | MCL_ONFAULT.
    story.call(MAIN, ENTER_MLOCKALL, &[6], 0);
    story.call(MAIN, ENTER_MMAP, &[0, 0x1000, 3, PRIVATE_ANONYMOUS, u64::MAX, 0], 0x10_0000);
    assert_eq!(story.written().kinds(), [map(0x10_0000, 1, OWN, 10)]);
}

#[test]
fn what_a_call_needs_is_told_unless_the_call_itself_is() {
    let mut spaces = Spaces::default();
    let needed =
        |spaces: &Spaces, tid| spaces.needed(tid, Span::of_pages(0x10_0123, 3), EventKind::NEEDED_TO_WRITE);
    let told = EventKind::Advise {
        address: 0x10_0000,
        advice: EventKind::NEEDED_TO_WRITE,
        pages: 3,
        nodes: 0,
        took_ns: 0,
    };
    assert_eq!(needed(&spaces, MAIN), Some(told));
    let origin = Origin { time: 5, pid: MAIN, tid: MAIN, cpu: 0 };
    spaces.enter(origin, Call::Mlock, [0x10_0000, 0x3000, 0, 0, 0, 0]);
    assert_eq!((needed(&spaces, MAIN), needed(&spaces, THREAD)), (None, Some(told)));
    spaces.leave(origin, Call::Mlock, 0, NameId::NONE);
    assert_eq!(needed(&spaces, MAIN), Some(told));
}

#[test]
fn bytes_beyond_all_addresses_are_no_pages() {
    let pages = |start, len| Span::of(start, len).pages;
    assert_eq!([pages(0xfff, 2), pages(0x1000, 0x1000), pages(0x1000, 0), pages(0, u64::MAX)], [2, 1, 0, 0]);
    assert_eq!(pages(0, 1 << 47), u32::MAX, "as many as fit");
}

#[test]
fn whoever_wakes_the_workload_is_kept_and_before_exec_only_the_recorder_lives() {
    let mut story = Story::new();
    story.assembler.wait_for_exec(MAIN);
    story
        .sample(MAIN, FAULT, &[1, 2, 3])
        .sample(OTHER, WAKING, &[MAIN.into()])
        .sample(OTHER, WAKING, &[OTHER.into()])
        .exec(MAIN)
        .sample(MAIN, FAULT, &[1, 2, 3]);
    let left_out = story.assembler.counts().left_out;
    let written = story.written();
    let names: Vec<&str> = written.kinds().iter().map(EventKind::name).collect();
    assert_eq!((names, left_out), (vec!["waking", "exec", "fault"], 2));
    assert_eq!(written.tids()[0], OTHER);
}

#[test]
fn what_perf_tells_at_time_zero_was_there_before() {
    let mut story = Story::new();
    let mapping = Mapping {
        address: 0x10_0000,
        len: 0x3000,
        offset: 0,
        file: FileKey::NONE,
        protection: 3,
        flags: 2,
        path: b"//anon",
    };
    let origin = Origin { time: 0, pid: MAIN, tid: MAIN, cpu: 0 };
    let record = Record::Mapped { pid: MAIN, tid: MAIN, mapping };
    story.assembler.take(origin, record).unwrap();
    story.record(MAIN, record);
    assert_eq!(story.written().kinds(), [map(0x10_0000, 3, OWN | MapFlags::BEFORE, 0)]);
}
