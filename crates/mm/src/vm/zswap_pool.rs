//! What zswap has in memory: slots by group, in the order in which they came, and frames for what they hold.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ground::ids::Pfn;
use crate::memcg::GroupId;

/// Where what is in a slot is, but for memory where it is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Stored {
    /// On the device, or on its way there.
    #[default]
    Device,
    /// In zswap.
    Zswap {
        /// When it came, in order.
        turn: u64,
        /// Whether it is left alone the first time that it is come to.
        spared: bool,
    },
    /// Only in memory: it was taken out of zswap.
    Nowhere,
}

/// What zswap has.
#[derive(Debug)]
pub(super) struct ZswapPool {
    /// What is here of each group.
    groups: BTreeMap<GroupId, OfGroup>,
    /// The next that comes is so many-th.
    next: u64,
    /// So many hundredths of a page become one.
    ratio_percent: u32,
    /// Pages here, those of zeros apart, which take no room.
    pages: u32,
    /// Frames of the pool.
    frames: Vec<Pfn>,
    /// It was full, and is not yet down to where it accepts more.
    pub(super) is_full: bool,
    /// The group that was come to last.
    last: Option<GroupId>,
}

impl Default for ZswapPool {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            next: 0,
            ratio_percent: 300,
            pages: 0,
            frames: Vec::new(),
            is_full: false,
            last: None,
        }
    }
}

/// What a group has here.
#[derive(Debug, Default)]
struct OfGroup {
    /// Slots, by when they came.
    slots: BTreeMap<u64, u32>,
    /// Of them, those that take room.
    pages: u32,
    /// Pages that the group is charged for them.
    charged: u32,
}

/// A slot, for the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) slot: u32,
    pub(super) group: GroupId,
    /// Pages that it takes room for: none if it holds zeros.
    pub(super) pages: u32,
}

impl ZswapPool {
    const fn frames_of(&self, pages: u32) -> u32 {
        (pages as u64 * 100).div_ceil(self.ratio_percent as u64) as u32
    }

    /// Frames that are missing for what is here.
    pub(super) fn missing(&self) -> u32 {
        self.frames_of(self.pages).saturating_sub(self.frames.len() as u32)
    }

    /// A frame that is not needed any more.
    pub(super) fn spare(&mut self) -> Option<Pfn> {
        let is_spare = self.frames.len() as u32 > self.frames_of(self.pages);
        if is_spare { self.frames.pop() } else { None }
    }

    /// The group whose turn it is; `None`: the round is over.
    pub(super) fn next_group(&mut self) -> Option<GroupId> {
        use core::ops::Bound::{Excluded, Unbounded};
        let after = self.last.map_or(Unbounded, Excluded);
        self.last = self.groups.range((after, Unbounded)).map(|(&group, _)| group).next();
        self.last
    }

    /// Pages become so many hundredths of one from now on, while nothing is here.
    pub(super) fn set_ratio(&mut self, percent: u32) {
        self.ratio_percent = percent.max(100);
    }

    /// Frames of the pool.
    pub(super) fn frames(&self) -> u32 {
        self.frames.len() as u32
    }

    pub(super) fn add_frame(&mut self, pfn: Pfn) {
        self.frames.push(pfn);
    }

    /// Slots whose contents are here.
    pub(super) fn slots(&self) -> u32 {
        self.groups.values().map(|group| group.slots.len() as u32).sum()
    }

    /// Whether anything ever was.
    pub(super) fn was_used(&self) -> bool {
        self.next > 0
    }

    /// The number of what comes next.
    pub(super) fn next_turn(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// What has been here for longest of `group`.
    pub(super) fn oldest(&self, group: GroupId) -> Option<u32> {
        self.groups.get(&group)?.slots.first_key_value().map(|(_, &slot)| slot)
    }

    /// What of `group` came as the `turn`-th.
    pub(super) fn slot_at(&self, group: GroupId, turn: u64) -> Option<u32> {
        self.groups.get(&group)?.slots.get(&turn).copied()
    }

    /// What is in the slot of `part` was at the first place and is at the second; gives what its group is charged more.
    pub(super) fn change(&mut self, part: Part, (before, after): (Stored, Stored)) -> i64 {
        let Part { slot, group, pages } = part;
        let of_group = self.groups.entry(group).or_default();
        if let Stored::Zswap { turn, .. } = before {
            of_group.slots.remove(&turn);
            of_group.pages -= pages;
            self.pages -= pages;
        }
        if let Stored::Zswap { turn, .. } = after {
            of_group.slots.insert(turn, slot);
            of_group.pages += pages;
            self.pages += pages;
        }
        let more = of_group.recharge(self.ratio_percent);
        if of_group.slots.is_empty() {
            self.groups.remove(&group);
        }
        more
    }

    /// There are so many `slots` here, so many `pages` of which take room.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check(&self, pages: u32, slots: u32) -> Result<(), String> {
        let of_groups: u32 = self.groups.values().map(|group| group.pages).sum();
        let counted = (self.slots(), self.pages, of_groups, self.frames());
        let right = (slots, pages, pages, self.frames_of(pages));
        if counted != right {
            return Err(format!(
                "zswap counts {counted:?} slots, pages, groups' pages and frames, but has {right:?}"
            ));
        }
        Ok(())
    }
}

impl OfGroup {
    /// What the group is to be charged more for what is here, or less.
    fn recharge(&mut self, ratio_percent: u32) -> i64 {
        let now = (u64::from(self.pages) * 100).div_ceil(ratio_percent.into()) as u32;
        let more = i64::from(now) - i64::from(self.charged);
        self.charged = now;
        more
    }
}
