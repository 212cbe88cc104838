//! The migrate scanner: from the low end of a zone up, a pageblock at a time, it takes pages off their lists that can be moved
//! (docs/rules/compaction.md#isolation).

use super::control::{By, Control};
use super::{CLUSTER_MAX, CompactDoor, CompactEvent, CompactGround, Mode, block_of};
use crate::ground::{Access, Chore, Machine, MigrateType, Order, Pfn};
use crate::lru::Isolator;
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::{FrameKind, FrameState};
use crate::rules::policy::{
    FailedPageRule, FindRule, FreeStepRule, IsolationRule, MarkRule, ReschedRule, ScanCountRule, SourceRule,
};

/// Pageblocks between two looks at whether the CPU is wanted elsewhere, where nothing else takes time.
const BLOCKS_PER_LOOK: u32 = 32;

/// What one search for pages to move came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// Some are isolated.
    Found,
    /// None in the block looked at.
    Nothing,
    /// It is to end, contended.
    Abort,
}

/// What stands between one page and the next.
enum Seen {
    /// Free or of no interest: so many pages further on.
    Free(u32),
    /// Cannot be moved: so many pages further on.
    Stays(u32),
    /// On a list.
    Listed,
}

impl Seen {
    /// How far it is to the next.
    fn pages(&self) -> u32 {
        match *self {
            Self::Free(pages) | Self::Stays(pages) => pages,
            Self::Listed => 1,
        }
    }
}

/// How a failed page ends the isolation of an aligned block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failing {
    /// It does not.
    GoOn,
    /// What was isolated of the block in this call goes back, and the next block is looked at.
    PutBackAndSkip,
    /// The next block is looked at; what was isolated moves.
    Skip,
    /// What was isolated goes back when the block has been looked at.
    PutBack,
}

/// The block, aligned to the wanted order, that the scanner is in.
struct Aligned {
    end: Pfn,
    /// The first of its pages among those isolated.
    first: usize,
    /// A page of it stays.
    failed: bool,
}

impl Aligned {
    fn over(pfn: Pfn, control: &Control) -> Self {
        let order = control.block_order().min(Order::PAGEBLOCK);
        Self { end: pfn.align_down(order).add(order.pages()), first: control.isolated.len(), failed: false }
    }
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Goes on from `control.migrate_pfn` to the next block with pages to move, and isolates some.
    pub(super) fn isolate_to_migrate(self, control: &mut Control) -> Search {
        let zone = &self.zones()[usize::from(control.zone.0)];
        let mut from = self.fast_migrate_block(control).unwrap_or(control.migrate_pfn);
        let mut looked = 0;
        loop {
            let (start, end) = block_of(from);
            if end > control.free_pfn.align_down(Order::PAGEBLOCK) {
                control.migrate_pfn = from;
                return Search::Nothing;
            }
            looked += 1;
            if looked % BLOCKS_PER_LOOK == 0 && self.should_stop(control) {
                control.migrate_pfn = from;
                return Search::Abort;
            }
            if from == start && !self.is_source(control, start) {
                self.own().count(zone.id(), CompactEvent::Rounds, 1);
                self.marks().note_passed(zone, control, (start, end));
                from = end;
                continue;
            }
            self.forget_slice(control);
            let before = control.scanned.migrate;
            let Some(next) = self.isolate_block(control, (from, end)) else {
                return Search::Abort;
            };
            let found = (control.scanned.migrate - before, control.isolated.len());
            self.traced("mm_compaction_isolate_migratepages", (from, next), found);
            control.migrate_pfn = next;
            self.own().count(zone.id(), CompactEvent::Rounds, 1);
            self.marks().note_scanned(zone, control, (from, next));
            return if control.isolated.is_empty() { Search::Nothing } else { Search::Found };
        }
    }

    /// Whether the pageblock at `start` is one to take pages from.
    fn is_source(self, control: &Control, start: Pfn) -> bool {
        if !control.ignores_skip() && self.blocks().is_skipped(self.machine(), start) {
            return false;
        }
        let migratetype = self.blocks().read(self.machine(), start);
        if self.large_block_at(control, start) {
            return false;
        }
        let movable = matches!(migratetype, MigrateType::Movable | MigrateType::Cma);
        if control.goal.mode != Mode::Async {
            return true;
        }
        let own_kind = self.rules().compact.source == SourceRule::OwnKind && control.goal.by == By::Direct;
        match control.goal.migratetype {
            wanted if own_kind && wanted != MigrateType::Movable => migratetype == wanted,
            _ => movable,
        }
    }

    /// Of a block of so many pages that is passed as a whole, those that are counted beside the first.
    pub(super) fn counted_beside(self, pages: u32) -> u64 {
        match self.rules().compact.scan_count {
            ScanCountRule::Once => 0,
            ScanCountRule::EachPage => u64::from(pages.saturating_sub(1)),
        }
    }

    /// Whether the pageblock at `start` is one block, or a part of one: an allocated one (since 5.1; a free one is met when it is looked
    /// at), or a free one, too.
    fn large_block_at(self, control: &Control, start: Pfn) -> bool {
        let head = start.align_down(Order::MAX);
        let free_too = self.rules().compact.mark == MarkRule::InVain;
        let large = |pfn: Pfn| {
            self.pages().cx().mem().touch(pfn, Access::Read);
            let state = self.map().frame(pfn).state();
            let counts = state.kind != FrameKind::Tail && (free_too || state.kind != FrameKind::Free);
            counts && state.order >= Order::PAGEBLOCK
        };
        let whole = control.block_order() <= Order::PAGEBLOCK;
        whole
            && (large(start)
                || head != start && large(head) && self.map().frame(head).state().order == Order::MAX)
    }

    /// How a page that cannot be isolated is met.
    fn failing(self, control: &Control) -> Failing {
        let rules = &self.rules().compact;
        let direct = control.goal.by == By::Direct;
        let skips = rules.failed_page == FailedPageRule::NextBlock && control.is_async();
        match rules.isolation {
            _ if !control.is_async() || control.goal.order.is_none() => Failing::GoOn,
            IsolationRule::SkipOnFailure if direct => Failing::PutBackAndSkip,
            IsolationRule::WholeDirect | IsolationRule::WholeAsync if !self.wants_whole(control) => {
                Failing::GoOn
            }
            IsolationRule::WholeDirect | IsolationRule::WholeAsync if skips => Failing::PutBackAndSkip,
            IsolationRule::WholeDirect | IsolationRule::WholeAsync => Failing::PutBack,
            _ if skips => Failing::Skip,
            _ => Failing::GoOn,
        }
    }

    /// Whether all of a block is to be isolated before any of it moves.
    fn wants_whole(self, control: &Control) -> bool {
        match self.rules().compact.isolation {
            IsolationRule::WholeDirect => control.is_async() && control.goal.by == By::Direct,
            IsolationRule::WholeAsync => control.is_async(),
            _ => false,
        }
    }

    /// Isolates pages of `from..end`, within one pageblock; gives where to go on. `None`: contended.
    fn isolate_block(self, control: &mut Control, (from, end): (Pfn, Pfn)) -> Option<Pfn> {
        let failing = self.failing(control);
        let most = if self.wants_whole(control) || control.finish_block { usize::MAX } else { CLUSTER_MAX };
        let mut isolator = Isolator::new(self.lru());
        let mut block = Aligned::over(from, control);
        control.met_pages = false;
        let mut pfn = from;
        while pfn < end && control.isolated.len() < most {
            if pfn.0 % CLUSTER_MAX as u32 == 0 && self.pause_scan(control, &mut isolator) {
                control.migrate_pfn = pfn;
                return None;
            }
            if pfn >= block.end {
                self.leave(control, &mut isolator, (failing, &block));
                if failing != Failing::GoOn && control.isolated.len() > block.first {
                    break;
                }
                block = Aligned::over(pfn, control);
            }
            let by_block = isolator.holds_lock() || failing != Failing::GoOn;
            let seen = self.look_at(pfn, by_block);
            control.scanned.migrate += 1 + self.counted_beside(seen.pages());
            control.unpaid += 1;
            if matches!(seen, Seen::Listed) && !isolator.holds_lock() && self.stops_at_page(control) {
                control.migrate_pfn = pfn;
                return None;
            }
            if matches!(seen, Seen::Listed) && !self.marks().claim(control, from, pfn) {
                pfn = end;
                break;
            }
            let alone = if matches!(seen, Seen::Listed) { isolator.isolate(pfn) } else { None };
            if matches!(seen, Seen::Free(_)) || alone.is_some() {
                control.isolated.extend(alone.map(|alone| (pfn, alone)));
                pfn = pfn.add(seen.pages());
                continue;
            }
            block.failed = true;
            if failing == Failing::PutBackAndSkip {
                isolator.let_go();
                self.put_back_from(control, block.first);
            }
            pfn = pfn.add(seen.pages());
            if matches!(failing, Failing::PutBackAndSkip | Failing::Skip) {
                pfn = pfn.max(block.end);
            }
        }
        self.leave(control, &mut isolator, (failing, &block));
        isolator.let_go();
        self.pay_for_scan(control, Chore::MigrateScan);
        Some(pfn.min(end))
    }

    /// The scanner is through with an aligned block: where it counts as a whole and a page of it stays, the others go back.
    fn leave(
        self,
        control: &mut Control,
        isolator: &mut Isolator<'_, M, G>,
        (failing, block): (Failing, &Aligned),
    ) {
        if block.failed && failing == Failing::PutBack {
            isolator.let_go();
            self.put_back_from(control, block.first);
        }
    }

    /// What is at `pfn`, as far as can be told without a lock. `by_block`: a free block is passed at once in any case.
    fn look_at(self, pfn: Pfn, by_block: bool) -> Seen {
        self.pages().cx().mem().touch(pfn, Access::Read);
        let FrameState { kind, order, .. } = self.map().frame(pfn).state();
        match kind {
            FrameKind::Free => {
                let by_block = by_block || self.rules().compact.free_step == FreeStepRule::Block;
                Seen::Free(if by_block { order.pages() } else { 1 })
            }
            FrameKind::Allocated if order == Order::ZERO && self.lru().has_pages() => {
                let page = self.lru().page(pfn);
                let pinned = matches!(page.mapping(), Mapping::Anon(_)) && page.refs() > page.mapped();
                if page.has(PageFlag::Lru) && !pinned { Seen::Listed } else { Seen::Stays(1) }
            }
            // (A slab says its order as well.)
            FrameKind::Allocated | FrameKind::Slab => Seen::Stays(order.pages()),
            FrameKind::Pcp | FrameKind::Tail | FrameKind::SlabTail => Seen::Stays(1),
        }
    }

    /// At the end of a run of pages: lets others have the lock, and looks whether to stop.
    fn pause_scan(self, control: &mut Control, isolator: &mut Isolator<'_, M, G>) -> bool {
        let contended = isolator.is_contended();
        isolator.let_go();
        self.pay_for_scan(control, Chore::MigrateScan);
        if contended && control.is_async() {
            control.contended = true;
        }
        self.should_stop(control)
    }

    pub(super) fn pay_for_scan(self, control: &mut Control, chore: Chore) {
        self.machine().spend(chore, core::mem::take(&mut control.unpaid));
    }

    /// Whether the compaction is to end early: contended, or its time slice is over and the policy minds.
    pub(super) fn should_stop(self, control: &mut Control) -> bool {
        let rule = self.rules().compact.resched;
        let minds = matches!(rule, ReschedRule::Aborts | ReschedRule::AbortsCall) && control.is_async();
        if minds && self.machine().need_resched() {
            control.contended = true;
        }
        control.contended
    }

    /// Before 3.16: `cond_resched` at the start of a block. Others have run, or will before this task goes on; the slice from
    /// here on is a new one.
    fn forget_slice(self, control: &Control) {
        let rule = self.rules().compact.resched;
        if rule == ReschedRule::AbortsAtPage && control.is_async() {
            self.machine().need_resched();
        }
    }

    /// Before 3.16: the LRU lock is not taken by who should let others run.
    fn stops_at_page(self, control: &mut Control) -> bool {
        let rule = self.rules().compact.resched;
        let stops = rule == ReschedRule::AbortsAtPage && control.is_async() && self.machine().need_resched();
        control.contended |= stops;
        stops
    }

    /// What was isolated from the `first` on goes back to its lists.
    pub(super) fn put_back_from(self, control: &mut Control, first: usize) {
        let zone = &self.zones()[usize::from(control.zone.0)];
        let back = control.isolated.len().saturating_sub(first);
        self.own().count(zone.id(), CompactEvent::PutBack, back as u64);
        for (pfn, alone) in control.isolated.drain(first..) {
            self.lru().put_back_page(pfn, alone);
        }
    }

    /// Where free lists are looked at first: a block near the scanner with pieces that would make it whole.
    fn fast_migrate_block(self, control: &mut Control) -> Option<Pfn> {
        let looks = self.rules().compact.find != FindRule::Walk;
        if looks { self.find_migrate_block(control) } else { None }
    }
}
