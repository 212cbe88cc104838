//! `memory.high`: who charged while a group was over it reclaims on the way back to the program, and waits, the longer the
//! further beyond it is (`__mem_cgroup_handle_over_high`, read in 6.1 to 7.1). Kernels before 5.9 do less of it ([`GroupHighRule`]).

use super::{GroupAsk, GroupEvent, GroupId, Limit, MemcgDoor, MemcgGround};
use crate::ground::{Machine, Nanos, Relaxed};
use crate::rules::policy::GroupHighRule;

/// Overage is counted in parts of 2^20.
const PRECISION: u32 = 20;
/// And its square is worth so much less.
const SCALING: u32 = 14;
/// The longest wait.
const MOST: u64 = 2_000_000_000;
/// No wait is shorter.
const LEAST: u64 = 10_000_000;
/// Fruitless rounds of reclaim before a wait.
const RETRIES: u32 = 16;
/// Pages of a round after the first.
const AGAIN: u32 = 32;

impl<M: Machine, G: MemcgGround<M>> MemcgDoor<'_, M, G> {
    /// `pages` were charged to `group`: if it or one above it is over `high`, the task owes for them.
    pub(super) fn note_over_high(self, group: GroupId, pages: u32) {
        let over = self.upward(group).find(|&group| self.overage(group) > 0);
        let at = over.unwrap_or(group);
        self.note_use(Limit::High, self.usage(at), self.limit(at, Limit::High), over.is_some());
        if over.is_none() {
            return;
        }
        if self.own().members.owe(self.machine().task(), pages) > self.batch() {
            self.settle_high();
        }
    }

    /// The task goes back to its program: it reclaims and waits for what it charged over `high`.
    pub fn settle_high(self) {
        if !self.in_use() {
            return;
        }
        let pages = self.own().members.take_owed(self.machine().task());
        if pages == 0 {
            return;
        }
        let group = self.current();
        let rule = self.rules().reclaim.group_high;
        let (mut wanted, mut retries) =
            (pages, if rule == GroupHighRule::TriesThenWaits { RETRIES } else { 0 });
        loop {
            let freed = self.reclaim_high(group, wanted);
            if rule == GroupHighRule::Reclaims {
                return;
            }
            let penalty = self.penalty(group, pages);
            if penalty.0 <= LEAST {
                return;
            }
            if retries == 0 && (freed == 0 || rule == GroupHighRule::Waits) {
                self.own().group(group).delayed.fetch_add(penalty.0, Relaxed);
                return self.machine().wait(penalty);
            }
            if freed == 0 {
                retries -= 1;
            }
            wanted = AGAIN;
        }
    }

    /// Reclaims in `group` and those above it that are over `high`.
    fn reclaim_high(self, group: GroupId, pages: u32) -> u32 {
        let mut freed = 0;
        for group in self.upward(group).filter(|&group| group != GroupId::ROOT) {
            if self.overage(group) > 0 {
                self.count(group, GroupEvent::High);
                freed += self.ground.reclaim_in_group(GroupAsk { group, pages, no_fs: false });
            }
        }
        freed
    }

    /// By how much `group` is over `high`, in parts of 2^20 of that.
    fn overage(self, group: GroupId) -> u64 {
        let this = self.own().group(group);
        let (usage, high) = (this.usage.load(Relaxed), this.limit(Limit::High));
        if group == GroupId::ROOT || usage <= high { 0 } else { ((usage - high) << PRECISION) / high.max(1) }
    }

    fn penalty(self, group: GroupId, pages: u32) -> Nanos {
        let overage = self.upward(group).map(|group| self.overage(group)).max().unwrap_or(0);
        Nanos(delay(overage, pages, self.batch()))
    }
}

/// How long who charged `pages`, `batch` of which are charged at a time, waits for an overage in parts of 2^20, in ns.
fn delay(overage: u64, pages: u32, batch: u32) -> u64 {
    let square = u128::from(overage) * u128::from(overage) * 1_000_000_000;
    let whole = (square >> (PRECISION + SCALING)) * u128::from(pages) / u128::from(batch);
    u64::try_from(whole).unwrap_or(MOST).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As published: 5 % over: 159 ms, 10 %: 639 ms, 18 %: 2 s (the kernel counts in ticks of 4 ms).
    #[test]
    fn the_wait_grows_with_the_square_of_the_overage() {
        let percent = |over: u64| delay((over << PRECISION) / 100, 32, 32) / 1_000_000;
        assert_eq!([1, 5, 10, 17, 18].map(percent), [6, 159, 639, 1849, 2000]);
        assert_eq!(delay((5 << PRECISION) / 100, 64, 32) / 1_000_000, 319);
        assert_eq!(
            delay((5 << PRECISION) / 100, 64, 64) / 1_000_000,
            159,
            "batches of 64: half as many waits"
        );
    }
}
