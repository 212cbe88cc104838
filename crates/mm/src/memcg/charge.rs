//! Charging pages to a group and those above it (`try_charge_memcg`): from the CPU's stock, or a batch at a time; where that goes
//! over a limit, the group reclaims, and at last a process of it must go.

use super::stock::{Kept, Stock};
use super::{GroupAsk, GroupEvent, GroupId, Limit, MemcgDoor, MemcgGround, Memcgs};
use crate::ground::{Machine, Relaxed};
use crate::pages::{AllocError, Urgency};

/// Fruitless rounds of reclaim before nothing more is hoped for (`MAX_RECLAIM_RETRIES`).
const RETRIES: u32 = 16;

/// A charge of so few pages is tried again whenever reclaim freed anything (order 3, `PAGE_ALLOC_COSTLY_ORDER`).
const FEW: u32 = 8;

/// How much is done for a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Effort {
    /// Whatever can be: at last a process of the group must go.
    #[default]
    Full,
    /// Reclaim, and once more when CPUs have given back what they keep (`__GFP_NORETRY`): who asks can do without.
    Little,
    /// As [`Self::Little`], from within a file system (`memalloc_nofs_save`).
    LittleNoFs,
    /// Nothing: who asks does not wait.
    None,
}

impl Effort {
    /// What is done for the charge of what was asked for by `urgency`: both follow from the same flags.
    pub(crate) const fn of(urgency: Urgency) -> Self {
        match urgency {
            Urgency::Waits | Urgency::TriesHard | Urgency::Atomic | Urgency::Reclaims => Self::Full,
            Urgency::Tries | Urgency::Once => Self::Little,
            Urgency::NoWait | Urgency::Never => Self::None,
        }
    }
}

impl<M: Machine> Memcgs<M> {
    /// Charges to `group` and those above; gives the one that it would take over its `max`, and then nothing is charged.
    fn charge_tree(&self, group: GroupId, pages: u32) -> Result<(), GroupId> {
        let mut at = group;
        while at != GroupId::ROOT {
            let this = self.group(at);
            let after = this.usage.fetch_add(pages.into(), Relaxed) + u64::from(pages);
            if after > this.limit(Limit::Max) {
                this.usage.fetch_sub(pages.into(), Relaxed);
                self.uncharge_up_to(group, at, pages);
                return Err(at);
            }
            this.peak.fetch_max(after, Relaxed);
            at = this.parent;
        }
        Ok(())
    }

    /// Takes back what was charged to the groups from `group` up to below `end`.
    fn uncharge_up_to(&self, group: GroupId, end: GroupId, pages: u32) {
        let mut at = group;
        while at != end {
            let this = self.group(at);
            this.usage.fetch_sub(pages.into(), Relaxed);
            at = this.parent;
        }
    }
}

impl<M: Machine, G: MemcgGround<M>> MemcgDoor<'_, M, G> {
    /// Charges `pages` to `group`. Waits and reclaims where it must.
    ///
    /// # Errors
    /// Nothing more can be freed there, not so easily, or the task was killed meanwhile.
    pub(crate) fn charge(self, group: GroupId, pages: u32, effort: Effort) -> Result<(), AllocError> {
        if group == GroupId::ROOT || self.stock().take(Kept { group, pages }) {
            return Ok(());
        }
        let (mut batch, mut drained, mut retries) = (pages.max(self.batch()), false, RETRIES);
        loop {
            let charged = self.own().charge_tree(group, batch);
            self.note_max(group, charged);
            let Err(over) = charged else {
                self.restock(group, batch - pages);
                self.note_over_high(group, batch);
                return Ok(());
            };
            if batch > pages {
                batch = pages;
                continue;
            }
            if effort == Effort::None {
                return Err(AllocError::OutOfMemory);
            }
            self.count(over, GroupEvent::Max);
            let ask = GroupAsk { group: over, pages, no_fs: effort == Effort::LittleNoFs };
            let freed = self.ground.reclaim_in_group(ask);
            if self.margin(over) >= u64::from(pages) {
                continue;
            }
            if !drained {
                self.drain_stocks();
                drained = true;
                continue;
            }
            if matches!(effort, Effort::Little | Effort::LittleNoFs) {
                return Err(AllocError::OutOfMemory);
            }
            if freed > 0 && pages <= FEW {
                continue;
            }
            if self.pages().is_killed(self.machine().task()) {
                return Err(AllocError::Killed);
            }
            if retries > 0 {
                retries -= 1;
                continue;
            }
            self.count(over, GroupEvent::Oom);
            return Err(AllocError::OutOfMemory);
        }
    }

    /// Says what `memory.max` did to a charge.
    fn note_max(self, group: GroupId, charged: Result<(), GroupId>) {
        if M::WATCHES_KNOBS {
            let at = charged.err().unwrap_or(group);
            let mark = self.limit(at, Limit::Max);
            let seen = if charged.is_err() { mark.saturating_add(1) } else { self.usage(at) };
            self.note_use(Limit::Max, seen, mark, charged.is_err());
        }
    }

    /// Whether `group` and those above may have `pages` more at once.
    pub(crate) fn has_room(self, group: GroupId, pages: u32) -> bool {
        let mut limited = self.upward(group).filter(|&group| group != GroupId::ROOT);
        limited.all(|group| self.margin(group) >= pages.into())
    }

    /// What `group` may have more (`mem_cgroup_margin`).
    fn margin(self, group: GroupId) -> u64 {
        let this = self.own().group(group);
        this.limit(Limit::Max).saturating_sub(this.usage.load(Relaxed))
    }

    /// Charges `pages` to `group`, whether it may have them or not.
    pub(crate) fn charge_anyway(self, group: GroupId, pages: u32) {
        for group in self.upward(group).filter(|&group| group != GroupId::ROOT) {
            let this = self.own().group(group);
            let before = this.usage.fetch_add(pages.into(), Relaxed);
            this.peak.fetch_max(before + u64::from(pages), Relaxed);
        }
    }

    /// `pages` of `group` are nobody's any more.
    pub(crate) fn uncharge(self, group: GroupId, pages: u32) {
        self.own().uncharge_up_to(group, GroupId::ROOT, pages);
    }

    /// The stock of this CPU.
    #[inline]
    fn stock(&self) -> &Stock {
        &self.own().stocks[usize::from(self.machine().cpu().0)]
    }

    /// Pages that a CPU charges at a time, and keeps at most (`MEMCG_CHARGE_BATCH`).
    pub(super) fn batch(self) -> u32 {
        self.rules().reclaim.group_charge.pages()
    }

    /// Keeps `pages` of `group` for the next charges on this CPU; another group's go back.
    fn restock(self, group: GroupId, pages: u32) {
        if pages > 0 {
            let back = self.stock().keep(Kept { group, pages }, self.batch());
            self.uncharge(back.group, back.pages);
        }
    }

    /// All CPUs give back what they keep (`drain_all_stock`).
    pub(crate) fn drain_stocks(self) {
        for stock in &self.own().stocks {
            let kept = stock.drain();
            self.uncharge(kept.group, kept.pages);
        }
    }

    /// Charges `slots` of swap to `group` (`__mem_cgroup_try_charge_swap`); says whether it may have them.
    pub(crate) fn charge_swap(self, group: GroupId, slots: u32) -> bool {
        let slots = u64::from(slots);
        let full = |group: &GroupId| {
            let this = self.own().group(*group);
            *group != GroupId::ROOT && this.swap.load(Relaxed) + slots > this.limit(Limit::SwapMax)
        };
        let over = self.upward(group).find(full);
        let at = over.unwrap_or(group);
        self.note_use(Limit::SwapMax, self.swap_usage(at), self.limit(at, Limit::SwapMax), over.is_some());
        if let Some(over) = over {
            self.count(over, GroupEvent::SwapFail);
            return false;
        }
        for group in self.upward(group).filter(|&group| group != GroupId::ROOT) {
            let this = self.own().group(group);
            this.swap_peak.fetch_max(this.swap.fetch_add(slots, Relaxed) + slots, Relaxed);
        }
        true
    }

    /// A slot of `group` is free again.
    pub(crate) fn uncharge_swap(self, group: GroupId) {
        for group in self.upward(group).filter(|&group| group != GroupId::ROOT) {
            self.own().group(group).swap.fetch_sub(1, Relaxed);
        }
    }

    /// Whether `group` may have `slots` of swap more.
    pub(crate) fn has_swap_left(self, group: GroupId, slots: u64) -> bool {
        let has = |group: &GroupId| {
            let this = self.own().group(*group);
            this.limit(Limit::SwapMax).saturating_sub(this.swap.load(Relaxed)) >= slots
        };
        let limited = || self.upward(group).filter(|&group| group != GroupId::ROOT);
        let short = limited().find(|group| !has(group));
        if let (true, Some(at)) = (M::WATCHES_KNOBS, short.or_else(|| limited().next())) {
            let wanted = self.swap_usage(at).saturating_add(slots);
            self.note_use(Limit::SwapMax, wanted, self.limit(at, Limit::SwapMax), short.is_some());
        }
        short.is_none()
    }

    /// Whether `group`, or one above it, has half of the swap that it may have (`mem_cgroup_swap_full`).
    pub(crate) fn is_swap_full(self, group: GroupId) -> bool {
        let limited = self.upward(group).filter(|&group| group != GroupId::ROOT);
        let mut full = limited.map(|at| {
            let (twice, limit) = (self.swap_usage(at).saturating_mul(2), self.limit(at, Limit::SwapMax));
            if M::WATCHES_KNOBS {
                self.note_use(Limit::SwapMax, twice, limit, twice >= limit);
            }
            twice >= limit
        });
        full.any(|is_full| is_full)
    }
}
