//! Who runs where and when: CPUs with their clocks and run queues, tasks, timers.
//!
//! The next CPU to go on is the one with the smallest clock, then the smallest number. Timers due before it fire first.
//! A task that computes does so as one step; if something more urgent wakes on its CPU in the middle, the step is cut.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use mm::{Cpu, Daemon};

use super::heap::CpuHeap;
use super::names::Names;
use super::state::{CpuMode, CpuState, TaskRecord, TaskState};
use super::{NO_SPANS, place};
use crate::costs::Costs;
use crate::lines::Lines;
use crate::locks::{NOBODY, Owner, SimLock};
use crate::task::Role;
use crate::time::Ticks;

/// With every ordinary task waiting without a time limit, daemons have this long to wake one: 10 s.
const STUCK_MAX: Ticks = 10_000_000_000 << 10;

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Run { task: u32, cpu: u16 },
    AllEnded,
    Limit,
    Stuck,
}

#[derive(Debug)]
pub(crate) struct Sched {
    pub(super) cpus: Vec<CpuState>,
    pub(super) tasks: Vec<TaskRecord>,
    heap: CpuHeap,
    /// (time, order of setting, task, its timer's number)
    timers: BinaryHeap<Reverse<(Ticks, u64, u32, u32)>>,
    timers_set: u64,
    daemons: Vec<(Daemon, u32)>,
    pub(super) names: Names,
    /// Ordinary tasks that have not ended, and those of them that cannot go on by themselves.
    pub(super) live: usize,
    stuck: usize,
    pub(super) stuck_since: Ticks,
    /// When the last ordinary task to end did so.
    pub(super) last_end: Ticks,
    queued: usize,
    pub(super) context_switches: u64,
}

impl Sched {
    pub(super) fn new(cpus: usize) -> Self {
        let cpu = || CpuState {
            mode: CpuMode::Idle,
            clock: 0,
            current: NOBODY,
            queue: VecDeque::new(),
            slice_end: 0,
            until: 0,
            need_resched: false,
            last: NOBODY,
            idle_since: 0,
            idle: 0,
            spin: 0,
        };
        Self {
            cpus: (0..cpus).map(|_| cpu()).collect(),
            tasks: vec![],
            heap: CpuHeap::new(cpus),
            timers: BinaryHeap::new(),
            timers_set: 0,
            daemons: vec![],
            names: Names::default(),
            live: 0,
            stuck: 0,
            stuck_since: 0,
            last_end: 0,
            queued: 0,
            context_switches: 0,
        }
    }

    /// A task that starts at `start`.
    pub(super) fn add(
        &mut self,
        name: String,
        role: Role,
        group: u16,
        allowed: Rc<[Cpu]>,
        start: Ticks,
    ) -> u32 {
        let number = self.tasks.len() as u32;
        match role {
            Role::Ordinary => self.live += 1,
            Role::Background => {}
            Role::Daemon(daemon) => self.daemons.push((daemon, number)),
        }
        self.tasks.push(TaskRecord {
            named: self.names.number(&name),
            name,
            role,
            group,
            state: TaskState::Blocked,
            cpu: allowed.first().map_or(0, |cpu| cpu.0),
            allowed,
            remaining: 0,
            token: false,
            fresh: false,
            timer: 0,
            atomic: 0,
            sliced: false,
            waited: 0,
            spans: NO_SPANS,
            stuck: false,
            space: None,
            yielder: std::ptr::null(),
        });
        self.set_timer(number, start);
        number
    }

    pub(super) fn daemon(&self, daemon: Daemon) -> Option<u32> {
        self.daemons.iter().find(|(known, _)| *known == daemon).map(|(_, task)| *task)
    }

    /// The time before which the CPU numbered `cpu` may do what others can see.
    #[inline]
    pub(super) fn horizon(&self, cpu: u16) -> Ticks {
        let others = match self.heap.first() {
            Some((key, other)) if other > cpu => key,
            Some((key, _)) => key.saturating_sub(1),
            None => Ticks::MAX,
        };
        let timer = self.timers.peek().map_or(Ticks::MAX, |Reverse(timer)| timer.0.saturating_sub(1));
        others.min(timer)
    }

    /// Advances to the next task that has something to do, nothing later than `limit`. Once all ordinary tasks have ended, daemons that hold a
    /// lock go on until none does: who looks at the machine afterwards wants these.
    pub(super) fn next(&mut self, limit: Ticks, lines: &mut Lines, costs: &Costs) -> Next {
        loop {
            let all_ended = self.live == 0;
            if all_ended && self.tasks.iter().all(|task| task.atomic == 0) {
                return Next::AllEnded;
            }
            let or_ended = |next: Next| if all_ended { Next::AllEnded } else { next };
            let cpu = self.heap.first().map(|(key, _)| key);
            let timer = self.timers.peek().map(|Reverse(timer)| timer.0);
            let Some(now) = cpu.into_iter().chain(timer).min() else { return or_ended(Next::Stuck) };
            if self.stuck == self.live && now > self.stuck_since.saturating_add(STUCK_MAX) {
                return or_ended(Next::Stuck);
            }
            if now > limit {
                return or_ended(Next::Limit);
            }
            if timer == Some(now) {
                self.fire(lines, costs);
                continue;
            }
            let Some((key, cpu)) = self.heap.pop() else { continue };
            if let Some(task) = self.dispatch(cpu, key, lines, costs) {
                return Next::Run { task, cpu };
            }
        }
    }

    fn fire(&mut self, lines: &mut Lines, costs: &Costs) {
        if let Some(Reverse((time, _, task, timer))) = self.timers.pop() {
            let sleeper = &self.tasks[task as usize];
            if sleeper.timer == timer && sleeper.state == TaskState::Blocked {
                self.wake(task, time, lines, costs);
            }
        }
    }

    fn set_timer(&mut self, task: u32, time: Ticks) {
        let sleeper = &mut self.tasks[task as usize];
        sleeper.timer = sleeper.timer.wrapping_add(1);
        self.timers_set += 1;
        self.timers.push(Reverse((time, self.timers_set, task, sleeper.timer)));
    }

    /// When the timer of `task` will fire, if it has one.
    pub(super) fn timer_of(&self, task: u32) -> Option<Ticks> {
        let present = self.tasks[task as usize].timer;
        let mut of_task = self.timers.iter().filter(|Reverse(timer)| (timer.2, timer.3) == (task, present));
        of_task.next().map(|Reverse(timer)| timer.0)
    }

    /// `cpu` goes on at `now`: the task to execute, or `None` if it computes or has nothing to do.
    fn dispatch(&mut self, cpu: u16, now: Ticks, lines: &mut Lines, costs: &Costs) -> Option<u32> {
        let state = &mut self.cpus[usize::from(cpu)];
        state.clock = now;
        if let Some(task) = self.tasks.get_mut(state.current as usize) {
            if state.until > 0 {
                task.remaining = state.until - now;
                state.until = 0;
            }
            if task.atomic == 0 {
                let urgent = std::mem::take(&mut state.need_resched);
                if !state.queue.is_empty() && (urgent || now >= state.slice_end) {
                    self.preempt(cpu);
                }
            }
        }
        if self.cpus[usize::from(cpu)].current == NOBODY && !self.pick(cpu, lines, costs) {
            return None;
        }
        let state = &mut self.cpus[usize::from(cpu)];
        let task = state.current;
        let remaining = std::mem::take(&mut self.tasks[task as usize].remaining);
        if remaining > 0 {
            self.compute(cpu, remaining);
            return None;
        }
        state.mode = CpuMode::Running;
        Some(task)
    }

    /// The current task goes back into the queue: behind the others, or only behind the daemons that are in a hurry.
    fn preempt(&mut self, cpu: u16) {
        let state = &mut self.cpus[usize::from(cpu)];
        let task = std::mem::replace(&mut state.current, NOBODY);
        let in_a_hurry = |queued: &&u32| self.tasks[**queued as usize].role != Role::Ordinary;
        let hurried = state.queue.iter().take_while(in_a_hurry).count();
        let sliced = state.clock >= state.slice_end;
        let behind = if hurried > 0 && !sliced { hurried } else { state.queue.len() };
        self.tasks[task as usize].sliced |= sliced;
        state.queue.insert(behind, task);
        self.queued += 1;
    }

    /// The next task of `cpu`'s queue, or one that waits elsewhere, becomes its current one; false if there is none.
    fn pick(&mut self, cpu: u16, lines: &mut Lines, costs: &Costs) -> bool {
        let next = self.cpus[usize::from(cpu)].queue.pop_front();
        let stolen = if next.is_none() && self.queued > 0 { place::steal(self, cpu) } else { None };
        let state = &mut self.cpus[usize::from(cpu)];
        let Some(task) = next.or(stolen) else {
            state.mode = CpuMode::Idle;
            state.idle_since = state.clock;
            lines.change_busy(cpu, -1);
            return false;
        };
        self.queued -= 1;
        if state.last != task && state.last != NOBODY {
            state.clock += costs.context_switch;
            self.context_switches += 1;
        }
        state.last = task;
        state.current = task;
        state.slice_end = state.clock + costs.slice;
        self.tasks[task as usize].cpu = cpu;
        true
    }

    /// The current task of `cpu` computes for `time`.
    pub(super) fn compute(&mut self, cpu: u16, time: Ticks) {
        let state = &mut self.cpus[usize::from(cpu)];
        state.until = state.clock.saturating_add(time);
        let cut = if state.queue.is_empty() || self.tasks[state.current as usize].atomic > 0 {
            Ticks::MAX
        } else if state.need_resched {
            state.clock
        } else {
            state.slice_end.max(state.clock)
        };
        self.ready(cpu, self.cpus[usize::from(cpu)].until.min(cut));
    }

    /// `cpu` goes on at `key`.
    fn ready(&mut self, cpu: u16, key: Ticks) {
        self.cpus[usize::from(cpu)].mode = CpuMode::Ready;
        self.heap.set(cpu, key);
    }

    /// The engine leaves `cpu`, which is ahead of others, and comes back to it in its turn.
    pub(super) fn ahead(&mut self, cpu: u16) {
        self.ready(cpu, self.cpus[usize::from(cpu)].clock);
    }

    /// Whether the slice of the current task of `cpu` has run out since it last asked, or would now if it could.
    pub(super) fn take_sliced(&mut self, cpu: u16, now: Ticks) -> bool {
        let state = &self.cpus[usize::from(cpu)];
        let is_over = !state.queue.is_empty() && now >= state.slice_end;
        std::mem::take(&mut self.tasks[state.current as usize].sliced) || is_over
    }

    /// The current task of `cpu` lets another one run, if there is one.
    pub(super) fn give_way(&mut self, cpu: u16) {
        let state = &mut self.cpus[usize::from(cpu)];
        if !state.queue.is_empty() {
            // Its slice is over, so that it goes behind all others.
            state.slice_end = state.clock;
            self.preempt(cpu);
        }
        self.ahead(cpu);
    }

    /// The current task of `cpu` waits to be woken, until `until` at most.
    pub(super) fn block(&mut self, cpu: u16, until: Ticks) {
        let task = std::mem::replace(&mut self.cpus[usize::from(cpu)].current, NOBODY);
        self.tasks[task as usize].state = TaskState::Blocked;
        if until == Ticks::MAX {
            // No timer of old may end this wait.
            let sleeper = &mut self.tasks[task as usize];
            sleeper.timer = sleeper.timer.wrapping_add(1);
            self.set_stuck(task, cpu);
        } else {
            self.set_timer(task, until);
        }
        self.ahead(cpu);
    }

    /// The current task of `cpu` spins for `lock`.
    pub(super) fn spin(&mut self, cpu: u16, lock: SimLock) {
        let state = &mut self.cpus[usize::from(cpu)];
        state.mode = CpuMode::Spinning;
        let task = state.current;
        self.tasks[task as usize].state = TaskState::Spinning(lock);
        self.set_stuck(task, cpu);
    }

    /// The current task of `cpu` has ended.
    pub(super) fn end(&mut self, cpu: u16) {
        let task = std::mem::replace(&mut self.cpus[usize::from(cpu)].current, NOBODY);
        let state = &mut self.cpus[usize::from(cpu)];
        state.last = NOBODY;
        let task = &mut self.tasks[task as usize];
        task.state = TaskState::Ended;
        if task.role == Role::Ordinary {
            self.live -= 1;
            self.last_end = self.last_end.max(state.clock);
            self.stuck_since = self.stuck_since.max(state.clock);
        }
        self.ahead(cpu);
    }

    fn set_stuck(&mut self, task: u32, cpu: u16) {
        let task = &mut self.tasks[task as usize];
        if task.role == Role::Ordinary {
            task.stuck = true;
            self.stuck += 1;
            self.stuck_since = self.cpus[usize::from(cpu)].clock;
        }
    }

    fn set_free(&mut self, task: u32) {
        let task = &mut self.tasks[task as usize];
        task.state = TaskState::Ready;
        if std::mem::take(&mut task.stuck) {
            self.stuck -= 1;
        }
    }

    /// A spinning CPU goes on at `at`: it has got its lock.
    pub(super) fn end_spin(&mut self, who: Owner, at: Ticks) {
        let state = &mut self.cpus[usize::from(who.cpu)];
        state.spin += at - state.clock;
        state.clock = at;
        self.set_free(who.task);
        self.ahead(who.cpu);
    }

    /// Wakes `task` at `now`. One that is awake keeps the wake-up for its next wait; one that does not exist sleeps on.
    pub(super) fn wake(&mut self, task: u32, now: Ticks, lines: &mut Lines, costs: &Costs) {
        let Some(sleeper) = self.tasks.get_mut(task as usize) else { return };
        if sleeper.state != TaskState::Blocked {
            sleeper.token |= !sleeper.fresh;
            return;
        }
        sleeper.fresh = true;
        self.set_free(task);
        let cpu = place::choose(self, task, lines);
        self.tasks[task as usize].cpu = cpu;
        self.queued += 1;
        let hurried = self.tasks[task as usize].role != Role::Ordinary;
        let state = &mut self.cpus[usize::from(cpu)];
        if hurried {
            state.queue.push_front(task);
        } else {
            state.queue.push_back(task);
        }
        state.need_resched |= hurried && state.current != NOBODY;
        match state.mode {
            CpuMode::Idle => {
                let start = state.clock.max(now);
                // Measuring may have begun anew on a CPU that is ahead of this moment. Leaving idleness is nobody's time on a CPU.
                state.clock = start + costs.wakeup;
                state.idle += state.clock.saturating_sub(state.idle_since);
                lines.change_busy(cpu, 1);
                self.ahead(cpu);
            }
            CpuMode::Ready if state.until > 0 => self.cut(cpu, now),
            CpuMode::Ready | CpuMode::Running | CpuMode::Spinning => {}
        }
    }

    /// Somebody joined the queue of `cpu`, whose task computes: it may have to stop early.
    fn cut(&mut self, cpu: u16, now: Ticks) {
        let state = &self.cpus[usize::from(cpu)];
        if self.tasks[state.current as usize].atomic > 0 {
            return;
        }
        let soonest = state.clock.max(now);
        let stop = if state.need_resched { soonest } else { state.slice_end.max(soonest) };
        self.ready(cpu, state.until.min(stop));
    }

    /// How long `cpu` has been idle until `now`.
    pub(super) fn idle_time(&self, cpu: usize, now: Ticks) -> Ticks {
        let state = &self.cpus[cpu];
        let running = if state.mode == CpuMode::Idle { now.saturating_sub(state.idle_since) } else { 0 };
        state.idle + running
    }

    /// The task numbered `task` has waited for a lock.
    #[inline]
    pub(super) fn waited(&mut self, task: u32, wait: Ticks) {
        let task = &mut self.tasks[task as usize];
        task.waited += wait;
        self.names.waited(task.named, wait);
    }

    /// The task numbered `task` had a fault.
    pub(super) fn faulted(&mut self, task: u32) {
        self.names.faulted(self.tasks[task as usize].named);
    }

    /// Forgets how CPUs and tasks have spent their time before `now`.
    pub(super) fn reset(&mut self, now: Ticks) {
        self.context_switches = 0;
        self.names.reset();
        for task in &mut self.tasks {
            task.waited = 0;
        }
        for cpu in &mut self.cpus {
            cpu.idle = 0;
            cpu.spin = 0;
            cpu.idle_since = cpu.idle_since.max(now);
        }
    }
}
