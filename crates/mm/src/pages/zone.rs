//! A zone: its frames' free lists under `zone->lock` (or several, see `arena`), its watermarks, its CPUs' pagesets, its counters.

use alloc::boxed::Box;

use crate::ground::{
    Access, AtomicU32, Cpu, Line, LineKind, Machine, MigrateType, Node, Order, Pfn, Relaxed, ZoneId, ZoneKind,
};
use crate::pages::arena::{Arenas, Types};
use crate::pages::fair::Turn;
use crate::pages::frame::MemMap;
use crate::pages::list::Mem;
use crate::pages::pageblock::Pageblocks;
use crate::pages::pcp::{PageSizing, Pageset, Tuning};
use crate::pages::stat::ZoneStat;
use crate::pages::watermark::{PROTECTION_COLUMNS, Watermarks};
use crate::pages::zone_price::LowZone;
use crate::pages::zone_watch::{Level, ZoneWatch};
use crate::rules::knobs::Knobs;
use crate::rules::policy::{Rules, WithheldRule};

/// The parts of the memory manager that code below [`crate::Mm`] works with.
#[derive(Debug)]
pub(crate) struct Cx<'a, M> {
    pub(in crate::pages) machine: &'a M,
    pub(in crate::pages) map: &'a MemMap,
    pub(in crate::pages) blocks: &'a Pageblocks,
    pub(in crate::pages) knobs: &'a Knobs,
    pub(in crate::pages) rules: &'a Rules,
}

impl<M> Clone for Cx<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Cx<'_, M> {}

impl<'a, M: Machine> Cx<'a, M> {
    #[inline]
    pub(crate) fn mem(self) -> Mem<'a, M> {
        Mem { map: self.map, machine: self.machine }
    }
}

/// Which mark a request must leave intact, and what it may do. The names are the kernel's `ALLOC_…`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AllocFlags(u16);

impl AllocFlags {
    /// Nothing allowed; no other bit set.
    pub(crate) const NONE: Self = Self(0);
    /// Do not mix types within a pageblock; rather ask another zone.
    pub(crate) const NOFRAGMENT: Self = Self(1);
    /// kswapd may be woken.
    pub(crate) const KSWAPD: Self = Self(1 << 1);
    /// May use half of the reserve (`__GFP_HIGH`).
    pub(crate) const MIN_RESERVE: Self = Self(1 << 2);
    /// Cannot wait: may use a quarter more.
    pub(crate) const NON_BLOCK: Self = Self(1 << 3);
    /// May use the highatomic reserve.
    pub(crate) const HIGHATOMIC: Self = Self(1 << 4);
    /// May use some reserve: what is kept for atomic requests counts as free for it.
    pub(crate) const RESERVES: Self = Self::MIN_RESERVE.with(Self::NON_BLOCK).with(Self::HIGHATOMIC);
    /// Take the zones of the node in turn. With no other pass than the first, at the low mark.
    pub(crate) const FAIR: Self = Self(1 << 5);
    /// The preferred zone is a low one, for which policies by price look at who asks.
    pub(crate) const LOW: Self = Self(1 << 6);
    /// No mark holds, and nothing is kept.
    pub(crate) const NO_WATERMARKS: Self = Self(1 << 7);
    /// Memory in free pageblocks alone counts (the kernel's `NR_FREE_PAGES_BLOCKS`, since 6.15).
    pub(crate) const WHOLE_BLOCKS: Self = Self(1 << 8);
    /// Types may mix even where `vm.defrag_mode` keeps them apart: there is nothing left to try.
    pub(crate) const MIXES: Self = Self(1 << 9);

    #[inline]
    #[must_use]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    #[must_use]
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is left of `mark` for a request with these flags.
    #[inline]
    fn lowered(self, mark: u32) -> u32 {
        let mut mark = mark;
        if self.has(Self::MIN_RESERVE) {
            mark -= mark / 2;
            if self.has(Self::NON_BLOCK) {
                mark -= mark / 4;
            }
        }
        mark
    }
}

/// What an offline zone keeps from everybody: more than any zone has, and small enough to be added to a mark.
const ALL_OF_IT: u32 = 1 << 30;

/// A block that was found, and its zone.
pub type ZoneBlock = (Pfn, ZoneId);

pub(crate) mod zone_flag {
    /// Free pages are under the high mark: pagesets do not grow.
    pub(crate) const BELOW_HIGH: u32 = 1;
    /// kswapd works on the zone: pagesets shrink.
    pub(crate) const RECLAIM_ACTIVE: u32 = 1 << 1;
    /// The watermark was boosted: kswapd should hear of it.
    pub(crate) const BOOSTED: u32 = 1 << 2;
    /// The zone's memory is out of use.
    pub(crate) const OFFLINE: u32 = 1 << 3;
}

/// A zone.
pub struct Zone<M: Machine> {
    pub(in crate::pages) id: ZoneId,
    pub(in crate::pages) node: Node,
    pub(in crate::pages) kind: ZoneKind,
    pub(in crate::pages) start: Pfn,
    pub(in crate::pages) spanned: u32,
    pub(in crate::pages) first_managed: Pfn,
    pub(in crate::pages) present: u32,
    pub(in crate::pages) managed: u32,
    pub(in crate::pages) arenas: Arenas<M>,
    pub(in crate::pages) pagesets: Box<[Pageset<M>]>,
    pub(in crate::pages) stat: ZoneStat,
    /// How requests that prefer this zone go about it at first: avoiding to mix types, taking zones in turn.
    pub(in crate::pages) first_try: AllocFlags,
    /// Where requests take zones in turn, how much of its turn is left.
    pub(in crate::pages) turn: Option<Turn>,
    /// What is known of it if it is a low zone, where zones have a price.
    pub(in crate::pages) low: Option<LowZone>,
    withheld: WithheldRule,
    marks: [AtomicU32; 4],
    boost: AtomicU32,
    protection: [AtomicU32; PROTECTION_COLUMNS],
    flags: AtomicU32,
    /// What marks would be with other knobs, where that is watched.
    pub(in crate::pages) watch: Option<Box<ZoneWatch>>,
}

/// What [`Zone::new`] is told; see [`crate::ZoneSpec`].
pub(crate) struct ZoneParts<M: Machine> {
    pub(in crate::pages) id: ZoneId,
    pub(in crate::pages) node: Node,
    pub(in crate::pages) spec: crate::ZoneSpec,
    pub(in crate::pages) first_try: AllocFlags,
    pub(in crate::pages) turn: Option<Turn>,
    pub(in crate::pages) low: Option<LowZone>,
    pub(in crate::pages) withheld: WithheldRule,
    pub(in crate::pages) arenas: Arenas<M>,
    pub(in crate::pages) pagesets: Box<[Pageset<M>]>,
}

impl<M: Machine> Zone<M> {
    /// Frames from its first to its last.
    pub(crate) fn spanned(&self) -> u32 {
        self.spanned
    }

    /// Frames that there is memory for.
    pub(crate) fn present(&self) -> u32 {
        self.present
    }

    /// Its free lists.
    #[inline]
    pub(crate) fn arenas(&self) -> &Arenas<M> {
        &self.arenas
    }

    /// Its CPUs' page lists.
    #[inline]
    pub(crate) fn pagesets(&self) -> &[Pageset<M>] {
        &self.pagesets
    }

    /// What is counted of it.
    #[inline]
    pub(crate) fn stat(&self) -> &ZoneStat {
        &self.stat
    }

    /// What is known of it as a low zone, where zones have a price.
    pub(crate) fn low(&self) -> Option<&LowZone> {
        self.low.as_ref()
    }

    pub(crate) fn new(parts: ZoneParts<M>) -> Self {
        Self {
            id: parts.id,
            node: parts.node,
            kind: parts.spec.kind,
            start: parts.spec.start,
            spanned: parts.spec.spanned,
            first_managed: Pfn(parts.spec.managed_span().start),
            present: parts.spec.present,
            managed: parts.spec.managed,
            arenas: parts.arenas,
            pagesets: parts.pagesets,
            stat: ZoneStat::default(),
            first_try: parts.first_try,
            turn: parts.turn,
            low: parts.low,
            withheld: parts.withheld,
            marks: Default::default(),
            boost: AtomicU32::new(0),
            protection: Default::default(),
            flags: AtomicU32::new(0),
            watch: ZoneWatch::new::<M>(),
        }
    }

    /// Its number.
    pub fn id(&self) -> ZoneId {
        self.id
    }

    /// The node that it belongs to.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Its kind.
    pub fn kind(&self) -> ZoneKind {
        self.kind
    }

    /// Pages that the allocator got.
    pub fn managed(&self) -> u32 {
        self.managed
    }

    /// Its first frame.
    pub fn start(&self) -> Pfn {
        self.start
    }

    /// The frames of its span, from the first to just after the last.
    pub fn span(&self) -> core::ops::Range<u32> {
        self.start.0..self.start.0 + self.spanned
    }

    /// The frames that the allocator got (`ZoneSpec::managed_span`).
    pub fn managed_span(&self) -> core::ops::Range<u32> {
        self.first_managed.0..self.first_managed.0 + self.managed
    }

    /// The lowest of its frames that the allocator did not get: the kernel's own from boot on.
    pub(crate) fn first_unmanaged(&self) -> Option<Pfn> {
        let managed = self.managed_span();
        let first = if managed.start > self.start.0 { self.start.0 } else { managed.end };
        (self.managed < self.spanned).then_some(Pfn(first))
    }

    /// Free pages as the zone's own counter has them; CPUs may hold back small differences.
    #[inline]
    pub fn free_pages(&self) -> u32 {
        self.stat.free_pages()
    }

    /// Free pages with what CPUs hold back.
    pub fn free_pages_exact(&self) -> u64 {
        let held_back: i64 = self.pagesets.iter().map(|set| i64::from(set.free_diff.load(Relaxed))).sum();
        (self.stat.free_pages_signed() + held_back).max(0) as u64
    }

    /// After a drain: pagesets may grow again once the zone is back above its high mark.
    pub(crate) fn note_above_high(&self, machine: &M) {
        let (high, any) = (self.mark_high(), ZoneKind::Movable);
        let below = self.has_flag(zone_flag::BELOW_HIGH);
        if below && self.watermark_ok(machine, Order::ZERO, high, any, AllocFlags::NONE) {
            self.clear_flag(zone_flag::BELOW_HIGH);
        }
    }

    /// The marks, without boost.
    pub fn watermarks(&self) -> Watermarks {
        let mark = |index: usize| self.marks[index].load(Relaxed);
        Watermarks { min: mark(0), low: mark(1), high: mark(2), promo: mark(3) }
    }

    /// By how much the marks are raised at present, in pages.
    #[inline]
    pub fn boost(&self) -> u32 {
        self.boost.load(Relaxed)
    }

    pub(crate) fn set_boost(&self, pages: u32) {
        self.boost.store(pages, Relaxed);
    }

    /// What is not counted on where memory is promised: the zone's high mark, and the most that it keeps from others, in pages
    /// (its part of `totalreserve_pages`).
    pub(crate) fn kept(&self) -> u32 {
        let protection = self.protection().into_iter().max().unwrap_or(0);
        (protection + self.watermarks().high).min(self.managed())
    }

    /// What the zone keeps from requests whose highest zone is each column, in pages.
    pub fn protection(&self) -> [u32; PROTECTION_COLUMNS] {
        core::array::from_fn(|column| self.protection[column].load(Relaxed))
    }

    /// The page counts and sizes of `cpu`'s pageset.
    pub fn pageset_sizing(&self, machine: &M, cpu: Cpu) -> PageSizing {
        self.pagesets[usize::from(cpu.0)].pcp.lock(machine).tuning.sizing()
    }

    /// What tunes `cpu`'s pageset.
    pub fn pageset_tuning(&self, machine: &M, cpu: Cpu) -> Tuning {
        self.pagesets[usize::from(cpu.0)].pcp.lock(machine).tuning
    }

    /// Sets what tunes `cpu`'s pageset, as a recording found it; its count and sizes stay as they are.
    pub fn set_pageset_tuning(&self, machine: &M, cpu: Cpu, tuning: Tuning) {
        let now = &mut self.pagesets[usize::from(cpu.0)].pcp.lock(machine).tuning;
        let sizing = now.sizing();
        *now = Tuning { count: sizing.count, free_high_batch: now.free_high_batch, ..tuning };
        now.resize(sizing);
    }

    pub(crate) fn set_marks(&self, marks: Watermarks) {
        for (slot, mark) in self.marks.iter().zip([marks.min, marks.low, marks.high, marks.promo]) {
            slot.store(mark, Relaxed);
        }
    }

    /// An offline zone keeps all of its memory, whatever it is told.
    pub(crate) fn set_protection(&self, protection: [u32; PROTECTION_COLUMNS]) {
        let protection = if self.is_offline() { [ALL_OF_IT; PROTECTION_COLUMNS] } else { protection };
        for (slot, pages) in self.protection.iter().zip(protection) {
            slot.store(pages, Relaxed);
        }
    }

    /// Whether its memory is out of use.
    pub fn is_offline(&self) -> bool {
        self.has_flag(zone_flag::OFFLINE)
    }

    /// Its memory goes out of use: it keeps all of it from everybody.
    pub(crate) fn set_offline(&self) {
        self.set_flag(zone_flag::OFFLINE);
        self.set_protection([ALL_OF_IT; PROTECTION_COLUMNS]);
    }

    #[inline]
    pub(crate) fn mark_min(&self) -> Level {
        Level::min(self.marks[0].load(Relaxed) + self.boost())
    }

    #[inline]
    pub(crate) fn mark_low(&self) -> Level {
        Level::low(self.marks[1].load(Relaxed) + self.boost())
    }

    #[inline]
    pub(crate) fn mark_high(&self) -> Level {
        Level::high(self.marks[2].load(Relaxed) + self.boost())
    }

    #[inline]
    pub(crate) fn mark_promo(&self) -> Level {
        Level::promo(self.marks[3].load(Relaxed) + self.boost())
    }

    #[inline]
    pub(crate) fn has_flag(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }

    /// Whether kswapd works on it.
    pub(crate) fn is_being_reclaimed(&self) -> bool {
        self.has_flag(zone_flag::RECLAIM_ACTIVE)
    }

    pub(crate) fn set_flag(&self, flag: u32) {
        if !self.has_flag(flag) {
            self.flags.fetch_or(flag, Relaxed);
        }
    }

    /// Clears `flag`; says whether it was set.
    pub(crate) fn clear_flag(&self, flag: u32) -> bool {
        self.has_flag(flag) && self.flags.fetch_and(!flag, Relaxed) & flag != 0
    }

    /// Whether a request that leaves `mark` intact may be served: enough free pages, and for `order` above 0 a block.
    /// Reads without the lock, as the kernel does.
    #[inline]
    pub(crate) fn watermark_ok(
        &self,
        machine: &M,
        order: Order,
        mark: Level,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        machine.touch(Line { kind: LineKind::Zone, index: u32::from(self.id.0) }, Access::Read);
        let kept = self.protection[highest.index()].load(Relaxed);
        self.has_above(machine, order, (mark, kept, highest), flags)
    }

    /// Whether there is a block of `order` above `mark` and what is `kept` from requests up to `highest`.
    #[inline]
    pub(crate) fn has_above(
        &self,
        machine: &M,
        order: Order,
        (mark, kept, highest): (Level, u32, ZoneKind),
        flags: AllocFlags,
    ) -> bool {
        let usable_tail = order.pages() - 1;
        let counted =
            if flags.has(AllocFlags::WHOLE_BLOCKS) { self.stat.free_large() } else { self.free_pages() };
        let mut free = counted.saturating_sub(usable_tail);
        if flags.has(AllocFlags::NO_WATERMARKS) {
            return free > 0;
        }
        if !flags.has(AllocFlags::RESERVES) {
            free = free.saturating_sub(match self.withheld {
                WithheldRule::FreeOnly => self.stat.free_highatomic(),
                WithheldRule::Reserved => self.stat.reserved_highatomic(),
            });
        }
        let is_enough = |mark: u32, kept: u32| free > flags.lowered(mark) + kept;
        let enough = is_enough(mark.pages, kept);
        let found = enough && (order == Order::ZERO || self.has_block(machine, order, flags));
        if M::WATCHES_KNOBS {
            let lacks_block = enough && !found;
            self.watch_level(machine, free, (mark, kept, highest), |mark, kept| {
                lacks_block || is_enough(mark, kept)
            });
        }
        found
    }

    /// Whether some list that the request may use has a block of `order` or more.
    fn has_block(&self, machine: &M, order: Order, flags: AllocFlags) -> bool {
        let mut usable = Types::ORDINARY.with(MigrateType::Cma);
        if flags.has(AllocFlags::HIGHATOMIC) {
            usable = usable.with(MigrateType::HighAtomic);
        }
        self.arenas.any_has(machine, order, usable)
    }
}

impl<M: Machine> core::fmt::Debug for Zone<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Node {}, zone {}", self.node.0, self.kind.name())
    }
}
