//! What compaction counts, by zone, under vmstat's names: today's, and those of kernels before 3.7, where "blocks" are rounds of
//! isolating and migrating.

use super::{CompactDoor, CompactGround, Compaction};
use crate::ground::{AtomicU64, CompactStep, Machine, Pfn, Relaxed, Traced, ZoneId};
use crate::pages::Counters;

/// Something that compaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CompactEvent {
    /// A request compacts for itself.
    Stall,
    /// And gets no block from it, or one.
    Fail,
    Success,
    /// Pages that the scanners looked at.
    MigrateScanned,
    FreeScanned,
    /// Pages taken off their lists, and frames off the free lists.
    Isolated,
    /// Rounds of isolating and migrating, those in which nothing was isolated too: a pageblock is several where more than 32
    /// pages of it are, and one where none is.
    Rounds,
    /// Pages that moved, or did not.
    Moved,
    MoveFailed,
    /// kcompactd was woken.
    DaemonWake,
    /// Those of the above that kcompactd looked at.
    DaemonMigrateScanned,
    DaemonFreeScanned,
    /// kcompactd begins to compact a node that nobody asked it to.
    Unasked,
    /// Pages that were isolated and put back, since their block would not have become free.
    PutBack,
    /// Blocks of the wanted order that compaction handed to the request itself.
    Captured,
    /// Compaction ended in success, and the allocation after it found nothing: the block went to somebody else.
    LostRace,
    /// The block is there, but so little else is free that the request's mark forbids it.
    LostToMark,
    /// The same, by the zone's counter alone: with what CPUs hold back of it, enough is free.
    LostToDrift,
    /// Pages that moved, all of whose blocks became free: what did not move in vain (`+compact-summary`).
    Completing,
    /// Looks at what is known of all pageblocks (`+compact-summary`).
    Look,
}

impl CompactEvent {
    const COUNT: usize = 20;
    const NAMES: [(Self, &'static str); Self::COUNT] = [
        (Self::Stall, "compact_stall"),
        (Self::Fail, "compact_fail"),
        (Self::Success, "compact_success"),
        (Self::MigrateScanned, "compact_migrate_scanned"),
        (Self::FreeScanned, "compact_free_scanned"),
        (Self::Isolated, "compact_isolated"),
        (Self::Rounds, "compact_blocks_moved"),
        (Self::Moved, "compact_pages_moved"),
        (Self::MoveFailed, "compact_pagemigrate_failed"),
        (Self::DaemonWake, "compact_daemon_wake"),
        (Self::DaemonMigrateScanned, "compact_daemon_migrate_scanned"),
        (Self::DaemonFreeScanned, "compact_daemon_free_scanned"),
        (Self::Unasked, "freehold_compact_unasked"),
        (Self::PutBack, "freehold_compact_put_back"),
        (Self::Captured, "freehold_compact_captured"),
        (Self::LostRace, "freehold_compact_lost_race"),
        (Self::LostToMark, "freehold_compact_lost_to_mark"),
        (Self::LostToDrift, "freehold_compact_lost_to_drift"),
        (Self::Completing, "freehold_compact_completing"),
        (Self::Look, "freehold_compact_looks"),
    ];
}

/// Counts of a zone.
#[derive(Debug, Default)]
pub(super) struct CompactEvents([AtomicU64; CompactEvent::COUNT]);

impl CompactEvents {
    /// It happened so many times.
    pub(super) fn add(&self, event: CompactEvent, times: u64) {
        self.0[event as usize].fetch_add(times, Relaxed);
    }

    fn get(&self, event: CompactEvent) -> u64 {
        self.0[event as usize].load(Relaxed)
    }
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// A step that the kernel has the tracepoint `event` for: over `frames`, of which so many were looked at, and so many taken.
    pub(super) fn traced(self, event: &'static str, frames: (Pfn, Pfn), (scanned, taken): (u64, usize)) {
        let step = CompactStep { event, frames, scanned: scanned as u32, taken: taken as u32 };
        self.machine().traced(Traced::Compaction(step));
    }
}

impl Compaction {
    /// Adds what compaction of `zone` counted.
    pub(super) fn add_counters(&self, zone: ZoneId, counters: &mut Counters) {
        let events = &self.of(zone).events;
        for (event, name) in CompactEvent::NAMES {
            counters.add(name, events.get(event));
        }
        counters.add("pgmigrate_success", events.get(CompactEvent::Moved));
        counters.add("pgmigrate_fail", events.get(CompactEvent::MoveFailed));
    }

    /// It happened in `zone` so many times.
    pub(super) fn count(&self, zone: ZoneId, event: CompactEvent, times: u64) {
        self.of(zone).events.add(event, times);
    }
}
