//! Mutual exclusion and atomics. Every other module takes its atomics from here, so that a build with `--cfg shuttle`
//! explores schedules over the very same code.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

#[cfg(not(shuttle))]
pub(crate) use core::sync::atomic::{
    AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{
    AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
};

/// But what is published without a lock: a slab's free list, and a new cache.
use crate::ground::machine::{LockClass, Machine};
/// All atomics of this crate are data that some lock orders, or counters and hints that need no order: the locks of
/// [`Machine`] carry acquire and release.
pub(crate) use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Data that is reached only with its lock held; the [`Guard`] is the proof.
pub struct Locked<M: Machine, T> {
    lock: M::Lock,
    data: UnsafeCell<T>,
}

// SAFETY: a `Guard` is the only way to the data through a shared reference, and the contract of `Machine` makes guards
// of one lock exclude each other with acquire and release ordering; so threads only ever pass the data on.
unsafe impl<M: Machine, T: Send> Sync for Locked<M, T> where M::Lock: Sync {}

impl<M: Machine, T> Locked<M, T> {
    /// `data` behind a free lock of `class`, the `index`-th of its class.
    pub fn new(machine: &M, class: LockClass, index: u32, data: T) -> Self {
        Self { lock: machine.new_lock(class, index), data: UnsafeCell::new(data) }
    }

    /// Takes the lock, interrupts off, waiting as long as it needs.
    #[inline]
    pub fn lock<'a>(&'a self, machine: &'a M) -> Guard<'a, M, T> {
        let irq = machine.irq_save();
        machine.lock(&self.lock);
        Guard { owner: self, machine, irq: Some(irq), data: PhantomData }
    }

    /// Takes the lock of what is a CPU's own: interrupts stay as they are.
    #[inline]
    pub(crate) fn lock_local<'a>(&'a self, machine: &'a M) -> Guard<'a, M, T> {
        machine.lock(&self.lock);
        Guard { owner: self, machine, irq: None, data: PhantomData }
    }

    /// The same, if nobody holds it.
    #[inline]
    pub(crate) fn try_lock_local<'a>(&'a self, machine: &'a M) -> Option<Guard<'a, M, T>> {
        machine.try_lock(&self.lock).then(|| Guard { owner: self, machine, irq: None, data: PhantomData })
    }

    /// Takes the lock, interrupts off, if nobody holds it.
    #[expect(
        clippy::inline_always,
        reason = "a guard that comes back by memory is waited for, in each request for a page"
    )]
    #[inline(always)]
    pub fn try_lock<'a>(&'a self, machine: &'a M) -> Option<Guard<'a, M, T>> {
        let irq = machine.irq_save();
        if machine.try_lock(&self.lock) {
            Some(Guard { owner: self, machine, irq: Some(irq), data: PhantomData })
        } else {
            machine.irq_restore(irq);
            None
        }
    }
}

impl<M: Machine, T> fmt::Debug for Locked<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}

/// The lock of a [`Locked`] is held as long as this lives.
pub struct Guard<'a, M: Machine, T> {
    owner: &'a Locked<M, T>,
    machine: &'a M,
    irq: Option<M::Irq>,
    /// A guard is as good as a mutable borrow of the data: it may be shared among threads only if the data may.
    data: PhantomData<&'a mut T>,
}

impl<M: Machine, T> Guard<'_, M, T> {
    /// Whether somebody waits for this lock.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.machine.is_contended(&self.owner.lock)
    }
}

impl<M: Machine, T> Deref for Guard<'_, M, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held, so no other guard of this `Locked` exists.
        unsafe { &*self.owner.data.get() }
    }
}

impl<M: Machine, T> DerefMut for Guard<'_, M, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, so no other guard of this `Locked` exists, and this one is borrowed mutably.
        unsafe { &mut *self.owner.data.get() }
    }
}

impl<M: Machine, T> Drop for Guard<'_, M, T> {
    #[inline]
    fn drop(&mut self) {
        self.machine.unlock(&self.owner.lock);
        if let Some(irq) = self.irq.take() {
            self.machine.irq_restore(irq);
        }
    }
}
