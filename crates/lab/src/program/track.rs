//! A task of the recording, on its way to becoming one of the program: its clock, and the steps that it has so far.

use std::collections::BTreeMap;

use mm::Cpu;
use mm::vm::{Touch, Vpn};
use trace::Task;

use super::accesses::WalkedFrom;
use super::clock::Clock;
use super::cuts::Cuts;
use super::layout::Touched;
use super::steps::{Begins, Company, Doing, SignalId, Step, TaskProgram};
use crate::recorded::TaskRef;

/// A fault that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FaultBegun {
    pub(super) time: u64,
    pub(super) space: usize,
    pub(super) found: Touched,
    pub(super) page: Vpn,
    pub(super) touch: Touch,
    /// Its page was seen to come since.
    pub(super) came: bool,
}

/// What a fault that was seen is known by: its page's number in the program, and its error code.
pub(super) type KnownFault = (u64, u32);

/// A task of the recording, on its way to becoming one of the program.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) recorded: Task,
    pub(super) clock: Clock,
    program: TaskProgram,
    /// Its index in the program, once it has done something there.
    pub(super) place: Option<TaskRef>,
    /// Its address space, an index into [`Builder::layouts`], once that is known.
    pub(super) space: Option<usize>,
    /// Where it begins, once that is known.
    pub(super) begins: Option<Begins>,
    /// Whether it has said that it exits.
    pub(super) exited: bool,
    /// When events came since its last step that are only counted: a call that lasts has paid for recording them.
    heard: Vec<u64>,
    /// What it has cut off files.
    pub(super) cuts: Cuts,
    /// So many pages that a call of its needs may come in yet.
    pub(super) needs: u32,
    /// Its last fault.
    pub(super) last_fault: Option<KnownFault>,
    /// The fault on a file that it is in.
    pub(super) fault: Option<FaultBegun>,
    /// Its steps when accessed bits were looked at last.
    looked_at: u32,
    /// Steps that others wait for.
    awaited: BTreeMap<u32, SignalId>,
    /// Its last wait for another task, if that was one of its own process.
    pub(super) woken_within: Option<SignalId>,
}

impl Track {
    pub(super) fn new(recorded: Task) -> Self {
        let program = TaskProgram::new(recorded.name.clone());
        Self {
            recorded,
            clock: Clock::default(),
            program,
            place: None,
            space: None,
            begins: None,
            exited: false,
            heard: vec![],
            cuts: Cuts::default(),
            needs: 0,
            last_fault: None,
            fault: None,
            looked_at: 0,
            awaited: BTreeMap::new(),
            woken_within: None,
        }
    }

    /// The task was seen on `cpu`: what it does from here on it does there.
    pub(super) fn ran_on(&mut self, cpu: Cpu) {
        let next = self.program.steps.len() as u32;
        match self.program.ran_on.last_mut() {
            Some((_, last)) if *last == cpu => {}
            Some((step, last)) if *step == next => *last = cpu,
            _ => self.program.ran_on.push((next, cpu)),
        }
    }

    pub(super) fn push(&mut self, doing: Doing) {
        self.heard.clear();
        let own_ns = self.own_below_a_step();
        self.program.steps.push(Step { own_ns, doing });
    }

    /// An event was recorded on its time at `time` that is only counted.
    pub(super) fn heard(&mut self, time: u64) {
        self.heard.push(time);
    }

    /// How many of these there were from `since` on, and none from here on.
    pub(super) fn take_heard(&mut self, since: u64) -> usize {
        std::mem::take(&mut self.heard).iter().filter(|time| **time >= since).count()
    }

    /// Its steps so far.
    pub(super) fn steps_mut(&mut self) -> &mut [Step] {
        &mut self.program.steps
    }

    /// The index of the last step.
    pub(super) fn last_step(&self) -> usize {
        self.program.steps.len().saturating_sub(1)
    }

    /// The touch that is a step was made at about the same time as another task's of the same page.
    pub(super) fn in_company(&mut self, step: usize, of: Company) {
        if let Some(Step { doing: Doing::Touches { company, .. }, .. }) = self.program.steps.get_mut(step) {
            // Of several others the one that was nearest counts.
            *company = if *company == Company::AtOnce { *company } else { of };
        }
    }

    /// The signal that its step `step` is done, one of `signals` so far.
    pub(super) fn passes(&mut self, step: u32, signals: &mut u32) -> SignalId {
        *self.awaited.entry(step).or_insert_with(|| {
            *signals += 1;
            SignalId(*signals - 1)
        })
    }

    /// Own time since the last step as far as a step can hold it; steps before it hold the rest.
    fn own_below_a_step(&mut self) -> u32 {
        let mut own = self.clock.take_own();
        while own > u64::from(u32::MAX) {
            self.program.steps.push(Step { own_ns: u32::MAX, doing: Doing::Computes });
            own -= u64::from(u32::MAX);
        }
        own as u32
    }

    pub(super) fn push_own(&mut self) {
        let own_ns = self.own_below_a_step();
        if own_ns > 0 && self.place.is_some() {
            self.program.steps.push(Step { own_ns, doing: Doing::Computes });
        }
    }

    /// The process's accessed bits were looked at: what was found holds since the look before.
    pub(super) fn look(&mut self, look: u32) {
        let step = self.program.walked.last().map_or(0, |_| self.looked_at);
        self.program.walked.push(WalkedFrom { step, look });
        self.looked_at = self.program.steps.len() as u32;
    }

    /// At `time` its own time so far becomes steps, if it runs: what comes later begins with a step of its own. Gives its own time since the
    /// process was looked at last, ns.
    pub(super) fn divide(&mut self, time: u64) -> u64 {
        self.clock.pass(time);
        self.push_own();
        let since = self.program.steps.get(self.looked_at as usize..).unwrap_or_default();
        since.iter().map(|step| u64::from(step.own_ns)).sum()
    }

    /// A wait for the world.
    pub(super) fn push_wait(&mut self, slept: u64) {
        let is_known = self.place.is_some() || self.begins.is_some();
        if !is_known || slept == 0 {
            return;
        }
        let mut left = slept;
        while left > 0 {
            let part = left.min(u64::from(u32::MAX)) as u32;
            self.push(Doing::Sleeps(part));
            left -= u64::from(part);
        }
    }

    pub(super) fn finish(mut self) -> TaskProgram {
        self.push_own();
        self.program.awaited = self.awaited.into_iter().collect();
        self.program
    }
}
