//! A machine that takes the time: [`HostMachine`] with time stamps around refills and drains, and at zone locks after
//! they are got, before they are given back, and before a wait. All else is as without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mm::{
    Access, Addr, Cpu, Daemon, Line, LockClass, Machine, Nanos, Order, Pfn, Span, TaskId, Topology, Work,
};

use super::meter;
use crate::arena::Arena;
use crate::clock::ticks;
use crate::lock::RawLock;
use crate::machine::HostMachine;
use crate::queue_lock::{Numbers, QueueLock};

/// The machine.
#[derive(Debug)]
pub(super) struct Metered {
    host: HostMachine<QueueLock>,
}

impl Metered {
    pub(super) fn new(topology: &Topology, arena: Arc<Arena>) -> Self {
        Self { host: HostMachine::with_locks(topology, arena) }
    }
}

/// A lock, timed if it is a zone's.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct MeteredLock {
    lock: Numbers,
    is_zone: bool,
    got_at: GotAt,
}

/// When its holder got a lock; written and read with the lock held, which orders it (all its accesses are relaxed), on a line that waiters
/// leave alone.
#[derive(Debug, Default)]
#[repr(align(64))]
struct GotAt(AtomicU64);

/// What zone locks have more than others, out of line: a pageset's lock is taken for every page, and is to cost what it
/// costs without stamps.
impl MeteredLock {
    #[inline(never)]
    fn lock_zone(&self) {
        if self.lock.try_lock() {
            self.got_at.0.store(ticks(), Ordering::Relaxed);
            return;
        }
        let since = ticks();
        self.lock.lock();
        let now = ticks();
        self.got_at.0.store(now, Ordering::Relaxed);
        meter::waited(now.saturating_sub(since));
    }

    #[inline(never)]
    fn try_lock_zone(&self) -> bool {
        let got = self.lock.try_lock();
        if got {
            self.got_at.0.store(ticks(), Ordering::Relaxed);
        }
        got
    }

    #[inline(never)]
    fn unlock_zone(&self) {
        let held = ticks().saturating_sub(self.got_at.0.load(Ordering::Relaxed));
        self.lock.unlock();
        meter::held(held);
    }
}

// SAFETY: every lock is `Numbers`, which excludes as a `RawLock` must, and the CPU numbers are the host's.
unsafe impl Machine for Metered {
    type Lock = MeteredLock;
    type Irq = ();

    #[inline]
    fn cpu(&self) -> Cpu {
        self.host.cpu()
    }

    fn task(&self) -> TaskId {
        self.host.task()
    }

    fn now(&self) -> Nanos {
        self.host.now()
    }

    fn random(&self) -> u64 {
        self.host.random()
    }

    fn new_lock(&self, class: LockClass, _index: u32) -> MeteredLock {
        MeteredLock { lock: Numbers::default(), is_zone: class == LockClass::Zone, got_at: GotAt::default() }
    }

    #[inline]
    fn lock(&self, lock: &MeteredLock) {
        if lock.is_zone { lock.lock_zone() } else { lock.lock.lock() }
    }

    #[inline]
    fn try_lock(&self, lock: &MeteredLock) -> bool {
        if lock.is_zone { lock.try_lock_zone() } else { lock.lock.try_lock() }
    }

    #[inline]
    fn unlock(&self, lock: &MeteredLock) {
        if lock.is_zone { lock.unlock_zone() } else { lock.lock.unlock() }
    }

    #[inline]
    fn is_contended(&self, lock: &MeteredLock) -> bool {
        lock.lock.is_contended()
    }

    #[inline]
    fn irq_save(&self) {}

    #[inline]
    fn irq_restore(&self, (): ()) {}

    #[inline]
    fn touch(&self, _line: Line, _access: Access) {}

    fn load(&self, at: Addr) -> u64 {
        self.host.load(at)
    }

    fn store(&self, at: Addr, word: u64) {
        self.host.store(at, word);
    }

    fn clear(&self, block: Pfn, order: Order) {
        self.host.clear(block, order);
    }

    fn copy(&self, from: Pfn, to: Pfn, order: Order) {
        self.host.copy(from, to, order);
    }

    fn block(&self, at_most: Nanos) {
        self.host.block(at_most);
    }

    fn wake(&self, daemon: Daemon) {
        self.host.wake(daemon);
    }

    #[inline]
    fn enter(&self, span: Span) -> Nanos {
        match span {
            Span::Refill | Span::Drain => Nanos(ticks()),
            _ => Nanos(0),
        }
    }

    #[inline]
    fn leave(&self, span: Span, since: Nanos, _work: Work) {
        match span {
            Span::Refill => meter::refilled(ticks().saturating_sub(since.0)),
            Span::Drain => meter::drained(ticks().saturating_sub(since.0)),
            _ => {}
        }
    }
}
