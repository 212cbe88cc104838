//! `memory.low` and `memory.min`: how much of what a group has is protected from reclaim that is not its own
//! (`effective_protection`, without the mount option `memory_recursiveprot`).

use super::{GroupId, Limit, MemcgDoor, MemcgGround};
use crate::ground::Machine;

/// What of a group reclaim from above is to leave, in base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Protection {
    /// In any case.
    pub(crate) min: u64,
    /// While there is anything else.
    pub(crate) low: u64,
    /// What it has.
    pub(crate) usage: u64,
}

impl Protection {
    /// Whether nothing of it may be taken.
    pub(crate) fn is_below_min(self) -> bool {
        self.usage > 0 && self.usage <= self.min
    }

    /// Whether it is to be taken from only where there is nothing else.
    pub(crate) fn is_below_low(self) -> bool {
        self.usage > 0 && self.usage <= self.low
    }
}

impl<M: Machine, G: MemcgGround<M>> MemcgDoor<'_, M, G> {
    /// What of `group` is protected from reclaim in `target`, which is above it. In itself nothing is.
    pub(crate) fn protection(self, target: GroupId, group: GroupId) -> Protection {
        if group == GroupId::ROOT || group == target {
            return Protection::default();
        }
        let usage = self.usage(group);
        let protection = Protection {
            min: self.effective(target, group, Limit::Min),
            low: self.effective(target, group, Limit::Low),
            usage,
        };
        // Any protection changes how much is looked at.
        self.note_use(Limit::Min, usage, self.limit(group, Limit::Min), usage > 0 && protection.min > 0);
        self.note_use(Limit::Low, usage, self.limit(group, Limit::Low), usage > 0 && protection.low > 0);
        protection
    }

    fn effective(self, target: GroupId, group: GroupId, limit: Limit) -> u64 {
        let parent = self.parent(group);
        let setting = self.limit(group, limit);
        if parent == target {
            return setting;
        }
        let claimed = |group: GroupId| self.limit(group, limit).min(self.usage(group));
        let children = self.all().filter(|&id| id != GroupId::ROOT && self.parent(id) == parent);
        let sum: u64 = children.map(claimed).sum();
        distribute(claimed(group), sum, self.effective(target, parent, limit))
    }
}

/// The part of `parent` that a group has which claims `own` of the `sum` that it and its siblings do.
fn distribute(own: u64, sum: u64, parent: u64) -> u64 {
    if sum > parent { (u128::from(own) * u128::from(parent) / u128::from(sum)) as u64 } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_share_what_their_parent_keeps() {
        assert_eq!(distribute(100, 300, 1000), 100);
        assert_eq!((distribute(100, 400, 200), distribute(300, 400, 200)), (50, 150));
    }
}
