//! Whose turn it is on a CPU that a program shares with a kswapd and the kernel's workers: the fair scheduler's rules for these ([`cfs`] before
//! 6.6, [`eevdf`] since), by the time that each has had (docs/reclaim.md#kswapds-turns).
//!
//! One has the CPU until a tick finds that another should, or until somebody is woken who should. When that is heeded is the kernel's
//! [`Preemption`].

mod cfs;
mod eevdf;
mod fair;

use cfs::Cfs;
use eevdf::Eevdf;
use fair::{Fair, Task};
use mm::version::Version;

/// A tick of kernels with 250 in a second.
pub(super) const TICK: i64 = 4_000_000;

/// What a worker that tells of reclaim (`vmpressure`) has to do, with the switch to it: 4 to 6 µs in traces of 6.18 and 7.2.
const WORK: i64 = 5_000;

/// When the kernel gives the CPU to another task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preemption {
    /// Wherever it asks whether it should (`PREEMPT_VOLUNTARY`, Debian's before 6.13).
    Voluntary,
    /// On the way back to the program; in the kernel not before the tick after the one that said so (`PREEMPT_LAZY`).
    Lazy,
}

impl Preemption {
    /// As Debian has it.
    pub(super) fn of(version: Version) -> Self {
        if version >= Version::new(6, 13) { Self::Lazy } else { Self::Voluntary }
    }
}

/// Where the program is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    Kernel,
    Program,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Call {
    None,
    /// The next way back to the program will do.
    Lazy,
    Now,
}

/// The turns on a CPU.
#[derive(Debug)]
pub(super) struct Turns {
    preemption: Preemption,
    queue: Box<dyn Fair>,
    now: i64,
    /// Who has the CPU.
    runs: Option<Task>,
    call: Call,
}

impl Turns {
    /// Those of `version` on a machine of so many CPUs. The program has the CPU, and nobody is owed anything.
    pub(super) fn new(version: Version, cpus: usize) -> Self {
        let queue: Box<dyn Fair> = if version >= Version::new(6, 6) {
            Box::new(Eevdf::new(version, cpus))
        } else {
            Box::new(Cfs::new(cpus))
        };
        let mut turns =
            Self { preemption: Preemption::of(version), queue, now: 0, runs: None, call: Call::None };
        turns.program_wakes();
        turns
    }

    /// CPU time that all have had.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// The program ran for `ns`.
    pub(super) fn program_ran(&mut self, ns: u64) {
        self.run(i64::try_from(ns).unwrap_or(0));
    }

    /// kswapd did; says whether it has to give way.
    pub(super) fn kswapd_ran(&mut self, ns: u64) -> bool {
        self.run(i64::try_from(ns).unwrap_or(0));
        self.call == Call::Now || self.call == Call::Lazy && self.preemption == Preemption::Voluntary
    }

    fn run(&mut self, mut left: i64) {
        while left > 0 {
            let slice = self.queue.slice_left().map_or(i64::MAX, |left| left.max(1));
            let part = left.min(TICK - self.now % TICK).min(slice);
            self.queue.ran(part);
            self.now += part;
            left -= part;
            if part == slice {
                self.queue.slice_ends();
                self.call = Call::Now;
            }
            if self.now % TICK == 0 {
                self.tick();
            }
        }
    }

    fn tick(&mut self) {
        // A tick does not let wait what waited since before it.
        if self.call == Call::Lazy {
            self.call = Call::Now;
        }
        if self.queue.tick() {
            self.call();
        }
    }

    fn call(&mut self) {
        self.call = self.call.max(Call::Lazy);
    }

    fn wake_up(&mut self, task: Task) {
        if self.queue.wake(task) {
            self.call();
        }
    }

    /// kswapd is woken.
    pub(super) fn wake(&mut self) {
        self.wake_up(Task::Kswapd);
    }

    /// A worker is.
    pub(super) fn wake_worker(&mut self) {
        self.wake_up(Task::Worker);
    }

    /// The CPU goes to whose turn it is; a worker has done what it has to before this returns.
    fn switch(&mut self) -> Option<Task> {
        loop {
            self.call = Call::None;
            self.runs = self.queue.pick();
            if self.runs != Some(Task::Worker) {
                return self.runs;
            }
            self.run(WORK);
            self.queue.sleep();
        }
    }

    /// The program is asked whether somebody else should run; says whether kswapd does from now on.
    pub(super) fn goes_to_kswapd(&mut self, at: At) -> bool {
        let is_heard = match self.call {
            Call::None => false,
            Call::Lazy => self.preemption == Preemption::Voluntary || at == At::Program,
            Call::Now => true,
        };
        is_heard && self.runs == Some(Task::Program) && self.switch() == Some(Task::Kswapd)
    }

    /// kswapd is to give way; says whether the program runs from now on.
    pub(super) fn goes_to_program(&mut self) -> bool {
        self.switch() == Some(Task::Program)
    }

    /// The program does not want the CPU, until kswapd sleeps: says whether that has it.
    pub(super) fn program_sleeps(&mut self) -> bool {
        if self.runs == Some(Task::Program) {
            self.queue.sleep();
            self.switch();
        }
        let is_kswapds = self.runs == Some(Task::Kswapd);
        if !is_kswapds {
            self.program_wakes();
        }
        is_kswapds
    }

    fn program_wakes(&mut self) {
        self.wake_up(Task::Program);
        self.switch();
    }

    /// kswapd goes to sleep.
    pub(super) fn kswapd_sleeps(&mut self) {
        self.queue.sleep();
        if self.switch().is_none() {
            self.program_wakes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUNTARY: Version = Version::new(6, 12);
    const LAZY: Version = Version::new(6, 18);
    const WITH_TIMER: Version = Version::new(7, 2);
    const CFS: Version = Version::new(6, 1);

    /// kswapd was woken after the program ran for `ran`, and owed nothing.
    fn woken(version: Version, ran: u64) -> Turns {
        let mut turns = Turns::new(version, 1);
        turns.program_ran(ran);
        turns.wake();
        turns
    }

    #[test]
    fn who_is_woken_after_a_slice_gets_the_cpu_at_once_or_on_the_way_back() {
        assert!(woken(VOLUNTARY, 800_000).goes_to_kswapd(At::Kernel));
        let mut lazy = woken(LAZY, 800_000);
        assert!(!lazy.goes_to_kswapd(At::Kernel));
        assert!(lazy.goes_to_kswapd(At::Program));
    }

    #[test]
    fn who_is_woken_within_a_slice_waits_for_the_next_tick_or_for_its_end() {
        let mut turns = woken(VOLUNTARY, 600_000);
        // Both have had the same, and the program's slice ends first.
        assert!(!turns.goes_to_kswapd(At::Kernel));
        turns.program_ran(3_300_000);
        assert!(!turns.goes_to_kswapd(At::Kernel));
        turns.program_ran(200_000);
        assert!(turns.goes_to_kswapd(At::Kernel));

        let mut turns = woken(WITH_TIMER, 600_000);
        turns.program_ran(99_000);
        assert!(!turns.goes_to_kswapd(At::Program));
        turns.program_ran(2_000);
        assert!(turns.goes_to_kswapd(At::Kernel), "though in the kernel");
    }

    #[test]
    fn a_tick_takes_the_cpu_from_who_has_had_more() {
        let mut turns = woken(VOLUNTARY, 3_000_000);
        assert!(turns.goes_to_kswapd(At::Kernel));
        assert!(!turns.kswapd_ran(900_000));
        assert!(turns.kswapd_ran(200_000));
        assert!(turns.goes_to_program());
        turns.program_ran(3_000_000);
        assert!(!turns.goes_to_kswapd(At::Program));
        turns.program_ran(1_000_000);
        assert!(turns.goes_to_kswapd(At::Program));
    }

    #[test]
    fn in_the_kernel_a_lazy_call_waits_for_a_second_tick() {
        let mut turns = woken(LAZY, 3_000_000);
        assert!(turns.goes_to_kswapd(At::Program));
        assert!(!turns.kswapd_ran(1_500_000));
        assert!(turns.kswapd_ran(4_000_000));
    }

    /// The program has had 3.9 ms more than kswapd, which sleeps.
    fn owed(version: Version) -> Turns {
        let mut turns = woken(version, 100_000);
        turns.program_ran(3_900_000);
        assert!(turns.goes_to_kswapd(At::Program));
        turns.kswapd_ran(1_000_000);
        turns
    }

    #[test]
    fn what_it_is_owed_it_keeps_while_it_sleeps() {
        let mut turns = owed(VOLUNTARY);
        turns.kswapd_sleeps();
        turns.program_ran(10_000);
        turns.wake();
        // Though the program's slice has only begun: it is ahead.
        assert!(turns.goes_to_kswapd(At::Kernel));
    }

    #[test]
    fn a_worker_that_is_owed_more_takes_from_what_kswapd_is_owed() {
        // It waits while kswapd works, and is owed half a millisecond; kswapd is owed a fifth of one when it is woken again.
        let before = || {
            let mut turns = owed(LAZY);
            turns.wake_worker();
            turns.kswapd_ran(1_500_000);
            turns.kswapd_sleeps();
            turns.program_ran(10_000);
            turns.wake();
            assert!(turns.goes_to_kswapd(At::Program));
            turns.kswapd_ran(700_000);
            turns
        };
        let is_due = |mut turns: Turns| {
            turns.kswapd_sleeps();
            turns.program_ran(10_000);
            turns.wake();
            turns.goes_to_kswapd(At::Program)
        };
        assert!(is_due(before()));
        let mut turns = before();
        turns.wake_worker();
        assert!(!is_due(turns));
    }

    #[test]
    fn who_was_ahead_is_in_no_hurry_and_owed_nothing_after_a_tick() {
        for version in [VOLUNTARY, LAZY] {
            let mut turns = woken(version, 2_000_000);
            assert!(turns.goes_to_kswapd(At::Program));
            turns.kswapd_ran(1_500_000);
            turns.kswapd_sleeps();
            turns.program_ran(500_000);
            turns.wake();
            assert!(!turns.goes_to_kswapd(At::Program), "it is ahead by a millisecond");
        }
        let mut turns = woken(VOLUNTARY, 2_000_000);
        assert!(turns.goes_to_kswapd(At::Kernel));
        turns.kswapd_ran(1_500_000);
        turns.kswapd_sleeps();
        turns.program_ran(4_500_000);
        assert!(!turns.goes_to_kswapd(At::Kernel), "it does not want it, and has left");
        turns.program_ran(100_000);
        turns.wake();
        assert!(!turns.goes_to_kswapd(At::Kernel), "and is owed nothing");
    }

    #[test]
    fn before_6_6_who_slept_long_is_half_a_period_behind() {
        let mut turns = woken(CFS, 2_000_000);
        assert!(turns.goes_to_kswapd(At::Kernel), "2 ms behind, and 1 is enough");
        assert!(!turns.kswapd_ran(1_900_000));
        assert!(!turns.kswapd_ran(2_000_000), "a tick finds that it had it for less than half a period");
        assert!(turns.kswapd_ran(4_000_000));
        assert!(turns.goes_to_program());
        assert!(!woken(CFS, 900_000).goes_to_kswapd(At::Kernel), "less than 1 ms behind");
    }

    #[test]
    fn while_the_program_sleeps_kswapd_works() {
        for version in [CFS, VOLUNTARY, LAZY, WITH_TIMER] {
            let mut turns = woken(version, 100_000);
            assert!(turns.program_sleeps());
            turns.kswapd_ran(9_000_000);
            assert!(!turns.goes_to_program());
            turns.kswapd_sleeps();
            assert!(!turns.program_sleeps());
            assert_eq!(turns.runs, Some(Task::Program));
        }
    }
}
