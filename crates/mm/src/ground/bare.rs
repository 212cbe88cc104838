//! The simplest machine: one thing at a time, nothing costs anything, the caller says which CPU it is on. For tests,
//! conformance, and whoever wants the allocator's decisions without its time.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;

use crate::ground::ids::{Addr, Cpu, Nanos, Order, Pfn, TaskId};
use crate::ground::machine::{Access, Chore, Daemon, Line, LockClass, Machine, Span, SwapIo, Traced, Work};

/// A refill or drain that was seen, and on which CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The CPU.
    pub cpu: Cpu,
    /// [`Span::Refill`] or [`Span::Drain`].
    pub span: Span,
    /// What it did.
    pub work: Work,
}

/// What happens, for who watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A span begins.
    Enters(Span),
    /// The code goes through a chore so many times.
    Spends(Chore, u32),
    /// A page goes to swap, or comes from there.
    Swaps(SwapIo),
    /// Who runs would sleep so long at most.
    Blocks(Nanos),
    /// A daemon is woken.
    Wakes(Daemon),
    /// Reclaim went over a batch, or compaction took a step.
    Traces(Traced),
}

/// Who watches a machine.
type Watch = Rc<dyn Fn(Moment)>;

#[derive(Default)]
struct Watcher(RefCell<Option<Watch>>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.borrow().is_some() { "Watcher(somebody)" } else { "Watcher(nobody)" })
    }
}

#[derive(Debug, Default)]
struct State {
    cpu: Cell<u16>,
    task: Cell<u32>,
    seed: Cell<u64>,
    seen: RefCell<Vec<Seen>>,
    woken: RefCell<Vec<Daemon>>,
    /// Words of memory, those that were stored.
    words: RefCell<BTreeMap<u64, u64>>,
    waited_for: Cell<u32>,
    fixed: Cell<Option<u64>>,
    drawn: Cell<u32>,
    slept: Cell<u64>,
    now: Cell<u64>,
    /// Locks that are held.
    held: Cell<u32>,
    watcher: Watcher,
}

/// A machine for one thread. Clones are the same machine.
#[derive(Clone, Debug, Default)]
pub struct Bare(Rc<State>);

impl Bare {
    /// From now on, things happen on `cpu`.
    pub fn set_cpu(&self, cpu: Cpu) {
        self.0.cpu.set(cpu.0);
    }

    /// From now on, `task` is the one that runs; at first it is number 0.
    pub fn set_task(&self, task: TaskId) {
        self.0.task.set(task.0);
    }

    /// It is `now` by this machine's clock, which stands still otherwise.
    pub fn set_now(&self, now: Nanos) {
        self.0.now.set(now.0);
    }

    /// The next `looks` looks at who waits for a lock will find somebody.
    pub fn pretend_waiters(&self, looks: u32) {
        self.0.waited_for.set(looks);
    }

    /// From now on every random number is `number`: who follows a kernel knows how its dice fell.
    pub fn fix_random(&self, number: u64) {
        self.0.fixed.set(Some(number));
    }

    /// Random numbers drawn since the last call.
    pub fn take_drawn(&self) -> u32 {
        self.0.drawn.take()
    }

    /// How long tasks asked to sleep at most, in all, since the last call.
    pub fn take_slept(&self) -> Nanos {
        Nanos(self.0.slept.take())
    }

    /// The refills and drains since the last call, in order.
    pub fn take_seen(&self) -> Vec<Seen> {
        self.0.seen.take()
    }

    /// Tells `watch` what happens from now on. It may let others work on the memory manager's behalf, where no lock is held.
    pub fn watch(&self, watch: impl Fn(Moment) + 'static) {
        *self.0.watcher.0.borrow_mut() = Some(Rc::new(watch));
    }

    /// Whether any lock is held.
    pub fn holds_lock(&self) -> bool {
        self.0.held.get() > 0
    }

    fn tell(&self, moment: Moment) {
        let watch = self.0.watcher.0.borrow().clone();
        if let Some(watch) = watch {
            watch(moment);
        }
    }

    /// The daemons woken since the last call, in order.
    pub fn take_woken(&self) -> Vec<Daemon> {
        self.0.woken.take()
    }
}

/// A lock that nobody can wait for, except in pretence.
#[derive(Debug, Default)]
pub struct BareLock(Cell<bool>);

// SAFETY: the machine is neither Send nor Sync, so all that uses its locks runs on one thread, and a lock that is held
// is never handed out again: `lock` panics and `try_lock` refuses. `cpu` is what the caller set; the memory manager
// indexes by it with bounds checks.
unsafe impl Machine for Bare {
    type Lock = BareLock;
    type Irq = ();

    fn cpu(&self) -> Cpu {
        Cpu(self.0.cpu.get())
    }

    fn task(&self) -> TaskId {
        TaskId(self.0.task.get())
    }

    fn now(&self) -> Nanos {
        Nanos(self.0.now.get())
    }

    fn random(&self) -> u64 {
        self.0.drawn.set(self.0.drawn.get() + 1);
        if let Some(number) = self.0.fixed.get() {
            return number;
        }
        // splitmix64: enough for a machine on which nothing is timed.
        let seed = self.0.seed.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.seed.set(seed);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn new_lock(&self, _class: LockClass, _index: u32) -> BareLock {
        BareLock::default()
    }

    fn lock(&self, lock: &BareLock) {
        assert!(!lock.0.replace(true), "a lock was taken twice on a machine with one thread");
        self.0.held.set(self.0.held.get() + 1);
    }

    fn try_lock(&self, lock: &BareLock) -> bool {
        let was_free = !lock.0.replace(true);
        self.0.held.set(self.0.held.get() + u32::from(was_free));
        was_free
    }

    fn unlock(&self, lock: &BareLock) {
        let was_held = lock.0.replace(false);
        self.0.held.set(self.0.held.get() - u32::from(was_held));
    }

    fn is_contended(&self, _lock: &BareLock) -> bool {
        let looks = self.0.waited_for.get();
        self.0.waited_for.set(looks.saturating_sub(1));
        looks > 0
    }

    fn irq_save(&self) {}

    fn irq_restore(&self, (): ()) {}

    fn touch(&self, _line: Line, _access: Access) {}

    fn load(&self, at: Addr) -> u64 {
        self.0.words.borrow().get(&at.0).copied().unwrap_or(0)
    }

    fn store(&self, at: Addr, word: u64) {
        self.0.words.borrow_mut().insert(at.0, word);
    }

    fn spend(&self, chore: Chore, times: u32) {
        self.tell(Moment::Spends(chore, times));
    }

    fn swap_io(&self, io: SwapIo) -> Nanos {
        self.tell(Moment::Swaps(io));
        // It takes no time, and was done whatever this clock is set to next.
        Nanos(0)
    }

    fn clear(&self, _block: Pfn, _order: Order) {}

    fn copy(&self, _from: Pfn, _to: Pfn, _order: Order) {}

    fn block(&self, at_most: Nanos) {
        self.0.slept.set(self.0.slept.get() + at_most.0);
        self.tell(Moment::Blocks(at_most));
    }

    fn wake(&self, daemon: Daemon) {
        self.0.woken.borrow_mut().push(daemon);
        self.tell(Moment::Wakes(daemon));
    }

    fn traced(&self, what: Traced) {
        self.tell(Moment::Traces(what));
    }

    fn enter(&self, span: Span) -> Nanos {
        self.tell(Moment::Enters(span));
        Nanos(0)
    }

    fn leave(&self, span: Span, _since: Nanos, work: Work) {
        if matches!(span, Span::Refill | Span::Drain) {
            self.0.seen.borrow_mut().push(Seen { cpu: self.cpu(), span, work });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_watches_hears_of_what_happens_and_whether_locks_are_held() {
        let machine = Bare::default();
        let heard: Rc<RefCell<Vec<(Moment, bool)>>> = Rc::default();
        let (own, seen) = (machine.clone(), Rc::clone(&heard));
        machine.watch(move |moment| seen.borrow_mut().push((moment, own.holds_lock())));
        let lock = machine.new_lock(LockClass::Other, 0);
        machine.spend(Chore::ReclaimPage, 2);
        machine.lock(&lock);
        assert!(!machine.try_lock(&lock));
        machine.block(Nanos(7));
        machine.unlock(&lock);
        machine.enter(Span::PageAlloc);
        let expected = [
            (Moment::Spends(Chore::ReclaimPage, 2), false),
            (Moment::Blocks(Nanos(7)), true),
            (Moment::Enters(Span::PageAlloc), false),
        ];
        assert_eq!(*heard.borrow(), expected);
    }
}
