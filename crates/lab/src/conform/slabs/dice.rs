//! A throw of dice that a slab trace shows only by what followed: a CPU whose node has no partial slab asks other nodes'
//! lists most times (`remote_node_defrag_ratio`, 1001 of 1024), else it takes a new slab.
//!
//! The slab of the object tells how they fell. A slab is first taken from the page allocator, by a CPU of the node on which
//! it lies; an address never changes its node. Where a CPU's object is of another node's slab, it asked. mm is given dice
//! that fall so; which slab it then finds is its own doing, and compared. That the kernel seldom declines where it could
//! have asked is compared too.

use std::collections::HashMap;

use mm::Node;

use crate::conform::outcome::FileOutcome;

/// A number that asks other nodes, whatever the ratio but 0.
pub(super) const ASKS: u64 = 0;

/// One that does not.
pub(super) const DECLINES: u64 = 1023;

/// Of the kernel's throws 23 in 1024 decline. So many times more do not happen by chance in a trace of any length.
const TOO_OFTEN: u32 = 4;

/// Few throws may fall as they like.
const FEW: u32 = 4;

/// Where each of the kernel's slabs lies, and how its dice fell.
#[derive(Clone, Debug, Default)]
pub(super) struct SlabDice {
    homes: HashMap<u64, Node>,
    asked: u32,
    declined: u32,
}

impl SlabDice {
    /// The node of the kernel's slab `slab`, of which a CPU of `local` has an object.
    pub(super) fn home(&mut self, slab: u64, local: Node) -> Node {
        *self.homes.entry(slab).or_insert(local)
    }

    /// Another node was asked, and had a slab.
    pub(super) fn asked(&mut self) {
        self.asked += 1;
    }

    /// Another node had a slab to spare, and was not asked.
    pub(super) fn declined(&mut self) {
        self.declined += 1;
    }

    /// Compares how often the kernel declined.
    pub(super) fn compare(&self, outcome: &mut FileOutcome) {
        let throws = self.asked + self.declined;
        if throws == 0 {
            return;
        }
        let most = FEW + throws * TOO_OFTEN * 23 / 1024;
        if self.declined > most {
            let kernel = format!("{} of {throws} times", self.declined);
            let what = "a new slab though another node had some to spare".to_owned();
            outcome.differ(what, kernel, format!("at most {most}, by 23 of 1024 throws"));
        } else {
            outcome.agree();
        }
        outcome.notes.push(format!(
            "another node's partial slabs: asked for {} times, passed over {} times by the kernel's dice",
            self.asked, self.declined
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::outcome::FileKind;

    fn differs(asked: u32, declined: u32) -> bool {
        let mut dice = SlabDice::default();
        (0..asked).for_each(|_| dice.asked());
        (0..declined).for_each(|_| dice.declined());
        let mut outcome = FileOutcome::new(FileKind::SlabTrace);
        dice.compare(&mut outcome);
        !outcome.differences.is_empty()
    }

    #[test]
    fn a_slab_stays_where_it_was_first_taken() {
        let mut dice = SlabDice::default();
        assert_eq!(dice.home(7, Node(1)), Node(1));
        assert_eq!(dice.home(7, Node(0)), Node(1));
        assert_eq!(dice.home(8, Node(0)), Node(0));
    }

    #[test]
    fn a_kernel_that_never_asks_is_found() {
        assert!(!differs(30, 1));
        assert!(!differs(1000, 30));
        assert!(differs(0, 5));
        assert!(differs(1000, 120));
    }
}
