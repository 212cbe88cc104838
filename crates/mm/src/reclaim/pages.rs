//! What becomes of pages at the end of an inactive list: freed if nobody used them since and their contents are safe,
//! back to the active list if they were, kept where they are otherwise (`shrink_folio_list`).

use alloc::vec::Vec;

use super::swap_out::{LeftFile, SwappedOut};
use super::{Met, ReclaimDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Chore, Machine, Order, Pfn, Relaxed};
use crate::lru::page::{Mapping, PageFlag};
use crate::lru::{Cluster, ReclaimEvent};
use crate::memcg::GroupId;
use crate::rules::policy::{AnonRule, GenUseRule, GroupCountRule};
use crate::vm::Around;
use crate::vm::rmap::Leave;

/// Where a page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is the reclaimer's alone, to be freed.
    Free,
    /// The same, but nobody wanted it when reclaim came: it is not counted.
    Unwanted,
    /// Back to the inactive list.
    Keep,
    Activate,
    /// To slower memory, if there is room.
    Demote,
}

/// Whether a page that nobody uses may go to slower memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Demotion {
    First,
    /// That was tried, or there is no slower memory.
    No,
}

/// How a page was used since reclaim last looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    None,
    /// By a read or write call, once: it may go if it is clean.
    Read,
    /// Once, through a page table: one more round.
    Once,
    /// More than that.
    Often,
}

/// What became of a cluster of pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) active: Cluster,
    pub(super) inactive: Cluster,
    /// Base pages of which the frames were freed.
    pub(super) freed: u32,
    /// Of them, those that were written to swap.
    pub(super) written: u32,
    pub(super) met: Met,
    /// Parts of large pages that were split, but for the first of each: they are decided over next (`SwapOutDoor::take_parts`).
    pub(super) parts: Vec<Pfn>,
}

impl Scan {
    /// What vmstat counts pages as that this looks at and frees, if it does: not in a group, to 7.0, and not what a program asked for.
    pub(super) fn counted_as(&self, rule: GroupCountRule) -> Option<[ReclaimEvent; 2]> {
        let counts = self.target == GroupId::ROOT || rule == GroupCountRule::Counted;
        match self.by {
            _ if self.asked => None,
            Reclaimer::Kswapd => Some([ReclaimEvent::ScanKswapd, ReclaimEvent::StealKswapd]),
            Reclaimer::Direct => counts.then_some([ReclaimEvent::ScanDirect, ReclaimEvent::StealDirect]),
        }
    }
}

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// Decides over isolated pages and frees those that can go.
    pub(super) fn shrink_pages(self, cluster: &Cluster, scan: &Scan) -> Outcome {
        self.swap_ahead().note_written();
        let mut outcome = Outcome::default();
        let mut freed = [(Pfn(0), Order::ZERO); crate::lru::SWAP_CLUSTER_MAX];
        let mut blocks = 0;
        for &pfn in cluster.pages() {
            self.machine().spend(Chore::ReclaimPage, 1);
            let first = if scan.asked { Demotion::No } else { Demotion::First };
            let mut fate = self.judge(pfn, scan, first, &mut outcome);
            if fate == Fate::Demote {
                if self.demote(pfn, scan, &mut outcome) {
                    continue;
                }
                fate = self.judge(pfn, scan, Demotion::No, &mut outcome);
            }
            match fate {
                Fate::Free | Fate::Unwanted => {
                    if fate == Fate::Free {
                        outcome.freed += self.pages().order_of(pfn).pages();
                        if let Some([_, stolen]) = scan.counted_as(self.rules().reclaim.group_count) {
                            self.lru().count(pfn, stolen);
                        }
                    }
                    self.lru().lru_forget(pfn);
                    freed[blocks] = (pfn, self.pages().order_of(pfn));
                    self.lru().end_life(pfn);
                    blocks += 1;
                }
                Fate::Keep | Fate::Demote => outcome.inactive.push(pfn),
                Fate::Activate => outcome.active.push(pfn),
            }
        }
        let result = self.pages().free_batch(&freed[..blocks]);
        debug_assert_eq!(result, Ok(()), "pages that had references are allocated");
        outcome
    }

    fn judge(self, pfn: Pfn, scan: &Scan, demotion: Demotion, outcome: &mut Outcome) -> Fate {
        let page = self.lru().page(pfn);
        if !page.set(PageFlag::Locked) {
            return Fate::Keep;
        }
        let fate = self.judge_locked(pfn, scan, demotion, outcome);
        page.clear(PageFlag::Locked);
        fate
    }

    fn judge_locked(self, pfn: Pfn, scan: &Scan, demotion: Demotion, outcome: &mut Outcome) -> Fate {
        let page = self.lru().page(pfn);
        if page.has(PageFlag::Mlocked) {
            // It goes to the unevictable list as it is put back.
            return Fate::Keep;
        }
        if !scan.asked && self.generations().was_found_young(page) {
            return Fate::Keep;
        }
        if page.has(PageFlag::Writeback) {
            return self.met_writeback(pfn, scan, outcome);
        }
        // What a program sent out itself goes, used or not.
        let used = if scan.asked { Use::None } else { self.page_use(pfn, scan) };
        match used {
            Use::Often => return Fate::Activate,
            Use::Once => return Fate::Keep,
            Use::Read | Use::None => {}
        }
        if demotion == Demotion::First && self.demotion_target(pfn).is_some() {
            return Fate::Demote;
        }
        let unmapped = match page.mapping() {
            _ if page.mapped() == 0 => true,
            _ if scan.spares.mapped => return Fate::Keep,
            // Given away: nobody wants its contents, unless he wrote to it since.
            Mapping::Anon(_) if !page.has(PageFlag::SwapBacked) => {
                let unmapped = self.rmap().try_to_unmap(pfn, Leave::Nothing);
                if unmapped {
                    self.lru().count(pfn, ReclaimEvent::FreeGivenAway);
                }
                unmapped
            }
            Mapping::Anon(_) => match self.swapping().swap_out(pfn, scan, outcome) {
                SwappedOut::Yes => true,
                SwappedOut::OnItsWay => return Fate::Keep,
                SwappedOut::No => false,
                SwappedOut::NobodysPart => {
                    let is_free = self.files().remove_mapping(pfn, scan.target);
                    return if is_free { Fate::Unwanted } else { Fate::Keep };
                }
            },
            Mapping::File(_) => self.rmap().unmap_file(pfn),
            Mapping::Slot | Mapping::None => false,
        };
        if !unmapped {
            return Fate::Activate;
        }
        if let (true, Mapping::File(file)) = (page.has(PageFlag::Dirty), page.mapping()) {
            if page.has(PageFlag::SwapBacked) {
                return match self.swapping().swap_out_of(file, pfn, (scan, outcome)) {
                    LeftFile::Yes => Fate::Free,
                    LeftFile::NoSlot => Fate::Activate,
                    LeftFile::InUse => Fate::Keep,
                };
            }
            return self.met_dirty(pfn, outcome);
        }
        if self.swapping().remove_mapping(pfn, scan) { Fate::Free } else { Fate::Keep }
    }

    /// How the page was used since this was last asked.
    fn page_use(self, pfn: Pfn, scan: &Scan) -> Use {
        let page = self.lru().page(pfn);
        let around = if self.lru().keeps_generations() { scan.around } else { Around::Left };
        let used = self.rmap().referenced_and(pfn, around);
        let places = used.places;
        // PG_referenced stays with these: by it they know, once the page is gone, how often it was used.
        if around != Around::Left && self.rules().reclaim.generations.uses == GenUseRule::PromotesTheSecond {
            return match places {
                0 => Use::None,
                _ if self.generations().note_young_isolated(pfn) => Use::Often,
                _ => Use::Once,
            };
        }
        let read = page.clear(PageFlag::Referenced);
        if places == 0 {
            let counts = read && !page.has(PageFlag::SwapBacked);
            return if counts { Use::Read } else { Use::None };
        }
        let anon_at_once = self.rules().reclaim.anon == AnonRule::Active;
        if page.has(PageFlag::SwapBacked) && anon_at_once {
            return Use::Often;
        }
        page.set(PageFlag::Referenced);
        let is_code = used.by_code && !page.has(PageFlag::SwapBacked);
        if read || places > 1 || is_code { Use::Often } else { Use::Once }
    }

    /// A page that is being written will be freed when that ends. If this is not the first time that one is met, kswapd is
    /// faster than the disk.
    fn met_writeback(self, pfn: Pfn, scan: &Scan, outcome: &mut Outcome) -> Fate {
        let (page, pages) = (self.lru().page(pfn), self.map().frame(pfn).state().order.pages());
        outcome.met.writeback += pages;
        let all_are = self.own().place(scan.vec).writeback.load(Relaxed) == 1;
        if !page.set(PageFlag::Reclaim) {
            outcome.met.again += pages;
            if scan.by == Reclaimer::Kswapd && all_are {
                outcome.met.immediate += pages;
            }
        }
        Fate::Activate
    }

    /// A dirty page of a file is left to the flusher, and goes first thing when it has been written. (Kernels before 6.16
    /// let kswapd write pages by itself where there was nothing else on the list.)
    fn met_dirty(self, pfn: Pfn, outcome: &mut Outcome) -> Fate {
        outcome.met.dirty += self.map().frame(pfn).state().order.pages();
        self.lru().page(pfn).set(PageFlag::Reclaim);
        Fate::Activate
    }
}
