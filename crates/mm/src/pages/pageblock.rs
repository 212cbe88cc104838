//! The type of each pageblock: which free lists its pages go back to.

use alloc::boxed::Box;

use crate::ground::{
    Access, AtomicU8, Line, LineKind, Machine, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn,
    Relaxed, Topology,
};
use crate::pages::frame::Mobility;
use crate::pages::summary::{Meeting, Summary};
use crate::rules::policy::{FindRule, Rules};

/// Pageblocks whose bits share a cache line in the kernel, at 4 bits each.
const BLOCKS_PER_LINE: u32 = 128;

/// In a pageblock's byte: compaction found nothing there of late. The low bits are the type.
const SKIP: u8 = 1 << 7;

/// A type for every pageblock, by pfn. Written under the zone lock; read by anybody, who may see an old type.
#[derive(Debug)]
pub(crate) struct Pageblocks {
    types: Box<[AtomicU8]>,
    summary: Option<Summary>,
}

impl Pageblocks {
    /// Blocks of the frames of `topology`, all below `end`, all movable, as after boot.
    pub(crate) fn new(end: Pfn, topology: &Topology, rules: &Rules) -> Self {
        let count = (u64::from(end.0)).div_ceil(u64::from(PAGEBLOCK_PAGES));
        let types = (0..count).map(|_| AtomicU8::new(MigrateType::Movable as u8)).collect();
        let summary =
            (rules.compact.find == FindRule::Summary).then(|| Summary::new(end, Meeting::of(topology)));
        Self { types, summary }
    }

    /// A block of pages of the kind `was` has come to the buddy lists. This, [`Self::left`] and [`Self::retyped`] are the one
    /// door for whoever keeps count of what passes between lists; today the summary does. The caller holds the zone lock.
    #[inline]
    pub(crate) fn joined<M: Machine>(&self, machine: &M, block: (Pfn, Order), was: Mobility) {
        if let Some(summary) = self.summary() {
            summary.join_any(machine, block, was);
        }
    }

    /// A block has left the buddy lists, to be pages of the kind `is`.
    #[inline]
    pub(crate) fn left<M: Machine>(&self, machine: &M, block: (Pfn, Order), is: Mobility) {
        if let Some(summary) = self.summary() {
            summary.leave_any(machine, block, is);
        }
    }

    /// A block that is on no buddy list changes its kind, from the first to the second.
    #[inline]
    pub(crate) fn retyped<M: Machine>(&self, machine: &M, block: (Pfn, Order), kinds: (Mobility, Mobility)) {
        if let Some(summary) = self.summary() {
            summary.retype(machine, block, kinds);
        }
    }

    /// What more is known of the blocks, where the policy keeps count.
    #[inline]
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The type of the block that `pfn` is in, as anybody may read it.
    #[inline]
    pub(crate) fn get(&self, pfn: Pfn) -> MigrateType {
        let raw = self.types[(pfn.0 >> PAGEBLOCK_ORDER) as usize].load(Relaxed);
        MigrateType::from_index(raw & !SKIP).unwrap_or_default()
    }

    /// Whether compaction found nothing in the block of `pfn` of late.
    pub(crate) fn is_skipped<M: Machine>(&self, machine: &M, pfn: Pfn) -> bool {
        machine.touch(line(pfn), Access::Read);
        self.types[(pfn.0 >> PAGEBLOCK_ORDER) as usize].load(Relaxed) & SKIP != 0
    }

    /// Compaction found nothing in the block of `pfn`.
    pub(crate) fn set_skipped<M: Machine>(&self, machine: &M, pfn: Pfn) {
        machine.touch(line(pfn), Access::Atomic);
        self.types[(pfn.0 >> PAGEBLOCK_ORDER) as usize].fetch_or(SKIP, Relaxed);
    }

    /// Compaction looks at all blocks of `span` again.
    pub(crate) fn clear_skipped<M: Machine>(&self, machine: &M, span: core::ops::Range<u32>) {
        let blocks = (span.start >> PAGEBLOCK_ORDER)..span.end.div_ceil(PAGEBLOCK_PAGES);
        for block in blocks {
            if block % BLOCKS_PER_LINE == 0 {
                machine.touch(line(Pfn(block << PAGEBLOCK_ORDER)), Access::Write);
            }
            self.types[block as usize].fetch_and(!SKIP, Relaxed);
        }
    }

    /// The same, charged to `machine`.
    #[inline]
    pub(crate) fn read<M: Machine>(&self, machine: &M, pfn: Pfn) -> MigrateType {
        machine.touch(line(pfn), Access::Read);
        self.get(pfn)
    }

    /// Sets the type of the block that `pfn` is in. The zone lock is held.
    pub(crate) fn set<M: Machine>(&self, machine: &M, pfn: Pfn, migratetype: MigrateType) {
        machine.touch(line(pfn), Access::Write);
        let byte = &self.types[(pfn.0 >> PAGEBLOCK_ORDER) as usize];
        // Compaction may set its bit meanwhile, without the lock.
        let retype = |now: u8| Some(now & SKIP | migratetype as u8);
        // The closure never declines.
        let _ = byte.fetch_update(Relaxed, Relaxed, retype);
    }
}

/// The line that has the type of the pageblock of `pfn`.
#[inline]
pub(crate) fn line(pfn: Pfn) -> Line {
    Line { kind: LineKind::Pageblock, index: (pfn.0 >> PAGEBLOCK_ORDER) / BLOCKS_PER_LINE }
}
