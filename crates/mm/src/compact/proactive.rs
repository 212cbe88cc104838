//! Compaction that nobody asked for (since 5.9): as long as a node's free memory is in pieces, its kcompactd looks every
//! 500 ms and makes huge blocks, so that requests find some (`vm.compaction_proactiveness`; docs/rules/compaction.md).
//!
//! Linux's kcompactd looks all the time. This one is woken by a vmstat tick that finds the node's counters above the mark,
//! and goes back to sleep when they are below: where nothing is in pieces, nobody notices it. What kcompactd was asked for when
//! nothing could be done about it is looked into then, too.

use super::control::{By, CompactGoal, Effort};
use super::{CompactDoor, CompactEvent, CompactGround, Mode};
use crate::ground::{Cpu, Daemon, Machine, MigrateType, Nanos, Node, ZoneKind};
use crate::pages::{Zone, zone_flag};
use crate::rules::knobs::Knob;
use crate::rules::policy::ProactiveRule;

/// How often kcompactd looks.
const INTERVAL: Nanos = Nanos(500_000_000);

/// And after it could do nothing about it (64 times as long).
const BACK_OFF: Nanos = Nanos(INTERVAL.0 << 6);

/// What came of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Looked {
    /// Too little is in pieces, or the policy does not mind.
    Fine,
    /// kswapd is at work: later.
    Busy,
    /// Less is in pieces now.
    Progress,
    /// As much as before is.
    NoProgress,
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Whether anybody could compact unasked: the policy lets it, and there are pages that could move.
    fn may_be_proactive(self) -> bool {
        self.rules().compact.proactive != ProactiveRule::Never && self.lru().has_pages()
    }

    /// Whether anybody does: the knob is not 0.
    fn is_proactive(self) -> bool {
        self.may_be_proactive() && self.knobs().get(Knob::CompactionProactiveness) > 0
    }

    /// The vmstat tick of `cpu`: that of a node's first CPU looks whether its kcompactd has anything to look at. Counters
    /// are read as they are, without a lock.
    pub(crate) fn tick_compaction(self, cpu: Cpu) {
        let node = self.topology().cpus[usize::from(cpu.0)].node;
        let is_first =
            self.topology().cpus.iter().position(|other| other.node == node) == Some(usize::from(cpu.0));
        if !is_first || !self.may_be_proactive() || self.machine().now() < self.own().asked(node).due() {
            return;
        }
        let is_asked = self.own().asked(node).is_asked() && self.is_proactive();
        // With the knob at 0 no score is above the mark.
        if self.is_fragmented(score_by_counters(self.zones(), node)) || is_asked {
            self.machine().wake(Daemon::Kcompactd(node));
        }
    }

    /// What kcompactd of `node` does besides what it is asked for ([`CompactDoor::kcompactd`]). Gives how long it sleeps then;
    /// `None`: until it is woken.
    pub fn compact_proactively(self, node: Node) -> Option<Nanos> {
        let (asked, now) = (self.own().asked(node), self.machine().now());
        if now < asked.due() {
            return Some(Nanos(asked.due().0 - now.0));
        }
        let pause = match self.look_at_node(node) {
            Looked::Fine => return None,
            Looked::Busy | Looked::Progress => INTERVAL,
            Looked::NoProgress => BACK_OFF,
        };
        asked.set_due(Nanos(self.machine().now().0 + pause.0));
        Some(pause)
    }

    /// kcompactd of `node` was at work: it looks again after the usual time.
    pub(super) fn look_soon(self, node: Node) {
        if self.is_proactive() {
            self.own().asked(node).set_due(Nanos(self.machine().now().0 + INTERVAL.0));
        }
    }

    fn look_at_node(self, node: Node) -> Looked {
        if !self.is_proactive() {
            if M::WATCHES_KNOBS && self.may_be_proactive() {
                self.is_fragmented(score_by_counters(self.zones(), node));
            }
            return Looked::Fine;
        }
        let before = self.fragmentation_score(node);
        if !self.is_fragmented(before) {
            return Looked::Fine;
        }
        let zones = || self.zones().iter().filter(|zone| zone.node() == node && !zone.is_offline());
        if zones().any(|zone| zone.has_flag(zone_flag::RECLAIM_ACTIVE)) {
            return Looked::Busy;
        }
        if let Some(zone) = zones().next() {
            self.own().count(zone.id(), CompactEvent::Unasked, 1);
        }
        for zone in zones() {
            self.compact_zone(zone, proactive_goal(zone));
        }
        if self.fragmentation_score(node) < before { Looked::Progress } else { Looked::NoProgress }
    }
}

/// [`CompactDoor::fragmentation_score`] of `node` by the counters of `zones`, which other CPUs may be ahead of.
fn score_by_counters<M: Machine>(zones: &[Zone<M>], node: Node) -> u32 {
    let of_node = || zones.iter().filter(|zone| zone.node() == node);
    let present: u64 = of_node().map(|zone| u64::from(zone.present())).sum();
    let weighed = |zone: &Zone<M>| {
        let (free, large) = (u64::from(zone.free_pages()), u64::from(zone.stat().free_large()));
        let score = (free.saturating_sub(large) * 100).checked_div(free).unwrap_or(0);
        score * u64::from(zone.present()) / (present + 1)
    };
    of_node().map(weighed).sum::<u64>() as u32
}

fn proactive_goal<M: Machine>(zone: &Zone<M>) -> CompactGoal {
    CompactGoal {
        by: By::Proactive,
        mode: Mode::SyncLight,
        effort: Effort::WholeZone,
        order: None,
        migratetype: MigrateType::Movable,
        highest: ZoneKind::Movable,
        mark: zone.mark_min(),
    }
}
