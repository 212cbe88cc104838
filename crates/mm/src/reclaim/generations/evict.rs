//! Batches of the oldest pages (`evict_folios`): taken off, judged as those of an inactive list are, and what stays comes back.

use alloc::vec::Vec;

use super::{GenReclaimDoor, ReclaimGround, Scan};
use crate::ground::{Batch, Machine, Pfn, Traced};
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

/// What became of pages that were to go, in base pages but for those that stay.
#[derive(Debug, Default)]
struct Evicted {
    kept: Vec<Pfn>,
    /// Of these, those that became active.
    activated: u32,
    freed: u32,
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
        let evicted = self.evict(vec, kind, &scanned.pages, scan);
        self.machine().traced(Traced::Batch(Batch {
            event: "mm_vmscan_lru_shrink_inactive",
            lru: kind.list(false).name(),
            scanned: scanned.looked,
            taken: scanned.taken,
            gone: evicted.freed,
            active: evicted.activated,
            priority: scan.priority,
        }));
        let kept = self.settle_kept(vec, evicted.kept, Again::Once);
        if !kept.is_empty() {
            let again = self.evict(vec, kind, &kept, scan);
            self.settle_kept(vec, again.kept, Again::No);
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

    /// Frees those of `pages` that can go, and then those parts of them that were split for it.
    fn evict(self, vec: VecId, kind: Kind, pages: &[Pfn], scan: &mut Scan) -> Evicted {
        scan.scanned += pages.iter().map(|&pfn| self.pages().order_of(pfn).pages()).sum::<u32>();
        let mut evicted = Evicted::default();
        let mut parts = Vec::new();
        for chunk in pages.chunks(SWAP_CLUSTER_MAX) {
            parts.extend(self.evict_chunk(vec, chunk, scan, &mut evicted));
        }
        for chunk in parts.chunks(SWAP_CLUSTER_MAX) {
            self.evict_chunk(vec, chunk, scan, &mut evicted);
        }
        scan.reclaimed += evicted.freed;
        self.lru().count_in(vec, VecEvent::StealFile.of_kind(kind.list(false)), evicted.freed);
        evicted
    }

    /// The same of so many as a cluster has; gives parts of those that were split.
    fn evict_chunk(self, vec: VecId, chunk: &[Pfn], scan: &Scan, evicted: &mut Evicted) -> Vec<Pfn> {
        let mut outcome = self.reclaim().shrink_pages(&Cluster::of(chunk), scan);
        for &pfn in outcome.active.pages() {
            let pages = self.pages().order_of(pfn).pages();
            self.lru().page(pfn).set(PageFlag::Active);
            self.lru().count(pfn, ReclaimEvent::Activate);
            self.lru().count_in(vec, VecEvent::Activate, pages);
            evicted.activated += pages;
        }
        evicted.kept.extend_from_slice(outcome.active.pages());
        evicted.kept.extend_from_slice(outcome.inactive.pages());
        evicted.freed += outcome.freed;
        self.swapping().take_parts(&mut outcome)
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
