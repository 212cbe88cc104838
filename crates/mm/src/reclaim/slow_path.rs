//! What a request goes through when no zone has a block above its mark (the kernel's `__alloc_pages_slowpath`,
//! docs/rules/reclaim.md#slow-path).
//!
//! It wakes kswapd and goes down to the min mark. What may wait then reclaims for itself, as long as that gets it
//! anywhere; empties all pagesets; gives up stocks of the slab allocator and the highatomic reserve; and fails. Where
//! memory has never been given to an address space or a file, there is nothing to reclaim, and it does not try. A block
//! of several pages is compacted for, before and after reclaim; one of a costly order then fails after one round. With
//! `vm.defrag_mode` types are kept apart all the while, and mix in one more round at the end.

use super::{ReclaimDoor, ReclaimGround};
use crate::compact::{Attempt, Outcome};
use crate::ground::{Machine, MigrateType, Nanos, Order, PAGE_ALLOC_COSTLY_ORDER, Pfn, ZoneId};
use crate::pages::{AllocError, AllocFlags, Mark, Pages, Request, Search, SlowEvents, Urgency, Zone};
use crate::reclaim::{Asking, MAX_RECLAIM_RETRIES};
use crate::rules::knobs::Knob;
use crate::rules::policy::{BackgroundRule, HugeNodeRule, ReschedRule, SecondTryRule};

type Block = (Pfn, ZoneId);

/// How long a request waits after a round in which nothing could be freed.
const NOTHING_FREED: Nanos = Nanos(20_000_000);

/// Rounds that a request for an order of 1 to 3 gets, though each frees something: pages alone do not make a block.
const MOST_ROUNDS_FOR_ORDER: u32 = 16;

/// How a request has fared so far.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    all: u32,
    /// In a row, without a page freed.
    idle: u32,
}

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    #[cold]
    pub(crate) fn make_room_for(self, search: Search<'_>) -> Result<Block, AllocError> {
        let request = search.request;
        let first = self.pages().candidates(request, search.node).next().ok_or(AllocError::NoZone)?;
        self.wake_all_kswapds(search);
        let search = Search { mark: Mark::Min, flags: search.flags.with(urgent(request)), ..search };
        if let Some(block) = self.pages().search(self.ground, search) {
            return Ok(block);
        }
        let result = match request.urgency {
            urgency if urgency.may_reclaim() => self.reclaim_and_retry(search, first),
            Urgency::Reclaims => {
                let anyway = search.flags.with(AllocFlags::NO_WATERMARKS).with(AllocFlags::MIXES);
                let found = self.pages().search(self.ground, Search { flags: anyway, ..search });
                found.ok_or(AllocError::WouldWait)
            }
            _ => Err(AllocError::WouldWait),
        };
        if let Err(error) = result {
            SlowEvents::bump(&first.stat().slow().failed);
            if error == AllocError::OutOfMemory {
                self.ground.out_of_memory(search);
            }
        }
        result
    }

    fn wake_all_kswapds(self, search: Search<'_>) {
        if !search.flags.has(AllocFlags::KSWAPD) {
            return;
        }
        let order = search.request.order;
        let in_blocks = |mode: u64| if mode == 0 { order } else { order.max(Order::PAGEBLOCK) };
        let order = self.knobs().decide(self.machine(), Knob::DefragMode, in_blocks);
        let by_requests = self.rules().compact.background == BackgroundRule::KcompactdByRequests;
        let wakes_kcompactd = by_requests && !search.request.urgency.may_reclaim();
        let mut last = None;
        for zone in self.pages().candidates(search.request, search.node) {
            // Where there is nothing to reclaim it is woken for each zone: it costs next to nothing there.
            if last != Some(zone.node()) || !self.lru().has_pages() {
                let (node, highest) = (zone.node(), search.request.highest);
                if !self.wake_kswapd_for(node, order, highest) && wakes_kcompactd {
                    // Enough may be free, and all of it in pieces.
                    self.compaction().wake_kcompactd(node, order, highest);
                }
            }
            last = Some(zone.node());
        }
    }

    /// Rounds of reclaim, until there is a block or no hope of one.
    fn reclaim_and_retry(self, mut search: Search<'_>, first: &Zone<M>) -> Result<Block, AllocError> {
        if let Some(block) = self.compact_first(search)? {
            return Ok(block);
        }
        let mut rounds = Rounds::default();
        loop {
            if self.pages().is_killed(self.machine().task()) {
                return Err(AllocError::Killed);
            }
            SlowEvents::bump(&first.stat().slow().allocstall);
            if let Some(block) = self.search_after_guests(search, Asking::First) {
                return Ok(block);
            }
            let freed = if self.lru().has_pages() { self.direct_reclaim(search) } else { 0 };
            if let Some(block) = self.search_after(search, freed, rounds) {
                return Ok(block);
            }
            if let Some(block) = self.compact_again(search, rounds) {
                return Ok(block);
            }
            if search.request.urgency.is_for_once() {
                return Err(AllocError::WouldWait);
            }
            rounds.all += 1;
            rounds.idle = if freed > 0 { 0 } else { rounds.idle + 1 };
            if !self.should_retry(search, rounds) {
                if !mixes_at_last(self.pages(), search) {
                    break;
                }
                search.flags = search.flags.with(AllocFlags::MIXES);
                if let Some(block) = self.pages().search(self.ground, search) {
                    return Ok(block);
                }
            }
            self.wake_all_kswapds(search);
            if freed == 0 {
                self.machine().wait(NOTHING_FREED);
            }
        }
        if search.request.urgency == Urgency::TriesHard {
            return Err(AllocError::WouldWait);
        }
        self.last_resorts(search).ok_or(AllocError::OutOfMemory)
    }

    /// Compaction before any reclaim, where a block is wanted that reclaim alone will hardly make.
    ///
    /// # Errors
    /// A request that tries but once is not to go on: compaction was put off, or its time slice is over.
    fn compact_first(self, search: Search<'_>) -> Result<Option<Block>, AllocError> {
        let Request { order, migratetype, urgency, this_node, .. } = *search.request;
        let costly = order.get() > PAGE_ALLOC_COSTLY_ORDER;
        if order == Order::ZERO || !costly && migratetype == MigrateType::Movable {
            return Ok(None);
        }
        let tried = self.compaction().direct_compact(search, Attempt::Async);
        if tried.block.is_some() || !urgency.is_for_once() {
            return Ok(tried.block);
        }
        let hopeless = match self.rules().compact.resched {
            ReschedRule::AbortsAtPage | ReschedRule::Aborts => {
                matches!(tried.outcome, Outcome::Deferred | Outcome::Contended)
            }
            ReschedRule::AbortsCall => tried.outcome == Outcome::Deferred,
            // That a skipped attempt ends the request is of 5.4: 5.1 to 5.3 are a little early.
            _ => matches!(tried.outcome, Outcome::Deferred | Outcome::Skipped),
        };
        let only_compacts = this_node && self.rules().reclaim.huge_node == HugeNodeRule::OwnFirstCompacting;
        if hopeless || only_compacts { Err(AllocError::WouldWait) } else { Ok(None) }
    }

    /// Compaction after reclaim: harder in later rounds.
    fn compact_again(self, search: Search<'_>, rounds: Rounds) -> Option<Block> {
        if search.request.order == Order::ZERO {
            return None;
        }
        let attempt = match (search.request.urgency, self.rules().compact.second_try) {
            (Urgency::Tries | Urgency::Once, SecondTryRule::None) => return None,
            (Urgency::Tries | Urgency::Once, SecondTryRule::Async) => Attempt::Async,
            _ if rounds.all > 1 && search.request.order.get() <= PAGE_ALLOC_COSTLY_ORDER => Attempt::Whole,
            _ => Attempt::SyncLight,
        };
        self.compaction().direct_compact(search, attempt).block
    }

    /// Looks again if guests of low memory have made room.
    fn search_after_guests(self, search: Search<'_>, asking: Asking) -> Option<Block> {
        if self.lru().has_pages() && self.ask_guests_to_leave(search, asking) > 0 {
            self.pages().search(self.ground, search)
        } else {
            None
        }
    }

    /// Looks again after `freed` pages were; in the first round also in what CPUs hold back.
    fn search_after(self, search: Search<'_>, freed: u32, rounds: Rounds) -> Option<Block> {
        if freed > 0 {
            if let Some(block) = self.pages().search(self.ground, search) {
                return Some(block);
            }
        }
        if rounds.all > 0 || freed == 0 && search.request.urgency.is_for_once() {
            return None;
        }
        if freed == 0 && self.lru().has_pages() {
            // The next round finds what other CPUs' batches held.
            self.lru().lru_drain_all();
        }
        self.pages().drain_all();
        self.pages().search(self.ground, search)
    }

    /// Whether another round may help (`should_reclaim_retry`): some zone would be above its min mark if all that can be
    /// freed there were.
    fn should_retry(self, search: Search<'_>, rounds: Rounds) -> bool {
        let Request { order, highest, .. } = *search.request;
        let gives_up = order.get() > PAGE_ALLOC_COSTLY_ORDER
            || order > Order::ZERO && rounds.all >= MOST_ROUNDS_FOR_ORDER
            || rounds.idle > MAX_RECLAIM_RETRIES;
        if gives_up || !self.lru().has_pages() {
            return false;
        }
        self.pages().candidates(search.request, search.node).any(|zone| {
            let available = zone.free_pages() + self.reclaimable_pages(zone);
            let (mark, kept) = (zone.mark_min(), zone.least_protection(highest));
            let is_enough = |mark: u32, kept: u32| available > mark + kept;
            if M::WATCHES_KNOBS {
                zone.watch_level(self.machine(), available, (mark, kept, highest), is_enough);
            }
            is_enough(mark.pages, kept)
        })
    }

    /// What is left to try when memory cannot be reclaimed.
    fn last_resorts(self, search: Search<'_>) -> Option<Block> {
        if let Some(block) = self.search_after_guests(search, Asking::Last) {
            return Some(block);
        }
        if self.slabs().give_up_stocks() {
            if let Some(block) = self.pages().search(self.ground, search) {
                return Some(block);
            }
        }
        if self.pages().unreserve_highatomic() { self.pages().search(self.ground, search) } else { None }
    }
}

/// Whether there is one more round to go, in which types may mix though `vm.defrag_mode` keeps them apart: reclaim and
/// compaction could not prevent it. A block of a costly order is not worth it.
fn mixes_at_last<M: Machine>(pages: &Pages<M>, search: Search<'_>) -> bool {
    let costly = search.request.order.get() > PAGE_ALLOC_COSTLY_ORDER;
    pages.keeps_blocks() && !costly && !search.flags.has(AllocFlags::MIXES)
}

/// What a request may do beyond others below the low mark.
fn urgent(request: &Request) -> AllocFlags {
    match request.urgency {
        Urgency::Waits
        | Urgency::NoWait
        | Urgency::Never
        | Urgency::Tries
        | Urgency::Once
        | Urgency::TriesHard
        | Urgency::Reclaims => AllocFlags::NONE,
        Urgency::Atomic if request.order > Order::ZERO => {
            AllocFlags::MIN_RESERVE.with(AllocFlags::NON_BLOCK).with(AllocFlags::HIGHATOMIC)
        }
        Urgency::Atomic => AllocFlags::MIN_RESERVE.with(AllocFlags::NON_BLOCK),
    }
}
