//! Taking and giving back locks in simulated time.

use super::{Core, Park};
use crate::error::SimError;
use crate::locks::{LockTaken, SimLock};

impl Core {
    pub(crate) fn new_lock(&self, class: mm::LockClass, index: u32) -> SimLock {
        self.locks.borrow_mut().create(class, index)
    }

    /// Before a lock is looked at: if others may be after it, this CPU's turn has to come first.
    #[inline]
    fn sync_for(&self, lock: SimLock) {
        if !self.locks.borrow().is_local(lock, self.cpu.get()) {
            self.sync();
        }
    }

    pub(crate) fn lock(&self, lock: SimLock) {
        if !self.in_task() {
            let free = self.locks.borrow_mut().take_outside(lock);
            assert!(free, "a lock taken outside of any task is held");
            return;
        }
        if !self.lock_own(lock) {
            self.lock_after_others(lock);
        }
    }

    /// Takes a lock that is this CPU's own for the time being; whether it is.
    #[inline]
    fn lock_own(&self, lock: SimLock) -> bool {
        let own = self.locks.borrow_mut().take_own(lock, self.owner(), self.clock.get(), &self.costs);
        let Some(cost) = own else { return false };
        self.enter_atomic();
        self.meter.borrow_mut().took(self.span(), cost);
        self.advance(cost);
        true
    }

    /// The way to a lock that others may be after.
    #[inline(never)]
    fn lock_after_others(&self, lock: SimLock) {
        self.sync_for(lock);
        self.enter_atomic();
        let now = self.clock.get();
        let taken = self.locks.borrow_mut().take(lock, self.owner(), now, &self.costs);
        match taken {
            LockTaken::Now { at } => {
                self.meter.borrow_mut().took(self.span(), at - now);
                self.advance(at - now);
            }
            LockTaken::Later { at, hand_over } => {
                let class = self.locks.borrow().class(lock);
                self.meter.borrow_mut().waited(self.span(), class, at - now, hand_over);
                let mut sched = self.sched.borrow_mut();
                sched.cpus[usize::from(self.cpu.get())].spin += at - now;
                sched.waited(self.task.get(), at - now);
                drop(sched);
                self.advance(at - now);
            }
            // The CPU that hands it over books the wait and sets this CPU's clock.
            LockTaken::Queued => self.park(Park::Spin(lock)),
            LockTaken::ByCaller => self.misused(lock, "takes", "it holds"),
        }
    }

    pub(crate) fn try_lock(&self, lock: SimLock) -> bool {
        if !self.in_task() {
            return self.locks.borrow_mut().take_outside(lock);
        }
        self.lock_own(lock) || self.try_lock_after_others(lock)
    }

    #[inline(never)]
    fn try_lock_after_others(&self, lock: SimLock) -> bool {
        self.sync_for(lock);
        let now = self.clock.get();
        let taken = self.locks.borrow_mut().try_take(lock, self.owner(), now, &self.costs);
        if let Some(at) = taken {
            self.enter_atomic();
            self.meter.borrow_mut().took(self.span(), at - now);
            self.advance(at - now);
        } else {
            let look = self.locks.borrow().look(lock, self.cpu.get(), &self.costs);
            self.advance(look);
        }
        taken.is_some()
    }

    pub(crate) fn unlock(&self, lock: SimLock) {
        if !self.in_task() {
            let held = self.locks.borrow_mut().give_outside(lock);
            assert!(held, "a lock given back outside of any task was not taken there");
            return;
        }
        if self.ending.get() {
            // The clock is the last task's that ran, and nobody goes on: neither hold nor waiters count any more.
            return self.locks.borrow_mut().let_go(lock);
        }
        let alone = self.locks.borrow_mut().give_alone(lock, self.task.get(), self.clock.get());
        if let Some((class, held)) = alone {
            self.meter.borrow_mut().held(self.span(), class, held);
            return self.leave_atomic();
        }
        self.unlock_for_others(lock);
    }

    /// The lock goes to who waits for it.
    #[inline(never)]
    fn unlock_for_others(&self, lock: SimLock) {
        let given = self.locks.borrow_mut().give(lock, self.owner(), self.clock.get(), &self.costs);
        let Some(given) = given else {
            return self.misused(lock, "gives back", "it does not hold");
        };
        self.meter.borrow_mut().held(self.span(), given.class, given.held);
        if let Some(grant) = given.to {
            let mut sched = self.sched.borrow_mut();
            let span = (sched.tasks[grant.who.task as usize].spans & 15) as usize;
            let wait = grant.at - grant.since;
            self.meter.borrow_mut().waited(span, given.class, wait, grant.hand_over);
            sched.waited(grant.who.task, wait);
            sched.end_spin(grant.who, grant.at);
            drop(sched);
            self.others_changed();
        }
        self.leave_atomic();
    }

    pub(crate) fn is_contended(&self, lock: SimLock) -> bool {
        if self.in_task() {
            self.sync();
        }
        self.locks.borrow().has_waiters(lock)
    }

    #[cold]
    fn misused(&self, lock: SimLock, does: &str, which: &str) {
        if self.ending.get() {
            return;
        }
        let (_, name) = self.locks.borrow().describe(lock);
        let task = self.task_name(self.task.get());
        self.fail(SimError::LockMisused { task, what: format!("{does} {name}, which {which}") });
    }
}
