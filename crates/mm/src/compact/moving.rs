//! Moving the isolated pages to the frames found for them (`migrate_pages`).

use super::control::Control;
use super::{CompactDoor, CompactEvent, CompactGround, Mode};
use crate::ground::{Chore, Machine, Nanos, Order, Pfn, Span, Work};
use crate::lru::MigrateError;

/// Passes over pages that could not be moved at once: asynchronously, and where it waits for them (10 in the kernel, 3 for
/// asynchronous compaction since 6.3; that date from memory).
const PASSES_ASYNC: u32 = 3;
const PASSES: u32 = 10;

/// How long to wait for a page that somebody changes.
const PAGE_WAIT: Nanos = Nanos(100_000);

/// What came of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    /// All pages.
    All,
    /// Some stayed.
    Some,
    /// There was no frame for some.
    NoTarget,
}

impl<M: Machine, G: CompactGround<M>> CompactDoor<'_, M, G> {
    /// Moves what is isolated, and puts back what cannot be.
    pub(super) fn move_isolated(self, control: &mut Control) -> Moved {
        let since = self.machine().enter(Span::Migrate);
        let zone = &self.zones()[usize::from(control.zone.0)];
        let isolated = control.isolated.len() as u64;
        self.own().count(zone.id(), CompactEvent::Isolated, isolated);
        let before = control.moved;
        let mut result = Moved::All;
        // The targets are found while all that is isolated is still counted: as many as that.
        self.isolate_targets(control);
        while let Some((pfn, alone)) = control.isolated.pop() {
            let Some(to) = control.targets.pop_front() else {
                control.isolated.push((pfn, alone));
                self.isolate_targets(control);
                if control.targets.is_empty() {
                    result = Moved::NoTarget;
                    break;
                }
                continue;
            };
            if self.move_one(control.goal.mode, pfn, to) {
                self.lru().end_isolation_of(alone);
                control.moved += 1;
            } else {
                self.lru().put_back_page(pfn, alone);
                control.targets.push_front(to);
                self.own().count(zone.id(), CompactEvent::MoveFailed, 1);
                result = Moved::Some;
            }
        }
        let left = control.isolated.len() as u64;
        self.own().count(zone.id(), CompactEvent::MoveFailed, left);
        for (pfn, alone) in control.isolated.drain(..) {
            self.lru().put_back_page(pfn, alone);
        }
        let count = control.moved - before;
        self.own().count(zone.id(), CompactEvent::Moved, u64::from(count));
        let stayed = (isolated - u64::from(count)) as usize;
        self.traced("mm_compaction_migratepages", Default::default(), (count.into(), stayed));
        self.machine().leave(
            Span::Migrate,
            since,
            Work { zone: zone.id(), order: Order::ZERO, count, ..Work::default() },
        );
        result
    }

    /// Moves one page; a page that is in somebody's hands is tried again.
    fn move_one(self, mode: Mode, from: Pfn, to: Pfn) -> bool {
        self.try_to_move(mode, || self.ground.move_into(from, to))
    }

    /// The same; the frame at `from` is the caller's then.
    pub(super) fn move_away(self, mode: Mode, from: Pfn, to: Pfn) -> bool {
        self.try_to_move(mode, || self.ground.move_out(from, to))
    }

    fn try_to_move(self, mode: Mode, attempt: impl Fn() -> Result<(), MigrateError>) -> bool {
        let passes = if mode == Mode::Async { PASSES_ASYNC } else { PASSES };
        for pass in 1..=passes {
            self.machine().spend(Chore::Migrate, 1);
            match attempt() {
                Ok(()) => return true,
                Err(MigrateError::Busy) if mode > Mode::Async && pass < passes => {
                    self.machine().block(PAGE_WAIT);
                }
                Err(MigrateError::Busy | MigrateError::Pinned) => {}
                Err(_) => return false,
            }
        }
        false
    }
}
