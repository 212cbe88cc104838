//! Queue spin locks: first come, first served; a waiter costs nobody else anything until the lock goes to it.
//!
//! A free lock costs the way of its line from where it was last. A held one goes straight to the longest waiter when it
//! is given back, at the cost of a hand-over between the two CPUs. A lock may have been given back "in the future": its
//! holder ran a little ahead of others. A CPU that comes before that time waits until then.

use std::collections::VecDeque;

use mm::LockClass;

use crate::costs::Costs;
use crate::measure::{LockReport, LockStats};
use crate::profile::{Closeness, CpuPosition};
use crate::time::{Ticks, to_nanos};

/// A lock of the simulated machine: a number. Its state lives in the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimLock(pub(crate) u32);

pub(crate) const NOBODY: u32 = u32::MAX;
/// Holds a lock outside of any task, while a machine is set up or looked at.
pub(crate) const OUTSIDE: u32 = NOBODY - 1;

/// A CPU and the task that it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    pub(crate) task: u32,
    pub(crate) cpu: u16,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    who: Owner,
    since: Ticks,
}

#[derive(Debug)]
struct LockState {
    class: LockClass,
    index: u32,
    /// [`NOBODY`] when free.
    holder: u32,
    /// The CPU that has the lock's line, if one ever took it.
    last: Option<u16>,
    /// More than one CPU has taken it.
    shared: bool,
    since: Ticks,
    /// When it was last given back.
    free_at: Ticks,
    waiters: VecDeque<Waiter>,
    stats: Stats,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    acquired: u64,
    contended: u64,
    failed_tries: u64,
    hand_overs: u64,
    wait: Ticks,
    wait_max: Ticks,
    hold: Ticks,
    hold_max: Ticks,
}

/// How an attempt to take a lock ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockTaken {
    /// The caller has it from `at` on.
    Now { at: Ticks },
    /// The caller waited for a holder that ran ahead, and has it from `at` on; `hand_over` of that was the lock's way.
    Later { at: Ticks, hand_over: Ticks },
    /// The caller is in the queue.
    Queued,
    /// The caller holds it already.
    ByCaller,
}

/// A lock was given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Given {
    pub(crate) class: LockClass,
    pub(crate) held: Ticks,
    /// Who has it now, and from when on.
    pub(crate) to: Option<Grant>,
}

/// A waiter gets its lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    pub(crate) who: Owner,
    /// When it began to wait.
    pub(crate) since: Ticks,
    pub(crate) at: Ticks,
    /// The part of the wait that was the lock's way from CPU to CPU.
    pub(crate) hand_over: Ticks,
}

/// All locks.
#[derive(Debug)]
pub(crate) struct Locks {
    states: Vec<LockState>,
    places: Vec<CpuPosition>,
}

impl Locks {
    pub(crate) fn new(places: Vec<CpuPosition>) -> Self {
        Self { states: vec![], places }
    }

    pub(crate) fn create(&mut self, class: LockClass, index: u32) -> SimLock {
        let number = self.states.len() as u32;
        self.states.push(LockState {
            class,
            index,
            holder: NOBODY,
            last: None,
            // These are everybody's from the start.
            shared: matches!(class, LockClass::Zone | LockClass::List | LockClass::Barn),
            since: 0,
            free_at: 0,
            waiters: VecDeque::new(),
            stats: Stats::default(),
        });
        SimLock(number)
    }

    #[inline]
    fn state(&mut self, lock: SimLock) -> &mut LockState {
        &mut self.states[lock.0 as usize]
    }

    pub(crate) fn class(&self, lock: SimLock) -> LockClass {
        self.states[lock.0 as usize].class
    }

    /// Whether `cpu` may take `lock` without regard to what others do at the same time: nobody else ever took it, or,
    /// for a pageset's lock, nobody did since `cpu` had it.
    #[inline]
    pub(crate) fn is_local(&self, lock: SimLock, cpu: u16) -> bool {
        self.states[lock.0 as usize].is_local(cpu)
    }

    /// Takes a lock that is local to the CPU ([`Self::is_local`]) and was not given back "in the future": what that costs.
    /// `None`, and nothing done, if it is not such a lock: [`Self::take`] is for all of them.
    #[inline]
    pub(crate) fn take_own(&mut self, lock: SimLock, who: Owner, now: Ticks, costs: &Costs) -> Option<Ticks> {
        let state = self.state(lock);
        if !state.is_local(who.cpu) || state.free_at > now {
            return None;
        }
        let cost = state.instruction(costs) + costs.transfer(Closeness::Same);
        state.last = Some(who.cpu);
        state.holder = who.task;
        state.begin(now + cost);
        Some(cost)
    }

    fn closeness(places: &[CpuPosition], from: u16, to: u16) -> Closeness {
        if from == to {
            return Closeness::Same;
        }
        places[usize::from(from)].closeness(&places[usize::from(to)])
    }

    pub(crate) fn take(&mut self, lock: SimLock, who: Owner, now: Ticks, costs: &Costs) -> LockTaken {
        let Self { states, places } = self;
        let state = &mut states[lock.0 as usize];
        if state.holder == who.task {
            return LockTaken::ByCaller;
        }
        if state.holder != NOBODY {
            state.waiters.push_back(Waiter { who, since: now });
            return LockTaken::Queued;
        }
        let closeness = state.last.map_or(Closeness::Same, |last| Self::closeness(places, last, who.cpu));
        state.shared |= state.last.is_some_and(|last| last != who.cpu);
        state.last = Some(who.cpu);
        state.holder = who.task;
        if state.free_at <= now {
            let at = now + state.instruction(costs) + costs.transfer(closeness);
            state.begin(at);
            return LockTaken::Now { at };
        }
        let hand_over = costs.handover(closeness);
        let at = state.free_at + hand_over;
        state.waited(at - now);
        state.begin(at);
        LockTaken::Later { at, hand_over }
    }

    /// Takes `lock` if it is free at `now`; says when the caller has it.
    pub(crate) fn try_take(&mut self, lock: SimLock, who: Owner, now: Ticks, costs: &Costs) -> Option<Ticks> {
        let state = self.state(lock);
        if state.holder != NOBODY || state.free_at > now && state.last != Some(who.cpu) {
            state.stats.failed_tries += 1;
            return None;
        }
        match self.take(lock, who, now, costs) {
            LockTaken::Now { at } | LockTaken::Later { at, .. } => Some(at),
            LockTaken::Queued | LockTaken::ByCaller => None,
        }
    }

    /// Takes `lock` outside of any task, where time stands still; whether it was free.
    pub(crate) fn take_outside(&mut self, lock: SimLock) -> bool {
        let state = self.state(lock);
        let free = state.holder == NOBODY;
        if free {
            state.holder = OUTSIDE;
        }
        free
    }

    /// Gives back a lock taken by [`Self::take_outside`]; false if it was not.
    pub(crate) fn give_outside(&mut self, lock: SimLock) -> bool {
        let state = self.state(lock);
        let held = state.holder == OUTSIDE;
        if held {
            state.holder = NOBODY;
        }
        held
    }

    /// What a look at a lock that is held costs: its line's way.
    pub(crate) fn look(&self, lock: SimLock, cpu: u16, costs: &Costs) -> Ticks {
        let last = self.states[lock.0 as usize].last;
        costs.lock + last.map_or(0, |last| costs.transfer(Self::closeness(&self.places, last, cpu)))
    }

    /// Gives back a lock that `task` holds and nobody waits for: its class, and how long it was held. `None`, and nothing
    /// done, if it is not such a lock: [`Self::give`] is for all of them.
    #[inline]
    pub(crate) fn give_alone(&mut self, lock: SimLock, task: u32, now: Ticks) -> Option<(LockClass, Ticks)> {
        let state = self.state(lock);
        if state.holder != task || !state.waiters.is_empty() {
            return None;
        }
        Some((state.class, state.end(now)))
    }

    /// Gives `lock` back; `None` if `who` does not hold it.
    pub(crate) fn give(&mut self, lock: SimLock, who: Owner, now: Ticks, costs: &Costs) -> Option<Given> {
        let Self { states, places } = self;
        let state = &mut states[lock.0 as usize];
        if state.holder != who.task {
            return None;
        }
        let held = state.end(now);
        let to = state.waiters.pop_front().map(|next| {
            let hand_over = costs.handover(Self::closeness(places, who.cpu, next.who.cpu));
            let at = now.max(next.since) + hand_over;
            state.shared = true;
            state.last = Some(next.who.cpu);
            state.holder = next.who.task;
            state.stats.hand_overs += 1;
            state.waited(at - next.since);
            state.begin(at);
            Grant { who: next.who, since: next.since, at, hand_over }
        });
        Some(Given { class: state.class, held, to })
    }

    /// Whoever holds `lock` is taken down with its task: nothing is measured, and who waits is taken down as well.
    pub(crate) fn let_go(&mut self, lock: SimLock) {
        self.state(lock).holder = NOBODY;
    }

    pub(crate) fn has_waiters(&self, lock: SimLock) -> bool {
        !self.states[lock.0 as usize].waiters.is_empty()
    }

    /// The holder's task and what the lock is called, for messages.
    pub(crate) fn describe(&self, lock: SimLock) -> (u32, String) {
        let state = &self.states[lock.0 as usize];
        (state.holder, format!("lock {} {}", state.class.name(), state.index))
    }

    pub(crate) fn reports(&self) -> impl Iterator<Item = LockReport> {
        self.states.iter().map(|state| LockReport {
            class: state.class,
            index: state.index,
            stats: state.stats.report(),
        })
    }

    pub(crate) fn reset(&mut self) {
        self.states.iter_mut().for_each(|state| state.stats = Stats::default());
    }
}

impl LockState {
    #[inline]
    fn is_local(&self, cpu: u16) -> bool {
        let biased =
            !self.shared || matches!(self.class, LockClass::Pcp | LockClass::CpuSlab | LockClass::LruBatch);
        biased && self.holder == NOBODY && self.last.is_none_or(|last| last == cpu)
    }

    /// The lock is given back; how long it was held.
    #[inline]
    fn end(&mut self, now: Ticks) -> Ticks {
        let held = now - self.since;
        self.stats.hold += held;
        self.stats.hold_max = self.stats.hold_max.max(held);
        self.holder = NOBODY;
        self.free_at = now;
        held
    }

    /// Taking the lock when it is free and its line at hand. A CPU's part of a slab cache needs no lock in the kernel.
    fn instruction(&self, costs: &Costs) -> Ticks {
        if matches!(self.class, LockClass::CpuSlab | LockClass::LruBatch) { 0 } else { costs.lock }
    }

    fn begin(&mut self, at: Ticks) {
        self.since = at;
        self.stats.acquired += 1;
    }

    fn waited(&mut self, wait: Ticks) {
        self.stats.contended += 1;
        self.stats.wait += wait;
        self.stats.wait_max = self.stats.wait_max.max(wait);
    }
}

impl Stats {
    fn report(&self) -> LockStats {
        LockStats {
            acquired: self.acquired,
            contended: self.contended,
            failed_tries: self.failed_tries,
            wait: to_nanos(self.wait),
            wait_max: to_nanos(self.wait_max),
            hold: to_nanos(self.hold),
            hold_max: to_nanos(self.hold_max),
            hand_overs: self.hand_overs,
        }
    }
}
