//! [`HostMachine`]: this process's threads and memory as mm's machine. Charges, spans and interrupts are nothing here,
//! so what is left of mm is the allocator itself.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mm::ids::PAGE_SIZE;
use mm::{
    Access, Addr, Cpu, Daemon, Line, LockClass, Machine, Nanos, Order, Pfn, Span, TaskId, Topology, Work,
};

use crate::arena::Arena;
use crate::cpu::{CpuNumbers, thread_number};
use crate::lock::{HostLock, RawLock};
use crate::signal::Signal;

/// This machine, with the memory that it lends and locks of a kind.
#[derive(Debug)]
pub struct HostMachine<L = HostLock> {
    cpus: CpuNumbers,
    arena: Arc<Arena>,
    start: Instant,
    random: AtomicU64,
    /// One for each node.
    kswapd: Box<[Signal]>,
    locks: PhantomData<fn() -> L>,
}

impl HostMachine {
    /// A machine with the CPUs and nodes of `topology` over `arena`, whose frames are those that `topology` numbers.
    pub fn new(topology: &Topology, arena: Arena) -> Self {
        Self::with_locks(topology, Arc::new(arena))
    }
}

impl<L> HostMachine<L> {
    /// The same with locks of kind `L`. Machines that share an arena must not both hand out its blocks at a time.
    pub(crate) fn with_locks(topology: &Topology, arena: Arc<Arena>) -> Self {
        Self {
            cpus: CpuNumbers::new(topology.cpus.len() as u32),
            arena,
            start: Instant::now(),
            random: AtomicU64::new(0),
            kswapd: topology.nodes.iter().map(|_| Signal::default()).collect(),
            locks: PhantomData,
        }
    }

    /// The memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// What wakes the kswapd of each node.
    pub(crate) fn kswapd(&self) -> &[Signal] {
        &self.kswapd
    }
}

// SAFETY: a `RawLock` excludes, with acquire and release ordering. `CpuNumbers` gives numbers below the count of the
// topology.
unsafe impl<L: RawLock> Machine for HostMachine<L> {
    type Lock = L;
    type Irq = ();

    #[inline]
    fn cpu(&self) -> Cpu {
        self.cpus.current()
    }

    fn task(&self) -> TaskId {
        TaskId(thread_number())
    }

    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn random(&self) -> u64 {
        // splitmix64: a counter, well mixed; threads that ask at once get different numbers.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        // Relaxed: only that no two get the same number matters.
        let seed = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn new_lock(&self, _class: LockClass, _index: u32) -> L {
        L::default()
    }

    #[inline]
    fn lock(&self, lock: &L) {
        lock.lock();
    }

    #[inline]
    fn try_lock(&self, lock: &L) -> bool {
        lock.try_lock()
    }

    #[inline]
    fn unlock(&self, lock: &L) {
        lock.unlock();
    }

    #[inline]
    fn is_contended(&self, lock: &L) -> bool {
        lock.is_contended()
    }

    #[inline]
    fn irq_save(&self) {}

    #[inline]
    fn irq_restore(&self, (): ()) {}

    #[inline]
    fn touch(&self, _line: Line, _access: Access) {}

    #[inline]
    fn load(&self, at: Addr) -> u64 {
        // Relaxed, as `store`: a word belongs to who owns its page or object, and locks of mm hand those over.
        self.arena.word(at).load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, at: Addr, word: u64) {
        self.arena.word(at).store(word, Ordering::Relaxed);
    }

    fn clear(&self, block: Pfn, order: Order) {
        let bytes = order.pages() as usize * PAGE_SIZE as usize;
        // SAFETY: `address` is that of the whole block, and mm clears blocks that it has just handed out, whose owner
        // is this caller.
        unsafe { self.arena.address(block, order).write_bytes(0, bytes) };
    }

    fn copy(&self, from: Pfn, to: Pfn, order: Order) {
        let bytes = order.pages() as usize * PAGE_SIZE as usize;
        let (from, to) = (self.arena.address(from, order), self.arena.address(to, order));
        // SAFETY: both addresses are those of whole blocks; mm copies between blocks that it holds. `copy_to` allows
        // that they be the same.
        unsafe { from.copy_to(to, bytes) };
    }

    fn block(&self, at_most: Nanos) {
        thread::park_timeout(Duration::from_nanos(at_most.0));
    }

    fn wake(&self, daemon: Daemon) {
        // There is no compaction to wake yet.
        if let Daemon::Kswapd(node) = daemon {
            if let Some(signal) = self.kswapd.get(usize::from(node.0)) {
                signal.raise();
            }
        }
    }

    #[inline]
    fn enter(&self, _span: Span) -> Nanos {
        Nanos(0)
    }

    #[inline]
    fn leave(&self, _span: Span, _since: Nanos, _work: Work) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    fn machine() -> HostMachine {
        HostMachine::new(&System::this().topology(64), Arena::reserve(64).unwrap())
    }

    #[test]
    fn clearing_and_copying_reach_the_memory() {
        let machine = machine();
        let (one, two) = (Order::new(1).unwrap(), Pfn(2));
        let byte = |pfn, offset| {
            // SAFETY: the arena is this test's alone.
            unsafe { machine.arena().address(pfn, Order::ZERO).add(offset).as_mut() }
        };
        *byte(Pfn(1), 4095) = 9;
        machine.copy(Pfn(0), two, one);
        assert_eq!(*byte(Pfn(3), 4095), 9);
        machine.clear(two, one);
        assert_eq!((*byte(Pfn(3), 4095), *byte(Pfn(1), 4095)), (0, 9));
    }

    #[test]
    fn random_numbers_and_time_go_on() {
        let machine = machine();
        let drawn: std::collections::BTreeSet<u64> = (0..1000).map(|_| machine.random()).collect();
        assert_eq!(drawn.len(), 1000);
        let now = machine.now();
        machine.block(Nanos(1_000_000));
        assert!(machine.now() >= now);
    }
}
