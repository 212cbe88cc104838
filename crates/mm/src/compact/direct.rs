//! Compaction by a request for itself (`__alloc_pages_direct_compact`): the zones that would do, one after the other, until one
//! has a block.

use super::control::{By, CompactGoal, Effort};
use super::run::Ran;
use super::{CompactDoor, CompactEvent, CompactGround, Compaction, Mode, Outcome};
use crate::ground::{Machine, MigrateType, Order, Pfn, ZoneId};
use crate::pages::{FrameKind, FrameState, Mark, Mobility, Request, Search, Zone, ZoneCx};
use crate::rules::policy::{DeferScopeRule, ReschedRule};

/// How hard a request tries (`compact_priority`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Attempt {
    /// Waits for nothing.
    Async,
    /// Waits for locks and pages.
    SyncLight,
    /// Goes through all of a zone, whatever was remembered of it.
    Whole,
}

impl Attempt {
    fn mode(self) -> Mode {
        if self == Self::Async { Mode::Async } else { Mode::SyncLight }
    }

    fn effort(self) -> Effort {
        if self == Self::Whole { Effort::AnyBlock } else { Effort::Usual }
    }
}

/// What a request's compaction came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried {
    pub(crate) block: Option<(Pfn, ZoneId)>,
    pub(crate) outcome: Outcome,
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Compacts for `search` and asks the zones again.
    pub(crate) fn direct_compact(self, search: Search<'_>, attempt: Attempt) -> Tried {
        let order = search.request.order;
        let mut tried = Tried { block: None, outcome: Outcome::Skipped };
        if order == Order::ZERO || !self.lru().has_pages() {
            return tried;
        }
        let Some((id, ran)) = self.compact_zones(search, attempt) else { return tried };
        tried.outcome = ran.outcome;
        if tried.outcome <= Outcome::Deferred {
            return tried;
        }
        let zone = &self.zones()[usize::from(id.0)];
        self.own().count(zone.id(), CompactEvent::Stall, 1);
        tried.block = ran.captured.map(|pfn| (pfn, zone.id())).or_else(|| {
            // What it moved from may be on this CPU's lists still.
            self.pages().drain_cpu(self.machine().cpu());
            self.pages().search(self.ground, search)
        });
        if let Some((_, id)) = tried.block {
            self.own().count(zone.id(), CompactEvent::Success, 1);
            self.own().of(id).note_allocated(order);
        } else {
            self.own().count(zone.id(), CompactEvent::Fail, 1);
            if tried.outcome == Outcome::Success {
                self.own().count(zone.id(), self.why_lost(zone, search), 1);
            }
        }
        tried
    }

    /// Compaction said that there is a block, and the search found none: the two checks race with others' allocations, and
    /// with what CPUs have not told the zone's counter yet.
    fn why_lost(self, zone: &Zone<M>, search: Search<'_>) -> CompactEvent {
        let Request { order, migratetype, highest, .. } = *search.request;
        if !self.has_block_for(zone, order, migratetype) {
            return CompactEvent::LostRace;
        }
        let kept = zone.protection()[highest.index()];
        let needed = u64::from(zone.mark_min().pages + kept + order.pages());
        let drifted = u64::from(zone.free_pages()) < needed && zone.free_pages_exact() >= needed;
        if drifted { CompactEvent::LostToDrift } else { CompactEvent::LostToMark }
    }

    /// The zones in turn; the best that came of it, and where.
    fn compact_zones(self, search: Search<'_>, attempt: Attempt) -> Option<(ZoneId, Ran)> {
        let rules = &self.rules().compact;
        let order = search.request.order;
        let preferred = self.pages().candidates(search.request, search.node).next()?;
        let mut best = (preferred.id(), Ran::from(Outcome::Skipped));
        if rules.defer_scope == DeferScopeRule::Preferred
            && self.own().is_put_off(preferred.id(), order, attempt)
        {
            return Some((preferred.id(), Outcome::Deferred.into()));
        }
        for zone in self.pages().candidates(search.request, search.node) {
            if rules.defer_scope == DeferScopeRule::Zone && self.own().is_put_off(zone.id(), order, attempt) {
                if best.1.outcome < Outcome::Deferred {
                    best = (zone.id(), Outcome::Deferred.into());
                }
                continue;
            }
            let ran = self.compact_for(zone, search, attempt);
            if ran.outcome >= best.1.outcome {
                best = (zone.id(), ran);
            }
            if ran.outcome == Outcome::Success {
                self.own().of(zone.id()).note_success(order);
                break;
            }
            if rules.defer.counts(ran.outcome, attempt == Attempt::Async) {
                let put_off = if rules.defer_scope == DeferScopeRule::Zone { zone } else { preferred };
                self.own().of(put_off.id()).defer(order);
            }
            let slice_over = || match rules.resched {
                ReschedRule::AbortsAtPage | ReschedRule::Aborts | ReschedRule::AbortsCall => {
                    ran.outcome == Outcome::Contended
                }
                ReschedRule::EndsWithZone => self.machine().need_resched(),
                ReschedRule::Ignored => false,
            };
            if attempt == Attempt::Async && slice_over() {
                break;
            }
        }
        Some(best)
    }

    fn compact_for(self, zone: &Zone<M>, search: Search<'_>, attempt: Attempt) -> Ran {
        let request = search.request;
        let goal = CompactGoal {
            by: By::Direct,
            mode: attempt.mode(),
            effort: attempt.effort(),
            order: Some(request.order),
            migratetype: request.migratetype,
            highest: request.highest,
            mark: match search.mark {
                Mark::Low => zone.mark_low(),
                Mark::Min => zone.mark_min(),
            },
        };
        self.compact_zone(zone, goal)
    }

    /// Takes the block of `order` at `pfn`, if all of it is free by now, past the free lists' queue.
    pub(super) fn capture(
        self,
        zone: &Zone<M>,
        pfn: Pfn,
        (order, migratetype): (Order, MigrateType),
    ) -> Option<Pfn> {
        let cx = ZoneCx { cx: self.pages().cx(), zone };
        let mut free = zone.arenas().lock_owner(self.machine(), pfn);
        let head = order.to(Order::MAX).map(|size| pfn.align_down(size)).find(|&head| {
            let state = self.map().get(head).map(crate::Frame::state);
            state.is_some_and(|state| {
                state.kind == FrameKind::Free
                    && state.order >= order
                    && head.0 + state.order.pages() >= pfn.0 + order.pages()
                    && state.zone == zone.id()
                    && state.migratetype.index() < MigrateType::PCP_COUNT
            })
        })?;
        if free.number() != zone.arenas().owner(head) {
            return None;
        }
        let state = self.map().frame(head).state();
        free.remove(cx, head);
        free.expand(cx, head, order, state.order, state.migratetype);
        self.blocks().left(self.machine(), (head, order), Mobility::of(migratetype));
        let state = FrameState { kind: FrameKind::Allocated, order, migratetype, zone: zone.id() };
        self.map().frame(head).set_state(state);
        free.count_alloc(order);
        let pageset = &zone.pagesets()[usize::from(self.machine().cpu().0)];
        pageset.beside().add_free(cx, -(order.pages() as i32));
        drop(free);
        self.own().count(zone.id(), CompactEvent::Captured, 1);
        Some(head)
    }
}

impl Compaction {
    /// Whether an attempt for a block of `order` in `zone` is put off.
    fn is_put_off(&self, zone: ZoneId, order: Order, attempt: Attempt) -> bool {
        attempt < Attempt::Whole && self.of(zone).is_deferred(order)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::ground::ids::Node;
    use crate::ground::sync::Relaxed;
    use crate::mm::Mm;
    use crate::{Bare, Knobs, NodeSize, Policy, Topology, ZoneKind};

    #[test]
    fn a_lost_block_is_put_down_to_what_took_it() {
        let nodes = [NodeSize { bytes: 256 << 20, cpus: 2 }];
        let topology = Topology::x86(&nodes, 1 << 20, alloc::vec![alloc::vec![10]]).unwrap();
        // Marks so small that the last block can be had.
        let knobs = Knobs::default();
        knobs.set(crate::Knob::MinFreeKbytes, 1).unwrap();
        let mm = Mm::new(Bare::default(), topology, Policy::default(), knobs).unwrap();
        let zone = mm.zone(Node(0), ZoneKind::Dma32).unwrap();
        let search = Search {
            request: &Request::THP,
            node: Node(0),
            mark: Mark::Min,
            flags: crate::pages::zone::AllocFlags::NONE,
        };
        let needed = zone.mark_min().pages + Request::THP.order.pages();
        let hold_back = |pages: i32| zone.pagesets()[1].free_diff().store(pages, Relaxed);
        zone.stat().reset_free(needed - 1);
        assert_eq!(mm.compaction().why_lost(zone, search), CompactEvent::LostToMark);
        hold_back(1);
        assert_eq!(mm.compaction().why_lost(zone, search), CompactEvent::LostToDrift);
        hold_back(0);
        zone.stat().reset_free(zone.managed());
        while mm.alloc(Request { urgency: crate::Urgency::Never, ..Request::THP }).is_ok() {}
        assert_eq!(mm.compaction().why_lost(zone, search), CompactEvent::LostRace);
    }
}
