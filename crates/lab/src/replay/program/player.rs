//! A task of a program goes through its steps.

use std::rc::Rc;

use mm::vm::{FaultError, FaultKind, Faulted, Touch, Vpn};
use mm::{Machine, Nanos, Order, Request};

use super::balance::{At, TaskClock};
use super::copy::Copy;
use super::process::{self, Outcome, Process};
use super::sharing::Sharing;
use super::uses::Uses;
use super::walks::WalkTime;
use crate::measurements::{ForkUse, ProgramUse};
use crate::program::{Begins, Call, Company, Doing, LookedAt, TaskProgram, Walked};
use crate::recorded::TaskRef;
use crate::stage::Random;

/// Calls and touches that the memory manager refused, under the name that runs count them by.
const LEFT_OUT: &str = "calls_left_out";
const TOUCHES_REFUSED: &str = "touches_refused";

/// Own time of a task after which it is seen what it used meanwhile, ns.
const USE_NS: u64 = 1_000_000;

/// A task, on its way.
pub(super) struct Player {
    copy: Rc<Copy>,
    task: TaskRef,
    /// Whose address space it is in.
    process: Rc<Process>,
    jitter: Random,
    clock: TaskClock,
    /// Whether a look is followed yet.
    follows: bool,
    /// The next of the task's [`crate::program::TaskProgram::walked`].
    looks: usize,
    /// Walks' time that is not a whole nanosecond yet.
    owed_ns: f64,
    walks: Walks,
    /// Whether it has left its process.
    exited: bool,
}

/// What walks came to, of a task.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "the unit comes last in names")]
struct Walks {
    /// Time waited for them, ns.
    here_ns: f64,
    /// The task's own time, ns as recorded.
    own_ns: u64,
    /// That of which it is known how many walks there were.
    known_ns: u64,
}

impl Player {
    pub(super) fn new(copy: Rc<Copy>, task: TaskRef, process: Rc<Process>, jitter: Random) -> Self {
        let clock = copy.play.balance.as_ref().map(|balance| balance.clock(task.0)).unwrap_or_default();
        let walks = Walks::default();
        Self {
            copy,
            task,
            process,
            jitter,
            clock,
            follows: false,
            looks: 0,
            owed_ns: 0.0,
            walks,
            exited: false,
        }
    }

    /// The body of the task.
    pub(super) fn play(mut self) {
        self.enter_space();
        let stage = std::rc::Rc::clone(&self.copy.play.stage);
        if stage.is_grouped() {
            stage.mm.memcg().join(stage.machine().task(), self.copy.play.group);
        }
        let program = std::sync::Arc::clone(&self.copy.play.program);
        let task = &program.tasks[self.task.0 as usize];
        let moves = if self.copy.play.as_recorded { &task.ran_on[..] } else { &[] };
        let mut moves = moves.iter().skip(1).peekable();
        let mut awaited = task.awaited.iter().peekable();
        for (number, step) in task.steps.iter().enumerate() {
            if self.copy.is_killed() {
                break;
            }
            while let Some((_, cpu)) = moves.next_if(|(from, _)| *from as usize <= number) {
                self.copy.stage().machine().restrict_to(Rc::new([*cpu]));
            }
            // What was found while it waited is so from when it goes on: others have come there by then.
            if step.own_ns > 0 || !step.doing.waits() {
                self.look(task, number as u32);
            }
            let look = task.walked.get(self.looks).map(|from| program.walked[from.look as usize]);
            self.compute(step.own_ns, look);
            match step.doing {
                Doing::Computes => {}
                Doing::Sleeps(ns) => self.copy.stage().machine().sleep(Nanos(u64::from(ns))),
                // It has no memory any more.
                Doing::Touches { .. } | Doing::Calls(_) if self.exited => {}
                Doing::Touches { page, touch, company } => self.touch(page, touch, company),
                Doing::Calls(call) => self.call(&program.calls[call as usize]),
                Doing::Starts(other) => self.start(other, program.tasks[other.0 as usize].begins),
                Doing::Awaits(signal) => self.copy.wait(signal),
                Doing::AwaitsFor(signal, ns) => self.copy.wait_at_most(signal, Nanos(u64::from(ns))),
                Doing::Signals(signal) => self.copy.signal(signal),
            }
            while let Some((_, signal)) = awaited.next_if(|(step, _)| *step as usize == number) {
                self.copy.signal(*signal);
            }
        }
        let Walks { here_ns, own_ns, known_ns } = self.walks;
        let used =
            ProgramUse { walk_ns: here_ns as u64, own_ns, walk_known_ns: known_ns, ..ProgramUse::default() };
        self.copy.stage().tally.task_walked(&used);
        self.exit();
        stage.mm.memcg().leave(stage.machine().task());
        self.copy.finish();
    }

    /// It leaves its process for good, if it has not.
    fn exit(&mut self) {
        if !std::mem::replace(&mut self.exited, true) {
            self.process.hints().ended(self.task.0);
            self.copy.leave(&self.process);
        }
    }

    /// Step `number` begins. What a look found holds from the look before to it.
    #[inline]
    fn look(&mut self, task: &TaskProgram, number: u32) {
        let mut is_new = !self.follows && task.walked.first().is_some_and(|first| first.step <= number);
        self.follows |= is_new;
        while task.walked.get(self.looks + 1).is_some_and(|next| next.step <= number) {
            self.looks += 1;
            is_new = true;
        }
        if is_new {
            let before = self.looks.checked_sub(1).map_or(&[][..], |before| self.found(task, before));
            self.follow(task, before);
        }
    }

    /// What a look of the task's, by its number, found of `all` looks.
    fn of_look<'a, T>(task: &TaskProgram, number: usize, all: &'a [Vec<T>]) -> &'a [T] {
        task.walked.get(number).and_then(|from| all.get(from.look as usize)).map_or(&[], Vec::as_slice)
    }

    fn found(&self, task: &TaskProgram, number: usize) -> &[LookedAt] {
        Self::of_look(task, number, &self.copy.play.program.looked_at)
    }

    /// The process goes on using its pages as the next look finds it, and they hold what it found; `before` is what the last one found in
    /// the same address space.
    fn follow(&self, task: &TaskProgram, before: &[LookedAt]) {
        let zeros = Self::of_look(task, self.looks, &self.copy.play.program.zeros);
        if !zeros.is_empty() {
            self.process.space.say_zeros(self.copy.stage().machine(), zeros);
        }
        if let Some(uses) = self.process.uses() {
            let mut uses = uses.borrow_mut();
            uses.follow(self.found(task, self.looks), before);
            uses.follow_pages(task.walked.iter().skip(self.looks).map(|from| from.look));
        }
    }

    /// Other CPUs interrupt it where they change the address space that it is in.
    fn enter_space(&self) {
        self.copy.stage().machine().enter_space(self.process.space.id());
    }

    #[inline]
    fn compute(&mut self, own_ns: u32, look: Option<Walked>) {
        let scaled = (u64::from(own_ns) * self.copy.play.slowness) >> 16;
        self.walks.own_ns += u64::from(own_ns);
        let scaled = match look {
            Some(walked) if own_ns > 0 => self.with_walks(own_ns, scaled, walked),
            _ => scaled,
        };
        if scaled > 0 {
            let time = Nanos(self.jitter.around(scaled));
            if self.process.uses().is_some() {
                return self.compute_and_use(own_ns, time);
            }
            match &self.copy.play.balance {
                Some(balance) => balance.compute(&self.process, &mut self.clock, time),
                None => self.copy.stage().machine().compute(time),
            }
        }
    }

    /// Computes for `time`, which was `own_ns` when it was recorded, and uses meanwhile what is due.
    #[cold]
    fn compute_and_use(&mut self, own_ns: u32, time: Nanos) {
        let copy = Rc::clone(&self.copy);
        let parts = u64::from(own_ns).div_ceil(USE_NS).max(1);
        for part in 0..parts {
            let share = |whole: u64| whole * (part + 1) / parts - whole * part / parts;
            let now = Nanos(share(time.0));
            match &copy.play.balance {
                Some(balance) => balance.compute(&self.process, &mut self.clock, now),
                None => copy.stage().machine().compute(now),
            }
            copy.stage().mm.lru().flush_due_stats();
            self.process.use_again(copy.stage(), share(own_ns.into()), |missed| match missed {
                Ok(done) => self.wait_for_reads(done),
                Err(_) => copy.kill(),
            });
            if copy.is_killed() {
                return;
            }
        }
    }

    /// What `own_ns` that are `scaled` here take with the walks of the pages that there are now, ns.
    fn with_walks(&mut self, own_ns: u32, scaled: u64, walked: Walked) -> u64 {
        let Some(prices) = &self.copy.play.walks else { return scaled };
        let WalkTime { here_ns, more_ns } = prices.price(own_ns, walked, &self.process.space);
        self.walks.here_ns += here_ns;
        self.walks.known_ns += u64::from(own_ns);
        self.owed_ns += more_ns;
        let whole = self.owed_ns as i64;
        let with = (scaled as i64 + whole).max(0);
        self.owed_ns -= (with - scaled as i64) as f64;
        with as u64
    }

    #[inline]
    fn touch(&self, page: Vpn, touch: Touch, company: Company) {
        let stage = self.copy.stage();
        let space = &self.process.space;
        let begun = self.process.is_sharing().then(|| stage.machine().now());
        let mut touched = self.touch_through_hints(page, touch);
        if let (Some(begun), Ok(Some(_))) = (begun, touched) {
            self.process.faulted(stage.machine().now().0 - begun.0);
        }
        if company != Company::Alone {
            match touched {
                // Both were in the kernel when this was recorded; one found the other's page there, if need be after it had one for
                // nothing.
                Ok(None) if self.process.end_race(page) => {
                    if company == Company::AtOnce {
                        self.allocate_for_nothing();
                    }
                    touched = stage.mm.spaces().fault(space, page, touch).map(Some);
                }
                Ok(None) => {}
                _ => self.process.begin_race(page),
            }
        }
        if let (Some(uses), Ok(Some(Faulted { kind, .. }))) = (self.process.uses(), touched) {
            let first = Vpn(page.0 & !(kind.pages() - 1));
            uses.borrow_mut().touched(first, kind.pages());
        }
        match touched {
            Ok(Some(done)) if done.kind == FaultKind::Major => self.wait_for_reads(done),
            Ok(_) => stage.tally.did(1),
            Err(FaultError::Alloc(_)) => self.finds_no_memory(),
            Err(_) => stage.tally.note(TOUCHES_REFUSED, 1),
        }
    }

    /// Waits for what a fault has to read from the disk. The wait for what the recorded kernel had to read is a step of its own; this is
    /// what is missing here only.
    fn wait_for_reads(&self, done: Faulted) {
        if done.kind == FaultKind::Major {
            self.copy.stage().disk.transfer(self.copy.stage().machine(), done.reads.into());
        }
    }

    /// Touches `page`, twice if the first touch was a hint fault. Who brings a page in is known to balancing.
    #[inline]
    fn touch_through_hints(&self, page: Vpn, touch: Touch) -> Result<Option<Faulted>, FaultError> {
        let touched = self.touch_once(page, touch);
        let Some(balance) = &self.copy.play.balance else { return touched };
        let at = At { process: &self.process, task: self.task.0 };
        let touched = match touched {
            Ok(Some(done)) if done.kind == FaultKind::Hint => {
                balance.own_hint_fault(at, page);
                self.touch_once(page, touch)
            }
            other => other,
        };
        if let Ok(Some(_)) = touched {
            self.process.hints().touched(page, self.task.0);
        }
        touched
    }

    #[inline]
    fn touch_once(&self, page: Vpn, touch: Touch) -> Result<Option<Faulted>, FaultError> {
        let space = &self.process.space;
        match space.access(page, touch) {
            Some(_) => Ok(None),
            None => self.copy.stage().mm.spaces().fault(space, page, touch).map(Some),
        }
    }

    fn allocate_for_nothing(&self) {
        let mm = &self.copy.stage().mm;
        if let Ok(spare) = mm.alloc(Request { zero: true, ..Request::USER }) {
            mm.free(spare, Order::ZERO).expect("it was allocated just now");
        }
    }

    fn call(&mut self, call: &Call) {
        let copy = Rc::clone(&self.copy);
        let stage = copy.stage();
        if *call == Call::Exit {
            return self.exit();
        }
        if *call == Call::Exec {
            let task = &copy.play.program.tasks[self.task.0 as usize];
            let fresh = copy.successor(stage.mm.spaces().new_space(), &self.process);
            fresh.enter();
            stage.begins_in(&fresh.space, &task.name);
            let old = std::mem::replace(&mut self.process, fresh);
            self.enter_space();
            self.follow(task, &[]);
            copy.leave(&old);
            return;
        }
        match process::make(stage, &copy.play.files, &self.process, call) {
            Outcome::Done => stage.tally.did(1),
            Outcome::LeftOut => stage.tally.note(LEFT_OUT, 1),
            Outcome::NoMemory => self.finds_no_memory(),
            Outcome::NotMade(name) => stage.tally.leave_out(name),
        }
    }

    /// There is no memory for what it does: in a group somebody is killed for that, whatever was charged.
    fn finds_no_memory(&self) {
        if self.copy.stage().is_grouped() {
            self.copy.kill();
        } else {
            self.copy.stage().tally.could_not_get();
        }
    }

    fn start(&self, other: TaskRef, begins: Begins) {
        let process = match begins {
            Begins::AsThread | Begins::InSpace(_) => Rc::clone(&self.process),
            Begins::AsFork => self.fork(other),
        };
        self.copy.spawn(other, process, Nanos(0));
    }

    fn fork(&self, other: TaskRef) -> Rc<Process> {
        let stage = self.copy.stage();
        let Copy { play, .. } = &*self.copy;
        let resident_pages = self.process.space.resident_pages();
        let begun = stage.machine().now();
        let copied = stage.mm.spaces().fork(&self.process.space);
        let now = stage.machine().now();
        let space = copied.unwrap_or_else(|_| {
            self.finds_no_memory();
            stage.mm.spaces().new_space()
        });
        let child = self.copy.successor(space, &self.process);
        let so_far = ForkUse {
            parent: play.program.tasks[self.task.0 as usize].name.clone(),
            resident_pages,
            fork_ns: now.0 - begun.0,
            recorded_ns: play.program.forked_ns.get(&other.0).copied().unwrap_or(0),
            ..ForkUse::default()
        };
        if let (Some(own), Some(childs)) = (self.process.uses(), child.uses()) {
            childs.replace(own.borrow().child(Uses::random(child.space.id())));
        }
        child.forked(Sharing::new(&self.process, now, so_far));
        child
    }
}
