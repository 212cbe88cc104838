//! Whose turn it is on a CPU that a program shares with a kswapd, the flusher and the kernel's workers: the fair scheduler's rules for these ([`cfs`] before
//! 6.6, [`eevdf`] since), by the time that each has had (docs/reclaim.md#kswapds-turns).
//!
//! One has the CPU until a tick finds that another should, or until somebody is woken who should. When that is heeded is the kernel's
//! [`Preemption`].

mod cfs;
mod eevdf;
mod fair;

use cfs::Cfs;
use eevdf::Eevdf;
use fair::Fair;
pub(in crate::conform::scenes) use fair::Task;
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

    /// kswapd or the flusher did; says whether it has to give way.
    pub(super) fn worked(&mut self, ns: u64) -> bool {
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

    /// From now on the program is so many, which share what it has.
    pub(super) fn set_programs(&mut self, programs: u64) {
        self.queue.set_programs(i64::try_from(programs).unwrap_or(1).max(1));
    }

    /// kswapd, the flusher or a worker is woken.
    pub(super) fn wake(&mut self, task: Task) {
        if self.queue.wake(task) {
            self.call();
        }
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

    /// The same where somebody is there: the program, if nobody else is.
    fn next(&mut self) -> Task {
        self.switch().unwrap_or_else(|| self.program_wakes())
    }

    fn program_wakes(&mut self) -> Task {
        self.wake(Task::Program);
        self.switch().unwrap_or(Task::Program)
    }

    /// The program is asked whether somebody else should run; says who does from now on.
    pub(super) fn asked(&mut self, at: At) -> Task {
        let is_heard = match self.call {
            Call::None => false,
            Call::Lazy => self.preemption == Preemption::Voluntary || at == At::Program,
            Call::Now => true,
        };
        if is_heard && self.runs == Some(Task::Program) { self.next() } else { Task::Program }
    }

    /// kswapd or the flusher is to give way; says who runs from now on.
    pub(super) fn gives_way(&mut self) -> Task {
        self.next()
    }

    /// kswapd or the flusher goes to sleep; says who runs from now on.
    pub(super) fn sleeps(&mut self) -> Task {
        self.queue.sleep();
        self.next()
    }

    /// The program does not want the CPU until all others sleep; says who runs from now on.
    pub(super) fn program_sleeps(&mut self) -> Task {
        if self.runs == Some(Task::Program) {
            self.queue.sleep();
            return self.next();
        }
        self.runs.unwrap_or(Task::Program)
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
        turns.wake(Task::Kswapd);
        turns
    }

    #[test]
    fn who_is_woken_after_a_slice_gets_the_cpu_at_once_or_on_the_way_back() {
        assert_eq!(woken(VOLUNTARY, 800_000).asked(At::Kernel), Task::Kswapd);
        let mut lazy = woken(LAZY, 800_000);
        assert_eq!(lazy.asked(At::Kernel), Task::Program);
        assert_eq!(lazy.asked(At::Program), Task::Kswapd);
    }

    #[test]
    fn who_is_woken_within_a_slice_waits_for_the_next_tick_or_for_its_end() {
        let mut turns = woken(VOLUNTARY, 600_000);
        // Both have had the same, and the program's slice ends first.
        assert_eq!(turns.asked(At::Kernel), Task::Program);
        turns.program_ran(3_300_000);
        assert_eq!(turns.asked(At::Kernel), Task::Program);
        turns.program_ran(200_000);
        assert_eq!(turns.asked(At::Kernel), Task::Kswapd);

        let mut turns = woken(WITH_TIMER, 600_000);
        turns.program_ran(99_000);
        assert_eq!(turns.asked(At::Program), Task::Program);
        turns.program_ran(2_000);
        assert_eq!(turns.asked(At::Kernel), Task::Kswapd, "though in the kernel");
    }

    #[test]
    fn a_tick_takes_the_cpu_from_who_has_had_more() {
        let mut turns = woken(VOLUNTARY, 3_000_000);
        assert_eq!(turns.asked(At::Kernel), Task::Kswapd);
        assert!(!turns.worked(900_000));
        assert!(turns.worked(200_000));
        assert_eq!(turns.gives_way(), Task::Program);
        turns.program_ran(3_000_000);
        assert_eq!(turns.asked(At::Program), Task::Program);
        turns.program_ran(1_000_000);
        assert_eq!(turns.asked(At::Program), Task::Kswapd);
    }

    #[test]
    fn in_the_kernel_a_lazy_call_waits_for_a_second_tick() {
        let mut turns = woken(LAZY, 3_000_000);
        assert_eq!(turns.asked(At::Program), Task::Kswapd);
        assert!(!turns.worked(1_500_000));
        assert!(turns.worked(4_000_000));
    }

    /// The program has had 3.9 ms more than kswapd, which sleeps.
    fn owed(version: Version) -> Turns {
        let mut turns = woken(version, 100_000);
        turns.program_ran(3_900_000);
        assert_eq!(turns.asked(At::Program), Task::Kswapd);
        turns.worked(1_000_000);
        turns
    }

    #[test]
    fn what_it_is_owed_it_keeps_while_it_sleeps() {
        let mut turns = owed(VOLUNTARY);
        turns.sleeps();
        turns.program_ran(10_000);
        turns.wake(Task::Kswapd);
        // Though the program's slice has only begun: it is ahead.
        assert_eq!(turns.asked(At::Kernel), Task::Kswapd);
    }

    #[test]
    fn a_worker_that_is_owed_more_takes_from_what_kswapd_is_owed() {
        // It waits while kswapd works, and is owed half a millisecond; kswapd is owed a fifth of one when it is woken again.
        let before = || {
            let mut turns = owed(LAZY);
            turns.wake(Task::Worker);
            turns.worked(1_500_000);
            turns.sleeps();
            turns.program_ran(10_000);
            turns.wake(Task::Kswapd);
            assert_eq!(turns.asked(At::Program), Task::Kswapd);
            turns.worked(700_000);
            turns
        };
        let is_due = |mut turns: Turns| {
            turns.sleeps();
            turns.program_ran(10_000);
            turns.wake(Task::Kswapd);
            turns.asked(At::Program) == Task::Kswapd
        };
        assert!(is_due(before()));
        let mut turns = before();
        turns.wake(Task::Worker);
        assert!(!is_due(turns));
    }

    #[test]
    fn who_was_ahead_is_in_no_hurry_and_owed_nothing_after_a_tick() {
        for version in [VOLUNTARY, LAZY] {
            let mut turns = woken(version, 2_000_000);
            assert_eq!(turns.asked(At::Program), Task::Kswapd);
            turns.worked(1_500_000);
            turns.sleeps();
            turns.program_ran(500_000);
            turns.wake(Task::Kswapd);
            assert_eq!(turns.asked(At::Program), Task::Program, "it is ahead by a millisecond");
        }
        let mut turns = woken(VOLUNTARY, 2_000_000);
        assert_eq!(turns.asked(At::Kernel), Task::Kswapd);
        turns.worked(1_500_000);
        turns.sleeps();
        turns.program_ran(4_500_000);
        assert_eq!(turns.asked(At::Kernel), Task::Program, "it does not want it, and has left");
        turns.program_ran(100_000);
        turns.wake(Task::Kswapd);
        assert_eq!(turns.asked(At::Kernel), Task::Program, "and is owed nothing");
    }

    #[test]
    fn before_6_6_who_slept_long_is_half_a_period_behind() {
        let mut turns = woken(CFS, 2_000_000);
        assert_eq!(turns.asked(At::Kernel), Task::Kswapd, "2 ms behind, and 1 is enough");
        assert!(!turns.worked(1_900_000));
        assert!(!turns.worked(2_000_000), "a tick finds that it had it for less than half a period");
        assert!(turns.worked(4_000_000));
        assert_eq!(turns.gives_way(), Task::Program);
        assert_eq!(woken(CFS, 900_000).asked(At::Kernel), Task::Program, "less than 1 ms behind");
    }

    #[test]
    fn two_programs_have_two_parts_of_three() {
        for version in [CFS, VOLUNTARY, LAZY, WITH_TIMER] {
            let mut turns = Turns::new(version, 1);
            turns.set_programs(2);
            turns.wake(Task::Kswapd);
            let (mut runs, mut had) = (Task::Program, [0, 0]);
            for _ in 0..3_000 {
                had[usize::from(runs == Task::Kswapd)] += 1;
                runs = if runs == Task::Program {
                    turns.program_ran(100_000);
                    turns.asked(At::Program)
                } else if turns.worked(100_000) {
                    turns.gives_way()
                } else {
                    Task::Kswapd
                };
            }
            assert!((950..1_050).contains(&had[1]), "{version:?}: {had:?}");
        }
    }

    #[test]
    fn while_the_program_sleeps_kswapd_works() {
        for version in [CFS, VOLUNTARY, LAZY, WITH_TIMER] {
            let mut turns = woken(version, 100_000);
            assert_eq!(turns.program_sleeps(), Task::Kswapd);
            turns.worked(9_000_000);
            assert_eq!(turns.gives_way(), Task::Kswapd);
            assert_eq!(turns.sleeps(), Task::Program);
            assert_eq!(turns.program_sleeps(), Task::Program);
        }
    }
}
