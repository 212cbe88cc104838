//! What tasks do to their address spaces: a call's beginning and its end become one event, with the file that perf named in
//! between; what exec maps is named by perf alone.
//!
//! An event stands where its call ended, for only then is it known to have succeeded, and at which address. Another task may be
//! given a range that munmap has let go before munmap itself ends: such an `unmap` is told first.

use std::collections::{BTreeMap, HashMap};

use super::attached::AttachedSpace;
use super::nodes;
use super::record::{Mapping, Origin};
use crate::event::{Call, EventKind, FileKey, MapFlags, NameId};

/// What mmap(2), mlockall(2) and their like number.
const MAP_SHARED: u64 = 1;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_TYPE: u64 = 15;
const MAP_ANONYMOUS: u64 = 0x20;
const SHM_RDONLY: u64 = 0x1000;
const MLOCK_ONFAULT: u64 = 1;
const MCL_CURRENT: u64 = 1;
const MCL_FUTURE: u64 = 2;
const MCL_ONFAULT: u64 = 4;
const PR_SET_THP_DISABLE: u64 = 41;
/// Flags of mmap(2) and ours for them.
const MAP_FLAGS: [(u64, MapFlags); 5] = [
    (0x100, MapFlags::STACK),
    (0x2000, MapFlags::LOCKED),
    (0x4000, MapFlags::NORESERVE),
    (0x8000, MapFlags::POPULATE),
    (0x4_0000, MapFlags::HUGETLB),
];

/// How [`EventKind::Pin`] names all that is mapped.
pub(super) const ALL_PAGES: Span = Span { address: 0, pages: u32::MAX };
/// Of [`EventKind::Pin`]: pages may go, are brought in and stay, stay once they are touched.
const LET_GO: u32 = 0;
const HELD: u32 = 1;
const HELD_ON_FAULT: u32 = 2;

/// A range of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Span {
    pub(super) address: u64,
    pub(super) pages: u32,
}

impl Span {
    /// The pages that hold these bytes. None do where these are more than there are addresses: Linux rounds up to nothing, and `mlock`
    /// succeeds.
    pub(super) fn of(start: u64, len: u64) -> Self {
        let offset = start % mm::ids::PAGE_SIZE;
        let rounded =
            offset.checked_add(len).and_then(|end| end.checked_next_multiple_of(mm::ids::PAGE_SIZE));
        let pages = rounded.unwrap_or(0) / mm::ids::PAGE_SIZE;
        Self { address: start - offset, pages: pages.try_into().unwrap_or(u32::MAX) }
    }

    /// So many pages from the one on that `address` lies in.
    pub(super) const fn of_pages(address: u64, pages: u32) -> Self {
        Self { address: address - address % mm::ids::PAGE_SIZE, pages }
    }

    fn end(self) -> u64 {
        self.address.saturating_add(u64::from(self.pages) << mm::ids::PAGE_SHIFT)
    }

    fn overlaps(self, other: Self) -> bool {
        self.address < other.end() && other.address < self.end()
    }

    const fn unmapped(self) -> EventKind {
        EventKind::Unmap { address: self.address, pages: self.pages, took_ns: 0 }
    }
}

/// An event on the time of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    /// The task's number.
    pub(crate) tid: u32,
    pub(crate) kind: EventKind,
}

/// All address spaces, as far as the next event depends on what was before.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    /// Calls that have begun, by the task's number.
    calls: HashMap<u32, Begun>,
    processes: HashMap<u32, Process>,
}

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// When, ns.
    time: u64,
    pid: u32,
    call: Call,
    arguments: [u64; 6],
    mapped: Option<Mapped>,
    /// Its event was written already.
    is_told: bool,
}

/// What perf said of a mapping.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    len: u64,
    file: NameId,
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// Where the heap of `brk` ends, once that was seen.
    heap_end: Option<u64>,
    /// What is mapped from here on is brought in and locked (`MCL_FUTURE`).
    locks_all: bool,
    /// Shared memory of System V, by address: pages.
    attached: BTreeMap<u64, u32>,
    /// It runs exec, which has mapped this much of a stack.
    exec: Option<Span>,
}

impl Spaces {
    /// A process runs already.
    pub(crate) fn attach(&mut self, space: &AttachedSpace) {
        let shared = space.maps.iter().filter(|map| map.path.starts_with(b"/SYSV"));
        let attached = shared.map(|map| (map.address, map.pages)).collect();
        let process = Process { heap_end: space.heap_end, attached, ..Process::default() };
        self.processes.insert(space.pid, process);
    }

    /// A call begins.
    pub(crate) fn enter(&mut self, origin: Origin, call: Call, arguments: [u64; 6]) {
        let Origin { time, pid, tid, .. } = origin;
        self.calls.insert(tid, Begun { time, pid, call, arguments, mapped: None, is_told: false });
    }

    /// A call needed a range in memory. Its event, unless the call is one of those that are told themselves, and that bring in what they
    /// say (`mlock`).
    pub(super) fn needed(&self, tid: u32, range: Span, advice: u32) -> Option<EventKind> {
        let Span { address, pages } = range;
        let is_told = self.calls.contains_key(&tid);
        (!is_told).then_some(EventKind::Advise { address, advice, pages, nodes: 0, took_ns: 0 })
    }

    /// How long the task is in a call by now that makes another, ns; 0 if that was not seen.
    pub(crate) fn forking_ns(&self, tid: u32, now: u64) -> u32 {
        let is_fork =
            |begun: &&Begun| matches!(begun.call, Call::Clone | Call::Clone3 | Call::Fork | Call::Vfork);
        let begun = self.calls.get(&tid).filter(is_fork);
        begun.map_or(0, |begun| now.saturating_sub(begun.time).try_into().unwrap_or(u32::MAX))
    }

    /// Whether the task is in a call that maps a file of which nothing is known.
    pub(crate) fn lacks_file(&self, tid: u32) -> bool {
        self.calls.get(&tid).is_some_and(|begun| {
            let is_private = !is_shared(begun.arguments[3]);
            let has_file = begun.arguments[3] & MAP_ANONYMOUS == 0 || !is_private;
            begun.call == Call::Mmap && has_file && begun.mapped.is_none()
        })
    }

    /// perf tells of a mapping: of a call that has begun, of exec, or of a stack that grew, which is left out. At time 0 it
    /// tells of what was there before, as `perf record` writes it.
    pub(crate) fn mapped(&mut self, origin: Origin, mapping: &Mapping<'_>, file: NameId) -> Vec<Told> {
        let Origin { time, pid, tid, .. } = origin;
        if let Some(begun) = self.calls.get_mut(&tid) {
            begun.mapped = Some(Mapped { len: mapping.len, file });
            return vec![];
        }
        let process = self.processes.entry(pid).or_default();
        let is_stack = mapping.path == b"[stack]";
        let is_before = time == 0;
        if process.exec.is_none() && !is_before && (file == NameId::NONE || is_stack) {
            return vec![];
        }
        let span = Span::of(mapping.address, mapping.len);
        let mut flags = protection(mapping.protection.into());
        if is_before {
            flags = flags | MapFlags::BEFORE;
        }
        if u64::from(mapping.flags) & MAP_TYPE == MAP_SHARED {
            flags = flags | MapFlags::SHARED;
        }
        let mut told = vec![];
        if is_stack {
            flags = flags | MapFlags::STACK;
            // exec moves the stack that it has put arguments on, and makes it longer.
            let before = process.exec.as_mut().map(|stack| std::mem::replace(stack, span));
            let before = before.filter(|before| before.pages > 0);
            told.extend(before.map(|before| Told { tid, kind: before.unmapped() }));
        } else if mapping.path == b"[heap]" {
            flags = flags | MapFlags::HEAP;
        }
        let first = if mapping.file == FileKey::NONE { 0 } else { file_page(mapping.offset) };
        let kind =
            EventKind::Map { address: span.address, file, flags, pages: span.pages, first, took_ns: 0 };
        told.push(Told { tid, kind });
        told
    }

    /// A call ends. Its event, if it succeeded and has one, and before it those that it overtook. `unknown` stands for a file
    /// of which nothing is known.
    pub(crate) fn leave(&mut self, origin: Origin, call: Call, result: i64, unknown: NameId) -> Vec<Told> {
        let tid = origin.tid;
        let Some(begun) = self.calls.remove(&tid).filter(|begun| begun.call == call) else { return vec![] };
        if begun.is_told || (-4095..0).contains(&result) {
            return vec![];
        }
        let process = self.processes.entry(begun.pid).or_default();
        let Some(kind) = process.event(&begun, result as u64, unknown) else { return vec![] };
        let mut told = match kind {
            EventKind::Map { address, pages, .. } | EventKind::Remap { to: address, pages, .. } => {
                self.overtaken(origin.time, begun.pid, Span { address, pages })
            }
            _ => vec![],
        };
        told.push(Told { tid, kind: begun.timed(kind, origin.time) });
        told
    }

    /// The ranges that tasks of a process are unmapping and that it was given again.
    fn overtaken(&mut self, now: u64, pid: u32, given: Span) -> Vec<Told> {
        let mut told = vec![];
        for (&tid, begun) in &mut self.calls {
            let span = Span::of(begun.arguments[0], begun.arguments[1]);
            let is_due = begun.pid == pid && begun.call == Call::Munmap && !begun.is_told;
            if is_due && span.overlaps(given) {
                begun.is_told = true;
                told.push(Told { tid, kind: begun.timed(span.unmapped(), now) });
            }
        }
        told.sort_by_key(|told| told.tid);
        told
    }

    /// The process runs another program from here on.
    pub(crate) fn exec(&mut self, pid: u32, tid: u32) {
        self.calls.remove(&tid);
        self.processes.insert(pid, Process { exec: Some(Span::default()), ..Process::default() });
    }

    /// All that the program needs at its start is mapped.
    pub(crate) fn executed(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.exec = None;
        }
    }

    /// A process makes another.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        if parent == child {
            return;
        }
        // Locks are not inherited.
        let inherited = self.processes.get(&parent).map(|of| Process { locks_all: false, ..of.clone() });
        self.processes.insert(child, inherited.unwrap_or_default());
    }

    /// A task ends.
    pub(crate) fn exit(&mut self, pid: u32, tid: u32) {
        self.calls.remove(&tid);
        if pid == tid {
            self.processes.remove(&pid);
        }
    }
}

impl Begun {
    /// The call's event, with the time that the call took up to `now`.
    fn timed(&self, mut kind: EventKind, now: u64) -> EventKind {
        if let EventKind::Map { took_ns, .. }
        | EventKind::Unmap { took_ns, .. }
        | EventKind::Remap { took_ns, .. }
        | EventKind::Protect { took_ns, .. }
        | EventKind::Advise { took_ns, .. }
        | EventKind::Pin { took_ns, .. } = &mut kind
        {
            *took_ns = now.saturating_sub(self.time).try_into().unwrap_or(u32::MAX);
        }
        kind
    }
}

impl Process {
    /// What a call that succeeded did.
    fn event(&mut self, begun: &Begun, result: u64, unknown: NameId) -> Option<EventKind> {
        let [a, b, c, ..] = begun.arguments;
        let span = Span::of(a, b);
        Some(match begun.call {
            Call::Mmap => self.map(begun, result, unknown),
            Call::Munmap => span.unmapped(),
            Call::Mremap => {
                let (before, now) = (Span::of(a, b), Span::of(result, c));
                EventKind::Remap {
                    from: a,
                    to: result,
                    old_pages: before.pages,
                    pages: now.pages,
                    took_ns: 0,
                }
            }
            Call::Brk => return self.brk(a, result),
            Call::Mprotect | Call::PkeyMprotect => EventKind::Protect {
                address: span.address,
                flags: protection(c),
                pages: span.pages,
                took_ns: 0,
            },
            Call::Madvise => {
                let (address, pages) = (span.address, span.pages);
                EventKind::Advise { address, advice: c as u32, pages, nodes: 0, took_ns: 0 }
            }
            Call::Mlock2 if c & MLOCK_ONFAULT != 0 => span.pinned(HELD_ON_FAULT),
            Call::Mlock | Call::Mlock2 => span.pinned(HELD),
            Call::Munlock => span.pinned(LET_GO),
            Call::Mlockall => {
                // What is locked once it is touched is not brought in.
                self.locks_all = a & MCL_FUTURE != 0 && a & MCL_ONFAULT == 0;
                let held = if a & MCL_ONFAULT != 0 { HELD_ON_FAULT } else { HELD };
                return (a & MCL_CURRENT != 0).then(|| ALL_PAGES.pinned(held));
            }
            Call::Munlockall => {
                self.locks_all = false;
                ALL_PAGES.pinned(LET_GO)
            }
            Call::Shmat => self.attach(begun, result)?,
            Call::Prctl if a == PR_SET_THP_DISABLE => {
                let advice = if b == 0 { EventKind::ALLOW_HUGE_PAGES } else { EventKind::FORBID_HUGE_PAGES };
                let Span { address, pages } = ALL_PAGES;
                EventKind::Advise { address, advice, pages, nodes: 0, took_ns: 0 }
            }
            // What forks is told by the event of the new task.
            Call::Prctl | Call::Clone | Call::Clone3 | Call::Fork | Call::Vfork => return None,
            Call::Shmdt => Span { address: a, pages: self.attached.remove(&a)? }.unmapped(),
            Call::Mbind | Call::SetMempolicy | Call::SetHomeNode | Call::MigratePages | Call::MovePages => {
                return nodes::said(begun.call, begun.arguments, begun.pid);
            }
        })
    }

    fn map(&self, begun: &Begun, address: u64, unknown: NameId) -> EventKind {
        let [_, len, asked, how, _, offset] = begun.arguments;
        let mut flags = self.locked(protection(asked));
        for (_, flag) in MAP_FLAGS.iter().filter(|(bit, _)| how & bit != 0) {
            flags = flags | *flag;
        }
        let is_own = how & MAP_ANONYMOUS != 0;
        let seen = begun.mapped.map_or(unknown, |mapped| mapped.file);
        let (file, first) = match (is_shared(how), is_own) {
            (false, true) => (NameId::NONE, 0),
            (_, true) => (seen, 0),
            (_, false) => (seen, file_page(offset)),
        };
        if is_shared(how) {
            flags = flags | MapFlags::SHARED;
        }
        EventKind::Map { address, file, flags, pages: Span::of(address, len).pages, first, took_ns: 0 }
    }

    /// The heap ends at `end` from here on, if that is what was asked for.
    fn brk(&mut self, asked: u64, end: u64) -> Option<EventKind> {
        let before = self.heap_end.replace(end)?.next_multiple_of(mm::ids::PAGE_SIZE);
        let now = end.next_multiple_of(mm::ids::PAGE_SIZE);
        if asked != end || before == now {
            return None;
        }
        let Span { address, pages } = Span::of(before.min(now), before.abs_diff(now));
        if now < before {
            return Some(EventKind::Unmap { address, pages, took_ns: 0 });
        }
        let flags = self.locked(MapFlags::READ | MapFlags::WRITE | MapFlags::HEAP);
        Some(EventKind::Map { address, file: NameId::NONE, flags, pages, first: 0, took_ns: 0 })
    }

    /// Shared memory of System V, whose size only perf says.
    fn attach(&mut self, begun: &Begun, address: u64) -> Option<EventKind> {
        let Mapped { len, file } = begun.mapped?;
        let pages = Span::of(address, len).pages;
        self.attached.insert(address, pages);
        let asked = if begun.arguments[2] & SHM_RDONLY == 0 { 3 } else { 1 };
        let flags = self.locked(protection(asked) | MapFlags::SHARED);
        Some(EventKind::Map { address, file, flags, pages, first: 0, took_ns: 0 })
    }

    fn locked(&self, flags: MapFlags) -> MapFlags {
        if self.locks_all { flags | MapFlags::LOCKED } else { flags }
    }
}

impl Span {
    const fn pinned(self, held: u32) -> EventKind {
        EventKind::Pin { address: self.address, held, pages: self.pages, took_ns: 0 }
    }
}

/// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC` are numbered as our flags are.
const fn protection(asked: u64) -> MapFlags {
    MapFlags(asked as u32 & 7)
}

const fn is_shared(how: u64) -> bool {
    matches!(how & MAP_TYPE, MAP_SHARED | MAP_SHARED_VALIDATE)
}

fn file_page(offset: u64) -> u32 {
    (offset >> mm::ids::PAGE_SHIFT).try_into().unwrap_or(u32::MAX)
}
