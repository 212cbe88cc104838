//! Plays a scene's program, and notes what is counted at its marks. Processes take turns by their clocks: the next access is that
//! of whoever is least far by the capture's times.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use mm::tier::Balancing;
use mm::vm::{File, MapSpec, Touch, Vpn};
use mm::{Bare, Cpu, GroupId, Knob, Nanos, TaskId};

use super::balance::{HintCounts, Hints};
use super::clock::{Clock, Stretch};
use super::machine::Played;
use super::process::{Block, Own, Process, Waits};
use super::seen::{self, Marks, Seen};
use crate::conform::read::sections::FormatError;
use crate::script::program::{Code, Line, What};

/// What a round of khugepaged counts as.
const ROUND_STEPS: u64 = 1000;
/// What a process counts as, and how many there may be at once.
const FORK_STEPS: u64 = 1000;
const MOST_PROCESSES: usize = 256;
/// Pages of its own (stack, data) that a program writes to between any two marks: captured, where a fork took them from it.
const OWN: u32 = 4;
/// Pages that the first line which a child writes into its log touches, and the first draw of it: three together in the captures
/// of fork-cow, divided by what the program does then.
const OF_LOG: std::ops::Range<u32> = OWN + 1..OWN + 3;
const OF_DRAWS: std::ops::Range<u32> = OWN + 3..OWN + 4;
/// What it reads files into and writes them from, 64 KiB that it fills as it begins: beside what its lines map, 20 private pages are in its group at
/// the first mark of nearly all captures.
const BUFFER: std::ops::Range<u32> = OF_DRAWS.end..OF_DRAWS.end + 16;
/// Where they all are; the one behind the first few is that of its first sleep.
const OWN_AT: Vpn = Vpn(1 << 10);
/// The first process.
const FIRST: TaskId = TaskId(1);

pub(super) struct Player {
    pub(super) machine: Played,
    pub(super) clock: RefCell<Clock>,
    program: Vec<Line>,
    marks: Marks,
    most_steps: u64,
    left: Cell<u64>,
    /// Processes that were killed for want of memory.
    pub(super) kills: u64,
    /// Of groups, how often each could not be charged.
    pub(super) ooms: BTreeMap<GroupId, u64>,
    /// Those that live, but for the one that runs.
    pub(super) processes: BTreeMap<TaskId, Process>,
    pub(super) next_task: u32,
    /// How many run on the CPU of the one that runs, itself with them.
    pub(super) sharers: u64,
    pub(super) files: Vec<(Arc<File<Bare>>, u32)>,
    /// Pages that the file system will read of its own; `None` until a file is made.
    pub(super) metadata: Option<u32>,
    /// NUMA balancing, from its first fault on.
    pub(super) balancing: RefCell<Option<Balancing>>,
    pub(super) hint_counts: Cell<HintCounts>,
}

/// Why a play, or a process of it, does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// Something that is not played.
    Here(String),
    /// The process came to a line that it cannot understand.
    Broken(String),
    /// It did what gets a signal.
    Signal(&'static str),
    /// It was killed: there is no memory for it.
    Killed,
}

/// Plays `program`, as far as `most_steps` operations and touches of pages go.
pub(super) fn play(
    machine: Played,
    clock: Clock,
    program: Vec<Line>,
    most_steps: u64,
) -> Result<Marks, FormatError> {
    let mut player = Player {
        machine,
        clock: RefCell::new(clock),
        program,
        marks: Marks::default(),
        most_steps,
        left: Cell::new(most_steps),
        kills: 0,
        ooms: BTreeMap::new(),
        processes: BTreeMap::new(),
        next_task: FIRST.0 + 1,
        sharers: 1,
        files: vec![],
        metadata: None,
        balancing: RefCell::default(),
        hint_counts: Cell::default(),
    };
    player.begin()?;
    if let Err(Stop::Here(what)) = player.run() {
        player.marks.stopped = Some(what);
    } else {
        // All have ended.
        let after = player.seen(None);
        player.marks.seen.push(Seen { label: "after-exit".into(), ..after });
    }
    let Marks { unplayed, by_generations, trace, .. } = &mut player.marks;
    *trace = player.machine.daemons.trace.take();
    *unplayed = player.machine.settings.take().unplayed;
    *by_generations = player.machine.mm.knobs().get(Knob::LruGenEnabled) > 0;
    Ok(player.marks)
}

/// A line that is being played.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct At {
    pub(super) number: usize,
    pub(super) stretch: Stretch,
}

impl At {
    /// Stops there, for `what`.
    pub(super) fn stop(self, what: impl std::fmt::Display) -> Stop {
        Stop::Here(format!("line {}: {what}", self.number))
    }

    /// The process ends there, for it does not understand.
    pub(super) fn broken(self, what: impl std::fmt::Display) -> Stop {
        Stop::Broken(format!("line {}: {what}", self.number))
    }
}

impl Player {
    /// The program is in a group, and has pages of its own.
    fn begin(&mut self) -> Result<(), FormatError> {
        let mm = &self.machine.mm;
        let space = mm.spaces().new_space();
        let group = mm.memcg().group(GroupId::ROOT, "scene").unwrap_or(GroupId::ROOT);
        mm.memcg().join(FIRST, group);
        mm.machine().set_task(FIRST);
        let own = mm.spaces().mmap_at(&space, OWN_AT, MapSpec::anonymous(BUFFER.end));
        own.map_err(|error| FormatError::new(0, error.to_string()))?;
        let mut process = Process::new(FIRST, space, group, self.hints());
        process.at = self.clock.borrow().now();
        let all = Block { at: 0, from: 0, end: self.program.len(), left: 0, line: None };
        process.blocks.push(all);
        self.touch_own(&mut process, 0..OWN);
        self.touch_own(&mut process, BUFFER);
        // It has had these faults before anything is looked at.
        process.own = Own { has_logged: true, has_drawn: true };
        self.processes.insert(FIRST, process);
        Ok(())
    }

    /// Whoever is least far goes on until another is, or it ends, or there is one more.
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            let ready = || self.processes.values().filter(|process| process.waits.is_none());
            let place = |process: &Process| (process.at, process.task);
            let Some((_, task)) = ready().map(place).min() else { return Ok(()) };
            let others = || ready().filter(|process| process.task != task);
            let next = others().map(place).min();
            let Some(mut process) = self.processes.remove(&task) else { return Ok(()) };
            self.sharers = 1 + self.on_cpu(process.cpu) as u64;
            let machine = self.machine.mm.machine();
            machine.set_cpu(process.cpu);
            machine.set_task(task);
            self.machine.daemons.set_programs(self.sharers);
            let (live, mut outcome) = (self.processes.len(), Ok(true));
            while matches!(outcome, Ok(true))
                && process.waits.is_none()
                && self.processes.len() == live
                && next.is_none_or(|next| (process.at, task) <= next)
            {
                outcome =
                    self.go(&mut process).and_then(|more| self.kill_for_kswapd(&process).map(|()| more));
            }
            match outcome {
                Ok(true) => drop(self.processes.insert(task, process)),
                Ok(false) | Err(Stop::Killed) => self.end(&process),
                Err(Stop::Here(what)) => return Err(Stop::Here(what)),
                Err(Stop::Broken(why)) => self.ended_by(&process, &why),
                Err(Stop::Signal(why)) => self.ended_by(&process, why),
            }
        }
    }

    fn on_cpu(&self, cpu: Cpu) -> usize {
        self.processes.values().filter(|other| other.waits.is_none() && other.cpu == cpu).count()
    }

    /// A process came to its end before that of its lines.
    fn ended_by(&mut self, process: &Process, why: &str) {
        self.note_end(process.task, why);
        self.end(process);
    }

    /// `task` ends before that of its lines. That of the first process is the scene's.
    pub(super) fn note_end(&mut self, task: TaskId, why: &str) {
        if task == FIRST {
            self.marks.ended = Some(why.to_owned());
        }
    }

    /// A process is gone; who waited for it may go on.
    pub(super) fn end(&mut self, process: &Process) {
        let (mm, &Process { task, at, parent, .. }) = (&self.machine.mm, process);
        mm.spaces().exit(&process.space);
        mm.memcg().leave(task);
        let Some(parent) = parent else { return };
        let has_more = self.processes.values().any(|other| other.parent == Some(parent));
        let Some(parent) = self.processes.get_mut(&parent) else { return };
        let goes_on = match parent.waits {
            Some(Waits::For(child)) => child == task,
            Some(Waits::ForAll) => !has_more,
            None => return,
        };
        parent.at = parent.at.max(at);
        if goes_on {
            parent.waits = None;
            parent.hints.pass(parent.at);
        }
    }

    /// So many steps more; says no once there were too many.
    pub(super) fn step(&self, at: At, steps: u64) -> Result<(), Stop> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        let most = self.most_steps;
        left.map(drop).ok_or_else(|| at.stop(format_args!("more than {most} steps are not played")))
    }

    /// `process` is as far as `at`.
    pub(super) fn pass_to(&self, process: &mut Process, at: Nanos) {
        process.at = process.at.max(at);
        self.clock.borrow_mut().pass_to(process.at);
    }

    /// The next access or line of `process`; says whether there is more.
    fn go(&mut self, process: &mut Process) -> Result<bool, Stop> {
        if let Some(mut doing) = process.doing.take() {
            if self.go_on(process, &mut doing)? {
                process.doing = Some(doing);
            } else {
                self.end_line(process, Self::at_of(&doing));
            }
            return Ok(true);
        }
        let Some(block) = process.blocks.last_mut() else { return Ok(false) };
        if block.at < block.end {
            block.at += 1;
            let line = block.at - 1;
            self.line(process, line)?;
            return Ok(true);
        }
        if block.left > 0 {
            (block.at, block.left) = (block.from, block.left - 1);
            // An empty block, however often, is over some time too.
            let at = block.line.unwrap_or_default();
            self.step(at, 1)?;
            return Ok(true);
        }
        if let Some(at) = process.blocks.pop().and_then(|block| block.line) {
            self.end_line(process, at);
        }
        Ok(true)
    }

    fn line(&mut self, process: &mut Process, line: usize) -> Result<(), Stop> {
        let Line { number, code } = self.program[line].clone();
        if code == Code::Nothing {
            return Ok(());
        }
        let stretch = self.clock.borrow_mut().begin(number, process.at, process.ends);
        let at = At { number, stretch };
        self.step(at, 1)?;
        match code {
            Code::Nothing => return Ok(()),
            Code::Broken(why) => return Err(at.broken(why)),
            Code::Fork { end, waits } => {
                Self::skip_to(process, end);
                self.fork(process, (line + 1, end), waits, at)?;
                if waits {
                    // It goes on when its child has ended.
                    process.at = stretch.after(1, 1).max(process.at);
                    return Ok(());
                }
            }
            Code::Repeat { end, times } => {
                Self::skip_to(process, end);
                let from = line + 1;
                let first = if times > 0 { from } else { end };
                let left = times.saturating_sub(1);
                process.blocks.push(Block { at: first, from, end, left, line: Some(at) });
                return Ok(());
            }
            Code::Operation(What::Mark(label)) => {
                self.mark(process, &label);
                return Ok(());
            }
            Code::Operation(what) => self.operation(process, &what, at)?,
        }
        if process.waits.is_some() {
            // It has not come to the end of the line yet, and no time has passed.
            process.at = stretch.after(1, 1).max(process.at);
        } else if process.doing.is_none() {
            self.end_line(process, at);
        }
        Ok(())
    }

    fn skip_to(process: &mut Process, end: usize) {
        if let Some(block) = process.blocks.last_mut() {
            block.at = end + 1;
        }
    }

    fn end_line(&self, process: &mut Process, at: At) {
        if !std::mem::replace(&mut process.own.has_logged, true) {
            self.touch_own(process, OF_LOG);
        }
        self.pass_to(process, at.stretch.after(1, 1));
        self.ran(process);
        self.run_daemons();
    }

    fn operation(&mut self, process: &mut Process, what: &What, at: At) -> Result<(), Stop> {
        match what {
            What::Set { file, value } => self.set(process, (file, value), at)?,
            What::Map { name, bytes, noise, shared, huge, nohuge } => {
                self.map(process, (name, *bytes, *noise), (*shared, *huge, *nohuge), at)?;
            }
            What::Accesses(accesses) => self.begin_accesses(process, accesses, at)?,
            What::File { name, bytes } => self.file(process, (name, *bytes), at)?,
            What::MapFile { name, file, executable, private } => {
                self.map_file(process, (name, file), (*executable, *private), at)?;
            }
            What::Zipf(zipf) => self.begin_zipf(process, zipf, at)?,
            What::Sync(name) => {
                Self::named(process, name, at)?;
                self.write_back();
            }
            What::Advise { name, word, part, pieces } => {
                self.advise(process, (name, word), (*part, *pieces), at)?;
            }
            What::Unmap { name, part, pieces } => self.unmap(process, name, (*part, *pieces), at)?,
            What::Lock { name, .. } => self.lock(process, name, at)?,
            What::SwapOnDisk => {
                if !self.machine.swap_on_disk() {
                    self.refused(at, "swapon");
                }
            }
            What::SwapOnZram(bytes) => {
                if !self.machine.swap_on_zram(*bytes) {
                    self.refused(at, "swapon");
                }
            }
            What::Cgroup(name) => self.join_group(process, name, at)?,
            What::Limit { group, knob, bytes } => {
                self.limit(process, (group.as_deref(), knob, *bytes), at)?;
            }
            What::Policy { name, mode, nodes } => {
                self.policy(process, name.as_deref(), (*mode, *nodes), at)?;
            }
            What::Cpu(cpu) => {
                let cpus = self.machine.mm.topology().cpus.len();
                let cpu = u16::try_from(*cpu).ok().filter(|cpu| usize::from(*cpu) < cpus);
                let Some(cpu) = cpu else {
                    self.refused(at, "cpu");
                    return Ok(());
                };
                (process.cpu, process.is_pinned) = (Cpu(cpu), true);
                self.machine.mm.machine().set_cpu(process.cpu);
            }
            What::Sleep(ms) => self.sleep(process, *ms, at)?,
            What::Wait => {
                let has_children = self.processes.values().any(|other| other.parent == Some(process.task));
                process.waits = has_children.then_some(Waits::ForAll);
            }
            What::Mark(label) => self.mark(process, label),
        }
        Ok(())
    }

    /// A call said no, which the program writes down before it goes on.
    pub(super) fn refused(&mut self, at: At, call: &str) {
        self.marks.refused.push(format!("line {}: {call}", at.number));
    }

    /// A child begins with the lines `from` to before `end`.
    fn fork(
        &mut self,
        process: &mut Process,
        (from, end): (usize, usize),
        waits: bool,
        at: At,
    ) -> Result<(), Stop> {
        self.step(at, FORK_STEPS + process.space.resident_pages() / 64)?;
        if self.processes.len() + 1 >= MOST_PROCESSES {
            return Err(at.stop(format_args!("more than {MOST_PROCESSES} processes at once are not played")));
        }
        // There may be no memory for its tables; the program goes on without it.
        let Ok(space) = self.machine.mm.spaces().fork(&process.space) else {
            self.refused(at, "fork");
            return Ok(());
        };
        let task = TaskId(self.next_task);
        self.next_task += 1;
        let mut child = process.child(task, space, self.hints());
        child.blocks.push(Block { at: from, from, end, left: 0, line: None });
        child.ends = waits.then(|| at.stretch.after(1, 1)).filter(|end| *end > child.at);
        if !child.is_pinned {
            // The one with least to do; the parent is on its own.
            let cpus = (0..self.machine.mm.topology().cpus.len() as u16).map(Cpu);
            let busy = |cpu: &Cpu| {
                (self.on_cpu(*cpu) + usize::from(*cpu == process.cpu), *cpu != process.cpu, cpu.0)
            };
            child.cpu = cpus.min_by_key(busy).unwrap_or(process.cpu);
        }
        self.machine.mm.memcg().join(task, child.group);
        self.processes.insert(task, child);
        process.waits = waits.then_some(Waits::For(task));
        Ok(())
    }

    fn hints(&self) -> Hints {
        Hints::begin(&self.machine.mm, self.clock.borrow().now())
    }

    /// khugepaged works while the program sleeps.
    fn sleep(&self, process: &mut Process, ms: u64, at: At) -> Result<(), Stop> {
        if !process.has_slept {
            process.has_slept = true;
            self.touch_own(process, OWN..OWN + 1);
        }
        let every = self.machine.mm.knobs().get(Knob::KhugepagedScanSleep).max(1);
        let ran = self.machine.khugepaged_ran.take();
        let ago = ran.map_or(every, |at| process.at.0.saturating_sub(at.0) / 1_000_000);
        for _ in 0..ms.saturating_sub(every.saturating_sub(ago)) / every {
            self.step(at, ROUND_STEPS)?;
            self.machine.mm.collapses().khugepaged();
        }
        self.machine.daemons.idle();
        // That long at least.
        let slept = process.at.0.saturating_add(ms.saturating_mul(1_000_000));
        self.pass_to(process, at.stretch.after(1, 1).max(Nanos(slept)));
        process.hints.pass(process.at);
        Ok(())
    }

    /// The generators are about to change.
    pub(super) fn draws(&self, process: &mut Process) {
        if !std::mem::replace(&mut process.own.has_drawn, true) {
            self.touch_own(process, OF_DRAWS);
        }
    }

    fn touch_own(&self, process: &mut Process, pages: std::ops::Range<u32>) {
        for page in pages {
            // There is memory for four pages, or the scene's next operation says that there is none.
            let _ = self.touch_at(process, OWN_AT.add(page), Touch::Write);
        }
    }

    fn mark(&mut self, process: &mut Process, label: &str) {
        self.touch_own(process, 0..OWN);
        let said = self.clock.borrow_mut().mark(label, process.at);
        self.pass_to(process, said);
        process.hints.pass(process.at);
        self.run_daemons();
        self.machine.daemons.mark();
        self.read_metadata(process);
        let counters = process.space.counters();
        let now = (counters.minor, counters.major);
        let faults = process.last.map(|last| (now.0 - last.0, now.1 - last.1));
        process.last = Some(now);
        let seen = self.seen(Some(process));
        self.machine.daemons.trace.mark(label);
        self.marks.seen.push(Seen { label: label.into(), faults, process: process.task.0, ..seen });
        self.machine.fill_to_first_mark();
        self.machine.daemons.trees.begin(&self.machine.mm);
    }

    /// What there is, and of `process`.
    fn seen(&self, process: Option<&Process>) -> Seen {
        let mm = &self.machine.mm;
        let mut events = mm.views().counters().0;
        events.insert("oom_kill".into(), self.kills);
        events.extend(self.hint_counts.get().named().map(|(name, count)| (name.to_owned(), count)));
        let regions = process.map(|process| seen::residence(mm, process)).unwrap_or_default();
        Seen { events, regions, groups: seen::groups(mm), ..Seen::default() }
    }
}
