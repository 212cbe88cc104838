//! Compaction that no request waits for: kswapd's before 4.6, kcompactd's since, and the whole machine's by hand.

use super::control::{By, CompactGoal, Effort};
use super::{CompactDoor, CompactEvent, CompactGround, Mode, Outcome};
use crate::ground::{
    AtomicU32, AtomicU64, Daemon, Machine, MigrateType, Nanos, Node, Order, Relaxed, ZoneKind,
};
use crate::pages::{Pages, Zone};
use crate::rules::policy::BackgroundRule;

/// What a node's kcompactd is asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// The largest order, and 1; 0: nothing.
    order: AtomicU32,
    /// The highest zone that any request could use, and 1.
    highest: AtomicU32,
    /// When it looks next whether to compact unasked, in ns.
    due: AtomicU64,
}

impl Asked {
    pub(super) fn due(&self) -> Nanos {
        Nanos(self.due.load(Relaxed))
    }

    pub(super) fn set_due(&self, at: Nanos) {
        self.due.store(at.0, Relaxed);
    }

    fn ask(&self, order: Order, highest: ZoneKind) {
        self.order.fetch_max(u32::from(order.get()) + 1, Relaxed);
        self.highest.fetch_max(highest as u32 + 1, Relaxed);
    }

    fn take(&self) -> Option<(Order, ZoneKind)> {
        let order = self.order.swap(0, Relaxed).checked_sub(1)?;
        let highest = self.highest.swap(0, Relaxed).checked_sub(1)?;
        Some((Order::new(order as u8)?, *ZoneKind::ALL.get(highest as usize)?))
    }
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Compacts all of `node`, as writing to `vm.compact_memory` does for every node.
    pub fn compact_node(self, node: Node) {
        self.lru().lru_drain_all();
        for zone in self.zones().iter().filter(|zone| zone.node() == node) {
            let goal = CompactGoal {
                by: By::Hand,
                mode: Mode::SyncLight,
                effort: Effort::WholeZone,
                order: None,
                migratetype: MigrateType::Movable,
                highest: ZoneKind::Movable,
                mark: zone.mark_min(),
            };
            self.compact_zone(zone, goal);
        }
    }

    /// kswapd of `node` goes to sleep, having worked for a block of `order`: whoever compacts in the background is told, and
    /// what direct compaction found to be worn out is forgotten.
    pub(crate) fn compact_after_reclaim(self, node: Node, order: Order, highest: ZoneKind) {
        for zone in self.zones().iter().filter(|zone| zone.node() == node) {
            if self.own().of(zone.id()).flush_skip.load(Relaxed) == 1 {
                self.marks().forget_skipped(zone);
            }
        }
        match self.rules().compact.background {
            BackgroundRule::Kcompactd => self.wake_kcompactd(node, order, highest),
            BackgroundRule::Kswapd => {
                self.compact_in_background(node, (order, highest), (By::Kswapd, Mode::Async));
            }
            BackgroundRule::KswapdSync => {
                self.compact_in_background(node, (order, highest), (By::Kswapd, Mode::SyncLight));
            }
        }
    }

    /// A block of `order` is wanted on `node`, in some zone up to `highest`.
    pub(crate) fn wake_kcompactd(self, node: Node, order: Order, highest: ZoneKind) {
        let old = self.rules().compact.background != BackgroundRule::Kcompactd;
        if order == Order::ZERO || old || !self.lru().has_pages() {
            return;
        }
        let worth = |zone: &Zone<M>| self.is_worth_it(zone, order);
        if self.pages().zones_of(node, highest).any(worth) {
            self.own().asked(node).ask(order, highest);
            self.machine().wake(Daemon::Kcompactd(node));
        }
    }

    fn is_worth_it(self, zone: &Zone<M>, order: Order) -> bool {
        self.is_suitable(
            zone,
            &background_goal(self.pages(), zone, (order, zone.kind()), (By::Kcompactd, Mode::SyncLight)),
        )
        .is_ok()
    }

    /// What kcompactd of `node` does when woken; returns when it goes back to sleep.
    pub fn kcompactd(self, node: Node) {
        while let Some((order, highest)) = self.own().asked(node).take() {
            if let Some(zone) = self.pages().zones_of(node, highest).next() {
                self.own().count(zone.id(), CompactEvent::DaemonWake, 1);
            }
            self.compact_in_background(node, (order, highest), (By::Kcompactd, Mode::SyncLight));
            self.look_soon(node);
        }
    }

    /// Every zone of `node` that lacks a block (`compact_pgdat`, `kcompactd_do_work`).
    fn compact_in_background(self, node: Node, wanted: (Order, ZoneKind), (by, mode): (By, Mode)) {
        let (order, highest) = wanted;
        if order == Order::ZERO {
            return;
        }
        for zone in self.pages().zones_of(node, highest) {
            if self.own().of(zone.id()).is_deferred(order) {
                continue;
            }
            let ran = self.compact_zone(zone, background_goal(self.pages(), zone, wanted, (by, mode)));
            match ran.outcome {
                Outcome::Success => self.own().of(zone.id()).note_allocated(order),
                Outcome::Complete | Outcome::PartialSkipped => {
                    self.pages().drain_all();
                    if mode == Mode::SyncLight {
                        self.own().of(zone.id()).defer(order);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What is wanted of `zone` by nobody in particular. With `vm.defrag_mode` kcompactd works up to the high mark.
fn background_goal<M: Machine>(
    pages: &Pages<M>,
    zone: &Zone<M>,
    (order, highest): (Order, ZoneKind),
    (by, mode): (By, Mode),
) -> CompactGoal {
    let keeps_blocks = by == By::Kcompactd && pages.keeps_blocks();
    CompactGoal {
        by,
        mode,
        effort: Effort::Usual,
        order: Some(order),
        migratetype: MigrateType::Movable,
        highest,
        mark: if keeps_blocks { zone.mark_high() } else { zone.mark_min() },
    }
}
