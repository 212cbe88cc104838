//! Refaults (the kernel's workingset.c): what is evicted leaves a shadow in its place, with the time, counted in evictions and
//! activations. A page that comes back before as many others were evicted as there are active ones would have stayed with a
//! little more memory: it becomes active at once.

use super::cost::Cost;
use super::page::PageFlag;
use super::{LruDoor, LruGround, LruList, VecEvent, VecId};
use crate::ground::{Machine, Pfn, Relaxed};
use crate::memcg::GroupId;
use crate::rules::policy::WorkingsetRule;

/// What is left in the place of a page that was evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shadow {
    /// The set of lists of who reclaimed: of the group that was too large, or of the root.
    pub(super) by: VecId,
    /// When; of generations, the oldest one's number, and how often it was used.
    pub(super) age: u64,
    /// It had been active before.
    pub(super) workingset: bool,
}

/// Who brings a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum By {
    /// A fault, in a region of which nobody has said that it is used here and there or from the first page on.
    Fault,
    /// Somebody else.
    #[default]
    Other,
}

/// How a page came to an address space or a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    New,
    /// It had been there before.
    Back(Shadow),
}

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// The page at `pfn` is about to be evicted by reclaim in `target` (`workingset_eviction`).
    pub(crate) fn evict(self, pfn: Pfn, target: GroupId) -> Shadow {
        if self.keeps_generations() {
            return self.generations().evict_from_generation(pfn);
        }
        let by = VecId { group: target, ..self.vec_of(pfn) };
        let age = self.vec(by).age.load(Relaxed);
        self.grow_older(by, self.pages().order_of(pfn).pages());
        Shadow { by, age, workingset: self.page(pfn).has(PageFlag::Workingset) }
    }

    /// So many pages of `vec` were evicted or activated.
    pub(crate) fn grow_older(self, vec: VecId, pages: u32) {
        if vec.group == GroupId::ROOT {
            self.vec(vec).age.fetch_add(pages.into(), Relaxed);
            return;
        }
        for group in self.memcg().upward(vec.group) {
            self.vec(VecId { group, ..vec }).age.fetch_add(pages.into(), Relaxed);
        }
    }

    /// A page that its program used became active (`workingset_activation`).
    pub(super) fn note_activation(self, pfn: Pfn) {
        self.grow_older(self.vec_of(pfn), self.pages().order_of(pfn).pages());
    }

    /// The new page at `pfn`, which is on no list yet, is what left `shadow` (`workingset_refault`); `by` brought it. `has_swap`
    /// says whether a group may have slots of swap more.
    pub(crate) fn refault(self, pfn: Pfn, shadow: Shadow, by: By, has_swap: impl Fn(GroupId) -> bool) {
        if self.keeps_generations() {
            return self.generations().refault_in_generation(pfn, shadow, by);
        }
        let (vec, page) = (self.vec_of(pfn), self.page(pfn));
        let (list, pages) = (LruList::of(page), self.pages().order_of(pfn).pages());
        self.count_in(vec, VecEvent::RefaultFile.of_kind(list), pages);
        if !self.is_recent(shadow, list, has_swap(shadow.by.group)) {
            return;
        }
        page.set(PageFlag::Active);
        self.grow_older(vec, pages);
        self.count_in(vec, VecEvent::ActivateFile.of_kind(list), pages);
        if shadow.workingset {
            page.set(PageFlag::Workingset);
            self.count_in(vec, VecEvent::RestoreFile.of_kind(list), pages);
            self.note_cost(vec, list, Cost { moved: pages, ..Cost::default() });
        }
    }

    /// Whether `shadow` is of so late that its page would have stayed with the room that active pages take
    /// (`workingset_test_recent`).
    fn is_recent(self, shadow: Shadow, list: LruList, has_swap: bool) -> bool {
        let distance = self.vec(shadow.by).age.load(Relaxed).wrapping_sub(shadow.age);
        let size = |list: LruList| u64::from(self.stat(shadow.by).sizes[list.index()]);
        let mut room = size(LruList::ActiveFile);
        if self.rules().reclaim.workingset != WorkingsetRule::All {
            return distance <= room;
        }
        if !list.is_file() {
            room += size(LruList::InactiveFile);
        }
        if has_swap {
            room += size(LruList::ActiveAnon);
            if list.is_file() {
                room += size(LruList::InactiveAnon);
            }
        }
        distance <= room
    }
}
