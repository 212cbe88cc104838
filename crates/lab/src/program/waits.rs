//! How a task's time goes on: its own, sleep, and the time in which it waits for a peer.

use mm::TaskId;
use trace::SwitchState;

use super::build::Builder;
use super::steps::{Doing, SignalId};

/// Tasks that had slept and went on, without an event that says when and by whom. perf on Linux 6.18 drops those of an idle task.
const NOT_SEEN: &str = "wakes_not_seen";

impl Builder {
    /// The task's clock goes on to an event of its own.
    pub(super) fn happens(&mut self, time: u64, task: usize) {
        if self.is_of_before(time, task) {
            return;
        }
        self.goes_on(time, task);
        let clock = &mut self.tracks[task].clock;
        clock.advance(time);
        clock.owe(self.costs.event_ns);
    }

    /// A call of the task's returns, which took `took` ns.
    pub(super) fn returns(&mut self, time: u64, task: usize, took: u64) {
        if self.is_of_before(time, task) {
            return;
        }
        self.goes_on(time.saturating_sub(took), task);
        let clock = &mut self.tracks[task].clock;
        clock.called(time, took);
        clock.owe(self.costs.event_ns);
    }

    /// A call of the task's returns that made another task, and took `took` ns. How long it took, recording apart, ns.
    pub(super) fn forking(&mut self, time: u64, task: usize, took: u32) -> u64 {
        let recorded = self.tracks[task].take_heard(time.saturating_sub(u64::from(took)));
        self.returns(time, task, u64::from(took));
        (f64::from(took) - recorded as f64 * self.costs.event_ns).max(0.0) as u64
    }

    /// Whether an event at `time` tells what was there when the recording began: the task does nothing then.
    fn is_of_before(&self, time: u64, task: usize) -> bool {
        self.tracks[task].clock.begins_at(time)
    }

    /// The task does something. If it slept and nothing said that it woke, it slept until now: when it woke is not known, and what it
    /// did since is less than what it waited for.
    fn goes_on(&mut self, time: u64, task: usize) {
        let track = &mut self.tracks[task];
        if let Some(slept) = track.clock.goes_on(time) {
            track.push_wait(slept);
            self.program.omit(NOT_SEEN);
        }
    }

    pub(super) fn switch(&mut self, time: u64, task: usize, next: TaskId, state: SwitchState) {
        if self.is_inside(task) {
            self.program.counted.went_on(time);
            self.leaves_in_fault(task);
            self.goes_on(time, task);
            let clock = &mut self.tracks[task].clock;
            if state == SwitchState::Runnable { clock.yield_cpu(time) } else { clock.sleep(time) }
        }
        let next = next.0 as usize;
        if self.is_inside(next) {
            let slept = self.tracks[next].clock.enter(time);
            self.tracks[next].push_wait(slept.unwrap_or(0));
        }
    }

    /// Somebody lets `woken` go on: a task of the program, which it then waits for, or the world.
    pub(super) fn wake(&mut self, time: u64, waker: usize, woken: usize) {
        if !self.is_inside(woken) {
            return;
        }
        let Some(slept) = self.tracks[woken].clock.wake(time) else { return };
        if waker == woken || !self.is_inside(waker) || self.tracks[waker].place.is_none() {
            self.tracks[woken].push_wait(slept);
            return;
        }
        let signal = SignalId(self.program.signals);
        self.program.signals += 1;
        self.settle_fault(waker);
        self.happens(time, waker);
        self.tracks[waker].push(Doing::Signals(signal));
        self.place(woken);
        let is_of_its_process = self.tracks[waker].recorded.pid == self.tracks[woken].recorded.pid;
        self.tracks[woken].periods_end_with(signal);
        self.tracks[woken].woken_within = is_of_its_process.then_some(signal);
        self.tracks[woken].push(Doing::Awaits(signal));
    }
}
