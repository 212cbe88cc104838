//! When a refill or drain gives the zone lock up to those who wait for it: `+yield`.
//!
//! A large batch saves trips to a lock that others want, and makes all of them wait. Where nobody wants the lock, a trip
//! costs next to nothing beside the pages of a batch. So refills and drains on the request paths are one batch, whatever
//! `vm.pcp_batch_scale_max` says, and what is longer (emptying a pageset, its decay, a batch set to hundreds of pages)
//! goes on past 64 blocks only until the holder sees that somebody waits. Less is never cut: for a few pages each time,
//! the lines of the free lists would travel from CPU to CPU more often than they are used, and all wait longer in the end
//! (docs/kernel-notes.md has the figures).
//!
//! What is left undone needs no memory of it: a refill that got something is done, and a pageset that still has too many
//! pages drains at the next free or tick.

use crate::ground::{Guard, Machine};
use crate::rules::policy::YieldRule;

/// Blocks that a hold moves at least, if there are as many to move: the usual batch of 63, rounded up to the next look.
const SHORTEST: u32 = 64;
/// Blocks between two looks at who waits: that is a read of a line that waiters write.
const LOOK_EVERY: u32 = 16;

/// A hold of the zone lock, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    rule: YieldRule,
    moved: u32,
}

impl Hold {
    /// One that begins now.
    pub(crate) fn new(rule: YieldRule) -> Self {
        Self { rule, moved: 0 }
    }

    /// Notes that a block was moved; says whether the lock should go to those who wait for it.
    #[inline]
    pub(crate) fn is_over<M: Machine, T>(&mut self, lock: &Guard<'_, M, T>) -> bool {
        if self.rule == YieldRule::Never {
            return false;
        }
        self.moved += 1;
        self.moved >= SHORTEST && self.moved % LOOK_EVERY == 0 && lock.is_contended()
    }
}
