//! New generations: when one is needed, and the walk before it that finds pages in use.

use super::{GenReclaimDoor, ReclaimGround, Scan};
use crate::ground::{Machine, Nanos};
use crate::lru::{Kind, MIN_GENERATIONS, Swappiness, VecId, WALKS};
use crate::reclaim::DEF_PRIORITY;
use crate::rules::knobs::Knob;
use crate::rules::policy::GenAgeRule;
use crate::vm::{Around, Walk};

/// How often, and so many times at most, who finds another walking looks whether that has ended.
const WALK_PAUSE: Nanos = Nanos(100_000);
const WALK_PAUSES: u32 = 100;

/// What there is to take, and whether that is too little.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub(super) is_needed: bool,
    /// Base pages that may go in time; 0 where none can before a new generation begins.
    pub(super) evictable: u32,
}

impl<M: Machine, G: ReclaimGround<M>> GenReclaimDoor<'_, M, G> {
    /// Whether `vec` needs a new generation (`should_run_aging`).
    pub(super) fn need_of_generation(self, vec: VecId, swappiness: Swappiness, priority: u32) -> Need {
        let (oldest, youngest) =
            (self.generations().oldest_evictable(vec, swappiness), self.generations().youngest(vec));
        if oldest + MIN_GENERATIONS > youngest {
            return Need { is_needed: true, evictable: 0 };
        }
        let evictable = self.generations().evictable(vec, swappiness);
        let is_needed = oldest + MIN_GENERATIONS == youngest
            && match self.rules().reclaim.generations.age {
                GenAgeRule::BySpread => self.is_spread_badly(vec, swappiness, evictable),
                GenAgeRule::AtThree => true,
                GenAgeRule::AtThreeLater => priority != DEF_PRIORITY,
            };
        Need { is_needed, evictable }
    }

    /// More than half of all pages are young, or less than a quarter old.
    fn is_spread_badly(self, vec: VecId, swappiness: Swappiness, all: u32) -> bool {
        let youngest = self.generations().youngest(vec);
        let size = |generation: u64| -> u32 {
            let there = |kind: &Kind| self.generations().oldest(vec, *kind) <= generation;
            let kinds = swappiness.kinds().filter(there);
            kinds.map(|kind| self.generations().generation_size(vec, generation, kind)).sum()
        };
        let (young, old) = (size(youngest), size(youngest - MIN_GENERATIONS));
        young * MIN_GENERATIONS as u32 > all || old * (MIN_GENERATIONS as u32 + 2) < all
    }

    /// Looks for pages in use, and begins a new generation (`try_to_inc_max_seq`). `false`: somebody else did.
    pub(super) fn new_generation(self, vec: VecId, swappiness: Swappiness, scan: &mut Scan) -> bool {
        let generation = self.generations().youngest(vec);
        if !self.generations().begin_walk(vec, generation) {
            return self.await_walk(vec, generation);
        }
        let walks = |setting: u64| setting & WALKS != 0;
        if self.knobs().decide(self.machine(), Knob::LruGenEnabled, walks) {
            // Its account stays until the pass ends (`current->reclaim_state->mm_walk`).
            scan.around = Around::Promoted;
            self.rmap().walk_tables(Walk { vec, generation, swappiness });
        }
        self.generations().begin_generation(vec, generation, swappiness)
    }

    /// Somebody else walks: says whether a new generation came of it. 6.1 waits for that (`try_to_inc_max_seq`); later kernels go on
    /// with the next priority, which takes them as long. Here that would take no time, and who charges would be out of memory.
    fn await_walk(self, vec: VecId, generation: u64) -> bool {
        for _ in 0..WALK_PAUSES {
            if self.generations().youngest(vec) != generation {
                return true;
            }
            self.swap().pause(WALK_PAUSE);
        }
        false
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::ground::{Order, ZoneKind};
    use crate::mm::Mm;
    use crate::reclaim::Reclaimer;
    use crate::{Bare, Knobs, Policy, Topology};

    /// Who has walked keeps account of generations until its pass ends, as kswapd always does.
    #[test]
    fn after_a_walk_what_is_in_use_around_a_page_is_young_at_once() {
        for (setting, around) in [(1, Around::Activated), (3, Around::Promoted)] {
            let topology = Topology::one_node(&[ZoneKind::Dma32, ZoneKind::Normal], 4096, 1);
            let policy = Policy::parse("linux-7.2").unwrap();
            let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
            mm.set_knob(Knob::LruGenEnabled, setting).unwrap();
            let mut scan = Scan::new(Reclaimer::Direct, Order::ZERO, ZoneKind::Movable);
            assert_eq!(scan.around, Around::Activated);
            let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
            assert!(GenReclaimDoor::on(&mm).new_generation(vec, Swappiness(60), &mut scan));
            assert_eq!(scan.around, around);
            let scan = Scan::new(Reclaimer::Kswapd, Order::ZERO, ZoneKind::Movable);
            assert_eq!(scan.around, Around::Promoted);
        }
    }
}
