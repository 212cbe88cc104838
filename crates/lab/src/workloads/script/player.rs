//! A process goes through its steps.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use mm::mempolicy::{InterleaveCursor, MemPolicy};
use mm::vm::{File, FileId};
use mm::{AllocError, Cpu, Knob, Limit, Machine, Nanos, Node, Order, Request};
use sim::{Path, SimMachine, TaskSpec};

use super::world::{DONE, KILLED, Life, REFUSED, World};
use crate::script::names::{Named, Names, PAGE};
use crate::script::program::What;
use crate::script::strict::{Act, Step};

/// Who has come to its end waits for that of the run.
const IDLE: Nanos = Nanos(10_000_000);
/// A round of `for` that took no time is followed by a pause, for else there would be rounds without end.
const ROUND: Nanos = Nanos(1_000_000);
/// Where a request may not wait, who made it tries again after so long.
const AGAIN: Nanos = Nanos(1_000_000);

/// Why a process does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The run is over.
    Over,
    /// It was killed, for there was no memory, or touched what was not its own any more.
    Killed,
    /// The time of the `for` that it is in has passed; there it goes on.
    Late,
}

/// A process on its way.
pub(super) struct Player {
    pub(super) world: Rc<World>,
    pub(super) life: Rc<Life>,
    steps: Arc<[Step]>,
    pub(super) names: Names<SimMachine>,
    /// Files by number.
    pub(super) files: Vec<Arc<File<SimMachine>>>,
    pub(super) policy: MemPolicy,
    pub(super) turn: InterleaveCursor,
    /// When what is read ahead of a file will be there.
    pub(super) ahead: BTreeMap<FileId, Nanos>,
    /// Where its last read of each file by a call ended, its page.
    pub(super) went: BTreeMap<FileId, u32>,
    /// The rounds of the `repeat`s and `for`s that it is in, from 1; the innermost last.
    rounds: Vec<u64>,
    /// Until when the `for`s last that it is in; the innermost last, which is the earliest.
    until: Vec<Nanos>,
    /// The last mark: when, and what was counted then.
    pub(super) marked: Nanos,
    pub(super) counted: BTreeMap<String, u64>,
}

impl Player {
    pub(super) fn new(world: Rc<World>, life: Rc<Life>, steps: Arc<[Step]>) -> Self {
        let marked = world.stage.machine().now();
        Self {
            world,
            life,
            steps,
            names: Names::default(),
            files: vec![],
            policy: MemPolicy::Local,
            turn: InterleaveCursor::default(),
            ahead: BTreeMap::new(),
            went: BTreeMap::new(),
            rounds: vec![],
            until: vec![],
            marked,
            counted: BTreeMap::new(),
        }
    }

    pub(super) fn machine(&self) -> &SimMachine {
        self.world.stage.machine()
    }

    /// The body of a program's task: when all is done it waits for the end of the run.
    pub(super) fn play(mut self) {
        let all = 0..self.steps.len();
        self.live(all);
        let stage = &self.world.stage;
        while !stage.is_over() {
            stage.machine().sleep(IDLE);
        }
    }

    /// Goes through `steps`, and ends.
    fn live(&mut self, steps: Range<usize>) {
        self.machine().enter_space(self.life.space.id());
        let outcome = self.block(steps).and_then(|()| self.may_live());
        let tally = &self.world.stage.tally;
        match outcome {
            Ok(()) => tally.note(DONE, 1),
            Err(End::Killed) => tally.note(KILLED, 1),
            // Of what `for` is about, nothing comes here.
            Err(End::Over | End::Late) => {}
        }
        self.world.end(&self.life);
    }

    fn block(&mut self, steps: Range<usize>) -> Result<(), End> {
        let mut at = steps.start;
        while at < steps.end {
            self.may_go_on()?;
            let Step { act, .. } = &Arc::clone(&self.steps)[at];
            at += 1;
            match act {
                Act::Does(what) => self.operation(what)?,
                Act::Compute(ns) => self.machine().compute(Nanos(*ns)),
                Act::Take(pages) => self.take(*pages),
                Act::Mark { label, counters } => self.mark(&label.in_round(self.round()), counters),
                Act::Fork { end, waits } => {
                    let lines = at..*end;
                    at = *end;
                    self.fork(lines, *waits)?;
                }
                Act::Repeat { end, times } => {
                    let lines = at..*end;
                    at = *end;
                    for round in 1..=*times {
                        self.rounds.push(round);
                        let done = self.may_go_on().and_then(|()| self.block(lines.clone()));
                        self.rounds.pop();
                        done?;
                    }
                }
                Act::For { end, ms } => {
                    let lines = at..*end;
                    at = *end;
                    self.go_round(&lines, Nanos(ms.saturating_mul(1_000_000)))?;
                }
                Act::Time { end, label } => {
                    let (lines, began) = (at..*end, self.machine().now());
                    at = *end;
                    self.block(lines)?;
                    let took = self.machine().now().0 - began.0;
                    self.world.stage.tally.sampled(&label.in_round(self.round()), took as f64);
                }
            }
        }
        Ok(())
    }

    /// Goes through `steps` until `length` has passed; what is under way then ends.
    fn go_round(&mut self, steps: &Range<usize>, length: Nanos) -> Result<(), End> {
        let until = Nanos(self.machine().now().0.saturating_add(length.0));
        self.until.push(self.until.last().map_or(until, |&outer| outer.min(until)));
        let mut round = 0;
        let end = loop {
            let began = self.machine().now();
            round += 1;
            self.rounds.push(round);
            let outcome = self.may_go_on().and_then(|()| self.block(steps.clone()));
            self.rounds.pop();
            if let Err(end) = outcome {
                break end;
            }
            if self.machine().now() == began {
                self.machine().sleep(ROUND);
            }
        };
        self.until.pop();
        if end == End::Late { Ok(()) } else { Err(end) }
    }

    fn round(&self) -> u64 {
        self.rounds.last().copied().unwrap_or(0)
    }

    fn may_live(&self) -> Result<(), End> {
        if self.life.is_killed.get() { Err(End::Killed) } else { Ok(()) }
    }

    /// Whether there is a next access or line.
    pub(super) fn may_go_on(&self) -> Result<(), End> {
        self.may_live()?;
        if self.world.stage.is_over() {
            return Err(End::Over);
        }
        let is_late = self.until.last().is_some_and(|&until| self.machine().now() >= until);
        if is_late { Err(End::Late) } else { Ok(()) }
    }

    /// A call said no; the process goes on.
    pub(super) fn refused(&self) {
        self.world.stage.tally.note(REFUSED, 1);
    }

    pub(super) fn accept(&self, taken: bool) {
        if !taken {
            self.refused();
        }
    }

    /// Does what needs memory until there is some.
    pub(super) fn until_done<T>(
        &mut self,
        mut does: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, End> {
        loop {
            self.may_go_on()?;
            match does(self) {
                Ok(done) => return Ok(done),
                Err(Failure::Memory(AllocError::OutOfMemory)) => self.world.out_of_memory(&self.life)?,
                Err(Failure::Address | Failure::Memory(AllocError::Killed)) => return Err(End::Killed),
                Err(Failure::Memory(AllocError::WouldWait | AllocError::NoZone)) => {
                    self.world.stage.tally.could_not_get();
                    self.machine().sleep(AGAIN);
                }
            }
        }
    }

    fn operation(&mut self, what: &What) -> Result<(), End> {
        if !matches!(
            what,
            What::Accesses(_) | What::Zipf(_) | What::Sleep(_) | What::Wait | What::File { .. }
        ) {
            self.machine().charge(Path::Syscall);
        }
        match what {
            What::Map { name, bytes, shared, huge, nohuge, .. } => {
                self.map(name, *bytes, (*shared, *huge, *nohuge));
            }
            What::File { name, bytes } => self.file(name, *bytes),
            What::MapFile { name, file, executable, private } => {
                self.map_file(name, file, (*executable, *private));
            }
            What::Accesses(accesses) => self.accesses(accesses)?,
            What::Zipf(zipf) => self.zipf(zipf)?,
            What::Sync(_) => self.write_back(),
            What::Advise { name, word, part, pieces } => self.advise(name, word, (*part, *pieces))?,
            What::Unmap { name, part, pieces } => self.unmap(name, (*part, *pieces)),
            What::Lock { name, part, pieces } => self.lock(name, (*part, *pieces))?,
            What::Cgroup(name) => self.join(name),
            What::Limit { group, knob, bytes } => self.limit(group.as_deref(), knob, *bytes)?,
            What::Set { file, value } => self.set(file, value),
            What::Policy { name, mode, nodes } => self.set_policy(name.as_deref(), *mode, *nodes),
            What::Cpu(cpu) => {
                let cpus = self.world.stage.mm.topology().cpus.len();
                match u16::try_from(*cpu).ok().filter(|cpu| usize::from(*cpu) < cpus) {
                    Some(cpu) => self.machine().restrict_to(Rc::new([Cpu(cpu)])),
                    None => self.refused(),
                }
            }
            What::Sleep(ms) => self.machine().sleep(Nanos(ms.saturating_mul(1_000_000))),
            What::Wait => self.life.wait_for(self.machine(), None),
            // Scripts have neither.
            What::SwapOnDisk | What::SwapOnZram(_) | What::Mark(_) => {}
        }
        Ok(())
    }

    /// A child goes through `steps`.
    fn fork(&mut self, steps: Range<usize>, waits: bool) -> Result<(), End> {
        let stage = &self.world.stage;
        // There may be no memory for its tables; the program goes on without it.
        let Ok(space) = stage.mm.spaces().fork(&self.life.space) else {
            self.refused();
            return Ok(());
        };
        let mut child = Self::new(Rc::clone(&self.world), Rc::clone(&self.life), Arc::clone(&self.steps));
        child.names.clone_from(&self.names);
        child.files.clone_from(&self.files);
        child.rounds.clone_from(&self.rounds);
        child.policy = self.policy;
        let cpus = stage.cpus.clone().into();
        let begun: Rc<std::cell::OnceCell<Rc<Life>>> = Rc::default();
        let known = Rc::clone(&begun);
        let task = stage.machine().spawn(TaskSpec::new("script/child").on_any(cpus), move || {
            if let Some(life) = known.get() {
                child.life = Rc::clone(life);
                child.live(steps);
            }
        });
        let life = self.world.begin(task, space, Some(&self.life));
        // It does not run before this task waits, or time passes.
        drop(begun.set(Rc::clone(&life)));
        if waits {
            self.life.wait_for(self.machine(), Some(&life));
        }
        self.may_go_on()
    }

    /// Moves to a group, which is made if it is not there.
    fn join(&self, name: &str) {
        let stage = &self.world.stage;
        let group = stage.made_group(name);
        self.life.group.set(group);
        stage.mm.memcg().join(self.life.task, group);
    }

    /// Writes a group's file, by default the own group's. `None`: `max`.
    fn limit(&self, group: Option<&str>, knob: &str, bytes: Option<u64>) -> Result<(), End> {
        let stage = &self.world.stage;
        let memcg = stage.mm.memcg();
        let group = group.map_or(self.life.group.get(), |name| stage.made_group(name));
        // The root has no such files.
        if group == mm::GroupId::ROOT {
            self.refused();
            return Ok(());
        }
        let pages = bytes.map_or(u64::MAX, |bytes| bytes / PAGE);
        let Some(limit) = Limit::ALL.into_iter().find(|limit| limit.name() == knob) else {
            self.accept(memcg.reclaim(group, u32::try_from(pages).unwrap_or(u32::MAX)));
            return Ok(());
        };
        // While it has more than its `max`, its processes go; where there are none, it stays so.
        while !memcg.set_limit(group, limit, pages) {
            if !self.world.has_process(group) {
                self.refused();
                return Ok(());
            }
            self.world.kill_largest(&self.life, Some(group))?;
        }
        Ok(())
    }

    /// The kernel takes so many pages, in large blocks as long as there are any; what it cannot have is a request that failed.
    fn take(&self, pages: u64) {
        let stage = &self.world.stage;
        let (mut left, mut order) = (pages, Order::PAGEBLOCK);
        while left > 0 {
            while u64::from(order.pages()) > left {
                order = Order::new(order.get() - 1).unwrap_or(Order::ZERO);
            }
            let request = Request { allowed: stage.allowed, ..Request::KERNEL }.of_order(order);
            match stage.mm.alloc(request) {
                Ok(_) => left -= u64::from(order.pages()),
                Err(_) if order > Order::ZERO => order = Order::new(order.get() - 1).unwrap_or(Order::ZERO),
                Err(_) => return stage.tally.could_not_get(),
            }
        }
    }

    fn set(&self, name: &str, value: &str) {
        let stage = &self.world.stage;
        match name {
            "vm.drop_caches" => {
                for file in &self.files {
                    self.forget(file, 0, u32::MAX);
                }
            }
            "vm.compact_memory" => {
                for node in 0..stage.mm.topology().nodes.len() as u16 {
                    stage.mm.compaction().compact_node(Node(node));
                }
            }
            name => {
                let knob = Knob::from_name(name).ok();
                let set = knob.and_then(|knob| stage.set_knob(knob, knob.parse_one(value).ok()?).ok());
                self.accept(set.is_some());
            }
        }
    }

    /// What is called `name`; scripts are read so that there is something.
    pub(super) fn named(&self, name: &str) -> Option<Named<SimMachine>> {
        self.names.find(name).cloned()
    }
}

/// Why something that needs memory failed.
#[derive(Debug)]
pub(super) enum Failure {
    Memory(AllocError),
    /// SIGSEGV.
    Address,
}

impl From<mm::vm::FaultError> for Failure {
    fn from(error: mm::vm::FaultError) -> Self {
        match error {
            mm::vm::FaultError::Alloc(error) => Self::Memory(error),
            mm::vm::FaultError::NoRegion(_) | mm::vm::FaultError::Forbidden(_) => Self::Address,
        }
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}
