//! What a group may have, and what it is to keep.

use super::{GroupAsk, GroupEvent, GroupId, MemcgDoor, MemcgGround};
use crate::ground::{Machine, PAGE_SHIFT, Relaxed};
use crate::rules::knobs::{Knob, KnobUse, Margin};

/// A file of a group that takes a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// `memory.max`: charges beyond it reclaim, and then kill.
    Max,
    /// `memory.high`: who goes beyond it reclaims, and is slowed down.
    High,
    /// `memory.low`: within it, a group is reclaimed only when there is nothing else.
    Low,
    /// `memory.min`: within it, a group is never reclaimed.
    Min,
    /// `memory.swap.max`: slots of swap.
    SwapMax,
}

impl Limit {
    pub(super) const COUNT: usize = 5;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [Self::Max, Self::High, Self::Low, Self::Min, Self::SwapMax];

    /// Its name behind `memory.`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::High => "high",
            Self::Low => "low",
            Self::Min => "min",
            Self::SwapMax => "swap.max",
        }
    }

    /// The knob that sets it for recorded programs.
    pub const fn knob(self) -> Knob {
        match self {
            Self::Max => Knob::MemoryMax,
            Self::High => Knob::MemoryHigh,
            Self::Low => Knob::MemoryLow,
            Self::Min => Knob::MemoryMin,
            Self::SwapMax => Knob::MemorySwapMax,
        }
    }

    /// The limit that `knob` sets, if it sets one.
    pub fn of(knob: Knob) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.knob() == knob)
    }

    /// Base pages for a value of its knob, which is in bytes; as in the kernel, parts of pages do not count.
    pub fn pages(self, bytes: u64) -> u64 {
        if bytes == self.knob().spec().max { u64::MAX } else { bytes >> PAGE_SHIFT }
    }

    /// What a new group has, in base pages.
    pub(super) const fn at_first(self) -> u64 {
        match self {
            Self::Low | Self::Min => 0,
            Self::Max | Self::High | Self::SwapMax => u64::MAX,
        }
    }
}

/// The least that reclaim is asked for at a time (`SWAP_CLUSTER_MAX`).
const LEAST: u32 = 32;

/// Fruitless rounds that writing a limit makes.
const ROUNDS: u32 = 16;

impl<M: Machine, G: MemcgGround<M>> MemcgDoor<'_, M, G> {
    /// What `group` has for `limit`, in base pages; `u64::MAX` for `max`.
    pub fn limit(self, group: GroupId, limit: Limit) -> u64 {
        self.own().group(group).limit(limit)
    }

    /// `group` has a setting for `limit`, or one above it has: something was decided by that where `seen` pages stood beside `mark`, and
    /// without a limit it would have been decided otherwise, or not.
    pub(super) fn note_use(self, limit: Limit, seen: u64, mark: u64, otherwise: bool) {
        if M::WATCHES_KNOBS && mark != limit.at_first() {
            let margin = Margin { seen, mark, default_mark: limit.at_first() };
            let used = KnobUse::of(&otherwise, &false).with(margin);
            self.machine().knob_used(limit.knob(), used);
        }
    }

    /// Gives `group` `pages` for `limit`, as a write to the file does: `max` and `high` reclaim what is beyond (up to 16
    /// fruitless rounds). Says whether that is enough: `false` only of a `max` that the group is still over, for which a process
    /// of it must go. The root has no limits.
    pub fn set_limit(self, group: GroupId, limit: Limit, pages: u64) -> bool {
        if group == GroupId::ROOT {
            return true;
        }
        self.own().group(group).limits[limit as usize].store(pages, Relaxed);
        match limit {
            Limit::Max => self.shrink_to(group, pages) || self.is_out_of_memory(group),
            Limit::High => {
                self.shrink_to(group, pages);
                true
            }
            Limit::Low | Limit::Min | Limit::SwapMax => true,
        }
    }

    fn is_out_of_memory(self, group: GroupId) -> bool {
        self.count(group, GroupEvent::Oom);
        false
    }

    /// Reclaims in `group` until it has no more than `pages`; says whether it has.
    fn shrink_to(self, group: GroupId, pages: u64) -> bool {
        let (mut drained, mut rounds) = (false, ROUNDS);
        loop {
            let over = self.usage(group).saturating_sub(pages);
            if over == 0 {
                return true;
            }
            if !drained {
                self.drain_stocks();
                drained = true;
                continue;
            }
            let pages = u32::try_from(over).unwrap_or(u32::MAX);
            if self.ground.reclaim_in_group(GroupAsk { group, pages, no_fs: false }) == 0 {
                if rounds == 0 {
                    return false;
                }
                rounds -= 1;
            }
        }
    }

    /// Frees up to `pages` of `group` (a write to `memory.reclaim`, by the rules since 6.12): a quarter of the rest at a time.
    /// Says whether it could.
    pub fn reclaim(self, group: GroupId, pages: u32) -> bool {
        let (mut freed, mut retries) = (0, ROUNDS);
        while freed < pages {
            if retries == 0 {
                self.ground.drain_batches();
            }
            let part = ((pages - freed) / 4).max(LEAST);
            let now = self.ground.reclaim_in_group(GroupAsk { group, pages: part, no_fs: false });
            if now == 0 {
                if retries == 0 {
                    return false;
                }
                retries -= 1;
            }
            freed += now;
        }
        true
    }
}
