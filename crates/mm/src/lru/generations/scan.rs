//! Taking the oldest pages off: each is sorted first (`scan_folios`, `sort_folio`), for some are not to go. And which generation is
//! the oldest, as they empty; and a new one.

use alloc::vec::Vec;

use super::control::Choice;
use super::place::Waits;
use super::{GenLists, Kind, MAX_BATCH, MAX_GENERATIONS, MIN_BATCH, MIN_GENERATIONS, Swappiness, place_of};
use crate::ground::{Machine, Pfn, Relaxed, ZoneKind};
use crate::lru::generations::GenDoor;
use crate::lru::page::PageFlag;
use crate::lru::{End, LruGround, ReclaimEvent, VecEvent, VecId};
use crate::rules::policy::{GenDirtyRule, GenKindRule, GenLookRule, GenRefaultRule, GenUseRule};

/// Whose oldest pages are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Oldest {
    pub(crate) vec: VecId,
    pub(crate) choice: Choice,
    /// Zones above this are of no use.
    pub(crate) highest: ZoneKind,
    /// What the pass has yet to look at, in base pages.
    pub(crate) budget: u32,
    /// What taking and sorting a page is for the whole machine; nothing in a group.
    pub(crate) events: Option<[ReclaimEvent; 2]>,
}

/// What came of it, in base pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scanned {
    /// Taken off, with a reference for the caller: the oldest first.
    pub(crate) pages: Vec<Pfn>,
    pub(crate) taken: u32,
    /// Looked at; 0 where none could be taken and there are no more.
    pub(crate) looked: u32,
    sorted: u32,
    /// Of files, and of these such as are dirty and not being written.
    pub(crate) of_files: u32,
    pub(crate) dirty: u32,
}

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    /// Takes pages off the tail of the oldest generation, until there are 64.
    pub(crate) fn take_oldest(self, oldest: Oldest) -> Scanned {
        let Oldest { vec, choice: Choice { kind, .. }, highest, budget, events } = oldest;
        let (gens, mut scanned) = (self.gens(vec), Scanned::default());
        if gens.count(kind) == MIN_GENERATIONS {
            return scanned;
        }
        let mut left = match self.gen_rules().look {
            GenLookRule::Many => MAX_BATCH,
            GenLookRule::AsAsked => MAX_BATCH.min(budget),
            GenLookRule::Few => MIN_BATCH.min(budget),
        };
        let mut lists = self.lru().vec(vec).lists.lock(self.machine());
        let Some(lists) = &mut lists.generations else { return scanned };
        let place = place_of(gens.min(kind));
        for zone in downwards_from(highest) {
            let mut passed_over = Vec::new();
            let mut passed_pages = 0;
            while let Some(pfn) = lists.0[place][kind.index()][zone as usize].last() {
                let pages = self.pages().order_of(pfn).pages();
                scanned.looked += pages;
                if self.sort(lists, pfn, &oldest, &mut scanned) {
                    scanned.sorted += pages;
                } else if self.lru().page(pfn).try_get() {
                    self.isolate_oldest(vec, lists, pfn, place);
                    scanned.pages.push(pfn);
                    scanned.taken += pages;
                } else {
                    // On its way out: whoever frees it waits for the lock.
                    self.take_off(lists, pfn);
                    passed_over.push(pfn);
                    passed_pages += pages;
                }
                left -= 1;
                if left == 0 || scanned.taken.max(passed_pages) >= MIN_BATCH {
                    break;
                }
            }
            for pfn in passed_over {
                self.own().count(self.map(), pfn, ReclaimEvent::Skip);
                self.put_on(lists, pfn, place, End::Head);
            }
            if left == 0 || scanned.taken >= MIN_BATCH {
                break;
            }
        }
        self.count_scanned(vec, kind, events, &scanned);
        if scanned.taken == 0 && left > 0 {
            scanned.looked = 0;
        }
        scanned
    }

    fn count_scanned(self, vec: VecId, kind: Kind, events: Option<[ReclaimEvent; 2]>, scanned: &Scanned) {
        let zone = self.zones().iter().find(|zone| self.lru().vec_of_zone(zone).place() == vec.place());
        if let (Some([scan, refill]), Some(zone)) = (events, zone) {
            self.lru().events(zone.id()).count(scan, scanned.taken);
            self.lru().events(zone.id()).count(refill, scanned.sorted);
        }
        self.lru().count_in(vec, VecEvent::ScanFile.of_kind(kind.list(false)), scanned.taken);
        self.lru().count_in(vec, VecEvent::Refill, scanned.sorted);
    }

    /// Off the list for good, not Active whatever its generation.
    fn isolate_oldest(self, vec: VecId, lists: &mut GenLists, pfn: Pfn, place: usize) {
        let page = self.lru().page(pfn);
        self.note_isolation(page);
        self.take_off(lists, pfn);
        self.forget_in_generation(vec, pfn, place);
        page.leave_generation();
        page.clear(PageFlag::Lru);
    }

    /// Whether the page, one of the oldest, is not to go now; then it comes to another generation (`sort_folio`).
    fn sort(self, lists: &mut GenLists, pfn: Pfn, oldest: &Oldest, scanned: &mut Scanned) -> bool {
        let (page, vec, Choice { kind, tier }) = (self.lru().page(pfn), oldest.vec, oldest.choice);
        let later = |lists: &mut GenLists, waits: Waits, end: End| {
            self.take_off(lists, pfn);
            let place = self.to_next_generation(vec, pfn, waits);
            self.put_on(lists, pfn, place, end);
            true
        };
        // Found in use by a walk: it belongs elsewhere already.
        if page.generation() != Some(page.listed()) {
            return later(lists, Waits::ForNothing, End::Head);
        }
        let (uses, rules, pages) = (self.uses_of(page), self.gen_rules(), self.pages().order_of(pfn).pages());
        if uses.tier > tier || uses.full {
            let early = rules.uses == GenUseRule::PromotesAtOnce;
            if early || !uses.full {
                self.gens(vec).spared[kind.index()][uses.tier].fetch_add(pages.into(), Relaxed);
            }
            if rules.refault == GenRefaultRule::Oldest {
                self.lru().count_in(vec, VecEvent::ActivateFile.of_kind(kind.list(false)), pages);
            }
            return later(lists, Waits::ForNothing, if early { End::Tail } else { End::Head });
        }
        if self.zone_kind(pfn) > oldest.highest {
            return later(lists, Waits::ForNothing, End::Tail);
        }
        let (dirty, writeback) = (page.has(PageFlag::Dirty), page.has(PageFlag::Writeback));
        if kind == Kind::File {
            scanned.of_files += pages;
            scanned.dirty += if dirty && !writeback { pages } else { 0 };
        }
        let waits = writeback || kind == Kind::File && dirty;
        waits && rules.dirty == GenDirtyRule::Later && later(lists, Waits::ForWriting, End::Head)
    }

    /// Generations that are empty are the oldest no more (`try_to_inc_min_seq`). Says whether there were any.
    pub(crate) fn drop_empty_generations(self, vec: VecId, swappiness: Swappiness) -> bool {
        let gens = self.gens(vec);
        let lists = self.lru().vec(vec).lists.lock(self.machine());
        let Some(lists) = &lists.generations else { return false };
        let max = gens.max();
        let mut min = Kind::ALL.map(|kind| gens.min(kind));
        for kind in swappiness.kinds() {
            let is_empty = |generation: u64| {
                lists.0[place_of(generation)][kind.index()].iter().all(crate::pages::List::is_empty)
            };
            let min = &mut min[kind.index()];
            while *min + MIN_GENERATIONS <= max && is_empty(*min) {
                *min += 1;
            }
        }
        self.keep_together(gens.min.each_ref().map(|min| min.load(Relaxed)), &mut min, max, swappiness);
        let mut changed = false;
        for kind in swappiness.kinds().filter(|kind| min[kind.index()] != gens.min(*kind)) {
            gens.end_of_count(kind);
            gens.min[kind.index()].store(min[kind.index()], Relaxed);
            changed = true;
        }
        changed
    }

    /// Neither kind leaves the other far behind: `min` is what the oldest would be, `was` what they were.
    fn keep_together(self, was: [u64; 2], min: &mut [u64; 2], max: u64, swappiness: Swappiness) {
        let [anon, file] = Kind::ALL.map(Kind::index);
        if swappiness.0 == 0 || *min == was {
            return;
        }
        match self.gen_rules().kind {
            GenKindRule::LeastUsed => {
                min[anon] = min[anon].min(min[file]);
                min[file] = min[anon].max(was[file]);
            }
            GenKindRule::AllUses => {
                let middle = max - MIN_GENERATIONS;
                if min[anon] > middle && min[file] < middle {
                    min[anon] = middle;
                } else if min[file] > middle && min[anon] < middle {
                    min[file] = middle;
                }
            }
        }
    }

    /// Begins a new generation after `generation`, unless somebody has (`inc_max_seq`): of a kind that has four, the oldest ones
    /// come to the next. Says whether it did.
    pub(crate) fn begin_generation(self, vec: VecId, generation: u64, swappiness: Swappiness) -> bool {
        let gens = self.gens(vec);
        let mut lists = self.lru().vec(vec).lists.lock(self.machine());
        let Some(lists) = &mut lists.generations else { return false };
        if gens.max() != generation {
            return false;
        }
        for kind in [Kind::File, Kind::Anon] {
            if gens.count(kind) < MAX_GENERATIONS {
                continue;
            }
            // Those that cannot go stay where they are, and become the youngest.
            if swappiness.may_take(kind) {
                self.empty_oldest(vec, lists, kind);
            }
            gens.end_of_count(kind);
            gens.min[kind.index()].fetch_add(1, Relaxed);
        }
        self.begin(vec, generation)
    }

    fn empty_oldest(self, vec: VecId, lists: &mut GenLists, kind: Kind) {
        let place = place_of(self.gens(vec).min(kind));
        for zone in ZoneKind::ALL {
            while let Some(pfn) = lists.0[place][kind.index()][zone as usize].last() {
                let (uses, pages) = (self.uses_of(self.lru().page(pfn)), self.pages().order_of(pfn).pages());
                if self.gen_rules().uses == GenUseRule::PromotesTheSecond && !uses.full {
                    self.gens(vec).spared[kind.index()][uses.tier].fetch_add(pages.into(), Relaxed);
                }
                self.take_off(lists, pfn);
                let to = self.to_next_generation(vec, pfn, Waits::ForNothing);
                self.put_on(lists, pfn, to, End::Tail);
            }
        }
    }

    /// Brings back pages that [`Self::take_oldest`] took and that stay, and gives their references back.
    pub(crate) fn put_back_oldest(self, vec: VecId, pages: &[Pfn]) {
        if pages.is_empty() {
            return;
        }
        {
            let mut lists = self.lru().vec(vec).lists.lock(self.machine());
            for &pfn in pages.iter().filter(|&&pfn| !self.lru().page(pfn).has(PageFlag::Lru)) {
                self.lru().list_page(&mut lists, pfn, End::Head);
            }
        }
        self.lru().put_pages(pages);
    }

    /// Whether the page at `pfn`, which is on no list, would come to the oldest generation.
    pub(crate) fn would_be_oldest(self, vec: VecId, pfn: Pfn) -> bool {
        let (gens, page) = (self.gens(vec), self.lru().page(pfn));
        self.generation_for(gens, page, End::Head) == gens.min(Kind::of(page))
    }
}

/// `highest` and those below it, then those above it from the top.
fn downwards_from(highest: ZoneKind) -> impl Iterator<Item = ZoneKind> {
    let count = ZoneKind::ALL.len();
    (0..count).map(move |step| ZoneKind::ALL[(highest as usize + count - step) % count])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_looked_at_downwards_and_those_above_last() {
        let order: Vec<ZoneKind> = downwards_from(ZoneKind::Dma32).collect();
        let expected =
            [ZoneKind::Dma32, ZoneKind::Dma, ZoneKind::Movable, ZoneKind::HighMem, ZoneKind::Normal];
        assert_eq!(order, expected);
    }
}
