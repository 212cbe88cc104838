//! What reclaiming pages of either kind cost of late (`lru_note_cost`): pages that had to be written or came back too early and, since 6.2, a 32nd
//! of that each that turned out to be in use. Noted for a set of lists and for those of the groups above.

use super::{LruDoor, LruGround, LruList, SWAP_CLUSTER_MAX, VecId};
use crate::ground::{Machine, Relaxed};
use crate::memcg::GroupId;
use crate::rules::policy::CostRule;

/// What pages cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cost {
    /// Pages that were written, or that came back.
    pub(crate) moved: u32,
    /// Pages that were looked at and stayed.
    pub(crate) rotated: u32,
    /// Code that was kept active.
    pub(crate) kept: u32,
}

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// Pages of `list`'s kind in `vec` cost so much; what is long ago counts for less.
    pub(crate) fn note_cost(self, vec: VecId, list: LruList, cost: Cost) {
        let Cost { moved, rotated, kept } = cost;
        let pages = kept
            + match self.rules().reclaim.cost {
                CostRule::Moves => moved,
                CostRule::MovesAndRotations => moved * SWAP_CLUSTER_MAX as u32 + rotated,
            };
        if pages == 0 {
            return;
        }
        if vec.group == GroupId::ROOT {
            return self.note_cost_alone(vec, list, pages);
        }
        for group in self.memcg().upward(vec.group) {
            self.note_cost_alone(VecId { group, ..vec }, list, pages);
        }
    }

    fn note_cost_alone(self, vec: VecId, list: LruList, pages: u32) {
        let cost = &self.vec(vec).cost;
        cost[usize::from(list.is_file())].fetch_add(pages, Relaxed);
        let [anon, file] = [cost[0].load(Relaxed), cost[1].load(Relaxed)];
        let listed: u32 = self.stat(vec).sizes.iter().sum();
        if anon.saturating_add(file) > listed / 4 {
            cost[0].store(anon / 2, Relaxed);
            cost[1].store(file / 2, Relaxed);
        }
    }

    /// What anonymous pages and those of files of `vec` and below it cost of late.
    pub(crate) fn cost(self, vec: VecId) -> [u32; 2] {
        [0, 1].map(|kind| self.vec(vec).cost[kind].load(Relaxed))
    }
}
