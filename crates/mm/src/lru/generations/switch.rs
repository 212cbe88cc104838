//! Generations on and off (`lru_gen_change_state`): pages go from lists of one sort to those of the other, all of a set in one hold
//! of its lock. (The kernel lets go of it every 4096 pages.)

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{GenLists, Kind};
use crate::ground::{Machine, Pfn, Relaxed, ZoneKind};
use crate::lru::generations::GenDoor;
use crate::lru::{End, Lists, Lru, LruDoor, LruGround, LruList, VecId};
use crate::pages::List;

/// Bits of `lru_gen/enabled`: generations, and walks over page tables. A third, by which walks leave tables out that nobody used,
/// makes no difference here: no page is found there.
pub(crate) const MAIN: u64 = 1;
pub(crate) const WALKS: u64 = 1 << 1;

impl<M: Machine> Lru<M> {
    #[inline]
    pub(in crate::lru) fn keeps_generations(&self) -> bool {
        self.by_generation.load(Relaxed) != 0
    }
}

impl Lists {
    /// Empty lists.
    pub(in crate::lru) fn new(by_generation: bool) -> Self {
        Self {
            two: Default::default(),
            generations: by_generation.then(Box::<GenLists>::default),
            unevictable: List::default(),
        }
    }
}

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// Whether pages are kept by generations.
    #[inline]
    pub(crate) fn keeps_generations(self) -> bool {
        self.own().keeps_generations()
    }
}

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    /// `lru_gen/enabled` has the bits of `setting` from now on.
    pub(crate) fn switch_generations(self, setting: u64) {
        let by_generation = setting & MAIN != 0;
        if by_generation == self.lru().keeps_generations() {
            return;
        }
        self.own().by_generation.store(by_generation.into(), Relaxed);
        for group in self.memcg().all() {
            for place in 0..self.own().vecs.len() as u16 {
                let vec = VecId { group, place };
                let mut lists = self.lru().vec(vec).lists.lock(self.machine());
                if by_generation {
                    self.to_generations(&mut lists);
                } else {
                    self.to_two_lists(vec, &mut lists);
                }
            }
        }
    }

    fn to_generations(self, lists: &mut Lists) {
        lists.generations.get_or_insert_default();
        for list in LruList::ALL {
            while let Some(pfn) = lists.two[list.index()].last() {
                self.lru().unlist_page(lists, pfn);
                self.lru().list_page(lists, pfn, End::Head);
            }
        }
    }

    fn to_two_lists(self, vec: VecId, lists: &mut Lists) {
        let mut pages: Vec<Pfn> = Vec::new();
        for place in 0..super::PLACES {
            for (kind, zone) in Kind::ALL.iter().flat_map(|kind| ZoneKind::ALL.map(|zone| (*kind, zone))) {
                let last = |lists: &Lists| {
                    lists
                        .generations
                        .as_ref()
                        .and_then(|lists| lists.0[place][kind.index()][zone as usize].last())
                };
                while let Some(pfn) = last(lists) {
                    let belongs = self.lru().page(pfn).generation().unwrap_or(place);
                    self.unlist_from_generation(vec, lists, pfn, belongs);
                    pages.push(pfn);
                }
            }
        }
        lists.generations = None;
        for pfn in pages {
            self.lru().list_page(lists, pfn, End::Head);
        }
    }
}
