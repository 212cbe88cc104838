//! Sleeps that another task cuts short. A recording says it of the last one alone, and so that nothing that waits for such a task at its
//! end could take less time than it took when it was recorded, whatever got faster. But two kinds of sleeps before it end likewise:
//!
//! - *Periods*: a task wakes every so often to see whether there is something to do, until another lets it go: a JVM's periodic task, a
//!   monitor's thread, a loop of `usleep`.
//! - *Of the killed*: a process that exits wakes its threads to end them, however they sleep.

use super::steps::{Doing, SignalId, Step};
use super::track::Track;

/// Sleeps in a row that may be somebody's period.
const PERIODS_MIN: usize = 3;
/// A shorter one may be a disk's, ns.
const PERIOD_MIN_NS: u32 = 1_000_000;

impl Track {
    /// Another task wakes it with `signal`: sleeps of a period that lead to this wait end with it, too.
    pub(super) fn periods_end_with(&mut self, signal: SignalId) {
        let sleeps = last_sleeps(self.steps_mut());
        if is_period(sleeps.iter().map(|step| lasted(step)).collect()) {
            end_with(signal, sleeps);
        }
    }

    /// It exits. If another thread of its process woke it to do nothing else, it was killed. Whoever waits for a child and then exits was not.
    pub(super) fn sleeps_end_with_a_kill(&mut self) {
        let woken_within = self.woken_within;
        if let [before @ .., Step { doing: Doing::Awaits(signal), .. }] = self.steps_mut() {
            if woken_within == Some(*signal) {
                end_with(*signal, last_sleeps(before));
            }
        }
    }
}

/// The sleeps since it last waited for another task.
fn last_sleeps(steps: &mut [Step]) -> Vec<&mut Step> {
    let is_wait_for_another = |step: &Step| matches!(step.doing, Doing::Awaits(_) | Doing::AwaitsFor(..));
    let from = steps.iter().rposition(is_wait_for_another).map_or(0, |last| last + 1);
    steps[from..].iter_mut().filter(|step| matches!(step.doing, Doing::Sleeps(_))).collect()
}

fn lasted(step: &Step) -> u32 {
    if let Doing::Sleeps(ns) = step.doing { ns } else { 0 }
}

fn end_with(signal: SignalId, sleeps: Vec<&mut Step>) {
    for step in sleeps {
        step.doing = Doing::AwaitsFor(signal, lasted(step));
    }
}

/// Whether sleeps of such lengths, ns, are a timer's: three in four of them are alike. A busy CPU makes some late.
fn is_period(mut sleeps: Vec<u32>) -> bool {
    sleeps.sort_unstable();
    let Some(&median) = sleeps.get(sleeps.len() / 2) else { return false };
    let alike = sleeps.iter().filter(|ns| ns.abs_diff(median) <= median / 10).count();
    sleeps.len() >= PERIODS_MIN && median >= PERIOD_MIN_NS && alike * 4 >= sleeps.len() * 3
}

#[cfg(test)]
mod tests {
    use mm::TaskId;
    use trace::{EventKind, SwitchState};

    use super::*;
    use crate::program::Program;
    use crate::program::tests::{CHILD, RW, SHELL, WORLD, doings, map, program, program_of_threads};

    /// What of a program's first task is waiting.
    fn waits(made: &Program) -> Vec<Doing> {
        doings(&made.tasks[0]).into_iter().filter(|doing| doing.waits()).collect()
    }

    /// The shell sleeps for each of these times, ns, until its child wakes it after 20 ms more, to do what `then` is.
    fn woken_after(sleeps: &[u64], then: EventKind) -> Vec<(u64, u32, EventKind)> {
        let switch = |next| EventKind::Switch { next: TaskId(next), state: SwitchState::Sleeping };
        let wake = EventKind::Waking { task: TaskId(SHELL) };
        let mut events = vec![
            (0, SHELL, EventKind::Exec),
            (10, SHELL, EventKind::Fork { child: TaskId(CHILD), flags: 0, took_ns: 0 }),
        ];
        let mut now = 1_000;
        for slept in sleeps {
            events.push((now, SHELL, switch(WORLD)));
            now += slept;
            events.push((now, WORLD, wake));
            now += 1_000;
            events.push((now, WORLD, switch(SHELL)));
            now += 1_000;
        }
        events.push((now, SHELL, switch(CHILD)));
        now += 20_000_000;
        events.extend([(now, CHILD, wake), (now + 1_000, CHILD, switch(SHELL))]);
        events.push((now + 2_000, SHELL, then));
        events
    }

    #[test]
    fn whom_another_lets_go_after_periods_would_not_have_slept_on() {
        let goes_on = map(0x5000_0000, 1, RW);
        let until = Doing::AwaitsFor(SignalId(0), 50_000_000);
        let made = program(&woken_after(&[50_000_000; 3], goes_on));
        assert_eq!(waits(&made), [until, until, until, Doing::Awaits(SignalId(0))]);
        let made = program(&woken_after(&[50_000_000, 7_000_000, 21_000_000], goes_on));
        assert_eq!(waits(&made)[..3], [50_000_000, 7_000_000, 21_000_000].map(Doing::Sleeps));
    }

    #[test]
    fn whom_its_process_kills_would_not_have_slept_on_and_who_waits_for_a_child_would() {
        let killed = woken_after(&[50_000_000, 7_000_000], EventKind::Exit);
        let cut_short = [50_000_000, 7_000_000].map(|ns| Doing::AwaitsFor(SignalId(0), ns));
        assert_eq!(waits(&program_of_threads(&killed))[..2], cut_short);
        assert_eq!(waits(&program(&killed))[..2], [50_000_000, 7_000_000].map(Doing::Sleeps));
    }

    #[test]
    fn a_timer_is_told_from_waits_that_differ() {
        assert!(is_period(vec![50_060_000, 50_100_000, 55_000_000, 50_070_000]));
        assert!(is_period(vec![50_060_000, 50_100_000, 91_000_000, 50_070_000]), "a CPU was busy");
        assert!(!is_period(vec![50_060_000, 20_100_000, 91_000_000, 50_070_000]));
        assert!(!is_period(vec![50_060_000, 50_060_000]), "two may be chance");
        assert!(!is_period(vec![90_000; 8]), "a disk's");
        assert!(!is_period(vec![]));
    }
}
