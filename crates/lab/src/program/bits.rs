//! What looking at accessed bits cost the program itself: a page whose bit was cleared loses some hundred ns when it is walked to again. A look
//! says which bits have come. A fault sets the bit of its page, too, and that is in its price: what is left of a look without them was paid for.

use std::collections::BTreeMap;

/// Bits that came, by address space.
#[derive(Debug, Default)]
pub(super) struct Bits(BTreeMap<usize, OfSpace>);

/// An address space.
#[derive(Clone, Copy, Debug, Default)]
struct OfSpace {
    /// Faults since the last look.
    since: u64,
    /// Those between that and the look before, less the bits that were told of so far.
    before: u64,
    /// A fork made it, and its bits have been clear since: nobody had to clear them, and what comes back would have come anyway.
    is_born_clear: bool,
    /// It was told once that they are clear.
    was_told: bool,
}

impl Bits {
    /// A fork makes address space `space`.
    pub(super) fn forked(&mut self, space: usize) {
        self.0.entry(space).or_default().is_born_clear = true;
    }

    /// A fault sets the bit of a page of address space `space`.
    pub(super) fn faulted(&mut self, space: usize) {
        self.0.entry(space).or_default().since += 1;
    }

    /// A look at it begins.
    pub(super) fn looked(&mut self, space: usize) {
        let of = self.0.entry(space).or_default();
        (of.since, of.before) = (0, of.since);
    }

    /// Its bits are clear: the first time after a fork for that, later because they were cleared.
    pub(super) fn cleared(&mut self, space: usize) {
        self.looked(space);
        let of = self.0.entry(space).or_default();
        of.is_born_clear &= !of.was_told;
        of.was_told = true;
    }

    /// That look tells of so many bits; gives how many of them were cleared before and no fault has set.
    pub(super) fn came(&mut self, space: usize, bits: u32) -> u32 {
        let of = self.0.entry(space).or_default();
        let by_faults = u64::from(bits).min(of.before);
        of.before -= by_faults;
        if of.is_born_clear { 0 } else { bits - by_faults as u32 }
    }
}

#[cfg(test)]
mod tests {
    use trace::{EventKind, PresentKind};

    use super::super::tests::{HEAP, RW, SHELL, WRITE, fault, map, program};
    use super::*;

    #[test]
    fn bits_of_new_pages_are_not_paid_for_twice() {
        let mut bits = Bits::default();
        bits.looked(7);
        (0..70).for_each(|_| bits.faulted(7));
        bits.faulted(8);
        bits.looked(7);
        bits.faulted(7);
        assert_eq!([bits.came(7, 64), bits.came(7, 64), bits.came(7, 3), bits.came(8, 5)], [0, 58, 3, 5]);
        bits.looked(7);
        assert_eq!(bits.came(7, 64), 63, "of the fault since");
        bits.looked(7);
        assert_eq!(bits.came(7, 64), 64);
    }

    #[test]
    fn what_a_fork_made_has_clear_bits_that_nobody_cleared() {
        let mut bits = Bits::default();
        bits.forked(7);
        bits.cleared(7);
        bits.looked(7);
        assert_eq!(bits.came(7, 9), 0);
        bits.cleared(7);
        bits.looked(7);
        assert_eq!(bits.came(7, 9), 9, "and now somebody has");
    }

    #[test]
    fn bits_that_came_back_were_no_time_of_the_programs_own() {
        let present = |kind, pages, zeros| EventKind::Present { address: HEAP, kind, pages, zeros };
        let made = |bits: u32, faults: u64| {
            let mut events = vec![(1_000, SHELL, EventKind::Exec), (2_000, SHELL, map(HEAP, 64, RW))];
            events.push((3_000, SHELL, present(PresentKind::Looked, 0, 0)));
            let touches =
                (0..faults).map(|page| (4_000 + page * 2_000, SHELL, fault(HEAP + (page << 12), WRITE)));
            events.extend(touches);
            events.push((20_000, SHELL, present(PresentKind::Looked, 17, 17)));
            events.push((20_000, SHELL, present(PresentKind::Used, bits, 0)));
            events.push((40_000, SHELL, EventKind::Exit));
            let made = program(&events);
            let own = made.tasks[0].steps.iter().map(|step| u64::from(step.own_ns)).sum::<u64>();
            (own, made.counted.bits_ns as u64)
        };
        let (none, five) = (made(0, 0), made(0b1_1111, 0));
        assert_eq!((none.0 - five.0, none.1, five.1), (200, 0, 200), "40 ns each");
        let (of_faults, and_more) = (made(0b11, 2), made(0b111, 2));
        assert_eq!((of_faults.1, and_more.1, of_faults.0 - and_more.0), (0, 40, 40));
    }
}
