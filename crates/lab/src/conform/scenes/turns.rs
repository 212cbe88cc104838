//! Whose turn it is on a CPU that a program shares with a kswapd: the fair scheduler's rules (EEVDF, 6.12 and later) for these two,
//! by the time that each has had (docs/reclaim.md#kswapds-turns).
//!
//! One has the CPU until a tick finds its slice over and the other with less time behind it. kswapd, when woken, gets it at once if it
//! is owed time; what it is owed it keeps while it sleeps. If it is ahead when it goes to sleep, it stays in the queue until the
//! program has caught up.

/// A tick of kernels with 250 in a second.
pub(super) const TICK: i64 = 4_000_000;

/// The slice on one CPU.
const SLICE: i64 = 700_000;

/// What kswapd is owed at most when it goes to sleep: lag is kept up to a tick or two slices, and what is owed is twice the lag of one of two.
const MOST_OWED: i64 = 2 * if TICK > 2 * SLICE { TICK } else { 2 * SLICE };

/// When the kernel gives the CPU to another task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preemption {
    /// Wherever it asks whether it should (`PREEMPT_VOLUNTARY`, Debian's before 6.13).
    Voluntary,
    /// On the way back to the program; in the kernel not before the tick after the one that said so (`PREEMPT_LAZY`).
    Lazy,
}

/// Where the program is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    Kernel,
    Program,
}

/// Somebody who takes turns, in ns of CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct Runner {
    /// Time had.
    had: i64,
    /// Where its slice ends.
    slice_end: i64,
    /// It keeps the CPU until then, unless it is ahead.
    keeps: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// kswapd sleeps, and is owed so much.
    Sleeps {
        owed: i64,
    },
    /// It sleeps, but stays in the queue, for it is ahead.
    Leaves,
    Waits,
    Runs,
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
    now: i64,
    slice: i64,
    program: Runner,
    kswapd: Runner,
    /// What the program had when the queue was last brought up to date.
    known: i64,
    state: State,
    call: Call,
    /// The program sleeps.
    is_alone: bool,
}

impl Runner {
    /// Its slice is renewed where it is over; says whether it was.
    fn renew(&mut self, slice: i64) -> bool {
        let is_over = self.had >= self.slice_end;
        if is_over {
            self.slice_end = self.had + slice;
            self.keeps = false;
        }
        is_over
    }
}

impl Turns {
    /// On a machine of so many CPUs; nobody is owed anything.
    pub(super) fn new(preemption: Preemption, cpus: usize) -> Self {
        let slice = SLICE * i64::from(1 + cpus.max(1).ilog2());
        Self {
            preemption,
            now: 0,
            slice,
            program: Runner { slice_end: slice, ..Runner::default() },
            kswapd: Runner::default(),
            known: 0,
            state: State::Sleeps { owed: 0 },
            call: Call::None,
            is_alone: false,
        }
    }

    /// CPU time that the two have had.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// The program ran for `ns`.
    pub(super) fn program_ran(&mut self, ns: u64) {
        self.run(ns, |turns| &mut turns.program, Self::tick_of_program);
    }

    /// kswapd did; says whether it has to give way.
    pub(super) fn kswapd_ran(&mut self, ns: u64) -> bool {
        self.run(ns, |turns| &mut turns.kswapd, Self::tick_of_kswapd);
        self.call == Call::Now || self.call == Call::Lazy && self.preemption == Preemption::Voluntary
    }

    fn run(&mut self, ns: u64, who: impl Fn(&mut Self) -> &mut Runner, tick: impl Fn(&mut Self)) {
        let mut left = i64::try_from(ns).unwrap_or(0);
        while left > 0 {
            let part = left.min(TICK - self.now % TICK);
            who(self).had += part;
            self.now += part;
            left -= part;
            if self.now % TICK == 0 {
                tick(self);
            }
        }
    }

    fn tick_of_program(&mut self) {
        self.known = self.program.had;
        self.hurry();
        if self.program.renew(self.slice) && matches!(self.state, State::Leaves | State::Waits) {
            self.call();
        }
        if self.state == State::Leaves && self.call != Call::None && self.is_kswapds() {
            // It is its turn, and it does not want it: now it is gone.
            self.state = State::Sleeps { owed: 0 };
            self.call = Call::None;
        }
    }

    fn tick_of_kswapd(&mut self) {
        self.hurry();
        if self.kswapd.renew(self.slice) && !self.is_alone {
            self.call();
        }
    }

    /// A tick does not let wait what waited since before it.
    fn hurry(&mut self) {
        if self.call == Call::Lazy {
            self.call = Call::Now;
        }
    }

    fn call(&mut self) {
        self.call = self.call.max(Call::Lazy);
    }

    /// Who gets the CPU of those in the queue: who is not ahead, and of equals whose slice ends first.
    fn is_kswapds(&self) -> bool {
        let (program, kswapd) = (&self.program, &self.kswapd);
        match self.state {
            State::Sleeps { .. } => false,
            State::Runs if program.had != kswapd.had => kswapd.had < program.had,
            State::Runs => kswapd.keeps || kswapd.slice_end < program.slice_end,
            _ if program.had != kswapd.had => kswapd.had < program.had,
            _ => !program.keeps && kswapd.slice_end <= program.slice_end,
        }
    }

    /// kswapd is woken.
    pub(super) fn wake(&mut self) {
        match self.state {
            State::Sleeps { owed } => {
                self.update_program();
                self.place_kswapd(self.program.had - owed);
            }
            State::Leaves => {
                // What the program had since the last look is not known yet where kswapd's place is decided.
                if self.kswapd.had < self.known {
                    self.place_kswapd(self.known);
                }
                self.state = State::Waits;
                self.update_program();
            }
            State::Waits | State::Runs => return,
        }
        if self.is_kswapds() {
            self.call();
        }
    }

    fn update_program(&mut self) {
        self.known = self.program.had;
        self.program.renew(self.slice);
    }

    fn place_kswapd(&mut self, had: i64) {
        self.kswapd = Runner { had, slice_end: had + self.slice, keeps: false };
        self.state = State::Waits;
    }

    /// The program is asked whether somebody else should run; says whether kswapd does from now on.
    pub(super) fn goes_to_kswapd(&mut self, at: At) -> bool {
        let is_heard = match self.call {
            Call::None => false,
            Call::Lazy => self.preemption == Preemption::Voluntary || at == At::Program,
            Call::Now => true,
        };
        if self.state != State::Waits || !is_heard {
            return false;
        }
        self.call = Call::None;
        if !self.is_kswapds() {
            return false;
        }
        self.state = State::Runs;
        self.kswapd.keeps = true;
        true
    }

    /// kswapd is to give way; says whether the program runs from now on.
    pub(super) fn goes_to_program(&mut self) -> bool {
        self.call = Call::None;
        if self.is_kswapds() {
            return false;
        }
        self.state = State::Waits;
        self.program_begins();
        true
    }

    /// The program does not want the CPU: says whether kswapd does.
    pub(super) fn program_sleeps(&mut self) -> bool {
        let wants = matches!(self.state, State::Waits | State::Runs);
        if wants {
            self.state = State::Runs;
            self.call = Call::None;
            self.is_alone = true;
            // Who sleeps is not owed more than it was.
            self.program.had = self.program.had.max(self.kswapd.had);
        }
        wants
    }

    /// kswapd goes to sleep.
    pub(super) fn kswapd_sleeps(&mut self) {
        let owed = self.program.had - self.kswapd.had;
        self.kswapd.renew(self.slice);
        self.state = if owed >= 0 { State::Sleeps { owed: owed.min(MOST_OWED) } } else { State::Leaves };
        self.call = Call::None;
        self.is_alone = false;
        self.program_begins();
    }

    fn program_begins(&mut self) {
        self.program.keeps = true;
        self.known = self.program.had;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// kswapd was woken after the program ran for `ran`, and owed nothing.
    fn woken(preemption: Preemption, ran: u64) -> Turns {
        let mut turns = Turns::new(preemption, 1);
        turns.program_ran(ran);
        turns.wake();
        turns
    }

    #[test]
    fn who_is_woken_after_a_slice_gets_the_cpu_at_once_or_on_the_way_back() {
        assert!(woken(Preemption::Voluntary, 800_000).goes_to_kswapd(At::Kernel));
        let mut lazy = woken(Preemption::Lazy, 800_000);
        assert!(!lazy.goes_to_kswapd(At::Kernel));
        assert!(lazy.goes_to_kswapd(At::Program));
    }

    #[test]
    fn who_is_woken_within_a_slice_waits_for_the_next_tick() {
        let mut turns = woken(Preemption::Voluntary, 600_000);
        // Both have had the same, and the program's slice ends first.
        assert!(!turns.goes_to_kswapd(At::Kernel));
        turns.program_ran(3_300_000);
        assert!(!turns.goes_to_kswapd(At::Kernel));
        turns.program_ran(200_000);
        assert!(turns.goes_to_kswapd(At::Kernel));
    }

    #[test]
    fn a_tick_takes_the_cpu_from_who_has_had_more() {
        let mut turns = woken(Preemption::Voluntary, 3_000_000);
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
        let mut turns = woken(Preemption::Lazy, 3_000_000);
        assert!(turns.goes_to_kswapd(At::Program));
        assert!(!turns.kswapd_ran(1_500_000));
        assert!(turns.kswapd_ran(4_000_000));
    }

    #[test]
    fn what_it_is_owed_it_keeps_while_it_sleeps() {
        let mut turns = woken(Preemption::Voluntary, 100_000);
        turns.program_ran(3_900_000);
        assert!(turns.goes_to_kswapd(At::Kernel));
        turns.kswapd_ran(1_000_000);
        turns.kswapd_sleeps();
        turns.program_ran(10_000);
        turns.wake();
        // Though the program's slice has only begun: it is ahead.
        assert!(turns.goes_to_kswapd(At::Kernel));
    }

    #[test]
    fn who_was_ahead_is_in_no_hurry_and_owed_nothing_after_a_tick() {
        let mut turns = woken(Preemption::Voluntary, 2_000_000);
        assert!(turns.goes_to_kswapd(At::Kernel));
        turns.kswapd_ran(1_500_000);
        turns.kswapd_sleeps();
        assert_eq!(turns.state, State::Leaves);
        turns.program_ran(400_000);
        turns.program_ran(100_000);
        turns.wake();
        assert!(!turns.goes_to_kswapd(At::Kernel));
        turns.state = State::Leaves;
        turns.program_ran(4_000_000);
        assert_eq!(turns.state, State::Sleeps { owed: 0 });
    }

    #[test]
    fn while_the_program_sleeps_kswapd_works() {
        let mut turns = woken(Preemption::Lazy, 100_000);
        assert!(turns.program_sleeps());
        assert!(!turns.kswapd_ran(9_000_000));
        turns.kswapd_sleeps();
        assert!(!turns.program_sleeps());
    }
}
