//! From a recording to a program, event by event.

use std::collections::BTreeSet;
use std::io::{Read, Seek};

use mm::Cpu;
use trace::{Event, EventKind, NameId, PresentKind, ReadError, Reader, Task};

use super::accesses::{Looks, LooksFound};
use super::aligned;
use super::bits::Bits;
use super::counts::Counted;
use super::files::Files;
use super::heat::{self, HeatMaps};
use super::layout::Layout;
use super::order::{At, Order};
use super::prices::KernelCosts;
use super::races::Races;
use super::steps::{Begins, Call, Doing, FileRange, MapCall, PageRange, Program, TaskProgram};
use super::surroundings::Surroundings;
use super::track::Track;
use crate::recorded::TaskRef;

/// What `clone` calls sharing an address space.
const CLONE_VM: u32 = 0x100;

/// Whether a recording says what programs did to their address spaces.
pub fn has_program<R: Read + Seek>(reader: &Reader<R>) -> bool {
    reader.meta().tracepoints.iter().any(|name| name.starts_with("syscalls:") && name.contains("mmap"))
}

/// Reads a recording into a program called `name`. `costs` are those of the machine that was recorded.
///
/// # Errors
/// An event that is written wrongly. What is damaged or missing is left out, counted and said.
pub fn from_recording<R: Read + Seek>(
    reader: &mut Reader<R>,
    name: &str,
    costs: KernelCosts,
) -> Result<Program, ReadError> {
    let mut builder = Builder::new(name, reader.tasks().to_vec(), reader.names().to_vec(), costs);
    builder.files.lie_in_memory(&reader.meta().memory_devices);
    builder.files.are_read_ahead(&reader.meta().settings);
    builder.program.counted = Counted::new(reader.meta());
    builder.program.surroundings = Surroundings::of(reader.meta());
    builder.program.damage = reader.damage().map(ToString::to_string);
    let mut events = 0;
    for event in reader.events()? {
        let event = event?;
        events += u64::from(builder.is_inside(event.task.0 as usize));
        builder.event(&event);
    }
    let (meta, end) = (reader.meta().clone(), reader.outcome().cloned());
    builder.program.counted.ended(&meta, end.as_ref(), events);
    Ok(builder.finish())
}

/// Builds a program.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) program: Program,
    pub(super) costs: KernelCosts,
    pub(super) tracks: Vec<Track>,
    pub(super) layouts: Vec<Layout>,
    pub(super) files: Files,
    pub(super) races: Races,
    pub(super) order: Order,
    /// Processes of several tasks.
    threaded: BTreeSet<u32>,
    looks: Looks,
    bits: Bits,
    heat: HeatMaps,
    /// When the first event was.
    begun: Option<u64>,
    /// When the last one was.
    last: u64,
}

impl Builder {
    /// For a recording with these tasks and names.
    pub(super) fn new(name: &str, tasks: Vec<Task>, names: Vec<String>, costs: KernelCosts) -> Self {
        let mut pids = BTreeSet::new();
        let threaded = tasks.iter().filter(|task| task.in_workload && !pids.insert(task.pid));
        Self {
            threaded: threaded.map(|task| task.pid).collect(),
            program: Program { name: name.to_owned(), ..Program::default() },
            costs,
            tracks: tasks.into_iter().map(Track::new).collect(),
            layouts: vec![],
            files: Files::new(names),
            races: Races::default(),
            order: Order::default(),
            looks: Looks::default(),
            bits: Bits::default(),
            heat: HeatMaps::default(),
            begun: None,
            last: 0,
        }
    }

    /// The next event.
    pub(super) fn event(&mut self, event: &Event) {
        let Event { time, task, kind, cpu } = event;
        let (time, task) = (time.0, task.0 as usize);
        self.begun.get_or_insert(time);
        self.last = time;
        if let EventKind::Lost { count } = kind {
            *self.program.omissions.entry("lost_events").or_default() += count;
            return;
        }
        self.ran_on(task, *cpu);
        if let EventKind::Switch { next, state } = *kind {
            self.switch(time, task, next, state);
            self.ran_on(next.0 as usize, *cpu);
            return;
        }
        if let EventKind::Waking { task: woken } = *kind {
            self.wake(time, task, woken.0 as usize);
            return;
        }
        if let EventKind::Cached { file, first, cached, .. } = *kind {
            self.file(file, |files, file| files.used(file, first, cached));
            return;
        }
        if self.is_inside(task) {
            self.program.counted.went_on(time);
            self.own_event(time, task, kind);
        }
    }

    /// A look has counted accessed bits of the mapping at `address`.
    fn looked_at(&mut self, time: u64, task: usize, (address, kind): (u64, &EventKind)) {
        let Some(space) = self.tracks[task].space else { return };
        let layout = &self.layouts[space];
        let name = || {
            let mapped = layout.find(address);
            let file = mapped.and_then(|mapped| mapped.file).and_then(|file| self.files.name(file.file));
            [self.tracks[task].recorded.name.clone(), heat::name(mapped, file)]
        };
        self.heat.add((time, space), kind, name);
        self.looks.add((time, space), &mut self.tracks, (kind, layout.windows.known(address)));
    }

    /// Something was found in the task's address space, when the recording began or later.
    fn found(&mut self, time: u64, task: usize, (address, kind): (u64, PresentKind), counts: (u32, u32)) {
        let (pages, more) = counts;
        match kind {
            PresentKind::Read => self.read(time, task, address, counts),
            PresentKind::Looked => self.looked_by_page(time, task, counts),
            PresentKind::Used => self.used(task, address, u64::from(more) << 32 | u64::from(pages)),
            _ => self.present(task, address, kind, pages),
        }
    }

    /// Of 64 pages from `address` on, those were used whose bits are set.
    fn used(&mut self, task: usize, address: u64, bits: u64) {
        let Some(space) = self.tracks[task].space else { return };
        self.looks.used(space, &self.layouts[space].windows, (address, bits));
        let paid = f64::from(self.bits.came(space, bits.count_ones())) * self.costs.bit_ns;
        let runs = |track: &&mut Track| track.space == Some(space) && track.clock.is_running();
        let running = self.tracks.iter_mut().filter(runs).count();
        if running > 0 {
            // Who ran since the look before runs now, as a rule.
            self.tracks.iter_mut().filter(runs).for_each(|track| track.clock.owe_late(paid / running as f64));
            self.program.counted.bits_ns += paid;
        }
    }

    /// Accessed bits were looked at page by page, so many µs after they were cleared, or cleared.
    fn looked_by_page(&mut self, time: u64, task: usize, us: (u32, u32)) {
        let Some(space) = self.tracks[task].space else { return };
        match us {
            (0, 0) => {
                self.bits.cleared(space);
                self.looks.cleared(time, space, &mut self.tracks);
            }
            us => {
                self.bits.looked(space);
                self.looks.looked(space, us);
            }
        }
    }

    /// Private pages of the mapping at `address` were read: how many, and how many of these hold zeros.
    fn read(&mut self, time: u64, task: usize, address: u64, counts: (u32, u32)) {
        let Some(space) = self.tracks[task].space else { return };
        let first = self.layouts[space].windows.known(address);
        self.looks.read((time, space), first, counts);
    }

    pub(super) fn is_inside(&self, task: usize) -> bool {
        self.tracks.get(task).is_some_and(|track| track.recorded.in_workload)
    }

    /// A task of the program was seen on `cpu`.
    fn ran_on(&mut self, task: usize, cpu: Cpu) {
        if self.is_inside(task) {
            self.tracks[task].ran_on(cpu);
        }
    }

    fn own_event(&mut self, time: u64, task: usize, kind: &EventKind) {
        if let EventKind::FileDrop { file, first, pages } = *kind {
            self.cut_off(time, task, (file, first, pages));
            return;
        }
        if self.ends_fault(task, kind) {
            self.settle_fault(task);
        }
        let is_done_by_it = self.is_done_by_call(time, task, kind);
        if !is_done_by_it {
            self.cut_before(time, task);
        }
        self.other_event(time, task, kind);
        if is_done_by_it {
            self.cut_now(task);
        }
    }

    fn other_event(&mut self, time: u64, task: usize, kind: &EventKind) {
        match *kind {
            EventKind::Fault { address, error_code, .. } => {
                self.happens(time, task);
                self.tracks[task].needs = 0;
                self.tracks[task].space.iter().for_each(|space| self.bits.faulted(*space));
                self.fault(time, task, (address, error_code));
            }
            EventKind::Fork { child, flags, took_ns } => {
                let own_ns = self.forking(time, task, took_ns);
                self.fork(task, child.0 as usize, flags, own_ns);
            }
            EventKind::Exec => {
                self.happens(time, task);
                self.tracks[task].space = Some(self.new_layout(Layout::default()));
                self.call(task, Call::Exec);
            }
            EventKind::Exit => self.exit(time, task),
            EventKind::FileRead { file, first, pages } => {
                self.file_call(time, task, (file, first, pages), Call::Read);
            }
            EventKind::FileWrite { file, first, pages } => self.write(time, task, (file, first, pages)),
            EventKind::FileAdd { file, first, pages } => {
                self.comes_for_fault(task, (file, first, pages));
                self.file_call(time, task, (file, first, pages), Call::Fill);
            }
            EventKind::Accessed { address, .. } | EventKind::AccessedSince { address, .. } => {
                self.looked_at(time, task, (address, kind));
            }
            EventKind::Present { address, kind, pages, zeros } => {
                self.found(time, task, (address, kind), (pages, zeros));
            }
            EventKind::Advise { advice: EventKind::FORBID_HUGE_PAGES, .. } => {
                self.happens(time, task);
                self.call(task, Call::ForbidHuge);
            }
            EventKind::Advise { advice: EventKind::ALLOW_HUGE_PAGES, .. } => {
                self.happens(time, task);
                self.call(task, Call::AllowHuge);
            }
            EventKind::Map { .. }
            | EventKind::Unmap { .. }
            | EventKind::Remap { .. }
            | EventKind::Protect { .. }
            | EventKind::Advise { .. }
            | EventKind::Pin { .. } => self.range_event(time, task, kind),
            _ => {
                self.tracks[task].heard(time);
                let user_pages = self.program.counted.page_event(kind);
                self.came_for_call(task, user_pages);
            }
        }
    }

    /// A task was given pages for itself. Where a call of its needs some, the time that these take is the kernel's: the call populates its
    /// range in the replay.
    fn came_for_call(&mut self, task: usize, pages: u32) {
        let track = &mut self.tracks[task];
        let came = pages.min(track.needs);
        track.needs -= came;
        track.clock.owe(f64::from(came) * self.costs.populate_page_ns);
    }

    /// A task exits. Kernels since 6.16 say so before they free its memory, on its time (`sched_process_exit` in do_exit), older ones after it.
    fn exit(&mut self, time: u64, task: usize) {
        let space = self.tracks[task].space;
        self.tracks[task].exited = true;
        let stays = |track: &Track| track.space == space && !track.exited;
        let freed =
            space.filter(|_| !self.program.surroundings.exit_comes_first() && !self.tracks.iter().any(stays));
        let pages = freed.map_or(0, |space| self.layouts[space].touched);
        self.returns(time, task, (pages as f64 * self.costs.unmap_page_ns) as u64);
        self.tracks[task].sleeps_end_with_a_kill();
        if space.is_some() {
            self.call(task, Call::Exit);
        } else {
            self.tracks[task].push_own();
        }
        self.tracks[task].clock.exit(time);
    }

    /// Whether others have the task's address space, too.
    pub(super) fn is_threaded(&self, task: usize) -> bool {
        self.threaded.contains(&self.tracks[task].recorded.pid)
    }

    /// The task goes on when the step `before` of another is done.
    pub(super) fn wait_for(&mut self, task: usize, before: At) {
        let signal = self.tracks[before.task].passes(before.step as u32, &mut self.program.signals);
        self.step(task, Doing::Awaits(signal));
    }

    /// The task makes a call that takes pages of `space` away, or brings them.
    pub(super) fn change(&mut self, task: usize, space: usize, call: Call) {
        let changed = call.changes().into_iter().flatten().filter(|_| self.is_threaded(task));
        let changed: Vec<PageRange> = changed.collect();
        for &range in &changed {
            for before in self.order.before_change(space, range, task) {
                self.wait_for(task, before);
            }
        }
        self.call(task, call);
        let step = self.tracks[task].last_step();
        for range in changed {
            self.order.changed(space, range, At { task, step });
        }
    }

    fn fork(&mut self, task: usize, child: usize, flags: u32, took_ns: u64) {
        if !self.is_inside(child) {
            return;
        }
        let is_thread = flags & CLONE_VM != 0
            || flags == 0 && self.tracks[child].recorded.pid == self.tracks[task].recorded.pid;
        let parents = self.tracks[task].space;
        self.tracks[child].space = match parents {
            Some(space) if !is_thread => {
                let copy = self.new_layout(self.layouts[space].clone());
                self.bits.forked(copy);
                Some(copy)
            }
            other => other,
        };
        let place = self.place(child);
        self.tracks[child].begins = Some(if is_thread { Begins::AsThread } else { Begins::AsFork });
        if took_ns > 0 {
            self.program.forked_ns.insert(place.0, took_ns);
        }
        self.step(task, Doing::Starts(place));
    }

    pub(super) fn new_layout(&mut self, layout: Layout) -> usize {
        self.layouts.push(layout);
        self.layouts.len() - 1
    }

    fn file_call(
        &mut self,
        time: u64,
        task: usize,
        (file, first, pages): (NameId, u32, u32),
        call: fn(FileRange) -> Call,
    ) {
        self.happens(time, task);
        let Some(file) = self.files.number(file).filter(|_| pages > 0) else { return };
        let call = call(FileRange { file, first, pages });
        match call {
            Call::Fill(_) => self.files.come(file, first, pages),
            _ => self.files.used(file, first, pages),
        }
        self.call_of_file(task, call);
    }

    /// A task has written to a file: on a disk, of which it is told as each page begins, or in memory, where it is when all was done.
    fn write(&mut self, time: u64, task: usize, (file, first, pages): (NameId, u32, u32)) {
        let Some(file) = self.files.number(file).filter(|_| pages > 0) else {
            self.happens(time, task);
            return;
        };
        match self.files.written(file, first, pages) {
            0 => self.happens(time, task),
            came => self.returns(time, task, (f64::from(came) * self.costs.fill_page_ns) as u64),
        }
        self.call_of_file(task, Call::Write(FileRange { file, first, pages }));
    }

    pub(super) fn call_of_file(&mut self, task: usize, call: Call) {
        if self.tracks[task].space.is_some() {
            self.call(task, call);
        }
    }

    fn file(&mut self, name: NameId, learn: impl FnOnce(&mut Files, u32)) {
        if let Some(file) = self.files.number(name) {
            learn(&mut self.files, file);
        }
    }

    pub(super) fn map(&mut self, task: usize, map: MapCall) {
        self.call(task, Call::Map(map));
    }

    pub(super) fn call(&mut self, task: usize, call: Call) {
        let index = self.program.calls.len() as u32;
        self.program.calls.push(call);
        self.step(task, Doing::Calls(index));
    }

    pub(super) fn step(&mut self, task: usize, doing: Doing) {
        self.place(task);
        self.tracks[task].push(doing);
    }

    /// The task's place in the program; it gets one with its first step.
    pub(super) fn place(&mut self, task: usize) -> TaskRef {
        if let Some(place) = self.tracks[task].place {
            return place;
        }
        let place = TaskRef(self.program.tasks.len() as u32);
        self.program.tasks.push(TaskProgram::new(String::new()));
        self.tracks[task].place = Some(place);
        place
    }

    /// The program, complete.
    pub(super) fn finish(mut self) -> Program {
        for task in 0..self.tracks.len() {
            self.settle_fault(task);
            self.cut_now(task);
        }
        self.looks.end_all(self.last, &mut self.tracks);
        for track in self.tracks {
            let Some(place) = track.place else { continue };
            // Who was there already, or was started by the recorder, begins with nothing mapped.
            let begins = track.begins.unwrap_or_else(|| {
                self.program.before.push(vec![]);
                Begins::InSpace(self.program.before.len() as u32 - 1)
            });
            self.program.tasks[place.0 as usize] = TaskProgram { begins, ..track.finish() };
        }
        let LooksFound { walked, looked_at, zeros, used } = self.looks.finish();
        self.program.walked = walked;
        self.program.looked_at = looked_at;
        self.program.zeros = zeros;
        self.program.used = used;
        self.program.heat = self.heat.finish(&self.program.name, self.begun.unwrap_or(0));
        self.program.files = self.files.finish();
        aligned::align(&mut self.program);
        self.program
    }
}
