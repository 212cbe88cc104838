//! The path of a request: the zones in order, the pageset or the buddy lists of the first that may serve it, and the
//! those above ([`Above`]) when none may (docs/rules/page-lists.md#refills, docs/rules/reclaim.md#slow-path).
//!
//! Nothing here waits, reclaims or compacts. A request that no zone serves above its low mark goes to [`Above::alloc_slow`],
//! which comes back here with lower marks each time that it has made room.

use alloc::vec::Vec;

use crate::ground::{Cpu, Machine, Node, Order, Pfn, Span, Work, ZoneId};
use crate::pages::buddy::{FreeAreas, ZoneCx};
use crate::pages::fallback::Ask;
use crate::pages::frame::{FrameKind, FrameState, Mobility};
use crate::pages::pcp::Pcp;
use crate::pages::request::{AllocError, Request, Urgency};
use crate::pages::stat::{Events, SlowEvents};
use crate::pages::zone::{AllocFlags, Zone, ZoneBlock, zone_flag};
use crate::pages::zone_watch::Level;
use crate::pages::{Above, Pages};
use crate::rules::knobs::{Knob, KnobUse};
use crate::rules::policy::AtomicBoostRule;

/// A mark that a request must leave intact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    Low,
    Min,
}

/// A request on its way through the zones.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub(crate) request: &'a Request,
    /// The node asked first.
    pub(crate) node: Node,
    pub(crate) mark: Mark,
    pub(crate) flags: AllocFlags,
}

/// Whether a block was free where a request looked first: if so, it does not matter how hard it would have tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FirstLook {
    Found,
    FoundNone,
}

/// What came of a request.
pub(crate) struct Served {
    pub(crate) block: Result<Pfn, AllocError>,
    pub(crate) first_look: FirstLook,
}

impl<M: Machine> Pages<M> {
    /// Allocates a block and gives its first frame.
    ///
    /// # Errors
    /// If there is no block and there will not be one; see [`AllocError`].
    #[inline]
    pub(crate) fn alloc(&self, above: &impl Above<M>, request: Request) -> Result<Pfn, AllocError> {
        self.serve(above, request).block
    }

    /// [`Pages::alloc`], which says how it went.
    #[inline]
    pub(crate) fn serve(&self, above: &impl Above<M>, request: Request) -> Served {
        let since = self.machine.enter(Span::PageAlloc);
        let node = request.node.unwrap_or_else(|| self.local_node());
        let flags = match request.urgency {
            Urgency::Never | Urgency::Tries | Urgency::TriesHard => AllocFlags::NONE,
            _ => AllocFlags::KSWAPD,
        };
        let search = Search { request: &request, node, mark: Mark::Low, flags };
        let (found, first_look) = match self.search(above, search) {
            Some(block) => (Ok(block), FirstLook::Found),
            None => (above.alloc_slow(search), FirstLook::FoundNone),
        };
        let mut work = Work { order: request.order, migratetype: request.migratetype, ..Work::default() };
        let result = found.map(|(pfn, zone)| {
            work.zone = zone;
            work.count = 1;
            pfn
        });
        self.machine.leave(Span::PageAlloc, since, work);
        if let (Ok(pfn), true) = (result, request.zero) {
            self.machine.clear(pfn, request.order);
        }
        Served { block: result, first_look }
    }

    /// The node of the CPU that this runs on.
    #[inline]
    pub fn local_node(&self) -> Node {
        self.node_of(self.machine.cpu())
    }

    #[inline]
    fn node_of(&self, cpu: Cpu) -> Node {
        self.topology.cpus[usize::from(cpu.0)].node
    }

    /// The zones that may serve `request`, in order.
    #[inline]
    pub(crate) fn candidates<'a>(
        &'a self,
        request: &'a Request,
        node: Node,
    ) -> impl Iterator<Item = &'a Zone<M>> {
        self.candidates_of(self.zonelists.ids(node), request, node)
    }

    #[inline]
    fn candidates_of<'a>(
        &'a self,
        zonelist: &'a [ZoneId],
        request: &'a Request,
        node: Node,
    ) -> impl Iterator<Item = &'a Zone<M>> {
        let zones = zonelist.iter().map(|id| &self.zones[usize::from(id.0)]);
        zones.filter(move |zone| {
            zone.kind <= request.highest
                && request.allowed.contains(zone.node)
                && (!request.this_node || zone.node == node)
        })
    }

    /// Asks the zones in order (the kernel's `get_page_from_freelist`).
    #[inline]
    pub(crate) fn search(&self, above: &impl Above<M>, search: Search<'_>) -> Option<ZoneBlock> {
        // One zonelist from here on: another may come into force meanwhile.
        let zonelist = self.zonelists.ids(search.node);
        let preferred = self.candidates_of(zonelist, search.request, search.node).next()?;
        let mut flags = search.flags.with(preferred.first_try);
        // Types are kept apart until kswapd has to be woken, and with `vm.defrag_mode` until nothing else is left to try.
        if self.keeps_blocks() && !search.flags.has(AllocFlags::MIXES) {
            flags = flags.with(AllocFlags::NOFRAGMENT);
        } else if search.mark == Mark::Min {
            flags = flags.without(AllocFlags::NOFRAGMENT);
        }
        let search = Search { flags, ..search };
        let found = if search.flags.has(AllocFlags::FAIR.with(AllocFlags::LOW)) {
            self.search_with_care(above, search, zonelist, preferred)
        } else {
            self.search_all(above, search, zonelist, preferred)
        };
        if M::WATCHES_KNOBS && self.knobs.is_set(Knob::NumaZonelistOrder) {
            self.watch_order(search, zonelist, found.map(|(_, zone)| zone));
        }
        found
    }

    /// Whether `vm.defrag_mode` is set: pageblocks are kept to one type, and whole ones free.
    #[inline]
    pub(crate) fn keeps_blocks(&self) -> bool {
        self.knobs.get(Knob::DefragMode) != 0
    }

    /// Tells a machine that watches whether the order of the zonelist made a difference: whether the zones that were asked,
    /// up to the one that served the request, would have been asked in another order by default.
    #[inline(never)]
    fn watch_order(&self, search: Search<'_>, zonelist: &[ZoneId], found: Option<ZoneId>) {
        let knob = Knob::NumaZonelistOrder;
        let ids = |zones: &[ZoneId]| {
            let asked = self.candidates_of(zones, search.request, search.node).map(|zone| zone.id);
            let mut asked: Vec<ZoneId> = asked.collect();
            if let Some(last) = asked.iter().position(|id| Some(*id) == found) {
                asked.truncate(last + 1);
            }
            asked
        };
        let by_default = self.zonelists.ids_by_default(search.node);
        self.machine.knob_used(knob, KnobUse::of(&ids(zonelist), &ids(by_default)));
    }

    /// Nothing was found among the zones that take turns, which are those that the zonelist begins with: tells a machine that
    /// watches whether other zones would have had a turn by default. Which zone serves the request then does not show it.
    fn watch_turns(&self, search: Search<'_>, zonelist: &[ZoneId]) {
        let knob = Knob::NumaZonelistOrder;
        if !self.knobs.is_set(knob) {
            return;
        }
        let had_turns = |zones: &[ZoneId]| {
            let mut asked = self.candidates_of(zones, search.request, search.node).peekable();
            let node = asked.peek().map(|zone| zone.node);
            asked.take_while(|zone| Some(zone.node) == node).map(|zone| zone.id).collect::<Vec<_>>()
        };
        let by_default = self.zonelists.ids_by_default(search.node);
        self.machine.knob_used(knob, KnobUse::of(&had_turns(zonelist), &had_turns(by_default)));
    }

    /// Where zones take turns, or the preferred zone is a low one that has its price.
    #[inline(never)]
    fn search_with_care(
        &self,
        above: &impl Above<M>,
        search: Search<'_>,
        zonelist: &[ZoneId],
        preferred: &Zone<M>,
    ) -> Option<ZoneBlock> {
        let found = if search.flags.has(AllocFlags::FAIR) {
            self.search_in_turn(above, search, zonelist, preferred)
        } else {
            self.search_all(above, search, zonelist, preferred)
        };
        self.note_low(above, search.request, preferred, search.flags, found.map(|(_, zone)| zone));
        found
    }

    #[inline]
    fn search_all(
        &self,
        above: &impl Above<M>,
        search: Search<'_>,
        zonelist: &[ZoneId],
        preferred: &Zone<M>,
    ) -> Option<ZoneBlock> {
        match self.try_zone(above, search, preferred, preferred) {
            Some(pfn) => Some((pfn, preferred.id)),
            None => self.search_on(above, search, zonelist, preferred),
        }
    }

    /// Goes on after `preferred` had nothing.
    #[inline(never)]
    fn search_on(
        &self,
        above: &impl Above<M>,
        search: Search<'_>,
        zonelist: &[ZoneId],
        preferred: &Zone<M>,
    ) -> Option<ZoneBlock> {
        let mut search = search;
        let mut asked = 1;
        loop {
            // With `vm.defrag_mode` other nodes come before mixing, and reclaim does.
            let avoids_mixing = search.flags.has(AllocFlags::NOFRAGMENT) && !self.keeps_blocks();
            for zone in self.candidates_of(zonelist, search.request, search.node).skip(asked) {
                // Rather mix types here than go to another node.
                if avoids_mixing && zone.node != preferred.node {
                    break;
                }
                if let Some(pfn) = self.try_zone(above, search, zone, preferred) {
                    return Some((pfn, zone.id));
                }
            }
            if !avoids_mixing {
                return None;
            }
            search.flags = search.flags.without(AllocFlags::NOFRAGMENT);
            asked = 0;
        }
    }

    /// Where zones take turns: asks those of the preferred node that have some of theirs left, then all as usual.
    #[inline(never)]
    fn search_in_turn(
        &self,
        above: &impl Above<M>,
        search: Search<'_>,
        zonelist: &[ZoneId],
        preferred: &Zone<M>,
    ) -> Option<ZoneBlock> {
        let mut found = None;
        if search.mark == Mark::Low {
            found = self.search_fairly(above, search, zonelist, preferred);
        }
        if found.is_none() {
            let search = Search { flags: search.flags.without(AllocFlags::FAIR), ..search };
            found = self.search_all(above, search, zonelist, preferred);
        }
        if let Some((_, zone)) = found {
            self.zones[usize::from(zone.0)].count_turn(&self.machine, search.request.order);
        }
        found
    }

    /// The first pass: a zone whose turn is over is passed by; if nothing was found and one was, the node's turns begin
    /// anew.
    fn search_fairly(
        &self,
        above: &impl Above<M>,
        search: Search<'_>,
        zonelist: &[ZoneId],
        preferred: &Zone<M>,
    ) -> Option<ZoneBlock> {
        let candidates = self.candidates_of(zonelist, search.request, search.node);
        let mut passed_by = false;
        for zone in candidates.take_while(|zone| zone.node == preferred.node) {
            if zone.is_turn_over() {
                passed_by = true;
            } else if let Some(pfn) = self.try_zone(above, search, zone, preferred) {
                return Some((pfn, zone.id));
            }
        }
        if M::WATCHES_KNOBS {
            self.watch_turns(search, zonelist);
        }
        if passed_by {
            let of_node = self.zones.iter().filter(|zone| zone.node == preferred.node);
            for zone in of_node.filter(|zone| zone.kind <= preferred.kind) {
                zone.reset_turn(&self.machine, self.machine.cpu());
            }
        }
        None
    }

    #[inline]
    pub(crate) fn try_zone(
        &self,
        above: &impl Above<M>,
        search: Search<'_>,
        zone: &Zone<M>,
        preferred: &Zone<M>,
    ) -> Option<Pfn> {
        let Request { order, highest, .. } = *search.request;
        let ok = |mark: Level| zone.watermark_ok(&self.machine, order, mark, highest, search.flags);
        let free_enough = !zone.has_flag(zone_flag::BELOW_HIGH) && {
            let above_high = ok(zone.mark_high());
            if !above_high {
                zone.set_flag(zone_flag::BELOW_HIGH);
            }
            above_high
        };
        if !free_enough {
            let mark = match search.mark {
                Mark::Low => zone.mark_low(),
                Mark::Min => zone.mark_min(),
            };
            let is_short = !ok(mark) && !self.may_go_lower(search, zone, mark);
            if is_short && !(above.reclaim_on_node(search, zone, preferred) && ok(mark)) {
                return None;
            }
        }
        let Some(pfn) = self.take(search, zone, preferred) else {
            watch_mixing(self, search, preferred);
            return None;
        };
        if zone.clear_flag(zone_flag::BOOSTED) {
            above.wake_kswapd(zone.node, zone.kind);
        }
        if search.flags.has(AllocFlags::HIGHATOMIC) && order > Order::ZERO {
            self.reserve_highatomic(zone, pfn);
        }
        Some(pfn)
    }

    /// What a request that found no zone above its low mark need not heed: an atomic one for a single page the boost of
    /// `zone`, and any what it has learned beyond Linux's protection.
    #[cold]
    fn may_go_lower(&self, search: Search<'_>, zone: &Zone<M>, mark: Level) -> bool {
        if search.mark == Mark::Low {
            return false;
        }
        let Request { order, highest, .. } = *search.request;
        let without_boost = order == Order::ZERO
            && zone.boost() > 0
            && search.flags.has(AllocFlags::MIN_RESERVE)
            && self.policy.rules().zone.atomic_boost == AtomicBoostRule::Ignored;
        if without_boost {
            let mark = Level::min(zone.watermarks().min);
            return zone.watermark_ok(&self.machine, order, mark, highest, search.flags);
        }
        if zone.low.is_none() {
            return false;
        }
        zone.has_above(&self.machine, order, (mark, zone.least_protection(highest), highest), search.flags)
    }

    /// Takes a block from `zone`: from this CPU's pageset if it caches the order and its lock is free, else from the
    /// buddy lists (the kernel's `rmqueue`).
    #[inline]
    fn take(&self, search: Search<'_>, zone: &Zone<M>, preferred: &Zone<M>) -> Option<Pfn> {
        let Request { order, migratetype, .. } = *search.request;
        let ask = Ask { order, migratetype, flags: search.flags };
        let cx = ZoneCx { cx: self.cx(), zone };
        let cpu = self.machine.cpu();
        let pageset = &zone.pagesets[usize::from(cpu.0)];
        let mut pfn = None;
        if Pcp::caches(self.policy.rules().lists.pcp_orders, order) {
            if let Some(mut pcp) = pageset.pcp.try_lock(&self.machine) {
                pfn = pcp.alloc(cx, pageset.beside(), ask);
                if let Some(pfn) = pfn {
                    self.count_alloc(&mut pcp.events, order, zone, (preferred, cpu));
                    hand_out(cx, pfn, ask);
                }
            }
        }
        pfn.or_else(|| self.take_from_buddy(cx, ask, preferred))
    }

    #[inline(never)]
    fn take_from_buddy(&self, cx: ZoneCx<'_, M>, ask: Ask, preferred: &Zone<M>) -> Option<Pfn> {
        let zone = cx.zone;
        let cpu = self.machine.cpu();
        let pageset = &zone.pagesets[usize::from(cpu.0)];
        let mut taken = None;
        let put = |free: &mut FreeAreas, pfn| {
            pageset.beside().add_free(cx, -(ask.order.pages() as i32));
            self.count_alloc(&mut free.events, ask.order, zone, (preferred, cpu));
            self.blocks.left(&self.machine, (pfn, ask.order), Mobility::of(ask.migratetype));
            hand_out(cx, pfn, ask);
            taken = Some(pfn);
        };
        zone.arenas.take_one(cx, ask, &pageset.home, put);
        taken
    }

    #[inline]
    fn count_alloc(&self, events: &mut Events, order: Order, zone: &Zone<M>, asked: (&Zone<M>, Cpu)) {
        let (preferred, cpu) = asked;
        events.pgalloc += u64::from(order.pages());
        if zone.node == preferred.node {
            events.numa_hit += 1;
        } else {
            events.numa_miss += 1;
            SlowEvents::bump(&preferred.stat.numa_foreign);
        }
        if zone.node == self.node_of(cpu) {
            events.numa_local += 1;
        } else {
            events.numa_other += 1;
        }
    }
}

/// The block is the caller's from here on.
#[inline]
fn hand_out<M: Machine>(cx: ZoneCx<'_, M>, pfn: Pfn, ask: Ask) {
    let state = FrameState {
        kind: FrameKind::Allocated,
        order: ask.order,
        migratetype: ask.migratetype,
        zone: cx.zone.id,
    };
    cx.cx.map.frame(pfn).set_state(state);
}

/// A zone with a block to spare had none of `search`'s type: tells a machine that watches whether types would have mixed
/// there by default.
#[cold]
fn watch_mixing<M: Machine>(pages: &Pages<M>, search: Search<'_>, preferred: &Zone<M>) {
    if M::WATCHES_KNOBS && pages.knobs.is_set(Knob::DefragMode) {
        let kept_apart = search.flags.has(AllocFlags::NOFRAGMENT);
        let by_default = search.mark == Mark::Low && preferred.first_try.has(AllocFlags::NOFRAGMENT);
        pages.machine.knob_used(Knob::DefragMode, KnobUse::of(&kept_apart, &by_default));
    }
}
