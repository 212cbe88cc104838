//! Something that is made when it is first needed and stays: tables that only some machines use, page tables under
//! regions that were touched. Who looks for it takes no lock.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;

use crate::ground::sync::{AcqRel, Acquire, AtomicPtr};

/// A place for it.
#[derive(Debug)]
pub(crate) struct Once<T> {
    at: AtomicPtr<T>,
    owned: PhantomData<T>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { at: AtomicPtr::new(ptr::null_mut()), owned: PhantomData }
    }
}

impl<T> Once<T> {
    /// It, if it has been made.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: the pointer is null or came from the `Box` that `get_or` released, which lives as long as `self`.
        unsafe { self.at.load(Acquire).as_ref() }
    }

    /// It; `make` makes it if nobody has. Where two make one at the same time, the later one's is dropped.
    #[inline]
    pub(crate) fn get_or(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(there) => there,
            None => self.make(make),
        }
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        let new = Box::into_raw(Box::new(make()));
        // Release: who finds the pointer finds what was made. Acquire: the same of another's.
        let winner = match self.at.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` came from the `Box` above and was shown to nobody.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: not null, and as in `get`.
        unsafe { &*winner }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let there = self.at.load(Acquire);
        if !there.is_null() {
            // SAFETY: it came from a `Box` in `get_or`, and nobody else can look at `self` any more.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_stays() {
        let once = Once::default();
        assert!(once.get().is_none());
        assert_eq!(*once.get_or(|| 3), 3);
        assert_eq!((*once.get_or(|| 4), once.get().copied()), (3, Some(3)));
    }

    #[test]
    fn threads_agree() {
        let once = Once::default();
        let seen: Vec<usize> = std::thread::scope(|scope| {
            let once = &once;
            let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || *once.get_or(|| number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    }
}
