//! Doubly linked lists of blocks, threaded through their heads' descriptors. Free lists and pageset lists are these;
//! the lock of whoever owns the list protects it. Every descriptor that an operation reads or writes is touched, the
//! neighbours' too: in the kernel that is where the time under `zone->lock` goes.

use crate::ground::{Access, Line, LineKind, Machine, Pfn, Relaxed};
use crate::pages::frame::{MemMap, NONE};

/// What list and buddy operations need: the descriptors, and the machine to charge.
#[derive(Debug)]
pub(crate) struct Mem<'a, M> {
    pub(crate) map: &'a MemMap,
    pub(crate) machine: &'a M,
}

impl<M> Clone for Mem<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Mem<'_, M> {}

impl<M: Machine> Mem<'_, M> {
    #[inline]
    pub(crate) fn touch(self, pfn: Pfn, access: Access) {
        self.machine.touch(Line { kind: LineKind::Frame, index: pfn.0 }, access);
    }
}

/// A list of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }
}

impl List {
    /// Blocks on the list.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Pfn> {
        (self.first != NONE).then_some(Pfn(self.first))
    }

    #[inline]
    pub(crate) fn last(&self) -> Option<Pfn> {
        (self.last != NONE).then_some(Pfn(self.last))
    }

    /// The block after `pfn`.
    pub(crate) fn after(map: &MemMap, pfn: Pfn) -> Option<Pfn> {
        let next = map.frame(pfn).next.load(Relaxed);
        (next != NONE).then_some(Pfn(next))
    }

    /// The block before `pfn`.
    pub(crate) fn before(map: &MemMap, pfn: Pfn) -> Option<Pfn> {
        let prev = map.frame(pfn).prev.load(Relaxed);
        (prev != NONE).then_some(Pfn(prev))
    }

    /// Puts `pfn` first.
    #[inline]
    pub(crate) fn push_front<M: Machine>(&mut self, mem: Mem<'_, M>, pfn: Pfn) {
        let frame = mem.map.frame(pfn);
        mem.touch(pfn, Access::Write);
        frame.prev.store(NONE, Relaxed);
        frame.next.store(self.first, Relaxed);
        match self.first() {
            Some(old) => {
                mem.touch(old, Access::Store);
                mem.map.frame(old).prev.store(pfn.0, Relaxed);
            }
            None => self.last = pfn.0,
        }
        self.first = pfn.0;
        self.len += 1;
    }

    /// Puts `pfn` last.
    #[inline]
    pub(crate) fn push_back<M: Machine>(&mut self, mem: Mem<'_, M>, pfn: Pfn) {
        let frame = mem.map.frame(pfn);
        mem.touch(pfn, Access::Write);
        frame.next.store(NONE, Relaxed);
        frame.prev.store(self.last, Relaxed);
        match self.last() {
            Some(old) => {
                mem.touch(old, Access::Store);
                mem.map.frame(old).next.store(pfn.0, Relaxed);
            }
            None => self.first = pfn.0,
        }
        self.last = pfn.0;
        self.len += 1;
    }

    /// Takes `pfn`, which is on this list, off it.
    #[inline]
    pub(crate) fn remove<M: Machine>(&mut self, mem: Mem<'_, M>, pfn: Pfn) {
        let frame = mem.map.frame(pfn);
        mem.touch(pfn, Access::Write);
        let (next, prev) = (frame.next.load(Relaxed), frame.prev.load(Relaxed));
        // Behind the first block is the one that will be first, and soon be wanted; others are only linked anew.
        let access = if prev == NONE { Access::Write } else { Access::Store };
        if next == NONE {
            self.last = prev;
        } else {
            mem.touch(Pfn(next), access);
            mem.map.frame(Pfn(next)).prev.store(prev, Relaxed);
        }
        if prev == NONE {
            self.first = next;
        } else {
            mem.touch(Pfn(prev), access);
            mem.map.frame(Pfn(prev)).next.store(next, Relaxed);
        }
        debug_assert!(self.len > 0, "{pfn} taken off an empty list");
        self.len -= 1;
    }

    /// Turns the list until `pfn`, which is on it, is the first: those before it come after the last.
    pub(crate) fn turn_to<M: Machine>(&mut self, mem: Mem<'_, M>, pfn: Pfn) {
        let (Some(first), Some(last)) = (self.first(), self.last()) else { return };
        if first == pfn {
            return;
        }
        for end in [first, last, pfn] {
            mem.touch(end, Access::Write);
        }
        let before = mem.map.frame(pfn).prev.swap(NONE, Relaxed);
        mem.touch(Pfn(before), Access::Write);
        mem.map.frame(last).next.store(first.0, Relaxed);
        mem.map.frame(first).prev.store(last.0, Relaxed);
        mem.map.frame(Pfn(before)).next.store(NONE, Relaxed);
        (self.first, self.last) = (pfn.0, before);
    }

    /// Takes the first block off.
    #[inline]
    pub(crate) fn pop_front<M: Machine>(&mut self, mem: Mem<'_, M>) -> Option<Pfn> {
        let pfn = self.first()?;
        mem.touch(pfn, Access::Write);
        self.first = mem.map.frame(pfn).next.load(Relaxed);
        match self.first() {
            Some(next) => {
                mem.touch(next, Access::Write);
                mem.map.frame(next).prev.store(NONE, Relaxed);
            }
            None => self.last = NONE,
        }
        self.len -= 1;
        Some(pfn)
    }

    /// Takes the last block off.
    #[inline]
    pub(crate) fn pop_back<M: Machine>(&mut self, mem: Mem<'_, M>) -> Option<Pfn> {
        let pfn = self.last()?;
        mem.touch(pfn, Access::Write);
        self.last = mem.map.frame(pfn).prev.load(Relaxed);
        match self.last() {
            Some(prev) => {
                mem.touch(prev, Access::Write);
                mem.map.frame(prev).next.store(NONE, Relaxed);
            }
            None => self.first = NONE,
        }
        self.len -= 1;
        Some(pfn)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use super::*;
    use crate::Bare;

    #[test]
    fn a_list_turns_as_a_ring_does() {
        let machine = Bare::default();
        let map = MemMap::new(Pfn(8));
        let mem = Mem { map: &map, machine: &machine };
        for to in 0..5 {
            let mut list = List::default();
            let mut ring: VecDeque<Pfn> = (0..5).map(Pfn).collect();
            for &pfn in &ring {
                list.push_back(mem, pfn);
            }
            list.turn_to(mem, Pfn(to));
            ring.rotate_left(to as usize);
            let forwards = core::iter::successors(list.first(), |&pfn| List::after(&map, pfn));
            assert_eq!(forwards.collect::<VecDeque<_>>(), ring);
            let backwards: Vec<Pfn> =
                core::iter::successors(list.last(), |&pfn| List::before(&map, pfn)).collect();
            assert!(backwards.iter().rev().eq(&ring));
            assert_eq!(list.len(), 5);
        }
    }
}
