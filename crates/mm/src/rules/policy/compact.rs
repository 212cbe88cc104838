//! The rules of compaction and their history (docs/compaction-history.md, docs/rules/compaction.md), and what the thread
//! of 2014 proposed: no kernel has those, each is a part of its own.

use super::in_force::{List, Of};
use super::part::Part;
use super::{Mechanism, PcpOrders, Rules, v};
use crate::ground::{Since, Version, at};

/// Where the scanners go on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PositionRule {
    /// One position of the migrate scanner for all.
    Shared,
    /// One for asynchronous compaction, one for the rest: the thread's -mm.
    PerMode,
}

const POSITION: &[Since<PositionRule>] =
    &[Since(v(2, 6), PositionRule::Shared, ""), Since(v(3, 16), PositionRule::PerMode, "35979ef33931")];

/// What a huge fault does after asynchronous compaction and reclaim have failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecondTryRule {
    /// Compacts once more, and waits for locks and pages meanwhile (sync-light). Since 4.8 one that a program asked for
    /// does so under any rule ([`crate::Urgency`]).
    SyncLight,
    /// Compacts once more, asynchronously.
    Async,
    /// Nothing: what reclaim freed has to do. The thread's "reclaim in place of the second call".
    None,
}

const SECOND_TRY: &[Since<SecondTryRule>] =
    &[Since(v(2, 6), SecondTryRule::SyncLight, ""), Since(v(3, 16), SecondTryRule::Async, "75f30861a12a")];

/// What asynchronous compaction does when its time slice has run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReschedRule {
    /// It ends where it comes upon a page to isolate, for only there the LRU lock is taken and its slice looked at; between
    /// pageblocks it lets others run and goes on. A huge fault then neither reclaims nor tries again.
    AbortsAtPage,
    /// It ends wherever it is, as if a lock were contended; what follows is the same.
    Aborts,
    /// It ends, and goes to no other zone; what comes after compaction follows.
    AbortsCall,
    /// It finishes the zone, and goes to no other.
    EndsWithZone,
    /// Nothing: the thread's "no `need_resched`".
    Ignored,
}

const RESCHED: &[Since<ReschedRule>] = &[
    Since(v(2, 6), ReschedRule::AbortsAtPage, ""),
    Since(v(3, 16), ReschedRule::Aborts, ""),
    Since(v(4, 8), ReschedRule::AbortsCall, "c3486f537669"),
    Since(v(5, 1), ReschedRule::EndsWithZone, "cf66f0700c8f"),
];

/// How much of a block the migrate scanner isolates before anything moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IsolationRule {
    /// Up to 32 pages, whatever stands in the way of the rest.
    Batches,
    /// For direct asynchronous compaction: up to 32 pages, and none where one of the block was seen to stay. What earlier
    /// batches moved is lost.
    SkipOnFailure,
    /// For direct compaction: all of the block, or none.
    WholeDirect,
    /// For all asynchronous compaction: all of the block, or none.
    WholeAsync,
}

const ISOLATION: &[Since<IsolationRule>] = &[
    Since(v(2, 6), IsolationRule::Batches, ""),
    Since(v(4, 7), IsolationRule::SkipOnFailure, "fdd048e12c9a"),
];

/// Which pageblocks asynchronous compaction for a request takes pages from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceRule {
    /// Movable ones.
    Movable,
    /// Those of the request's own kind: for kernel memory the kernel's, where next to nothing can be moved.
    OwnKind,
}

const SOURCE: &[Since<SourceRule>] =
    &[Since(v(2, 6), SourceRule::Movable, ""), Since(v(4, 12), SourceRule::OwnKind, "282722b0d258")];

/// Where the migrate scanner goes when a page cannot be isolated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedPageRule {
    /// To the next page.
    NextPage,
    /// To the next block that is aligned to the wanted order, for asynchronous compaction.
    NextBlock,
}

/// How much one call may scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BudgetRule {
    /// Until the scanners meet.
    Unbounded,
    /// `freehold.compact_budget_mib`.
    Fixed,
    /// Begins with that; success doubles it, failure halves it. It takes the place of deferral.
    Tuned,
}

impl BudgetRule {
    /// Whether a call has a budget.
    pub fn is_bounded(self) -> bool {
        self != Self::Unbounded
    }
}

/// Which failures put later attempts off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeferRule {
    /// Those of compaction that is not asynchronous.
    Sync,
    /// All.
    All,
    /// None.
    None,
}

/// Whether deferral is a matter of each zone, or of the zone that a request prefers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeferScopeRule {
    /// Of the preferred zone, for all of the request's.
    Preferred,
    /// Of each.
    Zone,
}

const DEFER_SCOPE: &[Since<DeferScopeRule>] =
    &[Since(v(2, 6), DeferScopeRule::Preferred, ""), Since(v(3, 18), DeferScopeRule::Zone, "53853e2d2bfb")];

/// Who compacts in the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackgroundRule {
    /// kswapd, asynchronously.
    Kswapd,
    /// kswapd, waiting for locks and pages: the thread's other reading.
    KswapdSync,
    /// kcompactd, which kswapd wakes.
    Kcompactd,
    /// The same, which requests that may not reclaim wake, too, where kswapd sleeps on.
    KcompactdByRequests,
}

/// That requests wake it is read in the facts; since when is from memory.
const BACKGROUND: &[Since<BackgroundRule>] = &[
    Since(v(2, 6), BackgroundRule::Kswapd, ""),
    Since(v(4, 6), BackgroundRule::Kcompactd, "accf62422b3a"),
    Since(v(4, 17), BackgroundRule::KcompactdByRequests, ""),
];

/// Who gets the block that compaction completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaptureRule {
    /// Whoever asks the free lists first.
    None,
    /// The request that it was completed for, at once.
    Captured,
    /// The same, which notices after the next pages moved.
    NoticedLate,
}

/// That it is noticed late was found in a trace of 6.12 (`scripts/trace-scene compaction`); since when is from memory.
const CAPTURE: &[Since<CaptureRule>] = &[
    Since(v(2, 6), CaptureRule::None, ""),
    Since(v(5, 1), CaptureRule::Captured, "5e1f0f098b46"),
    Since(v(6, 3), CaptureRule::NoticedLate, ""),
];

/// How blocks to empty and frames to fill are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindRule {
    /// By walking the descriptors.
    Walk,
    /// The free lists are looked at first.
    FreeLists,
    /// By what is known of each pageblock: no kernel does it.
    Summary,
}

const FIND: &[Since<FindRule>] =
    &[Since(v(2, 6), FindRule::Walk, ""), Since(v(5, 1), FindRule::FreeLists, "70b44595eafe")];

/// Which pageblocks are marked to be passed over, and where the scanners go on after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkRule {
    /// One of which all was looked at in vain.
    InVain,
    /// One whose first page was isolated, too: the rest of it is nobody else's. The migrate scanner goes on a block further than where
    /// it was.
    FirstClaimed,
    /// One of which any page was isolated by a scan from its beginning.
    Claimed,
    /// The free scanner, too; and a block counts as come to again when it is (before, where the scanner was when it was come to).
    ClaimedBelow,
}

/// Found in traces of 5.10, 6.1 and 6.12 (`scripts/trace-scene compaction`); since when is from memory.
const MARK: &[Since<MarkRule>] = &[
    Since(v(2, 6), MarkRule::InVain, ""),
    Since(v(5, 1), MarkRule::FirstClaimed, "e380bebe4771"),
    Since(v(6, 5), MarkRule::Claimed, "590ccea80ac7"),
    Since(v(6, 6), MarkRule::ClaimedBelow, ""),
];

/// Whether the rest of a pageblock is isolated in one go, so that it is done with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinishRule {
    /// No.
    Never,
    /// Where it is come to a second time.
    SecondVisit,
    /// Where a page of it did not move, too; and a block that the free lists name is not marked for that.
    AfterFailure,
}

/// That a second visit goes on to the end, asynchronously too, is in traces of 6.12; since when the others are is from memory.
const FINISH: &[Since<FinishRule>] = &[
    Since(v(2, 6), FinishRule::Never, ""),
    Since(v(5, 1), FinishRule::SecondVisit, ""),
    Since(v(6, 3), FinishRule::AfterFailure, ""),
];

/// How a block that the scanners pass as a whole is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanCountRule {
    /// As one page.
    Once,
    /// With all its pages.
    EachPage,
}

/// Counted in scenes of 6.12; since when is from memory.
const SCAN_COUNT: &[Since<ScanCountRule>] =
    &[Since(v(2, 6), ScanCountRule::Once, ""), Since(v(6, 4), ScanCountRule::EachPage, "")];

/// How the migrate scanner passes a free block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeStepRule {
    /// Page by page.
    Page,
    /// At once.
    Block,
}

const FREE_STEP: &[Since<FreeStepRule>] =
    &[Since(v(2, 6), FreeStepRule::Page, ""), Since(v(3, 18), FreeStepRule::Block, "99c0fd5e51c4")];

/// When freed pages leave the compacting CPU's pageset to merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PcpDrainRule {
    /// After compaction.
    AtEnd,
    /// After each block of the wanted order, too.
    EachBlock,
}

const PCP_DRAIN: &[Since<PcpDrainRule>] =
    &[Since(v(2, 6), PcpDrainRule::AtEnd, ""), Since(v(3, 19), PcpDrainRule::EachBlock, "fdaf7f5c40f3")];

/// What a zone must have before it is compacted for a huge fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SuitableRule {
    /// What any request of the order needs.
    AnyRequest,
    /// Besides, free memory for two blocks above the high mark, and no success is believed without a block on a list that
    /// the fault may use: the thread's "suitability that knows THP faults".
    KnowsFaults,
}

/// Whether there is compaction that nobody asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProactiveRule {
    /// No.
    Never,
    /// By `vm.compaction_proactiveness`.
    ByScore,
    /// The same, and what is looked at then counts as kcompactd's.
    ByScoreCounted,
}

/// That it counts was found in captures: not in those of 6.1, in those of 6.12. Since when between them is not known.
const PROACTIVE: &[Since<ProactiveRule>] = &[
    Since(v(2, 6), ProactiveRule::Never, ""),
    Since(v(5, 9), ProactiveRule::ByScore, "facdaa917c4d"),
    Since(v(6, 2), ProactiveRule::ByScoreCounted, ""),
];

/// How much room above a mark compaction is said to need (`compact_gap`), and how much reclaim frees for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapRule {
    /// Twice the block.
    TwiceTheBlock,
    /// The same, 32 pages at most: as many as compaction moves at a time.
    AtMostACluster,
}

/// From a list of 7.2's commits and an analysis of 7.2.3; read in no source.
const GAP: &[Since<GapRule>] =
    &[Since(v(2, 6), GapRule::TwiceTheBlock, ""), Since(v(7, 2), GapRule::AtMostACluster, "")];

/// The rules of compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct CompactRules {
    pub position: PositionRule,
    pub second_try: SecondTryRule,
    pub resched: ReschedRule,
    pub isolation: IsolationRule,
    pub source: SourceRule,
    pub failed_page: FailedPageRule,
    pub budget: BudgetRule,
    pub defer: DeferRule,
    pub defer_scope: DeferScopeRule,
    pub background: BackgroundRule,
    pub capture: CaptureRule,
    pub find: FindRule,
    pub mark: MarkRule,
    pub finish: FinishRule,
    pub scan_count: ScanCountRule,
    pub free_step: FreeStepRule,
    pub pcp_drain: PcpDrainRule,
    pub suitable: SuitableRule,
    pub proactive: ProactiveRule,
    pub gap: GapRule,
}

impl CompactRules {
    /// The rules of mainline Linux `version`.
    pub(super) fn linux(version: Version) -> Self {
        Self {
            position: at(POSITION, version),
            second_try: at(SECOND_TRY, version),
            resched: at(RESCHED, version),
            isolation: at(ISOLATION, version),
            source: at(SOURCE, version),
            failed_page: FailedPageRule::NextPage,
            budget: BudgetRule::Unbounded,
            defer: DeferRule::Sync,
            defer_scope: at(DEFER_SCOPE, version),
            background: at(BACKGROUND, version),
            capture: at(CAPTURE, version),
            find: at(FIND, version),
            mark: at(MARK, version),
            finish: at(FINISH, version),
            scan_count: at(SCAN_COUNT, version),
            free_step: at(FREE_STEP, version),
            pcp_drain: at(PCP_DRAIN, version),
            suitable: SuitableRule::AnyRequest,
            proactive: at(PROACTIVE, version),
            gap: at(GAP, version),
        }
    }

    #[rustfmt::skip]
    pub(super) fn visit(&mut self, other: &Self, to: &mut List) {
        const OURS: &[Mechanism] = &[Mechanism::Compaction];
        let Self {
            position, second_try, resched, isolation, source, failed_page, budget, defer, defer_scope,
            background, capture, find, mark, finish, scan_count, free_step, pcp_drain, suitable, proactive, gap,
        } = self;
        to.add(Of("position", OURS, "where the scanners go on"), POSITION, position, other.position);
        to.add(Of("second-try", OURS, "what a huge fault does after a failure"), SECOND_TRY, second_try, other.second_try);
        to.add(Of("resched", OURS, "what happens at the end of a time slice"), RESCHED, resched, other.resched);
        to.add(Of("isolation", OURS, "how much is isolated before anything moves"), ISOLATION, isolation, other.isolation);
        to.add(Of("source", OURS, "pageblocks that pages are taken from"), SOURCE, source, other.source);
        let failed = Of("failed-page", OURS, "where the scanner goes when a page stays");
        to.constant(failed, FailedPageRule::NextPage, failed_page, other.failed_page);
        to.constant(Of("budget", OURS, "how much a call may scan"), BudgetRule::Unbounded, budget, other.budget);
        to.constant(Of("defer", OURS, "which failures put attempts off"), DeferRule::Sync, defer, other.defer);
        to.add(Of("defer-scope", OURS, "whose attempts are put off"), DEFER_SCOPE, defer_scope, other.defer_scope);
        to.add(Of("background", OURS, "who compacts in the background"), BACKGROUND, background, other.background);
        to.add(Of("capture", OURS, "who gets a completed block"), CAPTURE, capture, other.capture);
        to.add(Of("find", OURS, "how blocks and frames are found"), FIND, find, other.find);
        to.add(Of("compact-mark", OURS, "which blocks are marked to be passed over"), MARK, mark, other.mark);
        to.add(Of("compact-finish", OURS, "whether the rest of a block is isolated in one go"), FINISH, finish, other.finish);
        to.add(Of("scan-count", OURS, "how blocks that scanners pass are counted"), SCAN_COUNT, scan_count, other.scan_count);
        to.add(Of("free-step", OURS, "how free blocks are passed"), FREE_STEP, free_step, other.free_step);
        to.add(Of("pcp-drain", OURS, "when freed pages leave the page list"), PCP_DRAIN, pcp_drain, other.pcp_drain);
        let suits = Of("suitable", OURS, "what a zone needs before it is compacted");
        to.constant(suits, SuitableRule::AnyRequest, suitable, other.suitable);
        to.add(Of("proactive", OURS, "whether it happens unasked"), PROACTIVE, proactive, other.proactive);
        to.add(Of("gap", OURS, "room above a mark that it is said to need"), GAP, gap, other.gap);
    }
}

/// Parts of compaction.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "compact-whole-direct",
        meaning: "Rientjes 2014: direct compaction isolates all of a block of the wanted order before anything moves, and puts \
                  back what will not make one",
        set: |rules| rules.compact.isolation = IsolationRule::WholeDirect,
        pays: false,
    },
    Part {
        name: "compact-whole-async",
        meaning: "The same for all asynchronous compaction, kswapd's too: the thread's other reading",
        set: |rules| rules.compact.isolation = IsolationRule::WholeAsync,
        pays: false,
    },
    Part {
        name: "compact-skip",
        meaning: "Rientjes 2014: asynchronous compaction goes on at the next block of the wanted order when a page cannot be \
                  isolated",
        set: |rules| rules.compact.failed_page = FailedPageRule::NextBlock,
        pays: false,
    },
    Part {
        name: "compact-no-resched",
        meaning: "Rientjes 2014: compaction does not end because its time slice has",
        set: |rules| rules.compact.resched = ReschedRule::Ignored,
        pays: false,
    },
    Part {
        name: "compact-budget",
        meaning: "Rientjes 2014: a call scans freehold.compact_budget_mib at most",
        set: |rules| rules.compact.budget = BudgetRule::Fixed,
        pays: false,
    },
    Part {
        name: "compact-tuned-budget",
        meaning: "Rientjes 2014: what a call scans doubles with success and halves with failure; nothing is deferred",
        set: |rules| {
            rules.compact.budget = BudgetRule::Tuned;
            rules.compact.defer = DeferRule::None;
        },
        pays: false,
    },
    Part {
        name: "compact-defer-async",
        meaning: "Rientjes 2014: failures of asynchronous compaction put later attempts off, too",
        set: |rules| rules.compact.defer = DeferRule::All,
        pays: false,
    },
    Part {
        name: "compact-reclaim-second",
        meaning: "Rientjes 2014: a huge fault reclaims after compaction failed, and does not compact again",
        set: |rules| rules.compact.second_try = SecondTryRule::None,
        pays: false,
    },
    Part {
        name: "compact-kswapd-sync",
        meaning: "Rientjes 2014: kswapd waits for locks and pages when it compacts",
        set: |rules| rules.compact.background = BackgroundRule::KswapdSync,
        pays: false,
    },
    Part {
        name: "compact-capture",
        meaning: "Rientjes 2014: the block that compaction completes goes to the request that it was completed for (mainline \
                  since 5.1)",
        set: |rules| rules.compact.capture = CaptureRule::Captured,
        pays: false,
    },
    Part {
        name: "compact-free-lists",
        meaning: "Compaction looks at the free lists before it walks, and goes on when its time slice is over: Linux 5.1's \
                  series without capture",
        set: |rules| {
            rules.compact.find = FindRule::FreeLists;
            rules.compact.mark = MarkRule::FirstClaimed;
            rules.compact.finish = FinishRule::SecondVisit;
            rules.compact.resched = ReschedRule::EndsWithZone;
        },
        pays: false,
    },
    Part {
        name: "compact-thp-suitable",
        meaning: "Rientjes 2014: for a huge fault a zone needs room for two blocks above its high mark, and no success is \
                  believed without a block",
        set: |rules| rules.compact.suitable = SuitableRule::KnowsFaults,
        pays: false,
    },
    Part {
        name: "compact-summary",
        meaning: "Allocation and freeing keep count of each pageblock's free and immovable pages; compaction empties the \
                  block that costs least, moves only what completes one, and fills the fullest",
        set: compact_summary,
        pays: true,
    },
];

/// The counts say of a pageset's list whether its pages can move, so huge pages have two lists with it, as since 6.10.
fn compact_summary(rules: &mut Rules) {
    rules.compact.find = FindRule::Summary;
    if rules.lists.pcp_orders == PcpOrders::WithHuge {
        rules.lists.pcp_orders = PcpOrders::WithTwoHuge;
    }
}
