//! The engine: one OS thread that executes every simulated CPU in turn.
//!
//! Each task is a stackful coroutine. The engine resumes the task of the CPU that is furthest behind; that task goes on
//! until its CPU's clock has passed the next CPU's and it is about to do something that others can see. What only
//! concerns its own CPU it may do a little ahead of time, up to a window. So effects come in the order of simulated
//! time, and one seed gives one result.
//!
//! [`Core`] is what a machine handle reaches: the clock and limits of the CPU being executed in plain cells, everything
//! else behind `RefCell`s that are never borrowed across a switch of coroutines. [`run::Sim`] owns the coroutines.

mod accesses;
mod heap;
mod locking;
mod meter;
mod names;
mod passing;
mod place;
pub(crate) mod run;
mod sched;
mod shootdown;
mod smt;
mod spans;
mod spawn;
mod state;
mod watch;

use std::cell::{Cell, RefCell, RefMut};
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use corosensei::Yielder;
pub use meter::SpanRecord;
use meter::{Hook, Meter};
use mm::{Access, Addr, Cpu, Line, Nanos, Order, Pfn, Span};
pub use names::NameSeen;
use passing::PassHook;
pub use passing::Passing;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use sched::Sched;
use smt::Smt;
use watch::Watch;

use crate::costs::{Costs, LINE_BYTES, Traffic};
use crate::error::SimError;
use crate::lines::{Lines, Toucher};
use crate::locks::{Locks, NOBODY, Owner, SimLock};
use crate::profile::Profile;
use crate::stop::Stop;
use crate::swap::Swap;
use crate::time::{Ticks, from_nanos};

/// A stack of open spans, four bits each, in which there is none.
const NO_SPANS: u32 = 0x1111_1111 * Span::COUNT as u32;

/// Why a task hands the engine back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Park {
    /// Its CPU is ahead of others, or has something more urgent to do.
    Ahead,
    /// It computes for so long.
    Compute(Ticks),
    /// It waits to be woken, until then at most.
    Block(Ticks),
    /// It waits for a lock.
    Spin(SimLock),
    /// It lets others on its CPU run.
    GiveWay,
    /// It cannot go on; the reason is in [`Core::error`].
    Fail,
}

/// What a task does.
type Body = Box<dyn FnOnce()>;

/// Choices that are not the profile's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimOptions {
    /// Seed of the generator behind [`mm::Machine::random`].
    pub seed: u64,
    /// Size of a frame descriptor, as the policy has it: a power of two, 1 to 64. 64 for Linux's `struct page`.
    pub descriptor_bytes: u32,
    /// How far a CPU may run ahead with what is its own.
    pub window: Nanos,
    /// Stack of a task, of which only what it uses takes memory.
    pub stack_bytes: usize,
    /// Events in a row at one moment of simulated time that end the run with [`SimError::Standstill`].
    pub still_events_max: u64,
    /// Wall time that events at one moment of simulated time may go on for before they end the run in the same way. It
    /// reaches no result.
    pub still_wall_max: Duration,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            descriptor_bytes: 64,
            window: Nanos(30_000),
            stack_bytes: 256 << 10,
            still_events_max: 20_000_000,
            still_wall_max: Duration::from_secs(30),
        }
    }
}

/// The state of the simulation, shared by all handles.
pub(crate) struct Core {
    /// The clock of the CPU being executed.
    clock: Cell<Ticks>,
    /// Beyond this, nothing that others can see may be done before they have caught up.
    sync_limit: Cell<Ticks>,
    /// Beyond this, nothing at all.
    local_limit: Cell<Ticks>,
    cpu: Cell<u16>,
    /// [`NOBODY`] outside of any task.
    task: Cell<u32>,
    group: Cell<u16>,
    /// Depth of sections that must not be preempted.
    atomic: Cell<u32>,
    /// Open spans of the task, innermost in the lowest four bits.
    spans: Cell<u32>,
    need_resched: Cell<bool>,
    /// The way back to the engine from the running task; null outside of any.
    yielder: Cell<*const Yielder<(), Park>>,
    /// Tasks are being taken down.
    ending: Cell<bool>,
    window: Ticks,
    run_limit: Cell<Ticks>,
    costs: Costs,
    smt: Smt,
    default_cpus: Rc<[Cpu]>,
    lines: RefCell<Lines>,
    locks: RefCell<Locks>,
    sched: RefCell<Sched>,
    meter: RefCell<Meter>,
    hook: RefCell<Option<Hook>>,
    /// Who looks on from outside, and from when on.
    pass_hook: RefCell<Option<PassHook>>,
    pass_due: Cell<Ticks>,
    random: RefCell<Xoshiro256PlusPlus>,
    /// What tasks will do, by task, until they start.
    bodies: RefCell<Vec<Option<Body>>>,
    error: RefCell<Option<SimError>>,
    /// There is one in [`Self::error`].
    failed: Cell<bool>,
    /// Some task said which address space it is in.
    has_spaces: Cell<bool>,
    swap: Swap,
    watch: Watch,
    stop: Stop,
}

impl Core {
    fn new(profile: &Profile, options: SimOptions) -> Self {
        let costs = Costs::new(profile);
        let places = profile.shape().places();
        let shift = 6 - options.descriptor_bytes.clamp(1, 64).next_power_of_two().trailing_zeros();
        Self {
            clock: Cell::new(0),
            sync_limit: Cell::new(Ticks::MAX),
            local_limit: Cell::new(Ticks::MAX),
            cpu: Cell::new(0),
            task: Cell::new(NOBODY),
            group: Cell::new(0),
            atomic: Cell::new(0),
            spans: Cell::new(NO_SPANS),
            need_resched: Cell::new(false),
            yielder: Cell::new(ptr::null()),
            ending: Cell::new(false),
            window: from_nanos(options.window),
            run_limit: Cell::new(Ticks::MAX),
            lines: RefCell::new(Lines::new(&costs, &profile.topology(), &places, shift)),
            sched: RefCell::new(Sched::new(places.len())),
            smt: Smt::new(&places, costs.smt),
            locks: RefCell::new(Locks::new(places)),
            costs,
            default_cpus: profile.default_cpus().into(),
            meter: RefCell::new(Meter::default()),
            hook: RefCell::new(None),
            pass_hook: RefCell::new(None),
            pass_due: Cell::new(Ticks::MAX),
            random: RefCell::new(Xoshiro256PlusPlus::seed_from_u64(options.seed)),
            bodies: RefCell::new(vec![]),
            error: RefCell::new(None),
            failed: Cell::new(false),
            has_spaces: Cell::new(false),
            swap: Swap::default(),
            watch: Watch::new(&options),
            stop: Stop::of_thread(),
        }
    }

    /// Whether a task runs, so that time passes and things cost something.
    #[inline]
    pub(crate) fn in_task(&self) -> bool {
        self.task.get() != NOBODY
    }

    /// From now on what happens outside of tasks happens on `cpu`; the CPU that it was before.
    pub(crate) fn stand_in(&self, cpu: u16) -> u16 {
        assert!(!self.in_task(), "a task is on its own CPU");
        assert!(self.lines.borrow().has_cpu(cpu), "there is no CPU {cpu}");
        self.cpu.replace(cpu)
    }

    #[inline]
    pub(crate) fn now(&self) -> Ticks {
        self.clock.get()
    }

    #[inline]
    pub(crate) fn cpu(&self) -> u16 {
        self.cpu.get()
    }

    /// The swap device.
    pub(crate) fn swap(&self) -> &Swap {
        &self.swap
    }

    /// The running task's number, or one that no task has.
    #[inline]
    pub(crate) fn task(&self) -> u32 {
        self.task.get()
    }

    /// Index of the innermost open span, [`Span::COUNT`] for none.
    #[inline]
    fn span(&self) -> usize {
        (self.spans.get() & 15) as usize
    }

    #[inline]
    pub(crate) fn toucher(&self) -> Toucher {
        Toucher { cpu: self.cpu.get(), span: self.span(), now: self.clock.get() }
    }

    /// The CPU being executed spends `time`.
    #[inline]
    pub(crate) fn advance(&self, time: Ticks) {
        let now = self.clock.get() + time;
        self.clock.set(now);
        if now > self.local_limit.get() {
            self.over_limit();
        }
    }

    #[cold]
    #[inline(never)]
    fn over_limit(&self) {
        let now = self.clock.get();
        {
            let sched = self.sched.borrow();
            let cpu = &sched.cpus[usize::from(self.cpu.get())];
            if !cpu.queue.is_empty() && now >= cpu.slice_end {
                self.need_resched.set(true);
            }
        }
        if self.resched_if_due() {
            return;
        }
        self.refresh_limits();
        if now > self.local_limit.get() {
            self.park(Park::Ahead);
        }
    }

    /// Lets a more urgent task run, if there is one and the present one may be interrupted.
    #[inline]
    fn resched_if_due(&self) -> bool {
        let due = self.need_resched.get() && self.atomic.get() == 0;
        if due {
            self.park(Park::Ahead);
        }
        due
    }

    /// Waits until no other CPU can do anything before this CPU's time.
    #[inline]
    pub(crate) fn sync(&self) {
        while self.clock.get() > self.sync_limit.get() {
            self.park(Park::Ahead);
        }
    }

    /// Takes the limits of the CPU being executed from the state of the others.
    fn refresh_limits(&self) {
        if !self.ending.get() {
            self.set_limits(&self.sched.borrow());
        }
    }

    #[inline]
    fn set_limits(&self, sched: &Sched) {
        let cpu = self.cpu.get();
        self.smt.look(sched, cpu);
        let sync = sched.horizon(cpu).min(self.run_limit.get());
        let state = &sched.cpus[usize::from(cpu)];
        let sliced = !state.queue.is_empty() && !self.need_resched.get();
        let slice = if sliced { state.slice_end } else { Ticks::MAX };
        self.sync_limit.set(sync);
        let local = sync.saturating_add(self.window).min(slice);
        // After the last ordinary task a daemon goes on only until it holds no lock: it is asked at each step.
        self.local_limit.set(if sched.live == 0 { 0 } else { local });
    }

    /// Hands the engine back. Returns when the task goes on.
    fn park(&self, park: Park) {
        if self.ending.get() {
            assert!(!matches!(park, Park::Spin(_) | Park::Fail), "a task being taken down waits for a lock");
            return;
        }
        let yielder = self.yielder.get();
        assert!(!yielder.is_null(), "something outside of any task would have to wait");
        // SAFETY: the yielder is that of the task being executed. It was set when that task's coroutine was resumed,
        // lives on the coroutine's stack until the body returns, and we are being called by that body.
        unsafe { (*yielder).suspend(park) };
    }

    fn set_error(&self, error: SimError) {
        self.failed.set(true);
        self.error.borrow_mut().get_or_insert(error);
    }

    /// Ends the simulation with `error`.
    fn fail(&self, error: SimError) {
        self.set_error(error);
        loop {
            self.park(Park::Fail);
        }
    }

    fn owner(&self) -> Owner {
        Owner { task: self.task.get(), cpu: self.cpu.get() }
    }

    fn task_name(&self, task: u32) -> String {
        self.sched
            .borrow()
            .tasks
            .get(task as usize)
            .map_or_else(|| "outside".into(), |task| task.name.clone())
    }

    /// The task computes what takes `time` on a core of its own.
    pub(crate) fn work(&self, time: Ticks) {
        self.compute(if self.in_task() { self.smt.stretched(time) } else { time });
    }

    /// The task goes on computing for `time`.
    fn compute(&self, time: Ticks) {
        let fits = self.clock.get().checked_add(time).is_some_and(|end| end <= self.local_limit.get());
        if fits || !self.in_task() {
            self.clock.set(self.clock.get().saturating_add(if self.in_task() { time } else { 0 }));
        } else {
            self.park(Park::Compute(time));
        }
    }

    /// The task waits to be woken, until `until` at most; at once over if it has been woken already.
    pub(crate) fn block(&self, until: Ticks) {
        if !self.in_task() {
            return;
        }
        self.sync();
        let task = self.task.get();
        if std::mem::take(&mut self.sched.borrow_mut().tasks[task as usize].token) {
            return;
        }
        self.park_asleep(Park::Block(until));
    }

    /// The task sleeps until `until`, whoever wakes it.
    pub(crate) fn sleep(&self, until: Ticks) {
        while self.in_task() && self.clock.get() < until && !self.ending.get() {
            self.sync();
            self.park_asleep(Park::Block(until));
        }
    }

    /// Whether the running task holds no lock, and interrupts are on.
    pub(crate) fn may_sleep(&self) -> bool {
        self.atomic.get() == 0
    }

    fn park_asleep(&self, park: Park) {
        if !self.may_sleep() {
            let task = self.task_name(self.task.get());
            self.fail(SimError::LockMisused {
                task,
                what: "goes to sleep with a lock or interrupts off".into(),
            });
        }
        self.park(park);
    }

    /// Lets others on this CPU run.
    pub(crate) fn give_way(&self) {
        if self.in_task() {
            self.park(Park::GiveWay);
        }
    }

    /// Whether the time slice of the task has run out for another's sake since it last asked.
    pub(crate) fn need_resched(&self) -> bool {
        self.in_task() && self.sched.borrow_mut().take_sliced(self.cpu.get(), self.clock.get())
    }

    pub(crate) fn wake(&self, task: u32) {
        if self.in_task() {
            self.sync();
        }
        self.sched.borrow_mut().wake(task, self.clock.get(), &mut self.lines.borrow_mut(), &self.costs);
        self.others_changed();
    }

    pub(crate) fn wake_daemon(&self, daemon: mm::Daemon) {
        let found = self.sched.borrow().daemon(daemon);
        if let Some(task) = found {
            self.wake(task);
        }
    }

    /// Others have been made runnable, perhaps on this very CPU.
    fn others_changed(&self) {
        if !self.in_task() || self.ending.get() {
            return;
        }
        let cpu = usize::from(self.cpu.get());
        if std::mem::take(&mut self.sched.borrow_mut().cpus[cpu].need_resched) {
            self.need_resched.set(true);
        }
        self.refresh_limits();
        if self.need_resched.get() && self.atomic.get() == 0 {
            // The next thing that takes time lets it run.
            self.local_limit.set(0);
        }
    }

    /// Enters a section that is not preempted.
    #[inline]
    pub(crate) fn enter_atomic(&self) {
        self.atomic.set(self.atomic.get() + 1);
    }

    /// Leaves a section that is not preempted; a more urgent task may run now.
    #[inline]
    pub(crate) fn leave_atomic(&self) {
        self.atomic.set(self.atomic.get().saturating_sub(1));
        if self.need_resched.get() {
            self.resched_if_due();
        }
    }

    pub(crate) fn costs(&self) -> &Costs {
        &self.costs
    }

    pub(crate) fn random(&self) -> RefMut<'_, Xoshiro256PlusPlus> {
        self.random.borrow_mut()
    }

    // Where no task runs the question whether one does is all that a touch costs: a call that is not made.
    #[inline(never)]
    pub(crate) fn touch(&self, line: Line, access: Access) {
        let cost = self.lines.borrow_mut().touch(line, access, self.toucher(), &self.costs);
        self.spend_touch(cost);
        if access == Access::Atomic {
            self.instructions(self.costs.lock);
        }
    }

    /// A touch has cost so much, of which the instructions are slower beside a busy thread of the same core.
    #[inline]
    fn spend_touch(&self, cost: Ticks) {
        let instructions = self.costs.touch.min(cost);
        self.advance(cost - instructions + self.smt.stretched(instructions));
    }

    /// The word at `at` in a slab's memory.
    pub(crate) fn load(&self, at: Addr) -> u64 {
        if !self.in_task() {
            return self.lines.borrow_mut().words().load(at);
        }
        let (word, cost) = self.lines.borrow_mut().load(at, self.toucher(), &self.costs);
        self.spend_touch(cost);
        word
    }

    pub(crate) fn store(&self, at: Addr, word: u64) {
        if !self.in_task() {
            return self.lines.borrow_mut().words().store(at, word);
        }
        let cost = self.lines.borrow_mut().store(at, word, self.toucher(), &self.costs);
        self.spend_touch(cost);
    }

    /// Touches the lines of an object's memory.
    pub(crate) fn touch_memory(&self, at: Addr, bytes: u32, access: Access) {
        let first = at.0 / LINE_BYTES;
        let last = (at.0 + u64::from(bytes.max(1)) - 1) / LINE_BYTES;
        for line in first..=last {
            let at = Addr(line * LINE_BYTES);
            let cost = self.lines.borrow_mut().touch_object(at, access, self.toucher(), &self.costs);
            self.spend_touch(cost);
        }
    }

    /// Works through a block of memory.
    pub(crate) fn stream(&self, block: (Pfn, Order), traffic: Traffic) {
        let cost = self.lines.borrow_mut().stream(block, traffic, self.toucher(), &self.costs);
        self.meter.borrow_mut().memory(self.span(), cost);
        self.compute(cost);
    }
}
