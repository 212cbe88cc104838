//! A process and the child that it forked, as long as they share pages: what the fork took, how long the parent's faults take
//! meanwhile, how many pages are copied. Clocks and counters are read; nothing that is simulated changes.

use std::cell::RefCell;
use std::rc::Rc;

use mm::Nanos;

use super::process::Process;
use crate::measurements::ForkUse;

/// A fork whose child still has the pages.
pub(super) struct Sharing {
    parent: Rc<Process>,
    begun: Nanos,
    /// What the parent had copied by then.
    copied: u64,
    /// What is known of it already.
    so_far: ForkUse,
    /// How long the parent's faults took, ns.
    faults: RefCell<Vec<u64>>,
}

impl Sharing {
    /// `parent` has forked, and was through with that at `now`.
    pub(super) fn new(parent: &Rc<Process>, now: Nanos, so_far: ForkUse) -> Rc<Self> {
        let copied = parent.space.counters().copied;
        Rc::new(Self { parent: Rc::clone(parent), begun: now, copied, so_far, faults: RefCell::default() })
    }

    /// A fault of the parent took `ns`.
    pub(super) fn faulted(&self, ns: u64) {
        self.faults.borrow_mut().push(ns);
    }

    /// Who forked.
    pub(super) fn parent(&self) -> &Process {
        &self.parent
    }

    /// `child`, which has shared pages until `now`, has them no more.
    pub(super) fn ended(&self, child: &Process, now: Nanos) -> ForkUse {
        let mut faults = self.faults.take();
        faults.sort_unstable();
        let child = child.space.counters();
        let percentile = |percent: usize| {
            let rank = (faults.len() * percent).div_ceil(100);
            faults.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        ForkUse {
            lasted_ns: now.0.saturating_sub(self.begun.0),
            faults: faults.len() as u64,
            fault_p50_ns: percentile(50),
            fault_p99_ns: percentile(99),
            fault_max_ns: percentile(100),
            copied_pages: self.parent.space.counters().copied - self.copied + child.copied,
            table_pages: child.tables,
            ..self.so_far.clone()
        }
    }
}
