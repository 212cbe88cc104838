//! kswapd: reclaim that no request waits for. Woken when a request finds no zone above its low mark, it works until the
//! high mark is reached for the order that was asked for, or for single pages where that is hopeless.
//!
//! Since 4.8 a node is in balance when any zone that would do is above its high mark; before, every zone had to be
//! (for a block of a higher order: zones with a quarter of the pages).

use super::balance::{Cache, Trims};
use super::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, Met, ReclaimDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{AtomicU32, AtomicU64, Daemon, Machine, Nanos, Node, Order, Relaxed, ZoneKind};
use crate::lru::SWAP_CLUSTER_MAX;
use crate::pages::{AllocFlags, Counters, Level, ReclaimState, SlowEvents, Zone, zone_flag};
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::{KswapdZoneRule, LruRule};

/// kswapd first sleeps so long, and looks again whether the node is still in balance.
const SHORT_SLEEP: Nanos = Nanos(100_000_000);

/// How long kswapd waits after a run that freed nothing. (The kernel's does not: there, others get the CPU anyway.)
const NOTHING_FREED: Nanos = Nanos(10_000_000);

/// The bit of `kernel.numa_balancing` that stands for memory tiers.
const NUMA_BALANCING_TIERS: u64 = 2;

/// What a node's kswapd is told, and how it fares.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// The largest order that was asked for since it last began.
    order: AtomicU32,
    /// The highest zone that any request since then could use: its index and 1, or 0 if there was none.
    highest: AtomicU32,
    /// Runs in a row that freed nothing.
    pub(super) failures: AtomicU32,
    low_quickly: AtomicU64,
    high_quickly: AtomicU64,
}

/// What kswapd works towards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Goal {
    order: Order,
    highest: ZoneKind,
}

impl Goal {
    /// That of `order`, and of zones as [`NodeState`] has them: 0 leaves these.
    fn with(self, order: u32, highest: u32) -> Self {
        let zone = highest.checked_sub(1).and_then(|index| ZoneKind::ALL.get(index as usize));
        Self {
            order: Order::new(order as u8).unwrap_or(Order::ZERO),
            highest: zone.copied().unwrap_or(self.highest),
        }
    }
}

impl NodeState {
    fn ask(&self, goal: Goal) {
        self.ask_order(goal.order);
        self.highest.fetch_max(goal.highest as u32 + 1, Relaxed);
    }

    fn ask_order(&self, order: Order) {
        self.order.fetch_max(u32::from(order.get()), Relaxed);
    }

    fn was_asked(&self) -> bool {
        self.highest.load(Relaxed) > 0
    }

    /// What was asked for since it last began; nothing new leaves the zones of `before`.
    fn asked(&self, before: Goal) -> Goal {
        before.with(self.order.load(Relaxed), self.highest.load(Relaxed))
    }

    /// The same, and it begins.
    fn take(&self, before: Goal) -> Goal {
        before.with(self.order.swap(0, Relaxed), self.highest.swap(0, Relaxed))
    }
}

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// Adds what was counted of all kswapds.
    pub(crate) fn add_counters(self, counters: &mut Counters) {
        self.own().by_node.add_counters(counters);
        for node in &self.own().nodes {
            counters.add("kswapd_low_wmark_hit_quickly", node.low_quickly.load(Relaxed));
            counters.add("kswapd_high_wmark_hit_quickly", node.high_quickly.load(Relaxed));
        }
    }

    /// Pages were to be promoted to `node`, and there is no room above its high mark.
    pub fn make_room(self, node: Node) {
        self.wake_kswapd_for(node, Order::ZERO, ZoneKind::Movable);
    }

    /// Whether a zone of `node` may take a page more and stay above its high mark and what it keeps from movable pages
    /// (`migrate_balanced_pgdat`).
    pub fn has_room_above_high(self, node: Node) -> bool {
        let mut zones = self.zones().iter().filter(|zone| zone.node() == node);
        zones.any(|zone| {
            let is_above = |high: u32, kept: u32| zone.free_pages() > high + zone.boost() + kept + 1;
            zone.decide_by_kept(self.machine(), ZoneKind::Movable, |marks, kept| is_above(marks.high, kept))
        })
    }

    /// kswapd of `node` is to make room for a block of `order` from a zone up to `highest`. Where kswapd has given up, or the node is in balance
    /// for this, it sleeps on. Says whether there is work for it.
    pub(crate) fn wake_kswapd_for(self, node: Node, order: Order, highest: ZoneKind) -> bool {
        if !self.lru().has_pages() {
            // Nothing can be reclaimed; it takes back boosts.
            self.count_kswapd_run(node);
            self.machine().wake(Daemon::Kswapd(node));
            return true;
        }
        let (state, goal) = (self.own().node(node), Goal { order, highest });
        state.ask(goal);
        let boosted = self.pages().zones_of(node, highest).any(|zone| zone.boost() > 0);
        let works = !self.kswapd_gave_up(node) && (boosted || !self.is_balanced(node, goal));
        if works {
            self.machine().wake(Daemon::Kswapd(node));
        }
        works
    }

    /// Whether kswapd of `node` has given up until somebody else frees something.
    pub(crate) fn kswapd_gave_up(self, node: Node) -> bool {
        self.own().node(node).failures.load(Relaxed) >= MAX_RECLAIM_RETRIES
    }

    fn count_kswapd_run(self, node: Node) {
        if let Some(zone) = self.zones().iter().find(|zone| zone.node() == node) {
            SlowEvents::bump(&zone.stat().slow().kswapd_wakes);
        }
    }

    /// What kswapd of `node` does when woken; returns when it goes to sleep until it is woken again.
    pub fn kswapd(self, node: Node) {
        if !self.lru().has_pages() {
            return self.take_back_boosts(node);
        }
        let state = self.own().node(node);
        if self.restore_low_zones(node) && !state.was_asked() {
            return;
        }
        let mut goal = state.take(Goal { order: Order::ZERO, highest: ZoneKind::Movable });
        loop {
            self.restore_low_zones(node);
            let reached = self.balance(node, goal);
            self.compaction().compact_by_kswapd(node, goal.order, goal.highest);
            // Hopeless for the order: single pages will do, and a block is kcompactd's. Else only what was asked for meanwhile is left.
            let given_up = reached < goal.order;
            let wanted = if given_up { goal } else { state.asked(goal) };
            let rest = if given_up { Goal { order: reached, ..goal } } else { wanted };
            if self.may_sleep(node, rest) {
                self.compaction().compact_while_kswapd_sleeps(node, wanted.order, wanted.highest);
                // Somebody may have been short of low memory since.
                if self.sleep_briefly(node, rest) && !self.restore_low_zones(node) {
                    return;
                }
            }
            goal = state.take(rest);
        }
    }

    /// The first, short sleep; says whether kswapd may go to sleep for good.
    fn sleep_briefly(self, node: Node, goal: Goal) -> bool {
        let state = self.own().node(node);
        self.machine().block(SHORT_SLEEP);
        if state.was_asked() {
            // Woken before its time: what is left to do counts still, of the zones as the rule has it.
            match self.rules().reclaim.kswapd_zone {
                KswapdZoneRule::Both => state.ask(goal),
                KswapdZoneRule::Asked => state.ask_order(goal.order),
            }
            state.low_quickly.fetch_add(1, Relaxed);
            return false;
        }
        let stays = self.may_sleep(node, goal);
        if !stays {
            state.high_quickly.fetch_add(1, Relaxed);
        }
        stays
    }

    fn may_sleep(self, node: Node, goal: Goal) -> bool {
        self.kswapd_gave_up(node) || self.is_balanced(node, goal)
    }

    fn take_back_boosts(self, node: Node) {
        for zone in self.zones().iter().filter(|zone| zone.node() == node) {
            zone.set_flag(zone_flag::RECLAIM_ACTIVE);
            zone.set_boost(0);
            zone.clear_flag(zone_flag::RECLAIM_ACTIVE);
        }
    }

    /// Whether enough is free on `node` for `goal` (`pgdat_balanced`).
    fn is_balanced(self, node: Node, goal: Goal) -> bool {
        let mut zones = self.pages().zones_of(node, goal.highest).peekable();
        if zones.peek().is_none() {
            return true;
        }
        match self.rules().reclaim.lru {
            LruRule::PerNode => zones.any(|zone| self.is_zone_balanced(zone, goal)),
            LruRule::PerZone if goal.order == Order::ZERO => {
                zones.all(|zone| self.is_zone_balanced(zone, goal))
            }
            LruRule::PerZone => {
                let pages = |balanced: u32, zone: &Zone<M>| {
                    balanced + if self.is_zone_balanced(zone, goal) { zone.managed() } else { 0 }
                };
                let all: u32 = self
                    .pages()
                    .zones_of(node, goal.highest)
                    .map(super::super::pages::zone::Zone::managed)
                    .sum();
                zones.fold(0, pages) >= all / 4
            }
        }
    }

    /// Where whole pageblocks are kept free, they alone make up the mark, but for single pages: those are wanted where
    /// enough was reclaimed for kcompactd to make blocks of.
    fn is_zone_balanced(self, zone: &Zone<M>, goal: Goal) -> bool {
        let Goal { order, highest } = goal;
        let mark = balanced_mark(self.knobs(), self.machine(), zone);
        let is_above = |counted: AllocFlags| zone.watermark_ok(self.machine(), order, mark, highest, counted);
        if order == Order::ZERO {
            return is_above(AllocFlags::NONE);
        }
        let by_mode =
            |mode: u64| is_above(if mode == 0 { AllocFlags::NONE } else { AllocFlags::WHOLE_BLOCKS });
        self.knobs().decide(self.machine(), Knob::DefragMode, by_mode)
    }

    /// Reclaims until `node` is in balance or there is nothing more to try (`balance_pgdat`); gives the order that it
    /// ended with: 0 where it gave the asked one up.
    fn balance(self, node: Node, goal: Goal) -> Order {
        self.count_kswapd_run(node);
        let boosts: alloc::vec::Vec<(&Zone<M>, u32)> =
            self.pages().zones_of(node, goal.highest).map(|zone| (zone, zone.boost())).collect();
        self.pages().set_reclaim_active(node, ReclaimState::Active);
        let mut boost: u32 = boosts.iter().map(|(_, pages)| pages).sum();
        let mut scan = kswapd_scan(goal, boost);
        loop {
            self.go_through_priorities(node, goal, (&mut scan, &mut boost));
            let spared = scan.view.cache == Cache::Plenty && scan.view.trims == Trims::Cache;
            if scan.reclaimed > 0 || scan.priority > 0 || !spared {
                break;
            }
            // Unused pages of files alone were looked at, and none could go: once more, with all.
            scan = kswapd_scan(goal, boost);
            scan.view.trims = Trims::Nothing;
        }
        self.end_of_reclaim(&scan);
        self.settle(node, &boosts, &scan);
        scan.order
    }

    /// Passes at ever higher priority, until `node` is in balance.
    fn go_through_priorities(self, node: Node, goal: Goal, (scan, boost): (&mut Scan, &mut u32)) {
        while scan.priority > 0 {
            let balanced = self.is_balanced(node, Goal { order: scan.order, ..goal });
            if balanced && *boost == 0 {
                break;
            }
            if !balanced && *boost > 0 {
                // Low memory is more urgent than what fragmentation wants.
                *boost = 0;
                *scan = Scan { reclaimed: scan.reclaimed, ..kswapd_scan(goal, *boost) };
            }
            let before = scan.reclaimed;
            let scanned_enough = self.kswapd_pass(node, scan);
            let freed = scan.reclaimed - before;
            if *boost > 0 && freed == 0 {
                break;
            }
            let gentle = *boost > 0 && scan.priority <= DEF_PRIORITY - 2;
            *boost = boost.saturating_sub(freed);
            if freed == 0 || !scanned_enough && !gentle {
                scan.priority -= 1;
            }
        }
    }

    /// One pass at the scan's priority; says whether it looked at as many pages as were wanted (`kswapd_shrink_node`).
    fn kswapd_pass(self, node: Node, scan: &mut Scan) -> bool {
        let wanted = |zone: &Zone<M>| {
            let by_high = |high: u32| (high + zone.boost()).max(SWAP_CLUSTER_MAX as u32);
            zone.decide_by_marks(self.machine(), |marks| by_high(marks.high))
        };
        scan.to_reclaim = self.pages().zones_of(node, scan.highest).map(wanted).sum();
        scan.scanned = 0;
        scan.met = Met::default();
        match self.rules().reclaim.lru {
            LruRule::PerNode => self.shrink_node(node, scan),
            LruRule::PerZone => {
                let goal = Goal { order: scan.order, highest: scan.highest };
                for zone in self
                    .pages()
                    .zones_of(node, scan.highest)
                    .filter(|zone| !self.is_zone_balanced(zone, goal))
                {
                    self.shrink_zone(zone, scan);
                }
            }
        }
        self.shrink_slabs(scan);
        if scan.order > Order::ZERO && scan.reclaimed >= self.compaction().compact_gap(scan.order) {
            // Enough for compaction to make a block from: single pages are all that is wanted from here on.
            scan.order = Order::ZERO;
        }
        scan.scanned >= scan.to_reclaim
    }

    /// The end of a run: boosts are worked off, failures counted.
    fn settle(self, node: Node, boosts: &[(&Zone<M>, u32)], scan: &Scan) {
        for (zone, pages) in boosts {
            zone.set_boost(zone.boost().saturating_sub(*pages));
        }
        self.pages().set_reclaim_active(node, ReclaimState::Idle);
        if boosts.iter().any(|(_, pages)| *pages > 0) {
            // There should be room now to put together what mixing types took apart.
            self.compaction().wake_kcompactd(node, Order::PAGEBLOCK, scan.highest);
        }
        let goal = Goal { order: scan.order, highest: scan.highest };
        if scan.reclaimed == 0 && !self.is_balanced(node, goal) {
            self.own().node(node).failures.fetch_add(1, Relaxed);
            self.machine().block(NOTHING_FREED);
        }
    }
}

/// What is to be free in `zone`: where pages come up from slower memory, there should be room for them (since 5.18, which
/// brought mode 2).
pub(super) fn balanced_mark<M: Machine>(knobs: &Knobs, machine: &M, zone: &Zone<M>) -> Level {
    let by_tiers = |mode: u64| mode & NUMA_BALANCING_TIERS != 0;
    let promotes = knobs.decide(machine, Knob::NumaBalancing, by_tiers);
    if promotes { zone.mark_promo() } else { zone.mark_high() }
}

/// Where only boosts are worked off, nothing is swapped for it.
fn kswapd_scan(goal: Goal, boost: u32) -> Scan {
    let scan = Scan::new(Reclaimer::Kswapd, goal.order, goal.highest);
    Scan { may_swap: boost == 0, ..scan }
}
