//! A fair spin lock: served in order of arrival, as the kernel's queued lock is.
//!
//! A thread takes a number, and has the lock when its number is called. A waiter that has lost its CPU holds up all waiters
//! behind it. The lock is therefore meant for threads that have a CPU each; with more threads it works, slowly.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::lock::RawLock;

/// Looks at the called number before a waiter lets others run: some tens of microseconds, longer than any hold.
const PATIENCE: u32 = 2000;

/// The lock, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct QueueLock(Numbers);

/// The lock itself, on whatever line it is put.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// The number that the next to come takes.
    next: AtomicU32,
    /// The number that has the lock, or will have it next.
    called: AtomicU32,
}

// SAFETY: each number is given out once (but for 2^32 waiters at a time), and `called` comes to a number only by its
// holder's release store, which the next holder reads with acquire ordering.
unsafe impl RawLock for Numbers {
    #[inline]
    fn lock(&self) {
        // Relaxed: a number gives a place in the line; what the last holder wrote comes with `called`.
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire pairs with the release in `unlock`, here and in `wait`.
        if self.called.load(Ordering::Acquire) != mine {
            self.wait(mine);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Acquire pairs with the release in `unlock`. Nobody has a number that was not called yet: the exchange fails if
        // somebody has taken one since.
        let free = self.called.load(Ordering::Acquire);
        self.next.compare_exchange(free, free.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn unlock(&self) {
        // Only the holder writes `called`.
        let mine = self.called.load(Ordering::Relaxed);
        self.called.store(mine.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn is_contended(&self) -> bool {
        // The holder has one number; whoever has another waits.
        // Relaxed: a hint, as for every lock here.
        let mine = self.called.load(Ordering::Relaxed);
        self.next.load(Ordering::Relaxed).wrapping_sub(mine) > 1
    }
}

// SAFETY: `Numbers` excludes.
unsafe impl RawLock for QueueLock {
    #[inline]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    fn unlock(&self) {
        self.0.unlock();
    }

    #[inline]
    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

impl Numbers {
    #[cold]
    fn wait(&self, mine: u32) {
        loop {
            for _ in 0..PATIENCE {
                if self.called.load(Ordering::Acquire) == mine {
                    return;
                }
                spin_loop();
            }
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::sync::Mutex;

    use super::*;

    struct Counter(QueueLock, UnsafeCell<u64>);

    // SAFETY: the test reaches the cell with the lock held only.
    unsafe impl Sync for Counter {}

    #[test]
    fn more_threads_than_cpus_count_without_a_loss() {
        let counter = Counter(QueueLock::default(), UnsafeCell::new(0));
        thread::scope(|scope| {
            for number in 0..6 {
                let counter = &counter;
                scope.spawn(move || {
                    for round in 0..2000 {
                        if (number + round) % 3 > 0 || !counter.0.try_lock() {
                            counter.0.lock();
                        }
                        // SAFETY: the lock is held.
                        unsafe { *counter.1.get() += 1 };
                        counter.0.unlock();
                    }
                });
            }
        });
        assert_eq!(counter.1.into_inner(), 12_000);
    }

    #[test]
    fn a_waiter_shows_and_a_try_does_not() {
        let lock = QueueLock::default();
        assert!(lock.try_lock() && !lock.try_lock() && !lock.is_contended());
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.lock();
                assert!(!lock.is_contended());
                lock.unlock();
            });
            while !lock.is_contended() {
                thread::yield_now();
            }
            lock.unlock();
        });
        assert!(lock.try_lock() && !lock.is_contended());
    }

    #[test]
    fn those_who_wait_are_served_in_order() {
        let (lock, served) = (QueueLock::default(), Mutex::new(vec![]));
        lock.lock();
        thread::scope(|scope| {
            for number in 0..4 {
                let (lock, served) = (&lock, &served);
                scope.spawn(move || {
                    lock.lock();
                    served.lock().unwrap().push(number);
                    lock.unlock();
                });
                // The next comes once this one is in line.
                while lock.0.next.load(Ordering::Relaxed) < number + 2 {
                    thread::yield_now();
                }
            }
            lock.unlock();
        });
        assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3]);
    }

    #[test]
    fn numbers_wrap_round() {
        let last = || AtomicU32::new(u32::MAX);
        let lock = QueueLock(Numbers { next: last(), called: last() });
        assert!(lock.try_lock() && !lock.is_contended());
        lock.unlock();
        lock.lock();
        assert!(!lock.try_lock());
        lock.unlock();
    }
}
