//! The locks of this machine. [`HostLock`] is for any number of threads: one atomic exchange to take it, a plain store to
//! give it back. [`QueueLock`](crate::QueueLock) is for as many threads as there are CPUs.
//!
//! A thread that finds a [`HostLock`] taken spins for a while, then yields, then sleeps: the holder may be a thread that has
//! no CPU at the moment. Waiters are counted beside the lock, not in its word, so giving it back needs no second exchange.
//! The lock is not fair: under contention a thread may be overtaken any number of times.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// A lock that [`HostMachine`](crate::HostMachine) can be built on.
///
/// # Safety
/// Between a `lock` or a `try_lock` that returned true and the `unlock` by the same holder, no other `lock` returns and no
/// other `try_lock` returns true; what a holder wrote is seen by the next.
pub unsafe trait RawLock: Default + Send + Sync {
    /// Takes the lock, waiting as long as it needs.
    fn lock(&self);
    /// Takes the lock if nobody holds it.
    fn try_lock(&self) -> bool;
    /// Gives the lock back. Only its holder may call this.
    fn unlock(&self);
    /// Whether somebody waits for the lock, which the caller holds.
    fn is_contended(&self) -> bool;
}

// SAFETY: `taken` is set by an atomic exchange that finds it unset, with acquire, and unset with release ordering.
unsafe impl RawLock for HostLock {
    #[inline]
    fn lock(&self) {
        Self::lock(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        Self::try_lock(self)
    }

    #[inline]
    fn unlock(&self) {
        Self::unlock(self);
    }

    #[inline]
    fn is_contended(&self) -> bool {
        Self::is_contended(self)
    }
}

/// Looks at a taken lock before the thread yields its CPU.
const SPINS: u32 = 128;
/// Yields before it sleeps.
const YIELDS: u32 = 64;
/// How long it sleeps at a time.
const SLEEP: Duration = Duration::from_micros(50);

/// A lock on a cache line of its own, so that those who wait do not slow down the holder's work on what it protects.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct HostLock {
    taken: AtomicBool,
    waiters: AtomicU32,
}

impl HostLock {
    /// Takes the lock, waiting as long as it needs.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.wait();
        }
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire pairs with the release in `unlock`: what the last holder wrote is seen.
        !self.taken.swap(true, Ordering::Acquire)
    }

    /// Gives the lock back. Only its holder may call this.
    #[inline]
    pub fn unlock(&self) {
        // Release pairs with the acquire in `try_lock`.
        self.taken.store(false, Ordering::Release);
    }

    /// Whether somebody waits.
    #[inline]
    pub fn is_contended(&self) -> bool {
        // A hint: who asks holds the lock, and gives it up a little sooner or later.
        self.waiters.load(Ordering::Relaxed) > 0
    }

    #[cold]
    fn wait(&self) {
        // Relaxed, as for all of `waiters`: nothing is published by it, and whoever sleeps looks again by himself.
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let mut rounds = 0;
        while !self.spin() {
            rounds += 1;
            if rounds <= YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(SLEEP);
            }
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Tries for a while; reads first, so that waiters share the line instead of passing it round.
    fn spin(&self) -> bool {
        for _ in 0..SPINS {
            // Relaxed: what it says is only whether to try; trying has the acquire.
            if !self.taken.load(Ordering::Relaxed) && self.try_lock() {
                return true;
            }
            spin_loop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;

    use super::*;

    struct Counter(HostLock, UnsafeCell<u64>);

    // SAFETY: the tests reach the cell with the lock held only.
    unsafe impl Sync for Counter {}

    #[test]
    fn eight_threads_count_without_a_loss() {
        let counter = Counter(HostLock::default(), UnsafeCell::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let counter = &counter;
                    for _ in 0..20_000 {
                        counter.0.lock();
                        // SAFETY: the lock is held.
                        unsafe { *counter.1.get() += 1 };
                        counter.0.unlock();
                    }
                });
            }
        });
        assert_eq!(counter.1.into_inner(), 160_000);
        assert!(!counter.0.is_contended(), "nobody is left waiting");
    }

    #[test]
    fn a_taken_lock_is_refused_and_a_waiter_shows() {
        let lock = HostLock::default();
        assert!(lock.try_lock());
        assert!(!lock.try_lock());
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.lock();
                lock.unlock();
            });
            while !lock.is_contended() {
                thread::yield_now();
            }
            lock.unlock();
        });
        assert!(lock.try_lock());
    }
}
