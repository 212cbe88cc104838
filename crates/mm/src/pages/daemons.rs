//! Work that no request waits for: the vmstat tick of each CPU, and emptying pagesets of other CPUs. (kswapd is in
//! `reclaim`.)

use crate::ground::{Cpu, Machine, Node, ZoneId};
use crate::pages::pcp::{Pageset, Tuning};
use crate::pages::stat::SlowEvents;
use crate::pages::zone::{Zone, zone_flag};
use crate::pages::{Above, Pages};
use crate::rules::knobs::Knob;
use crate::rules::policy::{HoldRule, ScaleRule};

/// Idle ticks after which a CPU gives a remote zone's pages back.
const EXPIRE_TICKS: u8 = 3;

impl<M: Machine> Pages<M> {
    /// The vmstat tick of `cpu`: folds its counters, lets its pagesets decay.
    pub(crate) fn vmstat_tick(&self, above: &impl Above<M>, cpu: Cpu) {
        self.knobs.decide(&self.machine, Knob::StatInterval, |interval| interval);
        let local = self.topology.cpus[usize::from(cpu.0)].node;
        for zone in &self.zones {
            let pageset = &zone.pagesets[usize::from(cpu.0)];
            if zone.stat.fold(&pageset.free_diff) {
                pageset.pcp.lock(&self.machine).set_expire(EXPIRE_TICKS);
            }
            if let Some(turn) = &zone.turn {
                turn.fold(cpu);
            }
            self.decay_pageset(zone.id, cpu);
            let expired = self.expired_pages(zone, pageset, local);
            self.give_back(zone, pageset, expired, HoldRule::Whole);
        }
        self.tick_low_zones(above, cpu);
    }

    /// Pages of a remote zone's pageset that nobody has used for some ticks, and that are to be freed now.
    fn expired_pages(&self, zone: &Zone<M>, pageset: &Pageset<M>, local: Node) -> u32 {
        let mut pcp = pageset.pcp.lock(&self.machine);
        if !pcp.expires(zone.node, local) {
            return 0;
        }
        pcp.tune(self.zone_cx(zone.id), |tuning, _| tuning.count.min(tuning.batch))
    }

    /// What the vmstat tick of `cpu` does to its pageset of `zone` alone: `high` falls, and what is then too much goes back.
    pub fn decay_pageset(&self, zone: ZoneId, cpu: Cpu) {
        let cx = self.zone_cx(zone);
        let pageset = &cx.zone.pagesets[usize::from(cpu.0)];
        let decayed = pageset.pcp.lock(&self.machine).tune(cx, Tuning::decay);
        self.give_back(cx.zone, pageset, decayed, self.decay_hold());
    }

    /// Yafang Shao's series lets the decay free a batch at a time, years before mainline did.
    fn decay_hold(&self) -> HoldRule {
        match self.policy.rules().lists.scale {
            ScaleRule::Series => HoldRule::Batch,
            ScaleRule::Mainline => self.policy.rules().lists.hold,
        }
    }

    /// Nanoseconds between two ticks.
    pub fn stat_interval_ns(&self) -> u64 {
        self.knobs.get(Knob::StatInterval) * 1_000_000_000
    }

    /// Drains `pages` of a pageset, a hold of both locks at a time.
    fn give_back(&self, zone: &Zone<M>, pageset: &Pageset<M>, pages: u32, rule: HoldRule) {
        let mut left = pages;
        while left > 0 {
            let mut pcp = pageset.pcp.lock(&self.machine);
            let hold = pcp.tune(self.zone_cx(zone.id), |tuning, _| tuning.hold_size(rule, left));
            if pcp.drain(self.zone_cx(zone.id), pageset.beside(), hold, 0) == 0 {
                break;
            }
            left -= hold;
        }
    }

    /// Empties every pageset of every CPU (the kernel's `drain_all_pages`).
    pub fn drain_all(&self) {
        if let Some(zone) = self.zones.first() {
            SlowEvents::bump(&zone.stat.slow.drain_all);
        }
        for cpu in 0..self.topology.cpus.len() {
            self.drain_cpu(Cpu(cpu as u16));
        }
    }

    /// Empties the pagesets of `cpu`, at most a scaled batch in one hold.
    pub fn drain_cpu(&self, cpu: Cpu) {
        for zone in &self.zones {
            self.drain_pageset(zone, cpu);
        }
    }

    /// Empties the pageset of `cpu` in `zone`, at most a scaled batch in one hold.
    pub(crate) fn drain_pageset(&self, zone: &Zone<M>, cpu: Cpu) {
        let pageset = &zone.pagesets[usize::from(cpu.0)];
        let cx = self.zone_cx(zone.id);
        loop {
            let mut pcp = pageset.pcp.lock(&self.machine);
            let hold = pcp.tune(cx, |tuning, setting| tuning.count.min(tuning.batch << setting.scale));
            if hold == 0 || pcp.drain(cx, pageset.beside(), hold, 0) == 0 {
                break;
            }
        }
    }

    /// Says that reclaim is at work on `node`, or no more: its pagesets shrink meanwhile. For replaying what a kernel's
    /// kswapd did.
    pub fn set_reclaim_active(&self, node: Node, state: ReclaimState) {
        for zone in self.zones.iter().filter(|zone| zone.node == node) {
            match state {
                ReclaimState::Active => zone.set_flag(zone_flag::RECLAIM_ACTIVE),
                ReclaimState::Idle => {
                    zone.clear_flag(zone_flag::RECLAIM_ACTIVE);
                }
            }
        }
    }
}

/// Whether kswapd is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReclaimState {
    /// It is.
    Active,
    /// It sleeps.
    Idle,
}
