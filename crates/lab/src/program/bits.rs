//! What looking at accessed bits cost the program itself: a page whose bit was cleared loses some hundred ns when it is walked to again. A look
//! says which bits have come. A fault sets the bit of its page, too, and that is in its price: what is left of a look without them was paid for.

use std::collections::BTreeMap;

/// Bits that came, by address space.
#[derive(Debug, Default)]
pub(super) struct Bits(BTreeMap<usize, Faulted>);

/// Pages of an address space that a fault brought.
#[derive(Clone, Copy, Debug, Default)]
struct Faulted {
    /// Since the last look.
    since: u64,
    /// Between that and the one before, less the bits that were told of so far.
    before: u64,
}

impl Bits {
    /// A fault brings a page of address space `space`.
    pub(super) fn faulted(&mut self, space: usize) {
        self.0.entry(space).or_default().since += 1;
    }

    /// A look at it begins, or its bits are cleared.
    pub(super) fn looked(&mut self, space: usize) {
        let faulted = self.0.entry(space).or_default();
        *faulted = Faulted { since: 0, before: faulted.since };
    }

    /// That look tells of so many bits; gives how many of them no fault has set.
    pub(super) fn came(&mut self, space: usize, bits: u32) -> u32 {
        let faulted = self.0.entry(space).or_default();
        let by_faults = u64::from(bits).min(faulted.before);
        faulted.before -= by_faults;
        bits - by_faults as u32
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
