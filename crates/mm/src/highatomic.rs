//! Pageblocks kept for atomic requests of higher orders: at most 1 % of a zone (facts/ALGORITHMS.md 2.6).

use crate::boot::Mm;
use crate::buddy::FreeAreas;
use crate::ids::{MigrateType, Order, PAGEBLOCK_PAGES, Pfn};
use crate::machine::Machine;
use crate::policy::HighAtomicRule;
use crate::sync::Locked;
use crate::zone::Zone;

impl<M: Machine> Mm<M> {
    /// An atomic request got a block at `pfn` of `zone`: its pageblock is kept for the next ones, if the zone's share
    /// allows another.
    #[cold]
    pub(crate) fn reserve_highatomic(&self, zone: &Zone<M>, pfn: Pfn) {
        let percent = zone.managed / 100;
        if percent < PAGEBLOCK_PAGES || self.policy.rules().highatomic == HighAtomicRule::None {
            return;
        }
        let most = percent.next_multiple_of(PAGEBLOCK_PAGES);
        let cx = self.zone_cx(zone.id);
        let mut free = zone.arenas.lock_owner(&self.machine, pfn);
        let ordinary = self.blocks.get(pfn).index() < MigrateType::PCP_COUNT;
        let start = pfn.align_down(Order::PAGEBLOCK);
        let inside = start.0 >= zone.span().start && start.0 + PAGEBLOCK_PAGES <= zone.span().end;
        if ordinary && inside && zone.stat.reserve_highatomic(PAGEBLOCK_PAGES, most) {
            free.convert_block(cx, start, MigrateType::HighAtomic);
        }
    }

    /// Gives one reserved pageblock back; says whether there was one with free pages.
    pub(crate) fn unreserve_highatomic(&self) -> bool {
        self.zones.iter().any(|zone| zone.arenas.all().any(|free| self.unreserve_one(zone, free)))
    }

    fn unreserve_one(&self, zone: &Zone<M>, free: &Locked<M, FreeAreas>) -> bool {
        let mut free = free.lock(&self.machine);
        let mut orders = Order::ZERO.to(Order::MAX);
        let found = orders.find_map(|order| free.list(order, MigrateType::HighAtomic).first());
        let Some(pfn) = found else { return false };
        zone.stat.unreserve_highatomic(PAGEBLOCK_PAGES);
        let start = pfn.align_down(Order::PAGEBLOCK);
        free.convert_block(self.zone_cx(zone.id), start, MigrateType::Movable) > 0
    }
}
