//! Walking the generations: every page on the one list that it says it is on, and counted where it says it belongs.

use alloc::format;
use alloc::string::String;

use super::{GenLists, Kind, MAX_GENERATIONS, MIN_GENERATIONS, PLACES, ZONES};
use crate::ground::{Machine, Pfn, Relaxed, ZoneKind};
use crate::lru::generations::GenDoor;
use crate::lru::page::PageFlag;
use crate::lru::{LruGround, VecId};
use crate::pages::{FrameKind, List};

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    /// Checks the generations of `vec`, and adds what is on them to `sizes`, by zone and list. Gives the number of blocks.
    pub(in crate::lru) fn check_generations(
        self,
        vec: VecId,
        lists: &GenLists,
        sizes: &mut [[u32; 4]],
    ) -> Result<u32, String> {
        let gens = self.gens(vec);
        for kind in Kind::ALL {
            let count = gens.count(kind);
            if !(MIN_GENERATIONS..=MAX_GENERATIONS).contains(&count) {
                return Err(format!("{vec:?} has {count} generations of {kind:?}"));
            }
        }
        let (mut found, mut listed) = ([[[0u32; ZONES]; 2]; PLACES], 0);
        for (place, by_kind) in lists.0.iter().enumerate() {
            for (kind, by_zone) in Kind::ALL.into_iter().zip(by_kind) {
                for (zone, list) in ZoneKind::ALL.into_iter().zip(by_zone) {
                    let mut then = |pfn: Pfn, belongs: usize| {
                        let state = self.map().frame(pfn).state();
                        found[belongs][kind.index()][zone as usize] += state.order.pages();
                        let by_list = &mut sizes[usize::from(state.zone.0)];
                        by_list[kind.list(gens.is_active(belongs)).index()] += state.order.pages();
                    };
                    listed += self.check_generation(vec, (place, kind, zone), list, &mut then)?;
                }
            }
        }
        for (place, kind) in (0..PLACES).flat_map(|place| Kind::ALL.map(|kind| (place, kind))) {
            let said = gens.pages[place][kind.index()].each_ref().map(|pages| pages.load(Relaxed));
            if said != found[place][kind.index()] {
                let found = found[place][kind.index()];
                return Err(format!(
                    "{vec:?}: generation at {place} of {kind:?} is {said:?}, found {found:?}"
                ));
            }
        }
        Ok(listed)
    }

    fn check_generation(
        self,
        vec: VecId,
        (place, kind, zone): (usize, Kind, ZoneKind),
        list: &List,
        then: &mut impl FnMut(Pfn, usize),
    ) -> Result<u32, String> {
        let (mut next, mut last, mut count) = (list.first(), None, 0);
        while let Some(pfn) = next {
            let (page, state) = (self.lru().page(pfn), self.map().frame(pfn).state());
            let is_here = state.kind == FrameKind::Allocated
                && self.lru().vec_of(pfn) == vec
                && (page.listed(), Kind::of(page), self.zone_kind(pfn)) == (place, kind, zone)
                && page.has(PageFlag::Lru)
                && !page.has(PageFlag::Active)
                && !page.has(PageFlag::Unevictable)
                && page.refs() > 0;
            let Some(belongs) = page.generation().filter(|_| is_here && count < list.len()) else {
                return Err(format!(
                    "{pfn} does not belong to the generation at {place} of {vec:?}, {kind:?}"
                ));
            };
            if List::before(self.map(), pfn) != last {
                return Err(format!("{pfn} is linked wrong in the generation at {place} of {vec:?}"));
            }
            then(pfn, belongs);
            count += 1;
            last = Some(pfn);
            next = List::after(self.map(), pfn);
        }
        if count != list.len() || last != list.last() {
            return Err(format!("generation at {place} of {vec:?}: {count} pages of {}", list.len()));
        }
        Ok(count)
    }
}
