//! Memory that is used too fast to be reclaimed (`lru_gen.min_ttl_ms`): where no set of lists that could give something has an oldest
//! generation of that age, kswapd has the largest program killed, in place of all waiting for their pages (`lru_gen_age_node`).
//! Eviction goes on meanwhile: nothing is held back for its age.

use super::{GenReclaimDoor, ReclaimGround, Scan};
use crate::ground::{Daemon, Machine, Nanos, Order};
use crate::lru::{Kind, VecId};
use crate::memcg::GroupId;
use crate::reclaim::DEF_PRIORITY;
use crate::rules::knobs::Knob;
use crate::rules::policy::GenTtlRule;

impl<M: Machine, G: ReclaimGround<M>> GenReclaimDoor<'_, M, G> {
    /// Wakes who kills, where kswapd at `scan` finds nothing on its node that is old enough.
    pub(super) fn kill_if_all_is_young(self, scan: &Scan) {
        let looks = match self.rules().reclaim.generations.ttl {
            GenTtlRule::Aging => scan.order == Order::ZERO,
            GenTtlRule::LaterPasses => scan.order == Order::ZERO && scan.priority != DEF_PRIORITY,
            GenTtlRule::EachPass => true,
        };
        if !looks {
            return;
        }
        let ages = self.memcg().all().filter_map(|group| self.age_to_give(VecId { group, ..scan.vec }, scan));
        // Nothing to give is younger than any time.
        let oldest = ages.max().unwrap_or(Nanos(0));
        if !self.is_as_old(oldest) {
            self.machine().wake(Daemon::OomKiller);
        }
    }

    /// Whether the oldest of `vec` is old enough to be aged before it is reclaimed.
    pub(super) fn is_of_age(self, vec: VecId) -> bool {
        self.is_as_old(self.age_of(vec))
    }

    /// Whether `age` is what `lru_gen.min_ttl_ms` asks for; at 0 it asks for none.
    fn is_as_old(self, age: Nanos) -> bool {
        self.knobs().decide_by(
            self.machine(),
            (Knob::LruGenMinTtlMs, age.0),
            |ms| ms * 1_000_000,
            |ttl| ttl == 0 || age.0 > ttl,
        )
    }

    /// How old the oldest generation of `vec` is; `None` of one that is protected, or has too little to be of help at this priority.
    fn age_to_give(self, vec: VecId, scan: &Scan) -> Option<Nanos> {
        if self.memcg().protection(GroupId::ROOT, vec.group).is_below_min() {
            return None;
        }
        let is_first_of_aging =
            self.rules().reclaim.generations.ttl == GenTtlRule::Aging && scan.priority == DEF_PRIORITY;
        (is_first_of_aging || self.is_sizable(vec, scan)).then(|| self.age_of(vec))
    }

    /// Of files' pages, whether there are any or not: their oldest generation is not behind that of anonymous ones for long.
    fn age_of(self, vec: VecId) -> Nanos {
        let oldest = self.generations().oldest(vec, Kind::File);
        Nanos(self.machine().now().0.saturating_sub(self.generations().born(vec, oldest).0))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::ground::ZoneKind;
    use crate::mm::Mm;
    use crate::reclaim::Reclaimer;
    use crate::vm::{FileKind, Placement};
    use crate::{Bare, Knobs, Policy, Topology};

    const SECOND: u64 = 1_000_000_000;

    /// Memory whose generations began at 0, a second later.
    fn after_a_second(policy: &str, ttl_ms: u64) -> Mm<Bare> {
        let topology = Topology::one_node(&[ZoneKind::Dma32, ZoneKind::Normal], 4096, 1);
        let mm =
            Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap();
        mm.set_knob(Knob::LruGenEnabled, 7).unwrap();
        mm.set_knob(Knob::LruGenMinTtlMs, ttl_ms).unwrap();
        let file = mm.files().new_file(FileKind::Disk);
        for page in 0..64 {
            mm.files().write_file(&file, page, Placement::default()).unwrap();
        }
        mm.lru().lru_drain_cpu(mm.machine().cpu());
        assert_eq!(GenReclaimDoor::on(&mm).generations().youngest(vec_of(&mm)), 3);
        mm.machine().set_now(Nanos(SECOND));
        mm
    }

    fn vec_of(mm: &Mm<Bare>) -> VecId {
        mm.lru().vec_of_zone(&mm.zones()[0])
    }

    /// Whether kswapd has somebody killed.
    fn kills(mm: &Mm<Bare>, order: Order, priority: u32) -> bool {
        let scan = Scan::new(Reclaimer::Kswapd, order, ZoneKind::Movable);
        GenReclaimDoor::on(mm).kill_if_all_is_young(&Scan { vec: vec_of(mm), priority, ..scan });
        mm.machine().take_woken().contains(&Daemon::OomKiller)
    }

    #[test]
    fn somebody_is_killed_where_nothing_is_old_enough() {
        for (ttl_ms, expected) in [(0, false), (900, false), (1000, true), (60_000, true)] {
            let mm = after_a_second("linux-6.18", ttl_ms);
            assert_eq!(kills(&mm, Order::ZERO, 0), expected, "{ttl_ms}");
        }
    }

    #[test]
    fn what_is_too_little_to_help_is_as_if_it_were_young() {
        let mm = after_a_second("linux-6.18", 900);
        assert!(!kills(&mm, Order::ZERO, 6));
        assert!(kills(&mm, Order::ZERO, 7), "64 pages");
    }

    #[test]
    fn in_which_passes_kswapd_looks_is_by_version() {
        let looks = |policy| {
            let mm = after_a_second(policy, 60_000);
            let order = Order::new(9).unwrap();
            [(Order::ZERO, 12), (Order::ZERO, 11), (order, 11)].map(|(order, at)| kills(&mm, order, at))
        };
        assert_eq!(looks("linux-6.1"), [true, true, false]);
        assert_eq!(looks("linux-6.6"), [false, true, false]);
        assert_eq!(looks("linux-6.12"), [true, true, true]);
    }

    #[test]
    fn kswapd_of_6_1_ages_nothing_that_is_young() {
        for (ttl_ms, is_of_age) in [(0, true), (999, true), (1000, false)] {
            let mm = after_a_second("linux-6.1", ttl_ms);
            assert_eq!(GenReclaimDoor::on(&mm).is_of_age(vec_of(&mm)), is_of_age, "{ttl_ms}");
        }
    }
}
