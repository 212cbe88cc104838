//! Who plays RCU: a task that ends a grace period every so often, and each CPU's ticks, which run the callbacks whose grace
//! period has ended.
//!
//! As in Linux, callbacks are run for 3 ms at most at a stretch; what is left is shared with the task in turns, as ksoftirqd
//! would be given the CPU. The grace period itself is a parameter, for it hangs on how often a tick finds each CPU in user
//! mode, which is not simulated. Where the policy asks for grace periods to be hurried, each CPU is interrupted for one. Left out: that a CPU with more than 10,000 callbacks has others hurried.

use std::rc::Rc;

use mm::{Cpu, Daemon, Machine, Nanos};
use sim::{Path, Sim, TaskSpec};

use crate::stage::Stage;

/// From one tick to the next, HZ=1000. Ticks come at the same moment on all CPUs, as they do unless `skew_tick` is set, so
/// that all of them begin with their callbacks at once.
const TICK: Nanos = Nanos(1_000_000);
/// How long callbacks are run at a stretch, and how long the task then has the CPU.
const STRETCH: Nanos = Nanos(3_000_000);
/// Sending an interrupt to a CPU, and how long it takes until all have answered, once it is sent. Both from memory; calls here
/// take some microseconds each, but a CPU may be in the middle of its callbacks.
const SEND: Nanos = Nanos(200);
const ANSWER: Nanos = Nanos(300_000);
/// Callbacks between two looks at the clock.
const BATCH: u32 = 32;

/// Grace periods end every `period`, from now on.
pub(crate) fn start(sim: &Sim, stage: &Rc<Stage>, period: Nanos) {
    let period = period.0;
    let stage = Rc::clone(stage);
    sim.spawn_daemon(Daemon::Rcu, TaskSpec::new("rcu_gp").on(Cpu(0)), move || {
        let mut next = stage.machine().now().0 + period;
        loop {
            let left = next.saturating_sub(stage.machine().now().0);
            if left > 0 {
                stage.machine().block(Nanos(left));
            }
            if stage.machine().now().0 >= next {
                next += period;
            } else if stage.mm.slabs().grace_period_wanted() {
                expedite(&stage);
            } else {
                continue;
            }
            stage.mm.slabs().end_grace_period();
        }
    });
}

/// An expedited grace period: every CPU is interrupted, and answers when it is next in user mode.
fn expedite(stage: &Stage) {
    let cpus = stage.cpus.len() as u64;
    stage.machine().compute(Nanos(SEND.0 * cpus));
    stage.expedited.set(stage.expedited.get() + 1);
    stage.machine().sleep(ANSWER);
}

/// A CPU's ticks, seen from the one task on it.
pub(crate) struct Ticks {
    next: Nanos,
    callback: Nanos,
    /// Expedited grace periods that interrupted this CPU.
    interrupts: u64,
}

impl Ticks {
    /// Ticks from now on; a callback costs `callback` besides what it frees.
    pub(crate) fn new(stage: &Stage, callback: Nanos) -> Self {
        Self { next: tick_after(stage.machine().now()), callback, interrupts: stage.expedited.get() }
    }

    /// To be called between two system calls: if a tick is due, it runs callbacks.
    #[inline]
    pub(crate) fn look(&mut self, stage: &Stage) {
        if self.interrupts != stage.expedited.get() {
            self.interrupts = stage.expedited.get();
            stage.machine().charge(Path::Interrupt);
        }
        if stage.machine().now() >= self.next {
            self.tick(stage);
        }
    }

    #[cold]
    fn tick(&mut self, stage: &Stage) {
        let machine = stage.machine();
        machine.charge(Path::Interrupt);
        let began = machine.now();
        let left_over = loop {
            let ran = stage.mm.slabs().run_deferred(BATCH);
            machine.compute(Nanos(self.callback.0 * u64::from(ran)));
            if ran < BATCH {
                break false;
            }
            if machine.now().0 - began.0 >= STRETCH.0 {
                break true;
            }
        };
        let now = machine.now();
        self.next = if left_over { Nanos(now.0 + STRETCH.0) } else { tick_after(now) };
    }
}

/// The first tick after `now`.
fn tick_after(now: Nanos) -> Nanos {
    Nanos((now.0 / TICK.0 + 1) * TICK.0)
}
