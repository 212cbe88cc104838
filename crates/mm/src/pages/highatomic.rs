//! Pageblocks kept for atomic requests of higher orders: at most 1 % of a zone
//! (docs/rules/buddy-and-fallback.md#highatomic-reserve).

use crate::ground::{Locked, Machine, MigrateType, Order, PAGEBLOCK_PAGES, Pfn};
use crate::pages::Pages;
use crate::pages::buddy::FreeAreas;
use crate::pages::zone::Zone;
use crate::rules::policy::HighAtomicRule;

impl<M: Machine> Pages<M> {
    /// An atomic request got a block at `pfn` of `zone`: its pageblock is kept for the next ones, if the zone's share
    /// allows another.
    #[cold]
    pub(crate) fn reserve_highatomic(&self, zone: &Zone<M>, pfn: Pfn) {
        let percent = zone.managed / 100;
        if percent < PAGEBLOCK_PAGES || self.policy.rules().zone.highatomic == HighAtomicRule::None {
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

#[cfg(test)]
mod tests {

    use super::*;
    use crate::ground::ids::ZoneKind;

    use crate::pages::zone::AllocFlags;
    use crate::pages::zone_watch::Level;
    use crate::{Bare, Knobs, Mm, Policy, Request, Topology, Urgency};

    const PAGES: u32 = 65_536;

    fn mm(policy: &str) -> Mm<Bare> {
        let topology = Topology::one_node(&[ZoneKind::Normal], PAGES, 1);
        Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
    }

    /// Whether a request may leave 300 pages above `mark`, where 512 are reserved and 100 of these are free.
    fn leaves_300(policy: &str, flags: AllocFlags) -> bool {
        let mm = mm(policy);
        let zone = &mm.zones()[0];
        assert!(zone.stat.reserve_highatomic(PAGEBLOCK_PAGES, PAGEBLOCK_PAGES));
        zone.stat.add_highatomic(100);
        let mark = Level::default() + (zone.free_pages() - 300);
        zone.watermark_ok(mm.machine(), Order::ZERO, mark, ZoneKind::Movable, flags)
    }

    #[test]
    fn before_6_12_all_that_is_reserved_is_withheld_and_then_what_is_free_of_it() {
        assert!(!leaves_300("linux-6.1", AllocFlags::NONE));
        assert!(!leaves_300("linux-6.6", AllocFlags::NONE));
        assert!(leaves_300("linux-6.12", AllocFlags::NONE));
        assert!(leaves_300("linux-7.2", AllocFlags::NONE));
    }

    #[test]
    fn nothing_is_withheld_from_who_may_use_a_reserve() {
        for flag in [AllocFlags::MIN_RESERVE, AllocFlags::NON_BLOCK, AllocFlags::HIGHATOMIC] {
            assert!(leaves_300("linux-6.1", flag) && leaves_300("linux-6.18", flag));
        }
    }

    #[test]
    fn who_reclaims_may_have_the_last_page() {
        let mm = mm("linux-6.18");
        let take = |urgency| {
            let request = Request { urgency, ..Request::KERNEL };
            (0..PAGES).take_while(|_| mm.alloc(request).is_ok()).count() as u32
        };
        let [first, atomic] = [take(Urgency::NoWait), take(Urgency::Atomic)];
        let left = mm.zones()[0].free_pages();
        assert!(first > 0 && atomic > 0 && left > 0, "{first} {atomic} {left}");
        // A CPU keeps some pages back besides.
        assert!(take(Urgency::Reclaims) >= left);
        assert_eq!(mm.zones()[0].free_pages(), 0);
    }

    #[test]
    fn since_5_9_atomic_requests_for_pages_pass_over_a_boost() {
        let gets = |policy: &str, request: Request| {
            let mm = mm(policy);
            // Three eighths of this are more than there is.
            mm.zones()[0].set_boost(4 * PAGES);
            mm.alloc(request).is_ok()
        };
        let atomic = Request { urgency: Urgency::Atomic, ..Request::KERNEL };
        assert!(!gets("linux-5.8", atomic));
        assert!(gets("linux-5.9", atomic) && gets("linux-6.18", atomic));
        let no_wait = Request { urgency: Urgency::NoWait, ..Request::KERNEL };
        assert!(!gets("linux-6.18", no_wait));
        assert!(!gets("linux-6.18", atomic.of_order(Order::new(2).unwrap())));
    }
}
