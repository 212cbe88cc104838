//! The machine as the memory manager and the tasks see it: a handle to the engine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use mm::vm::SpaceId;
use mm::{
    Access, Addr, Cpu, Daemon, Knob, KnobId, KnobUse, Line, LockClass, Machine, Nanos, Order, Pfn, Span,
    SwapIo, TaskId, Work,
};
use rand_xoshiro::rand_core::Rng;

use crate::accesses::AccessMix;
use crate::costs::{Path, Traffic};
use crate::engine::Core;
use crate::locks::SimLock;
use crate::measure::Measurements;
use crate::task::{Role, TaskSpec};
use crate::time::{Ticks, from_nanos, to_nanos};

/// A handle to the simulated machine; cloning it is cheap. Outside of any task, time stands still and nothing costs
/// anything, so that a memory manager can be set up and looked at. A lock that a task held when a run paused cannot be
/// taken there: that panics, for nobody would ever give it back.
#[derive(Clone)]
pub struct SimMachine(pub(crate) Rc<Core>);

/// Where tasks wait for something that another task will bring about.
#[derive(Clone, Debug, Default)]
pub struct WaitQueue(Rc<RefCell<VecDeque<TaskId>>>);

impl SimMachine {
    /// The task uses its CPU for `time` on its own account.
    pub fn compute(&self, time: Nanos) {
        self.0.watch();
        self.0.work(from_nanos(time));
    }

    /// The task goes through a stretch of kernel code.
    pub fn charge(&self, path: Path) {
        if self.0.in_task() {
            self.0.instructions(self.0.costs().paths[path as usize]);
        }
    }

    /// The task goes through a stretch of kernel code `times` times.
    pub fn charge_times(&self, path: Path, times: u32) {
        if self.0.in_task() {
            self.0.instructions(self.0.costs().paths[path as usize] * u64::from(times));
        }
    }

    /// What a stretch of kernel code costs, the lines that it touches apart.
    pub fn price(&self, path: impl Into<Path>) -> Nanos {
        to_nanos(self.0.costs().paths[path.into() as usize])
    }

    /// What working through a block costs a CPU whose memory bus is free.
    pub fn price_of_block(&self, traffic: Traffic, order: Order) -> Nanos {
        to_nanos(self.0.costs().block(traffic, order))
    }

    /// The task sleeps for `time`, whoever wakes it.
    pub fn sleep(&self, time: Nanos) {
        self.0.watch();
        self.0.sleep(self.0.now().saturating_add(from_nanos(time)));
    }

    /// The task sleeps until `time`, not at all if that has passed.
    pub fn sleep_until(&self, time: Nanos) {
        self.0.watch();
        self.0.sleep(from_nanos(time));
    }

    /// The task runs on `cpus`, as far as the machine has them, from now on; if it is on none of them, it goes to the first.
    pub fn restrict_to(&self, cpus: Rc<[Cpu]>) {
        self.0.restrict(cpus);
    }

    /// Other tasks of this CPU run first, if there are any.
    pub fn yield_now(&self) {
        self.0.give_way();
    }

    /// Ends the task's present or next [`Machine::block`]; nothing happens if there is no such task.
    pub fn unblock(&self, task: TaskId) {
        self.0.watch();
        self.0.wake(task.0);
    }

    /// The task waits in `queue` until `ready` says so; it is asked again after each [`SimMachine::notify_all`] or
    /// [`SimMachine::notify_one`] that reaches this task.
    pub fn wait_until(&self, queue: &WaitQueue, ready: impl FnMut() -> bool) {
        self.wait_in(queue, Ticks::MAX, ready);
    }

    /// As [`SimMachine::wait_until`], for `time` at most.
    pub fn wait_at_most(&self, queue: &WaitQueue, time: Nanos, ready: impl FnMut() -> bool) {
        self.wait_in(queue, self.0.now().saturating_add(from_nanos(time)), ready);
    }

    fn wait_in(&self, queue: &WaitQueue, until: Ticks, mut ready: impl FnMut() -> bool) {
        loop {
            self.sync();
            if ready() || !self.0.in_task() || self.0.now() >= until {
                return;
            }
            let task = self.task();
            queue.0.borrow_mut().push_back(task);
            self.0.block(until);
            if self.0.now() >= until {
                // Its time was up, and nobody took it out.
                queue.0.borrow_mut().retain(|waiting| *waiting != task);
            }
        }
    }

    /// Wakes the task that has waited longest in `queue`.
    pub fn notify_one(&self, queue: &WaitQueue) {
        self.sync();
        let first = queue.0.borrow_mut().pop_front();
        if let Some(task) = first {
            self.0.wake(task.0);
        }
    }

    /// Wakes all tasks in `queue`.
    pub fn notify_all(&self, queue: &WaitQueue) {
        self.sync();
        let waiting = std::mem::take(&mut *queue.0.borrow_mut());
        for task in waiting {
            self.0.wake(task.0);
        }
    }

    /// Waits until no other CPU can do anything before this moment. What a task reads and writes of other tasks' data
    /// without a lock is in order of simulated time if it does this first.
    pub fn sync(&self) {
        if self.0.in_task() {
            self.0.watch();
            self.0.sync();
        }
    }

    /// Works through the memory of a block, as user code does with its data.
    pub fn stream(&self, block: Pfn, order: Order, traffic: Traffic) {
        if self.0.in_task() {
            self.0.stream((block, order), traffic);
        }
    }

    /// The task is in the address space `space` from here on: [`Machine::flush_tlb`] concerns it.
    pub fn enter_space(&self, space: SpaceId) {
        self.0.enter_space(space);
    }

    /// The task makes the accesses of `mix`, with nothing between them: time passes as the model of docs/model.md says.
    pub fn access(&self, mix: AccessMix<'_>) {
        if self.0.in_task() {
            self.0.access(mix);
        }
    }

    /// The same, priced in pieces of `longest`: for stretches of whole seconds, beside which loads change slowly.
    pub fn access_coarsely(&self, mix: AccessMix<'_>, longest: Nanos) {
        if self.0.in_task() {
            self.0.access_coarsely(mix, from_nanos(longest));
        }
    }

    /// The task reads or writes the first `bytes` bytes of an object that it holds, at `at`.
    pub fn use_object(&self, at: Addr, bytes: u32, access: Access) {
        if self.0.in_task() {
            self.0.touch_memory(at, bytes, access);
        }
    }

    /// What `act` does outside of any task is done on `cpu`: with its lists, and nearest to its node. It takes no time.
    ///
    /// # Panics
    /// Within a task, which has a CPU, or if there is no such CPU.
    pub fn on_behalf_of<R>(&self, cpu: Cpu, act: impl FnOnce() -> R) -> R {
        let before = self.0.stand_in(cpu.0);
        let done = act();
        self.0.stand_in(before);
        done
    }

    /// Adds an ordinary task, from within one.
    pub fn spawn(&self, spec: TaskSpec, body: impl FnOnce() + 'static) -> TaskId {
        self.0.spawn(spec, Role::Ordinary, Box::new(body))
    }

    /// What has been measured so far.
    pub fn measurements(&self) -> Measurements {
        self.0.measurements()
    }

    /// Forgets what has been measured so far, except for what knobs did: what they decided before lasts.
    pub fn reset_measurements(&self) {
        self.0.reset_measurements();
    }

    /// Forgets what `knob` did: it gets another value.
    pub fn forget_knob(&self, knob: Knob) {
        self.0.forget_knob(knob);
    }
}

// SAFETY: all of a simulation happens on one OS thread (`SimMachine` holds an `Rc`), so acquire and release ordering is
// given. `Locks` has one holder per lock: `take` and `try_take` make the caller the holder only where there is none, a
// waiter becomes it only in `give`, which its holder alone can do, and goes on only afterwards. `cpu` is an index into
// the CPUs that the profile's topology has.
unsafe impl Machine for SimMachine {
    type Lock = SimLock;
    type Irq = ();

    #[inline]
    fn cpu(&self) -> Cpu {
        Cpu(self.0.cpu())
    }

    #[inline]
    fn task(&self) -> TaskId {
        TaskId(self.0.task())
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.0.watch();
        to_nanos(self.0.now())
    }

    fn random(&self) -> u64 {
        self.0.watch();
        self.0.random().next_u64()
    }

    fn new_lock(&self, class: LockClass, index: u32) -> SimLock {
        self.0.new_lock(class, index)
    }

    #[inline]
    fn lock(&self, lock: &SimLock) {
        self.0.lock(*lock);
    }

    #[inline]
    fn try_lock(&self, lock: &SimLock) -> bool {
        self.0.try_lock(*lock)
    }

    #[inline]
    fn unlock(&self, lock: &SimLock) {
        self.0.unlock(*lock);
    }

    #[inline]
    fn is_contended(&self, lock: &SimLock) -> bool {
        self.0.watch();
        self.0.is_contended(*lock)
    }

    #[inline]
    fn irq_save(&self) {
        if self.0.in_task() {
            self.0.enter_atomic();
            self.0.instructions(self.0.costs().irq);
        }
    }

    #[inline]
    fn irq_restore(&self, (): ()) {
        if self.0.in_task() {
            self.0.instructions(self.0.costs().irq);
            self.0.leave_atomic();
        }
    }

    #[inline]
    fn touch(&self, line: Line, access: Access) {
        if self.0.in_task() {
            self.0.touch(line, access);
        }
    }

    #[inline]
    fn load(&self, at: Addr) -> u64 {
        self.0.load(at)
    }

    #[inline]
    fn store(&self, at: Addr, word: u64) {
        self.0.store(at, word);
    }

    fn spend(&self, chore: mm::Chore, times: u32) {
        self.charge_times(chore.into(), times);
    }

    fn flush_tlb(&self, space: SpaceId) {
        self.0.flush_tlb(space);
    }

    fn clear(&self, block: Pfn, order: Order) {
        self.stream(block, order, Traffic::Clear);
    }

    /// Charged to the target's node; the source is taken to be as near.
    fn copy(&self, _from: Pfn, to: Pfn, order: Order) {
        self.stream(to, order, Traffic::Copy);
    }

    fn swap_io(&self, io: SwapIo) -> Nanos {
        self.0.swap_io(io)
    }

    fn may_sleep(&self) -> bool {
        self.0.may_sleep()
    }

    fn block(&self, at_most: Nanos) {
        self.0.block(self.0.now().saturating_add(from_nanos(at_most)));
    }

    fn wake(&self, daemon: Daemon) {
        self.0.wake_daemon(daemon);
    }

    fn need_resched(&self) -> bool {
        self.0.watch();
        self.0.need_resched()
    }

    const WATCHES_KNOBS: bool = true;

    fn knob_used(&self, knob: impl Into<KnobId>, used: KnobUse) {
        self.0.knob_used(knob.into(), used);
    }

    #[inline]
    fn enter(&self, span: Span) -> Nanos {
        self.0.enter(span)
    }

    #[inline]
    fn leave(&self, span: Span, since: Nanos, work: Work) {
        self.0.leave(span, since, work);
    }
}
