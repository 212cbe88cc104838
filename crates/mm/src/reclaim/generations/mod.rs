//! Reclaim of pages that are kept by generations (`lru_gen_shrink_lruvec`, `lru_gen_shrink_node`): batches of the oldest, until a
//! part of all pages that doubles with each priority was looked at; a new generation where few are left to take from. The lists
//! themselves are in `lru/generations`.

mod age;
mod evict;
mod ttl;
mod turns;

use super::kswapd::balanced_mark;
use super::lists::decide_by_swappiness;
use super::{DEF_PRIORITY, Reclaim, ReclaimDoor, ReclaimGround, Reclaimer, Scan, SwapOutDoor};
use crate::cache::FilesDoor;
use crate::compact::CompactDoor;
use crate::ground::{Machine, Node, Order};
use crate::lru::{GenDoor, LruDoor, LruList, MAIN, MIN_BATCH, Swappiness, VecId};
use crate::memcg::{GroupId, MemcgDoor};
use crate::pages::{AllocFlags, Zone, door};
use crate::rules::knobs::Knob;
use crate::rules::policy::{GenAgerRule, GenLookRule, GenStartRule, GenStopRule};
use crate::vm::{AheadDoor, RmapDoor, SpacesDoor, SwapDoor};

door! {
    /// Reclaim of pages that are kept by generations.
    GenReclaimDoor on ReclaimGround, Reclaim<M>: reclaim_state, to {
        reclaim: ReclaimDoor, memcg: MemcgDoor, lru: LruDoor, generations: GenDoor, files: FilesDoor, spaces: SpacesDoor, rmap: RmapDoor,
        compaction: CompactDoor, swap: SwapDoor, swap_ahead: AheadDoor, swapping: SwapOutDoor
    }
}

/// What a pass over a set of lists came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    /// It looked at as much as it was to.
    Evicted,
    /// A new generation began: others are to give first.
    Aged,
    /// Nothing may be taken from there.
    Protected,
}

/// How many pages a pass may look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Budget {
    Pages(u32),
    Stop(Passed),
}

impl<M: Machine, G: ReclaimGround<M>> GenReclaimDoor<'_, M, G> {
    /// Whether pages are kept by generations.
    pub(super) fn are_kept(self) -> bool {
        let is_on = |setting: u64| setting & MAIN != 0;
        self.knobs().decide(self.machine(), Knob::LruGenEnabled, is_on) && self.lru().keeps_generations()
    }

    /// Frees pages of `node` for the whole machine.
    pub(super) fn shrink_generations_of(self, node: Node, scan: &mut Scan) {
        let Some(zone) = self.pages().zones_of(node, scan.highest).next() else { return };
        scan.vec = VecId { group: GroupId::ROOT, ..self.lru().vec_of_zone(zone) };
        self.swap_ahead().note_written();
        self.lru().lru_drain_cpu(self.machine().cpu());
        scan.around = scan.by.looks_around();
        self.set_initial_priority(node, scan);
        let before = scan.reclaimed;
        if scan.by == Reclaimer::Kswapd {
            scan.reclaimed = 0;
        }
        let plug = self.swap().start_plug();
        if scan.by == Reclaimer::Kswapd {
            self.kill_if_all_is_young(scan);
        }
        self.shrink_in_turns(scan);
        self.swap().finish_plug(plug);
        if scan.by == Reclaimer::Kswapd {
            scan.reclaimed += before;
        }
    }

    /// One pass over the generations of `vec`, because its group or one above is too large.
    pub(super) fn shrink_generations(self, vec: VecId, scan: &mut Scan) {
        self.lru().lru_drain_cpu(self.machine().cpu());
        scan.around = scan.by.looks_around();
        self.evict_from(vec, scan);
    }

    /// Batches until the budget is used up (`try_to_shrink_lruvec`).
    fn evict_from(self, vec: VecId, scan: &mut Scan) -> Passed {
        let swappiness = self.generation_swappiness(vec, scan);
        let goes_on = self.rules().reclaim.generations.ager == GenAgerRule::ScannerEvicts;
        let (mut looked, mut aged) = (0, false);
        let mut whole_pass = None;
        loop {
            let budget = match self.budget(vec, swappiness, scan, &mut aged) {
                Budget::Pages(pages) => pages,
                Budget::Stop(passed) => return passed,
            };
            let pages = if goes_on { *whole_pass.get_or_insert(budget) } else { budget };
            if budget == 0 || pages == 0 {
                break;
            }
            // Before 7.2 the whole budget anew.
            let left = if goes_on { pages - looked } else { pages };
            let delta = self.evict_batch(vec, swappiness, left, scan);
            if delta == 0 {
                break;
            }
            looked += delta;
            if looked >= pages || self.should_abort(vec, scan) {
                break;
            }
        }
        if aged { Passed::Aged } else { Passed::Evicted }
    }

    /// How many pages to look at, now or in this pass (`get_nr_to_scan`); a new generation begins where that is needed.
    fn budget(self, vec: VecId, swappiness: Swappiness, scan: &mut Scan, aged: &mut bool) -> Budget {
        if self.memcg().protection(scan.target, vec.group).is_below_min() {
            return Budget::Stop(Passed::Protected);
        }
        let need = self.need_of_generation(vec, swappiness, scan.priority);
        let pages = self.scaled(vec, need.evictable, scan) >> scan.priority;
        let rule = self.rules().reclaim.generations.ager;
        if !need.is_needed || scan.priority == DEF_PRIORITY {
            return Budget::Pages(pages);
        }
        if rule == GenAgerRule::Kswapd {
            let evicts = self.generations().oldest_evictable(vec, swappiness) + crate::lru::MIN_GENERATIONS
                <= self.generations().youngest(vec);
            if scan.by == Reclaimer::Kswapd {
                return Budget::Pages(if evicts { pages } else { 0 });
            }
            let began = self.new_generation(vec, swappiness, scan);
            return Budget::Pages(if began || evicts { pages } else { 0 });
        }
        if !self.new_generation(vec, swappiness, scan) {
            return Budget::Pages(0);
        }
        if rule == GenAgerRule::ScannerEvicts {
            *aged = true;
            let pages = self.scaled(vec, self.generations().evictable(vec, swappiness), scan);
            return Budget::Pages(pages >> scan.priority);
        }
        Budget::Stop(Passed::Aged)
    }

    /// The part of `pages` that protection leaves to be looked at.
    fn scaled(self, vec: VecId, pages: u32, scan: &mut Scan) -> u32 {
        // Before 6.17 a group within its protection is left out, or nothing is.
        if self.rules().reclaim.generations.look == GenLookRule::Many {
            return pages;
        }
        self.reclaim().kept_of(vec, scan).rest(pages)
    }

    /// How eager reclaim is to swap from `vec` (`get_swappiness`): not at all where little swap is left.
    fn generation_swappiness(self, vec: VecId, scan: &Scan) -> Swappiness {
        let (used, size) = self.spaces().swap_pages();
        let has_room =
            size.saturating_sub(used) >= MIN_BATCH && self.memcg().has_swap_left(vec.group, MIN_BATCH.into());
        let node = self.zones().iter().find(|zone| self.lru().vec_of_zone(zone).place() == vec.place());
        let demotes = node.is_some_and(|zone| self.reclaim().slower_node(zone.node()).is_some());
        let by = |setting: u64| {
            let may_swap = scan.may_swap && (demotes || has_room);
            Swappiness(if may_swap { setting as u32 } else { 0 })
        };
        decide_by_swappiness(self.knobs(), self.machine(), by)
    }

    /// kswapd begins at a priority at which as much is looked at as is wanted.
    fn set_initial_priority(self, node: Node, scan: &mut Scan) {
        if self.rules().reclaim.generations.start == GenStartRule::Twelve
            || scan.priority != DEF_PRIORITY
            || scan.to_reclaim < MIN_BATCH
        {
            return;
        }
        let mut pages = self.lru().node_list_size(node, LruList::InactiveFile);
        if self.reclaim().has_room_for_anon(node) {
            pages += self.lru().node_list_size(node, LruList::InactiveAnon);
        }
        let bits = |number: u32| u32::BITS - number.leading_zeros();
        let priority = bits(pages).saturating_sub(1).saturating_sub(bits(scan.to_reclaim - 1));
        scan.priority = priority.clamp(DEF_PRIORITY / 2, DEF_PRIORITY);
    }

    /// Whether enough is free, or was freed (`should_abort_scan`).
    fn should_abort(self, vec: VecId, scan: &Scan) -> bool {
        let rule = self.rules().reclaim.generations.stop;
        let for_all = scan.target == GroupId::ROOT;
        if !for_all && rule != GenStopRule::WithEnoughAnywhere {
            return false;
        }
        let enough = scan.to_reclaim.max(self.compaction().compact_gap(scan.order));
        let is_early = rule == GenStopRule::AtMarks;
        let has_enough = scan.reclaimed >= if is_early { scan.to_reclaim } else { enough };
        if !is_early && has_enough {
            return true;
        }
        if is_early && (scan.priority > DEF_PRIORITY - 2 || scan.by == Reclaimer::Kswapd && !has_enough) {
            return false;
        }
        if !is_early && (scan.by != Reclaimer::Kswapd || scan.order > Order::ZERO) || !for_all {
            return false;
        }
        let mut zones = self.zones().iter().filter(|zone| {
            self.lru().vec_of_zone(zone).place() == vec.place() && zone.kind() <= scan.highest
        });
        zones.all(|zone| self.has_spare(zone, scan))
    }

    /// Whether `zone` has 64 free pages above its mark.
    fn has_spare(self, zone: &Zone<M>, scan: &Scan) -> bool {
        let mark = match scan.by {
            Reclaimer::Kswapd => balanced_mark(self.knobs(), self.machine(), zone),
            Reclaimer::Direct => zone.mark_low(),
        } + MIN_BATCH;
        zone.watermark_ok(self.machine(), Order::ZERO, mark, scan.highest, AllocFlags::NONE)
    }

    /// Whether `vec` has so many pages that a pass at this priority looks at some (`lruvec_is_sizable`).
    fn is_sizable(self, vec: VecId, scan: &Scan) -> bool {
        self.generations().evictable(vec, self.generation_swappiness(vec, scan)) >> scan.priority > 0
    }
}
