//! The simulation and its main loop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::{mem, ptr};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use mm::{Cpu, Daemon, Nanos, TaskId};

use super::meter::SpanRecord;
use super::sched::{Next, Sched};
use super::watch::waiting;
use super::{Core, Park, SimOptions};
use crate::error::SimError;
use crate::locks::NOBODY;
use crate::machine::SimMachine;
use crate::measure::Measurements;
use crate::profile::Profile;
use crate::task::{Role, TaskSpec};
use crate::time::{Ticks, from_nanos, to_nanos};

type TaskStack = Coroutine<(), Park, (), DefaultStack>;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Every ordinary task has ended.
    AllTasks,
    /// The time limit was reached; another run goes on from there.
    Limit,
}

/// How a run went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunSummary {
    /// Simulated time at its end.
    pub now: Nanos,
    /// Why it ended.
    pub ended: Ended,
    /// Ordinary tasks that have not ended.
    pub tasks_left: usize,
}

/// A simulated machine with its tasks.
pub struct Sim {
    core: Rc<Core>,
    tasks: Vec<Option<TaskStack>>,
    stacks: Vec<DefaultStack>,
    stack_bytes: usize,
}

impl Sim {
    /// A machine as `profile` says, at time 0, without tasks.
    pub fn new(profile: &Profile, options: SimOptions) -> Self {
        let core = Rc::new(Core::new(profile, options));
        Self { core, tasks: vec![], stacks: vec![], stack_bytes: options.stack_bytes }
    }

    /// A handle to the machine, for the memory manager and for tasks.
    pub fn machine(&self) -> SimMachine {
        SimMachine(Rc::clone(&self.core))
    }

    /// Adds a task. The simulation lasts until all of them have ended.
    pub fn spawn(&self, spec: TaskSpec, body: impl FnOnce() + 'static) -> TaskId {
        self.core.spawn(spec, Role::Ordinary, Box::new(body))
    }

    /// Adds a task that serves others: it runs before them on its CPU, may loop for ever, and is let go with a forced
    /// unwind when all ordinary tasks have ended.
    pub fn spawn_background(&self, spec: TaskSpec, body: impl FnOnce() + 'static) -> TaskId {
        self.core.spawn(spec, Role::Background, Box::new(body))
    }

    /// Adds the task that [`mm::Machine::wake`] wakes as `daemon`; of several, only the first is. `body` loops, waiting in
    /// [`mm::Machine::block`].
    pub fn spawn_daemon(&self, daemon: Daemon, spec: TaskSpec, body: impl FnOnce() + 'static) -> TaskId {
        self.core.spawn(spec, Role::Daemon(daemon), Box::new(body))
    }

    /// Calls `body` once at `time`, on CPU 0, in a background task called `name`. Not called if the simulation ends
    /// before.
    pub fn at(&self, time: Nanos, name: &str, body: impl FnOnce() + 'static) {
        let spec = TaskSpec::new(name).on(Cpu(0)).at(time);
        self.core.spawn(spec, Role::Background, Box::new(body));
    }

    /// Calls `tick` on every CPU each `period`, first at a random time within the first one, as timers and the vmstat
    /// worker do. The memory manager finds the CPU by [`mm::Machine::cpu`]. A period that changes holds from a CPU's next
    /// tick on. Gives the numbers that were drawn: a CPU's first tick is at its number modulo the period.
    pub fn every(
        &self,
        period: impl Fn() -> Nanos + 'static,
        name: &str,
        tick: impl Fn() + 'static,
    ) -> Vec<u64> {
        let period: Rc<dyn Fn() -> Nanos> = Rc::new(period);
        let tick: Rc<dyn Fn()> = Rc::new(tick);
        let cpus = self.core.sched.borrow().cpus.len();
        let mut numbers = Vec::with_capacity(cpus);
        for cpu in 0..cpus as u16 {
            let machine = self.machine();
            let number = mm::Machine::random(&machine);
            numbers.push(number);
            let first = Nanos(number % period().0.max(1));
            let (period, tick) = (Rc::clone(&period), Rc::clone(&tick));
            let spec = TaskSpec::new(format!("{name}/{cpu}")).on(Cpu(cpu)).at(first);
            self.spawn_background(spec, move || {
                let mut next = first.0;
                loop {
                    tick();
                    next += period().0.max(1);
                    machine.sleep_until(Nanos(next));
                }
            });
        }
        numbers
    }

    /// Has `hook` told of every span that ends. It must not use the machine.
    pub fn on_span(&self, hook: impl FnMut(&SpanRecord) + 'static) {
        *self.core.hook.borrow_mut() = Some(Box::new(hook));
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    /// What has been measured since the beginning or the last reset.
    pub fn measurements(&self) -> Measurements {
        self.core.measurements()
    }

    /// Forgets what has been measured, so that a warm-up does not count.
    pub fn reset_measurements(&self) {
        self.core.reset_measurements();
    }

    /// Runs until all ordinary tasks have ended, or simulated time has reached `limit`.
    ///
    /// # Errors
    /// The simulation cannot go on: see [`SimError`]. It cannot be run again then.
    pub fn run(&mut self, limit: Option<Nanos>) -> Result<RunSummary, SimError> {
        let limit = limit.map_or(Ticks::MAX - 1, from_nanos);
        self.core.run_limit.set(limit);
        loop {
            let core = &*self.core;
            if core.failed.get() {
                return Err(core.error.borrow().clone().unwrap_or_else(|| self.stuck()));
            }
            let next = core.sched.borrow_mut().next(limit, &mut core.lines.borrow_mut(), &core.costs);
            match next {
                Next::Run { task, cpu } => self.execute(task, cpu)?,
                Next::AllEnded => {
                    let last_end = core.sched.borrow().last_end;
                    return Ok(self.summary(Ended::AllTasks, last_end));
                }
                Next::Limit => return Ok(self.summary(Ended::Limit, limit)),
                Next::Stuck => return Err(self.stuck()),
            }
        }
    }

    fn summary(&self, ended: Ended, now: Ticks) -> RunSummary {
        self.core.clock.set(now);
        let tasks_left = self.core.sched.borrow().live;
        RunSummary { now: to_nanos(now), ended, tasks_left }
    }

    fn execute(&mut self, task: u32, cpu: u16) -> Result<(), SimError> {
        let index = task as usize;
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, || None);
        }
        if self.tasks[index].is_none() {
            self.tasks[index] = self.start(task)?;
        }
        let Some(coroutine) = self.tasks[index].as_mut() else { return Ok(()) };
        self.core.go_on(task, cpu);
        self.core.pass_by();
        if let Some(error) = self.core.watch_engine() {
            self.core.parked(Park::Fail);
            return Err(error);
        }
        // The closure is not used again after a panic: the run ends.
        let result = catch_unwind(AssertUnwindSafe(|| coroutine.resume(())));
        match result {
            Ok(CoroutineResult::Yield(park)) => self.core.parked(park),
            Ok(CoroutineResult::Return(())) => {
                self.core.ended();
                self.stacks.extend(self.tasks[index].take().map(Coroutine::into_stack));
            }
            Err(payload) => {
                let error = SimError::TaskPanicked {
                    task: self.core.task_name(task),
                    at: to_nanos(self.core.clock.get()),
                    message: message_of(&*payload),
                };
                self.core.set_error(error);
                self.core.ended();
            }
        }
        Ok(())
    }

    fn start(&mut self, task: u32) -> Result<Option<TaskStack>, SimError> {
        let Some(body) = self.core.bodies.borrow_mut()[task as usize].take() else { return Ok(None) };
        let stack = match self.stacks.pop() {
            Some(stack) => stack,
            None => DefaultStack::new(self.stack_bytes).map_err(|error| SimError::NoStack {
                task: self.core.task_name(task),
                reason: error.to_string(),
            })?,
        };
        let core = Rc::downgrade(&self.core);
        Ok(Some(Coroutine::with_stack(stack, move |yielder, ()| {
            if let Some(core) = core.upgrade() {
                core.started(task, yielder);
            }
            drop(core);
            body();
        })))
    }

    fn stuck(&self) -> SimError {
        let sched = self.core.sched.borrow();
        SimError::Deadlock {
            at: to_nanos(sched.stuck_since),
            tasks: waiting(&sched, &self.core.locks.borrow()),
        }
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".into())
}

impl Core {
    /// `task` goes on, on `cpu`.
    fn go_on(&self, task: u32, cpu: u16) {
        let sched = &mut *self.sched.borrow_mut();
        let state = &mut sched.cpus[usize::from(cpu)];
        self.clock.set(state.clock);
        self.need_resched.set(mem::take(&mut state.need_resched));
        self.cpu.set(cpu);
        self.task.set(task);
        let task = &mut sched.tasks[task as usize];
        task.fresh = false;
        self.atomic.set(task.atomic);
        self.spans.set(task.spans);
        self.group.set(task.group);
        self.yielder.set(task.yielder);
        self.set_limits(sched);
    }

    /// A task's coroutine has begun.
    fn started(&self, task: u32, yielder: &corosensei::Yielder<(), Park>) {
        let yielder = ptr::from_ref(yielder);
        self.sched.borrow_mut().tasks[task as usize].yielder = yielder;
        self.yielder.set(yielder);
    }

    /// The state of the task that was executed goes back to where it belongs.
    fn put_back(&self, sched: &mut Sched) {
        let cpu = &mut sched.cpus[usize::from(self.cpu.get())];
        cpu.clock = self.clock.get();
        cpu.need_resched |= self.need_resched.get();
        let task = &mut sched.tasks[self.task.get() as usize];
        task.atomic = self.atomic.get();
        task.spans = self.spans.get();
        self.task.set(NOBODY);
        self.yielder.set(ptr::null());
    }

    /// The task that was executed has handed the engine back.
    fn parked(&self, park: Park) {
        let sched = &mut *self.sched.borrow_mut();
        let cpu = self.cpu.get();
        self.put_back(sched);
        match park {
            Park::Ahead => {
                self.meter.borrow_mut().yields += 1;
                sched.ahead(cpu);
            }
            Park::Compute(time) => sched.compute(cpu, time),
            Park::Block(until) => sched.block(cpu, until),
            Park::Spin(lock) => sched.spin(cpu, lock),
            Park::GiveWay => sched.give_way(cpu),
            Park::Fail => {}
        }
    }

    /// The task that was executed has ended.
    fn ended(&self) {
        let sched = &mut *self.sched.borrow_mut();
        let cpu = self.cpu.get();
        self.put_back(sched);
        sched.end(cpu);
    }
}

impl Drop for Sim {
    /// Unwinds the tasks that are left, so that what they own is dropped.
    fn drop(&mut self) {
        let core = Rc::clone(&self.core);
        core.ending.set(true);
        core.sync_limit.set(Ticks::MAX);
        core.local_limit.set(Ticks::MAX);
        for (number, task) in self.tasks.iter_mut().enumerate() {
            core.task.set(number as u32);
            core.need_resched.set(false);
            drop(task.take());
        }
        core.task.set(NOBODY);
        drop(mem::take(&mut *core.bodies.borrow_mut()));
        *core.hook.borrow_mut() = None;
        *core.pass_hook.borrow_mut() = None;
    }
}
