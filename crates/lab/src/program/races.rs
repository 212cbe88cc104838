//! Faults of several tasks on one page at a time.
//!
//! A fault looks whether a page is there, gets one, clears it, and maps it. Who looks between the first's look and its mapping gets a
//! page too, for nothing. The two looks are as far apart as the two faults' beginnings.

use mm::vm::Vpn;

/// How many faults may lie between two of one page that are under way together.
const REACH: usize = 8;

/// A fault, with the step that it became.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TouchStep {
    /// The address space, an index into the builder's.
    pub(super) space: usize,
    /// The page.
    pub(super) page: Vpn,
    /// When it began, ns.
    pub(super) time: u64,
    /// Whose fault.
    pub(super) task: usize,
    /// The index of its step.
    pub(super) step: usize,
}

/// The last faults, in a circle.
#[derive(Debug, Default)]
pub(super) struct Races {
    last: [Option<TouchStep>; REACH],
    next: usize,
}

impl Races {
    /// Adds a fault; gives one of another task on the same page that came just before.
    pub(super) fn add(&mut self, fault: TouchStep) -> Option<TouchStep> {
        let is_same = |other: &&TouchStep| {
            (other.space, other.page) == (fault.space, fault.page) && other.task != fault.task
        };
        let found = self.last.iter().flatten().find(is_same).copied();
        self.last[self.next % REACH] = Some(fault);
        self.next += 1;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_tasks_fault_on_the_same_page_just_before_is_a_race() {
        let at = |page, task| TouchStep { space: 0, page: Vpn(page), time: 0, task, step: 0 };
        let mut races = Races::default();
        assert_eq!(races.add(at(1, 0)), None);
        assert_eq!(races.add(at(1, 0)), None, "the same task");
        assert_eq!(races.add(at(1, 1)), Some(at(1, 0)));
        assert_eq!(races.add(TouchStep { space: 1, ..at(1, 2) }), None, "another address space");
        for page in 10..20 {
            races.add(at(page, 0));
        }
        assert_eq!(races.add(at(1, 2)), None, "long ago");
    }
}
