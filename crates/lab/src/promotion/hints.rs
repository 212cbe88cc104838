//! Pages that are marked for hint faults: each faults when its segment has been accessed often enough since.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use mm::Nanos;
use mm::vm::Vpn;

/// A page that will fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Marked {
    /// The count of its segment's accesses at which it does.
    at: u64,
    pub(super) page: usize,
    pub(super) vpn: Vpn,
    pub(super) since: Nanos,
}

/// By segment, the next to fault first.
#[derive(Debug, Default)]
pub(super) struct Hints {
    waiting: RefCell<BTreeMap<u32, BinaryHeap<Reverse<Marked>>>>,
}

impl Marked {
    /// `page`, which faults when its segment has had `at` accesses.
    pub(super) const fn new(at: u64, page: usize, vpn: Vpn, since: Nanos) -> Self {
        Self { at, page, vpn, since }
    }
}

impl Hints {
    /// A page of `segment` will fault.
    pub(super) fn push(&self, segment: u32, marked: Marked) {
        self.waiting.borrow_mut().entry(segment).or_default().push(Reverse(marked));
    }

    /// A page that is due by what its segment's `accesses` are now, if there is one; it waits no more.
    pub(super) fn next(&self, accesses: impl Fn(u32) -> u64) -> Option<Marked> {
        let mut waiting = self.waiting.borrow_mut();
        let is_due = |segment: u32, heap: &BinaryHeap<Reverse<Marked>>| {
            heap.peek().is_some_and(|Reverse(next)| next.at <= accesses(segment))
        };
        let segment =
            waiting.iter().find(|(segment, heap)| is_due(**segment, heap)).map(|(segment, _)| *segment)?;
        let heap = waiting.get_mut(&segment)?;
        let Reverse(marked) = heap.pop()?;
        if heap.is_empty() {
            waiting.remove(&segment);
        }
        Some(marked)
    }
}
