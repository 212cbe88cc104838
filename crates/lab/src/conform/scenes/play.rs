//! Plays a scene's program, and notes what is counted at its marks.

use std::cell::{Cell, RefCell};

use mm::tier::Balancing;
use mm::vm::{FileKind, HugePages, MapSpec, Touch, Vpn};
use mm::{Cpu, GroupEvent, GroupId, Knob, TaskId};

use super::balance::{HintCounts, Hints};
use super::clock::{Clock, Stretch};
use super::machine::{Played, spec_of};
use super::process::{Named, Process, Region};
use super::program::{Line, Order, SwapDevice, What};
use super::seen::{self, Marks, Seen};
use crate::conform::read::sections::FormatError;

/// What a round of khugepaged counts as.
const ROUND_STEPS: u64 = 1000;
/// Names that a process may have, a GiB each.
const MOST_NAMES: usize = 1000;
/// Pages of 1 GiB.
const GIB: u32 = 1 << 18;
/// Pages of its own (stack, data) that a program writes to between any two marks: captured, where a fork took them from it.
const OWN: u32 = 4;
/// Where they are, and behind them the one that its first sleep touches.
const OWN_AT: Vpn = Vpn(1 << 10);
/// There is one task at a time.
const TASK: TaskId = TaskId(0);

pub(super) struct Player {
    pub(super) machine: Played,
    pub(super) clock: RefCell<Clock>,
    marks: Marks,
    most_steps: u64,
    left: Cell<u64>,
    /// Processes that were killed.
    kills: u64,
    /// NUMA balancing, from its first fault on.
    pub(super) balancing: RefCell<Option<Balancing>>,
    pub(super) hint_counts: Cell<HintCounts>,
}

/// Why a play does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// An operation that is not played.
    Here(String),
    Bad(FormatError),
    /// The process was killed: there is no memory for it.
    Killed,
}

/// Plays `program`, as far as `most_steps` operations and touches of pages go.
pub(super) fn play(
    machine: Played,
    clock: Clock,
    program: &[Line],
    most_steps: u64,
) -> Result<Marks, FormatError> {
    let space = machine.mm.spaces().new_space();
    let group = machine.mm.memcg().group(GroupId::ROOT, "scene").unwrap_or(GroupId::ROOT);
    machine.mm.memcg().join(TASK, group);
    let own = machine.mm.spaces().mmap_at(&space, OWN_AT, MapSpec::anonymous(OWN + 1));
    own.map_err(|error| FormatError::new(0, error.to_string()))?;
    let mut player = Player {
        machine,
        clock: RefCell::new(clock),
        marks: Marks::default(),
        most_steps,
        left: Cell::new(most_steps),
        kills: 0,
        balancing: RefCell::default(),
        hint_counts: Cell::default(),
    };
    let hints = player.hints();
    let mut process = Process::new(space, group, hints);
    player.touch_own(&mut process, 0..OWN);
    match player.lines(&mut process, program) {
        Ok(()) => {}
        Err(Stop::Here(what)) => player.marks.stopped = Some(what),
        Err(Stop::Killed) => player.marks.stopped = Some("the program was killed, for memory was out".into()),
        Err(Stop::Bad(error)) => return Err(error),
    }
    Ok(player.marks)
}

/// A line that is being played.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) number: usize,
    pub(super) stretch: Stretch,
}

impl At {
    /// Stops there, for `what`.
    pub(super) fn stop(self, what: impl std::fmt::Display) -> Stop {
        Stop::Here(format!("line {}: {what}", self.number))
    }
}

impl Player {
    fn lines(&mut self, process: &mut Process, lines: &[Line]) -> Result<(), Stop> {
        lines.iter().try_for_each(|line| self.line(process, line))
    }

    /// So many steps more; says no once there were too many.
    pub(super) fn step(&self, at: At, steps: u64) -> Result<(), Stop> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        let most = self.most_steps;
        left.map(drop).ok_or_else(|| at.stop(format_args!("more than {most} steps are not played")))
    }

    fn line(&mut self, process: &mut Process, line: &Line) -> Result<(), Stop> {
        let at = At { number: line.number, stretch: self.clock.borrow_mut().begin(line.number) };
        self.step(at, 1)?;
        match &line.what {
            What::Mark => self.mark(process),
            What::Fork(body) => self.fork(process, body, at)?,
            What::Repeat(times, body) => {
                for _ in 0..*times {
                    self.lines(process, body)?;
                }
            }
            what => self.operation(process, what, at)?,
        }
        self.clock.borrow_mut().go_on(at.stretch, 1, 1);
        match line.what {
            What::Sleep(_) | What::Mark | What::Fork(_) => process.hints.pass(self.clock.borrow().now()),
            _ => self.ran(process),
        }
        self.run_daemons();
        Ok(())
    }

    fn operation(&mut self, process: &mut Process, what: &What, at: At) -> Result<(), Stop> {
        match what {
            What::Set { file, value } => {
                Played::check_setting(file, value, at)?;
                self.machine.set(file, value);
            }
            What::Map { name, pages, shared, huge } => {
                self.map(process, (name, *pages), if *shared { None } else { Some(*huge) }, at)?;
            }
            What::Touch { name, part, stride, touch, order, times } => {
                let (from, to) = process.part(name, *part);
                let region = Self::region(process, name, at)?;
                let range = (region.start.add(from), to - from, *stride);
                self.touch(process, range, (*touch, *order, *times), at)?;
            }
            What::Unmap { name, part } => {
                let region = Self::region(process, name, at)?;
                for (first, pages) in process.pieces(name, *part) {
                    self.machine.mm.spaces().munmap(&process.space, region.start.add(first), pages);
                }
            }
            What::Policy { name, policy } => {
                let region = Self::region(process, name, at)?;
                let spaces = self.machine.mm.spaces();
                let bound = spaces.mbind(&process.space, region.start, region.pages, *policy);
                bound.map_err(|error| at.stop(error))?;
            }
            What::Cpu(cpu) => self.machine.mm.machine().set_cpu(Cpu(*cpu)),
            What::Sleep(ms) => self.sleep(process, *ms, at)?,
            What::SwapOn(device) => {
                let pages = match device {
                    SwapDevice::Disk => self.machine.swap_disk,
                    SwapDevice::Zram(pages) => *pages,
                };
                // The first page is the header's.
                self.machine.mm.spaces().set_swap(pages.saturating_sub(1));
            }
            What::Cgroup(name) => {
                let group = self.machine.mm.memcg().group(GroupId::ROOT, name);
                process.group = group.ok_or_else(|| at.stop("too many groups"))?;
                self.machine.mm.memcg().join(TASK, process.group);
            }
            What::Limit { group, limit, pages } => {
                let memcg = self.machine.mm.memcg();
                let named = group.as_deref().and_then(|name| memcg.group(GroupId::ROOT, name));
                let group = named.unwrap_or(process.group);
                if !memcg.set_limit(group, *limit, pages.unwrap_or(u64::MAX)) {
                    return Err(self.kill(process));
                }
            }
            What::Other(what) => return Err(at.stop(format_args!("`{what}` is not played"))),
            what => self.file_operation(process, what, at)?,
        }
        Ok(())
    }

    pub(super) fn region(process: &Process, name: &str, at: At) -> Result<Region, Stop> {
        match process.names.get(name).map(|this| &this.named) {
            Some(Named::Region(region)) => Ok(*region),
            _ => Err(Stop::Bad(FormatError::new(at.number, "a region of that name is not mapped"))),
        }
    }

    /// Where the next name's region would be.
    pub(super) fn place(process: &Process, pages: u32, at: At) -> Result<Vpn, Stop> {
        if pages > GIB || process.names.len() >= MOST_NAMES {
            return Err(at.stop(format_args!("{MOST_NAMES} regions of 1 GiB are the most that is played")));
        }
        Ok(Vpn((4 + process.names.len() as u32) * GIB))
    }

    /// Maps a region of the process's own; `None`: of memory that is shared.
    fn map(
        &self,
        process: &mut Process,
        (name, pages): (&str, u32),
        huge: Option<HugePages>,
        at: At,
    ) -> Result<(), Stop> {
        let start = Self::place(process, pages, at)?;
        let mm = &self.machine.mm;
        let shared = || MapSpec::shared(&mm.files().new_file(FileKind::Memory), pages);
        let spec = huge.map_or_else(shared, |huge| spec_of(pages, huge));
        mm.spaces().mmap_at(&process.space, start, spec).map_err(|error| at.stop(error))?;
        process.add(name, Named::Region(Region { start, pages }));
        Ok(())
    }

    /// The child runs to its end, and the parent goes on.
    fn fork(&mut self, process: &mut Process, body: &[Line], at: At) -> Result<(), Stop> {
        let space = self.machine.mm.spaces().fork(&process.space).map_err(|error| at.stop(error))?;
        let hints = self.hints();
        let mut child = process.child(space, hints);
        let done = self.lines(&mut child, body);
        self.machine.mm.spaces().exit(&child.space);
        self.machine.mm.memcg().join(TASK, process.group);
        match done {
            Err(Stop::Killed) => Ok(()),
            done => done,
        }
    }

    fn hints(&self) -> Hints {
        Hints::begin(&self.machine.mm, self.clock.borrow().now())
    }

    /// There is no memory for `process`: it goes. (Of several it is the largest that the kernel takes; here that is the one
    /// that runs, as long as a child has more than its parent.)
    pub(super) fn kill(&mut self, process: &Process) -> Stop {
        self.kills += 1;
        self.machine.mm.memcg().count(process.group, GroupEvent::OomKill);
        Stop::Killed
    }

    fn touch(
        &mut self,
        process: &mut Process,
        (start, pages, stride): (Vpn, u32, u32),
        (touch, order, times): (Touch, Order, u32),
        at: At,
    ) -> Result<(), Stop> {
        let strides = pages.div_ceil(stride.max(1));
        let all = u64::from(strides) * u64::from(times);
        for number in 0..all {
            if number % u64::from(strides) == 0 {
                self.step(at, strides.into())?;
            }
            let turn = process.turn((number % u64::from(strides)) as u32, strides, order);
            let vpn = start.add(turn * stride);
            match self.touch_at(process, vpn, touch) {
                Ok(()) => self.went_on(process, at, (number, all)),
                Err(error) => return Err(self.failed(process, &error.into(), at)),
            }
        }
        Ok(())
    }

    /// So many of `all` accesses of a line are done.
    pub(super) fn went_on(&self, process: &mut Process, at: At, (done, all): (u64, u64)) {
        self.clock.borrow_mut().go_on(at.stretch, done, all);
        self.ran(process);
        self.run_daemons();
    }

    /// khugepaged works while the program sleeps.
    fn sleep(&self, process: &mut Process, ms: u64, at: At) -> Result<(), Stop> {
        if !process.has_slept {
            process.has_slept = true;
            self.touch_own(process, OWN..OWN + 1);
        }
        let every = self.machine.mm.knobs().get(Knob::KhugepagedScanSleep).max(1);
        for _ in 0..ms / every {
            self.step(at, ROUND_STEPS)?;
            self.machine.mm.collapses().khugepaged();
        }
        Ok(())
    }

    fn touch_own(&self, process: &mut Process, pages: std::ops::Range<u32>) {
        for page in pages {
            // There is memory for four pages, or the scene's next operation says that there is none.
            let _ = self.touch_at(process, OWN_AT.add(page), Touch::Write);
        }
    }

    fn mark(&mut self, process: &mut Process) {
        self.touch_own(process, 0..OWN);
        self.clock.borrow_mut().mark();
        self.run_daemons();
        let counters = process.space.counters();
        let now = (counters.minor, counters.major);
        let faults = process.last.map(|last| (now.0 - last.0, now.1 - last.1));
        process.last = Some(now);
        let mm = &self.machine.mm;
        let mut events = mm.views().counters().0;
        events.insert("oom_kill".into(), self.kills);
        events.extend(self.hint_counts.get().named().map(|(name, count)| (name.to_owned(), count)));
        let (regions, groups) = (seen::residence(mm, process), seen::groups(mm));
        self.marks.seen.push(Seen { faults, is_child: process.is_child, events, regions, groups });
        self.machine.fill_to_first_mark();
    }
}
