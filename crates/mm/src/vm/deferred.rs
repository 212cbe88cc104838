//! Large pages, huge ones above all, of which parts are mapped no more: they stay in one piece, in a queue, and are split when memory
//! is short, which frees these parts (`deferred_split_folio`, `deferred_split_scan`; docs/rules/huge-pages.md#deferred-splits).
//!
//! Nobody tells the queue that a page was freed: who looks through it leaves out what is no large page of an address space any more,
//! and a new one in the same frames is told when it begins.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{DeferredDoor, RmapDoor, SpacesGround};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::sync::Locked;
use crate::lru::page::Mapping;
use crate::memcg::GroupId;
use crate::rules::policy::{DeferredSplitRule, SwapLargeRule};

/// Pages that a shrinker looks at together (`SHRINK_BATCH`), and what looking at one is worth (`DEFAULT_SEEKS`).
const BATCH: u64 = 128;
const SEEKS: u64 = 2;

/// The queue.
#[derive(Debug)]
pub(super) struct Deferred<M: Machine>(Locked<M, Queue>);

#[derive(Debug, Default)]
struct Queue {
    /// By the first frame.
    pages: BTreeMap<Pfn, Waiting>,
    next: u64,
    /// By group, pages that were to be looked at and were not, for there were too few to begin (`nr_deferred`).
    owed: BTreeMap<GroupId, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Its place in the queue.
    place: u64,
    /// Whether parts of it are mapped no more.
    in_part: bool,
}

impl<M: Machine> Deferred<M> {
    pub(super) fn new(machine: &M) -> Self {
        Self(Locked::new(machine, LockClass::Other, 8, Queue::default()))
    }

    fn has_part(&self, machine: &M, head: Pfn) -> bool {
        self.0.lock_local(machine).pages.get(&head).is_some_and(|waiting| waiting.in_part)
    }

    /// The page at `head` is not a huge one any more.
    pub(super) fn forget(&self, machine: &M, head: Pfn) {
        self.0.lock_local(machine).pages.remove(&head);
    }

    /// What was at `from` is at `to` now.
    pub(super) fn moved(&self, machine: &M, from: Pfn, to: Pfn) {
        let mut queue = self.0.lock_local(machine);
        if let Some(waiting) = queue.pages.remove(&from) {
            queue.pages.insert(to, waiting);
        }
    }
}

impl Queue {
    fn push(&mut self, head: Pfn, in_part: bool) {
        self.next += 1;
        self.pages.insert(head, Waiting { place: self.next, in_part });
    }
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Whether the large page at `head` would go to swap in one piece.
    pub(crate) fn goes_whole(self, head: Pfn) -> bool {
        let order = self.pages().order_of(head);
        match self.rules().reclaim.swap.large {
            SwapLargeRule::Split => false,
            // In parts it is mapped as often as it has parts.
            SwapLargeRule::MappedWhole => {
                order == Order::PAGEBLOCK && self.lru().page(head).mapped() < order.pages()
            }
            SwapLargeRule::Whole => !self.own().deferred.has_part(self.machine(), head),
        }
    }

    /// As [`DeferredDoor::split_deferred`], for reclaim.
    pub(crate) fn split_deferred(self, group: GroupId, priority: u32) {
        self.deferred().split_deferred(group, priority);
    }
}

impl<M: Machine, G: SpacesGround<M>> DeferredDoor<'_, M, G> {
    /// A huge page begins its life at `head`.
    pub(super) fn begin_huge(self, head: Pfn) {
        let mut queue = self.own().deferred.0.lock_local(self.machine());
        queue.pages.remove(&head);
        if self.rules().reclaim.deferred_split == DeferredSplitRule::QueuesAll {
            queue.push(head, false);
        }
    }

    /// An entry that mapped the frame `part` of the huge page at `head`, or all of it (`None`), has gone; the caller has a reference
    /// still, and no lock of a table. If other parts are mapped and this one is not, it is to be split some time.
    pub(super) fn part_gone(self, head: Pfn, part: Option<Pfn>) {
        let page = self.lru().page(head);
        let queued = &self.own().deferred;
        if page.mapped() == 0
            || self.pages().order_of(head) == Order::ZERO
            || !matches!(page.mapping(), Mapping::Anon(_))
            || self.rules().reclaim.deferred_split == DeferredSplitRule::SplitsAtOnce
            || queued.has_part(self.machine(), head)
        {
            return;
        }
        let has_gap = match part {
            Some(part) => !self.rmap().maps_part(head, part.0 - head.0),
            None => (0..self.pages().order_of(head).pages()).any(|part| !self.rmap().maps_part(head, part)),
        };
        if !has_gap {
            return;
        }
        let mut queue = queued.0.lock_local(self.machine());
        match queue.pages.get_mut(&head) {
            Some(waiting) => waiting.in_part = true,
            None => queue.push(head, true),
        }
        self.own().events.split_deferred(self.pages().order_of(head));
    }

    /// Splits some of the pages in the queue that are charged to `group`, as a reclaimer at `priority` has it: `seeks` of 2,
    /// nothing until a batch, or all there are, would be looked at (`do_shrink_slab`).
    fn split_deferred(self, group: GroupId, priority: u32) {
        let waiting = self.waiting_of(group);
        if waiting.is_empty() {
            return;
        }
        let freeable = waiting.len() as u64;
        let delta = (freeable >> priority) * 4 / SEEKS;
        let owed = {
            let mut queue = self.own().deferred.0.lock_local(self.machine());
            queue.owed.remove(&group).unwrap_or(0)
        };
        let mut total = ((owed >> priority) + delta).min(2 * freeable);
        let (mut left, mut scanned) = (waiting.into_iter(), 0);
        while total >= BATCH || total >= freeable {
            let now = BATCH.min(total);
            left.by_ref().take(now as usize).for_each(|(head, in_part)| self.split_waiting(head, in_part));
            (total, scanned) = (total - now, scanned + now);
        }
        let owed = (owed + delta).saturating_sub(scanned).min(2 * freeable);
        self.own().deferred.0.lock_local(self.machine()).owed.insert(group, owed);
    }

    /// The pages of `group` in the queue, the first first; what is none any more leaves it.
    fn waiting_of(self, group: GroupId) -> Vec<(Pfn, bool)> {
        let mut queue = self.own().deferred.0.lock_local(self.machine());
        queue.pages.retain(|&head, _| {
            let page = self.lru().page(head);
            page.refs() > 0
                && self.pages().order_of(head) > Order::ZERO
                && matches!(page.mapping(), Mapping::Anon(_))
        });
        let all = queue.pages.iter().filter(|(head, _)| self.lru().page(**head).group() == group);
        let mut all: Vec<(u64, Pfn, bool)> =
            all.map(|(&head, waiting)| (waiting.place, head, waiting.in_part)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, head, in_part)| (head, in_part)).collect()
    }

    /// Splits the page at `head` if parts of it are mapped no more; if that cannot be, it waits again. What is whole is
    /// looked at once (kernels that queue all would split it if most of it were zeros, which is not known here).
    fn split_waiting(self, head: Pfn, in_part: bool) {
        if in_part && self.lru().page(head).try_get() {
            // With a reference it stays what it is. Since the queue was looked at it may have been split, or gone and come again as a small one.
            let is_large = self.pages().order_of(head) > Order::ZERO;
            let is_done = !is_large || self.spaces().split_huge_page(head);
            self.lru().put_page(head);
            if is_done {
                return;
            }
        }
        let mut queue = self.own().deferred.0.lock_local(self.machine());
        if in_part {
            queue.push(head, true);
        } else {
            queue.pages.remove(&head);
        }
    }
}
