//! In which order groups give when the whole machine is short (`shrink_many`): those that aged, or had too little, wait for the next
//! round, so that a pass need not look at all. Within a round groups stand as they were made; the kernel has them in eight
//! rows, of which it begins with a random one.

use super::{GenReclaimDoor, Passed, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Machine, Relaxed};
use crate::lru::VecId;
use crate::memcg::{GroupEvent, GroupId};
use crate::rules::policy::{GenAgerRule, GenGroupRule};

/// What comes of a group's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// It has more to give in this round.
    Stays,
    /// It is asked once more, last of this round.
    Last,
    Next,
}

/// A group's round is its turn's number without the last bit, which says that it was asked last already.
const LAST: u64 = 1;

impl<M: Machine, G: ReclaimGround<M>> GenReclaimDoor<'_, M, G> {
    pub(super) fn shrink_in_turns(self, scan: &mut Scan) {
        if self.rules().reclaim.generations.ager == GenAgerRule::Kswapd && scan.by == Reclaimer::Kswapd {
            self.age_all(scan);
        }
        if !self.memcg().in_use() {
            self.evict_and_split(scan.vec, scan);
            return;
        }
        if self.rules().reclaim.generations.group == GenGroupRule::All {
            for group in self.memcg().tree(GroupId::ROOT) {
                if self.reclaim().may_take_from(group, scan) {
                    self.evict_and_split(VecId { group, ..scan.vec }, scan);
                }
                if self.should_abort(scan.vec, scan) {
                    break;
                }
            }
            return;
        }
        self.go_round(scan);
    }

    /// Each group of the round that is on, the ones that are asked last behind the others.
    fn go_round(self, scan: &mut Scan) {
        let groups: alloc::vec::Vec<GroupId> = self.memcg().all().collect();
        let turn = |group: GroupId| self.generations().turn(VecId { group, ..scan.vec });
        let round = groups.iter().map(|&group| turn(group).load(Relaxed) & !LAST).min().unwrap_or(0);
        let vec = scan.vec;
        let turn = |group: GroupId| self.generations().turn(VecId { group, ..vec });
        for last in [0, LAST] {
            for &group in &groups {
                if turn(group).load(Relaxed) != round | last {
                    continue;
                }
                let next = match self.take_turn(VecId { group, ..vec }, scan, last) {
                    Turn::Stays => round | last,
                    Turn::Last => round | LAST,
                    Turn::Next => round + 2,
                };
                turn(group).store(next, Relaxed);
                if self.should_abort(vec, scan) {
                    return;
                }
            }
        }
    }

    /// `shrink_one`.
    fn take_turn(self, vec: VecId, scan: &mut Scan, last: u64) -> Turn {
        let protection = self.memcg().protection(GroupId::ROOT, vec.group);
        if protection.is_below_min() {
            return Turn::Next;
        }
        if protection.is_below_low() {
            if last == 0 {
                return Turn::Last;
            }
            self.memcg().count(vec.group, GroupEvent::Low);
        }
        match self.evict_and_split(vec, scan) {
            Passed::Evicted if self.is_sizable(vec, scan) => Turn::Stays,
            Passed::Evicted | Passed::Protected if last == 0 => Turn::Last,
            Passed::Aged | Passed::Evicted | Passed::Protected => Turn::Next,
        }
    }

    /// The lists of a group, and then its huge pages that wait to be split.
    fn evict_and_split(self, vec: VecId, scan: &mut Scan) -> Passed {
        let passed = self.evict_from(vec, scan);
        self.rmap().split_deferred(vec.group, scan.priority);
        passed
    }

    /// All groups get a new generation that need one (`lru_gen_age_node` of 6.1).
    fn age_all(self, scan: &Scan) {
        for group in self.memcg().all() {
            let vec = VecId { group, ..scan.vec };
            let swappiness = self.generation_swappiness(vec, scan);
            let below_min = self.memcg().protection(GroupId::ROOT, group).is_below_min();
            if !below_min && self.need_of_generation(vec, swappiness, scan.priority).is_needed {
                self.new_generation(vec, swappiness);
            }
        }
    }
}
