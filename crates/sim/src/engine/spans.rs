//! Spans and fixed costs as they happen, and the measurements made of everything counted.

use mm::{Cpu, Knob, KnobId, KnobUse, Nanos, Span};

use super::meter::SpanRecord;
use super::{Core, NO_SPANS};
use crate::lines::SPANS;
use crate::measure::{CpuTime, LockStats, Measurements, TaskTime};
use crate::time::{Ticks, to_nanos};

impl Core {
    /// Fixed instruction costs of `time` on a core of its own.
    #[inline]
    pub(crate) fn instructions(&self, time: Ticks) {
        let time = self.smt.stretched(time);
        self.meter.borrow_mut().instructions(self.span(), time);
        self.advance(time);
    }

    /// A span begins.
    #[inline]
    pub(crate) fn enter(&self, span: Span) -> Nanos {
        let since = to_nanos(self.clock.get());
        if self.in_task() {
            self.spans.set(self.spans.get() << 4 | span as u32);
            self.instructions(self.costs.spans[span as usize]);
        }
        since
    }

    /// The innermost span, which began at `since`, ends.
    #[inline]
    pub(crate) fn leave(&self, span: Span, since: Nanos, work: mm::Work) {
        if !self.in_task() {
            return;
        }
        self.spans.set(self.spans.get() >> 4 | NO_SPANS & 0xf << 28);
        let until = to_nanos(self.clock.get());
        self.meter.borrow_mut().span(self.group.get(), span, Nanos(until.0 - since.0), work);
        if span == Span::Fault {
            self.sched.borrow_mut().faulted(self.task.get());
        }
        if let Some(hook) = self.hook.borrow_mut().as_mut() {
            let (task, cpu) = (mm::TaskId(self.task.get()), Cpu(self.cpu.get()));
            hook(&SpanRecord { span, task, cpu, since, until, work });
        }
    }

    /// A rule read a knob that somebody set. It costs nothing.
    pub(crate) fn knob_used(&self, knob: KnobId, used: KnobUse) {
        self.meter.borrow_mut().knob(knob, used);
    }

    /// Everything measured so far.
    pub(crate) fn measurements(&self) -> Measurements {
        let (meter, lines, locks, sched) =
            (self.meter.borrow(), self.lines.borrow(), self.locks.borrow(), self.sched.borrow());
        let now = self.clock.get();
        let simulated = now.saturating_sub(meter.since);
        let mut costs: [_; SPANS] = std::array::from_fn(|span| meter.cost(span));
        costs.iter_mut().enumerate().for_each(|(span, cost)| cost.touches = lines.spent(span, &self.costs));
        let accesses = lines.accessed();
        let locks: Vec<_> = locks.reports().collect();
        let mut classes = [LockStats::default(); mm::LockClass::ALL.len()];
        for lock in &locks {
            classes[lock.class as usize].add(&lock.stats);
        }
        let cpu_time = |cpu: usize| {
            let (idle, spin) = (sched.idle_time(cpu, now), sched.cpus[cpu].spin);
            let busy = simulated.saturating_sub(idle).saturating_sub(spin);
            CpuTime { busy: to_nanos(busy), idle: to_nanos(idle), spin: to_nanos(spin) }
        };
        Measurements {
            simulated: to_nanos(simulated),
            spans: meter.groups.clone(),
            costs,
            classes,
            locks,
            cpus: (0..sched.cpus.len()).map(cpu_time).collect(),
            tasks: sched
                .tasks
                .iter()
                .map(|task| TaskTime { name: task.name.clone(), waited: to_nanos(task.waited) })
                .collect(),
            accesses,
            context_switches: sched.context_switches,
            yields: meter.yields,
            knobs: meter.knobs.clone(),
        }
    }

    pub(crate) fn forget_knob(&self, knob: Knob) {
        self.meter.borrow_mut().forget_knob(knob);
    }

    /// Forgets what has been measured; time goes on.
    pub(crate) fn reset_measurements(&self) {
        let now = self.clock.get();
        self.meter.borrow_mut().reset(now);
        self.lines.borrow_mut().reset();
        self.locks.borrow_mut().reset();
        self.sched.borrow_mut().reset(now);
    }
}
