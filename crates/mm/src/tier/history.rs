//! What NUMA balancing knows of each mapping (`vma_numab_state`): pages are only made to fault where tasks have been seen to use
//! them, or nobody knows yet. Kernels from 6.7 on do so; before 6.4 every window went over all mappings
//! (docs/rules/numa-balancing-and-tiers.md).

use alloc::collections::BTreeMap;

use super::ground::Area;
use crate::ground::{Nanos, Vpn};

/// So many passes from a mapping's first window on all tasks count as its users.
const FREE_PASSES: u32 = 2;
/// The tasks of a mapping are forgotten after so many delays of the first window.
const RESET_DELAYS: u64 = 4;

/// Who looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Looker {
    /// The task, by its number.
    pub task: u32,
    /// Tasks of the program.
    pub threads: u32,
}

/// What is known of a program's mappings.
#[derive(Debug, Default)]
pub struct AreaHistory {
    /// By the first page.
    areas: BTreeMap<u32, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The pass in which it was first met.
    met: u32,
    /// When it is looked at again.
    next: Nanos,
    /// The last pass that went over it.
    scanned: Option<u32>,
    /// Tasks that had hint faults there, a bit each: before the last reset, and since.
    tasks: [u64; 2],
    reset: Nanos,
}

/// Where a window is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    pub(super) now: Nanos,
    /// Passes so far.
    pub(super) passes: u32,
    /// The delay of first windows.
    pub(super) delay: Nanos,
    pub(super) who: Looker,
}

/// Whether a mapping is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    Yes,
    /// Not now.
    No,
    /// Not unless nothing else is left: the task is none of its users.
    NotMine,
}

const fn bit(task: u32) -> u64 {
    1 << (task % 64)
}

impl AreaHistory {
    /// `task` has had a hint fault in the mapping that begins at `start`.
    pub fn note_fault(&mut self, start: Vpn, task: u32) {
        if let Some(known) = self.areas.get_mut(&start.0) {
            known.tasks[1] |= bit(task);
        }
    }

    /// Whether `area` is looked at.
    pub(super) fn look(&mut self, area: Area, here: Here) -> Look {
        let Here { now, passes, delay, who } = here;
        let next = Nanos(now.0 + delay.0);
        let reset = Nanos(next.0 + RESET_DELAYS * delay.0);
        let fresh = Known { met: passes, next, scanned: None, tasks: [0; 2], reset };
        let known = self.areas.entry(area.range.start.0).or_insert(fresh);
        if passes > 0 && now < known.next {
            return Look::No;
        }
        if now > known.reset {
            known.reset.0 += RESET_DELAYS * delay.0;
            known.tasks = [known.tasks[1], 0];
        }
        if known.scanned == Some(passes) {
            return Look::No;
        }
        let used = (known.tasks[0] | known.tasks[1]) & bit(who.task) != 0;
        // One pass before the first counts as the last that went over it.
        let idle = passes + 1 > known.scanned.map_or(known.met, |pass| pass + 1) + who.threads;
        let mine = passes - known.met < FREE_PASSES || used || idle;
        if mine { Look::Yes } else { Look::NotMine }
    }

    /// All of the mapping that begins at `start` has been gone over in this pass.
    pub(super) fn scanned(&mut self, start: Vpn, passes: u32) {
        if let Some(known) = self.areas.get_mut(&start.0) {
            known.scanned = Some(passes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PageRange;
    use super::*;

    const MS: u64 = 1_000_000;

    fn here(ms: u64, passes: u32, task: u32) -> Here {
        let who = Looker { task, threads: 1 };
        Here { now: Nanos(ms * MS), passes, delay: Nanos(100 * MS), who }
    }

    #[test]
    fn a_mapping_is_its_users_and_every_other_pass_anybodys() {
        let area = Area { range: PageRange { start: Vpn(10), end: Vpn(20) }, is_scanned: true };
        let mut history = AreaHistory::default();
        assert_eq!(history.look(area, here(0, 0, 7)), Look::Yes, "the first pass goes over all");
        history.scanned(Vpn(10), 0);
        assert_eq!(history.look(area, here(50, 1, 7)), Look::No, "too soon");
        assert_eq!(history.look(area, here(150, 1, 7)), Look::Yes);
        history.scanned(Vpn(10), 1);
        assert_eq!(history.look(area, here(200, 1, 7)), Look::No, "this pass has been here");
        assert_eq!(history.look(area, here(250, 2, 7)), Look::NotMine);
        assert_eq!(history.look(area, here(350, 3, 7)), Look::Yes, "nobody has been here for long");
        history.note_fault(Vpn(10), 7);
        history.scanned(Vpn(10), 3);
        assert_eq!(history.look(area, here(400, 4, 7)), Look::Yes);
        assert_eq!(history.look(area, here(400, 4, 8)), Look::NotMine);
        // Forgotten after two resets.
        history.scanned(Vpn(10), 4);
        history.look(area, here(600, 4, 7));
        history.look(area, here(1000, 4, 7));
        history.look(area, here(1500, 4, 7));
        assert_eq!(history.look(area, here(1500, 5, 7)), Look::NotMine);
    }
}
