//! The free scanner: from the high end of a zone down, a pageblock at a time, it takes free frames off the free lists for the
//! migrate scanner's pages to go to.

use super::control::{Control, Effort};
use super::{CLUSTER_MAX, CompactDoor, CompactEvent, CompactGround, block_of};
use crate::ground::{Access, Chore, Guard, Machine, MigrateType, Order, PAGEBLOCK_PAGES, Pfn};
use crate::pages::{AllocFlags, FrameKind, FrameState, FreeAreas, Level, Mobility, Zone};
use crate::rules::policy::{FindRule, MarkRule};

/// Pageblocks between two looks at whether the CPU is wanted elsewhere.
const BLOCKS_PER_LOOK: u32 = 32;

/// The widest stride within a block where blocks have given nothing (since 5.1).
const STRIDE_MAX: u32 = CLUSTER_MAX as u32;

/// The lock of the present block's free lists, as long as it is held.
type Held<'a, M> = Option<Guard<'a, M, FreeAreas>>;

/// What became of a free block that was seen.
enum Taken {
    /// So many pages of it are frames to move to.
    Pages(u32),
    /// It is none any more.
    Nothing,
    /// The zone has too little free.
    NoneToSpare,
}

impl<'a, M: Machine, G: CompactGround<M>> CompactDoor<'a, M, G> {
    /// Takes as many free frames as there are pages to move, as far as there are any; where free lists are looked at first, what these
    /// give is enough for the moment.
    pub(super) fn isolate_targets(self, control: &mut Control) {
        if self.rules().compact.find != FindRule::Walk {
            self.fast_targets(control);
            if !control.targets.is_empty() {
                return;
            }
        }
        let zone = &self.zones()[usize::from(control.zone.0)];
        let lowest = block_of(control.migrate_pfn).1;
        let zone_end = Pfn(zone.managed_span().end);
        let mut stride = self.first_stride(control);
        let mut looked = 0;
        while control.targets.len() < control.isolated.len() {
            let (start, end) = block_of(control.free_pfn);
            // The zone's last block need not be a whole one.
            let end = end.min(zone_end);
            if start < lowest {
                return;
            }
            looked += 1;
            if looked % BLOCKS_PER_LOOK == 0 && self.should_stop(control) {
                return;
            }
            if self.is_target(control, start) {
                let (from, before) = (control.free_pfn, control.targets.len());
                let next = self.take_free_in(control, (from, end), stride);
                self.pay_for_scan(control, Chore::FreeScan);
                let found = control.targets.len() > before;
                if next == end && (from == start || self.rules().compact.mark != MarkRule::InVain) {
                    self.marks().note_looked_at(zone, start, found);
                }
                if next < end {
                    // There are enough, or no more are to be had.
                    control.free_pfn = next;
                    return;
                }
                stride = self.next_stride(stride, found);
            }
            if start.0 < PAGEBLOCK_PAGES {
                return;
            }
            control.free_pfn = Pfn(start.0 - PAGEBLOCK_PAGES);
            if control.contended {
                return;
            }
        }
    }

    fn first_stride(self, control: &Control) -> u32 {
        let walks = self.rules().compact.find == FindRule::Walk;
        if control.is_async() && !walks { STRIDE_MAX } else { 1 }
    }

    fn next_stride(self, stride: u32, found: bool) -> u32 {
        match self.rules().compact.find {
            FindRule::Walk => 1,
            _ if found => 1,
            _ => (stride * 2).min(STRIDE_MAX),
        }
    }

    /// Whether the pageblock at `start` is one to move pages to.
    pub(super) fn is_target(self, control: &Control, start: Pfn) -> bool {
        if !control.ignores_skip() && self.blocks().is_skipped(self.machine(), start) {
            return false;
        }
        self.pages().cx().mem().touch(start, Access::Read);
        let FrameState { kind, order, .. } = self.map().frame(start).state();
        if kind == FrameKind::Free && order >= Order::PAGEBLOCK {
            return false;
        }
        let migratetype = self.blocks().read(self.machine(), start);
        control.goal.effort == Effort::AnyBlock
            || matches!(migratetype, MigrateType::Movable | MigrateType::Cma)
    }

    /// Takes free frames of `from..end`, looking at every `stride`-th; gives where to go on: before `end` if there are enough, or the zone
    /// can spare no more.
    pub(super) fn take_free_in(self, control: &mut Control, (from, end): (Pfn, Pfn), stride: u32) -> Pfn {
        let (scanned, before) = (control.scanned.free, control.targets.len());
        let next = self.walk_free(control, (from, end), stride);
        let taken = (control.scanned.free - scanned, control.targets.len() - before);
        self.traced("mm_compaction_isolate_freepages", (from, next), taken);
        next
    }

    fn walk_free(self, control: &mut Control, (from, end): (Pfn, Pfn), stride: u32) -> Pfn {
        let mut held = None;
        let mut pfn = from;
        let mut seen = 0;
        while pfn < end {
            if seen % CLUSTER_MAX as u32 == CLUSTER_MAX as u32 - 1 {
                let contended = held.as_ref().is_some_and(Guard::is_contended);
                held = None;
                self.pay_for_scan(control, Chore::FreeScan);
                control.contended |= contended && control.is_async();
                if self.should_stop(control) {
                    return pfn;
                }
            }
            seen += 1;
            control.scanned.free += 1;
            control.unpaid += 1;
            self.pages().cx().mem().touch(pfn, Access::Read);
            let state = self.map().frame(pfn).state();
            let mut pages = if state.kind == FrameKind::Allocated { state.order.pages() } else { 1 };
            if state.kind == FrameKind::Free {
                match self.take_free_block(control, &mut held, pfn) {
                    Taken::Pages(taken) => pages = taken,
                    Taken::Nothing => {}
                    Taken::NoneToSpare => return pfn,
                }
            }
            control.scanned.free += self.counted_beside(pages);
            if state.kind == FrameKind::Free && control.targets.len() >= control.isolated.len() {
                return pfn.add(pages);
            }
            pfn = pfn.add(pages - 1 + stride);
        }
        end
    }

    /// Takes the free block at `pfn` off its list, if it still is one and the zone can spare it.
    fn take_free_block(self, control: &mut Control, held: &mut Held<'a, M>, pfn: Pfn) -> Taken {
        let zone = &self.zones()[usize::from(control.zone.0)];
        let owner = zone.arenas().owner(pfn);
        if held.as_ref().is_some_and(|lists| lists.number() != owner) {
            *held = None;
        }
        let lists = held.get_or_insert_with(|| zone.arenas().lock_owner(self.machine(), pfn));
        if lists.number() != zone.arenas().owner(pfn) || !self.is_free_piece(control, pfn) {
            return Taken::Nothing;
        }
        self.take_off(control, lists, pfn).map_or(Taken::NoneToSpare, Taken::Pages)
    }

    /// Whether a free block smaller than a pageblock is at `pfn`.
    fn is_free_piece(self, control: &Control, pfn: Pfn) -> bool {
        let state = self.map().frame(pfn).state();
        state.kind == FrameKind::Free && state.order < Order::PAGEBLOCK && state.zone == control.zone
    }

    /// Takes the free block at `pfn` off `lists`, which are locked and its own, as single frames to move pages to. `None`: the zone has too
    /// little free.
    pub(super) fn take_off(self, control: &mut Control, lists: &mut FreeAreas, pfn: Pfn) -> Option<u32> {
        let cx = self.pages().zone_cx(control.zone);
        let state = self.map().frame(pfn).state();
        if !self.can_spare(cx.zone, state.order) {
            return None;
        }
        lists.remove(cx, pfn);
        self.blocks().left(self.machine(), (pfn, state.order), Mobility::Movable);
        let single = FrameState {
            kind: FrameKind::Allocated,
            order: Order::ZERO,
            migratetype: MigrateType::Movable,
            zone: cx.zone.id(),
        };
        let pages = state.order.pages();
        for page in 0..pages {
            self.map().frame(pfn.add(page)).set_state(single);
            control.targets.push_back(pfn.add(page));
        }
        let pageset = &cx.zone.pagesets()[usize::from(self.machine().cpu().0)];
        pageset.beside().add_free(cx, -(pages as i32));
        self.own().count(cx.zone.id(), CompactEvent::Isolated, u64::from(pages));
        Some(pages)
    }

    /// Whether so many pages may be taken off the free lists for the time being (`__isolate_free_page`).
    fn can_spare(self, zone: &Zone<M>, order: Order) -> bool {
        let mark = Level::min(zone.watermarks().min) + order.pages();
        zone.watermark_ok(self.machine(), Order::ZERO, mark, zone.kind(), AllocFlags::NONE)
    }

    /// Gives back the frames that no page moved to; the free scanner goes on above them next time.
    pub(super) fn release_targets(self, control: &mut Control) {
        let mut highest = Pfn(0);
        for pfn in control.targets.drain(..) {
            highest = highest.max(pfn);
            self.pages().free(pfn, Order::ZERO).expect("a frame to move to is nobody else's");
        }
        let block = highest.align_down(Order::PAGEBLOCK);
        control.free_pfn = control.free_pfn.max(block);
        if self.rules().compact.mark != MarkRule::InVain {
            self.own().of(control.zone).come_back_to(block);
        }
    }
}
