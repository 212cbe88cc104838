//! Walking the lists: every page on the list that its flags name, in the set that its zone belongs to, counted where it
//! should be; and no page flagged that is on none.

use alloc::string::String;
use alloc::{format, vec};

use super::{Lists, LruDoor, LruGround, LruList, VecId};
use crate::ground::{Machine, Pfn};
use crate::lru::page::PageFlag;
use crate::pages::{FrameKind, List};

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// Checks every list against the pages' own words; to be called while nothing else runs.
    pub(crate) fn check_lru(self) -> Result<(), String> {
        let mut sizes = vec![[0u32; LruList::COUNT]; self.zones().len()];
        let mut listed = 0u32;
        for group in self.memcg().all() {
            for place in 0..self.own().vecs.len() as u16 {
                let vec = VecId { group, place };
                let lists = self.vec(vec).lists.lock(self.machine());
                listed += self.check_vec(vec, &lists, &mut sizes)?;
            }
        }
        for (zone, sizes) in self.zones().iter().zip(&sizes) {
            for list in LruList::ALL {
                let (said, found) = (self.zone_size(zone, list), sizes[list.index()]);
                if said != found {
                    return Err(format!("{zone:?}: {} is {said}, but {found} pages are there", list.name()));
                }
            }
        }
        let flagged = self.count_flagged()?;
        if flagged != listed {
            return Err(format!("{flagged} pages say that they are on an LRU list, {listed} are"));
        }
        Ok(())
    }

    fn check_vec(self, vec: VecId, lists: &Lists, sizes: &mut [[u32; 4]]) -> Result<u32, String> {
        let mut listed = match &lists.generations {
            Some(lists) => self.generations().check_generations(vec, lists, sizes)?,
            None => 0,
        };
        listed += self.check_unevictable(vec, lists)?;
        for list in LruList::ALL {
            let belongs = |pfn: Pfn| {
                let (state, page) = (self.map().frame(pfn).state(), self.page(pfn));
                state.kind == FrameKind::Allocated
                    && self.vec_of(pfn) == vec
                    && page.has(PageFlag::Lru)
                    && page.refs() > 0
                    && page.generation().is_none()
                    && !page.has(PageFlag::Unevictable)
                    && LruList::of(page) == list
            };
            let entries = &lists.two[list.index()];
            let (mut next, mut last, mut count) = (entries.first(), None, 0);
            while let Some(pfn) = next {
                if !belongs(pfn) || List::before(self.map(), pfn) != last || count >= entries.len() {
                    return Err(format!("{pfn} does not belong on {} of {vec:?}", list.name()));
                }
                let state = self.map().frame(pfn).state();
                sizes[usize::from(state.zone.0)][list.index()] += state.order.pages();
                count += 1;
                last = Some(pfn);
                next = List::after(self.map(), pfn);
            }
            if count != entries.len() || last != entries.last() {
                return Err(format!("{} of {vec:?}: {count} pages of {}", list.name(), entries.len()));
            }
            listed += count;
        }
        Ok(listed)
    }

    fn check_unevictable(self, vec: VecId, lists: &Lists) -> Result<u32, String> {
        let entries = &lists.unevictable;
        let (mut next, mut last, mut count, mut pages) = (entries.first(), None, 0, 0);
        while let Some(pfn) = next {
            let (state, page) = (self.map().frame(pfn).state(), self.page(pfn));
            let is_here = state.kind == FrameKind::Allocated
                && self.vec_of(pfn) == vec
                && page.has(PageFlag::Lru)
                && page.has(PageFlag::Unevictable)
                && page.generation().is_none()
                && page.refs() > 0;
            if !is_here || List::before(self.map(), pfn) != last || count >= entries.len() {
                return Err(format!("{pfn} does not belong on the unevictable list of {vec:?}"));
            }
            pages += state.order.pages();
            count += 1;
            last = Some(pfn);
            next = List::after(self.map(), pfn);
        }
        if count != entries.len() || last != entries.last() || pages != self.unevictable().size(vec) {
            return Err(format!(
                "unevictable of {vec:?}: {count} blocks of {}, {pages} pages of {}",
                entries.len(),
                self.unevictable().size(vec)
            ));
        }
        Ok(count)
    }

    /// Heads of blocks that say that they are on a list.
    fn count_flagged(self) -> Result<u32, String> {
        if !self.has_pages() {
            return Ok(0);
        }
        let mut flagged = 0;
        for zone in self.zones() {
            let span = zone.managed_span();
            let mut pfn = span.start;
            while pfn < span.end {
                let state = self.map().frame(Pfn(pfn)).state();
                if self.page(Pfn(pfn)).has(PageFlag::Lru) {
                    if state.kind != FrameKind::Allocated {
                        return Err(format!(
                            "{} is {:?}, but says that it is on an LRU list",
                            Pfn(pfn),
                            state.kind
                        ));
                    }
                    flagged += 1;
                }
                pfn += state.order.pages();
            }
        }
        Ok(flagged)
    }
}
