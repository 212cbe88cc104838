//! A row of things to which more can be added while others look at those that are there. None is ever taken out, so a
//! number stays good for the row's life.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;

use crate::ground::{Acquire, AtomicPtr, AtomicU32, Release};

/// The row.
#[derive(Debug)]
pub(super) struct Slots<T> {
    row: Box<[AtomicPtr<T>]>,
    len: AtomicU32,
    owned: PhantomData<T>,
}

impl<T> Slots<T> {
    /// Room for `capacity` things.
    pub(super) fn new(capacity: usize) -> Self {
        let row = (0..capacity).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { row, len: AtomicU32::new(0), owned: PhantomData }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire) as usize
    }

    /// Whether another fits.
    pub(super) fn has_room(&self) -> bool {
        self.len() < self.row.len()
    }

    /// The thing numbered `number`, if there is one.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        let slot = self.row.get(number)?.load(Acquire);
        // SAFETY: a slot is null or holds a `Box` that `push` released and that lives as long as the row.
        unsafe { slot.as_ref() }
    }

    /// Adds `thing`, whose number will be [`Self::len`]; the caller sees to it that nobody else adds one at the time.
    /// Where there is no room it is dropped.
    pub(super) fn push(&self, thing: T) {
        let number = self.len();
        if let Some(slot) = self.row.get(number) {
            slot.store(Box::into_raw(Box::new(thing)), Release);
            self.len.store(number as u32 + 1, Release);
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|number| self.get(number))
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        for slot in &self.row {
            let thing = slot.load(Acquire);
            if !thing.is_null() {
                // SAFETY: it came from `Box::into_raw` in `push`, and by `&mut self` nobody looks at it any more.
                drop(unsafe { Box::from_raw(thing) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::rc::Rc;

    #[test]
    fn what_was_added_stays_and_is_dropped_once() {
        let thing = Rc::new(7);
        let row = Slots::new(2);
        row.push(Rc::clone(&thing));
        row.push(Rc::clone(&thing));
        assert!(!row.has_room());
        row.push(Rc::clone(&thing));
        assert_eq!((row.len(), row.get(1).map(|seven| **seven), row.get(2)), (2, Some(7), None));
        assert_eq!(Rc::strong_count(&thing), 3);
        drop(row);
        assert_eq!(Rc::strong_count(&thing), 1);
    }
}
