//! Batches of the oldest pages (`evict_folios`): taken off, judged as those of an inactive list are, and what stays comes back.

use alloc::vec::Vec;

use super::super::pages::Outcome;
use super::{GenReclaimDoor, ReclaimGround, Scan};
use crate::ground::{Machine, Pfn, Traced};
use crate::lru::page::PageFlag;
use crate::lru::{
    Cluster, Kind, MIN_GENERATIONS, Oldest, ReclaimEvent, SWAP_CLUSTER_MAX, Scanned, Swappiness, VecEvent,
    VecId,
};
use crate::rules::policy::{GenKindRule, GenUseRule};

/// Whether pages that stayed for no reason to be seen are tried once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Again {
    Once,
    No,
}

/// Pages that could not go.
#[derive(Debug, Default)]
struct Kept {
    pages: Vec<Pfn>,
    /// Base pages of those that became active.
    active: u32,
}

impl<M: Machine, G: ReclaimGround<M>> GenReclaimDoor<'_, M, G> {
    /// One batch of a pass that may look at `budget` base pages; gives at how many it looked, 0 if there is nothing to be had.
    pub(super) fn evict_batch(self, vec: VecId, swappiness: Swappiness, budget: u32, scan: &mut Scan) -> u32 {
        let (kind, scanned) = self.take_batch(vec, swappiness, budget, scan);
        let mut looked =
            scanned.looked + u32::from(self.generations().drop_empty_generations(vec, swappiness));
        let first = if swappiness.may_take(Kind::Anon) { Kind::Anon } else { Kind::File };
        if self.rules().reclaim.generations.kind == GenKindRule::LeastUsed {
            if self.generations().generation_count(vec, first) == MIN_GENERATIONS {
                looked = 0;
            }
        } else if self.generations().oldest_evictable(vec, swappiness) + MIN_GENERATIONS
            > self.generations().youngest(vec)
        {
            looked = 0;
        }
        if scanned.pages.is_empty() {
            return looked;
        }
        if scanned.of_files > 0 && scanned.dirty == scanned.of_files {
            self.files().wake_flusher();
        }
        let freed_before = scan.reclaimed;
        let kept = self.evict(vec, kind, &scanned.pages, scan);
        self.machine().traced(Traced {
            event: "mm_vmscan_lru_shrink_inactive",
            lru: kind.list(false).name(),
            scanned: scanned.looked,
            taken: scanned.taken,
            gone: scan.reclaimed - freed_before,
            active: kept.active,
            priority: scan.priority,
        });
        let kept = self.settle_kept(vec, kept.pages, Again::Once);
        if !kept.is_empty() {
            let kept = self.evict(vec, kind, &kept, scan);
            self.settle_kept(vec, kept.pages, Again::No);
        }
        looked
    }

    /// Takes pages of the kind that is to go, or of the other if it has none.
    fn take_batch(self, vec: VecId, swappiness: Swappiness, budget: u32, scan: &Scan) -> (Kind, Scanned) {
        let counted = scan.counted_as(self.rules().reclaim.group_count);
        let events = counted.map(|[scanned, _]| [scanned, ReclaimEvent::Refill]);
        let first = self.generations().choose(vec, swappiness);
        let highest = scan.highest;
        let take = |choice| self.generations().take_oldest(Oldest { vec, choice, highest, budget, events });
        let scanned = take(first);
        let other = first.kind.other();
        if scanned.looked > 0 || !swappiness.may_take(other) {
            return (first.kind, scanned);
        }
        (other, take(self.generations().choice_of(vec, other)))
    }

    /// Frees those of `pages` that can go; gives the others.
    fn evict(self, vec: VecId, kind: Kind, pages: &[Pfn], scan: &mut Scan) -> Kept {
        let (mut kept, mut freed, mut parts) = (Kept::default(), 0, Vec::new());
        for chunk in pages.chunks(SWAP_CLUSTER_MAX) {
            scan.scanned += chunk.iter().map(|&pfn| self.pages().order_of(pfn).pages()).sum::<u32>();
            let mut outcome = self.reclaim().shrink_pages(&Cluster::of(chunk), scan);
            self.keep(vec, &outcome, &mut kept);
            freed += outcome.freed;
            parts.extend(self.swapping().take_parts(&mut outcome));
        }
        for chunk in parts.chunks(SWAP_CLUSTER_MAX) {
            let outcome = self.reclaim().shrink_pages(&Cluster::of(chunk), scan);
            self.keep(vec, &outcome, &mut kept);
            freed += outcome.freed;
        }
        scan.reclaimed += freed;
        self.lru().count_in(vec, VecEvent::StealFile.of_kind(kind.list(false)), freed);
        kept
    }

    /// What was not freed of a cluster.
    fn keep(self, vec: VecId, outcome: &Outcome, kept: &mut Kept) {
        for &pfn in outcome.active.pages() {
            self.lru().page(pfn).set(PageFlag::Active);
            self.lru().count(pfn, ReclaimEvent::Activate);
            self.lru().count_in(vec, VecEvent::Activate, self.pages().order_of(pfn).pages());
            kept.active += self.pages().order_of(pfn).pages();
        }
        kept.pages.extend_from_slice(outcome.active.pages());
        kept.pages.extend_from_slice(outcome.inactive.pages());
    }

    /// Pages that were not freed come back to a generation, but for those that are to be tried again, which are given.
    fn settle_kept(self, vec: VecId, kept: Vec<Pfn>, again: Again) -> Vec<Pfn> {
        let early = self.rules().reclaim.generations.uses == GenUseRule::PromotesAtOnce;
        let (mut back, mut retried) = (Vec::new(), Vec::new());
        for pfn in kept {
            let page = self.lru().page(pfn);
            let has = |flag: PageFlag| page.has(flag);
            let pending = has(PageFlag::Dirty) || has(PageFlag::Writeback);
            let is_clean = !has(PageFlag::Active) && page.mapped() == 0 && !pending;
            if early && has(PageFlag::Reclaim) && pending {
                if has(PageFlag::Workingset) {
                    page.set(PageFlag::Referenced);
                }
                back.push(pfn);
            } else if again == Again::Once && is_clean && !(early && has(PageFlag::Referenced)) {
                retried.push(pfn);
            } else {
                if early || self.generations().would_be_oldest(vec, pfn) {
                    self.generations().note_rejection(page);
                }
                back.push(pfn);
            }
        }
        self.generations().put_back_oldest(vec, &back);
        retried
    }
}
