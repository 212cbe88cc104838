//! How much of a group's memory may be dirty before its writers wait (`mdtc_calc_avail`, cgroup writeback of version 2): a part of its
//! pages of files and of what it may still have. Without it a writer fills its group with pages that reclaim cannot take, and
//! is out of memory beside a disk that only needs time.

use super::{Group, GroupId, Limit, MemcgDoor, MemcgGround};
use crate::ground::{Machine, Relaxed};
use crate::rules::policy::GroupStatRule;

/// Of a group: its pages of files that wait for the disk, and what these are a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupDirt {
    /// Base pages that are dirty or being written.
    pub(crate) pending: u64,
    /// Base pages of files, and those that the group may have more.
    pub(crate) dirtyable: u64,
}

impl Group {
    /// Pages below its `max` and `high`.
    fn headroom(&self) -> u64 {
        let most = self.limit(Limit::Max).min(self.limit(Limit::High));
        most.saturating_sub(self.usage.load(Relaxed))
    }
}

impl<M: Machine, G: MemcgGround<M>> MemcgDoor<'_, M, G> {
    /// `group` has so many pages of files more, or less.
    #[inline]
    pub(crate) fn count_file(self, group: GroupId, pages: i64) {
        if group != GroupId::ROOT {
            self.own().group(group).file.fetch_add(pages, Relaxed);
        }
    }

    /// The same of those that are dirty or being written.
    #[inline]
    pub(crate) fn count_pending(self, group: GroupId, pages: i64) {
        if group != GroupId::ROOT {
            self.own().group(group).pending.fetch_add(pages, Relaxed);
        }
    }

    /// Figures of `group` are brought up to date.
    pub(crate) fn see_dirt(self, group: GroupId) {
        let of = self.own().group(group);
        for (seen, now) in of.seen.iter().zip([&of.file, &of.pending]) {
            seen.store(now.load(Relaxed), Relaxed);
        }
    }

    /// How it stands with the group of the task that runs, as old as the kernel knows it; `None` in the root, and where nothing bounds the group.
    pub(crate) fn dirt(self) -> Option<GroupDirt> {
        let group = self.current();
        let above = || self.upward(group).filter(|&above| above != GroupId::ROOT);
        let headroom = above().map(|above| self.own().group(above).headroom()).min()?;
        let bounded = |above: GroupId| [Limit::Max, Limit::High].map(|limit| self.limit(above, limit));
        if above().flat_map(bounded).all(|limit| limit == u64::MAX) {
            return None;
        }
        let of = self.own().group(group);
        let known = match self.rules().reclaim.group_stat {
            GroupStatRule::Flushed => [&of.seen[0], &of.seen[1]],
            GroupStatRule::AsTheyAre | GroupStatRule::SumsFlushed => [&of.file, &of.pending],
        };
        let [file, pending] = known.map(|count| count.load(Relaxed).max(0) as u64);
        Some(GroupDirt { pending, dirtyable: file.saturating_add(headroom) })
    }
}
