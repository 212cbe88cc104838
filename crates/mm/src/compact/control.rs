//! What one compaction of a zone wants, may do, and has done so far (the kernel's `compact_control`).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Mode;
use crate::ground::{MigrateType, Order, Pfn, ZoneId, ZoneKind};
use crate::lru::Alone;
use crate::pages::Level;

/// Who compacts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// A request, for itself.
    Direct,
    Kswapd,
    Kcompactd,
    /// kcompactd, that nobody asked.
    Proactive,
    /// Whoever wrote to `vm.compact_memory`.
    Hand,
}

/// How much of a zone it looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Effort {
    /// From where the scanners were, without blocks that gave nothing of late.
    Usual,
    /// All of it (`ignore_skip_hint`, `whole_zone`).
    WholeZone,
    /// And frames in any block are good enough to move to (`ignore_block_suitable`).
    AnyBlock,
}

/// What is wanted of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactGoal {
    pub(in crate::compact) by: By,
    pub(in crate::compact) mode: Mode,
    pub(in crate::compact) effort: Effort,
    /// The block wanted; `None`: as many large ones as can be.
    pub(in crate::compact) order: Option<Order>,
    pub(in crate::compact) migratetype: MigrateType,
    /// The highest zone that will do for the request.
    pub(in crate::compact) highest: ZoneKind,
    /// The mark that the request must leave intact.
    pub(in crate::compact) mark: Level,
}

/// Pages that scanners looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scanned {
    pub(in crate::compact) migrate: u64,
    pub(in crate::compact) free: u64,
}

/// Where a walk goes on after searches of free lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Start {
    /// No search has found anything.
    #[default]
    None,
    /// At this block.
    At(Pfn),
    /// It has gone on there already.
    Used,
}

/// What the search of free lists remembers within one compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fast {
    /// Searches in a row that found nothing, on either side.
    pub(in crate::compact) misses: u32,
    /// The order that the free side's next search begins with: at first the largest below the one that is wanted.
    pub(in crate::compact) order: u8,
    /// The lowest block that the migrate side's searches found: where the walk goes on when they find no more.
    pub(in crate::compact) start: Start,
}

/// A compaction of a zone on its way.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, as in the kernel's compact_control"
)]
pub(crate) struct Control {
    pub(in crate::compact) goal: CompactGoal,
    pub(in crate::compact) zone: ZoneId,
    /// Where the scanners are.
    pub(in crate::compact) migrate_pfn: Pfn,
    pub(in crate::compact) free_pfn: Pfn,
    /// The whole zone will have been looked at when they meet.
    pub(in crate::compact) whole: bool,
    /// Isolated pages that wait to be moved.
    pub(in crate::compact) isolated: Vec<(Pfn, Alone)>,
    /// Free frames to move them to, the next one first.
    pub(in crate::compact) targets: VecDeque<Pfn>,
    pub(in crate::compact) scanned: Scanned,
    /// Pages looked at that have not been charged yet.
    pub(in crate::compact) unpaid: u32,
    /// It is to end: somebody else wants a lock or the CPU.
    pub(in crate::compact) contended: bool,
    /// The rest of the present block is isolated in one go, so that it is done with.
    pub(in crate::compact) finish_block: bool,
    /// The present scan has come to a page that can be isolated.
    pub(in crate::compact) met_pages: bool,
    /// The remembered positions stay where they are for the rest of this compaction.
    pub(in crate::compact) positions_fixed: bool,
    pub(in crate::compact) fast: Fast,
    /// Pages left the block that ends here, which are still on the pageset.
    pub(in crate::compact) undrained: Option<Pfn>,
    /// Where these were isolated, as the kernel remembers it: the pageblock, or (to 6.5) where the scanner was before (`last_migrated_pfn`;
    /// nothing is frame 0 there, so that the first pageblock of all counts as come to again).
    pub(in crate::compact) isolated_at: Pfn,
    pub(in crate::compact) captured: Option<Pfn>,
    pub(in crate::compact) moved: u32,
}

impl Control {
    pub(crate) fn new(goal: CompactGoal, zone: ZoneId, (migrate_pfn, free_pfn): (Pfn, Pfn)) -> Self {
        Self {
            goal,
            zone,
            migrate_pfn,
            free_pfn,
            whole: goal.effort > Effort::Usual,
            isolated: Vec::new(),
            targets: VecDeque::new(),
            scanned: Scanned::default(),
            unpaid: 0,
            contended: false,
            finish_block: false,
            met_pages: false,
            positions_fixed: false,
            fast: Fast { misses: 0, order: u8::MAX, start: Start::None },
            undrained: None,
            isolated_at: Pfn(0),
            captured: None,
            moved: 0,
        }
    }

    /// The order whose aligned blocks count; that of a pageblock where any large one is welcome.
    pub(crate) fn block_order(&self) -> Order {
        self.goal.order.unwrap_or(Order::PAGEBLOCK)
    }

    /// No pages of a block wait on the pageset for others of it.
    pub(in crate::compact) fn has_drained(&mut self) {
        (self.undrained, self.isolated_at) = (None, Pfn(0));
    }

    pub(crate) fn is_async(&self) -> bool {
        self.goal.mode == Mode::Async
    }

    pub(crate) fn ignores_skip(&self) -> bool {
        self.goal.effort > Effort::Usual
    }

    /// Whether the scanners are in the same pageblock, or past each other.
    pub(crate) fn have_met(&self) -> bool {
        let block = |pfn: Pfn| pfn.align_down(Order::PAGEBLOCK);
        block(self.free_pfn) <= block(self.migrate_pfn)
    }
}
