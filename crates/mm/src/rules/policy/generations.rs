//! The rules of pages that are kept by generations (MGLRU, `lru_gen.enabled`), and their history: read in 6.1, 6.6, 6.12, 6.18 and
//! 7.1, those of 7.2 from lists of its commits (docs/rules/reclaim.md#generations). Kernels before 6.1 have none.

use super::Mechanism::Generations;
use super::in_force::{List, Of};
use super::v;
use crate::ground::{Since, Version, at};

/// Whether pages are kept by generations where nobody sets `lru_gen.enabled` (`CONFIG_LRU_GEN_ENABLED`): as distributions build a
/// kernel. Mainline's own default is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenDefaultRule {
    /// They are not.
    Off,
    /// They are: Debian's kernels from 6.12 on, as Ubuntu's since 2023, Fedora's, RHEL's since 9.4 and Arch's.
    On,
}

const DEFAULT: &[Since<GenDefaultRule>] =
    &[Since(v(6, 1), GenDefaultRule::Off, ""), Since(v(6, 12), GenDefaultRule::On, "")];

/// To which generation a page comes (`lru_gen_add_folio`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenPlaceRule {
    /// What a fault brings to the youngest, what calls read to the second oldest, or the oldest where there are few.
    BothEnds,
    /// All counted from the youngest: a fault's to the second, or the first if it comes back and was in use before; what calls
    /// read to the fourth, or the third if so.
    Youngest,
    /// The same, but a file's page of a fault comes to the third, and what a fault brings counts as used once.
    FilesLater,
}

const PLACE: &[Since<GenPlaceRule>] = &[
    Since(v(6, 1), GenPlaceRule::BothEnds, ""),
    Since(v(6, 14), GenPlaceRule::Youngest, ""),
    Since(v(7, 2), GenPlaceRule::FilesLater, "6cbdd9726fb5"),
];

/// What uses are counted, and what one of a mapped page does (`folio_inc_refs`, `folio_update_gen`, `folio_check_references`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenUseRule {
    /// A used entry makes its page the youngest. Of calls, the second makes it a page in use, further ones count beyond.
    PromotesAtOnce,
    /// The second use found does. Of calls, that is beyond all that is counted.
    PromotesTheSecond,
}

const USE: &[Since<GenUseRule>] =
    &[Since(v(6, 1), GenUseRule::PromotesAtOnce, ""), Since(v(6, 14), GenUseRule::PromotesTheSecond, "")];

/// Whether a look around a page that was found in use finds that page again, which is then in use twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenAroundRule {
    /// Yes.
    WithItself,
    /// No.
    Others,
}

/// As posted in October 2024 (Yu Zhao, "use {ptep,pmdp}_clear_young_notify()", for stable kernels too): the page's own bit is cleared before others
/// are looked at. Traces of 6.12.107 say so (madvise, anon-loop-mglru: no page that was in use once becomes active). The commit's name is from memory.
const AROUND: &[Since<GenAroundRule>] =
    &[Since(v(6, 1), GenAroundRule::WithItself, ""), Since(v(6, 12), GenAroundRule::Others, "1d4832becdc2")];

/// When a generation more is needed while there are three (`should_run_aging`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenAgeRule {
    /// Where more than half of all pages are in the youngest or less than a quarter in the oldest.
    BySpread,
    /// At once.
    AtThree,
    /// At once, but not while a pass only begins.
    AtThreeLater,
}

const AGE: &[Since<GenAgeRule>] = &[
    Since(v(6, 1), GenAgeRule::BySpread, ""),
    Since(v(6, 14), GenAgeRule::AtThree, ""),
    Since(v(7, 2), GenAgeRule::AtThreeLater, "163bc3d68c9f"),
];

/// Who makes a new generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenAgerRule {
    /// kswapd, for all groups before it reclaims; a request only beyond its first pass.
    Kswapd,
    /// Whoever looks through the lists, beyond the first pass; it leaves them alone for now.
    Scanner,
    /// The same, but it goes on to evict.
    ScannerEvicts,
}

const AGER: &[Since<GenAgerRule>] = &[
    Since(v(6, 1), GenAgerRule::Kswapd, ""),
    Since(v(6, 3), GenAgerRule::Scanner, ""),
    Since(v(7, 2), GenAgerRule::ScannerEvicts, "12316f7902f8"),
];

/// Which kind of pages goes, and which of them are protected for their uses (`get_type_to_scan`, `get_tier_idx`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenKindRule {
    /// Anonymous ones if their oldest are older; else by how many of those that were used least came back.
    LeastUsed,
    /// By how many of all came back. Neither kind falls behind the other.
    AllUses,
}

const KIND: &[Since<GenKindRule>] =
    &[Since(v(6, 1), GenKindRule::LeastUsed, ""), Since(v(6, 14), GenKindRule::AllUses, "")];

/// What becomes of the oldest that are dirty or being written (`sort_folio`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenDirtyRule {
    /// They come to the next generation.
    Later,
    /// They are taken off and become active.
    Activated,
}

/// 6.12 was once said to activate them; its captures sort as many as are written after that (`pgrefill`, `pgrotated`), and activate none.
const DIRTY: &[Since<GenDirtyRule>] =
    &[Since(v(6, 1), GenDirtyRule::Later, ""), Since(v(7, 2), GenDirtyRule::Activated, "75d4c3f5fb98")];

/// At how many of the oldest a batch looks, at most, to find 64 that can go (`scan_folios`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenLookRule {
    /// 4096.
    Many,
    /// 4096, and no more than its pass is to look at, of which protection leaves a part as it does with lists.
    AsAsked,
    /// 64, and no more than its pass has yet to look at.
    Few,
}

/// The second was posted as "apply proportional reclaim pressure for memcg when MGLRU is enabled", 20250530162353.541882-1-den@valinux.co.jp,
/// after 6.16's changes had been taken; 6.12 does not do it, 6.18 does (traces of scenes).
const LOOK: &[Since<GenLookRule>] = &[
    Since(v(6, 1), GenLookRule::Many, ""),
    Since(v(6, 17), GenLookRule::AsAsked, ""),
    Since(v(7, 2), GenLookRule::Few, "6e9be217a3ce"),
];

/// When who looks through lists stops before its budget is used up (`should_abort_scan`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenStopRule {
    /// With free memory at the mark, beyond the first passes.
    AtMarks,
    /// With as much as was wanted; kswapd also at the marks. In a group not at all.
    WithEnough,
    /// The same, in a group too.
    WithEnoughAnywhere,
}

const STOP: &[Since<GenStopRule>] = &[
    Since(v(6, 1), GenStopRule::AtMarks, ""),
    Since(v(6, 3), GenStopRule::WithEnough, ""),
    Since(v(7, 1), GenStopRule::WithEnoughAnywhere, ""),
];

/// At which priority kswapd begins (`set_initial_priority`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenStartRule {
    /// 12.
    Twelve,
    /// At the one at which as much as is wanted would be looked at.
    BySize,
}

const START: &[Since<GenStartRule>] =
    &[Since(v(6, 1), GenStartRule::Twelve, ""), Since(v(6, 6), GenStartRule::BySize, "")];

/// Which pages come back early, and what is counted of them (`lru_gen_refault`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenRefaultRule {
    /// Those that the oldest generation lost while it was that. Refaults are these.
    Oldest,
    /// The same; refaults are all.
    OldestOfAll,
    /// Those that one of the four youngest lost.
    OfFour,
}

const REFAULT: &[Since<GenRefaultRule>] = &[
    Since(v(6, 1), GenRefaultRule::Oldest, ""),
    Since(v(6, 6), GenRefaultRule::OldestOfAll, ""),
    Since(v(6, 14), GenRefaultRule::OfFour, ""),
];

/// In which order a node's groups give (`shrink_many`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenGroupRule {
    /// All, each time.
    All,
    /// Those in turn that did not age since: a list of generations of groups.
    InTurn,
}

const GROUP: &[Since<GenGroupRule>] =
    &[Since(v(6, 1), GenGroupRule::All, ""), Since(v(6, 3), GenGroupRule::InTurn, "")];

/// When a worker that reclaim wakes has the CPU; the program is switched to again after it, so that its tables are walked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenTurnRule {
    /// Where the kernel next asks whether somebody else should run, before more is looked at (`PREEMPT_VOLUNTARY`).
    AtOnce,
    /// At the tick, or when the program goes on (`PREEMPT_LAZY`).
    Later,
}

/// As Debian builds its kernels. Who is woken is `vmpressure_work_fn`, seen in traces of 6.12.
const TURN: &[Since<GenTurnRule>] =
    &[Since(v(6, 1), GenTurnRule::AtOnce, ""), Since(v(6, 13), GenTurnRule::Later, "")];

/// When kswapd looks whether all that there is to take is younger than `lru_gen.min_ttl_ms` (`lru_gen_age_node`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenTtlRule {
    /// As it ages groups, in every pass for single pages. What is younger is not aged.
    Aging,
    /// In every pass for single pages but the first.
    LaterPasses,
    /// In every pass.
    EachPass,
}

/// The versions are from memory.
const TTL: &[Since<GenTtlRule>] = &[
    Since(v(6, 1), GenTtlRule::Aging, ""),
    Since(v(6, 3), GenTtlRule::LaterPasses, ""),
    Since(v(6, 8), GenTtlRule::EachPass, "8aa420617918"),
];

/// The rules of pages that are kept by generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct GenerationRules {
    pub by_default: GenDefaultRule,
    pub place: GenPlaceRule,
    pub uses: GenUseRule,
    pub around: GenAroundRule,
    pub age: GenAgeRule,
    pub ager: GenAgerRule,
    pub kind: GenKindRule,
    pub dirty: GenDirtyRule,
    pub look: GenLookRule,
    pub stop: GenStopRule,
    pub start: GenStartRule,
    pub refault: GenRefaultRule,
    pub group: GenGroupRule,
    pub turn: GenTurnRule,
    pub ttl: GenTtlRule,
}

impl GenerationRules {
    /// The rules of mainline Linux `version`. Those before 6.1 say what 6.1 does, and are never asked.
    pub(super) fn linux(version: Version) -> Self {
        let version = version.max(v(6, 1));
        Self {
            by_default: at(DEFAULT, version),
            place: at(PLACE, version),
            uses: at(USE, version),
            around: at(AROUND, version),
            age: at(AGE, version),
            ager: at(AGER, version),
            kind: at(KIND, version),
            dirty: at(DIRTY, version),
            look: at(LOOK, version),
            stop: at(STOP, version),
            start: at(START, version),
            refault: at(REFAULT, version),
            group: at(GROUP, version),
            turn: at(TURN, version),
            ttl: at(TTL, version),
        }
    }

    pub(super) fn visit(&mut self, other: Self, to: &mut List) {
        let Self {
            by_default,
            place,
            uses,
            around,
            age,
            ager,
            kind,
            dirty,
            look,
            stop,
            start,
            refault,
            group,
            turn,
            ttl,
        } = self;
        let of = |name, what| Of(name, &[Generations], what);
        let default = of("gen-default", "whether pages are kept by generations where nobody sets it");
        to.add(default, DEFAULT, by_default, other.by_default);
        to.add(of("gen-place", "to which generation a page comes"), PLACE, place, other.place);
        to.add(of("gen-use", "what a use does to a page's generation"), USE, uses, other.uses);
        let again = of("gen-around", "whether a page that is looked around is in use twice");
        to.add(again, AROUND, around, other.around);
        to.add(of("gen-age", "when a new generation is needed"), AGE, age, other.age);
        to.add(of("gen-ager", "who makes a new generation"), AGER, ager, other.ager);
        to.add(of("gen-kind", "which kind of pages goes first"), KIND, kind, other.kind);
        to.add(of("gen-dirty", "what becomes of the oldest that are dirty"), DIRTY, dirty, other.dirty);
        to.add(of("gen-look", "how many of the oldest a batch looks at"), LOOK, look, other.look);
        to.add(of("gen-stop", "when a pass over generations stops early"), STOP, stop, other.stop);
        to.add(of("gen-start", "at which priority kswapd begins on generations"), START, start, other.start);
        to.add(
            of("gen-refault", "which pages come back early to generations"),
            REFAULT,
            refault,
            other.refault,
        );
        to.add(of("gen-group", "in which order groups give of generations"), GROUP, group, other.group);
        to.add(of("gen-turn", "when a worker that reclaim wakes has the CPU"), TURN, turn, other.turn);
        to.add(of("gen-ttl", "when kswapd looks whether all is young"), TTL, ttl, other.ttl);
    }
}
