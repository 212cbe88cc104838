//! A thread: stretches of accesses, and what the kernel has it do between them.

use std::cell::Cell;
use std::rc::Rc;

use mm::{Machine, Nanos, Node};
use sim::{AccessMix, Pattern};

use crate::promotion::{Program, World};

/// Accesses of the first stretch, by which the length of the next ones is chosen.
const FIRST: u64 = 1 << 14;
/// The unit of counted accesses.
const UNIT: u64 = 1024;
/// How long who has nothing left to do sleeps at a time.
const NAP: Nanos = Nanos(1_000_000_000);

/// A process at work.
pub(super) struct Running {
    pub(super) program: Rc<Program>,
    /// Accesses of each thread; 0: until the end.
    pub(super) accesses: u64,
    pub(super) stretch_ns: u64,
    /// Of each access.
    pub(super) think_ns: u64,
    /// Threads that are not done.
    pub(super) threads: Cell<u32>,
}

impl Running {
    /// A thread's life.
    pub(super) fn run(&self, world: &World) {
        let machine = world.machine();
        // Threads do not run in step.
        machine.sleep(Nanos(machine.random() % self.stretch_ns));
        let (mut left, mut next) = (self.left(), FIRST);
        while left > 0 && !world.stage.is_over() {
            let count = next.min(left);
            let start = machine.now();
            self.stretch(world, count);
            let took = machine.now().0 - start.0;
            next = (u128::from(count) * u128::from(self.stretch_ns) / u128::from(took.max(1))).max(1) as u64;
            left -= count;
            world.balance(&self.program);
        }
        self.threads.set(self.threads.get() - 1);
        if self.threads.get() == 0 {
            if self.accesses > 0 && left == 0 {
                world.stage.tally.sampled("completion", machine.now().0 as f64);
            }
            world.leave(&self.program);
        }
        while !world.stage.is_over() {
            machine.sleep(NAP);
        }
    }

    /// Memory that nobody touches stays until the end.
    pub(super) fn stay(&self, world: &World) {
        while !world.stage.is_over() {
            world.machine().sleep(NAP);
        }
        world.leave(&self.program);
    }

    const fn left(&self) -> u64 {
        if self.accesses == 0 { u64::MAX } else { self.accesses }
    }

    fn stretch(&self, world: &World, count: u64) {
        let machine = world.machine();
        self.program.turn(machine.now());
        let nodes = world.stage.mm.topology().nodes.len();
        let shares = self.program.shares(nodes);
        let mix = AccessMix {
            reads: count,
            writes: 0,
            pattern: Pattern::Random,
            working_set: self.program.working_set(),
            nodes: &shares,
        };
        machine.access_coarsely(mix, Nanos(self.stretch_ns));
        machine.compute(Nanos(count * self.think_ns));
        self.program.access(count);
        tell(world, count, &shares);
    }
}

/// Counts accesses by tier.
fn tell(world: &World, count: u64, shares: &[(Node, u64)]) {
    let whole: u128 = shares.iter().map(|(_, share)| u128::from(*share)).sum();
    let of_slow = shares.iter().filter(|(node, _)| !world.is_of_fast_tier(*node));
    let slow: u128 = of_slow.map(|(_, share)| u128::from(*share)).sum();
    let units = count / UNIT;
    let slow = (u128::from(units) * slow / whole.max(1)) as u64;
    world.stage.tally.note("accesses_slow", slow);
    world.stage.tally.note("accesses_fast", units - slow);
    world.stage.tally.did(units);
}
