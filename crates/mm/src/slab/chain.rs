//! Free objects in a row: each holds the address of the next. A row comes off a slab, is a CPU's, or goes back to a slab.

use super::cache::Cache;
use crate::ground::{Addr, Machine};

/// No object.
pub(super) const NONE: Addr = Addr(u64::MAX);

/// Some free objects of one slab, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chain {
    pub(super) first: Addr,
    pub(super) last: Addr,
    pub(super) len: u32,
}

impl Chain {
    /// One object by itself.
    #[inline]
    pub(super) const fn one(object: Addr) -> Self {
        Self { first: object, last: object, len: 1 }
    }

    /// Puts `object` before the others.
    #[inline]
    pub(super) fn push<M: Machine>(&mut self, machine: &M, cache: &Cache<M>, object: Addr) {
        cache.set_next(machine, object, self.first);
        self.first = object;
        self.len += 1;
    }
}

impl<M: Machine> Cache<M> {
    /// The free object after `object`, or [`NONE`].
    #[inline]
    pub(super) fn next(&self, machine: &M, object: Addr) -> Addr {
        Addr(machine.load(object.add(self.link)))
    }

    #[inline]
    pub(super) fn set_next(&self, machine: &M, object: Addr, next: Addr) {
        machine.store(object.add(self.link), next.0);
    }

    /// The chain that begins at `first` and ends with [`NONE`]; `None` if it is empty.
    pub(super) fn chain_from(&self, machine: &M, first: Addr) -> Option<Chain> {
        if first == NONE {
            return None;
        }
        let mut chain = Chain::one(first);
        loop {
            let next = self.next(machine, chain.last);
            if next == NONE {
                return Some(chain);
            }
            chain.last = next;
            chain.len += 1;
        }
    }
}
