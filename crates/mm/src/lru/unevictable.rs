//! Pages that somebody has locked into memory (`mlock`): a list of its own in each set, that reclaim never looks at and no size of the
//! other lists counts (`LRU_UNEVICTABLE`).
//!
//! ```text
//!   mlock_new ─▶ (as a new page) ─▶┐
//!                                  ├─▶ unevictable ──(munlock, a batch)──▶ inactive
//!   mlock ─▶ a CPU's batch ───────▶┘
//! ```
//!
//! Whether a page is locked is asked whenever it comes to a list: what is locked while somebody has it isolated goes to the
//! unevictable list as it is put back. Locks are not counted (the kernel counts those of a page up to 2^16 or so): the first that is
//! taken back lets the page go, though another process may hold it still.

use super::batch::Move;
use super::{End, Lists, Lru, LruDoor, LruGround, ReclaimEvent, VecId};
use crate::ground::{AtomicU32, Machine, Pfn, Relaxed};
use crate::lru::page::{Page, PageFlag};
use crate::memcg::{GroupId, MemcgDoor};
use crate::pages::{Zone, door};

door! {
    /// Pages that cannot go, for somebody locked them into memory.
    UnevictableDoor on LruGround, Lru<M>: lru_lists, to { lru: LruDoor, memcg: MemcgDoor }
}

impl<'a, M: Machine, G: LruGround<M>> UnevictableDoor<'a, M, G> {
    /// The page, which has not come to the lists yet, is locked into memory (`mlock_new_folio`).
    pub(crate) fn mlock_new(self, pfn: Pfn) {
        if self.page(pfn).set(PageFlag::Mlocked) {
            self.lru().count(pfn, ReclaimEvent::Lock);
        }
    }

    /// The page is locked into memory: it leaves its list with this CPU's batch (`mlock_folio`). The caller has a reference.
    pub(crate) fn mlock(self, pfn: Pfn) {
        if !self.page(pfn).has(PageFlag::Mlocked) {
            self.mlock_new(pfn);
            self.batch(Move::Lock, pfn);
        }
    }

    /// The page is locked no more: it comes back to the lists with this CPU's batch (`munlock_folio`). The caller has a reference.
    /// Says whether it was locked.
    pub(crate) fn munlock(self, pfn: Pfn) -> bool {
        let page = self.page(pfn);
        let was_locked = page.has(PageFlag::Mlocked) && page.clear(PageFlag::Mlocked);
        if was_locked {
            self.lru().count(pfn, ReclaimEvent::Unlock);
            self.batch(Move::Unlock, pfn);
        }
        was_locked
    }

    /// The contents of the page at `from` have gone to `to`, which is locked if it was.
    pub(super) fn move_lock(self, from: Pfn, to: Pfn) {
        if self.page(from).has(PageFlag::Mlocked) {
            self.page(from).clear(PageFlag::Mlocked);
            self.lru().count(from, ReclaimEvent::Unlock);
            self.lru().count(to, ReclaimEvent::Lock);
        }
    }

    /// The page's life ends, whether it was locked or not.
    pub(super) fn end_lock(self, pfn: Pfn) {
        if self.page(pfn).has(PageFlag::Mlocked) {
            self.page(pfn).clear(PageFlag::Mlocked);
            self.lru().count(pfn, ReclaimEvent::Unlocked);
        }
    }

    fn batch(self, movement: Move, pfn: Pfn) {
        self.page(pfn).get();
        self.lru().batch(movement, pfn);
    }

    fn page(self, pfn: Pfn) -> &'a Page {
        self.own().page(pfn)
    }

    /// Base pages that are locked into memory.
    pub(super) fn locked_pages(self, zone: &Zone<M>) -> u64 {
        let counted = |event| self.lru().events(zone.id()).get(event);
        let gone = counted(ReclaimEvent::Unlock) + counted(ReclaimEvent::Unlocked);
        counted(ReclaimEvent::Lock).saturating_sub(gone)
    }

    /// Puts a locked page on its list, whose lock is held.
    pub(super) fn list(self, lists: &mut Lists, pfn: Pfn) {
        let page = self.page(pfn);
        page.clear(PageFlag::Active);
        if page.set(PageFlag::Unevictable) {
            self.lru().count(pfn, ReclaimEvent::Cull);
        }
        lists.unevictable.push_front(self.pages().cx().mem(), pfn);
        page.set(PageFlag::Lru);
        self.size_of(pfn).fetch_add(self.pages().order_of(pfn).pages(), Relaxed);
    }

    /// Takes it off. It is flagged until it comes to another list.
    pub(super) fn unlist(self, lists: &mut Lists, pfn: Pfn) {
        lists.unevictable.remove(self.pages().cx().mem(), pfn);
        self.page(pfn).clear(PageFlag::Lru);
        self.size_of(pfn).fetch_sub(self.pages().order_of(pfn).pages(), Relaxed);
    }

    /// Where the base pages of the list that the page at `pfn` is on, or comes to, are counted.
    fn size_of(self, pfn: Pfn) -> &'a AtomicU32 {
        let zone = &self.zones()[usize::from(self.map().frame(pfn).state().zone.0)];
        &self.lru().vec(self.lru().vec_of(pfn)).unevictable[zone.kind() as usize]
    }

    /// A batch's page, locked or let go since: it changes lists if it is on one that is not its own any more. Lists' lock is held.
    pub(super) fn move_locked(self, lists: &mut Lists, pfn: Pfn) {
        let page = self.page(pfn);
        let is_elsewhere = page.has(PageFlag::Mlocked) != page.has(PageFlag::Unevictable);
        if page.has(PageFlag::Lru) && is_elsewhere {
            self.lru().unlist_page(lists, pfn);
            self.lru().list_page(lists, pfn, End::Head);
        }
    }

    /// Base pages of `zone` on unevictable lists.
    pub(crate) fn zone_size(self, zone: &Zone<M>) -> u32 {
        let of = |group| {
            let vec = VecId { group, ..self.lru().vec_of_zone(zone) };
            self.lru().vec(vec).unevictable[zone.kind() as usize].load(Relaxed)
        };
        self.memcg().all().map(of).sum()
    }

    /// Base pages on the unevictable lists of `group` and those below it.
    pub(crate) fn group_size(self, group: GroupId) -> u64 {
        let places = self.own().vecs.len() as u16;
        let vecs = (0..places)
            .flat_map(|place| self.memcg().tree(group).into_iter().map(move |group| VecId { group, place }));
        vecs.map(|vec| u64::from(self.size(vec))).sum()
    }

    /// Base pages on the unevictable list of `vec` alone.
    pub(super) fn size(self, vec: VecId) -> u32 {
        self.lru().vec(vec).unevictable.iter().map(|pages| pages.load(Relaxed)).sum()
    }
}
