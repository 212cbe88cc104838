//! Where pages go among the generations: as they come to the lists, when they are found in use, when reclaim spares them.

use super::{GenLists, GenVec, Kind, MIN_GENERATIONS, place_of};
use crate::ground::{Machine, Pfn, Relaxed, ZoneKind};
use crate::lru::generations::GenDoor;
use crate::lru::page::{Mapping, Page, PageFlag};
use crate::lru::{End, Lists, LruGround, VecId};
use crate::rules::policy::{GenPlaceRule, GenUseRule};

/// What a page waits for as it comes to the next generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    ForNothing,
    /// To be written: it is to go when that is done.
    ForWriting,
}

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    /// The generation to which a page comes (`lru_gen_add_folio`).
    pub(super) fn generation_for(self, gens: &GenVec<M>, page: &Page, end: End) -> u64 {
        let kind = Kind::of(page);
        let (max, min) = (gens.max(), gens.min(kind));
        let is_pending =
            page.has(PageFlag::Reclaim) && (page.has(PageFlag::Dirty) || page.has(PageFlag::Writeback));
        let in_swap_cache = page.has(PageFlag::SwapCache) || page.mapping() == Mapping::Slot;
        let is_second = kind == Kind::Anon && !in_swap_cache || is_pending;
        let (active, workingset) = (page.has(PageFlag::Active), page.has(PageFlag::Workingset));
        let rule = self.gen_rules().place;
        if rule == GenPlaceRule::BothEnds {
            return match end {
                _ if active => max,
                _ if is_second => max - 1,
                End::Tail => min,
                End::Head if min + MIN_GENERATIONS >= max => min,
                End::Head => min + 1,
            };
        }
        let later = rule == GenPlaceRule::FilesLater;
        let back = match end {
            _ if active && workingset => 0,
            _ if active => 1,
            End::Head if is_second => 1,
            End::Head if workingset || later && page.has(PageFlag::Referenced) => 2,
            End::Head | End::Tail => 3,
        };
        max.saturating_sub(back).max(min)
    }

    /// A fault brings the page, which is on no list yet: it is to be young, but in 7.2, unless it was in use before, it only counts as used
    /// once. (Of memory that comes from swap a trace of 7.2 says so, too: the page with which a CPU's batch was full is still in the swap cache as it
    /// comes to its list, and comes to the third generation; the others are not any more, and come to the second.)
    pub(in crate::lru) fn note_fault(self, page: &Page) {
        let is_used = self.gen_rules().place == GenPlaceRule::FilesLater && !page.has(PageFlag::Workingset);
        page.set(if is_used { PageFlag::Referenced } else { PageFlag::Active });
    }

    /// Puts a page on the list of its generation.
    pub(in crate::lru) fn list_in_generation(self, vec: VecId, lists: &mut Lists, pfn: Pfn, end: End) {
        let (page, state, gens) = (self.lru().page(pfn), self.map().frame(pfn).state(), self.gens(vec));
        let place = place_of(self.generation_for(gens, page, end));
        page.clear(PageFlag::Active);
        page.enter_generation(place);
        let (kind, zone) = (Kind::of(page), self.zone_kind(pfn));
        let mem = self.pages().cx().mem();
        if let Some(lists) = &mut lists.generations {
            let list = &mut lists.0[place][kind.index()][zone as usize];
            match end {
                End::Head => list.push_front(mem, pfn),
                End::Tail => list.push_back(mem, pfn),
            }
        }
        page.set(PageFlag::Lru);
        let pages = state.order.pages();
        gens.pages[place][kind.index()][zone as usize].fetch_add(pages, Relaxed);
        let list = kind.list(gens.is_active(place));
        self.lru().vec(vec).sizes[zone as usize][list.index()].fetch_add(pages, Relaxed);
    }

    /// Takes a page off the list of its generation, which was at `place`. It is Active then if that was one of the youngest two.
    pub(in crate::lru) fn unlist_from_generation(
        self,
        vec: VecId,
        lists: &mut Lists,
        pfn: Pfn,
        place: usize,
    ) {
        let (page, gens) = (self.lru().page(pfn), self.gens(vec));
        let is_active = gens.is_active(place);
        if let Some(lists) = &mut lists.generations {
            self.take_off(lists, pfn);
        }
        self.forget_in_generation(vec, pfn, place);
        page.leave_generation();
        page.clear(PageFlag::Lru);
        if is_active {
            page.set(PageFlag::Active);
        }
    }

    /// The page is of the generation at `place` no more.
    pub(super) fn forget_in_generation(self, vec: VecId, pfn: Pfn, place: usize) {
        let (page, gens, zone) = (self.lru().page(pfn), self.gens(vec), self.zone_kind(pfn));
        let (kind, pages) = (Kind::of(page), self.map().frame(pfn).state().order.pages());
        gens.pages[place][kind.index()][zone as usize].fetch_sub(pages, Relaxed);
        let list = kind.list(gens.is_active(place));
        self.lru().vec(vec).sizes[zone as usize][list.index()].fetch_sub(pages, Relaxed);
    }

    /// Off the list where it is; what is counted stays as it is.
    pub(super) fn take_off(self, lists: &mut GenLists, pfn: Pfn) {
        let page = self.lru().page(pfn);
        let list = &mut lists.0[page.listed()][Kind::of(page).index()][self.zone_kind(pfn) as usize];
        list.remove(self.pages().cx().mem(), pfn);
    }

    /// To the list of the generation at `place`, to which it belongs.
    pub(super) fn put_on(self, lists: &mut GenLists, pfn: Pfn, place: usize, end: End) {
        let page = self.lru().page(pfn);
        page.enter_generation(place);
        let list = &mut lists.0[place][Kind::of(page).index()][self.zone_kind(pfn) as usize];
        match end {
            End::Head => list.push_front(self.pages().cx().mem(), pfn),
            End::Tail => list.push_back(self.pages().cx().mem(), pfn),
        }
    }

    pub(super) fn zone_kind(self, pfn: Pfn) -> ZoneKind {
        self.zones()[usize::from(self.map().frame(pfn).state().zone.0)].kind()
    }

    /// A page that is at `from` counts at `to`.
    fn count_move(self, vec: VecId, pfn: Pfn, (from, to): (usize, usize)) {
        let (page, gens, zone) = (self.lru().page(pfn), self.gens(vec), self.zone_kind(pfn));
        let (kind, pages) = (Kind::of(page), self.map().frame(pfn).state().order.pages());
        gens.pages[from][kind.index()][zone as usize].fetch_sub(pages, Relaxed);
        gens.pages[to][kind.index()][zone as usize].fetch_add(pages, Relaxed);
        let (was, is) = (gens.is_active(from), gens.is_active(to));
        if was != is {
            self.shift(vec, (kind, zone), pages, was);
        }
    }

    /// To the next generation (`folio_inc_gen`), what calls counted forgotten: but where a walk has brought it to another already.
    /// Gives the place where it belongs. It is on no list, and comes to one next.
    pub(super) fn to_next_generation(self, vec: VecId, pfn: Pfn, waits: Waits) -> usize {
        let page = self.lru().page(pfn);
        let (Some(now), listed) = (page.generation(), page.listed()) else { return page.listed() };
        if now != listed {
            return now;
        }
        let next = (now + 1) % super::PLACES;
        self.forget_uses(page);
        if waits == Waits::ForWriting {
            page.set(PageFlag::Reclaim);
        }
        page.join_generation(next);
        self.count_move(vec, pfn, (now, next));
        next
    }

    /// Pages of `vec` were found in use through page tables: they belong to `generation` from now on (`folio_update_gen`). Those
    /// of other sets, and those that are on no list, stay; of the latter, reclaim is told.
    pub(crate) fn promote(self, vec: VecId, pages: &[Pfn], generation: u64) {
        if pages.is_empty() {
            return;
        }
        let _lists = self.lru().vec(vec).lists.lock(self.machine());
        let to = place_of(generation);
        for &pfn in pages {
            if self.lru().vec_of(pfn) != vec || !self.note_young(self.lru().page(pfn)) {
                continue;
            }
            let page = self.lru().page(pfn);
            let Some(from) = page.generation() else {
                if self.gen_rules().uses == GenUseRule::PromotesAtOnce {
                    page.set(PageFlag::Referenced);
                }
                continue;
            };
            self.forget_uses(page);
            if self.gen_rules().uses == GenUseRule::PromotesTheSecond {
                page.set(PageFlag::Workingset);
            }
            if from != to {
                page.join_generation(to);
                self.count_move(vec, pfn, (from, to));
            }
        }
    }
}
