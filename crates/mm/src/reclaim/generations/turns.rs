//! In which order groups give when the whole machine is short (`shrink_many`): those that aged, or had too little, wait for the next
//! round, so that a pass need not look at all. Within a round groups stand in eight rows by chance, and a pass begins with a row by
//! chance: who is protected gives nothing when it is met first, and gives as others do when it is met before them again.

use alloc::collections::VecDeque;

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
    /// It is asked once more, last of its row.
    Last,
    Next,
}

/// Rows of a round (`MEMCG_NR_BINS`).
const ROWS: u64 = 8;

/// A group's place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    round: u64,
    row: u64,
    /// It was put at the end of its row.
    last: bool,
}

impl Place {
    /// From the number that a set of lists keeps; `None` of one that has no place yet.
    fn of(number: u64) -> Option<Self> {
        let number = number.checked_sub(1)?;
        Some(Self { round: number / (2 * ROWS), row: number / 2 % ROWS, last: number % 2 == 1 })
    }

    fn number(self) -> u64 {
        1 + self.round * 2 * ROWS + self.row * 2 + u64::from(self.last)
    }
}

impl<M: Machine, G: ReclaimGround<M>> GenReclaimDoor<'_, M, G> {
    pub(super) fn shrink_in_turns(self, scan: &mut Scan) {
        if self.rules().reclaim.generations.ager == GenAgerRule::Kswapd && scan.by == Reclaimer::Kswapd {
            self.age_all(scan);
        }
        if !self.memcg().in_use() {
            self.evict_and_shrink(scan.vec, scan);
            return;
        }
        if self.rules().reclaim.generations.group == GenGroupRule::All {
            for group in self.memcg().tree(GroupId::ROOT) {
                if self.reclaim().may_take_from(group, scan) {
                    self.evict_and_shrink(VecId { group, ..scan.vec }, scan);
                }
                if self.should_abort(scan.vec, scan) {
                    break;
                }
            }
            return;
        }
        self.go_round(scan);
    }

    /// Each group of the round that is on, row by row.
    fn go_round(self, scan: &mut Scan) {
        let vec = scan.vec;
        let round = self.join(vec);
        let first = self.machine().random() % ROWS;
        for row in (first..first + ROWS).map(|row| row % ROWS) {
            let mut groups: VecDeque<GroupId> = self.memcg().all().collect();
            groups
                .retain(|&group| self.place(vec, group).is_some_and(|at| (at.round, at.row) == (round, row)));
            while let Some(group) = groups.pop_front() {
                let Some(place) = self.place(vec, group) else { continue };
                let turn = self.take_turn(VecId { group, ..vec }, scan, place.last);
                let next = match turn {
                    Turn::Stays => place,
                    Turn::Last => Place { last: true, ..place },
                    Turn::Next => {
                        Place { round: round + 1, row: self.machine().random() % ROWS, last: false }
                    }
                };
                self.set_place(vec, group, next);
                if self.should_abort(vec, scan) {
                    return;
                }
                // At the end of the row, which others were still to come from.
                if turn == Turn::Last && !groups.is_empty() {
                    groups.push_back(group);
                }
            }
        }
    }

    /// The round that is on; groups without a place come into it.
    fn join(self, vec: VecId) -> u64 {
        let rounds = self.memcg().all().filter_map(|group| self.place(vec, group)).map(|place| place.round);
        let round = rounds.min().unwrap_or(0);
        for group in self.memcg().all() {
            if self.place(vec, group).is_none() {
                let row = self.machine().random() % ROWS;
                self.set_place(vec, group, Place { round, row, last: false });
            }
        }
        round
    }

    fn place(self, vec: VecId, group: GroupId) -> Option<Place> {
        Place::of(self.generations().turn(VecId { group, ..vec }).load(Relaxed))
    }

    fn set_place(self, vec: VecId, group: GroupId, place: Place) {
        self.generations().turn(VecId { group, ..vec }).store(place.number(), Relaxed);
    }

    /// `shrink_one`.
    fn take_turn(self, vec: VecId, scan: &mut Scan, last: bool) -> Turn {
        let protection = self.memcg().protection(GroupId::ROOT, vec.group);
        if protection.is_below_min() {
            return Turn::Next;
        }
        if protection.is_below_low() {
            if !last {
                return Turn::Last;
            }
            self.memcg().count(vec.group, GroupEvent::Low);
        }
        match self.evict_and_shrink(vec, scan) {
            Passed::Evicted if self.is_sizable(vec, scan) => Turn::Stays,
            Passed::Evicted | Passed::Protected if !last => Turn::Last,
            Passed::Aged | Passed::Evicted | Passed::Protected => Turn::Next,
        }
    }

    /// The lists of a group, then its huge pages that wait to be split, and its nodes of shadows.
    fn evict_and_shrink(self, vec: VecId, scan: &mut Scan) -> Passed {
        let passed = self.evict_from(vec, scan);
        self.rmap().split_deferred(vec.group, scan.priority);
        self.files().shrink_shadow_nodes(vec, scan.priority);
        passed
    }

    /// All groups get a new generation that need one (`lru_gen_age_node` of 6.1).
    fn age_all(self, scan: &mut Scan) {
        for group in self.memcg().all() {
            let vec = VecId { group, ..scan.vec };
            let swappiness = self.generation_swappiness(vec, scan);
            let below_min = self.memcg().protection(GroupId::ROOT, group).is_below_min();
            let is_due = !below_min && self.is_of_age(vec);
            if is_due && self.need_of_generation(vec, swappiness, scan.priority).is_needed {
                self.new_generation(vec, swappiness, scan);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_and_zero_is_none() {
        assert_eq!(Place::of(0), None);
        for (round, row, last) in [(0, 0, false), (0, 7, true), (12, 3, false)] {
            let place = Place { round, row, last };
            assert_eq!(Place::of(place.number()), Some(place));
        }
    }
}
