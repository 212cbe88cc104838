//! Work that can be put aside in its middle and taken up again: for machines without simulated time, on which a daemon runs
//! beside what the caller does.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

type Hand = Yielder<(), ()>;

thread_local! {
    /// The way out of the work whose stack this thread is on; null on its own.
    static INNERMOST: Cell<*const Hand> = const { Cell::new(ptr::null()) };
}

/// Work on a stack of its own. Dropped before its end, it unwinds.
pub struct Aside {
    coroutine: Coroutine<(), (), ()>,
    /// The work's own way out, once it has begun.
    hand: Rc<Cell<*const Hand>>,
}

/// Whose stack the thread comes back to, also by a panic.
struct Outer(*const Hand);

impl Outer {
    /// The thread goes to the stack that `hand` leads out of.
    fn leave_for(hand: *const Hand) -> Self {
        Self(INNERMOST.replace(hand))
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        INNERMOST.set(self.0);
    }
}

/// Puts the work that calls this aside; comes back when it is taken up again. Who is at no such work goes on at once.
pub fn put_aside() {
    let hand = INNERMOST.get();
    if hand.is_null() {
        return;
    }
    // SAFETY: `Aside::go_on` has it set while the thread is on the stack of the hand's coroutine and at no other time (`Outer`), so the
    // coroutine, which the hand is part of, lives, and it is its own stack that is put aside.
    let hand = unsafe { &*hand };
    hand.suspend(());
}

impl Aside {
    /// `work`, which has not begun yet.
    pub fn new(work: impl FnOnce() + 'static) -> Self {
        let hand = Rc::new(Cell::new(ptr::null()));
        let own = Rc::clone(&hand);
        let coroutine = Coroutine::new(move |yielder: &Hand, ()| {
            own.set(ptr::from_ref(yielder));
            INNERMOST.set(own.get());
            work();
        });
        Self { coroutine, hand }
    }

    /// Takes the work up until it puts itself aside again; says whether it has come to its end.
    pub fn go_on(&mut self) -> bool {
        if self.coroutine.done() {
            return true;
        }
        let _outer = Outer::leave_for(self.hand.get());
        matches!(self.coroutine.resume(()), CoroutineResult::Return(()))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // What unwinds is not put aside any more.
        let _outer = Outer::leave_for(ptr::null());
        self.coroutine.force_unwind();
    }
}

impl fmt::Debug for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aside").field("is_done", &self.coroutine.done()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn goes_on_where_it_was_put_aside() {
        let steps = Rc::new(Cell::new(0));
        let counted = Rc::clone(&steps);
        let mut aside = Aside::new(move || {
            for _ in 0..2 {
                counted.set(counted.get() + 1);
                put_aside();
            }
        });
        put_aside();
        assert_eq!([aside.go_on(), aside.go_on()], [false, false]);
        assert_eq!(steps.get(), 2);
        assert_eq!([aside.go_on(), aside.go_on()], [true, true]);
    }

    #[test]
    fn work_within_work_puts_itself_aside() {
        let order = Rc::new(RefCell::new(vec![]));
        let (of_outer, of_inner) = (Rc::clone(&order), Rc::clone(&order));
        let mut outer = Aside::new(move || {
            let mut inner = Aside::new(move || {
                of_inner.borrow_mut().push("inner");
                put_aside();
                of_inner.borrow_mut().push("inner again");
            });
            assert!(!inner.go_on());
            of_outer.borrow_mut().push("outer");
            put_aside();
            assert!(inner.go_on());
        });
        assert!(!outer.go_on());
        assert_eq!(*order.borrow(), ["inner", "outer"]);
        assert!(outer.go_on());
        assert_eq!(*order.borrow(), ["inner", "outer", "inner again"]);
    }

    #[test]
    fn may_be_dropped_in_the_middle_and_may_panic() {
        /// Would put aside what unwinds.
        struct Last(Rc<Cell<bool>>);
        impl Drop for Last {
            fn drop(&mut self) {
                put_aside();
                self.0.set(true);
            }
        }
        let is_gone = Rc::new(Cell::new(false));
        let last = Last(Rc::clone(&is_gone));
        let mut aside = Aside::new(move || {
            let _last = last;
            put_aside();
        });
        assert!(!aside.go_on());
        drop(aside);
        assert!(is_gone.get());
        let mut aside = Aside::new(|| panic!("as it must"));
        assert!(catch_unwind(AssertUnwindSafe(|| aside.go_on())).is_err());
        // On the thread's own stack again.
        put_aside();
    }
}
