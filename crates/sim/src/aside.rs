//! Work that can be put aside in its middle and taken up again: for machines without simulated time, on which a daemon runs
//! beside what the caller does.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

type Hand = Yielder<(), ()>;

/// Work on a stack of its own. Dropped before its end, it unwinds.
pub struct Aside {
    coroutine: Coroutine<(), (), ()>,
    /// The work's own way out, once it has begun.
    hand: Rc<Cell<*const Hand>>,
    pause: Pause,
}

/// By what work puts itself aside. One of these may serve one piece of work after the other.
#[derive(Clone)]
pub struct Pause(Rc<Cell<*const Hand>>);

impl Default for Pause {
    fn default() -> Self {
        Self(Rc::new(Cell::new(ptr::null())))
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pause").field("is_at_work", &self.is_at_work()).finish()
    }
}

impl fmt::Debug for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aside").field("is_done", &self.coroutine.done()).finish_non_exhaustive()
    }
}

impl Pause {
    /// Whether this is called by the work.
    pub fn is_at_work(&self) -> bool {
        !self.0.get().is_null()
    }

    /// Puts the work aside; comes back when it is taken up again. Who is not at work goes on at once.
    pub fn put_aside(&self) {
        let hand = self.0.get();
        if hand.is_null() {
            return;
        }
        // SAFETY: it is set only while the work runs (`Aside::go_on`), so its coroutine, which the hand is part of, lives, and
        // this is called on the coroutine's stack.
        let hand = unsafe { &*hand };
        hand.suspend(());
    }
}

impl Aside {
    /// `work`, which has not begun yet and puts itself aside by `pause`.
    pub fn new(pause: &Pause, work: impl FnOnce() + 'static) -> Self {
        let hand = Rc::new(Cell::new(ptr::null()));
        let (own, now) = (Rc::clone(&hand), pause.clone());
        let coroutine = Coroutine::new(move |yielder: &Hand, ()| {
            own.set(ptr::from_ref(yielder));
            now.0.set(own.get());
            work();
        });
        Self { coroutine, hand, pause: pause.clone() }
    }

    /// Takes the work up until it puts itself aside again; says whether it has come to its end.
    pub fn go_on(&mut self) -> bool {
        if self.coroutine.done() {
            return true;
        }
        let outer = self.pause.0.replace(self.hand.get());
        let result = self.coroutine.resume(());
        self.pause.0.set(outer);
        matches!(result, CoroutineResult::Return(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_where_it_was_put_aside() {
        let pause = Pause::default();
        let steps = Rc::new(Cell::new(0));
        let (own, counted) = (pause.clone(), Rc::clone(&steps));
        let mut aside = Aside::new(&pause, move || {
            for _ in 0..2 {
                counted.set(counted.get() + 1);
                assert!(own.is_at_work());
                own.put_aside();
            }
        });
        assert!(!pause.is_at_work());
        pause.put_aside();
        assert_eq!([aside.go_on(), aside.go_on()], [false, false]);
        assert_eq!(steps.get(), 2);
        assert!(!pause.is_at_work());
        assert_eq!([aside.go_on(), aside.go_on()], [true, true]);
    }

    #[test]
    fn may_be_dropped_in_the_middle() {
        let pause = Pause::default();
        let own = pause.clone();
        let mut aside = Aside::new(&pause, move || own.put_aside());
        assert!(!aside.go_on());
        drop(aside);
        assert!(!pause.is_at_work());
    }
}
