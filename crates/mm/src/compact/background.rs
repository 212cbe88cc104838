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
    /// How many zones from the highest down are not to be looked at: as many as the request that may use fewest leaves out.
    left_out: AtomicU32,
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

    /// Whether it is asked for anything.
    pub(super) fn is_asked(&self) -> bool {
        self.order.load(Relaxed) > 0
    }

    fn ask(&self, order: Order, highest: ZoneKind) {
        self.order.fetch_max(u32::from(order.get()) + 1, Relaxed);
        self.left_out.fetch_max(ZoneKind::Movable as u32 - highest as u32, Relaxed);
    }

    fn wanted(&self) -> Option<(Order, ZoneKind)> {
        let order = self.order.load(Relaxed).checked_sub(1)?;
        let highest = (ZoneKind::Movable as u32).checked_sub(self.left_out.load(Relaxed))?;
        Some((Order::new(order as u8)?, *ZoneKind::ALL.get(highest as usize)?))
    }

    /// It has done what it could for `order`, up to `highest`: only what asks for more than that stands.
    fn settle(&self, order: Order, highest: ZoneKind) {
        let (done, left_out) = (u32::from(order.get()) + 1, ZoneKind::Movable as u32 - highest as u32);
        let unless = |done: u32| move |asked: u32| (asked <= done).then_some(0);
        let _ = self.order.fetch_update(Relaxed, Relaxed, unless(done));
        let _ = self.left_out.fetch_update(Relaxed, Relaxed, unless(left_out));
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

    /// kswapd of `node` has worked for a block of `order`: before 4.6 it compacts by itself.
    pub(crate) fn compact_by_kswapd(self, node: Node, order: Order, highest: ZoneKind) {
        let mode = match self.rules().compact.background {
            BackgroundRule::Kcompactd | BackgroundRule::KcompactdByRequests => return,
            BackgroundRule::Kswapd => Mode::Async,
            BackgroundRule::KswapdSync => Mode::SyncLight,
        };
        self.compact_in_background(node, (order, highest), (By::Kswapd, mode));
    }

    /// kswapd of `node` goes to sleep: what direct compaction found to be worn out is forgotten, and kcompactd is told that a block of
    /// `order` is wanted, in some zone up to `highest`.
    pub(crate) fn compact_while_kswapd_sleeps(self, node: Node, order: Order, highest: ZoneKind) {
        for zone in self.zones().iter().filter(|zone| zone.node() == node) {
            if self.own().of(zone.id()).flush_skip.load(Relaxed) == 1 {
                self.marks().forget_skipped(zone);
            }
        }
        self.wake_kcompactd(node, order, highest);
    }

    /// A block of `order` is wanted on `node`, in some zone up to `highest`.
    pub(crate) fn wake_kcompactd(self, node: Node, order: Order, highest: ZoneKind) {
        let by_kswapd =
            matches!(self.rules().compact.background, BackgroundRule::Kswapd | BackgroundRule::KswapdSync);
        if order == Order::ZERO || by_kswapd || !self.lru().has_pages() {
            return;
        }
        // Where nothing can be done now it looks into it when it looks next.
        self.own().asked(node).ask(order, highest);
        if self.is_worth_waking(node) {
            self.machine().wake(Daemon::Kcompactd(node));
        }
    }

    /// Whether a zone can be compacted for what is asked of `node` (`kcompactd_node_suitable`).
    fn is_worth_waking(self, node: Node) -> bool {
        let Some(wanted) = self.own().asked(node).wanted() else { return false };
        let (_, highest) = wanted;
        self.pages().zones_of(node, highest).any(|zone| {
            let goal = background_goal(self.pages(), zone, wanted, (By::Kcompactd, Mode::SyncLight));
            self.is_suitable(zone, &goal).is_ok()
        })
    }

    /// What kcompactd of `node` does when woken; returns when it goes back to sleep.
    pub fn kcompactd(self, node: Node) {
        while let Some((order, highest)) = self.own().asked(node).wanted() {
            if let Some(zone) = self.pages().zones_of(node, highest).next() {
                self.own().count(zone.id(), CompactEvent::DaemonWake, 1);
            }
            self.compact_in_background(node, (order, highest), (By::Kcompactd, Mode::SyncLight));
            self.own().asked(node).settle(order, highest);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn order(of: u8) -> Order {
        Order::new(of).unwrap()
    }

    #[test]
    fn of_several_requests_the_largest_order_and_the_lowest_zone_count() {
        let asked = Asked::default();
        assert_eq!((asked.wanted(), asked.is_asked()), (None, false));
        asked.ask(order(9), ZoneKind::Normal);
        asked.ask(order(3), ZoneKind::Dma32);
        assert_eq!(asked.wanted(), Some((order(9), ZoneKind::Dma32)));
        asked.settle(order(9), ZoneKind::Dma32);
        assert_eq!((asked.wanted(), asked.is_asked()), (None, false));
    }

    #[test]
    fn what_is_asked_for_meanwhile_stands_if_it_is_more() {
        let asked = Asked::default();
        asked.ask(order(3), ZoneKind::Normal);
        let (done, highest) = asked.wanted().unwrap();
        asked.ask(order(3), ZoneKind::Movable);
        asked.settle(done, highest);
        assert_eq!(asked.wanted(), None, "as much was done");
        asked.ask(order(3), ZoneKind::Normal);
        asked.ask(order(9), ZoneKind::Dma);
        asked.settle(done, highest);
        assert_eq!(asked.wanted(), Some((order(9), ZoneKind::Dma)));
    }
}
