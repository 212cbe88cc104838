//! A look from outside while simulated time goes by: a hook hears of moments, and what it sees costs nothing. No event comes earlier or
//! later for it, so a run that is looked at and one that is not are the same to the bit.

use mm::{Nanos, Span};

use super::Core;
use super::meter::Meter;
use super::names::NameSeen;
use super::run::Sim;
use crate::time::{Ticks, from_nanos, to_nanos};

/// A moment of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passing {
    /// The clock of the CPU that is furthest behind; others may be ahead of it by a window.
    pub now: Nanos,
    /// Faults since measuring began.
    pub faults: u64,
    /// What all CPUs together have waited for locks since then.
    pub lock_wait: Nanos,
    /// Both of tasks of each name ([`Sim::task_names`]), as many as there were.
    pub by_name: Vec<NameSeen>,
}

/// Hears of a moment, and says from when on it wants to hear again.
pub(super) type PassHook = Box<dyn FnMut(&Passing) -> Nanos>;

impl Sim {
    /// Has `hook` told of the first moment at or after `first` at which the engine takes up a task, and then of the first after the
    /// time that it answers. It must not use the machine.
    pub fn on_pass(&self, first: Nanos, hook: impl FnMut(&Passing) -> Nanos + 'static) {
        let core = self.core();
        *core.pass_hook.borrow_mut() = Some(Box::new(hook));
        core.pass_due.set(from_nanos(first));
    }
}

impl Core {
    /// The engine takes up a task.
    #[inline]
    pub(super) fn pass_by(&self) {
        if self.now() >= self.pass_due.get() {
            self.pass();
        }
    }

    #[cold]
    fn pass(&self) {
        let mut hook = self.pass_hook.borrow_mut();
        let Some(hook) = hook.as_mut() else {
            self.pass_due.set(Ticks::MAX);
            return;
        };
        let (faults, waited) = self.meter.borrow().passing();
        let (now, lock_wait) = (to_nanos(self.now()), to_nanos(waited));
        let moment = Passing { now, faults, lock_wait, by_name: self.by_name() };
        let due = from_nanos(hook(&moment));
        self.pass_due.set(due.max(self.now() + 1));
    }
}

impl Meter {
    /// Faults, and waits for locks in all.
    fn passing(&self) -> (u64, Ticks) {
        let of_fault = self.groups.iter().flat_map(|spans| &spans[Span::Fault as usize].by_order);
        (of_fault.map(|order| order.spans.count).sum(), self.waited_in_all())
    }
}
