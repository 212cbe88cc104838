//! Whether others get the CPU while the program walks its page tables for a new generation: then it is switched to again after that,
//! and a second walk, which often follows at once, is not spared (`lru_gen_use_mm`; docs/reclaim.md#walks-and-ticks).
//!
//! The walk's time passes on the machine's clock only if somebody waits for the CPU; mm asks that clock for ticks.

use std::cell::Cell;

use mm::bare::Moment;
use mm::{Chore, Nanos, SwapIo};

use super::turns::{Preemption, TICK};

/// What an entry costs that a walk finds used: 4.24 ms for 20,480 of them in a trace of 6.12, 4.88 ms in one of 6.18.
const USED_ENTRY: u64 = 207;
const USED_ENTRY_LAZY: u64 = 238;

/// For so long after a page came back from swap RCU's thread has something to do at each tick: what held the swap cache's shadow
/// entries is freed. Two ticks, which is a guess.
const FREES_AFTER: u64 = 8_000_000;

/// Who watches `memory.events` is told at once of an event after such a pause, by a worker; of one that comes sooner, by a timer. The
/// kernel's pause is 12 ms (`CGROUP_FILE_NOTIFY_MIN_INTV`); but here time is spread evenly over the accesses of a line, so that a row
/// of accesses without a fault looks like one. 60 ms are a guess.
const PAUSE: u64 = 60_000_000;

fn tick_of(at: Nanos) -> u64 {
    at.0 / TICK as u64
}

/// What is known of who waits for the CPU.
#[derive(Debug)]
pub(super) struct Walks {
    preemption: Preemption,
    /// When a page last came back from swap.
    swapped_in: Cell<Option<Nanos>>,
    /// When the group last met its limit.
    met_limit: Cell<Option<Nanos>>,
    /// The access in which it did after a pause.
    told_in: Cell<Option<Nanos>>,
    recorder: Cell<Recorder>,
}

/// Who writes down what a mark shows has something to do yet when the program goes on: it has the CPU at the next tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Recorder {
    #[default]
    Sleeps,
    /// The program has not gone on.
    Writes,
    /// The program went on then.
    Waits(Nanos),
}

impl Walks {
    pub(super) fn new(preemption: Preemption) -> Self {
        Self {
            preemption,
            swapped_in: Cell::default(),
            met_limit: Cell::default(),
            told_in: Cell::default(),
            recorder: Cell::default(),
        }
    }

    /// The program comes to a mark.
    pub(super) fn mark(&self) {
        self.recorder.set(Recorder::Writes);
    }

    /// The program goes on at `now`.
    pub(super) fn go_on(&self, now: Nanos) {
        match self.recorder.get() {
            Recorder::Writes => self.recorder.set(Recorder::Waits(now)),
            Recorder::Waits(since) if tick_of(now) > tick_of(since) => self.recorder.set(Recorder::Sleeps),
            _ => {}
        }
    }

    /// The program does `moment` in an access that began at `access`. Gives the time that passes, if somebody waits.
    pub(super) fn hear(&self, access: Nanos, moment: Moment) -> Option<Nanos> {
        match moment {
            Moment::Swaps(SwapIo::Read) => self.swapped_in.set(Some(access)),
            Moment::Spends(Chore::ReclaimPage, _) => self.meet_limit(access),
            Moment::Spends(Chore::RmapStep, entries) => {
                self.meet_limit(access);
                return self.does_somebody_wait(access).then(|| self.time_of(entries));
            }
            _ => {}
        }
        None
    }

    /// Somebody who gets the CPU at a tick that comes in the walk.
    fn does_somebody_wait(&self, access: Nanos) -> bool {
        let is_freed = |at: Nanos| access.0.saturating_sub(at.0) < FREES_AFTER;
        match self.preemption {
            // Who was woken before the walk has had it by then; who is woken by the tick, or whose turn comes by it, has it when the walk ends.
            Preemption::Voluntary => {
                self.recorder.get() != Recorder::Sleeps || self.swapped_in.get().is_some_and(is_freed)
            }
            // Who was woken before the walk has it at the tick; who is woken by that, or whose turn comes by it, at the next.
            Preemption::Lazy => self.told_in.get() == Some(access),
        }
    }

    fn meet_limit(&self, access: Nanos) {
        let is_long_ago = |at: Nanos| access.0.saturating_sub(at.0) > PAUSE;
        if self.met_limit.replace(Some(access)).is_none_or(is_long_ago) {
            self.told_in.set(Some(access));
        }
    }

    fn time_of(&self, entries: u32) -> Nanos {
        let each = match self.preemption {
            Preemption::Voluntary => USED_ENTRY,
            Preemption::Lazy => USED_ENTRY_LAZY,
        };
        Nanos(each * u64::from(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const WALK: Moment = Moment::Spends(Chore::RmapStep, 10);
    const RECLAIM: Moment = Moment::Spends(Chore::ReclaimPage, 1);

    #[test]
    fn time_passes_in_a_walk_while_swapped_pages_come_back() {
        let walks = Walks::new(Preemption::Voluntary);
        assert_eq!(walks.hear(Nanos(MS), WALK), None);
        walks.hear(Nanos(2 * MS), Moment::Swaps(SwapIo::Read));
        assert_eq!(walks.hear(Nanos(9 * MS), WALK), Some(Nanos(2_070)));
        assert_eq!(walks.hear(Nanos(10 * MS), WALK), None);
    }

    #[test]
    fn who_wrote_a_mark_down_has_the_cpu_at_the_next_tick() {
        let walks = Walks::new(Preemption::Voluntary);
        walks.mark();
        walks.go_on(Nanos(9 * MS));
        walks.go_on(Nanos(11 * MS));
        assert_eq!(walks.hear(Nanos(11 * MS), WALK), Some(Nanos(2_070)));
        walks.go_on(Nanos(12 * MS));
        assert_eq!(walks.hear(Nanos(12 * MS), WALK), None, "a tick has come since");
    }

    #[test]
    fn a_lazy_kernel_is_preempted_by_who_was_told_in_the_same_call() {
        let walks = Walks::new(Preemption::Lazy);
        walks.hear(Nanos(100 * MS), RECLAIM);
        assert_eq!(
            walks.hear(Nanos(100 * MS), WALK),
            Some(Nanos(2_380)),
            "the first event is told of at once"
        );
        assert_eq!(walks.hear(Nanos(150 * MS), WALK), None, "too soon after it");
        assert_eq!(walks.hear(Nanos(211 * MS), WALK), Some(Nanos(2_380)));
    }
}
