//! Pages that are marked for hint faults: each faults when its segment has been accessed often enough since.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use mm::Nanos;
use mm::vm::Vpn;

use super::chance;
use super::program::Program;
use crate::stage::Random;

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

impl Program {
    /// The next access to `page` is a fault.
    pub(super) fn mark(&self, page: usize, vpn: Vpn, since: Nanos, random: &mut Random) {
        if self.pages[page].marked.replace(true) {
            return;
        }
        let at = self.segment(page).accesses.get() + chance::until_first(random);
        let marked = Marked { at, page, vpn, since };
        let mut waiting = self.hints.waiting.borrow_mut();
        waiting.entry(self.segment_number(page)).or_default().push(Reverse(marked));
    }

    /// A page that has been accessed since it was marked, if there is one; it is marked no more.
    pub(super) fn next_fault(&self) -> Option<Marked> {
        let mut waiting = self.hints.waiting.borrow_mut();
        let is_due = |number: u32, heap: &BinaryHeap<Reverse<Marked>>| {
            let now = self.segments[number as usize].accesses.get();
            heap.peek().is_some_and(|Reverse(next)| next.at <= now)
        };
        let number =
            waiting.iter().find(|(number, heap)| is_due(**number, heap)).map(|(number, _)| *number)?;
        let heap = waiting.get_mut(&number)?;
        let Reverse(marked) = heap.pop()?;
        if heap.is_empty() {
            waiting.remove(&number);
        }
        self.pages[marked.page].marked.set(false);
        Some(marked)
    }
}
