//! A task's own random numbers: xorshift64, seeded by the run's generator, so that tasks never run in step and one seed
//! gives one result.

use mm::{Machine, Nanos};
use sim::SimMachine;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A sequence that the machine's generator seeds.
    pub(crate) fn new(machine: &SimMachine) -> Self {
        Self(machine.random() | 1)
    }

    /// The sequence of `seed`: the same in every variant of an experiment, whatever happened before.
    pub(crate) fn of(seed: u64) -> Self {
        // splitmix64's mixing, so that seeds next to each other have nothing in common.
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) | 1)
    }

    /// The next number.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, which is not 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The bias is bound / 2^64.
        self.next() % bound
    }

    pub(crate) fn time_below(&mut self, bound: Nanos) -> Nanos {
        Nanos(if bound.0 == 0 { 0 } else { self.below(bound.0) })
    }

    /// About `ns`, up to 1/64 more or less: small differences in own time, so that copies never run in step.
    #[inline]
    pub(crate) fn around(&mut self, ns: u64) -> u64 {
        ns - ns / 64 + self.next() % (ns / 32 + 1)
    }

    /// Puts `items` in random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
