//! The watchdog: ends a run in which simulated time stands still.
//!
//! A task that takes no time and never ends would keep the engine busy for ever: nothing else runs until its CPU's clock
//! has moved. Each resumed task and each call to the machine that may take no time counts as an event here. Events that
//! follow each other at the very same tick add up; the first one at another tick starts anew. That is enough: clocks
//! never go back, and the engine resumes the CPU that is furthest behind, so an endless row of events without progress
//! ends up at one tick.
//!
//! The wall clock is read only while time stands still, and only to end the run with an error: it reaches no result. A
//! task that loops without ever calling the machine is beyond the watchdog's reach.

use std::cell::Cell;
use std::time::{Duration, Instant};

use mm::Span;

use super::sched::Sched;
use super::state::{CpuMode, TaskRecord, TaskState};
use super::{Core, SimOptions};
use crate::error::{SimError, Standstill};
use crate::locks::Locks;
use crate::task::Role;
use crate::time::{Ticks, to_nanos};

/// Events at one tick before the wall clock is read for the first time: ordinary runs never come so far.
const UNWATCHED: u64 = 64;

/// At most so many events between two looks at the wall clock.
const LOOK_EVERY: u64 = 4096;

/// Tasks that an error lists; the others are counted.
const LISTED_MAX: usize = 100;

/// How long simulated time has stood still.
#[derive(Debug)]
pub(super) struct Watch {
    at: Cell<Ticks>,
    events: Cell<u64>,
    /// When the wall clock was first read at this tick.
    since: Cell<Option<Instant>>,
    events_max: u64,
    wall_max: Duration,
}

impl Watch {
    pub(super) const fn new(options: &SimOptions) -> Self {
        Self {
            at: Cell::new(0),
            events: Cell::new(0),
            since: Cell::new(None),
            events_max: options.still_events_max,
            wall_max: options.still_wall_max,
        }
    }

    /// Something happened at `now`. What has come to its limit, if something has.
    #[inline]
    fn event(&self, now: Ticks) -> Option<Standstill> {
        if now != self.at.get() {
            self.at.set(now);
            self.events.set(0);
            return None;
        }
        let events = self.events.get() + 1;
        self.events.set(events);
        if events < UNWATCHED { None } else { self.look(events) }
    }

    #[cold]
    fn look(&self, events: u64) -> Option<Standstill> {
        if events == UNWATCHED {
            self.since.set(Some(Instant::now()));
        }
        if events >= self.events_max {
            return Some(Standstill::Events(events));
        }
        if events % LOOK_EVERY != 0 && !events.is_power_of_two() {
            return None;
        }
        let still = self.since.get().map_or(Duration::ZERO, |since| since.elapsed());
        (still >= self.wall_max).then_some(Standstill::Wall(self.wall_max))
    }
}

impl Core {
    /// A task asks the machine for something that may take no time: that it must not do for ever.
    #[inline]
    pub(crate) fn watch(&self) {
        if !self.in_task() {
            return;
        }
        if let Some(limit) = self.watch.event(self.now()) {
            self.stand_still(limit);
        }
    }

    #[cold]
    fn stand_still(&self, limit: Standstill) {
        // Tasks that are being taken down cannot fail any more.
        if !self.ending.get() {
            self.fail(self.standstill(limit));
        }
    }

    /// The engine has made a task the running one: the error if time stands still, or if nobody wants to know any more.
    pub(super) fn watch_engine(&self) -> Option<SimError> {
        if self.stop.is_set() {
            return Some(SimError::Stopped);
        }
        self.watch.event(self.now()).map(|limit| self.standstill(limit))
    }

    #[cold]
    fn standstill(&self, limit: Standstill) -> SimError {
        let (sched, locks) = (self.sched.borrow(), self.locks.borrow());
        let running = self.task.get();
        let mut tasks = vec![];
        let mut asleep = 0;
        for (number, task) in (0..).zip(&sched.tasks).filter(|(_, task)| task.state != TaskState::Ended) {
            if task.role != Role::Ordinary && task.state == TaskState::Blocked {
                asleep += 1;
                continue;
            }
            let spans = if number == running { self.spans.get() } else { task.spans };
            tasks.push(format!("{}: {}{}", task.name, doing(&sched, &locks, number), inside(spans)));
        }
        let unlisted = tasks.len().saturating_sub(LISTED_MAX);
        tasks.truncate(LISTED_MAX);
        if unlisted > 0 {
            tasks.push(format!("and {unlisted} more tasks"));
        }
        if asleep > 0 {
            tasks.push(format!("daemons and timers that sleep: {asleep}"));
        }
        SimError::Standstill { at: to_nanos(self.now()), task: self.task_name(running), limit, tasks }
    }
}

/// What each of the first eight ordinary tasks that have not ended waits for.
pub(super) fn waiting(sched: &Sched, locks: &Locks) -> Vec<String> {
    let left = |task: &TaskRecord| task.role == Role::Ordinary && task.state != TaskState::Ended;
    let stuck = (0..).zip(&sched.tasks).filter(|(_, task)| left(task));
    stuck.take(8).map(|(number, task)| format!("{} {}", task.name, doing(sched, locks, number))).collect()
}

/// What the task numbered `number`, which has not ended, does.
fn doing(sched: &Sched, locks: &Locks, number: u32) -> String {
    let name = |task: u32| sched.tasks.get(task as usize).map_or("nobody", |task| &task.name);
    let task = &sched.tasks[number as usize];
    let cpu = &sched.cpus[usize::from(task.cpu)];
    match task.state {
        TaskState::Spinning(lock) => {
            let (holder, what) = locks.describe(lock);
            format!("waits for {what}, which {} holds", name(holder))
        }
        TaskState::Ready if cpu.current != number => format!("waits for its turn on CPU {}", task.cpu),
        TaskState::Ready if cpu.mode == CpuMode::Running => format!("runs on CPU {}", task.cpu),
        TaskState::Ready => format!("computes on CPU {}", task.cpu),
        TaskState::Blocked => sched.timer_of(number).map_or_else(
            || "waits to be woken".to_owned(),
            |until| format!("sleeps until {} ns", to_nanos(until).0),
        ),
        TaskState::Ended => "has ended".to_owned(),
    }
}

/// The innermost of a task's open spans, in words.
fn inside(spans: u32) -> String {
    let innermost = Span::ALL.get((spans & 15) as usize);
    innermost.map_or_else(String::new, |span| format!(", in {}", span.name()))
}
