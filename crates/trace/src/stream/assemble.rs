//! Turns records into events of a recording: it numbers tasks, drops events that do not belong to the workload, masks the
//! rest if asked to, and writes them.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::{self, Write};
use std::num::NonZeroU64;

use mm::{Cpu, Nanos, Pfn, TaskId};

use super::assemble_spaces::{FileName, LastRange, WaitingFork};
use super::pages::PageSet;
use super::record::{Origin, Record};
use super::schema::{NotDecoded, Schema};
use super::spaces::{Spaces, Span};
use super::tasks::{Numbered, TaskRef, Tasks};
use crate::event::{Decoded, Event, EventKind, FileKey, NameId, SwitchState, Task};
use crate::format::Writer;
use crate::mask::Mask;
use crate::meta::Keep;

/// Frees of one CPU that may still be repeated as batched: the kernel's batches are no longer than 31.
const RECENT_FREES: usize = 32;

/// Who belongs to the workload, besides the tasks that are said to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Membership {
    /// The children of those who do.
    Descendants,
    /// Whoever had this name when it got another, and descendants.
    AfterExec(&'static [u8]),
    /// Everybody but the idle task.
    Everybody,
}

/// Turns records into a recording.
pub(crate) struct Assembler<W> {
    writer: Writer<W>,
    schema: Schema,
    /// Whether a tracepoint says what a new task shares.
    pub(super) tells_new_tasks: bool,
    /// Whether calls that change address spaces are seen.
    pub(super) tells_spaces: bool,
    membership: Membership,
    keep: Keep,
    pub(super) mask: Option<Mask>,
    pub(super) tasks: Tasks,
    /// The process that is to become the command, by its number: until it has, its address space is the recorder's.
    pub(super) waits_for_exec: Option<u32>,
    pub(super) spaces: Spaces,
    pub(super) forks: Vec<WaitingFork>,
    pub(super) files: HashMap<FileKey, FileName>,
    /// What each task read or wrote last, by its number.
    pub(super) ranges: HashMap<u32, LastRange>,
    names: BTreeMap<Vec<u8>, NameId>,
    held: PageSet,
    /// Addresses of slab objects that the workload was handed and that were not freed since.
    held_objects: HashSet<u64>,
    recent_frees: Vec<VecDeque<Pfn>>,
    /// Since when a task of the workload has run on each CPU, by its number.
    runs_since: HashMap<u32, u64>,
    counts: Counts,
    /// Event times are multiples of this, ns.
    time_step: u64,
}

/// Who runs next, and how the task that ran stays behind.
struct SwitchTo {
    next_tid: u32,
    state: SwitchState,
}

/// Who caused an event on a task's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Context {
    /// The task itself.
    Task,
    /// Whoever interrupted it.
    Interrupt,
}

impl Context {
    const fn of(is_interrupt: bool) -> Self {
        if is_interrupt { Self::Interrupt } else { Self::Task }
    }
}

/// What became of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Events written.
    pub(crate) events: u64,
    /// Events that the kernel lost.
    pub(crate) lost: u64,
    /// Events with values that cannot be expressed.
    pub(crate) unreadable: u64,
    /// Events left out.
    pub(crate) left_out: u64,
    /// The time of the last event.
    pub(crate) last_time: u64,
    /// CPU time of the workload's tasks between switches that were seen, ns.
    pub(crate) cpu_ns: u64,
}

impl<W: Write> Assembler<W> {
    pub(crate) fn new(writer: Writer<W>, schema: Schema, membership: Membership, keep: Keep) -> Self {
        Self {
            writer,
            tells_new_tasks: schema.has("task_newtask"),
            tells_spaces: schema.has("sys_enter_mmap"),
            schema,
            membership,
            keep,
            mask: None,
            tasks: Tasks::default(),
            waits_for_exec: None,
            spaces: Spaces::default(),
            forks: vec![],
            files: HashMap::new(),
            ranges: HashMap::new(),
            names: BTreeMap::new(),
            held: PageSet::default(),
            held_objects: HashSet::new(),
            recent_frees: vec![],
            runs_since: HashMap::new(),
            counts: Counts::default(),
            time_step: 1,
        }
    }

    /// Event times are rounded down to multiples of `ns` from here on. Two that differ by less stay in their order.
    pub(crate) fn round_times(&mut self, ns: NonZeroU64) {
        self.time_step = ns.get();
    }

    /// Hides addresses and names from here on.
    pub(crate) fn set_mask(&mut self, mask: Mask) {
        self.mask = Some(mask);
    }

    /// A task that exists already.
    pub(crate) fn add_task(&mut self, mut task: Task) {
        task.in_workload |= self.is_everybody(task.tid);
        self.tasks.add(task);
    }

    /// Says which process is to become the command.
    pub(crate) fn wait_for_exec(&mut self, tid: u32) {
        self.waits_for_exec = Some(tid);
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.counts
    }

    /// As [`Self::counts`], with the CPU time up to `now`, ns, of tasks that run still.
    pub(crate) fn counts_at(&self, now: u64) -> Counts {
        let running: u64 = self.runs_since.values().map(|since| now.saturating_sub(*since)).sum();
        Counts { cpu_ns: self.counts.cpu_ns + running, ..self.counts }
    }

    pub(crate) const fn task_count(&self) -> u32 {
        self.tasks.count()
    }

    pub(crate) const fn writer(&self) -> &Writer<W> {
        &self.writer
    }

    pub(crate) fn into_writer(self) -> Writer<W> {
        self.writer
    }

    fn is_everybody(&self, tid: u32) -> bool {
        self.membership == Membership::Everybody && tid != 0
    }

    /// Writes what waits, so that it survives a crash.
    ///
    /// # Errors
    /// What the output says.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Takes in a record.
    ///
    /// # Errors
    /// What the output says.
    pub(crate) fn take(&mut self, origin: Origin, record: Record<'_>) -> io::Result<()> {
        match record {
            Record::Sample(raw) => self.sample(origin, raw),
            Record::Compact(record) => {
                if let Some(decoded) = record.decode(self.schema.gfp()) {
                    return self.seen(origin, decoded, Context::of(record.is_by_interrupt()));
                }
                self.counts.unreadable += 1;
                Ok(())
            }
            Record::Lost(count) => self.lost(origin, count),
            Record::Comm { pid, tid, name, is_exec } => {
                if is_exec {
                    self.exec(origin, pid, tid)?;
                }
                self.rename(pid, tid, name)
            }
            Record::Mapped { pid, tid, mapping } => self.mapped(origin, [pid, tid], &mapping),
            Record::Fork { pid, tid, parent_pid, parent_tid } => {
                self.fork(origin, [pid, tid], [parent_pid, parent_tid])
            }
            Record::Exit { pid, tid } => self.exit(origin, pid, tid),
        }
    }

    /// Writes something down at a time.
    pub(crate) fn mark(&mut self, origin: Origin, text: &str) -> io::Result<()> {
        let text = self.name(text.as_bytes())?;
        match self.look_up(origin.tid) {
            Some(task) => self.write(origin, task, EventKind::Mark { text }),
            None => Ok(()),
        }
    }

    fn lost(&mut self, origin: Origin, count: u64) -> io::Result<()> {
        self.counts.lost = self.counts.lost.saturating_add(count);
        match self.look_up(origin.tid).or_else(|| self.look_up(0)) {
            Some(task) => self.write(origin, task, EventKind::Lost { count }),
            None => Ok(()),
        }
    }

    fn rename(&mut self, pid: u32, tid: u32, name: &[u8]) -> io::Result<()> {
        let membership = self.membership;
        let name = String::from_utf8_lossy(name).into_owned();
        self.change(tid, |task| {
            task.in_workload |=
                matches!(membership, Membership::AfterExec(before) if before == task.name.as_bytes());
            (task.pid, task.name) = (pid, name);
        })
    }

    fn fork(&mut self, origin: Origin, child: [u32; 2], parent: [u32; 2]) -> io::Result<()> {
        self.settle_forks(parent[1])?;
        let Some(by) = self.look_up(parent[1]) else { return Ok(()) };
        let (parent_pid, child_pid) = (parent[0], child[0]);
        let parent = self.tasks.get(by);
        let task = Task {
            pid: child[0],
            tid: child[1],
            name: parent.name.clone(),
            in_workload: parent.in_workload || self.is_everybody(child[1]),
        };
        let Some(child) = self.tasks.add(task) else { return Ok(()) };
        if !self.wants(by) {
            return Ok(());
        }
        self.spaces.fork(parent_pid, child_pid);
        self.forked(origin, by, child)
    }

    fn exit(&mut self, origin: Origin, pid: u32, tid: u32) -> io::Result<()> {
        self.settle_forks(tid)?;
        self.spaces.exit(pid, tid);
        self.ranges.remove(&tid);
        self.change(tid, |task| task.pid = pid)?;
        let Some(task) = self.look_up(tid) else { return Ok(()) };
        self.tasks.end(task);
        if self.wants(task) { self.write(origin, task, EventKind::Exit) } else { Ok(()) }
    }

    fn sample(&mut self, mut origin: Origin, raw: &[u8]) -> io::Result<()> {
        let decoded = match self.schema.decode(raw) {
            Ok(decoded) => decoded,
            Err(NotDecoded::Unknown) => return Ok(()),
            Err(NotDecoded::Unreadable) => {
                self.counts.unreadable += 1;
                return Ok(());
            }
        };
        // A task that has all but ended has no number any more as far as perf is concerned.
        let is_ending = origin.tid == u32::MAX;
        if is_ending {
            (origin.tid, origin.pid) = (common_pid(raw), 0);
        }
        self.seen(origin, decoded, Context::of(is_interrupt(raw)))
    }

    /// An event of a tracepoint, by whomever it was recorded.
    fn seen(&mut self, mut origin: Origin, decoded: Decoded<'_>, context: Context) -> io::Result<()> {
        let Some(task) = self.look_up(origin.tid) else {
            self.counts.unreadable += 1;
            return Ok(());
        };
        match self.tasks.get(task).pid {
            known if origin.pid == 0 => origin.pid = known,
            known if known == origin.pid => {}
            _ => self.change(origin.tid, |task| task.pid = origin.pid)?,
        }
        if !self.forks.is_empty() && !matches!(decoded, Decoded::NewTask { .. }) {
            self.settle_forks(origin.tid)?;
        }
        // Who is interrupted lets nobody run: a timer, a disk or a packet does, and the idle task stands for all of these.
        let is_woken_by_world = matches!(decoded, Decoded::Waking(_)) && context == Context::Interrupt;
        let task = if is_woken_by_world { self.look_up(0).unwrap_or(task) } else { task };
        self.decoded(origin, task, decoded)
    }

    fn decoded(&mut self, origin: Origin, task: TaskRef, decoded: Decoded<'_>) -> io::Result<()> {
        match decoded {
            _ if self.is_before_exec(origin.tid, &decoded) => {}
            Decoded::Event(kind) => {
                if self.keeps(origin, task, &kind) {
                    return self.write(origin, task, kind);
                }
            }
            Decoded::Slab(kind, cache) => {
                if self.keeps(origin, task, &kind) {
                    let cache = self.name(cache)?;
                    return self.write(origin, task, with_cache(kind, cache));
                }
            }
            Decoded::Switch { next_tid, next_name, prev_name, state } => {
                return self.switched(origin, task, [prev_name, next_name], SwitchTo { next_tid, state });
            }
            Decoded::Waking(tid) => return self.waking(origin, task, tid),
            Decoded::File(kind, key) if self.wants(task) => {
                return self.file_event(origin, task, kind, key);
            }
            Decoded::Enter { call, arguments } => {
                if self.wants(task) {
                    self.spaces.enter(origin, call, arguments);
                }
                return Ok(());
            }
            Decoded::Leave { call, result } if self.wants(task) => return self.left(origin, call, result),
            Decoded::Needed { address, pages, advice } if self.wants(task) => {
                let told = self.spaces.needed(origin.tid, Span::of_pages(address, pages), advice);
                return told.map_or(Ok(()), |kind| self.write(origin, task, kind));
            }
            Decoded::NewTask { tid, flags } => return self.new_task(tid, flags),
            Decoded::Executed { old_tid } => return self.executed(origin, old_tid),
            Decoded::File(..) | Decoded::Leave { .. } | Decoded::Needed { .. } => {}
        }
        self.counts.left_out += 1;
        Ok(())
    }

    /// The CPU goes from `task` to another.
    fn switched(
        &mut self,
        origin: Origin,
        task: TaskRef,
        [prev_name, next_name]: [&[u8]; 2],
        SwitchTo { next_tid, state }: SwitchTo,
    ) -> io::Result<()> {
        let Some(next) = self.look_up(next_tid) else {
            self.counts.unreadable += 1;
            return Ok(());
        };
        self.name_if_unknown(task, prev_name)?;
        self.name_if_unknown(next, next_name)?;
        if !self.wants(task) && !self.wants(next) {
            self.counts.left_out += 1;
            return Ok(());
        }
        if let Some(since) = self.runs_since.remove(&origin.cpu) {
            self.counts.cpu_ns += origin.time.saturating_sub(since);
        }
        if self.tasks.in_workload(next) {
            self.runs_since.insert(origin.cpu, origin.time);
        }
        let next = self.introduced(next)?;
        self.write(origin, task, EventKind::Switch { next, state })
    }

    /// `task`, or an interrupt on its time, lets another run.
    fn waking(&mut self, origin: Origin, task: TaskRef, tid: u32) -> io::Result<()> {
        match self.look_up(tid) {
            Some(woken) if self.wants(task) || self.wants(woken) => {
                let woken = self.introduced(woken)?;
                self.write(origin, task, EventKind::Waking { task: woken })
            }
            _ => {
                self.counts.left_out += 1;
                Ok(())
            }
        }
    }

    /// The task's number in the recording, which is told of it if it is new.
    pub(super) fn introduced(&mut self, task: TaskRef) -> io::Result<TaskId> {
        let Numbered { id, is_new } = self.tasks.id(task);
        if is_new {
            self.introduce(task)?;
        }
        Ok(id)
    }

    /// Whether events of `task` are kept for its own sake.
    pub(super) fn wants(&self, task: TaskRef) -> bool {
        self.keep == Keep::System || self.tasks.in_workload(task)
    }

    /// Whether this event is kept. Follows which pages and objects the workload holds.
    fn keeps(&mut self, origin: Origin, task: TaskRef, kind: &EventKind) -> bool {
        if self.keep == Keep::System {
            return true;
        }
        let is_own = self.tasks.in_workload(task);
        match *kind {
            EventKind::PageAlloc { pfn, order, .. } if is_own => {
                self.held.insert(pfn, order);
            }
            EventKind::PageAlloc { pfn, order, .. } => {
                self.held.remove(pfn, order);
            }
            EventKind::PageFree { pfn, order } => {
                let was_held = self.held.remove(pfn, order) > 0;
                if was_held && !is_own {
                    self.remember_free(origin.cpu, pfn);
                }
                return is_own || was_held;
            }
            EventKind::SlabAlloc { object, .. } if is_own => {
                self.held_objects.insert(object);
            }
            EventKind::SlabAlloc { object, .. } => {
                self.held_objects.remove(&object);
            }
            EventKind::SlabFree { object, .. } => return self.held_objects.remove(&object) || is_own,
            EventKind::PageFreeBatched { pfn } if !is_own => {
                let recent = self.recent_frees.get(origin.cpu as usize);
                return recent.is_some_and(|frees| frees.contains(&pfn));
            }
            _ => {}
        }
        is_own
    }

    fn remember_free(&mut self, cpu: u32, pfn: Pfn) {
        let cpu = (cpu as usize).min(usize::from(u16::MAX));
        if cpu >= self.recent_frees.len() {
            self.recent_frees.resize_with(cpu + 1, VecDeque::new);
        }
        let frees = &mut self.recent_frees[cpu];
        if frees.len() == RECENT_FREES {
            frees.pop_front();
        }
        frees.push_back(pfn);
    }

    /// The task with this number; one never heard of belongs to the workload only if everybody does.
    pub(super) fn look_up(&mut self, tid: u32) -> Option<TaskRef> {
        let task = self.tasks.look_up(tid)?;
        if self.is_everybody(tid) && !self.tasks.in_workload(task) {
            self.tasks.update(task, |task| task.in_workload = true);
        }
        Some(task)
    }

    pub(super) fn change(&mut self, tid: u32, change: impl FnOnce(&mut Task)) -> io::Result<()> {
        let Some(task) = self.look_up(tid) else { return Ok(()) };
        if self.tasks.update(task, change).is_some() { self.introduce(task) } else { Ok(()) }
    }

    fn name_if_unknown(&mut self, task: TaskRef, name: &[u8]) -> io::Result<()> {
        if !self.tasks.get(task).name.is_empty() || name.is_empty() {
            return Ok(());
        }
        let tid = self.tasks.get(task).tid;
        let name = if tid == 0 { "swapper".into() } else { String::from_utf8_lossy(name).into_owned() };
        self.change(tid, |task| task.name = name)
    }

    /// Writes what is known of a task that the recording knows.
    pub(super) fn introduce(&mut self, task: TaskRef) -> io::Result<()> {
        let Numbered { id, .. } = self.tasks.id(task);
        match &mut self.mask {
            Some(mask) => self.writer.task(id, &mask.task(id, self.tasks.get(task))),
            None => self.writer.task(id, self.tasks.get(task)),
        }
    }

    pub(super) fn name(&mut self, name: &[u8]) -> io::Result<NameId> {
        if name.is_empty() {
            return Ok(NameId::NONE);
        }
        if let Some(&id) = self.names.get(name) {
            return Ok(id);
        }
        let id = NameId(self.names.len() as u32 + 1);
        self.names.insert(name.to_vec(), id);
        self.writer.name(&String::from_utf8_lossy(name))?;
        Ok(id)
    }

    pub(super) fn write(&mut self, origin: Origin, task: TaskRef, kind: EventKind) -> io::Result<()> {
        let id = self.introduced(task)?;
        let cpu = Cpu(origin.cpu.min(u32::from(u16::MAX)) as u16);
        let time = Nanos(origin.time - origin.time % self.time_step);
        let event = Event { time, cpu, task: id, kind };
        self.counts.events += 1;
        self.counts.last_time = self.counts.last_time.max(origin.time);
        match &mut self.mask {
            Some(mask) => self.writer.push(&mask.event(event)),
            None => self.writer.push(&event),
        }
    }
}

/// Whether a tracepoint was hit in an interrupt, as its third byte says: 8 a hard one, 16 a soft one.
fn is_interrupt(raw: &[u8]) -> bool {
    raw.get(2).is_some_and(|flags| flags & (8 | 16) != 0)
}

/// The number of the task that all tracepoints carry in their fifth to eighth byte, as the root namespace counts.
fn common_pid(raw: &[u8]) -> u32 {
    raw.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn with_cache(kind: EventKind, cache: NameId) -> EventKind {
    match kind {
        EventKind::SlabAlloc { object, requested, allocated, gfp, node, .. } => {
            EventKind::SlabAlloc { object, cache, requested, allocated, gfp, node }
        }
        EventKind::SlabFree { object, .. } => EventKind::SlabFree { object, cache },
        other => other,
    }
}
